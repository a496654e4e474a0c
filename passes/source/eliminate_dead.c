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

/* Expressions that arguments of live nodes hold, and their parts; NULL where no data decide sizes.
 */
typedef struct Sizes {
  bool *wanted; /* by index of the expression */
} Sizes;

static Sizes sizes_of(PassContext *p, const Graph *g) {
  for (FOR_NODES(g, n))
    if (op_has_trait(node_cget(g, n)->op, OP_DATA_SHAPE))
      return (Sizes){ARENA_ARRAY(p->scratch, bool, g->syms.count + 1)};
  return (Sizes){NULL};
}

static void want(const Sizes *s, const SymTable *t, SymInt v) {
  if (sym_is_const(v) || s->wanted[v - SYM_BAND])
    return;
  s->wanted[v - SYM_BAND] = true;
  const SymExpr *e = sym_expr(t, v);
  for (uint32_t i = 0; i < e->count; i++)
    want(s, t, e->terms[i]);
}

static void want_arguments(const Sizes *s, const Graph *g, NodeId n) {
  for (uint32_t i = 0; s->wanted && i < node_cget(g, n)->arg_count; i++) {
    const Arg *arg = node_arg(g, n, i);
    if (arg->kind == ARG_INT)
      want(s, &g->syms, arg->i);
    for (uint32_t k = 0; arg->kind == ARG_INTS && k < arg->count; k++)
      want(s, &g->syms, node_ints(g, n, i)[k]);
  }
}

/* How many elements nonzero finds may be all that is used of it. */
static bool gives_size(const Sizes *s, const Graph *g, NodeId n) {
  const Node *node = node_cget(g, n);
  if (!s->wanted || !op_has_trait(node->op, OP_DATA_SHAPE))
    return false;
  const Type *t = value_type(g, node->first_result);
  for (uint32_t i = 0; i < t->rank; i++)
    if (!sym_is_const(t->dims[i]) && s->wanted[t->dims[i] - SYM_BAND])
      return true;
  return false;
}

static bool is_dead(const Sizes *s, const Graph *g, NodeId n) {
  return !op_has_trait(node_cget(g, n)->op, OP_EFFECT) && !names_size(g, n) &&
         !gives_size(s, g, n) && node_unused(g, n, 0);
}

Status pass_eliminate_dead(PassContext *p, Graph *g) {
  uint64_t removed = 0;
  Sizes sizes = sizes_of(p, g);
  for (NodeId n = g->last, prev; n; n = prev) {
    prev = node_cget(g, n)->prev;
    if (is_dead(&sizes, g, n)) {
      graph_remove_node(g, n);
      removed++;
    } else {
      want_arguments(&sizes, g, n);
    }
  }
  pass_count(p, "nodes removed", removed);
  return STATUS_OK;
}
