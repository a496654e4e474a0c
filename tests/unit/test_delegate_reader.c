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

/* In the test itself: cmocka has a handler of its own before. */
static void await_crash(void) {
  signal(SIGSEGV, on_crash);
  running = at_crash = NULL;
}

static void test_needs(void **state) {
  Arena arena = {0};
  DelegateNeeds needed;
  await_crash();
  if (sigsetjmp(back, 1) == 0) {
    (void)reader_needs(&reader, NULL, 0, &arena, &needed);
    fail_msg("the keys were not read");
  }
  assert_string_equal(at_crash, "wild");
  arena_release(&arena);
}

static void test_describe(void **state) {
  Arena arena = {0};
  DelegateFigures figures;
  await_crash();
  if (sigsetjmp(back, 1) == 0) {
    (void)reader_describe(&reader, NULL, 0, &arena, &figures);
    fail_msg("the kinds of nodes were not read");
  }
  assert_string_equal(at_crash, "wild");
  arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_needs),
      cmocka_unit_test(test_describe),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
