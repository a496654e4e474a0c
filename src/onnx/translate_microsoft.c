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

/* --- MultiHeadAttention --- */

/* Third `part` of the bias [3 * hidden] added to a packed input. */
static ValueId biased(Import *im, ValueId x, ValueId bias, int64_t begin, int64_t *end) {
  if (ex_rank(im, x) != 3)
    return x;
  *end = begin + ex_fixed(im, x, 2);
  return bias ? ex_add(im, x, ex_slice(im, bias, 0, begin, *end)) : x;
}

/* 1 where a key counts: [B, T] directly, or [B] lengths. */
static ValueId key_mask(Import *im, ValueId mask, SymInt keys) {
  if (!mask || !import_ok(im))
    return 0;
  SymInt batch = ex_dim(im, mask, 0);
  if (ex_rank(im, mask) == 1) {
    ValueId length = EX_VIEW(im, ex_cast(im, mask, DTYPE_I64), batch, 1, 1, 1);
    return ex_binary(im, OP_LT_TENSOR, ex_arange(im, keys), length);
  }
  if (ex_rank(im, mask) != 2)
    return import_fail(im, DIAG_UNSUPPORTED_FEATURE, "key_padding_mask of rank %u",
                       ex_rank(im, mask));
  return EX_VIEW(im, ex_with(im, OP_NE_TENSOR, mask, 0), batch, 1, 1, keys);
}

/* Masked keys get mask_filter_value, which unlike minus infinity leaves rows without any key
 * finite. */
void translate_multi_head_attention(Import *im) {
  ValueId q = in_required(im, 0), k = in(im, 1), v = in(im, 2), bias = in(im, 3),
          padding = in(im, 4), added = in(im, 5), past_key = in(im, 6), past_value = in(im, 7);
  int64_t heads = attr_int_required(im, "num_heads"), end = 0;
  if (import_ok(im) && (!k || !v || ex_rank(im, q) != 3))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "packed queries, keys and values are not supported");
  if (import_ok(im) && !past_key != !past_value)
    import_fail(im, DIAG_INPUT_COUNT, "past_key and past_value must be given together");
  q = attention_split_heads(im, biased(im, q, bias, 0, &end), heads);
  k = attention_split_heads(im, biased(im, k, bias, end, &end), heads);
  v = attention_split_heads(im, biased(im, v, bias, end, &end), heads);
  if (past_key && import_ok(im)) {
    k = ex_cat(im, (ValueId[]){past_key, k}, 2, 2);
    v = ex_cat(im, (ValueId[]){past_value, v}, 2, 2);
  }
  int64_t size = ex_fixed(im, q, 3);
  SymInt queries = ex_dim(im, q, 2), keys = ex_dim(im, k, 2);
  double scale = attr_float(im, "scale", 0);
  q = ex_with(im, OP_MUL_TENSOR, q, scale == 0 ? 1 / sqrt((double)size) : scale);
  ValueId scores = attention_scores(im, q, k);
  ValueId allowed = key_mask(im, padding, keys);
  if (attr_int(im, "unidirectional", 0) != 0) {
    SymInt before = past_key ? ex_dim(im, past_key, 2) : 0;
    allowed = attention_and(
        im, allowed, attention_band(im, queries, keys, build_syms(im, &before, 1, true), -1, 0));
  }
  if (allowed)
    scores = ex_where(im, allowed, scores,
                      ex_number(im, scores, attr_float(im, "mask_filter_value", -10000)));
  scores = added ? ex_add(im, scores, added) : scores;
  ValueId y = attention_mix(im, ex_softmax(im, scores, -1), v);
  out(im, 0, attention_merge_heads(im, y));
  out(im, 1, k);
  out(im, 2, v);
}
