/* Slices that partition a tensor along one dim, as one split_with_sizes_copy: the same copies in
 * one call. Exporters write chunk and split as slices. They must stand near each other, as all
 * parts need memory from the first on, and without control flow between them. */
#include "passes/pass.h"

enum { PARTS_MAX = 16, NEAR = 64 };

typedef struct Parts {
  uint32_t count;
  NodeId nodes[PARTS_MAX];
  SymInt starts[PARTS_MAX], sizes[PARTS_MAX]; /* in order of the starts */
} Parts;

static bool is_slice(const Graph *g, NodeId n, ValueId x, SymInt dim) {
  return node_cget(g, n)->op == OP_SLICE_COPY_TENSOR && node_value(g, n, 0) == x &&
         node_int(g, n, 1) == dim && node_int(g, n, 4) == 1 && !node_absent(g, n, 2) &&
         sym_is_const(node_int(g, n, 2));
}

static bool insert(const Graph *g, Parts *p, NodeId n, SymInt dim) {
  uint32_t at = p->count;
  SymInt start = node_int(g, n, 2), size = value_dim(g, node_result(g, n, 0), (uint32_t)dim);
  if (at == PARTS_MAX || !sym_is_const(size))
    return false;
  for (; at > 0 && p->starts[at - 1] > start; at--) {
    p->nodes[at] = p->nodes[at - 1];
    p->starts[at] = p->starts[at - 1];
    p->sizes[at] = p->sizes[at - 1];
  }
  p->nodes[at] = n;
  p->starts[at] = start;
  p->sizes[at] = size;
  p->count++;
  return true;
}

/* n and the slices like it behind it, when they are the whole tensor, each part once. */
static bool read_parts(const Graph *g, NodeId n, Parts *p) {
  ValueId x = node_value(g, n, 0);
  SymInt dim = node_int(g, n, 1), at = 0;
  uint32_t steps = 0;
  p->count = 0;
  if (dim < 0 || dim >= value_rank(g, x) || !is_slice(g, n, x, dim) ||
      !dtype_in(value_dtype(g, x), op_row(OP_SPLIT_WITH_SIZES_COPY)->dtypes))
    return false;
  for (NodeId m = n; m && steps < NEAR && !op_has_trait(node_cget(g, m)->op, OP_CONTROL); steps++) {
    if (is_slice(g, m, x, dim) && !insert(g, p, m, dim))
      return false;
    m = node_cget(g, m)->next;
  }
  for (uint32_t i = 0; i < p->count; at += p->sizes[i++])
    if (p->starts[i] != at || p->sizes[i] < 1)
      return false;
  return p->count > 1 && at == value_dim(g, x, (uint32_t)dim);
}

/* Puts the split where the first slice is, and returns it. */
static NodeId rewrite(Builder *b, NodeId n, const Parts *p) {
  Graph *g = b->g;
  ValueId first = build(b, OP_SPLIT_WITH_SIZES_COPY, A_VAL(node_value(g, n, 0)),
                        A_INTS(p->sizes, p->count), A_INT(node_int(g, n, 1)));
  for (uint32_t i = 0; i < p->count && first; i++) {
    ValueId old = node_result(g, p->nodes[i], 0);
    graph_replace_value(g, old, first + i);
    graph_remove_node(g, p->nodes[i]);
  }
  return first ? value_def(g, first) : 0;
}

Status pass_slices_to_split(PassContext *p, Graph *g) {
  Builder b = builder_make(g, 0, 0);
  uint64_t changed = 0;
  Parts parts;
  for (NodeId n = g->first, next; n && b.status == STATUS_OK; n = next) {
    next = node_cget(g, n)->next;
    if (node_cget(g, n)->op != OP_SLICE_COPY_TENSOR || !read_parts(g, n, &parts))
      continue;
    b.before = n;
    b.loc = node_cget(g, n)->loc;
    NodeId split = rewrite(&b, n, &parts);
    next = split ? node_cget(g, split)->next : 0;
    changed += split != 0;
  }
  pass_count(p, "splits", changed);
  return b.status;
}
