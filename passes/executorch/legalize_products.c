/* The kernels of matrix products of floats do not write their output where the dim that is summed
 * has the size 0: a call then returns uninitialized memory. Where it may be 0 at run time, as that
 * of x[1:] for one row, both factors are padded with zeros along it. */
#include "passes/pass.h"

/* The factors are operands `left` and left + 1 of n. */
static ValueId never_empty(Builder *b, NodeId n, uint32_t left) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, left), y = node_value(g, n, left + 1);
  DType dtype = value_dtype(g, x);
  SymInt summed = value_dim(g, x, value_rank(g, x) - 1);
  if ((dtype != DTYPE_F32 && dtype != DTYPE_F64) || sym_lower(&g->syms, summed) >= 1)
    return 0;
  x = build_pad(b, x, -1, 0, 1);
  y = build_pad(b, y, node_cget(g, n)->op == OP_LINEAR ? -1 : -2, 0, 1);
  ArgIn factors[] = {A_VAL(x), A_VAL(y)}, sum[] = {A_VAL(node_value(g, n, 0)), A_VAL(x), A_VAL(y)};
  return left ? build_on(b, n, sum, COUNT_OF(sum)) : build_on(b, n, factors, COUNT_OF(factors));
}

static ValueId product(Builder *b, NodeId n) { return never_empty(b, n, 0); }

static ValueId sum_and_product(Builder *b, NodeId n) { return never_empty(b, n, 1); }

Status pass_legalize_products(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_MM, product, "products"},
                                      {OP_BMM, product, "products"},
                                      {OP_LINEAR, product, "products"},
                                      {OP_ADDMM, sum_and_product, "products"}};
  return pass_rewrite(p, g, rules, COUNT_OF(rules));
}
