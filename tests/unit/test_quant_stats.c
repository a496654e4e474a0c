/* Statistics: any split merges to the same, and ranges beside those of a search over the values. */
#include "unit.h"

#include <math.h>
#include <stdlib.h>

#include "quant/stats.h"

enum { COUNT = 20000 };

/* Numbers of splitmix64, the same on every machine. */
static double uniform(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* About a normal distribution, with some far outliers. */
static void make_values(float *values, uint32_t count, double shift, uint32_t outliers,
                        uint64_t seed) {
  for (uint32_t i = 0; i < count; i++) {
    double sum = -6;
    for (unsigned k = 0; k < 12; k++)
      sum += uniform(&seed);
    values[i] = (float)(sum + shift);
  }
  for (uint32_t i = 0; i < outliers; i++)
    values[i * 7] *= 12;
}

static Stats stats_of(const float *values, uint64_t count) {
  Stats s;
  StatsScratch *scratch = stats_scratch_new();
  stats_init(&s, 0);
  stats_add(&s, scratch, values, count);
  stats_scratch_free(scratch);
  return s;
}

static void assert_same(const Stats *a, const Stats *b) {
  assert_int_equal(a->count, b->count);
  assert_memory_equal(&a->low, &b->low, sizeof a->low);
  assert_memory_equal(&a->high, &b->high, sizeof a->high);
  for (uint32_t bin = 0; bin < STATS_BINS; bin++)
    assert_int_equal(stats_bin(a, bin), stats_bin(b, bin));
}

static void test_splits(void **state) {
  static const uint32_t splits[] = {1, 2, 7, 64};
  static float values[COUNT], part[COUNT];
  make_values(values, COUNT, 0.5, 5, 1);
  values[3] = -0.0F;
  values[4] = 0.0F;
  Stats whole = stats_of(values, COUNT);
  for (unsigned k = 0; k < COUNT_OF(splits); k++) {
    Stats merged;
    stats_init(&merged, 0);
    for (uint32_t shard = splits[k]; shard-- > 0;) { /* in another order */
      uint32_t count = 0;
      for (uint32_t i = shard; i < COUNT; i += splits[k])
        part[count++] = values[i];
      Stats s = stats_of(part, count);
      assert_true(stats_merge(&merged, &s));
      stats_release(&s);
    }
    assert_same(&whole, &merged);
    stats_release(&merged);
  }
  stats_release(&whole);
}

static void test_counts(void **state) {
  static const float values[] = {1, 1.5F, -2, 0, -0.0F, INFINITY, -INFINITY, NAN, 1e-42F, 1};
  Stats s = stats_of(values, COUNT_OF(values));
  assert_int_equal(s.count, COUNT_OF(values));
  assert_true(s.low == -2);
  assert_true(s.high == 1.5F);
  assert_int_equal(stats_bin(&s, 0x3f80), 2);
  assert_int_equal(stats_bin(&s, 0x3fc0), 1);
  assert_int_equal(stats_bin(&s, 0xc000), 1);
  assert_int_equal(stats_bin(&s, 0) + stats_bin(&s, 0x8000), 3);
  assert_int_equal(stats_infinities(&s), 2);
  assert_int_equal(stats_nans(&s), 1);
  stats_release(&s);
}

static void test_channels(void **state) {
  static const float values[] = {1, -2, 3, NAN, 5, INFINITY, -7, 8};
  Stats s, t;
  stats_init(&s, 2);
  stats_init(&t, 2);
  stats_add_channels(&s, values, 2, 2); /* [2, 2, 2] */
  assert_true(s.channel_low[0] == -2 && s.channel_high[0] == 5);
  assert_true(s.channel_low[1] == -7 && s.channel_high[1] == 8);
  stats_add_channels(&t, values + 4, 1, 2);
  assert_true(stats_merge(&t, &s));
  assert_true(t.channel_low[0] == -2 && t.channel_high[1] == 8);
  Stats plain = stats_of(values, 2);
  assert_false(stats_merge(&plain, &s));
  stats_add(&s, NULL, values + 2, 1);
  stats_merge_values(&plain, &s);
  assert_int_equal(plain.count, 3);
  stats_release(&plain);
  stats_release(&s);
  stats_release(&t);
}

static RangeOptions options_of(RangeMethod method, bool symmetric) {
  return (RangeOptions){
      .method = method, .percentile = 99.9, .qmin = -128, .qmax = 127, .symmetric = symmetric};
}

static int compare_floats(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

static void test_percentile(void **state) {
  static float values[COUNT];
  make_values(values, COUNT, 1, 8, 2);
  Stats s = stats_of(values, COUNT);
  RangeOptions o = options_of(RANGE_PERCENTILE, false);
  Range r = stats_range(&s, &o);
  qsort(values, COUNT, sizeof *values, compare_floats);
  double low = (double)values[COUNT / 2000], high = (double)values[COUNT - 1 - COUNT / 2000];
  assert_true(fabs(r.low - low) < 0.02 * fabs(low));
  assert_true(fabs(r.high - high) < 0.02 * fabs(high));
  for (uint32_t i = 0; i < COUNT; i++)
    values[i] = fabsf(values[i]);
  qsort(values, COUNT, sizeof *values, compare_floats);
  o.symmetric = true;
  r = stats_range(&s, &o);
  high = (double)values[COUNT - 1 - COUNT / 1000];
  assert_true(r.low == -r.high);
  assert_true(fabs(r.high - high) < 0.02 * fabs(high));
  o.percentile = 100;
  r = stats_range(&s, &o);
  assert_true(fabs(r.high - (double)values[COUNT - 1]) < 1e-6 * r.high);
  stats_release(&s);
}

/* The mean squared error of the values themselves; of those that are cut off it counts more. */
static double true_error(const float *values, uint32_t count, Range r, bool symmetric,
                         double cut_weight) {
  double step = symmetric ? r.high / 127 : (r.high - r.low) / 255, sum = 0;
  double zero = symmetric ? 0 : rint(-128 - r.low / step);
  for (uint32_t i = 0; i < count; i++) {
    double q = fmin(fmax(rint((double)values[i] / step) + zero, -128), 127);
    double error = (q - zero) * step - (double)values[i];
    sum += error * error * (fabs(error) > 0.5001 * step ? cut_weight : 1);
  }
  return sum / count;
}

/* The least error over a grid of thresholds, by brute force. */
static double least_error(const float *values, uint32_t count, Range full, bool symmetric,
                          double cut_weight) {
  double least = INFINITY;
  for (double a = 1; a > 0.05; a -= 0.02)
    for (double b = 1; b > 0.05; b -= 0.02) {
      Range r = {full.low * a, full.high * b};
      if (symmetric) {
        r.high = fmax(-full.low, full.high) * b;
        r.low = -r.high;
      }
      least = fmin(least, true_error(values, count, r, symmetric, cut_weight));
      if (symmetric || full.high == 0)
        break;
    }
  if (!symmetric)
    return least;
  for (double b = 1; b > 0.02; b -= 0.005) {
    double high = fmax(-full.low, full.high) * b;
    least = fmin(least, true_error(values, count, (Range){-high, high}, true, cut_weight));
  }
  return least;
}

static void check_mse(unsigned number, const float *values, uint32_t count, bool symmetric,
                      double cut_weight) {
  Stats s = stats_of(values, count);
  Range full = {fmin((double)s.low, 0), fmax((double)s.high, 0)};
  RangeOptions o = options_of(cut_weight > 1 ? RANGE_AUTO : RANGE_MSE, symmetric);
  o.cut_weight = cut_weight > 1 ? cut_weight : 0;
  Range r = stats_range(&s, &o);
  double found = true_error(values, count, r, symmetric, cut_weight);
  double least = least_error(values, count, full, symmetric, cut_weight);
  if (found > 1.1 * least)
    fail_msg("case %u, symmetric %d, weight %g: %g, by brute force %g", number, symmetric,
             cut_weight, found, least);
  stats_release(&s);
}

static void test_mse(void **state) {
  static const struct {
    double shift;
    uint32_t outliers;
    bool relu;
  } cases[] = {{0, 0, false}, {0.7, 4, false}, {0, 3, true}, {2, 0, true}, {-1, 2, false}};
  static float values[COUNT];
  for (unsigned i = 0; i < COUNT_OF(cases); i++)
    for (unsigned symmetric = 0; symmetric < 2; symmetric++) {
      uint32_t count = COUNT / 10;
      make_values(values, count, cases[i].shift, cases[i].outliers, 3 + i);
      for (uint32_t k = 0; cases[i].relu && k < count; k++)
        values[k] = fmaxf(values[k], 0);
      for (double cut_weight = 1; cut_weight < 1000; cut_weight *= 10)
        check_mse(i, values, count, symmetric, cut_weight);
    }
}

static void test_entropy(void **state) {
  static float values[COUNT];
  make_values(values, COUNT, 0, 6, 9);
  Stats s = stats_of(values, COUNT);
  RangeOptions o = options_of(RANGE_ENTROPY, true);
  Range r = stats_range(&s, &o);
  /* The outliers reach to about 30; what is kept is most of the normal distribution. */
  assert_true((double)s.high > 10 || (double)s.low < -10);
  assert_true(r.high > 2.5 && r.high < 7);
  stats_release(&s);
  for (uint32_t i = 0; i < COUNT; i++)
    values[i] = (float)(i % 100);
  s = stats_of(values, COUNT);
  o.symmetric = false;
  r = stats_range(&s, &o);
  assert_true(r.low == 0 && r.high > 95); /* even: nothing to cut off */
  stats_release(&s);
}

/* No finite value, one value, zeros alone, one sign: every method gives what can be used. */
static void test_edges(void **state) {
  static const float cases[][4] = {{NAN, INFINITY, -INFINITY, NAN},
                                   {3, 3, 3, 3},
                                   {0, 0, -0.0F, 0},
                                   {-5, -5.5F, -6, -5},
                                   {1e-44F, 0, 1e-44F, 0},
                                   {-3e38F, 3e38F, 0, 1},
                                   {-1.9F, -1.9F, -1.9F, -1.9F},
                                   {INFINITY, 2, 1, NAN}};
  static const double full[][2] = {{0, 0}, {0, 3},        {0, 0},    {-6, 0},
                                   {0, 0}, {-3e38, 3e38}, {-1.9, 0}, {0, 2}};
  for (unsigned i = 0; i < COUNT_OF(cases); i++)
    for (unsigned method = 0; method < 10; method++) {
      Stats s = stats_of(cases[i], 4);
      RangeOptions o = options_of((RangeMethod)(method / 2), method % 2);
      Range r = stats_range(&s, &o);
      double slack = 1e-6 * (full[i][1] - full[i][0]) + 1e-40, wide = fmax(-full[i][0], full[i][1]);
      assert_true(r.low <= 0 && r.high >= 0);
      assert_true(r.low >= (o.symmetric ? -wide : full[i][0]) - slack);
      assert_true(r.high <= (o.symmetric ? wide : full[i][1]) + slack);
      if (o.method == RANGE_MINMAX)
        assert_true(fabs(r.high - (o.symmetric ? wide : full[i][1])) <= slack);
      if (i == 1)
        assert_true(r.high > 2.9);
      stats_release(&s);
    }
}

static void test_names(void **state) {
  RangeMethod method;
  assert_true(range_method_find(SV("auto"), &method) && method == RANGE_AUTO);
  assert_true(range_method_find(SV("min-max"), &method) && method == RANGE_MINMAX);
  assert_true(range_method_find(SV("percentile"), &method) && method == RANGE_PERCENTILE);
  assert_true(range_method_find(SV("mse"), &method) && method == RANGE_MSE);
  assert_true(range_method_find(SV("entropy"), &method) && method == RANGE_ENTROPY);
  assert_false(range_method_find(SV("minmax"), &method));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_splits),   cmocka_unit_test(test_counts),
      cmocka_unit_test(test_channels), cmocka_unit_test(test_percentile),
      cmocka_unit_test(test_mse),      cmocka_unit_test(test_entropy),
      cmocka_unit_test(test_edges),    cmocka_unit_test(test_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
