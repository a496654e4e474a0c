/* Weights in blocks of 4 bits: the scale of each block is the best of the candidates, and the codes
 * are the nearest ones by it, however the matrix lies. With the moments of an operand the products
 * are near instead. */
#include "ops_fixture.h"

#include "passes/quantize/blocks.h"
#include "quant/moments.h"
#include "support/half.h"

static double error_of(const float *x, uint32_t count, float scale) {
  double sum = 0;
  for (uint32_t i = 0; i < count; i++) {
    double code = fmin(fmax(rint((double)(x[i] / scale)), BLOCK_CODE_MIN), BLOCK_CODE_MAX);
    sum += pow((double)x[i] - code * (double)scale, 2);
  }
  return sum;
}

/* The candidates are most / (6.5 + k / 4) for k of 0 to 16, as bf16. */
static double least_error(const float *x, uint32_t count) {
  float most = 0;
  double least = INFINITY;
  for (uint32_t i = 0; i < count; i++)
    most = fmaxf(most, fabsf(x[i]));
  for (int k = 0; k < 17; k++) {
    float scale = bfloat_to_float(bfloat_from_float(most / (6.5F + 0.25F * (float)k)));
    least = fmin(least, error_of(x, count, scale));
  }
  return least;
}

enum { ROWS = 37, COLUMNS = 24, BLOCK = 8, BLOCKS = COLUMNS / BLOCK };

static void fill_matrix(float *m, bool transposed) {
  uint32_t random = 7;
  for (uint32_t r = 0; r < ROWS; r++)
    for (uint32_t c = 0; c < COLUMNS; c++) {
      random = random * 1664525u + 1013904223u;
      m[transposed ? c * ROWS + r : r * COLUMNS + c] =
          ((float)(random >> 8) / (float)(1 << 24) - 0.5F) * (float)(1 + r);
    }
}

static void test_matrix(void **state) {
  OpsFixture *f = *state;
  static float plain[ROWS * COLUMNS], across[ROWS * COLUMNS], scales[2][ROWS * BLOCKS];
  fill_matrix(plain, false);
  fill_matrix(across, true);
  for (int t = 0; t < 2; t++) {
    BlockMatrix m = {.floats = {.data = (const void *)(t ? across : plain), .size = sizeof plain},
                     .rows = ROWS,
                     .columns = COLUMNS,
                     .transposed = t,
                     .block = BLOCK};
    block_scales(&m, scales[t]);
    SymInt dims[] = {ROWS, COLUMNS};
    ValueId v =
        graph_add_constant(f->g, graph_tensor_type(f->g, DTYPE_I8, 2, dims, ORDER_CONTIGUOUS),
                           block_codes(f->g, &m, scales[t]), 0);
    Tensor codes = interp_constant(f->g, v, &f->arena);
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++) {
      double code = rint((double)(plain[i] / scales[t][i / BLOCK]));
      assert_true((double)tensor_load_int(&codes, i) ==
                  fmin(fmax(code, BLOCK_CODE_MIN), BLOCK_CODE_MAX));
    }
  }
  assert_memory_equal(scales[0], scales[1], sizeof scales[0]);
  for (uint32_t b = 0; b < ROWS * BLOCKS; b++) {
    double got = error_of(plain + b * BLOCK, BLOCK, scales[0][b]),
           least = least_error(plain + b * BLOCK, BLOCK);
    assert_true(fabs(got - least) <= 1e-6 * least);
  }
}

/* Of zeros and of what is not finite. */
static void test_odd_blocks(void **state) {
  static const float m[] = {0, -0.0F, 0, 0, INFINITY, NAN, 7, -INFINITY, 1e-31F, 0, 0, -1e-31F};
  float scales[3];
  block_scales(&(BlockMatrix){.floats = {.data = (const void *)m, .size = sizeof m},
                              .rows = 3,
                              .columns = 4,
                              .block = 4},
               scales);
  assert_true(scales[0] == 1 && scales[2] == 1);
  assert_true(error_of(m + 6, 1, scales[1]) == 0);
}

/* --- with moments --- */

enum { WIDE = 300, WIDE_BLOCK = 100, SAMPLES = 400 }; /* blocks reach over ends of windows */

/* Operands whose neighbours are much alike, and which grow with the column; one is always 0. */
static void fill_operands(float (*x)[WIDE]) {
  uint32_t random = 3;
  for (uint32_t s = 0; s < SAMPLES; s++)
    for (uint32_t i = 0; i < WIDE; i++) {
      random = random * 1664525u + 1013904223u;
      float own = (float)(random >> 8) / (float)(1 << 24) - 0.5F;
      x[s][i] = i == 7 ? 0 : (i ? 0.9F * x[s][i - 1] : 0) + own * (1 + (float)i / WIDE);
    }
}

static void sum_moments(float (*x)[WIDE], float (*moments)[OBSERVE_WINDOW]) {
  for (uint32_t s = 0; s < SAMPLES; s++)
    for (uint32_t i = 0; i < WIDE; i++)
      for (uint32_t k = 0, first = i - i % OBSERVE_WINDOW; k < OBSERVE_WINDOW && first + k < WIDE;
           k++)
        moments[i][k] += x[s][i] * x[s][first + k];
}

/* What the codes leave of the products of a row with all operands, squared. */
static double product_error(float (*x)[WIDE], const float *row, const Tensor *codes, uint32_t at,
                            const float *scales) {
  double sum = 0;
  for (uint32_t s = 0; s < SAMPLES; s++) {
    double off = 0;
    for (uint32_t i = 0; i < WIDE; i++)
      off += (double)x[s][i] * ((double)row[i] - (double)tensor_load_int(codes, at + i) *
                                                     (double)scales[i / WIDE_BLOCK]);
    sum += off * off;
  }
  return sum;
}

static Tensor codes_tensor(OpsFixture *f, Constant codes) {
  SymInt dims[] = {ROWS, WIDE};
  TypeId type = graph_tensor_type(f->g, DTYPE_I8, 2, dims, ORDER_CONTIGUOUS);
  return interp_constant(f->g, graph_add_constant(f->g, type, codes, 0), &f->arena);
}

static void test_moments(void **state) {
  OpsFixture *f = *state;
  enum { BLOCKS_WIDE = WIDE / WIDE_BLOCK };
  static float x[SAMPLES][WIDE], moments[WIDE][OBSERVE_WINDOW], none[WIDE][OBSERVE_WINDOW];
  static float plain[ROWS][WIDE], across[WIDE][ROWS], scales[4][ROWS * BLOCKS_WIDE];
  fill_operands(x);
  sum_moments(x, moments);
  for (uint32_t r = 0; r < ROWS; r++)
    for (uint32_t i = 0; i < WIDE; i++)
      plain[r][i] = across[i][r] = sinf((float)(r * WIDE + i) * 12.9898F);
  BlockMatrix m = {.floats = {.data = (const void *)plain, .size = sizeof plain},
                   .rows = ROWS,
                   .columns = WIDE,
                   .block = WIDE_BLOCK},
              t = m;
  t.floats.data = (const void *)across;
  t.transposed = true;
  block_scales(&m, scales[0]);
  Tensor nearest = codes_tensor(f, block_codes(f->g, &m, scales[0])),
         near = codes_tensor(f, block_codes_by_moments(f->g, &m, moments[0], scales[1])),
         same = codes_tensor(f, block_codes_by_moments(f->g, &t, moments[0], scales[2])),
         blind = codes_tensor(f, block_codes_by_moments(f->g, &m, none[0], scales[3]));
  assert_memory_equal(near.data, same.data, ROWS * WIDE);
  assert_memory_equal(scales[1], scales[2], sizeof scales[1]);
  assert_memory_equal(nearest.data, blind.data, ROWS * WIDE);
  assert_memory_equal(scales[0], scales[3], sizeof scales[0]);
  double before = 0, after = 0;
  for (uint32_t r = 0; r < ROWS; r++) {
    before += product_error(x, plain[r], &nearest, r * WIDE, scales[0] + r * BLOCKS_WIDE);
    after += product_error(x, plain[r], &near, r * WIDE, scales[1] + r * BLOCKS_WIDE);
  }
  assert_true(after < 0.3 * before);
}

/* Rows of 8 bits in two groups: the second has operands of which nothing is known, and the nearest
 * codes. */
static void test_channels(void **state) {
  OpsFixture *f = *state;
  enum { PAIR = 2 * ROWS };
  static float x[SAMPLES][WIDE], moments[2][WIDE][OBSERVE_WINDOW], rows[PAIR][WIDE], scales[PAIR];
  fill_operands(x);
  memset(moments, 0, sizeof moments);
  sum_moments(x, moments[0]);
  for (uint32_t r = 0; r < PAIR; r++) {
    scales[r] = 1.0F / INT8_MAX;
    for (uint32_t i = 0; i < WIDE; i++)
      rows[r][i] = sinf((float)(r * WIDE + i) * 12.9898F);
  }
  BlockMatrix m = {.floats = {.data = (const void *)rows, .size = sizeof rows},
                   .rows = PAIR,
                   .columns = WIDE,
                   .block = WIDE};
  Constant codes = channel_codes_by_moments(f->g, &m, 2, moments[0][0], scales);
  assert_int_equal(codes.size, PAIR * WIDE);
  double before = 0, after = 0;
  for (uint32_t r = 0; r < PAIR; r++)
    for (uint32_t s = 0; s < SAMPLES; s++) {
      double near = 0, chosen = 0;
      for (uint32_t i = 0; i < WIDE; i++) {
        int8_t code = (int8_t)codes.data[r * WIDE + i], nearest = (int8_t)rintf(rows[r][i] * 127);
        if (r >= ROWS)
          assert_in_range(code - nearest + 1, 0, 2); /* ties of the two ways to divide */
        near += (double)x[s][i] * ((double)rows[r][i] - nearest / 127.0);
        chosen += (double)x[s][i] * ((double)rows[r][i] - code / 127.0);
      }
      before += r < ROWS ? near * near : 0;
      after += r < ROWS ? chosen * chosen : 0;
    }
  assert_true(after < 0.3 * before);
}

int main(void) {
  const struct CMUnitTest tests[] = {OPS_TEST(test_matrix), OPS_TEST(test_moments),
                                     OPS_TEST(test_channels), cmocka_unit_test(test_odd_blocks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
