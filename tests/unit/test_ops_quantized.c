/* Ops that quantize and dequantize: what their shape rules refuse, on both sides of each bound, and
 * what their kernels compute, as ONNX means it and as the runtime's kernels do. */
#include "ops_fixture.h"

#include "ops/quantized.h"

static ValueId per_tensor(OpsFixture *f, OpId op, ValueId x, double scale, int64_t zero,
                          int64_t low, int64_t high, DType dtype) {
  return build(&f->b, op, A_VAL(x), A_FLOAT(scale), A_INT(zero), A_INT(low), A_INT(high),
               A_DTYPE(dtype));
}

static void test_range(void **state) {
  OpsFixture *f = *state;
  static const struct {
    DType dtype;
    int64_t low, high;
    bool fits;
  } cases[] = {
      {DTYPE_U8, 0, 255, true},         {DTYPE_U8, -1, 255, false},
      {DTYPE_U8, 0, 256, false},        {DTYPE_I8, -128, 127, true},
      {DTYPE_I8, -129, 127, false},     {DTYPE_I8, -128, 128, false},
      {DTYPE_I16, -32768, 32767, true}, {DTYPE_I16, -32769, 0, false},
      {DTYPE_I16, 0, 32768, false},     {DTYPE_I8, 3, 4, true},
      {DTYPE_I8, 4, 4, false},          {DTYPE_I8, 5, 4, false},
      {DTYPE_I32, INT32_MIN, 0, true},  {DTYPE_I32, 0, INT32_MAX, true},
      {DTYPE_I32, 0, 1LL << 31, false},
  };
  ValueId x = fixture_input(f, DTYPE_F32, DIMS(2, 3));
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    ValueId y = per_tensor(f, OP_QUANTIZE_PER_TENSOR, x, 0.5, 0, cases[i].low, cases[i].high,
                           cases[i].dtype);
    if (cases[i].fits)
      check_built(f, y, cases[i].dtype, DIMS(2, 3));
    else
      check_refused(f, y, "does not fit");
  }
  check_refused(f, per_tensor(f, OP_QUANTIZE_PER_TENSOR, x, 0.5, 0, 0, 9, DTYPE_F32),
                "values cannot be quantized to f32");
}

static void test_scale(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_input(f, DTYPE_F32, DIMS(4)), codes = fixture_input(f, DTYPE_I8, DIMS(4));
  static const double wrong[] = {NAN, INFINITY, -INFINITY, 0.1, 1e300};
  for (size_t i = 0; i < COUNT_OF(wrong); i++)
    check_refused(f, per_tensor(f, OP_QUANTIZE_PER_TENSOR, x, wrong[i], 0, -128, 127, DTYPE_I8),
                  "the scale must be a finite float");
  check_refused(f,
                build(&f->b, OP_QUANTIZE_PER_TENSOR, A_VAL(x), A_INT(1), A_INT(0), A_INT(-128),
                      A_INT(127), A_DTYPE(DTYPE_I8)),
                "the scale must be a finite float");
  for (int side = 0; side < 2; side++) {
    int64_t most = side ? INT32_MAX : INT32_MIN;
    check_built(f, per_tensor(f, OP_QUANTIZE_PER_TENSOR, x, 1, most, -128, 127, DTYPE_I8), DTYPE_I8,
                DIMS(4));
    check_refused(
        f, per_tensor(f, OP_QUANTIZE_PER_TENSOR, x, 1, most + (side ? 1 : -1), -128, 127, DTYPE_I8),
        "zero point");
  }
  check_refused(f, per_tensor(f, OP_QUANTIZE_PER_TENSOR, codes, 1, 0, -128, 127, DTYPE_I8),
                "the input is i8, not f32");
  check_refused(f, per_tensor(f, OP_DEQUANTIZE_PER_TENSOR, x, 1, 0, -128, 127, DTYPE_I8),
                "the input is f32, not i8");
  check_built(f, per_tensor(f, OP_DEQUANTIZE_PER_TENSOR, codes, 1, 0, -128, 127, DTYPE_I8),
              DTYPE_F32, DIMS(4));
}

static ValueId per_channel(OpsFixture *f, ValueId x, ValueId scales, ValueId zeros, int64_t axis) {
  return build(&f->b, OP_QUANTIZE_PER_CHANNEL, A_VAL(x), A_VAL(scales), A_VAL(zeros), A_INT(axis),
               A_INT(-128), A_INT(127), A_DTYPE(DTYPE_I8));
}

static void test_channels(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_input(f, DTYPE_F32, DIMS(2, 3)),
          number = fixture_input(f, DTYPE_F32, NULL, 0), two = fixture_input(f, DTYPE_F32, DIMS(2)),
          three = fixture_input(f, DTYPE_F32, DIMS(3)),
          zeros = fixture_input(f, DTYPE_I64, DIMS(3)),
          short_zeros = fixture_input(f, DTYPE_I64, DIMS(2)),
          narrow = fixture_input(f, DTYPE_I32, DIMS(3)),
          matrix = fixture_input(f, DTYPE_F32, DIMS(3, 1));
  check_built(f, per_channel(f, x, three, zeros, 1), DTYPE_I8, DIMS(2, 3));
  check_built(f, per_channel(f, x, three, zeros, -1), DTYPE_I8, DIMS(2, 3));
  check_refused(f, per_channel(f, x, two, zeros, 1), "entries of a parameter and channels");
  check_refused(f, per_channel(f, x, three, short_zeros, 1), "entries of a parameter and channels");
  check_refused(f, per_channel(f, x, three, narrow, 1), "'zero_points' is i32 of rank 1");
  check_refused(f, per_channel(f, x, matrix, zeros, 1), "'scales' is f32 of rank 2");
  check_refused(f, per_channel(f, x, three, zeros, 2), "out of range");
  check_refused(f, per_channel(f, number, three, zeros, 0), "");
}

static void test_at_run_time(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_input(f, DTYPE_F32, DIMS(2, 3)), s = fixture_input(f, DTYPE_F32, NULL, 0),
          z = fixture_input(f, DTYPE_I64, NULL, 0), rows = fixture_input(f, DTYPE_F32, DIMS(2, 1)),
          row_zeros = fixture_input(f, DTYPE_I64, DIMS(2, 1)),
          wide = fixture_input(f, DTYPE_F32, DIMS(2, 3));
#define QUANTIZE(op, x, scale, zero)                                                               \
  build(&f->b, op, A_VAL(x), A_VAL(scale), A_VAL(zero), A_INT(-128), A_INT(127), A_DTYPE(DTYPE_I8))
  check_built(f, QUANTIZE(OP_QUANTIZE_PER_TENSOR_TENSOR, x, s, z), DTYPE_I8, DIMS(2, 3));
  check_refused(f, QUANTIZE(OP_QUANTIZE_PER_TENSOR_TENSOR, x, rows, z), "'scale' is f32 of rank 2");
  check_refused(f, QUANTIZE(OP_QUANTIZE_PER_TENSOR_TENSOR, x, s, s), "'zero_point' is f32");
  check_built(f, QUANTIZE(OP_QUANTIZE_PER_TOKEN, x, rows, row_zeros), DTYPE_I8, DIMS(2, 3));
  check_refused(f, QUANTIZE(OP_QUANTIZE_PER_TOKEN, x, wide, row_zeros), "rows of a parameter");
  check_refused(f, QUANTIZE(OP_QUANTIZE_PER_TOKEN, x, s, row_zeros), "'scales' is f32 of rank 0");
  check_refused(f, QUANTIZE(OP_QUANTIZE_PER_TOKEN, s, s, z), "a number has no rows");
#undef QUANTIZE
  ValueId chosen = build(&f->b, OP_CHOOSE_QPARAMS_PER_TOKEN, A_VAL(x), A_DTYPE(DTYPE_I8));
  check_built(f, chosen, DTYPE_F32, DIMS(2, 1));
  check_built(f, chosen + 1, DTYPE_I64, DIMS(2, 1));
  check_refused(f, build(&f->b, OP_CHOOSE_QPARAMS_PER_TOKEN, A_VAL(x), A_DTYPE(DTYPE_U8)),
                "rows are quantized to i8");
  check_refused(f, build(&f->b, OP_CHOOSE_QPARAMS_PER_TOKEN, A_VAL(s), A_DTYPE(DTYPE_I8)),
                "rows are quantized to i8");
}

static ValueId choose(OpsFixture *f, ValueId x, int64_t low, int64_t high) {
  return build(&f->b, OP_CHOOSE_QPARAMS_TENSOR, A_VAL(x), A_INT(low), A_INT(high), A_FLOAT(0),
               A_DTYPE(DTYPE_U8));
}

static void test_choose(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_input(f, DTYPE_F32, DIMS(2));
  check_built(f, choose(f, x, 0, 255), DTYPE_F32, DIMS());
  check_built(f, choose(f, x, INT16_MIN, INT16_MAX), DTYPE_F32, DIMS());
  check_built(f, choose(f, x, 0, UINT16_MAX), DTYPE_F32, DIMS());
  check_refused(f, choose(f, x, 7, 7), "the range 7 to 7");
  check_refused(f, choose(f, x, -1, UINT16_MAX), "the range -1 to 65535");
  check_refused(f, choose(f, x, INT16_MIN - 1, 0), "the range -32769 to 0");
  check_refused(f, choose(f, x, 1, UINT16_MAX + 1), "the range 1 to 65536");
  /* 0 is in the range; the zero point is rounded. */
  ValueId v = fixture_const(f, DTYPE_F32, DIMS(3), VALUES(-1, 2, 0.5));
  const Tensor *results = fixture_eval(f, choose(f, v, 0, 255));
  check_tensor(&results[0], DTYPE_F32, DIMS(), VALUES(3.0 / 255), 1e-6);
  check_tensor(&results[1], DTYPE_I64, DIMS(), VALUES(85), 0);
  results = fixture_eval(f, choose(f, fixture_const(f, DTYPE_F32, DIMS(2), VALUES(2, 4)), 0, 255));
  check_tensor(&results[0], DTYPE_F32, DIMS(), VALUES(4.0 / 255), 1e-6);
  check_tensor(&results[1], DTYPE_I64, DIMS(), VALUES(0), 0);
  results =
      fixture_eval(f, choose(f, fixture_const(f, DTYPE_F32, DIMS(2), VALUES(-3, -4)), 0, 255));
  check_tensor(&results[1], DTYPE_I64, DIMS(), VALUES(255), 0);
  results = fixture_eval(f, choose(f, fixture_const(f, DTYPE_F32, DIMS(2), VALUES(0, 0)), 3, 255));
  check_tensor(&results[0], DTYPE_F32, DIMS(), VALUES(1), 0);
  check_tensor(&results[1], DTYPE_I64, DIMS(), VALUES(3), 0);
  ValueId rows = fixture_const(f, DTYPE_F32, DIMS(2, 2), VALUES(-1, 2, 0, 0));
  results =
      fixture_eval(f, build(&f->b, OP_CHOOSE_QPARAMS_PER_TOKEN, A_VAL(rows), A_DTYPE(DTYPE_I8)));
  check_tensor(&results[0], DTYPE_F32, DIMS(2, 1), VALUES(3.0 / 255, 1), 1e-6);
  check_tensor(&results[1], DTYPE_I64, DIMS(2, 1), VALUES(-43, -128), 0);
}

static ValueId affine(OpsFixture *f, ValueId x, const SymInt *blocks, uint32_t count, ValueId scale,
                      ValueId zero) {
  ArgIn zeros = zero ? A_VAL(zero) : A_NONE;
  return build(&f->b, OP_DEQUANTIZE_AFFINE, A_VAL(x), A_INTS(blocks, count), A_VAL(scale), zeros,
               A_DTYPE(DTYPE_I8), A_INT(-128), A_INT(127), A_DTYPE(DTYPE_F32));
}

static void test_blocks(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_I8, DIMS(2, 4), VALUES(1, 2, 3, 4, 5, 6, 7, 8)),
          s = fixture_const(f, DTYPE_F32, DIMS(2, 2), VALUES(1, 10, 100, 1000)),
          z = fixture_const(f, DTYPE_I8, DIMS(2, 2), VALUES(1, 0, 0, 8)),
          t = fixture_const(f, DTYPE_F32, DIMS(1, 4), VALUES(1, 2, 3, 4)),
          flat = fixture_const(f, DTYPE_F32, DIMS(4), VALUES(1));
  check_value(f, affine(f, x, DIMS(1, 2), s, 0), DTYPE_F32, DIMS(2, 4),
              VALUES(1, 2, 30, 40, 500, 600, 7000, 8000));
  check_value(f, affine(f, x, DIMS(1, 2), s, z), DTYPE_F32, DIMS(2, 4),
              VALUES(0, 1, 30, 40, 500, 600, -1000, 0));
  check_value(f, affine(f, x, DIMS(2, 1), t, 0), DTYPE_F32, DIMS(2, 4),
              VALUES(1, 4, 9, 16, 5, 12, 21, 32));
  check_refused(f, affine(f, x, DIMS(2), s, 0), "1 sizes of blocks for rank 2");
  check_refused(f, affine(f, x, DIMS(2, 2), s, 0), "blocks must be those of one dim");
  check_refused(f, affine(f, x, DIMS(0, 2), s, 0), "blocks must be those of one dim");
  check_refused(f, affine(f, x, DIMS(1, 1), s, 0), "there is no block of more than 1");
  check_refused(f, affine(f, x, DIMS(1, 3), s, 0), "has not one entry for each block");
  check_refused(f, affine(f, x, DIMS(1, 2), flat, 0), "'scale' is f32 of rank 1");
  check_refused(f, affine(f, x, DIMS(1, 2), s, s), "'zero_point' is f32");
}

static ValueId observed(OpsFixture *f, ValueId x, bool axis, ValueId moments) {
  return build(&f->b, OP_OBSERVE, A_VAL(x), A_INT(2), axis ? A_INT(0) : A_NONE, A_INT(-8), A_INT(7),
               A_BOOL(true), A_NONE, A_NONE, A_VAL(moments));
}

static void test_observed_moments(void **state) {
  OpsFixture *f = *state;
  ValueId w = fixture_const(f, DTYPE_F32, DIMS(2, 4), VALUES(1, 2, 3, 4)),
          v = fixture_const(f, DTYPE_F32, DIMS(4), VALUES(1)),
          m = fixture_const(f, DTYPE_F32, DIMS(4, 4), VALUES(1)),
          few = fixture_const(f, DTYPE_F32, DIMS(2, 4), VALUES(1)),
          narrow = fixture_const(f, DTYPE_F32, DIMS(4, 2), VALUES(1)),
          wide = fixture_const(f, DTYPE_F32, DIMS(1, 200), VALUES(1)),
          whole = fixture_const(f, DTYPE_F32, DIMS(200, 200), VALUES(1)),
          windows = fixture_const(f, DTYPE_F32, DIMS(200, 128), VALUES(1));
  ValueId taps = fixture_const(f, DTYPE_F32, DIMS(6, 2, 2), VALUES(1)),
          lines = fixture_const(f, DTYPE_F32, DIMS(12, 4), VALUES(1)), /* of three groups */
      odd = fixture_const(f, DTYPE_F32, DIMS(16, 4), VALUES(1)),
          part = fixture_const(f, DTYPE_F32, DIMS(6, 4), VALUES(1));
  assert_true(observed(f, w, true, m) && observed(f, wide, true, windows));
  assert_true(observed(f, taps, true, lines) && observed(f, taps, true, m));
  check_refused(f, observed(f, taps, true, odd), "moments of 4 columns do not fit");
  check_refused(f, observed(f, taps, true, few), "moments of 4 columns do not fit");
  check_refused(f, observed(f, taps, true, part), "rows of moments and columns differ: 6 and 4");
  check_refused(f, observed(f, w, false, m), "moments are of a matrix of weights with an axis");
  check_refused(f, observed(f, v, true, m), "moments are of a matrix of weights with an axis");
  check_refused(f, observed(f, w, true, v), "moments are a constant matrix of f32");
  check_refused(f, observed(f, w, true, fixture_input(f, DTYPE_F32, DIMS(4, 4))),
                "moments are a constant matrix of f32");
  check_refused(f, observed(f, w, true, few), "rows of moments and columns differ: 2 and 4");
  check_refused(f, observed(f, w, true, narrow), "columns of a window differ: 2 and 4");
  check_refused(f, observed(f, wide, true, whole), "columns of a window differ: 200 and 128");
}

/* Rounded half to even after a division, and saturated. */
static void test_kernels(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(6), VALUES(0.5, 1.5, -0.5, 300, -300, 2.4));
  check_value(f, per_tensor(f, OP_QUANTIZE_PER_TENSOR, x, 1, 1, -128, 127, DTYPE_I8), DTYPE_I8,
              DIMS(6), VALUES(1, 3, 1, 127, -128, 3));
  check_value(f, per_tensor(f, OP_QUANTIZE_PER_TENSOR, x, 1, 1, -3, 2, DTYPE_I8), DTYPE_I8, DIMS(6),
              VALUES(1, 2, 1, 2, -3, 2));
  ValueId codes = fixture_const(f, DTYPE_I8, DIMS(3), VALUES(-128, 0, 5));
  check_value(f, per_tensor(f, OP_DEQUANTIZE_PER_TENSOR, codes, 0.5, 5, -128, 127, DTYPE_I8),
              DTYPE_F32, DIMS(3), VALUES(-66.5, -2.5, 0));
  ValueId m = fixture_const(f, DTYPE_F32, DIMS(2, 2), VALUES(1, 2, 3, 4)),
          scales = fixture_const(f, DTYPE_F32, DIMS(2), VALUES(1, 0.5)),
          zeros = fixture_const(f, DTYPE_I64, DIMS(2), VALUES(0, 7));
  check_value(f, per_channel(f, m, scales, zeros, 0), DTYPE_I8, DIMS(2, 2), VALUES(1, 2, 13, 15));
  check_value(f, per_channel(f, m, scales, zeros, 1), DTYPE_I8, DIMS(2, 2), VALUES(1, 11, 3, 15));
}

/* A program multiplies by the reciprocal of the scale; codes that are not finite or too large are
 * the least. */
static void test_as_runtime(void **state) {
  OpsFixture *f = *state;
  float scale = 0.7F, values[] = {0, INFINITY, NAN, -1e30F, 1.4F}, tie = 0;
  for (int i = 0; i < 100 && tie == 0; i++) /* where quotient and product round apart */
    if (rintf(((float)i + 0.5F) * scale / scale) != rintf(((float)i + 0.5F) * scale * (1 / scale)))
      tie = values[0] = ((float)i + 0.5F) * scale;
  assert_true(tie != 0);
  ValueId x = fixture_input(f, DTYPE_F32, DIMS(5)),
          y = per_tensor(f, OP_QUANTIZE_PER_TENSOR, x, (double)scale, 3, -128, 127, DTYPE_I8);
  graph_set_outputs(f->g, &y, 1, NULL);
  Tensor in = {.dtype = DTYPE_F32,
               .rank = 1,
               .dims = {5},
               .data = values,
               .capacity = sizeof values},
         exact = {0}, program = {0};
  assert_int_equal(interp_run(f->g, &in, 1, &f->arena, &exact), STATUS_OK);
  f->g->level = LEVEL_EXECUTORCH;
  assert_int_equal(interp_run(f->g, &in, 1, &f->arena, &program), STATUS_OK);
  assert_int_equal(tensor_load_int(&exact, 0), (int64_t)rintf(tie / scale) + 3);
  assert_int_equal(tensor_load_int(&exact, 1), 127);
  assert_int_equal(tensor_load_int(&program, 0), (int64_t)rintf(tie * (1 / scale)) + 3);
  for (int i = 1; i < 4; i++)
    assert_int_equal(tensor_load_int(&program, i), -128);
  assert_int_equal(tensor_load_int(&program, 4), 5);
}

#define MIXED(f, x, w, scales, ...)                                                                \
  build(&(f)->b, OP_MIXED_LINEAR, A_VAL(x), A_VAL(w), A_VAL(scales), __VA_ARGS__)

static ValueId mixed(OpsFixture *f, ValueId x, ValueId w, ValueId scales) {
  f->g->level = LEVEL_EDGE;
  ValueId y = MIXED(f, x, w, scales, A_NONE);
  f->g->level = LEVEL_ATEN;
  return y;
}

static void test_mixed_linear(void **state) {
  OpsFixture *f = *state;
  ValueId x = fixture_const(f, DTYPE_F32, DIMS(2, 3), VALUES(1, 2, 3, 4, 5, 6)),
          w = fixture_const(f, DTYPE_I8, DIMS(2, 3), VALUES(1, 0, -1, 2, 2, 2)),
          s = fixture_const(f, DTYPE_F32, DIMS(2), VALUES(0.5, 10)),
          row = fixture_const(f, DTYPE_F32, DIMS(3), VALUES(1)),
          thin = fixture_const(f, DTYPE_F32, DIMS(2, 2), VALUES(1));
  check_value(f, mixed(f, x, w, s), DTYPE_F32, DIMS(2, 2), VALUES(-1, 120, -1, 300));
  check_refused(f, mixed(f, x, w, row), "scales and rows of the weight");
  check_refused(f, mixed(f, row, w, s), "the operands have ranks 1, 2 and 1");
  check_refused(f, mixed(f, thin, w, s), "columns");
  check_refused(f, mixed(f, x, x, s), "not f32, i8 and f32");
  f->g->level = LEVEL_EDGE;
  check_refused(f, MIXED(f, x, w, s, A_VAL(s)), "takes neither zero points");
  check_refused(f, MIXED(f, x, w, s, A_NONE, A_DTYPE(DTYPE_F32)), "nor another element type");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      OPS_TEST(test_range),
      OPS_TEST(test_scale),
      OPS_TEST(test_channels),
      OPS_TEST(test_at_run_time),
      OPS_TEST(test_choose),
      OPS_TEST(test_blocks),
      OPS_TEST(test_observed_moments),
      OPS_TEST(test_kernels),
      OPS_TEST(test_as_runtime),
      OPS_TEST(test_mixed_linear),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
