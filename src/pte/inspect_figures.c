/* See inspect.h. Counting. */
#include <stdlib.h>

#include "pte/inspect_internal.h"
#include "support/bitset.h"
#include "support/text.h"

ProgramFigures program_figures(const PteProgram *p, Arena *arena) {
  ProgramFigures f = {0};
  Bitset seen = bitset_make(arena, p->constants.count);
  for (uint32_t i = 0; i < p->method_count; i++) {
    for (uint32_t k = 0; k < p->methods[i].value_count; k++) {
      const PteValue *v = &p->methods[i].values[k];
      if (v->kind != PTE_TENSOR || !pte_is_constant(v->tensor))
        continue;
      if (v->tensor->external) {
        f.external_tensors++;
        f.external_bytes += v->tensor->bytes;
        continue;
      }
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
  int order = ORDER(y->calls, x->calls);
  order = order ? order : text_compare(x->name, y->name);
  return order ? order : ORDER(x->index, y->index);
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

PteMemory pte_method_memory(const PteMethod *m) {
  PteMemory memory = {0};
  for (uint32_t i = 1; i < m->arena_count; i++)
    if (!add_u64(memory.arena, m->arena_sizes[i], &memory.arena))
      memory.arena = UINT64_MAX;
  Arena arena = {0};
  memory.live_peak = spans_live_peak(method_spans(m, &arena), &arena);
  arena_release(&arena);
  return memory;
}
