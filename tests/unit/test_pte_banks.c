/* The line of a program that names its memory banks: what is written is read back, and text that
 * is anything else gives no banks. */
#include "unit.h"

#include "pte/banks.h"

static uint32_t count_of(const char *text, uint32_t most, Arena *arena) {
  uint32_t count = 77;
  MemoryBank *banks = banks_parse(sv_from(text), most, arena, &count);
  assert_true((banks != NULL) == (count != 0));
  return count;
}

static void test_round_trip(void **state) {
  Arena arena = {0};
  StrBuf text = {0};
  uint32_t count;
  Graph g = {.bank_count = 2};
  MemoryBank given[] = {{SV("sram"), 524288}, {SV("dram"), UINT64_MAX}};
  g.banks = given;
  banks_print(&g, &text);
  MemoryBank *banks = banks_parse((StrView){text.data, text.size}, 8, &arena, &count);
  assert_int_equal(count, 2);
  for (uint32_t i = 0; i < count; i++) {
    assert_true(sv_eq(banks[i].name, given[i].name));
    assert_true(banks[i].size == given[i].size);
  }
  assert_int_equal(count_of(strbuf_cstr(&text), 2, &arena), 2);
  strbuf_release(&text);
  arena_release(&arena);
}

static void test_other_texts(void **state) {
  Arena arena = {0};
  assert_int_equal(count_of("etc: a=1", 8, &arena), 1);
  assert_int_equal(count_of("etc: a=1 b=2 c=3", 3, &arena), 3);
  static const char *const wrong[] = {"",
                                      "etc",
                                      "etc:",
                                      "etc: ",
                                      "etc:a=1",
                                      "etc; a=1",
                                      "etc: a",
                                      "etc: =1",
                                      "etc: a=",
                                      "etc: a=x",
                                      "etc: a=-1",
                                      "etc: a=1 ",
                                      "etc: a=1x",
                                      "etc: a=1\tb=2",
                                      "etc:  a=1",
                                      "etc: a=1  b=2",
                                      "etc: a 1=2",
                                      "xetc: a=1",
                                      "etc: a=18446744073709551616"};
  for (size_t i = 0; i < COUNT_OF(wrong); i++)
    if (count_of(wrong[i], 8, &arena))
      fail_msg("'%s' names banks", wrong[i]);
  assert_int_equal(count_of("etc: a=1 b=2 c=3", 2, &arena), 0); /* more than there may be */
  uint32_t count = 1;
  assert_null(banks_parse((StrView){0}, 8, &arena, &count));
  assert_int_equal(count, 0);
  static char longest[4098] = "etc: ";
  memset(longest + 5, 'a', 4096 - 7);
  memcpy(longest + 4094, "=1", 2);
  assert_int_equal(count_of(longest, 8, &arena), 1); /* 4096 bytes */
  memcpy(longest + 4094, "a=1", 3);
  assert_int_equal(count_of(longest, 8, &arena), 0);
  arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                     cmocka_unit_test(test_other_texts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
