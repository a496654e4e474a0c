/* Operators of com.microsoft that are a convolution or matrix product of the standard with what
 * ONNX Runtime's optimizers found around it: an activation, a bias, a sum, another layout. */
#include <float.h>

#include "onnx/express.h"
#include "onnx/translate/spatial.h"

/* --- activations --- */

static const struct {
  const char *name;
  OpId op;              /* all of it, or OP_NONE */
  double parameters[2]; /* when none are given */
} activations[] = {
    {"Relu", OP_RELU, {0, 0}},
    {"Tanh", OP_TANH, {0, 0}},
    {"Sigmoid", OP_SIGMOID, {0, 0}},
    {"Softplus", OP_SOFTPLUS, {0, 0}},
    {"LeakyRelu", OP_NONE, {(double)0.01f, 0}},
    {"Clip", OP_NONE, {-(double)FLT_MAX, (double)FLT_MAX}},
    {"HardSigmoid", OP_NONE, {(double)0.2f, 0.5}},
    {"ThresholdedRelu", OP_NONE, {1, 0}},
    {"Elu", OP_NONE, {1, 1}},
    {"Selu", OP_NONE, {(double)1.67326319217681884765625f, (double)1.05070102214813232421875f}},
};

static ValueId with_parameters(Import *im, ValueId x, StrView name, double a, double b) {
  if (sv_eq_str(name, "LeakyRelu"))
    return build(&im->b, OP_LEAKY_RELU, A_VAL(x), A_FLOAT(a));
  if (sv_eq_str(name, "Clip"))
    return ex_clamp(im, x, a, b);
  if (sv_eq_str(name, "HardSigmoid"))
    return ex_clamp(im, ex_plus(im, ex_times(im, x, a), b), 0, 1);
  if (sv_eq_str(name, "ThresholdedRelu")) {
    ValueId zero = ex_number(im, x, 0);
    return ex_where(im, ex_with(im, OP_GT_TENSOR, x, a), x, zero);
  }
  return build(&im->b, OP_ELU, A_VAL(x), A_FLOAT(a), A_FLOAT(b)); /* Elu, Selu */
}

static ValueId activate(Import *im, ValueId x, const double *given, uint32_t count) {
  StrView name = attr_str(im, "activation", "");
  if (!name.size)
    return x;
  uint32_t i = 0;
  while (i < COUNT_OF(activations) && !sv_eq_str(name, activations[i].name))
    i++;
  if (i == COUNT_OF(activations))
    return import_fail(im, DIAG_UNSUPPORTED_FEATURE, "the activation '" SV_FMT "' is not supported",
                       SV_ARG(name));
  if (activations[i].op != OP_NONE)
    return ex_unary(im, activations[i].op, x);
  double p[2] = {activations[i].parameters[0], activations[i].parameters[1]};
  for (uint32_t k = 0; k < count && k < 2; k++)
    p[k] = given[k];
  return with_parameters(im, x, name, p[0], p[1]);
}

/* The parameters as attributes of their own: alpha, and beta or gamma. */
static ValueId activate_by_names(Import *im, ValueId x) {
  double parameters[2] = {attr_float(im, "activation_alpha", 0), 0};
  const char *second = attr_has(im, "activation_gamma") ? "activation_gamma" : "activation_beta";
  parameters[1] = attr_float(im, second, 0);
  return activate(im, x, parameters,
                  attr_has(im, second)               ? 2
                  : attr_has(im, "activation_alpha") ? 1
                                                     : 0);
}

static ValueId activate_by_list(Import *im, ValueId x) {
  Floats given;
  double parameters[2] = {0, 0};
  (void)attr_floats(im, "activation_params", &given);
  for (uint32_t i = 0; i < given.count && i < 2; i++)
    parameters[i] = (double)given.at[i];
  return activate(im, x, parameters, given.count);
}

/* --- products --- */

void translate_fused_gemm(Import *im) { out(im, 0, activate_by_names(im, ex_gemm(im))); }

/* trans: the last two dims change places; batch: the first dim stands before the last one. */
static ValueId operand(Import *im, ValueId x, bool trans, bool batch) {
  uint32_t rank = ex_rank(im, x);
  if (batch && rank > 2)
    x = ex_move_dim(im, x, 0, rank - 2);
  return trans && rank > 1 ? ex_move_dim(im, x, rank - 1, rank - 2) : x;
}

static ValueId fused_matmul(Import *im) {
  ValueId a = operand(im, in_required(im, 0), attr_flag(im, "transA", false),
                      attr_flag(im, "transBatchA", false)),
          b = operand(im, in_required(im, 1), attr_flag(im, "transB", false),
                      attr_flag(im, "transBatchB", false));
  return ex_times(im, ex_matmul(im, a, b), attr_float(im, "alpha", 1));
}

/* FusedMatMul and TransposeMatMul. */
void translate_fused_matmul(Import *im) { out(im, 0, fused_matmul(im)); }
void translate_fused_matmul_activation(Import *im) {
  out(im, 0, activate_by_names(im, fused_matmul(im)));
}

/* --- convolutions --- */

void translate_fused_conv(Import *im) {
  ValueId x = in_required(im, 0), w = in_required(im, 1), bias = in(im, 2), sum = in(im, 3);
  ValueId y = window_convolution(im, x, w, bias);
  out(im, 0, activate_by_list(im, sum ? ex_add(im, y, sum) : y));
}

/* Channels last in x, in what is added and in y. */
static void channels_last_conv(Import *im, bool weight_too) {
  ValueId x = in_required(im, 0), w = in_required(im, 1), bias = in(im, 2), sum = in(im, 3);
  if (ex_rank(im, x) < 3 || ex_rank(im, w) != ex_rank(im, x))
    import_fail(im, DIAG_INPUT_RANK, "input has rank %u, weight %u", ex_rank(im, x),
                ex_rank(im, w));
  uint32_t last = ex_rank(im, x) - 1;
  if (weight_too)
    w = ex_move_dim(im, w, last, 1);
  ValueId y =
      ex_move_dim(im, window_convolution(im, ex_move_dim(im, x, last, 1), w, bias), 1, last);
  out(im, 0, activate_by_list(im, sum ? ex_add(im, y, sum) : y));
}

/* Its schema says that weights are as those of Conv, but the optimizer that writes the operator (of
 * onnxruntime.transformers) and the kernel that computes it, for GPUs, have channels last there,
 * too. */
void translate_nhwc_conv(Import *im) { channels_last_conv(im, true); }
void translate_nhwc_fused_conv(Import *im) { channels_last_conv(im, false); }

/* --- biases --- */

static ValueId gelu(Import *im, ValueId x, const char *approximate) {
  return build(&im->b, OP_GELU, A_VAL(x), A_STR(approximate));
}

static ValueId with_bias(Import *im, ValueId x, uint32_t input) {
  ValueId bias = in(im, input);
  return bias ? ex_add(im, x, bias) : x;
}

/* Gelu and BiasGelu; FastGelu; GemmFastGelu. */
void translate_bias_gelu(Import *im) {
  out(im, 0, gelu(im, with_bias(im, in_required(im, 0), 1), "none"));
}
void translate_fast_gelu(Import *im) {
  out(im, 0, gelu(im, with_bias(im, in_required(im, 0), 1), "tanh"));
}
void translate_gemm_fast_gelu(Import *im) {
  ValueId product = ex_matmul(im, in_required(im, 0), in_required(im, 1));
  out(im, 0, gelu(im, with_bias(im, product, 2), "tanh"));
}

/* The left half times gelu of the right one. */
void translate_bias_split_gelu(Import *im) {
  ValueId x = with_bias(im, in_required(im, 0), 1);
  uint32_t rank = ex_rank(im, x);
  int64_t wide = rank ? ex_fixed(im, x, rank - 1) : 0;
  if (rank < 1 || wide % 2)
    import_fail(im, DIAG_SHAPE_MISMATCH, "%lld columns cannot be split in two", (long long)wide);
  ValueId left = ex_slice(im, x, rank - 1, 0, wide / 2),
          right = ex_slice(im, x, rank - 1, wide / 2, wide);
  out(im, 0, ex_mul(im, left, gelu(im, right, "none")));
}

/* BiasAdd; BiasDropout outside training. */
void translate_bias_add(Import *im) {
  out(im, 0, with_bias(im, with_bias(im, in_required(im, 0), 1), 2));
}

void translate_bias_dropout(Import *im) {
  int64_t training = 1;
  bool idle = !in(im, 4) || (one_const(im, in(im, 4), &training) && !training);
  if (!idle || out_wanted(im, 1))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "dropout while training is not supported");
  translate_bias_add(im);
}

/* Softmax over the dims from `axis` on, of data + bias. */
void translate_bias_softmax(Import *im) {
  ValueId x = in_required(im, 0), bias = in_required(im, 1);
  uint32_t rank = ex_rank(im, x), axis = import_axis(im, attr_int(im, "axis", 1), rank);
  if (ex_rank(im, bias) != rank)
    import_fail(im, DIAG_INPUT_RANK, "data has rank %u, bias %u", rank, ex_rank(im, bias));
  ValueId rows = ex_rows(im, ex_add(im, x, bias), axis);
  out(im, 0, ex_view_as(im, ex_softmax(im, rows, 1), shape_of(im, x)));
}

/* --- without a product --- */

static ValueId gated_sigmoid(Import *im, ValueId x, ValueId inner) {
  return ex_mul(im, x, ex_unary(im, OP_SIGMOID, inner));
}

void translate_quick_gelu(Import *im) {
  ValueId x = in_required(im, 0);
  double alpha = attr_float(im, "alpha", (double)1.702f);
  out(im, 0, gated_sigmoid(im, x, ex_times(im, x, alpha)));
}

/* silu of x times a number. */
void translate_scaled_silu(Import *im) {
  ValueId x = in_required(im, 0), scale = in(im, 1);
  x = scale ? ex_mul(im, x, ex_cast(im, scale, ex_dtype(im, x)))
            : ex_times(im, x, attr_float(im, "alpha", 1));
  out(im, 0, gated_sigmoid(im, x, x));
}

void translate_gated_add(Import *im) {
  out(im, 0, ex_add(im, in_required(im, 0), ex_mul(im, in_required(im, 1), in_required(im, 2))));
}
