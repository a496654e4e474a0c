/* The table of backends, from backends.def. */
#include "backends/backend.h"

const Backend *const backends[] = {
#define BACKEND(name) &backend_##name,
#include "backends/backends.def"
#undef BACKEND
    NULL,
};

const DelegateReader *const delegate_readers[] = {
#define BACKEND(name) &reader_##name,
#include "backends/backends.def"
#undef BACKEND
    NULL,
};
