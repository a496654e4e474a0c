/* Weights of convolutions that are computed from constants, as quantized ones are from 8 bits, are
 * left alone by fold_constants when they are large: products take them as well at run time, and the
 * file stays small. Backends want weights of convolutions as constants, and the kernel that would
 * run instead is a hundred times slower; so these are folded whatever their size, unless
 * --fold-limit says how large they may be. */
#include "interp/fold.h"
#include "ops/quantized.h"
#include "passes/pass.h"

enum { WEIGHT = 1, BIAS = 2 };

/* Codes that are only dequantized, and moved perhaps, stay: backends take them. */
static void fold_weight(FoldChain *c, ValueId v) {
  const Graph *g = c->b.g;
  if (v && !value_is_const(g, v) && value_def(g, v) && !moved_dequantize(g, v))
    fold_chain(c, value_def(g, v));
}

Status pass_fold_weights(PassContext *p, Graph *g) {
  if (p->options->fold_limit)
    return STATUS_OK;
  FoldChain chain;
  fold_chain_init(&chain, g, p->scratch);
  for (NodeId n = g->first; n && chain.b.status == STATUS_OK; n = node_cget(g, n)->next)
    if (node_cget(g, n)->op == OP_CONVOLUTION) {
      fold_weight(&chain, node_value(g, n, WEIGHT));
      fold_weight(&chain, node_value(g, n, BIAS));
    }
  fold_chain_release(&chain);
  pass_count(p, "nodes folded", chain.folded);
  return chain.b.status;
}
