/* Half precision: all 65536 values there and back, and rounding against an independent search for
 * the nearest value. */
#include "unit.h"

#include <math.h>

#include "support/half.h"

static void test_all_halves(void **state) {
  for (uint32_t bits = 0; bits < 65536; bits++) {
    float value = half_to_float((uint16_t)bits);
    uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent == 31) {
      assert_true(fraction ? isnan(value) : isinf(value));
    } else {
      double expected =
          exponent ? ldexp(1024 + fraction, (int)exponent - 25) : ldexp(fraction, -24);
      assert_true(value == (bits & 0x8000 ? -expected : expected));
    }
    assert_true(!!signbit(value) == (bits >> 15));
    uint16_t quiet = exponent == 31 && fraction ? 0x200 : 0;
    assert_int_equal(half_from_float(value), bits | quiet);
    assert_int_equal(half_from_double((double)value), bits | quiet);
  }
}

/* Between each pair of neighbours: below the middle, the middle (to even), above the middle. */
static void test_rounding(void **state) {
  for (uint32_t bits = 0; bits < 0x7bff; bits++) {
    double low = half_to_float((uint16_t)bits), high = half_to_float((uint16_t)(bits + 1)),
           middle = (low + high) / 2;
    uint16_t even = (uint16_t)(bits & 1 ? bits + 1 : bits);
    assert_int_equal(half_from_double(middle), even);
    assert_int_equal(half_from_double(-middle), even | 0x8000);
    assert_int_equal(half_from_double(nextafter(middle, 0)), bits);
    assert_int_equal(half_from_double(nextafter(middle, INFINITY)), bits + 1);
    assert_int_equal(half_from_float((float)middle), even); /* 12 bits: exact as a float */
    assert_int_equal(half_from_float(nextafterf((float)middle, 0)), bits);
    assert_int_equal(half_from_float(nextafterf((float)middle, INFINITY)), bits + 1);
  }
}

static void test_limits(void **state) {
  assert_int_equal(half_from_double(65519.999), 0x7bff);
  assert_int_equal(half_from_double(65520), 0x7c00); /* the middle to what would be 65536 */
  assert_int_equal(half_from_double(1e300), 0x7c00);
  assert_int_equal(half_from_double(-INFINITY), 0xfc00);
  assert_int_equal(half_from_double(5e-324), 0);
  assert_int_equal(half_from_double(-1e-300), 0x8000);
  assert_true(isnan(half_to_float(half_from_double(NAN))));
  /* Rounding to float first would give the middle and then the even neighbour 1.0. */
  double just_above = 1 + ldexp(1, -11) + ldexp(1, -40);
  assert_int_equal(half_from_double(just_above), 0x3c01);
  assert_int_equal(half_from_float((float)just_above), 0x3c00);
}

static void test_bfloat(void **state) {
  for (uint32_t bits = 0; bits < 65536; bits++) {
    float value = bfloat_to_float((uint16_t)bits);
    bool is_nan = (bits & 0x7fff) > 0x7f80;
    assert_int_equal(!!isnan(value), is_nan);
    assert_int_equal(bfloat_from_float(value), is_nan ? bits | 0x40 : bits);
  }
  for (uint32_t bits = 0; bits < 0x7f7f; bits++) {
    double low = bfloat_to_float((uint16_t)bits), high = bfloat_to_float((uint16_t)(bits + 1));
    float middle = (float)((low + high) / 2);
    assert_int_equal(bfloat_from_float(middle), bits & 1 ? bits + 1 : bits);
    assert_int_equal(bfloat_from_float(nextafterf(middle, 0)), bits);
    assert_int_equal(bfloat_from_float(nextafterf(middle, INFINITY)), bits + 1);
  }
  assert_true(isnan(bfloat_to_float(bfloat_from_float(NAN))));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_halves),
                                     cmocka_unit_test(test_rounding), cmocka_unit_test(test_limits),
                                     cmocka_unit_test(test_bfloat)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
