/* Names in C, and what the runtime takes to load a method: the bytes for pointers of 8 bytes are
 * those that ExecuTorch 1.4.1 takes (tests/pte/runtime_memory.py). */
#include "temp_file.h"

#include "../pte/maker.h"
#include "pte/embed.h"
#include "pte/emit.h"
#include "pte/runtime_memory.h"

static void test_symbols(void **state) {
  static const struct {
    const char *path, *symbol;
  } cases[] = {{"model.pte", "model_pte"},
               {"/a b/c/Net-2.v1.pte", "Net_2_v1_pte"},
               {"2d.pte", "_2d_pte"},
               {"\xc3\xa9.pte", "c3a9_pte"},
               {"\xc3\xa8.pte", "c3a8_pte"},
               {"x/", "_"},
               {"int", "int"}};
  Arena arena = {0};
  for (size_t i = 0; i < COUNT_OF(cases); i++)
    assert_string_equal(embed_symbol(&arena, sv_from(cases[i].path)), cases[i].symbol);
  arena_release(&arena);
}

static void test_identifiers(void **state) {
  static const char *const good[] = {"a", "_", "model_pte", "A9", "Int", "mains"};
  static const char *const bad[] = {"", "9a", "a-b", "a b", "\xc3\xa9", "int", "main", "xor_eq"};
  for (size_t i = 0; i < COUNT_OF(good); i++)
    assert_true(embed_is_identifier(sv_from(good[i])));
  for (size_t i = 0; i < COUNT_OF(bad); i++)
    assert_false(embed_is_identifier(sv_from(bad[i])));
}

static void test_alignment(void **state) {
  static const struct {
    PteSegment segments[2];
    uint64_t alignment;
  } cases[] = {{{{256, 10}, {384, 10}}, 128},
               {{{256, 10}, {320, 10}}, 64},
               {{{256, 10}, {300, 10}}, 16},
               {{{256, 10}, {300, 0}}, 128},
               {{{300, 0}, {0, 0}}, 16}};
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    PteSegment segments[2] = {cases[i].segments[0], cases[i].segments[1]};
    PteProgram p = {.segments = segments, .segment_count = 2};
    assert_int_equal(embed_alignment(&p), cases[i].alignment);
  }
}

typedef struct Expected {
  void (*make)(Maker *m);
  uint32_t method;
  RuntimeMemory words4, words8;
} Expected;

static void check_memory(const Expected *e) {
  Capture capture;
  Context ctx;
  capture_init(&capture);
  context_init(&ctx, &capture.sink);
  char path[] = "/tmp/etc-test-XXXXXX";
  make_file(path);
  Maker m = {.ctx = &ctx};
  e->make(&m);
  PteProgram p;
  assert_int_equal(pte_emit(m.graphs, m.count, ctx.sink, path, (EmitOptions){0}), STATUS_OK);
  assert_int_equal(pte_program_open(&p, ctx.sink, path), STATUS_OK);
  RuntimeMemory words4 = pte_runtime_memory(&p.methods[e->method], 4),
                words8 = pte_runtime_memory(&p.methods[e->method], 8);
  assert_int_equal(words4.method, e->words4.method);
  assert_int_equal(words4.temp, e->words4.temp);
  assert_int_equal(words8.method, e->words8.method);
  assert_int_equal(words8.temp, e->words8.temp);
  pte_program_close(&p);
  for (uint32_t i = 0; i < m.count; i++)
    graph_free(m.graphs[i]);
  unlink(path);
  context_release(&ctx);
  capture_release(&capture);
}

static void test_memory(void **state) {
  static const Expected cases[] = {
      {sample_add, 0, {240, 68}, {384, 128}},     {sample_constants, 0, {956, 68}, {1576, 128}},
      {sample_shapes, 0, {792, 78}, {1296, 150}}, {sample_dynamic, 0, {536, 42}, {824, 78}},
      {sample_methods, 1, {324, 64}, {536, 124}}, {sample_factories, 0, {600, 64}, {984, 124}},
      {sample_control, 0, {568, 64}, {952, 124}}, {sample_states, 0, {1200, 64}, {2008, 124}}};
  for (size_t i = 0; i < COUNT_OF(cases); i++)
    check_memory(&cases[i]);
}

/* Lists, delegates with specs, external constants and the kernel with temporary memory: counted by
 * hand. */
static void test_memory_of_values(void **state) {
  PteTensor planned = {.rank = 2, .sizes = {3, 100}, .memory_id = 1}, external = {.external = true};
  PteValue values[] = {{.kind = PTE_TENSOR, .tensor = &planned},
                       {.kind = PTE_TENSOR, .tensor = &external},
                       {.kind = PTE_INT_LIST, .count = 3},
                       {.kind = PTE_TENSOR_LIST, .count = 2},
                       {.kind = PTE_OPTIONAL_TENSOR_LIST, .count = 2},
                       {.kind = PTE_STRING},
                       {.kind = PTE_NULL}};
  int32_t args[] = {0, 6};
  StrView operators[] = {SV("aten::topk.values")};
  PteInstruction instructions[] = {{.kind = PTE_KERNEL_CALL, .count = 2, .args = args},
                                   {.kind = PTE_MOVE_CALL, .count = 2, .args = args}};
  PteDelegate delegates[] = {{.spec_count = 2}};
  PteMethod m = {.values = values,
                 .value_count = COUNT_OF(values),
                 .operators = operators,
                 .operator_count = 1,
                 .delegates = delegates,
                 .delegate_count = 1,
                 .instructions = instructions,
                 .instruction_count = 2};
  RuntimeMemory words8 = pte_runtime_memory(&m, 8), words4 = pte_runtime_memory(&m, 4);
  /* values, external, tensors, int list, tensor list, optional list, string */
  assert_int_equal(words8.method, 112 + 48 + (8 + 64) + 64 + (24 + 24 + 24) + (32 + 24) +
                                      (16 + 32 + 24) + 16 +
                                      /* delegate, specs, chain, functions, spans, arguments */
                                      56 + 48 + 32 + 16 + 32 + 16);
  assert_int_equal(words4.method, 112 + 40 + (8 + 32) + 32 + (12 + 4 + 24 + 12) + (16 + 12) +
                                      (8 + 16 + 12) + 8 + 4 + 40 + 24 + 16 + 8 + 16 + 8);
  assert_int_equal(words8.temp, 1600);
  assert_int_equal(words4.temp, 1600);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_symbols), cmocka_unit_test(test_identifiers),
      cmocka_unit_test(test_alignment), cmocka_unit_test(test_memory),
      cmocka_unit_test(test_memory_of_values)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
