/* Pools, resizing, sampling, pixel shuffles: small cases worked out by hand. */
#include "ops_fixture.h"

#define INTS(...)                                                                                  \
  A_INTS(((const SymInt[]){__VA_ARGS__}), sizeof((const SymInt[]){__VA_ARGS__}) / sizeof(SymInt))
#define FLOATS(...)                                                                                \
  A_FLOATS(((const double[]){__VA_ARGS__}), sizeof((const double[]){__VA_ARGS__}) / sizeof(double))
#define NO_INTS A_INTS(NULL, 0)

static const char *refusal(OpsFixture *f, ValueId v) {
  NodeId n = value_def(f->g, v);
  return op_row(node_cget(f->g, n)->op)->check(f->g, n, &f->arena);
}

static void test_max_pool(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(1, 3, 3), VALUES(1, 5, 5, 4, NAN, 6, 9, 8, 7));
  const Tensor *t =
      fixture_eval(f, build(&f->b, OP_MAX_POOL2D_WITH_INDICES, A_VAL(x), INTS(2), INTS(1)));
  check_tensor(&t[0], DTYPE_F32, DIMS(1, 2, 2), VALUES(NAN, NAN, NAN, NAN), 0);
  check_tensor(&t[1], DTYPE_I64, DIMS(1, 2, 2), VALUES(4, 4, 4, 4), 0);
  x = fixture_const(f, DTYPE_I8, DIMS(1, 3, 3), VALUES(1, 5, 5, 4, 3, 6, 9, 8, 7));
  /* the stride is the kernel's, ceil_mode adds a window at the end */
  t = fixture_eval(f, build(&f->b, OP_MAX_POOL2D_WITH_INDICES, A_VAL(x), INTS(2), NO_INTS, INTS(0),
                            INTS(1), A_BOOL(true)));
  check_tensor(&t[0], DTYPE_I8, DIMS(1, 2, 2), VALUES(5, 6, 9, 7), 0);
  check_tensor(&t[1], DTYPE_I64, DIMS(1, 2, 2), VALUES(1, 5, 6, 8),
               0); /* the first of equal ones */
  t = fixture_eval(
      f, build(&f->b, OP_MAX_POOL2D_WITH_INDICES, A_VAL(x), INTS(2), INTS(2), INTS(1), INTS(2)));
  check_tensor(&t[0], DTYPE_I8, DIMS(1, 2, 2), VALUES(3, 3, 3, 3), 0);
  check_refused(f, build(&f->b, OP_MAX_POOL2D_WITH_INDICES, A_VAL(x), INTS(4)), "window");
  check_refused(f, build(&f->b, OP_MAX_POOL2D_WITH_INDICES, A_VAL(x), INTS(0)), "kernel_size 0");
  check_refused(f, build(&f->b, OP_MAX_POOL2D_WITH_INDICES, A_VAL(x), INTS(2), INTS(-1)),
                "stride -1");
  check_refused(f, build(&f->b, OP_MAX_POOL2D_WITH_INDICES, A_VAL(x), INTS(1, 1, 1)), "3 entries");
  check_refused(f,
                build(&f->b, OP_MAX_POOL2D_WITH_INDICES, A_VAL(x), INTS(1), NO_INTS, INTS(0),
                      INTS(INT64_MAX)),
                "dilation");
  assert_non_null(
      refusal(f, build(&f->b, OP_MAX_POOL2D_WITH_INDICES, A_VAL(x), INTS(2), INTS(1), INTS(2))));
  assert_null(
      refusal(f, build(&f->b, OP_MAX_POOL2D_WITH_INDICES, A_VAL(x), INTS(2), INTS(1), INTS(1))));
}

static void test_avg_pool(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(1, 1, 2, 2), VALUES(1, 2, 3, 6));
  check_value(f, build(&f->b, OP_AVG_POOL2D, A_VAL(x), INTS(2), INTS(2), INTS(1)), DTYPE_F32,
              DIMS(1, 1, 2, 2), VALUES(0.25, 0.5, 0.75, 1.5));
  check_value(f,
              build(&f->b, OP_AVG_POOL2D, A_VAL(x), INTS(2), INTS(2), INTS(1), A_BOOL(false),
                    A_BOOL(false)),
              DTYPE_F32, DIMS(1, 1, 2, 2), VALUES(1, 2, 3, 6));
  check_value(f,
              build(&f->b, OP_AVG_POOL2D, A_VAL(x), INTS(2), NO_INTS, INTS(0), A_BOOL(false),
                    A_BOOL(true), A_INT(6)),
              DTYPE_F32, DIMS(1, 1, 1, 1), VALUES(2));
  ValueId odd = fixture_const(f, DTYPE_I64, DIMS(1, 1, 3), VALUES(3, 4, 9));
  check_value(f,
              build(&f->b, OP_AVG_POOL2D, A_VAL(odd), INTS(1, 2), INTS(2), INTS(0), A_BOOL(true)),
              DTYPE_I64, DIMS(1, 1, 2), VALUES(3, 9));
  check_refused(f,
                build(&f->b, OP_AVG_POOL2D, A_VAL(x), INTS(2), NO_INTS, INTS(0), A_BOOL(false),
                      A_BOOL(true), A_INT(0)),
                "divisor_override");
  ValueId row = fixture_const(f, DTYPE_F32, DIMS(1, 1, 5), VALUES(1, 2, 3, 4, 5));
  check_value(f, build(&f->b, OP_ADAPTIVE_AVG_POOL2D, A_VAL(row), INTS(1, 3)), DTYPE_F32,
              DIMS(1, 1, 3), VALUES(1.5, 3, 4.5));
  check_refused(f, build(&f->b, OP_ADAPTIVE_AVG_POOL2D, A_VAL(row), INTS(0, 1)), "output_size");
}

static void test_upsample(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(1, 1, 1, 2), VALUES(0, 4));
  check_value(f, build(&f->b, OP_UPSAMPLE_NEAREST2D_VEC, A_VAL(x), INTS(1, 4), A_NONE), DTYPE_F32,
              DIMS(1, 1, 1, 4), VALUES(0, 0, 4, 4));
  check_value(f, build(&f->b, OP_UPSAMPLE_NEAREST2D_VEC, A_VAL(x), A_NONE, FLOATS(1, 1.5)),
              DTYPE_F32, DIMS(1, 1, 1, 3), VALUES(0, 0, 4));
  check_value(f,
              build(&f->b, OP_UPSAMPLE_BILINEAR2D_VEC, A_VAL(x), INTS(1, 4), A_BOOL(false), A_NONE),
              DTYPE_F32, DIMS(1, 1, 1, 4), VALUES(0, 1, 3, 4));
  check_value(f,
              build(&f->b, OP_UPSAMPLE_BILINEAR2D_VEC, A_VAL(x), INTS(1, 5), A_BOOL(true), A_NONE),
              DTYPE_F32, DIMS(1, 1, 1, 5), VALUES(0, 1, 2, 3, 4));
  check_refused(f, build(&f->b, OP_UPSAMPLE_NEAREST2D_VEC, A_VAL(x), A_NONE, A_NONE),
                "exactly one");
  check_refused(f, build(&f->b, OP_UPSAMPLE_NEAREST2D_VEC, A_VAL(x), INTS(1, 4), FLOATS(1, 2)),
                "exactly one");
  check_refused(f, build(&f->b, OP_UPSAMPLE_NEAREST2D_VEC, A_VAL(x), INTS(1), A_NONE), "2 entries");
  check_refused(f, build(&f->b, OP_UPSAMPLE_NEAREST2D_VEC, A_VAL(x), A_NONE, FLOATS(NAN, 1)),
                "out of range");
  check_refused(f, build(&f->b, OP_UPSAMPLE_NEAREST2D_VEC, A_VAL(x), A_NONE, FLOATS(0.25, 1)),
                "after resizing");
  check_refused(
      f, build(&f->b, OP_UPSAMPLE_BILINEAR2D_VEC, A_VAL(x), INTS(0, 1), A_BOOL(false), A_NONE),
      "after resizing");
}

static void test_grid_sampler(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(1, 1, 2, 2), VALUES(1, 2, 3, 4));
  /* the middle, a corner, outside, not a number */
  ValueId grid =
      fixture_const(f, DTYPE_F32, DIMS(1, 1, 4, 2), VALUES(0, 0, 1, 1, -3, -1, NAN, 1e30));
  ValueId bilinear =
      build(&f->b, OP_GRID_SAMPLER_2D, A_VAL(x), A_VAL(grid), A_INT(0), A_INT(0), A_BOOL(true));
  const Tensor *t = fixture_eval(f, bilinear);
  assert_true(tensor_load(t, 0) == 2.5 && tensor_load(t, 1) == 4 && tensor_load(t, 2) == 0 &&
              tensor_load(t, 3) == 0);
  t = fixture_eval(
      f, build(&f->b, OP_GRID_SAMPLER_2D, A_VAL(x), A_VAL(grid), A_INT(1), A_INT(1), A_BOOL(true)));
  assert_true(tensor_load(t, 1) == 4 && tensor_load(t, 2) == 1);
  t = fixture_eval(
      f, build(&f->b, OP_GRID_SAMPLER_2D, A_VAL(x), A_VAL(grid), A_INT(1), A_INT(2), A_BOOL(true)));
  assert_true(tensor_load(t, 2) == 2); /* x = -3 is position -1, reflected to 1; y is row 0 */
  t = fixture_eval(
      f, build(&f->b, OP_GRID_SAMPLER_2D, A_VAL(x), A_VAL(grid), A_INT(2), A_INT(1), A_BOOL(true)));
  assert_true(tensor_load(t, 0) == 2.5); /* symmetric weights around the middle */
  check_refused(
      f, build(&f->b, OP_GRID_SAMPLER_2D, A_VAL(x), A_VAL(grid), A_INT(3), A_INT(0), A_BOOL(true)),
      "0, 1 or 2");
}

static void test_pixel_shuffle(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_I16, DIMS(4, 1, 2), VALUES(0, 1, 2, 3, 4, 5, 6, 7));
  ValueId wide = build(&f->b, OP_PIXEL_SHUFFLE, A_VAL(x), A_INT(2));
  check_value(f, wide, DTYPE_I16, DIMS(1, 2, 4), VALUES(0, 2, 1, 3, 4, 6, 5, 7));
  ValueId again = fixture_const(f, DTYPE_I16, DIMS(1, 2, 4), VALUES(0, 2, 1, 3, 4, 6, 5, 7));
  check_value(f, build(&f->b, OP_PIXEL_UNSHUFFLE, A_VAL(again), A_INT(2)), DTYPE_I16, DIMS(4, 1, 2),
              VALUES(0, 1, 2, 3, 4, 5, 6, 7));
  check_refused(f, build(&f->b, OP_PIXEL_SHUFFLE, A_VAL(x), A_INT(3)), "cannot be divided by 9");
  check_refused(f, build(&f->b, OP_PIXEL_SHUFFLE, A_VAL(x), A_INT(INT64_MAX)), "out of range");
  check_refused(f, build(&f->b, OP_PIXEL_UNSHUFFLE, A_VAL(x), A_INT(2)), "the height, 1");
}

/* f32 has a loop of its own: the same as f64 on every window, NaN and padding among them. */
static void test_max_pool_types(void **state) {
  static const SymInt forms[][8] = {/* kernel, stride, padding, dilation */
                                    {3, 3, 2, 2, 1, 1, 1, 1},
                                    {2, 2, 2, 2, 0, 0, 1, 1},
                                    {3, 2, 1, 3, 1, 0, 2, 1},
                                    {1, 5, 1, 1, 0, 2, 1, 2},
                                    {3, 3, 3, 3, 1, 1, 3, 3}};
  double values[2 * 9 * 11];
  for (int i = 0; i < (int)COUNT_OF(values); i++)
    values[i] = i % 37 == 5 ? NAN : i % 41 == 7 ? -INFINITY : i * 29 % 17 - 8;
  for (size_t i = 0; i < COUNT_OF(forms); i++) {
    OpsFixture f;
    fixture_init(&f);
    const Tensor *results[2];
    DType dtypes[] = {DTYPE_F32, DTYPE_F64};
    for (unsigned t = 0; t < 2; t++) {
      ValueId x = fixture_const(&f, dtypes[t], DIMS(1, 2, 9, 11), values, COUNT_OF(values));
      results[t] =
          fixture_eval(&f, build(&f.b, OP_MAX_POOL2D_WITH_INDICES, A_VAL(x), A_INTS(forms[i], 2),
                                 A_INTS(forms[i] + 2, 2), A_INTS(forms[i] + 4, 2),
                                 A_INTS(forms[i] + 6, 2), A_BOOL(i % 2)));
    }
    for (int64_t k = 0; k < tensor_numel(&results[0][0]); k++) {
      double a = tensor_load(&results[0][0], k), b = tensor_load(&results[1][0], k);
      assert_true(a == b || (isnan(a) && isnan(b)));
      assert_int_equal(tensor_load_int(&results[0][1], k), tensor_load_int(&results[1][1], k));
    }
    fixture_release(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_max_pool_types),
      OPS_TEST(test_max_pool),
      OPS_TEST(test_avg_pool),
      OPS_TEST(test_upsample),
      OPS_TEST(test_grid_sampler),
      OPS_TEST(test_pixel_shuffle),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
