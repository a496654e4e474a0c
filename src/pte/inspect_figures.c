/* See inspect.h. Counting. */
#include <stdlib.h>

#include "pte/inspect_internal.h"
#include "support/bitset.h"
#include "support/text.h"

ProgramFigures program_figures(const PteProgram *p, Arena *arena) {
  ProgramFigures f = {0};
  Bitset seen = bitset_make(arena, p->constant_count);
  for (uint32_t i = 0; i < p->method_count; i++) {
    for (uint32_t k = 0; k < p->methods[i].value_count; k++) {
      const PteValue *v = &p->methods[i].values[k];
      if (v->kind != PTE_TENSOR || v->tensor->external || !pte_is_constant(v->tensor))
        continue;
      f.constant_tensors++;
      f.constant_bytes += v->tensor->bytes;
      if (bitset_has(&seen, v->tensor->data))
        continue;
      bitset_add(&seen, v->tensor->data);
      f.unique_constants++;
      f.unique_bytes += v->tensor->bytes;
    }
  }
  return f;
}

typedef struct Counted {
  StrView name;
  uint32_t calls, index;
} Counted;

static int compare_counted(const void *a, const void *b) {
  const Counted *x = a, *y = b;
  if (x->calls != y->calls)
    return x->calls > y->calls ? -1 : 1;
  int order = text_compare(x->name, y->name);
  return order ? order : x->index < y->index ? -1 : 1;
}

MethodFigures method_figures(const PteMethod *m, Arena *arena) {
  MethodFigures f = {.calls = ARENA_ARRAY(arena, uint32_t, m->operator_count),
                     .delegate_calls = ARENA_ARRAY(arena, uint32_t, m->delegate_count),
                     .order = ARENA_ARRAY(arena, uint32_t, m->operator_count)};
  for (uint32_t i = 0; i < m->instruction_count; i++) {
    f.kinds[m->instructions[i].kind]++;
    if (m->instructions[i].kind == PTE_KERNEL_CALL)
      f.calls[m->instructions[i].index]++;
    else if (m->instructions[i].kind == PTE_DELEGATE_CALL)
      f.delegate_calls[m->instructions[i].index]++;
  }
  Counted *counted = ARENA_ARRAY(arena, Counted, m->operator_count);
  for (uint32_t i = 0; i < m->operator_count; i++)
    counted[i] = (Counted){m->operators[i], f.calls[i], i};
  qsort(counted, m->operator_count, sizeof *counted, compare_counted);
  while (f.used < m->operator_count && counted[f.used].calls) {
    f.order[f.used] = counted[f.used].index;
    f.used++;
  }
  f.memory = pte_method_memory(m);
  return f;
}

/* --- libraries --- */

static const struct {
  const char *prefix, *library;
} namespaces[] = {{"executorch_prim::", ""},
                  {"aten::", "portable"},
                  {"dim_order_ops::", "portable"},
                  {"quantized_decomposed::", "quantized"},
                  {"llama::", "llm"}};

const char *operator_library(StrView name) {
  for (size_t i = 0; i < COUNT_OF(namespaces); i++)
    if (sv_starts_with(name, sv_from(namespaces[i].prefix)))
      return namespaces[i].library;
  return "other";
}

uint32_t program_libraries(const PteProgram *p, const char *names[MAX_LIBRARIES]) {
  static const char *const all[] = {"llm", "other", "portable", "quantized"};
  bool needed[COUNT_OF(all)] = {false};
  for (uint32_t i = 0; i < p->method_count; i++)
    for (uint32_t k = 0; k < p->methods[i].operator_count; k++)
      for (size_t j = 0; j < COUNT_OF(all); j++)
        needed[j] |= strcmp(all[j], operator_library(p->methods[i].operators[k])) == 0;
  uint32_t count = 0;
  for (size_t j = 0; j < COUNT_OF(all); j++)
    if (needed[j])
      names[count++] = all[j];
  return count;
}

/* --- memory --- */

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

/* How many arguments of a call, counted from the first, are only read. A kernel has what it writes
 * at the end, and once more as its results; nothing is known of delegates. */
static uint32_t read_count(const PteInstruction *call) {
  if (call->kind != PTE_KERNEL_CALL || call->count == 0)
    return 0;
  for (uint32_t r = 1; 2 * r <= call->count; r++) {
    const int32_t *results = call->args + call->count - r;
    if (memcmp(results, results - r, r * sizeof *results) == 0)
      return call->count - 2 * r;
  }
  return call->count - 1;
}

static int compare_spans(const void *a, const void *b) {
  const PteSpan *x = a, *y = b;
  if (x->arena != y->arena)
    return x->arena < y->arena ? -1 : 1;
  if (x->offset != y->offset)
    return x->offset < y->offset ? -1 : 1;
  if (x->begin != y->begin)
    return x->begin < y->begin ? -1 : 1;
  return x->end < y->end ? -1 : x->end > y->end;
}

/* A span that begins or has ended: what it adds to the bytes in use, modulo 2^64. */
typedef struct Change {
  uint32_t at;
  uint64_t bytes;
} Change;

static int compare_changes(const void *a, const void *b) {
  const Change *x = a, *y = b;
  return (x->at > y->at) - (x->at < y->at);
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
    uint32_t reads = read_count(&m->instructions[i]);
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

/* Neighbours at one place are one tensor, seen through views or written over in place, where their
 * lives touch or the later one is read without having been written. */
void spans_merge(PteSpans *s) {
  PteSpan *spans = s->spans;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    PteSpan *last = kept ? &spans[kept - 1] : NULL;
    if (last && last->arena == spans[i].arena && last->offset == spans[i].offset &&
        (last->end >= spans[i].begin || spans[i].read)) {
      last->end = spans[i].end > last->end ? spans[i].end : last->end;
      last->size = spans[i].size > last->size ? spans[i].size : last->size;
    } else {
      spans[kept++] = spans[i];
    }
  }
  s->count = kept;
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

uint64_t spans_live_peak(PteSpans s, Arena *arena) {
  spans_merge(&s);
  return spans_peak(s.spans, s.count, arena).bytes;
}

PteMemory pte_method_memory(const PteMethod *m) {
  PteMemory memory = {0};
  for (uint32_t i = 1; i < m->arena_count; i++)
    if (!add_u64(memory.arena, m->arena_sizes[i], &memory.arena))
      memory.arena = UINT64_MAX;
  Arena arena;
  arena_init(&arena);
  memory.live_peak = spans_live_peak(method_spans(m, &arena), &arena);
  arena_release(&arena);
  return memory;
}
