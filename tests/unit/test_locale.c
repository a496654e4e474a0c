/* A host program may have set a locale with a decimal comma: numbers are read and written as in the
 * C locale all the same. The locale is made here, as most machines have none. */
#include "unit.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "etc/etc.h"
#include "support/text.h"

#define DATA ETC_SOURCE_DIR "/tests/cli/data/"
#define NAME "de_DE.UTF-8"

static char folder[] = "/tmp/etc-locale-XXXXXX";

static int make_locale(void **state) {
  char command[200];
  if (!mkdtemp(folder))
    return -1;
  snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/" NAME, folder);
  return system(command) || setenv("LOCPATH", folder, 1) ? -1 : 0;
}

static int remove_locale(void **state) {
  char command[200];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command) ? -1 : 0;
}

static void use(const char *locale) { assert_non_null(setlocale(LC_ALL, locale)); }

static void test_numbers(void **state) {
  static const double values[] = {0.5, -1e-30, 123456.789, 5e-324, 1.7976931348623157e308};
  StrBuf buf = {0};
  use(NAME);
  assert_string_equal(localeconv()->decimal_point, ",");
  for (size_t i = 0; i < COUNT_OF(values); i++) {
    double back;
    strbuf_clear(&buf);
    strbuf_append_double(&buf, values[i]);
    assert_null(strchr(strbuf_cstr(&buf), ','));
    assert_true(text_parse_double((StrView){buf.data, buf.size}, &back));
    assert_true(back == values[i]);
  }
  use("C");
  strbuf_release(&buf);
}

/* The program, and what is said about it. */
static void lower(const char *locale, StrBuf *program, StrBuf *messages) {
  static const char *const options[][2] = {
      {"dim", "batch=1"},   {"backend", "xnnpack:min-ops=1"},
      {"explain", "json"},  {"calibrate", DATA "calib/relu_deflated.npz"},
      {"quantize", "int8"}, {"calibrate-method", "percentile:99.9"},
      {"max-drop", "12.5"}, {"size", "json"},
      {"max-arena", "1.5M"}};
  use(locale);
  *program = *messages = (StrBuf){0};
  EtcSession *s = etc_session_new();
  etc_session_on_diagnostic(s, capture_write, messages);
  etc_session_on_output(s, capture_write, messages);
  for (size_t i = 0; i < COUNT_OF(options); i++)
    if (etc_session_set(s, options[i][0], options[i][1]) != ETC_OK)
      fail_msg("%s", strbuf_cstr(messages));
  if (etc_session_add_method(s, "forward", DATA "relu.onnx") != ETC_OK ||
      etc_lower_to(s, capture_write, program) != ETC_OK)
    fail_msg("%s", strbuf_cstr(messages));
  etc_session_free(s);
  use("C");
}

/* First with the comma: what is read once in a process is read then. */
static void test_lowering(void **state) {
  StrBuf comma, point, with_comma, with_point;
  lower(NAME, &comma, &with_comma);
  lower("C", &point, &with_point);
  assert_int_equal(comma.size, point.size);
  assert_memory_equal(comma.data, point.data, point.size);
  assert_string_equal(strbuf_cstr(&with_comma), strbuf_cstr(&with_point));
  strbuf_release(&comma);
  strbuf_release(&point);
  strbuf_release(&with_comma);
  strbuf_release(&with_point);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_lowering),
                                     cmocka_unit_test(test_numbers)};
  return cmocka_run_group_tests(tests, make_locale, remove_locale);
}
