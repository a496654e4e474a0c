/* Quantization operators: with f32 and scales that are known they are the ops quantize and
 * dequantize, which backends match; else plain arithmetic: round half to even, then the zero point,
 * then saturation, as the ONNX documents say. Integer products are exact in i32. */
#include <float.h>
#include <math.h>

#include "onnx/packed.h"
#include "onnx/translate/quantized.h"
#include "onnx/translate/spatial.h"
#include "ops/quantized.h"
#include "support/number.h"

/* --- granularity --- */

/* Scales or zero points next to a tensor of x's rank, by granularity: one number, one a channel of
 * the axis, or one a block of the axis. */
typedef struct Granularity {
  uint32_t rank, axis;
  int64_t block; /* 0: none */
  SymInt dims[MAX_RANK];
} Granularity;

static Granularity granularity_of(Import *im, ValueId x, uint32_t axis) {
  Dims s = shape_of(im, x);
  Granularity gr = {.rank = s.rank, .axis = axis};
  memcpy(gr.dims, s.d, sizeof s.d);
  return gr;
}

static bool is_single(const Import *im, ValueId v) {
  return ex_rank(im, v) == 0 || (ex_rank(im, v) == 1 && ex_dim(im, v, 0) == 1);
}

/* Whether a vector of scales or zero points has one for each entry of the axis. */
static bool fits_axis(Import *im, const Granularity *gr, ValueId v) {
  if (!v || ex_rank(im, v) != 1 || gr->block)
    return import_ok(im);
  SymInt count = ex_dim(im, v, 0), entries = gr->rank ? gr->dims[gr->axis] : 1;
  if (sym_is_const(count) && count != 1 && sym_is_const(entries) && count != entries)
    import_fail(im, DIAG_SHAPE_MISMATCH,
                "there are %lld scales or zero points for axis %u, which has %lld entries",
                (long long)count, gr->axis, (long long)entries);
  return import_ok(im);
}

static bool read_granularity(Import *im, ValueId x, ValueId scale, ValueId zero, Granularity *gr) {
  *gr = granularity_of(im, x, 0);
  gr->block = im->opset >= 21 ? attr_int(im, "block_size", 0) : 0;
  if (gr->block < 0)
    import_fail(im, DIAG_ATTR_VALUE, "block_size is %lld", (long long)gr->block);
  if (!is_single(im, scale) && gr->rank > 1)
    gr->axis = import_axis(im, attr_int(im, "axis", 1), gr->rank);
  return fits_axis(im, gr, scale) && fits_axis(im, gr, zero);
}

/* v has one number a block of gr->block entries: each is repeated for its entries. */
static ValueId spread_blocks(Import *im, const Granularity *gr, ValueId v) {
  SymInt dims[MAX_RANK + 1];
  uint32_t own = ex_rank(im, v);
  for (uint32_t i = 0, k = 0; i < own; i++) {
    dims[k++] = ex_dim(im, v, i);
    if (i == gr->axis)
      dims[k++] = 1;
  }
  ValueId wide = ex_view(im, v, dims, own + 1);
  dims[gr->axis + 1] = gr->block;
  wide = ex_expand(im, wide, dims, own + 1);
  dims[gr->axis] = sym_mul(&im->g->syms, dims[gr->axis], gr->block);
  for (uint32_t i = gr->axis + 1; i < own; i++)
    dims[i] = dims[i + 1];
  return ex_slice(im, ex_view(im, wide, dims, own), gr->axis, 0, gr->dims[gr->axis]);
}

/* Blocks that are larger than the dim of a matrix which they divide: there is one in each row or
 * column, so that the scales are those of channels. */
static void join_blocks(Import *im, Granularity *gr, ValueId *scale, ValueId *zero) {
  if (!import_ok(im) || !gr->block || gr->rank != 2 || ex_rank(im, *scale) != 2 ||
      ex_dim(im, *scale, gr->axis) != 1 || !sym_is_const(gr->dims[gr->axis]) ||
      gr->dims[gr->axis] >= gr->block)
    return;
  gr->axis = 1 - gr->axis;
  gr->block = 0;
  SymInt count = ex_dim(im, *scale, gr->axis);
  *scale = ex_view(im, *scale, &count, 1);
  *zero = *zero ? ex_view(im, *zero, &count, 1) : 0;
}

/* The parameter so that it broadcasts to x. */
static ValueId spread(Import *im, const Granularity *gr, ValueId v) {
  uint32_t own = ex_rank(im, v);
  if (is_single(im, v))
    return ex_scalar(im, v);
  if (own == 1 && !(gr->block && gr->rank == 1))
    return ex_along_axis(im, v, gr->axis, gr->rank);
  if (own != gr->rank || !gr->block || own >= MAX_RANK)
    return import_fail(im, DIAG_SHAPE_MISMATCH,
                       "the scale or zero point has rank %u, the input %u%s", own, gr->rank,
                       gr->block ? ", blocks need the same"
                                 : "; without a block_size it is one number, or one an entry of "
                                   "the axis");
  return spread_blocks(im, gr, v);
}

/* No zero point, or one that is 0 for all elements. */
static bool is_zero(Import *im, ValueId zero) { return !zero || all_zero(im, zero); }

/* --- ranges --- */

/* What values are quantized to. */
typedef struct Target {
  DType dtype;
  int32_t packed; /* an integer of 4 or 2 bits in dtype */
  double low, high;
} Target;

static bool set_limits(Target *t) {
  t->low = int_least(t->dtype);
  t->high = int_most(t->dtype);
  return dtype_in(t->dtype, DT(U8) | DT(I8) | DT(U16) | DT(I16));
}

/* The packed type, unless that is 0. */
static Target target_for(Import *im, DType dtype, int32_t packed) {
  Target t = {.dtype = packed ? packed_storage(packed) : dtype, .packed = packed};
  if (packed ? packed_limits(packed, &t.low, &t.high) : set_limits(&t))
    return t;
  import_fail(im, DIAG_UNSUPPORTED_FEATURE, "quantization to %s is not supported",
              packed ? onnx_dtype_name(packed) : dtype_name(dtype));
  return (Target){.dtype = DTYPE_U8};
}

/* The type of a zero point, input `input`. */
static Target target_of(Import *im, uint32_t input) {
  return target_for(im, ex_dtype(im, in(im, input)), in_packed(im, input));
}

/* Rounds x (already divided by the scale), adds the zero point, saturates; x is f32 or f64 or half,
 * where sums would not be exact. */
static ValueId saturated(Import *im, ValueId x, ValueId zero, const Target *to) {
  ValueId whole = ex_unary(im, OP_ROUND, x);
  if (dtype_size(ex_dtype(im, whole)) == 2)
    whole = ex_cast(im, whole, DTYPE_F32);
  if (!is_zero(im, zero))
    whole = ex_add(im, whole, ex_cast(im, zero, ex_dtype(im, whole)));
  return ex_cast(im, ex_clamp(im, whole, to->low, to->high), to->dtype);
}

/* x / y as one division: the plain kernel multiplies by the reciprocal when y has one element. */
static ValueId exact_quotient(Import *im, ValueId x, ValueId y) {
  return build(&im->b, OP_DIV_TENSOR_MODE, A_VAL(x), A_VAL(y), A_NONE);
}

/* --- as ops --- */

/* One f32 number, or one an entry of the axis. */
static bool known_scales(Import *im, const Granularity *gr, ValueId scale, Quantization *q) {
  Doubles values;
  if (ex_dtype(im, scale) != DTYPE_F32 || ex_rank(im, scale) > 1 ||
      !value_doubles(im, scale, &values) || values.count == 0)
    return false;
  for (uint32_t i = 0; i < values.count; i++)
    if (!isfinite(values.at[i]))
      return false;
  if (values.count == 1)
    q->scale = (float)values.at[0];
  else if (gr->rank && gr->dims[gr->axis] == values.count)
    q->scales = scale;
  return values.count == 1 || q->scales;
}

static bool known_zeros(Import *im, ValueId zero, Quantization *q) {
  Doubles values;
  uint32_t needed = q->scales ? (uint32_t)ex_dim(im, q->scales, 0) : 1;
  if (is_zero(im, zero))
    return import_ok(im);
  if (ex_rank(im, zero) > 1 || !value_doubles(im, zero, &values) || values.count != needed)
    return false;
  if (!q->scales)
    q->zero = int_clamped(values.at[0], INT32_MIN, INT32_MAX);
  else
    q->zeros = ex_cast(im, zero, DTYPE_I64);
  return true;
}

/* Scale, zero point and codes of an op that backends may match. */
static bool known_quantization(Import *im, const Granularity *gr, ValueId scale, ValueId zero,
                               const Target *to, Quantization *q) {
  *q = (Quantization){.dtype = to->dtype,
                      .low = int_clamped(to->low, INT32_MIN, INT32_MAX),
                      .high = int_clamped(to->high, INT32_MIN, INT32_MAX),
                      .axis = gr->axis};
  return !gr->block && dtype_in(to->dtype, DT(U8) | DT(I8) | DT(I32)) &&
         known_scales(im, gr, scale, q) && known_zeros(im, zero, q);
}

/* Ops have scales of f32, of which those of f16 and bf16 are some. */
static ValueId wide_scale(Import *im, ValueId scale) {
  return dtype_is_half(ex_dtype(im, scale)) ? ex_cast(im, scale, DTYPE_F32) : scale;
}

/* x quantized by an op; 0 when there is none for it. */
static ValueId quantize_op(Import *im, const Granularity *gr, ValueId x, ValueId scale,
                           ValueId zero, const Target *to) {
  Quantization q;
  if (!known_quantization(im, gr, wide_scale(im, scale), zero, to, &q))
    return 0;
  x = dtype_is_half(ex_dtype(im, x)) ? ex_cast(im, x, DTYPE_F32) : x;
  if (ex_dtype(im, x) != DTYPE_F32)
    return 0;
  if (q.scales && !q.zeros)
    q.zeros = ex_expand(im, ex_int(im, 0), (SymInt[]){ex_dim(im, q.scales, 0)}, 1);
  return build_quantize(&im->b, x, &q);
}

/* The range of the codes x. */
static Target codes_of(Import *im, ValueId x, int32_t packed) {
  Target range = {.dtype = ex_dtype(im, x)};
  if (packed)
    packed_limits(packed, &range.low, &range.high);
  else if (!set_limits(&range))
    range.low = INT32_MIN, range.high = INT32_MAX;
  return range;
}

/* What a scale is for. */
typedef enum ScaleUse {
  SCALE_DIVIDES,    /* quantizes */
  SCALE_MULTIPLIES, /* dequantizes: channels that are all zeros may have a scale of 0 */
  SCALE_OF_WEIGHTS  /* dequantizes: negative ones let the largest weight have the code -128 or -8 */
} ScaleUse;

static bool scale_fits(double scale, ScaleUse use) {
  if (use == SCALE_DIVIDES)
    return isfinite(scale) && scale >= (double)FLT_MIN;
  return isfinite(scale) && (scale >= 0 || use == SCALE_OF_WEIGHTS);
}

/* The first number that does not fit, or how many there are. */
static uint32_t first_unfit(const Doubles *scales, ScaleUse use) {
  uint32_t i = 0;
  while (i < scales->count && scale_fits(scales->at[i], use))
    i++;
  return i;
}

/* The codes x dequantized by an op; 0 where no op takes them, as with negative scales. */
static ValueId dequantize_op(Import *im, const Granularity *gr, ValueId x, ValueId scale,
                             ValueId zero, int32_t packed) {
  Quantization q;
  Doubles scales;
  Target range = codes_of(im, x, packed);
  if (value_doubles(im, scale, &scales) && first_unfit(&scales, SCALE_MULTIPLIES) < scales.count) {
    uint64_t inner = (uint64_t)dims_count(gr->dims, gr->axis + 1, gr->rank);
    if (gr->block || !is_zero(im, zero) || !negative_scales_flipped(im, inner, &x, &scale, &zero))
      return 0;
    range = codes_of(im, x, 0);
  }
  if (!known_quantization(im, gr, scale, zero, &range, &q))
    return 0;
  return build_dequantize(&im->b, x, &q);
}

/* Reports a constant scale that makes nonsense of every element, as quotients by a subnormal number
 * do, or that nobody means, as a negative one of activations. */
static bool check_scale(Import *im, ValueId scale, ScaleUse use) {
  static const char *const wanted[] = {"finite, positive and not subnormal",
                                       "finite and not negative", "finite"};
  Doubles values;
  if (!value_doubles(im, scale, &values))
    return import_ok(im);
  uint32_t i = first_unfit(&values, use);
  if (i == values.count)
    return true;
  return import_fail(im, DIAG_ARG_RANGE, "entry %u of the scale is %g; a scale must be %s%s", i,
                     values.at[i], wanted[use],
                     isinf(values.at[i])
                         ? ". Calibration saw infinite values, such as a mask of -inf: "
                           "write the mask with a finite number and quantize again"
                         : "");
}

ValueId quantized_from(Import *im, ValueId x, ValueId scale, ValueId zero, DType to) {
  Granularity whole = {0};
  Target range = target_for(im, to, 0);
  if (!check_scale(im, scale, SCALE_DIVIDES))
    return 0;
  ValueId y = quantize_op(im, &whole, x, scale, zero, &range);
  if (y || !import_ok(im))
    return y;
  ValueId divisor = ex_scalar(im, scale), shift = zero ? ex_scalar(im, zero) : 0;
  return saturated(im, exact_quotient(im, x, divisor), shift, &range);
}

/* That of the zero point, else of output_dtype. */
static Target target_attribute(Import *im, ValueId zero) {
  int32_t code = (int32_t)attr_int(im, "output_dtype", 0);
  if (zero)
    return target_of(im, 2);
  if (packed_storage(code) != DTYPE_NONE)
    return target_for(im, DTYPE_NONE, code);
  return target_for(im, attr_dtype(im, "output_dtype", DTYPE_U8), 0);
}

void translate_quantize_linear(Import *im) {
  ValueId x = in_required(im, 0), scale = in_required(im, 1), zero = in(im, 2);
  int32_t small = small_float_input(im, 1);
  Granularity gr;
  if (small)
    scale = decode_small_float(im, scale, small);
  if (!import_ok(im) || !check_scale(im, scale, SCALE_DIVIDES) ||
      !read_granularity(im, x, scale, zero, &gr))
    return;
  x = quantized_without_nan(im, x);
  Target to = target_attribute(im, zero);
  /* The standard divides in the type of the scale; f16 quotients fall into the middle between two
   * codes too often, and ONNX Runtime divides in f32. */
  DType usual = ex_dtype(im, scale) == DTYPE_F16 ? DTYPE_F32 : ex_dtype(im, scale),
        precision = attr_dtype(im, "precision", usual);
  ValueId y = to.packed || precision != DTYPE_F32 ? 0 : quantize_op(im, &gr, x, scale, zero, &to);
  if (y)
    out(im, 0, y);
  if (y || !import_ok(im))
    return;
  ValueId divisor = ex_cast(im, spread(im, &gr, scale), precision);
  ValueId quotient = exact_quotient(im, ex_cast(im, x, precision), divisor);
  y = saturated(im, quotient, zero ? spread(im, &gr, zero) : 0, &to);
  out_tensor(im, 0, (Binding){.kind = BIND_VALUE, .value = y, .packed = to.packed});
}

/* Whole blocks: x with the axis in two dims, blocks and elements of one. */
static ValueId split_blocks(Import *im, const Granularity *gr, ValueId v, int64_t block) {
  SymInt dims[MAX_RANK + 1];
  for (uint32_t i = 0, k = 0; i < gr->rank && import_ok(im); i++) {
    dims[k++] = i == gr->axis ? ex_dim(im, v, i) / block : ex_dim(im, v, i);
    if (i == gr->axis)
      dims[k++] = block;
  }
  return ex_view(im, v, dims, gr->rank + 1);
}

/* Scales and zero points then need no copies. */
static bool has_whole_blocks(Import *im, const Granularity *gr, ValueId scale) {
  if (!gr->block || gr->rank >= MAX_RANK || ex_rank(im, scale) != gr->rank)
    return false;
  SymInt blocks = ex_dim(im, scale, gr->axis), size = gr->dims[gr->axis];
  return sym_is_const(blocks) && sym_is_const(size) && size % gr->block == 0 &&
         size / gr->block == blocks;
}

/* (x - shift) * factor in `to`, computed in the type of factor. Weights are left to passes:
 * factor_scales must see them, fold_constants decides on their size. */
static ValueId dequantized(Import *im, ValueId x, ValueId shift, ValueId factor, DType to) {
  BuilderFold *fold = im->b.fold;
  if (ex_rank(im, x) >= 2)
    im->b.fold = NULL;
  ValueId y = ex_cast(im, x, ex_dtype(im, factor));
  if (shift)
    y = ex_sub(im, y, shift);
  y = ex_cast(im, ex_mul(im, y, factor), to);
  im->b.fold = fold;
  return y;
}

/* Whole blocks of known scales as an op; 0 when there is none for it. */
static ValueId dequantize_blocks(Import *im, const Granularity *gr, ValueId x, ValueId scale,
                                 ValueId zero) {
  Target range = codes_of(im, x, in_packed(im, 0));
  if (!import_ok(im) || !has_whole_blocks(im, gr, scale) || gr->block < 2 ||
      !value_is_const(im->g, scale) || ex_dtype(im, scale) != DTYPE_F32 ||
      (zero && (!value_is_const(im->g, zero) || ex_dtype(im, zero) != range.dtype)) ||
      !dtype_in(range.dtype, DT(I8) | DT(U8)))
    return 0;
  return build_dequantize(&im->b, x,
                          &(Quantization){.dtype = range.dtype,
                                          .low = int_clamped(range.low, INT8_MIN, UINT8_MAX),
                                          .high = int_clamped(range.high, INT8_MIN, UINT8_MAX),
                                          .scales = scale,
                                          .zeros = is_zero(im, zero) ? 0 : zero,
                                          .axis = gr->axis,
                                          .block = gr->block});
}

/* By plain arithmetic, which is right for every type. */
static ValueId dequantize_exactly(Import *im, const Granularity *gr, ValueId x, ValueId scale,
                                  ValueId zero, DType to) {
  DType work = to == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
  bool split = has_whole_blocks(im, gr, scale);
  ValueId factor = split ? split_blocks(im, gr, scale, 1) : spread(im, gr, scale), shift = 0;
  if (zero)
    shift = ex_cast(im, split ? split_blocks(im, gr, zero, 1) : spread(im, gr, zero), work);
  if (split)
    x = split_blocks(im, gr, x, gr->block);
  ValueId y = dequantized(im, x, shift, ex_cast(im, factor, work), to);
  return split ? ex_view(im, y, gr->dims, gr->rank) : y;
}

static ScaleUse scale_use(Import *im, const Granularity *gr, ValueId x) {
  return gr->block || value_is_const(im->g, x) ? SCALE_OF_WEIGHTS : SCALE_MULTIPLIES;
}

void translate_dequantize_linear(Import *im) {
  ValueId x = in_required(im, 0), scale = in_required(im, 1), zero = in(im, 2);
  int32_t small = small_float_input(im, 0), small_scale = small_float_input(im, 1);
  Granularity gr;
  if (small_scale)
    scale = decode_small_float(im, scale, small_scale);
  if (!import_ok(im) || !read_granularity(im, x, scale, zero, &gr) ||
      !check_scale(im, scale, scale_use(im, &gr, x)))
    return;
  join_blocks(im, &gr, &scale, &zero);
  DType from = ex_dtype(im, x), to = attr_dtype(im, "output_dtype", ex_dtype(im, scale));
  if (small)
    x = decode_small_float(im, x, small);
  else if (!dtype_in(from, DTS_INT | DT(U16)))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "dequantization from %s is not supported",
                dtype_name(from));
  ValueId y = 0;
  scale = wide_scale(im, scale);
  if (!small && to != DTYPE_F64)
    y = gr.block ? dequantize_blocks(im, &gr, x, scale, zero)
                 : dequantize_op(im, &gr, x, scale, zero, in_packed(im, 0));
  if (y)
    y = ex_cast(im, y, to);
  else if (import_ok(im)) /* the zero point of a float is 0 */
    y = dequantize_exactly(im, &gr, x, scale, small || is_zero(im, zero) ? 0 : zero, to);
  out(im, 0, y);
}

ValueId quantized_by_range(Import *im, ValueId x, ValueId *scale, ValueId *zero) {
  Quantization q = build_dynamic(&im->b, x, DTYPE_U8);
  *scale = q.scales;
  *zero = ex_cast(im, q.zeros, DTYPE_U8);
  return build_quantize(&im->b, x, &q);
}

void translate_dynamic_quantize_linear(Import *im) {
  ValueId scale = 0, zero = 0, codes = quantized_by_range(im, in_required(im, 0), &scale, &zero);
  out(im, 0, codes);
  out(im, 1, scale);
  out(im, 2, zero);
}

/* --- integer products --- */

ValueId quantized_centred(Import *im, ValueId v, ValueId zero, uint32_t axis) {
  ValueId wide = ex_cast(im, v, DTYPE_I32);
  if (is_zero(im, zero))
    return wide;
  Granularity gr = {.rank = ex_rank(im, v), .axis = axis};
  if (ex_rank(im, zero) <= 1)
    zero = spread(im, &gr, zero);
  return ex_sub(im, wide, ex_cast(im, zero, DTYPE_I32));
}

static uint32_t before_last(const Import *im, ValueId v, uint32_t back) {
  uint32_t rank = ex_rank(im, v);
  return rank > back ? rank - 1 - back : 0;
}

ValueId quantized_product(Import *im, ValueId a, ValueId a_zero, ValueId b, ValueId b_zero) {
  ValueId right = quantized_centred(im, b, b_zero, before_last(im, b, 0));
  return ex_matmul(im, quantized_centred(im, a, a_zero, before_last(im, a, 1)), right);
}

ValueId quantized_real(Import *im, ValueId v, ValueId scale, ValueId zero, uint32_t axis) {
  Granularity gr = granularity_of(im, v, axis);
  if (!check_scale(im, scale, SCALE_MULTIPLIES))
    return 0;
  ValueId y = dequantize_op(im, &gr, v, scale, zero, 0);
  if (y || !import_ok(im))
    return y;
  ValueId whole = quantized_centred(im, v, zero, axis);
  ValueId factor = spread(im, &gr, scale);
  return ex_mul(im, ex_cast(im, whole, DTYPE_F32), factor);
}

void translate_matmul_integer(Import *im) {
  out(im, 0, quantized_product(im, in_required(im, 0), in(im, 2), in_required(im, 1), in(im, 3)));
}

void translate_conv_integer(Import *im) {
  ValueId x = in_required(im, 0), w = in_required(im, 1);
  ValueId left = quantized_centred(im, x, in(im, 2), 1),
          right = quantized_centred(im, w, in(im, 3), 0);
  out(im, 0, window_convolution(im, left, right, 0));
}

/* A vector of scales along an axis of the result. */
static ValueId scale_along(Import *im, ValueId scale, uint32_t rank, uint32_t axis) {
  if (!check_scale(im, scale, SCALE_MULTIPLIES))
    return 0;
  Granularity gr = {.rank = rank, .axis = axis};
  ValueId wide = ex_cast(im, scale, DTYPE_F32);
  return ex_rank(im, wide) <= 1 ? spread(im, &gr, wide) : wide;
}

bool quantized_is_known(Import *im, uint32_t i, uint32_t axis) {
  ValueId v = in_required(im, i);
  Granularity gr = granularity_of(im, v, axis);
  Target any = {.dtype = ex_dtype(im, v)};
  Quantization q;
  return gr.rank > axis &&
         known_quantization(im, &gr, in_required(im, i + 1), in(im, i + 2), &any, &q);
}

bool quantized_has_one_scale(Import *im, uint32_t i) {
  ValueId scale = in_required(im, i);
  return ex_dtype(im, scale) == DTYPE_F32 && is_single(im, scale) && value_is_const(im->g, scale) &&
         !in_packed(im, i + 1);
}

/* In real numbers, where everything is known. */
static bool real_matmul(Import *im) {
  ValueId a = in_required(im, 0), b = in_required(im, 3);
  if (ex_rank(im, a) < 2 || ex_rank(im, b) < 2 || !quantized_has_one_scale(im, 1) ||
      !quantized_has_one_scale(im, 6))
    return false;
  uint32_t columns = ex_rank(im, b) - 1;
  if (!quantized_is_known(im, 0, 0) || !quantized_is_known(im, 3, columns))
    return false;
  ValueId x = quantized_real(im, a, in(im, 1), in(im, 2), 0),
          w = quantized_real(im, b, in(im, 4), in(im, 5), columns);
  ValueId zero = in_required(im, 7);
  out(im, 0, quantized_from(im, ex_matmul(im, x, w), in_required(im, 6), zero, ex_dtype(im, zero)));
  return true;
}

/* sums * factor as codes, with the zero point that is input 7. */
static void out_requantized(Import *im, ValueId sums, ValueId factor, ValueId zero) {
  ValueId y = ex_mul(im, ex_cast(im, sums, DTYPE_F32), factor);
  Target to = target_of(im, 7);
  out(im, 0, saturated(im, y, zero, &to));
}

void translate_qlinear_matmul(Import *im) {
  if (real_matmul(im))
    return;
  ValueId a = in_required(im, 0), b = in_required(im, 3), y_zero = in_required(im, 7),
          scales[3] = {0};
  ValueId sums = quantized_product(im, a, in_required(im, 2), b, in_required(im, 5));
  static const uint32_t inputs[] = {1, 4, 6};
  uint32_t rank = ex_rank(im, sums);
  for (uint32_t i = 0; i < 3 && import_ok(im); i++)
    scales[i] =
        scale_along(im, in_required(im, inputs[i]), rank, rank < 2 ? 0 : rank - (i == 1 ? 1 : 2));
  out_requantized(im, sums, ex_div(im, ex_mul(im, scales[0], scales[1]), scales[2]), y_zero);
}

void translate_qlinear_conv(Import *im) {
  ValueId x = in_required(im, 0), w = in_required(im, 3), y_zero = in_required(im, 7);
  if (quantized_real_conv(im, false))
    return;
  ValueId left = quantized_centred(im, x, in_required(im, 2), 1),
          right = quantized_centred(im, w, in_required(im, 5), 0);
  ValueId sums = window_convolution(im, left, right, in(im, 8));
  uint32_t rank = ex_rank(im, sums);
  ValueId of_w = scale_along(im, in_required(im, 4), rank, 1),
          factor = ex_mul(im, scale_along(im, in_required(im, 1), rank, 1), of_w);
  factor = ex_div(im, factor, scale_along(im, in_required(im, 6), rank, 1));
  out_requantized(im, sums, factor, y_zero);
}
