/* Slices are taken before the rows that they leave out are computed:
 *   select(linear(gelu(linear(x))), 1, 0)  ->  view(linear(gelu(linear(slice(x, 1, 0, 1))))).
 * Classifiers look at one row of their last layer, language models at the logits of the last token.
 *
 * From the slice back, the nodes are found each of whose rows follows from the same rows of its
 * operands, and whose results nobody wants as a whole. When a matrix product is among them, all are
 * computed for the slice alone, and what they read from other nodes is sliced instead. */
#include "ir/builder.h"
#include "ir/match.h"
#include "ops/quantized.h"
#include "passes/pass.h"

enum { WHOLE = -1, REFUSED = -2, MANY_DIMS = 255 };
enum { REGION_MAX = 256, WALK_MAX = 4096 }; /* nodes of one region; nodes looked at for one */

typedef struct Raise {
  PassContext *p;
  Graph *g;
  Builder b;
  SymInt start, length; /* start < 0: one row, counted from the end of a number that varies */
  int64_t step;
  NodeId slice;
  uint8_t *cut;     /* by ValueId: 1 + the dim along which it is sliced, MANY_DIMS: along several */
  bool *inside;     /* by NodeId: in the region */
  ValueId *sliced;  /* by ValueId from outside: its slice, once there is one */
  ValueId *touched; /* values with an entry in cut or sliced */
  uint32_t touched_count, values, nodes; /* values and nodes from then on are new: they have none */
  NodeId region[REGION_MAX];             /* from the slice back */
  uint32_t count, products;
} Raise;

/* --- what the rows of a result follow from --- */

/* The dim of a broadcast operand that dim d of the result is; it counts from the last one. */
static int broadcast_dim(const Graph *g, ValueId v, ValueId result, uint32_t d) {
  uint32_t missing = value_rank(g, result) - value_rank(g, v);
  if (d < missing)
    return WHOLE;
  SymInt size = value_dim(g, v, d - missing);
  if (size == value_dim(g, result, d))
    return (int)(d - missing);
  return size == 1 ? WHOLE : REFUSED;
}

/* Rows of a product are those of its first operand; both have the dims of the batch. */
static int product_dim(const Graph *g, ValueId v, ValueId result, uint32_t i, uint32_t d) {
  uint32_t rank = value_rank(g, result);
  if (value_rank(g, v) < 2 || rank < 2 || d + 1 == rank)
    return REFUSED;
  if (d + 2 == rank)
    return i == 0 ? (int)value_rank(g, v) - 2 : WHOLE;
  return broadcast_dim(g, v, result, d);
}

/* The dim of v that is dim d of its view, where all dims before it are the same, or all behind. */
static int view_dim(const Graph *g, ValueId v, ValueId result, uint32_t d) {
  uint32_t rank = value_rank(g, result), from = value_rank(g, v), same = 0;
  while (same < rank && same < from && value_dim(g, v, same) == value_dim(g, result, same))
    same++;
  if (d < same)
    return (int)d;
  for (same = 0; same < rank && same < from; same++)
    if (value_dim(g, v, from - 1 - same) != value_dim(g, result, rank - 1 - same))
      break;
  return rank - d <= same ? (int)(from - (rank - d)) : REFUSED;
}

/* The same where the node keeps the dims and does something along one of them. */
static int other_dim(const Graph *g, ValueId v, ValueId result, SymInt axis, uint32_t d) {
  uint32_t rank = value_rank(g, result);
  return wrap_dim(axis, rank) == d || value_rank(g, v) != rank ? REFUSED : (int)d;
}

/* The same for a function of rows whose other operands are the same for all of them; the last
 * `inside` dims belong to a row. */
static int row_dim(const Graph *g, ValueId result, uint32_t i, uint32_t inside, uint32_t d) {
  return d + inside >= value_rank(g, result) ? REFUSED : i == 0 ? (int)d : WHOLE;
}

static int select_dim(const Graph *g, ValueId v, SymInt axis, uint32_t d) {
  return (int)(d < wrap_dim(axis, value_rank(g, v)) ? d : d + 1);
}

/* The dim along which operand v, in argument i of n, is sliced when the result is along d; WHOLE,
 * or REFUSED. */
static int operand_dim(const Graph *g, NodeId n, uint32_t i, ValueId v, uint32_t d) {
  ValueId result = node_result(g, n, 0);
  switch (node_cget(g, n)->op) {
  case OP_LINEAR:
    return row_dim(g, result, i, 1, d);
  case OP_MATMUL:
  case OP_BMM:
  case OP_MM:
    return product_dim(g, v, result, i, d);
  case OP_SOFTMAX:
  case OP_CAT:
  case OP_SLICE_COPY_TENSOR:
    return other_dim(g, v, result, node_int(g, n, 1), d);
  case OP_NATIVE_LAYER_NORM:
  case OP_RMS_NORM:
    return row_dim(g, result, i, node_list_count(g, n, 1), d);
  case OP_PERMUTE_COPY:
    return (int)wrap_dim(node_ints(g, n, 1)[d], value_rank(g, v));
  case OP_SELECT_COPY_INT:
    return select_dim(g, v, node_int(g, n, 1), d);
  case OP_VIEW_COPY:
    return view_dim(g, v, result, d);
  default:
    return op_has_trait(node_cget(g, n)->op, OP_ELEMENTWISE) ? broadcast_dim(g, v, result, d)
                                                             : REFUSED;
  }
}

static bool is_product(const Graph *g, NodeId n) {
  return match_matrix_product(node_cget(g, n)->op);
}

/* --- the region --- */

static void touch(Raise *r, ValueId v) { r->touched[r->touched_count++] = v; }

/* Nodes of the region alone, and the slice, use v, and only as it is sliced along d. */
static bool only_sliced(const Raise *r, ValueId v, uint32_t d) {
  const Graph *g = r->g;
  bool ok = true;
  for (UseId u = first_use(g, v); u && ok; u = g->uses[u].next) {
    NodeId user = g->uses[u].node;
    if (user == r->slice)
      continue;
    ok = user < r->nodes && r->inside[user];
    if (!ok)
      break;
    uint32_t along = r->cut[node_result(g, user, 0)] - 1u;
    FOR_ARG_OPERANDS(g, user, i, w,
                     ok = ok && (w != v || operand_dim(g, user, i, w, along) == (int)d);)
  }
  return ok;
}

/* Whether v is dequantized by the range of all its rows. A backend that computes the range together
 * with the product would take that of the rows that are left. */
static bool has_range_of_all(const Graph *g, ValueId v) {
  NodeId n = moved_dequantize(g, v);
  if (!n)
    return false;
  Quantization q = quantization_of(g, n);
  return q.dynamic && !q.rows;
}

/* Whether n may be in the region: all its rows follow from rows of operands (those of arange follow
 * from none), and none is wanted by others. */
static bool fits(const Raise *r, NodeId n) {
  const Graph *g = r->g;
  ValueId v = node_result(g, n, 0);
  uint32_t d = r->cut[v] - 1u;
  if (r->cut[v] == MANY_DIMS || r->count == REGION_MAX || !only_sliced(r, v, d))
    return false;
  bool ok = node_unused(g, n, 1), from_rows = false;
  FOR_ARG_OPERANDS(g, n, i, w, {
    int dim = w && w < r->values ? operand_dim(g, n, i, w, d) : REFUSED;
    ok = ok && dim != REFUSED && (dim < 0 || !is_product(g, n) || !has_range_of_all(g, w));
    from_rows = from_rows || dim >= 0;
  })
  return ok && from_rows;
}

/* Returns how many operands are the results of nodes, and were not yet to be sliced. */
static uint32_t take(Raise *r, NodeId n) {
  const Graph *g = r->g;
  uint32_t d = r->cut[node_result(g, n, 0)] - 1u, more = 0;
  r->region[r->count++] = n;
  r->inside[n] = true;
  r->products += is_product(g, n);
  FOR_ARG_OPERANDS(g, n, i, w, {
    int dim = operand_dim(g, n, i, w, d);
    if (dim == WHOLE)
      continue;
    if (!r->cut[w]) {
      touch(r, w);
      r->cut[w] = (uint8_t)(dim + 1);
      more += value_def(g, w) != 0;
    } else if (r->cut[w] != dim + 1) {
      r->cut[w] = MANY_DIMS;
    }
  })
  return more;
}

static void find_region(Raise *r, ValueId x, uint32_t d) {
  const Graph *g = r->g;
  uint32_t open = 1;
  touch(r, x);
  r->cut[x] = (uint8_t)(d + 1);
  NodeId n = value_def(g, x);
  for (uint32_t i = 0; n && open && i < WALK_MAX; i++, n = node_cget(g, n)->prev) {
    if (n >= r->nodes || !node_cget(g, n)->result_count || !r->cut[node_result(g, n, 0)])
      continue;
    open--;
    if (fits(r, n))
      open += take(r, n);
    else if (r->count == 0)
      return;
  }
}

/* --- the change --- */

/* The slice of v along d before n. */
static ValueId slice_of(Raise *r, NodeId n, ValueId v, uint32_t d) {
  bool one_dim = r->cut[v] != MANY_DIMS;
  if (one_dim && r->sliced[v])
    return r->sliced[v];
  r->b.before = n;
  r->b.loc = node_cget(r->g, r->slice)->loc;
  ValueId y;
  if (r->start < 0) { /* a select, whose result has one row whatever its index is */
    Dims row = value_dims(r->g, v);
    row.d[d] = 1;
    y = build(&r->b, OP_SELECT_COPY_INT, A_VAL(v), A_INT(d), A_INT(r->start));
    y = build_view_as(&r->b, y, row);
  } else {
    SymInt end = r->start + (r->length - 1) * r->step + 1;
    y = build_slice(&r->b, v, d, r->start, end, r->step);
  }
  if (one_dim)
    r->sliced[v] = y;
  return y;
}

/* Slices what argument i of n reads from outside the region. */
static void slice_argument(Raise *r, NodeId n, uint32_t i) {
  Graph *g = r->g;
  uint32_t d = r->cut[node_result(g, n, 0)] - 1u;
  ArgIn arg = node_arg_in(g, n, i, r->p->scratch);
  ValueId one = (ValueId)arg.i, *list = arg.kind == ARG_VALUES
                                            ? ARENA_ARRAY(r->p->scratch, ValueId, arg.count + 1)
                                            : &one;
  uint32_t count = arg_operand_count(node_arg(g, n, i));
  for (uint32_t k = 0; k < count; k++) {
    ValueId v = arg.kind == ARG_VALUES ? arg.values[k] : one;
    int dim = operand_dim(g, n, i, v, d);
    list[k] = dim == WHOLE || r->inside[value_def(g, v)] ? v : slice_of(r, n, v, (uint32_t)dim);
  }
  if (count && r->b.status == STATUS_OK)
    node_set_arg(g, n, i, arg.kind == ARG_VALUES ? A_VALS(list, count) : A_VAL(one));
}

static void change_view(Raise *r, NodeId n) {
  Dims size = value_dims(r->g, node_result(r->g, n, 0));
  size.d[r->cut[node_result(r->g, n, 0)] - 1u] = r->length;
  node_set_arg(r->g, n, 1, A_INTS(size.d, size.rank));
}

/* Operands first, while the types are those of before. */
static Status change_region(Raise *r) {
  Graph *g = r->g;
  for (uint32_t k = r->count; k-- > 0 && r->b.status == STATUS_OK;) {
    NodeId n = r->region[k];
    for (uint32_t i = 0; i < node_cget(g, n)->arg_count; i++)
      slice_argument(r, n, i);
    if (node_cget(g, n)->op == OP_VIEW_COPY)
      change_view(r, n);
  }
  TRY(r->b.status);
  for (uint32_t k = r->count; k-- > 0;) {
    value_get(g, node_result(g, r->region[k], 0))->name = 0; /* of the value with all rows */
    TRY(shape_run(g, r->region[k]));
  }
  return STATUS_OK;
}

static Status replace_slice(Raise *r, ValueId x) {
  Graph *g = r->g;
  ValueId y = node_result(g, r->slice, 0);
  r->b.before = r->slice;
  r->b.loc = node_cget(g, r->slice)->loc;
  x = build_view_as(&r->b, x, value_dims(g, y));
  TRY(r->b.status);
  graph_replace_value(g, y, x);
  graph_remove_node(g, r->slice);
  return STATUS_OK;
}

static void forget(Raise *r) {
  for (uint32_t i = 0; i < r->touched_count; i++) {
    r->cut[r->touched[i]] = 0;
    r->sliced[r->touched[i]] = 0;
  }
  for (uint32_t i = 0; i < r->count; i++)
    r->inside[r->region[i]] = false;
  r->touched_count = r->count = r->products = 0;
}

/* --- the slices --- */

static bool is_slice(const Graph *g, NodeId n) {
  return node_cget(g, n)->op == OP_SELECT_COPY_INT || node_cget(g, n)->op == OP_SLICE_COPY_TENSOR;
}

/* Whether the rows are known numbers, or one of a number that varies. */
static bool rows_are_known(const Raise *r, bool select, SymInt size) {
  return sym_is_const(r->start) && sym_is_const(r->length) && r->length > 0 &&
         (sym_is_const(size) ? r->start >= -size : select);
}

/* Reads a select or a slice that leaves out half of the rows or more. */
static bool read_slice(Raise *r, NodeId n, uint32_t *d) {
  const Graph *g = r->g;
  ValueId x = node_value(g, n, 0);
  if (x >= r->values || !value_used_once(g, x) || !value_def(g, x))
    return false;
  bool select = node_cget(g, n)->op == OP_SELECT_COPY_INT;
  *d = (uint32_t)wrap_dim(node_int(g, n, 1), value_rank(g, x));
  SymInt size = value_dim(g, x, *d);
  r->start = node_int_or(g, n, 2, 0);
  r->step = select ? 1 : node_int(g, n, 4);
  r->length = select ? 1 : value_dim(g, node_result(g, n, 0), *d);
  if (!rows_are_known(r, select, size) || (sym_is_const(size) && r->length > size / 2))
    return false;
  if (r->start < 0 && sym_is_const(size))
    r->start += size;
  return true;
}

static Status raise_slice(Raise *r, NodeId n) {
  ValueId x = node_value(r->g, n, 0);
  uint32_t d;
  if (!read_slice(r, n, &d))
    return STATUS_OK;
  r->slice = n;
  find_region(r, x, d);
  Status status = STATUS_OK;
  if (r->products) {
    pass_count(r->p, "slices", 1);
    status = change_region(r);
    if (status == STATUS_OK)
      status = replace_slice(r, x);
  }
  forget(r);
  return status;
}

Status pass_raise_slices(PassContext *p, Graph *g) {
  Raise r = {.p = p, .g = g, .b = builder_make(g, 0, 0)};
  NodeId *slices = ARENA_ARRAY(p->scratch, NodeId, g->live_nodes + 1);
  uint32_t count = 0;
  for (FOR_NODES(g, n))
    if (is_slice(g, n))
      slices[count++] = n;
  if (!count)
    return STATUS_OK;
  r.values = g->value_count;
  r.nodes = g->node_count;
  r.cut = ARENA_ARRAY(p->scratch, uint8_t, r.values);
  r.inside = ARENA_ARRAY(p->scratch, bool, r.nodes);
  r.sliced = ARENA_ARRAY(p->scratch, ValueId, r.values);
  r.touched = ARENA_ARRAY(p->scratch, ValueId, r.values);
  while (count-- > 0)
    TRY(raise_slice(&r, slices[count]));
  return STATUS_OK;
}
