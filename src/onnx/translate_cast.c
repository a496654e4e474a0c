/* Changes of element type, and tests of single elements. */
#include <math.h>

#include "onnx/translate.h"

static void cast_to(Import *im, int64_t onnx_dtype) {
  ValueId x = in_required(im, 0);
  DType to =
      onnx_dtype >= 0 && onnx_dtype < 100 ? dtype_from_onnx((int32_t)onnx_dtype) : DTYPE_NONE;
  if (import_ok(im) && to == DTYPE_NONE)
    import_fail(im, DIAG_TENSOR_DTYPE, "cast to %s, which the runtime cannot hold",
                onnx_dtype_name((int32_t)onnx_dtype) ? onnx_dtype_name((int32_t)onnx_dtype)
                                                     : "an unknown type");
  if (import_ok(im) && (dtype_in(to, DTS_FLOAT8) != dtype_in(value_dtype(im->g, x), DTS_FLOAT8) ||
                        (dtype_in(to, DTS_FLOAT8) && to != value_dtype(im->g, x))))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "cast from %s to %s is not supported",
                dtype_name(value_dtype(im->g, x)), dtype_name(to));
  if (import_ok(im))
    out(im, 0, build_cast(&im->b, x, to));
}

void translate_cast(Import *im) { cast_to(im, attr_int_required(im, "to")); }

void translate_cast_like(Import *im) {
  ValueId x = in_required(im, 0), like = in_required(im, 1);
  if (!import_ok(im))
    return;
  DType to = value_dtype(im->g, like);
  if (dtype_in(to, DTS_FLOAT8) || dtype_in(value_dtype(im->g, x), DTS_FLOAT8))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "cast from %s to %s is not supported",
                dtype_name(value_dtype(im->g, x)), dtype_name(to));
  if (import_ok(im))
    out(im, 0, build_cast(&im->b, x, to));
}

/* Both signs: isinf; one sign: comparison with that infinity; none: false everywhere. */
void translate_is_inf(Import *im) {
  ValueId x = in_required(im, 0);
  bool negative = attr_int(im, "detect_negative", 1) != 0,
       positive = attr_int(im, "detect_positive", 1) != 0;
  if (!import_ok(im))
    return;
  if (negative && positive)
    out(im, 0, build(&im->b, OP_ISINF, A_VAL(x)));
  else if (negative || positive)
    out(im, 0, build(&im->b, OP_EQ_SCALAR, A_VAL(x), A_FLOAT(positive ? INFINITY : -INFINITY)));
  else
    out(im, 0, build(&im->b, OP_FULL_LIKE, A_VAL(x), A_BOOL(false), A_DTYPE(DTYPE_BOOL)));
}

/* The same bits as another type of the same width. */
void translate_bit_cast(Import *im) {
  ValueId x = in_required(im, 0);
  int64_t number = attr_int_required(im, "to");
  DType to = number >= 0 && number < 100 ? dtype_from_onnx((int32_t)number) : DTYPE_NONE;
  if (import_ok(im) && to == DTYPE_NONE)
    import_fail(im, DIAG_TENSOR_DTYPE, "'to' is not an element type that the runtime holds");
  if (import_ok(im))
    out(im, 0,
        to == value_dtype(im->g, x) ? x : build(&im->b, OP_VIEW_COPY_DTYPE, A_VAL(x), A_DTYPE(to)));
}
