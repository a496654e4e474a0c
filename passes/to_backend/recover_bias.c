/* A bias that is added behind the views of a matrix product, as exporters spell a linear layer on
 * tensors of rank 3, becomes that of the product:
 *   add(view(mm(x, W)), bias)  ->  view(addmm(bias, x, W)).
 * Backends add it while they multiply. The runtime's kernels do not, so it is for backends alone.
 */
#include "ops/quantized.h"
#include "ir/match.h"
#include "passes/pass.h"

/* The product without a bias that v is a view of, and nothing else uses. */
static NodeId bare_product(const Graph *g, ValueId v) {
  NodeId view;
  while ((view = match_op_once(g, v, OP_VIEW_COPY)))
    v = node_value(g, view, 0);
  NodeId product = match_op_once(g, v, OP_MM);
  if (!product)
    product = match_bare_linear(g, v);
  return product && is_constant_or_codes(g, node_value(g, product, 1)) ? product : 0;
}

static ValueId bias(Builder *b, NodeId n) {
  Graph *g = b->g;
  if (node_scalar(g, n, 2) != 1)
    return 0;
  for (uint32_t i = 0; i < 2; i++) {
    ValueId v = node_value(g, n, i), c = node_value(g, n, 1 - i);
    NodeId product = match_fits(g, n, v) ? bare_product(g, v) : 0;
    if (!product || value_rank(g, v) == 0 || value_dtype(g, c) != value_dtype(g, v))
      continue;
    ValueId x = node_value(g, product, 0), weight = node_value(g, product, 1),
            old = node_result(g, product, 0);
    SymInt columns = value_dim(g, old, value_rank(g, old) - 1);
    bool fits = value_dim(g, v, value_rank(g, v) - 1) == columns && is_constant_or_codes(g, c);
    ValueId row = fits ? match_row(g, c, columns) : 0;
    if (!row)
      continue;
    ValueId y = node_cget(g, product)->op == OP_MM
                    ? build(b, OP_ADDMM, A_VAL(row), A_VAL(x), A_VAL(weight))
                    : build(b, OP_LINEAR, A_VAL(x), A_VAL(weight), A_VAL(row));
    return build_view_as(b, y, value_dims(g, v));
  }
  return 0;
}

Status pass_recover_bias(PassContext *p, Graph *g) {
  static const RewriteRule rows[] = {{OP_ADD_TENSOR, bias, "biases"}};
  return pass_rewrite(p, g, rows, COUNT_OF(rows));
}
