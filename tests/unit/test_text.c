/* Nearest spelling and strict number parsing. */
#include "unit.h"

#include <math.h>

#include "support/text.h"

static unsigned distance(const char *a, const char *b, unsigned limit) {
  unsigned there = text_distance(sv_from(a), sv_from(b), limit);
  assert_int_equal(text_distance(sv_from(b), sv_from(a), limit), there);
  return there;
}

static void test_distance(void **state) {
  assert_int_equal(distance("", "", 5), 0);
  assert_int_equal(distance("", "abc", 5), 3);
  assert_int_equal(distance("kitten", "sitting", 5), 3);
  assert_int_equal(distance("abcd", "abdc", 5), 1);
  assert_int_equal(distance("ca", "abc", 5), 3); /* no edit inside a transposition */
  assert_int_equal(distance("abcdef", "badcfe", 5), 3);
  assert_int_equal(distance("abcdefgh", "zyxwvuts", 2), 3);
  assert_int_equal(distance("abcdefgh", "zyxwvuts", 20), 8);
}

/* The cut-off must never change an answer within the limit. */
static void test_cut_off(void **state) {
  unsigned random = 12345;
  for (int i = 0; i < 5000; i++) {
    char a[9] = {0}, b[9] = {0};
    for (int j = 0; j < 8; j++) {
      random = random * 1664525 + 1013904223;
      a[j] = (char)('a' + (random >> 20) % 3);
      b[j] = (char)('a' + (random >> 24) % 3);
    }
    unsigned exact = distance(a, b, 100);
    for (unsigned limit = 0; limit < 6; limit++)
      assert_int_equal(distance(a, b, limit), exact > limit ? limit + 1 : exact);
  }
}

static void test_nearest(void **state) {
  static const char *const ops[] = {"Conv", "ConvTranspose", "Add",
                                    "Relu", "PRelu",         "LayerNormalization"};
  size_t n = COUNT_OF(ops);
  assert_ptr_equal(text_nearest(SV("Covn"), ops, n), ops[0]);
  assert_ptr_equal(text_nearest(SV("conv"), ops, n), ops[0]);
  assert_ptr_equal(text_nearest(SV("relu"), ops, n), ops[3]);
  assert_ptr_equal(text_nearest(SV("LayerNormalisatoin"), ops, n), ops[5]);
  assert_null(text_nearest(SV("Einsum"), ops, n));
  assert_null(text_nearest(SV("x"), ops, n));
  assert_null(text_nearest(SV(""), ops, n));
  assert_null(text_nearest(SV("Conv"), ops, 0));
}

static void test_abbreviation(void **state) {
  (void)state;
  static const char *const names[] = {"output",           "quantize-config", "quantize",
                                      "external-weights", "print-after",     "print-before"};
  size_t n = COUNT_OF(names);
  assert_ptr_equal(text_nearest(SV("out"), names, n), names[0]);
  assert_ptr_equal(text_nearest(SV("EXTERNAL"), names, n), names[3]);
  assert_ptr_equal(text_nearest(SV("quant"), names, n), names[2]); /* which the other goes on */
  assert_null(text_nearest(SV("print"), names, n));                /* two of them */
  assert_null(text_nearest(SV("ou"), names, n));
}

static void test_integers(void **state) {
  static const char *const bad[] = {"",
                                    "-",
                                    "+1",
                                    " 1",
                                    "1 ",
                                    "0x10",
                                    "1.0",
                                    "--1",
                                    "9223372036854775808",
                                    "-9223372036854775809"};
  int64_t value = 77;
  for (size_t i = 0; i < COUNT_OF(bad); i++)
    assert_false(text_parse_i64(sv_from(bad[i]), &value));
  assert_int_equal(value, 77);
  assert_true(text_parse_i64(SV("9223372036854775807"), &value) && value == INT64_MAX);
  assert_true(text_parse_i64(SV("-9223372036854775808"), &value) && value == INT64_MIN);
  assert_true(text_parse_i64(SV("-0"), &value) && value == 0);
  assert_true(text_parse_i64((StrView){"123456", 3}, &value) && value == 123);
  uint64_t large;
  assert_true(text_parse_u64(SV("18446744073709551615"), &large) && large == UINT64_MAX);
  assert_false(text_parse_u64(SV("18446744073709551616"), &large));
  assert_false(text_parse_u64(SV("-1"), &large));
}

static void test_doubles(void **state) {
  static const char *const bad[] = {"",         "-",      ".",      "e5", "1e", "1e+",
                                    "0x1p3",    "nan(1)", "1,5",    " 1", "1 ", "1.5.",
                                    "infinity", "1e999",  "-1e999", "+1"};
  double value = 7;
  for (size_t i = 0; i < COUNT_OF(bad); i++)
    assert_false(text_parse_double(sv_from(bad[i]), &value));
  assert_true(value == 7);
  assert_true(text_parse_double(SV("1.5"), &value) && value == 1.5);
  assert_true(text_parse_double(SV("-.5e1"), &value) && value == -5);
  assert_true(text_parse_double(SV("2."), &value) && value == 2);
  assert_true(text_parse_double(SV("1e-400"), &value) && value == 0);
  assert_true(text_parse_double(SV("-inf"), &value) && value < 0 && isinf(value));
  assert_true(text_parse_double(SV("nan"), &value) && isnan(value));
  assert_true(text_parse_double((StrView){"1.25xyz", 4}, &value) && value == 1.25);
}

static void test_bytes(void **state) {
  static const struct {
    const char *text;
    uint64_t bytes;
  } good[] = {{"1", 1},           {"512K", 524288},
              {"512k", 524288},   {"4M", 4194304},
              {"2G", 2147483648}, {"1.5MiB", 1572864},
              {"0.25 KiB", 256},  {"9007199254740993", 9007199254740993}};
  static const char *const bad[] = {"",
                                    "0",
                                    "0K",
                                    "-1",
                                    "1.5",
                                    "K",
                                    "iB",
                                    "5iB",
                                    "1KB",
                                    "1 B",
                                    "K 1",
                                    "1K ",
                                    "+1K",
                                    "nanK",
                                    "infG",
                                    "9223372036854775808",
                                    "8589934592G",
                                    "9e99M"};
  uint64_t bytes = 0;
  for (size_t i = 0; i < COUNT_OF(good); i++)
    assert_true(text_parse_bytes(sv_from(good[i].text), &bytes) && bytes == good[i].bytes);
  for (size_t i = 0; i < COUNT_OF(bad); i++)
    assert_false(text_parse_bytes(sv_from(bad[i]), &bytes));
}

static void test_compare(void **state) {
  assert_true(text_compare(SV("a"), SV("b")) < 0);
  assert_true(text_compare(SV("ab"), SV("a")) > 0);
  assert_true(text_compare(SV(""), SV("a")) < 0);
  assert_int_equal(text_compare(SV("ab"), SV("ab")), 0);
  assert_true(text_compare(SV("\xff"), SV("a")) > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_distance), cmocka_unit_test(test_cut_off),
      cmocka_unit_test(test_nearest),  cmocka_unit_test(test_abbreviation),
      cmocka_unit_test(test_integers), cmocka_unit_test(test_doubles),
      cmocka_unit_test(test_bytes),    cmocka_unit_test(test_compare),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
