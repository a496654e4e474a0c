/* JSON reader: values as they are asked for, what is skipped, strings of all kinds, and faults. */
#include "unit.h"

#include "support/json_read.h"

typedef struct Reading {
  Arena arena;
  JsonReader json;
} Reading;

static void begin(Reading *r, const char *text) {
  r->arena = (Arena){0};
  json_read_init(&r->json, sv_from(text), &r->arena);
}

static void test_members(void **state) {
  Reading r;
  StrView key, text = {NULL, 0};
  uint64_t number = 0;
  begin(&r, " {\"skipped\": [1, {\"a\": [true, null, -1.5e3, {}, []]}, \"]\"],\n"
            "  \"n\": 18446744073709551615, \"list\": [\"x\", \"\"] } ");
  assert_true(json_enter_object(&r.json));
  assert_true(json_next_key(&r.json, &key) && sv_eq(key, SV("skipped")));
  assert_true(json_skip(&r.json));
  assert_true(json_next_key(&r.json, &key) && sv_eq(key, SV("n")));
  assert_true(json_read_uint(&r.json, &number));
  assert_true(number == UINT64_MAX);
  assert_true(json_next_key(&r.json, &key) && sv_eq(key, SV("list")));
  assert_true(json_enter_array(&r.json));
  assert_true(json_next_item(&r.json) && json_read_string(&r.json, &text));
  assert_true(sv_eq(text, SV("x")));
  assert_true(json_next_item(&r.json) && json_read_string(&r.json, &text));
  assert_int_equal(text.size, 0);
  assert_false(json_next_item(&r.json));
  assert_false(json_next_key(&r.json, &key));
  assert_true(json_read_end(&r.json));
  arena_release(&r.arena);
}

static void test_strings(void **state) {
  static const char *const cases[][2] = {
      {"\"plain\"", "plain"},
      {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
      {"\"a\\u0041\\u00e9\\u20AC\\ud83d\\ude00z\"", "aA\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z"},
      {"\"\xC3\xA9\"", "\xC3\xA9"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    Reading r;
    StrView text = {NULL, 0};
    begin(&r, cases[i][0]);
    assert_true(json_read_string(&r.json, &text));
    assert_true(sv_eq_str(text, cases[i][1]));
    assert_true(json_read_end(&r.json));
    arena_release(&r.arena);
  }
}

static void test_faults(void **state) {
  static const char *const cases[][2] = {
      {"", "expected a value"},
      {"x", "expected a value"},
      {"[1", "expected ',' or ']'"},
      {"[1 2]", "expected ',' or ']'"},
      {"[1,]", "expected a value"},
      {"{\"a\": 1", "expected ',' or '}'"},
      {"{\"a\" 1}", "expected ':' behind the key"},
      {"{1: 2}", "expected a text in quotes"},
      {"\"open", "the text has no closing quote"},
      {"\"open\\n", "the text has no closing quote"},
      {"\"\\x\"", "there is no such escape"},
      {"\"\\u12g4\"", "\\u needs four hexadecimal digits"},
      {"\"\\ud83d\"", "half of a surrogate pair"},
      {"\"\\ude00\"", "half of a surrogate pair"},
      {"[] []", "something follows"},
      {"true false", "something follows"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    Reading r;
    begin(&r, cases[i][0]);
    assert_false(json_skip(&r.json) && json_read_end(&r.json));
    assert_string_equal(r.json.problem, cases[i][1]);
    assert_false(json_skip(&r.json)); /* the first one stays */
    assert_string_equal(r.json.problem, cases[i][1]);
    arena_release(&r.arena);
  }
}

static void test_depth(void **state) {
  char text[257];
  for (size_t depth = 64; depth <= 65; depth++) {
    Reading r;
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    text[2 * depth] = '\0';
    begin(&r, text);
    assert_int_equal(json_skip(&r.json) && json_read_end(&r.json), depth == 64);
    arena_release(&r.arena);
  }
}

static void test_place(void **state) {
  Reading r;
  uint32_t line, column;
  begin(&r, "[1,\n  2,\n  nothing]");
  assert_false(json_skip(&r.json));
  json_read_place(&r.json, &line, &column);
  assert_int_equal(line, 3);
  assert_int_equal(column, 3);
  arena_release(&r.arena);
}

/* Any change of a byte of a document ends in a value or in a fault. */
static void test_hostile(void **state) {
  static const char document[] =
      "{\"methods\": [{\"name\": \"f\\u00e9\", \"n\": [1, -2.5, true]}], \"d\": {}}";
  uint64_t seed = 7;
  for (int round = 0; round < 20000; round++) {
    Reading r;
    char text[sizeof document];
    memcpy(text, document, sizeof document);
    for (int i = 0; i < 2; i++)
      text[draw_below(&seed, sizeof document - 1)] = (char)(32 + draw_below(&seed, 96));
    begin(&r, text);
    if (!json_skip(&r.json))
      assert_non_null(r.json.problem);
    arena_release(&r.arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_members), cmocka_unit_test(test_strings),
      cmocka_unit_test(test_faults),  cmocka_unit_test(test_depth),
      cmocka_unit_test(test_place),   cmocka_unit_test(test_hostile),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
