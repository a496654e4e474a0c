/* See plan.h. */
#include "backends/xnnpack/plan.h"

#include "backends/xnnpack/cut.h"

/* The vertices of the cut: its ends are the layouts, plain and NHWC; every node that takes either
 * is one, and so is the presence of a value in a layout. */
enum { PLAIN = CUT_FIRST, NHWC = CUT_SECOND };

/* The place `item` is wanted in the layout of a vertex. */
typedef struct Want {
  uint32_t item, vertex;
} Want;

typedef struct Plan {
  XnnLowering *l;
  Cut cut;
  Want *wants;
  uint32_t want_count, want_capacity;
  uint32_t *nodes; /* vertices of the nodes, in order */
} Plan;

/* The layouts of a node: those of its operands and those of its results. */
typedef struct Sides {
  uint32_t in, out;
} Sides;

/* --- what nodes want --- */

static bool is_number(const Graph *g, ValueId v) {
  Quantization q;
  return value_type(g, v)->kind == TYPE_TENSOR &&
         (dtype_is_float(value_dtype(g, v)) || xl_codes(g, v, &q));
}

/* Whether v, an operand of a node whose result has that rank, has a form in NHWC that goes with the
 * result's: it has the rank, or is a constant that has one dim less, or one element. */
static bool fits(const Graph *g, ValueId v, uint32_t rank) {
  uint32_t own = value_rank(g, v);
  return own == rank ||
         (is_constant_or_codes(g, v) && (own + 1 == rank || moves_elements(g, v) == 1));
}

/* The first operand; of what is quantized at run time and dequantized, the floats. */
static ValueId first_operand(const Graph *g, NodeId n) {
  ValueId v = node_value(g, n, 0);
  return xl_layouts(node_cget(g, n)->op) == XL_DYNAMIC ? node_value(g, value_def(g, v), 0) : v;
}

/* Whether the node has a form in NHWC: as XL_FIRST, XL_BINARY and XL_CAT say. */
static bool takes_nhwc(const Graph *g, NodeId n, XnnLayouts layouts) {
  ValueId y = node_result(g, n, 0);
  uint32_t rank = value_rank(g, y);
  if (!xl_has_layouts(g, y))
    return false;
  if (layouts == XL_FIRST || layouts == XL_DYNAMIC)
    return is_number(g, first_operand(g, n)) && value_rank(g, first_operand(g, n)) == rank;
  FOR_OPERANDS(g, n, v, {
    if (v && (layouts == XL_CAT ? value_rank(g, v) != rank : !fits(g, v, rank)))
      return false;
  })
  return true;
}

static uint32_t either(Plan *p, uint64_t plain, uint64_t nhwc) {
  uint32_t vertex = cut_vertex(&p->cut);
  cut_arc(&p->cut, vertex, NHWC, plain);
  cut_arc(&p->cut, PLAIN, vertex, nhwc);
  return vertex;
}

static Sides alike(uint32_t vertex) { return (Sides){vertex, vertex}; }

static Sides of_mean(Plan *p, NodeId n) {
  switch (xl_mean_form(p->l, n)) {
  case MEAN_OF_IMAGE:
    return (Sides){NHWC, PLAIN};
  case MEAN_OF_PLANES:
    return (Sides){either(p, 0, 0), PLAIN};
  case MEAN_OF_CHANNELS:
    return alike(either(p, 0, 0));
  default:
    return alike(PLAIN);
  }
}

/* The dim of a softmax is moved to the end and back unless it is there. */
static Sides of_softmax(Plan *p, NodeId n) {
  Graph *g = p->l->g;
  ValueId x = node_value(g, n, 0);
  uint32_t rank = value_rank(g, x);
  if (!xl_has_layouts(g, x))
    return alike(PLAIN);
  uint32_t axis = xl_axis(node_int(g, n, 1), rank);
  uint64_t cost = 2 * transpose_cost(moves_elements(g, x),
                                     (uint64_t)sym_upper(&g->syms, value_dim(g, x, axis)));
  return alike(either(p, axis + 1 == rank ? 0 : cost, axis == 1 ? 0 : cost));
}

static Sides of_norm(Plan *p, NodeId n) {
  Graph *g = p->l->g;
  ValueId x = node_value(g, n, 0);
  if (value_rank(g, x) != 4)
    return alike(PLAIN);
  bool varies = !sym_is_const(value_dim(g, x, 2)) || !sym_is_const(value_dim(g, x, 3));
  return alike(varies ? NHWC : either(p, 0, 0));
}

static Sides sides_of(Plan *p, NodeId n) {
  Graph *g = p->l->g;
  XnnLayouts layouts = xl_layouts(node_cget(g, n)->op);
  switch (layouts) {
  case XL_IMAGE:
    return alike(xl_has_layouts(g, node_result(g, n, 0)) ? NHWC : PLAIN);
  case XL_DYNAMIC:
  case XL_FIRST:
  case XL_BINARY:
  case XL_CAT:
    return alike(takes_nhwc(g, n, layouts) ? either(p, 0, 0) : PLAIN);
  case XL_MEAN:
    return of_mean(p, n);
  case XL_SOFTMAX:
    return of_softmax(p, n);
  case XL_NORM:
    return of_norm(p, n);
  case XL_WHERE: {
    ValueId slope = xl_prelu_slope(g, n);
    bool nhwc = slope && xl_has_layouts(g, node_result(g, n, 0)) &&
                fits(g, slope, value_rank(g, node_result(g, n, 0)));
    return alike(nhwc ? either(p, 0, 0) : PLAIN);
  }
  default:
    return alike(PLAIN);
  }
}

/* --- the graph --- */

static void want(Plan *p, ValueId v, uint32_t vertex) {
  Graph *g = p->l->g;
  if (!v || is_constant_or_codes(g, v) || !is_number(g, v))
    return;
  Place *place = places_make(&p->l->places, v);
  POOL_PUSH(p->wants, p->want_count, p->want_capacity,
            (Want){(uint32_t)(place - p->l->places.items), vertex});
}

/* Has each way from a layout of the source to one of y few enough dims? */
static bool routes_fit(Graph *g, const Moves *m, ValueId y) {
  for (uint32_t from = 0; from <= xl_has_layouts(g, m->from); from++)
    for (uint32_t to = 0; to <= xl_has_layouts(g, y); to++)
      if (moves_route(m, g, from, to).rank > XNN_MAX_RANK)
        return false;
  return true;
}

/* Whether a view of the partition splits one of the dims into several dynamic ones: it may be
 * stored unmerged, and these steps begin with a whole value. */
static bool may_be_unmerged(const XnnLowering *l, ValueId v) {
  for (uint32_t i = 0; i < value_rank(l->g, v); i++) {
    const XnnSplit *split = xl_split_of(l, value_dim(l->g, v, i));
    if (split && split->several)
      return true;
  }
  return false;
}

/* A value in the memory of l->arena with one step more than x, the operand of n; NULL when it has
 * to be computed. It can be had by one transpose from either layout and in either layout, and one
 * dim may vary, so that getting it is never refused. */
static const Moves *steps(XnnLowering *l, NodeId n, bool permutes) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  const Place *place = places_find(&l->places, x);
  if (!is_number(g, x) || value_rank(g, x) > XNN_MAX_RANK || value_rank(g, y) > XNN_MAX_RANK)
    return NULL;
  Moves m = place && place->moves ? *place->moves : moves_none(g, x);
  uint32_t perm[XNN_MAX_RANK], varying = 0;
  if (permutes) {
    for (uint32_t i = 0; i < m.rank; i++)
      perm[i] = xl_axis(node_ints(g, n, 1)[i], m.rank);
    moves_permute(&m, perm);
  } else if (!moves_view(&m, g, y)) {
    return NULL;
  }
  for (uint32_t i = 0; i < m.count; i++)
    varying += !sym_is_const(m.factors[i].size);
  if (varying > 1 || !routes_fit(g, &m, y))
    return NULL;
  m.alike = permutes ? y : place && place->moves ? m.alike : x;
  Moves *kept = arena_alloc(l->arena, sizeof *kept);
  *kept = m;
  return kept;
}

/* A view or permute that cannot wait. A permutation between the layouts is the other layout of the
 * same value, and a view that keeps [N, C] is one in NHWC too. */
static Sides of_move(Plan *p, NodeId n, bool permutes) {
  Graph *g = p->l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  if (!permutes && is_number(g, x) && xl_has_layouts(g, x) && xl_is_dynamic_view(p->l, x, y) &&
      xl_dynamic_dims(g, x, y).joins)
    return (Sides){either(p, 0, 0), PLAIN};
  if (!permutes)
    return alike(is_number(g, x) && xl_keeps_channels(g, x, y) ? either(p, 0, 0) : PLAIN);
  bool to_nhwc, to_plain;
  xl_turns_layout(g, n, &to_nhwc, &to_plain);
  return (Sides){to_nhwc ? NHWC : PLAIN, to_plain ? NHWC : PLAIN};
}

static void add_node(Plan *p, NodeId n, uint32_t i) {
  Graph *g = p->l->g;
  XnnLayouts layouts = xl_layouts(node_cget(g, n)->op);
  bool moves = layouts == XL_VIEW || layouts == XL_PERMUTE;
  const Moves *m = NULL;
  if (moves && !may_be_unmerged(p->l, node_value(g, n, 0)))
    m = steps(p->l, n, layouts == XL_PERMUTE);
  if (m) {
    places_make(&p->l->places, node_result(g, n, 0))->moves = m;
    return;
  }
  Sides sides = moves ? of_move(p, n, layouts == XL_PERMUTE) : sides_of(p, n);
  p->nodes[i] = sides.in;
  if (layouts == XL_FIRST || layouts == XL_IMAGE || layouts == XL_DYNAMIC)
    want(p, first_operand(g, n), sides.in);
  else if (layouts != XL_UNREAD)
    FOR_OPERANDS(g, n, v, { want(p, v, sides.in); })
  if (node_cget(g, n)->op == OP_CONVOLUTION) { /* weights and bias that arrive at run time */
    want(p, node_value(g, n, 1), PLAIN);
    want(p, node_value(g, n, 2), PLAIN);
  }
  for (uint32_t k = 0; k < node_cget(g, n)->result_count; k++)
    places_make(&p->l->places, node_result(g, n, k))->vertex = sides.out;
}

/* A vertex that is on the side `there` when one of the wants is. */
static uint32_t any_of(Plan *p, const Want *wants, uint32_t count, uint32_t there) {
  for (uint32_t i = 0; i < count; i++)
    if (wants[i].vertex == there)
      return there;
  if (count == 1)
    return wants[0].vertex;
  uint32_t vertex = cut_vertex(&p->cut);
  for (uint32_t i = 0; i < count; i++) {
    if (wants[i].vertex < CUT_FREE)
      continue;
    cut_arc(&p->cut, there == PLAIN ? wants[i].vertex : vertex,
            there == PLAIN ? vertex : wants[i].vertex, CUT_NEVER);
  }
  return vertex;
}

static bool all_want(const Want *wants, uint32_t count, uint32_t vertex) {
  for (uint32_t i = 0; i < count; i++)
    if (wants[i].vertex != vertex)
      return false;
  return true;
}

/* What it costs to have a value in layout `there` where it is wanted: `same` when the node that
 * made it is computed in that layout, and `other`. A larger `same`, as behind a permute, is no cost
 * of a cut; it is counted as though the value were wanted for certain. */
static void add_costs(Plan *p, const Moves *m, uint32_t maker, const Want *wants, uint32_t count,
                      uint32_t there) {
  Graph *g = p->l->g;
  bool both = xl_has_layouts(g, m->from), nhwc = there == NHWC;
  uint32_t end = nhwc ? PLAIN : NHWC;
  if (all_want(wants, count, end))
    return;
  uint64_t same = moves_cost(m, g, both && nhwc, nhwc),
           other = both ? moves_cost(m, g, !nhwc, nhwc) : same;
  if (maker < CUT_FREE)
    same = other = maker == there ? same : other;
  if (same + other == 0)
    return;
  uint64_t least = same < other ? same : other;
  uint32_t vertex = any_of(p, wants, count, there);
  cut_arc(&p->cut, nhwc ? end : vertex, nhwc ? vertex : end, least);
  cut_arc(&p->cut, nhwc ? maker : vertex, nhwc ? vertex : maker, other - least);
  cut_arc(&p->cut, nhwc ? end : maker, nhwc ? maker : end, same - least);
}

static void add_value(Plan *p, uint32_t item, const Want *wants, uint32_t count) {
  Graph *g = p->l->g;
  const Place *place = &p->l->places.items[item];
  bool both = xl_has_layouts(g, place->v);
  if (value_rank(g, place->v) > XNN_MAX_RANK || count == 0 || (!both && !place->moves))
    return; /* it is there as it is wanted */
  Moves none = moves_none(g, place->v);
  const Moves *m = place->moves ? place->moves : &none;
  const Place *from = places_find(&p->l->places, m->from);
  uint32_t maker = from ? from->vertex : PLAIN;
  add_costs(p, m, maker, wants, count, PLAIN);
  if (both)
    add_costs(p, m, maker, wants, count, NHWC);
}

/* Sorts what is wanted by value. */
static void add_values(Plan *p) {
  Arena *a = p->l->arena;
  uint32_t count = p->l->places.count, *first = ARENA_ARRAY(a, uint32_t, (size_t)count + 2);
  Want *sorted = ARENA_ARRAY(a, Want, (size_t)p->want_count + 1);
  for (uint32_t i = 0; i < p->want_count; i++)
    first[p->wants[i].item + 2]++;
  for (uint32_t i = 2; i < count + 2; i++)
    first[i] += first[i - 1];
  for (uint32_t i = 0; i < p->want_count; i++)
    sorted[first[p->wants[i].item + 1]++] = p->wants[i];
  for (uint32_t i = 0; i < count; i++)
    add_value(p, i, sorted + first[i], first[i + 1] - first[i]);
}

/* What takes either is computed in the layout of its first operand: less than the best, without a
 * search. */
static void take_first_layouts(Plan *p, const NodeId *nodes, uint32_t count) {
  Graph *g = p->l->g;
  p->cut.second[NHWC] = true;
  for (uint32_t i = 0; i < count; i++) {
    ValueId first = 0;
    FOR_OPERANDS(g, nodes[i], v, {
      if (v && !first && !is_constant_or_codes(g, v))
        first = v;
    })
    const Place *place = first ? places_find(&p->l->places, first) : NULL;
    if (place && place->moves)
      place = places_find(&p->l->places, place->moves->from);
    if (place && p->nodes[i] >= CUT_FREE)
      p->cut.second[p->nodes[i]] = p->cut.second[place->vertex];
  }
}

/* Once for each size: a graph has few, whatever the number of its views. */
static void note_split(XnnLowering *l, XnnSplit split) {
  XnnSplit *known = xl_split_of(l, split.size);
  if (known)
    known->several |= split.several;
  else
    POOL_PUSH(l->splits, l->split_count, l->split_capacity, split);
}

/* Sizes that views split again: only those have to be stored unmerged. */
static void note_splits(XnnLowering *l, const NodeId *nodes, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (xl_layouts(node_cget(l->g, nodes[i])->op) != XL_VIEW)
      continue;
    DynamicDims found =
        xl_dynamic_dims(l->g, node_value(l->g, nodes[i], 0), node_result(l->g, nodes[i], 0));
    if (found.splits)
      note_split(l, (XnnSplit){found.split, found.several});
  }
}

void xl_plan(XnnLowering *l, const NodeId *nodes, uint32_t count, const ValueId *outputs,
             uint32_t output_count) {
  note_splits(l, nodes, count);
  Plan p = {.l = l, .nodes = ARENA_ARRAY(l->arena, uint32_t, (size_t)count + 1)};
  cut_init(&p.cut);
  for (uint32_t i = 0; i < count; i++)
    add_node(&p, nodes[i], i);
  for (uint32_t i = 0; i < output_count; i++)
    want(&p, outputs[i], PLAIN);
  add_values(&p);
  if (!cut_solve(&p.cut))
    take_first_layouts(&p, nodes, count);
  for (uint32_t i = 0; i < l->places.count; i++) {
    Place *place = &l->places.items[i];
    place->in_nhwc = p.cut.second[place->vertex];
  }
  for (uint32_t i = 0; i < count; i++)
    if (node_cget(l->g, nodes[i])->result_count)
      places_make(&l->places, node_result(l->g, nodes[i], 0))->in_nhwc = p.cut.second[p.nodes[i]];
  for (uint32_t i = 0; i < output_count; i++)
    places_make(&l->places, outputs[i])->is_output = true;
  xfree(p.wants);
  cut_release(&p.cut);
}
