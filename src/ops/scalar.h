/* Arithmetic of integers that several kernels and shape rules have in common. */
#ifndef ETC_OPS_SCALAR_H
#define ETC_OPS_SCALAR_H

#include "ir/op.h"

/* Whether op on integers needs a divisor other than 0. */
static inline bool is_int_division(OpId op) {
  return op == OP_PRIM_FLOORDIV || op == OP_PRIM_FLOORDIV_INT || op == OP_PRIM_MOD ||
         op == OP_PRIM_MOD_INT;
}

/* Truncated; b is not 0. The quotient of the least number by -1 wraps. */
static inline int64_t int_quotient(int64_t a, int64_t b) {
  return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
static inline int64_t int_rest(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }
static inline int64_t int_floor_quotient(int64_t a, int64_t b) {
  return int_quotient(a, b) - ((a < 0) != (b < 0) && int_rest(a, b) != 0);
}

#endif
