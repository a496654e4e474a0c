/* Operators of com.microsoft on quantized tensors: real numbers from the inputs, the operation, and
 * its result rounded and saturated again; products are exact sums of integers. */
#include <math.h>

#include "onnx/translate/quantized.h"
#include "onnx/translate/spatial.h"
#include "ops/quantized.h"

/* --- one scale and zero point a tensor --- */

/* Inputs i, i + 1 and i + 2 as a real tensor. */
static ValueId real_in(Import *im, uint32_t i) {
  return quantized_real(im, in_required(im, i), in_required(im, i + 1), in(im, i + 2), 0);
}

/* y quantized by inputs i and i + 1, to the type of input `like`. */
static void out_quantized(Import *im, ValueId y, uint32_t i, uint32_t like) {
  ValueId scale = in_required(im, i), zero = in(im, i + 1), model = in_required(im, like);
  out(im, 0, quantized_from(im, y, scale, zero, ex_dtype(im, model)));
}

/* A sum with one number, as a function of the codes of the other operand. */
typedef struct CodeShift {
  float ratio, offset; /* the code of the result before it is rounded: code * ratio + offset */
  double exact_ratio, exact_offset;
} CodeShift;

/* Input i, 0 where it is absent. */
static bool read_number(Import *im, uint32_t i, double *number) {
  *number = 0;
  return !in(im, i) || one_double(im, in(im, i), number);
}

/* Operand i, of scale and zero point behind it, plus the number at input k, likewise; as
 * MlasQLinearAdd of ONNX Runtime 1.31 computes it. */
static bool read_shift(Import *im, uint32_t i, uint32_t k, CodeShift *c) {
  double code, scales[3], zeros[3];
  if (!read_number(im, k, &code) || !read_number(im, i + 1, &scales[0]) ||
      !read_number(im, i + 2, &zeros[0]) || !read_number(im, k + 1, &scales[1]) ||
      !read_number(im, k + 2, &zeros[1]) || !read_number(im, 6, &scales[2]) ||
      !read_number(im, 7, &zeros[2]))
    return false;
  float ratio = (float)scales[0] / (float)scales[2], other = (float)scales[1] / (float)scales[2];
  float zero = (float)zeros[2] - ((float)zeros[0] * ratio + (float)zeros[1] * other);
  *c = (CodeShift){ratio, (float)code * other + zero, scales[0] / scales[2],
                   zeros[2] - zeros[0] * scales[0] / scales[2] +
                       (code - zeros[1]) * scales[1] / scales[2]};
  return true;
}

/* Whether results lie in the middle between two codes, as those of erf(x) + 1 do. */
static bool has_ties(const CodeShift *c) {
  for (int code = INT8_MIN; code <= UINT8_MAX; code++) {
    double y = (double)code * c->exact_ratio + c->exact_offset, rest = fabs(y - floor(y) - 0.5);
    if (rest < 1e-4)
      return true;
  }
  return false;
}

/* Sums with a number that lie in the middle between two codes are rounded as ONNX Runtime does it,
 * which another order of operations, or integers, would round either way. */
static bool add_number(Import *im, uint32_t i, uint32_t k) {
  CodeShift c;
  ValueId codes = in_required(im, i);
  if (!import_ok(im) || ex_rank(im, in_required(im, k)) > ex_rank(im, codes) ||
      !read_shift(im, i, k, &c) || !has_ties(&c) || !dtype_in(ex_dtype(im, codes), DT(I8) | DT(U8)))
    return false;
  bool is_signed = ex_dtype(im, codes) == DTYPE_I8;
  Quantization q = {.dtype = ex_dtype(im, codes),
                    .low = is_signed ? INT8_MIN : 0,
                    .high = is_signed ? INT8_MAX : UINT8_MAX,
                    .scale = 1};
  ValueId y = build_dequantize(&im->b, codes, &q);
  y = ex_mul(im, y, ex_number(im, y, (double)c.ratio));
  y = ex_plus(im, y, (double)c.offset);
  out(im, 0, build_quantize(&im->b, y, &q));
  return true;
}

void translate_qlinear_binary(Import *im) {
  if (im->op == OP_ADD_TENSOR && (add_number(im, 0, 3) || add_number(im, 3, 0)))
    return;
  ValueId b = real_in(im, 3);
  out_quantized(im, ex_binary(im, im->op, real_in(im, 0), b), 6, 0);
}

void translate_qlinear_where(Import *im) {
  ValueId otherwise = real_in(im, 4),
          y = ex_where(im, in_required(im, 0), real_in(im, 1), otherwise);
  out_quantized(im, y, 7, 1);
}

void translate_qlinear_sigmoid(Import *im) {
  out_quantized(im, ex_unary(im, OP_SIGMOID, real_in(im, 0)), 3, 0);
}

void translate_qlinear_leaky_relu(Import *im) {
  ValueId x = real_in(im, 0);
  double alpha = attr_float(im, "alpha", (double)0.01f);
  out_quantized(im, build(&im->b, OP_LEAKY_RELU, A_VAL(x), A_FLOAT(alpha)), 3, 0);
}

/* ONNX Runtime multiplies by an integer instead of dividing by the scale, by 254 for the usual
 * float nearest to 1 / 255 (QLinearSoftmax::Compute rounds the inverse down). Times y here, so that
 * the codes have the scale of the model. */
static ValueId with_inverse_rounded(Import *im, ValueId y, ValueId scale) {
  ValueId inverse = ex_unary(im, OP_FLOOR, ex_div(im, ex_number(im, scale, 1), scale));
  return ex_mul(im, y, ex_mul(im, scale, inverse));
}

/* Of one axis, or (before opset 13) of all dims from it on. */
void translate_qlinear_softmax(Import *im) {
  ValueId x = real_in(im, 0);
  Dims s = shape_of(im, x);
  uint32_t axis = import_axis(im, attr_int(im, "axis", -1), s.rank);
  bool one_axis = attr_int_required(im, "opset") >= 13;
  ValueId y = one_axis ? ex_softmax(im, x, axis) : ex_softmax(im, ex_rows(im, x, axis), 1);
  y = with_inverse_rounded(im, ex_view_as(im, y, s), in_required(im, 3));
  out_quantized(im, y, 3, 0);
}

void translate_qlinear_concat(Import *im) {
  uint32_t count = (in_count(im) - 2) / 3;
  int64_t axis = attr_int_required(im, "axis");
  if (in_count(im) % 3 != 2 || count < 1)
    import_fail(im, DIAG_INPUT_COUNT, "%u inputs are not a scale, a zero point and triples",
                in_count(im));
  ValueId *parts = ARENA_ARRAY(&im->scratch, ValueId, count + 1);
  for (uint32_t i = 0; i < count; i++)
    parts[i] = real_in(im, 2 + 3 * i);
  uint32_t place = import_axis(im, axis, ex_rank(im, parts[0]));
  out_quantized(im, ex_cat(im, parts, count, place), 0, 2);
}

/* --- windows --- */

/* Channels in front, for operators that may have them last. */
static ValueId channels_first(Import *im, ValueId x, bool last) {
  uint32_t rank = ex_rank(im, x);
  return last && rank > 2 ? ex_move_dim(im, x, rank - 1, 1) : x;
}

static ValueId channels_back(Import *im, ValueId y, bool last) {
  uint32_t rank = ex_rank(im, y);
  return last && rank > 2 ? ex_move_dim(im, y, 1, rank - 1) : y;
}

static bool channels_last(Import *im) { return attr_flag(im, "channels_last", false); }

void translate_qlinear_average_pool(Import *im) {
  bool last = channels_last(im);
  ValueId y = window_average(im, channels_first(im, real_in(im, 0), last), true);
  out_quantized(im, channels_back(im, y, last), 3, 0);
}

void translate_qlinear_global_average_pool(Import *im) {
  ValueId x = real_in(im, 0);
  uint32_t rank = ex_rank(im, x), first = channels_last(im) ? 1 : 2;
  if (rank < 3)
    import_fail(im, DIAG_INPUT_RANK, "a global pool needs rank 3 or more, the input has %u", rank);
  ValueId y = ex_reduce_dims(im, OP_MEAN_DIM, x, first, rank < 3 ? 0 : first + rank - 2, true);
  out_quantized(im, y, 3, 0);
}

void translate_qlinear_reduce_mean(Import *im) {
  ValueId x = real_in(im, 0);
  Ints axes;
  bool listed = attr_ints(im, "axes", &axes) && axes.count, keep = attr_flag(im, "keepdims", true);
  x = listed ? ex_reduce(im, OP_MEAN_DIM, x, axes.at, axes.count, keep)
             : ex_reduce_dims(im, OP_MEAN_DIM, x, 0, ex_rank(im, x), keep);
  out_quantized(im, x, 3, 0);
}

void translate_nhwc_max_pool(Import *im) {
  ValueId x = channels_first(im, in_required(im, 0), true);
  out(im, 0, channels_back(im, window_max(im, x), true));
}

/* Bias in steps of the product of two scales, the second one for channels maybe. */
static ValueId real_bias(Import *im, ValueId bias, ValueId scale, ValueId channels) {
  return bias ? quantized_real(im, bias, ex_mul(im, ex_scalar(im, scale), channels), 0, 0) : 0;
}

bool quantized_real_conv(Import *im, bool last) {
  if (!quantized_has_one_scale(im, 1) || !quantized_has_one_scale(im, 6) ||
      !quantized_is_known(im, 0, 0) || !quantized_is_known(im, 3, 0))
    return false;
  ValueId x = channels_first(im, real_in(im, 0), last),
          w = quantized_real(im, in_required(im, 3), in(im, 4), in(im, 5), 0),
          bias = real_bias(im, in(im, 8), in(im, 1), in(im, 4)),
          y = channels_back(im, window_convolution(im, x, w, bias), last);
  out_quantized(im, y, 6, in(im, 7) ? 7 : 0);
  return true;
}

/* QLinearConv whose image may have the channels last; the weight has not. */
void translate_microsoft_qlinear_conv(Import *im) {
  bool last = channels_last(im);
  if (quantized_real_conv(im, last))
    return;
  ValueId x = channels_first(im, in_required(im, 0), last), w = in_required(im, 3);
  ValueId filter = quantized_centred(im, w, in(im, 5), 0),
          sums = window_convolution(im, quantized_centred(im, x, in(im, 2), 1), filter, in(im, 8));
  ValueId y = quantized_real(im, sums, in_required(im, 4), 0, 1);
  y = ex_mul(im, y, ex_scalar(im, in_required(im, 1)));
  out_quantized(im, channels_back(im, y, last), 6, 0);
}

/* --- products --- */

/* sums times the product of two scales, the second one for columns maybe, plus a bias. */
static ValueId scaled_sums(Import *im, ValueId sums, ValueId scale, ValueId columns, ValueId bias) {
  ValueId factor = ex_mul(im, ex_scalar(im, scale), columns);
  if (ex_rank(im, factor) == 1 && ex_dim(im, factor, 0) == 1)
    factor = ex_scalar(im, factor);
  ValueId y = ex_mul(im, ex_cast(im, sums, DTYPE_F32), factor);
  return bias ? ex_add(im, y, bias) : y;
}

static ValueId transposed(Import *im, ValueId x, const char *attribute) {
  if (ex_rank(im, x) != 2)
    return import_fail(im, DIAG_INPUT_RANK, "the input has rank %u, not 2", ex_rank(im, x));
  return attr_int(im, attribute, 0) != 0 ? EX_PERMUTE(im, x, 1, 0) : x;
}

/* In real numbers, where everything is known and alpha is 1: quantized if there is a scale. */
static bool real_gemm(Import *im) {
  bool transposed_b = attr_flag(im, "transB", false);
  bool codes = in(im, 7) != 0;
  if (attr_float(im, "alpha", 1) != 1 || !quantized_has_one_scale(im, 1) ||
      (codes && !quantized_has_one_scale(im, 7)) || !quantized_is_known(im, 0, 0) ||
      !quantized_is_known(im, 3, transposed_b ? 0 : 1) ||
      (in(im, 6) && ex_rank(im, in(im, 6)) != 1))
    return false;
  ValueId w = quantized_real(im, in_required(im, 3), in(im, 4), in(im, 5), transposed_b ? 0 : 1),
          bias = real_bias(im, in(im, 6), in(im, 1), in(im, 4)), b = transposed(im, w, "transB"),
          y = ex_matmul(im, transposed(im, real_in(im, 0), "transA"), b);
  y = bias ? ex_add(im, y, bias) : y;
  if (codes)
    out_quantized(im, y, 7, 0);
  else
    out(im, 0, y);
  return true;
}

/* alpha * a_scale * b_scale * ((a - a_zero) (b - b_zero) + c), quantized if there is a scale. */
void translate_qgemm(Import *im) {
  if (real_gemm(im))
    return;
  ValueId a = transposed(im, in_required(im, 0), "transA"),
          b = transposed(im, in_required(im, 3), "transB");
  ValueId c = in(im, 6), sums = quantized_product(im, a, in(im, 2), b, in(im, 5));
  sums = c ? ex_add(im, sums, c) : sums;
  ValueId y = scaled_sums(im, sums, in_required(im, 1), in_required(im, 4), 0);
  y = ex_times(im, y, attr_float(im, "alpha", 1));
  if (in(im, 7))
    out_quantized(im, y, 7, 0);
  else
    out(im, 0, y);
}

void translate_matmul_integer_to_float(Import *im) {
  ValueId sums =
      quantized_product(im, in_required(im, 0), in(im, 4), in_required(im, 1), in(im, 5));
  out(im, 0, scaled_sums(im, sums, in_required(im, 2), in_required(im, 3), in(im, 6)));
}

ValueId quantized_dynamic(Import *im, ValueId x, ValueId w, ValueId w_scale, ValueId w_zero,
                          ValueId bias) {
  ValueId scale = 0, zero = 0;
  ValueId codes = quantized_by_range(im, x, &scale, &zero);
  return scaled_sums(im, quantized_product(im, codes, zero, w, w_zero), scale, w_scale, bias);
}

void translate_dynamic_quantize_matmul(Import *im) {
  out(im, 0,
      quantized_dynamic(im, in_required(im, 0), in_required(im, 1), in_required(im, 2), in(im, 3),
                        in(im, 4)));
}

void translate_matmul_integer16(Import *im) {
  out(im, 0, quantized_product(im, in_required(im, 0), 0, in_required(im, 1), 0));
}

void translate_mul_integer(Import *im) {
  ValueId right = quantized_centred(im, in_required(im, 2), in(im, 3), 0);
  out(im, 0, ex_mul(im, quantized_centred(im, in_required(im, 0), in(im, 1), 0), right));
}

void translate_reduce_sum_integer(Import *im) {
  ValueId x = ex_cast(im, in_required(im, 0), DTYPE_I32);
  Ints axes;
  if (!attr_ints(im, "axes", &axes))
    import_fail(im, DIAG_ATTR_MISSING, "'axes' is missing");
  bool keep = attr_flag(im, "keepdims", true);
  out(im, 0, ex_reduce(im, OP_SUM_DIM_INTLIST, x, axes.at, axes.count, keep));
}
