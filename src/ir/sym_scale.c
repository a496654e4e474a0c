/* Sizes that a model computes in floating point, see sym_scaled. */
#include "ir/sym.h"

enum {
  VALUES_TRIED = 1 << 16,
  DENOMINATOR_MAX = 1 << 16,
  SIZE_MAX_F32 = 1 << 24 /* a float tells sizes up to this apart */
};

/* floor(size * by), as the element type computes it; -1 when it is no size. */
static int64_t scaled_number(int64_t size, double by, SymScaling how) {
  double exact = (double)size, product = how.over ? exact / by : exact * by;
  if (how.f32)
    product = (double)(how.over ? (float)size / (float)by : (float)size * (float)by);
  return product >= 0 && product < SIZE_MAX_F32 ? int_clamped(product, 0, SIZE_MAX_F32) : -1;
}

/* The values that a size can have: lo, lo + step, ... hi. A sum of whole multiples of a number has
 * steps of that: 300 * s0, as the samples of s0 frames. */
typedef struct Values {
  int64_t lo, hi, step;
} Values;

static int64_t greatest_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

/* False: there are too many of them, or floats do not tell them apart. */
static bool find_values(const SymTable *t, SymInt size, Values *v) {
  *v = (Values){sym_lower(t, size), sym_upper(t, size), 0};
  if (v->lo < 0 || v->hi > SIZE_MAX_F32)
    return false;
  const SymExpr *e = sym_expr(t, size);
  for (uint32_t i = 0; e->kind == SYM_SUM && i < e->count; i++)
    v->step = greatest_divisor(e->coefficients[i], v->step);
  if (!v->step || v->step > SIZE_MAX_F32)
    v->step = 1;
  if (v->step > 1)
    v->lo += ((e->constant - v->lo) % v->step + v->step) % v->step;
  return (v->hi - v->lo) / v->step < VALUES_TRIED;
}

static bool agrees(const Values *v, double by, SymScaling how, int64_t p, int64_t q) {
  for (int64_t size = v->lo; size <= v->hi; size += v->step)
    if (scaled_number(size, by, how) != size * p / q)
      return false;
  return true;
}

/* The best fractions for a factor are those of its continued fraction; a scale that was written as
 * 0.7 is 7/10 there, before it is 11744051 / 2^24. */
bool sym_scaled(SymTable *t, SymInt size, double by, SymScaling how, SymInt *out) {
  Values values;
  double factor = how.over ? 1 / by : by, rest = factor;
  if (by == 1) {
    *out = size;
    return true;
  }
  if (!(factor > 0 && factor < SIZE_MAX_F32))
    return false;
  if (sym_is_const(size)) {
    *out = size >= 0 && size <= SIZE_MAX_F32 ? scaled_number(size, by, how) : -1;
    return *out >= 0;
  }
  if (!find_values(t, size, &values))
    return false;
  int64_t p = 1, q = 0, p_before = 0, q_before = 1;
  while (rest < SIZE_MAX_F32) {
    int64_t whole = int_clamped(rest, 0, SIZE_MAX_F32), p_next = whole * p + p_before,
            q_next = whole * q + q_before;
    if (q_next > DENOMINATOR_MAX || p_next > INT64_MAX / 2 / SIZE_MAX_F32)
      return false;
    p_before = p, q_before = q, p = p_next, q = q_next;
    if (p && agrees(&values, by, how, p, q)) {
      *out = sym_floordiv(t, sym_mul(t, size, p), q);
      return true;
    }
    rest = 1 / (rest - (double)whole);
  }
  return false;
}
