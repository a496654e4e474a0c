/* The plane is copied with its padding and taken apart by the strides ("phases": each has every
 * stride-th row and column), so that what a tap reads for consecutive results is consecutive,
 * whatever the width, stride and dilation. Results are computed for all columns of the padded
 * plane, in blocks that stay in registers, and those that are none are dropped. Products are added
 * in the order of the taps, as the plain loop does. */
#include "ops/depthwise.h"

enum { BLOCK = 16, STRIDE_MAX = 4, ROW_MIN = 48 };

typedef float Lanes __attribute__((vector_size(16)));

bool depthwise_plan(Depthwise *d) {
  int64_t taps = d->kernel[0] * d->kernel[1], reach[2];
  if (d->kernel[0] > DEPTHWISE_TAPS_MAX || d->kernel[1] > DEPTHWISE_TAPS_MAX ||
      taps > DEPTHWISE_TAPS_MAX)
    return false;
  for (unsigned i = 0; i < 2; i++) {
    reach[i] = (d->kernel[i] - 1) * d->dilation[i];
    if (d->stride[i] > STRIDE_MAX || d->pad[i] > d->size[i] || reach[i] > 2 * d->size[i])
      return false;
  }
  d->rows = d->result[0] + reach[0] / d->stride[0];
  d->pitch = d->result[1] + reach[1] / d->stride[1];
  d->phase = d->rows * d->pitch;
  for (int64_t t = 0; t < taps; t++) {
    int64_t y = t / d->kernel[1] * d->dilation[0], x = t % d->kernel[1] * d->dilation[1];
    int64_t phase = y % d->stride[0] * d->stride[1] + x % d->stride[1];
    d->offset[t] = phase * d->phase + y / d->stride[0] * d->pitch + x / d->stride[1];
  }
  d->sums = (d->result[0] - 1) * d->pitch + d->result[1] + BLOCK;
  d->buffer = d->stride[0] * d->stride[1] * d->phase + BLOCK;
  return true;
}

/* Of a phase along one axis, the elements begin … end come from the plane, at first + i * stride.
 */
static void phase_range(const Depthwise *d, unsigned axis, int64_t first, int64_t length,
                        int64_t *begin, int64_t *end) {
  int64_t step = d->stride[axis], size = d->size[axis];
  *begin = first >= 0 ? 0 : (-first + step - 1) / step;
  *end = first >= size ? 0 : min_i64(length, (size - 1 - first) / step + 1);
}

static inline void copy_strided(const float *from, int64_t step, int64_t count, float *to) {
  for (int64_t i = 0; i < count; i++)
    to[i] = from[i * step];
}

static void load_phase(const Depthwise *d, const float *plane, const int64_t first[2], float *to) {
  int64_t begin[2], end[2], width = d->size[1], step = d->stride[1];
  phase_range(d, 0, first[0], d->rows, &begin[0], &end[0]);
  phase_range(d, 1, first[1], d->pitch, &begin[1], &end[1]);
  int64_t count = end[1] - begin[1];
  for (int64_t row = begin[0]; row < end[0]; row++) {
    const float *from =
        plane + (first[0] + row * d->stride[0]) * width + first[1] + begin[1] * step;
    float *line = to + row * d->pitch + begin[1];
    if (step == 1)
      copy_strided(from, 1, count, line);
    else if (step == 2)
      copy_strided(from, 2, count, line);
    else
      copy_strided(from, step, count, line);
  }
}

void depthwise_load(const Depthwise *d, const float *plane, float *buffer) {
  for (int64_t p = 0; p < d->stride[0] * d->stride[1]; p++) {
    int64_t first[2] = {p / d->stride[1] - d->pad[0], p % d->stride[1] - d->pad[1]};
    load_phase(d, plane, first, buffer + p * d->phase);
  }
}

static inline Lanes lanes_load(const float *from) {
  Lanes v;
  memcpy(&v, from, sizeof v);
  return v;
}

/* BLOCK sums, of what the taps read at buffer + offset on. */
static inline void sum_block(const Depthwise *d, const float *buffer, const float *weights,
                             float bias, float *to) {
  int64_t taps = d->kernel[0] * d->kernel[1];
  Lanes sum[4];
  for (unsigned i = 0; i < 4; i++)
    sum[i] = (Lanes){bias, bias, bias, bias};
  for (int64_t t = 0; t < taps; t++) {
    const float *from = buffer + d->offset[t];
    const Lanes weight = {weights[t], weights[t], weights[t], weights[t]};
    sum[0] += weight * lanes_load(from);
    sum[1] += weight * lanes_load(from + 4);
    sum[2] += weight * lanes_load(from + 8);
    sum[3] += weight * lanes_load(from + 12);
  }
  memcpy(to, sum, sizeof sum);
}

/* Rows of many results, each in blocks of its own. */
static void sum_rows(const Depthwise *d, const float *buffer, const float *weights, float bias,
                     float *result) {
  int64_t width = d->result[1];
  for (int64_t row = 0; row < d->result[0]; row++, result += width) {
    const float *from = buffer + row * d->pitch;
    int64_t x = 0;
    for (; x + BLOCK <= width; x += BLOCK)
      sum_block(d, from + x, weights, bias, result + x);
    float rest[BLOCK];
    if (x == width)
      continue;
    sum_block(d, from + x, weights, bias, rest);
    memcpy(result + x, rest, (size_t)(width - x) * sizeof *rest);
  }
}

void depthwise_sum(const Depthwise *d, const float *buffer, const float *weights, float bias,
                   float *sums, float *result) {
  int64_t width = d->result[1];
  if (width >= ROW_MIN) {
    sum_rows(d, buffer, weights, bias, result);
    return;
  }
  for (int64_t q = 0; q < d->sums - BLOCK; q += BLOCK)
    sum_block(d, buffer + q, weights, bias, sums + q);
  for (int64_t row = 0; row < d->result[0]; row++)
    for (int64_t x = 0; x < width; x++)
      result[row * width + x] = sums[row * d->pitch + x];
}
