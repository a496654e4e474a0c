/* See window_lines.h. */
#include "passes/executorch/window_lines.h"

#include "ir/match.h"
#include "passes/executorch/views.h"

/* Zeros that another node puts around x are gathered with the windows (windows.c): x stays. */
static bool is_line(const Graph *g, NodeId n) {
  if (node_cget(g, n)->op != OP_CONVOLUTION || node_bool(g, n, 6))
    return false;
  ValueId x = node_value(g, n, 0), weight = node_value(g, n, 1);
  return value_rank(g, x) == 4 && value_dim(g, x, 2) == 1 && value_dim(g, weight, 2) == 1 &&
         node_ints(g, n, 4)[0] == 0 && !match_op_once(g, x, OP_CONSTANT_PAD_ND);
}

/* v without dim 2, its bytes where they are. */
static ValueId without_rows(Builder *b, ValueId v) {
  SymInt dims[] = {value_dim(b->g, v, 0), value_dim(b->g, v, 1), value_dim(b->g, v, 3)};
  return build_reshaped(b, v, dims, 3);
}

static void rewrite(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId result = node_result(g, n, 0);
  const Type type = *value_type(g, result);
  b->before = n;
  b->loc = node_cget(g, n)->loc;
  ValueId x = without_rows(b, node_value(g, n, 0)), weight = without_rows(b, node_value(g, n, 1));
  int64_t stride = node_entry(g, n, 3, 1, 1), padding = node_entry(g, n, 4, 1, 0),
          dilation = node_entry(g, n, 5, 1, 1), output_padding = 0;
  ValueId y = build(b, OP_CONVOLUTION, A_VAL(x), A_VAL(weight), A_OPT(node_value(g, n, 2)),
                    A_INTS(&stride, 1), A_INTS(&padding, 1), A_INTS(&dilation, 1), A_BOOL(false),
                    A_INTS(&output_padding, 1), A_INT(node_int(g, n, 8)));
  y = build_et_view(b, y, type.dims, type.rank);
  if (b->status != STATUS_OK)
    return;
  graph_replace_value(g, result, y);
  graph_remove_node(g, n);
}

Status window_lines(Graph *g) {
  Builder b = builder_make(g, 0, 0);
  for (NodeId n = g->first, next; n && b.status == STATUS_OK; n = next) {
    next = node_cget(g, n)->next;
    if (is_line(g, n))
      rewrite(&b, n);
  }
  return b.status;
}
