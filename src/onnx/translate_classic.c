/* Classic machine learning (ai.onnx.ml): scaling, encoding and linear models. */
#include <math.h>

#include "onnx/classic.h"

ValueId classic_input(Import *im, uint32_t i) {
  ValueId x = in_required(im, i);
  return x ? ex_cast(im, x, DTYPE_F32) : 0;
}

ValueId classic_floats(Import *im, const float *values, uint32_t rank, const int64_t *dims) {
  return import_ok(im) ? build_const(&im->b, DTYPE_F32, rank, dims, values) : 0;
}

ValueId classic_transformed(Import *im, ValueId scores) {
  StrView name = attr_str(im, "post_transform", "NONE");
  if (sv_eq_str(name, "LOGISTIC"))
    return ex_unary(im, OP_SIGMOID, scores);
  if (sv_eq_str(name, "SOFTMAX"))
    return ex_softmax(im, scores, ex_rank(im, scores) - 1);
  if (!sv_eq_str(name, "NONE"))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "post_transform " SV_FMT " is not supported",
                SV_ARG(name));
  return scores;
}

ValueId classic_labels(Import *im, const char *name, ValueId index, uint32_t *count) {
  const int64_t *labels;
  if (!attr_ints(im, name, &labels, count) || !*count) {
    import_fail(
        im, DIAG_UNSUPPORTED_FEATURE,
        "the labels are strings, of which the runtime has no tensors: export the model with "
        "whole numbers");
    return 0;
  }
  return ex_index_select(im, import_ok(im) ? build_const_ints(&im->b, labels, *count) : 0, 0,
                         index);
}

/* The last dim, where the features are. */
static int64_t features_of(Import *im, ValueId x) {
  if (import_ok(im) && value_rank(im->g, x) == 0)
    import_fail(im, DIAG_INPUT_RANK, "the input has no features");
  return import_ok(im) ? ex_fixed(im, x, value_rank(im->g, x) - 1) : 0;
}

/* A list of one number for all features or one for each; 0 when it is absent. */
static ValueId by_feature(Import *im, const char *name, int64_t features) {
  const float *values;
  uint32_t count;
  if (!attr_floats(im, name, &values, &count))
    return 0;
  if (count != 1 && count != features) {
    import_fail(im, DIAG_ATTR_VALUE, "'%s' has %u numbers for %lld features", name, count,
                (long long)features);
    return 0;
  }
  return classic_floats(im, values, 1, (int64_t[]){count});
}

void translate_scaler(Import *im) {
  ValueId x = classic_input(im, 0);
  int64_t features = features_of(im, x);
  ValueId offset = by_feature(im, "offset", features), scale = by_feature(im, "scale", features);
  x = offset ? ex_sub(im, x, offset) : x;
  out(im, 0, scale ? ex_mul(im, x, scale) : x);
}

/* Rows whose norm is 0 stay as they are. */
void translate_normalizer(Import *im) {
  ValueId x = classic_input(im, 0), norm = 0;
  StrView name = attr_str(im, "norm", "MAX");
  uint32_t rank = ex_rank(im, x);
  if (import_ok(im) && rank == 0) {
    import_fail(im, DIAG_INPUT_RANK, "the input has no features");
    return;
  }
  if (sv_eq_str(name, "MAX"))
    norm = ex_reduce_one(im, OP_AMAX, x, rank - 1, true);
  else if (sv_eq_str(name, "L1"))
    norm = ex_reduce_one(im, OP_SUM_DIM_INTLIST, ex_unary(im, OP_ABS, x), rank - 1, true);
  else if (sv_eq_str(name, "L2"))
    norm = ex_unary(im, OP_SQRT,
                    ex_reduce_one(im, OP_SUM_DIM_INTLIST, ex_mul(im, x, x), rank - 1, true));
  else
    import_fail(im, DIAG_ATTR_VALUE, "norm is '" SV_FMT "', not MAX, L1 or L2", SV_ARG(name));
  if (!import_ok(im))
    return;
  ValueId none = ex_with(im, OP_EQ_TENSOR, norm, 0);
  out(im, 0, ex_div(im, x, ex_where(im, none, ex_number(im, norm, 1), norm)));
}

void translate_binarizer(Import *im) {
  ValueId x = in_required(im, 0);
  if (import_ok(im))
    out(im, 0,
        ex_cast(im, ex_with(im, OP_GT_TENSOR, x, attr_float(im, "threshold", 0)), ex_dtype(im, x)));
}

void translate_array_feature_extractor(Import *im) {
  ValueId x = in_required(im, 0), index = in_required(im, 1);
  if (!import_ok(im))
    return;
  Shape s = shape_of(im, x), at = shape_of(im, index);
  if (s.rank == 0) {
    import_fail(im, DIAG_INPUT_RANK, "the input has no features");
    return;
  }
  index = EX_VIEW(im, index, shape_product(im, at.d, at.rank));
  x = s.rank == 1 ? EX_VIEW(im, x, 1, s.d[0]) : x;
  out(im, 0, ex_index_select(im, x, ex_rank(im, x) - 1, index));
}

void translate_imputer(Import *im) {
  ValueId x = in_required(im, 0);
  int64_t features = features_of(im, x);
  ValueId imputed = by_feature(im, "imputed_value_floats", features);
  double replaced = attr_float(im, "replaced_value_float", 0);
  if (import_ok(im) && (!imputed || value_dtype(im->g, x) != DTYPE_F32))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "only float inputs are supported");
  if (!import_ok(im))
    return;
  ValueId missing =
      isnan(replaced) ? ex_binary(im, OP_NE_TENSOR, x, x) : ex_with(im, OP_EQ_TENSOR, x, replaced);
  out(im, 0, ex_where(im, missing, imputed, x));
}

/* x W' + intercepts, one row of W for each of `rows` results; 0 rows: as many as there are. */
static ValueId linear_scores(Import *im, int64_t rows) {
  ValueId x = classic_input(im, 0);
  int64_t features = features_of(im, x);
  const float *weights, *bias;
  uint32_t count, bias_count;
  if (!import_ok(im))
    return 0;
  if (value_rank(im->g, x) == 1)
    x = EX_VIEW(im, x, 1, features);
  if (!attr_floats(im, "coefficients", &weights, &count) || features < 1 ||
      count % (uint64_t)features != 0 || (rows && count != (uint64_t)rows * (uint64_t)features))
    return import_fail(im, DIAG_ATTR_VALUE, "the coefficients do not fit %lld features",
                       (long long)features);
  rows = count / features;
  bool biased = attr_floats(im, "intercepts", &bias, &bias_count);
  if (biased && bias_count != rows)
    return import_fail(im, DIAG_ATTR_VALUE, "there are %u intercepts for %lld results", bias_count,
                       (long long)rows);
  ValueId w = classic_floats(im, weights, 2, (int64_t[]){rows, features});
  ValueId b = biased ? classic_floats(im, bias, 1, (int64_t[]){rows}) : 0;
  return import_ok(im) ? build(&im->b, OP_LINEAR, A_VAL(x), A_VAL(w), A_OPT(b)) : 0;
}

void translate_linear_regressor(Import *im) {
  ValueId scores = linear_scores(im, attr_int(im, "targets", 1));
  if (import_ok(im) && ex_fixed(im, scores, 1) == 1 &&
      !sv_eq_str(attr_str(im, "post_transform", "NONE"), "NONE"))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "the standard and ONNX Runtime differ on post_transform for a single target");
  out(im, 0, classic_transformed(im, scores));
}

void translate_linear_classifier(Import *im) {
  ValueId scores = linear_scores(im, 0);
  uint32_t count = 0;
  if (import_ok(im) && ex_fixed(im, scores, 1) < 2)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "a score for each class is needed, not one for both");
  if (!import_ok(im))
    return;
  ValueId best = build(&im->b, OP_ARGMAX, A_VAL(scores), A_INT(1), A_BOOL(false));
  out(im, 0, classic_labels(im, "classlabels_ints", best, &count));
  if (import_ok(im) && count != ex_fixed(im, scores, 1))
    import_fail(im, DIAG_ATTR_VALUE, "there are %u labels for %lld classes", count,
                (long long)ex_fixed(im, scores, 1));
  out(im, 1, classic_transformed(im, scores));
}
