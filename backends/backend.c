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

bool backends_take_quantized(const PassOptions *options) {
  for (uint32_t i = 0; i < options->backend_count; i++)
    if (options->backends[i].backend->quantized)
      return true;
  return false;
}

bool backends_want_pass(const PassOptions *options, const char *name) {
  for (uint32_t i = 0; i < options->backend_count; i++) {
    const char *const *passes = options->backends[i].backend->passes;
    for (; passes && *passes; passes++)
      if (strcmp(*passes, name) == 0)
        return true;
  }
  return false;
}
