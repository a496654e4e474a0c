/* The plane is copied with its padding and taken apart by the strides ("phases": each has every
 * stride-th row and column), so that what a tap reads for consecutive results is consecutive,
 * whatever the width, stride and dilation. Results are computed for all columns of the padded
 * plane, in blocks that stay in registers, and those that are none are dropped. Products are added
 * in the order of the taps, as the plain loop does. */
#include "ops/depthwise.h"

enum { BLOCK = 16, STRIDE_MAX = 4 };

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

/* Row of a phase: elements first, first + stride, … of a row of the plane, 0 outside of it. */
static void load_row(const Depthwise *d, const float *row, int64_t first, float *to) {
  int64_t step = d->stride[1], size = d->size[1];
  int64_t begin = first >= 0 ? 0 : min_i64((-first + step - 1) / step, d->pitch);
  int64_t end = first >= size ? 0 : min_i64(d->pitch, (size - 1 - first) / step + 1);
  for (int64_t i = 0; i < begin; i++)
    to[i] = 0;
  for (int64_t i = begin; i < end; i++)
    to[i] = row[first + i * step];
  for (int64_t i = max_i64(begin, end); i < d->pitch; i++)
    to[i] = 0;
}

void depthwise_load(const Depthwise *d, const float *plane, float *buffer) {
  float *to = buffer;
  for (int64_t py = 0; py < d->stride[0]; py++)
    for (int64_t px = 0; px < d->stride[1]; px++)
      for (int64_t row = 0; row < d->rows; row++, to += d->pitch) {
        int64_t y = row * d->stride[0] + py - d->pad[0];
        if (y >= 0 && y < d->size[0])
          load_row(d, plane + y * d->size[1], px - d->pad[1], to);
        else
          memset(to, 0, (size_t)d->pitch * sizeof *to);
      }
  memset(to, 0, BLOCK * sizeof *to);
}

static inline Lanes lanes_load(const float *from) {
  Lanes v;
  memcpy(&v, from, sizeof v);
  return v;
}

void depthwise_sum(const Depthwise *d, const float *buffer, const float *weights, float bias,
                   float *sums, float *result) {
  int64_t taps = d->kernel[0] * d->kernel[1], count = d->sums - BLOCK;
  for (int64_t q = 0; q < count; q += BLOCK) {
    Lanes sum[4];
    for (unsigned i = 0; i < 4; i++)
      sum[i] = (Lanes){bias, bias, bias, bias};
    for (int64_t t = 0; t < taps; t++) {
      const float *from = buffer + d->offset[t] + q;
      const Lanes weight = {weights[t], weights[t], weights[t], weights[t]};
      sum[0] += weight * lanes_load(from);
      sum[1] += weight * lanes_load(from + 4);
      sum[2] += weight * lanes_load(from + 8);
      sum[3] += weight * lanes_load(from + 12);
    }
    memcpy(sums + q, sum, sizeof sum);
  }
  for (int64_t row = 0; row < d->result[0]; row++)
    memcpy(result + row * d->result[1], sums + row * d->pitch,
           (size_t)d->result[1] * sizeof *result);
}
