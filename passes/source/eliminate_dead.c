/* Dead code: nodes whose results nobody uses. One walk backwards over the order list, so a chain of
 * dead nodes goes in one go: a node's users come after it and were removed before it is looked at.
 */
#include "passes/pass.h"

/* A size that is read from a tensor: its symbol stands in types and arguments all over the graph.
 */
static bool names_size(const Graph *g, NodeId n) {
  const Node *node = node_cget(g, n);
  const Type *t = node->op == OP_LOCAL_SCALAR_DENSE ? value_type(g, node->first_result) : NULL;
  return t && t->kind == TYPE_INT && t->rank == 1 && !sym_is_const(t->dims[0]);
}

static bool is_dead(const Graph *g, NodeId n) {
  const Node *node = node_cget(g, n);
  if (op_has_trait(node->op, OP_EFFECT) || names_size(g, n))
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
