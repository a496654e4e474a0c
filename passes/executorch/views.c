/* See views.h. Dims are compared as expressions, so a symbolic dim counts as size 1 only when that
 * is proven. */
#include "passes/executorch/views.h"
#include "ir/match.h"

static bool same_dense_layout(const Graph *g, ValueId a, ValueId b) {
  const Type *from = value_type(g, a), *to = value_type(g, b);
  return from->kind == TYPE_TENSOR && to->kind == TYPE_TENSOR && from->order == ORDER_CONTIGUOUS &&
         to->order == ORDER_CONTIGUOUS;
}

/* Equal dims in equal order when dims of size 1 are left out. */
static bool same_but_ones(const Graph *g, ValueId a, ValueId b) {
  const Type *from = value_type(g, a), *to = value_type(g, b);
  uint32_t i = 0, k = 0;
  for (;;) {
    while (i < from->rank && from->dims[i] == 1)
      i++;
    while (k < to->rank && to->dims[k] == 1)
      k++;
    if (i == from->rank || k == to->rank)
      return i == from->rank && k == to->rank;
    if (from->dims[i++] != to->dims[k++])
      return false;
  }
}

bool node_is_view(Graph *g, NodeId n) {
  const Node *node = node_cget(g, n);
  if (node->result_count != 1 || node->arg_count == 0 || node_arg(g, n, 0)->kind != ARG_VALUE ||
      !same_dense_layout(g, node_value(g, n, 0), node_result(g, n, 0)))
    return false;
  if (op_has_trait(node->op, OP_VIEW))
    return true;
  if (node->op == OP_PERMUTE_COPY)
    return match_view_permute(g, n);
  if (node->op == OP_EXPAND_COPY || node->op == OP_SELECT_COPY_INT)
    return same_but_ones(g, node_value(g, n, 0), node_result(g, n, 0));
  return false;
}

ValueId view_base(Graph *g, ValueId v) {
  for (NodeId n = value_def(g, v); n && node_is_view(g, n); n = value_def(g, v))
    v = node_value(g, n, 0);
  return v;
}

ValueId view_base_of_type(Graph *g, ValueId v) {
  DType dtype = value_dtype(g, v);
  for (NodeId n = value_def(g, v); n && node_is_view(g, n); n = value_def(g, v)) {
    if (value_dtype(g, node_value(g, n, 0)) != dtype)
      break;
    v = node_value(g, n, 0);
  }
  return v;
}

ValueId build_et_view(Builder *b, ValueId v, const SymInt *dims, uint32_t rank) {
  return build(b, OP_ET_VIEW, A_VAL(v), A_INTS(dims, rank));
}

ValueId build_reshaped(Builder *b, ValueId v, const SymInt *dims, uint32_t rank) {
  Graph *g = b->g;
  if (!value_is_const(g, v))
    return build_et_view(b, v, dims, rank);
  TypeId type = graph_tensor_type(g, value_dtype(g, v), rank, dims, ORDER_CONTIGUOUS);
  return graph_add_constant(g, type, *value_lazy_constant(g, v), value_cget(g, v)->name);
}
