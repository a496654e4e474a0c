/* Symbolic integers as numbers. */
#include "ir/sym_internal.h"

int64_t sym_const_floordiv(int64_t a, int64_t b) {
  if (b == 0)
    return 0;
  if (b == -1)
    return a == INT64_MIN ? INT64_MAX : -a;
  int64_t q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t sym_const_mod(int64_t a, int64_t b) {
  if (b == 0 || b == -1)
    return 0;
  int64_t rest = a % b;
  return rest && (rest < 0) != (b < 0) ? rest + b : rest;
}

static bool eval_pair(SymKind kind, int64_t a, int64_t b, int64_t *out) {
  if ((kind == SYM_FLOORDIV || kind == SYM_MOD) && b == 0)
    return false;
  switch (kind) {
  case SYM_FLOORDIV:
    *out = sym_const_floordiv(a, b);
    return true;
  case SYM_MOD:
    *out = sym_const_mod(a, b);
    return true;
  case SYM_MIN:
    *out = min_i64(a, b);
    return true;
  case SYM_MAX:
    *out = max_i64(a, b);
    return true;
  case SYM_SYMBOL:
  case SYM_SUM:
  case SYM_PRODUCT:
    break;
  }
  return false;
}

/* Operands of an expression were made before it, so the recursion ends; limits of the table bound
 * its depth and its steps. */
bool sym_eval(const SymTable *t, SymInt v, const int64_t *values, int64_t *out) {
  if (sym_is_const(v)) {
    *out = v;
    return true;
  }
  const SymExpr *e = sym_expr(t, v);
  if (e->kind == SYM_SYMBOL) {
    *out = values[e->index];
    return true;
  }
  int64_t sum = e->kind == SYM_SUM ? e->constant : 1, first = 0;
  for (uint32_t i = 0; i < e->count; i++) {
    int64_t term;
    if (!sym_eval(t, e->terms[i], values, &term))
      return false;
    if (e->kind == SYM_SUM &&
        (!mul_i64(term, e->coefficients[i], &term) || !add_i64(sum, term, &sum)))
      return false;
    if (e->kind == SYM_PRODUCT && !mul_i64(sum, term, &sum))
      return false;
    if (e->kind > SYM_PRODUCT && i == 1)
      return eval_pair(e->kind, first, term, out);
    first = term;
  }
  *out = sum;
  return true;
}
