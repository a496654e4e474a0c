/* See rewrite.h. */
#include "passes/executorch/rewrite.h"

Status rewrite_nodes(PassContext *p, Graph *g, OpId op, Rewrite *rewrite, const char *name) {
  Builder b = builder_make(g, 0, 0);
  uint64_t changed = 0;
  for (NodeId n = g->first, next; n && b.status == STATUS_OK; n = next) {
    next = node_cget(g, n)->next;
    if (node_cget(g, n)->op != op)
      continue;
    b.before = n;
    b.loc = node_cget(g, n)->loc;
    ValueId result = node_result(g, n, 0), value = rewrite(&b, n);
    if (!value || b.status != STATUS_OK)
      continue;
    value_get(g, value)->name = value_cget(g, result)->name;
    graph_replace_uses(g, result, value);
    graph_remove_node(g, n);
    changed++;
  }
  pass_count(p, name, changed);
  return b.status;
}
