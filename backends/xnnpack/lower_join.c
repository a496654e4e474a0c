/* Merges dynamic dims that a view left unmerged (lower_view.c) when the batch is dynamic too.
 * XNNPACK's reshape infers only one dim, so every possible batch index is sliced and reshaped on
 * its own; a minimum with a mask puts it into its row, and a maximum combines the rows. */
#include <math.h>

#include "backends/xnnpack/plan.h"

/* More costs more than the call of a second delegate. */
enum { MOST_BATCHES = 8, MOST_ELEMENTS = 1 << 12, MOST_JOINED = 64 };

/* The dynamic dim of v beside the one that is left unmerged; rank: there are none, or several, or
 * it is too large. */
static uint32_t batch_dim(XnnLowering *l, const Permuted *t, ValueId v) {
  uint32_t rank = value_rank(l->g, v), batch = rank;
  for (uint32_t i = 0; i < rank; i++) {
    SymInt size = value_dim(l->g, v, i);
    if (sym_is_const(size) || t->more[i])
      continue;
    if (batch < rank || sym_lower(&l->g->syms, size) < 1 || xl_dim(l, v, i) > MOST_BATCHES)
      return rank;
    batch = i;
  }
  return batch;
}

static bool can_join(XnnLowering *l, const Permuted *t, ValueId v) {
  return xl_elements(l, v) <= MOST_ELEMENTS && batch_dim(l, t, v) < value_rank(l->g, v);
}

bool xl_join_at_blamed(XnnLowering *l) {
  NodeId view = l->blame;
  if (!view)
    return false;
  ValueId v = node_result(l->g, view, 0);
  Permuted t;
  uint32_t unmerged = 0;
  if (!xl_was_permuted(l, v, &t))
    return false;
  for (uint32_t i = 0; i < value_rank(l->g, v); i++)
    unmerged += t.more[i] > 0;
  if (unmerged != 1 || xl_join_of(l, view) || l->join_count == MOST_JOINED || !can_join(l, &t, v))
    return false;
  POOL_PUSH(l->joins, l->join_count, l->join_capacity, (XnnJoin){.view = view});
  return true;
}

bool xl_join_late(XnnLowering *l, NodeId view) {
  Graph *g = l->g;
  bool changed = false;
  if (l->blame || xl_layouts(node_cget(g, view)->op) != XL_VIEW)
    return false;
  DynamicDims split = xl_dynamic_dims(g, node_value(g, view, 0), node_result(g, view, 0));
  for (uint32_t i = 0; i < l->join_count && split.splits; i++) {
    NodeId n = l->joins[i].view;
    DynamicDims made = xl_dynamic_dims(g, node_value(g, n, 0), node_result(g, n, 0));
    if (l->joins[i].late || made.joined != split.split)
      continue;
    l->joins[i].late = changed = true;
  }
  return changed;
}

const XnnJoin *xl_join_of(const XnnLowering *l, NodeId view) {
  for (uint32_t i = 0; i < l->join_count; i++)
    if (l->joins[i].view == view)
      return &l->joins[i];
  return NULL;
}

/* t with its dims in order in memory, extra axes in front. */
static XnnId in_order(XnnLowering *l, Permuted t, uint32_t rank) {
  uint32_t perm[XNN_MAX_RANK] = {0}, count = 0, stored = xl_rank(l, t.id);
  for (uint32_t a = 0; a < stored; a++)
    if (xl_is_extra_axis(&t, rank, a))
      perm[count++] = a;
  for (uint32_t i = 0; i < rank; i++)
    xl_push_axes(&t, i, perm, &count);
  xl_permute_axes(l, &t, perm, stored);
  return t.id;
}

void xl_reshape_inferred(XnnLowering *l, XnnId in, const uint32_t *shape, uint32_t rank,
                         XnnId out) {
  if (!xl_ok(l))
    return;
  uint32_t vector = xnn_vector(&l->x, shape, rank);
  XNN_ADD_NODE(&l->x, XNN_STATIC_RESHAPE, rank, vector, in, out, 0)->vector_count = (uint8_t)rank;
}

/* Ones of a size that is known at run time: 0 * x + 1. x is rounded to 8 bits first, since 0 * inf
 * is NaN and 8 bits have no infinities. */
XnnId xl_ones_along(XnnLowering *l, XnnId in, uint32_t set) {
  if (!xl_ok(l))
    return XNN_NONE;
  XnnValue like = l->x.values[in];
  for (uint32_t i = 0; i < like.rank; i++) {
    if (set >> i & 1 || like.dims[i] == 1)
      continue;
    like.dims[i] = 1;
    XnnId first = xl_temp(l, like.rank, like.dims);
    xl_slice(l, in, i, 0, 1, first);
    in = first;
  }
  XnnId codes = xl_temp(l, like.rank, like.dims), finite = xl_temp(l, like.rank, like.dims),
        ones = xl_temp_like(l, finite);
  l->x.values[codes].datatype = XNN_QINT8;
  xl_unary(l, XNN_CONVERT, in, codes);
  xl_unary(l, XNN_CONVERT, codes, finite);
  XnnId one = xl_number(l, 1, 1);
  xl_binary(l, XNN_ADD, xl_scaled(l, finite, 0), one, ones);
  return ones;
}

/* Infinite in row i and column i, and minus infinite elsewhere: [1, batch, 1, most]. */
static XnnId diagonal(XnnLowering *l, XnnId in, uint32_t axis, uint32_t most) {
  XnnId along = xl_ones_along(l, in, 1u << axis), ones = XL_TEMP(l, 1, most, 1, 1);
  if (!xl_ok(l))
    return XNN_NONE;
  xl_reshape_inferred(l, along, (uint32_t[]){1, 0, 1, 1}, 4, ones);
  /* Row i of output k is the number of ones up to row i - k less that up to row i - k - 1. */
  float *taps = ARENA_ARRAY(l->arena, float, (size_t)most *(most + 1));
  for (uint32_t k = 0; k < most; k++) {
    taps[k * (most + 1) + most - k] = 1;
    taps[k * (most + 1) + most - k - 1] = -1;
  }
  XnnId hot = XL_TEMP(l, 1, most, 1, most), centered = xl_temp_like(l, hot),
        out = xl_temp_like(l, hot),
        filter = xl_floats(l, 4, (uint32_t[]){most, most + 1, 1, 1}, taps);
  XNN_ADD_NODE(&l->x, XNN_CONV2D, most, 0, 0, 0, most + 1, 1, 1, 1, 1, 1, 1, most, 1, 0, 0, ones,
               filter, XNN_NONE, hot, 0);
  xl_binary(l, XNN_SUBTRACT, hot, xl_number(l, 0.5, 1), centered);
  xl_binary(l, XNN_MULTIPLY, centered, xl_number(l, INFINITY, 1), out);
  return out;
}

/* Column k of the diagonal, along dim `axis` of a value of that rank. */
static XnnId mask_of(XnnLowering *l, XnnId diagonal, uint32_t most, uint32_t k, uint32_t axis,
                     uint32_t rank) {
  uint32_t dims[XNN_MAX_RANK] = {1, 1, 1, 1, 1, 1}, shape[XNN_MAX_RANK] = {1, 1, 1, 1, 1, 1};
  dims[axis] = most;
  shape[axis] = 0;
  XnnId column = XL_TEMP(l, 1, most, 1, 1), out = xl_temp(l, rank, dims);
  xl_slice(l, diagonal, 3, k, 1, column);
  xl_reshape_inferred(l, column, shape, rank, out);
  return out;
}

static XnnId batches_joined(XnnLowering *l, Permuted t, ValueId v, uint32_t batch) {
  Graph *g = l->g;
  uint32_t rank = value_rank(g, v), most = xl_dim(l, v, batch);
  XnnId in = in_order(l, t, rank);
  if (!xl_ok(l))
    return XNN_NONE;
  uint32_t stored = xl_rank(l, in), axis = stored;
  SymInt dims[XNN_MAX_RANK];
  for (uint32_t i = rank; i-- > batch;)
    axis -= 1u + t.more[i];
  for (uint32_t i = 0; i < rank; i++)
    dims[i] = i == batch ? 1 : value_dim(g, v, i);
  XnnId masks = diagonal(l, in, axis, most), sum = XNN_NONE;
  XnnValue like = l->x.values[in];
  XnnPad pad = {.rank = stored};
  pad.after[axis] = most - (uint32_t)sym_lower(&g->syms, value_dim(g, v, batch));
  like.dims[axis] += pad.after[axis];
  XnnId padded = pad.after[axis] ? xl_temp(l, stored, like.dims) : in;
  if (pad.after[axis])
    xl_pad(l, in, &pad, padded);
  like.dims[axis] = 1;
  for (uint32_t k = 0; k < most; k++) {
    XnnId piece = xl_temp(l, stored, like.dims), row = xl_sym_temp(l, rank, dims);
    xl_slice(l, padded, axis, k, 1, piece);
    xl_reshape(l, piece, dims, rank, row);
    XnnId placed = xl_sym_temp(l, rank, value_dims(g, v).d);
    xl_binary(l, XNN_MINIMUM, row, mask_of(l, masks, most, k, batch, rank), placed);
    XnnId total = k ? xl_sym_temp(l, rank, value_dims(g, v).d) : placed;
    if (k)
      xl_binary(l, XNN_MAXIMUM, sum, placed, total);
    sum = total;
  }
  return sum;
}

XnnId xl_joined(XnnLowering *l, Permuted t, ValueId v) {
  if (xl_dynamic_dim_count(l->g, v) > 1) {
    if (can_join(l, &t, v))
      return batches_joined(l, t, v, batch_dim(l, &t, v));
    l->blame = xl_ok(l) ? t.view : l->blame;
    xl_refuse(l, XNN_RULE_VARYING, R_INT("varying-dims", xl_dynamic_dim_count(l->g, v)));
  }
  XnnId in = in_order(l, t, value_rank(l->g, v));
  SymInt dims[XNN_MAX_RANK];
  for (uint32_t i = 0; i < value_rank(l->g, v); i++)
    dims[i] = value_dim(l->g, v, i);
  XnnId out = xl_sym_temp(l, value_rank(l->g, v), dims);
  xl_reshape(l, in, dims, value_rank(l->g, v), out);
  return out;
}
