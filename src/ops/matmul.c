/* Matrix products and distances: shape rules, and what the runtime refuses beyond element types
 * (kernels/portable/cpu/util/ matmul_ops_util.cpp, op_linear.cpp, distance_util.cpp of
 * ExecuTorch 1.4.1). Reference kernels: matmul_kernels.c. */
#include "ops/ops.h"
#include "ops/shape_util.h"

/* A required tensor argument of the given rank. */
static Status matrix(Graph *g, NodeId n, uint32_t i, uint32_t rank, ValueId *v, Dims *d) {
  *v = node_value(g, n, i);
  *d = value_dims(g, *v);
  if (d->rank == rank)
    return STATUS_OK;
  StrView name = arg_name(g, n, i);
  return bad_shape(g, n, "'" SV_FMT "' has rank %u, expected %u", SV_ARG(name), d->rank, rank);
}

Status shape_mm(Graph *g, NodeId n) {
  ValueId a, b;
  Dims x, y;
  TRY(matrix(g, n, 0, 2, &a, &x));
  TRY(matrix(g, n, 1, 2, &b, &y));
  TRY(shape_one_dtype(g, n, a, b));
  TRY(shape_equal_of(g, n, (SizeOf){a, x.d[1], "columns"}, (SizeOf){b, y.d[0], "rows"}));
  x.d[1] = y.d[1];
  return shape_result(g, n, 0, value_dtype(g, a), &x);
}

Status shape_bmm(Graph *g, NodeId n) {
  ValueId a, b;
  Dims x, y;
  TRY(matrix(g, n, 0, 3, &a, &x));
  TRY(matrix(g, n, 1, 3, &b, &y));
  TRY(shape_one_dtype(g, n, a, b));
  TRY(shape_equal_of(g, n, (SizeOf){a, x.d[0], "batches"}, (SizeOf){b, y.d[0], "batches"}));
  TRY(shape_equal_of(g, n, (SizeOf){a, x.d[2], "columns"}, (SizeOf){b, y.d[1], "rows"}));
  if (sym_is_const(y.d[0]))
    x.d[0] = y.d[0];
  x.d[2] = y.d[2];
  return shape_result(g, n, 0, value_dtype(g, a), &x);
}

Status shape_addmm(Graph *g, NodeId n) {
  ValueId a, b;
  Dims x, y;
  DType kind;
  ValueId self = node_value(g, n, 0);
  TRY(matrix(g, n, 1, 2, &a, &x));
  TRY(matrix(g, n, 2, 2, &b, &y));
  TRY(shape_one_dtype(g, n, a, b));
  TRY(shape_one_dtype(g, n, self, a));
  TRY(shape_equal_of(g, n, (SizeOf){a, x.d[1], "columns"}, (SizeOf){b, y.d[0], "rows"}));
  x.d[1] = y.d[1];
  Dims bias = value_dims(g, self);
  TRY(shape_broadcasts_to(g, n, &bias, &x, "dimensions of 'self' and of the product"));
  for (uint32_t i = 3; i <= 4; i++) {
    TRY(arg_scalar_kind(g, n, i, &kind));
    if (kind == DTYPE_F32 && !dtype_is_float(value_dtype(g, a)))
      return bad_dtype(g, n, "'alpha' or 'beta' is a fraction but the result is %s",
                       dtype_name(value_dtype(g, a)));
  }
  return shape_result(g, n, 0, value_dtype(g, a), &x);
}

Status shape_linear(Graph *g, NodeId n) {
  ValueId weight;
  Dims w;
  ValueId input = node_value(g, n, 0);
  TRY(matrix(g, n, 1, 2, &weight, &w));
  ValueId bias = node_value(g, n, 2);
  TRY(shape_one_dtype(g, n, input, weight));
  Dims x = value_dims(g, input);
  if (x.rank == 0)
    return bad_shape(g, n, "'input' has no dimensions");
  TRY(shape_equal_of(g, n, (SizeOf){input, x.d[x.rank - 1], "columns"},
                     (SizeOf){weight, w.d[1], "columns"}));
  if (bias) {
    TRY(shape_one_dtype(g, n, input, bias));
    if (value_rank(g, bias) != 1)
      return bad_shape(g, n, "'bias' has rank %u, expected 1", value_rank(g, bias));
    if (value_dim(g, bias, 0) != 1)
      TRY(shape_equal(g, n, value_dim(g, bias, 0), w.d[0],
                      "entries of 'bias' and rows of 'weight'"));
  }
  x.d[x.rank - 1] = w.d[0];
  return shape_result_dims(g, n, &x);
}

Status shape_cdist_forward(Graph *g, NodeId n) {
  ValueId a = node_value(g, n, 0), b = node_value(g, n, 1);
  TRY(shape_one_dtype(g, n, a, b));
  if (!dtype_is_float(value_dtype(g, a)))
    return bad_dtype(g, n, "the operands are %s, expected a float type",
                     dtype_name(value_dtype(g, a)));
  Dims x = value_dims(g, a), y = value_dims(g, b);
  if (x.rank < 2 || y.rank < 2)
    return bad_shape(g, n, "the operands have ranks %u and %u, expected at least 2", x.rank,
                     y.rank);
  TRY(shape_equal(g, n, x.d[x.rank - 1], y.d[y.rank - 1], "the last dimensions of the operands"));
  const Arg *p = node_arg(g, n, 2);
  if (p->kind != ARG_FLOAT || !(p->f >= 0))
    return bad_arg(g, n, "argument 'p' must be a number not below 0");
  if (!node_absent(g, n, 3)) {
    int64_t mode;
    TRY(arg_const_int(g, n, 3, &mode));
    if (mode < 0 || mode > 2)
      return bad_arg(g, n, "argument 'compute_mode' must be 0, 1 or 2");
  }
  SymInt rows = x.d[x.rank - 2], columns = y.d[y.rank - 2];
  x.rank -= 2;
  y.rank -= 2;
  TRY(shape_broadcast(g, n, &x, &y));
  x.d[x.rank++] = rows;
  x.d[x.rank++] = columns;
  return shape_result(g, n, 0, value_dtype(g, a), &x);
}

/* --- what the runtime refuses --- */

const char *check_linear(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  return value_rank(g, node_value(g, n, 0)) < 2 ? "the input has less than two dimensions" : NULL;
}

const char *check_addmm(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  if (node_arg(g, n, 3)->kind == ARG_BOOL || node_arg(g, n, 4)->kind == ARG_BOOL)
    return "alpha and beta must be numbers";
  return NULL;
}
