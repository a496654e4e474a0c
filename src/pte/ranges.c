/* See ranges.h. */
#include "pte/ranges.h"
#include "support/text.h"

#define PREFIX "etc:"

static void print_input(const Graph *g, ValueId v, StrBuf *out) {
  const Type *t = value_type(g, v);
  strbuf_append(out, SV(" ["));
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t lo = sym_lower(&g->syms, t->dims[i]), hi = sym_upper(&g->syms, t->dims[i]);
    strbuf_append(out, i ? SV(", ") : SV(""));
    if (lo != hi)
      strbuf_printf(out, "%lld..", (long long)max_i64(lo, 0));
    strbuf_printf(out, "%lld", (long long)hi);
  }
  strbuf_append_char(out, ']');
}

void ranges_print(const Graph *g, StrBuf *out) {
  bool dynamic = false;
  for (uint32_t i = 0; i < g->input_count; i++)
    dynamic |= !type_is_static(value_type(g, g->inputs[i]));
  if (!dynamic)
    return;
  strbuf_append(out, SV(PREFIX));
  for (uint32_t i = 0; i < g->input_count; i++)
    print_input(g, g->inputs[i], out);
}

/* --- reading --- */

static bool take(StrView *text, const char *wanted) {
  StrView prefix = sv_from(wanted);
  if (!sv_starts_with(*text, prefix))
    return false;
  text->data += prefix.size;
  text->size -= prefix.size;
  return true;
}

/* No more digits than an int32 has, which is what sizes are. */
static bool take_number(StrView *text, int64_t *number) {
  size_t digits = 0;
  *number = 0;
  for (; digits < text->size && digits < 10 && is_digit(text->data[digits]); digits++)
    *number = *number * 10 + (text->data[digits] - '0');
  text->data += digits;
  text->size -= digits;
  return digits != 0;
}

static bool take_range(StrView *text, PteRange *out) {
  if (!take_number(text, &out->lo))
    return false;
  out->hi = out->lo;
  return !take(text, "..") || take_number(text, &out->hi);
}

/* A range ends at the size that the file has, its bound. */
static bool take_input(StrView *text, const PteValue *v, PteRange *out) {
  if (v->kind != PTE_TENSOR || !take(text, " ["))
    return false;
  for (uint32_t i = 0; i < v->tensor->rank; i++) {
    if ((i && !take(text, ", ")) || !take_range(text, &out[i]) || out[i].lo > out[i].hi ||
        out[i].hi != v->tensor->sizes[i] ||
        (v->tensor->dynamism == PTE_STATIC && out[i].lo != out[i].hi))
      return false;
  }
  return take(text, "]");
}

PteRange **ranges_parse(StrView text, const PteMethod *m, Arena *arena) {
  if (!text.data || !take(&text, PREFIX))
    return NULL;
  PteRange **ranges = ARENA_ARRAY(arena, PteRange *, (size_t)m->input_count + 1);
  for (uint32_t i = 0; i < m->input_count; i++) {
    const PteValue *v = &m->values[m->inputs[i]];
    ranges[i] =
        ARENA_ARRAY(arena, PteRange, (v->kind == PTE_TENSOR ? v->tensor->rank : 0) + (size_t)1);
    if (!take_input(&text, v, ranges[i]))
      return NULL;
  }
  return text.size ? NULL : ranges;
}
