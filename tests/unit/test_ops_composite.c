/* Ops without a kernel in the runtime: matrix product, attention, norms, activations. */
#include "ops_fixture.h"

#define INTS(...)                                                                                  \
  A_INTS(((const SymInt[]){__VA_ARGS__}), sizeof((const SymInt[]){__VA_ARGS__}) / sizeof(SymInt))

static void test_activations(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_F64, DIMS(4), VALUES(-4, -1, 0, 2));
  check_value(f, build(&f->b, OP_HARDSIGMOID, A_VAL(x)), DTYPE_F64, DIMS(4),
              VALUES(0, 1.0 / 3, 0.5, 5.0 / 6));
  check_value(f, build(&f->b, OP_HARDSWISH, A_VAL(x)), DTYPE_F64, DIMS(4),
              VALUES(0, -1.0 / 3, 0, 10.0 / 6));
  check_value(f, build(&f->b, OP_SILU, A_VAL(x)), DTYPE_F64, DIMS(4),
              VALUES(-4 / (1 + exp(4)), -1 / (1 + exp(1)), 0, 2 / (1 + exp(-2))));
  check_value(f, build(&f->b, OP_SOFTPLUS, A_VAL(x), A_INT(2), A_INT(3)), DTYPE_F64, DIMS(4),
              VALUES(log1p(exp(-8)) / 2, log1p(exp(-2)) / 2, log(2) / 2, 2));
  check_value(f, build(&f->b, OP_MISH, A_VAL(x)), DTYPE_F64, DIMS(4),
              VALUES(-4 * tanh(log1p(exp(-4))), -tanh(log1p(exp(-1))), 0, 2 * tanh(log1p(exp(2)))));
  check_value(f, build(&f->b, OP_SQUARE, A_VAL(x)), DTYPE_F64, DIMS(4), VALUES(16, 1, 0, 4));
  ValueId whole = fixture_const(f, DTYPE_I64, DIMS(2), VALUES(-3, 5));
  check_value(f, build(&f->b, OP_SQUARE, A_VAL(whole)), DTYPE_I64, DIMS(2), VALUES(9, 25));
  check_refused(f, build(&f->b, OP_SILU, A_VAL(whole)), "must be a float");
}

static void test_prelu(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_F16, DIMS(2, 2), VALUES(-1, 2, -3, NAN)),
          slope = fixture_const(f, DTYPE_F16, DIMS(2, 1), VALUES(0.5, 2));
  check_value(f, build(&f->b, OP_PRELU, A_VAL(x), A_VAL(slope)), DTYPE_F16, DIMS(2, 2),
              VALUES(-0.5, 2, -6, NAN));
  ValueId wide = fixture_const(f, DTYPE_F16, DIMS(3), VALUES(1));
  check_refused(f, build(&f->b, OP_PRELU, A_VAL(x), A_VAL(wide)), "weight");
}

static void test_matmul(void **state) {
  OpsFixture *f = *state;
  ValueId a = fixture_const(f, DTYPE_F32, DIMS(2, 1, 2), VALUES(1, 2, 3, 4)),
          b = fixture_const(f, DTYPE_F32, DIMS(2, 2), VALUES(1, 0, 10, 1)),
          v = fixture_const(f, DTYPE_F32, DIMS(2), VALUES(1, -1));
  check_value(f, build(&f->b, OP_MATMUL, A_VAL(a), A_VAL(b)), DTYPE_F32, DIMS(2, 1, 2),
              VALUES(21, 2, 43, 4));
  check_value(f, build(&f->b, OP_MATMUL, A_VAL(b), A_VAL(v)), DTYPE_F32, DIMS(2), VALUES(1, 9));
  check_value(f, build(&f->b, OP_MATMUL, A_VAL(v), A_VAL(b)), DTYPE_F32, DIMS(2), VALUES(-9, -1));
  check_value(f, build(&f->b, OP_MATMUL, A_VAL(v), A_VAL(v)), DTYPE_F32, NULL, 0, VALUES(2));
  ValueId row = fixture_const(f, DTYPE_I32, DIMS(1, 2, 1), VALUES(2, 3)),
          batch = fixture_const(f, DTYPE_I32, DIMS(3, 1, 1, 2), VALUES(1, 2, 3, 4, 5, 6));
  check_value(f, build(&f->b, OP_MATMUL, A_VAL(row), A_VAL(batch)), DTYPE_I32, DIMS(3, 1, 2, 2),
              VALUES(2, 4, 3, 6, 6, 8, 9, 12, 10, 12, 15, 18));
  ValueId empty = fixture_const(f, DTYPE_F32, DIMS(2, 0), VALUES(0)),
          none = fixture_const(f, DTYPE_F32, DIMS(0, 2), VALUES(0));
  check_value(f, build(&f->b, OP_MATMUL, A_VAL(empty), A_VAL(none)), DTYPE_F32, DIMS(2, 2),
              VALUES(0, 0, 0, 0));
  check_refused(f, build(&f->b, OP_MATMUL, A_VAL(b), A_VAL(a)), "differ: 2 and 1");
  check_refused(f, build(&f->b, OP_MATMUL, A_VAL(a), A_VAL(row)), "f32 and i32");
}

static void test_attention(void **state) {
  OpsFixture *f = *state;
  ValueId q = fixture_const(f, DTYPE_F32, DIMS(1, 2, 2, 1), VALUES(1, 1, 1, 1)),
          k = fixture_const(f, DTYPE_F32, DIMS(1, 1, 2, 1), VALUES(0, 0)),
          v = fixture_const(f, DTYPE_F32, DIMS(1, 1, 2, 1), VALUES(2, 6));
  /* equal keys: the mean of the values; two heads of the query share one of key and value */
  check_value(f,
              build(&f->b, OP_SDPA, A_VAL(q), A_VAL(k), A_VAL(v), A_NONE, A_FLOAT(0), A_BOOL(false),
                    A_NONE, A_BOOL(true)),
              DTYPE_F32, DIMS(1, 2, 2, 1), VALUES(4, 4, 4, 4));
  check_value(f,
              build(&f->b, OP_SDPA, A_VAL(q), A_VAL(k), A_VAL(v), A_NONE, A_FLOAT(0), A_BOOL(true)),
              DTYPE_F32, DIMS(1, 2, 2, 1), VALUES(2, 4, 2, 4));
  ValueId mask = fixture_const(f, DTYPE_BOOL, DIMS(2), VALUES(0, 1)),
          bias = fixture_const(f, DTYPE_F32, DIMS(1, 2), VALUES(0, log(3)));
  check_value(f, build(&f->b, OP_SDPA, A_VAL(q), A_VAL(k), A_VAL(v), A_VAL(mask)), DTYPE_F32,
              DIMS(1, 2, 2, 1), VALUES(6, 6, 6, 6));
  check_value(f, build(&f->b, OP_SDPA, A_VAL(q), A_VAL(k), A_VAL(v), A_VAL(bias)), DTYPE_F32,
              DIMS(1, 2, 2, 1), VALUES(5, 5, 5, 5));
  check_refused(
      f, build(&f->b, OP_SDPA, A_VAL(q), A_VAL(k), A_VAL(v), A_VAL(mask), A_FLOAT(0), A_BOOL(true)),
      "cannot both");
  check_refused(f, build(&f->b, OP_SDPA, A_VAL(q), A_VAL(k), A_VAL(v), A_NONE, A_FLOAT(0.1)),
                "dropout_p");
  ValueId three = fixture_const(f, DTYPE_F32, DIMS(1, 3, 2, 1), VALUES(0));
  check_refused(f,
                build(&f->b, OP_SDPA, A_VAL(three), A_VAL(q), A_VAL(q), A_NONE, A_FLOAT(0),
                      A_BOOL(false), A_NONE, A_BOOL(true)),
                "no multiple");
  check_refused(f, build(&f->b, OP_SDPA, A_VAL(q), A_VAL(k), A_VAL(v), A_VAL(three)), "attn_mask");
}

static void test_rms_norm(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(2, 2), VALUES(3, 4, 0, 2)),
          w = fixture_const(f, DTYPE_F32, DIMS(2), VALUES(1, 10));
  check_value(f, build(&f->b, OP_RMS_NORM, A_VAL(x), INTS(2), A_VAL(w), A_FLOAT(0)), DTYPE_F32,
              DIMS(2, 2), VALUES(3 / sqrt(12.5), 40 / sqrt(12.5), 0, 10 * sqrt(2)));
  check_refused(f, build(&f->b, OP_RMS_NORM, A_VAL(x), INTS(3)), "normalized_shape");
  check_refused(f, build(&f->b, OP_RMS_NORM, A_VAL(x), INTS(2, 2), A_VAL(w)), "weight has rank 1");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OPS_TEST(test_activations), OPS_TEST(test_prelu),    OPS_TEST(test_matmul),
      OPS_TEST(test_attention),   OPS_TEST(test_rms_norm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
