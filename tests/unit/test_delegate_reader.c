/* Readers of plug-ins: whose code runs while an answer that leads nowhere is checked. */
#include "unit.h"

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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_needs),
      cmocka_unit_test(test_describe),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
