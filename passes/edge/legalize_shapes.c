/* Shapes: calls whose result the runtime's kernel gives another shape, or refuses, are rewritten.
 *
 * - Results without elements become constants. aten::cat, for one, skips empty operands and then
 *   finds a result of the wrong shape.
 * - The fast paths of add, sub, mul and div for operands that broadcast give the result the rank of
 *   the larger operand. Where the other one has more dimensions (all of size 1), a view gives the
 *   larger one as many. */
#include "ir/builder.h"
#include "passes/pass.h"

static bool is_empty(const Type *t) {
  bool empty = false;
  for (uint32_t i = 0; t->kind == TYPE_TENSOR && i < t->rank; i++) {
    if (!sym_is_const(t->dims[i]))
      return false;
    empty |= t->dims[i] == 0;
  }
  return empty;
}

static uint64_t replace_empty(Graph *g, NodeId n) {
  uint32_t count = g->nodes[n].result_count;
  uint64_t replaced = 0;
  for (uint32_t i = 0; i < count; i++) {
    ValueId v = node_result(g, n, i);
    if (!is_empty(value_type(g, v)) || !first_use(g, v))
      continue;
    graph_replace_uses(g, v, graph_add_constant_copy(g, value_cget(g, v)->type, "", 0));
    replaced++;
  }
  return replaced;
}

static bool has_shape(const Graph *g, ValueId v, const Type *t) {
  const Type *own = value_type(g, v);
  return own->rank == t->rank &&
         (!t->rank || memcmp(own->dims, t->dims, t->rank * sizeof *t->dims) == 0);
}

static bool has_fast_path(OpId op) {
  return op == OP_ADD_TENSOR || op == OP_SUB_TENSOR || op == OP_MUL_TENSOR || op == OP_DIV_TENSOR;
}

/* Gives the operand of lower rank the rank of the result, unless the other one has its shape. */
static Status equal_ranks(PassContext *p, Graph *g, NodeId n, uint64_t *views) {
  const Type *result = value_type(g, node_result(g, n, 0));
  uint32_t rank = result->rank;
  for (uint32_t i = 0; i < 2; i++) {
    ValueId low = node_value(g, n, i), high = node_value(g, n, 1 - i);
    uint32_t own = value_type(g, low)->rank;
    if (own == 0 || own == rank || has_shape(g, high, result))
      continue;
    SymInt *dims = ARENA_ARRAY(p->scratch, SymInt, rank);
    for (uint32_t d = 0; d < rank; d++)
      dims[d] = d < rank - own ? 1 : value_type(g, low)->dims[d - (rank - own)];
    Builder b = builder_make(g, n, g->nodes[n].loc);
    ValueId view = build_view(&b, low, dims, rank);
    TRY(b.status);
    node_set_arg(g, n, i, A_VAL(view));
    ++*views;
  }
  return STATUS_OK;
}

Status pass_legalize_shapes(PassContext *p, Graph *g) {
  uint64_t empty = 0, views = 0;
  for (FOR_NODES(g, n)) {
    empty += replace_empty(g, n);
    if (has_fast_path(node_cget(g, n)->op))
      TRY(equal_ranks(p, g, n, &views));
  }
  pass_count(p, "empty results", empty);
  pass_count(p, "views", views);
  return STATUS_OK;
}
