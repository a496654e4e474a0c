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

const Backend *backend_find(StrView name) {
  for (const Backend *const *b = backends; *b; b++)
    if (sv_eq_str(name, (*b)->name))
      return *b;
  return NULL;
}
