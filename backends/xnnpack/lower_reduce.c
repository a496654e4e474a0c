/* Reductions over any dims, and log softmax.
 *
 * The dims that are reduced are brought together, so that the value is [outer, reduced, inner].
 * That is an image of height `reduced` and width 1: means and maxima are those of pools over it.
 * Sums over the last dims alone are products with a column. */
#include <math.h>

#include "backends/xnnpack/lower.h"

enum { FEW_LANES = 8, LONG_SEARCH = 256, MOST_TABLE = 1 << 15 };

typedef struct Reduction {
  ValueId x, y;
  uint32_t rank, set; /* bit i: dim i is reduced */
  uint32_t perm[XNN_MAX_RANK];
  bool permuted; /* the reduced dims are not together: perm brings them to the end */
  bool keep;     /* y has them as 1 */
  SymInt outer, reduced, inner;
} Reduction;

static bool reduces(const Reduction *r, uint32_t dim) { return (r->set >> dim & 1) != 0; }

/* Multiplies the dims of the three parts up, in the order of perm. */
static void join_dims(XnnLowering *l, Reduction *r) {
  SymTable *syms = &l->g->syms;
  r->outer = r->reduced = r->inner = 1;
  bool seen = false;
  for (uint32_t i = 0; i < r->rank; i++) {
    uint32_t dim = r->perm[i];
    seen |= reduces(r, dim);
    SymInt *part = reduces(r, dim) ? &r->reduced : seen ? &r->inner : &r->outer;
    *part = sym_mul(syms, *part, value_dim(l->g, r->x, dim));
  }
}

/* The dims of argument 1, a list or one number; none are all. */
static bool read_reduction(XnnLowering *l, NodeId n, Reduction *r) {
  Graph *g = l->g;
  *r = (Reduction){.x = node_value(g, n, 0), .y = node_result(g, n, 0)};
  r->rank = value_rank(g, r->x);
  r->keep = value_rank(g, r->y) == r->rank;
  if (r->rank == 0 || r->rank > XNN_MAX_RANK)
    return xl_refuse(l, XNN_RULE_RANK, R_INT("rank", r->rank));
  if (node_absent(g, n, 1))
    r->set = (1u << r->rank) - 1;
  else if (node_arg(g, n, 1)->kind == ARG_INT)
    r->set = 1u << xl_axis(node_int(g, n, 1), r->rank);
  else
    for (uint32_t i = 0; i < node_list_count(g, n, 1); i++)
      r->set |= 1u << xl_axis(node_ints(g, n, 1)[i], r->rank);
  if (r->set == 0)
    r->set = (1u << r->rank) - 1;
  uint32_t first = (uint32_t)__builtin_ctz(r->set), last = 31 - (uint32_t)__builtin_clz(r->set);
  for (uint32_t i = first; i <= last; i++)
    r->permuted |= !reduces(r, i) && value_dim(g, r->x, i) != 1;
  uint32_t count = 0;
  for (uint32_t i = 0; i < r->rank && r->permuted; i++)
    if (!reduces(r, i))
      r->perm[count++] = i;
  for (uint32_t i = 0; i < r->rank; i++)
    if (!r->permuted || reduces(r, i))
      r->perm[count++] = i;
  join_dims(l, r);
  return xl_ok(l);
}

/* x with the reduced dims together. */
static XnnId together(XnnLowering *l, const Reduction *r) {
  XnnId in = xl_plain(l, r->x);
  if (!r->permuted || !xl_ok(l))
    return in;
  uint32_t sizes[XNN_MAX_RANK];
  for (uint32_t i = 0; i < r->rank; i++)
    sizes[i] = xl_dim(l, r->x, r->perm[i]);
  XnnId moved = xl_temp(l, r->rank, sizes);
  xl_transpose(l, in, r->perm, r->rank, moved);
  return moved;
}

static XnnId as_image(XnnLowering *l, const Reduction *r) {
  return xl_reshaped(l, together(l, r), (SymInt[]){r->outer, r->reduced, 1, r->inner}, 4);
}

/* The result from [outer, 1, 1, inner] or [outer, 1]. */
static void finish(XnnLowering *l, const Reduction *r, XnnId in) {
  xl_reshape_to(l, in, r->y, xl_result(l, r->y));
}

/* --- means and sums --- */

XnnId xl_image_means(XnnLowering *l, XnnId in) {
  XnnId out = xl_temp_like(l, in);
  if (!xl_ok(l))
    return XNN_NONE;
  XnnValue *means = &l->x.values[out];
  for (uint32_t i = means->rank - 3u; i < means->rank - 1u; i++) {
    means->dims[i] = 1;
    means->dynamic &= (uint8_t) ~(1u << i);
  }
  XNN_ADD_NODE(&l->x, XNN_GLOBAL_AVG_POOLING2D, in, out, XNN_FLAG_KEEP_DIMS);
  return out;
}

/* The number of pixels of an image, as [1, 1]: a row of ones times the column. */
static XnnId pixel_count(XnnLowering *l, XnnId in, SymInt count) {
  if (!xl_ok(l))
    return XNN_NONE;
  for (uint32_t i = 0; i < l->count_count; i++)
    if (l->counts[i].size == count)
      return l->counts[i].id;
  uint32_t rank = xl_rank(l, in), most = xl_upper(l, count);
  XnnId ones = xl_ones_along(l, in, 1u << (rank - 3) | 1u << (rank - 2)), row = XL_TEMP(l, 1, most),
        column = XL_TEMP(l, most, 1), out = XL_TEMP(l, 1, 1);
  xl_reshape_inferred(l, ones, (uint32_t[]){1, 0}, 2, row);
  xl_reshape_inferred(l, ones, (uint32_t[]){0, 1}, 2, column);
  xl_binary(l, XNN_BATCH_MATRIX_MULTIPLY, row, column, out);
  if (xl_ok(l) && l->count_count < COUNT_OF(l->counts))
    l->counts[l->count_count++] = (XnnCount){count, out};
  return out;
}

static XnnId image_sums(XnnLowering *l, XnnId in, SymInt count) {
  XnnId means = xl_image_means(l, in);
  if (sym_is_const(count))
    return xl_scaled(l, means, (double)count);
  XnnId out = xl_temp_like(l, means);
  xl_binary(l, XNN_MULTIPLY, means, pixel_count(l, in, count), out);
  return out;
}

/* One dim that is the last in the layout of the node: no other dim matters, and any may vary. */
static bool over_last(XnnLowering *l, const Reduction *r, bool mean) {
  Graph *g = l->g;
  bool nhwc = xl_in_nhwc(l, r->y) && !xl_has_permuted(l, r->x);
  uint32_t last = nhwc ? 1 : r->rank - 1;
  if (r->set != 1u << last || !sym_is_const(r->reduced))
    return false;
  if (xl_has_permuted(l, r->x) && r->keep) {
    Permuted t = xl_rows(l, r->x);
    t.id = xl_row_sums(l, t.id, NULL, mean ? 1.0 / (double)r->reduced : 1.0, 0);
    xl_set_permuted(l, r->y, t);
    return true;
  }
  Dims dims = value_dims(g, r->x);
  XnnId in = nhwc ? xl_nhwc(l, r->x) : xl_plain(l, r->x),
        sums = xl_row_sums(l, in, nhwc ? NULL : dims.d, mean ? 1.0 / (double)r->reduced : 1.0, 0);
  if (nhwc)
    xl_set_nhwc(l, r->y, sums);
  else if (value_rank(g, r->y) == r->rank)
    xl_set_plain(l, r->y, sums);
  else if (xl_dynamic_dim_count(g, r->y) > 1)
    xl_set_permuted(l, r->y, (Permuted){.id = sums, .axis = {0, 1, 2, 3, 4, 5}});
  else
    finish(l, r, sums);
  return true;
}

static bool over_planes(const Reduction *r) {
  return r->rank == 4 && r->set == (1u << 2 | 1u << 3);
}

XnnMeanForm xl_mean_form(XnnLowering *l, NodeId n) {
  Reduction r;
  if (!read_reduction(l, n, &r))
    return MEAN_OF_ROWS;
  if (over_planes(&r))
    return sym_is_const(r.reduced) ? MEAN_OF_PLANES : MEAN_OF_IMAGE;
  bool channels = xl_has_layouts(l->g, r.x) && r.set == 1u << 1 && r.keep;
  return channels && sym_is_const(r.reduced) ? MEAN_OF_CHANNELS : MEAN_OF_ROWS;
}

/* The permutation of the axes of t that puts the reduced ones just before the last axis, which is
 * not reduced. Returns the number of axes. */
static uint32_t reduced_inside(XnnLowering *l, const Reduction *r, const Permuted *t, uint32_t axes,
                               uint32_t *perm) {
  uint32_t count = 0, last = r->rank;
  while (reduces(r, --last))
    ;
  for (uint32_t i = 0; i < last; i++)
    if (!reduces(r, i))
      xl_push_axes(t, i, perm, &count);
  for (uint32_t i = 0; i < r->rank; i++)
    if (reduces(r, i))
      xl_push_axes(t, i, perm, &count);
  for (uint32_t a = 0; a < axes; a++)
    if (xl_is_extra_axis(t, r->rank, a))
      perm[count++] = a;
  perm[count++] = xl_whole_axis(l, t, last);
  return count;
}

/* Where the dims of the result lie when the axes of t have been put in the order of perm. */
static Permuted axes_of_result(const Reduction *r, const Permuted *t, const uint32_t *perm,
                               uint32_t count) {
  Permuted to = *t;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < r->rank; i++)
    for (uint32_t k = 0; k < count; k++)
      if (perm[k] == t->axis[i] && (r->keep || !reduces(r, i))) {
        to.axis[kept] = (uint8_t)k;
        to.more[kept] = reduces(r, i) ? 0 : t->more[i];
        memcpy(to.part[kept++], t->part[i], sizeof t->part[i]);
      }
  return to;
}

static uint32_t reduced_axes(const Reduction *r, const Permuted *t) {
  uint32_t axes = 0;
  for (uint32_t i = 0; i < r->rank; i++)
    axes += reduces(r, i) ? 1u + t->more[i] : 0;
  return axes;
}

/* Means over so many axes before the last one, two at a time: those that are left follow behind the
 * ones that have become 1. */
static void means_inside(XnnLowering *l, Permuted *t, uint32_t axes, uint32_t rank) {
  t->id = xl_image_means(l, t->id);
  uint32_t perm[XNN_MAX_RANK + 1], first = rank - 1 - axes;
  for (uint32_t left = axes; left > 2; left -= 2) {
    for (uint32_t i = 0; i < rank; i++)
      perm[i] = i < first || i + 1 == rank ? i : first + (i - first + axes - 2) % axes;
    xl_permute_axes(l, t, perm, rank);
    t->id = xl_image_means(l, t->id);
  }
}

/* Reduced dims of a value with two or more dynamic dims: the mean over the axes before the last in
 * memory, at least two, one of which may be an extra axis of size 1. They stay as axes of 1. */
static bool over_dynamic(XnnLowering *l, const Reduction *r, bool mean) {
  if (xl_dynamic_dim_count(l->g, r->x) < 2 || r->set == (1u << r->rank) - 1)
    return false;
  Permuted t = xl_permuted(l, r->x);
  uint32_t axes = reduced_axes(r, &t), stored = r->rank;
  for (uint32_t i = 0; i < r->rank; i++)
    stored += t.more[i];
  bool known = sym_is_const(r->reduced);
  if (axes == 1 && xl_rank(l, t.id) == stored)
    xl_add_axis(l, &t, r->rank);
  uint32_t rank = stored + (axes == 1);
  if (!xl_ok(l) || (axes > 2 && !mean && !known) || xl_rank(l, t.id) != rank)
    return false;
  uint32_t perm[XNN_MAX_RANK + 1], count = reduced_inside(l, r, &t, rank, perm);
  xl_permute_axes(l, &t, perm, count);
  Permuted to = axes_of_result(r, &t, perm, count);
  to.id = t.id;
  if (mean || known)
    means_inside(l, &to, axes, rank);
  else
    to.id = image_sums(l, t.id, r->reduced);
  if (!mean && known)
    to.id = xl_scaled(l, to.id, (double)r->reduced);
  xl_set_permuted(l, r->y, to);
  return true;
}

void lower_mean(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  Reduction r;
  bool mean = node_cget(g, n)->op == OP_MEAN_DIM;
  if (!read_reduction(l, n, &r))
    return;
  if (over_planes(&r) && (xl_in_nhwc(l, r.y) || !sym_is_const(r.reduced))) {
    XnnId in = xl_nhwc(l, r.x), pixel = mean ? xl_image_means(l, in) : image_sums(l, in, r.reduced);
    if (r.keep)
      xl_set_nhwc(l, r.y, pixel);
    else
      finish(l, &r, pixel);
    return;
  }
  if (over_last(l, &r, mean) || over_dynamic(l, &r, mean))
    return;
  if (r.inner == 1 && sym_is_const(r.reduced)) {
    SymInt dims[] = {r.outer, r.reduced};
    XnnId rows = xl_reshaped(l, together(l, &r), dims, 2);
    finish(l, &r, xl_row_sums(l, rows, dims, mean ? 1.0 / (double)r.reduced : 1.0, 0));
    return;
  }
  XnnId image = as_image(l, &r);
  finish(l, &r, mean ? xl_image_means(l, image) : image_sums(l, image, r.reduced));
}

/* --- maxima --- */

/* Maxima over the height of an image [n, h, 1, c] in NHWC. Where it varies, the one window has the
 * largest height, which padding makes up for. */
static XnnId column_maxima(XnnLowering *l, XnnId in, SymInt height) {
  uint32_t most = xl_upper(l, height);
  if (!xl_ok(l) || height == 1)
    return in;
  uint32_t padding = most - (uint32_t)sym_lower(&l->g->syms, height),
           stride = sym_is_const(height) ? 1 : most;
  XnnValue like = l->x.values[in];
  XnnId out = XL_TEMP(l, like.dims[0], 1, 1, like.dims[3]);
  XNN_ADD_NODE(&l->x, XNN_MAX_POOLING2D, 0, 0, padding, 0, most, 1, stride, 1, 1, 1, in, out, 0);
  return out;
}

/* An image [outer, reduced, 1, inner], or [1, reduced, 1, outer]: pools run along inner, so rows
 * are made columns. */
static XnnId columns(XnnLowering *l, const Reduction *r, XnnId in) {
  if (r->inner != 1)
    return xl_reshaped(l, in, (SymInt[]){r->outer, r->reduced, 1, r->inner}, 4);
  XnnId rows = xl_reshaped(l, in, (SymInt[]){r->outer, r->reduced}, 2),
        permuted = xl_sym_temp(l, 2, (SymInt[]){r->reduced, r->outer});
  xl_transpose(l, rows, (uint32_t[]){1, 0}, 2, permuted);
  return xl_reshaped(l, permuted, (SymInt[]){1, r->reduced, 1, r->outer}, 4);
}

/* Maxima as [outer, 1, 1, inner], or [1, 1, 1, outer]. */
static XnnId maxima(XnnLowering *l, const Reduction *r, XnnId in) {
  return column_maxima(l, columns(l, r, in), r->reduced);
}

static XnnId negated(XnnLowering *l, XnnId in) {
  XnnId out = xl_temp_like(l, in);
  xl_unary(l, XNN_NEGATE, in, out);
  return out;
}

/* Extremes of the two ends of an axis, which share an element where their number is odd, until one
 * element is left. */
static XnnId axis_extremes(XnnLowering *l, XnnNodeKind kind, XnnId in, uint32_t axis) {
  for (uint32_t size = xl_ok(l) ? l->x.values[in].dims[axis] : 1; size > 1 && xl_ok(l);) {
    uint32_t half = (size + 1) / 2;
    XnnId first = xl_sliced(l, in, axis, 0, half),
          second = xl_sliced(l, in, axis, size - half, half), out = xl_temp_like(l, first);
    xl_binary(l, kind, first, second, out);
    in = out;
    size = half;
  }
  return in;
}

/* Dims of known sizes of a value that keeps several dynamic ones, which no reshape makes an image
 * of: wherever they are stored. */
static bool over_known(XnnLowering *l, const Reduction *r, bool least) {
  if (!sym_is_const(r->reduced) || xl_dynamic_dim_count(l->g, r->x) < 2)
    return false;
  Permuted t = xl_permuted(l, r->x);
  for (uint32_t i = 0; i < r->rank; i++)
    for (uint32_t k = 0; reduces(r, i) && k <= t.more[i]; k++)
      t.id = axis_extremes(l, least ? XNN_MINIMUM : XNN_MAXIMUM, t.id, t.axis[i] + k);
  for (uint32_t i = r->rank; i-- > 0;) {
    t.more[i] = reduces(r, i) ? 0 : t.more[i];
    if (reduces(r, i) && !r->keep)
      xl_move_entries(&t, i + 1, i);
  }
  xl_set_permuted(l, r->y, t);
  return true;
}

void lower_maximum(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  OpId op = node_cget(g, n)->op;
  bool least = op == OP_AMIN || op == OP_MIN_DIM;
  Reduction r;
  if (!xl_results_unused(l, n, 1) || !read_reduction(l, n, &r) || over_known(l, &r, least))
    return;
  XnnId in = together(l, &r), most = maxima(l, &r, least ? negated(l, in) : in);
  finish(l, &r, least ? negated(l, most) : most);
}

/* --- positions of maxima --- */

static XnnId whole_like(XnnLowering *l, XnnId in) {
  XnnId out = xl_temp_like(l, in);
  if (xl_ok(l))
    l->x.values[out].datatype = XNN_INT32;
  return out;
}

/* Where the maxima over the height of an image [n, h, 1, c] in NHWC are. XNNPACK has no memory for
 * maxima that nothing uses: what they are times 0 is added. */
static XnnId column_positions(XnnLowering *l, XnnId in, SymInt height) {
  static const uint32_t one = 1;
  if (!sym_is_const(height))
    xl_refuse(l, XNN_RULE_VARYING, R_STR("dim", "?"));
  else if (height == 1)
    xl_refuse(l, XNN_RULE_WINDOW, R_INT("elements", 1));
  if (!xl_ok(l))
    return XNN_NONE;
  XnnValue like = l->x.values[in];
  XnnId most = XL_TEMP(l, like.dims[0], 1, 1, like.dims[3]), where = whole_like(l, most),
        whole = whole_like(l, most), nothing = whole_like(l, most), out = whole_like(l, most);
  XNN_ADD_NODE(&l->x, XNN_ARG_MAX_POOLING2D, 0, 0, 0, 0, (uint32_t)height, 1, in, most, where, 0);
  xl_unary(l, XNN_CONVERT, most, whole);
  XnnId zero = xl_floats(l, 1, &one, (const float[]){0});
  l->x.values[zero].datatype = XNN_INT32; /* the same bits */
  xl_binary(l, XNN_MULTIPLY, whole, zero, nothing);
  xl_binary(l, XNN_ADD, where, nothing, out);
  return out;
}

void lower_position(XnnLowering *l, NodeId n) {
  bool least = node_cget(l->g, n)->op == OP_ARGMIN;
  Reduction r;
  if (!read_reduction(l, n, &r))
    return;
  /* XNNPACK searches side by side or not at all fast. */
  int64_t lanes = sym_lower(&l->g->syms, r.inner != 1 ? r.inner : r.outer);
  if (lanes < FEW_LANES && sym_upper(&l->g->syms, r.reduced) > LONG_SEARCH)
    xl_refuse(l, XNN_RULE_WINDOW, R_INT("elements", sym_upper(&l->g->syms, r.reduced)),
              R_INT("searches", lanes), R_INT("needed", FEW_LANES));
  uint32_t dims[XNN_MAX_RANK], rank = xl_dims(l, r.y, DT(I64), dims);
  XnnId in = together(l, &r), image = columns(l, &r, least ? negated(l, in) : in),
        where = column_positions(l, image, r.reduced);
  if (!xl_ok(l))
    return;
  XnnId out = xnn_value(&l->x, XNN_INT32, rank, dims);
  xl_reshape_to(l, where, r.y, out);
  xl_set_plain(l, r.y, out);
}

static bool is_finite(const Constant *table) {
  for (uint64_t i = 0; table && i < table->size / sizeof(float); i++) {
    float value;
    memcpy(&value, (const uint8_t *)table->data + i * sizeof value, sizeof value);
    if (!isfinite(value))
      return false;
  }
  return table != NULL;
}

/* 1 where the position is what the last dim, which is 1, holds, and 0 elsewhere. */
static XnnId one_hot(XnnLowering *l, XnnId column, uint32_t count) {
  if (!xl_ok(l))
    return XNN_NONE;
  XnnValue like = l->x.values[column];
  like.dims[like.rank - 1] = count;
  XnnId away = xl_temp(l, like.rank, like.dims), square = xl_temp_like(l, away),
        less = xl_temp_like(l, away), out = xl_temp_like(l, away);
  float *places = ARENA_ARRAY(l->arena, float, count);
  for (uint32_t i = 0; i < count; i++)
    places[i] = (float)i;
  xl_binary(l, XNN_SUBTRACT, column, xl_floats(l, 1, &count, places), away);
  xl_unary(l, XNN_SQUARE, away, square);
  xl_clamp(l, square, 0, 1, less);
  xl_binary(l, XNN_SUBTRACT, xl_number(l, 1, 1), less, out);
  return out;
}

/* Whether n takes rows of a constant table of finite numbers at positions that a delegate knows,
 * and may know here. */
static bool takes_rows(XnnLowering *l, NodeId n, Reduction *r) {
  Graph *g = l->g;
  ValueId table = node_value(g, n, 0),
          index = node_list_count(g, n, 1) == 1 ? node_list_value(g, n, 1, 0) : 0;
  NodeId def = index ? value_def(g, index) : 0;
  if (!def || (node_cget(g, def)->op != OP_ARGMAX && node_cget(g, def)->op != OP_ARGMIN) ||
      !(l->alone || xl_has_plain(l, index)))
    return false;
  if (!value_is_const(g, table) || value_rank(g, table) != 2 ||
      value_dtype(g, table) != DTYPE_F32 || xl_elements(l, table) > MOST_TABLE)
    return false;
  return read_reduction(l, def, r) && sym_upper(&g->syms, r->reduced) <= xl_dim(l, table, 0) &&
         is_finite(value_constant(g, table));
}

/* Rows of a small constant table at positions of maxima, which the delegate has as integers:
 * the product of the table with rows that are 1 at the position. */
void lower_index(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId table = node_value(g, n, 0), y = node_result(g, n, 0);
  Reduction r;
  if (!takes_rows(l, n, &r)) {
    xl_refuse(l, XNN_RULE_NO_NODE);
    return;
  }
  XnnId out = xl_result(l, y);
  if (l->alone || !xl_ok(l))
    return;
  ValueId index = node_list_value(g, n, 1, 0);
  uint32_t rank = value_rank(g, index), rows = xl_dim(l, table, 0);
  SymInt wide[XNN_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++)
    wide[i] = value_dim(g, index, i);
  wide[rank] = 1;
  XnnId whole = xl_plain(l, index), numbers = xl_sym_temp(l, rank, wide),
        column = xl_sym_temp(l, rank + 1, wide);
  xl_unary(l, XNN_CONVERT, whole, numbers);
  xl_reshape(l, numbers, wide, rank + 1, column);
  uint32_t dims[] = {xl_dim(l, table, 1), rows};
  XnnId filter = xl_permuted_constant(l, table, 2, dims, (const uint32_t[]){1, 0}, false);
  xl_fully_connected(l, one_hot(l, column, rows), filter, XNN_NONE, 0, out);
}

/* --- log softmax --- */

/* The sums of an image [outer, reduced, 1, inner] as [outer, 1, 1, inner]. */
static XnnId sums_of_powers(XnnLowering *l, const Reduction *r, XnnId image) {
  if (r->inner != 1)
    return image_sums(l, image, r->reduced);
  SymInt rows[] = {r->outer, r->reduced};
  XnnId sums = xl_row_sums(l, xl_reshaped(l, image, rows, 2), rows, 1, 0);
  return xl_reshaped(l, sums, (SymInt[]){r->outer, 1, 1, 1}, 4);
}

/* d - log(sum(exp(d))) with d = x less its maximum: the logarithm of a softmax would lose small
 * probabilities. */
void lower_log_softmax(XnnLowering *l, NodeId n) {
  Reduction r;
  if (!read_reduction(l, n, &r))
    return;
  if (!sym_is_const(r.reduced)) {
    xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", (uint32_t)__builtin_ctz(r.set)));
    return;
  }
  XnnId x = xl_plain(l, r.x),
        image = xl_reshaped(l, x, (SymInt[]){r.outer, r.reduced, 1, r.inner}, 4),
        most = xl_reshaped(l, maxima(l, &r, x), (SymInt[]){r.outer, 1, 1, r.inner}, 4),
        shifted = xl_temp_like(l, image), powers = xl_temp_like(l, image),
        y = xl_temp_like(l, image);
  xl_binary(l, XNN_SUBTRACT, image, most, shifted);
  xl_unary(l, XNN_EXP, shifted, powers);
  XnnId sums = sums_of_powers(l, &r, powers), logs = xl_temp_like(l, sums);
  xl_unary(l, XNN_LOG, sums, logs);
  xl_binary(l, XNN_SUBTRACT, shifted, logs, y);
  xl_reshape_to(l, y, r.y, xl_result(l, r.y));
}
