/* JSON writer: commas, indentation, strings of any bytes, numbers that JSON has no word for. */
#include "unit.h"

#include <math.h>

#include "support/json.h"

static void write_sample(JsonWriter *w) {
  json_open_object(w);
  json_named_int(w, "a", -1);
  json_named_array(w, "b");
  json_bool(w, true);
  json_null(w);
  json_open_object(w);
  json_close_object(w);
  json_uint(w, UINT64_MAX);
  json_close_array(w);
  json_named_array(w, "c");
  json_close_array(w);
  json_named_string(w, "d", SV("x"));
  json_close_object(w);
}

static void test_structure(void **state) {
  StrBuf out = {0};
  JsonWriter w;
  json_init(&w, &out, false);
  write_sample(&w);
  assert_string_equal(strbuf_cstr(&out),
                      "{\"a\":-1,\"b\":[true,null,{},18446744073709551615],\"c\":[],\"d\":\"x\"}");
  strbuf_clear(&out);
  json_init(&w, &out, true);
  write_sample(&w);
  assert_string_equal(strbuf_cstr(&out),
                      "{\n  \"a\": -1,\n  \"b\": [\n    true,\n    null,\n    {},\n"
                      "    18446744073709551615\n  ],\n  \"c\": [],\n  \"d\": \"x\"\n}");
  strbuf_release(&out);
}

static void check_string(StrView value, const char *expected) {
  StrBuf out = {0};
  JsonWriter w;
  json_init(&w, &out, false);
  json_string(&w, value);
  assert_string_equal(strbuf_cstr(&out), expected);
  strbuf_release(&out);
}

static void test_strings(void **state) {
  check_string(SV(""), "\"\"");
  check_string((StrView){NULL, 0}, "\"\"");
  check_string(SV("a\"b\\c/"), "\"a\\\"b\\\\c/\"");
  check_string(SV("\n\t\0\x7f"), "\"\\n\\u0009\\u0000\\u007f\"");
  check_string(SV("\xff|\xc3"), "\"\xEF\xBF\xBD|\xEF\xBF\xBD\"");
  check_string(SV("\xe2\x80\xae\xf0\x9f\x98\x80"), "\"\\u202e\xf0\x9f\x98\x80\"");
}

static void test_numbers(void **state) {
  StrBuf out = {0};
  JsonWriter w;
  json_init(&w, &out, false);
  json_open_array(&w);
  json_double(&w, 0.5);
  json_double(&w, 3);
  json_double(&w, 1e-300);
  json_double(&w, NAN);
  json_double(&w, -INFINITY);
  json_int(&w, INT64_MIN);
  json_close_array(&w);
  assert_string_equal(strbuf_cstr(&out), "[0.5,3.0,1e-300,\"nan\",\"-inf\",-9223372036854775808]");
  strbuf_release(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_structure),
                                     cmocka_unit_test(test_strings),
                                     cmocka_unit_test(test_numbers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
