/* Constant folding: each node over constants is run once with its reference kernel. The importer
 * folds while it builds; this pass finds what other passes left. */
#include "interp/fold.h"
#include "passes/pass.h"

static ValueId fold_one(Builder *b, NodeId n) {
  ValueId folded = fold_node(b, n);
  if (folded)
    graph_replace_results(b->g, n, folded);
  return folded;
}

Status pass_fold_constants(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_NONE, fold_one, "nodes folded"}};
  Fold fold;
  fold_init(&fold, p->options->fold_limit);
  fold.keep_transposes = fold.keep_widenings = g->level == LEVEL_ATEN; /* recovery comes first */
  Rewriter r = {.rules = rules, .rule_count = COUNT_OF(rules), .fold_data = &fold};
  Status status = pass_rewriter(p, g, &r);
  fold_release(&fold);
  return status;
}
