/* Views that cost nothing: every node that only reshapes becomes executorch_prim::et_view of the
 * value that first produced the bytes.
 *
 * From here on the op says what happens to memory: et_view shares the memory of its operand, while
 * a view_copy that is left (this pass was skipped) is a real copy. An et_view of static shape is no
 * instruction at all: the emitter writes one more tensor at the same place. One of dynamic shape
 * stays a call, which sets the sizes of its result and points it at the operand's data
 * (kernels/prim_ops/et_view.cpp of ExecuTorch 1.4.1). One symbolic size is given as -1, which
 * spares the arithmetic for it. */
#include "passes/executorch/views.h"
#include "passes/pass.h"

static bool same_type(const Graph *g, ValueId v, TypeId type) { return g->values[v].type == type; }

/* dims with its only symbolic size as -1; false when that is not possible. */
static bool infer_one(Graph *g, ValueId base, SymInt *dims, uint32_t rank) {
  SymInt all = 1, product = 1;
  uint32_t symbolic = 0, at = 0;
  for (uint32_t i = 0; i < value_rank(g, base); i++)
    all = sym_mul(&g->syms, all, value_dim(g, base, i));
  for (uint32_t i = 0; i < rank; i++) {
    product = sym_mul(&g->syms, product, dims[i]);
    if (!sym_is_const(dims[i])) {
      symbolic++;
      at = i;
    } else if (dims[i] == 0) {
      return false;
    }
  }
  if (symbolic != 1 || product != all)
    return false;
  dims[at] = -1;
  return true;
}

static ValueId view_of_type(Builder *b, ValueId base, TypeId wanted) {
  Graph *g = b->g;
  SymInt exact[MAX_RANK] = {0}, inferred[MAX_RANK];
  uint32_t rank = type_get(g, wanted)->rank;
  if (rank)
    memcpy(exact, type_get(g, wanted)->dims, rank * sizeof *exact);
  memcpy(inferred, exact, sizeof exact);
  if (infer_one(g, base, inferred, rank)) {
    ValueId v = build_et_view(b, base, inferred, rank);
    if (!v || same_type(g, v, wanted))
      return v;
    graph_remove_node(g, value_def(g, v));
  }
  return build_et_view(b, base, exact, rank);
}

static ValueId replace_view(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId old = node_result(g, n, 0);
  if (!node_is_view(g, n) || g->values[old].use_count == 0)
    return 0;
  ValueId base = view_base_of_type(g, old);
  bool done = node_cget(g, n)->op == OP_ET_VIEW && base == node_value(g, n, 0);
  if (done || base == old) /* a change of the element type is free as it is */
    return 0;
  return view_of_type(b, base, g->values[old].type);
}

Status pass_eliminate_views(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_NONE, replace_view, "views"}};
  TRY(pass_rewrite(p, g, rules, COUNT_OF(rules)));
  for (NodeId n = g->last, before; n; n = before) {
    before = g->nodes[n].prev;
    if (node_is_view(g, n) && g->values[node_result(g, n, 0)].use_count == 0)
      graph_remove_node(g, n);
  }
  return STATUS_OK;
}
