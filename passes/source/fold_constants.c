/* Constant folding: each node over constants is run once with its reference kernel. The importer
 * folds while it builds; this pass finds what other passes left. */
#include "interp/fold.h"
#include "passes/pass.h"

static bool fold_one(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId folded = fold_node(b, n);
  if (!folded)
    return false;
  for (uint32_t i = 0; i < node_cget(g, n)->result_count; i++)
    graph_replace_uses(g, node_result(g, n, i), folded + i);
  graph_remove_node(g, n);
  return true;
}

Status pass_fold_constants(PassContext *p, Graph *g) {
  Fold fold;
  fold_init(&fold, p->options->fold_limit);
  fold.keep_transposes = fold.keep_widenings = g->level == LEVEL_ATEN; /* recovery comes first */
  uint64_t folded = 0;
  Builder b = builder_make(g, 0, 0);
  b.fold_data = &fold;
  for (NodeId n = g->first, next; n && b.status == STATUS_OK; n = next) {
    next = node_cget(g, n)->next;
    folded += fold_one(&b, n);
  }
  fold_release(&fold);
  pass_count(p, "nodes folded", folded);
  return b.status;
}
