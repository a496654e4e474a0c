/* Diagnostics: the table's own rules, both renderings, hostile text, and limits. */
#include "unit.h"

#include <ctype.h>
#include <stdio.h>

static void test_table(void **state) {
  for (unsigned i = 0; i < DIAG_CODE_COUNT; i++) {
    const DiagRow *row = diag_row((DiagCode)i);
    static const char letters[] = {'E', 'W', 'I'};
    assert_int_equal(strlen(row->code), 5);
    assert_int_equal(row->code[0], letters[row->severity]);
    for (int j = 1; j < 5; j++)
      assert_true(isdigit((unsigned char)row->code[j]));
    assert_int_equal(row->status == STATUS_OK, row->severity != DIAG_ERROR);
    assert_true(strlen(row->summary) > 5 && row->summary[strlen(row->summary) - 1] != '.');
    size_t size = strlen(row->explanation);
    if (size < 60 || row->explanation[size - 1] != '.')
      fail_msg("%s: the explanation must be whole sentences", row->code);
    assert_true(row->hint[0] == '\0' || row->hint[strlen(row->hint) - 1] != '.');
    for (unsigned j = 0; j < i; j++) {
      const DiagRow *other = diag_row((DiagCode)j);
      if (strcmp(row->code + 1, other->code + 1) == 0 || strcmp(row->id, other->id) == 0)
        fail_msg("%s and %s", row->code, other->code);
    }
  }
}

static void test_find(void **state) {
  DiagCode code = DIAG_USAGE;
  assert_true(diag_find(SV("E0317"), &code) && code == DIAG_DIM_UNBOUND);
  assert_true(diag_find(SV("INTERNAL"), &code) && code == DIAG_INTERNAL);
  assert_true(diag_find(SV("317"), &code) && code == DIAG_DIM_UNBOUND);
  assert_true(diag_find(SV("E317"), &code) && code == DIAG_DIM_UNBOUND);
  assert_true(diag_find(SV("0317"), &code) && code == DIAG_DIM_UNBOUND);
  assert_false(diag_find(SV("W317"), &code));
  assert_false(diag_find(SV("E"), &code));
  assert_false(diag_find(SV("E031"), &code));
  assert_false(diag_find(SV(""), &code));
}

static DiagPlace conv_place(void) {
  return (DiagPlace){.file = SV("model.onnx"), .node = SV("conv1"), .op = SV("Conv"), .index = 12};
}

static void test_text(void **state) {
  Capture c;
  capture_init(&c);
  Diag *d = diag_begin(&c.sink, DIAG_DIM_UNBOUND, conv_place());
  diag_message(d, "dimension '%s' has no bound", "batch");
  diag_note(d, "first note");
  diag_note(d, "second note");
  diag_hint(d, "add --dim %s=N", "batch");
  assert_int_equal(diag_end(d), STATUS_UNSUPPORTED);
  assert_string_equal(strbuf_cstr(&c.text),
                      "model.onnx: error[E0317]: dimension 'batch' has no bound\n"
                      "  at node 'conv1' (Conv, node 12)\n"
                      "  note: first note\n"
                      "  note: second note\n"
                      "  hint: add --dim batch=N\n");
  assert_int_equal(c.sink.errors, 1);
  assert_int_equal(c.sink.first_error, DIAG_DIM_UNBOUND);
  capture_release(&c);
}

static void check_place(DiagPlace place, const char *expected) {
  Capture c;
  capture_init(&c);
  assert_int_equal(diag_report(&c.sink, DIAG_IR_PARSE, place, "message"), STATUS_INVALID);
  assert_string_equal(strbuf_cstr(&c.text), expected);
  capture_release(&c);
}

static void test_places(void **state) {
  check_place(DIAG_NOWHERE, "etc: error[E0401]: message\n");
  check_place((DiagPlace){.index = -1, .file = SV("a.etir"), .line = 3, .column = 7},
              "a.etir:3:7: error[E0401]: message\n");
  check_place((DiagPlace){.index = -1, .file = SV("a.etir"), .line = 3},
              "a.etir:3: error[E0401]: message\n");
  check_place((DiagPlace){.index = 0},
              "etc: error[E0401]: message\n  at an unnamed node (node 0)\n");
  check_place((DiagPlace){.index = -1, .node = SV("n")},
              "etc: error[E0401]: message\n  at node 'n'\n");
  check_place((DiagPlace){.index = -1, .op = SV("If"), .graph = SV("main/then")},
              "etc: error[E0401]: message\n  at an unnamed node (If) in 'main/then'\n");
  check_place((DiagPlace){.index = -1, .graph = SV("body")},
              "etc: error[E0401]: message\n  in 'body'\n");
  check_place((DiagPlace){.index = -1, .option = SV("--dim")},
              "etc: error[E0401]: message\n  at option --dim\n");
}

static void test_color(void **state) {
  Capture c;
  capture_init(&c);
  c.sink.color = true;
  assert_int_equal(diag_report(&c.sink, DIAG_LIST_OUTPUT, DIAG_NOWHERE, "m"), STATUS_OK);
  assert_string_equal(strbuf_cstr(&c.text), "etc: \033[1;35mwarning[W0834]:\033[0m m\n");
  assert_int_equal(c.sink.warnings, 1);
  assert_int_equal(c.sink.errors, 0);
  capture_release(&c);
}

static void test_json(void **state) {
  Capture c;
  capture_init(&c);
  c.sink.format = DIAG_JSON;
  Diag *d = diag_begin(&c.sink, DIAG_AXIS_RANGE, conv_place());
  diag_message(d, "axis %d \"x\"\n", 5);
  diag_note(d, "one");
  assert_int_equal(diag_end(d), STATUS_INVALID);
  assert_string_equal(
      strbuf_cstr(&c.text),
      "{\"severity\":\"error\",\"code\":\"E0406\",\"id\":\"AXIS_RANGE\","
      "\"message\":\"axis 5 "
      "\\\"x\\\"\\n\",\"file\":\"model.onnx\",\"node\":\"conv1\",\"op\":\"Conv\","
      "\"graph\":\"\",\"index\":12,\"line\":0,\"column\":0,\"option\":\"\",\"notes\":[\"one\"],"
      "\"hint\":\"correct the axis in the model, or the rank of the "
      "tensor that it is for\"}\n");
  capture_release(&c);
}

/* Names out of a model must not be able to forge lines, colour the terminal or flood it. */
static void test_hostile_text(void **state) {
  Capture c;
  capture_init(&c);
  StrBuf name = {0};
  strbuf_append(&name, SV("x\nerror[E0000]: forged\033[2J\xff\xe2\x80\xae"));
  for (int i = 0; i < 1000000; i++)
    strbuf_append_char(&name, 'a');
  DiagPlace place = DIAG_NOWHERE;
  place.node = (StrView){name.data, name.size};
  Diag *d = diag_begin(&c.sink, DIAG_NAME_TWICE, place);
  diag_message(d, "name '" SV_FMT "' is taken", SV_ARG(place.node));
  assert_int_equal(diag_end(d), STATUS_INVALID);
  const char *text = strbuf_cstr(&c.text);
  assert_true(c.text.size < 8000);
  assert_contains(text, "x\\nerror[E0000]: forged\\x1B[2J\\xFF\\xE2\\x80\\xAE");
  assert_contains(text, "aaa' is taken\n"); /* what is behind the long name is kept */
  unsigned lines = 0;
  for (const char *p = text; *p; p++) {
    lines += *p == '\n';
    assert_true(*p == '\n' || (*p >= 0x20 && *p < 0x7f));
  }
  assert_int_equal(lines, 3); /* message, place, hint */
  strbuf_release(&name);
  capture_release(&c);
}

static void test_cut_keeps_characters_whole(void **state) {
  Capture c;
  capture_init(&c);
  StrBuf name = {0};
  strbuf_append_char(&name, 'a');
  for (int i = 0; i < 200; i++)
    strbuf_append(&name, SV("\xe2\x82\xac")); /* both cuts fall inside of one */
  DiagPlace place = DIAG_NOWHERE;
  place.node = (StrView){name.data, name.size};
  assert_int_equal(diag_report(&c.sink, DIAG_IR_PARSE, place, "m"), STATUS_INVALID);
  assert_null(strstr(strbuf_cstr(&c.text), "\\x"));
  assert_contains(strbuf_cstr(&c.text), "\xe2\x82\xac ... \xe2\x82\xac");
  strbuf_release(&name);
  capture_release(&c);
}

static void test_limits(void **state) {
  Capture c;
  capture_init(&c);
  c.sink.max_errors = 3;
  for (int i = 0; i < 100000; i++)
    assert_int_equal(diag_report(&c.sink, DIAG_ATTR_VALUE, DIAG_NOWHERE, "number %d", i),
                     STATUS_INVALID);
  assert_int_equal(c.sink.errors, 100000);
  assert_contains(strbuf_cstr(&c.text), "number 2");
  assert_null(strstr(strbuf_cstr(&c.text), "number 3"));
  assert_true(c.sink.arena.total < 1 << 20);
  assert_int_equal(diag_report(&c.sink, DIAG_CAST_INSERTED, DIAG_NOWHERE, "quiet"), STATUS_OK);
  assert_null(strstr(strbuf_cstr(&c.text), "quiet"));
  c.sink.verbose = true;
  assert_int_equal(diag_report(&c.sink, DIAG_CAST_INSERTED, DIAG_NOWHERE, "loud"), STATUS_OK);
  assert_contains(strbuf_cstr(&c.text), "etc: info[I0804]: loud\n");
  capture_release(&c);
}

/* A diagnostic begun while another one is open must not lose it. */
static void test_two_open(void **state) {
  Capture c;
  capture_init(&c);
  Diag *outer = diag_begin(&c.sink, DIAG_UNSUPPORTED_OP, DIAG_NOWHERE);
  diag_message(outer, "outer");
  assert_int_equal(diag_report(&c.sink, DIAG_IR_PARSE, DIAG_NOWHERE, "inner"), STATUS_INVALID);
  diag_note(outer, "kept");
  diag_hint(outer, "%s", "");
  assert_int_equal(diag_end(outer), STATUS_UNSUPPORTED);
  assert_string_equal(strbuf_cstr(&c.text),
                      "etc: error[E0401]: inner\netc: error[E0301]: outer\n  note: kept\n");
  capture_release(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_table),        cmocka_unit_test(test_find),
      cmocka_unit_test(test_text),         cmocka_unit_test(test_places),
      cmocka_unit_test(test_color),        cmocka_unit_test(test_json),
      cmocka_unit_test(test_hostile_text), cmocka_unit_test(test_cut_keeps_characters_whole),
      cmocka_unit_test(test_limits),       cmocka_unit_test(test_two_open),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
