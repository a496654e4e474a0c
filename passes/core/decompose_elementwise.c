/* Activations and small ops without a kernel. Each is exact up to rounding; chosen for the fewest
 * kernels. No two operands of one call are built in its argument list: C leaves their order to the
 * compiler, and programs must not depend on that. */
#include "passes/core/decompose.h"

ValueId decompose_silu(Builder *b, NodeId n) {
  ValueId x = node_value(b->g, n, 0);
  return build_binary(b, OP_MUL_TENSOR, x, build_unary(b, OP_SIGMOID, x));
}

/* clamp(x + 3, 0, 6) */
static ValueId ramp(Builder *b, ValueId x) {
  ValueId shifted = build_binary(b, OP_ADD_TENSOR, x, decompose_number(b, x, 3));
  return build(b, OP_CLAMP, A_VAL(shifted), A_INT(0), A_INT(6));
}

static ValueId hardsigmoid(Builder *b, ValueId x) {
  ValueId y = ramp(b, x);
  return build_binary(b, OP_DIV_TENSOR, y, decompose_number(b, x, 6));
}

ValueId decompose_hardsigmoid(Builder *b, NodeId n) {
  return hardsigmoid(b, node_value(b->g, n, 0));
}

/* Not (x * ramp) / 6: that product overflows half precision from x = 10920 on. */
ValueId decompose_hardswish(Builder *b, NodeId n) {
  ValueId x = node_value(b->g, n, 0);
  return build_binary(b, OP_MUL_TENSOR, x, hardsigmoid(b, x));
}

/* log(1 + exp(x)) = relu(x) + log1p(exp(-|x|)): no overflow, no loss for small x. */
static ValueId softplus(Builder *b, ValueId x) {
  ValueId positive = build_unary(b, OP_RELU, x);
  ValueId e = build_unary(b, OP_EXP, build_unary(b, OP_NEG, build_unary(b, OP_ABS, x)));
  return build_binary(b, OP_ADD_TENSOR, positive, build_unary(b, OP_LOG1P, e));
}

ValueId decompose_softplus(Builder *b, NodeId n) {
  ValueId x = node_value(b->g, n, 0);
  double beta = node_scalar(b->g, n, 1);
  if (beta == 1)
    return softplus(b, x);
  ValueId scaled = build_binary(b, OP_MUL_TENSOR, x, decompose_number(b, x, beta));
  ValueId y = softplus(b, scaled);
  return build_binary(b, OP_DIV_TENSOR, y, decompose_number(b, x, beta));
}

ValueId decompose_mish(Builder *b, NodeId n) {
  ValueId x = node_value(b->g, n, 0);
  return build_binary(b, OP_MUL_TENSOR, x, build_unary(b, OP_TANH, softplus(b, x)));
}

ValueId decompose_prelu(Builder *b, NodeId n) {
  ValueId x = node_value(b->g, n, 0), slope = node_value(b->g, n, 1);
  ValueId scaled = build_binary(b, OP_MUL_TENSOR, slope, x);
  ValueId positive = build(b, OP_GE_SCALAR, A_VAL(x), A_INT(0));
  return build(b, OP_WHERE_SELF, A_VAL(positive), A_VAL(x), A_VAL(scaled));
}

ValueId decompose_square(Builder *b, NodeId n) {
  ValueId x = node_value(b->g, n, 0);
  return build_binary(b, OP_MUL_TENSOR, x, x);
}

/* No triu kernel: the elements with column - row >= diagonal, chosen by a mask (a constant when the
 * sizes are). */
ValueId decompose_triu(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0);
  uint32_t rank = value_rank(g, x);
  SymInt rows = value_dim(g, x, rank - 2), columns = value_dim(g, x, rank - 1),
         diagonal = node_int(g, n, 1), end = sym_add(&g->syms, diagonal, rows);
  ValueId first = build(b, OP_ARANGE_START_STEP, A_INT(diagonal), A_INT(end), A_INT(1),
                        A_DTYPE(DTYPE_I64)),
          j = build(b, OP_ARANGE, A_INT(columns), A_DTYPE(DTYPE_I64));
  first = build_view(b, first, (SymInt[]){rows, 1}, 2);
  ValueId keep = build_binary(b, OP_GE_TENSOR, j, first), zero = decompose_number(b, x, 0);
  return build(b, OP_WHERE_SELF, A_VAL(keep), A_VAL(x), A_VAL(zero));
}

/* x * rsqrt(mean(x * x) + eps) * weight. eps absent: the epsilon of the element type
 * (torch.nn.RMSNorm). */
ValueId decompose_rms_norm(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0), weight = node_value(g, n, 2);
  uint32_t count = node_list_count(g, n, 1);
  int64_t axes[MAX_RANK];
  for (uint32_t i = 0; i < count; i++)
    axes[i] = (int64_t)i - count;
  double eps = node_scalar_or(g, n, 3, 1.1920928955078125e-07);
  ValueId squares = build_binary(b, OP_MUL_TENSOR, x, x);
  ValueId mean = build(b, OP_MEAN_DIM, A_VAL(squares), A_INTS(axes, count), A_BOOL(true));
  ValueId inverse =
      build_unary(b, OP_RSQRT, build_binary(b, OP_ADD_TENSOR, mean, decompose_number(b, x, eps)));
  ValueId y = build_binary(b, OP_MUL_TENSOR, x, inverse);
  return weight ? build_binary(b, OP_MUL_TENSOR, y, weight) : y;
}
