/* Views of which two or more dims vary. XNNPACK's reshape finds out one size at most, so:
 *
 *   a dim of 1 is added by broadcasting: a product with a one of higher rank,
 *   a dim of known size is split into slices, which are put behind each other along a new dim,
 *   two dims of known size are joined by slices along the one, put behind each other along the
 *   other, two dims of 1 go as the mean over them.
 *
 * Where a dim lies in memory, and what else is there of size 1, is left open until someone wants
 * the value as it is (Turned): heads that are split, transposed, transposed back and joined are
 * moved once then, and a dim that one view leaves over is what the next one adds. */
#include "backends/xnnpack/lower.h"

enum { MAX_PIECES = 64 };

/* A value on its way from one view to the other. */
typedef struct View {
  Turned t;
  uint32_t rank;
  SymInt dims[XNN_MAX_RANK + 1];
} View;

uint32_t xl_open_dims(const Graph *g, ValueId v) {
  uint32_t open = 0;
  for (uint32_t i = 0; i < value_rank(g, v); i++)
    open += !sym_is_const(value_dim(g, v, i));
  return open;
}

/* Whether the axis of id is no dim of the value. */
static bool is_loose(const Turned *t, uint32_t rank, uint32_t axis) {
  for (uint32_t i = 0; i < rank; i++)
    if (t->axis[i] == axis)
      return false;
  return true;
}

void xl_add_axis(XnnLowering *l, Turned *t, uint32_t rank) {
  uint32_t ones[XNN_MAX_RANK] = {1, 1, 1, 1, 1, 1}, dims[XNN_MAX_RANK] = {1};
  if (xl_rank(l, t->id) == XNN_MAX_RANK)
    xl_refuse(l, XNN_RULE_RANK_LIMIT, "rank=%d", XNN_MAX_RANK + 1);
  if (!xl_ok(l))
    return;
  XnnValue from = l->x.values[t->id];
  memcpy(dims + 1, from.dims, from.rank * sizeof *dims);
  XnnId wide = xl_temp(l, from.rank + 1u, dims);
  xl_binary(l, XNN_MULTIPLY, t->id, xl_ones(l, from.rank + 1u, ones), wide);
  t->id = wide;
  for (uint32_t i = 0; i < rank; i++)
    t->axis[i]++;
}

static void permuted(XnnLowering *l, Turned *t, const uint32_t *perm, uint32_t rank) {
  uint32_t dims[XNN_MAX_RANK];
  bool same = true;
  for (uint32_t i = 0; i < rank && xl_ok(l); i++) {
    dims[i] = l->x.values[t->id].dims[perm[i]];
    same &= perm[i] == i;
  }
  if (same || !xl_ok(l))
    return;
  XnnId moved = xl_temp(l, rank, dims);
  xl_transpose(l, t->id, perm, rank, moved);
  t->id = moved;
}

/* Without the last two dims of 1 before the last dim. */
static void drop_axes(XnnLowering *l, Turned *t) {
  if (!xl_ok(l))
    return;
  XnnValue from = l->x.values[t->id];
  from.dims[from.rank - 3] = from.dims[from.rank - 1];
  XnnId out = xl_temp(l, from.rank - 2u, from.dims);
  XNN_ADD_NODE(&l->x, XNN_GLOBAL_AVG_POOLING2D, t->id, out, 0);
  t->id = out;
}

XnnId xl_straight(XnnLowering *l, Turned t, uint32_t rank) {
  uint32_t perm[XNN_MAX_RANK] = {0}, count = 0;
  if ((xl_rank(l, t.id) - rank) % 2)
    xl_add_axis(l, &t, rank);
  uint32_t held = xl_rank(l, t.id);
  for (; count + 1 < rank; count++)
    perm[count] = t.axis[count];
  for (uint32_t a = 0; a < held; a++)
    if (is_loose(&t, rank, a))
      perm[count++] = a;
  if (rank)
    perm[count] = t.axis[rank - 1];
  permuted(l, &t, perm, held);
  for (; held > rank; held -= 2)
    drop_axes(l, &t);
  return t.id;
}

XnnId xl_result_turned(XnnLowering *l, ValueId y, Turned t) {
  if (!xl_ok(l))
    return XNN_NONE;
  XnnValue like = l->x.values[t.id];
  for (uint32_t i = 0; i < value_rank(l->g, y); i++)
    like.dims[t.axis[i]] = xl_dim(l, y, i);
  t.id = xl_temp(l, like.rank, like.dims);
  xl_set_turned(l, y, t);
  return t.id;
}

/* --- views --- */

static void insert_one(XnnLowering *l, View *v, uint32_t at) {
  if (v->rank == XNN_MAX_RANK)
    xl_refuse(l, XNN_RULE_RANK_LIMIT, "rank=%d", XNN_MAX_RANK + 1);
  uint32_t axis = 0, held = xl_rank(l, v->t.id);
  while (axis < held && !is_loose(&v->t, v->rank, axis))
    axis++;
  if (axis == held) {
    xl_add_axis(l, &v->t, v->rank);
    axis = 0;
  }
  if (!xl_ok(l))
    return;
  memmove(v->t.axis + at + 1, v->t.axis + at, v->rank - at);
  memmove(v->dims + at + 1, v->dims + at, (v->rank - at) * sizeof *v->dims);
  v->t.axis[at] = (uint8_t)axis;
  v->dims[at] = 1;
  v->rank++;
}

/* A dim of 1. */
static void remove_one(View *v, uint32_t at) {
  v->rank--;
  memmove(v->t.axis + at, v->t.axis + at + 1, v->rank - at);
  memmove(v->dims + at, v->dims + at + 1, (v->rank - at) * sizeof *v->dims);
}

/* `size` elements of dim `from` in each piece; the pieces one behind the other along dim `to`. */
static void move_pieces(XnnLowering *l, View *v, uint32_t from, uint32_t to, uint32_t size) {
  uint32_t count = (uint32_t)v->dims[from] / size, axis = v->t.axis[from];
  XnnId pieces[MAX_PIECES];
  if (count > MAX_PIECES)
    xl_refuse(l, XNN_RULE_PIECES, "pieces=%u most=%d", count, MAX_PIECES);
  if (!xl_ok(l))
    return;
  XnnValue whole = l->x.values[v->t.id];
  whole.dims[axis] = size;
  for (uint32_t i = 0; i < count; i++) {
    pieces[i] = xl_temp(l, whole.rank, whole.dims);
    xl_slice(l, v->t.id, axis, whole.rank, i * size, size, pieces[i]);
  }
  whole.dims[v->t.axis[to]] *= count;
  XnnId out = xl_temp(l, whole.rank, whole.dims);
  xl_concatenate(l, pieces, count, v->t.axis[to], out);
  v->t.id = out;
  v->dims[from] = size;
  v->dims[to] *= count;
}

/* Makes dim `at`, of v known, the first of several. */
static void split(XnnLowering *l, View *v, uint32_t at, uint32_t outer) {
  insert_one(l, v, at);
  if (xl_ok(l))
    move_pieces(l, v, at + 1, at, (uint32_t)v->dims[at + 1] / outer);
}

static void join(XnnLowering *l, View *v, uint32_t at) {
  move_pieces(l, v, at, at + 1, 1);
  remove_one(v, at);
}

static bool divides(SymInt a, SymInt b) {
  return sym_is_const(a) && sym_is_const(b) && a > 0 && b % a == 0;
}

/* Makes dim `at` of v `size`, or the first of several; false when there is no way. */
static bool make_dim(XnnLowering *l, View *v, uint32_t at, SymInt size) {
  while (xl_ok(l) && (at == v->rank || v->dims[at] != size)) {
    SymInt has = at < v->rank ? v->dims[at] : 0;
    if (has == 1)
      remove_one(v, at);
    else if (size == 1)
      insert_one(l, v, at);
    else if (has > size && divides(size, has))
      split(l, v, at, (uint32_t)size);
    else if (at + 1 < v->rank && v->dims[at + 1] == 1)
      remove_one(v, at + 1);
    else if (at + 1 < v->rank && divides(has, size) && divides(v->dims[at + 1], size / has))
      join(l, v, at);
    else
      return false;
  }
  return xl_ok(l);
}

void xl_open_view(XnnLowering *l, ValueId x, ValueId y) {
  Graph *g = l->g;
  View v = {.t = xl_turned(l, x), .rank = value_rank(g, x)};
  if (v.rank > XNN_MAX_RANK || value_rank(g, y) > XNN_MAX_RANK)
    xl_refuse(l, XNN_RULE_RANK_LIMIT, "rank=%u", v.rank);
  for (uint32_t i = 0; i < v.rank && xl_ok(l); i++)
    v.dims[i] = value_dim(g, x, i);
  for (uint32_t i = 0; i < value_rank(g, y) && xl_ok(l); i++)
    if (!make_dim(l, &v, i, value_dim(g, y, i)))
      xl_refuse(l, XNN_RULE_VARYING, "dim=%u varying-dims=%u", i, xl_open_dims(g, y));
  while (v.rank > value_rank(g, y))
    remove_one(&v, v.rank - 1);
  xl_set_turned(l, y, v.t);
}
