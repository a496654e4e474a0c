/* Sizes that floating point computes: see sym_computed. */
#include <math.h>

#include "unit.h"

#include "ir/sym.h"
#include "support/half.h"

static bool scaled(SymTable *t, SymInt size, double by, bool over, SymInt *out) {
  SymStep step = {over ? SYM_OVER : SYM_TIMES, by};
  return sym_computed(t, size, &step, 1, DTYPE_F32, SYM_TRUNC, out);
}

/* What floating point makes of a size is what the expression gives, at every size. */
static void test_scaled(void **state) {
  static const double factors[] = {0.7F, 0.73F, 1.7F, 0.5F, 2, 1.0F / 3, 0.1F, 17.25F};
  SymTable t;
  t = (SymTable){0};
  SymInt size = sym_symbol(&t, SV("size"), 1, 300, false), v;
  for (size_t k = 0; k < sizeof factors / sizeof *factors; k++)
    for (int over = 0; over < 2; over++) {
      assert_true(scaled(&t, size, factors[k], over, &v));
      for (int64_t n = 1; n <= 300; n++) {
        float by = (float)factors[k], product = over ? (float)n / by : (float)n * by;
        int64_t got;
        assert_true(sym_eval(&t, v, &n, &got));
        assert_int_equal(got, (int64_t)product);
      }
    }
  assert_true(scaled(&t, 10, 0.7F, false, &v));
  assert_int_equal(v, 7);
  assert_false(scaled(&t, size, 1.3F, false, &v)); /* 10: 13, 90: 116 */
  SymInt frames = sym_symbol(&t, SV("frames"), 1, 1000, false);
  for (int64_t more = 0; more < 2; more++) { /* 300,000 sizes are too many to try, 1,000 are not */
    SymInt samples = sym_add(&t, sym_mul(&t, frames, 300), more);
    assert_true(scaled(&t, samples, 1.0F / 300, false, &v));
    assert_int_equal(v, sym_floordiv(&t, samples, 300));
  }
  assert_false(scaled(&t, size, 0, true, &v));
  assert_false(scaled(&t, size, -1, false, &v)); /* truncated, below 0 */
  assert_false(scaled(&t, sym_sub(&t, size, 2), 0.5, false, &v));
  sym_release(&t);
}

/* Several steps, rounded down and up, also where the result is negative. */
static void test_computed(void **state) {
  static const SymStep windows[] = {{SYM_PLUS, -7}, {SYM_PLUS, 2}, {SYM_OVER, 4}, {SYM_PLUS, 1}},
                       mixed[] = {{SYM_TIMES, 0.7F}, {SYM_PLUS, 0.25}, {SYM_OVER, 3}},
                       back[] = {{SYM_OVER, -4}, {SYM_PLUS, 1}}, negative[] = {{SYM_OVER, -0.75}};
  SymTable t;
  t = (SymTable){0};
  SymInt size = sym_symbol(&t, SV("size"), 0, 300, false), v;
  for (int up = 0; up < 2; up++) {
    assert_true(sym_computed(&t, size, windows, 4, DTYPE_F32, up ? SYM_CEIL : SYM_FLOOR, &v));
    for (int64_t n = 0; n <= 300; n++) {
      double exact = ((double)n - 5) / 4 + 1;
      int64_t got;
      assert_true(sym_eval(&t, v, &n, &got));
      assert_true((double)got == (up ? ceil(exact) : floor(exact)));
    }
    assert_true(sym_computed(&t, size, mixed, 3, DTYPE_F32, up ? SYM_CEIL : SYM_TRUNC, &v));
    for (int64_t n = 0; n <= 300; n++) {
      float x = ((float)n * 0.7F + 0.25F) / 3;
      int64_t got;
      assert_true(sym_eval(&t, v, &n, &got));
      assert_true((float)got == (up ? ceilf(x) : floorf(x)));
    }
  }
  assert_true(sym_computed(&t, 3, windows, 4, DTYPE_F32, SYM_CEIL, &v));
  assert_int_equal(v, 1);
  assert_false(sym_computed(&t, size, windows, 4, DTYPE_F32, SYM_TRUNC, &v)); /* 0: -0.25 */
  for (int up = 0; up < 2; up++)
    for (uint32_t steps = 1; steps < 3; steps++) {
      const SymStep *by = steps == 2 ? back : negative;
      assert_true(sym_computed(&t, size, by, steps, DTYPE_F32, up ? SYM_CEIL : SYM_FLOOR, &v));
      for (int64_t n = 0; n <= 300; n++) {
        double exact = (double)n / by->by + (steps == 2);
        int64_t got;
        assert_true(sym_eval(&t, v, &n, &got));
        assert_true((double)got == (up ? ceil(exact) : floor(exact)));
      }
    }
  SymInt less = sym_sub(&t, size, 5); /* what is known of the first steps */
  assert_true(sym_computed(&t, less, windows + 2, 2, DTYPE_F32, SYM_CEIL, &v));
  assert_int_equal(v, sym_ceildiv(&t, sym_sub(&t, size, 1), 4));
  sym_release(&t);
}

static float half(float x) { return half_to_float(half_from_float(x)); }

/* Each step is rounded to 11 bits; sizes above 2,048 are not exact. */
static void test_float16(void **state) {
  SymStep step = {SYM_OVER, 3};
  SymTable t;
  t = (SymTable){0};
  SymInt size = sym_symbol(&t, SV("size"), 0, 300, false),
         large = sym_symbol(&t, SV("large"), 0, 2049, false), v;
  assert_true(sym_computed(&t, size, &step, 1, DTYPE_F16, SYM_CEIL, &v));
  for (int64_t n = 0; n <= 300; n++) {
    int64_t got;
    assert_true(sym_eval(&t, v, &n, &got));
    assert_true((float)got == ceilf(half((float)n / 3)));
  }
  step.by = 2;
  assert_false(sym_computed(&t, large, &step, 1, DTYPE_F16, SYM_CEIL, &v));
  assert_true(sym_computed(&t, large, &step, 1, DTYPE_F32, SYM_CEIL, &v));
  assert_false(sym_computed(&t, 2049, &step, 1, DTYPE_F16, SYM_CEIL, &v));
  step.by = 0.1; /* 0.09998: 10 times it is less than 1 */
  step.kind = SYM_TIMES;
  assert_true(sym_computed(&t, 30, &step, 1, DTYPE_F16, SYM_TRUNC, &v));
  assert_int_equal(v, (int64_t)half(30 * half(0.1F)));
  sym_release(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_scaled), cmocka_unit_test(test_computed),
                                     cmocka_unit_test(test_float16)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
