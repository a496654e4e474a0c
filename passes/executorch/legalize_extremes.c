/* The kernels of amax, amin and log_softmax end the process where their operand has no elements, as
 * the scores of no boxes.
 *
 * Where a dim that is kept may be 0 while running, one max.dim or min.dim for each dim that is
 * reduced takes the place of amax and amin: these make no elements of none. */
#include <math.h>

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

/* The kernel divides by the size of the dim. Longer by -inf, whose exp is 0, it stays the same. */
static ValueId log_softmax(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0);
  uint32_t rank = value_rank(g, x);
  int64_t dim = rank ? wrap_dim(node_int(g, n, 1), rank) : 0;
  SymInt size = rank ? value_dim(g, x, (uint32_t)dim) : 1;
  if (sym_lower(&g->syms, size) >= 1)
    return 0;
  ValueId longer = build_pad_with(b, x, dim, 0, 1, A_FLOAT(-INFINITY)),
          y = build(b, OP_LOG_SOFTMAX, A_VAL(longer), A_INT(dim), A_BOOL(false));
  return build_slice(b, y, dim, 0, size, 1);
}

Status pass_legalize_extremes(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_AMAX, maximum, "extremes"},
                                      {OP_AMIN, minimum, "extremes"},
                                      {OP_LOG_SOFTMAX, log_softmax, "softmax"}};
  return pass_rewrite(p, g, rules, COUNT_OF(rules));
}
