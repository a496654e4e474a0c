/* Sheets of facts: what differs between two, and how it is shown. */
#include "unit.h"

#include "support/sheet.h"

typedef struct Fixture {
  Arena arena;
  Sheet a, b;
  StrBuf out;
} Fixture;

static int setup(void **state) {
  Fixture *f = xrealloc(NULL, sizeof *f);
  *f = (Fixture){0};
  f->arena = (Arena){0};
  f->a = (Sheet){.arena = &f->arena, .path = "a.pte", .kind = "program"};
  f->b = (Sheet){.arena = &f->arena, .path = "b.pte", .kind = "program"};
  f->out = (StrBuf){0};
  *state = f;
  return 0;
}

static int teardown(void **state) {
  Fixture *f = *state;
  strbuf_release(&f->out);
  arena_release(&f->arena);
  xfree(f);
  return 0;
}

static void number(Sheet *s, FactSection section, const char *name, uint64_t n) {
  sheet_add(s, (Fact){.section = section, .kind = FACT_COUNT, .name = sv_from(name), .number = n});
}

static void text(Sheet *s, const char *method, const char *name, const char *value) {
  sheet_add(s, (Fact){.kind = FACT_TEXT,
                      .method = sv_from(method),
                      .name = sv_from(name),
                      .text = sv_from(value)});
}

static const char *shown(Fixture *f) {
  SheetDiff d = sheet_compare(&f->a, &f->b);
  strbuf_clear(&f->out);
  sheet_diff_text(&d, false, &f->out);
  return strbuf_cstr(&f->out);
}

static void test_equal(void **state) {
  Fixture *f = *state;
  number(&f->a, FACTS_SIZE, "file", 3);
  number(&f->a, FACTS_OPERATORS, "add", 1);
  number(&f->b, FACTS_OPERATORS, "add", 1);
  number(&f->b, FACTS_SIZE, "file", 3);
  number(&f->b, FACTS_MEMORY, "workspace", 0); /* the same as not there */
  assert_int_equal(sheet_compare(&f->a, &f->b).count, 0);
  assert_string_equal(shown(f), "");
}

/* In the order of the sections; what only b has comes last in its section. */
static void test_changes(void **state) {
  Fixture *f = *state;
  number(&f->b, FACTS_OPERATORS, "aten::abs", 7);
  number(&f->a, FACTS_OPERATORS, "mul", 4);
  number(&f->b, FACTS_OPERATORS, "mul", 3);
  number(&f->a, FACTS_OPERATORS, "neg", 1);
  number(&f->a, FACTS_OPERATORS, "same", 9);
  number(&f->b, FACTS_OPERATORS, "same", 9);
  number(&f->b, FACTS_SIZE, "file", 1200);
  number(&f->a, FACTS_SIZE, "file", 1000);
  assert_string_equal(shown(f), "size:\n"
                                "  file  1000 -> 1200  +200 (+20.0 %)\n"
                                "operators:\n"
                                "  mul        4 -> 3  -1 (-25.0 %)\n"
                                "  neg        1 -> -  removed\n"
                                "  aten::abs  - -> 7  added\n");
}

/* Names that come twice are compared one by one. */
static void test_repeated(void **state) {
  Fixture *f = *state;
  text(&f->a, "", "x", "f32[1]");
  text(&f->a, "", "x", "f32[2]");
  text(&f->b, "", "x", "f32[1]");
  text(&f->b, "", "x", "f32[3]");
  text(&f->b, "", "x", "f32[4]");
  assert_string_equal(shown(f), "inputs and outputs:\n"
                                "  x  f32[2] -> f32[3]\n"
                                "  x  - -> f32[4]  added\n");
}

/* Methods are named where there are several. */
static void test_methods(void **state) {
  Fixture *f = *state;
  text(&f->a, "one", "x", "f32[1]");
  text(&f->b, "one", "x", "f32[2]");
  assert_string_equal(shown(f), "inputs and outputs:\n  x  f32[1] -> f32[2]\n");
  text(&f->b, "two", "x", "f32[2]");
  assert_string_equal(shown(f), "inputs and outputs:\n"
                                "  one: x  f32[1] -> f32[2]\n"
                                "  two: x  - -> f32[2]  added\n");
}

static void test_contents(void **state) {
  Fixture *f = *state;
  sheet_add(&f->a, (Fact){.kind = FACT_BYTES, .name = SV("w"), .number = 4, .hash = 1});
  sheet_add(&f->b, (Fact){.kind = FACT_BYTES, .name = SV("w"), .number = 4, .hash = 2});
  assert_string_equal(shown(f), "inputs and outputs:\n  w  4 -> 4  other contents\n");
}

static void test_sums(void **state) {
  Fixture *f = *state;
  Sheet counted = {.arena = &f->arena};
  number(&counted, FACTS_OPERATORS, "relu", 1);
  number(&counted, FACTS_OPERATORS, "add", 1);
  number(&counted, FACTS_OPERATORS, "relu", 2);
  number(&f->a, FACTS_OPERATORS, "add", 5); /* not counted with the others */
  sheet_add_sums(&f->a, &counted);
  assert_int_equal(f->a.count, 3);
  assert_int_equal(f->a.facts[1].number, 1);
  assert_int_equal(f->a.facts[2].number, 3);
  assert_memory_equal(f->a.facts[2].name.data, "relu", 4);
}

/* Names are code, whatever is in them; a bar would end the cell. */
static void test_markdown(void **state) {
  Fixture *f = *state;
  text(&f->a, "", "a|b`c<i>", "@x\n");
  SheetDiff d = sheet_compare(&f->a, &f->b);
  sheet_diff_markdown(&d, &f->out);
  assert_string_equal(strbuf_cstr(&f->out), "### `a.pte` → `b.pte`\n\n"
                                            "| inputs and outputs | before | after | change |\n"
                                            "|---|---:|---:|---:|\n"
                                            "| `a\\|b'c<i>` | `@x\\n` | - | removed |\n");
}

static void test_long_sections(void **state) {
  Fixture *f = *state;
  for (int i = 0; i < 17; i++)
    number(&f->a, FACTS_CONSTANTS, arena_printf(&f->arena, "c%d", i), 1);
  assert_contains(shown(f), "  1 more (-v)\n");
  SheetDiff d = sheet_compare(&f->a, &f->b);
  strbuf_clear(&f->out);
  sheet_diff_text(&d, true, &f->out);
  assert_contains(strbuf_cstr(&f->out), "  c16  1 -> -  removed\n");
  strbuf_clear(&f->out);
  sheet_diff_markdown(&d, &f->out);
  assert_contains(strbuf_cstr(&f->out), "<details><summary>constants: 17 changes</summary>\n");
  assert_contains(strbuf_cstr(&f->out), "| `c16` | 1 | - | removed |\n\n</details>\n");
}

static void test_json(void **state) {
  Fixture *f = *state;
  number(&f->a, FACTS_SIZE, "file", 8);
  number(&f->b, FACTS_SIZE, "file", 6);
  text(&f->b, "", "x", "\"");
  SheetDiff d = sheet_compare(&f->a, &f->b);
  JsonWriter w;
  json_init(&w, &f->out, false);
  sheet_diff_json(&d, &w);
  const char *json = strbuf_cstr(&f->out);
  assert_contains(json, "\"equal\":false");
  assert_contains(json, "\"before\":8,\"after\":6,\"change\":-2,\"percent\":-25.0");
  assert_contains(json, "\"before\":null,\"after\":\"\\\"\"");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_equal, setup, teardown),
      cmocka_unit_test_setup_teardown(test_changes, setup, teardown),
      cmocka_unit_test_setup_teardown(test_repeated, setup, teardown),
      cmocka_unit_test_setup_teardown(test_methods, setup, teardown),
      cmocka_unit_test_setup_teardown(test_contents, setup, teardown),
      cmocka_unit_test_setup_teardown(test_sums, setup, teardown),
      cmocka_unit_test_setup_teardown(test_markdown, setup, teardown),
      cmocka_unit_test_setup_teardown(test_long_sections, setup, teardown),
      cmocka_unit_test_setup_teardown(test_json, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
