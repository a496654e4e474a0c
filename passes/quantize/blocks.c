/* See blocks.h. */
#include "passes/quantize/blocks.h"

#include <math.h>

#include "passes/quantize/scales.h"
#include "support/half.h"
#include "support/number.h"
#include "support/parallel.h"

enum { PADDED = 20, GRAIN = 16 };

typedef struct Job {
  const BlockMatrix *m;
  float *scales;
} Job;

float block_load(const BlockMatrix *m, uint64_t row, uint64_t column) {
  uint64_t at = m->transposed ? column * m->rows + row : row * m->columns + column;
  float f = float_at(m->floats.data, at);
  return isfinite(f) ? f : 0;
}

float block_candidate(float most, uint32_t k) {
  return most < 1e-30F ? 1 : bfloat_to_float(bfloat_from_float(most / (6.5F + 0.25F * (float)k)));
}

/* Adds the squared errors of an element by all scales. */
static void add_errors(float x, const float *scales, double *errors) {
  for (uint32_t k = 0; k < PADDED; k++) {
    float code = round_small_f32(x / scales[k]);
    code = code < BLOCK_CODE_MIN ? BLOCK_CODE_MIN : code;
    code = code > BLOCK_CODE_MAX ? BLOCK_CODE_MAX : code;
    double d = (double)x - (double)(code * scales[k]);
    errors[k] += d * d;
  }
}

static float best_scale(const float *x, uint32_t count) {
  float most = 0, scales[PADDED];
  double errors[PADDED] = {0}, least = INFINITY;
  for (uint32_t i = 0; i < count; i++)
    most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
  for (uint32_t k = 0; k < PADDED; k++)
    scales[k] = block_candidate(most, k);
  for (uint32_t i = 0; i < count; i++)
    add_errors(x[i], scales, errors);
  float best = 1;
  for (uint32_t k = 0; k < BLOCK_CANDIDATES; k++)
    if (errors[k] < least) {
      least = errors[k];
      best = scales[k];
    }
  return best;
}

static void scale_rows(void *user, size_t begin, size_t end) {
  const Job *job = user;
  const BlockMatrix *m = job->m;
  uint64_t blocks = m->columns / m->block;
  float *x = xrealloc(NULL, m->block * GRAIN * sizeof *x);
  for (uint64_t row = begin; row < end;
       row += GRAIN) /* beside each other where they are transposed */
    for (uint64_t k = 0; k < blocks; k++) {
      uint64_t rows = end - row < GRAIN ? end - row : GRAIN;
      for (uint32_t i = 0; i < m->block; i++)
        for (uint64_t r = 0; r < rows; r++)
          x[r * m->block + i] = block_load(m, row + r, k * m->block + i);
      for (uint64_t r = 0; r < rows; r++)
        job->scales[(row + r) * blocks + k] = best_scale(x + r * m->block, m->block);
    }
  xfree(x);
}

void block_scales(const BlockMatrix *m, float *scales) {
  Job job = {m, scales};
  parallel_for(m->rows, GRAIN, scale_rows, &job);
  constant_drop_pages(&m->floats);
}

Constant block_codes(Graph *g, const BlockMatrix *m, const float *scales) {
  uint64_t blocks = m->columns / m->block, row = m->transposed ? 1 : m->columns,
           column = m->transposed ? m->rows : 1;
  if (m->floats.size == 0)
    return (Constant){.data = arena_alloc(&g->arena, 1)};
  Transform t = {
      .source = m->floats,
      .element = sizeof(float),
      .code = TRANSFORM_INT8,
      .rank = 3,
      .dims = {{m->rows, row, blocks}, {blocks, m->block * column, 1}, {m->block, column, 0}},
      .scales = {.data = (const void *)scales, .size = m->rows * blocks * sizeof *scales},
      .low = BLOCK_CODE_MIN,
      .high = BLOCK_CODE_MAX,
      .finite = true};
  return codes_constant(constant_transform(g, &t));
}
