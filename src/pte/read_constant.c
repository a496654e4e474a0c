/* See read_internal.h. Methods without inputs and instructions, whose outputs are constants. */
#include "pte/read_internal.h"

static bool is_constant_value(const PteValue *v) {
  switch (v->kind) {
  case PTE_INT:
  case PTE_BOOL:
  case PTE_DOUBLE:
  case PTE_STRING:
    return true;
  case PTE_TENSOR:
    return pte_is_constant(v->tensor) && !v->tensor->external &&
           v->tensor->dynamism == PTE_STATIC && pte_dtype_known(v->tensor->dtype);
  default:
    return false;
  }
}

static bool is_contiguous(const PteTensor *t) {
  for (uint32_t i = 0; i < t->rank; i++)
    if (t->dim_order[i] != i)
      return false;
  return true;
}

static ConstantItem read_tensor_item(const PteProgram *p, const PteTensor *t, Arena *arena) {
  int64_t *dims = ARENA_ARRAY(arena, int64_t, t->rank);
  for (uint32_t i = 0; i < t->rank; i++)
    dims[i] = t->sizes[i];
  return (ConstantItem){.kind = CONSTANT_TENSOR,
                        .dtype = (DType)t->dtype,
                        .rank = t->rank,
                        .dims = dims,
                        .bytes = {.data = pte_tensor_data(p, t), .size = t->bytes}};
}

static ConstantItem read_item(const PteProgram *p, const PteValue *v, Arena *arena) {
  switch (v->kind) {
  case PTE_DOUBLE:
    return (ConstantItem){.kind = CONSTANT_FLOAT, .f = v->f};
  case PTE_BOOL:
    return (ConstantItem){.kind = CONSTANT_BOOL, .i = v->i};
  case PTE_STRING:
    return (ConstantItem){.kind = CONSTANT_TEXT, .text = v->text};
  case PTE_TENSOR:
    return read_tensor_item(p, v->tensor, arena);
  default:
    return (ConstantItem){.kind = CONSTANT_INT, .i = v->i};
  }
}

const ConstantMethod *read_constant_method(const PteProgram *p, const PteMethod *m, Arena *arena) {
  if (m->input_count || m->instruction_count || !m->output_count)
    return NULL;
  for (uint32_t i = 0; i < m->output_count; i++) {
    const PteValue *v = &m->values[m->outputs[i]];
    if (!is_constant_value(v) || (v->kind == PTE_TENSOR && !is_contiguous(v->tensor)))
      return NULL;
  }
  ConstantItem *items = ARENA_ARRAY(arena, ConstantItem, m->output_count);
  for (uint32_t i = 0; i < m->output_count; i++)
    items[i] = read_item(p, &m->values[m->outputs[i]], arena);
  ConstantMethod *out = ARENA_NEW(arena, ConstantMethod);
  *out = (ConstantMethod){.name = m->name, .items = items, .count = m->output_count};
  return out;
}
