/* Activations. The defaults of attributes are those of the ONNX operator documents. */
#include <math.h>

#include "onnx/express.h"

void translate_leaky_relu(Import *im) {
  ValueId x = in_required(im, 0);
  out(im, 0,
      build(&im->b, OP_LEAKY_RELU, A_VAL(x), A_FLOAT(attr_float(im, "alpha", (double)0.01f))));
}

static void elu(Import *im, double alpha, double scale, double input_scale) {
  ValueId x = in_required(im, 0);
  out(im, 0, build(&im->b, OP_ELU, A_VAL(x), A_FLOAT(alpha), A_FLOAT(scale), A_FLOAT(input_scale)));
}

void translate_elu(Import *im) { elu(im, attr_float(im, "alpha", 1), 1, 1); }

/* gamma * (alpha * exp(x) - alpha) for x <= 0, gamma * x above. */
void translate_selu(Import *im) {
  elu(im, attr_float(im, "alpha", (double)1.67326319217681884765625f),
      attr_float(im, "gamma", (double)1.05070102214813232421875f), 1);
}

/* max(0, x) + min(0, alpha * (exp(x / alpha) - 1)). */
void translate_celu(Import *im) {
  double alpha = attr_float(im, "alpha", 1);
  if (alpha == 0)
    import_fail(im, DIAG_ATTR_VALUE, "alpha is 0");
  elu(im, alpha, 1, 1 / alpha);
}

/* max(0, min(1, alpha * x + beta)); alpha 1/6, beta 0.5 is ATen's hardsigmoid. */
static ValueId hard_sigmoid(Import *im, ValueId x, double alpha, double beta) {
  if (fabs(alpha - 1.0 / 6) < 1e-7 && beta == 0.5)
    return ex_unary(im, OP_HARDSIGMOID, x);
  ValueId scaled = ex_mul(im, x, ex_number(im, x, alpha));
  ValueId shifted = ex_add(im, scaled, ex_number(im, x, beta));
  return build(&im->b, OP_CLAMP, A_VAL(shifted), A_INT(0), A_INT(1));
}

void translate_hard_sigmoid(Import *im) {
  ValueId x = in_required(im, 0);
  out(im, 0,
      hard_sigmoid(im, x, attr_float(im, "alpha", (double)0.2f), attr_float(im, "beta", 0.5)));
}

void translate_softsign(Import *im) {
  ValueId x = in_required(im, 0);
  out(im, 0, ex_div(im, x, ex_plus(im, ex_unary(im, OP_ABS, x), 1)));
}

void translate_thresholded_relu(Import *im) {
  ValueId x = in_required(im, 0);
  ValueId above = ex_gt(im, x, ex_number(im, x, attr_float(im, "alpha", 1)));
  out(im, 0, ex_where(im, above, x, ex_number(im, x, 0)));
}

void translate_gelu(Import *im) {
  ValueId x = in_required(im, 0);
  bool tanh_form = attr_choice(im, "approximate", "none", "none|tanh") == 1;
  out(im, 0, build(&im->b, OP_GELU, A_VAL(x), A_STR(tanh_form ? "tanh" : "none")));
}

void translate_swish(Import *im) {
  out(im, 0, ex_swish(im, in_required(im, 0), attr_float(im, "alpha", 1)));
}

/* The same of floats where |x| > lambd leaves x - bias or x + bias by the sign of x: one comparison
 * and one selection, the slow kernels, where the formula has two of each. NaN is 0 here, too. */
static ValueId shrunk_by_magnitude(Import *im, ValueId x, double bias, double lambd) {
  ValueId shrunk = bias != 0 ? ex_sub(im, x, ex_clamp(im, x, -bias, bias)) : x;
  ValueId magnitude = ex_unary(im, OP_ABS, x), limit = ex_number(im, x, lambd);
  ValueId above = ex_gt(im, magnitude, limit);
  return ex_where(im, above, shrunk, ex_number(im, x, 0));
}

/* y = x + bias for x < -lambd, x - bias for x > lambd, else 0. */
void translate_shrink(Import *im) {
  ValueId x = in_required(im, 0);
  double bias = attr_float(im, "bias", 0), lambd = attr_float(im, "lambd", 0.5);
  DType dtype = ex_dtype(im, x);
  if (dtype_is_float(dtype) && bias >= 0 && lambd >= bias) {
    out(im, 0, shrunk_by_magnitude(im, x, bias, lambd));
    return;
  }
  bool exact = dtype_is_float(dtype) || (bias == floor(bias) && lambd == floor(lambd));
  ValueId work = ex_cast(im, x, exact ? dtype : DTYPE_F32);
  ValueId low = ex_lt(im, work, ex_number(im, work, -lambd)),
          high = ex_gt(im, work, ex_number(im, work, lambd));
  ValueId up = ex_add(im, work, ex_number(im, work, bias)),
          down = ex_sub(im, work, ex_number(im, work, bias));
  ValueId rest = ex_where(im, high, down, ex_number(im, work, 0));
  out(im, 0, ex_cast(im, ex_where(im, low, up, rest), dtype));
}

/* Before opset 7 a slope of one dim is per channel (dim 1), not of the last dim. */
void translate_prelu(Import *im) {
  ValueId x = in_required(im, 0), slope = in_required(im, 1);
  uint32_t rank = ex_rank(im, x);
  if (im->opset < 7 && rank > 2 && ex_rank(im, slope) == 1 && ex_dim(im, slope, 0) != 1)
    slope = ex_along_axis(im, slope, 0, rank - 1);
  out(im, 0, ex_binary(im, OP_PRELU, x, slope));
}

/* A bound as an argument of clamp: a number when constant. */
static bool clip_bound(Import *im, uint32_t i, DType dtype, ArgIn *arg) {
  double number;
  *arg = A_NONE;
  if (!in(im, i))
    return true;
  if (!one_double(im, in(im, i), &number))
    return false;
  if (!dtype_is_float(dtype) && dtype_size(dtype) == 8) /* a double may not hold the bound */
    return false;
  *arg =
      dtype_is_float(dtype) ? A_FLOAT(number) : A_INT(int_clamped(number, INT32_MIN, UINT32_MAX));
  return true;
}

/* Opset < 11: bounds are attributes; later: inputs, each may be absent. */
void translate_clip(Import *im) {
  ValueId x = in_required(im, 0);
  ArgIn low = A_NONE, high = A_NONE;
  DType dtype = ex_dtype(im, x);
  bool numbers = true;
  if (im->opset < 11) {
    low = attr_has(im, "min") ? A_FLOAT(attr_float(im, "min", 0)) : A_NONE;
    high = attr_has(im, "max") ? A_FLOAT(attr_float(im, "max", 0)) : A_NONE;
  } else {
    numbers = clip_bound(im, 1, dtype, &low) && clip_bound(im, 2, dtype, &high);
  }
  if (!numbers)
    out(im, 0, build(&im->b, OP_CLAMP_TENSOR, A_VAL(x), A_OPT(in(im, 1)), A_OPT(in(im, 2))));
  else if (low.kind == ARG_NONE && high.kind == ARG_NONE)
    out(im, 0, x);
  else
    out(im, 0, build(&im->b, OP_CLAMP, A_VAL(x), low, high));
}
