/* Passes keep what a graph computes: every graph of the golden tests in tests/passes is run by the
 * reference interpreter on the same inputs before and after the passes that the file's RUN line
 * names. The golden text says what a rule does, this says that it may. */
#include <glob.h>
#include <stdio.h>

#include "graph_values.h"
#include "ir_graph.h"

#include "passes/facts.h"

enum { RUNS = 4 };

typedef struct Trial {
  Sample s;
  const char *path;
  Graph **graphs;
  uint32_t count;
} Trial;

static bool has_random(const Graph *g) {
  for (FOR_NODES(g, n))
    if (op_has_trait(node_cget(g, n)->op, OP_RANDOM))
      return true;
  return false;
}

static void compare(const Trial *t, const Graph *g, uint32_t run, const Tensor *before,
                    const Tensor *after) {
  for (uint32_t i = 0; i < graph_output_count(g); i++) {
    assert_int_equal(before[i].dtype, after[i].dtype);
    assert_int_equal(before[i].rank, after[i].rank);
    assert_memory_equal(before[i].dims, after[i].dims, before[i].rank * sizeof(int64_t));
    double scale = scale_of(&before[i]);
    for (int64_t k = 0; k < tensor_numel(&before[i]) && !has_random(g); k++) {
      double a = tensor_load(&after[i], k), b = tensor_load(&before[i], k);
      if (!near(before[i].dtype, a, b, scale))
        fail_msg("%s: graph " SV_FMT ", run %u, output %u, element %lld: %.9g after, %.9g before",
                 t->path, SV_ARG(intern_get(&g->ctx->names, g->name)), run, i, (long long)k, a, b);
    }
  }
}

static void run_graph(const Trial *t, Graph *g, uint32_t run, Arena *arena, Tensor *outputs) {
  Tensor *inputs = ARENA_ARRAY(arena, Tensor, g->input_count + 1);
  make_inputs(g, run, arena, inputs);
  if (interp_run(g, inputs, g->input_count, arena, outputs) != STATUS_OK)
    fail_msg("%s: %s", t->path, strbuf_cstr(&t->s.capture.text));
}

static void apply(Trial *t, Graph *g, StrView names) {
  PassOptions options = PASS_OPTIONS_DEFAULT;
  while (names.size) {
    const char *comma = memchr(names.data, ',', names.size);
    StrView name = {names.data, comma ? (size_t)(comma - names.data) : names.size};
    names = (StrView){name.data + name.size + !!comma, names.size - name.size - !!comma};
    const PassRow *row = pass_find(name);
    if (!row)
      fail_msg("%s: no pass " SV_FMT, t->path, SV_ARG(name));
    if (sv_eq(name, SV("recover_dynamic")))
      continue; /* adds biases before it rounds: quantized.py compares its values */
    Facts facts;
    facts = (Facts){0};
    PassContext context = {.sink = &t->s.capture.sink, .options = &options, .facts = &facts};
    Arena scratch = {0};
    context.scratch = &scratch;
    Status status = row->run(&context, g);
    arena_release(&scratch);
    facts_release(&facts);
    if (row->level_in != row->level_out)
      g->level = row->level_out;
    if (status != STATUS_OK || graph_verify(g, row->name) != STATUS_OK)
      fail_msg("%s: pass " SV_FMT ": %s", t->path, SV_ARG(name), strbuf_cstr(&t->s.capture.text));
  }
}

static void test_graph(Trial *t, Graph *g, StrView passes) {
  Arena arena = {0};
  uint32_t outputs = graph_output_count(g);
  Tensor *before[RUNS], *after = ARENA_ARRAY(&arena, Tensor, outputs + 1);
  for (uint32_t run = 0; run < RUNS; run++) {
    before[run] = ARENA_ARRAY(&arena, Tensor, outputs + 1);
    run_graph(t, g, run, &arena, before[run]);
  }
  apply(t, g, passes);
  for (uint32_t run = 0; run < RUNS; run++) {
    run_graph(t, g, run, &arena, after);
    compare(t, g, run, before[run], after);
  }
  arena_release(&arena);
}

/* What stands after the first --pass of the text. */
static StrView passes_of(const char *path, StrView text) {
  static const char option[] = "--pass ";
  const char *at = strstr(text.data, option);
  if (!at)
    fail_msg("%s: no --pass", path);
  at += sizeof option - 1;
  return (StrView){at, strcspn(at, " \n")};
}

static void test_file(const char *path) {
  Trial t = {.path = path};
  capture_init(&t.s.capture);
  context_init(&t.s.ctx, &t.s.capture.sink);
  char text[1 << 16];
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  size_t size = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  assert_true(size < sizeof text - 1);
  text[size] = 0;
  if (graph_parse(&t.s.ctx, (StrView){text, size}, sv_from(path), NULL, &t.graphs, &t.count) !=
      STATUS_OK)
    fail_msg("%s", strbuf_cstr(&t.s.capture.text));
  for (uint32_t i = 0; i < t.count; i++) {
    test_graph(&t, t.graphs[i], passes_of(path, (StrView){text, size}));
    graph_free(t.graphs[i]);
  }
  context_release(&t.s.ctx);
  capture_release(&t.s.capture);
}

static void test_stage(const char *passes, const char *tests) {
  glob_t files;
  if (glob(passes, 0, NULL, &files) == GLOB_NOMATCH)
    skip(); /* the stage has no pass yet */
  globfree(&files);
  assert_int_equal(glob(tests, 0, NULL, &files), 0);
  for (size_t i = 0; i < files.gl_pathc; i++)
    test_file(files.gl_pathv[i]);
  globfree(&files);
}

#define TEST_STAGE(stage)                                                                          \
  test_stage(ETC_SOURCE_DIR "/passes/" stage "/*.c",                                               \
             ETC_SOURCE_DIR "/tests/passes/" stage "/*.etir")
static void source_passes_keep_values(void **state) { TEST_STAGE("source"); }
static void core_passes_keep_values(void **state) { TEST_STAGE("core"); }
static void edge_passes_keep_values(void **state) { TEST_STAGE("edge"); }

static void executorch_passes_keep_values(void **state) { TEST_STAGE("executorch"); }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(source_passes_keep_values),
      cmocka_unit_test(core_passes_keep_values),
      cmocka_unit_test(edge_passes_keep_values),
      cmocka_unit_test(executorch_passes_keep_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
