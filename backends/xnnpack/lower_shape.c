/* Moving elements: views, transposes, slices, concatenation, padding, expansion. */
#include <inttypes.h>

#include "backends/xnnpack/lower.h"
#include "support/number.h"

bool xl_keeps_channels(const Graph *g, ValueId x, ValueId y) {
  uint32_t varying = 0;
  if (!xl_has_layouts(g, x) || !xl_has_layouts(g, y) || value_dim(g, x, 0) != value_dim(g, y, 0) ||
      value_dim(g, x, 1) != value_dim(g, y, 1))
    return false;
  for (uint32_t i = 0; i < value_rank(g, y); i++)
    varying += !sym_is_const(value_dim(g, y, i));
  return varying <= 1;
}

void lower_view(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  if (xl_is_moved(l, y))
    return;
  if (xl_is_dynamic_view(l, x, y) || xl_keeps_unmerged(l, x, y)) {
    xl_dynamic_view(l, x, y);
    return;
  }
  if (xl_in_nhwc(l, y)) {
    SymInt permuted[XNN_MAX_RANK];
    uint32_t rank = value_rank(g, y);
    for (uint32_t i = 0; i < rank; i++)
      permuted[xl_nhwc_axis(i, rank)] = value_dim(g, y, i);
    XnnId result = xl_result_nhwc(l, y);
    xl_reshape(l, xl_nhwc(l, x), permuted, rank, result);
    return;
  }
  XnnId result = xl_result(l, y);
  xl_reshape_to(l, xl_plain(l, x), y, result);
}

void xl_turns_layout(const Graph *g, NodeId permute, bool *to_nhwc, bool *to_plain) {
  ValueId x = node_value(g, permute, 0);
  uint32_t rank = value_rank(g, x);
  *to_nhwc = *to_plain = xl_has_layouts(g, x);
  for (uint32_t i = 0; i < rank && *to_nhwc + *to_plain; i++) {
    uint32_t from = xl_axis(node_ints(g, permute, 1)[i], rank);
    *to_nhwc &= xl_nhwc_axis(from, rank) == i;
    *to_plain &= from == xl_nhwc_axis(i, rank);
  }
}

/* A permutation between the layouts is the other layout of the same value. */
void lower_permute(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  uint32_t rank = value_rank(g, x), perm[XNN_MAX_RANK];
  if (rank > XNN_MAX_RANK) {
    xl_refuse(l, XNN_RULE_RANK_LIMIT, R_INT("rank", rank));
    return;
  }
  if (xl_is_moved(l, y))
    return;
  for (uint32_t i = 0; i < rank; i++)
    perm[i] = xl_axis(node_ints(g, n, 1)[i], rank);
  bool to_nhwc, to_plain;
  xl_turns_layout(g, n, &to_nhwc, &to_plain);
  if (to_nhwc && xl_has_nhwc(l, x)) {
    xl_set_plain(l, y, xl_nhwc(l, x));
    return;
  }
  if (xl_has_permuted(l, x) || (xl_dynamic_dim_count(g, x) > 1 && !to_plain)) {
    Permuted from = xl_permuted(l, x), to = from;
    for (uint32_t i = 0; i < rank; i++) {
      to.axis[i] = from.axis[perm[i]];
      to.more[i] = from.more[perm[i]];
      memcpy(to.part[i], from.part[perm[i]], sizeof to.part[i]);
    }
    xl_set_permuted(l, y, to);
    return;
  }
  XnnId in = xl_plain(l, x);
  if (to_plain) {
    xl_set_nhwc(l, y, in);
    return;
  }
  l->transposes_for = TRANSPOSE_PERMUTE;
  xl_transpose(l, in, perm, rank, xl_result(l, y));
  l->transposes_for = TRANSPOSE_INSIDE;
}

void xl_slice_dims(XnnLowering *l, XnnId in, uint32_t rank, const uint32_t *offsets,
                   const uint32_t *sizes, XnnId out) {
  uint32_t first = xnn_vector(&l->x, offsets, rank), second = xnn_vector(&l->x, sizes, rank);
  XNN_ADD_NODE(&l->x, XNN_STATIC_SLICE, rank, first, second, in, out, 0)->vector_count =
      (uint8_t)rank;
}

void xl_slice(XnnLowering *l, XnnId in, uint32_t axis, uint32_t begin, uint32_t size, XnnId out) {
  if (!xl_ok(l))
    return;
  uint32_t offsets[XNN_MAX_RANK] = {0}, sizes[XNN_MAX_RANK] = {0};
  offsets[axis] = begin;
  sizes[axis] = size;
  xl_slice_dims(l, in, xl_rank(l, in), offsets, sizes, out);
}

XnnId xl_sliced(XnnLowering *l, XnnId in, uint32_t axis, uint32_t begin, uint32_t size) {
  if (!xl_ok(l))
    return XNN_NONE;
  XnnValue like = l->x.values[in];
  like.dims[axis] = size;
  XnnId part = xl_temp(l, like.rank, like.dims);
  xl_slice(l, in, axis, begin, size, part);
  return part;
}

/* y = x cut on one dim, in the layout of the node. */
static void cut(XnnLowering *l, ValueId x, uint32_t axis, SymInt begin, SymInt size, ValueId y) {
  if (!sym_is_const(begin) || !sym_is_const(size) || begin < 0 || size < 1)
    xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", axis));
  XnnInOut io = xl_in_out(l, x, y);
  xl_slice(l, io.in, xl_whole_axis(l, &io.at, axis), (uint32_t)begin, (uint32_t)size, io.out);
}

/* A start or end counted from the front and inside of the dim. */
static int64_t position(SymInt value, int64_t extent) {
  int64_t p = value < 0 ? value + extent : value;
  return p < 0 ? 0 : p > extent ? extent : p;
}

void lower_slice(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  uint32_t rank = value_rank(g, x);
  if (rank == 0) {
    xl_refuse(l, XNN_RULE_RANK, R_INT("rank", 0), R_INT("least", 1));
    return;
  }
  uint32_t axis = xl_axis(node_int(g, n, 1), rank);
  SymInt begin = node_int_or(g, n, 2, 0), size = value_dim(g, y, axis),
         extent = value_dim(g, x, axis);
  if (sym_is_const(begin) && sym_is_const(extent))
    begin = position(begin, extent);
  if (node_int(g, n, 4) == 1)
    cut(l, x, axis, begin, size, y);
  else if (sym_is_const(begin) && begin >= 0)
    xl_strided_slice(l, x, axis, begin, node_int(g, n, 4), y);
  else
    xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", axis));
}

void lower_split(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0);
  if (value_rank(g, x) == 0) {
    xl_refuse(l, XNN_RULE_RANK, R_INT("rank", 0), R_INT("least", 1));
    return;
  }
  uint32_t axis = xl_axis(node_int(g, n, 2), value_rank(g, x)),
           count = node_cget(g, n)->result_count;
  SymInt begin = 0;
  for (uint32_t i = 0; i < count && xl_ok(l); i++) {
    SymInt size = value_dim(g, node_result(g, n, i), axis);
    cut(l, x, axis, begin, size, node_result(g, n, i));
    begin += sym_is_const(size) ? size : 0;
  }
}

/* The dim stays in memory as an extra axis (places.h). */
static void select_open(XnnLowering *l, ValueId x, uint32_t axis, uint32_t index, ValueId y) {
  Permuted t = xl_permuted(l, x);
  if (!xl_ok(l))
    return;
  XnnValue like = l->x.values[t.id];
  uint32_t at = xl_whole_axis(l, &t, axis);
  like.dims[at] = 1;
  XnnId one = xl_temp(l, like.rank, like.dims);
  xl_slice(l, t.id, at, index, 1, one);
  t.id = one;
  xl_move_entries(&t, axis + 1, axis);
  xl_set_permuted(l, y, t);
}

void lower_select(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  uint32_t rank = value_rank(g, x), dims[XNN_MAX_RANK];
  if (rank == 0 || rank > XNN_MAX_RANK) {
    xl_refuse(l, XNN_RULE_RANK, R_INT("rank", rank));
    return;
  }
  uint32_t axis = xl_axis(node_int(g, n, 1), rank);
  SymInt index = node_int(g, n, 2), extent = value_dim(g, x, axis);
  if (sym_is_const(index) && index < 0 && sym_is_const(extent))
    index += extent;
  if (!sym_is_const(index) || index < 0) {
    xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", axis));
    return;
  }
  if (xl_dynamic_dim_count(g, y) > 1) {
    select_open(l, x, axis, (uint32_t)index, y);
    return;
  }
  XnnId in = xl_plain(l, x), out = xl_result(l, y);
  if (!xl_ok(l))
    return;
  for (uint32_t i = 0; i < rank; i++)
    dims[i] = i == axis ? 1 : xl_dim(l, x, i);
  XnnId one = xl_temp(l, rank, dims);
  xl_slice(l, in, axis, (uint32_t)index, 1, one);
  xl_reshape_to(l, one, y, out);
}

/* Where group i of XL_JOINED_AT_ONCE begins among `count` items. There are as few nodes as
 * possible, and each item is copied as few times: the first groups are full, the last ones least of
 * all. */
static uint32_t group_begin(uint32_t count, uint32_t i) {
  uint64_t full = 1;
  while (full * XL_JOINED_AT_ONCE < count)
    full *= XL_JOINED_AT_ONCE;
  if (full == 1)
    return i;
  uint64_t least = full / XL_JOINED_AT_ONCE, more = count - full;
  return (uint32_t)(i * least + (uint64_t)min_i64((int64_t)more, (int64_t)(i * (full - least))));
}

/* Longer lists than one node takes are joined in groups first. */
void xl_concatenate(XnnLowering *l, const XnnId *items, uint32_t count, uint32_t axis, XnnId out) {
  static const XnnNodeKind by_count[] = {[2] = XNN_CONCATENATE2,
                                         [3] = XNN_CONCATENATE3,
                                         [4] = XNN_CONCATENATE4,
                                         [5] = XNN_CONCATENATE5};
  if (!xl_ok(l))
    return;
  if (count == 1) {
    xl_unary(l, XNN_COPY, items[0], out);
    return;
  }
  XnnId parts[XL_JOINED_AT_ONCE] = {XNN_NONE, XNN_NONE, XNN_NONE, XNN_NONE, XNN_NONE};
  uint32_t used = count < XL_JOINED_AT_ONCE ? count : XL_JOINED_AT_ONCE;
  for (uint32_t i = 0; i < used; i++) {
    uint32_t begin = group_begin(count, i), end = group_begin(count, i + 1);
    parts[i] = items[begin];
    if (end - begin == 1)
      continue;
    XnnValue sum = l->x.values[items[begin]];
    for (uint32_t k = begin + 1; k < end; k++)
      sum.dims[axis] += l->x.values[items[k]].dims[axis];
    parts[i] = xl_temp(l, sum.rank, sum.dims);
    xl_concatenate(l, items + begin, end - begin, axis, parts[i]);
  }
  XNN_ADD_NODE(&l->x, by_count[used], axis, parts[0], parts[1], parts[2], parts[3], out, 0,
               parts[4]);
}

static bool all_permuted(const XnnLowering *l, const ValueId *values, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!xl_has_permuted(l, values[i]))
      return false;
  return true;
}

void lower_cat(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId y = node_result(g, n, 0);
  uint32_t rank = value_rank(g, y), count = node_list_count(g, n, 0);
  if (rank == 0 || count == 0) {
    xl_refuse(l, XNN_RULE_RANK, R_INT("rank", rank), R_INT("operands", count));
    return;
  }
  uint32_t axis = xl_axis(node_int(g, n, 1), rank);
  ValueId *operands = ARENA_ARRAY(l->arena, ValueId, count);
  XnnId *items = ARENA_ARRAY(l->arena, XnnId, count);
  for (uint32_t i = 0; i < count; i++) {
    ValueId v = operands[i] = node_list_value(g, n, 0, i);
    if (value_rank(g, v) != rank)
      xl_refuse(l, XNN_RULE_RANK, R_INT("operand", i), R_INT("rank", value_rank(g, v)),
                R_INT("needed", rank));
  }
  Permuted t;
  if (all_permuted(l, operands, count) && xl_common_order(l, operands, count, rank, &t)) {
    for (uint32_t i = 0; i < count; i++)
      items[i] = xl_in_order(l, operands[i], t, rank);
    XnnId whole = xl_result_permuted(l, y, t);
    xl_concatenate(l, items, count, xl_whole_axis(l, &t, axis), whole);
    return;
  }
  bool nhwc = xl_in_nhwc(l, y);
  for (uint32_t i = 0; i < count; i++)
    items[i] = nhwc ? xl_nhwc(l, operands[i]) : xl_plain(l, operands[i]);
  xl_concatenate(l, items, count, nhwc ? xl_nhwc_axis(axis, rank) : axis,
                 nhwc ? xl_result_nhwc(l, y) : xl_result(l, y));
}

static void add_pad(XnnLowering *l, XnnId in, const XnnPad *pad, XnnId out) {
  if (!xl_ok(l))
    return;
  uint32_t first = xnn_vector(&l->x, pad->before, pad->rank),
           second = xnn_vector(&l->x, pad->after, pad->rank);
  XNN_ADD_NODE(&l->x, XNN_STATIC_CONSTANT_PAD, first, second, float_bits(pad->value), in, out, 0)
      ->vector_count = (uint8_t)pad->rank;
}

/* Elements of a row, up to which pads join dims: a reshape may be a copy, and rows that are longer
 * are copied fast enough. */
enum { SHORT_ROW = 32 };

/* How many of the dims are left when those behind the last padded one are joined with it, which
 * takes known sizes and reshapes that find out one dim at most. */
static uint32_t joined_rank(const XnnPad *p) {
  const SymInt *dims = p->dims;
  uint32_t rank = p->rank, last = rank, varying = 0;
  for (uint32_t i = 0; dims && i < rank; i++)
    varying += !sym_is_const(dims[i]);
  if (!dims || rank == 0 || varying > 1 || !sym_is_const(dims[rank - 1]) ||
      dims[rank - 1] > SHORT_ROW)
    return rank;
  while (last > 1 && !p->before[last - 1] && !p->after[last - 1] && sym_is_const(dims[last - 1]))
    last--;
  return sym_is_const(dims[last - 1]) ? last : rank;
}

/* XNNPACK copies a row of the last dim at a time, which are 3 elements in an image in NHWC. */
void xl_pad(XnnLowering *l, XnnId in, const XnnPad *pad, XnnId out) {
  SymInt whole[XNN_MAX_RANK], joined[XNN_MAX_RANK], rows[XNN_MAX_RANK];
  XnnPad rest = {.rank = joined_rank(pad), .value = pad->value};
  if (rest.rank == pad->rank) {
    add_pad(l, in, pad, out);
    return;
  }
  SymInt row = dims_count(pad->dims, rest.rank, pad->rank);
  for (uint32_t i = 0; i < pad->rank; i++) {
    SymInt unit = i + 1 == rest.rank ? row : 1;
    rest.before[i] = pad->before[i] * (uint32_t)unit;
    rest.after[i] = pad->after[i] * (uint32_t)unit;
    whole[i] = sym_add(&l->g->syms, pad->dims[i], (SymInt)pad->before[i] + pad->after[i]);
    joined[i] = sym_mul(&l->g->syms, pad->dims[i], unit);
    rows[i] = sym_mul(&l->g->syms, whole[i], unit);
  }
  XnnId padded = xl_sym_temp(l, rest.rank, rows);
  add_pad(l, xl_reshaped(l, in, joined, rest.rank), &rest, padded);
  xl_reshape(l, padded, whole, pad->rank, out);
}

/* in with less of one dim, as negative pads want it. */
static XnnId cropped(XnnLowering *l, XnnId in, uint32_t axis, SymInt extent, SymInt before,
                     SymInt after) {
  int64_t begin = before < 0 ? -before : 0, end = after < 0 ? -after : 0;
  if (!xl_ok(l) || (begin == 0 && end == 0))
    return in;
  if (!sym_is_const(extent) || begin + end >= extent) {
    xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", axis));
    return XNN_NONE;
  }
  XnnValue like = l->x.values[in];
  like.dims[axis] = (uint32_t)(extent - begin - end);
  XnnId out = xl_temp(l, like.rank, like.dims);
  xl_slice(l, in, axis, (uint32_t)begin, like.dims[axis], out);
  return out;
}

/* The dims of v as it is stored; their number, 0 when some are unmerged. */
static uint32_t stored_dims(const XnnLowering *l, const Permuted *t, ValueId v, uint32_t stored,
                            SymInt dims[XNN_MAX_RANK]) {
  uint32_t rank = value_rank(l->g, v);
  if (xl_is_unmerged(t, rank))
    return 0;
  for (uint32_t i = 0; i < stored; i++)
    dims[i] = 1;
  for (uint32_t i = 0; i < rank; i++)
    dims[t->axis[i]] = value_dim(l->g, v, i);
  return stored;
}

/* Pads from the last dim, before and after in turn. */
void lower_pad(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  uint32_t rank = value_rank(g, x);
  XnnPad pad = {.value = (float)node_scalar(g, n, 2)};
  if (rank > XNN_MAX_RANK) {
    xl_refuse(l, XNN_RULE_RANK_LIMIT, R_INT("rank", rank));
    return;
  }
  XnnInOut io = xl_in_out(l, x, y);
  for (uint32_t i = 0; i < node_list_count(g, n, 1) / 2; i++) {
    SymInt first = node_ints(g, n, 1)[2 * i], second = node_ints(g, n, 1)[2 * i + 1];
    uint32_t dim = rank - 1 - i, axis = xl_whole_axis(l, &io.at, dim);
    if (!sym_is_const(first) || !sym_is_const(second) || first > INT32_MAX || second > INT32_MAX) {
      xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", dim));
      return;
    }
    io.in = cropped(l, io.in, axis, value_dim(g, x, dim), first, second);
    pad.before[axis] = first > 0 ? (uint32_t)first : 0;
    pad.after[axis] = second > 0 ? (uint32_t)second : 0;
  }
  if (!xl_ok(l))
    return;
  SymInt dims[XNN_MAX_RANK];
  uint32_t stored = stored_dims(l, &io.at, y, xl_rank(l, io.out), dims);
  for (uint32_t i = 0; i < stored; i++)
    dims[i] = sym_add(&g->syms, dims[i], -(SymInt)pad.before[i] - (SymInt)pad.after[i]);
  pad.dims = stored ? dims : NULL;
  pad.rank = xl_rank(l, io.in);
  xl_pad(l, io.in, &pad, io.out);
}

static XnnInOut plain_in_out(XnnLowering *l, ValueId x, ValueId y) {
  XnnInOut io = {.in = xl_plain(l, x), .at.axis = {0, 1, 2, 3, 4, 5}};
  io.out = xl_result(l, y);
  return io;
}

/* Broadcasting by a product with ones. */
void lower_expand(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  bool as_left = xl_has_permuted(l, x) && value_rank(g, x) == value_rank(g, y);
  XnnInOut io;
  if (as_left)
    io = xl_in_out(l, x, y);
  else
    io = plain_in_out(l, x, y);
  if (!xl_ok(l))
    return;
  uint32_t rank = value_rank(g, y), lead = rank - value_rank(g, x), stored = xl_rank(l, io.out),
           ones[XNN_MAX_RANK] = {1, 1, 1, 1, 1, 1};
  uint64_t count = 1;
  for (uint32_t i = 0; i < rank && xl_ok(l); i++) {
    bool same = i >= lead && value_dim(g, x, i - lead) == value_dim(g, y, i);
    if (!same && !sym_is_const(value_dim(g, y, i)))
      xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", i));
    uint32_t axis = same ? io.at.axis[i] : xl_whole_axis(l, &io.at, i);
    ones[axis] = same ? 1 : xl_dim(l, y, i);
    count *= ones[axis];
  }
  if (count == 1 && type_is_static(value_type(g, y)) && !as_left) { /* more dims, of size 1 */
    xl_reshape_to(l, io.in, y, io.out);
    return;
  }
  if (count > 1 << 20)
    xl_refuse(l, XNN_RULE_EXPANSION, R_INT("times", count), R_INT("most", 1 << 20));
  xl_binary(l, XNN_MULTIPLY, io.in, xl_ones(l, stored, ones), io.out);
}

/* [N, C r r, H, W] -> [N, C, r, r, H, W] -> [N, C, H, r, W, r] -> [N, C, H r, W r], or
 * [N, H, W, C r r] -> [N, H, W, C, r, r] -> [N, H, r, W, r, C] -> [N, H r, W r, C]. */
void lower_pixel_shuffle(XnnLowering *l, NodeId n) {
  static const uint32_t perm[] = {0, 1, 4, 2, 5, 3};
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  if (!xl_is_image(l, x))
    return;
  for (uint32_t i = 1; i < 4; i++)
    if (!sym_is_const(value_dim(g, x, i)))
      xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", i));
  if (xl_has_permuted(l, x))
    xl_plain(l, x);
  XnnInOut io = xl_in_out(l, x, y);
  if (!xl_ok(l))
    return;
  uint32_t batch = xl_dim(l, x, 0), r = (uint32_t)node_int(g, n, 1), h = xl_dim(l, x, 2),
           w = xl_dim(l, x, 3), c = xl_dim(l, y, 1);
  SymInt many = value_dim(g, x, 0);
  if (io.nhwc) {
    XnnId split = XL_TEMP(l, batch, h, w, c, r, r), woven = XL_TEMP(l, batch, h, r, w, r, c);
    xl_reshape(l, io.in, (SymInt[]){many, h, w, c, r, r}, 6, split);
    xl_transpose(l, split, perm, 6, woven);
    xl_reshape(l, woven, (SymInt[]){many, (SymInt)h * r, (SymInt)w * r, c}, 4, io.out);
  } else {
    XnnId split = XL_TEMP(l, batch, c, r, r, h, w), woven = XL_TEMP(l, batch, c, h, r, w, r);
    xl_reshape(l, io.in, (SymInt[]){many, c, r, r, h, w}, 6, split);
    xl_transpose(l, split, perm, 6, woven);
    xl_reshape(l, woven, (SymInt[]){many, c, (SymInt)h * r, (SymInt)w * r}, 4, io.out);
  }
}
