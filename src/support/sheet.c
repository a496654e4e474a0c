/* See sheet.h. */
#include "support/sheet.h"

#include <stdlib.h>

#include "support/text.h"

/* Facts of one method follow each other, and share its name. */
static StrView keep_method(Sheet *s, StrView method) {
  if (s->count && sv_eq(s->facts[s->count - 1].method, method))
    return s->facts[s->count - 1].method;
  return (StrView){arena_strdup(s->arena, method), method.size};
}

void sheet_add(Sheet *s, Fact fact) {
  s->facts = arena_push(s->arena, s->facts, s->count, sizeof *s->facts);
  fact.method = keep_method(s, fact.method);
  fact.name = (StrView){arena_strdup(s->arena, fact.name), fact.name.size};
  fact.text = (StrView){arena_strdup(s->arena, fact.text), fact.text.size};
  s->facts[s->count++] = fact;
}

static int compare_keys(const Fact *x, const Fact *y) {
  int order = ORDER(x->section, y->section);
  order = order ? order : text_compare(x->method, y->method);
  order = order ? order : text_compare(x->name, y->name);
  return order ? order : ORDER(x->kind, y->kind);
}

static int by_key(const void *a, const void *b) {
  const Fact *x = *(const Fact *const *)a, *y = *(const Fact *const *)b;
  int order = compare_keys(x, y);
  return order ? order : ORDER(x, y);
}

static const Fact **sorted(const Sheet *s, Arena *arena) {
  const Fact **out = ARENA_ARRAY(arena, const Fact *, (size_t)s->count + 1);
  for (uint32_t i = 0; i < s->count; i++)
    out[i] = &s->facts[i];
  qsort(out, s->count, sizeof *out, by_key);
  return out;
}

void sheet_add_sums(Sheet *s, const Sheet *counted) {
  const Fact **facts = sorted(counted, s->arena);
  uint32_t first = s->count;
  for (uint32_t i = 0; i < counted->count; i++)
    if (s->count > first && compare_keys(&s->facts[s->count - 1], facts[i]) == 0)
      s->facts[s->count - 1].number += facts[i]->number;
    else
      sheet_add(s, *facts[i]);
}

/* A number that is not there is 0. */
static bool differs(const FactChange *c) {
  const Fact *a = c->before, *b = c->after;
  const Fact *any = a ? a : b;
  if (any->kind != FACT_TEXT && (a ? a->number : 0) != (b ? b->number : 0))
    return true;
  if (!a || !b)
    return any->kind == FACT_TEXT;
  return a->hash != b->hash || (any->kind == FACT_TEXT && !sv_eq(a->text, b->text));
}

/* Facts that only one sheet has follow those that `before` has. */
static int by_place(const void *a, const void *b) {
  const FactChange *x = a, *y = b;
  const Fact *left = x->before ? x->before : x->after, *right = y->before ? y->before : y->after;
  int order = ORDER(left->section, right->section);
  order = order ? order : ORDER(!x->before, !y->before);
  return order ? order : ORDER(left, right);
}

/* Whether there is more than one method to tell apart. */
static bool has_methods(const Sheet *s, StrView *method) {
  for (uint32_t i = 0; i < s->count; i++) {
    StrView name = s->facts[i].method;
    if (name.size && method->size && !sv_eq(name, *method))
      return true;
    *method = name.size ? name : *method;
  }
  return false;
}

SheetDiff sheet_compare(const Sheet *before, const Sheet *after) {
  Arena *arena = before->arena;
  const Fact **a = sorted(before, arena), **b = sorted(after, arena);
  SheetDiff d = {before, after,
                 ARENA_ARRAY(arena, FactChange, (size_t)before->count + after->count + 1)};
  StrView method = {0};
  d.methods = has_methods(before, &method) || has_methods(after, &method);
  for (uint32_t i = 0, k = 0; i < before->count || k < after->count;) {
    int order = i == before->count ? 1 : k == after->count ? -1 : compare_keys(a[i], b[k]);
    FactChange change = {order <= 0 ? a[i] : NULL, order >= 0 ? b[k] : NULL};
    i += order <= 0;
    k += order >= 0;
    if (differs(&change))
      d.changes[d.count++] = change;
  }
  qsort(d.changes, d.count, sizeof *d.changes, by_place);
  return d;
}
