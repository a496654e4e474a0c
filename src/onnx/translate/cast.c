/* Changes of element type, and tests of single elements. */
#include <ctype.h>
#include <math.h>

#include "onnx/express.h"
#include "onnx/packed.h"

/* The element type of an attribute; fails on one that the runtime does not have. */
static DType wanted_dtype(Import *im, int64_t number) {
  bool fits = number >= 0 && number <= INT32_MAX;
  DType to = fits ? dtype_from_onnx((int32_t)number) : DTYPE_NONE;
  const char *name = fits ? onnx_dtype_name((int32_t)number) : NULL;
  if (to == DTYPE_NONE && name)
    import_fail(im, DIAG_TENSOR_DTYPE, "the runtime has no element type %s", name);
  else if (to == DTYPE_NONE)
    import_fail(im, DIAG_TENSOR_DTYPE, "there is no element type %lld", (long long)number);
  return to;
}

static void cast_to(Import *im, int64_t onnx_dtype) {
  ValueId x = in_required(im, 0);
  DType to = wanted_dtype(im, onnx_dtype);
  int32_t small = small_float_input(im, 0);
  if (small && to != ex_dtype(im, x))
    x = decode_small_float(im, x, small);
  if (dtype_in(to, DTS_FLOAT8) && to != ex_dtype(im, x))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "cast from %s to %s is not supported",
                dtype_name(ex_dtype(im, x)), dtype_name(to));
  out(im, 0, ex_cast(im, x, to));
}

/* Before opset 6 the type is given by its name in TensorProto, which is in capitals; -1: unknown.
 */
static int64_t named_dtype(StrView name) {
  for (int32_t i = 1; onnx_dtype_name(i); i++) {
    StrView known = sv_from(onnx_dtype_name(i));
    size_t at = 0;
    while (at < name.size && at < known.size &&
           tolower((unsigned char)name.data[at]) == known.data[at])
      at++;
    if (at == name.size && at == known.size)
      return i;
  }
  return -1;
}

void translate_cast(Import *im) {
  cast_to(im, im->opset < 6 ? named_dtype(attr_str(im, "to", "")) : attr_int_required(im, "to"));
}

void translate_cast_like(Import *im) {
  ValueId x = in_required(im, 0), like = in_required(im, 1);
  DType to = ex_dtype(im, like);
  if (dtype_in(to, DTS_FLOAT8) || dtype_in(ex_dtype(im, x), DTS_FLOAT8))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "cast from %s to %s is not supported",
                dtype_name(ex_dtype(im, x)), dtype_name(to));
  out(im, 0, ex_cast(im, x, to));
}

/* Both signs: isinf; one sign: comparison with that infinity; none: false everywhere. */
void translate_is_inf(Import *im) {
  ValueId x = in_required(im, 0);
  bool negative = attr_flag(im, "detect_negative", true),
       positive = attr_flag(im, "detect_positive", true);
  if (negative && positive)
    out(im, 0, ex_unary(im, OP_ISINF, x));
  else if (negative || positive)
    out(im, 0, build(&im->b, OP_EQ_SCALAR, A_VAL(x), A_FLOAT(positive ? INFINITY : -INFINITY)));
  else
    out(im, 0, build(&im->b, OP_FULL_LIKE, A_VAL(x), A_BOOL(false), A_DTYPE(DTYPE_BOOL)));
}

/* The same bits as another type of the same width. */
void translate_bit_cast(Import *im) {
  ValueId x = in_required(im, 0);
  DType to = wanted_dtype(im, attr_int_required(im, "to"));
  out(im, 0, to == ex_dtype(im, x) ? x : build(&im->b, OP_VIEW_COPY_DTYPE, A_VAL(x), A_DTYPE(to)));
}
