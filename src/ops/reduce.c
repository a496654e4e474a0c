/* Reductions, softmax, cumsum, topk: shape rules, and what the runtime refuses beyond element types
 * (op_sum.cpp, op_cumsum.cpp, op_argmax.cpp of ExecuTorch 1.4.1 and probes of its wheel). Reference
 * kernels: reduce_kernels.c, lane_kernels.c. */
#include "ops/ops.h"
#include "ops/shape_util.h"

/* A reduction of tensor argument 0 over the dims listed in argument dim_arg (0: all dims). */
static Status reduced(Graph *g, NodeId n, uint32_t dim_arg, uint32_t keep_arg, Dims *out,
                      DType *dtype) {
  uint32_t set;
  Dims in = operand_dims(g, n, 0);
  set = ((uint32_t)1 << in.rank) - 1;
  if (dim_arg)
    TRY(shape_axes(g, n, dim_arg, in.rank, true, &set));
  *out = dims_reduce(&in, set, keep_arg && arg_flag(g, n, keep_arg));
  *dtype = operand_dtype(g, n, 0);
  return STATUS_OK;
}

/* Reports when a dim to be reduced is known to be empty: extrema of nothing do not exist. */
static Status require_elements(Graph *g, NodeId n, uint32_t set) {
  ValueId self = node_value(g, n, 0);
  for (uint32_t i = 0; i < value_rank(g, self); i++)
    if ((set >> i & 1) && value_dim(g, self, i) == 0)
      return bad_shape(g, n, "dimension %u is empty and has no extreme value", i);
  return STATUS_OK;
}

/* An extremum over the dims of argument 1, with keepdim as argument 2. */
static Status extreme(Graph *g, NodeId n, Dims *out, DType *dtype) {
  uint32_t set;
  TRY(reduced(g, n, 1, 2, out, dtype));
  TRY(shape_axes(g, n, 1, value_rank(g, node_value(g, n, 0)), true, &set));
  return require_elements(g, n, set);
}

Status shape_reduce(Graph *g, NodeId n) {
  Dims out;
  DType dtype;
  TRY(extreme(g, n, &out, &dtype));
  return shape_result(g, n, 0, dtype, &out);
}

Status shape_reduce_all(Graph *g, NodeId n) {
  Dims out;
  DType dtype;
  TRY(reduced(g, n, 0, 0, &out, &dtype));
  TRY(require_elements(g, n, UINT32_MAX));
  return shape_result(g, n, 0, dtype, &out);
}

/* sum.dim_IntList, mean.dim (dims, keepdim, dtype) and mean (dtype). */
Status shape_reduce_dtype(Graph *g, NodeId n) {
  OpId op = node_cget(g, n)->op;
  Dims out;
  DType dtype, natural;
  bool all = op == OP_MEAN;
  TRY(reduced(g, n, all ? 0 : 1, all ? 0 : 2, &out, &natural));
  if (op == OP_SUM_DIM_INTLIST)
    natural = dtype_to_sum(natural);
  TRY(arg_dtype(g, n, all ? 1 : 3, natural, &dtype));
  if (op != OP_SUM_DIM_INTLIST && !dtype_is_float(dtype))
    return bad_dtype(g, n, "the mean of %s needs a float dtype argument", dtype_name(dtype));
  return shape_result(g, n, 0, dtype, &out);
}

/* prod (dtype) and prod.dim_int (dim, keepdim, dtype). */
Status shape_prod(Graph *g, NodeId n) {
  bool all = node_cget(g, n)->op == OP_PROD;
  Dims out;
  DType dtype, natural;
  TRY(reduced(g, n, all ? 0 : 1, all ? 0 : 2, &out, &natural));
  TRY(arg_dtype(g, n, all ? 1 : 3, dtype_to_sum(natural), &dtype));
  return shape_result(g, n, 0, dtype, &out);
}

/* The result is always bool (torch gives u8 for u8; the kernel writes either). */
Status shape_any(Graph *g, NodeId n) {
  bool all = node_cget(g, n)->op == OP_ANY;
  Dims out;
  DType dtype;
  TRY(reduced(g, n, all ? 0 : 1, all ? 0 : 2, &out, &dtype));
  return shape_result(g, n, 0, DTYPE_BOOL, &out);
}

Status shape_argmax(Graph *g, NodeId n) {
  Dims out;
  DType dtype;
  TRY(extreme(g, n, &out, &dtype));
  return shape_result(g, n, 0, DTYPE_I64, &out);
}

Status shape_max_dim(Graph *g, NodeId n) {
  Dims out;
  DType dtype;
  uint32_t axis;
  TRY(reduced(g, n, 1, 2, &out, &dtype));
  TRY(arg_axis(g, n, 1, value_rank(g, node_value(g, n, 0)), &axis));
  TRY(require_elements(g, n, (uint32_t)1 << axis));
  TRY(shape_result(g, n, 0, dtype, &out));
  return shape_result(g, n, 1, DTYPE_I64, &out);
}

/* The axis given as argument i of an op that keeps the shape of tensor argument 0. */
static Status self_and_axis(Graph *g, NodeId n, uint32_t i, Dims *d, DType *dtype, uint32_t *axis) {
  *d = operand_dims(g, n, 0);
  *dtype = operand_dtype(g, n, 0);
  return arg_axis(g, n, i, d->rank, axis);
}

Status shape_cumsum(Graph *g, NodeId n) {
  Dims d;
  DType dtype;
  uint32_t axis;
  TRY(self_and_axis(g, n, 1, &d, &dtype, &axis));
  TRY(arg_dtype(g, n, 2, dtype_to_sum(dtype), &dtype));
  return shape_result(g, n, 0, dtype, &d);
}

Status shape_softmax(Graph *g, NodeId n) {
  Dims d;
  DType dtype;
  uint32_t axis;
  TRY(self_and_axis(g, n, 1, &d, &dtype, &axis));
  if (!dtype_is_float(dtype))
    return bad_dtype(g, n, "the operand is %s, expected a float type", dtype_name(dtype));
  if (arg_flag(g, n, 2)) {
    if (dtype != DTYPE_F16)
      return bad_dtype(g, n, "'half_to_float' needs an f16 operand");
    dtype = DTYPE_F32;
  }
  return shape_result(g, n, 0, dtype, &d);
}

Status shape_topk(Graph *g, NodeId n) {
  Dims d;
  DType dtype;
  uint32_t axis;
  SymInt k;
  TRY(arg_int(g, n, 1, &k));
  TRY(self_and_axis(g, n, 2, &d, &dtype, &axis));
  TRY(shape_at_least(g, n, k, 0, "argument 'k'"));
  TRY(shape_at_least(g, n, d.rank ? d.d[axis] : 1, k, "the dimension to take the top k of"));
  if (d.rank)
    d.d[axis] = k;
  TRY(shape_result(g, n, 0, dtype, &d));
  return shape_result(g, n, 1, DTYPE_I64, &d);
}

static Status var_common(Graph *g, NodeId n, Dims *out, DType *dtype) {
  DType kind;
  TRY(reduced(g, n, 1, 3, out, dtype));
  if (!node_absent(g, n, 2))
    TRY(arg_scalar_kind(g, n, 2, &kind));
  if (!dtype_is_float(*dtype))
    return bad_dtype(g, n, "the operand is %s, expected a float type", dtype_name(*dtype));
  return STATUS_OK;
}

Status shape_var(Graph *g, NodeId n) {
  Dims out;
  DType dtype;
  TRY(var_common(g, n, &out, &dtype));
  return shape_result(g, n, 0, dtype, &out);
}

Status shape_var_mean(Graph *g, NodeId n) {
  Dims out;
  DType dtype;
  TRY(var_common(g, n, &out, &dtype));
  TRY(shape_result(g, n, 0, dtype, &out));
  return shape_result(g, n, 1, dtype, &out);
}

/* --- what the runtime refuses --- */

const char *check_half_to_float(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  return arg_flag(g, n, 2) ? "half_to_float is not supported" : NULL;
}

const char *check_not_0d(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  return value_rank(g, node_value(g, n, 0)) == 0 ? "the tensor has no dimensions" : NULL;
}

/* A list of dims with a 0-d tensor ends the process. */
const char *check_reduce_0d(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  if (value_rank(g, node_value(g, n, 0)) == 0 && node_list_count(g, n, 1))
    return "the tensor has no dimensions to reduce over";
  return NULL;
}

const char *check_extreme(const Graph *g, NodeId n, Arena *arena) {
  ValueId self = node_value(g, n, 0);
  for (uint32_t i = 0; i < value_rank(g, self); i++)
    if (value_dim(g, self, i) == 0)
      return "the tensor is empty";
  return check_reduce_0d(g, n, arena);
}
