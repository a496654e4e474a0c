/* Constants as tensors, and one node of constants run for constant folding. */
#include "interp/interp.h"

Tensor interp_static_tensor(const Type *type) {
  Tensor t = {.dtype = (DType)type->dtype, .rank = type->rank};
  for (uint32_t i = 0; i < type->rank; i++)
    t.dims[i] = type->dims[i];
  return t;
}

Tensor interp_scalar_tensor(const KernelArg *scalar, Arena *arena) {
  Tensor t = {.dtype = scalar->kind == ARG_FLOAT  ? DTYPE_F64
                       : scalar->kind == ARG_BOOL ? DTYPE_BOOL
                                                  : DTYPE_I64};
  t.capacity = dtype_size(t.dtype);
  t.data = arena_alloc(arena, sizeof(int64_t));
  if (scalar->kind == ARG_FLOAT)
    memcpy(t.data, &scalar->f, sizeof scalar->f);
  else if (scalar->kind == ARG_BOOL)
    *(uint8_t *)t.data = scalar->i != 0;
  else
    memcpy(t.data, &scalar->i, sizeof scalar->i);
  return t;
}

Tensor interp_constant(const Graph *g, ValueId v, Arena *arena) {
  const Constant *c = value_constant(g, v);
  Tensor t = interp_static_tensor(value_type(g, v));
  t.capacity = c->size;
  /* Kernels only read operands; the cast is what lets one struct serve results as well. */
  t.data = (void *)(uintptr_t)c->data;
  if ((uintptr_t)c->data % 16) {
    t.data = arena_alloc(arena, (size_t)c->size);
    memcpy(t.data, c->data, (size_t)c->size);
  }
  return t;
}

static bool constant_value(const Graph *g, ValueId v, Arena *arena, KernelArg *out) {
  const Type *type = value_type(g, v);
  if (value_is_const(g, v) && type->kind == TYPE_TENSOR && type_is_static(type)) {
    out->kind = ARG_VALUE;
    out->tensor = ARENA_NEW(arena, Tensor);
    *out->tensor = interp_constant(g, v, arena);
    return true;
  }
  out->kind = ARG_INT;
  out->i = type->kind == TYPE_INT && type->rank == 1 ? type->dims[0] : SYM_BAND;
  return sym_is_const(out->i);
}

static bool constant_values(const Graph *g, NodeId n, uint32_t index, Arena *arena,
                            KernelArg *out) {
  uint32_t count = node_list_count(g, n, index);
  bool tensors = op_schema(g->nodes[n].op)->args[index].type == ST_TENSOR;
  int64_t *ints = ARENA_ARRAY(arena, int64_t, count);
  Tensor **list = ARENA_ARRAY(arena, Tensor *, count);
  for (uint32_t k = 0; k < count; k++) {
    KernelArg element = {.kind = ARG_NONE};
    ValueId v = node_list_value(g, n, index, k);
    if (v && !constant_value(g, v, arena, &element))
      return false;
    if (v && (element.kind == ARG_VALUE) != tensors)
      return false;
    if (element.kind == ARG_VALUE)
      list[k] = element.tensor;
    else
      ints[k] = element.i;
  }
  *out = (KernelArg){.kind = tensors ? ARG_VALUES : ARG_INTS, .count = count};
  if (tensors)
    out->tensors = list;
  else
    out->ints = ints;
  return true;
}

static bool constant_arg(const Graph *g, NodeId n, uint32_t index, Arena *arena, KernelArg *out) {
  const Arg *arg = node_arg(g, n, index);
  *out = (KernelArg){.kind = (ArgKind)arg->kind, .count = arg->count};
  switch ((ArgKind)arg->kind) {
  case ARG_VALUE:
    return constant_value(g, node_value(g, n, index), arena, out);
  case ARG_VALUES:
    return constant_values(g, n, index, arena, out);
  case ARG_INT:
    out->i = arg->i;
    return sym_is_const(arg->i);
  case ARG_INTS:
    out->ints = node_ints(g, n, index);
    for (uint32_t k = 0; k < arg->count; k++)
      if (!sym_is_const(out->ints[k]))
        return false;
    return true;
  case ARG_FLOAT:
    out->f = arg->f;
    return true;
  case ARG_FLOATS:
    out->floats = &g->floats[arg->at];
    return true;
  case ARG_STR:
    out->str = node_str(g, n, index);
    return true;
  case ARG_NONE:
  case ARG_BOOL:
  case ARG_DTYPE:
    out->i = arg->i;
    return true;
  }
  return false;
}

Status interp_eval_const_node(Graph *g, NodeId n, Arena *arena, Tensor *results, DiagSink *sink) {
  const Node *node = node_cget(g, n);
  const OpRow *row = op_row(node->op);
  if (!row->kernel || (row->traits & (OP_RANDOM | OP_EFFECT)))
    return STATUS_UNSUPPORTED;
  KernelArg *args = ARENA_ARRAY(arena, KernelArg, node->arg_count);
  for (uint32_t i = 0; i < node->arg_count; i++)
    if (!constant_arg(g, n, i, arena, &args[i]))
      return STATUS_UNSUPPORTED;
  Tensor **pointers = ARENA_ARRAY(arena, Tensor *, node->result_count);
  bool scalar = false;
  for (uint32_t i = 0; i < node->result_count; i++) {
    const Type *type = value_type(g, node_result(g, n, i));
    pointers[i] = &results[i];
    scalar |= type->kind != TYPE_TENSOR;
    if (type->kind != TYPE_TENSOR)
      continue;
    if (!type_is_static(type))
      return STATUS_UNSUPPORTED;
    results[i] = interp_static_tensor(type);
    results[i].capacity = tensor_bytes(&results[i]);
    results[i].data = arena_alloc(arena, (size_t)results[i].capacity);
  }
  Kernel k = {.op = node->op,
              .args = args,
              .arg_count = node->arg_count,
              .results = pointers,
              .result_count = node->result_count,
              .scratch = arena,
              .sink = sink,
              .place = node_place(g, n),
              .folds = true};
  TRY(kernel_run(&k));
  if (scalar)
    results[0] = interp_scalar_tensor(&k.scalar_result, arena);
  return STATUS_OK;
}
