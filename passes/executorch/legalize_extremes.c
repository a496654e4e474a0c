/* The kernels of amax, amin and log_softmax abort the process where their operand is empty (scores,
 * when a detector found no box).
 *
 * Where a dim that is kept may be 0 at run time, amax and amin are replaced by one max.dim or
 * min.dim for each dim that is reduced: these give an empty result for an empty operand. */
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

/* The kernel divides by the size of the dim, and by that of each dim behind it. Where one may be 0,
 * it is longer by one: along the dim by -inf, whose exp is 0, so that the others stay the same. */
static ValueId log_softmax(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0);
  Dims s = value_dims(g, x);
  uint32_t dim = s.rank ? (uint32_t)wrap_dim(node_int(g, n, 1), s.rank) : 0, count = 0;
  SymInt more[2 * MAX_RANK] = {0}; /* before and behind, the last dim first */
  bool any = false;
  for (uint32_t i = s.rank; i-- > dim; count += 2) {
    more[count + 1] = sym_lower(&g->syms, s.d[i]) < 1;
    any |= more[count + 1] != 0;
  }
  if (!any)
    return 0;
  ValueId longer = build(b, OP_CONSTANT_PAD_ND, A_VAL(x), A_INTS(more, count), A_FLOAT(-INFINITY));
  ValueId y = build(b, OP_LOG_SOFTMAX, A_VAL(longer), A_INT(dim), A_BOOL(false));
  for (uint32_t i = dim; i < s.rank; i++)
    y = build_slice(b, y, i, 0, s.d[i], 1);
  return y;
}

Status pass_legalize_extremes(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_AMAX, maximum, "extremes"},
                                      {OP_AMIN, minimum, "extremes"},
                                      {OP_LOG_SOFTMAX, log_softmax, "softmax"}};
  return pass_rewrite(p, g, rules, COUNT_OF(rules));
}
