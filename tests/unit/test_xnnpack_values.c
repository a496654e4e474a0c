/* What XNNPACK is given computes what the graph did: every graph of some golden tests of the
 * backend is run on the same inputs as it is written and as the program that it becomes, read back,
 * with its nodes in delegates. The golden texts say which nodes those are. */
#include "graph_values.h"

#include "pipeline/session.h"
#include "temp_file.h"

#define GOLDEN ETC_SOURCE_DIR "/tests/passes/to_backend/"

enum { RUNS = 3, OUTPUTS_MAX = 16 };

static EtcSession *open_session(const char *path, StrBuf *messages, bool read) {
  EtcSession *s = etc_session_new();
  etc_session_on_diagnostic(s, capture_write, messages);
  assert_int_equal(etc_session_add_method(s, "forward", path), ETC_OK);
  s->sync = false;
  if (!read)
    assert_int_equal(etc_session_set(s, "backend", "xnnpack:min-ops=1"), ETC_OK);
  if (session_import(s, read) != STATUS_OK)
    fail_msg("%s: %s", path, strbuf_cstr(messages));
  return s;
}

static void run(const char *path, Graph *g, const Tensor *inputs, Arena *arena, Tensor *outputs,
                StrBuf *messages) {
  assert_true(graph_output_count(g) <= OUTPUTS_MAX);
  if (interp_run(g, inputs, g->input_count, arena, outputs) != STATUS_OK)
    fail_msg("%s: graph " SV_FMT ": %s", path, SV_ARG(intern_get(&g->ctx->names, g->name)),
             strbuf_cstr(messages));
}

static void compare_outputs(const char *path, const Graph *g, const Tensor *wanted,
                            const Tensor *got) {
  for (uint32_t i = 0; i < graph_output_count(g); i++) {
    assert_int_equal(wanted[i].dtype, got[i].dtype);
    assert_int_equal(wanted[i].rank, got[i].rank);
    assert_memory_equal(wanted[i].dims, got[i].dims, wanted[i].rank * sizeof(int64_t));
    double scale = scale_of(&wanted[i]);
    for (int64_t k = 0; k < tensor_numel(&wanted[i]); k++) {
      double a = tensor_load(&got[i], k), b = tensor_load(&wanted[i], k);
      if (!near(wanted[i].dtype, a, b, scale))
        fail_msg("%s: graph " SV_FMT ", output %u, element %lld is %.9g instead of %.9g", path,
                 SV_ARG(intern_get(&g->ctx->names, g->name)), i, (long long)k, a, b);
    }
  }
}

/* Inputs and outputs as written, run by run, made before the graph is lowered. */
typedef struct Sample {
  Tensor *inputs, outputs[OUTPUTS_MAX];
} Sample;

static Sample *sample(const char *path, Graph *g, Arena *arena, StrBuf *messages) {
  Sample *samples = ARENA_ARRAY(arena, Sample, RUNS);
  for (uint32_t i = 0; i < RUNS; i++) {
    samples[i] = (Sample){.inputs = ARENA_ARRAY(arena, Tensor, g->input_count + 1)};
    make_inputs(g, i, arena, samples[i].inputs);
    run(path, g, samples[i].inputs, arena, samples[i].outputs, messages);
  }
  return samples;
}

static void test_file(const char *path) {
  char program[] = "/tmp/etc-xnnpack-XXXXXX";
  make_file(program);
  Arena arena = {0};
  StrBuf messages = {0};
  EtcSession *s = open_session(path, &messages, false);
  Sample **samples = ARENA_ARRAY(&arena, Sample *, s->program.method_count);
  for (uint32_t m = 0; m < s->program.method_count; m++)
    samples[m] = sample(path, s->program.methods[m].graph, &arena, &messages);
  if (session_run(s, STAGE_TO_EXECUTORCH) != STATUS_OK || session_emit(s, program) != STATUS_OK)
    fail_msg("%s: %s", path, strbuf_cstr(&messages));
  EtcSession *back = open_session(program, &messages, true);
  assert_int_equal(back->program.method_count, s->program.method_count);
  for (uint32_t m = 0; m < back->program.method_count; m++) {
    Graph *g = back->program.methods[m].graph;
    for (uint32_t i = 0; i < RUNS; i++) {
      Tensor outputs[OUTPUTS_MAX] = {0};
      run(path, g, samples[m][i].inputs, &arena, outputs, &messages);
      compare_outputs(path, g, samples[m][i].outputs, outputs);
    }
  }
  etc_session_free(back);
  etc_session_free(s);
  strbuf_release(&messages);
  arena_release(&arena);
  unlink(program);
}

static void test_forms(void **state) {
  static const char *const files[] = {
      "supported",     "kinds",         "layouts",      "delegate",
      "expand_matmul", "guard_softmax", "recover_bias", "recover_group_norm",
      "repeats",       "fold_weights"};
  for (size_t i = 0; i < COUNT_OF(files); i++) {
    char path[256];
    snprintf(path, sizeof path, GOLDEN "%s.etir", files[i]);
    test_file(path);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
