/* Depthwise convolution and clamp beside plain loops: all sizes, strides, dilations and paddings
 * that take different ways through the kernels. */
#include "ops_fixture.h"

#include "support/parallel.h"

typedef struct Plane {
  int64_t channels, multiplier, height, width, kernel[2], stride[2], pad[2], dilation[2];
} Plane;

static float number(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (float)((int32_t)(*state >> 40) % 2001 - 1000) / 256;
}

/* In the order of the taps, as the kernel does. */
static float expected_at(const Plane *p, const float *plane, const float *weights, float bias,
                         int64_t y, int64_t x) {
  float sum = bias;
  for (int64_t t = 0; t < p->kernel[0] * p->kernel[1]; t++) {
    int64_t iy = y * p->stride[0] - p->pad[0] + t / p->kernel[1] * p->dilation[0];
    int64_t ix = x * p->stride[1] - p->pad[1] + t % p->kernel[1] * p->dilation[1];
    if (iy >= 0 && iy < p->height && ix >= 0 && ix < p->width)
      sum += weights[t] * plane[iy * p->width + ix];
  }
  return sum;
}

static void check_plane(const Plane *p, float special) {
  OpsFixture f;
  fixture_init(&f);
  int64_t taps = p->kernel[0] * p->kernel[1], results = p->channels * p->multiplier;
  int64_t area = p->height * p->width;
  float *x = ARENA_ARRAY(&f.arena, float, (size_t)(2 * p->channels * area)),
        *w = ARENA_ARRAY(&f.arena, float, (size_t)(results * taps)),
        *bias = ARENA_ARRAY(&f.arena, float, (size_t)results);
  uint64_t state = 7;
  for (int64_t i = 0; i < 2 * p->channels * area; i++)
    x[i] = number(&state);
  for (int64_t i = 0; i < results * taps; i++)
    w[i] = number(&state);
  for (int64_t i = 0; i < results; i++)
    bias[i] = number(&state);
  w[0] = special != 0 ? special : w[0];
  ValueId y =
      build(&f.b, OP_CONVOLUTION,
            A_VAL(build_const(&f.b, DTYPE_F32, 4,
                              (const int64_t[]){2, p->channels, p->height, p->width}, x)),
            A_VAL(build_const(&f.b, DTYPE_F32, 4,
                              (const int64_t[]){results, 1, p->kernel[0], p->kernel[1]}, w)),
            A_VAL(build_const(&f.b, DTYPE_F32, 1, &results, bias)), A_INTS(p->stride, 2),
            A_INTS(p->pad, 2), A_INTS(p->dilation, 2), A_BOOL(false), A_INTS(((SymInt[]){0, 0}), 2),
            A_INT(p->channels));
  const Tensor *out = fixture_eval(&f, y);
  int64_t at = 0;
  for (int64_t plane = 0; plane < 2 * results; plane++)
    for (int64_t row = 0; row < out->dims[2]; row++)
      for (int64_t column = 0; column < out->dims[3]; column++, at++) {
        int64_t channel = plane % results;
        float want = expected_at(p, x + plane / p->multiplier * area, w + channel * taps,
                                 bias[channel], row, column);
        float got = ((const float *)out->data)[at];
        if (!(got == want || (isnan(got) && isnan(want))))
          fail_msg("%lldx%lld, kernel %lldx%lld: %g at %lld, expected %g", (long long)p->height,
                   (long long)p->width, (long long)p->kernel[0], (long long)p->kernel[1],
                   (double)got, (long long)at, (double)want);
      }
  assert_int_equal(at, tensor_numel(out));
  fixture_release(&f);
}

static void test_planes(void **state) {
  static const Plane planes[] = {
      {3, 1, 25, 5, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, /* short rows */
      {2, 1, 14, 14, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {2, 1, 6, 48, {3, 3}, {1, 1}, {1, 1}, {1, 1}},  /* rows in blocks */
      {2, 1, 7, 61, {3, 3}, {1, 1}, {1, 1}, {1, 1}},  /* with a rest */
      {2, 1, 13, 17, {3, 3}, {2, 2}, {1, 1}, {1, 1}}, /* phases */
      {2, 1, 9, 130, {5, 3}, {2, 2}, {2, 1}, {1, 1}},
      {2, 1, 20, 20, {5, 5}, {3, 4}, {2, 2}, {1, 1}},
      {2, 1, 20, 20, {3, 3}, {1, 1}, {2, 2}, {2, 2}}, /* dilation */
      {2, 1, 20, 21, {3, 3}, {2, 2}, {3, 2}, {3, 2}},
      {2, 3, 8, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}},  /* several results a plane */
      {4, 1, 1, 40, {1, 9}, {1, 1}, {0, 4}, {1, 1}}, /* lines */
      {2, 1, 5, 5, {5, 5}, {1, 1}, {0, 0}, {1, 1}},  /* one result */
      {2, 1, 4, 4, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
      {2, 1, 4, 4, {3, 3}, {1, 1}, {4, 4}, {1, 1}},     /* results of padding alone */
      {2, 1, 4, 4, {3, 3}, {5, 5}, {1, 1}, {1, 1}},     /* the plain loop: a large stride, */
      {2, 1, 4, 4, {3, 3}, {1, 1}, {6, 6}, {1, 1}},     /* padding beyond the plane, */
      {2, 1, 20, 20, {17, 17}, {1, 1}, {8, 8}, {1, 1}}, /* many taps */
  };
  for (unsigned threads = 1; threads <= 3; threads += 2)
    for (size_t i = 0; i < COUNT_OF(planes); i++) {
      parallel_set_threads(threads);
      check_plane(&planes[i], 0);
    }
}

/* Infinite weights give no NaN in the padding. */
static void test_infinite(void **state) {
  Plane p = {2, 1, 6, 6, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  check_plane(&p, INFINITY);
  check_plane(&p, NAN);
}

static void check_clamp(double low, double high, const double *want) {
  OpsFixture f;
  fixture_init(&f);
  static const double values[] = {-INFINITY, -7, -0.0, 0, 3, 7, INFINITY, NAN};
  DType dtypes[] = {DTYPE_F32, DTYPE_F64};
  for (unsigned i = 0; i < COUNT_OF(dtypes); i++) {
    ValueId x = fixture_const(&f, dtypes[i], DIMS(8), values, 8);
    ValueId y = build(&f.b, OP_CLAMP, A_VAL(x), low == -1e300 ? A_NONE : A_FLOAT(low),
                      high == 1e300 ? A_NONE : A_FLOAT(high));
    check_tensor(fixture_eval(&f, y), dtypes[i], DIMS(8), want, 8, 0);
  }
  fixture_release(&f);
}

static void test_clamp(void **state) {
  check_clamp(0, 6, (const double[]){0, 0, 0, 0, 3, 6, 6, NAN});
  check_clamp(-1e300, 5, (const double[]){-INFINITY, -7, 0, 0, 3, 5, 5, NAN});
  check_clamp(-5, 1e300, (const double[]){-5, -5, 0, 0, 3, 7, INFINITY, NAN});
  check_clamp(5, 2, (const double[]){2, 2, 2, 2, 2, 2, 2, NAN});
  static const double nans[] = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
  check_clamp(NAN, 2, nans);
  check_clamp(0, NAN, nans);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_planes),
      cmocka_unit_test(test_infinite),
      cmocka_unit_test(test_clamp),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
