/* Functions, arithmetic, logic and comparison of one, two or more tensors. ONNX wants equal element
 * types and broadcasts as numpy does, which is what the ATen ops do. Integer division truncates,
 * Mod has the sign of the divisor unless fmod is set (ONNX operators Div, Mod). */
#include <math.h>

#include "onnx/express.h"

/* Operators that are one ATen op of the same meaning. */
void translate_unary(Import *im) { out(im, 0, ex_unary(im, im->op, in_required(im, 0))); }

/* Before opset 7 there is no numpy broadcasting, but a second operand that fits a run of the first
 * one's dims from `axis` on when `broadcast` is set (Add-1, Add-6, …: without axis the run is at
 * the end): ones behind it put it there. */
static ValueId placed(Import *im, ValueId a, ValueId b) {
  if (!attr_has(im, "axis") || !attr_flag(im, "broadcast", false))
    return b;
  Dims to = {0};
  uint32_t rank = ex_rank(im, a), own = ex_rank(im, b),
           axis = import_axis(im, attr_int(im, "axis", 0), rank ? rank : 1);
  if (axis + own > rank)
    return import_fail(im, DIAG_ATTR_VALUE, "axis %u with %u dimensions does not fit rank %u", axis,
                       own, rank);
  for (to.rank = 0; to.rank < rank - axis; to.rank++)
    to.d[to.rank] = to.rank < own ? ex_dim(im, b, to.rank) : 1;
  return ex_view_as(im, b, to);
}

/* Both operands present and of one type. */
static bool two_operands(Import *im, ValueId *a, ValueId *b) {
  *a = in_required(im, 0);
  *b = in_required(im, 1);
  if (types_agree(im, *a, *b) && im->opset < 7)
    *b = placed(im, *a, *b);
  return import_ok(im);
}

void translate_binary(Import *im) {
  ValueId a, b;
  if (two_operands(im, &a, &b))
    out(im, 0, ex_binary(im, im->op, a, b));
}

/* a / b rounded to zero. The runtime's kernel divides i64 in f64, which is wrong beyond 2^53;
 * floor_divide is exact. Of shapes, whose quotients are known, no kernel is left. */
static ValueId whole_quotient(Import *im, ValueId a, ValueId b) {
  Ints known;
  int64_t divisor;
  ValueId quotient = build(&im->b, OP_DIV_TENSOR_MODE, A_VAL(a), A_VAL(b), A_STR("trunc"));
  if (!import_ok(im) || im->opset < 7 || ex_dtype(im, a) != DTYPE_I64 ||
      value_is_const(im->g, quotient) || value_ints(im, quotient, &known))
    return quotient;
  if (one_const(im, b, &divisor) && divisor > 0) {
    /* floor((a + (b - 1)) / b) where a is negative */
    ValueId sign = ex_binary(im, OP_BITWISE_RIGHT_SHIFT_TENSOR, a, ex_int(im, 63)),
            less = ex_int(im, divisor - 1);
    ValueId moved = ex_add(im, a, ex_binary(im, OP_BITWISE_AND_TENSOR, sign, less));
    return ex_floor_div(im, moved, b);
  }
  quotient = ex_floor_div(im, a, b);
  ValueId rest = ex_sub(im, a, ex_mul(im, quotient, b)), zero = ex_number(im, a, 0);
  ValueId below = ex_lt(im, b, zero), up = ex_binary(im, OP_LOGICAL_XOR, ex_lt(im, a, zero), below);
  up = ex_and(im, up, ex_ne(im, rest, zero));
  return ex_add(im, quotient, ex_cast(im, up, DTYPE_I64));
}

void translate_div(Import *im) {
  ValueId a, b;
  if (two_operands(im, &a, &b))
    out(im, 0, dtype_is_float(ex_dtype(im, a)) ? ex_div(im, a, b) : whole_quotient(im, a, b));
}

/* fmod, moved by the divisor where the signs differ; a zero has the sign of the divisor, as numpy's
 * mod. (The runtime's remainder computes f64 in f32.) */
static ValueId float_modulo(Import *im, ValueId a, ValueId b) {
  ValueId rest = ex_binary(im, OP_FMOD_TENSOR, a, b);
  ValueId negative = build(&im->b, OP_LT_SCALAR, A_VAL(b), A_INT(0)),
          below = build(&im->b, OP_LT_SCALAR, A_VAL(rest), A_INT(0)),
          differ = ex_binary(im, OP_LOGICAL_XOR, negative, below), moved = ex_add(im, rest, b),
          result = ex_where(im, differ, moved, rest),
          none = build(&im->b, OP_EQ_SCALAR, A_VAL(rest), A_INT(0)), minus = ex_number(im, a, -0.0),
          zero = ex_where(im, negative, minus, ex_number(im, a, 0));
  return ex_where(im, none, zero, result);
}

/* The runtime's remainder has C's sign for integers, so the floor form is spelt out. That of u64,
 * for which fmod has no kernel, is the same. */
void translate_mod(Import *im) {
  ValueId a, b;
  if (!two_operands(im, &a, &b))
    return;
  if (attr_flag(im, "fmod", false) && ex_dtype(im, a) != DTYPE_U64)
    out(im, 0, ex_binary(im, OP_FMOD_TENSOR, a, b));
  else
    out(im, 0, dtype_is_float(ex_dtype(im, a)) ? float_modulo(im, a, b) : ex_floor_mod(im, a, b));
}

/* The result has the type of the base; a constant single exponent becomes the scalar form. */
/* x to the power of one number. */
static ValueId power_of_number(Import *im, ValueId x, ValueId y, double exponent) {
  DType base = ex_dtype(im, x);
  SymInt number;
  if (exponent == 2 && dtype_is_int(base))
    return ex_mul(im, x, x); /* of sizes, too: `length ** 2` */
  bool whole = sym_from_float(exponent, &number) &&
               (!dtype_is_float(ex_dtype(im, y)) || (fabs(exponent) < 1e9 && dtype_is_float(base)));
  ValueId power =
      build(&im->b, OP_POW_TENSOR_SCALAR, A_VAL(x), whole ? A_INT(number) : A_FLOAT(exponent));
  return import_ok(im) && ex_rank(im, y) > 0 ? ex_view(im, power, vt(im, x)->dims, vt(im, x)->rank)
                                             : power;
}

void translate_pow(Import *im) {
  ValueId x = in_required(im, 0), y = in_required(im, 1);
  if (im->opset < 7 && two_operands(im, &x, &y))
    out(im, 0, ex_binary(im, OP_POW_TENSOR_TENSOR, x, y));
  if (im->opset < 7)
    return;
  DType base = ex_dtype(im, x);
  if (ex_dtype(im, y) != base &&
      dtype_in(ex_dtype(im, y), DTS_UNSIGNED)) /* promotes with nothing */
    y = ex_cast(im, y, DTYPE_I64);
  double exponent;
  bool one = ex_rank(im, y) <= ex_rank(im, x) && one_double(im, y, &exponent);
  ValueId power =
      one ? power_of_number(im, x, y, exponent) : ex_binary(im, OP_POW_TENSOR_TENSOR, x, y);
  out(im, 0, ex_cast(im, power, base));
}

/* Shifts by the width of the type or more, which C leaves undefined (negative ones count as such):
 * nothing but the sign is left. */
void translate_bit_shift(Import *im) {
  ValueId a, b;
  if (!two_operands(im, &a, &b))
    return;
  bool left = attr_choice(im, "direction", "", "LEFT|RIGHT") == 0;
  DType dtype = ex_dtype(im, a);
  bool has_sign = !dtype_is_unsigned(dtype), keep_sign = has_sign && !left;
  int64_t bits = 8 * dtype_size(dtype);
  ValueId width = build_scalar_int(&im->b, dtype, bits), zero = build_scalar_int(&im->b, dtype, 0);
  ValueId fits = ex_lt(im, b, width);
  if (has_sign) {
    ValueId positive = ex_ge(im, b, zero);
    fits = ex_and(im, fits, positive);
  }
  ValueId beyond = keep_sign ? build_scalar_int(&im->b, dtype, bits - 1) : zero;
  ValueId amount = ex_where(im, fits, b, beyond);
  ValueId shifted =
      build(&im->b, left ? OP_BITWISE_LEFT_SHIFT_TENSOR : OP_BITWISE_RIGHT_SHIFT_TENSOR, A_VAL(a),
            A_VAL(amount));
  out(im, 0, keep_sign ? shifted : ex_where(im, fits, shifted, zero));
}

/* Max, Min, Sum, Mean: a fold over any number of tensors. */
static ValueId fold_inputs(Import *im, OpId op) {
  ValueId result = in_required(im, 0);
  for (uint32_t i = 1; i < in_count(im) && import_ok(im); i++) {
    ValueId next = in_required(im, i);
    if (ex_dtype(im, next) != ex_dtype(im, result))
      return import_fail(im, DIAG_DTYPE_MISMATCH, "input %u is %s, the first is %s", i,
                         dtype_name(ex_dtype(im, next)), dtype_name(ex_dtype(im, result)));
    result = ex_binary(im, op, result, next);
  }
  return import_ok(im) ? result : 0;
}

void translate_fold(Import *im) { out(im, 0, fold_inputs(im, im->op)); }

void translate_mean(Import *im) {
  ValueId sum = fold_inputs(im, OP_ADD_TENSOR);
  ValueId count = build_scalar(&im->b, ex_dtype(im, sum), in_count(im));
  out(im, 0, in_count(im) == 1 ? sum : ex_div(im, sum, count));
}

void translate_where(Import *im) {
  ValueId condition = in_required(im, 0), a = in_required(im, 1), b = in_required(im, 2);
  if (ex_dtype(im, a) != ex_dtype(im, b))
    import_fail(im, DIAG_DTYPE_MISMATCH, "the branches are %s and %s", dtype_name(ex_dtype(im, a)),
                dtype_name(ex_dtype(im, b)));
  out(im, 0, ex_where(im, condition, a, b));
}
