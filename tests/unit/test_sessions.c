/* Several sessions at a time, each on a thread of its own: the programs are those of one session
 * alone. tools/check builds this under ThreadSanitizer as well. */
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>

#include "etc/etc.h"
#include "support/parallel.h"

#define DATA ETC_SOURCE_DIR "/tests/cli/data/"

enum { SESSIONS = 8, ROUNDS = 3 };

typedef struct Case {
  const char *model;
  const char *const *options; /* pairs, NULL at the end */
} Case;

static const char *const portable[] = {"dim", "batch=1..4", "threads", "3", NULL};
static const char *const xnnpack[] = {"dim", "batch=3", "backend", "xnnpack:min-ops=1", NULL};
static const char *const recipe[] = {"recipe", "xnnpack", "verbose", "", NULL};
static const char *const quantized[] = {"calibrate", DATA "calib/relu_deflated.npz",
                                        "quantize",  "int8",
                                        "backend",   "xnnpack:min-ops=1",
                                        "dim",       "batch=1",
                                        "threads",   "2",
                                        NULL};
static const char *const refused[] = {"threads", "1", NULL};

static const Case cases[] = {{DATA "relu.onnx", portable}, {DATA "relu.onnx", xnnpack},
                             {DATA "why.onnx", recipe},    {DATA "relu.onnx", quantized},
                             {DATA "external.onnx", NULL}, {DATA "unknown.onnx", refused}};

typedef struct Lowering {
  const Case *c;
  EtcStatus status;
  StrBuf program, messages;
} Lowering;

static void *lower(void *user) {
  Lowering *l = user;
  l->program = (StrBuf){0};
  l->messages = (StrBuf){0};
  EtcSession *s = etc_session_new();
  etc_session_on_diagnostic(s, capture_write, &l->messages);
  for (const char *const *o = l->c->options; o && *o; o += 2)
    assert_int_equal(etc_session_set(s, o[0], o[1]), ETC_OK);
  l->status = etc_session_add_method(s, "forward", l->c->model);
  if (l->status == ETC_OK)
    l->status = etc_lower_to(s, capture_write, &l->program);
  etc_session_free(s);
  return NULL;
}

static void release(Lowering *l) {
  strbuf_release(&l->program);
  strbuf_release(&l->messages);
}

static void test_programs(void **state) {
  Lowering alone[COUNT_OF(cases)], together[SESSIONS];
  pthread_t threads[SESSIONS];
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    alone[i].c = &cases[i];
    lower(&alone[i]);
    assert_int_equal(alone[i].status, cases[i].options == refused ? ETC_FAILED : ETC_OK);
    assert_true((alone[i].status == ETC_OK) == (alone[i].program.size > 0));
  }
  for (size_t round = 0; round < ROUNDS; round++) {
    for (size_t i = 0; i < SESSIONS; i++) {
      together[i].c = &cases[(i + round) % COUNT_OF(cases)];
      assert_int_equal(pthread_create(&threads[i], NULL, lower, &together[i]), 0);
    }
    for (size_t i = 0; i < SESSIONS; i++) {
      const Lowering *expected = &alone[(i + round) % COUNT_OF(cases)];
      assert_int_equal(pthread_join(threads[i], NULL), 0);
      assert_int_equal(together[i].status, expected->status);
      assert_int_equal(together[i].program.size, expected->program.size);
      if (expected->program.size)
        assert_memory_equal(together[i].program.data, expected->program.data,
                            expected->program.size);
      assert_string_equal(strbuf_cstr(&together[i].messages), strbuf_cstr(&expected->messages));
      release(&together[i]);
    }
  }
  for (size_t i = 0; i < COUNT_OF(cases); i++)
    release(&alone[i]);
}

/* The option threads holds for calls of its session, not for other sessions or the program. */
static void test_threads(void **state) {
  unsigned before = parallel_threads();
  EtcSession *s = etc_session_new();
  assert_int_equal(etc_session_set(s, "threads", "7"), ETC_OK);
  assert_int_equal(parallel_threads(), before);
  etc_session_free(s);
  assert_int_equal(parallel_threads(), before);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs),
                                     cmocka_unit_test(test_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
