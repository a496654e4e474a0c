/* native_group_norm as native_layer_norm over each group, then the scale and shift of the channels.
 *
 * Why: the runtime's group norm takes the variance as mean(x^2) - mean(x)^2 in floats
 * (kernels/portable/cpu/op_native_group_norm.cpp of ExecuTorch 1.4.1), which cancels; its layer
 * norm is the optimized one with Welford's sums. Measured on 24 x 40 x 40 values around 3: off
 * by 1.5e-5 against 8e-7. A style transfer network of 5 such norms is outside 1e-3 with the one and
 * inside with the other. Scale and shift are done in place. */
#include "ir/builder.h"
#include "ir/match.h"
#include "passes/pass.h"

/* The weight or bias [C] as [C, 1, ...] against x. */
static ValueId by_channel(Builder *b, ValueId v, uint32_t rank) {
  SymInt dims[MAX_RANK] = {value_dim(b->g, v, 0)};
  for (uint32_t i = 1; i + 1 < rank; i++)
    dims[i] = 1;
  return build_view(b, v, dims, rank - 1);
}

static ValueId rewrite(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0), weight = node_value(g, n, 1), bias = node_value(g, n, 2);
  uint32_t rank = value_rank(g, x);
  SymInt groups = node_int(g, n, 6), channels = node_int(g, n, 4), area = node_int(g, n, 5);
  if (!sym_is_const(groups) || !sym_is_const(channels) || groups < 1 || channels < groups ||
      sym_lower(&g->syms, area) < 1 || rank < 3 || channels > INT32_MAX ||
      sym_upper(&g->syms, area) > INT32_MAX || !node_unused(g, n, 1))
    return 0;
  Dims dims = value_dims(g, x);
  SymInt length = sym_mul(&g->syms, area, channels / groups);
  double eps = node_scalar(g, n, 7);
  SymInt rows = sym_mul(&g->syms, dims.d[0], groups);
  ValueId y = build_view(b, x, (SymInt[]){rows, length}, 2);
  y = build(b, OP_NATIVE_LAYER_NORM, A_VAL(y), A_INTS(&length, 1), A_NONE, A_NONE, A_FLOAT(eps));
  y = build_view_as(b, y, dims);
  if (weight && !match_filled(g, weight, 1))
    y = build(b, OP_MUL_TENSOR, A_VAL(y), A_VAL(by_channel(b, weight, rank)));
  return bias && !match_filled(g, bias, 0)
             ? build(b, OP_ADD_TENSOR, A_VAL(y), A_VAL(by_channel(b, bias, rank)))
             : y;
}

Status pass_group_norm_to_layer_norm(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_NATIVE_GROUP_NORM, rewrite, "norms"}};
  return pass_rewrite(p, g, rules, COUNT_OF(rules));
}
