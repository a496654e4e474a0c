/* Arithmetic on plain numbers that the files of SymTable share. */
#ifndef ETC_IR_SYM_INTERNAL_H
#define ETC_IR_SYM_INTERNAL_H

#include "ir/sym.h"

/* The number, or the next lower one that stands for no expression. */
static inline int64_t sym_next_number(int64_t number) {
  return sym_is_const(number) ? number : SYM_BAND - 1;
}
/* INT64_MIN and INT64_MAX stand for "no bound". */
int64_t sym_sat_add(int64_t a, int64_t b);
int64_t sym_sat_mul(int64_t a, int64_t b);
/* Rounds to minus infinity; 0 for a zero divisor; INT64_MIN / -1 saturates. */
int64_t sym_const_floordiv(int64_t a, int64_t b);
/* a - floor(a / b) * b, without the overflow of the product; 0 for a zero divisor. */
int64_t sym_const_mod(int64_t a, int64_t b);

/* The range of a * b, and of floordiv(a, b), from those of a and b. */
void sym_range_mul(int64_t alo, int64_t ahi, int64_t blo, int64_t bhi, int64_t *lo, int64_t *hi);
void sym_range_floordiv(int64_t alo, int64_t ahi, int64_t blo, int64_t bhi, int64_t *lo,
                        int64_t *hi);

/* Sets lo and hi of an expression (not of a symbol) whose operands have theirs. */
void sym_compute_range(const SymTable *t, SymExpr *e);

#endif
