/* Values in the layout in which they are wanted; see lower.h and moves.h. */
#include "backends/xnnpack/lower.h"

/* Between the layouts, for ranks 3 and 4. */
static const uint32_t to_nhwc[][4] = {{0, 2, 1}, {0, 2, 3, 1}},
                      to_nchw[][4] = {{0, 2, 1}, {0, 3, 1, 2}};

/* 1 + XnnId, 0 when it is not there. */
static uint32_t id_of(const XnnLowering *l, ValueId v, bool nhwc) {
  const Place *place = places_find(&l->places, v);
  return !place ? 0 : nhwc ? place->nhwc : place->plain;
}

bool xl_has_nhwc(const XnnLowering *l, ValueId v) { return id_of(l, v, true) != 0; }
bool xl_has_plain(const XnnLowering *l, ValueId v) { return id_of(l, v, false) != 0; }

void xl_set_permuted(XnnLowering *l, ValueId v, Permuted t) {
  if (!xl_ok(l))
    return;
  Permuted *kept = arena_alloc(l->arena, sizeof *kept);
  *kept = t;
  places_make(&l->places, v)->permuted = kept;
}

/* It is, and is not there in a layout yet. */
bool xl_has_permuted(const XnnLowering *l, ValueId v) {
  const Place *place = places_find(&l->places, v);
  return place && place->permuted && !place->plain && !place->nhwc;
}

bool xl_was_permuted(const XnnLowering *l, ValueId v, Permuted *t) {
  const Place *place = places_find(&l->places, v);
  if (!place || !place->permuted)
    return false;
  *t = *place->permuted;
  return true;
}

Permuted xl_permuted(XnnLowering *l, ValueId v) {
  if (xl_has_permuted(l, v))
    return *places_find(&l->places, v)->permuted;
  return (Permuted){.id = xl_plain(l, v), .axis = {0, 1, 2, 3, 4, 5}};
}

bool xl_in_nhwc(const XnnLowering *l, ValueId y) {
  const Place *place = places_find(&l->places, y);
  return place && place->in_nhwc;
}

bool xl_is_output(const XnnLowering *l, ValueId y) {
  const Place *place = places_find(&l->places, y);
  return place && place->is_output;
}

bool xl_is_moved(const XnnLowering *l, ValueId v) {
  const Place *place = places_find(&l->places, v);
  return place && place->moves;
}

/* --- one value from another --- */

static void set(XnnLowering *l, ValueId v, bool nhwc, XnnId id) {
  if (nhwc)
    xl_set_nhwc(l, v, id);
  else
    xl_set_plain(l, v, id);
}

static XnnId result(XnnLowering *l, ValueId v, bool nhwc) {
  return nhwc ? xl_result_nhwc(l, v) : xl_result(l, v);
}

/* The dims that v has in a layout. */
static uint32_t dims_in(const Graph *g, ValueId v, bool nhwc, SymInt dims[XNN_MAX_RANK]) {
  uint32_t rank = value_rank(g, v);
  for (uint32_t i = 0; i < rank; i++)
    dims[nhwc ? xl_nhwc_axis(i, rank) : i] = value_dim(g, v, i);
  return rank;
}

/* Notes whose the next transpose is. */
static void begin_turn(XnnLowering *l, ValueId v, bool permuted) {
  NodeId def = value_def(l->g, v);
  l->transposes_for = permuted ? TRANSPOSE_PERMUTE : TRANSPOSE_LAYOUT;
  if (def)
    l->node = def;
}

/* v in a layout, its elements in the order of in: what in is a reshape of, when that has its dims.
 */
static void view_as(XnnLowering *l, XnnId in, const SymInt *dims, uint32_t rank, ValueId v,
                    bool nhwc) {
  XnnId origin = xl_origin(l, in);
  bool same = xl_ok(l) && origin != in && l->x.values[origin].rank == rank;
  for (uint32_t i = 0; i < rank && same; i++)
    same = dims[i] == l->x.values[origin].dims[i];
  if (same)
    set(l, v, nhwc, origin);
  else
    xl_reshape(l, in, dims, rank, result(l, v, nhwc));
}

/* v in a layout by one transpose, or none, from another value in a layout in which it is there. */
static void go(XnnLowering *l, const Moves *m, ValueId v, bool from_nhwc, bool nhwc) {
  Graph *g = l->g;
  MoveRoute route = moves_route(m, g, from_nhwc, nhwc);
  SymInt have[XNN_MAX_RANK], want[XNN_MAX_RANK], permuted[XNN_MAX_RANK] = {0};
  uint32_t have_rank = dims_in(g, m->from, from_nhwc, have), rank = dims_in(g, v, nhwc, want);
  XnnId in = id_of(l, m->from, from_nhwc) - 1;
  if (route.rank <= 1) {
    if (dims_same(have, have_rank, want, rank))
      set(l, v, nhwc, in);
    else
      view_as(l, in, want, rank, v, nhwc);
    return;
  }
  if (!nhwc && m->alike != v) { /* others may want it, too */
    view_as(l, xl_plain(l, m->alike), want, rank, v, nhwc);
    return;
  }
  if (!dims_same(have, have_rank, route.dims, route.rank)) {
    XnnId split = xl_sym_temp(l, route.rank, route.dims);
    xl_reshape(l, in, route.dims, route.rank, split);
    in = split;
  }
  for (uint32_t i = 0; i < route.rank; i++)
    permuted[i] = route.dims[route.perm[i]];
  bool whole = dims_same(permuted, route.rank, want, rank);
  XnnId out = whole ? result(l, v, nhwc) : xl_sym_temp(l, route.rank, permuted);
  begin_turn(l, v, m->permuted);
  xl_transpose(l, in, route.perm, route.rank, out);
  l->transposes_for = TRANSPOSE_INSIDE;
  if (!whole)
    xl_reshape(l, out, want, rank, result(l, v, nhwc));
}

/* v in its other layout. It is the same bytes when there is one channel, or one pixel. */
static void change_layout(XnnLowering *l, ValueId v, bool nhwc) {
  Graph *g = l->g;
  SymInt dims[XNN_MAX_RANK];
  uint32_t rank = dims_in(g, v, nhwc, dims), varying = 0;
  XnnId from = id_of(l, v, !nhwc) - 1, id = result(l, v, nhwc);
  Moves none = moves_none(g, v);
  for (uint32_t i = 0; i < rank; i++)
    varying += !sym_is_const(dims[i]);
  if (varying <= 1 && moves_route(&none, g, !nhwc, nhwc).rank <= 1) {
    xl_reshape(l, from, dims, rank, id);
    return;
  }
  begin_turn(l, v, false);
  xl_transpose(l, from, (nhwc ? to_nhwc : to_nchw)[rank - 3], rank, id);
  l->transposes_for = TRANSPOSE_INSIDE;
}

/* v in a layout, by the steps from another value. */
static void follow(XnnLowering *l, const Moves *m, ValueId v, bool nhwc) {
  Graph *g = l->g;
  if (!xl_has_plain(l, m->from) && !xl_has_nhwc(l, m->from))
    (void)xl_plain(l, m->from);
  if (!xl_ok(l))
    return;
  bool from_nhwc = !xl_has_plain(l, m->from);
  if (!from_nhwc && xl_has_nhwc(l, m->from))
    from_nhwc = moves_cost(m, g, true, nhwc) < moves_cost(m, g, false, nhwc);
  if (moves_through_plain(m, g, from_nhwc, nhwc)) {
    (void)xl_plain(l, nhwc ? v : m->from);
    if (nhwc)
      change_layout(l, v, true);
    from_nhwc = false;
  }
  if (xl_ok(l) && !id_of(l, v, nhwc))
    go(l, m, v, from_nhwc, nhwc);
}

/* v from what there is of it. */
static void bring(XnnLowering *l, ValueId v, bool nhwc) {
  const Place *place = places_find(&l->places, v);
  NodeId node = l->node;
  if (place && place->moves)
    follow(l, place->moves, v, nhwc);
  else
    change_layout(l, v, nhwc);
  l->node = node;
}

/* v in a layout, from how it was left. */
static void straighten(XnnLowering *l, ValueId v, bool nhwc) {
  NodeId node = l->node;
  uint32_t rank = value_rank(l->g, v), vary = xl_dynamic_dim_count(l->g, v);
  Permuted t = xl_permuted(l, v), to = t;
  begin_turn(l, v, true);
  for (uint32_t i = 0; i < rank && nhwc; i++) {
    uint32_t at = xl_nhwc_axis(i, rank);
    to.axis[at] = t.axis[i];
    to.more[at] = t.more[i];
  }
  const XnnJoin *join = t.view ? xl_join_of(l, t.view) : NULL;
  if (!nhwc && (vary <= 1 || (join && join->late)) && xl_is_unmerged(&t, rank))
    xl_set_plain(l, v, xl_joined(l, t, v));
  else
    set(l, v, nhwc, xl_straight(l, to, rank));
  l->transposes_for = TRANSPOSE_INSIDE;
  l->node = node;
}

static XnnId constant_in(XnnLowering *l, ValueId v, bool nhwc) {
  uint32_t dims[XNN_MAX_RANK], placed[XNN_MAX_RANK], perm[XNN_MAX_RANK],
      rank = xl_dims(l, v, DT(F32) | DT(F16), dims);
  for (uint32_t i = 0; i < rank && xl_ok(l); i++) {
    uint32_t to = nhwc ? xl_nhwc_axis(i, rank) : i;
    placed[to] = dims[i];
    perm[to] = i;
  }
  return xl_ok(l) ? xl_constant_operand(l, v, rank, placed, perm) : XNN_NONE;
}

XnnId xl_plain(XnnLowering *l, ValueId v) {
  if (!xl_ok(l))
    return XNN_NONE;
  if (xl_has_plain(l, v))
    return id_of(l, v, false) - 1;
  if (is_constant_or_codes(l->g, v))
    xl_set_plain(l, v, constant_in(l, v, false));
  else if (xl_has_permuted(l, v))
    straighten(l, v, false);
  else if (xl_is_moved(l, v) || xl_has_nhwc(l, v))
    bring(l, v, false);
  else
    xl_set_plain(l, v, xl_from_outside(l, v));
  return xl_ok(l) ? id_of(l, v, false) - 1 : XNN_NONE;
}

XnnId xl_nhwc(XnnLowering *l, ValueId v) {
  if (!xl_ok(l))
    return XNN_NONE;
  if (xl_has_nhwc(l, v))
    return id_of(l, v, true) - 1;
  if (!xl_has_layouts(l->g, v)) {
    xl_refuse(l, XNN_RULE_RANK, R_INT("rank", value_rank(l->g, v)), R_STR("supported", "3,4"));
    return XNN_NONE;
  }
  if (is_constant_or_codes(l->g, v))
    return constant_in(l, v, true);
  if (xl_has_permuted(l, v))
    straighten(l, v, true);
  else if (!xl_is_moved(l, v))
    (void)xl_plain(l, v);
  if (xl_ok(l) && !xl_has_nhwc(l, v))
    bring(l, v, true);
  return xl_ok(l) ? id_of(l, v, true) - 1 : XNN_NONE;
}

/* --- operands of nodes that take either --- */

XnnInOut xl_in_out(XnnLowering *l, ValueId x, ValueId y) {
  XnnInOut io = {.nhwc = xl_in_nhwc(l, y)};
  if (xl_has_permuted(l, x)) {
    Permuted t = xl_permuted(l, x);
    return (XnnInOut){.in = t.id, .out = xl_result_permuted(l, y, t), .at = t};
  }
  for (uint32_t i = 0; i < XNN_MAX_RANK; i++)
    io.at.axis[i] = (uint8_t)(io.nhwc ? xl_nhwc_axis(i, value_rank(l->g, x)) : i);
  io.in = io.nhwc ? xl_nhwc(l, x) : xl_plain(l, x);
  io.out = result(l, y, io.nhwc);
  return io;
}

XnnId xl_nhwc_operand(XnnLowering *l, ValueId v, uint32_t rank) {
  uint32_t own = value_rank(l->g, v);
  if (own == rank)
    return xl_nhwc(l, v);
  if (xl_elements(l, v) == 1)
    return xl_plain(l, v);
  /* The first dim, of size 1, is not written. */
  uint32_t dims[XNN_MAX_RANK], perm[XNN_MAX_RANK];
  for (uint32_t i = 0; i < own; i++) {
    perm[i] = (i + 1) % own;
    dims[i] = xl_dim(l, v, perm[i]);
  }
  return xl_permuted_constant(l, v, own, dims, perm, false);
}
