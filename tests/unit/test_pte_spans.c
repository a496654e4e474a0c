/* When tensors of a plan are in use: what is one piece of memory counts once. */
#include "unit.h"

#include "pte/inspect_internal.h"

static uint64_t peak(PteSpan *spans, uint32_t count, uint32_t left) {
  Arena arena = {0};
  PteSpans s = {.spans = spans, .count = count};
  spans_merge(&s, &arena);
  assert_int_equal(s.count, left);
  uint64_t bytes = spans_peak(s.spans, s.count, &arena).bytes;
  arena_release(&arena);
  return bytes;
}

#define SPAN(offset_, size_, begin_, end_, read_)                                                  \
  {                                                                                                \
    .offset = (offset_), .size = (size_), .arena = 1, .begin = (begin_), .end = (end_),            \
    .read = (read_)                                                                                \
  }

static void tensors_that_take_turns(void **state) {
  PteSpan spans[] = {SPAN(0, 64, 2, 3, false), SPAN(64, 32, 3, 5, false), SPAN(0, 64, 4, 6, false)};
  assert_int_equal(peak(spans, 3, 3), 96);
}

static void written_over_in_place(void **state) {
  PteSpan spans[] = {SPAN(0, 64, 2, 3, false), SPAN(0, 64, 3, 4, false)};
  assert_int_equal(peak(spans, 2, 1), 64);
}

/* The view begins where another tensor was, which it has nothing to do with. */
static void view_of_a_part(void **state) {
  PteSpan spans[] = {SPAN(64, 16, 2, 2, false), SPAN(0, 128, 4, 5, false), SPAN(64, 64, 9, 9, true),
                     SPAN(128, 128, 6, 7, false)};
  assert_int_equal(peak(spans, 4, 3), 256);
}

/* A concatenation whose operands are written where it lies. */
static void whole_of_parts(void **state) {
  PteSpan spans[] = {SPAN(0, 64, 2, 2, false), SPAN(64, 64, 3, 3, false), SPAN(0, 128, 4, 6, true),
                     SPAN(128, 64, 5, 5, false)};
  assert_int_equal(peak(spans, 4, 2), 192);
}

/* The part that was written first is not the one that lies first. */
static void parts_from_the_end(void **state) {
  PteSpan spans[] = {SPAN(64, 64, 2, 10, false), SPAN(0, 64, 8, 10, false),
                     SPAN(0, 128, 9, 10, true), SPAN(128, 64, 2, 3, false)};
  assert_int_equal(peak(spans, 4, 2), 192);
}

/* Another arena has the same offsets. */
static void arenas_of_their_own(void **state) {
  PteSpan spans[] = {SPAN(0, 64, 2, 5, false), SPAN(0, 64, 3, 5, false)};
  spans[1].arena = 2;
  assert_int_equal(peak(spans, 2, 2), 128);
}

/* A kernel with three results names them, and then a list of them: it reads its first argument. */
static void results_in_a_list(void **state) {
  PteTensor tensors[4];
  PteValue values[5] = {0};
  for (uint32_t i = 0; i < 4; i++) {
    tensors[i] = (PteTensor){.memory_id = 1, .offset = 64 * i, .bytes = 64};
    values[i] = (PteValue){.kind = PTE_TENSOR, .tensor = &tensors[i]};
  }
  int32_t results[] = {1, 2, 3}, args[] = {0, 1, 2, 3, 4}, inputs[] = {0}, outputs[] = {1};
  values[4] = (PteValue){.kind = PTE_TENSOR_LIST, .indices = results, .count = 3};
  PteInstruction call = {.kind = PTE_KERNEL_CALL, .args = args, .count = 5};
  PteMethod m = {.values = values,
                 .value_count = 5,
                 .instructions = &call,
                 .instruction_count = 1,
                 .inputs = inputs,
                 .outputs = outputs,
                 .input_count = 1,
                 .output_count = 1};
  Arena arena = {0};
  PteSpans s = method_spans(&m, &arena);
  assert_int_equal(s.count, 4);
  for (uint32_t i = 0; i < s.count; i++)
    assert_false(s.spans[i].read);
  arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tensors_that_take_turns), cmocka_unit_test(written_over_in_place),
      cmocka_unit_test(view_of_a_part),          cmocka_unit_test(whole_of_parts),
      cmocka_unit_test(parts_from_the_end),      cmocka_unit_test(arenas_of_their_own),
      cmocka_unit_test(results_in_a_list),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
