/* Overlaps of blocks, against all pairs. */
#include "unit.h"

#include "ir/overlap.h"

enum { BLOCKS = 60, TIMES = 20 };

typedef struct Found {
  uint32_t with[BLOCKS]; /* other + 1 */
} Found;

static void note(void *user, uint32_t block, uint32_t other) {
  Found *f = user;
  assert_int_equal(f->with[block], 0);
  f->with[block] = other + 1;
}

static bool overlap(const MemoryBlock *a, const MemoryBlock *b) {
  return a->size && b->size && a->arena == b->arena && a->begin <= b->end && b->begin <= a->end &&
         a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

static bool earlier(const MemoryBlock *blocks, uint32_t a, uint32_t b) {
  return blocks[a].begin < blocks[b].begin || (blocks[a].begin == blocks[b].begin && a < b);
}

static void test_against_pairs(void **state) {
  uint64_t random = 88172645463325252u;
  for (uint32_t round = 0; round < 300; round++) {
    MemoryBlock blocks[BLOCKS];
    Found found = {0};
    Arena arena = {0};
    uint32_t count = 1 + round % BLOCKS;
    for (uint32_t i = 0; i < count; i++) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      uint32_t begin = (uint32_t)(random >> 33) % TIMES;
      uint32_t end = begin + (uint32_t)(random >> 40) % 4;
      blocks[i] = (MemoryBlock){.offset = (random >> 45) % (10 * count),
                                .size = (random >> 52) % 12,
                                .arena = (uint32_t)(random >> 60) % 2,
                                .begin = begin,
                                .end = end < TIMES ? end : TIMES - 1};
    }
    overlap_find(blocks, count, TIMES, &arena, note, &found);
    for (uint32_t i = 0; i < count; i++) {
      bool any = false;
      for (uint32_t k = 0; k < count; k++)
        any |= k != i && earlier(blocks, k, i) && overlap(&blocks[i], &blocks[k]);
      assert_int_equal(found.with[i] != 0, any);
      if (found.with[i])
        assert_true(overlap(&blocks[i], &blocks[found.with[i] - 1]));
    }
    arena_release(&arena);
  }
}

/* A block whose end does not fit 64 bits reaches to the last byte. */
static void test_end_of_memory(void **state) {
  Arena arena = {0};
  Found found = {0};
  const MemoryBlock blocks[] = {{.offset = UINT64_MAX - 7, .size = 100},
                                {.offset = UINT64_MAX - 3, .size = 2}};
  overlap_find(blocks, 2, 1, &arena, note, &found);
  assert_int_equal(found.with[1], 1);
  arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_pairs),
                                     cmocka_unit_test(test_end_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
