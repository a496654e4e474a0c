/* The kernels of amax and amin end the process where their operand has no elements, as the scores
 * of no boxes. Where a dim that is kept may be 0 while running, one max.dim or min.dim for each dim
 * that is reduced takes their place: these make no elements of none. */
#include "ops/shape_util.h"
#include "passes/pass.h"

static ValueId along_each(Builder *b, NodeId n, OpId op) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0);
  uint32_t set, rank = value_rank(g, x);
  bool may = false, keep = node_bool(g, n, 2);
  for (uint32_t i = 0; i < rank; i++)
    may |= sym_lower(&g->syms, value_dim(g, x, i)) < 1;
  if (!may || shape_axes(g, n, 1, rank, true, &set) != STATUS_OK)
    return 0;
  for (uint32_t i = rank; i-- > 0;)
    if (set >> i & 1)
      x = build(b, op, A_VAL(x), A_INT(i), A_BOOL(keep));
  return x;
}

static ValueId maximum(Builder *b, NodeId n) { return along_each(b, n, OP_MAX_DIM); }

static ValueId minimum(Builder *b, NodeId n) { return along_each(b, n, OP_MIN_DIM); }

Status pass_legalize_extremes(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_AMAX, maximum, "extremes"},
                                      {OP_AMIN, minimum, "extremes"}};
  return pass_rewrite(p, g, rules, COUNT_OF(rules));
}
