/* Constant folding: each node over constants is run once with its reference kernel. The importer
 * folds while it builds; this pass finds what other passes left.
 *
 * Constants that are dequantized stay so, since their numbers take more bytes; but what is computed
 * of them and quantized again (weights that are normalized, with QDQ pairs between the steps) are
 * codes then, whatever is between. */
#include "interp/fold.h"
#include "ops/quantized.h"
#include "passes/source/weight_codes.h"

static ValueId fold_one(Builder *b, NodeId n) {
  const bool *stays = b->data;
  ValueId folded = stays && stays[n] ? 0 : fold_node(b, n);
  if (folded)
    graph_replace_results(b->g, n, folded);
  return folded;
}

static Status fold_quantized(PassContext *p, Graph *g) {
  FoldChain chain;
  fold_chain_init(&chain, g, p->scratch);
  for (NodeId n = g->first; n && chain.b.status == STATUS_OK; n = node_cget(g, n)->next)
    if (is_quantize(g, n))
      fold_chain(&chain, n);
  fold_chain_release(&chain);
  pass_count(p, "nodes folded", chain.folded);
  return chain.b.status;
}

Status pass_fold_constants(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_NONE, fold_one, "nodes folded"}};
  Fold fold;
  bool *stays = p->options->fold_limit ? NULL : weight_codes(p, g);
  fold_init(&fold, p->options->fold_limit);
  fold.keep_transposes = fold.keep_widenings = g->level == LEVEL_ATEN; /* recovery comes first */
  Rewriter r = {.rules = rules, .rule_count = COUNT_OF(rules), .fold_data = &fold, .data = stays};
  Status status = pass_rewriter(p, g, &r);
  fold_release(&fold);
  return status != STATUS_OK || p->options->fold_limit ? status : fold_quantized(p, g);
}
