/* matmul, which only backends have at this level, as mm and bmm where none took it. */
#include "passes/core/decompose.h"
#include "passes/pass.h"

Status pass_expand_matmul(PassContext *p, Graph *g) {
  Builder b = builder_make(g, 0, 0);
  uint64_t count = 0;
  for (NodeId n = g->first, next; n && b.status == STATUS_OK; n = next) {
    next = node_cget(g, n)->next;
    if (node_cget(g, n)->op != OP_MATMUL)
      continue;
    b.before = n;
    b.loc = node_cget(g, n)->loc;
    ValueId y = decompose_matmul(&b, n);
    if (!y)
      continue;
    graph_replace_uses(g, node_result(g, n, 0), y);
    graph_remove_node(g, n);
    count++;
  }
  pass_count(p, "products expanded", count);
  return b.status;
}
