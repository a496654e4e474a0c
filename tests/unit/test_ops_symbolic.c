/* Shape rules over symbolic dims: exact results where they can be proven, assumptions recorded
 * where not, the same type when a rule runs again. */
#include "ops_fixture.h"

#include "ir/text.h"

#define INTS(...)                                                                                  \
  A_INTS(((const SymInt[]){__VA_ARGS__}), sizeof((const SymInt[]){__VA_ARGS__}) / sizeof(SymInt))

/* s in 1..8 and t in 2..100. */
typedef struct Fixture {
  OpsFixture ops;
  SymInt s, t;
} Fixture;

static ValueId input(Fixture *f, uint32_t rank, const SymInt *dims) {
  return graph_add_input(f->ops.g,
                         graph_tensor_type(f->ops.g, DTYPE_F32, rank, dims, ORDER_CONTIGUOUS), 0);
}
#define INPUT(...)                                                                                 \
  input(f, (uint32_t)(sizeof((const SymInt[]){__VA_ARGS__}) / sizeof(SymInt)),                     \
        (const SymInt[]){__VA_ARGS__})

/* The type of v as text, after running its rule a second time, and the number of assumptions so
 * far. */
static void check_type(Fixture *f, ValueId v, const char *expected, uint32_t assumptions) {
  Graph *g = f->ops.g;
  if (!v)
    fail_msg("not built: %s", strbuf_cstr(&f->ops.capture.text));
  NodeId n = value_def(g, v);
  TypeId type = value_cget(g, v)->type;
  assert_int_equal(shape_infer(g, n), STATUS_OK);
  assert_int_equal(value_cget(g, v)->type, type);
  StrBuf text = {0};
  type_print(g, type_get(g, type), &text);
  assert_string_equal(strbuf_cstr(&text), expected);
  strbuf_release(&text);
  assert_int_equal(g->constraint_count, assumptions);
}

static void test_view(void **state) {
  Fixture *f = *state;
  Builder *b = &f->ops.b;
  SymTable *syms = &f->ops.g->syms;
  ValueId x = INPUT(f->s, 8, 64);
  check_type(f, build(b, OP_VIEW_COPY, A_VAL(x), INTS(f->s, -1)), "f32[s0, 512]", 0);
  check_type(f, build(b, OP_VIEW_COPY, A_VAL(x), INTS(-1, 64)), "f32[s0*8, 64]", 0);
  check_type(f, build(b, OP_VIEW_COPY, A_VAL(x), INTS(f->s, 4, 2, 64)), "f32[s0, 4, 2, 64]", 0);
  check_type(f, build(b, OP_VIEW_COPY, A_VAL(x), INTS(sym_mul(syms, f->s, 512))), "f32[s0*512]", 0);
  ValueId heads = INPUT(f->s, f->t, 12);
  check_type(f, build(b, OP_VIEW_COPY, A_VAL(heads), INTS(f->s, f->t, 3, 4)), "f32[s0, s1, 3, 4]",
             0);
  check_type(f, build(b, OP_VIEW_COPY, A_VAL(heads), INTS(-1, 12)), "f32[s0*s1, 12]", 0);
  check_refused(&f->ops, build(b, OP_VIEW_COPY, A_VAL(x), INTS(f->s, 511)), "differ");
  /* neither provable nor refutable */
  check_type(f, build(b, OP_VIEW_COPY, A_VAL(heads), INTS(f->s, 24)), "f32[s0, 24]", 1);
  check_type(f, build(b, OP_VIEW_COPY, A_VAL(heads), INTS(f->s, -1, 24)),
             "f32[s0, floordiv(s1, 2), 24]", 2);
}

static void test_slices(void **state) {
  Fixture *f = *state;
  Builder *b = &f->ops.b;
  SymTable *syms = &f->ops.g->syms;
  ValueId x = INPUT(f->t);
  check_type(f, build(b, OP_SLICE_COPY_TENSOR, A_VAL(x), A_INT(0), A_INT(1), A_INT(INT64_MAX)),
             "f32[s1 - 1]", 0);
  check_type(f, build(b, OP_SLICE_COPY_TENSOR, A_VAL(x), A_INT(0), A_INT(0), A_INT(-1)),
             "f32[s1 - 1]", 0);
  check_type(f, build(b, OP_SLICE_COPY_TENSOR, A_VAL(x), A_INT(0), A_INT(-2), A_NONE), "f32[2]", 0);
  check_type(f, build(b, OP_SLICE_COPY_TENSOR, A_VAL(x), A_INT(0), A_INT(0), A_INT(2)), "f32[2]",
             0);
  ValueId sum = INPUT(sym_add(syms, f->s, f->t)); /* past and present */
  check_type(f, build(b, OP_SLICE_COPY_TENSOR, A_VAL(sum), A_INT(0), A_INT(f->s), A_NONE),
             "f32[s1]", 0);
  check_type(
      f,
      build(b, OP_SLICE_COPY_TENSOR, A_VAL(sum), A_INT(0), A_INT(sym_sub(syms, 0, f->t)), A_NONE),
      "f32[s1]", 0);
  check_type(f, build(b, OP_SELECT_COPY_INT, A_VAL(x), A_INT(0), A_INT(1)), "f32[]", 0);
  check_type(f, build(b, OP_SELECT_COPY_INT, A_VAL(x), A_INT(0), A_INT(50)), "f32[]",
             1); /* s1 must be at least 51 */
  check_refused(&f->ops, build(b, OP_SELECT_COPY_INT, A_VAL(x), A_INT(0), A_INT(100)),
                "must be at least 100");
}

static void test_joins(void **state) {
  Fixture *f = *state;
  Builder *b = &f->ops.b;
  ValueId x = INPUT(f->s, 3), y = INPUT(f->t, 3), odd = INPUT(f->t, 4);
  check_type(f, build(b, OP_CAT, A_VALS(((ValueId[]){x, y, x}), 3), A_INT(0)), "f32[s0*2 + s1, 3]",
             0);
  check_refused(&f->ops, build(b, OP_CAT, A_VALS(((ValueId[]){x, odd}), 2), A_INT(0)),
                "differ: 3 and 4");
  check_type(f, build(b, OP_CAT, A_VALS(((ValueId[]){x, y}), 2), A_INT(1)), "f32[s0, 6]", 1);
  check_type(f, build(b, OP_STACK, A_VALS(((ValueId[]){x, x}), 2), A_INT(-1)), "f32[s0, 3, 2]", 1);
  check_type(f, build(b, OP_EXPAND_COPY, A_VAL(INPUT(1, 3)), INTS(f->t, -1)), "f32[s1, 3]", 1);
  check_type(f, build(b, OP_REPEAT, A_VAL(x), INTS(2, f->t)), "f32[s0*2, s1*3]", 1);
  ValueId pieces = build(b, OP_SPLIT_COPY_TENSOR, A_VAL(INPUT(5, f->s)), A_INT(3), A_INT(0));
  check_type(f, pieces, "f32[3, s0]", 1);
  assert_non_null(
      op_row(OP_SPLIT_COPY_TENSOR)->check(f->ops.g, value_def(f->ops.g, pieces), &f->ops.arena));
  check_refused(&f->ops, build(b, OP_SPLIT_COPY_TENSOR, A_VAL(INPUT(f->t)), A_INT(3), A_INT(0)),
                "must be known");
  ValueId halves = build(b, OP_SPLIT_WITH_SIZES_COPY,
                         A_VAL(INPUT(sym_add(&f->ops.g->syms, f->s, 4))), INTS(f->s, 4), A_INT(0));
  check_type(f, halves, "f32[s0]", 1);
  check_type(f, build(b, OP_SQUEEZE_COPY_DIMS, A_VAL(INPUT(1, f->t)), INTS(0, 1)), "f32[s1]", 1);
}

static void test_spatial(void **state) {
  Fixture *f = *state;
  Builder *b = &f->ops.b;
  ValueId x = INPUT(f->s, 3, f->t, 20);
  check_type(f, build(b, OP_MAX_POOL2D_WITH_INDICES, A_VAL(x), INTS(2)),
             "f32[s0, 3, floordiv(s1, 2), 10]", 0);
  check_type(f, build(b, OP_AVG_POOL2D, A_VAL(x), INTS(3), INTS(1), INTS(1)), "f32[s0, 3, s1, 20]",
             0);
  check_type(f, build(b, OP_CONSTANT_PAD_ND, A_VAL(x), INTS(1, 1, 2, 0), A_INT(0)),
             "f32[s0, 3, s1 + 2, 22]", 0);
  check_type(
      f, build(b, OP_UPSAMPLE_NEAREST2D_VEC, A_VAL(x), A_NONE, A_FLOATS(((double[]){2, 1.5}), 2)),
      "f32[s0, 3, s1*2, 30]", 0);
  check_type(
      f, build(b, OP_UPSAMPLE_NEAREST2D_VEC, A_VAL(x), A_NONE, A_FLOATS(((double[]){1.5, 1}), 2)),
      "f32[s0, 3, s1 + floordiv(s1, 2), 20]", 0);
  check_refused(
      &f->ops,
      build(b, OP_UPSAMPLE_NEAREST2D_VEC, A_VAL(x), A_NONE, A_FLOATS(((double[]){0.7, 1}), 2)),
      "no exact size");
  check_type(f, build(b, OP_REFLECTION_PAD2D, A_VAL(x), INTS(1, 1, 1, 1)), "f32[s0, 3, s1 + 2, 22]",
             0);
  check_type(f, build(b, OP_REFLECTION_PAD2D, A_VAL(x), INTS(1, 1, 2, 0)), "f32[s0, 3, s1 + 2, 22]",
             1); /* s1 - 1 >= 2 */
  check_type(f, build(b, OP_PIXEL_SHUFFLE, A_VAL(INPUT(4, f->s, f->t)), A_INT(2)),
             "f32[1, s0*2, s1*2]", 1);
  check_type(f, build(b, OP_PIXEL_UNSHUFFLE, A_VAL(INPUT(1, 4, f->t)), A_INT(2)),
             "f32[4, 2, floordiv(s1, 2)]", 2);
  check_type(f, build(b, OP_UNFOLD_COPY, A_VAL(INPUT(f->t)), A_INT(0), A_INT(2), A_INT(1)),
             "f32[s1 - 1, 2]", 2);
}

static void test_products(void **state) {
  Fixture *f = *state;
  Builder *b = &f->ops.b;
  check_type(f, build(b, OP_MATMUL, A_VAL(INPUT(f->s, f->t, 8)), A_VAL(INPUT(8, 5))),
             "f32[s0, s1, 5]", 0);
  ValueId q = INPUT(f->s, 4, f->t, 8);
  check_type(f, build(b, OP_SDPA, A_VAL(q), A_VAL(q), A_VAL(q), A_VAL(INPUT(f->s, 1, f->t, f->t))),
             "f32[s0, 4, s1, 8]", 0);
  check_type(f, build(b, OP_RMS_NORM, A_VAL(q), INTS(8)), "f32[s0, 4, s1, 8]", 0);
  check_type(
      f,
      build(b, OP_EMBEDDING, A_VAL(INPUT(100, 8)),
            A_VAL(graph_add_input(
                f->ops.g,
                graph_tensor_type(f->ops.g, DTYPE_I64, 2, (SymInt[]){f->s, f->t}, ORDER_CONTIGUOUS),
                0))),
      "f32[s0, s1, 8]", 0);
}

static int setup(void **state) {
  Fixture *f = test_malloc(sizeof *f);
  fixture_init(&f->ops);
  f->s = sym_symbol(&f->ops.g->syms, SV("batch"), 1, 8, false);
  f->t = sym_symbol(&f->ops.g->syms, SV("length"), 2, 100, false);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  Fixture *f = *state;
  fixture_release(&f->ops);
  test_free(f);
  return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_view), TEST(test_slices), TEST(test_joins), TEST(test_spatial), TEST(test_products),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
