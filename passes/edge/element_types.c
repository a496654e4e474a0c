/* See element_types.h. Unsigned arithmetic with signed kernels: Warren, "Hacker's Delight", 2nd
 * edition, sections 2-12 (comparison), 2-7 (shifts) and 9-3 (division). */
#include "passes/edge/element_types.h"

int64_t sign_extend(int64_t value, unsigned bits) {
  uint64_t sign = (uint64_t)1 << (bits - 1), low = (uint64_t)value & (sign * 2 - 1);
  return (int64_t)((low ^ sign) - sign);
}

/* The same bytes as another type of that size. */
static ValueId build_bitcast(Builder *b, ValueId v, DType to) {
  if (b->status != STATUS_OK || value_dtype(b->g, v) == to)
    return v;
  NodeId def = value_def(b->g, v);
  if (def && node_cget(b->g, def)->op == OP_VIEW_COPY_DTYPE)
    return build_bitcast(b, node_value(b->g, def, 0), to);
  return build(b, OP_VIEW_COPY_DTYPE, A_VAL(v), A_DTYPE(to));
}

static DType signed_of(DType t) {
  return t == DTYPE_U16 ? DTYPE_I16 : t == DTYPE_U32 ? DTYPE_I32 : t == DTYPE_U64 ? DTYPE_I64 : t;
}

static ValueId build_flip(Builder *b, ValueId v) {
  ValueId sign = build_scalar_int(b, DTYPE_I64, INT64_MIN);
  return build_binary(b, OP_BITWISE_XOR_TENSOR, v, sign);
}

ValueId change_in(Builder *b, ValueId v, const Change *changes) {
  if (b->status != STATUS_OK || value_type(b->g, v)->kind != TYPE_TENSOR)
    return v;
  DType from = value_dtype(b->g, v);
  Change c = changes[from];
  if (c.how == HOW_KEEP)
    return v;
  if (c.how == HOW_CAST)
    return build_cast(b, v, c.to);
  v = build_bitcast(b, v, signed_of(from));
  if (c.how == HOW_FLIP)
    return build_flip(b, v);
  if (c.how == HOW_BITS)
    return v;
  v = build_cast(b, v, c.to);
  int64_t mask = from == DTYPE_U16 ? 0xffff : 0xffffffff;
  return build(b, OP_BITWISE_AND_SCALAR, A_VAL(v), A_INT(mask));
}

ValueId change_out(Builder *b, ValueId v, DType wanted, const Change *changes) {
  if (b->status != STATUS_OK || value_dtype(b->g, v) == wanted)
    return v;
  How how = changes[wanted].how;
  if (how == HOW_CAST || how == HOW_KEEP)
    return build_cast(b, v, wanted);
  if (how == HOW_FLIP)
    v = build_flip(b, v);
  v = build_cast(b, v, signed_of(wanted));
  return build_bitcast(b, v, wanted);
}

/* --- u64 --- */

static ValueId binary_int(Builder *b, OpId op, ValueId x, int64_t y) {
  ValueId number = build_scalar_int(b, DTYPE_I64, y);
  return build_binary(b, op, x, number);
}

/* x >> count with zeros from above: the copies of the sign are cut off. */
static ValueId shift_right(Builder *b, ValueId x, ValueId count) {
  ValueId signs = build_scalar_int(b, DTYPE_I64, INT64_MIN);
  signs = build_binary(b, OP_BITWISE_RIGHT_SHIFT_TENSOR, signs, count); /* count + 1 ones */
  signs = binary_int(b, OP_BITWISE_LEFT_SHIFT_TENSOR, signs, 1);
  ValueId keep = build_unary(b, OP_BITWISE_NOT, signs);
  return build_binary(b, OP_BITWISE_AND_TENSOR,
                      build_binary(b, OP_BITWISE_RIGHT_SHIFT_TENSOR, x, count), keep);
}

/* x >= y as unsigned numbers, as 0 or 1. */
static ValueId not_below(Builder *b, ValueId x, ValueId y) {
  ValueId p = binary_int(b, OP_BITWISE_XOR_TENSOR, x, INT64_MIN);
  ValueId q = binary_int(b, OP_BITWISE_XOR_TENSOR, y, INT64_MIN);
  return build_cast(b, build_binary(b, OP_GE_TENSOR, p, q), DTYPE_I64);
}

/* x / y: half of x, which is not negative, is divided, the quotient doubled and put right by one.
 * A divisor of 2^63 or more goes into x once at most. Zero divisors stay an error of the kernel. */
static ValueId divide(Builder *b, ValueId x, ValueId y) {
  ValueId half = binary_int(b, OP_BITWISE_RIGHT_SHIFT_TENSOR, x, 1);
  half = binary_int(b, OP_BITWISE_AND_TENSOR, half, INT64_MAX);
  ValueId quotient = build_binary(b, OP_FLOOR_DIVIDE, half, y);
  quotient = binary_int(b, OP_BITWISE_LEFT_SHIFT_TENSOR, quotient, 1);
  ValueId rest = build_binary(b, OP_SUB_TENSOR, x, build_binary(b, OP_MUL_TENSOR, quotient, y));
  quotient = build_binary(b, OP_ADD_TENSOR, quotient, not_below(b, rest, y));
  ValueId once = not_below(b, x, y);
  ValueId large = build(b, OP_LT_SCALAR, A_VAL(y), A_INT(0));
  return build(b, OP_WHERE_SELF, A_VAL(large), A_VAL(once), A_VAL(quotient));
}

/* The nearest float: of 2^63 and more that of half the number, of which the last bit stands for all
 * below it, doubled. */
static ValueId to_float(Builder *b, ValueId x, DType to) {
  ValueId half = binary_int(b, OP_BITWISE_RIGHT_SHIFT_TENSOR, x, 1);
  half = binary_int(b, OP_BITWISE_AND_TENSOR, half, INT64_MAX);
  half = build_binary(b, OP_BITWISE_OR_TENSOR, half, binary_int(b, OP_BITWISE_AND_TENSOR, x, 1));
  half = build_cast(b, half, to);
  ValueId twice = build_binary(b, OP_ADD_TENSOR, half, half), once = build_cast(b, x, to);
  ValueId large = build(b, OP_LT_SCALAR, A_VAL(x), A_INT(0));
  return build(b, OP_WHERE_SELF, A_VAL(large), A_VAL(twice), A_VAL(once));
}

/* Of 2^63 and more that number is taken off, and put on as the sign bit. */
static ValueId from_float(Builder *b, ValueId x) {
  ValueId limit = build_scalar(b, value_dtype(b->g, x), 0x1p63);
  ValueId rest = build_binary(b, OP_SUB_TENSOR, x, limit),
          large = build_binary(b, OP_GE_TENSOR, x, limit);
  ValueId low = build(b, OP_WHERE_SELF, A_VAL(large), A_VAL(rest), A_VAL(x));
  low = build_cast(b, low, DTYPE_I64);
  ValueId high = build_flip(b, low);
  return build(b, OP_WHERE_SELF, A_VAL(large), A_VAL(high), A_VAL(low));
}

static ValueId converted(Builder *b, ValueId x, DType to) {
  DType from = value_dtype(b->g, x);
  if (to == DTYPE_U64 && dtype_in(from, DT(F32) | DT(F64)))
    return build_bitcast(b, from_float(b, x), to);
  if (to == DTYPE_U64 && dtype_in(from, DTS_FLOAT))
    return converted(b, build_cast(b, x, DTYPE_F32), to);
  if (from == DTYPE_U64 && dtype_in(to, DT(F32) | DT(F64)))
    return to_float(b, build_bitcast(b, x, DTYPE_I64), to);
  if (from == DTYPE_U64 && dtype_in(to, DTS_FLOAT))
    return build_cast(b, converted(b, x, DTYPE_F32), to);
  return 0;
}

/* 1 where the number is not 0. */
static ValueId sign(Builder *b, ValueId x) {
  ValueId some = build(b, OP_NE_SCALAR, A_VAL(build_bitcast(b, x, DTYPE_I64)), A_INT(0));
  return build_bitcast(b, build_cast(b, some, DTYPE_I64), DTYPE_U64);
}

ValueId unsigned64_spelt_out(Builder *b, NodeId n) {
  OpId op = node_cget(b->g, n)->op;
  if (op == OP_ABS)
    return node_value(b->g, n, 0);
  if (op == OP_SIGN)
    return sign(b, node_value(b->g, n, 0));
  if (op == OP_TO_COPY)
    return converted(b, node_value(b->g, n, 0), value_dtype(b->g, node_result(b->g, n, 0)));
  bool division = op == OP_FLOOR_DIVIDE || op == OP_DIV_TENSOR_MODE;
  if ((!division && op != OP_BITWISE_RIGHT_SHIFT_TENSOR) ||
      value_dtype(b->g, node_value(b->g, n, 0)) != DTYPE_U64 ||
      value_dtype(b->g, node_value(b->g, n, 1)) != DTYPE_U64)
    return 0;
  ValueId x = node_value(b->g, n, 0), y = node_value(b->g, n, 1);
  x = build_bitcast(b, x, DTYPE_I64);
  y = build_bitcast(b, y, DTYPE_I64);
  return build_bitcast(b, division ? divide(b, x, y) : shift_right(b, x, y), DTYPE_U64);
}
