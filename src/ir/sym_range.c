/* Proven ranges of expressions, from those of their parts. */
#include "ir/sym_internal.h"

int64_t sym_sat_add(int64_t a, int64_t b) {
  int64_t r;
  if (add_i64(a, b, &r))
    return sym_const(r);
  return a > 0 ? INT64_MAX : INT64_MIN;
}

int64_t sym_sat_mul(int64_t a, int64_t b) {
  int64_t r;
  if (mul_i64(a, b, &r))
    return sym_const(r);
  return (a > 0) == (b > 0) ? INT64_MAX : INT64_MIN;
}

/* Range of a * b from the ranges of the factors. */
static void range_mul(int64_t alo, int64_t ahi, int64_t blo, int64_t bhi, int64_t *lo,
                      int64_t *hi) {
  int64_t corners[4] = {sym_sat_mul(alo, blo), sym_sat_mul(alo, bhi), sym_sat_mul(ahi, blo),
                        sym_sat_mul(ahi, bhi)};
  *lo = *hi = corners[0];
  for (int i = 1; i < 4; i++) {
    *lo = min_i64(*lo, corners[i]);
    *hi = max_i64(*hi, corners[i]);
  }
}

static void range_floordiv(int64_t alo, int64_t ahi, int64_t blo, int64_t bhi, int64_t *lo,
                           int64_t *hi) {
  *lo = INT64_MIN;
  *hi = INT64_MAX;
  if (blo <= 0)
    return;
  *lo = alo >= 0 ? sym_const_floordiv(alo, bhi) : sym_const_floordiv(alo, blo);
  *hi = ahi >= 0 ? sym_const_floordiv(ahi, blo) : sym_const_floordiv(ahi, bhi);
  if (alo == INT64_MIN)
    *lo = INT64_MIN;
  if (ahi == INT64_MAX)
    *hi = INT64_MAX;
}

/* --- sums of products --- */

enum { MAX_FACTORS = 6 };

typedef struct Polynomial {
  SymInt factors[MAX_FACTORS];
  uint32_t count;
  bool has_product;
} Polynomial;

static bool add_factor(const SymTable *t, Polynomial *p, SymInt factor) {
  for (uint32_t i = 0; i < p->count; i++)
    if (p->factors[i] == factor)
      return true;
  if (p->count == MAX_FACTORS || sym_lower(t, factor) == INT64_MIN ||
      sym_upper(t, factor) == INT64_MAX)
    return false;
  p->factors[p->count++] = factor;
  return true;
}

/* The factors of all terms; false when one has a power of a factor. */
static bool polynomial_of(const SymTable *t, const SymExpr *sum, Polynomial *p) {
  for (uint32_t i = 0; i < sum->count; i++) {
    const SymExpr *term = sym_expr(t, sum->terms[i]);
    uint32_t count = term->kind == SYM_PRODUCT ? term->count : 1;
    const SymInt *factors = term->kind == SYM_PRODUCT ? term->terms : &sum->terms[i];
    p->has_product |= term->kind == SYM_PRODUCT;
    for (uint32_t k = 0; k < count; k++)
      if (sym_is_const(factors[k]) || (k && factors[k] == factors[k - 1]) ||
          !add_factor(t, p, factors[k]))
        return false;
  }
  return p->has_product;
}

/* The sum where factor i has its upper bound if bit i of corner is set, else its lower one. */
static bool value_at(const SymTable *t, const SymExpr *sum, const Polynomial *p, uint32_t corner,
                     int64_t *out) {
  *out = sum->constant;
  for (uint32_t i = 0; i < sum->count; i++) {
    const SymExpr *term = sym_expr(t, sum->terms[i]);
    int64_t value = sum->coefficients[i];
    for (uint32_t k = 0; k < p->count; k++) {
      bool present = p->factors[k] == sum->terms[i];
      for (uint32_t j = 0; term->kind == SYM_PRODUCT && j < term->count; j++)
        present |= term->terms[j] == p->factors[k];
      int64_t factor = corner >> k & 1 ? sym_upper(t, p->factors[k]) : sym_lower(t, p->factors[k]);
      if (present && !mul_i64(value, factor, &value))
        return false;
    }
    if (!add_i64(*out, value, out))
      return false;
  }
  return sym_is_const(*out);
}

/* A sum of products without powers has its extremes where every factor has one: s0*(s1 - 3) is no
 * larger written as s0*s1 - s0*3. */
static bool vertex_range(const SymTable *t, SymExpr *e) {
  Polynomial p = {0};
  int64_t lo = INT64_MAX, hi = INT64_MIN, value;
  if (!polynomial_of(t, e, &p))
    return false;
  for (uint32_t corner = 0; corner < (uint32_t)1 << p.count; corner++) {
    if (!value_at(t, e, &p, corner, &value))
      return false;
    lo = min_i64(lo, value);
    hi = max_i64(hi, value);
  }
  e->lo = lo;
  e->hi = hi;
  return true;
}

/* --- sums --- */

static bool is_bounded(const SymTable *t, SymInt v) {
  return sym_lower(t, v) != INT64_MIN && sym_upper(t, v) != INT64_MAX;
}

/* Range of max(a, b) - a, which is max(0, b - a) however the ranges of a and b overlap; min alike.
 */
static bool extreme_less_operand(const SymTable *t, const SymExpr *x, SymInt a, int64_t *lo,
                                 int64_t *hi) {
  if ((x->kind != SYM_MIN && x->kind != SYM_MAX) || (x->terms[0] != a && x->terms[1] != a))
    return false;
  SymInt b = x->terms[x->terms[0] == a];
  if (!is_bounded(t, a) || !is_bounded(t, b))
    return false;
  *lo = sym_sat_add(sym_lower(t, b), sym_sat_mul(sym_upper(t, a), -1));
  *hi = sym_sat_add(sym_upper(t, b), sym_sat_mul(sym_lower(t, a), -1));
  *lo = x->kind == SYM_MAX ? max_i64(*lo, 0) : min_i64(*lo, 0);
  *hi = x->kind == SYM_MAX ? max_i64(*hi, 0) : min_i64(*hi, 0);
  return true;
}

/* Range of floordiv(a + n, d) - a, which never grows with a. */
static bool quotient_less_operand(const SymTable *t, const SymExpr *x, SymInt a, int64_t *lo,
                                  int64_t *hi) {
  if (x->kind != SYM_FLOORDIV || !sym_is_const(x->terms[1]) || x->terms[1] < 1 ||
      sym_is_const(x->terms[0]) || !is_bounded(t, a))
    return false;
  const SymExpr *sum = sym_expr(t, x->terms[0]);
  bool shifted =
      sum->kind == SYM_SUM && sum->count == 1 && sum->terms[0] == a && sum->coefficients[0] == 1;
  if (!shifted && x->terms[0] != a)
    return false;
  int64_t n = shifted ? sum->constant : 0, d = x->terms[1], least = sym_lower(t, a),
          most = sym_upper(t, a);
  *lo = sym_sat_add(sym_const_floordiv(sym_sat_add(most, n), d), sym_sat_mul(most, -1));
  *hi = sym_sat_add(sym_const_floordiv(sym_sat_add(least, n), d), sym_sat_mul(least, -1));
  return true;
}

/* Two terms of a sum, together less than their ranges tell: an expression less what it is made of.
 * [lo, hi] is the range of their difference. */
static bool related(const SymTable *t, const SymExpr *sum, uint32_t *of, uint32_t *operand,
                    int64_t *lo, int64_t *hi) {
  for (*of = 0; *of < sum->count; ++*of) {
    const SymExpr *x = sym_expr(t, sum->terms[*of]);
    if (x->kind < SYM_FLOORDIV)
      continue;
    for (*operand = 0; *operand < sum->count; ++*operand)
      if (sum->coefficients[*of] == -sum->coefficients[*operand] &&
          (extreme_less_operand(t, x, sum->terms[*operand], lo, hi) ||
           quotient_less_operand(t, x, sum->terms[*operand], lo, hi)))
        return true;
  }
  return false;
}

static void sum_range(const SymTable *t, SymExpr *e) {
  uint32_t of = 0, operand = 0;
  int64_t least = 0, most = 0, lo, hi;
  bool pair = related(t, e, &of, &operand, &least, &most);
  e->lo = e->hi = e->constant;
  for (uint32_t i = 0; i < e->count; i++) {
    if (pair && i == operand)
      continue;
    bool whole = !pair || i != of;
    range_mul(whole ? sym_lower(t, e->terms[i]) : least, whole ? sym_upper(t, e->terms[i]) : most,
              e->coefficients[i], e->coefficients[i], &lo, &hi);
    e->lo = lo == INT64_MIN ? INT64_MIN : sym_sat_add(e->lo, lo);
    e->hi = hi == INT64_MAX ? INT64_MAX : sym_sat_add(e->hi, hi);
  }
}

void sym_compute_range(const SymTable *t, SymExpr *e) {
  int64_t lo, hi, l0 = 0, h0 = 0, l1 = 0, h1 = 0;
  if (e->kind > SYM_PRODUCT) {
    l0 = sym_lower(t, e->terms[0]), h0 = sym_upper(t, e->terms[0]);
    l1 = sym_lower(t, e->terms[1]), h1 = sym_upper(t, e->terms[1]);
  }
  switch (e->kind) {
  case SYM_SYMBOL:
    return;
  case SYM_SUM:
    if (vertex_range(t, e))
      return;
    sum_range(t, e);
    return;
  case SYM_PRODUCT:
    e->lo = e->hi = 1;
    for (uint32_t i = 0; i < e->count; i++) {
      range_mul(e->lo, e->hi, sym_lower(t, e->terms[i]), sym_upper(t, e->terms[i]), &lo, &hi);
      e->lo = lo;
      e->hi = hi;
    }
    return;
  case SYM_FLOORDIV:
    range_floordiv(l0, h0, l1, h1, &e->lo, &e->hi);
    return;
  case SYM_MOD:
    e->lo = l1 > 0 ? 0 : INT64_MIN;
    e->hi = l1 > 0 ? (h1 == INT64_MAX ? h1 : h1 - 1) : INT64_MAX;
    return;
  case SYM_MIN:
    e->lo = min_i64(l0, l1);
    e->hi = min_i64(h0, h1);
    return;
  case SYM_MAX:
    e->lo = max_i64(l0, l1);
    e->hi = max_i64(h0, h1);
    return;
  }
}
