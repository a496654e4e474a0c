/* The public functions for constant methods (include/etc/etc.h). */
#include <math.h>

#include "pipeline/constant_methods.h"

typedef struct Given {
  const char *name;
  size_t count;
  const int64_t *ints; /* one of these is set */
  const double *doubles;
  const bool *bools;
  const char *const *strings;
} Given;

/* Whether there are as many values as the caller says. */
static bool is_whole(const Given *g) {
  bool there = g->ints || g->doubles || g->bools || g->strings;
  for (size_t i = 0; g->strings && i < g->count; i++)
    there = there && g->strings[i];
  return g->name && (there || g->count == 0);
}

static ConstantItem item_of(Session *s, const Given *g, size_t i) {
  if (g->ints)
    return (ConstantItem){.kind = CONSTANT_INT, .i = g->ints[i]};
  if (g->doubles)
    return (ConstantItem){.kind = CONSTANT_FLOAT, .f = g->doubles[i]};
  if (g->bools)
    return (ConstantItem){.kind = CONSTANT_BOOL, .i = g->bools[i]};
  StrView text = sv_from(g->strings[i]);
  return (ConstantItem){.kind = CONSTANT_TEXT, .text = {arena_strdup(&s->arena, text), text.size}};
}

static EtcStatus add(Session *s, void *user) {
  const Given *g = user;
  if (g->count > UINT32_MAX)
    return session_usage(s, "--constant", "a method returns up to 4294967295 values",
                         "a constant method has too many values");
  if (!is_whole(g))
    return session_null(s, "the name or a value of a constant method");
  TRY(session_check_not_begun(s));
  ConstantItem *items = ARENA_ARRAY(&s->arena, ConstantItem, g->count);
  for (size_t i = 0; i < g->count; i++) {
    items[i] = item_of(s, g, i);
    if (items[i].kind == CONSTANT_FLOAT && !isfinite(items[i].f))
      return session_usage(s, "--constant", "give finite numbers; values count from 1",
                           "constant method '%s': value %zu is not a finite number", g->name,
                           i + 1);
  }
  return session_add_constant(s, sv_from(g->name), items, (uint32_t)g->count);
}

EtcStatus etc_session_add_constant_ints(EtcSession *s, const char *name, const int64_t *values,
                                        size_t count) {
  return session_call(s, add, &(Given){.name = name, .count = count, .ints = values});
}

EtcStatus etc_session_add_constant_doubles(EtcSession *s, const char *name, const double *values,
                                           size_t count) {
  return session_call(s, add, &(Given){.name = name, .count = count, .doubles = values});
}

EtcStatus etc_session_add_constant_bools(EtcSession *s, const char *name, const bool *values,
                                         size_t count) {
  return session_call(s, add, &(Given){.name = name, .count = count, .bools = values});
}

EtcStatus etc_session_add_constant_strings(EtcSession *s, const char *name,
                                           const char *const *values, size_t count) {
  return session_call(s, add, &(Given){.name = name, .count = count, .strings = values});
}
