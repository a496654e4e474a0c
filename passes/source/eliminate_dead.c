/* Dead code: nodes whose results nobody uses. One walk backwards over the order list, so a chain of
 * dead nodes goes in one go: a node's users come after it and were removed before it is looked at.
 */
#include "passes/pass.h"

static bool is_dead(const Graph *g, NodeId n) {
  const Node *node = node_cget(g, n);
  if (op_has_trait(node->op, OP_EFFECT))
    return false;
  for (uint32_t i = 0; i < node->result_count; i++)
    if (value_cget(g, node->first_result + i)->use_count)
      return false;
  return true;
}

Status pass_eliminate_dead(PassContext *p, Graph *g) {
  uint64_t removed = 0;
  for (NodeId n = g->last, prev; n; n = prev) {
    prev = node_cget(g, n)->prev;
    if (is_dead(g, n)) {
      graph_remove_node(g, n);
      removed++;
    }
  }
  pass_count(p, "nodes removed", removed);
  return STATUS_OK;
}
