/* Pools. The runtime has 2-D kernels with equal pads of at most half the window: one dimension more
 * is added for 1-D, pads that do not fit are written out first, 3-D windows are separated (max) or
 * summed by a depthwise convolution (average). */
#include <math.h>

#include "onnx/express.h"
#include "onnx/translate/spatial.h"

static bool pads_fit_kernel(const Window *w) {
  for (uint32_t i = 0; i < w->rank; i++)
    if (w->begin[i] > w->kernel[i] / 2)
      return false;
  return window_symmetric(w);
}

/* The least value of a dtype: what max ignores. */
static ArgIn lowest(DType dtype) {
  return dtype_in(dtype, DTS_INT) ? A_INT((int64_t)int_least(dtype)) : A_FLOAT(-INFINITY);
}

/* A window of ceil_mode that is larger than the padded input, as a pool over any image up to a size
 * is written, ends there: kernels take time, and XNNPACK a pointer, for each tap that meets
 * nothing.
 */
static bool read_pool(Import *im, ValueId x, Window *w) {
  if (!window_read(im, x, NULL, w))
    return false;
  for (uint32_t i = 0; i < w->rank && w->ceil && import_ok(im); i++) {
    SymInt size = ex_dim(im, x, 2 + i), begin = w->begin[i], end = w->end[i];
    if (sym_is_const(size) && sym_is_const(begin) && sym_is_const(end) && w->dilation[i] == 1)
      w->kernel[i] = min_i64(w->kernel[i], max_i64(begin + size + end, 1));
  }
  return import_ok(im);
}

/* Where the last window of ceil_mode starts along spatial dim i: it may end beyond the end padding,
 * but a window that would start in it is dropped. */
static SymInt last_start(Import *im, SymInt size, const Window *w, uint32_t i) {
  SymTable *t = &im->g->syms;
  int64_t extent = window_extent(w, i), stride = w->stride[i];
  SymInt begun = sym_add(t, size, w->begin[i]), beyond = sym_sub(t, w->end[i], extent),
         span = sym_add(t, begun, beyond), by_end = sym_ceildiv(t, span, stride),
         by_size = sym_sub(t, sym_ceildiv(t, begun, stride), 1);
  if (!sym_is_const(beyond))
    return sym_mul(t, sym_min(t, by_end, by_size), stride);
  return sym_mul(t, beyond + stride <= 0 ? by_end : by_size, stride);
}

/* Changes the end pads until the floor formula gives the sizes that ceil_mode wants, so that
 * explicit padding can replace it. */
static void spell_out_ceil(Import *im, ValueId x, Window *w) {
  SymTable *t = &im->g->syms;
  for (uint32_t i = 0; i < w->rank && w->ceil && import_ok(im); i++) {
    SymInt size = ex_dim(im, x, 2 + i), begun = sym_add(t, size, w->begin[i]),
           wanted = sym_sub(t, sym_add(t, last_start(im, size, w, i), window_extent(w, i)), begun);
    bool ends_beyond = !sym_is_const(wanted) && w->stride[i] <= window_extent(w, i);
    w->end[i] = ends_beyond ? wanted : sym_max(t, w->end[i], wanted);
  }
  w->ceil = false;
}

/* [N, C, L] <-> [N, C, 1, L]; window entries moved along. */
static ValueId to_2d(Import *im, ValueId x, Window *w) {
  if (w->rank != 1)
    return x;
  SymInt *lists[] = {w->kernel, w->stride, w->dilation, w->begin, w->end};
  for (size_t i = 0; i < COUNT_OF(lists); i++) {
    lists[i][1] = lists[i][0];
    lists[i][0] = i < 3 ? 1 : 0;
  }
  w->rank = 2;
  return ex_unsqueeze(im, x, 2);
}

static ValueId from_2d(Import *im, ValueId y, uint32_t rank) {
  return rank == 1 ? EX_VIEW(im, y, ex_dim(im, y, 0), ex_dim(im, y, 1), ex_dim(im, y, 3)) : y;
}

static ValueId max_pool2d(Import *im, ValueId x, const Window *w) {
  return build(&im->b, OP_MAX_POOL2D_WITH_INDICES, A_VAL(x), W_ARG(w->kernel, w),
               W_ARG(w->stride, w), W_ARG(w->begin, w), W_ARG(w->dilation, w), A_BOOL(w->ceil));
}

/* An index that counts elements of a box as its coordinates; the last one varies fastest. */
static void coordinates(Import *im, ValueId index, const SymInt *sizes, uint32_t count,
                        ValueId *coords) {
  for (uint32_t i = count; i-- > 1;) {
    ValueId size = ex_size(im, sizes[i]), rest = ex_floor_div(im, index, size);
    coords[i] = ex_sub(im, index, ex_mul(im, rest, size));
    index = rest;
  }
  coords[0] = index;
}

/* Indices of max, from coordinates in the padded input: ONNX counts within the whole tensor without
 * its pads, the last spatial dimension varying fastest, or with storage_order 1 the first. */
static ValueId flat_indices(Import *im, const ValueId *coords, ValueId x, const Window *padded) {
  bool first_fastest = attr_flag(im, "storage_order", false);
  uint32_t rank = padded->rank;
  SymInt n = ex_dim(im, x, 0), c = ex_dim(im, x, 1);
  SymTable *t = &im->g->syms;
  ValueId index = 0;
  for (uint32_t k = 0; k < rank && import_ok(im); k++) {
    uint32_t i = first_fastest ? rank - 1 - k : k;
    ValueId coord = ex_sub(im, coords[i], ex_size(im, padded->begin[i]));
    index = k ? ex_add(im, ex_mul(im, index, ex_size(im, ex_dim(im, x, 2 + i))), coord) : coord;
  }
  SymInt plane = shape_product(im, vt(im, x)->dims + 2, rank);
  ValueId each = ex_size(im, plane), offsets = ex_mul(im, ex_arange(im, sym_mul(t, n, c)), each);
  SymInt dims[2 + SPATIAL_MAX] = {n, c, 1, 1, 1};
  return ex_add(im, index, ex_view(im, offsets, dims, 2 + rank));
}

/* A pool that takes each element alone gives them back; their indices are wanted all the same. */
static bool takes_one(Import *im, const Window *w) {
  return !out_wanted(im, 1) && w->kernel[0] == 1 && w->kernel[1] == 1 && w->stride[0] == 1 &&
         w->stride[1] == 1;
}

/* Max over a box is max over its H x W face, then over D: [N, C, D, H, W] -> [N, C*D, H, W] -> pool
 * -> [N, C, D, H'*W'] -> pool. x is padded already. */
static ValueId max_pool3d(Import *im, ValueId x, const Window *w, ValueId coords[3]) {
  SymTable *t = &im->g->syms;
  Dims s = shape_of(im, x);
  const SymInt *d = s.d;
  Window face = {.rank = 2,
                 .kernel = {w->kernel[1], w->kernel[2]},
                 .stride = {w->stride[1], w->stride[2]},
                 .dilation = {w->dilation[1], w->dilation[2]}};
  Window depth = {.rank = 2,
                  .kernel = {w->kernel[0], 1},
                  .stride = {w->stride[0], 1},
                  .dilation = {w->dilation[0], 1}};
  ValueId faces = EX_VIEW(im, x, d[0], sym_mul(t, d[1], d[2]), d[3], d[4]);
  if (!takes_one(im, &face))
    faces = max_pool2d(im, faces, &face);
  SymInt h = ex_dim(im, faces, 2), wide = ex_dim(im, faces, 3), whole = sym_mul(t, h, wide);
  if (takes_one(im, &depth))
    return EX_VIEW(im, faces, d[0], d[1], d[2], h, wide);
  ValueId y = max_pool2d(im, EX_VIEW(im, faces, d[0], d[1], d[2], whole), &depth);
  SymInt deep = ex_dim(im, y, 2);
  if (out_wanted(im, 1)) {
    /* Which face the maximum is in, and where that face has its own. */
    SymInt columns[] = {d[2], whole}, planes[] = {d[3], d[4]};
    ValueId at = y + 1, within[2];
    ValueId own = ex_view(im, faces + 1, (SymInt[]){d[0], d[1], sym_mul(t, d[2], whole)}, 3);
    ValueId chosen = EX_VIEW(im, at, d[0], d[1], sym_mul(t, deep, whole));
    ValueId plane = build(&im->b, OP_GATHER, A_VAL(own), A_INT(2), A_VAL(chosen), A_BOOL(false));
    coordinates(im, EX_VIEW(im, at, d[0], d[1], deep, h, wide), columns, 2, within);
    coords[0] = within[0];
    coordinates(im, EX_VIEW(im, plane, d[0], d[1], deep, h, wide), planes, 2, coords + 1);
  }
  return EX_VIEW(im, y, d[0], d[1], deep, h, wide);
}

ValueId window_max(Import *im, ValueId x) {
  ValueId whole = x, coords[SPATIAL_MAX];
  Window w;
  if (!read_pool(im, x, &w))
    return 0;
  uint32_t rank = w.rank;
  Window padded = {.rank = rank};
  if (rank == 3 || !pads_fit_kernel(&w)) {
    spell_out_ceil(im, x, &w);
    padded = w;
    x = window_pad(im, x, &w, lowest(ex_dtype(im, x)));
  }
  ValueId values, input = x;
  if (rank == 3) {
    values = max_pool3d(im, x, &w, coords);
  } else {
    ValueId pooled = max_pool2d(im, to_2d(im, x, &w), &w);
    values = from_2d(im, pooled, rank);
    if (out_wanted(im, 1))
      coordinates(im, from_2d(im, pooled + 1, rank), shape_of(im, input).d + 2, rank, coords);
  }
  if (out_wanted(im, 1))
    out(im, 1, flat_indices(im, coords, whole, &padded));
  return values;
}

void translate_max_pool(Import *im) { out(im, 0, window_max(im, in_required(im, 0))); }

/* --- average --- */

/* Sum over each window of every channel, as a depthwise convolution with ones (zeros beyond the
 * input). Channels whose number is not known join the batch. */
static ValueId window_sums(Import *im, ValueId x, const Window *w) {
  Dims s = shape_of(im, x), joined = s;
  SymInt channels = s.d[1];
  if (!sym_is_const(channels) || channels < 1) {
    joined.d[0] = sym_mul(&im->g->syms, s.d[0], channels);
    joined.d[1] = channels = 1;
    x = ex_view_as(im, x, joined);
  }
  SymInt dims[2 + SPATIAL_MAX] = {channels, 1};
  memcpy(dims + 2, w->kernel, w->rank * sizeof *dims);
  ValueId ones =
      build(&im->b, OP_FULL, A_INTS(dims, 2 + w->rank), A_INT(1), A_DTYPE(ex_dtype(im, x)));
  ValueId sums = window_convolve(im, x, ones, 0, w, channels);
  if (channels == s.d[1])
    return sums;
  Dims apart = shape_of(im, sums);
  memcpy(apart.d, s.d, 2 * sizeof *s.d);
  return ex_view_as(im, sums, apart);
}

static bool all_are(const SymInt *list, uint32_t count, SymInt number) {
  uint32_t i = 0;
  while (i < count && list[i] == number)
    i++;
  return i == count;
}

static bool no_pads(const Window *w) {
  return all_are(w->begin, w->rank, 0) && all_are(w->end, w->rank, 0);
}

/* Average by hand: sums over the padded input divided by how many elements each window counts (a
 * constant where sizes are fixed): those of the input, or with count_include_pad those of input and
 * pads, but never what only ceil_mode added. */
static ValueId average_by_sums(Import *im, ValueId x, Window w, bool count_pads) {
  Window grown = w;
  if (!w.ceil && count_pads) { /* all count the same */
    double count = 1;
    for (uint32_t i = 0; i < w.rank; i++)
      count *= (double)w.kernel[i];
    x = window_pad(im, x, &grown, A_INT(0));
    return ex_times(im, window_sums(im, x, &grown), 1 / count);
  }
  spell_out_ceil(im, x, &grown);
  SymInt dims[2 + SPATIAL_MAX] = {1, 1};
  for (uint32_t i = 0; i < w.rank; i++)
    dims[2 + i] = ex_dim(im, x, 2 + i);
  ValueId counted =
      build(&im->b, OP_FULL, A_INTS(dims, 2 + w.rank), A_INT(1), A_DTYPE(ex_dtype(im, x)));
  Window rest = grown;
  if (count_pads) {
    Window own = w;
    counted = window_pad(im, counted, &own, A_INT(1));
    for (uint32_t i = 0; i < w.rank; i++) {
      rest.begin[i] = 0;
      rest.end[i] = sym_sub(&im->g->syms, grown.end[i], w.end[i]);
    }
  }
  Window count_window = rest;
  counted = window_pad(im, counted, &count_window, A_INT(0));
  ValueId count = window_sums(im, counted, &count_window);
  ValueId padded = window_pad(im, x, &grown, A_INT(0));
  ValueId sums = window_sums(im, padded, &grown);
  return ex_div(im, sums, count);
}

ValueId window_average(Import *im, ValueId x, bool count_ceil) {
  Window w;
  if (!read_pool(im, x, &w))
    return 0;
  bool include = attr_flag(im, "count_include_pad", false);
  if (count_ceil && include)
    spell_out_ceil(im, x, &w);
  bool count_pads = include || no_pads(&w);
  uint32_t rank = w.rank;
  if (rank == 3 || !all_are(w.dilation, rank, 1) || !pads_fit_kernel(&w) ||
      (w.ceil && !no_pads(&w)))
    return average_by_sums(im, x, w, count_pads);
  x = to_2d(im, x, &w);
  ValueId y = build(&im->b, OP_AVG_POOL2D, A_VAL(x), W_ARG(w.kernel, &w), W_ARG(w.stride, &w),
                    W_ARG(w.begin, &w), A_BOOL(w.ceil), A_BOOL(count_pads));
  return from_2d(im, y, rank);
}

void translate_average_pool(Import *im) {
  out(im, 0, window_average(im, in_required(im, 0), false));
}

/* The p of a p-norm. */
static double norm_order(Import *im) {
  double p = im->opset >= 2 ? (double)attr_int(im, "p", 2) : attr_float(im, "p", 2);
  if (!(p > 0 && p < INFINITY))
    import_fail(im, DIAG_ATTR_VALUE, "p is %g; a norm needs a positive p", p);
  return p;
}

/* (sum |x|^p)^(1/p) over windows; zeros beyond the input add nothing. */
void translate_lp_pool(Import *im) {
  ValueId given = in_required(im, 0), x = ex_widen(im, given);
  Window w;
  double p = norm_order(im);
  if (!read_pool(im, x, &w))
    return;
  spell_out_ceil(im, x, &w);
  ValueId power = ex_pow(im, ex_unary(im, OP_ABS, x), p);
  power = window_pad(im, power, &w, A_INT(0));
  ValueId y = ex_pow(im, window_sums(im, power, &w), 1 / p);
  out(im, 0, ex_cast(im, y, ex_dtype(im, given)));
}

/* --- global --- */

static uint32_t global_rank(Import *im, ValueId x) {
  uint32_t rank = ex_rank(im, x);
  if (rank < 2)
    import_fail(im, DIAG_INPUT_RANK, "a global pool needs rank 2 or more, the input has %u", rank);
  return rank;
}

void translate_global_pool(Import *im) {
  ValueId x = in_required(im, 0);
  out(im, 0, ex_reduce_dims(im, im->op, x, 2, global_rank(im, x), true));
}

void translate_global_lp_pool(Import *im) {
  ValueId given = in_required(im, 0), x = ex_widen(im, given);
  int64_t axes[MAX_RANK];
  double p = norm_order(im);
  uint32_t count = 0, rank = global_rank(im, x);
  for (uint32_t i = 2; i < rank; i++)
    axes[count++] = i;
  if (import_ok(im) && !count)
    import_fail(im, DIAG_INPUT_RANK, "GlobalLpPool needs rank 3 or more, the input has %u", rank);
  ValueId power = ex_pow(im, ex_unary(im, OP_ABS, x), p);
  ValueId sum = build(&im->b, OP_SUM_DIM_INTLIST, A_VAL(power), A_INTS(axes, count), A_BOOL(true));
  ValueId y = ex_pow(im, sum, 1 / p);
  out(im, 0, ex_cast(im, y, ex_dtype(im, given)));
}
