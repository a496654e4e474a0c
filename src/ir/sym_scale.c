/* Sizes that a model computes in floating point, see sym_scaled. */
#include <math.h>

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

static bool agrees(int64_t lo, int64_t hi, double by, SymScaling how, int64_t p, int64_t q) {
  for (int64_t size = lo; size <= hi; size++)
    if (scaled_number(size, by, how) != size * p / q)
      return false;
  return true;
}

/* The best fractions for a factor are those of its continued fraction; a scale that was written as
 * 0.7 is 7/10 there, before it is 11744051 / 2^24. */
bool sym_scaled(SymTable *t, SymInt size, double by, SymScaling how, SymInt *out) {
  int64_t lo = sym_lower(t, size), hi = sym_upper(t, size);
  double factor = how.over ? 1 / by : by, rest = factor;
  if (by == 1) {
    *out = size;
    return true;
  }
  if (!(factor > 0 && factor < SIZE_MAX_F32) || lo < 0 || hi > SIZE_MAX_F32)
    return false;
  if (sym_is_const(size)) {
    *out = scaled_number(size, by, how);
    return *out >= 0;
  }
  if (hi - lo >= VALUES_TRIED)
    return false;
  int64_t p = 1, q = 0, p_before = 0, q_before = 1;
  while (rest < SIZE_MAX_F32) {
    int64_t whole = int_clamped(rest, 0, SIZE_MAX_F32), p_next = whole * p + p_before,
            q_next = whole * q + q_before;
    if (q_next > DENOMINATOR_MAX || p_next > INT64_MAX / 2 / SIZE_MAX_F32)
      return false;
    p_before = p, q_before = q, p = p_next, q = q_next;
    if (p && agrees(lo, hi, by, how, p, q)) {
      *out = sym_floordiv(t, sym_mul(t, size, p), q);
      return true;
    }
    rest = 1 / (rest - (double)whole);
  }
  return false;
}
