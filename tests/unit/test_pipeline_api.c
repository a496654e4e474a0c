/* The public interface: sessions, options, messages, programs. */
#include "temp_file.h"

#include <ftw.h>
#include <sys/stat.h>

#include "pipeline/session.h"

static const char model[] = ETC_SOURCE_DIR "/tests/cli/data/relu.onnx";

static EtcSession *new_session(StrBuf *messages) {
  EtcSession *s = etc_session_new();
  *messages = (StrBuf){0};
  etc_session_on_diagnostic(s, capture_write, messages);
  return s;
}
static void free_session(EtcSession *s, StrBuf *messages) {
  etc_session_free(s);
  strbuf_release(messages);
}

static void keep_bytes(void *user, const char *data, size_t size) {
  strbuf_append(user, (StrView){data, size});
}

static void test_lower(void **state) {
  StrBuf messages;
  EtcSession *s = new_session(&messages);
  char path[] = "/tmp/etc-api-XXXXXX";
  make_file(path);
  assert_int_equal(etc_session_set(s, "dim", "batch=1..4"), ETC_OK);
  assert_int_equal(etc_session_add_method(s, "forward", model), ETC_OK);
  assert_int_equal(etc_lower(s, path), ETC_OK);
  assert_int_equal(messages.size, 0);
  assert_int_equal(etc_session_set_method(s, "", "plan", "naive"), ETC_USAGE);
  assert_contains(strbuf_cstr(&messages), "the name of the method is empty");
  struct stat status;
  assert_int_equal(stat(path, &status), 0);
  assert_true(status.st_size > 100);
  assert_int_equal(etc_lower(s, path), ETC_USAGE); /* once a session */
  assert_contains(strbuf_cstr(&messages), "lowered its program, or failed to");
  unlink(path);
  free_session(s, &messages);
}

/* A second call does not go on without the recipe that the first could not read. */
static void test_lower_again(void **state) {
  StrBuf messages, program = {0};
  EtcSession *s = new_session(&messages);
  assert_int_equal(etc_session_set(s, "recipe", "missing.yaml"), ETC_OK);
  assert_int_equal(etc_session_set(s, "dim", "batch=1..4"), ETC_OK);
  assert_int_equal(etc_session_add_method(s, "forward", model), ETC_OK);
  assert_int_equal(etc_lower_to(s, keep_bytes, &program), ETC_FAILED);
  assert_contains(strbuf_cstr(&messages), "cannot open 'missing.yaml'");
  assert_int_equal(etc_lower_to(s, keep_bytes, &program), ETC_USAGE);
  assert_contains(strbuf_cstr(&messages), "lowered its program, or failed to");
  assert_int_equal(program.size, 0);
  free_session(s, &messages);
}

/* What would count for nothing is refused. */
static void test_set_late(void **state) {
  static const int64_t one[] = {1};
  StrBuf messages, program = {0};
  EtcSession *s = new_session(&messages);
  assert_int_equal(etc_session_set(s, "dim", "batch=1..4"), ETC_OK);
  assert_int_equal(etc_session_add_method(s, "forward", model), ETC_OK);
  assert_int_equal(etc_lower_to(s, keep_bytes, &program), ETC_OK);
  assert_int_equal(messages.size, 0);
  assert_int_equal(etc_session_set(s, "plan", "naive"), ETC_USAGE);
  assert_contains(strbuf_cstr(&messages), "lowered its program, or failed to");
  assert_int_equal(etc_session_set_method(s, "forward", "plan", "naive"), ETC_USAGE);
  assert_int_equal(etc_session_add_method(s, "other", model), ETC_USAGE);
  assert_int_equal(etc_session_add_model(s, "other", "relu", "x", 1), ETC_USAGE);
  assert_int_equal(etc_session_add_constant_ints(s, "one", one, 1), ETC_USAGE);
  strbuf_release(&program);
  free_session(s, &messages);
}

/* The hint is the methods that there are, or the nearest of them. */
static void test_unknown_method(void **state) {
  static const struct {
    const char *method, *hint;
  } cases[] = {{"nope", "there is 'forward'"}, {"forwrd", "did you mean 'forward'?"}};
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    StrBuf messages, program = {0};
    EtcSession *s = new_session(&messages);
    assert_int_equal(etc_session_set_method(s, cases[i].method, "plan", "naive"), ETC_OK);
    assert_int_equal(etc_session_set(s, "dim", "batch=1..4"), ETC_OK);
    assert_int_equal(etc_session_add_method(s, "forward", model), ETC_OK);
    assert_int_equal(etc_lower_to(s, keep_bytes, &program), ETC_USAGE);
    assert_contains(strbuf_cstr(&messages), "which the program does not have");
    assert_contains(strbuf_cstr(&messages), cases[i].hint);
    assert_int_equal(program.size, 0);
    free_session(s, &messages);
  }
}

/* NULL is the way back to where messages and texts went at first. */
static void test_no_functions(void **state) {
  StrBuf messages, program = {0};
  EtcSession *s = new_session(&messages);
  etc_session_on_output(s, capture_write, &messages);
  etc_session_on_output(s, NULL, NULL);
  assert_int_equal(etc_session_set(s, "print-after", "all"), ETC_OK);
  assert_int_equal(etc_session_set(s, "dim", "batch=1..4"), ETC_OK);
  assert_int_equal(etc_session_add_method(s, "forward", model), ETC_OK);
  assert_int_equal(etc_lower_to(s, keep_bytes, &program), ETC_OK);
  etc_session_on_diagnostic(s, NULL, NULL);
  assert_int_equal(etc_session_set(s, "plan", "naive"), ETC_USAGE); /* on standard error */
  assert_int_equal(messages.size, 0);
  strbuf_release(&program);
  free_session(s, &messages);
}

static void read_whole(const char *path, StrBuf *out) {
  char piece[4096];
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  for (size_t got; (got = fread(piece, 1, sizeof piece, f)) > 0;)
    strbuf_append(out, (StrView){piece, got});
  fclose(f);
}

/* A model in memory becomes the same program, in memory. */
static void test_memory(void **state) {
  StrBuf messages, bytes = {0}, program = {0}, expected;
  expected = (StrBuf){0};
  read_whole(model, &bytes);
  EtcSession *s = new_session(&messages);
  char path[] = "/tmp/etc-api-XXXXXX";
  make_file(path);
  assert_int_equal(etc_session_set(s, "dim", "batch=1..4"), ETC_OK);
  assert_int_equal(etc_session_add_method(s, "forward", model), ETC_OK);
  assert_int_equal(etc_lower(s, path), ETC_OK);
  free_session(s, &messages);
  read_whole(path, &expected);
  unlink(path);
  s = new_session(&messages);
  assert_int_equal(etc_session_set_method(s, "forward", "dim", "batch=1..4"), ETC_OK);
  assert_int_equal(etc_session_add_model(s, "forward", "relu", bytes.data, bytes.size), ETC_OK);
  assert_int_equal(etc_lower_to(s, keep_bytes, &program), ETC_OK);
  assert_int_equal(program.size, expected.size);
  assert_memory_equal(program.data, expected.data, program.size);
  free_session(s, &messages);
  /* Half of it, and nothing of it. */
  program.size = 0;
  s = new_session(&messages);
  assert_int_equal(etc_session_add_model(s, "forward", "relu", bytes.data, bytes.size / 2), ETC_OK);
  assert_int_equal(etc_lower_to(s, keep_bytes, &program), ETC_FAILED);
  assert_int_equal(program.size, 0);
  assert_contains(strbuf_cstr(&messages), "relu");
  free_session(s, &messages);
  s = new_session(&messages);
  assert_int_equal(etc_session_add_model(s, "forward", "relu", bytes.data, bytes.size), ETC_OK);
  assert_int_equal(etc_session_add_model(s, "other", "none", bytes.data, 0), ETC_FAILED);
  assert_int_equal(etc_session_add_model(s, "forward", "relu", bytes.data, 1), ETC_USAGE);
  free_session(s, &messages);
  strbuf_release(&bytes);
  strbuf_release(&program);
  strbuf_release(&expected);
}

static void test_refused_model(void **state) {
  StrBuf messages;
  EtcSession *s = new_session(&messages);
  assert_int_equal(etc_session_set(s, "diagnostics", "json"), ETC_OK);
  assert_int_equal(etc_session_add_method(s, "forward", model), ETC_OK);
  assert_int_equal(etc_lower(s, "/tmp/etc-api-never"), ETC_FAILED);
  assert_contains(strbuf_cstr(&messages), "\"code\":\"E0317\"");
  assert_int_equal(access("/tmp/etc-api-never", F_OK), -1);
  free_session(s, &messages);
}

static void test_options(void **state) {
  static const struct {
    const char *name, *value;
    EtcStatus status;
    const char *message;
  } cases[] = {
      {"plan", "naive", ETC_OK, NULL},
      {"plan", "nave", ETC_USAGE, "did you mean 'naive'?"},
      {"pan", "naive", ETC_USAGE, "did you mean 'plan'?"},
      {"plan", NULL, ETC_USAGE, "needs a value"},
      {"verbose", NULL, ETC_OK, NULL},
      {"dim", "a=b=3", ETC_OK, NULL},
      {"dim", "n=9..9", ETC_OK, NULL},
      {"dim", "n=1", ETC_USAGE, "given twice"},
      {"dim", "m=1...3", ETC_USAGE, "is not a size"},
      {"dim", "m=99999999999999999999", ETC_USAGE, "is too large"},
      {"pass", "eliminate_dead@core", ETC_OK, NULL},
      {"print-after", "all", ETC_OK, NULL},
      {"skip-pass", "all", ETC_USAGE, "there is no pass 'all'"},
      {"quantize", "int8", ETC_OK, NULL},
      {"quantize", "int7", ETC_USAGE, "there is no scheme 'int7'"},
      {"backend", "xnnpack", ETC_OK, NULL},
      {"backend", "xnnpack:threads=2", ETC_USAGE, "no setting 'threads'"},
      {"werror", "maybe", ETC_USAGE, "werror does not take 'maybe'"},
      {"", "", ETC_USAGE, "there is no option ''"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    StrBuf messages;
    EtcSession *s = new_session(&messages);
    if (strcmp(cases[i].name, "dim") == 0 && strcmp(cases[i].value, "n=1") == 0)
      assert_int_equal(etc_session_set(s, "dim", "n=2"), ETC_OK);
    assert_int_equal(etc_session_set(s, cases[i].name, cases[i].value), cases[i].status);
    if (cases[i].message)
      assert_contains(strbuf_cstr(&messages), cases[i].message);
    else
      assert_int_equal(messages.size, 0);
    free_session(s, &messages);
  }
}

/* Those without a value take true and false, too. */
static void test_switches(void **state) {
  StrBuf messages;
  EtcSession *s = new_session(&messages);
  assert_int_equal(etc_session_set(s, "werror", "false"), ETC_OK);
  assert_int_equal(etc_session_set(s, "explain", "false"), ETC_OK);
  assert_false(s->sink.werror || s->sink.explain);
  assert_int_equal(etc_session_set(s, "werror", "true"), ETC_OK);
  assert_true(s->sink.werror);
  free_session(s, &messages);
}

static void test_nothing_to_do(void **state) {
  StrBuf messages;
  EtcSession *s = new_session(&messages);
  assert_int_equal(etc_lower(s, "/tmp/etc-api-never"), ETC_USAGE);
  assert_contains(strbuf_cstr(&messages), "there is no model");
  free_session(s, &messages);
  s = new_session(&messages);
  assert_int_equal(etc_session_add_method(s, "", model), ETC_USAGE);
  assert_int_equal(etc_session_add_method(s, "forward", model), ETC_OK);
  assert_int_equal(etc_session_add_method(s, "forward", model), ETC_USAGE);
  assert_int_equal(etc_lower(s, ""), ETC_USAGE);
  free_session(s, &messages);
  etc_session_free(NULL);
  etc_session_on_diagnostic(NULL, capture_write, NULL);
  etc_session_on_output(NULL, capture_write, NULL);
}

static void test_constants(void **state) {
  StrBuf messages;
  EtcSession *s = new_session(&messages);
  char path[] = "/tmp/etc-api-XXXXXX", bytes[4096];
  make_file(path);
  static const char *const words[] = {"hello runner", "two"};
  assert_int_equal(etc_session_set(s, "dim", "batch=1"), ETC_OK);
  assert_int_equal(etc_session_add_method(s, "forward", model), ETC_OK);
  assert_int_equal(etc_session_add_constant_ints(s, "ids", (int64_t[]){1, 2}, 2), ETC_OK);
  assert_int_equal(etc_session_add_constant_doubles(s, "rate", (double[]){0.5}, 1), ETC_OK);
  assert_int_equal(etc_session_add_constant_bools(s, "cached", (bool[]){true}, 1), ETC_OK);
  assert_int_equal(etc_session_add_constant_strings(s, "words", words, 2), ETC_OK);
  assert_int_equal(etc_session_add_constant_ints(s, "ids", (int64_t[]){1}, 1), ETC_USAGE);
  assert_int_equal(etc_session_add_constant_ints(s, "none", NULL, 0), ETC_USAGE);
  assert_int_equal(etc_session_add_constant_ints(s, "", (int64_t[]){1}, 1), ETC_USAGE);
  assert_int_equal(etc_session_add_constant_doubles(s, "nan", (double[]){0.0 / 0.0}, 1), ETC_USAGE);
  assert_int_equal(etc_lower(s, path), ETC_OK);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  assert_non_null(memmem(bytes, size, words[0], strlen(words[0])));
  assert_non_null(memmem(bytes, size, "cached", 6));
  unlink(path);
  free_session(s, &messages);
}

/* Lowers bytes in memory with one constant method; whether the program came out of the cache. */
static bool from_cache(const char *folder, StrBuf *bytes, int64_t constant) {
  StrBuf messages, program = {0};
  EtcSession *s = new_session(&messages);
  assert_int_equal(etc_session_set(s, "cache", folder), ETC_OK);
  assert_int_equal(etc_session_set(s, "dim", "batch=1"), ETC_OK);
  assert_int_equal(etc_session_add_model(s, "forward", "m.onnx", bytes->data, bytes->size), ETC_OK);
  assert_int_equal(etc_session_add_constant_ints(s, "n", &constant, 1), ETC_OK);
  assert_int_equal(etc_lower_to(s, keep_bytes, &program), ETC_OK);
  assert_true(program.size > 100);
  bool hit = s->cache.hit;
  strbuf_release(&program);
  free_session(s, &messages);
  return hit;
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
  (void)st, (void)flag, (void)ftw;
  return remove(path);
}

/* What has no file and no text counts as well. */
static void test_cache(void **state) {
  StrBuf bytes = {0};
  char folder[] = "/tmp/etc-api-XXXXXX";
  assert_non_null(mkdtemp(folder));
  read_whole(model, &bytes);
  assert_false(from_cache(folder, &bytes, 1));
  assert_true(from_cache(folder, &bytes, 1));
  assert_false(from_cache(folder, &bytes, 2));
  char *name = memmem(bytes.data, bytes.size, "the_relu", 8); /* of its node */
  assert_non_null(name);
  name[0] = 'T';
  assert_false(from_cache(folder, &bytes, 1));
  assert_true(from_cache(folder, &bytes, 1));
  strbuf_release(&bytes);
  nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* NULL where it is not allowed, text that is not UTF-8, and no value of an option. */
static void test_null(void **state) {
  StrBuf messages;
  EtcSession *s = new_session(&messages);
  const char *none[] = {"a", NULL}, *bytes[] = {"a\xff"};
  assert_int_equal(etc_session_set(NULL, "dim", "n=1"), ETC_USAGE);
  assert_int_equal(etc_lower(NULL, "-"), ETC_USAGE);
  assert_int_equal(etc_lower_to(NULL, keep_bytes, &messages), ETC_USAGE);
  assert_int_equal(messages.size, 0);
  assert_int_equal(etc_session_set(s, NULL, "n=1"), ETC_USAGE);
  assert_int_equal(etc_session_set_method(s, NULL, "dim", "n=1"), ETC_USAGE);
  assert_int_equal(etc_session_add_method(s, "f", NULL), ETC_USAGE);
  assert_int_equal(etc_session_add_method(s, NULL, model), ETC_USAGE);
  assert_int_equal(etc_session_add_model(s, "f", "m", NULL, 10), ETC_USAGE);
  assert_int_equal(etc_session_add_model(s, "f", "m", NULL, 0), ETC_USAGE);
  assert_int_equal(etc_session_add_model(s, "f", NULL, "", 0), ETC_USAGE);
  assert_int_equal(etc_session_add_constant_ints(s, "a", NULL, 2), ETC_USAGE);
  assert_int_equal(etc_session_add_constant_ints(s, NULL, (int64_t[]){1}, 1), ETC_USAGE);
  assert_int_equal(etc_session_add_constant_strings(s, "a", none, 2), ETC_USAGE);
  assert_contains(strbuf_cstr(&messages), "a caller gives NULL for the name or a value");
  assert_int_equal(etc_session_add_constant_strings(s, "a", bytes, 1), ETC_USAGE);
  assert_contains(strbuf_cstr(&messages), "constant method 'a' is not UTF-8");
  assert_int_equal(etc_session_set(s, "verbose", "maybe"), ETC_USAGE);
  assert_contains(strbuf_cstr(&messages), "at option --verbose");
  assert_int_equal(etc_lower_to(s, NULL, NULL), ETC_USAGE);
  assert_contains(strbuf_cstr(&messages), "the function that gets the program");
  free_session(s, &messages);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_memory),        cmocka_unit_test(test_lower),
      cmocka_unit_test(test_set_late),      cmocka_unit_test(test_unknown_method),
      cmocka_unit_test(test_lower_again),   cmocka_unit_test(test_no_functions),
      cmocka_unit_test(test_refused_model), cmocka_unit_test(test_options),
      cmocka_unit_test(test_switches),      cmocka_unit_test(test_nothing_to_do),
      cmocka_unit_test(test_constants),     cmocka_unit_test(test_cache),
      cmocka_unit_test(test_null),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
