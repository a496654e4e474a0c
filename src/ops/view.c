/* Ops that give the same elements another shape, or repeat them: view, squeeze, unsqueeze, expand,
 * repeat.
 *
 * Rules follow torch. Sizes may be symbolic: equal dims of both sides cancel first, so that the
 * usual reshapes of a dynamic batch need no assumption; what is left becomes a constraint of the
 * graph. */
#include "ops/move.h"
#include "ops/ops.h"
#include "ops/shape_util.h"

/* --- view --- */

/* The element counts of both sides of a view without their common factors. */
typedef struct ViewSides {
  SymInt from, to;
} ViewSides;

static Status view_sizes(Graph *g, NodeId n, uint32_t arg, Dims *size, int32_t *inferred) {
  IntList list;
  TRY(arg_int_list(g, n, arg, &list));
  if (list.count > MAX_RANK)
    return bad_arg(g, n, "a tensor of rank %u: at most %u is possible", list.count, MAX_RANK);
  *size = dims_make(list.v, list.count);
  *inferred = -1;
  for (uint32_t i = 0; i < size->rank; i++) {
    if (size->d[i] == -1 && *inferred >= 0)
      return bad_arg(g, n, "only one size may be -1");
    if (size->d[i] == -1)
      *inferred = (int32_t)i;
    else if (sym_upper(&g->syms, size->d[i]) < 0)
      return bad_arg(g, n, "size %u is negative", i);
  }
  return STATUS_OK;
}

/* Multiplies the dims of one side that have no equal on the other. */
static ViewSides view_cancel(Graph *g, const Dims *from, const Dims *to, int32_t inferred) {
  ViewSides sides = {1, 1};
  bool used[MAX_RANK] = {false};
  if (inferred >= 0)
    used[inferred] = true;
  for (uint32_t i = 0; i < from->rank; i++) {
    uint32_t k = 0;
    while (k < to->rank && (used[k] || to->d[k] != from->d[i] || from->d[i] == 0))
      k++;
    if (k < to->rank)
      used[k] = true;
    else
      sides.from = sym_mul(&g->syms, sides.from, from->d[i]);
  }
  for (uint32_t k = 0; k < to->rank; k++)
    if (!used[k])
      sides.to = sym_mul(&g->syms, sides.to, to->d[k]);
  return sides;
}

/* The largest constant that divides the expression and `limit`. */
static int64_t common_factor(const SymTable *t, SymInt v, int64_t limit) {
  const SymExpr *e = sym_expr(t, v);
  if (e->kind != SYM_SUM)
    return 1;
  for (uint32_t i = 0; i <= e->count; i++) {
    int64_t a = i < e->count ? e->coefficients[i] : e->constant;
    while (a != 0) { /* the sign does not matter */
      int64_t rest = limit % a;
      limit = a;
      a = rest;
    }
  }
  return limit == INT64_MIN || limit == 0 ? 1 : limit < 0 ? -limit : limit;
}

/* The size that -1 stands for. */
static Status view_infer(Graph *g, NodeId n, ViewSides *sides, SymInt *out) {
  SymTable *t = &g->syms;
  if (!sym_is_const(sides->from) && sym_is_const(sides->to) && sides->to > 0) {
    int64_t factor = common_factor(t, sides->from, sides->to);
    sides->from = sym_floordiv(t, sides->from, factor);
    sides->to /= factor;
  }
  if (sides->to == 0)
    return bad_shape(g, n, "the size of -1 is not determined beside a size of 0");
  SymInt rest = sides->from == 0 ? 0 : sym_mod(t, sides->from, sides->to);
  if (sym_is_const(rest) && rest != 0) {
    const char *from = dim_text(g, sides->from), *to = dim_text(g, sides->to);
    return bad_shape(g, n, "%s elements cannot be divided by %s", from, to);
  }
  if (rest != 0)
    shape_assume(g, n, CONSTRAINT_DIVISIBLE, sides->from, sides->to);
  *out = sym_floordiv(t, sides->from, sides->to);
  return STATUS_OK;
}

Status shape_view_copy(Graph *g, NodeId n) {
  Dims size;
  int32_t inferred = -1;
  TRY(view_sizes(g, n, 1, &size, &inferred));
  Dims from = operand_dims(g, n, 0);
  ViewSides sides = view_cancel(g, &from, &size, inferred);
  if (inferred >= 0)
    TRY(view_infer(g, n, &sides, &size.d[inferred]));
  else
    TRY(shape_equal(g, n, sides.from, sides.to, "element counts of the tensor and its view"));
  return shape_result_dims(g, n, &size);
}

/* Where sizes vary, the edge level views all rows that there may be (passes/edge/dynamic_bits.c),
 * which wants one at least. */
Status shape_view_dtype(Graph *g, NodeId n) {
  DType dtype;
  ValueId self = node_value(g, n, 0);
  TRY(arg_dtype(g, n, 1, value_dtype(g, self), &dtype));
  if (dtype_size(dtype) == 0 || dtype_size(dtype) != dtype_size(value_dtype(g, self)))
    return bad_dtype(g, n, "elements of %s cannot be seen as %s", dtype_name(value_dtype(g, self)),
                     dtype_name(dtype));
  Dims dims = value_dims(g, self);
  for (uint32_t i = 0; i < dims.rank; i++)
    if (!sym_is_const(dims.d[i]) && sym_lower(&g->syms, dims.d[i]) < 1)
      return shape_error(g, n, DIAG_UNSUPPORTED_FEATURE,
                         "a tensor seen as another type has sizes of 1 and more where they vary; "
                         "dimension %u is %s",
                         i, dim_text(g, dims.d[i]));
  return shape_result(g, n, 0, dtype, &dims);
}

/* Drops the listed dims of size 1. torch keeps a listed dim of another size; a symbolic one is
 * assumed to be 1, as ONNX has it. */
Status shape_squeeze_copy(Graph *g, NodeId n) {
  uint32_t set;
  Dims in = operand_dims(g, n, 0), out = {0};
  TRY(shape_axes(g, n, 1, in.rank, false, &set));
  for (uint32_t i = 0; i < in.rank; i++) {
    bool drop = (set >> i & 1) && sym_known_eq(&g->syms, in.d[i], 1) != 0;
    if (drop)
      TRY(shape_equal(g, n, in.d[i], 1, "a dimension to squeeze and 1"));
    else
      out.d[out.rank++] = in.d[i];
  }
  return shape_result_dims(g, n, &out);
}

Status shape_unsqueeze_copy(Graph *g, NodeId n) {
  uint32_t axis;
  Dims in = operand_dims(g, n, 0), out = {0};
  if (in.rank == MAX_RANK)
    return bad_shape(g, n, "the result would have more than %u dimensions", MAX_RANK);
  TRY(arg_axis(g, n, 1, in.rank + 1, &axis));
  for (uint32_t i = 0; i <= in.rank; i++)
    out.d[out.rank++] = i == axis ? 1 : in.d[i < axis ? i : i - 1];
  return shape_result_dims(g, n, &out);
}

/* --- expand and repeat --- */

Status shape_expand_copy(Graph *g, NodeId n) {
  IntList size;
  TRY(arg_int_list(g, n, 1, &size));
  Dims in = operand_dims(g, n, 0);
  if (size.count > MAX_RANK || size.count < in.rank)
    return bad_arg(g, n, "%u sizes for a tensor of rank %u", size.count, in.rank);
  Dims out = dims_make(size.v, size.count);
  uint32_t lead = out.rank - in.rank;
  for (uint32_t i = 0; i < out.rank; i++) {
    if (i >= lead && (out.d[i] == -1 || sym_known_eq(&g->syms, out.d[i], in.d[i - lead]) == 1))
      out.d[i] = in.d[i - lead];
    else if (sym_upper(&g->syms, out.d[i]) < 0)
      return bad_arg(g, n, "size %u is negative", i);
    else if (i >= lead && in.d[i - lead] != 1)
      TRY(shape_equal(g, n, in.d[i - lead], out.d[i], "a dimension and the size to expand it to"));
  }
  return shape_result_dims(g, n, &out);
}

Status shape_repeat(Graph *g, NodeId n) {
  IntList repeats;
  TRY(arg_int_list(g, n, 1, &repeats));
  Dims in = operand_dims(g, n, 0);
  if (repeats.count > MAX_RANK || repeats.count < in.rank)
    return bad_arg(g, n, "%u repeats for a tensor of rank %u", repeats.count, in.rank);
  Dims out = dims_make(repeats.v, repeats.count);
  uint32_t lead = out.rank - in.rank;
  for (uint32_t i = 0; i < out.rank; i++) {
    if (sym_upper(&g->syms, out.d[i]) < 0)
      return bad_arg(g, n, "repeat %u is negative", i);
    if (i >= lead)
      out.d[i] = sym_mul(&g->syms, out.d[i], in.d[i - lead]);
  }
  return shape_result_dims(g, n, &out);
}

/* --- what the runtime's kernels refuse --- */

static bool is_channels_last(const Graph *g, ValueId v) {
  return v && value_type(g, v)->kind == TYPE_TENSOR && value_type(g, v)->order != ORDER_CONTIGUOUS;
}

const char *check_contiguous(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  const Node *node = node_cget(g, n);
  bool last = false;
  for (uint32_t i = 0; i < node->arg_count; i++) {
    const Arg *arg = node_arg(g, n, i);
    if (arg->kind == ARG_VALUE)
      last |= is_channels_last(g, node_value(g, n, i));
    for (uint32_t e = 0; arg->kind == ARG_VALUES && e < arg->count; e++)
      last |= is_channels_last(g, node_list_value(g, n, i, e));
  }
  for (uint32_t i = 0; i < node->result_count; i++)
    last |= is_channels_last(g, node_result(g, n, i));
  return last ? "the kernel works on contiguous tensors only" : NULL;
}

const char *check_expand(const Graph *g, NodeId n, Arena *arena) {
  return arg_flag(g, n, 2) ? "implicit must be false" : check_contiguous(g, n, arena);
}

/* --- kernels --- */

Status kern_expand_copy(Kernel *k) {
  const Tensor *self = kernel_tensor(k, 0);
  TRY(kernel_expect_dtype(k, self));
  Tensor *out = k->results[0];
  if (self->rank > out->rank)
    return kernel_error(k, "a tensor of rank %u expanded to rank %u", self->rank, out->rank);
  uint32_t lead = out->rank - self->rank;
  for (uint32_t i = 0; i < self->rank; i++)
    if (self->dims[i] != 1 && self->dims[i] != out->dims[lead + i])
      return kernel_error(k, "dim %u of size %lld cannot be expanded to %lld", i,
                          (long long)self->dims[i], (long long)out->dims[lead + i]);
  MoveSide src = {.data = self->data};
  strides_broadcast(self, out->rank, out->dims, src.strides);
  move_elements(dtype_size(out->dtype), out->rank, out->dims, move_side(out), src);
  return STATUS_OK;
}

/* Result dim i is walked as two: which copy, and where in it. */
Status kern_repeat(Kernel *k) {
  const Tensor *self = kernel_tensor(k, 0);
  TRY(kernel_expect_dtype(k, self));
  Tensor *out = k->results[0];
  if (self->rank > out->rank)
    return kernel_error(k, "a tensor of rank %u repeated to rank %u", self->rank, out->rank);
  MoveSide natural_dst = move_side(out), natural_src = move_side(self);
  MoveSide dst = {.data = out->data}, src = {.data = self->data};
  int64_t dims[MOVE_MAX_RANK];
  uint32_t lead = out->rank - self->rank;
  for (uint32_t i = 0; i < out->rank; i++) {
    int64_t size = i < lead ? 1 : self->dims[i - lead];
    if (size ? out->dims[i] % size != 0 : out->dims[i] != 0)
      return kernel_error(k, "dim %u of the result is not a multiple of the operand's", i);
    dims[2 * i] = size ? out->dims[i] / size : 0;
    dims[2 * i + 1] = size;
    dst.strides[2 * i] = natural_dst.strides[i] * size;
    dst.strides[2 * i + 1] = natural_dst.strides[i];
    src.strides[2 * i] = 0;
    src.strides[2 * i + 1] = i < lead ? 0 : natural_src.strides[i - lead];
  }
  move_elements(dtype_size(out->dtype), 2 * out->rank, dims, dst, src);
  return STATUS_OK;
}
