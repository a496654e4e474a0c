/* Ranges of inputs as text: what is not exactly one of ours, or does not fit the inputs, is not
 * used. */
#include "pte/ranges.h"

#include "unit.h"

static const PteTensor dynamic = {.rank = 2, .sizes = {9, 3}, .dynamism = PTE_DYNAMIC_BOUND};
static const PteTensor fixed = {.rank = 1, .sizes = {9}, .dynamism = PTE_STATIC};

static PteRange **parse(const char *text, Arena *arena) {
  static PteValue values[] = {{.kind = PTE_TENSOR, .tensor = &dynamic},
                              {.kind = PTE_TENSOR, .tensor = &fixed}};
  static int32_t inputs[] = {0, 1};
  PteMethod m = {.values = values, .value_count = 2, .inputs = inputs, .input_count = 2};
  return ranges_parse(sv_from(text), &m, arena);
}

static void reads_ranges(void **state) {
  Arena arena = {0};
  PteRange **r = parse("etc: [1..9, 3] [9]", &arena);
  assert_non_null(r);
  assert_int_equal(r[0][0].lo, 1);
  assert_int_equal(r[0][0].hi, 9);
  assert_int_equal(r[0][1].lo, 3);
  assert_int_equal(r[1][0].hi, 9);
  arena_release(&arena);
}

static void refuses_other_text(void **state) {
  static const char *const texts[] = {
      "",
      "etc:",
      "etc: [1..9, 3]",
      "etc: [1..9, 3] [9] ",
      "etc: [1..9, 3] [9] [1]",
      "etc: [1..8, 3] [9]",
      "etc: [10..9, 3] [9]",
      "etc: [-1..9, 3] [9]",
      "etc: [1..9] [9]",
      "etc: [1..9, 3, 1] [9]",
      "etc: [1..9, 3] [1..9]",
      "etc: [1..9,3] [9]",
      "etc: [1.., 3] [9]",
      "etc: [99999999999999999999..9, 3] [9]",
      "[1, {\"type\": null, \"context\": null, \"children_spec\": []}]",
  };
  Arena arena = {0};
  for (size_t i = 0; i < COUNT_OF(texts); i++)
    if (parse(texts[i], &arena))
      fail_msg("taken: '%s'", texts[i]);
  arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_ranges),
      cmocka_unit_test(refuses_other_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
