/* Resize and Upsample. Plain nearest and bilinear resizing of images is one kernel; everything else
 * goes an axis at a time (resample.c). Scales, sizes and regions that arrive at run time enter the
 * arithmetic of the coordinates; output 0 then declares the shape, or --bound limits the sizes. */
#include <math.h>

#include "onnx/data_sizes.h"
#include "onnx/translate/resample.h"
#include "ops/quantized.h"

typedef struct Resize {
  Resample how;
  ValueId x, scales, sizes, roi; /* scales xor sizes; 0 when absent */
  Dims in, out;
  uint32_t count; /* of resized axes */
  uint32_t axes[MAX_RANK];
  double scale[MAX_RANK]; /* by position in axes; 0: not known when lowering */
  uint32_t unsolved; /* 1 + position of the axis whose size by its scale has no formula, or 0 */
  enum { STRETCH, NOT_LARGER, NOT_SMALLER } policy;
} Resize;

/* --- attributes --- */

/* The last one left the standard with opset 13; tf2onnx still writes it, and ONNX Runtime computes
 * it. */
#define COORDINATES                                                                                \
  "half_pixel|half_pixel_symmetric|pytorch_half_pixel|align_corners|asymmetric|"                   \
  "tf_crop_and_resize|tf_half_pixel_for_nn"

static void read_how(Import *im, Resize *r) {
  uint32_t mode = attr_choice(im, "mode", "nearest", "nearest|linear|cubic|bilinear");
  r->how = (Resample){.mode = mode == 3 ? RESAMPLE_LINEAR : (ResampleMode)mode,
                      .coordinates = COORD_ASYMMETRIC,
                      .rounding = ROUND_BY_SCALE,
                      .cubic_a = attr_float(im, "cubic_coeff_a", -0.75),
                      .extrapolation = attr_float(im, "extrapolation_value", 0),
                      .exclude_outside = attr_flag(im, "exclude_outside", false),
                      .antialias = attr_flag(im, "antialias", false)};
  r->policy =
      attr_choice(im, "keep_aspect_ratio_policy", "stretch", "stretch|not_larger|not_smaller");
  if (im->opset < 11)
    return;
  r->how.coordinates =
      (Coordinates)attr_choice(im, "coordinate_transformation_mode", "half_pixel", COORDINATES);
  r->how.rounding = (Rounding)attr_choice(im, "nearest_mode", "round_prefer_floor",
                                          "round_prefer_floor|round_prefer_ceil|floor|ceil");
}

static bool read_axes(Import *im, Resize *r) {
  Ints axes;
  bool listed = attr_ints(im, "axes", &axes);
  r->count = listed ? axes.count : r->in.rank;
  if (r->count > r->in.rank)
    import_fail(im, DIAG_ATTR_VALUE, "%u axes for a tensor of rank %u", r->count, r->in.rank);
  uint32_t seen = 0; /* a bit for each axis */
  for (uint32_t i = 0; i < r->count && import_ok(im); i++) {
    r->axes[i] = listed ? import_axis(im, axes.at[i], r->in.rank) : i;
    if (import_ok(im) && seen >> r->axes[i] & 1)
      import_fail(im, DIAG_AXIS_RANGE, "axis %u is resized twice", r->axes[i]);
    seen |= import_ok(im) ? 1u << r->axes[i] : 0;
  }
  return import_ok(im);
}

/* --- output shape --- */

/* The size times the scale that keeps the aspect ratio, rounded. */
static bool fitted_size(SymInt size, double scale, SymInt *out) {
  double length = (double)size * scale + 0.5;
  if (!sym_is_const(size) || !(length >= 0) || length >= (double)((int64_t)1 << 40))
    return false;
  *out = int_clamped(length, 0, INT64_MAX);
  return true;
}

static bool count_matches(Import *im, const Resize *r, uint32_t count) {
  if (count != r->count)
    import_fail(im, DIAG_SHAPE_MISMATCH, "%u scales or sizes for %u axes", count, r->count);
  return import_ok(im);
}

static bool shape_from_scales(Import *im, Resize *r) {
  Doubles scales;
  if (!value_doubles(im, r->scales, &scales) || !count_matches(im, r, scales.count))
    return false;
  for (uint32_t i = 0; i < scales.count; i++) {
    r->scale[i] = scales.at[i];
    if (!(r->scale[i] > 0) || isinf(r->scale[i]))
      return import_fail(im, DIAG_ARG_RANGE,
                         "the scale of axis %u is %g; scales are finite and greater than 0",
                         r->axes[i], r->scale[i]);
    SymStep times = {SYM_TIMES, scales.at[i]};
    if (!sym_computed(&im->g->syms, r->in.d[r->axes[i]], &times, 1, DTYPE_F32, SYM_TRUNC,
                      &r->out.d[r->axes[i]])) {
      r->unsolved = i + 1;
      return false;
    }
  }
  return true;
}

static void fail_unsolved(Import *im, const Resize *r) {
  SymTable *t = &im->g->syms;
  uint32_t i = r->unsolved - 1, axis = r->axes[i];
  SymInt size = r->in.d[axis];
  if (!r->scales) {
    import_fail(
        im, DIAG_INPUT_NOT_CONST,
        "keep_aspect_ratio_policy takes the scale of one axis for all, and the size of axis "
        "%u is %lld to %lld: give it one size with --dim, or the output a declared shape",
        axis, (long long)sym_lower(t, size), (long long)sym_upper(t, size));
    return;
  }
  if (sym_is_const(size)) {
    import_fail(im, DIAG_SHAPE_OVERFLOW, "axis %u of the result is too large: %lld times %g", axis,
                (long long)size, r->scale[i]);
    return;
  }
  import_fail(im, DIAG_INPUT_NOT_CONST,
              "no formula gives the size of axis %u, which is %lld to %lld, times %g as float32 "
              "rounds it: give that size fewer values with --dim, or the output a declared shape",
              axis, (long long)sym_lower(t, size), (long long)sym_upper(t, size), r->scale[i]);
}

static bool shape_from_sizes(Import *im, Resize *r) {
  Ints sizes;
  if (!value_ints(im, r->sizes, &sizes) || !count_matches(im, r, sizes.count))
    return false;
  double common = 0;
  for (uint32_t i = 0; i < sizes.count; i++) {
    SymInt in = r->in.d[r->axes[i]];
    r->out.d[r->axes[i]] = sizes.at[i];
    r->scale[i] = sym_is_const(in) && sym_is_const(sizes.at[i]) && in > 0
                      ? (double)sizes.at[i] / (double)in
                      : 0;
    if (r->policy != STRETCH && r->scale[i] == 0) {
      r->unsolved = i + 1;
      return false;
    }
    bool better = r->policy == NOT_LARGER ? r->scale[i] < common : r->scale[i] > common;
    if (i == 0 || better)
      common = r->scale[i];
  }
  for (uint32_t i = 0; i < sizes.count && r->policy != STRETCH; i++) {
    r->scale[i] = common;
    if (!fitted_size(r->in.d[r->axes[i]], common, &r->out.d[r->axes[i]]))
      return false;
  }
  return true;
}

/* Sizes that are read while the program runs. */
static bool shape_from_data(Import *im, Resize *r) {
  Dims sizes;
  bool in_a_row = r->count > 0;
  for (uint32_t i = 1; i < r->count; i++)
    in_a_row &= r->axes[i] == r->axes[0] + i;
  if (!r->sizes || r->policy != STRETCH || !in_a_row ||
      !data_sizes(im, r->sizes, r->axes[0], "the size of the result", &sizes) ||
      !count_matches(im, r, sizes.rank))
    return false;
  for (uint32_t i = 0; i < r->count; i++)
    r->out.d[r->axes[i]] = sizes.d[i];
  return import_ok(im);
}

static bool output_shape(Import *im, Resize *r) {
  r->out = r->in;
  if (r->scales ? shape_from_scales(im, r) : shape_from_sizes(im, r))
    return true;
  uint32_t input = r->sizes ? 3 : im->opset < 11 ? 1 : 2;
  bool declared = out_declared_dims(im, 0, &r->out);
  if (!declared && shape_from_data(im, r))
    return true;
  if (!declared && r->unsolved)
    fail_unsolved(im, r);
  else if (!declared)
    fail_not_known(im, input, r->scales ? "the list of scales" : "the list of sizes");
  if (r->out.rank != r->in.rank)
    import_fail(im, DIAG_DIM_CONTRADICTION, "the output is declared with rank %u, not %u",
                r->out.rank, r->in.rank);
  return import_ok(im);
}

/* --- one kernel --- */

/* Does the scale map the size exactly onto the output's, or does it not matter? */
static bool exact(Import *im, const Resize *r, uint32_t axis) {
  if (r->how.coordinates == COORD_ALIGN_CORNERS)
    return true;
  for (uint32_t i = 0; i < r->count; i++) {
    if (r->axes[i] != axis || !r->scales)
      continue;
    double scale = r->scale[i];
    if (scale == 0)
      return false;
    if (sym_is_const(r->in.d[axis]))
      return (double)r->in.d[axis] * scale == (double)r->out.d[axis];
    SymInt whole;
    return sym_from_float(scale, &whole) &&
           r->out.d[axis] == sym_mul(&im->g->syms, r->in.d[axis], whole);
  }
  return true;
}

/* The kernel's nearest source is floor(i * ratio) in float arithmetic: is that the right one? */
static bool nearest_agrees(const Resize *r, uint32_t axis, int64_t factor) {
  SymInt in = r->in.d[axis], out = r->out.d[axis];
  if (!sym_is_const(in) || !sym_is_const(out)) /* then the ratio must be a power of two */
    return (factor & (factor - 1)) == 0;
  if (out > 1 << 24) /* positions that a float cannot tell apart */
    return false;
  float ratio = 1.0F / (float)((double)out / (double)in);
  for (int64_t i = 0; i < out; i++)
    if (int_clamped((double)((float)i * ratio), 0, INT64_MAX) != i / factor)
      return false;
  return true;
}

/* The integer factor of an axis, 0 when it is not an integer. */
static int64_t whole_factor(Import *im, const Resize *r, uint32_t axis) {
  SymInt in = r->in.d[axis], out = r->out.d[axis];
  if (sym_is_const(in) && sym_is_const(out))
    return in > 0 && out % in == 0 ? out / in : 0;
  for (int64_t factor = 1; factor <= 64; factor *= 2)
    if (out == sym_mul(&im->g->syms, in, factor))
      return factor;
  return 0;
}

static bool nearest_kernel(Import *im, const Resize *r, uint32_t axis) {
  Coordinates c = r->how.coordinates;
  Rounding rounding = r->how.rounding;
  int64_t factor = whole_factor(im, r, axis);
  bool centred =
      c == COORD_HALF_PIXEL || c == COORD_HALF_PIXEL_SYMMETRIC || c == COORD_PYTORCH_HALF_PIXEL;
  bool fits = (c == COORD_ASYMMETRIC && (rounding == ROUND_FLOOR || rounding == ROUND_BY_SCALE)) ||
              (centred && (rounding == ROUND_PREFER_FLOOR || rounding == ROUND_PREFER_CEIL)) ||
              (c == COORD_ASYMMETRIC && rounding == ROUND_PREFER_FLOOR && factor <= 2);
  return fits && factor > 0 && nearest_agrees(r, axis, factor);
}

static bool linear_kernel(const Resize *r) {
  Coordinates c = r->how.coordinates;
  return !r->how.antialias && !r->how.exclude_outside &&
         (c == COORD_HALF_PIXEL || c == COORD_HALF_PIXEL_SYMMETRIC ||
          c == COORD_PYTORCH_HALF_PIXEL || c == COORD_ALIGN_CORNERS);
}

static bool kernel_fits_axis(Import *im, const Resize *r, uint32_t i) {
  return exact(im, r, i) && (r->how.mode != RESAMPLE_NEAREST || nearest_kernel(im, r, i)) &&
         (r->how.coordinates != COORD_PYTORCH_HALF_PIXEL ||
          sym_lower(&im->g->syms, r->out.d[i]) >= 2);
}

/* Codes of an op that backends match: they are resized as the numbers they stand for. */
static bool is_quantized(Import *im, ValueId x) {
  NodeId n = import_ok(im) ? value_def(im->g, x) : 0;
  if (!is_quantize(im->g, n))
    return false;
  Quantization q = quantization_of(im->g, n);
  return !q.scales && !q.dynamic && q.scale > 0 && dtype_in(q.dtype, DT(U8) | DT(I8));
}

static bool kernel_fits(Import *im, const Resize *r) {
  uint32_t rank = r->in.rank;
  if ((rank != 3 && rank != 4) || r->in.d[0] != r->out.d[0] || r->in.d[1] != r->out.d[1] ||
      r->how.mode == RESAMPLE_CUBIC || r->policy != STRETCH)
    return false;
  if (r->how.mode == RESAMPLE_LINEAR &&
      (!linear_kernel(r) || (!dtype_is_float(ex_dtype(im, r->x)) && !is_quantized(im, r->x))))
    return false;
  for (uint32_t i = 2; i < rank; i++)
    if (!kernel_fits_axis(im, r, i))
      return false;
  return true;
}

/* x as codes: of two codes that it lies between ONNX Runtime takes the one nearer to 0, which is no
 * number but a code. What rounding takes away from a whole code must not count. */
static ValueId codes_towards_zero(Import *im, ValueId x, const Quantization *q) {
  const float rounding = 1.0F / 1024;
  double most = (double)((0.5F - rounding) * q->scale);
  ValueId less = build_scalar(&im->b, DTYPE_F32, most);
  if (q->dtype == DTYPE_I8) {
    ValueId zero = build_scalar(&im->b, DTYPE_F32, (double)((float)q->zero * q->scale));
    less = ex_clamp(im, ex_add(im, x, zero), -most, most);
  }
  x = ex_sub(im, x, less);
  return import_ok(im) ? build_quantize(&im->b, x, q) : 0;
}

/* N, C and one or two image dims, resized by one of the runtime's kernels: true when done. */
static bool resize_kernel(Import *im, const Resize *r) {
  uint32_t rank = r->in.rank;
  if (!kernel_fits(im, r))
    return false;
  Dims image = r->in;
  SymInt size[2] = {r->out.d[2], r->out.d[rank - 1]};
  if (rank == 3) {
    image = (Dims){4, {r->in.d[0], r->in.d[1], 1, r->in.d[2]}};
    size[0] = 1;
  }
  ValueId y = ex_view_as(im, r->x, image);
  bool quantized = r->how.mode == RESAMPLE_LINEAR && is_quantized(im, r->x);
  Quantization q = {0};
  if (quantized) {
    q = quantization_of(im->g, value_def(im->g, r->x));
    y = ex_view_as(im, build_dequantize(&im->b, r->x, &q), image);
  }
  if (r->how.mode == RESAMPLE_NEAREST)
    y = build(&im->b, OP_UPSAMPLE_NEAREST2D_VEC, A_VAL(y), A_INTS(size, 2), A_NONE);
  else
    y = build(&im->b, OP_UPSAMPLE_BILINEAR2D_VEC, A_VAL(y), A_INTS(size, 2),
              A_BOOL(r->how.coordinates == COORD_ALIGN_CORNERS), A_NONE);
  if (quantized)
    y = codes_towards_zero(im, y, &q);
  out(im, 0, ex_view_as(im, y, r->out));
  return true;
}

/* --- axis by axis --- */

static ValueId double_element(Import *im, ValueId vector, uint32_t i) {
  return ex_cast(im, ex_element(im, vector, i), DTYPE_F64);
}

/* Scale of the axis at position i, as a 0-d f64 tensor. */
static ValueId axis_scale(Import *im, const Resize *r, uint32_t i) {
  if (r->scale[i] != 0)
    return build_scalar(&im->b, DTYPE_F64, r->scale[i]);
  if (r->scales)
    return double_element(im, r->scales, i);
  ValueId best = 0;
  for (uint32_t k = 0; k < r->count && import_ok(im); k++) {
    if (r->policy == STRETCH && k != i)
      continue;
    uint32_t axis = r->axes[k];
    ValueId size = r->policy == STRETCH ? ex_cast(im, ex_size(im, r->out.d[axis]), DTYPE_F64)
                                        : double_element(im, r->sizes, k);
    ValueId in = ex_cast(im, ex_size(im, r->in.d[axis]), DTYPE_F64), scale = ex_div(im, size, in);
    best = best ? ex_binary(im, r->policy == NOT_LARGER ? OP_MINIMUM : OP_MAXIMUM, best, scale)
                : scale;
  }
  return best;
}

/* y with entry i of the axes resized. */
static ValueId resize_axis(Import *im, const Resize *r, uint32_t i, ValueId y) {
  uint32_t axis = r->axes[i];
  bool crop = r->how.coordinates == COORD_TF_CROP,
       to_size = !r->scales && r->policy == STRETCH; /* then the scale is the ratio of the sizes */
  if (r->in.d[axis] == r->out.d[axis] && (r->scale[i] == 1 || (to_size && !crop)))
    return y;
  ResampleAxis a = {axis, r->in.d[axis], r->out.d[axis], axis_scale(im, r, i), 0, 0};
  if (crop) {
    a.begin = double_element(im, r->roi, i);
    a.end = double_element(im, r->roi, r->count + i);
  }
  return resample_axis(im, &r->how, &a, y);
}

static ValueId limited(Import *im, ValueId y, DType dtype) {
  if (dtype_size(dtype) != 1)
    return y;
  return build(&im->b, OP_CLAMP, A_VAL(y), A_INT((int64_t)int_least(dtype)),
               A_INT((int64_t)int_most(dtype)));
}

/* Integers are cut off at the end; with antialias ONNX Runtime rounds them to the nearest one after
 * each axis, of which it takes the last one first, as Pillow does. */
static void resize_axes(Import *im, const Resize *r) {
  DType dtype = ex_dtype(im, r->x);
  bool blends = r->how.mode != RESAMPLE_NEAREST, integer = blends && !dtype_is_float(dtype),
       rounds = integer && r->how.antialias;
  ValueId y = r->x;
  if (blends && dtype != DTYPE_F64)
    y = ex_cast(im, y, DTYPE_F32);
  for (uint32_t i = 0; i < r->count && import_ok(im); i++) {
    ValueId before = y;
    y = resize_axis(im, r, rounds ? r->count - 1 - i : i, y);
    if (rounds && y != before)
      y = limited(im, ex_unary(im, OP_FLOOR, ex_plus(im, y, 0.5)), dtype);
  }
  out(im, 0, ex_cast(im, integer ? limited(im, y, dtype) : y, dtype));
}

static void resize(Import *im, Resize *r) {
  if (!import_ok(im) || !output_shape(im, r))
    return;
  bool plain = r->how.coordinates != COORD_TF_CROP;
  if (!plain &&
      (!r->roi || ex_rank(im, r->roi) != 1 || ex_dim(im, r->roi, 0) != 2 * (SymInt)r->count))
    import_fail(
        im, DIAG_INPUT_COUNT,
        "tf_crop_and_resize needs a region of interest with a begin and an end for each axis");
  bool copies = plain && r->scales && dims_same(r->in.d, r->in.rank, r->out.d, r->out.rank);
  if (copies && import_ok(im)) /* whatever the scales, as in ONNX Runtime */
    out(im, 0, r->x);
  else if (!plain || !resize_kernel(im, r))
    resize_axes(im, r);
}

/* An input that may be there with no elements, which means absent. */
static ValueId in_nonempty(Import *im, uint32_t i) {
  ValueId v = in(im, i);
  return v && import_ok(im) && !(ex_rank(im, v) == 1 && ex_dim(im, v, 0) == 0) ? v : 0;
}

void translate_resize(Import *im) {
  Resize r = {.x = in_required(im, 0)};
  r.in = shape_of(im, r.x);
  read_how(im, &r);
  if (!import_ok(im) || !read_axes(im, &r))
    return;
  r.scales = in_nonempty(im, im->opset < 11 ? 1 : 2);
  if (im->opset >= 11) {
    r.roi = in_nonempty(im, 1);
    r.sizes = r.scales ? 0 : in_nonempty(im, 3);
  }
  if (!r.scales && !r.sizes)
    import_fail(im, DIAG_INPUT_COUNT, "neither scales nor sizes are given");
  resize(im, &r);
}

/* The scales of Upsample: an input, before opset 9 an attribute, at first one for each image dim.
 */
static ValueId upsample_scales(Import *im, uint32_t rank) {
  Floats scales;
  if (im->opset >= 9)
    return in_required(im, 1);
  if (im->opset < 7 && rank == 4) {
    float image[4] = {1, 1, (float)attr_float(im, "height_scale", 0),
                      (float)attr_float(im, "width_scale", 0)};
    return build_const(&im->b, DTYPE_F32, 1, (int64_t[]){4}, image);
  }
  if (attr_floats(im, "scales", &scales))
    return build_const(&im->b, DTYPE_F32, 1, (int64_t[]){scales.count}, scales.at);
  return import_fail(im, DIAG_ATTR_MISSING, "Upsample has no 'scales'");
}

/* Upsample is Resize with coordinates x / scale and rounding down. */
void translate_upsample(Import *im) {
  Resize r = {.x = in_required(im, 0)};
  r.in = shape_of(im, r.x);
  read_how(im, &r);
  r.how.coordinates = COORD_ASYMMETRIC;
  r.how.rounding = ROUND_FLOOR;
  if (!import_ok(im) || !read_axes(im, &r))
    return;
  r.scales = upsample_scales(im, r.in.rank);
  resize(im, &r);
}
