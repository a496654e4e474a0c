/* The functions of xxhash, which Debian's libxxhash-dev brings in its header: one library less that
 * programs need. XXH_NAMESPACE (src/CMakeLists.txt) begins their names. */
#define XXH_IMPLEMENTATION
#include <xxhash.h>
