/* RoiAlign and MaxRoiPool: fixed numbers of cells of regions of images. */
#include <math.h>

#include "onnx/translate/control.h"
#include "support/number.h"

enum { CELLS_MAX = 65536, SAMPLES_MAX = 1024, BINS_MAX = 256 };

/* --- RoiAlign ---
 *
 * Bilinear samples are products with interpolation matrices: rows of samples by image rows, and the
 * same for columns. Averages of samples are averages of the matrices' rows. */

typedef struct RoiAlign {
  ValueId images; /* of each region, [R, C, H, W] */
  SymInt regions;
  int64_t channels;
  int64_t size[2], cells[2]; /* rows, columns: of the image, of the result */
  int64_t samples[2];        /* most samples of a cell along rows, columns */
  bool half_pixel, maximum;
  bool varying; /* as many samples as each region is large */
  ValueId rois; /* scaled [R, 4]: x1, y1, x2, y2 */
} RoiAlign;

/* Where the regions begin along dim d (0 rows, 1 columns), and how far they reach: [R, 1]. */
static ValueId roi_extent(Import *im, const RoiAlign *a, uint32_t d, ValueId *begin) {
  *begin = ex_slice(im, a->rois, 1, 1 - d, 2 - d);
  ValueId extent = ex_sub(im, ex_slice(im, a->rois, 1, 3 - d, 4 - d), *begin);
  return a->half_pixel ? extent : ex_max(im, extent, ex_number(im, extent, 1));
}

/* The length of a cell of each region along dim d, [R, 1]. */
static ValueId cell_length(Import *im, const RoiAlign *a, uint32_t d) {
  ValueId begin, extent = roi_extent(im, a, d, &begin);
  return ex_with(im, OP_DIV_TENSOR, extent, (double)a->cells[d]);
}

/* A sample for each pixel that a cell reaches over: that of known regions, else of one as large as
 * the image; a larger one ends the call. */
static int64_t most_samples(Import *im, const RoiAlign *a, uint32_t d) {
  ValueId needed = ex_unary(im, OP_CEIL, cell_length(im, a, d));
  Doubles known;
  int64_t most = 1;
  if (!import_ok(im))
    return most;
  if (!value_doubles(im, needed, &known)) {
    most = a->size[d] / a->cells[d] + 2;
    control_fail_if(im, ex_unary(im, OP_ANY, ex_with(im, OP_GT_TENSOR, needed, (double)most)),
                    "a region of RoiAlign with sampling_ratio 0 is larger than the image");
    return most;
  }
  for (uint32_t i = 0; i < known.count; i++)
    most = max_i64(most, int_clamped(known.at[i], 1, INT32_MAX));
  if (most > SAMPLES_MAX)
    import_fail(im, DIAG_ARG_RANGE, "a region takes %lld samples for each cell, %d at most",
                (long long)most, SAMPLES_MAX);
  return most;
}

static bool roi_read(Import *im, RoiAlign *a) {
  ValueId x = in_required(im, 0), rois = in_required(im, 1), batch = in_required(im, 2);
  StrView transformation = attr_str(im, "coordinate_transformation_mode",
                                    im->opset >= 16 ? "half_pixel" : "output_half_pixel");
  int64_t ratio = attr_int(im, "sampling_ratio", 0);
  *a = (RoiAlign){.half_pixel = sv_eq_str(transformation, "half_pixel"),
                  .maximum = attr_choice(im, "mode", "avg", "avg|max") == 1,
                  .varying = ratio == 0};
  a->cells[0] = attr_int(im, "output_height", 1), a->cells[1] = attr_int(im, "output_width", 1);
  if (ex_rank(im, x) != 4 || ex_rank(im, rois) != 2)
    import_fail(im, DIAG_INPUT_RANK, "X must have rank 4 and rois rank 2");
  if (ratio < 0 || ratio > SAMPLES_MAX || a->cells[0] < 1 || a->cells[1] < 1 ||
      a->cells[0] > CELLS_MAX || a->cells[1] > CELLS_MAX)
    import_fail(im, DIAG_ATTR_VALUE, "sampling_ratio %lld, output %lld x %lld", (long long)ratio,
                (long long)a->cells[0], (long long)a->cells[1]);
  a->regions = ex_dim(im, rois, 0);
  a->channels = ex_fixed(im, x, 1);
  a->size[0] = ex_fixed(im, x, 2), a->size[1] = ex_fixed(im, x, 3);
  a->rois = ex_times(im, rois, attr_float(im, "spatial_scale", 1));
  a->rois = ex_minus(im, a->rois, a->half_pixel ? 0.5 : 0);
  a->images = ex_index_select(im, x, 0, batch);
  for (uint32_t d = 0; d < 2; d++)
    a->samples[d] = a->varying ? most_samples(im, a, d) : ratio;
  return import_ok(im);
}

static ValueId numbers(Import *im, int64_t count, ValueId like) {
  return ex_cast(im, ex_arange(im, count), ex_dtype(im, like));
}

/* Positions of the samples along dim d where their number varies, [R, cells, samples], and which of
 * them there are. A maximum takes the last one again instead of those that there are not. */
static ValueId varying_positions(Import *im, const RoiAlign *a, uint32_t d, ValueId *there) {
  ValueId begin, length = cell_length(im, a, d), count = ex_unary(im, OP_CEIL, length);
  ValueId number = numbers(im, a->samples[d], length);
  (void)roi_extent(im, a, d, &begin);
  ValueId some = ex_at_least(im, count, 1);
  *there = a->maximum ? ex_with(im, OP_GT_TENSOR, count, 0) : ex_lt(im, number, count);
  if (a->maximum)
    number = ex_min(im, number, ex_minus(im, some, 1));
  ValueId offset = ex_div(im, ex_mul(im, ex_plus(im, number, 0.5), length), some);
  ValueId start = ex_add(im, begin, ex_mul(im, numbers(im, a->cells[d], length), length));
  start = EX_VIEW(im, start, a->regions, a->cells[d], 1);
  *there = ex_unsqueeze(im, *there, 1);
  return ex_add(im, start, ex_unsqueeze(im, offset, 1));
}

static ValueId fixed_positions(Import *im, const RoiAlign *a, uint32_t d) {
  int64_t count = a->cells[d] * a->samples[d];
  ValueId begin, extent = roi_extent(im, a, d, &begin);
  ValueId step = ex_with(im, OP_DIV_TENSOR, extent, (double)count);
  ValueId offset = ex_mul(im, step, ex_plus(im, numbers(im, count, extent), 0.5));
  return EX_VIEW(im, ex_add(im, begin, offset), a->regions, count, 1);
}

/* Sample positions along dim d, [R, samples, 1], clamped into the image; *inside: which of them are
 * near enough to count. */
static ValueId roi_positions(Import *im, const RoiAlign *a, uint32_t d, ValueId *inside) {
  int64_t count = a->cells[d] * a->samples[d];
  ValueId there = 0,
          at = a->varying ? varying_positions(im, a, d, &there) : fixed_positions(im, a, d);
  double size = (double)a->size[d];
  ValueId before_end = ex_with(im, OP_LE_TENSOR, at, size);
  *inside = ex_and(im, ex_with(im, OP_GE_TENSOR, at, -1), before_end);
  at = ex_clamp(im, at, 0, size - 1);
  if (!a->varying)
    return at;
  *inside = EX_VIEW(im, ex_and(im, *inside, there), a->regions, count, 1);
  return EX_VIEW(im, at, a->regions, count, 1);
}

static ValueId image_places(Import *im, const RoiAlign *a, uint32_t d) {
  return numbers(im, a->size[d], a->rois);
}

/* Weights of the image's pixels along dim d for samples at these positions, [R, samples, size]; 0
 * for samples that are not inside. */
static ValueId sample_weights(Import *im, const RoiAlign *a, uint32_t d, ValueId at,
                              ValueId inside) {
  ValueId distance = ex_unary(im, OP_ABS, ex_sub(im, at, image_places(im, a, d))),
          weights = ex_unary(im, OP_RELU, ex_sub(im, ex_number(im, at, 1), distance));
  return ex_where(im, inside, weights, ex_number(im, weights, 0));
}

/* [R, cells, size]: weights of averaged samples. */
static ValueId average_matrix(Import *im, const RoiAlign *a, uint32_t d) {
  ValueId inside, at = roi_positions(im, a, d, &inside),
                  weights = sample_weights(im, a, d, at, inside);
  weights = EX_VIEW(im, weights, a->regions, a->cells[d], a->samples[d], a->size[d]);
  if (!a->varying)
    return ex_reduce_one(im, OP_MEAN_DIM, weights, 2, false);
  ValueId count = ex_at_least(im, ex_unary(im, OP_CEIL, cell_length(im, a, d)), 1);
  count = EX_VIEW(im, count, a->regions, 1, 1);
  return ex_div(im, ex_sum(im, weights, 2, false), count);
}

/* [R, samples, size] twice: the weight of the neighbour below each sample, and of that above. */
static void corner_matrices(Import *im, const RoiAlign *a, uint32_t d, ValueId corner[2]) {
  ValueId inside, at = roi_positions(im, a, d, &inside), places = image_places(im, a, d);
  ValueId below = ex_unary(im, OP_FLOOR, at), part = ex_sub(im, at, below);
  ValueId last = ex_number(im, at, (double)(a->size[d] - 1));
  ValueId above = ex_min(im, ex_plus(im, below, 1), last);
  ValueId none = ex_number(im, at, 0);
  ValueId rest = ex_sub(im, ex_number(im, at, 1), part);
  ValueId near[] = {below, above}, weight[] = {rest, part};
  for (uint32_t k = 0; k < 2; k++) {
    ValueId chosen = ex_and(im, ex_eq(im, places, near[k]), inside);
    corner[k] = ex_where(im, chosen, weight[k], none);
  }
}

/* rows [R, P, H] x images [R, C, H, W] x columns' [R, Q, W]: [R, C, P, Q]. */
static ValueId sampled(Import *im, const RoiAlign *a, ValueId rows, ValueId columns) {
  SymInt p = ex_dim(im, rows, 1), q = ex_dim(im, columns, 1), r = a->regions;
  int64_t c = a->channels, h = a->size[0];
  ValueId flat = EX_VIEW(im, a->images, r, c * h, a->size[1]);
  ValueId wide = ex_bmm(im, flat, EX_PERMUTE(im, columns, 0, 2, 1));
  SymInt cq = sym_mul(&im->g->syms, c, q);
  wide = EX_VIEW(im, EX_PERMUTE(im, EX_VIEW(im, wide, r, c, h, q), 0, 2, 1, 3), r, h, cq);
  ValueId y = EX_VIEW(im, ex_bmm(im, rows, wide), r, p, c, q);
  return EX_PERMUTE(im, y, 0, 2, 1, 3);
}

void translate_roi_align(Import *im) {
  RoiAlign a;
  if (!roi_read(im, &a))
    return;
  if (!a.maximum) {
    ValueId across = average_matrix(im, &a, 1);
    out(im, 0, sampled(im, &a, average_matrix(im, &a, 0), across));
    return;
  }
  /* ONNX takes the maximum of the weighted neighbours, not of the interpolated samples. */
  ValueId rows[2], columns[2], best = 0;
  corner_matrices(im, &a, 0, rows);
  corner_matrices(im, &a, 1, columns);
  for (uint32_t i = 0; i < 4; i++) {
    ValueId corner = sampled(im, &a, rows[i / 2], columns[i % 2]);
    best = best ? ex_max(im, best, corner) : corner;
  }
  best =
      EX_VIEW(im, best, a.regions, a.channels, a.cells[0], a.samples[0], a.cells[1], a.samples[1]);
  out(im, 0, ex_reduce(im, OP_AMAX, best, (int64_t[]){3, 5}, 2, false));
}

/* --- CropAndResize (com.microsoft) ---
 *
 * A product with matrices, too: corners of a region, as parts of the image, are centres of corner
 * pixels. A pixel beyond the centres of the image's last ones is the extrapolation value. */

/* Positions of the pixels of the result along dim d, [R, cells, 1]. */
static ValueId crop_positions(Import *im, const RoiAlign *a, uint32_t d) {
  double last = (double)(a->size[d] - 1);
  ValueId begin = ex_times(im, ex_slice(im, a->rois, 1, d, d + 1), last),
          end = ex_times(im, ex_slice(im, a->rois, 1, d + 2, d + 3), last);
  if (a->cells[d] == 1)
    return EX_VIEW(im, ex_times(im, ex_add(im, begin, end), 0.5), a->regions, 1, 1);
  /* A divisor for each pixel: the kernel multiplies by the reciprocal of a single one. */
  const SymInt cells = a->cells[d];
  ValueId gaps = ex_full(im, ex_dtype(im, begin), &cells, 1, (double)(cells - 1)),
          step = ex_div(im, ex_sub(im, end, begin), gaps),
          offset = ex_mul(im, numbers(im, cells, begin), step);
  return EX_VIEW(im, ex_add(im, begin, offset), a->regions, a->cells[d], 1);
}

/* Weights of the image's pixels along dim d, [R, cells, size], and which pixels of the result are
 * inside, [R, cells, 1]. */
static ValueId crop_matrix(Import *im, const RoiAlign *a, uint32_t d, bool nearest,
                           ValueId *inside) {
  ValueId at = crop_positions(im, a, d),
          before_end = ex_with(im, OP_LE_TENSOR, at, (double)(a->size[d] - 1));
  *inside = ex_and(im, ex_with(im, OP_GE_TENSOR, at, 0), before_end);
  if (nearest)
    at = ex_unary(im, OP_FLOOR, ex_plus(im, at, 0.5));
  return sample_weights(im, a, d, at, *inside);
}

void translate_crop_and_resize(Import *im) {
  ValueId x = in_required(im, 0), rois = in_required(im, 1), batch = in_required(im, 2);
  bool nearest = attr_choice(im, "mode", "bilinear", "bilinear|nearest") == 1;
  double outside = attr_float(im, "extrapolation_value", 0);
  Ints cells;
  if (!in_consts(im, 3, &cells) || cells.count != 2 || cells.at[0] < 1 || cells.at[1] < 1 ||
      cells.at[0] > CELLS_MAX || cells.at[1] > CELLS_MAX) {
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "crop_size must be two numbers known when lowering");
    return;
  }
  if (ex_rank(im, x) != 4 || ex_rank(im, rois) != 2)
    import_fail(im, DIAG_INPUT_RANK, "X must have rank 4 and rois rank 2");
  RoiAlign a = {.images = ex_index_select(im, x, 0, batch),
                .regions = ex_dim(im, rois, 0),
                .channels = ex_fixed(im, x, 1),
                .size = {ex_fixed(im, x, 2), ex_fixed(im, x, 3)},
                .cells = {cells.at[0], cells.at[1]},
                .rois = rois};
  if (!import_ok(im))
    return;
  ValueId inside[2], rows = crop_matrix(im, &a, 0, nearest, &inside[0]),
                     columns = crop_matrix(im, &a, 1, nearest, &inside[1]),
                     y = sampled(im, &a, rows, columns);
  if (outside != 0) {
    ValueId row = EX_VIEW(im, inside[0], a.regions, 1, a.cells[0], 1),
            column = EX_VIEW(im, inside[1], a.regions, 1, 1, a.cells[1]);
    ValueId number = ex_number(im, y, outside);
    y = ex_where(im, ex_and(im, row, column), y, number);
  }
  out(im, 0, y);
}

/* --- MaxRoiPool ---
 *
 * The bins of a region are whole pixels that depend on its corners. A maximum over a bin is one
 * over its rows and then over its columns, with what is outside at -infinity. */

typedef struct RoiPool {
  ValueId rois; /* [R, 5]: image, x1, y1, x2, y2 */
  SymInt regions;
  int64_t size[2], bins[2]; /* rows, columns: of the image, of the result */
  double scale;
} RoiPool;

/* Corner k of the regions in pixels, [R, 1]; ties are rounded away from zero. */
static ValueId pixel(Import *im, const RoiPool *a, uint32_t k) {
  ValueId x = ex_times(im, ex_slice(im, a->rois, 1, k, k + 1), a->scale);
  ValueId size = ex_unary(im, OP_ABS, x), below = ex_unary(im, OP_FLOOR, size);
  ValueId up = ex_with(im, OP_GE_TENSOR, ex_sub(im, size, below), 0.5);
  ValueId whole = ex_where(im, up, ex_plus(im, below, 1), below);
  return ex_mul(im, whole, ex_unary(im, OP_SIGN, x));
}

/* Which pixels along dim d (0 rows, 1 columns) are in bin i of each region: [R, size]. */
static ValueId in_bin(Import *im, const RoiPool *a, uint32_t d, int64_t i) {
  ValueId first = pixel(im, a, 2 - d), last = pixel(im, a, 4 - d);
  ValueId length = ex_at_least(im, ex_plus(im, ex_sub(im, last, first), 1), 1);
  ValueId bin = ex_with(im, OP_DIV_TENSOR, length, (double)a->bins[d]);
  ValueId begin = ex_add(im, ex_unary(im, OP_FLOOR, ex_times(im, bin, (double)i)), first);
  ValueId end = ex_add(im, ex_unary(im, OP_CEIL, ex_times(im, bin, (double)i + 1)), first);
  ValueId places = numbers(im, a->size[d], a->rois), before_end = ex_lt(im, places, end);
  return ex_and(im, ex_ge(im, places, begin), before_end);
}

/* The maxima of x [R, C, rows, …] over the bins of dim d, which is `axis` of x and goes to the end.
 */
static ValueId bin_maxima(Import *im, const RoiPool *a, uint32_t d, ValueId x, uint32_t axis) {
  ValueId *maxima = ARENA_ARRAY(&im->scratch, ValueId, (size_t)a->bins[d]);
  ValueId least = ex_number(im, x, -INFINITY);
  for (int64_t i = 0; i < a->bins[d] && import_ok(im); i++) {
    SymInt mask[] = {a->regions, 1, 1, 1};
    mask[axis] = a->size[d];
    ValueId kept = ex_where(im, ex_view(im, in_bin(im, a, d, i), mask, 4), x, least);
    maxima[i] = ex_reduce_one(im, OP_AMAX, kept, axis, true);
  }
  return ex_cat(im, maxima, (uint32_t)a->bins[d], axis);
}

void translate_max_roi_pool(Import *im) {
  ValueId x = in_required(im, 0);
  RoiPool a = {.rois = in_required(im, 1), .scale = attr_float(im, "spatial_scale", 1)};
  Ints bins;
  if (ex_rank(im, x) != 4 || ex_rank(im, a.rois) != 2 || ex_dim(im, a.rois, 1) != 5)
    import_fail(im, DIAG_INPUT_RANK, "X must have rank 4, and rois rank 2 and 5 columns");
  if (!attr_ints(im, "pooled_shape", &bins) || bins.count != 2)
    import_fail(im, DIAG_ATTR_MISSING, "attribute 'pooled_shape' must have two sizes");
  if (!import_ok(im))
    return;
  for (uint32_t d = 0; d < 2; d++) {
    a.bins[d] = bins.at[d];
    a.size[d] = ex_fixed(im, x, 2 + d);
    if (a.bins[d] < 1 || a.bins[d] > BINS_MAX)
      import_fail(im, DIAG_ATTR_VALUE, "pooled_shape has %lld, not 1 to %d", (long long)a.bins[d],
                  BINS_MAX);
  }
  a.regions = ex_dim(im, a.rois, 0);
  ValueId batch = EX_VIEW(im, ex_slice(im, a.rois, 1, 0, 1), a.regions);
  x = ex_index_select(im, x, 0, ex_cast(im, batch, DTYPE_I64));
  ValueId y = bin_maxima(im, &a, 1, bin_maxima(im, &a, 0, x, 2), 3);
  /* A bin without a pixel is 0. */
  ValueId none = ex_is(im, y, -INFINITY);
  out(im, 0, ex_where(im, none, ex_number(im, y, 0), y));
}
