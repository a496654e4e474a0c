/* Ranges of expressions whose parts depend on each other. */
#include "unit.h"

#include "ir/sym.h"

/* An expression less what it is made of, in a sum: the ranges of the two say little. */
static void test_ranges_of_related_terms(void **state) {
  SymTable t;
  t = (SymTable){0};
  SymInt a = sym_symbol(&t, SV("a"), 1, 4096, false), b = sym_symbol(&t, SV("b"), 2, 8, false);
  SymInt more = sym_sub(&t, sym_max(&t, a, 20), a), less = sym_sub(&t, a, sym_min(&t, a, b)),
         rest = sym_sub(&t, a, sym_floordiv(&t, sym_add(&t, a, 1), 2));
  assert_int_equal(sym_lower(&t, more), 0);
  assert_int_equal(sym_upper(&t, more), 19);
  assert_int_equal(sym_lower(&t, less), 0);
  assert_int_equal(sym_upper(&t, less), 4094);
  assert_int_equal(sym_lower(&t, rest), 0);
  assert_int_equal(sym_upper(&t, rest), 2048);
  sym_release(&t);
}

/* Lengths of slices from 1 to 7, and from 7 back to 1, of up to 20 and of up to 4 elements. */
static void test_ranges_of_slices(void **state) {
  SymTable t;
  t = (SymTable){0};
  SymInt n = sym_symbol(&t, SV("n"), 0, 20, false), m = sym_symbol(&t, SV("m"), 3, 4, false);
  SymInt length = sym_sub(&t, sym_min(&t, n, 7), sym_min(&t, n, 1)), back = sym_sub(&t, 0, length),
         part = sym_sub(&t, sym_min(&t, sym_mul(&t, m, 2), 7), sym_min(&t, sym_mul(&t, m, 2), 1));
  static const struct { int lo, hi; } expected[] = {{0, 6}, {-6, 0}, {5, 6}};
  const SymInt values[] = {length, back, part};
  for (size_t i = 0; i < COUNT_OF(values); i++) {
    assert_int_equal(sym_lower(&t, values[i]), expected[i].lo);
    assert_int_equal(sym_upper(&t, values[i]), expected[i].hi);
  }
  sym_release(&t);
}

/* What a padding to the next multiple is made of: remainders, in the forms that division leaves. */
static void test_ranges_of_remainders(void **state) {
  SymTable t;
  t = (SymTable){0};
  SymInt a = sym_symbol(&t, SV("a"), 16, 4096, false);
  SymInt odd = sym_sub(&t, a, sym_mul(&t, sym_floordiv(&t, a, 2), 2)),
         half = sym_floordiv(&t, a, 2),
         half_odd = sym_sub(&t, half, sym_mul(&t, sym_floordiv(&t, half, 2), 2)),
         rest = sym_sub(&t, a, sym_mul(&t, sym_floordiv(&t, a, 7), 7)),
         seven = sym_sub(&t, 7, rest),
         pad = sym_sub(&t, seven, sym_mul(&t, sym_floordiv(&t, seven, 7), 7)),
         shifted = sym_sub(&t, a, sym_mul(&t, sym_floordiv(&t, sym_add(&t, a, 1), 2), 2));
  static const struct { int lo, hi; } expected[] = {{0, 1}, {0, 1}, {0, 6}, {0, 6}, {-1, 0}};
  const SymInt values[] = {odd, half_odd, rest, pad, shifted};
  for (size_t i = 0; i < COUNT_OF(values); i++) {
    assert_int_equal(sym_lower(&t, values[i]), expected[i].lo);
    assert_int_equal(sym_upper(&t, values[i]), expected[i].hi);
  }
  SymInt windows = sym_floordiv(&t, sym_add(&t, a, pad), 7);
  assert_true(sym_lower(&t, windows) > 0 && sym_upper(&t, windows) < 4096);
  sym_release(&t);
}

/* The pads of SAME: half of `extent - 1 - mod(a - 1, stride)`, and what half leaves of the whole.
 */
static void test_ranges_of_halves(void **state) {
  SymTable t;
  t = (SymTable){0};
  SymInt a = sym_symbol(&t, SV("a"), 1, 4096, false), before = sym_sub(&t, a, 1);
  static const int64_t windows[][2] = {{3, 3}, {5, 4}, {16, 16}, {9, 5}};
  for (size_t i = 0; i < COUNT_OF(windows); i++) {
    int64_t extent = windows[i][0], stride = windows[i][1];
    SymInt last = sym_mul(&t, sym_floordiv(&t, before, stride), stride),
           total = sym_sub(&t, sym_add(&t, last, extent), a),
           half = sym_floordiv(&t, sym_sub(&t, extent - 1, sym_mod(&t, before, stride)), 2),
           rest = sym_sub(&t, total, half);
    assert_int_equal(sym_lower(&t, rest), (extent - stride + 1) / 2);
    assert_int_equal(sym_upper(&t, rest), extent / 2);
    SymInt sum = sym_add(&t, half, sym_mul(&t, rest, 2)); /* half + 2 * rest */
    assert_int_equal(sym_lower(&t, sum), (extent - stride) / 2 + (extent - stride + 1) / 2 * 2);
    assert_int_equal(sym_upper(&t, sum), (extent - 1) / 2 + extent / 2 * 2);
  }
  sym_release(&t);
}

/* Half of a quotient, which is written as one quotient, is less than it: a range of 2 to 6 leaves 1
 * to 3. */
static void test_quotient_of_quotient(void **state) {
  SymTable t;
  t = (SymTable){0};
  SymInt size = sym_symbol(&t, SV("h"), 32, 96, false), patches = sym_floordiv(&t, size, 16),
         left = sym_sub(&t, patches, sym_floordiv(&t, patches, 2)),
         up = sym_sub(&t, patches, sym_floordiv(&t, sym_add(&t, patches, 1), 2));
  assert_int_equal(sym_lower(&t, left), 1);
  assert_int_equal(sym_upper(&t, left), 3);
  assert_int_equal(sym_lower(&t, up), 1);
  assert_int_equal(sym_upper(&t, up), 3);
  sym_release(&t);
}

/* Products of sums: they divide, and their range is that of the product. */
static void test_products_of_sums(void **state) {
  SymTable t;
  t = (SymTable){0};
  SymInt a = sym_symbol(&t, SV("a"), 4, 100, false), b = sym_symbol(&t, SV("b"), 4, 100, false);
  SymInt x = sym_sub(&t, a, sym_floordiv(&t, sym_mul(&t, a, 3), 4)),
         y = sym_sub(&t, b, sym_floordiv(&t, b, 2)), product = sym_mul(&t, sym_mul(&t, x, y), 6);
  assert_true(sym_lower(&t, product) > 0);
  assert_true(sym_upper(&t, product) == 6 * sym_upper(&t, x) * sym_upper(&t, y));
  assert_true(sym_floordiv(&t, product, x) == sym_mul(&t, y, 6));
  assert_true(sym_floordiv(&t, product, sym_mul(&t, y, 3)) == sym_mul(&t, x, 2));
  assert_true(sym_mod(&t, product, y) == 0);
  assert_true(sym_mod(&t, sym_add(&t, product, a), y) != 0);
  assert_true(sym_floordiv(&t, sym_mul(&t, sym_add(&t, a, b), sym_sub(&t, a, b)),
                           sym_add(&t, a, b)) == sym_sub(&t, a, b));
  sym_release(&t);
}

/* A range that would overflow has no bound instead of a wrong one. */
static void test_ranges_saturate(void **state) {
  SymTable t;
  t = (SymTable){0};
  SymInt a = sym_symbol(&t, SV("a"), 0, INT64_MAX, false);
  SymInt product = sym_mul(&t, sym_mul(&t, a, a), 1000);
  assert_true(sym_upper(&t, product) == INT64_MAX);
  assert_true(sym_lower(&t, product) == 0);
  assert_true(sym_upper(&t, sym_add(&t, a, 5)) == INT64_MAX);
  assert_true(sym_lower(&t, sym_sub(&t, 0, sym_add(&t, a, a))) < -INT64_MAX / 2);
  int64_t out;
  assert_false(sym_eval(&t, product, (int64_t[]){INT64_MAX / 2}, &out));
  sym_release(&t);
}

/* The windows of an image that is padded up to whole ones, W/4 of seven columns, one of which is
 * cut by half: no two of the terms tell that one is left at every width. Two symbols are not tried.
 */
static void test_ranges_of_all_values(void **state) {
  SymTable t;
  t = (SymTable){0};
  SymInt w = sym_symbol(&t, SV("w"), 32, 96, false), h = sym_symbol(&t, SV("h"), 32, 96, false),
         parts = sym_add(&t, sym_mul(&t, sym_floordiv(&t, w, 4), 6), sym_floordiv(&t, w, 8)),
         left = sym_sub(&t, sym_floordiv(&t, w, 4), sym_floordiv(&t, parts, 7));
  int64_t lo = INT64_MAX, hi = INT64_MIN;
  for (int64_t at = 32; at <= 96; at++) {
    int64_t value = at / 4 - (at / 4 * 6 + at / 8) / 7;
    lo = min_i64(lo, value);
    hi = max_i64(hi, value);
  }
  assert_int_equal(lo, 1);
  assert_int_equal(sym_lower(&t, left), lo);
  assert_int_equal(sym_upper(&t, left), hi);
  SymInt both = sym_sub(&t, sym_floordiv(&t, sym_add(&t, w, h), 4), sym_floordiv(&t, parts, 7));
  assert_true(sym_lower(&t, both) <= 0);
  sym_release(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ranges_of_related_terms), cmocka_unit_test(test_ranges_of_slices),
      cmocka_unit_test(test_ranges_of_remainders),    cmocka_unit_test(test_ranges_of_halves),
      cmocka_unit_test(test_quotient_of_quotient),    cmocka_unit_test(test_products_of_sums),
      cmocka_unit_test(test_ranges_of_all_values),    cmocka_unit_test(test_ranges_saturate)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
