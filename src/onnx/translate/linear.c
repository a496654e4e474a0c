/* LinearRegressor and LinearClassifier of ai.onnx.ml. */
#include "onnx/translate/classic.h"

/* x W' + intercepts: the first `rows` rows of W. More coefficients than needed are left over, as in
 * ONNX Runtime. */
static ValueId linear_scores(Import *im, ValueId x, int64_t rows, const float *bias) {
  int64_t features = ex_fixed(im, x, 1);
  Floats weights;
  if (!attr_floats(im, "coefficients", &weights) || features < 1 || rows < 1 ||
      rows > weights.count / features)
    return import_fail(im, DIAG_ATTR_VALUE,
                       "there are %u coefficients for %lld features of %lld %s", weights.count,
                       (long long)features, (long long)rows, "scores");
  ValueId w = classic_floats(im, weights.at, 2, (int64_t[]){rows, features});
  ValueId b = bias ? classic_floats(im, bias, 1, &rows) : 0;
  return ex_linear(im, x, w, b);
}

/* Intercepts that are not one for each target are left out, as in ONNX Runtime. */
void translate_linear_regressor(Import *im) {
  Floats bias;
  int64_t targets = attr_int(im, "targets", 1);
  PostTransform post = post_read(im);
  bool biased = attr_floats(im, "intercepts", &bias) && bias.count == targets;
  ValueId scores = linear_scores(im, classic_samples(im), targets, biased ? bias.at : NULL);
  out(im, 0, targets == 1 ? post_single(im, post, scores) : post_apply(im, post, scores));
}

void translate_linear_classifier(Import *im) {
  ValueId x = classic_samples(im);
  PostTransform post = post_read(im);
  Floats bias, weights;
  Classes classes;
  if (!classes_read(im, "classlabels_ints", &classes))
    return;
  int64_t features = ex_fixed(im, x, 1);
  bool biased = attr_floats(im, "intercepts", &bias) && bias.count;
  uint32_t count = bias.count;
  if (!biased) {
    (void)attr_floats(im, "coefficients", &weights);
    count = features > 0 ? (uint32_t)(weights.count / features) : 0;
  }
  ValueId scores = linear_scores(im, x, count, biased ? bias.at : NULL);
  if (classes.count != (count == 1 ? 2 : count))
    import_fail(im, DIAG_ATTR_VALUE, "there are %u labels for %u scores", classes.count, count);
  if (count == 1) {
    ValueId flat = EX_VIEW(im, scores, ex_dim(im, scores, 0));
    classes_out_two(im, &classes, ex_with(im, OP_GT_TENSOR, flat, 0));
    out(im, 1, post_two(im, post, scores, true));
    return;
  }
  classes_out(im, &classes, ex_argmax(im, scores, 1, false));
  out(im, 1, post_apply(im, post, scores));
}
