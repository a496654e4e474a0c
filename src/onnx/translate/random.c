/* Random numbers, Dropout, Bernoulli, Multinomial. The runtime's generator seeds itself anew each
 * time, so attribute seed has no effect. */
#include "onnx/express.h"

static DType float_attr(Import *im, DType otherwise) {
  DType dtype = attr_dtype(im, "dtype", otherwise);
  if (!dtype_is_float(dtype))
    import_fail(im, DIAG_ATTR_VALUE, "'dtype' is not a float type that the runtime holds");
  return dtype;
}

static ValueId random_numbers(Import *im, OpId op, const Dims *s, DType dtype) {
  return build(&im->b, op, A_INTS(s->d, s->rank), A_DTYPE(dtype));
}

/* Normal numbers times the scale plus the mean, or uniform ones from low to high. */
static void random_of(Import *im, const Dims *s, DType dtype) {
  bool normal = im->op == OP_RANDN;
  double offset = attr_float(im, normal ? "mean" : "low", 0),
         factor = normal ? attr_float(im, "scale", 1) : attr_float(im, "high", 1) - offset;
  out(im, 0, ex_plus(im, ex_times(im, random_numbers(im, im->op, s, dtype), factor), offset));
}

void translate_random_shaped(Import *im) {
  Ints dims;
  if (!attr_ints(im, "shape", &dims) || dims.count > MAX_RANK) {
    import_fail(im, DIAG_ATTR_MISSING, "there is no 'shape' of at most %d entries", MAX_RANK);
    return;
  }
  Dims s = dims_make(dims.at, dims.count);
  random_of(im, &s, float_attr(im, DTYPE_F32));
}

void translate_random_like(Import *im) {
  ValueId x = in_required(im, 0);
  Dims s = shape_of(im, x);
  DType dtype = ex_dtype(im, x);
  random_of(im, &s, float_attr(im, dtype_is_float(dtype) ? dtype : DTYPE_F32));
}

/* 1 with the probability that the input gives. */
void translate_bernoulli(Import *im) {
  ValueId x = in_required(im, 0);
  Dims s = shape_of(im, x);
  DType dtype = attr_dtype(im, "dtype", ex_dtype(im, x));
  ValueId hit = ex_lt(im, random_numbers(im, OP_RAND, &s, ex_dtype(im, x)), x);
  out(im, 0, ex_cast(im, hit, dtype));
}

/* Classes by the share of the running probabilities that a uniform number reaches. The input holds
 * logarithms of probabilities, not normalised: [batch, classes] -> [batch, samples]. */
void translate_multinomial(Import *im) {
  ValueId x = in_required(im, 0);
  Dims s = shape_of(im, x);
  int64_t samples = attr_int(im, "sample_size", 1);
  DType dtype = attr_dtype(im, "dtype", DTYPE_I32);
  if (s.rank != 2 || samples < 1 || (dtype != DTYPE_I32 && dtype != DTYPE_I64))
    import_fail(im, DIAG_ATTR_VALUE,
                "Multinomial takes a matrix, a positive sample_size and an int32 or int64 dtype");
  DType kind = ex_dtype(im, x);
  ValueId share = ex_softmax(im, x, 1);
  share = build(&im->b, OP_CUMSUM, A_VAL(share), A_INT(1), A_DTYPE(kind));
  /* All but the last class: the last one takes what rounding leaves. */
  share = ex_slice(im, share, 1, 0, sym_sub(&im->g->syms, s.d[1], 1));
  Dims number = {3, {s.d[0], samples, 1}};
  ValueId drawn = random_numbers(im, OP_RAND, &number, kind),
          passed = ex_le(im, ex_unsqueeze(im, share, 1), drawn);
  ValueId index = ex_sum(im, ex_cast(im, passed, DTYPE_I64), 2, false);
  out(im, 0, ex_cast(im, index, dtype));
}

/* --- Dropout --- */

/* Is the node known to be at inference? */
static bool at_inference(Import *im) {
  int64_t training;
  double ratio;
  if (im->opset < 7)
    return attr_flag(im, "is_test", false);
  if (im->opset < 12 || !in(im, 2) || (one_const(im, in(im, 2), &training) && !training))
    return true;
  return one_double(im, in(im, 1), &ratio) && ratio == 0;
}

/* Each element is kept with probability 1 - ratio and then divided by it; a training flag that
 * arrives at run time picks between this and the input. */
static void dropout_training(Import *im, ValueId x) {
  Dims s = shape_of(im, x);
  DType dtype = ex_dtype(im, x);
  ValueId ratio, training = im->opset < 12 ? 0 : in(im, 2), given = im->opset < 12 ? 0 : in(im, 1);
  if (given)
    ratio = ex_cast(im, ex_scalar(im, given), dtype);
  else
    ratio = build_scalar(&im->b, dtype, im->opset < 12 ? attr_float(im, "ratio", 0.5) : 0.5);
  ValueId kept = ex_ge(im, random_numbers(im, OP_RAND, &s, dtype), ratio);
  ValueId share = ex_sub(im, build_scalar(&im->b, dtype, 1), ratio);
  ValueId zero = build_scalar(&im->b, dtype, 0);
  ValueId y = ex_where(im, kept, ex_div(im, x, share), zero);
  if (training) {
    training = ex_scalar(im, training);
    y = ex_where(im, training, y, x);
    kept = ex_or(im, kept, ex_unary(im, OP_LOGICAL_NOT, training));
  }
  out(im, 0, y);
  out(im, 1, im->opset < 10 ? ex_cast(im, kept, dtype) : kept);
}

void translate_dropout(Import *im) {
  ValueId x = in_required(im, 0);
  if (!at_inference(im)) {
    dropout_training(im, x);
    return;
  }
  out(im, 0, x);
  if (out_wanted(im, 1))
    out(im, 1, ex_filled(im, im->opset < 10 ? ex_dtype(im, x) : DTYPE_BOOL, shape_of(im, x), 1));
}
