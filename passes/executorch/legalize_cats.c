/* The kernel of cat skips operands without elements, and gives a result of nothing but these the
 * size 0 along its dim. Where another dim may be 0 while running, a view gives the result its
 * shape. */
#include "ir/builder.h"
#include "passes/pass.h"

/* Whether a dim other than the one along which n joins may be 0. */
static bool may_be_empty(const Graph *g, NodeId n) {
  const Type *t = value_type(g, node_result(g, n, 0));
  int64_t dim = wrap_dim(node_int(g, n, 1), t->rank);
  bool may = false;
  for (uint32_t i = 0; i < t->rank; i++)
    may |= i != dim && sym_lower(&g->syms, t->dims[i]) < 1;
  return may;
}

Status pass_legalize_cats(PassContext *p, Graph *g) {
  uint64_t views = 0;
  for (FOR_NODES(g, n)) {
    ValueId v = g->nodes[n].op == OP_CAT ? node_result(g, n, 0) : 0;
    if (!v || !first_use(g, v) || !may_be_empty(g, n))
      continue;
    const Type *t = value_type(g, v);
    Builder b = builder_make(g, g->nodes[n].next, g->nodes[n].loc);
    ValueId view = build(&b, OP_VIEW_COPY, A_VAL(v), A_INTS(t->dims, t->rank));
    TRY(b.status);
    graph_replace_uses(g, v, view);
    node_set_arg(g, value_def(g, view), 0, A_VAL(v));
    views++;
  }
  pass_count(p, "views", views);
  return STATUS_OK;
}
