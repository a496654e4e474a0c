/* String builder: growth, escaping and its inverse, doubles that read back exactly, in any locale.
 */
#include "unit.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "support/strbuf.h"
#include "support/text.h"

static void test_append(void **state) {
  StrBuf buf = {0};
  assert_string_equal(strbuf_cstr(&buf), "");
  strbuf_append(&buf, (StrView){NULL, 0});
  assert_string_equal(strbuf_cstr(&buf), "");
  for (int i = 0; i < 1000; i++) {
    strbuf_append_char(&buf, 'a');
    strbuf_printf(&buf, "%d,", i % 10);
  }
  assert_int_equal(buf.size, 3000);
  assert_int_equal(strlen(buf.data), 3000);
  assert_memory_equal(buf.data + 2997, "a9,", 3);
  strbuf_printf(&buf, "%0500d", 7);
  assert_int_equal(buf.size, 3500);
  strbuf_clear(&buf);
  assert_string_equal(strbuf_cstr(&buf), "");
  strbuf_release(&buf);
}

static void check_escaped(StrView text, const char *expected) {
  StrBuf buf = {0}, back = {0};
  strbuf_append_escaped(&buf, text);
  assert_string_equal(strbuf_cstr(&buf), expected);
  assert_true(strbuf_append_unescaped(&back, (StrView){buf.data, buf.size}));
  assert_true(sv_eq((StrView){back.data, back.size}, text));
  strbuf_release(&buf);
  strbuf_release(&back);
}

static void test_escape(void **state) {
  check_escaped(SV("plain /text.1"), "plain /text.1");
  check_escaped(SV("a\"b\\c"), "a\\\"b\\\\c");
  check_escaped(SV("\n\r\t"), "\\n\\r\\t");
  check_escaped(SV("\0\x1b[31m\x7f"), "\\x00\\x1B[31m\\x7F");
  check_escaped(SV("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
                "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  check_escaped(SV("\xff\xc3"), "\\xFF\\xC3");                            /* not UTF-8, cut off */
  check_escaped(SV("\xc0\xaf\xed\xa0\x80"), "\\xC0\\xAF\\xED\\xA0\\x80"); /* overlong, surrogate */
  check_escaped(SV("\xf4\x90\x80\x80"), "\\xF4\\x90\\x80\\x80");          /* over U+10FFFF */
  check_escaped(SV("\xc2\x9b"), "\\xC2\\x9B");                            /* C1 control */
  check_escaped(SV("\xe2\x80\xae"), "\\xE2\\x80\\xAE"); /* right-to-left override */
}

static void test_escape_every_byte_pair(void **state) {
  StrBuf buf = {0}, back = {0};
  for (unsigned i = 0; i < 65536; i++) {
    char pair[2] = {(char)(i >> 8), (char)i};
    strbuf_clear(&buf);
    strbuf_clear(&back);
    strbuf_append_escaped(&buf, (StrView){pair, 2});
    for (size_t at = 0; at < buf.size; at++)
      assert_true((unsigned char)buf.data[at] >= 0x20 && buf.data[at] != 0x7f);
    assert_true(strbuf_append_unescaped(&back, (StrView){buf.data, buf.size}));
    assert_int_equal(back.size, 2);
    assert_memory_equal(back.data, pair, 2);
  }
  strbuf_release(&buf);
  strbuf_release(&back);
}

static void test_unescape_errors(void **state) {
  static const char *const bad[] = {"\\", "\\q", "\\x", "\\x1", "\\xg0", "\\x0g", "a\\u0041"};
  StrBuf buf = {0};
  for (size_t i = 0; i < COUNT_OF(bad); i++)
    assert_false(strbuf_append_unescaped(&buf, sv_from(bad[i])));
  assert_false(strbuf_append_unescaped(&buf, SV("\\\0")));
  strbuf_release(&buf);
}

static void test_printable(void **state) {
  StrBuf buf = {0};
  strbuf_append_printable(&buf, SV("a \"b\" \\ \x1b[0m\n"));
  assert_string_equal(strbuf_cstr(&buf), "a \"b\" \\ \\x1B[0m\\n");
  strbuf_release(&buf);
}

static void check_double(double value, const char *expected) {
  StrBuf buf = {0};
  strbuf_append_double(&buf, value);
  assert_string_equal(strbuf_cstr(&buf), expected);
  strbuf_release(&buf);
}

static void check_word(StrView text, const char *expected) {
  StrBuf buf = {0};
  strbuf_append_word(&buf, text);
  assert_string_equal(strbuf_cstr(&buf), expected);
  strbuf_release(&buf);
}

/* Each is one word of a shell. */
static void test_word(void **state) {
  check_word(SV("dir/m-1.onnx"), "dir/m-1.onnx");
  check_word(SV(""), "''");
  check_word(SV("a b"), "'a b'");
  check_word(SV("a$b\\c\"d"), "'a$b\\c\"d'");
  check_word(SV("it's"), "'it'\\''s'");
  check_word(SV("caf\xc3\xa9"), "'caf\xc3\xa9'");
  check_word(SV("a\n'\\\xff"), "$'a\\x0A\\'\\x5C\\xFF'");
}

static void test_double(void **state) {
  check_double(0, "0.0");
  check_double(-0.0, "-0.0");
  check_double(2, "2.0");
  check_double(0.1, "0.1");
  check_double(1e-5, "1e-05");
  check_double(1e15, "1e+15");
  check_double(1.0 / 3, "0.3333333333333333");
  check_double(0.1 + 0.2, "0.30000000000000004");
  check_double(5e-324, "5e-324");
  check_double(DBL_MAX, "1.7976931348623157e+308");
  check_double(INFINITY, "inf");
  check_double(-INFINITY, "-inf");
  check_double(NAN, "nan");
  check_double(-NAN, "nan");
}

static void test_double_round_trip(void **state) {
  StrBuf buf = {0};
  uint64_t random = 88172645463325252u;
  for (int i = 0; i < 20000; i++) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    double value, back;
    memcpy(&value, &random, sizeof value);
    if (isnan(value))
      continue;
    strbuf_clear(&buf);
    strbuf_append_double(&buf, value);
    assert_true(text_parse_double((StrView){buf.data, buf.size}, &back));
    assert_memory_equal(&value, &back, sizeof value);
  }
  strbuf_release(&buf);
}

static void check_bytes(uint64_t bytes, const char *text) {
  StrBuf buf = {0};
  strbuf_append_bytes(&buf, bytes);
  assert_string_equal(strbuf_cstr(&buf), text);
  strbuf_release(&buf);
}

static void test_bytes(void **state) {
  check_bytes(0, "0 bytes");
  check_bytes(1, "1 byte");
  check_bytes(1023, "1023 bytes");
  check_bytes(1024, "1.0 KiB");
  check_bytes(1536, "1.5 KiB");
  check_bytes(1024 * 1024 - 1, "1.0 MiB");
  check_bytes(13986816, "13.3 MiB");
  check_bytes(UINT64_C(3) << 30, "3.0 GiB");
  check_bytes(UINT64_MAX, "16.0 EiB");
}

static void check_time(double ns, const char *text) {
  StrBuf buf = {0};
  strbuf_append_time(&buf, ns);
  assert_string_equal(strbuf_cstr(&buf), text);
  strbuf_release(&buf);
}

static void test_time(void **state) {
  check_time(0, "0 ns");
  check_time(340.2, "340 ns");
  check_time(1671, "1.7 us");
  check_time(145089643, "145.1 ms");
  check_time(2.5e9, "2.5 s");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_append),
      cmocka_unit_test(test_escape),
      cmocka_unit_test(test_escape_every_byte_pair),
      cmocka_unit_test(test_unescape_errors),
      cmocka_unit_test(test_printable),
      cmocka_unit_test(test_word),
      cmocka_unit_test(test_double),
      cmocka_unit_test(test_double_round_trip),
      cmocka_unit_test(test_bytes),
      cmocka_unit_test(test_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
