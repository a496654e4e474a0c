/* Elementwise ops of two or three tensors: shape rules with broadcasting and promotion, and what
 * the runtime refuses beyond element types (probed on the 1.4.1 wheel). Reference kernels:
 * binary_kernels.c. */
#include "ops/ops.h"
#include "ops/shape_util.h"

/* Broadcast shape and promoted dtype of tensor arguments 0 and 1. */
static Status pair(Graph *g, NodeId n, Dims *d, DType *dtype) {
  ValueId a = node_value(g, n, 0), b = node_value(g, n, 1);
  TRY(shape_promote(g, n, value_dtype(g, a), value_dtype(g, b), dtype));
  *d = value_dims(g, a);
  Dims other = value_dims(g, b);
  return shape_broadcast(g, n, d, &other);
}

/* Shape of tensor argument 0 and its dtype promoted with Scalar argument 1. */
static Status tensor_scalar(Graph *g, NodeId n, Dims *d, DType *dtype) {
  DType kind;
  TRY(arg_scalar_kind(g, n, 1, &kind));
  *d = operand_dims(g, n, 0);
  *dtype = dtype_with_scalar(operand_dtype(g, n, 0), kind);
  return STATUS_OK;
}

/* The alpha of add, sub and rsub must not be a fraction when the result is whole. */
static Status check_alpha(Graph *g, NodeId n, DType dtype) {
  DType kind;
  if (op_schema(node_cget(g, n)->op)->arg_count < 3)
    return STATUS_OK;
  TRY(arg_scalar_kind(g, n, 2, &kind));
  if (kind == DTYPE_F32 && !dtype_is_float(dtype))
    return bad_dtype(g, n, "argument 'alpha' is a fraction but the result is %s",
                     dtype_name(dtype));
  return STATUS_OK;
}

Status shape_binary(Graph *g, NodeId n) {
  Dims d;
  DType dtype;
  TRY(pair(g, n, &d, &dtype));
  TRY(check_alpha(g, n, dtype));
  return shape_result(g, n, 0, dtype, &d);
}

Status shape_binary_float(Graph *g, NodeId n) {
  Dims d;
  DType dtype;
  TRY(pair(g, n, &d, &dtype));
  return shape_result(g, n, 0, dtype_to_float(dtype), &d);
}

Status shape_binary_scalar(Graph *g, NodeId n) {
  Dims d;
  DType dtype;
  TRY(tensor_scalar(g, n, &d, &dtype));
  TRY(check_alpha(g, n, dtype));
  return shape_result(g, n, 0, dtype, &d);
}

Status shape_compare(Graph *g, NodeId n) {
  Dims d;
  DType dtype;
  TRY(pair(g, n, &d, &dtype));
  return shape_result(g, n, 0, DTYPE_BOOL, &d);
}

/* Result dtype of a division whose operands promote to `dtype`; argument 2, if any, is the rounding
 * mode. */
static Status div_dtype(Graph *g, NodeId n, DType *dtype) {
  if (op_schema(node_cget(g, n)->op)->arg_count < 3 || node_absent(g, n, 2)) {
    *dtype = dtype_to_float(*dtype);
    return STATUS_OK;
  }
  if (node_arg(g, n, 2)->kind != ARG_STR)
    return bad_arg(g, n, "argument 'rounding_mode' must be a string");
  StrView mode = node_str(g, n, 2);
  if (!sv_eq_str(mode, "floor") && !sv_eq_str(mode, "trunc"))
    return bad_arg(g, n, "argument 'rounding_mode' is '" SV_FMT "', expected 'floor' or 'trunc'",
                   SV_ARG(mode));
  return STATUS_OK;
}

Status shape_div(Graph *g, NodeId n) {
  Dims d;
  DType dtype;
  TRY(pair(g, n, &d, &dtype));
  TRY(div_dtype(g, n, &dtype));
  return shape_result(g, n, 0, dtype, &d);
}

Status shape_div_scalar(Graph *g, NodeId n) {
  Dims d;
  DType dtype;
  TRY(tensor_scalar(g, n, &d, &dtype));
  TRY(div_dtype(g, n, &dtype));
  return shape_result(g, n, 0, dtype, &d);
}

Status shape_pow_scalar_base(Graph *g, NodeId n) {
  DType kind;
  TRY(arg_scalar_kind(g, n, 0, &kind));
  Dims d = operand_dims(g, n, 1);
  return shape_result(g, n, 0, dtype_with_scalar(operand_dtype(g, n, 1), kind), &d);
}

Status shape_clamp_tensor(Graph *g, NodeId n) {
  Dims d = operand_dims(g, n, 0);
  DType dtype = operand_dtype(g, n, 0);
  if (node_absent(g, n, 1) && node_absent(g, n, 2))
    return bad_arg(g, n, "at least one of 'min' and 'max' must be given");
  for (uint32_t i = 1; i <= 2; i++) {
    ValueId bound = node_value(g, n, i);
    if (!bound)
      continue;
    Dims other = value_dims(g, bound);
    TRY(shape_promote(g, n, dtype, value_dtype(g, bound), &dtype));
    TRY(shape_broadcast(g, n, &d, &other));
  }
  return shape_result(g, n, 0, dtype, &d);
}

Status shape_where(Graph *g, NodeId n) {
  ValueId v[] = {node_value(g, n, 0), node_value(g, n, 1), node_value(g, n, 2)};
  if (!dtype_in(value_dtype(g, v[0]), DT(BOOL) | DT(U8)))
    return bad_dtype(g, n, "the condition is %s, expected bool", dtype_name(value_dtype(g, v[0])));
  DType dtype;
  TRY(shape_promote(g, n, value_dtype(g, v[1]), value_dtype(g, v[2]), &dtype));
  Dims d = value_dims(g, v[0]);
  for (uint32_t i = 1; i < 3; i++) {
    Dims other = value_dims(g, v[i]);
    TRY(shape_broadcast(g, n, &d, &other));
  }
  return shape_result(g, n, 0, dtype, &d);
}

Status shape_masked_fill(Graph *g, NodeId n) {
  DType kind;
  ValueId self = node_value(g, n, 0), mask = node_value(g, n, 1);
  TRY(arg_scalar_kind(g, n, 2, &kind));
  if (value_dtype(g, mask) != DTYPE_BOOL)
    return bad_dtype(g, n, "the mask is %s, expected bool", dtype_name(value_dtype(g, mask)));
  Dims d = value_dims(g, self), other = value_dims(g, mask);
  TRY(shape_broadcast(g, n, &d, &other));
  return shape_result(g, n, 0, value_dtype(g, self), &d);
}

/* --- what the runtime refuses --- */

static DType result_dtype(const Graph *g, NodeId n) { return value_dtype(g, node_result(g, n, 0)); }

const char *check_add_scalar(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  if (result_dtype(g, n) != value_dtype(g, node_value(g, n, 0)))
    return "an integer tensor cannot be added to a fraction";
  if (node_arg(g, n, 2)->kind == ARG_BOOL)
    return "alpha must be a number";
  return NULL;
}

const char *check_alpha_number(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  return node_arg(g, n, 2)->kind == ARG_BOOL ? "alpha must be a number" : NULL;
}

/* add.out of the runtime exchanges the operands when self has one element and other has several,
 * but not what alpha belongs to: it gives alpha * self + other. Such a size may also come up at run
 * time only. */
const char *check_alpha_add(const Graph *g, NodeId n, Arena *arena) {
  const Arg *alpha = node_arg(g, n, 2);
  if ((alpha->kind == ARG_INT && alpha->i == 1) || (alpha->kind == ARG_FLOAT && alpha->f == 1))
    return NULL;
  const Type *self = value_type(g, node_value(g, n, 0)),
             *other = value_type(g, node_value(g, n, 1));
  bool several = false, one = true;
  for (uint32_t i = 0; i < self->rank; i++)
    several |= sym_lower(&g->syms, self->dims[i]) > 1;
  for (uint32_t i = 0; i < other->rank; i++)
    one &= other->dims[i] == 1;
  if (!several && !one && !dims_same(self->dims, self->rank, other->dims, other->rank))
    return "with an alpha, the first operand must have several elements or the shape of the second";
  return check_alpha_number(g, n, arena);
}

const char *check_not_bool_result(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  return result_dtype(g, n) == DTYPE_BOOL ? "the operands promote to bool" : NULL;
}

const char *check_divisor_scalar(const Graph *g, NodeId n, Arena *arena) {
  const Arg *other = node_arg(g, n, 1);
  if (dtype_is_int(result_dtype(g, n)) && (other->kind == ARG_INT || other->kind == ARG_BOOL) &&
      other->i == 0)
    return "integer division by zero";
  return check_not_bool_result(g, n, arena);
}
