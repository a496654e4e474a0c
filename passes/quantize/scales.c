/* See scales.h. */
#include "passes/quantize/scales.h"

#include <float.h>
#include <math.h>

#include "support/parallel.h"

enum { GRAIN = 1 << 16, COLUMNS = 1 << 10, FEW = 1 << 12 };
enum { MAGNITUDE = 0x7FFFFFFF, INFINITE = 0x7F800000 }; /* bits of floats */

#define SCALE_MIN 1e-30

float usable_scale(double scale) {
  return scale < SCALE_MIN ? (float)SCALE_MIN : scale > FLT_MAX ? FLT_MAX : (float)scale;
}

Quantization observed_quantization(const Graph *g, NodeId n) {
  Quantization q = {
      .dtype = DTYPE_I8, .low = node_int(g, n, OBSERVE_MIN), .high = node_int(g, n, OBSERVE_MAX)};
  double low = fmin(node_scalar(g, n, OBSERVE_LOW), 0),
         high = fmax(node_scalar(g, n, OBSERVE_HIGH), 0);
  if (node_bool(g, n, OBSERVE_SYMMETRIC)) {
    q.scale = low == 0 && high == 0 ? 1 : usable_scale(fmax(-low, high) / (double)q.high);
    q.low = INT8_MIN;
    return q;
  }
  q.scale = low == high ? 1 : usable_scale((high - low) / (double)(q.high - q.low));
  double zero = (double)q.low - nearbyint(low / (double)q.scale);
  q.zero = (int64_t)fmin(fmax(zero, (double)q.low), (double)q.high);
  return q;
}

/* --- weights --- */

typedef struct Reading {
  const uint8_t *data;
  Channels ch;
  int32_t *most; /* bits of the magnitudes: they are ordered as the floats are */
} Reading;

static inline int32_t magnitude_at(const uint8_t *data, uint64_t i) {
  int32_t bits;
  memcpy(&bits, data + i * sizeof bits, sizeof bits);
  bits &= MAGNITUDE;
  return bits < INFINITE ? bits : 0;
}

static int32_t most_of(const uint8_t *data, uint64_t count) {
  int32_t most = 0;
  for (uint64_t i = 0; i < count; i++) {
    int32_t bits = magnitude_at(data, i);
    most = bits > most ? bits : most;
  }
  return most;
}

static void read_channels(void *user, size_t begin, size_t end) {
  const Reading *r = user;
  uint64_t inner = r->ch.inner;
  for (uint64_t o = 0; o < r->ch.outer; o++) {
    const uint8_t *row = r->data + (o * r->ch.count + begin) * inner * sizeof(float);
    int32_t *most = r->most + begin;
    for (uint64_t c = 0; c < end - begin; c++) {
      int32_t bits = most_of(row + c * inner * sizeof(float), inner);
      most[c] = bits > most[c] ? bits : most[c];
    }
  }
}

static void read_columns(void *user, size_t begin, size_t end) {
  const Reading *r = user;
  int32_t *most = r->most + begin;
  for (uint64_t o = 0; o < r->ch.outer; o++) {
    const uint8_t *row = r->data + (o * r->ch.count + begin) * sizeof(float);
    for (uint64_t c = 0; c < end - begin; c++) {
      int32_t bits = magnitude_at(row, c);
      most[c] = bits > most[c] ? bits : most[c];
    }
  }
}

void channel_magnitudes(const Constant *c, const Channels *ch, float *out) {
  Reading r = {c->data, *ch, xrealloc(NULL, ch->count * sizeof *r.most + 1)};
  memset(r.most, 0, ch->count * sizeof *r.most);
  uint64_t run = ch->outer * ch->inner, grain = GRAIN / (run ? run : 1) + 1;
  bool columns = ch->inner == 1;
  if (columns && grain < COLUMNS)
    grain = COLUMNS;
  if (c->size)
    parallel_for(ch->count, grain, columns ? read_columns : read_channels, &r);
  memcpy(out, r.most, ch->count * sizeof *out);
  xfree(r.most);
  constant_drop_pages(c);
}

Constant codes_constant(Constant c) { return c.size <= FEW ? *constant_made(&c) : c; }

Constant channel_codes(Graph *g, const Constant *c, const Channels *ch, bool transposed,
                       const float *scales, int64_t low, int64_t high) {
  if (c->size == 0)
    return (Constant){.data = arena_alloc(&g->arena, 1)};
  Transform t = {
      .source = *c,
      .element = sizeof(float),
      .code = TRANSFORM_INT8,
      .rank = 3,
      .dims = {{ch->outer, ch->count * ch->inner, 0}, {ch->count, ch->inner, 1}, {ch->inner, 1, 0}},
      .scales = {.data = (const void *)scales, .size = ch->count * sizeof *scales},
      .low = (int8_t)low,
      .high = (int8_t)high};
  if (transposed) {
    TransformDim outer = t.dims[0];
    t.dims[0] = t.dims[1];
    t.dims[1] = outer;
  }
  return codes_constant(constant_transform(g, &t));
}
