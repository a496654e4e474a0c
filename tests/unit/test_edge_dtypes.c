/* legalize_dtypes: every kernel takes the graph afterwards, and the numbers are right: the graph
 * runs on the reference interpreter, on random bits, edge values among them. What is expected is
 * computed here, for single calls; otherwise it is what the graph gives before the pass (not for
 * u64 beyond 2^63, which the reference kernels take as negative). */
#include "unit.h"

#include <stdio.h>

#include "interp/interp.h"
#include "ir_graph.h"
#include "passes/pass.h"

enum { COUNT = 64 };

static uint64_t random_state = 88172645463325252u;
static uint64_t random_bits(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

/* Bits that are often near a border. */
static uint64_t number(unsigned bits) {
  static const uint64_t borders[] = {0, 1, 2, 3, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000};
  uint64_t v = random_bits();
  switch (random_bits() % 8) {
  case 0:
    v = borders[v % COUNT_OF(borders)];
    break;
  case 1:
    v = UINT64_MAX - v % 3;
    break;
  case 2:
    v = ((uint64_t)1 << 63) - 1 + v % 3;
    break;
  case 3:
    v >>= v % 63;
    break;
  default:
    break;
  }
  if (bits < 64)
    v &= ((uint64_t)1 << bits) - 1;
  return v;
}

static void fill(Tensor *t, bool not_zero, uint64_t limit) {
  unsigned size = dtype_size(t->dtype);
  for (int64_t i = 0; i < tensor_numel(t); i++) {
    uint64_t v = number(8 * size);
    v = limit ? v % limit : v;
    v = not_zero && v == 0 ? 1 : v;
    memcpy((uint8_t *)t->data + i * size, &v, size);
  }
}

static Status legalize(Sample *s) {
  Arena scratch = {0};
  PassOptions options = PASS_OPTIONS_DEFAULT;
  PassContext p = {.sink = &s->capture.sink, .scratch = &scratch, .options = &options};
  s->g->level = LEVEL_CORE;
  Status status = pass_legalize_dtypes(&p, s->g);
  s->g->level = LEVEL_EDGE;
  arena_release(&scratch);
  return status;
}

typedef struct Trial {
  Sample sample;
  Arena arena;
  Tensor inputs[4], outputs[4];
} Trial;

/* Random inputs of the graph's types. The first stays below x_limit, the second has no zeros and
 * stays below y_limit (0: any). */
static void trial_init(Trial *t, const char *text, uint64_t x_limit, uint64_t y_limit) {
  sample_parse(&t->sample, text);
  t->arena = (Arena){0};
  const Graph *g = t->sample.g;
  for (uint32_t i = 0; i < g->input_count; i++) {
    Tensor *in = &t->inputs[i];
    *in = interp_static_tensor(value_type(g, g->inputs[i]));
    in->capacity = tensor_bytes(in);
    in->data = arena_alloc(&t->arena, in->capacity);
    fill(in, i == 1, i == 1 ? y_limit : x_limit);
  }
}

static void trial_release(Trial *t) {
  arena_release(&t->arena);
  sample_release(&t->sample);
}

static void trial_run(Trial *t, const char *text) {
  Graph *g = t->sample.g;
  if (interp_run(g, t->inputs, g->input_count, &t->arena, t->outputs) != STATUS_OK)
    fail_msg("%s\n%s", sample_messages(&t->sample), text);
}

/* Whether the kernels take everything but views of another type, which need none in the end. */
static void check_kernels(Graph *g) {
  Arena scratch = {0};
  for (FOR_NODES(g, n)) {
    const OpRow *row = op_row(g->nodes[n].op);
    if (g->nodes[n].op == OP_VIEW_COPY_DTYPE)
      continue;
    for (uint32_t i = 0; i < g->nodes[n].arg_count; i++)
      if (node_arg(g, n, i)->kind == ARG_VALUE)
        assert_true(dtype_in(value_dtype(g, node_value(g, n, i)), row->dtypes));
    for (uint32_t i = 0; i < g->nodes[n].result_count; i++)
      assert_true(dtype_in(value_dtype(g, node_result(g, n, i)), row->dtypes));
    assert_true(!row->check || !row->check(g, n, &scratch));
  }
  arena_release(&scratch);
}

static void trial_legalize(Trial *t, const char *text) {
  Sample *s = &t->sample;
  if (graph_verify_kernels(s->g) == STATUS_OK)
    fail_msg("the kernels take this as it is:\n%s", text);
  strbuf_clear(&s->capture.text);
  if (legalize(s) != STATUS_OK || graph_verify(s->g, "legalize_dtypes") != STATUS_OK)
    fail_msg("%s\n%s", sample_messages(s), text);
  check_kernels(s->g);
  trial_run(t, text);
}

/* The same results before and after. */
static void check_text(const char *text, uint64_t x_limit, uint64_t y_limit) {
  Trial t;
  trial_init(&t, text, x_limit, y_limit);
  trial_run(&t, text);
  Tensor before[4];
  memcpy(before, t.outputs, sizeof before);
  trial_legalize(&t, text);
  for (uint32_t i = 0; i < graph_output_count(t.sample.g); i++) {
    assert_int_equal(before[i].dtype, t.outputs[i].dtype);
    assert_int_equal(tensor_bytes(&before[i]), tensor_bytes(&t.outputs[i]));
    if (memcmp(before[i].data, t.outputs[i].data, tensor_bytes(&before[i])) != 0)
      fail_msg("output %u differs:\n%s", i, text);
  }
  trial_release(&t);
}

static uint64_t element(const Tensor *t, int64_t i) {
  uint64_t v = 0;
  unsigned size = dtype_size(t->dtype);
  memcpy(&v, (const uint8_t *)t->data + i * size, size);
  return v;
}

typedef uint64_t Expected(uint64_t x, uint64_t y);

/* One call on x and y, both of an unsigned type; result: its type. */
static void check_call(const char *type, const char *result, const char *call, Expected *expected,
                       uint64_t y_limit) {
  char text[512];
  Trial t;
  snprintf(text, sizeof text,
           "graph @f level(core) {\n"
           "  %%0: %s[%d] = input \"x\"\n"
           "  %%1: %s[%d] = input \"y\"\n"
           "  %%2: %s[%d] = %s\n"
           "  output %%2 \"z\"\n}\n",
           type, COUNT, type, COUNT, result, COUNT, call);
  trial_init(&t, text, 0, y_limit);
  trial_legalize(&t, text);
  unsigned bits = 8 * dtype_size(t.outputs[0].dtype);
  uint64_t mask = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
  for (int64_t i = 0; i < COUNT; i++) {
    uint64_t x = element(&t.inputs[0], i), y = element(&t.inputs[1], i);
    uint64_t z = element(&t.outputs[0], i), wanted = expected(x, y) & mask;
    if (z != wanted)
      fail_msg("%llx, %llx: %llx instead of %llx in\n%s", (unsigned long long)x,
               (unsigned long long)y, (unsigned long long)z, (unsigned long long)wanted, text);
  }
  trial_release(&t);
}

static const char *const unsigned_types[] = {"u16", "u32", "u64"};

static uint64_t u_add(uint64_t x, uint64_t y) { return x + y; }
static uint64_t u_sub(uint64_t x, uint64_t y) { return x - y; }
static uint64_t u_mul(uint64_t x, uint64_t y) { return x * y; }
static uint64_t u_and(uint64_t x, uint64_t y) { return x & y; }
static uint64_t u_or(uint64_t x, uint64_t y) { return x | y; }
static uint64_t u_xor(uint64_t x, uint64_t y) { return x ^ y; }
static uint64_t u_not(uint64_t x, uint64_t y) { return (void)y, ~x; }
static uint64_t u_max(uint64_t x, uint64_t y) { return x > y ? x : y; }
static uint64_t u_min(uint64_t x, uint64_t y) { return x < y ? x : y; }
static uint64_t u_div(uint64_t x, uint64_t y) { return x / y; }
static uint64_t u_or7(uint64_t x, uint64_t y) { return (void)y, x | 7; }
static uint64_t u_lt(uint64_t x, uint64_t y) { return x < y; }
static uint64_t u_le(uint64_t x, uint64_t y) { return x <= y; }
static uint64_t u_gt(uint64_t x, uint64_t y) { return x > y; }
static uint64_t u_ge(uint64_t x, uint64_t y) { return x >= y; }
static uint64_t u_eq(uint64_t x, uint64_t y) { return x == y; }
static uint64_t u_ne(uint64_t x, uint64_t y) { return x != y; }
static uint64_t u_shl(uint64_t x, uint64_t y) { return x << y; }
static uint64_t u_shr(uint64_t x, uint64_t y) { return x >> y; }

typedef struct Call {
  const char *text;
  Expected *expected;
} Call;

static void test_binary(void **state) {
  static const Call same[] = {{"aten::add.Tensor(%0, %1)", u_add},
                              {"aten::sub.Tensor(%0, %1)", u_sub},
                              {"aten::mul.Tensor(%0, %1)", u_mul},
                              {"aten::bitwise_and.Tensor(%0, %1)", u_and},
                              {"aten::bitwise_or.Tensor(%0, %1)", u_or},
                              {"aten::bitwise_xor.Tensor(%0, %1)", u_xor},
                              {"aten::bitwise_not(%0)", u_not},
                              {"aten::maximum(%0, %1)", u_max},
                              {"aten::minimum(%0, %1)", u_min},
                              {"aten::floor_divide(%0, %1)", u_div},
                              {"aten::div.Tensor_mode(%0, %1, \"trunc\")", u_div},
                              {"aten::bitwise_or.Scalar(%0, 7)", u_or7},
                              {"aten::clamp.Tensor(%0, %1, none)", u_max}};
  static const Call compare[] = {
      {"aten::lt.Tensor(%0, %1)", u_lt}, {"aten::le.Tensor(%0, %1)", u_le},
      {"aten::gt.Tensor(%0, %1)", u_gt}, {"aten::ge.Tensor(%0, %1)", u_ge},
      {"aten::eq.Tensor(%0, %1)", u_eq}, {"aten::ne.Tensor(%0, %1)", u_ne}};
  for (size_t t = 0; t < COUNT_OF(unsigned_types); t++) {
    for (size_t i = 0; i < COUNT_OF(same); i++)
      for (unsigned round = 0; round < 4; round++)
        check_call(unsigned_types[t], unsigned_types[t], same[i].text, same[i].expected,
                   round % 2 ? 0 : 1000);
    for (size_t i = 0; i < COUNT_OF(compare); i++)
      check_call(unsigned_types[t], "bool", compare[i].text, compare[i].expected, 0);
  }
}

static void test_shifts(void **state) {
  for (size_t t = 0; t < COUNT_OF(unsigned_types); t++) {
    uint64_t width = (uint64_t)16 << t;
    check_call(unsigned_types[t], unsigned_types[t], "aten::bitwise_left_shift.Tensor(%0, %1)",
               u_shl, width);
    check_call(unsigned_types[t], unsigned_types[t], "aten::bitwise_right_shift.Tensor(%0, %1)",
               u_shr, width);
  }
}

static void test_conversions(void **state) {
  static const struct {
    const char *from, *to;
  } pairs[] = {{"u16", "i64"}, {"u16", "f32"},  {"u32", "f64"}, {"u32", "i16"},
               {"u64", "i64"}, {"u64", "bool"}, {"u64", "u8"},  {"u16", "u64"},
               {"u64", "u16"}, {"i32", "u16"},  {"i8", "u64"},  {"u32", "u16"}};
  for (size_t i = 0; i < COUNT_OF(pairs); i++) {
    char text[256];
    snprintf(text, sizeof text,
             "graph @f level(core) {\n"
             "  %%0: %s[64] = input \"x\"\n"
             "  %%1: %s[64] = aten::_to_copy(%%0, %s)\n"
             "  output %%1 \"z\"\n}\n",
             pairs[i].from, pairs[i].to, pairs[i].to);
    check_text(text, 0, 0);
  }
}

/* Lists, several results, indices beside the values, literals beyond the signed range. */
static void test_forms(void **state) {
  for (size_t t = 0; t < COUNT_OF(unsigned_types); t++) {
    char text[1024];
    const char *u = unsigned_types[t];
    snprintf(text, sizeof text,
             "graph @f level(core) {\n"
             "  %%0: %s[4, 4] = input \"x\"\n"
             "  %%1: %s[4, 4] = input \"y\"\n"
             "  %%2: %s[8, 4] = aten::cat([%%0, %%1], 0)\n"
             "  %%3: %s[8, 2], %%4: i64[8, 2] = aten::topk(%%2, 2, 1, true, true)\n"
             "  %%5: %s[8, 4] = aten::constant_pad_nd(%%3, [1, 1], 65535)\n"
             "  output %%2 \"a\", %%3 \"b\", %%5 \"c\"\n}\n",
             u, u, u, u, u);
    check_text(text, (uint64_t)1 << 63, (uint64_t)1 << 63);
  }
}

/* f16 by way of f32, small integers and bool by way of wider ones. */
static void test_wider(void **state) {
  Trial t;
  const char *text = "graph @f level(core) {\n"
                     "  %0: f16[64] = input \"x\"\n"
                     "  %1: bool[1, 1, 4, 4] = input \"b\"\n"
                     "  %2: i32[1, 1, 4, 4] = input \"i\"\n"
                     "  %3: f16[64] = aten::sigmoid(%0)\n"
                     "  %4: f16[64] = aten::logit(%3)\n"
                     "  %5: bool[1, 1, 2, 2], %6: i64[1, 1, 2, 2] = "
                     "aten::max_pool2d_with_indices(%1, [2, 2], [2, 2])\n"
                     "  %7: i32[1, 1, 2, 2] = aten::avg_pool2d(%2, [2, 2], [2, 2])\n"
                     "  output %3 \"p\", %4 \"f\", %5 \"b\", %7 \"i\"\n}\n";
  trial_init(&t, text, 0x7c00, 2);
  trial_legalize(&t, text);
  for (int64_t i = 0; i < 64; i++) { /* logit(sigmoid(x)) is about x where p is not near 0 or 1 */
    double x = tensor_load(&t.inputs[0], i), y = tensor_load(&t.outputs[1], i);
    assert_true(x > 2 || (y > x - 0.05 && y < x + 0.05));
  }
  for (int64_t i = 0; i < 4; i++) {
    bool any = false;
    int64_t sum = 0;
    for (int64_t k = 0; k < 4; k++) {
      int64_t at = i / 2 * 8 + i % 2 * 2 + k / 2 * 4 + k % 2;
      any |= tensor_load_int(&t.inputs[1], at) != 0;
      sum += tensor_load_int(&t.inputs[2], at);
    }
    assert_int_equal(tensor_load_int(&t.outputs[2], i), any);
    assert_int_equal(tensor_load_int(&t.outputs[3], i), sum / 4);
  }
  trial_release(&t);
}

/* Nothing is changed where kernels take the types; what cannot be kept exact is left alone. */
static void test_left_alone(void **state) {
  Sample s;
  sample_parse(&s, "graph @f level(core) {\n"
                   "  %0: f32[4] = input \"x\"\n"
                   "  %1: u64[4] = input \"y\"\n"
                   "  %2: f32[4] = aten::relu(%0)\n"
                   "  %3: u64[4] = aten::fmod.Tensor(%1, %1)\n"
                   "  output %2 \"a\", %3 \"b\"\n}\n");
  assert_int_equal(legalize(&s), STATUS_OK);
  assert_int_equal(s.g->live_nodes, 2);
  assert_string_equal(sample_messages(&s), "");
  assert_int_equal(graph_verify_kernels(s.g), STATUS_UNSUPPORTED);
  sample_release(&s);
}

/* A constant is converted when the program is made. */
static void test_constant(void **state) {
  Sample s;
  sample_parse(&s, "graph @f level(core) {\n"
                   "  %0: u16[2] = input \"x\"\n"
                   "  %1: u16[2] = const [1, 65535]\n"
                   "  %2: bool[2] = aten::lt.Tensor(%0, %1)\n"
                   "  output %2 \"a\"\n}\n");
  s.capture.sink.verbose = true;
  assert_int_equal(legalize(&s), STATUS_OK);
  assert_int_equal(s.g->live_nodes, 4); /* view, convert and mask the input, compare */
  assert_contains(sample_messages(&s), "I0804");
  assert_contains(sample_messages(&s), "'aten::lt.Tensor' on u16 runs on i64");
  sample_release(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_binary),      cmocka_unit_test(test_shifts),
      cmocka_unit_test(test_conversions), cmocka_unit_test(test_forms),
      cmocka_unit_test(test_wider),       cmocka_unit_test(test_left_alone),
      cmocka_unit_test(test_constant)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
