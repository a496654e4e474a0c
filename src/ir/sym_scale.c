/* Sizes that a model computes in floating point, see sym_computed. */
#include <math.h>

#include "ir/sym.h"
#include "support/half.h"
#include "support/number.h"

enum {
  VALUES_TRIED = 1 << 16,
  DENOMINATOR_MAX = 1 << 16,
  SIZE_MAX_F32 = 1 << 24, /* a float tells sizes up to this apart */
  SIZE_MAX_F16 = 1 << 11
};

typedef struct Computation {
  const SymStep *steps;
  uint32_t count;
  DType dtype;
  SymRounding rounding;
} Computation;

int64_t sym_exact_max(DType dtype) { return dtype == DTYPE_F16 ? SIZE_MAX_F16 : SIZE_MAX_F32; }

static double rounded(double x, DType dtype) {
  return dtype == DTYPE_F16   ? (double)half_to_float(half_from_double(x))
         : dtype == DTYPE_F32 ? (double)(float)x
                              : x;
}

/* x is a number of the type. A double computes two numbers of float32 so exactly that rounding
 * twice is rounding once. */
static double do_step(const SymStep *step, double x, DType dtype) {
  double by = rounded(step->by, dtype);
  return rounded(step->kind == SYM_TIMES  ? x * by
                 : step->kind == SYM_OVER ? x / by
                                          : x + by,
                 dtype);
}

/* As the element type computes it; false when it is no size. */
static bool computed_number(const Computation *c, int64_t size, int64_t *out) {
  double x = (double)size;
  for (uint32_t i = 0; i < c->count; i++)
    x = do_step(&c->steps[i], x, c->dtype);
  x = c->rounding == SYM_CEIL ? ceil(x) : c->rounding == SYM_FLOOR ? floor(x) : x;
  if (!(fabs(x) < SIZE_MAX_F32) || (c->rounding == SYM_TRUNC && x < 0))
    return false;
  *out = int_clamped(x, -SIZE_MAX_F32, SIZE_MAX_F32);
  return true;
}

/* The values that a size, or a difference of sizes, can have: lo, lo + step, ... hi. A sum of whole
 * multiples of a number has steps of that: 300 * s0, as the samples of s0 frames. */
typedef struct Values {
  int64_t lo, hi, step;
} Values;

/* False: there are too many of them, or floats do not tell them apart. */
static bool find_values(const SymTable *t, SymInt size, DType dtype, Values *v) {
  int64_t most = sym_exact_max(dtype);
  *v = (Values){sym_lower(t, size), sym_upper(t, size), 0};
  if (v->lo < -most || v->hi > most)
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

/* (size * p + r) / q. */
typedef struct Ratio {
  int64_t p, r, q;
} Ratio;

static bool agrees(const Computation *c, const Values *v, const Ratio *by) {
  int64_t computed;
  for (int64_t size = v->lo; size <= v->hi; size += v->step) {
    int64_t over = size * by->p + by->r, whole = over / by->q, rest = over % by->q;
    if (rest)
      whole += c->rounding == SYM_CEIL ? rest > 0 : -(rest < 0);
    if (!computed_number(c, size, &computed) || computed != whole)
      return false;
  }
  return true;
}

static void express(SymTable *t, SymInt size, const Computation *c, const Ratio *by, SymInt *out) {
  SymInt over = sym_add(t, sym_mul(t, size, by->p), by->r);
  *out = c->rounding == SYM_CEIL ? sym_ceildiv(t, over, by->q) : sym_floordiv(t, over, by->q);
}

/* The next of the best fractions p / q for a factor, those of its continued fraction; q is 0 before
 * the first. A factor that was written as 0.7 is 7/10 there, before it is 11744051 / 2^24. */
typedef struct Fraction {
  double rest;
  int64_t p, q, p_before, q_before;
} Fraction;

static bool next_fraction(Fraction *f) {
  if (f->q)
    f->rest = 1 / f->rest;
  if (!(f->rest < SIZE_MAX_F32))
    return false;
  int64_t whole = int_clamped(f->rest, 0, SIZE_MAX_F32), p = whole * f->p + f->p_before,
          q = whole * f->q + f->q_before;
  if (q > DENOMINATOR_MAX || p > INT64_MAX / 2 / SIZE_MAX_F32)
    return false;
  f->rest -= (double)whole;
  f->p_before = f->p, f->q_before = f->q, f->p = p, f->q = q;
  return true;
}

static Fraction fraction_of(double factor) { return (Fraction){factor, 1, 0, 0, 1}; }

/* One factor, or divisor: the simplest fraction by which every size comes out right. */
static bool one_factor(const Computation *c, const Values *values, Ratio *by) {
  const SymStep *step = c->steps;
  double factor = step->kind == SYM_OVER ? 1 / step->by : step->by;
  if (factor == 0 || !(fabs(factor) < SIZE_MAX_F32))
    return false;
  for (Fraction f = fraction_of(fabs(factor)); next_fraction(&f);) {
    *by = (Ratio){factor < 0 ? -f.p : f.p, 0, f.q};
    if (f.p && agrees(c, values, by))
      return true;
  }
  return false;
}

/* A number of a step: the simplest fraction that is written as it. */
static bool exact_fraction(double x, DType dtype, int64_t *p, int64_t *q) {
  double size = fabs(x);
  for (Fraction f = fraction_of(size); next_fraction(&f);) {
    double value = (double)f.p / (double)f.q;
    if (rounded(value, dtype) == rounded(size, dtype)) {
      *p = x < 0 ? -f.p : f.p;
      *q = f.q;
      return true;
    }
  }
  return false;
}

static bool small(int64_t x) { return x < SIZE_MAX_F32 && x > -SIZE_MAX_F32; }

static bool add_step(const SymStep *step, DType dtype, Ratio *by) {
  int64_t p, q;
  if (!exact_fraction(step->by, dtype, &p, &q) || (p == 0 && step->kind != SYM_PLUS))
    return false;
  if (step->kind == SYM_PLUS)
    *by = (Ratio){by->p * q, by->r * q + by->q * p, by->q * q};
  else if (step->kind == SYM_TIMES)
    *by = (Ratio){by->p * p, by->r * p, by->q * q};
  else if (p < 0)
    *by = (Ratio){-by->p * q, -by->r * q, by->q * -p};
  else
    *by = (Ratio){by->p * q, by->r * q, by->q * p};
  return small(by->p) && small(by->r) && small(by->q);
}

static bool all_steps(const Computation *c, const Values *values, Ratio *by) {
  *by = (Ratio){1, 0, 1};
  for (uint32_t i = 0; i < c->count; i++)
    if (!add_step(&c->steps[i], c->dtype, by))
      return false;
  return agrees(c, values, by);
}

bool sym_computed(SymTable *t, SymInt size, const SymStep *steps, uint32_t count, DType dtype,
                  SymRounding rounding, SymInt *out) {
  Computation c = {steps, count, dtype, rounding};
  Values values;
  Ratio by;
  bool factor = count == 1 && steps->kind != SYM_PLUS;
  if (factor && steps->by == 1) {
    *out = size;
    return true;
  }
  if (sym_is_const(size))
    return size >= -sym_exact_max(dtype) && size <= sym_exact_max(dtype) &&
           computed_number(&c, size, out);
  if (!find_values(t, size, dtype, &values) ||
      !(factor ? one_factor(&c, &values, &by) : all_steps(&c, &values, &by)))
    return false;
  express(t, size, &c, &by, out);
  return true;
}
