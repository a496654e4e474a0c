/* Symbolic integers in canonical form; see sym.h. Expressions are hash-consed: equal expressions
 * have equal handles. */
#include "ir/sym_internal.h"
#include "support/hash.h"
#include "support/number.h"

static uint32_t index_of(SymInt v) { return (uint32_t)(v - SYM_BAND); }
static SymInt handle_of(uint32_t index) { return SYM_BAND + (int64_t)index; }

void sym_release(SymTable *t) {
  arena_release(&t->arena);
  xfree(t->exprs);
  xfree(t->slots);
  xfree(t->symbols);
  xfree(t->proofs);
  *t = (SymTable){0};
}

const SymExpr *sym_expr(const SymTable *t, SymInt v) {
  if (sym_is_const(v) || index_of(v) >= t->count)
    BUG("not an expression of this table: %lld", (long long)v);
  return &t->exprs[index_of(v)];
}

int64_t sym_lower(const SymTable *t, SymInt v) { return sym_is_const(v) ? v : sym_expr(t, v)->lo; }
int64_t sym_upper(const SymTable *t, SymInt v) { return sym_is_const(v) ? v : sym_expr(t, v)->hi; }

/* --- hash-consing --- */

static uint32_t expr_hash(const SymExpr *e) {
  uint32_t h = hash_mix((uint32_t)e->kind, (uint64_t)e->constant);
  for (uint32_t i = 0; i < e->count; i++) {
    h = hash_mix(h, (uint64_t)e->terms[i]);
    if (e->coefficients)
      h = hash_mix(h, (uint64_t)e->coefficients[i]);
  }
  return h;
}

static bool expr_equal(const SymExpr *a, const SymExpr *b) {
  return a->hash == b->hash && a->kind == b->kind && a->count == b->count &&
         a->constant == b->constant &&
         memcmp(a->terms, b->terms, a->count * sizeof *a->terms) == 0 &&
         (!a->coefficients ||
          memcmp(a->coefficients, b->coefficients, a->count * sizeof *a->coefficients) == 0);
}

static void slots_grow(SymTable *t) {
  uint32_t count = t->slot_count ? t->slot_count * 2 : 64;
  t->slots = xrealloc(t->slots, count * sizeof *t->slots);
  memset(t->slots, 0, count * sizeof *t->slots);
  t->slot_count = count;
  for (uint32_t i = 0; i < t->count; i++) {
    uint32_t slot = t->exprs[i].hash & (count - 1);
    while (t->slots[slot])
      slot = (slot + 1) & (count - 1);
    t->slots[slot] = i + 1;
  }
}

static SymInt expr_add(SymTable *t, SymExpr e) {
  SymInt *terms = ARENA_ARRAY(&t->arena, SymInt, e.count);
  if (e.count)
    memcpy(terms, e.terms, e.count * sizeof *terms);
  e.terms = terms;
  if (e.coefficients) {
    int64_t *coefficients = ARENA_ARRAY(&t->arena, int64_t, e.count);
    memcpy(coefficients, e.coefficients, e.count * sizeof *coefficients);
    e.coefficients = coefficients;
  }
  sym_compute_range(t, &e);
  t->exprs = pool_reserve(t->exprs, &t->capacity, (uint64_t)t->count + 1, sizeof *t->exprs);
  t->exprs[t->count] = e;
  return handle_of(t->count++);
}

/* Sets size and depth; false when the expression would pass a limit. */
static bool measure(const SymTable *t, SymExpr *e) {
  uint64_t size = 1;
  uint32_t depth = 0;
  for (uint32_t i = 0; i < e->count; i++) {
    const SymExpr *term = sym_is_const(e->terms[i]) ? NULL : sym_expr(t, e->terms[i]);
    size += term ? term->size : 1;
    depth = term && term->depth > depth ? term->depth : depth;
  }
  e->size = (uint32_t)(size > SYM_MAX_SIZE ? SYM_MAX_SIZE + 1 : size);
  e->depth = depth + 1;
  return size <= SYM_MAX_SIZE && e->depth <= SYM_MAX_DEPTH;
}

/* What stands for an expression that is too large: one of its parts. */
static SymInt refuse(SymTable *t, const SymExpr *e) {
  t->too_large = true;
  return sym_is_const(e->terms[0]) ? e->terms[1] : e->terms[0];
}

static SymInt expr_intern(SymTable *t, SymExpr e) {
  if (!measure(t, &e))
    return refuse(t, &e);
  if ((t->count + 1) * 2 > t->slot_count)
    slots_grow(t);
  e.hash = expr_hash(&e);
  uint32_t slot = e.hash & (t->slot_count - 1);
  for (; t->slots[slot]; slot = (slot + 1) & (t->slot_count - 1)) {
    const SymExpr *old = &t->exprs[t->slots[slot] - 1];
    if (old->kind != SYM_SYMBOL && expr_equal(old, &e))
      return handle_of(t->slots[slot] - 1);
  }
  SymInt v = expr_add(t, e);
  t->slots[slot] = t->count;
  return v;
}

SymInt sym_symbol(SymTable *t, StrView name, int64_t lo, int64_t hi, bool unbacked) {
  if ((t->count + 1) * 2 > t->slot_count)
    slots_grow(t);
  t->symbols = pool_reserve(t->symbols, &t->symbol_capacity, (uint64_t)t->symbol_count + 1,
                            sizeof *t->symbols);
  SymInt v = expr_add(t, (SymExpr){.kind = SYM_SYMBOL,
                                   .lo = lo,
                                   .hi = hi,
                                   .size = 1,
                                   .depth = 1,
                                   .index = t->symbol_count,
                                   .name = arena_strdup(&t->arena, name),
                                   .unbacked = unbacked,
                                   .hash = t->symbol_count * 2654435761u});
  t->symbols[t->symbol_count++] = index_of(v);
  uint32_t slot = t->exprs[index_of(v)].hash & (t->slot_count - 1);
  while (t->slots[slot])
    slot = (slot + 1) & (t->slot_count - 1);
  t->slots[slot] = t->count;
  return v;
}

SymInt sym_symbol_by_index(const SymTable *t, uint32_t index) {
  return handle_of(t->symbols[index]);
}

/* --- numbers --- */

static int64_t number_add(SymTable *t, int64_t a, int64_t b) {
  int64_t sum;
  t->saturated |= !add_i64(a, b, &sum) || !sym_is_const(sum);
  return sym_sat_add(a, b);
}

static int64_t number_mul(SymTable *t, int64_t a, int64_t b) {
  int64_t product;
  t->saturated |= !mul_i64(a, b, &product) || !sym_is_const(product);
  return sym_sat_mul(a, b);
}

static SymInt number_of(SymTable *t, int64_t number) {
  t->saturated |= !sym_is_const(number);
  return sym_next_number(number);
}

/* --- sums --- */

typedef struct Sum {
  int64_t constant;
  uint32_t count;
  SymInt terms[SYM_MAX_TERMS];
  int64_t coefficients[SYM_MAX_TERMS];
} Sum;

static void sum_of(const SymTable *t, SymInt v, Sum *s) {
  *s = (Sum){0};
  if (sym_is_const(v)) {
    s->constant = v;
    return;
  }
  const SymExpr *e = sym_expr(t, v);
  if (e->kind != SYM_SUM) {
    s->count = 1;
    s->terms[0] = v;
    s->coefficients[0] = 1;
    return;
  }
  s->constant = e->constant;
  s->count = e->count;
  memcpy(s->terms, e->terms, e->count * sizeof *e->terms);
  memcpy(s->coefficients, e->coefficients, e->count * sizeof *e->coefficients);
}

/* s += coefficient * term, terms kept sorted. false when there is no room or a coefficient
 * overflows. */
static bool sum_add_term(Sum *s, SymInt term, int64_t coefficient) {
  uint32_t i = 0;
  while (i < s->count && s->terms[i] < term)
    i++;
  if (i < s->count && s->terms[i] == term) {
    if (!add_i64(s->coefficients[i], coefficient, &s->coefficients[i]))
      return false;
    if (s->coefficients[i] == 0) {
      s->count--;
      memmove(s->terms + i, s->terms + i + 1, (s->count - i) * sizeof *s->terms);
      memmove(s->coefficients + i, s->coefficients + i + 1,
              (s->count - i) * sizeof *s->coefficients);
    }
    return true;
  }
  if (s->count == SYM_MAX_TERMS)
    return false;
  memmove(s->terms + i + 1, s->terms + i, (s->count - i) * sizeof *s->terms);
  memmove(s->coefficients + i + 1, s->coefficients + i, (s->count - i) * sizeof *s->coefficients);
  s->terms[i] = term;
  s->coefficients[i] = coefficient;
  s->count++;
  return true;
}

static SymInt sum_value(SymTable *t, Sum *s) {
  if (s->count == 0)
    return s->constant;
  if (s->count == 1 && s->coefficients[0] == 1 && s->constant == 0)
    return s->terms[0];
  return expr_intern(t, (SymExpr){.kind = SYM_SUM,
                                  .count = s->count,
                                  .terms = s->terms,
                                  .coefficients = s->coefficients,
                                  .constant = s->constant});
}

/* The value of p, which was made in a way that proves a range: written out, its range may look
 * wider. */
static SymInt within(SymTable *t, SymProof p, int64_t lo, int64_t hi) {
  if (sym_is_const(p.value) || t->too_large)
    return p.value;
  SymExpr *e = &t->exprs[index_of(p.value)];
  if (lo <= e->lo && hi >= e->hi)
    return p.value;
  POOL_PUSH(t->proofs, t->proof_count, t->proof_capacity, p);
  e->lo = max_i64(e->lo, lo);
  e->hi = min_i64(e->hi, hi);
  return p.value;
}

/* a + factor * b */
static SymInt add_scaled(SymTable *t, SymInt a, SymInt b, int64_t factor) {
  if (sym_is_const(a) && sym_is_const(b))
    return number_add(t, a, number_mul(t, b, factor));
  Sum s, other;
  sum_of(t, a, &s);
  sum_of(t, b, &other);
  s.constant = number_add(t, s.constant, number_mul(t, other.constant, factor));
  bool fits = true;
  for (uint32_t i = 0; i < other.count && fits; i++)
    fits = sum_add_term(&s, other.terms[i], number_mul(t, other.coefficients[i], factor));
  if (fits)
    return sum_value(t, &s);
  /* Too many terms: an opaque sum of two. */
  return expr_intern(
      t, (SymExpr){.kind = SYM_SUM,
                   .count = 2,
                   .terms = (SymInt[]){min_i64(a, b), max_i64(a, b)},
                   .coefficients = a < b ? (int64_t[]){1, factor} : (int64_t[]){factor, 1}});
}

SymInt sym_add(SymTable *t, SymInt a, SymInt b) { return add_scaled(t, a, b, 1); }
SymInt sym_sub(SymTable *t, SymInt a, SymInt b) { return add_scaled(t, a, b, -1); }

/* --- products --- */

/* The factors of a monomial (never a constant), sorted. */
static uint32_t factors_of(const SymTable *t, SymInt v, SymInt *factors) {
  const SymExpr *e = sym_expr(t, v);
  if (e->kind != SYM_PRODUCT) {
    factors[0] = v;
    return 1;
  }
  memcpy(factors, e->terms, e->count * sizeof *factors);
  return e->count;
}

static SymInt monomial(SymTable *t, SymInt *factors, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) /* insertion sort: a handful of factors */
    for (uint32_t k = i; k > 0 && factors[k] < factors[k - 1]; k--) {
      SymInt swap = factors[k];
      factors[k] = factors[k - 1];
      factors[k - 1] = swap;
    }
  return count == 1
             ? factors[0]
             : expr_intern(t, (SymExpr){.kind = SYM_PRODUCT, .count = count, .terms = factors});
}

static bool monomial_mul(SymTable *t, SymInt a, SymInt b, SymInt *out) {
  SymInt factors[2 * SYM_MAX_TERMS];
  uint32_t count = factors_of(t, a, factors);
  count += factors_of(t, b, factors + count);
  if (count > SYM_MAX_TERMS)
    return false;
  *out = monomial(t, factors, count);
  return true;
}

static bool sum_add_product(SymTable *t, Sum *out, const Sum *a, const Sum *b) {
  bool ok = true;
  for (uint32_t i = 0; i < a->count && ok; i++)
    for (uint32_t k = 0; k < b->count && ok; k++) {
      SymInt term;
      ok = monomial_mul(t, a->terms[i], b->terms[k], &term) &&
           sum_add_term(out, term, number_mul(t, a->coefficients[i], b->coefficients[k]));
    }
  for (uint32_t i = 0; i < a->count && ok && b->constant; i++)
    ok = sum_add_term(out, a->terms[i], number_mul(t, a->coefficients[i], b->constant));
  for (uint32_t i = 0; i < b->count && ok && a->constant; i++)
    ok = sum_add_term(out, b->terms[i], number_mul(t, b->coefficients[i], a->constant));
  return ok;
}

SymInt sym_mul(SymTable *t, SymInt a, SymInt b) {
  if (sym_is_const(a) && sym_is_const(b))
    return number_mul(t, a, b);
  Sum x, y, product = {0};
  sum_of(t, a, &x);
  sum_of(t, b, &y);
  product.constant = number_mul(t, x.constant, y.constant);
  if (sum_add_product(t, &product, &x, &y)) {
    int64_t lo, hi;
    sym_range_mul(sym_lower(t, a), sym_upper(t, a), sym_lower(t, b), sym_upper(t, b), &lo, &hi);
    return within(t, (SymProof){sum_value(t, &product), a, b, SYM_PRODUCT}, lo, hi);
  }
  SymInt pair[2] = {a, b};
  return monomial(t, pair, 2);
}

/* --- division --- */

/* One term of a sum, taken apart. */
typedef struct Monomial {
  int64_t coefficient;
  uint32_t count;
  SymInt factors[SYM_MAX_TERMS]; /* sorted */
} Monomial;

/* The order in which division takes terms: more factors first, then by the factors. What is larger
 * stays larger when both are multiplied by the same. */
static bool monomial_less(const Monomial *a, const Monomial *b) {
  if (a->count != b->count)
    return a->count < b->count;
  for (uint32_t i = 0; i < a->count; i++)
    if (a->factors[i] != b->factors[i])
      return a->factors[i] > b->factors[i];
  return false;
}

static Monomial leading(const SymTable *t, const Sum *s) {
  Monomial best = {0}, m;
  for (uint32_t i = 0; i < s->count; i++) {
    m.coefficient = s->coefficients[i];
    m.count = factors_of(t, s->terms[i], m.factors);
    if (i == 0 || monomial_less(&best, &m))
      best = m;
  }
  return best;
}

/* a / b, which divides it; the factors of both are sorted. */
static bool monomial_div(Monomial *a, const Monomial *b) {
  uint32_t kept = 0, found = 0;
  for (uint32_t i = 0; i < a->count; i++)
    if (found < b->count && a->factors[i] == b->factors[found])
      found++;
    else
      a->factors[kept++] = a->factors[i];
  if (found < b->count || a->coefficient == INT64_MIN || a->coefficient % b->coefficient)
    return false;
  a->count = kept;
  a->coefficient /= b->coefficient;
  return true;
}

/* out += m * s; false when there is no room or a number overflows. */
static bool add_multiple(SymTable *t, Sum *out, Monomial *m, const Sum *s) {
  SymInt by = m->count ? monomial(t, m->factors, m->count) : 0;
  for (uint32_t i = 0; i <= s->count; i++) {
    bool last = i == s->count;
    SymInt term = last ? by : s->terms[i];
    int64_t number = last ? s->constant : s->coefficients[i];
    if (!mul_i64(number, m->coefficient, &number) || !sym_is_const(number))
      return false;
    if (number == 0)
      continue;
    if (last && !by) {
      if (!add_i64(out->constant, number, &out->constant))
        return false;
    } else if ((!last && by && !monomial_mul(t, s->terms[i], by, &term)) ||
               !sum_add_term(out, term, number)) {
      return false;
    }
  }
  return true;
}

/* Division of polynomials, a leading term at a time. */
bool sym_exact_div(SymTable *t, SymInt v, SymInt divisor, SymInt *out) {
  Sum left, by, quotient = {0}, one = {.constant = 1};
  sum_of(t, v, &left);
  sum_of(t, divisor, &by);
  Monomial first = leading(t, &by);
  for (int steps = 0; left.count; steps++) {
    Monomial m = leading(t, &left);
    if (steps == SYM_MAX_TERMS || !monomial_div(&m, &first) ||
        !add_multiple(t, &quotient, &m, &one))
      return false;
    m.coefficient = -m.coefficient;
    if (!add_multiple(t, &left, &m, &by))
      return false;
  }
  if (left.constant || !sym_is_const(quotient.constant))
    return false;
  *out = sum_value(t, &quotient);
  return true;
}

/* Splits v = divisor * quotient + rest with every coefficient of rest in [0, divisor). divisor > 0.
 */
static void split_by_const(SymTable *t, SymInt v, int64_t divisor, SymInt *quotient, SymInt *rest) {
  Sum s, q = {0}, r = {0};
  sum_of(t, v, &s);
  q.constant = sym_const_floordiv(s.constant, divisor);
  r.constant = sym_const_mod(s.constant, divisor);
  for (uint32_t i = 0; i < s.count; i++) {
    int64_t whole = sym_const_floordiv(s.coefficients[i], divisor),
            left = sym_const_mod(s.coefficients[i], divisor);
    if (whole)
      (void)sum_add_term(&q, s.terms[i], whole);
    if (left)
      (void)sum_add_term(&r, s.terms[i], left);
  }
  *quotient = sum_value(t, &q);
  *rest = sum_value(t, &r);
}

/* Whether each coefficient is divisor - 1, which stands for -1; they become 1. */
static bool is_negated(Sum *s, int64_t divisor) {
  for (uint32_t i = 0; i < s->count; i++)
    if (divisor == 2 || s->coefficients[i] != divisor - 1)
      return false;
  for (uint32_t i = 0; i < s->count; i++)
    s->coefficients[i] = 1;
  return true;
}

/* floordiv of what split_by_const left over: coefficients and constant are in [0, divisor). Two
 * divisions are one, floordiv(floordiv(x, a) + c, b) = floordiv(x + a*c, a*b), and so are common
 * factors: the sizes behind strided convolutions stay short. floordiv(-x, b) is
 * -floordiv(x + b-1, b): a size that is filled up to a multiple of b is b times one quotient. */
static SymInt floordiv_rest(SymTable *t, SymInt rest, int64_t divisor) {
  Sum s;
  int64_t factor = divisor, product;
  sum_of(t, rest, &s);
  for (uint32_t i = 0; i < s.count; i++)
    factor = greatest_divisor(factor, s.coefficients[i]);
  if (factor > 1) {
    for (uint32_t i = 0; i < s.count; i++)
      s.coefficients[i] /= factor;
    s.constant /= factor;
    return sym_floordiv(t, sum_value(t, &s), divisor / factor);
  }
  if (is_negated(&s, divisor)) {
    SymInt up = sym_const_mod(-1 - s.constant, divisor), x;
    s.constant = 0;
    x = sum_value(t, &s);
    return sym_sub(t, x, sym_floordiv(t, sym_add(t, x, up), divisor));
  }
  const SymExpr *e = s.count == 1 && s.coefficients[0] == 1 ? sym_expr(t, s.terms[0]) : NULL;
  if (e && e->kind == SYM_FLOORDIV && sym_is_const(e->terms[1]) &&
      mul_i64(e->terms[1], divisor, &product) && sym_is_const(product))
    return sym_floordiv(t, sym_add(t, e->terms[0], s.constant * e->terms[1]), product);
  return expr_intern(
      t, (SymExpr){.kind = SYM_FLOORDIV, .count = 2, .terms = (SymInt[]){rest, divisor}});
}

/* By a number b > 0; the quotient is known to be in [lo, hi]. */
static SymInt floordiv_const(SymTable *t, SymInt a, int64_t b, int64_t lo, int64_t hi) {
  SymInt quotient, rest;
  split_by_const(t, a, b, &quotient, &rest);
  if (sym_lower(t, rest) < 0 || sym_upper(t, rest) >= b)
    quotient = sym_add(t, quotient, floordiv_rest(t, rest, b));
  return within(t, (SymProof){quotient, a, b, SYM_FLOORDIV}, lo, hi);
}

/* Whether -b <= a < b, which makes the quotient 0 or -1: c % size in what shifts by c. */
static bool is_below(SymTable *t, SymInt a, SymInt b, SymInt *quotient) {
  *quotient = sym_lower(t, a) >= 0 ? 0 : -1;
  return *quotient == 0 ? sym_known_lt(t, a, b) == 1
                        : sym_upper(t, a) < 0 && sym_known_le(t, sym_sub(t, 0, a), b) == 1;
}

SymInt sym_floordiv(SymTable *t, SymInt a, SymInt b) {
  if (sym_is_const(a) && sym_is_const(b))
    return number_of(t, sym_const_floordiv(a, b));
  if (sym_is_const(b) && b <= 0)
    return b == 0 ? 0 : sym_floordiv(t, sym_sub(t, 0, a), b == INT64_MIN ? INT64_MAX : -b);
  int64_t lo, hi;
  sym_range_floordiv(sym_lower(t, a), sym_upper(t, a), sym_lower(t, b), sym_upper(t, b), &lo, &hi);
  if (sym_is_const(b))
    return floordiv_const(t, a, b, lo, hi);
  if (a == b && sym_lower(t, b) > 0)
    return 1;
  if (a == 0)
    return 0;
  SymInt q;
  if (!sym_is_const(a) && sym_lower(t, b) > 0 && sym_exact_div(t, a, b, &q))
    return within(t, (SymProof){q, a, b, SYM_FLOORDIV}, lo, hi);
  if (is_below(t, a, b, &q))
    return q;
  return expr_intern(t, (SymExpr){.kind = SYM_FLOORDIV, .count = 2, .terms = (SymInt[]){a, b}});
}

SymInt sym_ceildiv(SymTable *t, SymInt a, SymInt b) {
  return !sym_is_const(a) && sym_is_const(b) && b > 0 /* where a appears once, ranges are exact */
             ? sym_floordiv(t, sym_add(t, a, b - 1), b)
             : sym_sub(t, 0, sym_floordiv(t, sym_sub(t, 0, a), b));
}

SymInt sym_mod(SymTable *t, SymInt a, SymInt b) {
  if (sym_is_const(a) && sym_is_const(b))
    return number_of(t, sym_const_mod(a, b));
  if (sym_is_const(b) && b > 0) {
    SymInt quotient, rest;
    split_by_const(t, a, b, &quotient, &rest);
    if (sym_lower(t, rest) >= 0 && sym_upper(t, rest) < b)
      return rest;
    return expr_intern(t, (SymExpr){.kind = SYM_MOD, .count = 2, .terms = (SymInt[]){rest, b}});
  }
  SymInt q;
  if (a == b || (!sym_is_const(a) && !sym_is_const(b) && sym_exact_div(t, a, b, &q)))
    return 0;
  if (is_below(t, a, b, &q))
    return q == 0 ? a : sym_add(t, a, b);
  return expr_intern(t, (SymExpr){.kind = SYM_MOD, .count = 2, .terms = (SymInt[]){a, b}});
}

/* --- comparison, min, max --- */

/* The range of a - b. The difference is not kept by anyone, so it may be too large. */
static void difference(SymTable *t, SymInt a, SymInt b, int64_t *lo, int64_t *hi) {
  bool before = t->too_large, saturated = t->saturated;
  t->too_large = false;
  SymInt d = sym_sub(t, a, b);
  *lo = t->too_large ? INT64_MIN : sym_lower(t, d);
  *hi = t->too_large ? INT64_MAX : sym_upper(t, d);
  t->too_large = before;
  t->saturated = saturated;
}

int sym_known_eq(SymTable *t, SymInt a, SymInt b) {
  if (a == b)
    return 1;
  int64_t lo, hi;
  difference(t, a, b, &lo, &hi);
  return lo == 0 && hi == 0 ? 1 : lo > 0 || hi < 0 ? 0 : -1;
}

int sym_known_lt(SymTable *t, SymInt a, SymInt b) {
  int64_t lo, hi;
  difference(t, a, b, &lo, &hi);
  return hi < 0 ? 1 : lo >= 0 ? 0 : -1;
}

int sym_known_le(SymTable *t, SymInt a, SymInt b) {
  int64_t lo, hi;
  difference(t, a, b, &lo, &hi);
  return hi <= 0 ? 1 : lo > 0 ? 0 : -1;
}

static SymInt min_max(SymTable *t, SymInt a, SymInt b, SymKind kind) {
  if (a == b)
    return a;
  int le = sym_known_le(t, a, b);
  if (le >= 0)
    return (le == 1) == (kind == SYM_MIN) ? a : b;
  if (sym_known_le(t, b, a) == 1)
    return kind == SYM_MIN ? b : a;
  return expr_intern(
      t, (SymExpr){.kind = kind, .count = 2, .terms = (SymInt[]){min_i64(a, b), max_i64(a, b)}});
}

SymInt sym_min(SymTable *t, SymInt a, SymInt b) { return min_max(t, a, b, SYM_MIN); }
SymInt sym_max(SymTable *t, SymInt a, SymInt b) { return min_max(t, a, b, SYM_MAX); }
