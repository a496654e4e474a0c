/* The line of a program that names its memory banks and their alignment: what is written is read
 * back, and text that is anything else gives no banks. */
#include "unit.h"

#include "pte/banks.h"

static uint32_t count_of(const char *text, uint32_t most, Arena *arena) {
  uint32_t count = 77, alignment = 77;
  MemoryBank *banks = banks_parse(sv_from(text), most, arena, &count, &alignment);
  assert_true((banks != NULL) == (count != 0));
  assert_int_equal(alignment, 0);
  return count;
}

static void test_round_trip(void **state) {
  Arena arena = {0};
  StrBuf text = {0};
  uint32_t count, alignment;
  Graph g = {.bank_count = 2};
  MemoryBank given[] = {{SV("sram"), 524288}, {SV("dram"), UINT64_MAX}};
  g.banks = given;
  banks_print(&g, &text);
  MemoryBank *banks = banks_parse((StrView){text.data, text.size}, 8, &arena, &count, &alignment);
  assert_int_equal(count, 2);
  assert_int_equal(alignment, 0);
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
  uint32_t count = 1, alignment = 1;
  assert_null(banks_parse((StrView){0}, 8, &arena, &count, &alignment));
  assert_int_equal(count + alignment, 0);
  static char longest[4098] = "etc: ";
  memset(longest + 5, 'a', 4096 - 7);
  memcpy(longest + 4094, "=1", 2);
  assert_int_equal(count_of(longest, 8, &arena), 1); /* 4096 bytes */
  memcpy(longest + 4094, "a=1", 3);
  assert_int_equal(count_of(longest, 8, &arena), 0);
  arena_release(&arena);
}

static uint32_t alignment_of(const char *text, uint32_t banks, Arena *arena) {
  uint32_t count, alignment;
  (void)banks_parse(sv_from(text), 8, arena, &count, &alignment);
  assert_int_equal(count, banks);
  return alignment;
}

static void test_alignment(void **state) {
  Arena arena = {0};
  StrBuf text = {0};
  MemoryBank bank = {SV("sram"), 5};
  banks_print(&(Graph){.arena_alignment = 64}, &text);
  assert_string_equal(strbuf_cstr(&text), "etc: 64");
  strbuf_clear(&text);
  banks_print(&(Graph){.arena_alignment = 4096, .banks = &bank, .bank_count = 1}, &text);
  assert_string_equal(strbuf_cstr(&text), "etc: 4096 sram=5");
  assert_int_equal(alignment_of("etc: 64", 0, &arena), 64);
  assert_int_equal(alignment_of("etc: 4096 sram=5", 1, &arena), 4096);
  static const char *const wrong[] = {"etc: 63",      "etc: 0",   "etc: -64",
                                      "etc: 2097152", "etc: 64 ", "etc: 64 a"};
  for (size_t i = 0; i < COUNT_OF(wrong); i++)
    assert_int_equal(alignment_of(wrong[i], 0, &arena), 0);
  strbuf_release(&text);
  arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                     cmocka_unit_test(test_alignment),
                                     cmocka_unit_test(test_other_texts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
