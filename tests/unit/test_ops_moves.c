/* Ops that move elements: views, slices, permutations, joins, pads. Small cases worked out by hand;
 * every element size. */
#include "ops_fixture.h"

#define COUNTING                                                                                   \
  VALUES(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23)
#define INTS(...)                                                                                  \
  A_INTS(((const SymInt[]){__VA_ARGS__}), sizeof((const SymInt[]){__VA_ARGS__}) / sizeof(SymInt))

static const DType SIZES[] = {DTYPE_U8, DTYPE_F16, DTYPE_F32, DTYPE_I64};

static void test_view(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(2, 3), COUNTING);
  check_value(f, build(&f->b, OP_VIEW_COPY, A_VAL(x), INTS(3, -1)), DTYPE_F32, DIMS(3, 2),
              VALUES(0, 1, 2, 3, 4, 5));
  check_value(f, build(&f->b, OP_VIEW_COPY, A_VAL(x), INTS(6)), DTYPE_F32, DIMS(6),
              VALUES(0, 1, 2, 3, 4, 5));
  check_refused(f, build(&f->b, OP_VIEW_COPY, A_VAL(x), INTS(4, -1)), "cannot be divided by 4");
  check_refused(f, build(&f->b, OP_VIEW_COPY, A_VAL(x), INTS(5)), "differ: 6 and 5");
  check_refused(f, build(&f->b, OP_VIEW_COPY, A_VAL(x), INTS(-1, -1)), "only one size");
  check_refused(f, build(&f->b, OP_VIEW_COPY, A_VAL(x), INTS(-2, -3)), "negative");
  check_refused(f, build(&f->b, OP_VIEW_COPY, A_VAL(x), INTS(0, -1)), "not determined");
  ValueId none = fixture_const(f, DTYPE_I64, DIMS(0, 3), VALUES(0));
  assert_int_equal(fixture_eval(f, build(&f->b, OP_VIEW_COPY, A_VAL(none), INTS(3, -1)))->dims[1],
                   0);
  ValueId scalar = fixture_const(f, DTYPE_F32, NULL, 0, VALUES(7));
  check_value(f, build(&f->b, OP_VIEW_COPY, A_VAL(scalar), INTS(1, -1)), DTYPE_F32, DIMS(1, 1),
              VALUES(7));
}

static void test_squeeze(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(1, 2, 1), VALUES(3, 4));
  check_value(f, build(&f->b, OP_SQUEEZE_COPY_DIMS, A_VAL(x), INTS(0, 1, -1)), DTYPE_F32, DIMS(2),
              VALUES(3, 4));
  check_value(f, build(&f->b, OP_UNSQUEEZE_COPY, A_VAL(x), A_INT(-1)), DTYPE_F32, DIMS(1, 2, 1, 1),
              VALUES(3, 4));
  check_refused(f, build(&f->b, OP_UNSQUEEZE_COPY, A_VAL(x), A_INT(4)), "out of range");
  check_refused(f, build(&f->b, OP_SQUEEZE_COPY_DIMS, A_VAL(x), INTS(0, 0)), "twice");
}

static void test_permute_sizes(void **state) {
  OpsFixture *f = *state;
  for (size_t i = 0; i < COUNT_OF(SIZES); i++) {
    ValueId x = fixture_const(f, SIZES[i], DIMS(2, 3, 2), COUNTING);
    check_value(f, build(&f->b, OP_PERMUTE_COPY, A_VAL(x), INTS(2, 0, -2)), SIZES[i], DIMS(2, 2, 3),
                VALUES(0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11));
    check_value(f, build(&f->b, OP_TRANSPOSE_COPY_INT, A_VAL(x), A_INT(0), A_INT(-2)), SIZES[i],
                DIMS(3, 2, 2), VALUES(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11));
  }
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(2, 3), COUNTING);
  check_refused(f, build(&f->b, OP_PERMUTE_COPY, A_VAL(x), INTS(0, 0)), "twice");
  check_refused(f, build(&f->b, OP_PERMUTE_COPY, A_VAL(x), INTS(0)), "1 dims listed");
  check_refused(f, build(&f->b, OP_PERMUTE_COPY, A_VAL(x), INTS(0, 2)), "out of range");
}

/* Larger than a tile on both sides, and not a multiple of it. */
static void test_large_transpose(void **state) {
  OpsFixture *f = *state;
  enum { ROWS = 67, COLUMNS = 101 };
  double *values = ARENA_ARRAY(&f->arena, double, ROWS *COLUMNS);
  for (int i = 0; i < ROWS * COLUMNS; i++)
    values[i] = i;
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(ROWS, COLUMNS), values, ROWS * COLUMNS);
  const Tensor *t = fixture_eval(f, build(&f->b, OP_PERMUTE_COPY, A_VAL(x), INTS(1, 0)));
  for (int64_t i = 0; i < COLUMNS; i++)
    for (int64_t j = 0; j < ROWS; j++)
      assert_true(tensor_load(t, i * ROWS + j) == (double)(j * COLUMNS + i));
}

static void test_expand_repeat(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_I64, DIMS(2, 1), VALUES(5, 6));
  check_value(f, build(&f->b, OP_EXPAND_COPY, A_VAL(x), INTS(2, -1, 3)), DTYPE_I64, DIMS(2, 2, 3),
              VALUES(5, 5, 5, 6, 6, 6, 5, 5, 5, 6, 6, 6));
  check_refused(f, build(&f->b, OP_EXPAND_COPY, A_VAL(x), INTS(3, 1)), "differ: 2 and 3");
  check_refused(f, build(&f->b, OP_EXPAND_COPY, A_VAL(x), INTS(-1, 2, 1)), "negative");
  check_refused(f, build(&f->b, OP_EXPAND_COPY, A_VAL(x), INTS(2)),
                "1 sizes for a tensor of rank 2");
  check_value(f, build(&f->b, OP_REPEAT, A_VAL(x), INTS(2, 2)), DTYPE_I64, DIMS(4, 2),
              VALUES(5, 5, 6, 6, 5, 5, 6, 6));
  check_refused(f, build(&f->b, OP_REPEAT, A_VAL(x), INTS(INT64_MAX, 2)), "too");
  check_refused(f, build(&f->b, OP_REPEAT, A_VAL(x), INTS(2, -2)), "negative");
}

static void test_as_strided(void **state) {
  OpsFixture *f = *state;
  for (size_t i = 0; i < COUNT_OF(SIZES); i++) {
    ValueId x = fixture_const(f, SIZES[i], DIMS(2, 4), COUNTING);
    check_value(/* windows of 2, every 1, from element 1 on; then both rows turned over */
                f, build(&f->b, OP_AS_STRIDED_COPY, A_VAL(x), INTS(2, 3), INTS(1, 1), A_INT(1)),
                SIZES[i], DIMS(2, 3), VALUES(1, 2, 3, 2, 3, 4));
    check_value(f, build(&f->b, OP_AS_STRIDED_COPY, A_VAL(x), INTS(4, 2), INTS(1, 4), A_NONE),
                SIZES[i], DIMS(4, 2), VALUES(0, 4, 1, 5, 2, 6, 3, 7));
  }
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(5), COUNTING);
  check_refused(f, build(&f->b, OP_AS_STRIDED_COPY, A_VAL(x), INTS(3), INTS(2), A_INT(1)),
                "leaves the 5 elements");
  check_refused(
      f, build(&f->b, OP_AS_STRIDED_COPY, A_VAL(x), INTS(INT64_MAX, 3), INTS(INT64_MAX, 1), A_NONE),
      "leaves the 5 elements");
  check_refused(f, build(&f->b, OP_AS_STRIDED_COPY, A_VAL(x), INTS(2), INTS(-1), A_INT(4)),
                "a stride of the walk is -1, must be at least 0");
  check_refused(f, build(&f->b, OP_AS_STRIDED_COPY, A_VAL(x), INTS(2), INTS(1, 1), A_NONE),
                "1 sizes and 2 strides");
  check_refused(f, build(&f->b, OP_AS_STRIDED_COPY, A_VAL(x), INTS(2), INTS(1), A_INT(-1)),
                "the offset of the walk is -1");
}

static void test_slice(void **state) {
  OpsFixture *f = *state;
  for (size_t i = 0; i < COUNT_OF(SIZES); i++) {
    ValueId x = fixture_const(f, SIZES[i], DIMS(2, 5), COUNTING);
    check_value(f,
                build(&f->b, OP_SLICE_COPY_TENSOR, A_VAL(x), A_INT(1), A_INT(1), A_INT(INT64_MAX),
                      A_INT(2)),
                SIZES[i], DIMS(2, 2), VALUES(1, 3, 6, 8));
    check_value(
        f, build(&f->b, OP_SLICE_COPY_TENSOR, A_VAL(x), A_INT(-1), A_INT(-2), A_NONE, A_INT(1)),
        SIZES[i], DIMS(2, 2), VALUES(3, 4, 8, 9));
    check_value(f, build(&f->b, OP_SELECT_COPY_INT, A_VAL(x), A_INT(1), A_INT(-1)), SIZES[i],
                DIMS(2), VALUES(4, 9));
  }
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(5), COUNTING);
  check_value(f,
              build(&f->b, OP_SLICE_COPY_TENSOR, A_VAL(x), A_INT(0), A_INT(INT64_MIN),
                    A_INT(INT64_MAX), A_INT(INT64_MAX)),
              DTYPE_F32, DIMS(1), VALUES(0));
  assert_int_equal(fixture_eval(f, build(&f->b, OP_SLICE_COPY_TENSOR, A_VAL(x), A_INT(0), A_INT(4),
                                         A_INT(2), A_INT(1)))
                       ->dims[0],
                   0);
  check_refused(
      f, build(&f->b, OP_SLICE_COPY_TENSOR, A_VAL(x), A_INT(0), A_INT(4), A_INT(2), A_INT(0)),
      "step 0");
  check_refused(f, build(&f->b, OP_SLICE_COPY_TENSOR, A_VAL(x), A_INT(1), A_NONE, A_NONE, A_INT(1)),
                "out of range");
  check_refused(f, build(&f->b, OP_SELECT_COPY_INT, A_VAL(x), A_INT(0), A_INT(5)),
                "must be at least 5");
  check_refused(f, build(&f->b, OP_SELECT_COPY_INT, A_VAL(x), A_INT(0), A_INT(-6)),
                "must be at least 0");
}

static void test_scatter_parts(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(2, 3), COUNTING),
          row = fixture_const(f, DTYPE_F32, DIMS(2), VALUES(7, 8)),
          two = fixture_const(f, DTYPE_F32, DIMS(2, 2), VALUES(7, 8, 9, 10));
  check_value(f, build(&f->b, OP_SELECT_SCATTER, A_VAL(x), A_VAL(row), A_INT(1), A_INT(-1)),
              DTYPE_F32, DIMS(2, 3), VALUES(0, 1, 7, 3, 4, 8));
  check_value(
      f,
      build(&f->b, OP_SLICE_SCATTER, A_VAL(x), A_VAL(two), A_INT(1), A_INT(0), A_INT(3), A_INT(2)),
      DTYPE_F32, DIMS(2, 3), VALUES(7, 1, 8, 9, 4, 10));
  check_refused(
      f,
      build(&f->b, OP_SLICE_SCATTER, A_VAL(x), A_VAL(two), A_INT(1), A_INT(0), A_INT(3), A_INT(1)),
      "differ");
  check_refused(f, build(&f->b, OP_SELECT_SCATTER, A_VAL(x), A_VAL(two), A_INT(1), A_INT(0)),
                "rank");
}

static void test_cat_stack(void **state) {
  OpsFixture *f = *state;
  ValueId a = fixture_const(f, DTYPE_I32, DIMS(2, 1), VALUES(1, 2)),
          b = fixture_const(f, DTYPE_F16, DIMS(2, 2), VALUES(3, 4, 5, 6)),
          none = fixture_const(f, DTYPE_I32, DIMS(0), VALUES(0)),
          scalar = fixture_const(f, DTYPE_I32, NULL, 0, VALUES(1));
  check_value(f, build(&f->b, OP_CAT, A_VALS(((ValueId[]){a, none, b}), 3), A_INT(-1)), DTYPE_F16,
              DIMS(2, 3), VALUES(1, 3, 4, 2, 5, 6));
  check_value(f, build(&f->b, OP_STACK, A_VALS(((ValueId[]){a, a}), 2), A_INT(-1)), DTYPE_I32,
              DIMS(2, 1, 2), VALUES(1, 1, 2, 2));
  check_refused(f, build(&f->b, OP_CAT, A_VALS(((ValueId[]){a, scalar}), 2), A_INT(0)), "0-d");
  check_refused(f, build(&f->b, OP_CAT, A_VALS(((ValueId[]){a, b}), 2), A_INT(0)), "differ");
  check_refused(f, build(&f->b, OP_CAT, A_VALS(NULL, 0), A_INT(0)), "no tensor");
  check_refused(f, build(&f->b, OP_STACK, A_VALS(((ValueId[]){a, b}), 2), A_INT(0)), "differ");
}

static void test_split(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(2, 3), COUNTING);
  const Tensor *t =
      fixture_eval(f, build(&f->b, OP_SPLIT_COPY_TENSOR, A_VAL(x), A_INT(2), A_INT(1)));
  check_tensor(&t[0], DTYPE_F32, DIMS(2, 2), VALUES(0, 1, 3, 4), 0);
  check_tensor(&t[1], DTYPE_F32, DIMS(2, 1), VALUES(2, 5), 0);
  t = fixture_eval(f, build(&f->b, OP_SPLIT_WITH_SIZES_COPY, A_VAL(x), INTS(0, 1, 2), A_INT(-1)));
  assert_int_equal(t[0].dims[1], 0);
  check_tensor(&t[2], DTYPE_F32, DIMS(2, 2), VALUES(1, 2, 4, 5), 0);
  t = fixture_eval(f, build(&f->b, OP_UNBIND_COPY_INT, A_VAL(x), A_INT(0)));
  check_tensor(&t[1], DTYPE_F32, DIMS(3), VALUES(3, 4, 5), 0);
  check_refused(f, build(&f->b, OP_SPLIT_COPY_TENSOR, A_VAL(x), A_INT(0), A_INT(1)), "positive");
  check_refused(f, build(&f->b, OP_SPLIT_WITH_SIZES_COPY, A_VAL(x), INTS(1, 1), A_INT(1)),
                "differ: 2 and 3");
  check_refused(f, build(&f->b, OP_SPLIT_WITH_SIZES_COPY, A_VAL(x), INTS(4, -1), A_INT(1)),
                "negative");
  ValueId wide = fixture_const(f, DTYPE_U8, DIMS(100000), VALUES(1));
  check_refused(f, build(&f->b, OP_SPLIT_COPY_TENSOR, A_VAL(wide), A_INT(1), A_INT(0)),
                "100000 pieces");
}

static void test_reorder(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(2, 3), COUNTING);
  check_value(f, build(&f->b, OP_FLIP, A_VAL(x), INTS(0, -1)), DTYPE_F32, DIMS(2, 3),
              VALUES(5, 4, 3, 2, 1, 0));
  check_value(f, build(&f->b, OP_ROLL, A_VAL(x), INTS(1, -1), INTS(1, 0)), DTYPE_F32, DIMS(2, 3),
              VALUES(5, 3, 4, 2, 0, 1));
  check_value(f, build(&f->b, OP_ROLL, A_VAL(x), INTS(-7), INTS(1)), DTYPE_F32, DIMS(2, 3),
              VALUES(1, 2, 0, 4, 5, 3));
  ValueId flat = build(&f->b, OP_ROLL, A_VAL(x), INTS(2));
  check_value(f, flat, DTYPE_F32, DIMS(2, 3), VALUES(4, 5, 0, 1, 2, 3));
  assert_non_null(op_row(OP_ROLL)->check(f->g, value_def(f->g, flat), &f->arena));
  check_value(f, build(&f->b, OP_UNFOLD_COPY, A_VAL(x), A_INT(1), A_INT(2), A_INT(1)), DTYPE_F32,
              DIMS(2, 2, 2), VALUES(0, 1, 1, 2, 3, 4, 4, 5));
  check_value(f, build(&f->b, OP_DIAGONAL_COPY, A_VAL(x), A_INT(1), A_INT(0), A_INT(1)), DTYPE_F32,
              DIMS(2), VALUES(1, 5));
  check_value(f, build(&f->b, OP_DIAGONAL_COPY, A_VAL(x), A_INT(-1), A_INT(0), A_INT(1)), DTYPE_F32,
              DIMS(1), VALUES(3));
  assert_int_equal(fixture_eval(f, build(&f->b, OP_DIAGONAL_COPY, A_VAL(x), A_INT(INT64_MIN),
                                         A_INT(0), A_INT(1)))
                       ->dims[0],
                   0);
  check_value(f, build(&f->b, OP_TRIL, A_VAL(x), A_INT(0)), DTYPE_F32, DIMS(2, 3),
              VALUES(0, 0, 0, 3, 4, 0));
  check_value(f, build(&f->b, OP_TRIU, A_VAL(x), A_INT(1)), DTYPE_F32, DIMS(2, 3),
              VALUES(0, 1, 2, 0, 0, 5));
  check_value(f, build(&f->b, OP_TRIL, A_VAL(x), A_INT(INT64_MAX)), DTYPE_F32, DIMS(2, 3),
              VALUES(0, 1, 2, 3, 4, 5));
  check_refused(f, build(&f->b, OP_UNFOLD_COPY, A_VAL(x), A_INT(1), A_INT(4), A_INT(1)),
                "must be at least 4");
  check_refused(f, build(&f->b, OP_DIAGONAL_COPY, A_VAL(x), A_INT(0), A_INT(1), A_INT(-1)),
                "two different");
  check_refused(f, build(&f->b, OP_ROLL, A_VAL(x), INTS(1, 2), INTS(1)), "2 shifts for 1 dims");
}

static void test_pads(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_I32, DIMS(2, 2), VALUES(1, 2, 3, 4));
  ValueId padded = build(&f->b, OP_CONSTANT_PAD_ND, A_VAL(x), INTS(1, 0, 0, 1), A_INT(9));
  check_value(f, padded, DTYPE_I32, DIMS(3, 3), VALUES(9, 1, 2, 9, 3, 4, 9, 9, 9));
  assert_null(op_row(OP_CONSTANT_PAD_ND)->check(f->g, value_def(f->g, padded), &f->arena));
  ValueId cropped = build(&f->b, OP_CONSTANT_PAD_ND, A_VAL(x), INTS(-1, 1), A_INT(9));
  check_value(f, cropped, DTYPE_I32, DIMS(2, 2), VALUES(2, 9, 4, 9));
  assert_non_null(op_row(OP_CONSTANT_PAD_ND)->check(f->g, value_def(f->g, cropped), &f->arena));
  check_refused(f, build(&f->b, OP_CONSTANT_PAD_ND, A_VAL(x), INTS(-3, 0), A_INT(9)),
                "after padding");
  check_refused(f, build(&f->b, OP_CONSTANT_PAD_ND, A_VAL(x), INTS(1), A_INT(9)), "1 pads");
  ValueId row = fixture_const(f, DTYPE_F32, DIMS(1, 3), COUNTING);
  check_value(f, build(&f->b, OP_REFLECTION_PAD1D, A_VAL(row), INTS(2, 1)), DTYPE_F32, DIMS(1, 6),
              VALUES(2, 1, 0, 1, 2, 1));
  check_value(f, build(&f->b, OP_REPLICATION_PAD1D, A_VAL(row), INTS(2, 4)), DTYPE_F32, DIMS(1, 9),
              VALUES(0, 0, 0, 1, 2, 2, 2, 2, 2));
  ValueId square = fixture_const(f, DTYPE_U8, DIMS(1, 2, 2), VALUES(1, 2, 3, 4));
  check_value(f, build(&f->b, OP_REFLECTION_PAD2D, A_VAL(square), INTS(1, 0, 1, 0)), DTYPE_U8,
              DIMS(1, 3, 3), VALUES(4, 3, 4, 2, 1, 2, 4, 3, 4));
  check_refused(f, build(&f->b, OP_REFLECTION_PAD1D, A_VAL(row), INTS(3, 0)), "must be at least 3");
  check_refused(f, build(&f->b, OP_REPLICATION_PAD1D, A_VAL(row), INTS(-1, 0)), "negative");
  check_refused(f, build(&f->b, OP_REPLICATION_PAD2D, A_VAL(row), INTS(1, 1, 1, 1)), "rank 2");
}

static void test_casts(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(4), VALUES(-1.9, 0, 2.5, 300));
  check_value(f, build(&f->b, OP_TO_COPY, A_VAL(x), A_DTYPE(DTYPE_I32)), DTYPE_I32, DIMS(4),
              VALUES(-1, 0, 2, 300));
  check_value(f, build(&f->b, OP_TO_COPY, A_VAL(x), A_DTYPE(DTYPE_BOOL)), DTYPE_BOOL, DIMS(4),
              VALUES(1, 0, 1, 1));
  check_value(f, build(&f->b, OP_TO_COPY, A_VAL(x)), DTYPE_F32, DIMS(4), VALUES(-1.9, 0, 2.5, 300));
  ValueId big = build_const_ints(&f->b, (int64_t[]){INT64_C(1) << 53 | 1, INT64_MIN}, 2);
  const Tensor *t = fixture_eval(f, build(&f->b, OP_TO_COPY, A_VAL(big), A_DTYPE(DTYPE_U64)));
  assert_true(tensor_load_int(t, 0) == (INT64_C(1) << 53 | 1));
  ValueId image = fixture_const(f, DTYPE_F32, DIMS(1, 2, 1, 1), VALUES(1, 2));
  ValueId last =
      build(&f->b, OP_TO_DIM_ORDER_COPY, A_VAL(image), A_NONE, A_BOOL(false), INTS(0, 2, 3, 1));
  assert_int_equal(value_type(f->g, last)->order, ORDER_CHANNELS_LAST);
  ValueId view = build(&f->b, OP_VIEW_COPY, A_VAL(last), INTS(2));
  assert_non_null(op_row(OP_VIEW_COPY)->check(f->g, value_def(f->g, view), &f->arena));
  check_refused(
      f, build(&f->b, OP_TO_DIM_ORDER_COPY, A_VAL(image), A_NONE, A_BOOL(false), INTS(3, 2, 1, 0)),
      "dim order");
  ValueId src = fixture_const(f, DTYPE_I64, DIMS(1), VALUES(7));
  check_value(
      f, build(&f->b, OP_GLU, A_VAL(fixture_const(f, DTYPE_F32, DIMS(2), VALUES(3, 0))), A_INT(0)),
      DTYPE_F32, DIMS(1), VALUES(1.5));
  check_refused(f, build(&f->b, OP_GLU, A_VAL(src), A_INT(0)), "floats");
  check_refused(f, build(&f->b, OP_COPY_, A_VAL(src), A_VAL(x)), "differ: 4 and 1");
}

/* A graph whose types do not follow the rules: no kernel copies elements of one type as another. */
static void test_wrong_types(void **state) {
  OpsFixture *f = *state;
  Builder *b = &f->b;
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(1, 4, 2, 2), COUNTING),
          at = fixture_const(f, DTYPE_I64, DIMS(1), VALUES(0)),
          places = fixture_const(f, DTYPE_I64, DIMS(1, 4, 2, 2), VALUES(0));
  const ValueId built[] = {
      build(b, OP_REPEAT, A_VAL(x), INTS(2, 1, 1, 1)),
      build(b, OP_EXPAND_COPY, A_VAL(x), INTS(3, 4, 2, 2)),
      build(b, OP_VIEW_COPY, A_VAL(x), INTS(16)),
      build(b, OP_PERMUTE_COPY, A_VAL(x), INTS(1, 0, 3, 2)),
      build(b, OP_UNFOLD_COPY, A_VAL(x), A_INT(1), A_INT(2), A_INT(1)),
      build(b, OP_DIAGONAL_COPY, A_VAL(x), A_INT(0), A_INT(2), A_INT(3)),
      build(b, OP_SLICE_COPY_TENSOR, A_VAL(x), A_INT(1), A_INT(1), A_INT(3), A_INT(1)),
      build(b, OP_SELECT_COPY_INT, A_VAL(x), A_INT(1), A_INT(2)),
      build(b, OP_CONSTANT_PAD_ND, A_VAL(x), INTS(1, 1), A_INT(0)),
      build(b, OP_REFLECTION_PAD2D, A_VAL(x), INTS(1, 1, 1, 1)),
      build(b, OP_AS_STRIDED_COPY, A_VAL(x), INTS(2, 2), INTS(1, 2), A_INT(0)),
      build(b, OP_SPLIT_COPY_TENSOR, A_VAL(x), A_INT(2), A_INT(1)),
      build(b, OP_INDEX_SELECT, A_VAL(x), A_INT(1), A_VAL(at)),
      build(b, OP_GATHER, A_VAL(x), A_INT(1), A_VAL(places)),
      build(b, OP_PIXEL_SHUFFLE, A_VAL(x), A_INT(2)),
      build(b, OP_FLIP, A_VAL(x), INTS(1)),
      build(b, OP_ROLL, A_VAL(x), INTS(1), INTS(1)),
      build(b, OP_TRIL, A_VAL(x), A_INT(0)),
      build(b, OP_CLONE, A_VAL(x)),
  };
  for (size_t i = 0; i < COUNT_OF(built); i++) {
    assert_int_not_equal(built[i], 0);
    const Type *t = value_type(f->g, built[i]);
    value_set_type(f->g, built[i],
                   graph_tensor_type(f->g, DTYPE_I32, t->rank, t->dims, ORDER_CONTIGUOUS));
    check_run_error(f, built[i], "f32");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OPS_TEST(test_view),          OPS_TEST(test_squeeze),
      OPS_TEST(test_permute_sizes), OPS_TEST(test_large_transpose),
      OPS_TEST(test_expand_repeat), OPS_TEST(test_as_strided),
      OPS_TEST(test_slice),         OPS_TEST(test_scatter_parts),
      OPS_TEST(test_cat_stack),     OPS_TEST(test_split),
      OPS_TEST(test_reorder),       OPS_TEST(test_pads),
      OPS_TEST(test_casts),         OPS_TEST(test_wrong_types),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
