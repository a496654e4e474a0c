/* Comparisons with numbers whose results are floats, as spikes and hard gates are, in arithmetic
 * that backends have, which have no booleans:
 *   x > c as a float  ->  clamp(ceil(x - c), 0, 1)
 *   x >= c            ->  clamp(floor(x - c) + 1, 0, 1)
 * and c - x for < and <=. The difference of two floats is 0 only where they are equal, or less than
 * 1.2e-38 apart, which XNNPACK takes for 0; infinite x are right, too. Of NaN the result is what
 * the backend's clamp makes of it. */
#include <math.h>

#include "ir/match.h"
#include "passes/pass.h"

static const struct {
  OpId of_number, of_tensor;
  bool less, equal;
} comparisons[] = {{OP_GT_SCALAR, OP_GT_TENSOR, false, false},
                   {OP_GE_SCALAR, OP_GE_TENSOR, false, true},
                   {OP_LT_SCALAR, OP_LT_TENSOR, true, false},
                   {OP_LE_SCALAR, OP_LE_TENSOR, true, true}};

/* x less the number, or the other way round. */
static ValueId difference(Builder *b, ValueId x, double number, bool less) {
  ValueId c = build_scalar(b, DTYPE_F32, number);
  if (number == 0)
    return less ? build_unary(b, OP_NEG, x) : x;
  return less ? build_binary(b, OP_SUB_TENSOR, c, x) : build_binary(b, OP_SUB_TENSOR, x, c);
}

static bool read_number(const Graph *g, NodeId n, bool tensor, double *number) {
  if (tensor)
    return match_number(g, node_value(g, n, 1), number);
  *number = node_scalar(g, n, 1);
  return node_arg(g, n, 1)->kind == ARG_FLOAT || node_arg(g, n, 1)->kind == ARG_INT;
}

static ValueId rewrite(Builder *b, NodeId cast) {
  Graph *g = b->g;
  ValueId y = node_result(g, cast, 0), condition = node_value(g, cast, 0);
  if (value_dtype(g, y) != DTYPE_F32 || value_dtype(g, condition) != DTYPE_BOOL)
    return 0;
  for (size_t i = 0; i < COUNT_OF(comparisons); i++) {
    NodeId number = match_op_once(g, condition, comparisons[i].of_number),
           n = number ? number : match_op_once(g, condition, comparisons[i].of_tensor);
    double c;
    if (!n || !read_number(g, n, !number, &c))
      continue;
    ValueId x = node_value(g, n, 0);
    if (!match_fits(g, cast, x) || (double)(float)c != c || !isfinite(c))
      return 0;
    ValueId d = difference(b, x, c, comparisons[i].less);
    d = build_unary(b, comparisons[i].equal ? OP_FLOOR : OP_CEIL, d);
    if (comparisons[i].equal)
      d = build_binary(b, OP_ADD_TENSOR, d, build_scalar(b, DTYPE_F32, 1));
    return build(b, OP_CLAMP, A_VAL(d), A_INT(0), A_INT(1));
  }
  return 0;
}

Status pass_round_comparisons(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_TO_COPY, rewrite, "comparisons"}};
  return pass_rewrite(p, g, rules, COUNT_OF(rules));
}
