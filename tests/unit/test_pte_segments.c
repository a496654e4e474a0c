/* Places of the segments of a program. */
#include "pte/segments.h"
#include "unit.h"

enum { SIZE = 4000 };

static Constant bytes_of(uint8_t *data, uint8_t fill) {
  memset(data, fill, SIZE);
  return (Constant){.data = data, .size = SIZE};
}

/* Data that kernels and a delegate read are stored once; the bytes of delegates never are shared
 * with them. */
static void named_data_share_constants(void **state) {
  uint8_t a[SIZE], same[SIZE], other[SIZE];
  Arena arena = {0};
  ConstantPool pool;
  constant_pool_init(&pool, 1);
  SegmentList list;
  segments_init(&list, &arena, 1);
  uint32_t item = constant_pool_add(&pool, bytes_of(a, 7));
  assert_int_equal(constant_pool_find(&pool, bytes_of(same, 7)), item);
  assert_int_equal(constant_pool_find(&pool, bytes_of(other, 8)), 0);
  assert_true(segments_add_named(&list, SV("same"), bytes_of(same, 7)));
  assert_true(segments_add_named(&list, SV("other"), bytes_of(other, 8)));
  segments_add_blob(&list, bytes_of(a, 7));

  uint64_t used = constant_pool_size(&pool), size = segments_place(&list, &pool, used);
  assert_true(list.items[0].shared);
  assert_int_equal(list.items[0].offset, constant_pool_offset(&pool, item));
  assert_false(list.items[1].shared);
  assert_true(list.items[1].offset >= used);
  assert_false(list.items[2].shared);
  assert_true(list.items[2].offset >= list.items[1].offset + SIZE);
  assert_int_equal(size, list.items[2].offset + SIZE);

  segments_release(&list);
  constant_pool_release(&pool);
  arena_release(&arena);
}

/* Delegates with equal bytes have one segment. */
static void equal_blobs_are_one_segment(void **state) {
  uint8_t a[SIZE], same[SIZE], other[SIZE];
  Arena arena = {0};
  SegmentList list;
  segments_init(&list, &arena, 1);
  uint32_t first = segments_add_blob(&list, bytes_of(a, 7));
  assert_int_equal(first, SEGMENTS_FIRST);
  assert_int_equal(segments_add_blob(&list, bytes_of(other, 8)), SEGMENTS_FIRST + 1);
  assert_int_equal(segments_add_blob(&list, bytes_of(same, 7)), first);
  assert_int_equal(list.count, 2);
  Constant shorter = bytes_of(same, 7);
  shorter.size--;
  assert_int_equal(segments_add_blob(&list, shorter), SEGMENTS_FIRST + 2);
  segments_release(&list);
  arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(named_data_share_constants),
                                     cmocka_unit_test(equal_blobs_are_one_segment)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
