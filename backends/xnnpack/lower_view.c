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

static void insert_one(XnnLowering *l, View *v, uint32_t at) {
  if (v->rank == XNN_MAX_RANK)
    xl_refuse(l, XNN_RULE_RANK_LIMIT, R_INT("rank", XNN_MAX_RANK + 1));
  uint32_t axis = 0, held = xl_rank(l, v->t.id);
  while (axis < held && !xl_is_loose(&v->t, v->rank, axis))
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
    xl_refuse(l, XNN_RULE_PIECES, R_INT("pieces", count), R_INT("most", MAX_PIECES));
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

/* Makes dim `at` of v `size`, or the first of several; false when there is no way. */
static bool make_dim(XnnLowering *l, View *v, uint32_t at, SymInt size) {
  while (xl_ok(l) && (at == v->rank || v->dims[at] != size)) {
    SymInt has = at < v->rank ? v->dims[at] : 0;
    if (has == 1)
      remove_one(v, at);
    else if (size == 1)
      insert_one(l, v, at);
    else if (has > size && sym_const_divides(size, has))
      split(l, v, at, (uint32_t)size);
    else if (at + 1 < v->rank && v->dims[at + 1] == 1)
      remove_one(v, at + 1);
    else if (at + 1 < v->rank && sym_const_divides(has, size) &&
             sym_const_divides(v->dims[at + 1], size / has))
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
    xl_refuse(l, XNN_RULE_RANK_LIMIT, R_INT("rank", v.rank));
  for (uint32_t i = 0; i < v.rank && xl_ok(l); i++)
    v.dims[i] = value_dim(g, x, i);
  for (uint32_t i = 0; i < value_rank(g, y) && xl_ok(l); i++)
    if (!make_dim(l, &v, i, value_dim(g, y, i)))
      xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", i), R_INT("varying-dims", xl_open_dims(g, y)));
  while (v.rank > value_rank(g, y))
    remove_one(&v, v.rank - 1);
  xl_set_turned(l, y, v.t);
}
