/* The pools of a graph: use chains, order, types, arguments. After each change the verifier looks
 * at the whole graph, and a model of plain arrays says what it must be. */
#include "ir_graph.h"

#include <stdlib.h>

static void expect_sound(Sample *s) {
  if (graph_verify(s->g, "the test") != STATUS_OK)
    fail_msg("%s", sample_messages(s));
}

static void test_types_are_shared(void **state) {
  Sample s;
  sample_init(&s);
  TypeId types[1000];
  for (int i = 0; i < 1000; i++)
    types[i] = f32_type(s.g, i / 40, i % 40);
  for (int i = 0; i < 1000; i++) {
    assert_int_equal(f32_type(s.g, i / 40, i % 40), types[i]);
    for (int k = 0; k < i; k++)
      assert_int_not_equal(types[i], types[k]);
  }
  SymInt dims[4] = {1, 2, 3, 4};
  assert_int_not_equal(graph_tensor_type(s.g, DTYPE_F32, 4, dims, ORDER_CONTIGUOUS),
                       graph_tensor_type(s.g, DTYPE_F32, 4, dims, ORDER_CHANNELS_LAST));
  assert_int_not_equal(graph_scalar_type(s.g, TYPE_INT, 0, false),
                       graph_scalar_type(s.g, TYPE_INT, 0, true));
  sample_release(&s);
}

static void test_type_bytes(void **state) {
  Sample s;
  sample_init(&s);
  Graph *g = s.g;
  SymInt n = sym_symbol(&g->syms, SV("n"), 1, 8, false),
         open = sym_symbol(&g->syms, SV("m"), 0, INT64_MAX, true);
  const struct {
    SymInt a, b;
    uint64_t bytes;
  } cases[] = {{2, 3, 24},
               {n, 3, 96},
               {0, INT64_MAX / 2, 0},
               {open, 3, UINT64_MAX},
               {INT64_MAX / 2, INT64_MAX / 2, UINT64_MAX},
               {(int64_t)1 << 31, (int64_t)1 << 31, UINT64_MAX}};
  for (size_t i = 0; i < COUNT_OF(cases); i++)
    assert_true(type_bytes_upper(g, type_get(g, f32_type(g, cases[i].a, cases[i].b))) ==
                cases[i].bytes);
  assert_false(type_is_static(type_get(g, f32_type(g, n, 3))));
  sample_release(&s);
}

static void test_replace_uses(void **state) {
  Sample s;
  sample_init(&s);
  Graph *g = s.g;
  ValueId x = graph_add_input(g, f32_type(g, 2, 3), 0),
          y = graph_add_input(g, f32_type(g, 2, 3), 0);
  Builder b = builder_make(g, 0, 0);
  ValueId sum = build(&b, OP_ADD_TENSOR, A_VAL(x), A_VAL(x));
  ValueId more = build(&b, OP_ADD_TENSOR, A_VAL(sum), A_VAL(x));
  graph_set_outputs(g, (ValueId[]){more, x}, 2, NULL);
  assert_int_equal(value_get(g, x)->use_count, 4);
  graph_replace_uses(g, x, y);
  assert_int_equal(value_get(g, x)->use_count, 0);
  assert_int_equal(value_get(g, y)->use_count, 4);
  assert_int_equal(graph_output(g, 1), y);
  expect_sound(&s);
  graph_replace_uses(g, y, y);
  assert_int_equal(value_get(g, y)->use_count, 4);
  node_set_arg(g, value_def(g, more), 1, A_VAL(sum));
  assert_int_equal(value_get(g, sum)->use_count, 2);
  assert_int_equal(value_get(g, y)->use_count, 3);
  expect_sound(&s);
  sample_release(&s);
}

static void test_order(void **state) {
  Sample s;
  sample_init(&s);
  Graph *g = s.g;
  ValueId x = graph_add_input(g, f32_type(g, 2, 3), 0);
  Builder b = builder_make(g, 0, 0);
  ValueId one = build(&b, OP_RELU, A_VAL(x)), two = build(&b, OP_ABS, A_VAL(x));
  b.before = value_def(g, one);
  ValueId zero = build(&b, OP_NEG, A_VAL(x));
  graph_set_outputs(g, (ValueId[]){zero, one, two}, 3, NULL);
  assert_int_equal(g->first, value_def(g, zero));
  assert_int_equal(g->last, value_def(g, two));
  expect_sound(&s);
  graph_move_before(g, value_def(g, two), value_def(g, zero));
  assert_int_equal(g->first, value_def(g, two));
  assert_int_equal(g->last, value_def(g, one));
  graph_move_before(g, value_def(g, two), 0);
  assert_int_equal(g->last, value_def(g, two));
  graph_move_before(g, value_def(g, two), value_def(g, two));
  expect_sound(&s);
  sample_release(&s);
}

/* Every kind of argument goes in and comes out. */
static void test_arguments(void **state) {
  Sample s;
  sample_init(&s);
  Graph *g = s.g;
  Arena arena = {0};
  ValueId x = graph_add_input(g, f32_type(g, 2, 3), 0);
  NodeId n = graph_add_node(g, 0, OP_INDEX_TENSOR,
                            (ArgIn[]){A_VAL(x), A_VALS(((ValueId[]){0, x}), 2)}, 2, 1, 0);
  assert_int_equal(node_value(g, n, 0), x);
  assert_int_equal(node_list_count(g, n, 1), 2);
  assert_int_equal(node_list_value(g, n, 1, 0), 0);
  assert_int_equal(node_list_value(g, n, 1, 1), x);
  ArgIn list = node_arg_in(g, n, 1, &arena);
  assert_true(list.kind == ARG_VALUES && list.count == 2 && list.values[1] == x);
  n = graph_add_node(g, 0, OP_UPSAMPLE_NEAREST2D_VEC,
                     (ArgIn[]){A_VAL(x), A_NONE, A_FLOATS(((double[]){2.0, 0.5}), 2)}, 3, 1, 0);
  assert_true(node_absent(g, n, 1));
  assert_true(node_arg_in(g, n, 2, &arena).floats[1] == 0.5);
  n = graph_add_node(g, 0, OP_GELU, (ArgIn[]){A_VAL(x)}, 1, 1, 0);
  assert_true(sv_eq_str(node_str(g, n, 1), "none"));
  node_set_arg(g, n, 1, A_STR("tanh"));
  assert_true(sv_eq_str(node_arg_in(g, n, 1, &arena).str, "tanh"));
  n = graph_add_node(g, 0, OP_LEAKY_RELU, (ArgIn[]){A_VAL(x), A_INT(3)}, 2, 1, 0);
  assert_true(node_scalar(g, n, 1) == 3.0);
  arena_release(&arena);
  sample_release(&s);
}

/* Random edits against arrays that say who uses what. */
enum { EDITS = 400, MAX_VALUES = 512 };

typedef struct Model {
  Graph *g;
  uint32_t seed;
  ValueId values[MAX_VALUES]; /* results of unary or binary nodes; [0] is the input */
  uint32_t uses[MAX_VALUES];
  uint32_t operands[MAX_VALUES][2];
  uint32_t count;
} Model;

static uint32_t pick(Model *m, uint32_t below) {
  m->seed = m->seed * 1664525u + 1013904223u;
  return (m->seed >> 10) % below;
}

static void model_add(Model *m) {
  uint32_t a = pick(m, m->count), b = pick(m, m->count), at = m->count++;
  Builder builder = builder_make(m->g, 0, 0);
  m->values[at] = build(&builder, OP_ADD_TENSOR, A_VAL(m->values[a]), A_VAL(m->values[b]));
  m->operands[at][0] = a;
  m->operands[at][1] = b;
  m->uses[at] = 0;
  m->uses[a]++;
  m->uses[b]++;
}

/* One operand of a node becomes an older value. */
static void model_set(Model *m) {
  uint32_t at = 1 + pick(m, m->count - 1), which = pick(m, 2), to = pick(m, at);
  node_set_arg(m->g, value_def(m->g, m->values[at]), which, A_VAL(m->values[to]));
  m->uses[m->operands[at][which]]--;
  m->operands[at][which] = to;
  m->uses[to]++;
}

static void model_remove_last(Model *m) {
  uint32_t at = m->count - 1;
  if (at == 0 || m->uses[at])
    return;
  graph_remove_node(m->g, value_def(m->g, m->values[at]));
  m->uses[m->operands[at][0]]--;
  m->uses[m->operands[at][1]]--;
  m->count--;
}

static void test_random_edits(void **state) {
  Sample s;
  sample_init(&s);
  Model m = {.g = s.g, .seed = 7, .count = 1};
  m.values[0] = graph_add_input(s.g, f32_type(s.g, 2, 3), 0);
  model_add(&m);
  for (int i = 0; i < EDITS; i++) {
    uint32_t what = pick(&m, 4);
    if (what < 2)
      model_add(&m);
    else if (what == 2)
      model_set(&m);
    else
      model_remove_last(&m);
    if (m.count < 2)
      model_add(&m);
    for (uint32_t v = 0; v < m.count; v++)
      assert_int_equal(value_get(m.g, m.values[v])->use_count, m.uses[v]);
    assert_int_equal(m.g->live_nodes, m.count - 1);
    expect_sound(&s);
  }
  sample_release(&s);
}

/* A builder that has failed does nothing more, and its half-made node is gone. */
static void test_builder_fails_once(void **state) {
  Sample s;
  sample_init(&s);
  Graph *g = s.g;
  ValueId x = graph_add_input(g, f32_type(g, 2, 3), 0),
          y = graph_add_input(g, f32_type(g, 5, 7), 0);
  Builder b = builder_make(g, 0, 0);
  assert_int_equal(build(&b, OP_ADD_TENSOR, A_VAL(x), A_VAL(y)), 0);
  assert_int_equal(b.status, STATUS_INVALID);
  assert_int_equal(s.capture.sink.errors, 1);
  assert_int_equal(build(&b, OP_RELU, A_VAL(x)), 0);
  assert_int_equal(s.capture.sink.errors, 1);
  assert_int_equal(g->live_nodes, 0);
  assert_int_equal(value_get(g, x)->use_count, 0);
  sample_release(&s);
}

static void test_constraints_once(void **state) {
  Sample s;
  sample_init(&s);
  SymInt n = sym_symbol(&s.g->syms, SV("n"), 1, 8, false);
  for (int i = 0; i < 3; i++)
    graph_add_constraint(s.g, (Constraint){CONSTRAINT_GE, n, 2, 0});
  graph_add_constraint(s.g, (Constraint){CONSTRAINT_EQ, n, 2, 0});
  assert_int_equal(s.g->constraint_count, 2);
  sample_release(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_types_are_shared),   cmocka_unit_test(test_type_bytes),
      cmocka_unit_test(test_replace_uses),       cmocka_unit_test(test_order),
      cmocka_unit_test(test_arguments),          cmocka_unit_test(test_random_edits),
      cmocka_unit_test(test_builder_fails_once), cmocka_unit_test(test_constraints_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
