/* The table of backends, from backends.def. */
#include "backends/backend.h"

const Backend *const backends[] = {
#define BACKEND(name) &backend_##name,
#include "backends/backends.def"
#undef BACKEND
    NULL,
};

static const DelegateReader *const readers[] = {
#define BACKEND(name) &reader_##name,
#include "backends/backends.def"
#undef BACKEND
};
const DelegateReaders backend_readers = {readers, COUNT_OF(readers)};
