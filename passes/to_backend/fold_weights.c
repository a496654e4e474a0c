/* Weights of convolutions that are computed from constants, as quantized ones are from 8 bits, are
 * left alone by fold_constants when they are large: products take them as well at run time, and the
 * file stays small. Backends want weights of convolutions as constants, and the kernel that would
 * run instead is a hundred times slower; so these are folded whatever their size, unless
 * --fold-limit says how large they may be. */
#include "interp/fold.h"
#include "ops/quantized.h"
#include "passes/pass.h"

enum { WEIGHT = 1, BIAS = 2 };

/* Whether v is a dequantized constant, moved perhaps: backends take its codes. */
static bool is_of_codes(const Graph *g, ValueId v) {
  NodeId n = value_def(g, v);
  while (n &&
         (op_has_trait(node_cget(g, n)->op, OP_VIEW) || node_cget(g, n)->op == OP_PERMUTE_COPY))
    n = value_def(g, node_value(g, n, 0));
  return is_dequantize(g, n);
}

static void fold_weight(FoldChain *c, ValueId v) {
  Graph *g = c->b->g;
  NodeId n = v && !value_is_const(g, v) && !is_of_codes(g, v) ? value_def(g, v) : 0;
  ValueId made = n ? fold_chain(c, n) : 0;
  if (made)
    graph_replace_results(g, n, made);
}

Status pass_fold_weights(PassContext *p, Graph *g) {
  if (p->options->fold_limit)
    return STATUS_OK;
  Fold fold;
  fold_init(&fold, UINT64_MAX);
  fold.dequantizes = true;
  Builder b = builder_make(g, 0, 0);
  b.fold = fold_node;
  b.fold_data = &fold;
  FoldChain chain = fold_chain_make(&b, p->scratch);
  for (NodeId n = g->first; n && b.status == STATUS_OK; n = node_cget(g, n)->next)
    if (node_cget(g, n)->op == OP_CONVOLUTION) {
      fold_weight(&chain, node_value(g, n, WEIGHT));
      fold_weight(&chain, node_value(g, n, BIAS));
    }
  fold_release(&fold);
  pass_count(p, "nodes folded", chain.folded);
  return b.status;
}
