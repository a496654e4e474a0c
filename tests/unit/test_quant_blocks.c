/* Weights in blocks of 4 bits: the scale of each block is the best of the candidates, and the codes
 * are the nearest ones by it, however the matrix lies. */
#include "ops_fixture.h"

#include "passes/quantize/blocks.h"
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

int main(void) {
  const struct CMUnitTest tests[] = {OPS_TEST(test_matrix), cmocka_unit_test(test_odd_blocks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
