/* Operators of the domain com.microsoft that ONNX Runtime's transformer optimizer writes into
 * models (docs/ContribOperators.md of ONNX Runtime). */
#include <math.h>

#include "onnx/attention.h"

/* --- matrix products, activations --- */

static ValueId swapped(Import *im, ValueId x) {
  int64_t perm[MAX_RANK];
  uint32_t rank = ex_rank(im, x);
  for (uint32_t i = 0; i < rank; i++)
    perm[i] = i;
  if (rank < 2)
    return x;
  perm[rank - 1] = rank - 2;
  perm[rank - 2] = rank - 1;
  return ex_permute(im, x, perm);
}

void translate_fused_matmul(Import *im) {
  ValueId a = in_required(im, 0), b = in_required(im, 1);
  if (attr_int(im, "transBatchA", 0) || attr_int(im, "transBatchB", 0))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "transBatchA and transBatchB are not supported");
  a = attr_int(im, "transA", 0) ? swapped(im, a) : a;
  b = attr_int(im, "transB", 0) ? swapped(im, b) : b;
  out(im, 0, ex_with(im, OP_MUL_TENSOR, ex_matmul(im, a, b), attr_float(im, "alpha", 1)));
}

static void gelu(Import *im, const char *approximate) {
  ValueId x = in_required(im, 0), bias = in(im, 1);
  x = bias ? ex_add(im, x, bias) : x;
  out(im, 0, import_ok(im) ? build(&im->b, OP_GELU, A_VAL(x), A_STR(approximate)) : 0);
}

/* Gelu and BiasGelu; FastGelu. */
void translate_bias_gelu(Import *im) { gelu(im, "none"); }
void translate_fast_gelu(Import *im) { gelu(im, "tanh"); }

void translate_quick_gelu(Import *im) {
  ValueId x = in_required(im, 0);
  double alpha = attr_float(im, "alpha", (double)1.702f);
  out(im, 0, ex_mul(im, x, ex_unary(im, OP_SIGMOID, ex_with(im, OP_MUL_TENSOR, x, alpha))));
}

/* --- normalisations of a sum --- */

/* input + skip (+ bias), which is also output 3. */
static ValueId skip_sum(Import *im, ValueId bias) {
  ValueId sum = ex_add(im, in_required(im, 0), in_required(im, 1));
  sum = bias ? ex_add(im, sum, bias) : sum;
  if (out_wanted(im, 3))
    out(im, 3, sum);
  return sum;
}

void translate_skip_layer_norm(Import *im) {
  ValueId gamma = in_required(im, 2), beta = in(im, 3), sum = skip_sum(im, in(im, 4));
  uint32_t rank = ex_rank(im, sum);
  if (!import_ok(im) || rank < 1)
    return;
  SymInt last[] = {value_dim(im->g, sum, rank - 1)};
  ValueId y = build(&im->b, OP_NATIVE_LAYER_NORM, A_VAL(sum), A_INTS(last, 1), A_VAL(gamma),
                    A_OPT(beta), A_FLOAT(attr_float(im, "epsilon", (double)1e-12f)));
  out(im, 0, y);
}

/* x / sqrt(mean of squares + epsilon) * scale over the dims from `axis` on. */
static ValueId rms(Import *im, ValueId x, ValueId scale, uint32_t axis, double epsilon) {
  SymInt dims[MAX_RANK];
  uint32_t rank = ex_rank(im, x);
  for (uint32_t i = axis; i < rank; i++)
    dims[i - axis] = value_dim(im->g, x, i);
  if (!import_ok(im))
    return 0;
  DType dtype = value_dtype(im->g, x), work = dtype == DTYPE_F64 ? dtype : DTYPE_F32;
  ValueId wide = ex_cast(im, x, work);
  ValueId y = import_ok(im) ? build(&im->b, OP_RMS_NORM, A_VAL(wide), A_INTS(dims, rank - axis),
                                    A_NONE, A_FLOAT(epsilon))
                            : 0;
  return ex_mul(im, ex_cast(im, y, dtype), scale);
}

void translate_skip_rms_norm(Import *im) {
  ValueId scale = in_required(im, 2), sum = skip_sum(im, in(im, 3));
  uint32_t rank = ex_rank(im, sum);
  out(im, 0, rms(im, sum, scale, rank ? rank - 1 : 0, attr_float(im, "epsilon", (double)1e-12f)));
}

void translate_simplified_layer_norm(Import *im) {
  ValueId x = in_required(im, 0), scale = in_required(im, 1);
  uint32_t axis = import_axis(im, attr_int(im, "axis", -1), ex_rank(im, x));
  out(im, 0, rms(im, x, scale, axis, attr_float(im, "epsilon", (double)1e-5f)));
}
