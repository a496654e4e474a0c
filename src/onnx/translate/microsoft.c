/* Operators of com.microsoft that stand beside those of the standard: older names, other defaults,
 * small formulas. */
#include "onnx/express.h"

/* As the standard's operator at one of its versions. */
static void at_opset(Import *im, int64_t opset, void (*translate)(Import *)) {
  int64_t own = im->opset;
  im->opset = opset;
  translate(im);
  im->opset = own;
}

void translate_microsoft_pad(Import *im) { at_opset(im, 13, translate_pad); }

void translate_microsoft_linear_attention(Import *im) {
  attr_refuse(im, "state_window"); /* which the standard's operator does not have */
  at_opset(im, 27, translate_linear_attention);
}

void translate_microsoft_causal_conv(Import *im) {
  attr_refuse(im, "state_window|channels_last");
  if (attr_int(im, "ndim", 1) != 1 || attr_int(im, "dilation", 1) != 1)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "only ndim 1 and dilation 1 are supported");
  at_opset(im, 27, translate_causal_conv_with_state);
}

void translate_expand_dims(Import *im) {
  ValueId x = in_required(im, 0);
  int64_t axis = 0;
  if (!one_const(im, in(im, 1), &axis))
    import_fail(im, DIAG_INPUT_NOT_CONST, "the axis is not known when lowering");
  out(im, 0, ex_unsqueeze(im, x, import_axis(im, axis, ex_rank(im, x) + 1)));
}

/* Windows of one dim as a new last dim. */
void translate_unfold_tensor(Import *im) {
  ValueId x = in_required(im, 0);
  int64_t size = attr_int_required(im, "size"), step = attr_int(im, "step", 1);
  uint32_t dim = import_axis(im, attr_int(im, "dim", -1), ex_rank(im, x));
  out(im, 0, build(&im->b, OP_UNFOLD_COPY, A_VAL(x), A_INT(dim), A_INT(size), A_INT(step)));
}

/* Distances of all pairs of rows. */
void translate_cdist(Import *im) {
  ValueId a = in_required(im, 0), b = in_required(im, 1);
  StrView metric = attr_str(im, "metric", "sqeuclidean");
  bool root = sv_eq_str(metric, "euclidean");
  if (!root && !sv_eq_str(metric, "sqeuclidean"))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "the metric '" SV_FMT "' is not supported",
                SV_ARG(metric));
  ValueId columns = ex_unsqueeze(im, b, 0),
          difference = ex_sub(im, ex_unsqueeze(im, a, 1), columns);
  ValueId squares = ex_mul(im, difference, difference);
  ValueId y = ex_sum(im, squares, 2, false);
  out(im, 0, root ? ex_unary(im, OP_SQRT, y) : y);
}
