/* When the tensors of a planned method are in use, and how much memory that is at once. */
#include <stdlib.h>

#include "pte/inspect_internal.h"

typedef struct Lives {
  const PteMethod *m;
  uint32_t *begin,
      *end;   /* by value index; begin 0 = not named; positions: 1 inputs, 2… instructions */
  bool *read; /* by value index: the first that names it reads it */
} Lives;

static void touch(Lives *l, int32_t value, uint32_t position, bool read) {
  if (value < 0)
    return;
  if (!l->begin[value]) {
    l->begin[value] = position;
    l->read[value] = read;
  }
  if (position > l->end[value])
    l->end[value] = position;
}

/* A value and the members of a list. */
static void touch_all(Lives *l, int32_t value, uint32_t position, bool read) {
  const PteValue *v = &l->m->values[value];
  touch(l, value, position, read);
  if (v->kind != PTE_TENSOR_LIST && v->kind != PTE_OPTIONAL_TENSOR_LIST)
    return;
  for (uint32_t i = 0; i < v->count; i++)
    touch(l, v->indices[i], position, read);
}

/* Whether the list names the `count` values. */
static bool lists(const PteValue *list, const int32_t *values, uint32_t count) {
  bool same = list->kind == PTE_TENSOR_LIST && list->count == count;
  for (uint32_t i = 0; i < count && same; i++)
    same = list->indices[i] == values[i];
  return same;
}

/* How many arguments of a call, counted from the first, are only read. A kernel has what it writes
 * at the end, and once more as its results: one value each, or a list of them all; nothing is known
 * of delegates. */
static uint32_t read_count(const PteMethod *m, const PteInstruction *call) {
  if (call->kind != PTE_KERNEL_CALL || call->count == 0)
    return 0;
  const int32_t *end = call->args + call->count;
  for (uint32_t r = 1; 2 * r <= call->count; r++)
    if (memcmp(end - r, end - 2 * r, r * sizeof *end) == 0)
      return call->count - 2 * r;
  for (uint32_t r = 1; r < call->count; r++)
    if (end[-1] >= 0 && lists(&m->values[end[-1]], end - 1 - r, r))
      return call->count - 1 - r;
  return call->count - 1;
}

static int compare_spans(const void *a, const void *b) {
  const PteSpan *x = a, *y = b;
  int order = ORDER(x->arena, y->arena);
  order = order ? order : ORDER(x->offset, y->offset);
  order = order ? order : ORDER(x->begin, y->begin);
  return order ? order : ORDER(x->end, y->end);
}

/* A span that begins or has ended: what it adds to the bytes in use, modulo 2^64. */
typedef struct Change {
  uint32_t at;
  uint64_t bytes;
} Change;

static int compare_changes(const void *a, const void *b) {
  const Change *x = a, *y = b;
  return ORDER(x->at, y->at);
}

PtePeak spans_peak(const PteSpan *spans, uint32_t count, Arena *arena) {
  Change *changes = ARENA_ARRAY(arena, Change, 2 * (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++) {
    uint64_t size = align_up(spans[i].size, PTE_TENSOR_ALIGNMENT);
    changes[2 * i] = (Change){spans[i].begin, size};
    changes[2 * i + 1] = (Change){spans[i].end + 1, 0 - size};
  }
  qsort(changes, 2 * (size_t)count, sizeof *changes, compare_changes);
  PtePeak peak = {0};
  uint64_t now = 0;
  for (uint32_t i = 0; i < 2 * count; i++) {
    now += changes[i].bytes;
    if (changes[i + 1].at != changes[i].at && now > peak.bytes)
      peak = (PtePeak){now, changes[i].at};
  }
  return peak;
}

static void find_lives(const PteMethod *m, Lives *l, uint32_t last) {
  for (uint32_t i = 0; i < m->input_count; i++)
    touch_all(l, m->inputs[i], 1, false);
  for (uint32_t i = 0; i < m->instruction_count; i++) {
    uint32_t reads = read_count(m, &m->instructions[i]);
    for (uint32_t k = 0; k < m->instructions[i].count; k++)
      touch_all(l, m->instructions[i].args[k], i + 2, k < reads);
  }
  for (uint32_t i = 0; i < m->output_count; i++)
    touch_all(l, m->outputs[i], last, true);
  for (uint32_t i = 0; i < m->value_count; i++)
    if (m->values[i].kind == PTE_TENSOR && pte_is_state(m->values[i].tensor)) {
      touch(l, (int32_t)i, 1, false);
      touch(l, (int32_t)i, last, false);
      l->begin[i] = 1;
    }
}

static Lives method_lives(const PteMethod *m, Arena *arena) {
  Lives l = {.m = m,
             .begin = ARENA_ARRAY(arena, uint32_t, m->value_count),
             .end = ARENA_ARRAY(arena, uint32_t, m->value_count),
             .read = ARENA_ARRAY(arena, bool, m->value_count)};
  find_lives(m, &l, m->instruction_count + 2);
  return l;
}

const uint32_t *method_first_uses(const PteMethod *m, Arena *arena) {
  return method_lives(m, arena).begin;
}

PteSpans method_spans(const PteMethod *m, Arena *arena) {
  Lives l = method_lives(m, arena);
  PteSpans s = {.spans = ARENA_ARRAY(arena, PteSpan, m->value_count),
                .positions = m->instruction_count + 2};
  for (uint32_t v = 0; v < m->value_count; v++) {
    const PteTensor *t = m->values[v].kind == PTE_TENSOR ? m->values[v].tensor : NULL;
    if (t && t->memory_id && t->bytes && l.begin[v])
      s.spans[s.count++] = (PteSpan){.offset = t->offset,
                                     .size = t->bytes,
                                     .value = v,
                                     .arena = t->memory_id,
                                     .begin = l.begin[v],
                                     .end = l.end[v],
                                     .read = l.read[v]};
  }
  if (s.count)
    qsort(s.spans, s.count, sizeof *s.spans, compare_spans);
  return s;
}

/* --- one span for what is one piece of memory --- */

/* Bytes [begin, end) of an arena, and the span whose bytes they are by now. */
typedef struct Owned {
  uint64_t begin, end;
  uint32_t arena, span;
} Owned;

/* The bytes that were in use so far, in order of place and without overlaps. */
typedef struct Owners {
  PteSpan *spans;
  Owned *items;
  uint32_t count;
} Owners;

static bool lies_before(const Owned *o, uint32_t arena, uint64_t offset) {
  return o->arena < arena || (o->arena == arena && o->end <= offset);
}

/* The first item that ends behind `offset`, or begins there or later. */
static uint32_t first_behind(const Owners *o, uint32_t arena, uint64_t offset) {
  uint32_t low = 0, high = o->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (lies_before(&o->items[middle], arena, offset))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Items [first, end) overlap the span. */
static uint32_t overlap_end(const Owners *o, uint32_t first, const PteSpan *s) {
  while (first < o->count && o->items[first].arena == s->arena &&
         o->items[first].begin < s->offset + s->size)
    first++;
  return first;
}

static void splice(Owners *o, uint32_t first, uint32_t end, const Owned *with, uint32_t count) {
  memmove(o->items + first + count, o->items + end, (o->count - end) * sizeof *o->items);
  memcpy(o->items + first, with, count * sizeof *with);
  o->count = o->count - (end - first) + count;
}

/* From now on the bytes are those of span i; what others have to its left and right stays theirs.
 */
static void own(Owners *o, uint32_t i) {
  const PteSpan *s = &o->spans[i];
  uint32_t first = first_behind(o, s->arena, s->offset), end = overlap_end(o, first, s), count = 0;
  uint64_t stop = s->offset + s->size;
  Owned with[3];
  if (first < end && o->items[first].begin < s->offset) {
    with[count] = o->items[first];
    with[count++].end = s->offset;
  }
  with[count++] = (Owned){s->offset, stop, s->arena, i};
  if (first < end && o->items[end - 1].end > stop) {
    with[count] = o->items[end - 1];
    with[count++].begin = stop;
  }
  splice(o, first, end, with, count);
}

/* Span i becomes a part of `into`, which grows over both. */
static void absorb(PteSpan *spans, uint32_t into, uint32_t i) {
  PteSpan *a = &spans[into], *b = &spans[i];
  uint64_t a_end = a->offset + a->size, b_end = b->offset + b->size;
  a->offset = b->offset < a->offset ? b->offset : a->offset;
  a->size = (b_end > a_end ? b_end : a_end) - a->offset;
  a->begin = b->begin < a->begin ? b->begin : a->begin;
  a->end = b->end > a->end ? b->end : a->end;
  b->size = 0;
}

/* Adds span i, in order of time. It is the same piece of memory as each span that it overlaps if it
 * is read before it is written, or begins while that span is in use; those are merged. */
static void add_span(Owners *o, uint32_t i) {
  PteSpan *spans = o->spans;
  uint32_t first = first_behind(o, spans[i].arena, spans[i].offset),
           end = overlap_end(o, first, &spans[i]), into = i;
  for (uint32_t k = first; k < end; k++) {
    uint32_t other = o->items[k].span;
    if (other == into || (!spans[i].read && spans[other].end < spans[i].begin))
      continue;
    if (into == i)
      absorb(spans, into = other, i);
    else
      absorb(spans, into, other);
  }
  own(o, into);
}

static int compare_begins(const void *a, const void *b) {
  const PteSpan *x = a, *y = b;
  return x->begin != y->begin ? (x->begin < y->begin ? -1 : 1) : compare_spans(a, b);
}

void spans_merge(PteSpans *s, Arena *arena) {
  Owners o = {.spans = s->spans, .items = ARENA_ARRAY(arena, Owned, 2 * (size_t)s->count + 3)};
  if (s->count)
    qsort(s->spans, s->count, sizeof *s->spans, compare_begins);
  for (uint32_t i = 0; i < s->count; i++)
    if (s->spans[i].size)
      add_span(&o, i);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < s->count; i++)
    if (s->spans[i].size)
      s->spans[kept++] = s->spans[i];
  s->count = kept;
  if (kept)
    qsort(s->spans, kept, sizeof *s->spans, compare_spans);
}

uint64_t spans_live_peak(PteSpans s, Arena *arena) {
  spans_merge(&s, arena);
  return spans_peak(s.spans, s.count, arena).bytes;
}
