/* softmax as exp(x - max) / sum(exp(x - max)), and log_softmax as its logarithm. */
#include "ir/match.h"
#include "passes/pass.h"

/* v = reduce(x, one dim, keepdim) */
static bool over_one_dim(const Graph *g, ValueId v, OpId op, ValueId *x, int64_t *dim) {
  NodeId n = match_op(g, v, op);
  if (!n || node_list_count(g, n, 1) != 1 || !node_bool(g, n, 2))
    return false;
  *x = node_value(g, n, 0);
  *dim = wrap_dim(node_ints(g, n, 1)[0], value_rank(g, *x));
  return true;
}

/* e / sum(e) with e = exp(x - amax(x)), all over one dim. */
static ValueId softmax(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId e = node_value(g, n, 0), of, shifted;
  int64_t dim, max_dim;
  if (!over_one_dim(g, node_value(g, n, 1), OP_SUM_DIM_INTLIST, &of, &dim) || of != e ||
      !match_fits(g, n, e))
    return 0;
  NodeId exponent = match_op(g, e, OP_EXP);
  if (!exponent)
    return 0;
  shifted = node_value(g, exponent, 0);
  NodeId minus = match_op(g, shifted, OP_SUB_TENSOR);
  if (minus && over_one_dim(g, node_value(g, minus, 1), OP_AMAX, &of, &max_dim) &&
      of == node_value(g, minus, 0) && max_dim == dim && match_fits(g, n, of))
    return build(b, OP_SOFTMAX, A_VAL(of), A_INT(dim), A_BOOL(false));
  return 0;
}

static ValueId log_softmax(Builder *b, NodeId n) {
  Graph *g = b->g;
  NodeId s = match_op_once(g, node_value(g, n, 0), OP_SOFTMAX);
  if (!s || !match_fits(g, n, node_value(g, s, 0)) ||
      value_dtype(g, node_value(g, s, 0)) == DTYPE_F64)
    return 0; /* the runtime has no log_softmax of doubles */
  return build(b, OP_LOG_SOFTMAX, A_VAL(node_value(g, s, 0)), A_INT(node_int(g, s, 1)),
               A_BOOL(false));
}

Status pass_recover_softmax(PassContext *p, Graph *g) {
  static const RewriteRule rows[] = {
      {OP_DIV_TENSOR, softmax, "softmax"},
      {OP_LOG, log_softmax, "log_softmax"},
  };
  return pass_rewrite(p, g, rows, COUNT_OF(rows));
}
