/* Products with a constant matrix whose rows a loop takes one after the other are computed ahead of
 * it, all at once:
 *   loop i < n: y = mm(x[i], w)  ->  all = mm(x, w); loop i < n: y = all[i].
 * Cells of recurrent networks that are spelt out in the body of Loop or Scan multiply their input
 * so. A product of many rows reads the matrix once, and one of a row reads it each time. */
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

static bool is_product(const Graph *g, NodeId n) {
  OpId op = (OpId)node_cget(g, n)->op;
  if (op != OP_MM && op != OP_LINEAR)
    return false;
  ValueId bias = op == OP_LINEAR && !node_absent(g, n, 2) ? node_value(g, n, 2) : 0;
  return value_is_const(g, node_value(g, n, 1)) && (!bias || value_is_const(g, bias));
}

/* The product of all rows, before the loop: [trips, rows of one, columns]. */
static ValueId multiply_all(const Hoist *h, NodeId n, ValueId x) {
  Graph *g = h->g;
  ValueId w = node_value(g, n, 1), y = node_result(g, n, 0);
  SymInt columns = value_dim(g, y, value_rank(g, y) - 1),
         inner = value_dim(g, x, value_rank(g, x) - 1);
  Builder b = builder_make(g, h->loop, node_cget(g, n)->loc);
  SymInt rows = 1;
  for (uint32_t i = 1; i + 1 < value_rank(g, x); i++)
    rows = sym_mul(&g->syms, rows, value_dim(g, x, i));
  SymInt flat[] = {sym_mul(&g->syms, h->trips, rows), inner}, dims[] = {h->trips, rows, columns};
  ValueId all = build_view(&b, x, flat, 2);
  if (node_cget(g, n)->op == OP_MM)
    all = build(&b, OP_MM, A_VAL(all), A_VAL(w));
  else
    all = build(&b, OP_LINEAR, A_VAL(all), A_VAL(w),
                A_OPT(node_absent(g, n, 2) ? 0 : node_value(g, n, 2)));
  all = build_view(&b, all, dims, 3);
  return b.status == STATUS_OK ? all : 0;
}

static Status hoist(const Hoist *h, NodeId n, ValueId x) {
  Graph *g = h->g;
  ValueId y = node_result(g, n, 0), all = multiply_all(h, n, x);
  if (!all)
    return STATUS_INTERNAL;
  Builder b = builder_make(g, n, node_cget(g, n)->loc);
  ValueId row = build(&b, OP_SELECT_COPY_INT, A_VAL(all), A_INT(0), A_INT(h->counter));
  row = build_view_as(&b, row, value_dims(g, y));
  TRY(b.status);
  graph_replace_value(g, y, row);
  graph_remove_node(g, n);
  return STATUS_OK;
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

Status pass_hoist_products(PassContext *p, Graph *g) {
  Hoist h = {.g = g, .nodes = g->node_count};
  NodeId at;
  uint64_t count = 0;
  if (regions_find(g, p->scratch, &h.regions, &at) != NULL || !h.regions.any)
    return STATUS_OK;
  for (FOR_NODES(g, n)) {
    if (n >= h.nodes || node_cget(g, n)->op != OP_LOOP || !is_counted(g, &h.regions, n))
      continue;
    h.loop = n;
    h.counter = value_type(g, node_result(g, n, 0))->dims[0];
    h.trips = node_arg(g, n, 0)->i;
    TRY(hoist_from(&h, &count));
  }
  pass_count(p, "products", count);
  return STATUS_OK;
}
