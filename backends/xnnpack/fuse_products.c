/* Products and convolutions with constant weights of 8 bits: on integers, or on floats. Limits:
 * measured on the XNNPACK of ExecuTorch 1.4.1. */
#include <math.h>

#include "backends/xnnpack/fuse.h"
#include "ir/transform.h"
#include "support/number.h"

/* Where a filter has its channels. */
static uint32_t channel_dim(const XnnNode *n) { return n->kind == XNN_DEPTHWISE_CONV2D ? 3 : 0; }

static float scale_at(const Fuse *f, const XnnValue *value, uint32_t i) {
  if (!value->scales)
    return value->scale;
  const Constant *c = value_constant(f->l->g, f->x->data[value->scales - 1].v);
  float scale;
  memcpy(&scale, c->data + (size_t)i * sizeof scale, sizeof scale);
  return scale;
}

/* The codes of a filter, if the node takes them. */
XnnId xf_filter_of(const Fuse *f, const XnnNode *n, XnnId filter) {
  const XnnValue *value = &f->x->values[filter];
  if (!value->data || !value->codes || xf_is_in_blocks(f->x, value))
    return XNN_NONE;
  const XnnValue *codes = &f->x->values[value->codes - 1];
  bool channels = codes->datatype == XNN_QCINT8 && codes->channel_dim == channel_dim(n) &&
                  codes->scale_count == codes->dims[codes->channel_dim],
       whole = codes->datatype == XNN_QINT8 && codes->zero_point == 0;
  return channels || whole ? value->codes - 1 : XNN_NONE;
}

/* A scale for each of count channels. */
float *xf_channel_scales(const Fuse *f, const XnnValue *filter, uint32_t count) {
  float *scales = ARENA_ARRAY(&f->l->g->arena, float, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++)
    scales[i] = scale_at(f, filter, filter->scales ? i : 0);
  return scales;
}

XnnData xf_floats_constant(Fuse *f, const float *values, uint32_t count) {
  Graph *g = f->l->g;
  SymInt dims[] = {count};
  TypeId type = graph_tensor_type(g, DTYPE_F32, 1, dims, ORDER_CONTIGUOUS);
  Constant c = {.data = (const void *)values, .size = count * sizeof *values};
  return (XnnData){.v = graph_add_constant(g, type, c, 0)};
}

/* The filter with a scale for each channel: XNNPACK's kernels for one scale are slower. */
XnnId xf_by_channels(Fuse *f, const XnnNode *n, XnnId filter) {
  XnnValue codes = f->x->values[filter];
  uint32_t dim = channel_dim(n), count = codes.dims[dim];
  if (codes.scales)
    return filter;
  XnnId made = xnn_constant(f->x, XNN_QCINT8, codes.rank, codes.dims, f->x->data[codes.data - 1]);
  xnn_set_channels(f->x, made, dim,
                   xf_floats_constant(f, xf_channel_scales(f, &codes, count), count), count);
  return made;
}

/* Results that are this many times larger than a step of the product cannot be scaled. */
#define MAX_FACTOR 256.0F

static bool scales_fit(const Fuse *f, const XnnValue *in, const XnnValue *filter,
                       const XnnValue *out) {
  uint32_t count = filter->scales ? filter->scale_count : 1;
  for (uint32_t i = 0; i < count; i++) {
    float factor = in->scale * scale_at(f, filter, i) / out->scale; /* in f32, as XNNPACK does */
    if (!(factor < MAX_FACTOR && factor >= 0x1p-32F))
      return false;
  }
  return true;
}

/* Whether the codes of a bias are steps of the product. */
static bool has_steps(const Fuse *f, const XnnValue *bias, const XnnValue *in,
                      const XnnValue *filter, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    double step = (double)in->scale * (double)scale_at(f, filter, i);
    if (!(fabs((double)scale_at(f, bias, i) - step) <= 1e-6 * step))
      return false;
  }
  return true;
}

enum { LARGEST_PRODUCT = 255 * 128 }; /* of codes less their zero points */

/* Whether sums that begin with a bias of these steps stay in 32 bits: XNNPACK's wrap. */
static bool sums_fit(const Fuse *f, ValueId steps, const XnnValue *filter, uint32_t count) {
  const Constant *c = value_constant(f->l->g, steps);
  uint64_t terms = xnn_dims_count(filter->dims, filter->rank);
  int64_t products = int_clamped((double)(terms / count) * LARGEST_PRODUCT, 0, INT32_MAX / 2),
          most = INT32_MAX - products;
  for (uint64_t i = 0; i < c->size; i += sizeof(int32_t)) {
    int32_t step;
    memcpy(&step, c->data + i, sizeof step);
    if (step > most || step < -most)
      return false;
  }
  return true;
}

/* The values of a bias of floats; NULL for one of integers. */
static const float *bias_floats(const Fuse *f, const XnnData *data, uint32_t *count) {
  const Graph *g = f->l->g;
  NodeId codes = dequantized_constant(g, data->v);
  const Constant *c = value_constant(g, data->v);
  *count = (uint32_t)(type_bytes_upper(g, value_type(g, data->v)) / sizeof(float));
  float *floats = ARENA_ARRAY(f->l->arena, float, (size_t)*count + 1);
  if (codes)
    dequantize_constant(g, codes, floats);
  else if (c && value_dtype(g, data->v) == DTYPE_F32)
    memcpy(floats, c->data, c->size);
  else
    return NULL;
  return floats;
}

/* The bias in steps of the product, saturated. */
static ValueId bias_steps(const Fuse *f, const float *floats, uint32_t count, const XnnValue *in,
                          const XnnValue *filter) {
  Graph *g = f->l->g;
  int32_t *steps = ARENA_ARRAY(&g->arena, int32_t, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++) {
    double step = (double)in->scale * (double)scale_at(f, filter, i),
           number = rint((double)floats[i] / step);
    steps[i] = (int32_t)int_clamped(number, INT32_MIN, INT32_MAX);
  }
  SymInt dims[] = {count};
  return graph_add_constant(g, graph_tensor_type(g, DTYPE_I32, 1, dims, ORDER_CONTIGUOUS),
                            (Constant){.data = (const void *)steps, .size = count * sizeof *steps},
                            0);
}

/* The bias of the node as integers; false when it cannot be. */
static bool bias_of(Fuse *f, XnnId bias, XnnId in, XnnId filter, XnnId *codes) {
  XnnGraph *x = f->x;
  *codes = XNN_NONE;
  if (bias == XNN_NONE)
    return true;
  XnnValue input = x->values[in], weights = x->values[filter], value = x->values[bias];
  if (!value.data || value.rank != 1)
    return false;
  bool channels = weights.datatype == XNN_QCINT8;
  XnnDatatype datatype = channels ? XNN_QCINT32 : XNN_QINT32;
  XnnData data = x->data[value.data - 1];
  if (value.codes) {
    XnnValue own = x->values[value.codes - 1];
    if (own.datatype == (uint8_t)datatype &&
        has_steps(f, &own, &input, &weights, channels ? value.dims[0] : 1)) {
      *codes = value.codes - 1;
      return sums_fit(f, x->data[own.data - 1].v, &weights, value.dims[0]);
    }
  }
  uint32_t count = 0;
  const float *floats = data.order ? NULL : bias_floats(f, &data, &count);
  if (!floats || count != value.dims[0])
    return false;
  ValueId steps = bias_steps(f, floats, count, &input, &weights);
  if (!sums_fit(f, steps, &weights, count))
    return false;
  *codes = xnn_constant(x, datatype, 1, value.dims, (XnnData){.v = steps});
  if (channels)
    xnn_set_channels(x, *codes, 0, x->data[weights.scales - 1], count);
  else
    xnn_set_scale(x, *codes, input.scale * weights.scale, 0);
  return true;
}

/* A filter whose zero point is not 0: XNNPACK has that for unsigned codes only. The codes of the
 * graph as such. */
static XnnId unsigned_filter(Fuse *f, XnnId filter) {
  Graph *g = f->l->g;
  const XnnValue *value = &f->x->values[filter];
  if (!value->data || !value->codes)
    return XNN_NONE;
  XnnValue codes = f->x->values[value->codes - 1];
  if (codes.datatype != XNN_QINT8 || codes.zero_point == 0)
    return XNN_NONE;
  XnnData data = f->x->data[codes.data - 1];
  const Constant *c = value_constant(g, data.v);
  uint8_t *bytes = arena_alloc(&g->arena, c->size + 1);
  for (uint64_t i = 0; i < c->size; i++)
    bytes[i] = c->data[i] ^ XF_UNSIGNED_SHIFT;
  Constant shifted = {.data = bytes, .size = c->size};
  data.v = graph_add_constant(g, value_cget(g, data.v)->type, shifted, 0);
  XnnId made = xnn_constant(f->x, XNN_QUINT8, codes.rank, codes.dims, data);
  xnn_set_scale(f->x, made, codes.scale, codes.zero_point + XF_UNSIGNED_SHIFT);
  return made;
}

/* A value like codes, unsigned. */
static XnnId unsigned_like(Fuse *f, XnnId codes) {
  XnnValue like = f->x->values[codes];
  XnnId made = xnn_value_like(f->x, XNN_QUINT8, codes);
  xnn_set_scale(f->x, made, like.scale, like.zero_point + XF_UNSIGNED_SHIFT);
  return made;
}

/* The codes as unsigned ones, which the product before this one may have made. */
static XnnId unsigned_of(Fuse *f, XnnId codes) {
  if (f->unsigned_codes[codes] == XNN_NONE) {
    f->unsigned_codes[codes] = unsigned_like(f, codes);
    xf_emit(f, &(XnnNode){.kind = XNN_CONVERT, .fields = {codes, f->unsigned_codes[codes], 0}});
  }
  return f->unsigned_codes[codes];
}

/* On unsigned codes, between conversions. */
static bool compute_unsigned(Fuse *f, const XnnNode *n, XnnNode *made, XnnId in, XnnId filter) {
  uint32_t first = (uint32_t)strcspn(xnn_fields(n), "i");
  XnnId out = xnn_result(n), wanted = f->wanted[out], bias;
  if (!scales_fit(f, &f->x->values[in], &f->x->values[filter], &f->x->values[wanted]) ||
      !bias_of(f, n->fields[first + 2], in, filter, &bias))
    return false;
  XnnId codes = xf_codes_like(f, out, wanted), result = unsigned_like(f, codes);
  made->fields[first] = unsigned_of(f, in);
  made->fields[first + 1] = filter;
  made->fields[first + 2] = bias;
  made->fields[strcspn(xnn_fields(n), "o")] = result;
  xf_emit(f, made);
  xf_emit(f, &(XnnNode){.kind = XNN_CONVERT, .fields = {result, codes, 0}});
  f->unsigned_codes[codes] = result;
  f->codes[out] = codes;
  return true;
}

bool xf_compute_product(Fuse *f, const XnnNode *n) {
  uint32_t first = (uint32_t)strcspn(xnn_fields(n), "i");
  XnnId out = xnn_result(n), in = xf_operand(f, n->fields[first]),
        filter = xf_filter_of(f, n, n->fields[first + 1]), bias;
  XnnNode made = *n;
  if (in == XNN_NONE || (n->kind == XNN_FULLY_CONNECTED && n->fields[4] != 0))
    return false;
  if (filter == XNN_NONE && xf_number(f, n->fields[first + 1]) != XNN_NONE)
    filter = xf_filter_of(f, n, n->fields[first + 1]); /* a mean */
  if (filter == XNN_NONE) {
    filter = unsigned_filter(f, n->fields[first + 1]);
    return filter != XNN_NONE && compute_unsigned(f, n, &made, in, filter);
  }
  if (!scales_fit(f, &f->x->values[in], &f->x->values[filter], &f->x->values[f->wanted[out]]))
    return false;
  filter = xf_by_channels(f, n, filter);
  if (!bias_of(f, n->fields[first + 2], in, filter, &bias))
    return false;
  made.fields[first] = in;
  made.fields[first + 1] = filter;
  made.fields[first + 2] = bias;
  return xf_give(f, &made, xf_codes_like(f, out, f->wanted[out]));
}

/* --- weights only --- */

/* The kernel of floats and weights of 8 bits multiplies the bias by the scales, too. */
static bool scaled_bias(Fuse *f, XnnId bias, const float *scales, uint32_t count, XnnId *out) {
  XnnValue *value = bias == XNN_NONE ? NULL : &f->x->values[bias];
  uint32_t own = 0;
  *out = XNN_NONE;
  if (!value)
    return true;
  if (!value->data || value->rank != 1 || f->x->data[value->data - 1].order)
    return false;
  const float *floats = bias_floats(f, &f->x->data[value->data - 1], &own);
  float *divided = ARENA_ARRAY(&f->l->g->arena, float, (size_t)count + 1);
  if (!floats || own != count)
    return false;
  for (uint32_t i = 0; i < count; i++) {
    divided[i] = floats[i] / scales[i];
    if (!isfinite(divided[i]))
      return false;
  }
  *out = xnn_constant(f->x, XNN_FP32, 1, &count, xf_floats_constant(f, divided, count));
  return true;
}

enum { NIBBLE_ZERO = 8 };

/* Whether all codes have 4 bits, as far as that is known without making them. */
static bool are_nibbles(const Constant *c) {
  if (c->transform)
    return c->transform->code == TRANSFORM_UNPACK && c->transform->low == -NIBBLE_ZERO;
  for (uint64_t i = 0; i < c->size; i++)
    if ((uint8_t)(c->data[i] + NIBBLE_ZERO) >= 2 * NIBBLE_ZERO)
      return false;
  return true;
}

/* A filter of 8 bits whose codes have 4, two in a byte: XNNPACK multiplies floats by these, too. */
static XnnId in_nibbles(Fuse *f, XnnId filter) {
  Graph *g = f->l->g;
  XnnValue codes = f->x->values[filter];
  XnnData data = f->x->data[codes.data - 1];
  Constant from = *value_lazy_constant(g, data.v);
  if (codes.rank != 2 || codes.dims[1] % 2 || !are_nibbles(&from))
    return filter;
  SymInt dims[] = {codes.dims[0], codes.dims[1] / 2};
  TypeId type = graph_tensor_type(g, DTYPE_U8, 2, dims, ORDER_CONTIGUOUS);
  Constant packed =
      constant_nibbles(g, from, codes.dims[0], codes.dims[1], data.order != NULL, true);
  data = (XnnData){.v = graph_add_constant(g, type, packed, 0)};
  XnnId made = xnn_constant(f->x, XNN_QCINT4, 2, codes.dims, data);
  xnn_set_channels(f->x, made, 0, f->x->data[codes.scales - 1], codes.scale_count);
  return made;
}

XnnNode xf_weight_only(Fuse *f, const XnnNode *n) {
  XnnNode made = *n;
  XnnId filter = n->kind == XNN_FULLY_CONNECTED && n->fields[4] == 0
                     ? xf_filter_of(f, n, n->fields[1])
                     : XNN_NONE;
  if (filter == XNN_NONE)
    return made;
  XnnValue codes = f->x->values[filter];
  uint32_t count = codes.dims[0];
  float *scales = xf_channel_scales(f, &codes, count);
  XnnId bias;
  if (!scaled_bias(f, n->fields[2], scales, count, &bias))
    return made;
  made.fields[1] = in_nibbles(f, xf_by_channels(f, n, filter));
  made.fields[2] = bias;
  return made;
}
