/* The figures of the inspect report on programs whose figures are known, in both forms. */
#include "pte_fixture.h"

#include "pte/inspect.h"

/* x, sum over x later, relu in place, gelu: three of 32 bytes at the busiest call, one relu taken
 * twice would make four. */
static void test_text(void **state) {
  Fixture *f = *state;
  PteProgram p;
  open_sample(f, sample_constants, &p);
  pte_inspect_text(&p, true, &f->out);
  const char *text = strbuf_cstr(&f->out);
  assert_contains(text, "constants: 5 tensors, 84 bytes; 3 different, 36 bytes");
  assert_contains(text, "segment 0: 48 bytes");
  assert_contains(text, "operator libraries: portable\n");
  assert_contains(text, "input 0: f32[2, 3]\n");
  assert_contains(text, "16 values, 6 instructions: 6 kernel calls");
  assert_contains(text, "arena 1: 192 bytes");
  assert_contains(text,
                  "in use at once: 96 bytes at least; the arenas have 96 bytes (100.0 %) more");
  assert_contains(text, "       2  aten::add.out\n       1  aten::cat.out\n");
  pte_program_close(&p);
}

static void test_json(void **state) {
  Fixture *f = *state;
  PteProgram p;
  open_sample(f, sample_dynamic, &p);
  pte_inspect_json(&p, &f->out);
  const char *text = strbuf_cstr(&f->out);
  assert_contains(text, "\"dynamic\": true");
  assert_contains(text, "\"kernel_calls\": 5");
  assert_contains(text, "\"live_peak_bytes\": 256");
  assert_contains(text, "\"gap_bytes\": 128");
  assert_contains(text, "\"name\": \"executorch_prim::et_view.default\"");
  assert_contains(text,
                  "\"libraries\": [\n    \"portable\"\n  ]"); /* prim ops are part of the runtime */
  pte_program_close(&p);
}

/* x, exp and neg of 16 bytes a row: two of them at once, then all is 2 * 16 * 8 at the bound. */
static void test_by_dim(void **state) {
  Fixture *f = *state;
  PteProgram p;
  open_sample(f, sample_dynamic, &p);
  pte_inspect_text(&p, true, &f->out);
  assert_contains(strbuf_cstr(&f->out), "in use at once: 256 bytes");
  assert_contains(strbuf_cstr(&f->out),
                  "    input 0 dim 0: 1 -> 32 bytes, 2 -> 64, 4 -> 128, 6 -> 192, 8 -> 256; "
                  "at these 0 + 32 * dim\n");
  pte_program_close(&p);
}

static void test_methods(void **state) {
  Fixture *f = *state;
  PteProgram p;
  open_sample(f, sample_methods, &p);
  pte_inspect_text(&p, true, &f->out);
  assert_contains(strbuf_cstr(&f->out), "method 'forward'");
  assert_contains(strbuf_cstr(&f->out), "method 'twice'");
  assert_contains(strbuf_cstr(&f->out), "constants: 2 tensors, 24 bytes; 1 different, 12 bytes");
  pte_program_close(&p);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {TEST(test_text), TEST(test_json), TEST(test_by_dim),
                                     TEST(test_methods)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
