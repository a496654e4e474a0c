/* Group norm as exporters spell it: the groups become the channels of an instance norm,
 *   view(group_norm(view(x, [N, G, rest]), G groups), dims of x), then * weight, then + bias.
 * Backends keep the layout of x then. Without one, layer norm takes its place either way. */
#include "ir/match.h"
#include "passes/pass.h"

static bool plain(const Graph *g, NodeId norm) {
  return (node_absent(g, norm, 1) || match_filled(g, node_value(g, norm, 1), 1)) &&
         (node_absent(g, norm, 2) || match_filled(g, node_value(g, norm, 2), 0));
}

static ValueId norm_of(Builder *b, ValueId x, NodeId like, ValueId weight, ValueId bias) {
  Graph *g = b->g;
  SymInt area = 1;
  for (uint32_t i = 2; i < value_rank(g, x); i++)
    area = sym_mul(&g->syms, area, value_dim(g, x, i));
  return build(b, OP_NATIVE_GROUP_NORM, A_VAL(x), A_OPT(weight), A_OPT(bias),
               A_INT(value_dim(g, x, 0)), A_INT(value_dim(g, x, 1)), A_INT(area),
               A_INT(node_int(g, like, 6)), A_FLOAT(node_scalar(g, like, 7)));
}

static ValueId joined(Builder *b, NodeId n) {
  Graph *g = b->g;
  NodeId norm = match_lone_norm(g, node_value(g, n, 0), OP_NATIVE_GROUP_NORM);
  NodeId split = norm ? match_op(g, node_value(g, norm, 0), OP_VIEW_COPY) : 0;
  if (!split || !plain(g, norm))
    return 0;
  ValueId x = node_value(g, split, 0), rows = node_result(g, split, 0);
  uint32_t rank = value_rank(g, x);
  SymInt groups = node_int(g, norm, 6);
  if (rank < 3 || value_rank(g, rows) != 3 || value_dim(g, rows, 1) != groups ||
      value_dim(g, rows, 0) != value_dim(g, x, 0) || !sym_is_const(groups) || groups < 1 ||
      !sym_is_const(value_dim(g, x, 1)) || value_dim(g, x, 1) % groups != 0 || !match_fits(g, n, x))
    return 0;
  return norm_of(b, x, norm, 0, 0);
}

/* A constant [C, 1, ...] or [1, C, 1, ...] as [C]; 0: v cannot be a weight of x. */
static ValueId by_channel(Graph *g, ValueId v, ValueId x) {
  uint32_t rank = value_rank(g, x), own = value_rank(g, v), channel = own + 1 - rank;
  if (!value_is_const(g, v) || own + 1 < rank || own > rank ||
      value_dtype(g, v) != value_dtype(g, x))
    return 0;
  for (uint32_t i = 0; i < own; i++)
    if (value_dim(g, v, i) != (i == channel ? value_dim(g, x, 1) : 1))
      return 0;
  int64_t channels = value_dim(g, x, 1);
  TypeId type = graph_tensor_type(g, value_dtype(g, v), 1, &channels, ORDER_CONTIGUOUS);
  return graph_add_constant(g, type, *value_lazy_constant(g, v), 0);
}

static ValueId with(Builder *b, NodeId n, uint32_t arg) {
  Graph *g = b->g;
  for (uint32_t i = 0; i < 2; i++) {
    NodeId norm = match_lone_norm(g, node_value(g, n, i), OP_NATIVE_GROUP_NORM);
    ValueId other = node_value(g, n, 1 - i), x = norm ? node_value(g, norm, 0) : 0;
    if (!norm || !node_absent(g, norm, 2) || (arg == 1 && !node_absent(g, norm, 1)) ||
        !match_fits(g, n, x))
      continue;
    ValueId channels = by_channel(g, other, x);
    if (channels)
      return norm_of(b, x, norm, arg == 1 ? channels : node_value(g, norm, 1),
                     arg == 2 ? channels : 0);
  }
  return 0;
}

static ValueId weight(Builder *b, NodeId n) { return with(b, n, 1); }

static ValueId bias(Builder *b, NodeId n) {
  return node_scalar(b->g, n, 2) == 1 ? with(b, n, 2) : 0;
}

Status pass_recover_group_norm(PassContext *p, Graph *g) {
  static const RewriteRule rows[] = {{OP_VIEW_COPY, joined, "norms"},
                                     {OP_MUL_TENSOR, weight, "weights"},
                                     {OP_ADD_TENSOR, bias, "biases"}};
  return pass_rewrite(p, g, rows, COUNT_OF(rows));
}
