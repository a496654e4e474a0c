/* Reference kernels of the elementwise, reduction, matrix, norm, factory and scalar ops on small
 * cases worked out by hand, and on the edges where the runtime's kernels differ from torch or C
 * leaves a result open. */
#include "ops_fixture.h"

#define F32(f, ...) fixture_const((f), DTYPE_F32, __VA_ARGS__)
#define I64(f, ...) fixture_const((f), DTYPE_I64, __VA_ARGS__)

static void test_unary(void **state) {
  OpsFixture *f = *state;
  Builder *b = &f->b;
  ValueId x = F32(f, DIMS(2, 3), VALUES(-1.5, -0.5, 0, 0.5, 2.5, NAN));
  check_value(f, build(b, OP_ROUND, A_VAL(x)), DTYPE_F32, DIMS(2, 3), VALUES(-2, 0, 0, 0, 2, NAN));
  check_value(f, build(b, OP_RELU, A_VAL(x)), DTYPE_F32, DIMS(2, 3),
              VALUES(0, 0, 0, 0.5, 2.5, NAN));
  check_value(f, build(b, OP_SIGN, A_VAL(x)), DTYPE_F32, DIMS(2, 3), VALUES(-1, -1, 0, 1, 1, NAN));
  check_value(f, build(b, OP_CLAMP, A_VAL(x), A_FLOAT(-1), A_INT(1)), DTYPE_F32, DIMS(2, 3),
              VALUES(-1, -0.5, 0, 0.5, 1, NAN));
  check_value(f, build(b, OP_ISNAN, A_VAL(x)), DTYPE_BOOL, DIMS(2, 3), VALUES(0, 0, 0, 0, 0, 1));
  check_value(f, build(b, OP_LEAKY_RELU, A_VAL(x), A_FLOAT(0.1)), DTYPE_F32, DIMS(2, 3),
              VALUES(-0.15, -0.05, 0, 0.5, 2.5, NAN));
  check_value(f, build(b, OP_GELU, A_VAL(F32(f, DIMS(2), VALUES(1, -1))), A_STR("none")), DTYPE_F32,
              DIMS(2), VALUES(0.84134475, -0.15865525));
  ValueId i = I64(f, DIMS(3), VALUES(0, 1, -3));
  check_value(f, build(b, OP_EXP, A_VAL(i)), DTYPE_F32, DIMS(3),
              VALUES(1, 2.71828183, 0.049787068));
  check_value(f, build(b, OP_BITWISE_NOT, A_VAL(i)), DTYPE_I64, DIMS(3), VALUES(-1, -2, 2));
  ValueId u = fixture_const(f, DTYPE_U8, DIMS(2), VALUES(1, 255));
  check_value(f, build(b, OP_BITWISE_NOT, A_VAL(u)), DTYPE_U8, DIMS(2), VALUES(254, 0));
  check_value(f, build(b, OP_NEG, A_VAL(u)), DTYPE_U8, DIMS(2), VALUES(255, 1));
  ValueId least = build_const(b, DTYPE_I64, 0, NULL, &(int64_t){INT64_MIN});
  assert_true(tensor_load_int(fixture_eval(f, build(b, OP_ABS, A_VAL(least))), 0) ==
              INT64_MIN); /* wraps */
  ValueId h = fixture_const(f, DTYPE_F16, DIMS(2), VALUES(4, 0.25));
  check_value(f, build(b, OP_SQRT, A_VAL(h)), DTYPE_F16, DIMS(2), VALUES(2, 0.5));
}

static void test_binary(void **state) {
  OpsFixture *f = *state;
  Builder *b = &f->b;
  ValueId m = F32(f, DIMS(2, 2), VALUES(1, 2, 3, 4)), row = F32(f, DIMS(2), VALUES(10, 20)),
          col = F32(f, DIMS(2, 1), VALUES(1, -1));
  check_value(f, build(b, OP_ADD_TENSOR, A_VAL(m), A_VAL(row)), DTYPE_F32, DIMS(2, 2),
              VALUES(11, 22, 13, 24));
  check_value(f, build(b, OP_SUB_TENSOR, A_VAL(m), A_VAL(col), A_INT(2)), DTYPE_F32, DIMS(2, 2),
              VALUES(-1, 0, 5, 6));
  check_value(f, build(b, OP_MUL_TENSOR, A_VAL(row), A_VAL(col)), DTYPE_F32, DIMS(2, 2),
              VALUES(10, 20, -10, -20));
  check_value(f, build(b, OP_RSUB_SCALAR, A_VAL(row), A_INT(1)), DTYPE_F32, DIMS(2),
              VALUES(-9, -19));
  check_value(f, build(b, OP_GE_TENSOR, A_VAL(m), A_VAL(F32(f, DIMS(), VALUES(3)))), DTYPE_BOOL,
              DIMS(2, 2), VALUES(0, 0, 1, 1));
  ValueId a = I64(f, DIMS(4), VALUES(7, -7, 7, -7)), d = I64(f, DIMS(4), VALUES(2, 2, -2, -2)),
          zero = I64(f, DIMS(1), VALUES(0));
  check_value(f, build(b, OP_FLOOR_DIVIDE, A_VAL(a), A_VAL(d)), DTYPE_I64, DIMS(4),
              VALUES(3, -4, -4, 3));
  check_value(f, build(b, OP_DIV_TENSOR_MODE, A_VAL(a), A_VAL(d), A_STR("trunc")), DTYPE_I64,
              DIMS(4), VALUES(3, -3, -3, 3));
  check_value(f, build(b, OP_DIV_TENSOR, A_VAL(a), A_VAL(d)), DTYPE_F32, DIMS(4),
              VALUES(3.5, -3.5, -3.5, 3.5));
  check_value(f, build(b, OP_REMAINDER_TENSOR, A_VAL(a), A_VAL(d)), DTYPE_I64, DIMS(4),
              VALUES(1, -1, 1, -1)); /* C's sign */
  check_value(f, build(b, OP_FMOD_TENSOR, A_VAL(a), A_VAL(d)), DTYPE_I64, DIMS(4),
              VALUES(1, -1, 1, -1));
  check_run_error(f, build(b, OP_FLOOR_DIVIDE, A_VAL(a), A_VAL(zero)), "division by zero");
  check_run_error(f, build(b, OP_FMOD_TENSOR, A_VAL(a), A_VAL(zero)), "division by zero");
  ValueId x = F32(f, DIMS(4), VALUES(0, -1, 7, -7)), y = F32(f, DIMS(4), VALUES(0, 0, -2, 2));
  check_value(f, build(b, OP_FLOOR_DIVIDE, A_VAL(x), A_VAL(y)), DTYPE_F32, DIMS(4),
              VALUES(INFINITY, -INFINITY, -4, -4));
  check_value(f, build(b, OP_REMAINDER_TENSOR, A_VAL(x), A_VAL(y)), DTYPE_F32, DIMS(4),
              VALUES(NAN, NAN, -1, 1));
  check_value(f,
              build(b, OP_MAXIMUM, A_VAL(F32(f, DIMS(2), VALUES(NAN, 1))),
                    A_VAL(F32(f, DIMS(2), VALUES(1, NAN)))),
              DTYPE_F32, DIMS(2), VALUES(NAN, NAN));
  ValueId base = fixture_const(f, DTYPE_I32, DIMS(3), VALUES(2, 3, -2)),
          power = fixture_const(f, DTYPE_I32, DIMS(3), VALUES(10, -1, 3));
  check_value(f, build(b, OP_POW_TENSOR_TENSOR, A_VAL(base), A_VAL(power)), DTYPE_I32, DIMS(3),
              VALUES(1024, 0, -8));
  ValueId bits = fixture_const(f, DTYPE_I8, DIMS(4), VALUES(1, -8, 1, -8)),
          by = fixture_const(f, DTYPE_I8, DIMS(4), VALUES(3, 2, 100, -1));
  check_value(f, build(b, OP_BITWISE_LEFT_SHIFT_TENSOR, A_VAL(bits), A_VAL(by)), DTYPE_I8, DIMS(4),
              VALUES(8, -32, 0, 0));
  check_value(f, build(b, OP_BITWISE_RIGHT_SHIFT_TENSOR, A_VAL(bits), A_VAL(by)), DTYPE_I8, DIMS(4),
              VALUES(0, -2, 0, -1));
  ValueId mask = fixture_const(f, DTYPE_BOOL, DIMS(2, 1), VALUES(1, 0));
  check_value(f, build(b, OP_WHERE_SELF, A_VAL(mask), A_VAL(row), A_VAL(m)), DTYPE_F32, DIMS(2, 2),
              VALUES(10, 20, 3, 4));
  check_value(f, build(b, OP_MASKED_FILL_SCALAR, A_VAL(row), A_VAL(mask), A_FLOAT(-INFINITY)),
              DTYPE_F32, DIMS(2, 2), VALUES(-INFINITY, -INFINITY, 10, 20));
}

/* More elements than a block, with an operand that is stepped through out of order. */
static void test_long_broadcast(void **state) {
  OpsFixture *f = *state;
  double values[7] = {1, 2, 3, 4, 5, 6, 7};
  ValueId a = fixture_const(f, DTYPE_F32, DIMS(3, 5, 700), values, 7),
          c = fixture_const(f, DTYPE_I32, DIMS(3, 1, 700), values, 5);
  const Tensor *t = fixture_eval(f, build(&f->b, OP_ADD_TENSOR, A_VAL(a), A_VAL(c)));
  for (int64_t i = 0; i < 3 * 5 * 700; i++) {
    int64_t small = i / 3500 * 700 + i % 700;
    assert_true(tensor_load(t, i) == values[i % 7] + values[small % 5]);
  }
}

static void test_reduce(void **state) {
  OpsFixture *f = *state;
  Builder *b = &f->b;
  ValueId x = F32(f, DIMS(2, 3, 2), VALUES(1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, 12));
  check_value(f, build(b, OP_SUM_DIM_INTLIST, A_VAL(x), A_INTS((SymInt[]){1}, 1)), DTYPE_F32,
              DIMS(2, 2), VALUES(9, 12, -9, 6));
  check_value(f,
              build(b, OP_SUM_DIM_INTLIST, A_VAL(x), A_INTS(((SymInt[]){0, 2}), 2), A_BOOL(true)),
              DTYPE_F32, DIMS(1, 3, 1), VALUES(0, 0, 18));
  check_value(f, build(b, OP_MEAN, A_VAL(x)), DTYPE_F32, DIMS(), VALUES(1.5));
  check_value(f, build(b, OP_AMAX, A_VAL(x), A_INTS(((SymInt[]){0, 1}), 2)), DTYPE_F32, DIMS(2),
              VALUES(5, 12));
  check_value(f, build(b, OP_AMIN, A_VAL(F32(f, DIMS(3), VALUES(1, NAN, -1)))), DTYPE_F32, DIMS(),
              VALUES(NAN));
  ValueId v = F32(f, DIMS(4), VALUES(1, 2, 3, 6));
  check_value(f, build(b, OP_VAR_CORRECTION, A_VAL(v)), DTYPE_F32, DIMS(), VALUES(14.0 / 3));
  ValueId vm = build(b, OP_VAR_MEAN_CORRECTION, A_VAL(v), A_NONE, A_INT(0));
  const Tensor *two = fixture_eval(f, vm);
  assert_true(tensor_load(&two[0], 0) == 3.5 && tensor_load(&two[1], 0) == 3);
  two = fixture_eval(f, build(b, OP_VAR_MEAN_CORRECTION, A_VAL(v), A_NONE, A_INT(4)));
  assert_true(isnan(tensor_load(&two[0], 0)) && isnan(tensor_load(&two[1], 0)));
  check_value(f, build(b, OP_ARGMAX, A_VAL(F32(f, DIMS(5), VALUES(1, 7, 7, NAN, NAN))), A_INT(0)),
              DTYPE_I64, DIMS(), VALUES(3));
  check_value(f, build(b, OP_ARGMIN, A_VAL(F32(f, DIMS(4), VALUES(3, 1, 1, 2))), A_NONE), DTYPE_I64,
              DIMS(), VALUES(1));
  ValueId flags = fixture_const(f, DTYPE_BOOL, DIMS(2, 2), VALUES(0, 1, 0, 0));
  check_value(f, build(b, OP_ANY_DIM, A_VAL(flags), A_INT(1)), DTYPE_BOOL, DIMS(2), VALUES(1, 0));
  check_value(f, build(b, OP_SUM_DIM_INTLIST, A_VAL(flags), A_NONE), DTYPE_I64, DIMS(), VALUES(1));
  check_value(f,
              build(b, OP_CUMSUM, A_VAL(fixture_const(f, DTYPE_U8, DIMS(3), VALUES(200, 100, 1))),
                    A_INT(0)),
              DTYPE_I64, DIMS(3), VALUES(200, 300, 301));
  check_value(f,
              build(b, OP_SOFTMAX, A_VAL(F32(f, DIMS(2, 2), VALUES(1000, 1000, 0, -INFINITY))),
                    A_INT(1), A_BOOL(false)),
              DTYPE_F32, DIMS(2, 2), VALUES(0.5, 0.5, 1, 0));
  check_value(
      f, build(b, OP_LOG_SOFTMAX, A_VAL(F32(f, DIMS(2), VALUES(0, 0))), A_INT(0), A_BOOL(false)),
      DTYPE_F32, DIMS(2), VALUES(-0.69314718, -0.69314718));
  ValueId top = build(b, OP_TOPK, A_VAL(F32(f, DIMS(5), VALUES(2, 9, 2, NAN, 2))), A_INT(4));
  const Tensor *k = fixture_eval(f, top);
  check_tensor(&k[0], DTYPE_F32, DIMS(4), VALUES(NAN, 9, 2, 2), 0);
  check_tensor(&k[1], DTYPE_I64, DIMS(4), VALUES(3, 1, 0, 2), 0);
  ValueId empty = F32(f, DIMS(0, 2), VALUES(0));
  check_value(f, build(b, OP_SUM_DIM_INTLIST, A_VAL(empty), A_INTS((SymInt[]){0}, 1)), DTYPE_F32,
              DIMS(2), VALUES(0, 0));
  check_value(f, build(b, OP_PROD, A_VAL(empty)), DTYPE_F32, DIMS(), VALUES(1));
  check_value(f, build(b, OP_MEAN, A_VAL(empty)), DTYPE_F32, DIMS(), VALUES(NAN));
}

static void test_products(void **state) {
  OpsFixture *f = *state;
  Builder *b = &f->b;
  DType dtypes[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16, DTYPE_I64, DTYPE_I8};
  for (uint32_t i = 0; i < COUNT_OF(dtypes); i++) {
    DType t = dtypes[i];
    ValueId x = fixture_const(f, t, DIMS(2, 3), VALUES(1, 2, 3, 4, 5, 6)),
            y = fixture_const(f, t, DIMS(3, 2), VALUES(1, 0, 0, 1, -1, 2));
    ValueId bias = fixture_const(f, t, DIMS(2), VALUES(10, 20)),
            w = fixture_const(f, t, DIMS(2, 3), VALUES(1, 0, -1, 0, 1, 2));
    ValueId batch = fixture_const(f, t, DIMS(3, 1, 2), VALUES(1, 2, 3, 4, 5, 6)),
            other = fixture_const(f, t, DIMS(3, 2, 1), VALUES(1, -1));
    check_value(f, build(b, OP_MM, A_VAL(x), A_VAL(y)), t, DIMS(2, 2), VALUES(-2, 8, -2, 17));
    check_value(f, build(b, OP_ADDMM, A_VAL(bias), A_VAL(x), A_VAL(y), A_INT(2), A_INT(3)), t,
                DIMS(2, 2), VALUES(14, 64, 14, 91));
    check_value(f, build(b, OP_LINEAR, A_VAL(x), A_VAL(w), A_VAL(bias)), t, DIMS(2, 2),
                VALUES(8, 28, 8, 37));
    check_value(f, build(b, OP_BMM, A_VAL(batch), A_VAL(other)), t, DIMS(3, 1, 1),
                VALUES(-1, -1, -1));
  }
  ValueId nan = F32(f, DIMS(1), VALUES(NAN)), one = F32(f, DIMS(1, 1), VALUES(1));
  check_value(f, build(b, OP_ADDMM, A_VAL(nan), A_VAL(one), A_VAL(one), A_INT(0)), DTYPE_F32,
              DIMS(1, 1), VALUES(1));
  ValueId none = F32(f, DIMS(2, 0), VALUES(0)), nothing = F32(f, DIMS(0, 2), VALUES(0));
  check_value(f, build(b, OP_MM, A_VAL(none), A_VAL(nothing)), DTYPE_F32, DIMS(2, 2),
              VALUES(0, 0, 0, 0));
  ValueId p = F32(f, DIMS(2, 2), VALUES(0, 0, 3, 4)), q = F32(f, DIMS(1, 2), VALUES(0, 4));
  check_value(f, build(b, OP_CDIST_FORWARD, A_VAL(p), A_VAL(q), A_FLOAT(2), A_NONE), DTYPE_F32,
              DIMS(2, 1), VALUES(4, 3));
  check_value(f, build(b, OP_CDIST_FORWARD, A_VAL(p), A_VAL(q), A_FLOAT(0), A_NONE), DTYPE_F32,
              DIMS(2, 1), VALUES(1, 1));
}

typedef struct ConvCase {
  SymInt stride, padding, dilation, output_padding, groups;
  bool transposed;
} ConvCase;

static ValueId conv(OpsFixture *f, ValueId x, ValueId w, ValueId bias, ConvCase c) {
  return build(&f->b, OP_CONVOLUTION, A_VAL(x), A_VAL(w), bias ? A_VAL(bias) : A_NONE,
               A_INTS(&c.stride, 1), A_INTS(&c.padding, 1), A_INTS(&c.dilation, 1),
               A_BOOL(c.transposed), A_INTS(&c.output_padding, 1), A_INT(c.groups));
}

static void test_convolution(void **state) {
  OpsFixture *f = *state;
  DType dtypes[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_I32};
  for (uint32_t i = 0; i < COUNT_OF(dtypes); i++) {
    DType t = dtypes[i];
    ValueId line = fixture_const(f, t, DIMS(1, 1, 5), VALUES(1, 2, 3, 4, 5)),
            w = fixture_const(f, t, DIMS(1, 1, 3), VALUES(1, 0, -1));
    ValueId bias = fixture_const(f, t, DIMS(1), VALUES(10));
    check_value(f, conv(f, line, w, 0, (ConvCase){1, 0, 1, 0, 1, false}), t, DIMS(1, 1, 3),
                VALUES(-2, -2, -2));
    check_value(f, conv(f, line, w, bias, (ConvCase){2, 1, 1, 0, 1, false}), t, DIMS(1, 1, 3),
                VALUES(8, 8, 14));
    check_value(f, conv(f, line, w, 0, (ConvCase){1, 1, 2, 0, 1, false}), t, DIMS(1, 1, 3),
                VALUES(-4, -4, 2));
    check_value(f, conv(f, line, w, bias, (ConvCase){2, 1, 1, 1, 1, true}), t, DIMS(1, 1, 10),
                VALUES(10, 11, 10, 11, 10, 11, 10, 11, 10, 5));
    /* two groups of one channel: each with its own kernel */
    ValueId pair = fixture_const(f, t, DIMS(1, 2, 2, 2), VALUES(1, 2, 3, 4, 5, 6, 7, 8)),
            k = fixture_const(f, t, DIMS(2, 1, 1, 2), VALUES(1, 1, 1, -1));
    check_value(f, conv(f, pair, k, 0, (ConvCase){1, 0, 1, 0, 2, false}), t, DIMS(1, 2, 2, 1),
                VALUES(3, 7, -1, -1));
    /* one group over both channels, pointwise */
    ValueId point = fixture_const(f, t, DIMS(1, 2, 1, 1), VALUES(1, -1));
    check_value(f, conv(f, pair, point, 0, (ConvCase){1, 0, 1, 0, 1, false}), t, DIMS(1, 1, 2, 2),
                VALUES(-4, -4, -4, -4));
    ValueId cube = fixture_const(f, t, DIMS(1, 1, 2, 2, 2), VALUES(1, 2, 3, 4, 5, 6, 7, 8)),
            all = fixture_const(f, t, DIMS(1, 1, 2, 2, 2), VALUES(1));
    check_value(f, conv(f, cube, all, 0, (ConvCase){1, 0, 1, 0, 1, false}), t, DIMS(1, 1, 1, 1, 1),
                VALUES(36));
  }
}

static void test_norms(void **state) {
  OpsFixture *f = *state;
  Builder *b = &f->b;
  DType dtypes[] = {DTYPE_F32, DTYPE_F64, DTYPE_BF16};
  for (uint32_t i = 0; i < COUNT_OF(dtypes); i++) {
    DType t = dtypes[i];
    ValueId x = fixture_const(f, t, DIMS(2, 2, 2), VALUES(1, 3, 5, 9, 2, 2, -1, 1)),
            w = fixture_const(f, t, DIMS(2), VALUES(2, 4));
    ValueId c = fixture_const(f, t, DIMS(2), VALUES(1, -1)),
            mean = fixture_const(f, t, DIMS(2), VALUES(1, 3)),
            var = fixture_const(f, t, DIMS(2), VALUES(4, 0.25));
    ValueId bn = build(b, OP_NATIVE_BATCH_NORM_LEGIT_NO_TRAINING, A_VAL(x), A_VAL(w), A_VAL(c),
                       A_VAL(mean), A_VAL(var), A_FLOAT(0.1), A_FLOAT(0));
    check_value(f, bn, t, DIMS(2, 2, 2), VALUES(1, 3, 15, 47, 2, 2, -33, -17));
    const Tensor *ln =
        fixture_eval(f, build(b, OP_NATIVE_LAYER_NORM, A_VAL(x), A_INTS((SymInt[]){2}, 1), A_VAL(w),
                              A_VAL(c), A_FLOAT(0)));
    assert_true(tensor_load(&ln[0], 0) == -1 && tensor_load(&ln[0], 1) == 3 &&
                tensor_load(&ln[0], 7) == 3);
    assert_true(isnan(tensor_load(&ln[0], 4))); /* no variance and no eps: 0 * inf */
    check_tensor(&ln[1], t, DIMS(2, 2, 1), VALUES(2, 7, 2, 0), 0);
    check_tensor(&ln[2], t, DIMS(2, 2, 1), VALUES(1, 0.5, INFINITY, 1), 0);
    const Tensor *gn = fixture_eval(f, build(b, OP_NATIVE_GROUP_NORM, A_VAL(x), A_VAL(w), A_VAL(c),
                                             A_INT(2), A_INT(2), A_INT(2), A_INT(2), A_FLOAT(1)));
    check_tensor(&gn[1], t, DIMS(2, 2), VALUES(2, 7, 2, 0), 0);
    check_tensor(&gn[2], t, DIMS(2, 2), VALUES(sqrt(0.5), sqrt(0.2), 1, sqrt(0.5)), 4e-3);
    ValueId is = build(b, OP_NATIVE_BATCH_NORM_LEGIT_NO_STATS,
                       A_VAL(fixture_const(f, t, DIMS(2, 1), VALUES(1, 5))), A_NONE, A_NONE,
                       A_BOOL(true), A_FLOAT(0.1), A_FLOAT(0));
    check_value(f, is, t, DIMS(2, 1), VALUES(-1, 1));
  }
}

static void test_factories(void **state) {
  OpsFixture *f = *state;
  Builder *b = &f->b;
  check_value(f, build(b, OP_FULL, A_INTS(((SymInt[]){2, 3}), 2), A_FLOAT(1.5)), DTYPE_F32,
              DIMS(2, 3), VALUES(1.5, 1.5, 1.5, 1.5, 1.5, 1.5));
  check_value(f, build(b, OP_FULL, A_INTS((SymInt[]){2}, 1), A_FLOAT(-7.9), A_DTYPE(DTYPE_I16)),
              DTYPE_I16, DIMS(2), VALUES(-7, -7));
  check_value(f, build(b, OP_FULL, A_INTS((SymInt[]){1}, 1), A_FLOAT(1e30), A_DTYPE(DTYPE_I8)),
              DTYPE_I8, DIMS(1), VALUES(127));
  check_value(f, build(b, OP_ARANGE_START_STEP, A_INT(5), A_INT(-4), A_INT(-3)), DTYPE_I64, DIMS(3),
              VALUES(5, 2, -1));
  check_value(f, build(b, OP_ARANGE_START_STEP, A_FLOAT(1), A_FLOAT(2), A_FLOAT(0.25)), DTYPE_F32,
              DIMS(4), VALUES(1, 1.25, 1.5, 1.75));
  ValueId huge = build(b, OP_ARANGE_START_STEP, A_INT(INT64_MAX - 2), A_INT(INT64_MAX), A_INT(1));
  assert_true(tensor_load_int(fixture_eval(f, huge), 1) == INT64_MAX - 1); /* exact */
  check_value(f, build(b, OP_SCALAR_TENSOR, A_BOOL(true)), DTYPE_BOOL, DIMS(), VALUES(1));
}

/* In a program rows of f32 below 256 elements lose their variance, as in the runtime's kernel. */
static void test_layer_norm_of_programs(void **state) {
  OpsFixture *f = *state;
  enum { ROW = 128 };
  float x[ROW], y[ROW], one[1];
  for (int i = 0; i < ROW; i++)
    x[i] = i % 2 ? 0.502F : 0.498F;
  Tensor in = {.dtype = DTYPE_F32, .rank = 2, .dims = {1, ROW}, .data = x, .capacity = sizeof x},
         out = {.dtype = DTYPE_F32, .rank = 2, .dims = {1, ROW}, .data = y, .capacity = sizeof y},
         stat = {
             .dtype = DTYPE_F32, .rank = 2, .dims = {1, 1}, .data = one, .capacity = sizeof one};
  const KernelArg args[] = {{.kind = ARG_VALUE, .tensor = &in},
                            {.kind = ARG_INTS, .count = 1, .ints = (int64_t[]){ROW}},
                            {.kind = ARG_NONE},
                            {.kind = ARG_NONE},
                            {.kind = ARG_FLOAT, .f = 1e-5}};
  Kernel k = {.op = OP_NATIVE_LAYER_NORM,
              .args = args,
              .arg_count = COUNT_OF(args),
              .results = (Tensor *[]){&out, &stat, &stat},
              .result_count = 3,
              .scratch = &f->arena,
              .sink = &f->capture.sink,
              .place = DIAG_NOWHERE};
  const double right = 0.002 / sqrt(0.002 * 0.002 + 1e-5);
  assert_int_equal(kernel_run(&k), STATUS_OK);
  assert_true(fabs((double)y[1] - right) < 1e-5);
  k.as_runtime = true;
  assert_int_equal(kernel_run(&k), STATUS_OK);
  assert_true(fabs((double)y[1] - right) > 1e-4);
}

/* In a program div multiplies by the reciprocal of one number, as the runtime's kernel; div with a
 * mode does not. */
static void test_division_of_programs(void **state) {
  OpsFixture *f = *state;
  float x[] = {41, 82}, y[2], one[] = {41};
  Tensor in = {.dtype = DTYPE_F32, .rank = 1, .dims = {2}, .data = x, .capacity = sizeof x},
         divisor = {.dtype = DTYPE_F32, .data = one, .capacity = sizeof one},
         out = {.dtype = DTYPE_F32, .rank = 1, .dims = {2}, .data = y, .capacity = sizeof y};
  const KernelArg args[] = {{.kind = ARG_VALUE, .tensor = &in},
                            {.kind = ARG_VALUE, .tensor = &divisor},
                            {.kind = ARG_NONE}};
  Kernel k = {.op = OP_DIV_TENSOR,
              .args = args,
              .arg_count = 2,
              .results = (Tensor *[]){&out},
              .result_count = 1,
              .scratch = &f->arena,
              .sink = &f->capture.sink,
              .place = DIAG_NOWHERE};
  assert_int_equal(kernel_run(&k), STATUS_OK);
  assert_true(y[0] == 1 && y[1] == 2);
  k.as_runtime = true;
  assert_int_equal(kernel_run(&k), STATUS_OK);
  assert_true(y[0] < 1 && y[1] < 2);
  k.op = OP_DIV_TENSOR_MODE, k.arg_count = 3;
  assert_int_equal(kernel_run(&k), STATUS_OK);
  assert_true(y[0] == 1 && y[1] == 2);
}

static Status run_prim(OpsFixture *f, OpId op, const KernelArg *args, uint32_t count,
                       KernelArg *result) {
  Kernel k = {.op = op,
              .args = args,
              .arg_count = count,
              .scratch = &f->arena,
              .sink = &f->capture.sink,
              .place = DIAG_NOWHERE};
  Status status = kernel_run(&k);
  *result = k.scalar_result;
  return status;
}

static void test_prims(void **state) {
  OpsFixture *f = *state;
  KernelArg r, seven_three[2] = {{.kind = ARG_INT, .i = -7}, {.kind = ARG_INT, .i = 3}},
               by_zero[2] = {{.kind = ARG_INT, .i = 1}, {.kind = ARG_INT}};
  KernelArg least[2] = {{.kind = ARG_INT, .i = INT64_MIN}, {.kind = ARG_INT, .i = -1}},
            mixed[2] = {{.kind = ARG_FLOAT, .f = -7.5}, {.kind = ARG_INT, .i = 2}};
  KernelArg choice[3] = {
      {.kind = ARG_BOOL, .i = 0}, {.kind = ARG_INT, .i = 1}, {.kind = ARG_FLOAT, .f = 2.5}};
  assert_int_equal(run_prim(f, OP_PRIM_FLOORDIV, seven_three, 2, &r), STATUS_OK);
  assert_int_equal(r.i, -3);
  assert_int_equal(run_prim(f, OP_PRIM_FLOORDIV_INT, seven_three, 2, &r), STATUS_OK);
  assert_int_equal(r.i, -2);
  assert_int_equal(run_prim(f, OP_PRIM_MOD, seven_three, 2, &r), STATUS_OK);
  assert_int_equal(r.i, -1);
  assert_int_equal(run_prim(f, OP_PRIM_FLOORDIV, mixed, 2, &r), STATUS_OK);
  assert_true(r.kind == ARG_FLOAT && r.f == -4);
  assert_int_equal(run_prim(f, OP_PRIM_LT, mixed, 2, &r), STATUS_OK);
  assert_true(r.kind == ARG_BOOL && r.i == 1);
  assert_int_equal(run_prim(f, OP_PRIM_FLOORDIV, least, 2, &r),
                   STATUS_OK); /* wraps, does not trap */
  assert_int_equal(run_prim(f, OP_PRIM_SYM_ITE, choice, 3, &r), STATUS_OK);
  assert_true(r.kind == ARG_FLOAT && r.f == 2.5);
  assert_int_equal(run_prim(f, OP_PRIM_ROUND, &choice[2], 1, &r), STATUS_OK);
  assert_int_equal(r.i, 2);
  assert_int_not_equal(run_prim(f, OP_PRIM_MOD, by_zero, 2, &r), STATUS_OK);
  assert_int_not_equal(run_prim(f, OP_PRIM_CEIL, by_zero, 1, &r), STATUS_OK); /* floats only */
  assert_int_not_equal(run_prim(f, OP_PRIM_SYM_MAX, mixed, 2, &r), STATUS_OK);
  assert_int_not_equal(run_prim(f, OP_PRIM_ADD, choice, 2, &r), STATUS_OK); /* no bools */
}

static void test_copy_index_and_random(void **state) {
  OpsFixture *f = *state;
  float rows[6] = {0}, row[2] = {1, 2};
  Tensor to = {
      .dtype = DTYPE_F32, .rank = 2, .dims = {0, 2}, .data = rows, .capacity = sizeof rows};
  Tensor from = {.dtype = DTYPE_F32, .rank = 1, .dims = {2}, .data = row, .capacity = sizeof row};
  KernelArg args[3] = {{.kind = ARG_VALUE, .tensor = &to},
                       {.kind = ARG_VALUE, .tensor = &from},
                       {.kind = ARG_INT, .i = 1}},
            r;
  assert_int_equal(run_prim(f, OP_ET_COPY_INDEX, args, 3, &r), STATUS_OK);
  assert_int_equal(to.dims[0], 2);
  assert_true(rows[2] == 1 && rows[3] == 2);
  args[2].i = 3;
  assert_int_not_equal(run_prim(f, OP_ET_COPY_INDEX, args, 3, &r), STATUS_OK);
  args[2].i = -1;
  assert_int_not_equal(run_prim(f, OP_ET_COPY_INDEX, args, 3, &r), STATUS_OK);
  float data[4000];
  Tensor out = {.dtype = DTYPE_F32,
                .rank = 1,
                .dims = {4000},
                .data = data,
                .capacity = sizeof data},
         *results[1] = {&out};
  OpId ops[] = {OP_RAND, OP_RANDN};
  for (uint32_t i = 0; i < 2; i++) {
    Kernel k = {.op = ops[i],
                .results = results,
                .result_count = 1,
                .scratch = &f->arena,
                .sink = &f->capture.sink};
    assert_int_equal(kernel_run(&k), STATUS_OK);
    double sum = 0, squares = 0;
    for (uint32_t n = 0; n < 4000; n++) {
      sum += (double)data[n];
      squares += (double)data[n] * (double)data[n];
    }
    assert_true(fabs(sum / 4000 - (i ? 0 : 0.5)) < 0.05);
    assert_true(fabs(squares / 4000 - (i ? 1 : 1.0 / 3)) < 0.1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OPS_TEST(test_unary),
      OPS_TEST(test_binary),
      OPS_TEST(test_long_broadcast),
      OPS_TEST(test_reduce),
      OPS_TEST(test_products),
      OPS_TEST(test_convolution),
      OPS_TEST(test_norms),
      OPS_TEST(test_factories),
      OPS_TEST(test_prims),
      OPS_TEST(test_layer_norm_of_programs),
      OPS_TEST(test_division_of_programs),
      OPS_TEST(test_copy_index_and_random),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
