/* The public functions for constant methods (include/etc/etc.h). */
#include <math.h>

#include "pipeline/constant_methods.h"

static ConstantItem *make_items(Session *s, size_t count) {
  return ARENA_ARRAY(&s->arena, ConstantItem, count);
}

static EtcStatus add(Session *s, const char *name, const ConstantItem *items, size_t count) {
  if (count > UINT32_MAX)
    return session_usage(s, "--constant", NULL, "constant method '%s' has too many values", name);
  return session_add_constant(s, sv_from(name), items, (uint32_t)count);
}

EtcStatus etc_session_add_constant_ints(EtcSession *s, const char *name, const int64_t *values,
                                        size_t count) {
  ConstantItem *items = make_items(s, count);
  for (size_t i = 0; i < count; i++)
    items[i] = (ConstantItem){.kind = CONSTANT_INT, .i = values[i]};
  return add(s, name, items, count);
}

EtcStatus etc_session_add_constant_doubles(EtcSession *s, const char *name, const double *values,
                                           size_t count) {
  ConstantItem *items = make_items(s, count);
  for (size_t i = 0; i < count; i++) {
    items[i] = (ConstantItem){.kind = CONSTANT_FLOAT, .f = values[i]};
    if (!isfinite(values[i]))
      return session_usage(s, "--constant", NULL,
                           "constant method '%s': value %zu is not a finite number", name, i + 1);
  }
  return add(s, name, items, count);
}

EtcStatus etc_session_add_constant_bools(EtcSession *s, const char *name, const bool *values,
                                         size_t count) {
  ConstantItem *items = make_items(s, count);
  for (size_t i = 0; i < count; i++)
    items[i] = (ConstantItem){.kind = CONSTANT_BOOL, .i = values[i]};
  return add(s, name, items, count);
}

EtcStatus etc_session_add_constant_strings(EtcSession *s, const char *name,
                                           const char *const *values, size_t count) {
  ConstantItem *items = make_items(s, count);
  for (size_t i = 0; i < count; i++) {
    StrView text = sv_from(values[i]);
    items[i] =
        (ConstantItem){.kind = CONSTANT_TEXT, .text = {arena_strdup(&s->arena, text), text.size}};
  }
  return add(s, name, items, count);
}
