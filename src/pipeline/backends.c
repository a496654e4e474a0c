/* The table of backends, from backends/backends.def. */
#include "pipeline/settings.h"

const BackendRow backend_rows[] = {
#define BACKEND(name, available, summary) {#name, available, summary},
#include "backends/backends.def"
#undef BACKEND
    {NULL, false, NULL},
};
_Static_assert(COUNT_OF(backend_rows) <= BACKEND_MAX, "raise BACKEND_MAX");
