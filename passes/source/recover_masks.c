/* where from assignments through a mask, x[mask] = y[mask] or x[mask] = number, which exporters
 * spell as index_put at the positions that nonzero finds: as many as the data say, where the result
 * has the size of x. */
#include "ir/match.h"
#include "passes/pass.h"

/* The indices of n and m are the same values. */
static bool same_indices(const Graph *g, NodeId n, NodeId m) {
  uint32_t count = node_list_count(g, n, 1);
  if (node_list_count(g, m, 1) != count)
    return false;
  for (uint32_t i = 0; i < count; i++)
    if (node_list_value(g, n, 1, i) != node_list_value(g, m, 1, i))
      return false;
  return true;
}

/* v is column i of what nonzero finds; a mask of one dim has one column, taken as a view. */
static NodeId column_of(const Graph *g, ValueId v, uint32_t i, uint32_t count) {
  NodeId n = v ? value_def(g, v) : 0;
  if (!n)
    return 0;
  OpId op = node_cget(g, n)->op;
  bool picked = op == OP_SELECT_COPY_INT && (node_int(g, n, 1) == 1 || node_int(g, n, 1) == -1) &&
                node_int(g, n, 2) == (int64_t)i;
  if (!picked && (op != OP_VIEW_COPY || count != 1))
    return 0;
  return match_op(g, node_value(g, n, 0), OP_NONZERO);
}

/* The bool mask whose true elements the indices of n are, dim by dim; 0 if they are not. */
static ValueId mask_of(const Graph *g, NodeId n) {
  uint32_t count = node_list_count(g, n, 1);
  NodeId found = 0;
  for (uint32_t i = 0; i < count; i++) {
    NodeId rows = column_of(g, node_list_value(g, n, 1, i), i, count);
    if (!rows || (found && rows != found))
      return 0;
    found = rows;
  }
  ValueId mask = found ? node_value(g, found, 0) : 0;
  return mask && value_dtype(g, mask) == DTYPE_BOOL && value_rank(g, mask) == count ? mask : 0;
}

/* The mask has the leading dims of x: where it is shorter, it stands for whole rows. */
static bool covers(const Graph *g, ValueId mask, ValueId x) {
  uint32_t rank = value_rank(g, mask);
  if (rank > value_rank(g, x))
    return false;
  for (uint32_t i = 0; i < rank; i++)
    if (value_dim(g, mask, i) != value_dim(g, x, i))
      return false;
  return true;
}

/* What stands where the mask is true, in a form that fits x: y of y[mask], or one number. */
static ValueId assigned(const Graph *g, NodeId n) {
  ValueId x = node_value(g, n, 0), v = node_value(g, n, 2);
  NodeId read = match_op(g, v, OP_INDEX_TENSOR);
  if (read && same_indices(g, n, read)) {
    ValueId y = node_value(g, read, 0);
    return value_same_type(g, y, x) ? y : 0;
  }
  NodeId spread = match_op(g, v, OP_EXPAND_COPY);
  v = spread ? node_value(g, spread, 0) : v;
  for (uint32_t i = 0; i < value_rank(g, v); i++)
    if (value_dim(g, v, i) != 1)
      return 0;
  return value_rank(g, v) <= value_rank(g, x) ? v : 0;
}

static ValueId masked(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0), mask = mask_of(g, n);
  if (!mask || node_bool(g, n, 3) || !covers(g, mask, x))
    return 0;
  ValueId y = assigned(g, n);
  if (!y)
    return 0;
  Dims dims = value_dims(g, mask);
  while (dims.rank < value_rank(g, x))
    dims.d[dims.rank++] = 1;
  if (dims.rank > value_rank(g, mask))
    mask = build_view_as(b, mask, dims);
  return build(b, OP_WHERE_SELF, A_VAL(mask), A_VAL(y), A_VAL(x));
}

Status pass_recover_masks(PassContext *p, Graph *g) {
  static const RewriteRule rows[] = {{OP_INDEX_PUT, masked, "assignments"}};
  return pass_rewrite(p, g, rows, COUNT_OF(rows));
}
