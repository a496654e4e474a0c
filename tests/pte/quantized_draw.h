/* Draws values of XNNPACK graphs for quantized.c: activations, filters, biases, with random bytes
 * and parameters. */
#ifndef ETC_TESTS_PTE_QUANTIZED_DRAW_H
#define ETC_TESTS_PTE_QUANTIZED_DRAW_H

#include "maker.h"

#include "backends/xnnpack/blob.h"
#include "support/number.h"

enum { MOST_INPUTS = 2 };

typedef struct Draw {
  Maker m;
  XnnGraph x;
  uint64_t state;
  ValueId inputs[MOST_INPUTS];
  uint32_t input_count;
  XnnId out;
  uint32_t off;   /* how far results may be */
  bool is_signed; /* bytes of activations */
} Draw;

/* --- random things --- */

static inline uint32_t upto(Draw *d, uint32_t most) { /* 0 to most */
  d->state = d->state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(d->state >> 33) % (most + 1);
}

static inline uint32_t from_to(Draw *d, uint32_t least, uint32_t most) {
  return least + upto(d, most - least);
}

static inline float scale_near(Draw *d, float middle) {
  return middle * (0.5f + (float)upto(d, 1000) / 1000);
}

static inline uint32_t product(const uint32_t *dims, uint32_t rank) {
  uint32_t count = 1;
  for (uint32_t i = 0; i < rank; i++)
    count *= dims[i];
  return count;
}

/* --- values --- */

static inline TypeId value_type_of(Draw *d, DType dtype, uint32_t rank, const uint32_t *dims) {
  SymInt sizes[XNN_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++)
    sizes[i] = dims[i];
  return type_of(&d->m, dtype, rank, sizes);
}

static inline DType dtype_of(uint32_t datatype) {
  return datatype == XNN_QINT8    ? DTYPE_I8
         : datatype == XNN_QUINT8 ? DTYPE_U8
         : datatype == XNN_INT32  ? DTYPE_I32
         : datatype == XNN_FP16   ? DTYPE_F16
                                  : DTYPE_F32;
}

static inline XnnDatatype bytes(const Draw *d) { return d->is_signed ? XNN_QINT8 : XNN_QUINT8; }

static inline int32_t zero_near(Draw *d) {
  return (int32_t)upto(d, 80) - 40 + (d->is_signed ? 0 : 128);
}

static inline XnnId with_scale(Draw *d, XnnDatatype datatype, uint32_t rank, const uint32_t *dims,
                               float scale, int32_t zero_point) {
  XnnId id = xnn_value(&d->x, datatype, rank, dims);
  xnn_set_scale(&d->x, id, scale, zero_point);
  return id;
}

static inline XnnId activation(Draw *d, uint32_t rank, const uint32_t *dims, float scale) {
  return with_scale(d, bytes(d), rank, dims, scale_near(d, scale), zero_near(d));
}

static inline XnnId as_input(Draw *d, XnnId id) {
  const XnnValue *v = &d->x.values[id];
  d->inputs[d->input_count++] =
      input(&d->m, value_type_of(d, dtype_of(v->datatype), v->rank, v->dims));
  xnn_make_external(&d->x, id, true);
  return id;
}

static inline XnnId as_output(Draw *d, XnnId id) {
  d->out = id;
  return id;
}

static inline XnnData data_of(Draw *d, DType dtype, uint32_t count, const void *data) {
  const SymInt dims[] = {count};
  return (XnnData){.v = constant(&d->m, dtype, 1, dims, data)};
}

static inline XnnData random_bytes(Draw *d, uint32_t count) {
  uint8_t *data = arena_alloc(&d->m.g->arena, count);
  for (uint32_t i = 0; i < count; i++)
    data[i] = (uint8_t)upto(d, 255);
  return data_of(d, DTYPE_U8, count, data);
}

static inline XnnData random_floats(Draw *d, uint32_t count, float middle, bool positive) {
  float *data = ARENA_ARRAY(&d->m.g->arena, float, count);
  for (uint32_t i = 0; i < count; i++)
    data[i] = positive ? scale_near(d, middle) : middle * ((float)upto(d, 2000) / 1000 - 1);
  return data_of(d, DTYPE_F32, count, data);
}

static inline XnnData random_ints(Draw *d, uint32_t count, uint32_t most) {
  int32_t *data = ARENA_ARRAY(&d->m.g->arena, int32_t, count);
  for (uint32_t i = 0; i < count; i++)
    data[i] = (int32_t)upto(d, 2 * most) - (int32_t)most;
  return data_of(d, DTYPE_I32, count, data);
}

static inline XnnData random_bf16(Draw *d, uint32_t count, float middle) {
  uint16_t *data = ARENA_ARRAY(&d->m.g->arena, uint16_t, count);
  for (uint32_t i = 0; i < count; i++)
    data[i] = (uint16_t)(float_bits(scale_near(d, middle)) >> 16);
  return data_of(d, DTYPE_U16, count, data);
}

/* A filter; scales of about 0.01. */
static inline XnnId filter(Draw *d, XnnDatatype type, uint32_t rank, const uint32_t *dims,
                           uint32_t dim) {
  uint32_t count = product(dims, rank), last = dims[rank - 1];
  bool nibbles = type == XNN_QCINT4 || type == XNN_QBINT4;
  XnnId id = xnn_constant(&d->x, type, rank, dims,
                          random_bytes(d, nibbles ? count / last * ((last + 1) / 2) : count));
  if (type == XNN_QBINT4)
    xnn_set_groups(&d->x, id, 32, random_bf16(d, count / 32, 0.01f), count / 32);
  else if (type == XNN_QINT8 || type == XNN_QUINT8)
    xnn_set_scale(&d->x, id, scale_near(d, 0.01f), type == XNN_QUINT8 ? (int32_t)upto(d, 255) : 0);
  else
    xnn_set_channels(&d->x, id, dim, random_floats(d, dims[dim], 0.01f, true), dims[dim]);
  return id;
}

/* The bias that goes with a filter, or none. */
static inline XnnId bias(Draw *d, XnnDatatype filter_type, XnnDatatype in, uint32_t count) {
  if (upto(d, 3) == 0)
    return XNN_NONE;
  if (in == XNN_FP32 || in == XNN_QDINT8)
    return xnn_constant(&d->x, XNN_FP32, 1, &count, random_floats(d, count, 1, false));
  bool channels = filter_type == XNN_QCINT8 || filter_type == XNN_QCINT4;
  XnnId id = xnn_constant(&d->x, channels ? XNN_QCINT32 : XNN_QINT32, 1, &count,
                          random_ints(d, count, 5000));
  if (channels)
    xnn_set_channels(&d->x, id, 0, random_floats(d, count, 1, true), count);
  else
    xnn_set_scale(&d->x, id, 1, 0);
  return id;
}

static inline void limit_some(Draw *d, XnnNode *node) {
  node->limited = upto(d, 1);
  node->limit_low = node->limited ? -(float)upto(d, 20) / 10 : 0;
  node->limit_high = node->limited ? (float)upto(d, 40) / 10 + 0.1f : 0;
}

/* Dims that begin with `first`, from 1 to 6 each. */
static inline uint32_t some_dims(Draw *d, uint32_t *dims) {
  uint32_t rank = from_to(d, 1, 4);
  for (uint32_t i = 0; i < rank; i++)
    dims[i] = from_to(d, 1, 6);
  return rank;
}

#endif
