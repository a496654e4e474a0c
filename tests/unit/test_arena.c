/* Arena and pools: alignment, zeroing, growth in place, big blocks, reset, and what happens when
 * memory runs out. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/arena.h"
#include "support/bitset.h"

static void test_alloc(void **state) {
  Arena arena = {0};
  char *before = NULL;
  for (size_t size = 0; size < 3000; size++) {
    char *p = arena_alloc(&arena, size);
    assert_true((uintptr_t)p % 16 == 0);
    assert_true(p != before);
    memset(p, 0x5a, size);
    before = p;
  }
  arena_release(&arena);
  assert_null(arena.blocks);
  assert_true(arena.total == 0);
}

static void test_blocks_do_not_overlap(void **state) {
  Arena arena = {0};
  enum { COUNT = 400 };
  unsigned char *blocks[COUNT];
  size_t sizes[COUNT];
  for (size_t i = 0; i < COUNT; i++) {
    sizes[i] = i * i * 7 % 5000 + (i % 50 == 0 ? 400000 : 0);
    blocks[i] = arena_alloc(&arena, sizes[i]);
    memset(blocks[i], (int)(i % 251), sizes[i]);
  }
  for (size_t i = 0; i < COUNT; i++)
    for (size_t j = 0; j < sizes[i]; j++)
      assert_int_equal(blocks[i][j], i % 251);
  arena_release(&arena);
}

static void test_calloc_is_zero_after_reset(void **state) {
  Arena arena = {0};
  for (int round = 0; round < 3; round++) {
    memset(arena_alloc(&arena, 50000), 0xff, 50000);
    unsigned char *zeros = arena_calloc(&arena, 300, 100);
    for (size_t i = 0; i < 30000; i++)
      assert_int_equal(zeros[i], 0);
    size_t total = arena.total;
    arena_reset(&arena);
    assert_true(arena.total <= total);
    assert_true(arena.total <= 2 << 20);
  }
  arena_alloc(&arena, 10 << 20);
  assert_true(arena.total > 10 << 20);
  arena_reset(&arena);
  assert_true(arena.total <= 2 << 20);
  arena_release(&arena);
}

static void test_reset_of_one_big_block(void **state) {
  Arena arena = {0};
  arena_alloc(&arena, 5 << 20);
  arena_reset(&arena);
  memset(arena_alloc(&arena, 100), 1, 100);
  arena_reset(&arena);
  arena_release(&arena);
}

static void test_grow(void **state) {
  Arena arena = {0};
  char *p = arena_alloc(&arena, 10);
  memcpy(p, "123456789", 10);
  char *grown = arena_grow(&arena, p, 10, 1000);
  assert_ptr_equal(grown, p); /* the last allocation grows where it is */
  arena_alloc(&arena, 1);
  char *moved = arena_grow(&arena, grown, 1000, 2000);
  assert_ptr_not_equal(moved, grown);
  assert_string_equal(moved, "123456789");
  moved = arena_grow(&arena, moved, 2000, 3 << 20);
  assert_string_equal(moved, "123456789");
  assert_ptr_equal(arena_grow(&arena, moved, 3 << 20, 5), moved);
  assert_non_null(arena_grow(&arena, NULL, 0, 16));
  /* In steps over many blocks: never past the end of one. */
  char *text = NULL;
  for (size_t size = 1; size < 200000; size += 5000) {
    text = arena_grow(&arena, text, size == 1 ? 0 : size - 5000, size);
    assert_true(text + size <= arena.next && arena.next <= arena.end);
    memset(text, 'x', size);
  }
  arena_release(&arena);
}

static void test_strings(void **state) {
  Arena arena = {0};
  assert_string_equal(arena_strdup(&arena, (StrView){"abcdef", 3}), "abc");
  assert_string_equal(arena_strdup(&arena, (StrView){NULL, 0}), "");
  assert_string_equal(arena_printf(&arena, "%s-%d", "x", 12), "x-12");
  arena_release(&arena);
}

static void test_pool(void **state) {
  uint32_t capacity = 0;
  uint64_t *items = NULL;
  for (uint32_t i = 0; i < 1000; i++) {
    items = pool_reserve(items, &capacity, (uint64_t)i + 1, sizeof *items);
    assert_true(capacity > i);
    items[i] = i * 3;
  }
  for (uint32_t i = 0; i < 1000; i++)
    assert_int_equal(items[i], i * 3);
  uint32_t before = capacity;
  assert_ptr_equal(pool_reserve(items, &capacity, 5, sizeof *items), items);
  assert_int_equal(capacity, before);
  xfree(items);
}

static void test_bitset(void **state) {
  Arena arena = {0};
  Bitset set = bitset_make(&arena, 200);
  for (uint32_t i = 0; i < 200; i += 7)
    bitset_add(&set, i);
  bitset_remove(&set, 63);
  for (uint32_t i = 0; i < 200; i++)
    assert_int_equal(bitset_has(&set, i), i % 7 == 0 && i != 63);
  arena_release(&arena);
}

/* Runs body in a child without output; its exit status, or -1 after a signal. */
static int exit_status_of(void (*body)(void)) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    if (!freopen("/dev/null", "w", stderr))
      _exit(99);
    body();
    _exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void ask_overflow(void) {
  Arena arena = {0};
  arena_calloc(&arena, SIZE_MAX / 2, 3);
}
static void ask_too_much(void) {
  Arena arena = {0};
  arena_alloc(&arena, SIZE_MAX - 4);
}
static void ask_pool(void) {
  uint32_t capacity = 0;
  pool_reserve(NULL, &capacity, (uint64_t)UINT32_MAX + 1, 1);
}
static void ask_bug(void) { BUG("on %s", "purpose"); }

static void test_exits(void **state) {
  assert_int_equal(exit_status_of(ask_overflow), 1);
  assert_int_equal(exit_status_of(ask_too_much), 1);
  assert_int_equal(exit_status_of(ask_pool), 1);
  assert_int_equal(exit_status_of(ask_bug), 70);
}

#ifdef ETC_TEST_ALLOC
static void ask_little(void) {
  setenv("ETC_FAIL_ALLOC", "1000000", 1);
  Arena arena = {0};
  for (int i = 0; i < 4; i++)
    arena_alloc(&arena, 1 << 19);
  arena_release(&arena);
}
static void ask_until_failure(void) {
  setenv("ETC_FAIL_ALLOC", "1000", 1);
  for (int i = 0; i < 1000; i++)
    xfree(xrealloc(NULL, 10));
}
static void test_fail_alloc(void **state) {
  assert_int_equal(exit_status_of(ask_little), 0);
  assert_int_equal(exit_status_of(ask_until_failure), 1);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_alloc),
      cmocka_unit_test(test_blocks_do_not_overlap),
      cmocka_unit_test(test_calloc_is_zero_after_reset),
      cmocka_unit_test(test_reset_of_one_big_block),
      cmocka_unit_test(test_grow),
      cmocka_unit_test(test_strings),
      cmocka_unit_test(test_pool),
      cmocka_unit_test(test_bitset),
      cmocka_unit_test(test_exits),
#ifdef ETC_TEST_ALLOC
      cmocka_unit_test(test_fail_alloc),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
