/* Proven ranges of expressions, from those of their parts. */
#include "ir/sym_internal.h"

int64_t sym_sat_add(int64_t a, int64_t b) {
  int64_t r;
  if (add_i64(a, b, &r))
    return sym_next_number(r);
  return a > 0 ? INT64_MAX : INT64_MIN;
}

int64_t sym_sat_mul(int64_t a, int64_t b) {
  int64_t r;
  if (mul_i64(a, b, &r))
    return sym_next_number(r);
  return (a > 0) == (b > 0) ? INT64_MAX : INT64_MIN;
}

void sym_range_mul(int64_t alo, int64_t ahi, int64_t blo, int64_t bhi, int64_t *lo, int64_t *hi) {
  int64_t corners[4] = {sym_sat_mul(alo, blo), sym_sat_mul(alo, bhi), sym_sat_mul(ahi, blo),
                        sym_sat_mul(ahi, bhi)};
  *lo = *hi = corners[0];
  for (int i = 1; i < 4; i++) {
    *lo = min_i64(*lo, corners[i]);
    *hi = max_i64(*hi, corners[i]);
  }
}

void sym_range_floordiv(int64_t alo, int64_t ahi, int64_t blo, int64_t bhi, int64_t *lo,
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

enum { SYM_SMALL = 1 << 20 }; /* products of three fit */

static bool is_small(int64_t number) { return number > -SYM_SMALL && number < SYM_SMALL; }

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

/* Where the sum has this term; its count when not. */
static uint32_t position(const SymExpr *sum, SymInt term) {
  uint32_t i = 0;
  while (i < sum->count && sum->terms[i] != term)
    i++;
  return i;
}

/* Whether the sum contains times * e: each term of e with times its coefficient. Adds these terms
 * of the sum to the set *terms. */
static bool has_multiple(const SymExpr *sum, const SymExpr *e, SymInt handle, int64_t times,
                         uint64_t *terms) {
  bool is_sum = e->kind == SYM_SUM;
  for (uint32_t i = 0; i < (is_sum ? e->count : 1); i++) {
    uint32_t at = position(sum, is_sum ? e->terms[i] : handle);
    if (at == sum->count ||
        sym_sat_mul(is_sum ? e->coefficients[i] : 1, times) != sum->coefficients[at])
      return false;
    *terms |= (uint64_t)1 << at;
  }
  return true;
}

/* The terms of a sum; any other expression is a sum of one term, itself. */
static uint32_t sum_terms(const SymTable *t, const SymInt *v, const SymInt **terms,
                          const int64_t **coefficients, int64_t *constant) {
  static const int64_t one = 1;
  const SymExpr *e = sym_expr(t, *v);
  bool is_sum = e->kind == SYM_SUM;
  *terms = is_sum ? e->terms : v;
  *coefficients = is_sum ? e->coefficients : &one;
  *constant = is_sum ? e->constant : 0;
  return is_sum ? e->count : 1;
}

/* a - b where that is a small number. */
static bool constant_apart(const SymTable *t, SymInt a, SymInt b, int64_t *apart) {
  const SymInt *x, *y;
  const int64_t *m, *n;
  int64_t c, d;
  if (sym_is_const(a) || sym_is_const(b))
    return false;
  uint32_t count = sum_terms(t, &a, &x, &m, &c);
  if (sum_terms(t, &b, &y, &n, &d) != count || !is_small(c) || !is_small(d))
    return false;
  *apart = c - d;
  return memcmp(x, y, count * sizeof *x) == 0 && memcmp(m, n, count * sizeof *m) == 0;
}

/* Whether x is floordiv(a*c + n, d), which may be written as floordiv(y + m*n, m*d) of a =
 * floordiv(y, m). */
static bool quotient_of(const SymTable *t, const SymExpr *x, SymInt a, int64_t *c, int64_t *n,
                        int64_t *d) {
  if (x->kind != SYM_FLOORDIV || !sym_is_const(x->terms[1]) || x->terms[1] < 1 ||
      sym_is_const(x->terms[0]))
    return false;
  const SymExpr *sum = sym_expr(t, x->terms[0]), *inner = sym_expr(t, a);
  int64_t m = inner->kind == SYM_FLOORDIV ? inner->terms[1] : 0;
  *c = 1;
  *n = 0;
  *d = x->terms[1];
  if (sym_const_divides(m, *d) && constant_apart(t, x->terms[0], inner->terms[0], n) &&
      *n % m == 0) {
    *n /= m;
    *d /= m;
    return true;
  }
  *n = 0;
  if (x->terms[0] == a)
    return true;
  if (sum->kind != SYM_SUM || sum->count != 1 || sum->terms[0] != a)
    return false;
  *c = sum->coefficients[0];
  *n = sum->constant;
  return true;
}

/* Range of floordiv(a*c + n, d) - a, which never grows with a where 0 < c <= d. */
static bool quotient_less_operand(const SymTable *t, const SymExpr *x, SymInt a, int64_t *lo,
                                  int64_t *hi) {
  int64_t c, n, d, least = sym_lower(t, a), most = sym_upper(t, a);
  if (!is_bounded(t, a) || !quotient_of(t, x, a, &c, &n, &d) || c < 1 || c > d)
    return false;
  *lo = sym_sat_add(sym_const_floordiv(sym_sat_add(sym_sat_mul(most, c), n), d),
                    sym_sat_mul(most, -1));
  *hi = sym_sat_add(sym_const_floordiv(sym_sat_add(sym_sat_mul(least, c), n), d),
                    sym_sat_mul(least, -1));
  return true;
}

/* Whether term i is floordiv(x, a), and term `of`, floordiv(x + a*shift, d), is subtracted from it
 * d / a times. */
static bool is_finer_quotient(const SymTable *t, const SymExpr *sum, uint32_t of, uint32_t i,
                              int64_t *shift) {
  const SymExpr *x = sym_expr(t, sum->terms[of]), *y = sym_expr(t, sum->terms[i]);
  int64_t d = x->terms[1], coefficient = sum->coefficients[of], apart;
  if (i == of || y->kind != SYM_FLOORDIV || !constant_apart(t, x->terms[0], y->terms[0], &apart) ||
      !sym_const_divides(y->terms[1], d) || apart % y->terms[1] != 0)
    return false;
  *shift = apart / y->terms[1];
  return coefficient % (d / y->terms[1]) == 0 &&
         sum->coefficients[i] == -coefficient / (d / y->terms[1]);
}

/* floordiv of an expression by a number above 1. */
static bool is_quotient(const SymExpr *x) {
  return x->kind == SYM_FLOORDIV && sym_is_const(x->terms[1]) && x->terms[1] >= 2 &&
         !sym_is_const(x->terms[0]);
}

/* A multiple of a remainder r in [0, divisor - 1] that terms of a sum make together: times * (r -
 * shift). */
typedef struct Remainder {
  uint64_t terms;
  int64_t divisor, times, shift;
  SymInt dividend; /* r is mod(dividend, divisor); 0: it is no mod */
} Remainder;

/* Term `of` is floordiv(x, d), and with other terms a multiple of x - d*floordiv(x, d), which is in
 * [0, d - 1]; or of floordiv(y, a) + m - d*floordiv(y + a*m, a*d), which is, too. */
static bool find_remainder(const SymTable *t, const SymExpr *sum, uint32_t of, Remainder *r) {
  const SymExpr *x = sym_expr(t, sum->terms[of]);
  int64_t coefficient = sum->coefficients[of];
  if (!is_quotient(x) || !is_small(coefficient))
    return false;
  const SymExpr *inner = sym_expr(t, x->terms[0]);
  *r = (Remainder){(uint64_t)1 << of, x->terms[1], -coefficient / x->terms[1], 0, x->terms[0]};
  bool found =
      coefficient % r->divisor == 0 && has_multiple(sum, inner, x->terms[0], r->times, &r->terms);
  if (found && inner->kind == SYM_SUM)
    r->shift = inner->constant;
  for (uint32_t i = 0; i < sum->count && !found; i++) {
    found = is_finer_quotient(t, sum, of, i, &r->shift);
    if (found) {
      r->divisor /= sym_expr(t, sum->terms[i])->terms[1];
      r->times = sum->coefficients[i];
      r->dividend = 0;
      r->terms = (uint64_t)1 << of | (uint64_t)1 << i;
    }
  }
  return found && r->divisor < SYM_SMALL && is_small(r->shift);
}

enum {
  MAX_REMAINDERS = 64, /* that are tried one by one, */
  MAX_STEPS = 1 << 14, /* and so many parts of a sum for all values of a symbol: 60 us */
  MAX_SYMBOLS = 64
};

/* The value of a term where g's remainder is r; the term is mod(x, k), or floordiv(mod(x, k)*c + n,
 * d). */
static bool value_of_remainder(const SymTable *t, SymInt term, const Remainder *g, int64_t r,
                               int64_t *value) {
  const SymExpr *e = sym_expr(t, term);
  int64_t c = 1, n = 0, d = 1;
  if (is_quotient(e)) {
    d = e->terms[1];
    e = sym_expr(t, e->terms[0]);
    if (e->kind == SYM_SUM && e->count == 1) {
      c = e->coefficients[0];
      n = e->constant;
      e = sym_expr(t, e->terms[0]);
    }
  }
  if (e->kind != SYM_MOD || e->terms[0] != g->dividend || e->terms[1] != g->divisor ||
      !is_small(c) || !is_small(n))
    return false;
  *value = sym_const_floordiv(c * r + n, d);
  return true;
}

/* A remainder, and the terms that depend on it: the pads of SAME are half of it, and what is left.
 */
static bool remainder_group(const SymTable *t, const SymExpr *sum, uint32_t of, uint64_t *terms,
                            int64_t *lo, int64_t *hi) {
  Remainder g;
  int64_t value;
  if (!find_remainder(t, sum, of, &g))
    return false;
  bool alone = g.divisor > MAX_REMAINDERS;
  *terms = g.terms;
  *lo = INT64_MAX;
  *hi = INT64_MIN;
  for (int64_t r = 0; r < g.divisor; r += alone ? g.divisor - 1 : 1) {
    int64_t total = g.times * (r - g.shift);
    for (uint32_t i = 0; i < sum->count && !alone; i++)
      if (!(g.terms >> i & 1) && is_small(sum->coefficients[i]) &&
          value_of_remainder(t, sum->terms[i], &g, r, &value)) {
        total += value * sum->coefficients[i];
        *terms |= (uint64_t)1 << i;
      }
    *lo = min_i64(*lo, total);
    *hi = max_i64(*hi, total);
  }
  return true;
}

/* Term `of` is a function of another term (a quotient, minimum or maximum), which the sum contains
 * with the opposite coefficient: c * f(x) - c * x. */
static bool difference_of_two(const SymTable *t, const SymExpr *sum, uint32_t of, uint64_t *terms,
                              int64_t *lo, int64_t *hi) {
  const SymExpr *x = sym_expr(t, sum->terms[of]);
  int64_t least = 0, most = 0, coefficient = sum->coefficients[of];
  for (uint32_t i = 0; i < sum->count; i++)
    if (x->kind >= SYM_FLOORDIV && coefficient == -sum->coefficients[i] &&
        (extreme_less_operand(t, x, sum->terms[i], &least, &most) ||
         quotient_less_operand(t, x, sum->terms[i], &least, &most))) {
      *terms = (uint64_t)1 << of | (uint64_t)1 << i;
      sym_range_mul(least, most, coefficient, coefficient, lo, hi);
      return true;
    }
  return false;
}

/* min(limit, of), with a constant. */
static bool limited(const SymExpr *x, int64_t *limit, SymInt *of) {
  uint32_t at = x->kind == SYM_MIN && sym_is_const(x->terms[0]) ? 0 : 1;
  if (x->kind != SYM_MIN || !sym_is_const(x->terms[at]))
    return false;
  *limit = x->terms[at];
  *of = x->terms[1 - at];
  return true;
}

/* The length of a slice between constants, min(b, n) - min(a, n), grows or falls with n. */
static bool difference_of_limits(const SymTable *t, const SymExpr *sum, uint32_t at,
                                 uint64_t *terms, int64_t *lo, int64_t *hi) {
  int64_t a, b, coefficient = sum->coefficients[at];
  SymInt of, other;
  if (coefficient <= 0 || !limited(sym_expr(t, sum->terms[at]), &b, &of))
    return false;
  for (uint32_t i = 0; i < sum->count; i++)
    if (sum->coefficients[i] == -coefficient && limited(sym_expr(t, sum->terms[i]), &a, &other) &&
        of == other && is_small(a) && is_small(b)) {
      int64_t least = sym_lower(t, of), most = sym_upper(t, of);
      int64_t first = min_i64(b, least) - min_i64(a, least),
              last = min_i64(b, most) - min_i64(a, most);
      *terms = (uint64_t)1 << at | (uint64_t)1 << i;
      sym_range_mul(min_i64(first, last), max_i64(first, last), coefficient, coefficient, lo, hi);
      return true;
    }
  return false;
}

static void widen(SymExpr *e, int64_t lo, int64_t hi) {
  e->lo = lo == INT64_MIN ? INT64_MIN : sym_sat_add(e->lo, lo);
  e->hi = hi == INT64_MAX ? INT64_MAX : sym_sat_add(e->hi, hi);
}

/* The one symbol of v, or that of before; steps: parts that were looked at. False for a further
 * symbol, or for too many parts. */
static bool one_symbol(const SymTable *t, SymInt v, const SymExpr **symbol, uint32_t *steps) {
  if (sym_is_const(v))
    return true;
  const SymExpr *e = sym_expr(t, v);
  if (++*steps > MAX_STEPS)
    return false;
  if (e->kind == SYM_SYMBOL) {
    bool same = !*symbol || *symbol == e;
    *symbol = e;
    return same;
  }
  for (uint32_t i = 0; i < e->count; i++)
    if (!one_symbol(t, e->terms[i], symbol, steps))
      return false;
  return true;
}

static bool sum_at(const SymTable *t, const SymExpr *sum, const int64_t *values, int64_t *out) {
  int64_t term;
  *out = sum->constant;
  for (uint32_t i = 0; i < sum->count; i++)
    if (!sym_eval(t, sum->terms[i], values, &term) || !mul_i64(term, sum->coefficients[i], &term) ||
        !add_i64(*out, term, out))
      return false;
  return true;
}

/* A sum of which the terms' ranges do not tell whether it is above 0, as the number of windows of
 * an image that is padded up to whole ones: the range of all values of its only symbol. */
static void try_all_values(const SymTable *t, SymExpr *e) {
  const SymExpr *symbol = NULL;
  uint32_t steps = 0;
  int64_t values[MAX_SYMBOLS] = {0}, value, lo = INT64_MAX, hi = INT64_MIN;
  for (uint32_t i = 0; i < e->count; i++)
    if (!one_symbol(t, e->terms[i], &symbol, &steps))
      return;
  if (!symbol || symbol->index >= MAX_SYMBOLS || symbol->lo < 0 || symbol->hi > MAX_STEPS ||
      symbol->hi - symbol->lo >= MAX_STEPS / steps)
    return;
  for (int64_t at = symbol->lo; at <= symbol->hi; at++) {
    values[symbol->index] = at;
    if (!sum_at(t, e, values, &value))
      return;
    lo = min_i64(lo, value);
    hi = max_i64(hi, value);
  }
  e->lo = max_i64(e->lo, lo);
  e->hi = min_i64(e->hi, hi);
}

/* Groups of terms that depend on each other have a narrower range than the sum of their ranges;
 * each term is in one group at most. */
static void sum_range(const SymTable *t, SymExpr *e) {
  static bool (*const groups[])(const SymTable *, const SymExpr *, uint32_t, uint64_t *, int64_t *,
                                int64_t *) = {remainder_group, difference_of_two,
                                              difference_of_limits};
  uint64_t counted = 0, terms;
  int64_t lo = 0, hi = 0;
  e->lo = e->hi = e->constant;
  for (uint32_t k = 0; k < COUNT_OF(groups); k++)
    for (uint32_t i = 0; i < e->count; i++)
      if (groups[k](t, e, i, &terms, &lo, &hi) && !(terms & counted)) {
        counted |= terms;
        widen(e, lo, hi);
      }
  for (uint32_t i = 0; i < e->count; i++)
    if (!(counted >> i & 1)) {
      sym_range_mul(sym_lower(t, e->terms[i]), sym_upper(t, e->terms[i]), e->coefficients[i],
                    e->coefficients[i], &lo, &hi);
      widen(e, lo, hi);
    }
  if (e->count > 1 && e->lo <= 0 && e->hi > 0)
    try_all_values(t, e);
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
      sym_range_mul(e->lo, e->hi, sym_lower(t, e->terms[i]), sym_upper(t, e->terms[i]), &lo, &hi);
      e->lo = lo;
      e->hi = hi;
    }
    return;
  case SYM_FLOORDIV:
    sym_range_floordiv(l0, h0, l1, h1, &e->lo, &e->hi);
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
