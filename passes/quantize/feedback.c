/* Codes with samples in mind: what a code leaves of a weight is made up for by the weights of the
 * columns behind it, as far as their operands go together on the samples (Optimal Brain
 * Compression, GPTQ).
 *
 * With H, the second moments of the operand, a row of errors d costs d H d'. Its columns are
 * rounded in order. When column i is off by d, the columns behind it are best moved by d * U[i, k]
 * / U[i, i], where inv(H) = U' U and U is an upper triangle, and d * d / (U[i, i] * U[i, i]) is
 * what remains of the cost. H is known within windows of columns, and taken as 0 between them. */
#include <math.h>

#include "passes/quantize/blocks.h"
#include "passes/quantize/scales.h"
#include "quant/moments.h"
#include "support/number.h"
#include "support/parallel.h"

enum { LANES = 32 }; /* rows beside each other; loops over them are too long to be unrolled */

/* A share of the mean moment that is added to each: columns that samples say little about are not
 * moved by much. */
#define DAMPING 0.01

typedef struct Job {
  const BlockMatrix *m;
  uint64_t groups; /* of rows, each with moments of its own */
  const float *moments;
  float *upper; /* as the moments: 1 / (U[i, i] * U[i, i]) at [i, i], U[i, k] / U[i, i] behind it */
  float low, high; /* codes */
  float *scales;
  uint8_t *codes; /* of 4 bits: rows of two in a byte */
} Job;

/* --- moments --- */

/* H = R R', where R is an upper triangle, in place. False when H has no such factor. */
static bool factor(double *h, uint64_t n) {
  for (uint64_t j = n; j-- > 0;) {
    for (uint64_t i = j + 1; i-- > 0;) {
      double sum = h[i * n + j];
      for (uint64_t k = j + 1; k < n; k++)
        sum -= h[i * n + k] * h[j * n + k];
      if (i == j && !(sum > 0 && sum < INFINITY))
        return false;
      h[i * n + j] = i == j ? sqrt(sum) : sum / h[j * n + j];
    }
  }
  return true;
}

/* U is the inverse of R. */
static void invert(const double *r, uint64_t n, double *u) {
  for (uint64_t i = n; i-- > 0;) {
    u[i * n + i] = 1 / r[i * n + i];
    for (uint64_t j = i + 1; j < n; j++) {
      double sum = 0;
      for (uint64_t k = i + 1; k <= j; k++)
        sum += r[i * n + k] * u[k * n + j];
      u[i * n + j] = -sum / r[i * n + i];
    }
  }
}

/* Of the n columns of a window, whose rows are width apart. Where samples say nothing, all columns
 * count the same and none is moved. */
static void prepare_window(const float *moments, uint64_t n, uint64_t width, float *upper) {
  double *h = xrealloc(NULL, 2 * n * n * sizeof *h), *u = h + n * n, mean = 0;
  for (uint64_t i = 0; i < n; i++)
    mean += (double)moments[i * width + i] / (double)n;
  for (uint64_t i = 0; i < n; i++)
    for (uint64_t j = 0; j < n; j++)
      h[i * n + j] = (double)moments[i * width + j] / mean + (i == j ? DAMPING : 0);
  bool known = factor(h, n);
  if (known)
    invert(h, n, u);
  for (uint64_t i = 0; i < n; i++)
    for (uint64_t j = i; j < n; j++) {
      double own = known ? u[i * n + i] : 1, other = known ? u[i * n + j] : 0;
      upper[i * width + j] = (float)(i == j ? 1 / (own * own) : other / own);
    }
  xfree(h);
}

static uint64_t window_end(const Job *j, uint64_t column) {
  uint64_t end = column / OBSERVE_WINDOW * OBSERVE_WINDOW + OBSERVE_WINDOW;
  return end < j->m->columns ? end : j->m->columns;
}

static uint64_t window_count(const Job *j) {
  return (j->m->columns + OBSERVE_WINDOW - 1) / OBSERVE_WINDOW;
}

/* Windows of all groups. */
static void prepare(void *user, size_t begin, size_t end) {
  const Job *j = user;
  uint64_t width = moments_width(j->m->columns), windows = window_count(j);
  for (uint64_t i = begin; i < end; i++) {
    uint64_t first = i % windows * OBSERVE_WINDOW,
             at = (i / windows * j->m->columns + first) * width;
    prepare_window(j->moments + at, window_end(j, first) - first, width, j->upper + at);
  }
}

/* To be freed. */
static float *prepare_all(Job *j) {
  j->upper = xrealloc(
      NULL, j->groups * j->m->columns * moments_width(j->m->columns) * sizeof *j->upper + 1);
  parallel_for(j->groups * window_count(j), 1, prepare, j);
  return j->upper;
}

/* --- rounding; x has the weights of a column side by side, for LANES rows --- */

/* x becomes its codes, off what they leave of it. */
static void round_column(const Job *j, float *restrict x, const float *restrict scales,
                         float weight, float *restrict off, float *restrict cost) {
  const float low = j->low, high = j->high;
  for (uint32_t r = 0; r < LANES; r++) {
    float code = x[r] / scales[r];
    code = code > low ? code : low;
    code = code < high ? code : high;
    code = round_small_f32(code);
    off[r] = x[r] - code * scales[r];
    x[r] = code;
    cost[r] += off[r] * off[r] * weight;
  }
}

static void move_column(float *restrict x, const float *restrict off, float share) {
  for (uint32_t r = 0; r < LANES; r++)
    x[r] -= off[r] * share;
}

/* Columns [begin, end), all of one window, by a scale a row: x becomes their codes, the columns up
 * to reach are moved, and cost grows by what remains. */
static void round_columns(const Job *j, uint64_t begin, uint64_t end, uint64_t reach,
                          const float *scales, float (*x)[LANES], float *cost) {
  uint64_t width = moments_width(j->m->columns);
  for (uint64_t i = begin; i < end; i++) {
    const float *upper = j->upper + i * width + i % OBSERVE_WINDOW;
    float off[LANES];
    round_column(j, x[i - begin], scales, upper[0], off, cost);
    for (uint64_t k = i + 1; k < reach; k++)
      move_column(x[k - begin], off, upper[k - i]);
  }
}

/* The block at column `begin`; what is behind it is moved when `last`. */
static void round_block(const Job *j, uint64_t begin, const float *scales, bool last,
                        float (*x)[LANES], float *cost) {
  uint64_t end = begin + j->m->block;
  for (uint64_t at = begin, until; at < end; at = until) {
    until = window_end(j, at) < end ? window_end(j, at) : end;
    round_columns(j, at, until, last ? window_end(j, at) : until, scales, x + (at - begin), cost);
  }
}

/* The scales, of those that block_scales tries, by which the least cost remains. */
static void best_scales(const Job *j, uint64_t begin, const float (*x)[LANES],
                        float (*tried)[LANES], float *scales) {
  float most[LANES] = {0}, least[LANES];
  for (uint32_t i = 0; i < j->m->block; i++)
    for (uint32_t r = 0; r < LANES; r++)
      most[r] = fabsf(x[i][r]) > most[r] ? fabsf(x[i][r]) : most[r];
  for (uint32_t r = 0; r < LANES; r++) {
    least[r] = INFINITY;
    scales[r] = block_candidate(most[r], 0);
  }
  for (uint32_t k = 0; k < BLOCK_CANDIDATES; k++) {
    float some[LANES], cost[LANES] = {0};
    for (uint32_t r = 0; r < LANES; r++)
      some[r] = block_candidate(most[r], k);
    memcpy(tried, x, j->m->block * sizeof *x);
    round_block(j, begin, some, false, tried, cost);
    for (uint32_t r = 0; r < LANES; r++)
      if (cost[r] < least[r]) {
        least[r] = cost[r];
        scales[r] = some[r];
      }
  }
}

static void store_codes(const Job *j, uint64_t row, uint64_t rows, const float (*x)[LANES]) {
  uint64_t bytes = (j->m->columns + 1) / 2;
  for (uint64_t r = 0; r < rows; r++)
    for (uint64_t i = 0; i < j->m->columns; i++)
      j->codes[(row + r) * bytes + i / 2] |= (uint8_t)((int)x[i][r] - BLOCK_CODE_MIN)
                                             << (i % 2 ? 4 : 0);
}

static void load_rows(const BlockMatrix *m, uint64_t row, uint64_t rows, float (*x)[LANES]) {
  for (uint64_t i = 0; i < m->columns; i++)
    for (uint64_t r = 0; r < LANES; r++)
      x[i][r] = r < rows ? block_load(m, row + r, i) : 0;
}

static void round_rows(void *user, size_t begin, size_t end) {
  const Job *j = user;
  const BlockMatrix *m = j->m;
  uint64_t blocks = m->columns / m->block;
  float(*x)[LANES] = xrealloc(NULL, (m->columns + m->block) * sizeof *x),
  (*tried)[LANES] = x + m->columns;
  for (uint64_t row = begin; row < end; row += LANES) {
    uint64_t rows = end - row < LANES ? end - row : LANES;
    load_rows(m, row, rows, x);
    for (uint64_t k = 0; k < blocks; k++) {
      float scales[LANES], cost[LANES] = {0};
      best_scales(j, k * m->block, (const float(*)[LANES])x + k * m->block, tried, scales);
      round_block(j, k * m->block, scales, true, x + k * m->block, cost);
      for (uint64_t r = 0; r < rows; r++)
        j->scales[(row + r) * blocks + k] = scales[r];
    }
    store_codes(j, row, rows, (const float(*)[LANES])x);
  }
  xfree(x);
}

Constant block_codes_by_moments(Graph *g, const BlockMatrix *m, const float *moments,
                                float *scales) {
  if (m->floats.size == 0)
    return (Constant){.data = arena_alloc(&g->arena, 1)};
  uint64_t size = m->rows * ((m->columns + 1) / 2);
  Job job = {.m = m,
             .groups = 1,
             .moments = moments,
             .low = BLOCK_CODE_MIN,
             .high = BLOCK_CODE_MAX,
             .scales = scales,
             .codes = arena_alloc(&g->arena, (size_t)size + 1)};
  memset(job.codes, 0, (size_t)size);
  float *upper = prepare_all(&job);
  parallel_for(m->rows, LANES, round_rows, &job);
  constant_drop_pages(&m->floats);
  xfree(upper);
  Constant packed = {.data = job.codes, .size = size};
  return codes_constant(constant_unpacked(g, packed, m->rows, m->columns, false, BLOCK_CODE_MIN));
}

/* --- a scale for each row --- */

static void round_lanes(const Job *j, uint64_t row, uint64_t rows, float (*x)[LANES]) {
  const BlockMatrix *m = j->m;
  float scales[LANES], cost[LANES] = {0};
  for (uint64_t r = 0; r < LANES; r++)
    scales[r] = r < rows ? j->scales[row + r] : 1;
  load_rows(m, row, rows, x);
  round_block(j, 0, scales, true, x, cost);
  for (uint64_t r = 0; r < rows; r++)
    for (uint64_t i = 0; i < m->columns; i++)
      j->codes[(row + r) * m->columns + i] = (uint8_t)(int8_t)x[i][r];
}

static void round_groups(void *user, size_t begin, size_t end) {
  const Job *j = user;
  uint64_t columns = j->m->columns, own = j->m->rows / j->groups;
  float(*x)[LANES] = xrealloc(NULL, columns * sizeof *x);
  for (uint64_t group = begin; group < end; group++) {
    Job part = *j;
    part.upper += group * columns * moments_width(columns);
    for (uint64_t row = 0; row < own; row += LANES)
      round_lanes(&part, group * own + row, own - row < LANES ? own - row : LANES, x);
  }
  xfree(x);
}

Constant channel_codes_by_moments(Graph *g, const BlockMatrix *m, uint64_t groups,
                                  const float *moments, float *scales) {
  uint64_t size = m->rows * m->columns;
  Job job = {.m = m,
             .groups = groups,
             .moments = moments,
             .low = -INT8_MAX,
             .high = INT8_MAX,
             .scales = scales,
             .codes = arena_alloc(&g->arena, (size_t)size + 1)};
  float *upper = prepare_all(&job);
  parallel_for(groups, 1, round_groups, &job);
  constant_drop_pages(&m->floats);
  xfree(upper);
  return (Constant){.data = job.codes, .size = size};
}
