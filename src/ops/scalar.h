/* What the shape rules and the kernels of ops on scalars both ask. */
#ifndef ETC_OPS_SCALAR_H
#define ETC_OPS_SCALAR_H

#include "ir/op.h"

/* Whether op on integers needs a divisor other than 0. */
static inline bool is_int_division(OpId op) {
  return op == OP_PRIM_FLOORDIV || op == OP_PRIM_FLOORDIV_INT || op == OP_PRIM_MOD ||
         op == OP_PRIM_MOD_INT;
}

#endif
