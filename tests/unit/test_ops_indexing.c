/* Indexing ops: gathers, scatters, masks, sizes that depend on data. */
#include "ops_fixture.h"

static ValueId ints(OpsFixture *f, const int64_t *values, uint32_t count) {
  return build_const_ints(&f->b, values, count);
}
#define I64S(...)                                                                                  \
  ints(f, (const int64_t[]){__VA_ARGS__},                                                          \
       (uint32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

static void test_index_select(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(2, 3), VALUES(0, 1, 2, 3, 4, 5));
  check_value(f, build(&f->b, OP_INDEX_SELECT, A_VAL(x), A_INT(-1), A_VAL(I64S(2, 0, 2))),
              DTYPE_F32, DIMS(2, 3), VALUES(2, 0, 2, 5, 3, 5));
  ValueId narrow = fixture_const(f, DTYPE_I32, DIMS(1), VALUES(1));
  check_value(f, build(&f->b, OP_INDEX_SELECT, A_VAL(x), A_INT(0), A_VAL(narrow)), DTYPE_F32,
              DIMS(1, 3), VALUES(3, 4, 5));
  check_run_error(f, build(&f->b, OP_INDEX_SELECT, A_VAL(x), A_INT(0), A_VAL(I64S(2))),
                  "index 2 is out of range");
  check_run_error(f, build(&f->b, OP_INDEX_SELECT, A_VAL(x), A_INT(0), A_VAL(I64S(-1))),
                  "index -1");
  check_refused(f, build(&f->b, OP_INDEX_SELECT, A_VAL(x), A_INT(0), A_VAL(x)), "i64 or i32");
}

static void test_embedding(void **state) {
  OpsFixture *f = *state;
  ValueId w = fixture_const(f, DTYPE_F16, DIMS(3, 2), VALUES(0, 1, 2, 3, 4, 5)),
          at = fixture_const(f, DTYPE_I32, DIMS(1, 2), VALUES(2, 0));
  check_value(f, build(&f->b, OP_EMBEDDING, A_VAL(w), A_VAL(at)), DTYPE_F16, DIMS(1, 2, 2),
              VALUES(4, 5, 0, 1));
  check_run_error(f, build(&f->b, OP_EMBEDDING, A_VAL(w), A_VAL(I64S(INT64_MIN))), "out of range");
  check_refused(f, build(&f->b, OP_EMBEDDING, A_VAL(at), A_VAL(w)), "i64 or i32");
  ValueId cube = fixture_const(f, DTYPE_F32, DIMS(1, 1, 1), VALUES(0));
  check_refused(f, build(&f->b, OP_EMBEDDING, A_VAL(cube), A_VAL(at)), "rank 3");
}

static void test_gather_scatter(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(2, 3), VALUES(0, 1, 2, 3, 4, 5)),
          at = fixture_const(f, DTYPE_I64, DIMS(2, 2), VALUES(2, 0, 1, 1)),
          src = fixture_const(f, DTYPE_F32, DIMS(2, 2), VALUES(10, 20, 30, 40));
  ValueId gathered = build(&f->b, OP_GATHER, A_VAL(x), A_INT(1), A_VAL(at));
  check_value(f, gathered, DTYPE_F32, DIMS(2, 2), VALUES(2, 0, 4, 4));
  assert_null(op_row(OP_GATHER)->check(f->g, value_def(f->g, gathered), &f->arena));
  check_value(f, build(&f->b, OP_SCATTER_SRC, A_VAL(x), A_INT(1), A_VAL(at), A_VAL(src)), DTYPE_F32,
              DIMS(2, 3), VALUES(20, 1, 10, 3, 40, 5));
  check_value(f, build(&f->b, OP_SCATTER_ADD, A_VAL(x), A_INT(1), A_VAL(at), A_VAL(src)), DTYPE_F32,
              DIMS(2, 3), VALUES(20, 1, 12, 3, 74, 5));
  check_value(f, build(&f->b, OP_SCATTER_VALUE, A_VAL(x), A_INT(1), A_VAL(at), A_FLOAT(-1)),
              DTYPE_F32, DIMS(2, 3), VALUES(-1, 1, -1, 3, -1, 5));
  ValueId narrow = fixture_const(f, DTYPE_I32, DIMS(1, 1), VALUES(1));
  ValueId by_i32 = build(&f->b, OP_GATHER, A_VAL(x), A_INT(1), A_VAL(narrow));
  check_value(f, by_i32, DTYPE_F32, DIMS(1, 1), VALUES(1));
  assert_non_null(op_row(OP_GATHER)->check(f->g, value_def(f->g, by_i32), &f->arena));
  ValueId bad = fixture_const(f, DTYPE_I64, DIMS(1, 1), VALUES(-1)),
          tall = fixture_const(f, DTYPE_I64, DIMS(3, 1), VALUES(0));
  check_run_error(f, build(&f->b, OP_GATHER, A_VAL(x), A_INT(0), A_VAL(bad)), "index -1");
  check_run_error(f, build(&f->b, OP_SCATTER_VALUE, A_VAL(x), A_INT(0), A_VAL(bad), A_INT(0)),
                  "index -1");
  check_refused(f, build(&f->b, OP_GATHER, A_VAL(x), A_INT(1), A_VAL(tall)), "must be at least 3");
  check_refused(f, build(&f->b, OP_GATHER, A_VAL(x), A_INT(1), A_VAL(I64S(0))),
                "rank 2, the index 1");
  check_refused(f, build(&f->b, OP_SCATTER_SRC, A_VAL(x), A_INT(1), A_VAL(at), A_VAL(at)),
                "f32, the source i64");
}

static void test_index_tensor(void **state) {
  OpsFixture *f = *state;
  ValueId x =
      fixture_const(f, DTYPE_I32, DIMS(2, 3, 2), VALUES(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  ValueId rows = I64S(0, -1), columns = I64S(1);
  /* adjacent indices: the block stands where they stood */
  check_value(f, build(&f->b, OP_INDEX_TENSOR, A_VAL(x), A_VALS(((ValueId[]){0, rows}), 2)),
              DTYPE_I32, DIMS(2, 2, 2), VALUES(0, 1, 4, 5, 6, 7, 10, 11));
  check_value(f, build(&f->b, OP_INDEX_TENSOR, A_VAL(x), A_VALS(((ValueId[]){rows, columns}), 2)),
              DTYPE_I32, DIMS(2, 2), VALUES(2, 3, 8, 9));
  /* apart: it goes to the front */
  check_value(f,
              build(&f->b, OP_INDEX_TENSOR, A_VAL(x), A_VALS(((ValueId[]){rows, 0, columns}), 3)),
              DTYPE_I32, DIMS(2, 3), VALUES(1, 3, 5, 7, 9, 11));
  ValueId mask = fixture_const(f, DTYPE_BOOL, DIMS(2, 3), VALUES(1, 0, 0, 0, 0, 1));
  check_value(f, build(&f->b, OP_INDEX_TENSOR, A_VAL(x), A_VALS(&mask, 1)), DTYPE_I32, DIMS(2, 2),
              VALUES(0, 1, 10, 11));
  check_run_error(f, build(&f->b, OP_INDEX_TENSOR, A_VAL(x), A_VALS(((ValueId[]){I64S(2)}), 1)),
                  "out of range for dim 0");
  check_refused(f, build(&f->b, OP_INDEX_TENSOR, A_VAL(x), A_VALS(((ValueId[]){0, mask}), 2)),
                "differ: 2 and 3");
  check_refused(f,
                build(&f->b, OP_INDEX_TENSOR, A_VAL(x), A_VALS(((ValueId[]){mask, rows, rows}), 3)),
                "more than the 3");
  check_refused(
      f, build(&f->b, OP_INDEX_TENSOR, A_VAL(x), A_VALS(((ValueId[]){rows, I64S(0, 1, 0)}), 2)),
      "differ");
}

/* Types beyond torch's usual ones only go through the kernel's short way. */
static void test_index_checks(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_U16, DIMS(2, 2), VALUES(1, 2, 3, 4));
  ValueId at = I64S(1, 0), column = fixture_const(f, DTYPE_I64, DIMS(2, 1), VALUES(0, 1));
  KernelCheckFn *check = op_row(OP_INDEX_TENSOR)->check;
  ValueId one = build(&f->b, OP_INDEX_TENSOR, A_VAL(x), A_VALS(((ValueId[]){0, at}), 2));
  ValueId two = build(&f->b, OP_INDEX_TENSOR, A_VAL(x), A_VALS(((ValueId[]){at, at}), 2));
  ValueId deep = build(&f->b, OP_INDEX_TENSOR, A_VAL(x), A_VALS(&column, 1));
  ValueId all = build(&f->b, OP_INDEX_TENSOR, A_VAL(x), A_VALS(((ValueId[]){0, 0}), 2));
  assert_null(check(f->g, value_def(f->g, one), &f->arena));
  assert_non_null(check(f->g, value_def(f->g, two), &f->arena));
  assert_non_null(check(f->g, value_def(f->g, deep), &f->arena));
  assert_non_null(check(f->g, value_def(f->g, all), &f->arena));
  check_value(f, two, DTYPE_U16, DIMS(2), VALUES(4, 1));
  check_value(f, all, DTYPE_U16, DIMS(2, 2), VALUES(1, 2, 3, 4));
}

static void test_index_put(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(2, 2), VALUES(1, 2, 3, 4)), twice = I64S(0, 0),
          v = fixture_const(f, DTYPE_F32, DIMS(2, 1), VALUES(10, 20));
  check_value(f, build(&f->b, OP_INDEX_PUT, A_VAL(x), A_VALS(&twice, 1), A_VAL(v), A_BOOL(true)),
              DTYPE_F32, DIMS(2, 2), VALUES(31, 32, 3, 4));
  check_value(f, build(&f->b, OP_INDEX_PUT, A_VAL(x), A_VALS(&twice, 1), A_VAL(v)), DTYPE_F32,
              DIMS(2, 2), VALUES(20, 20, 3, 4));
  ValueId mask = fixture_const(f, DTYPE_BOOL, DIMS(2, 2), VALUES(0, 1, 1, 0));
  ValueId one = fixture_const(f, DTYPE_F32, NULL, 0, VALUES(0)),
          three = fixture_const(f, DTYPE_F32, DIMS(3), VALUES(0));
  check_value(f, build(&f->b, OP_INDEX_PUT, A_VAL(x), A_VALS(&mask, 1), A_VAL(one)), DTYPE_F32,
              DIMS(2, 2), VALUES(1, 0, 0, 4));
  check_run_error(f, build(&f->b, OP_INDEX_PUT, A_VAL(x), A_VALS(&mask, 1), A_VAL(three)),
                  "values do not have the shape");
  check_refused(f, build(&f->b, OP_INDEX_PUT, A_VAL(x), A_VALS(&twice, 1), A_VAL(three)), "differ");
}

/* In place the runtime has one case only. */
static void test_index_put_in_place(void **state) {
  OpsFixture *f = *state;
  SymInt dims[2] = {2, 3};
  TypeId type = graph_tensor_type(f->g, DTYPE_F32, 2, dims, ORDER_CONTIGUOUS);
  ValueId s = graph_add_state(f->g, type, 0, 0), at = I64S(2, 0), both[2] = {at, at},
          end[2] = {0, at}, v = fixture_const(f, DTYPE_F32, DIMS(2, 2), VALUES(1, 2, 3, 4));
  ValueId put = build(&f->b, OP_INDEX_PUT_, A_VAL(s), A_VALS(end, 2), A_VAL(v));
  assert_int_equal(value_state(f->g, put), s);
  assert_null(op_row(OP_INDEX_PUT_)->check(f->g, value_def(f->g, put), &f->arena));
  ValueId one = fixture_const(f, DTYPE_F32, DIMS(1), VALUES(1));
  put = build(&f->b, OP_INDEX_PUT_, A_VAL(s), A_VALS(both, 2), A_VAL(one));
  assert_non_null(op_row(OP_INDEX_PUT_)->check(f->g, value_def(f->g, put), &f->arena));
  put = build(&f->b, OP_INDEX_PUT_, A_VAL(s), A_VALS(end, 2), A_VAL(v), A_BOOL(true));
  assert_non_null(op_row(OP_INDEX_PUT_)->check(f->g, value_def(f->g, put), &f->arena));
}

/* With constants the counts are known, so the results are static. */
static void test_counts(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(2, 2), VALUES(0, -0.0, NAN, 3));
  check_value(f, build(&f->b, OP_NONZERO, A_VAL(x)), DTYPE_I64, DIMS(2, 2), VALUES(1, 0, 1, 1));
  ValueId mask = fixture_const(f, DTYPE_BOOL, DIMS(2, 2), VALUES(1, 0, 0, 1));
  check_value(f, build(&f->b, OP_MASKED_SELECT, A_VAL(x), A_VAL(mask)), DTYPE_F32, DIMS(2),
              VALUES(0, 3));
  ValueId wide = fixture_const(f, DTYPE_BOOL, DIMS(2, 1), VALUES(0, 1)),
          source = fixture_const(f, DTYPE_F32, DIMS(3), VALUES(7, 8, 9));
  check_value(f, build(&f->b, OP_MASKED_SCATTER, A_VAL(x), A_VAL(wide), A_VAL(source)), DTYPE_F32,
              DIMS(2, 2), VALUES(0, 0, 7, 8));
  ValueId all = fixture_const(f, DTYPE_BOOL, DIMS(1), VALUES(1));
  check_run_error(f, build(&f->b, OP_MASKED_SCATTER, A_VAL(x), A_VAL(all), A_VAL(source)),
                  "only 3 elements");
  check_value(f, build(&f->b, OP_REPEAT_INTERLEAVE_TENSOR, A_VAL(I64S(2, 0, 1))), DTYPE_I64,
              DIMS(3), VALUES(0, 0, 2));
  check_refused(f, build(&f->b, OP_REPEAT_INTERLEAVE_TENSOR, A_VAL(I64S(2, -1))), "hold -1");
  check_refused(f, build(&f->b, OP_MASKED_SELECT, A_VAL(x), A_VAL(x)), "must be bool");
}

/* Run-time data: a fresh symbol with the bound of all elements, kept when the rule runs again; the
 * run gives the real size. */
static void test_unbacked(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_input(f, DTYPE_I64, DIMS(2, 3));
  ValueId at = build(&f->b, OP_NONZERO, A_VAL(x));
  SymInt count = value_dim(f->g, at, 0);
  assert_false(sym_is_const(count));
  assert_true(sym_expr(&f->g->syms, count)->unbacked);
  assert_int_equal(sym_lower(&f->g->syms, count), 0);
  assert_int_equal(sym_upper(&f->g->syms, count), 6);
  assert_int_equal(shape_infer(f->g, value_def(f->g, at)), STATUS_OK);
  assert_int_equal(value_dim(f->g, at, 0), count);
  ValueId mask = fixture_input(f, DTYPE_BOOL, DIMS(3));
  ValueId picked = build(&f->b, OP_INDEX_TENSOR, A_VAL(x), A_VALS(((ValueId[]){0, mask}), 2));
  TypeId type = value_cget(f->g, picked)->type;
  assert_int_equal(sym_upper(&f->g->syms, value_dim(f->g, picked, 1)), 3);
  assert_int_equal(shape_infer(f->g, value_def(f->g, picked)), STATUS_OK);
  assert_int_equal(value_cget(f->g, picked)->type, type);
  graph_set_outputs(f->g, (ValueId[]){at, picked}, 2, (NameId[]){0, 0});
  _Alignas(16) int64_t data[6] = {0, 5, 0, 6, 0, 7};
  _Alignas(16) uint8_t bits[3] = {1, 0, 1};
  Tensor inputs[2] = {{DTYPE_I64, 2, {2, 3}, data, sizeof data},
                      {DTYPE_BOOL, 1, {3}, bits, sizeof bits}},
         outputs[2];
  assert_int_equal(interp_run(f->g, inputs, 2, &f->arena, outputs), STATUS_OK);
  check_tensor(&outputs[0], DTYPE_I64, DIMS(3, 2), VALUES(0, 1, 1, 0, 1, 2), 0);
  check_tensor(&outputs[1], DTYPE_I64, DIMS(2, 2), VALUES(0, 0, 6, 7), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OPS_TEST(test_index_select), OPS_TEST(test_embedding), OPS_TEST(test_gather_scatter),
      OPS_TEST(test_index_tensor), OPS_TEST(test_index_put), OPS_TEST(test_index_put_in_place),
      OPS_TEST(test_index_checks), OPS_TEST(test_counts),    OPS_TEST(test_unbacked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
