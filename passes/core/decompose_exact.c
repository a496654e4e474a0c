/* Ops whose kernels compute in f32 although the elements are integers or f64. Measured on the 1.4.1
 * wheel: sum over one dim adds up in f32, whatever the element type (over several dims it does
 * not), so that sums of integers beyond 2^24 and all of f64 come out rounded; layer and group norm
 * of f64 take mean and variance in f32. */
#include "passes/core/decompose.h"

/* Ones and zeros made of bools, less than 2^24 of them: f32 counts them exactly. */
static bool is_count(const Graph *g, ValueId x, int64_t dim) {
  NodeId n = value_def(g, x);
  SymInt size = value_dim(g, x, (uint32_t)dim);
  return n && node_cget(g, n)->op == OP_TO_COPY && sym_is_const(size) && size < (1 << 24) &&
         value_dtype(g, node_value(g, n, 0)) == DTYPE_BOOL;
}

/* The one dim that is summed over; false when there are several, or none. */
static bool summed_dim(const Graph *g, NodeId n, int64_t *dim) {
  uint32_t rank = value_rank(g, node_value(g, n, 0)),
           count = node_absent(g, n, 1) ? 0 : node_list_count(g, n, 1);
  if (!rank || (count == 0 && rank > 1) || count > 1)
    return false;
  *dim = count ? wrap_dim(node_ints(g, n, 1)[0], rank) : 0;
  return true;
}

/* Over the dim and one of size 1 after it. */
ValueId decompose_sum(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0), result = node_result(g, n, 0);
  uint32_t rank = value_rank(g, x);
  DType dtype = value_dtype(g, result);
  int64_t dim;
  if (rank >= MAX_RANK || dtype_in(dtype, DT(F32) | DT(F16) | DT(BF16)) ||
      !summed_dim(g, n, &dim) || is_count(g, x, dim))
    return 0;
  SymInt dims[MAX_RANK];
  for (uint32_t i = 0; i <= rank; i++)
    dims[i] = i == (uint32_t)dim + 1 ? 1 : value_dim(g, x, i > (uint32_t)dim ? i - 1 : i);
  ValueId wide = build_view(b, x, dims, rank + 1);
  ValueId sum = build(b, OP_SUM_DIM_INTLIST, A_VAL(wide), A_INTS(((int64_t[]){dim, dim + 1}), 2),
                      A_BOOL(false), A_DTYPE(dtype));
  return build_view_as(b, sum, value_dims(g, result));
}

/* --- norms --- */

static ValueId mean_of(Builder *b, ValueId x, const int64_t *axes, uint32_t count) {
  return build(b, OP_MEAN_DIM, A_VAL(x), A_INTS(axes, count), A_BOOL(true));
}

/* x less its mean, over its deviation; *mean and *inverse have 1 for the last `count` dims. */
static ValueId normalised(Builder *b, ValueId x, uint32_t count, double eps, ValueId *mean,
                          ValueId *inverse) {
  int64_t axes[MAX_RANK];
  for (uint32_t i = 0; i < count; i++)
    axes[i] = (int64_t)i - count;
  *mean = mean_of(b, x, axes, count);
  ValueId rest = build_binary(b, OP_SUB_TENSOR, x, *mean);
  ValueId variance = mean_of(b, build_binary(b, OP_MUL_TENSOR, rest, rest), axes, count);
  variance = build_binary(b, OP_ADD_TENSOR, variance, decompose_number(b, x, eps));
  *inverse = build_unary(b, OP_RSQRT, variance);
  return build_binary(b, OP_MUL_TENSOR, rest, *inverse);
}

/* y * weight + bias, either of which may be 0. */
static ValueId affine(Builder *b, ValueId y, ValueId weight, ValueId bias) {
  if (weight)
    y = build_binary(b, OP_MUL_TENSOR, y, weight);
  return bias ? build_binary(b, OP_ADD_TENSOR, y, bias) : y;
}

ValueId decompose_layer_norm(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0), mean, inverse;
  if (value_dtype(g, x) != DTYPE_F64)
    return 0;
  ValueId y = normalised(b, x, node_list_count(g, n, 1), node_scalar(g, n, 4), &mean, &inverse);
  y = affine(b, y, node_value(g, n, 2), node_value(g, n, 3));
  if (b->status == STATUS_OK) {
    graph_replace_uses(g, node_result(g, n, 1), mean);
    graph_replace_uses(g, node_result(g, n, 2), inverse);
  }
  return y;
}

/* As [N, groups, the rest]; weight and bias vary along dim 1 of x. */
ValueId decompose_group_norm(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0), parameters[2], statistics[2];
  uint32_t rank = value_rank(g, x);
  if (value_dtype(g, x) != DTYPE_F64 || rank < 2)
    return 0;
  SymInt dims[MAX_RANK], along[MAX_RANK], shape[MAX_RANK];
  for (uint32_t i = 0; i < rank; i++) {
    shape[i] = value_dim(g, x, i);
    along[i] = i == 1 ? shape[i] : 1;
  }
  SymInt groups = node_int(g, n, 6), channels = sym_floordiv(&g->syms, shape[1], groups);
  dims[0] = shape[0], dims[1] = groups;
  dims[2] = sym_mul(&g->syms, channels, node_int(g, n, 5));
  ValueId y = normalised(b, build_view(b, x, dims, 3), 1, node_scalar(g, n, 7), &statistics[0],
                         &statistics[1]);
  for (uint32_t i = 0; i < 2 && b->status == STATUS_OK; i++) {
    ValueId v = node_value(g, n, i + 1);
    parameters[i] = v ? build_view(b, v, along, rank) : 0;
    ValueId flat = build_view(b, statistics[i], dims, 2);
    if (b->status == STATUS_OK)
      graph_replace_uses(g, node_result(g, n, i + 1), flat);
  }
  if (b->status != STATUS_OK)
    return 0;
  return affine(b, build_view(b, y, shape, rank), parameters[0], parameters[1]);
}
