/* linear from its pieces: a product with a transposed weight, mm(x, t(W)), is linear(x, W); a
 * linear or matrix product of a constant weight followed by a bias takes the bias in. Weights that
 * lie as [K, N] in the file stay as they are (mm): transposing them would copy the whole weight. */
#include "ir/match.h"
#include "passes/pass.h"

static bool swaps_two(const Graph *g, NodeId permute) {
  if (node_list_count(g, permute, 1) != 2)
    return false;
  int64_t first = node_ints(g, permute, 1)[0];
  return first == 1 || first == -1;
}

/* mm(x, permute(W)) or matmul(x, permute(W)), W a matrix. */
static ValueId product(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0);
  NodeId t = match_op(g, node_value(g, n, 1), OP_PERMUTE_COPY);
  if (!t || value_rank(g, node_value(g, t, 0)) != 2 || value_rank(g, x) < 2 || !swaps_two(g, t))
    return 0;
  return build(b, OP_LINEAR, A_VAL(x), A_VAL(node_value(g, t, 0)), A_NONE);
}

/* linear(x, W) + bias */
static ValueId bias(Builder *b, NodeId n) {
  Graph *g = b->g;
  if (node_scalar(g, n, 2) != 1)
    return 0;
  for (uint32_t i = 0; i < 2; i++) {
    ValueId v = node_value(g, n, i), c = node_value(g, n, 1 - i);
    NodeId linear = match_bare_linear(g, v);
    if (!linear || value_rank(g, c) != 1)
      continue;
    ValueId weight = node_value(g, linear, 1);
    if (value_dim(g, c, 0) == value_dim(g, weight, 0) &&
        value_dtype(g, c) == value_dtype(g, weight))
      return build(b, OP_LINEAR, A_VAL(node_value(g, linear, 0)), A_VAL(weight), A_VAL(c));
  }
  return 0;
}

Status pass_recover_linear(PassContext *p, Graph *g) {
  static const RewriteRule rows[] = {
      {OP_MM, product, "products"},
      {OP_MATMUL, product, "products"},
      {OP_ADD_TENSOR, bias, "biases"},
  };
  return pass_rewrite(p, g, rows, COUNT_OF(rows));
}
