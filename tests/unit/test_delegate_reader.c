/* Readers of plug-ins: whose code runs while an answer that leads nowhere is checked; and at which
 * sizes code is checked. */
#include "ir_graph.h"

#include <signal.h>
#include <sys/mman.h>

#include "ops/delegate.h"

static sigjmp_buf back;
static const char *volatile running;
static const char *volatile at_crash;
static void *nowhere; /* a page that cannot be read */

static void on_crash(int number) {
  at_crash = running;
  siglongjmp(back, number);
}

static const char *wild_needs(const uint8_t *blob, uint64_t size, Arena *arena,
                              DelegateNeeds *out) {
  (void)blob, (void)size, (void)arena;
  *out = (DelegateNeeds){.keys = nowhere, .key_count = 1};
  return NULL;
}

static const char *wild_describe(const uint8_t *blob, uint64_t size, Arena *arena,
                                 DelegateFigures *out) {
  (void)blob, (void)size, (void)arena;
  *out = (DelegateFigures){.nodes = nowhere, .kind_count = 1};
  return NULL;
}

static const DelegateReader reader = {.id = "Wild",
                                      .needs = wild_needs,
                                      .describe = wild_describe,
                                      .plugin = "wild",
                                      .running = &running};

static int setup(void **state) {
  nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return nowhere == MAP_FAILED;
}

static int teardown(void **state) { return munmap(nowhere, 4096); }

static const char *ask_needs(Arena *arena) {
  DelegateNeeds needed;
  return reader_needs(&reader, NULL, 0, arena, &needed);
}

static const char *ask_figures(Arena *arena) {
  DelegateFigures figures;
  return reader_describe(&reader, NULL, 0, arena, &figures);
}

/* The handler is set in the test itself: cmocka has one of its own before. */
static void expect_blame(const char *(*ask)(Arena *arena)) {
  Arena arena = {0};
  signal(SIGSEGV, on_crash);
  running = at_crash = NULL;
  if (sigsetjmp(back, 1) == 0) {
    (void)ask(&arena);
    fail_msg("the answer was not read");
  }
  assert_string_equal(at_crash, "wild");
  arena_release(&arena);
}

static void test_needs(void **state) { expect_blame(ask_needs); }

static void test_describe(void **state) { expect_blame(ask_figures); }

/* --- sizes --- */

/* Code that is right for most sizes. */
static const char *check_between(const DelegateCall *call, Arena *arena) {
  (void)arena;
  int64_t rows = call->inputs[0].dims[0];
  return rows > 1 && rows < 9 ? "it has too few rows" : NULL;
}

static const DelegateReader some_sizes = {.id = "Sizes", .check = check_between};

static void test_sizes(void **state) {
  Sample s;
  Arena arena = {0};
  const DelegateReader *items[] = {&some_sizes};
  const DelegateReaders readers = {items, 1};
  sample_parse(&s, "graph @f level(edge) {\n"
                   "  sym s0 \"n\" in [1, 9]\n"
                   "  %0: f32[s0, 4] = input \"x\"\n"
                   "  %1: f32[s0, 4] = aten::add.Tensor(%0, %0, 1)\n"
                   "  output %1 \"y\"\n"
                   "}\n");
  s.ctx.readers = &readers;
  NodeId add = s.g->first;
  ValueId x = node_value(s.g, add, 0);
  int64_t size = 1;
  Builder b = builder_make(s.g, add, 0);
  ValueId blob = build_const(&b, DTYPE_U8, 1, &size, "c");
  SymInt sizes[] = {value_dim(s.g, x, 0), 4};
  ValueId y = build(&b, OP_EXECUTORCH_CALL_DELEGATE, A_STR("Sizes"), A_STR(""), A_VAL(blob),
                    A_VALS(&x, 0), A_VALS(&x, 1), A_INTS((int64_t[]){DTYPE_F32}, 1),
                    A_INTS((int64_t[]){2}, 1), A_INTS(sizes, 2), A_STR(""));
  assert_int_equal(b.status, STATUS_OK);
  NodeId call = value_def(s.g, y);
  assert_null(delegate_fault(s.g, call, false, &arena));
  const char *fault = delegate_fault(s.g, call, true, &arena);
  assert_non_null(fault);
  assert_string_equal(fault, "it has too few rows");
  arena_release(&arena);
  sample_release(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_needs),
      cmocka_unit_test(test_describe),
      cmocka_unit_test(test_sizes),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
