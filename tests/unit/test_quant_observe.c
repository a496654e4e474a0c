/* Which values of a graph statistics are made of. */
#include "ir_graph.h"

#include "quant/observe.h"

static void test_values(void **state) {
  static const char text[] =
      "graph @forward level(aten) {\n"
      "  %0: f32[4] = input \"x\"\n"
      "  %1: i64[4] = input \"ids\"\n"
      "  %2: f32[4] = const [1.0, 2.0, 3.0, 4.0] \"w\"\n"
      "  %3: f32[4] = aten::add.Tensor(%0, %2)\n"
      "  %4: bool[4] = aten::gt.Tensor(%3, %2)\n"
      "  %5: i64[4] = aten::add.Tensor(%1, %1)\n"
      "  %6: f32[4] = quantized_decomposed::observe(%3, 0, none, -128, 127, false)\n"
      "  %7: f32[4] = aten::relu(%6)\n"
      "  output %7 \"y\", %4 \"above\", %5 \"twice\"\n"
      "}\n";
  Sample s;
  sample_parse(&s, text);
  Arena arena = {0};
  uint32_t count;
  ValueId *values = observe_values(s.g, &arena, &count);
  assert_int_equal(count, 3); /* neither ids, booleans, constants nor the mark */
  assert_int_equal(values[0], s.g->inputs[0]);
  assert_int_equal(node_cget(s.g, value_def(s.g, values[1]))->op, OP_ADD_TENSOR);
  assert_int_equal(node_cget(s.g, value_def(s.g, values[2]))->op, OP_RELU);
  for (uint32_t i = 0; i < count; i++)
    assert_true(observe_accepts(s.g, values[i]));
  assert_false(observe_accepts(s.g, s.g->inputs[1]));
  arena_release(&arena);
  sample_release(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_values)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
