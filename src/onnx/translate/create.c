/* Operators that make tensors: fills, ranges, identity matrices, one-hot. What does not
 * depend on run-time values folds to a constant while it is built. */
#include <math.h>

#include "onnx/data_sizes.h"
#include "onnx/packed.h"

/* --- ConstantOfShape --- */

/* The only element of attribute 'value' (f32 zero when absent), as a 0-d constant. */
static ValueId fill_value(Import *im) {
  const Onnx__TensorProto *t = attr_tensor(im, "value");
  if (t && packed_storage(t->data_type) != DTYPE_NONE)
    return import_fail(im, DIAG_UNSUPPORTED_FEATURE, "a tensor full of %s is not supported",
                       onnx_dtype_name(t->data_type));
  ValueId v = t ? import_tensor(im, t, 0) : build_scalar(&im->b, DTYPE_F32, 0);
  Dims s = shape_of(im, v);
  if (shape_product(im, s.d, s.rank) != 1)
    return import_fail(im, DIAG_ATTR_VALUE, "'value' does not hold exactly one element");
  return ex_scalar(im, v);
}

void translate_constant_of_shape(Import *im) {
  Dims s;
  bool known;
  double number;
  SymInt whole;
  ValueId value = fill_value(im);
  if (!shape_input(im, 0, 0, "the shape", &s, &known))
    return;
  DType dtype = ex_dtype(im, value);
  if (dtype_in(dtype, DTS_INT) && one_int(im, value, &whole))
    out(im, 0, build(&im->b, OP_FULL, A_INTS(s.d, s.rank), A_INT(whole), A_DTYPE(dtype)));
  else if (dtype_in(dtype, DTS_FLOAT | DT(BOOL)) && one_double(im, value, &number))
    out(im, 0, ex_filled(im, dtype, s, number));
  else
    out(im, 0, build_expand(&im->b, value, s.d, s.rank));
}

/* --- Range --- */

/* start + delta * (0, 1, …, n - 1) in the type of start. */
static ValueId range_of(Import *im, ValueId start, ValueId delta, SymInt n) {
  ValueId steps = ex_cast(im, ex_arange(im, n), ex_dtype(im, start));
  return ex_add(im, ex_mul(im, steps, delta), start);
}

/* A known start or limit as an integer; down: rounded down, if it has a fraction. */
static bool rounded_end(Import *im, uint32_t i, bool down, SymInt *whole) {
  double number;
  return one_double(im, in(im, i), &number) &&
         sym_from_float(down ? floor(number) : ceil(number), whole);
}

/* Start and limit as integers that give the same length with an integer delta. One of them may have
 * a fraction, as pixel centers from 0.5 to a size have: it is rounded away from the other. */
static bool range_ends(Import *im, bool up, SymInt *start, SymInt *limit) {
  bool whole_start = one_whole(im, in(im, 0), start), whole_limit = one_whole(im, in(im, 1), limit);
  if (whole_start)
    return whole_limit || rounded_end(im, 1, !up, limit);
  return whole_limit && rounded_end(im, 0, up, start);
}

/* Length from known numbers: ceil((limit - start) / delta), at least 0. */
static bool range_length(Import *im, SymInt *n) {
  SymInt start, limit, delta;
  SymTable *t = &im->g->syms;
  if (one_whole(im, in(im, 2), &delta) && sym_is_const(delta) && delta != 0 &&
      range_ends(im, delta > 0, &start, &limit)) {
    t->saturated = false;
    bool up = delta > 0;
    SymInt span = up ? sym_sub(t, limit, start) : sym_sub(t, start, limit);
    *n = sym_max(t, 0, sym_ceildiv(t, span, up ? delta : sym_sub(t, 0, delta)));
    return !t->saturated;
  }
  double number[3];
  for (uint32_t i = 0; i < 3; i++)
    if (!one_double(im, in(im, i), &number[i]))
      return false;
  if (number[2] == 0)
    return false;
  double count = ceil((number[1] - number[0]) / number[2]);
  if (!(count < 0x1p40))
    return false;
  *n = int_clamped(count, 0, INT64_MAX);
  return true;
}

/* Whether the data may decide: what is known is fit for a range, and not all is known. */
static bool range_sound(Import *im) {
  static const char *const names[] = {"start", "limit", "delta"};
  bool known = true;
  for (uint32_t i = 0; i < 3 && import_ok(im); i++) {
    double number = 1;
    known &= value_is_const(im->g, in(im, i));
    (void)one_double(im, in(im, i), &number);
    if (!isfinite(number) || (i == 2 && number == 0))
      import_fail(im, DIAG_ARG_RANGE,
                  "%s is %g; a range needs finite numbers and a delta other than 0", names[i],
                  number);
  }
  if (import_ok(im) && known)
    import_fail(im, DIAG_SHAPE_OVERFLOW,
                "the range has too many elements, or numbers near the ends of 64 bits");
  return import_ok(im);
}

/* The greatest length of a range of integers that data decide: what --bound says, what follows from
 * a start and a limit that have one origin, and how many rows there are where rows are taken by it,
 * as the experts of transformers take those of their tokens. */
static bool range_most(Import *im, ValueId start, ValueId limit, ValueId delta, int64_t *most) {
  int64_t step, span, bound, rows, least = INT64_MAX;
  bool is_int = dtype_is_int(ex_dtype(im, start));
  if (is_int && one_const(im, delta, &step) && step > 0 && span_most(im, start, limit, &span))
    least = span / step + (span % step != 0);
  if (is_int && out_gathered_bound(im, 0, &rows))
    least = min_i64(least, rows);
  if (out_bound(im, 0, 0, &bound))
    least = min_i64(least, bound);
  *most = least;
  return least != INT64_MAX;
}

/* Length of a range that data decide: the same formula, in the type that the runtime computes. */
static bool range_read(Import *im, ValueId start, ValueId limit, ValueId delta, SymInt *n) {
  DType dtype = ex_dtype(im, start);
  int64_t most;
  if (!range_most(im, start, limit, delta, &most)) {
    fail_unbounded(im, 0, 1, "the length of the range");
    return false;
  }
  int64_t first, step;
  if (dtype_is_int(dtype) && one_const(im, start, &first) && one_const(im, delta, &step) &&
      first >= 0 && first <= INT32_MAX && step > 0 && step <= INT32_MAX) {
    /* the limit is a size itself, which other nodes may use as well */
    SymInt end = data_size(im, limit, first + most * step);
    SymTable *t = &im->g->syms;
    *n = sym_max(t, 0, sym_ceildiv(t, sym_sub(t, end, first), step));
    return import_ok(im);
  }
  ValueId span = ex_sub(im, limit, start), count;
  if (dtype_is_int(dtype)) { /* -floor(-span / delta) */
    count = ex_unary(im, OP_NEG, ex_floor_div(im, ex_unary(im, OP_NEG, span), delta));
  } else {
    ValueId divisor = ex_cast(im, delta, DTYPE_F64);
    count = ex_unary(im, OP_CEIL, ex_div(im, ex_cast(im, span, DTYPE_F64), divisor));
  }
  count = ex_cast(im, ex_at_least(im, count, 0), DTYPE_I64);
  *n = data_size(im, ex_scalar(im, count), most);
  return import_ok(im);
}

void translate_range(Import *im) {
  ValueId start = in_required(im, 0), limit = in_required(im, 1), delta = in_required(im, 2);
  Dims s = {0};
  SymInt n;
  if (range_length(im, &n) ||
      (range_sound(im) && !out_declared_dims(im, 0, &s) && range_read(im, start, limit, delta, &n)))
    s = (Dims){1, {n}};
  if (s.rank != 1)
    import_fail(im, DIAG_DIM_CONTRADICTION, "the output is declared with rank %u, not 1", s.rank);
  delta = ex_scalar(im, delta);
  out(im, 0, range_of(im, ex_scalar(im, start), delta, s.d[0]));
}

/* --- EyeLike --- */

void translate_eye_like(Import *im) {
  ValueId x = in_required(im, 0);
  Dims s = shape_of(im, x);
  int64_t k = attr_int(im, "k", 0);
  if (s.rank != 2)
    import_fail(im, DIAG_INPUT_RANK, "the input has rank %u, 2 is wanted", s.rank);
  DType dtype = attr_dtype(im, "dtype", ex_dtype(im, x));
  ValueId row = ex_along_axis(im, ex_arange(im, s.d[0]), 0, 2),
          column = ex_along_axis(im, ex_arange(im, s.d[1]), 1, 2);
  ValueId on = ex_is(im, ex_sub(im, column, row), (double)k);
  out(im, 0, ex_cast(im, on, dtype));
}

/* --- OneHot --- */

/* The number of classes: input 1 when known, else the declared output's dim on the new axis, else
 * read while running. */
static bool one_hot_depth(Import *im, uint32_t axis, SymInt *depth) {
  double number;
  if (one_whole(im, in(im, 1), depth) ||
      (one_double(im, in(im, 1), &number) && sym_from_float(trunc(number), depth)))
    return true;
  int64_t most;
  if (out_declared_dim(im, 0, axis, depth))
    return import_ok(im);
  if (out_bound(im, 0, axis, &most))
    *depth = data_size(im, ex_scalar(im, ex_cast(im, in_required(im, 1), DTYPE_I64)), most);
  else
    fail_unbounded(im, 0, (uint32_t)1 << axis, "the depth");
  return import_ok(im);
}

/* where(indices == arange(classes), on, off); indices that are no class give off. */
void translate_one_hot(Import *im) {
  ValueId indices = in_required(im, 0), values = in_required(im, 2);
  Dims s = shape_of(im, indices), to = {0};
  SymInt depth = 0;
  if (s.rank == MAX_RANK)
    import_fail(im, DIAG_RANK_LIMIT, "the result would have more than %d dimensions", MAX_RANK);
  uint32_t axis = import_axis(im, attr_int(im, "axis", -1), s.rank + 1);
  if (!one_hot_depth(im, axis, &depth))
    return;
  to.rank = s.rank + 1;
  for (uint32_t i = 0, k = 0; i < to.rank; i++)
    to.d[i] = i == axis ? 1 : s.d[k++];
  ValueId index = ex_view_as(im, ex_wrap_index(im, indices, depth), to);
  ValueId hit = ex_eq(im, index, ex_along_axis(im, ex_arange(im, depth), axis, to.rank));
  ValueId off = ex_element(im, values, 0);
  out(im, 0, ex_where(im, hit, ex_element(im, values, 1), off));
}
