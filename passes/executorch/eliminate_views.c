/* Views that cost nothing: every node that only reshapes becomes executorch_prim::et_view of the
 * value that first produced the bytes.
 *
 * From here on the op says what happens to memory: et_view shares the memory of its operand, while
 * a view_copy that is left (this pass was skipped) is a real copy. An et_view of static shape is no
 * instruction at all: the emitter writes one more tensor at the same place. One of dynamic shape
 * stays a call, which sets the sizes of its result and points it at the operand's data
 * (kernels/prim_ops/et_view.cpp of ExecuTorch 1.4.1). One symbolic size is given as -1, which
 * spares the arithmetic for it. */
#include "ir/builder.h"
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

static ValueId build_et_view(Builder *b, ValueId base, TypeId wanted) {
  Graph *g = b->g;
  SymInt exact[MAX_RANK], inferred[MAX_RANK];
  uint32_t rank = type_get(g, wanted)->rank;
  if (rank)
    memcpy(exact, type_get(g, wanted)->dims, rank * sizeof *exact);
  memcpy(inferred, exact, sizeof exact);
  if (infer_one(g, base, inferred, rank)) {
    ValueId v = build(b, OP_ET_VIEW, A_VAL(base), A_INTS(inferred, rank));
    if (!v || same_type(g, v, wanted))
      return v;
    graph_remove_node(g, value_def(g, v));
  }
  return build(b, OP_ET_VIEW, A_VAL(base), A_INTS(exact, rank));
}

static Status replace_view(Graph *g, NodeId n) {
  ValueId old = node_result(g, n, 0), base = view_base_of_type(g, old);
  Builder b = builder_make(g, n, g->nodes[n].loc);
  ValueId new = build_et_view(&b, base, g->values[old].type);
  TRY(b.status);
  g->values[new].name = g->values[old].name;
  graph_replace_uses(g, old, new);
  return STATUS_OK;
}

Status pass_eliminate_views(PassContext *p, Graph *g) {
  uint64_t views = 0;
  for (FOR_NODES(g, n)) {
    if (!node_is_view(g, n) || g->values[node_result(g, n, 0)].use_count == 0)
      continue;
    ValueId self = node_value(g, n, 0), base = view_base_of_type(g, node_result(g, n, 0));
    bool done = node_cget(g, n)->op == OP_ET_VIEW && base == self;
    if (done || base == node_result(g, n, 0)) /* a change of the element type is free as it is */
      continue;
    TRY(replace_view(g, n));
    views++;
  }
  for (NodeId n = g->last, before; n; n = before) {
    before = g->nodes[n].prev;
    if (node_is_view(g, n) && g->values[node_result(g, n, 0)].use_count == 0)
      graph_remove_node(g, n);
  }
  pass_count(p, "views", views);
  return STATUS_OK;
}
