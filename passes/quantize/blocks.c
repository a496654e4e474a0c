/* See blocks.h. */
#include "passes/quantize/blocks.h"

#include <math.h>

#include "support/half.h"
#include "support/parallel.h"

enum { CANDIDATES = 17, GRAIN = 16 };

typedef struct Job {
  const BlockMatrix *m;
  int8_t *codes;
  float *scales;
} Job;

static float load(const BlockMatrix *m, uint64_t row, uint64_t column) {
  uint64_t at = m->transposed ? column * m->rows + row : row * m->columns + column;
  float f;
  memcpy(&f, m->data + at * sizeof f, sizeof f);
  return isfinite(f) ? f : 0;
}

static float code_of(float x, float scale) {
  float code = rintf(x / scale);
  return code < BLOCK_CODE_MIN ? BLOCK_CODE_MIN : code > BLOCK_CODE_MAX ? BLOCK_CODE_MAX : code;
}

static double error_of(const BlockMatrix *m, uint64_t row, uint64_t first, float scale) {
  double sum = 0;
  for (uint64_t i = first; i < first + m->block; i++) {
    float x = load(m, row, i);
    double d = (double)x - (double)(code_of(x, scale) * scale);
    sum += d * d;
  }
  return sum;
}

/* The extreme of a block is worth cutting off a little, which leaves finer steps for the rest. */
static float best_scale(const BlockMatrix *m, uint64_t row, uint64_t first) {
  float most = 0, best = 1;
  double least = INFINITY;
  for (uint64_t i = first; i < first + m->block; i++)
    most = fmaxf(most, fabsf(load(m, row, i)));
  if (most < 1e-30F)
    return 1;
  for (uint32_t k = 0; k < CANDIDATES; k++) {
    float scale = bfloat_to_float(bfloat_from_float(most / (6.5F + 0.25F * (float)k)));
    double error = error_of(m, row, first, scale);
    if (error < least) {
      least = error;
      best = scale;
    }
  }
  return best;
}

static void quantize_rows(void *user, size_t begin, size_t end) {
  const Job *job = user;
  const BlockMatrix *m = job->m;
  uint64_t blocks = m->columns / m->block;
  for (uint64_t row = begin; row < end; row++)
    for (uint64_t k = 0; k < blocks; k++) {
      float scale = best_scale(m, row, k * m->block);
      job->scales[row * blocks + k] = scale;
      for (uint64_t i = k * m->block; i < (k + 1) * m->block; i++)
        job->codes[row * m->columns + i] = (int8_t)code_of(load(m, row, i), scale);
    }
}

void quantize_blocks(const BlockMatrix *m, int8_t *codes, float *scales) {
  Job job = {m, codes, scales};
  parallel_for(m->rows, GRAIN, quantize_rows, &job);
}
