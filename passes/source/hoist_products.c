/* Products with a constant matrix whose rows a loop takes one after the other are computed ahead of
 * it, all at once:
 *   loop i < n: y = mm(x[i], w)  ->  all = mm(x, w); loop i < n: y = all[i].
 * Cells of recurrent networks that are spelt out in the body of Loop or Scan multiply their input
 * so. A product of many rows reads the matrix once, and one of a row reads it each time.
 *
 * So are products of each row of a tensor where an exporter has unrolled the loop:
 *   y0 = mm(x[0], w); y1 = mm(x[1], w)  ->  all = mm(x, w); y0 = all[0]; y1 = all[1]. */
#include <stdlib.h>

#include "ir/builder.h"
#include "ir/match.h"
#include "ir/region.h"
#include "passes/pass.h"

typedef struct Hoist {
  Graph *g;
  Regions regions;
  NodeId nodes;   /* those from then on are new, and what products are rows of is before the loop */
  NodeId loop;    /* whose body is looked at */
  SymInt counter; /* the number of the iteration */
  SymInt trips;
} Hoist;

/* A loop that nothing but the number of its iterations ends. */
static bool is_counted(const Graph *g, const Regions *r, NodeId loop) {
  ValueId counter = node_result(g, loop, 0);
  return node_arg(g, loop, 0)->kind == ARG_INT && node_absent(g, loop, 1) &&
         node_absent(g, r->partner[loop], 0) && value_rank(g, counter) == 1;
}

/* Whether v, a tensor of one element, is the number of the iteration. */
static bool is_counter(const Hoist *h, ValueId v) {
  NodeId n = match_op(h->g, v, OP_VIEW_COPY);
  n = match_op(h->g, n ? node_value(h->g, n, 0) : v, OP_SCALAR_TENSOR);
  return n && node_arg(h->g, n, 0)->kind == ARG_INT && node_int(h->g, n, 0) == h->counter;
}

/* What the node takes a row of in each iteration, the rows in their order; 0 for another node. */
static ValueId rows_of(const Hoist *h, NodeId n) {
  const Graph *g = h->g;
  OpId op = (OpId)node_cget(g, n)->op;
  bool row = false;
  if (op == OP_SELECT_COPY_INT)
    row = node_int(g, n, 1) == 0 && node_int(g, n, 2) == h->counter;
  else if (op == OP_INDEX_TENSOR)
    row = node_list_count(g, n, 1) == 1 && is_counter(h, node_list_value(g, n, 1, 0));
  if (!row)
    return 0;
  ValueId x = node_value(g, n, 0);
  NodeId def = value_def(g, x);
  bool outside = !def || def >= h->nodes ||
                 !region_within(&h->regions, region_of_results(g, &h->regions, def), h->loop);
  return outside && value_dim(g, x, 0) == h->trips ? x : 0;
}

/* The rows whose i-th one is operand v of a product, but for dims of 1 in front; 0: none. */
static ValueId operand_rows(const Hoist *h, ValueId v) {
  const Graph *g = h->g;
  SymInt columns = value_dim(g, v, value_rank(g, v) - 1);
  for (NodeId n = value_def(g, v); n; n = value_def(g, v)) {
    ValueId x = rows_of(h, n);
    if (x)
      return value_dim(g, x, value_rank(g, x) - 1) == columns ? x : 0;
    if (node_cget(g, n)->op != OP_VIEW_COPY)
      return 0;
    v = node_value(g, n, 0);
  }
  return 0;
}

static ValueId bias_of(const Graph *g, NodeId n) {
  return node_cget(g, n)->op == OP_LINEAR && !node_absent(g, n, 2) ? node_value(g, n, 2) : 0;
}

static bool is_product(const Graph *g, NodeId n) {
  OpId op = (OpId)node_cget(g, n)->op;
  if (op != OP_MM && op != OP_LINEAR)
    return false;
  ValueId bias = bias_of(g, n);
  return value_is_const(g, node_value(g, n, 1)) && (!bias || value_is_const(g, bias));
}

/* The product n with all rows of x, before the node: the dims of x, but the last one. */
static Status multiply_all(Graph *g, NodeId n, ValueId x, NodeId before, ValueId *all) {
  ValueId w = node_value(g, n, 1), y = node_result(g, n, 0);
  Dims dims = value_dims(g, x);
  SymInt inner = dims.d[dims.rank - 1];
  Builder b = builder_make(g, before, node_cget(g, n)->loc);
  dims.d[dims.rank - 1] = value_dim(g, y, value_rank(g, y) - 1);
  SymInt flat[] = {sym_product(&g->syms, dims.d, dims.rank - 1), inner};
  ValueId rows = build_view(&b, x, flat, 2),
          product = node_cget(g, n)->op == OP_MM
                        ? build(&b, OP_MM, A_VAL(rows), A_VAL(w))
                        : build(&b, OP_LINEAR, A_VAL(rows), A_VAL(w), A_OPT(bias_of(g, n)));
  *all = build_view_as(&b, product, dims);
  return b.status;
}

/* Row `at` of `all` along the dim takes the place of the product n. */
static Status take_row(Graph *g, NodeId n, ValueId all, uint32_t dim, SymInt at) {
  ValueId y = node_result(g, n, 0);
  Builder b = builder_make(g, n, node_cget(g, n)->loc);
  ValueId row = build(&b, OP_SELECT_COPY_INT, A_VAL(all), A_INT(dim), A_INT(at));
  row = build_view_as(&b, row, value_dims(g, y));
  TRY(b.status);
  graph_replace_value(g, y, row);
  graph_remove_node(g, n);
  return STATUS_OK;
}

/* --- loops --- */

static Status hoist(const Hoist *h, NodeId n, ValueId x) {
  ValueId all;
  TRY(multiply_all(h->g, n, x, h->loop, &all));
  return take_row(h->g, n, all, 0, h->counter);
}

static Status hoist_from(Hoist *h, uint64_t *count) {
  const Graph *g = h->g;
  NodeId end = h->regions.partner[h->loop];
  for (NodeId n = node_cget(g, h->loop)->next, next; n != end; n = next) {
    next = node_cget(g, n)->next;
    bool inside = h->regions.scope[n] == h->loop;
    ValueId x = inside && is_product(g, n) ? operand_rows(h, node_value(g, n, 0)) : 0;
    if (x)
      TRY(hoist(h, n, x));
    *count += x != 0;
  }
  return STATUS_OK;
}

/* --- loops that were unrolled --- */

/* A product of row `at` of x along a dim. */
typedef struct Unrolled {
  ValueId x, w, bias;
  uint32_t dim, at;
  NodeId scope, node;
} Unrolled;

/* Which row of its operand v is, of `size` along the dim; -1: none. */
static SymInt row_of(const Graph *g, ValueId v, uint32_t dim, SymInt size) {
  NodeId n = value_def(g, v);
  OpId op = (OpId)node_cget(g, n)->op;
  SymInt at = -1;
  if (op == OP_SELECT_COPY_INT)
    at = node_int(g, n, 2);
  else if (value_dim(g, v, dim) != 1)
    return -1;
  else if (op == OP_SLICE_COPY_TENSOR)
    at = node_int_or(g, n, 2, 0);
  else if (node_cget(g, n)->result_count == size)
    return (SymInt)(v - node_result(g, n, 0));
  else
    return -1;
  return !sym_is_const(at) || at < -size || at >= size ? -1 : at < 0 ? at + size : at;
}

/* Finds the row of a tensor that v is, but for dims of 1. */
static bool find_row(const Graph *g, ValueId v, Unrolled *u) {
  SymInt columns = value_dim(g, v, value_rank(g, v) - 1);
  v = match_unviewed(g, v);
  NodeId n = value_def(g, v);
  OpId op = n ? (OpId)node_cget(g, n)->op : OP_NONE;
  bool split = op == OP_SPLIT_WITH_SIZES_COPY;
  if (op != OP_SELECT_COPY_INT && op != OP_SLICE_COPY_TENSOR && !split)
    return false;
  u->x = node_value(g, n, 0);
  uint32_t rank = value_rank(g, u->x);
  u->dim = (uint32_t)wrap_dim(node_int(g, n, split ? 2 : 1), rank);
  SymInt size = value_dim(g, u->x, u->dim),
         at = sym_is_const(size) ? row_of(g, v, u->dim, size) : -1;
  u->at = (uint32_t)at;
  return at >= 0 && u->dim + 1 < rank && value_dim(g, u->x, rank - 1) == columns;
}

static int compare_unrolled(const void *a, const void *b) {
  const Unrolled *x = a, *y = b;
  const uint32_t keys[][2] = {{x->x, y->x},       {x->dim, y->dim},     {x->w, y->w},
                              {x->bias, y->bias}, {x->scope, y->scope}, {x->at, y->at}};
  for (size_t i = 0; i < COUNT_OF(keys); i++)
    if (keys[i][0] != keys[i][1])
      return keys[i][0] < keys[i][1] ? -1 : 1;
  return 0;
}

static bool are_of_one_product(const Graph *g, const Unrolled *a, const Unrolled *b) {
  return a->x == b->x && a->dim == b->dim && a->w == b->w && a->bias == b->bias &&
         a->scope == b->scope && node_cget(g, a->node)->op == node_cget(g, b->node)->op;
}

/* Whether these are products of all rows, each once. */
static bool are_all_rows(const Graph *g, const Unrolled *u, uint32_t count) {
  bool all = count > 1 && value_dim(g, u->x, u->dim) == count;
  for (uint32_t i = 0; i < count; i++)
    all = all && u[i].at == i;
  return all;
}

/* places: by node, its place in the order of the graph. */
static Status join(Graph *g, const Unrolled *u, uint32_t count, const uint32_t *places) {
  NodeId first = u[0].node;
  for (uint32_t i = 1; i < count; i++)
    first = places[u[i].node] < places[first] ? u[i].node : first;
  ValueId all;
  TRY(multiply_all(g, first, u->x, first, &all));
  for (uint32_t i = 0; i < count; i++)
    TRY(take_row(g, u[i].node, all, u->dim, u[i].at));
  return STATUS_OK;
}

static Status join_unrolled(PassContext *p, const Hoist *h, uint64_t *joined) {
  Graph *g = h->g;
  Unrolled *found = ARENA_ARRAY(p->scratch, Unrolled, g->live_nodes + 1);
  uint32_t *places = ARENA_ARRAY(p->scratch, uint32_t, g->node_count), count = 0, place = 0;
  for (FOR_NODES(g, n)) {
    Unrolled u = {.node = n, .scope = h->regions.any && n < h->nodes ? h->regions.scope[n] : 0};
    places[n] = place++;
    if (n >= h->nodes || !is_product(g, n) || !find_row(g, node_value(g, n, 0), &u))
      continue;
    u.w = node_value(g, n, 1);
    u.bias = bias_of(g, n);
    found[count++] = u;
  }
  qsort(found, count, sizeof *found, compare_unrolled);
  for (uint32_t i = 0, end; i < count; i = end) {
    for (end = i + 1; end < count && are_of_one_product(g, &found[i], &found[end]);)
      end++;
    if (!are_all_rows(g, found + i, end - i))
      continue;
    TRY(join(g, found + i, end - i, places));
    *joined += end - i;
  }
  return STATUS_OK;
}

static Status hoist_from_loops(Hoist *h, uint64_t *count) {
  const Graph *g = h->g;
  for (FOR_NODES(g, n)) {
    if (n >= h->nodes || node_cget(g, n)->op != OP_LOOP || !is_counted(g, &h->regions, n))
      continue;
    h->loop = n;
    h->counter = value_type(g, node_result(g, n, 0))->dims[0];
    h->trips = node_arg(g, n, 0)->i;
    TRY(hoist_from(h, count));
  }
  return STATUS_OK;
}

Status pass_hoist_products(PassContext *p, Graph *g) {
  Hoist h = {.g = g, .nodes = g->node_count};
  NodeId at;
  uint64_t count = 0;
  if (regions_find(g, p->scratch, &h.regions, &at) != NULL)
    return STATUS_OK;
  if (h.regions.any)
    TRY(hoist_from_loops(&h, &count));
  TRY(join_unrolled(p, &h, &count));
  pass_count(p, "products", count);
  return STATUS_OK;
}
