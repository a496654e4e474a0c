/* Shapes: calls whose result the runtime's kernel gives another shape, or refuses, are rewritten.
 *
 * - Results without elements become constants. aten::cat, for one, skips empty operands and then
 *   finds a result of the wrong shape.
 * - The fast paths of add, sub, mul and div for operands that broadcast give the result the rank of
 *   the larger operand. Where the other one has more dimensions (all of size 1), a view gives the
 *   larger one as many.
 * - The kernels of products over no elements leave the result as it was in memory; it is zeros. */
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
  return dims_same(own->dims, own->rank, t->dims, t->rank);
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

/* The result of a product over an inner dim of 0: zeros, plus the bias. */
static Status replace_hollow(PassContext *p, Graph *g, NodeId n, uint64_t *hollow) {
  OpId op = (OpId)g->nodes[n].op;
  ValueId left = op == OP_ADDMM                                   ? node_value(g, n, 1)
                 : op == OP_MM || op == OP_BMM || op == OP_LINEAR ? node_value(g, n, 0)
                                                                  : 0,
          y = node_result(g, n, 0);
  uint32_t rank = left ? value_rank(g, left) : 0;
  if (rank == 0 || value_dim(g, left, rank - 1) != 0 || !first_use(g, y))
    return STATUS_OK;
  Builder b = builder_make(g, n, g->nodes[n].loc);
  const Type *t = value_type(g, y);
  ValueId sum = build(&b, OP_FULL, A_INTS(t->dims, t->rank), A_INT(0), A_DTYPE(t->dtype)),
          bias = op == OP_ADDMM    ? node_value(g, n, 0)
                 : op == OP_LINEAR ? node_value(g, n, 2)
                                   : 0;
  if (bias)
    sum = build(&b, OP_ADD_TENSOR, A_VAL(sum), A_VAL(bias),
                op == OP_ADDMM ? node_arg_in(g, n, 3, p->scratch) : A_INT(1));
  TRY(b.status);
  graph_replace_uses(g, y, sum);
  ++*hollow;
  return STATUS_OK;
}

Status pass_legalize_shapes(PassContext *p, Graph *g) {
  uint64_t empty = 0, views = 0, hollow = 0;
  for (FOR_NODES(g, n)) {
    empty += replace_empty(g, n);
    TRY(replace_hollow(p, g, n, &hollow));
    if (has_fast_path(node_cget(g, n)->op))
      TRY(equal_ranks(p, g, n, &views));
  }
  pass_count(p, "empty results", empty);
  pass_count(p, "products over nothing", hollow);
  pass_count(p, "views", views);
  return STATUS_OK;
}
