/* The interpreter: values, symbols, plans and what it refuses. */
#include "ir_graph.h"

#include "interp/fold.h"
#include "interp/interp.h"

/* An f32 tensor over data. */
static Tensor f32_tensor(uint32_t rank, const int64_t *dims, float *data) {
  Tensor t = {.dtype = DTYPE_F32, .rank = rank, .data = data};
  for (uint32_t i = 0; i < rank; i++)
    t.dims[i] = dims[i];
  t.capacity = tensor_bytes(&t);
  return t;
}

static void check_floats(const Tensor *t, const float *expected, int64_t count) {
  assert_int_equal(t->dtype, DTYPE_F32);
  assert_int_equal(tensor_numel(t), count);
  for (int64_t i = 0; i < count; i++)
    assert_true(((const float *)t->data)[i] == expected[i]);
}

typedef struct RunTest {
  Sample sample;
  Arena arena;
  Tensor outputs[4];
} RunTest;

static void run_init(RunTest *r, const char *text) {
  sample_parse(&r->sample, text);
  r->arena = (Arena){0};
}
static void run_release(RunTest *r) {
  arena_release(&r->arena);
  sample_release(&r->sample);
}

static _Alignas(16) float input_a[16] = {1, -2,  3,  -4,  5,  -6,  7,  -8,
                                         9, -10, 11, -12, 13, -14, 15, -16};

/* A value used twice, a constant, an output that is also an operand. */
static void test_values(void **state) {
  RunTest r;
  run_init(&r, "graph @forward level(aten) {\n"
               "  %0: f32[2, 2] = input \"x\"\n"
               "  %1: f32[2] = const [1.0, 2.0]\n"
               "  %2: f32[2, 2] = aten::relu(%0)\n"
               "  %3: f32[2, 2] = aten::mul.Tensor(%2, %1)\n"
               "  %4: f32[2, 2] = aten::add.Tensor(%3, %2)\n"
               "  output %4 \"y\", %2 \"z\", %1 \"c\", %0 \"i\"\n"
               "}\n");
  Tensor x = f32_tensor(2, (int64_t[]){2, 2}, input_a);
  assert_int_equal(interp_run(r.sample.g, &x, 1, &r.arena, r.outputs), STATUS_OK);
  check_floats(&r.outputs[0], (float[]){2, 0, 6, 0}, 4);
  check_floats(&r.outputs[1], (float[]){1, 0, 3, 0}, 4);
  check_floats(&r.outputs[2], (float[]){1, 2}, 2);
  check_floats(&r.outputs[3], input_a, 4);
  run_release(&r);
}

/* s0 from one input, checked against the other; both ends of the range. */
static void test_symbols(void **state) {
  RunTest r;
  run_init(&r, "graph @forward level(aten) {\n"
               "  sym s0 \"batch\" in [2, 3]\n"
               "  %0: f32[2*s0 + 1] = input \"x\"\n"
               "  %1: f32[s0] = input \"y\"\n"
               "  %2: f32[s0] = aten::relu(%1)\n"
               "  output %2 \"z\"\n"
               "}\n");
  for (int64_t x_size = 0; x_size < 10; x_size++) {
    for (int64_t y_size = 0; y_size < 5; y_size++) {
      Tensor inputs[] = {f32_tensor(1, &x_size, input_a), f32_tensor(1, &y_size, input_a)};
      bool fits = y_size >= 2 && y_size <= 3 && x_size == 2 * y_size + 1;
      Status status = interp_run(r.sample.g, inputs, 2, &r.arena, r.outputs);
      assert_int_equal(status, fits ? STATUS_OK : STATUS_INVALID);
      if (fits)
        assert_int_equal(r.outputs[0].dims[0], y_size);
    }
  }
  assert_contains(sample_messages(&r.sample), "outside its range 2..3");
  assert_contains(sample_messages(&r.sample), "dim 0 of input 'y'");
  run_release(&r);
}

static void test_input_errors(void **state) {
  RunTest r;
  run_init(&r, "graph @forward level(aten) {\n"
               "  %0: f32[2, 2] = input \"x\"\n"
               "  %1: f32[2, 2] = aten::relu(%0)\n"
               "  output %1 \"y\"\n"
               "}\n");
  Graph *g = r.sample.g;
  Tensor x = f32_tensor(2, (int64_t[]){2, 2}, input_a);
  assert_int_equal(interp_run(g, &x, 0, &r.arena, r.outputs), STATUS_USAGE);
  assert_contains(sample_messages(&r.sample), "E0701");
  x.dtype = DTYPE_I32;
  assert_int_equal(interp_run(g, &x, 1, &r.arena, r.outputs), STATUS_INVALID);
  assert_contains(sample_messages(&r.sample), "input 'x' takes f32, not i32");
  x.dtype = DTYPE_F32;
  x.rank = 1;
  assert_int_equal(interp_run(g, &x, 1, &r.arena, r.outputs), STATUS_INVALID);
  assert_contains(sample_messages(&r.sample), "input 'x' takes f32[2, 2], the array is f32[2]");
  x.rank = 2;
  x.dims[1] = 3;
  assert_int_equal(interp_run(g, &x, 1, &r.arena, r.outputs), STATUS_INVALID);
  assert_contains(sample_messages(&r.sample), "takes f32[2, 2], the array is f32[2, 3]");
  run_release(&r);
}

/* The number of non-zero elements is known only while running: a later node sees it. */
static void test_data_dependent(void **state) {
  RunTest r;
  run_init(&r, "graph @forward level(aten) {\n"
               "  sym s0 \"\" in [0, 4] unbacked\n"
               "  %0: f32[4] = input \"x\"\n"
               "  %1: i64[s0, 1] = aten::nonzero(%0)\n"
               "  %2: i64[s0, 1] = aten::neg(%1)\n"
               "  output %2 \"y\"\n"
               "}\n");
  for (int64_t count = 0; count <= 4; count++) {
    _Alignas(16) float data[4] = {0};
    for (int64_t i = 0; i < count; i++)
      data[3 - i] = 1;
    Tensor x = f32_tensor(1, (int64_t[]){4}, data);
    assert_int_equal(interp_run(r.sample.g, &x, 1, &r.arena, r.outputs), STATUS_OK);
    assert_int_equal(r.outputs[0].dims[0], count);
    for (int64_t i = 0; i < count; i++)
      assert_int_equal(((int64_t *)r.outputs[0].data)[i], -(4 - count + i));
  }
  run_release(&r);
}

/* Constants of a file are where the file has them. */
static void test_unaligned_constant(void **state) {
  Sample s;
  sample_init(&s);
  Arena arena = {0};
  uint8_t *bytes = arena_alloc(&arena, 64);
  const float weights[4] = {1, 2, 3, 4};
  memcpy(bytes + 3, weights, sizeof weights);
  TypeId type = f32_type(s.g, 2, 2);
  ValueId x = graph_add_input(s.g, type, 0);
  ValueId w =
      graph_add_constant(s.g, type, (Constant){.data = bytes + 3, .size = sizeof weights}, 0);
  Builder b = builder_make(s.g, 0, 0);
  ValueId sum = build(&b, OP_ADD_TENSOR, A_VAL(x), A_VAL(w), A_INT(1));
  ValueId twice = build(&b, OP_ADD_TENSOR, A_VAL(sum), A_VAL(w), A_INT(1));
  graph_set_outputs(s.g, &twice, 1, (NameId[]){0});
  Tensor input = f32_tensor(2, (int64_t[]){2, 2}, input_a), output;
  assert_int_equal(interp_run(s.g, &input, 1, &arena, &output), STATUS_OK);
  check_floats(&output, (float[]){3, 2, 9, 4}, 4);
  arena_release(&arena);
  sample_release(&s);
}

static const char planned[] =
    "graph @forward level(executorch) {\n"
    "  arenas [0, 64]\n"
    "  %0: f32[2, 2]@1+0:16 = input \"x\"\n"
    "  %1: f32[2, 2]@1+16:16 = aten::relu(%0) // aten::relu.out\n"
    "  %2: f32[2, 2]@1+32:16 = aten::neg(%0) // aten::neg.out\n"
    "  %3: f32[2, 2]@1+48:16 = aten::add.Tensor(%1, %2, 1) // aten::add.out\n"
    "  output %3 \"y\"\n"
    "}\n";

/* Runs it with the results of relu, neg and add at these offsets. */
static void run_plan(const uint64_t *offsets, Status expected, RunTest *r) {
  run_init(r, planned);
  Graph *g = r->sample.g;
  uint32_t i = 0;
  for (FOR_NODES(g, n))
    g->storages[g->values[node_result(g, n, 0)].storage].offset = offsets[i++];
  Tensor x = f32_tensor(2, (int64_t[]){2, 2}, input_a);
  assert_int_equal(interp_run(g, &x, 1, &r->arena, r->outputs), expected);
}

static void test_plan(void **state) {
  const float right[4] = {0, 2, 0, 4};
  RunTest r;
  run_plan((uint64_t[]){16, 32, 48}, STATUS_OK, &r);
  check_floats(&r.outputs[0], right, 4);
  run_release(&r);
  run_plan((uint64_t[]){16, 0, 16}, STATUS_OK, &r); /* in place: the operands die there */
  check_floats(&r.outputs[0], right, 4);
  run_release(&r);
}

/* A wrong plan is no error here: it gives the wrong numbers that the runtime would give. */
static void test_wrong_plan_shows(void **state) {
  RunTest r;
  run_plan((uint64_t[]){16, 16, 48}, STATUS_OK, &r); /* neg is written over relu's result */
  check_floats(&r.outputs[0], (float[]){-2, 4, -6, 8}, 4);
  run_release(&r);
  run_plan((uint64_t[]){16, 64, 16}, STATUS_INVALID, &r); /* past the end of the arena */
  assert_contains(sample_messages(&r.sample), "E0506");
  run_release(&r);
}

static void test_eval_const_node(void **state) {
  Sample s;
  sample_init(&s);
  Arena arena = {0};
  TypeId type = f32_type(s.g, 2, 2);
  ValueId c = graph_add_constant_copy(s.g, type, input_a, 16), x = graph_add_input(s.g, type, 0);
  Builder b = builder_make(s.g, 0, 0);
  ValueId folds = build(&b, OP_RELU, A_VAL(c)), stays = build(&b, OP_RELU, A_VAL(x));
  Tensor result;
  assert_int_equal(
      interp_eval_const_node(s.g, value_def(s.g, folds), &arena, &result, &s.capture.sink),
      STATUS_OK);
  check_floats(&result, (float[]){1, 0, 3, 0}, 4);
  assert_int_equal(
      interp_eval_const_node(s.g, value_def(s.g, stays), &arena, &result, &s.capture.sink),
      STATUS_UNSUPPORTED);
  assert_int_equal(s.capture.sink.errors, 0);
  arena_release(&arena);
  sample_release(&s);
}

static ValueId slice(Builder *b, ValueId x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  return build(b, OP_SLICE_COPY_TENSOR, A_VAL(x), A_INT(dim), A_INT(start), A_INT(end),
               A_INT(step));
}

/* Rows of a constant are its bytes, columns are copied. */
static void test_fold_borrows(void **state) {
  Sample s;
  sample_init(&s);
  Fold fold;
  fold_init(&fold, 0);
  ValueId c = graph_add_constant(s.g, f32_type(s.g, 4, 4),
                                 (Constant){.data = (const uint8_t *)input_a, .size = 64}, 0);
  Builder b = builder_make(s.g, 0, 0);
  b.fold = fold_node, b.fold_data = &fold;
  ValueId rows = slice(&b, c, -2, 1, 3, 1), back = slice(&b, c, 0, -1, 4, 1),
          none = slice(&b, c, 0, 9, 12, 1), row = slice(&b, rows, 0, 1, 2, 1),
          part = slice(&b, row, 1, 1, 3, 1), columns = slice(&b, c, 1, 1, 3, 1),
          apart = slice(&b, c, 0, 0, 4, 2);
  assert_ptr_equal(value_constant(s.g, rows)->data, &input_a[4]);
  assert_int_equal(value_constant(s.g, rows)->size, 32);
  assert_ptr_equal(value_constant(s.g, back)->data, &input_a[12]);
  assert_int_equal(value_constant(s.g, none)->size, 0);
  assert_ptr_equal(value_constant(s.g, part)->data, &input_a[9]);
  assert_int_equal(value_constant(s.g, part)->size, 8);
  assert_memory_equal(value_constant(s.g, columns)->data, &input_a[1], 8);
  assert_memory_equal(value_constant(s.g, apart)->data + 16, &input_a[8], 16);
  fold_release(&fold);
  sample_release(&s);
}

/* A state that grows, through memory of its largest size: five calls fit, the sixth is refused. */
static void test_states(void **state) {
  RunTest r;
  run_init(&r, "graph @forward level(aten) {\n"
               "  sym s0 \"p\" in [0, 4]\n"
               "  %0: f32[1, 2] = input \"x\"\n"
               "  %1: i64[] = state \"p.length\"\n"
               "  %2: f32[5, 2] = state \"past\"\n"
               "  %3: f32[1] = state \"sum\" init [0.5]\n"
               "  %4: int(s0) = aten::_local_scalar_dense(%1)\n"
               "  %5: f32[s0, 2] = aten::resize_(%2, [s0, 2])\n"
               "  %6: f32[s0 + 1, 2] = aten::cat([%5, %0])\n"
               "  %7: f32[2] = aten::sum.dim_IntList(%6, [0])\n"
               "  %8: f32[1] = aten::sum.dim_IntList(%0, [1])\n"
               "  %9: f32[1] = aten::add.Tensor(%3, %8)\n"
               "  %10: i64[] = aten::full([], s0 + 1, i64)\n"
               "  %11: f32[s0 + 1, 2] = aten::resize_(%5, [s0 + 1, 2])\n"
               "  %12: f32[s0 + 1, 2] = aten::copy_(%11, %6)\n"
               "  %13: f32[1] = aten::copy_(%3, %9)\n"
               "  %14: i64[] = aten::copy_(%1, %10)\n"
               "  output %7 \"y\", %9 \"z\"\n"
               "}\n");
  Graph *g = r.sample.g;
  Tensor x = f32_tensor(2, (int64_t[]){1, 2}, input_a), *states;
  assert_int_equal(interp_states(g, &r.arena, &states), STATUS_OK);
  const InterpCall call = {.inputs = &x, .input_count = 1, .states = states, .outputs = r.outputs};
  for (int i = 1; i <= 5; i++) {
    assert_int_equal(interp_call(g, &call, &r.arena), STATUS_OK);
    check_floats(&r.outputs[0], (float[]){(float)i, -2 * (float)i}, 2);
    check_floats(&r.outputs[1], (float[]){0.5f - (float)i}, 1);
  }
  assert_int_equal(*(int64_t *)states[0].data, 5);
  assert_int_equal(interp_call(g, &call, &r.arena), STATUS_INVALID);
  assert_contains(sample_messages(&r.sample), "outside its range 0..4");
  assert_int_equal(interp_run(g, &x, 1, &r.arena, r.outputs), STATUS_OK); /* begins anew */
  check_floats(&r.outputs[0], (float[]){1, -2}, 2);
  run_release(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_symbols),
      cmocka_unit_test(test_input_errors),
      cmocka_unit_test(test_data_dependent),
      cmocka_unit_test(test_unaligned_constant),
      cmocka_unit_test(test_plan),
      cmocka_unit_test(test_wrong_plan_shows),
      cmocka_unit_test(test_eval_const_node),
      cmocka_unit_test(test_fold_borrows),
      cmocka_unit_test(test_states),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
