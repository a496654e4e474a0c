/* Resampling of one axis; see resample.h. Everything is built as arithmetic over the positions 0 …
 * out - 1, which folds to constants when the scale is one; then each neighbour is an index_select
 * times its weight. */
#include <math.h>

#include "onnx/translate/resample.h"

static ValueId f64(Import *im, ValueId v) { return ex_cast(im, v, DTYPE_F64); }

static ValueId f64_number(Import *im, double v) { return build_scalar(&im->b, DTYPE_F64, v); }

/* --- coordinates --- */

/* Scales and regions are given in float: a coordinate half way in float is meant to be half way. */
static ValueId in_float(Import *im, ValueId at) { return f64(im, ex_cast(im, at, DTYPE_F32)); }

/* (position + 0.5) / scale - 0.5 */
static ValueId half_pixel(Import *im, ValueId position, ValueId scale) {
  return ex_plus(im, ex_div(im, ex_plus(im, position, 0.5), scale), -0.5);
}

/* special where the resized length is 1, else general. */
static ValueId unless_one(Import *im, ValueId length, ValueId special, ValueId general) {
  return ex_where(im, ex_is(im, length, 1), special, general);
}

/* Neighbours jump where a coordinate is half way or whole, and ONNX Runtime computes coordinates in
 * float: so does what looks for the nearest one. Weights do not jump: they are of double. Regions
 * are rounded at the end. */
static DType coordinate_type(const Resample *r) {
  bool in_double = r->mode != RESAMPLE_NEAREST || r->coordinates == COORD_TF_CROP ||
                   r->coordinates == COORD_TF_HALF_PIXEL;
  return in_double ? DTYPE_F64 : DTYPE_F32;
}

/* Positions in the input, of the coordinate type, [out]. The last one is that of the last element
 * or of the end of the region, and a single one of half pixels is 0, as in ONNX Runtime and torch:
 * the reference implementation takes in * scale for the length, also where it is a fraction, and
 * -0.5.
 */
static ValueId source(Import *im, const Resample *r, const ResampleAxis *a) {
  SymTable *t = &im->g->syms;
  DType type = coordinate_type(r);
  ValueId at = ex_cast(im, ex_arange(im, a->out), type), in = ex_cast(im, ex_size(im, a->in), type),
          last = ex_cast(im, ex_size(im, sym_sub(t, a->in, 1)), type),
          resized = ex_cast(im, ex_size(im, a->out), type), scale = ex_cast(im, a->scale, type),
          steps = ex_plus(im, resized, -1);
  switch (r->coordinates) {
  case COORD_HALF_PIXEL:
    return half_pixel(im, at, scale);
  case COORD_TF_HALF_PIXEL:
    return in_float(im, ex_div(im, ex_plus(im, at, 0.5), scale));
  case COORD_PYTORCH_HALF_PIXEL: {
    ValueId general = half_pixel(im, at, scale);
    return unless_one(im, resized, build_scalar(&im->b, type, 0), general);
  }
  case COORD_HALF_PIXEL_SYMMETRIC: {
    ValueId adjust = ex_div(im, resized, ex_mul(im, scale, in));
    ValueId rest = ex_sub(im, build_scalar(&im->b, type, 1), adjust),
            offset = ex_mul(im, ex_times(im, in, 0.5), rest);
    /* Behind the offset ONNX Runtime goes on in double. */
    ValueId place = ex_plus(im, f64(im, at), 0.5);
    place = ex_div(im, place, f64(im, scale));
    place = ex_plus(im, ex_add(im, f64(im, offset), place), -0.5);
    return ex_cast(im, place, type);
  }
  case COORD_ALIGN_CORNERS: {
    ValueId general = ex_div(im, ex_mul(im, at, last), steps);
    return unless_one(im, resized, build_scalar(&im->b, type, 0), general);
  }
  case COORD_ASYMMETRIC:
    return ex_div(im, at, scale);
  case COORD_TF_CROP: {
    ValueId span = ex_mul(im, ex_sub(im, a->end, a->begin), last);
    ValueId general = ex_div(im, ex_mul(im, at, span), steps);
    ValueId x = unless_one(im, resized, ex_times(im, span, 0.5), general);
    return in_float(im, ex_add(im, x, ex_mul(im, a->begin, last)));
  }
  }
  BUG("coordinates %d", (int)r->coordinates);
}

/* --- neighbours --- */

static ValueId inside_index(Import *im, ValueId position, SymInt size) {
  ValueId last = ex_size(im, sym_sub(&im->g->syms, size, 1));
  ValueId whole = ex_cast(im, position, DTYPE_I64);
  return ex_at_least(im, ex_min(im, whole, last), 0);
}

static ValueId nearest(Import *im, const Resample *r, ValueId scale, ValueId at) {
  switch (r->rounding) {
  case ROUND_PREFER_FLOOR:
    return ex_unary(im, OP_CEIL, ex_plus(im, at, -0.5));
  case ROUND_PREFER_CEIL:
    return ex_unary(im, OP_FLOOR, ex_plus(im, at, 0.5));
  case ROUND_FLOOR:
    return ex_unary(im, OP_FLOOR, at);
  case ROUND_CEIL:
    return ex_unary(im, OP_CEIL, at);
  case ROUND_BY_SCALE: {
    ValueId down = ex_unary(im, OP_FLOOR, at), up = ex_unary(im, OP_CEIL, at);
    return ex_where(im, ex_with(im, OP_LT_TENSOR, scale, 1), up, down);
  }
  }
  BUG("rounding %d", (int)r->rounding);
}

/* Weight at distance d >= 0: a triangle, or the cubic with coefficient a (Keys 1981). */
static ValueId weight_at(Import *im, const Resample *r, ValueId d) {
  if (r->mode == RESAMPLE_LINEAR)
    return ex_at_least(im, ex_sub(im, f64_number(im, 1), d), 0);
  double a = r->cubic_a;
  /* ((a + 2) d - (a + 3)) d^2 + 1 up to 1, ((a d - 5a) d + 8a) d - 4a up to 2, 0 beyond. */
  ValueId square = ex_mul(im, d, d);
  ValueId near_part =
      ex_plus(im, ex_mul(im, ex_plus(im, ex_times(im, d, a + 2), -(a + 3)), square), 1);
  ValueId far_part = ex_mul(im, ex_plus(im, ex_times(im, d, a), -5 * a), d);
  far_part = ex_plus(im, ex_mul(im, ex_plus(im, far_part, 8 * a), d), -4 * a);
  ValueId zero = f64_number(im, 0);
  ValueId beyond = ex_where(im, ex_with(im, OP_LT_TENSOR, d, 2), far_part, zero);
  return ex_where(im, ex_with(im, OP_LE_TENSOR, d, 1), near_part, beyond);
}

enum { TAPS_MAX = 128 };

/* Neighbours on each side: 1 (linear) or 2 (cubic), stretched by the greatest reduction when
 * antialiased; those too far away for a smaller one have weight 0. */
static uint32_t reach(Import *im, const Resample *r, const ResampleAxis *a) {
  uint32_t radius = r->mode == RESAMPLE_CUBIC ? 2 : 1;
  if (!r->antialias)
    return radius;
  Doubles scale;
  int64_t in = sym_upper(&im->g->syms, a->in), out = sym_lower(&im->g->syms, a->out);
  bool known = value_doubles(im, a->scale, &scale);
  double shrink = known ? 1 / scale.at[0] : (double)in / (double)max_i64(out, 1);
  double wide = shrink <= 1 ? radius : ceil(radius * shrink) + 1;
  if (!(wide <= TAPS_MAX / 2))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "antialias over more than %d neighbours", TAPS_MAX);
  return import_ok(im) ? (uint32_t)int_clamped(wide, 0, TAPS_MAX) : 0;
}

typedef struct Tap {
  ValueId position, weight; /* f64 [out] */
} Tap;

static void make_taps(Import *im, const Resample *r, const ResampleAxis *a, ValueId at, Tap *taps,
                      uint32_t count) {
  ValueId base = ex_unary(im, OP_FLOOR, at), sum = 0, last = f64(im, ex_size(im, a->in));
  for (uint32_t k = 0; k < count && import_ok(im); k++) {
    ValueId position = ex_plus(im, base, (double)k - count / 2.0 + 1);
    ValueId d = ex_unary(im, OP_ABS, ex_sub(im, position, at));
    if (r->antialias)
      d = ex_mul(im, d, ex_with(im, OP_MINIMUM, a->scale, 1));
    ValueId weight = weight_at(im, r, d);
    if (r->exclude_outside) {
      ValueId before_end = ex_lt(im, position, last),
              inside = ex_and(im, ex_with(im, OP_GE_TENSOR, position, 0), before_end);
      weight = ex_where(im, inside, weight, f64_number(im, 0));
    }
    sum = sum ? ex_add(im, sum, weight) : weight;
    taps[k] = (Tap){position, weight};
  }
  for (uint32_t k = 0; k < count && (r->antialias || r->exclude_outside); k++)
    taps[k].weight = ex_div(im, taps[k].weight, sum);
}

static ValueId blend(Import *im, const Resample *r, const ResampleAxis *a, ValueId at, ValueId x) {
  uint32_t count = 2 * reach(im, r, a);
  Tap taps[TAPS_MAX];
  make_taps(im, r, a, at, taps, count);
  ValueId y = 0;
  for (uint32_t k = 0; k < count && import_ok(im); k++) {
    if (a->out != 0 && all_zero(im, taps[k].weight))
      continue;
    ValueId tap = ex_index_select(im, x, a->axis, inside_index(im, taps[k].position, a->in));
    ValueId weight = ex_cast(im, taps[k].weight, ex_dtype(im, x));
    tap = ex_mul(im, tap, ex_along_axis(im, weight, a->axis, shape_of(im, x).rank));
    y = y ? ex_add(im, y, tap) : tap;
  }
  return y ? y : x;
}

ValueId resample_axis(Import *im, const Resample *r, const ResampleAxis *a, ValueId x) {
  ValueId at = source(im, r, a), y;
  /* A coordinate of a single element may have come out as a scalar. */
  SymInt out_dims[] = {a->out};
  at = ex_expand(im, at, out_dims, 1);
  if (r->mode == RESAMPLE_NEAREST)
    y = ex_index_select(im, x, a->axis, inside_index(im, nearest(im, r, a->scale, at), a->in));
  else
    y = blend(im, r, a, at, x);
  if (r->coordinates != COORD_TF_CROP)
    return y;
  ValueId last = f64(im, ex_size(im, sym_sub(&im->g->syms, a->in, 1)));
  ValueId beyond = ex_gt(im, at, last),
          outside = ex_or(im, ex_with(im, OP_LT_TENSOR, at, 0), beyond);
  ValueId fill = build_scalar(&im->b, ex_dtype(im, x), r->extrapolation);
  return ex_where(im, ex_along_axis(im, outside, a->axis, shape_of(im, x).rank), fill, y);
}
