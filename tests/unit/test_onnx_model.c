/* Opening ONNX models: what is checked before any operator is looked at, and opening files. */
#include "temp_file.h"

#include <sys/stat.h>

#include "onnx/file/model.h"
#include "onnx/import.h"
#include "proto_writer.h"

static Proto empty_graph(void) {
  Proto graph = {0};
  proto_string(&graph, 2, "g");
  return graph;
}

/* A model of the ir_version (0: none) without imports. */
static Proto bare_model(int64_t ir_version) {
  Proto graph = empty_graph(), model = {0};
  if (ir_version)
    proto_int(&model, 1, ir_version);
  proto_message(&model, 7, &graph);
  return model;
}

/* Opens p; the status must be that of the code, or OK when part is NULL. Releases p. */
static void check(Proto *p, DiagCode code, const char *part, int64_t opset) {
  Capture c;
  capture_init(&c);
  OnnxModel m;
  Status status = onnx_model_open_bytes(&m, &c.sink, "m", (const uint8_t *)p->data, p->size);
  if (part) {
    assert_int_equal(status, diag_row(code)->status);
    assert_string_equal(diag_row(c.sink.first_error)->id, diag_row(code)->id);
    assert_contains(strbuf_cstr(&c.text), part);
  } else {
    if (status != STATUS_OK)
      fail_msg("%s", strbuf_cstr(&c.text));
    assert_int_equal(m.opset, opset);
  }
  onnx_model_close(&m);
  capture_release(&c);
  proto_release(p);
}

static void refuse(Proto *p, DiagCode code, const char *part) { check(p, code, part, 0); }
static void accept_opset(Proto *p, int64_t opset) { check(p, DIAG_INTERNAL, NULL, opset); }

/* The part of a message that names what can be read; valid until the next call. */
static const char *range(int oldest, int newest) {
  static char text[64];
  snprintf(text, sizeof text, "versions %d to %d can be read", oldest, newest);
  return text;
}

static void test_no_graph(void **state) {
  Proto p = {0};
  proto_int(&p, 1, 8);
  proto_import(&p, "", 17);
  refuse(&p, DIAG_MODEL_EMPTY, "no graph");
  proto_int(&p, 100, 1); /* garbage that happens to be protobuf */
  refuse(&p, DIAG_MODEL_EMPTY, "no graph");
}

static void test_ir_version(void **state) {
  static const int64_t bad[] = {-1, 2, ONNX_IR_VERSION_NEWEST + 1, 1000000000};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    Proto p = bare_model(bad[i]);
    proto_import(&p, "", 17);
    refuse(&p, DIAG_IR_VERSION, range(ONNX_IR_VERSION_OLDEST, ONNX_IR_VERSION_NEWEST));
  }
  Proto p = bare_model(0);
  refuse(&p, DIAG_IR_VERSION, "no ir_version");
  for (int64_t version = ONNX_IR_VERSION_OLDEST; version <= ONNX_IR_VERSION_NEWEST; version++) {
    p = bare_model(version);
    proto_import(&p, "", 17);
    accept_opset(&p, 17);
  }
}

static void test_imports(void **state) {
  Proto p = bare_model(8);
  refuse(&p, DIAG_OPSET_MISSING, "imports no operator set");
  for (int64_t version = ONNX_OPSET_OLDEST; version <= ONNX_OPSET_NEWEST; version++) {
    p = bare_model(8);
    proto_import(&p, "ai.onnx.ml", 3);
    proto_import(&p, version & 1 ? "" : "ai.onnx", version);
    accept_opset(&p, version);
  }
  p = bare_model(8);
  proto_import(&p, "ai.onnx.preview.training", 1);
  accept_opset(&p, 0);
  Proto import = {0}; /* without a domain field */
  proto_int(&import, 2, 13);
  p = bare_model(8);
  proto_message(&p, 8, &import);
  accept_opset(&p, 13);
}

static void test_bad_imports(void **state) {
  static const int64_t bad[] = {0, -3, ONNX_OPSET_NEWEST + 1, 1000000000, INT64_MAX};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    Proto p = bare_model(8);
    proto_import(&p, "", bad[i]);
    refuse(&p, DIAG_OPSET_UNKNOWN, range(ONNX_OPSET_OLDEST, ONNX_OPSET_NEWEST));
  }
  Proto p = bare_model(8);
  proto_import(&p, "", 17);
  proto_import(&p, "my.ops", -1);
  refuse(&p, DIAG_OPSET_UNKNOWN, "my.ops");
}

static void test_doubled_imports(void **state) {
  Proto p = bare_model(8);
  proto_import(&p, "", 17);
  proto_import(&p, "ai.onnx", 17);
  accept_opset(&p, 17);
  p = bare_model(8);
  proto_import(&p, "", 17);
  proto_import(&p, "ai.onnx", 18);
  refuse(&p, DIAG_OPSET_DUPLICATE, "'ai.onnx' at versions 17 and 18");
  p = bare_model(8);
  proto_import(&p, "a", 1);
  proto_import(&p, "", 17);
  proto_import(&p, "a", 2);
  refuse(&p, DIAG_OPSET_DUPLICATE, "'a' at versions 1 and 2");
  p = bare_model(8);
  for (int i = 0; i < 1000; i++) {
    char domain[16];
    snprintf(domain, sizeof domain, "d%d", i);
    proto_import(&p, domain, 1);
  }
  refuse(&p, DIAG_OPSET_DUPLICATE, "imports 1000 operator sets");
}

/* A model with a function that imports ai.onnx at the version. */
static Proto model_with_function(int64_t version) {
  Proto function = {0}, import = {0}, p = bare_model(8);
  proto_import(&p, "", 17);
  proto_string(&function, 1, "MyGelu");
  proto_string(&function, 10, "my.ops");
  proto_int(&import, 2, version);
  proto_message(&function, 9, &import);
  proto_message(&p, 25, &function);
  return p;
}

static void test_function_imports(void **state) {
  Proto p = model_with_function(13);
  accept_opset(&p, 17);
  p = model_with_function(ONNX_OPSET_NEWEST + 1);
  refuse(&p, DIAG_OPSET_UNKNOWN, "the function");
}

static void test_opset_version(void **state) {
  Proto p = bare_model(8);
  proto_import(&p, "ai.onnx", 17);
  proto_import(&p, "x", 3);
  Capture c;
  capture_init(&c);
  OnnxModel m;
  assert_int_equal(onnx_model_open_bytes(&m, &c.sink, "m", (const uint8_t *)p.data, p.size),
                   STATUS_OK);
  Onnx__OperatorSetIdProto **imports = m.proto->opset_import;
  size_t count = m.proto->n_opset_import;
  assert_int_equal(onnx_opset_version(imports, count, SV("")), 17);
  assert_int_equal(onnx_opset_version(imports, count, SV("ai.onnx")), 17);
  assert_int_equal(onnx_opset_version(imports, count, SV("x")), 3);
  assert_int_equal(onnx_opset_version(imports, count, SV("y")), 0);
  onnx_model_close(&m);
  capture_release(&c);
  proto_release(&p);
}

/* --- files
 * ----------------------------------------------------------------------------------------- */

static void open_path(const char *path, DiagCode code) {
  Capture c;
  capture_init(&c);
  OnnxModel m;
  assert_int_equal(onnx_model_open(&m, &c.sink, path), diag_row(code)->status);
  assert_string_equal(diag_row(c.sink.first_error)->id, diag_row(code)->id);
  assert_contains(strbuf_cstr(&c.text), path);
  onnx_model_close(&m);
  capture_release(&c);
}

static void test_files(void **state) {
  char folder[] = "/tmp/etc-test-XXXXXX", path[64];
  assert_non_null(mkdtemp(folder));
  open_path(folder, DIAG_FILE_IS_DIRECTORY);
  snprintf(path, sizeof path, "%s/none.onnx", folder);
  open_path(path, DIAG_FILE_OPEN);
  snprintf(path, sizeof path, "%s/fifo.onnx", folder);
  assert_int_equal(mkfifo(path, 0600), 0);
  open_path(path, DIAG_FILE_NOT_REGULAR);
  unlink(path);
  snprintf(path, sizeof path, "%s/m.onnx", folder);
  write_file(path, "", 0);
  open_path(path, DIAG_FILE_EMPTY);
  unlink(path);
  rmdir(folder);
}

static void test_digits(void **state) {
  Capture c;
  capture_init(&c);
  OnnxModel m;
  Status status = onnx_model_open(&m, &c.sink, ETC_SOURCE_DIR "/examples/digits/digits.onnx");
  if (status != STATUS_OK)
    fail_msg("%s", strbuf_cstr(&c.text));
  assert_true(m.proto->graph->n_node > 0);
  assert_true(m.span_count >= m.proto->graph->n_initializer);
  onnx_model_close(&m);
  capture_release(&c);
}

static bool letter_size(void *user, StrView term, SymInt *size) {
  const char *letters = user;
  const char *at = term.size == 1 ? strchr(letters, term.data[0]) : NULL;
  *size = at ? 10 + (at - letters) : 0;
  return at != NULL;
}

/* Names of dims that are expressions, as exporters write them; h is 10, w 11 and x-y no size. */
static void check_expression(const char *name, SymInt expected) {
  char letters[] = "hw";
  SymTable t = {0};
  SymInt size;
  DimTerms terms = {&t, letter_size, letters};
  bool right = onnx_dim_expression(&terms, sv_from(name), &size);
  assert_int_equal(right ? size : -1, expected);
  sym_release(&t);
}

static void test_expressions(void **state) {
  check_expression("h + w", 21);
  check_expression("h+w+1", 22);
  check_expression("16*h", 160);
  check_expression("h*w - 1", 109);
  check_expression("2*(w//2) + 1", 11);
  check_expression("( h - 1 )//2 * 3", 12);
  check_expression("7", 7);
  check_expression("h", 10);
  check_expression("b", -1);
  check_expression("h-1", -1);
  check_expression("h*b", -1);
  check_expression("w//h", 1);
  check_expression("h//0", -1);
  check_expression("floor(h/2)", -1);
  check_expression(" + h", -1);
  check_expression("h +", -1);
  check_expression("(h", -1);
  check_expression("h)", -1);
  check_expression("((((((((((((((((((h))))))))))))))))))", -1);
  check_expression("", -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_graph),        cmocka_unit_test(test_ir_version),
      cmocka_unit_test(test_imports),         cmocka_unit_test(test_bad_imports),
      cmocka_unit_test(test_doubled_imports), cmocka_unit_test(test_function_imports),
      cmocka_unit_test(test_opset_version),   cmocka_unit_test(test_files),
      cmocka_unit_test(test_digits),          cmocka_unit_test(test_expressions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
