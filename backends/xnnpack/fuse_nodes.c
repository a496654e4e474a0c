/* Which nodes XNNPACK computes on integers, and what they want. Limits: measured on the XNNPACK of
 * ExecuTorch 1.4.1. */
#include <math.h>

#include "backends/xnnpack/fuse.h"
#include "support/number.h"

static const char *fields_of(const XnnNode *n) { return xnn_node_rows[n->kind].fields; }
static XnnId result_of(const XnnNode *n) { return n->fields[strcspn(fields_of(n), "o")]; }

static bool is_operand(const XnnNode *n, uint32_t i) {
  char field = fields_of(n)[i];
  return (field == 'i' || field == 'b') && n->fields[i] != XNN_NONE;
}

static bool is_join(const XnnNode *n) {
  return n->kind == XNN_CONCATENATE2 || n->kind == XNN_CONCATENATE3 ||
         n->kind == XNN_CONCATENATE4 || n->kind == XNN_CONCATENATE5;
}

/* The node that takes codes, and gives out as codes for the floats that it gave. */
static bool give(Fuse *f, const XnnNode *n, XnnId out) {
  XnnNode copy = *n;
  copy.fields[strcspn(fields_of(n), "o")] = out;
  f->codes[result_of(n)] = out;
  xf_emit(f, &copy);
  if (n->kind == XNN_STATIC_TRANSPOSE)
    f->l->turns[f->turn[result_of(n)] - 1].out = out;
  return true;
}

/* --- moves --- */

bool xf_moves(const XnnNode *n) {
  switch (n->kind) {
  case XNN_CLAMP:
  case XNN_COPY:
  case XNN_MAX_POOLING2D:
  case XNN_STATIC_CONSTANT_PAD:
  case XNN_STATIC_RESHAPE:
  case XNN_STATIC_SLICE:
  case XNN_STATIC_TRANSPOSE:
    return true;
  default:
    return is_join(n);
  }
}

/* The limits hold for every code anyway. */
static bool limits_nothing(const Fuse *f, const XnnNode *n, XnnId codes) {
  const XnnValue *value = &f->x->values[codes];
  float least = (float)(INT8_MIN - value->zero_point) * value->scale,
        most = (float)(INT8_MAX - value->zero_point) * value->scale;
  return n->limit_low <= least && n->limit_high >= most;
}

static bool may_limit(const XnnNode *n) {
  return n->kind == XNN_CONV2D || n->kind == XNN_DEPTHWISE_CONV2D ||
         n->kind == XNN_CONV_TRANSPOSE2D || n->kind == XNN_FULLY_CONNECTED || n->kind == XNN_ADD ||
         n->kind == XNN_SUBTRACT || n->kind == XNN_MULTIPLY;
}

/* Limits become a part of the node before them, if nothing else uses its result. */
static bool limit(Fuse *f, const XnnNode *n, XnnId codes) {
  XnnNode *last = f->x->node_count ? &f->x->nodes[f->x->node_count - 1] : NULL;
  XnnId in = n->fields[0], out = result_of(n);
  if (limits_nothing(f, n, codes)) {
    f->codes[out] = codes;
    return true;
  }
  bool alone = last && may_limit(last) && !last->limited && result_of(last) == codes &&
               f->uses[in] == 1 && !f->made[in];
  if (!alone)
    return false;
  last->limited = true;
  last->limit_low = n->limit_low;
  last->limit_high = n->limit_high;
  f->codes[out] = codes;
  return true;
}

/* All operands of a join as codes of one kind: their own, or the one that is wanted. */
static bool join(Fuse *f, const XnnNode *n, XnnNode *made) {
  XnnId as = XNN_NONE, wanted = f->wanted[result_of(n)];
  bool same = true;
  for (uint32_t i = 0; fields_of(n)[i]; i++) {
    if (!is_operand(n, i))
      continue;
    XnnId codes = xf_operand(f, n->fields[i]);
    if (codes == XNN_NONE)
      return false;
    as = as == XNN_NONE ? codes : as;
    same = same && xf_same_codes(f, as, codes);
    made->fields[i] = codes;
  }
  if (same)
    return true;
  if (wanted >= WANT_FLOATS)
    return false;
  for (uint32_t i = 0; fields_of(n)[i]; i++) {
    if (!is_operand(n, i) || xf_same_codes(f, made->fields[i], wanted))
      continue;
    XnnId moved = xf_codes_like(f, made->fields[i], wanted);
    xf_requantize(f, made->fields[i], moved);
    made->fields[i] = moved;
  }
  return true;
}

bool xf_move(Fuse *f, const XnnNode *n) {
  if (!xf_moves(n))
    return false;
  XnnNode made = *n;
  if (!join(f, n, &made))
    return false;
  XnnId first = made.fields[strcspn(fields_of(n), "i")];
  if (n->kind == XNN_CLAMP && limit(f, n, first))
    return true;
  return give(f, &made, xf_codes_like(f, result_of(n), first));
}

/* --- products --- */

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
static XnnId filter_of(const Fuse *f, const XnnNode *n, XnnId filter) {
  const XnnValue *value = &f->x->values[filter];
  if (!value->data || !value->codes)
    return XNN_NONE;
  const XnnValue *codes = &f->x->values[value->codes - 1];
  bool channels = codes->datatype == XNN_QCINT8 && codes->channel_dim == channel_dim(n) &&
                  codes->scale_count == codes->dims[codes->channel_dim],
       whole = codes->datatype == XNN_QINT8 && codes->zero_point == 0;
  return channels || whole ? value->codes - 1 : XNN_NONE;
}

/* Results that are this many times larger than a step of the product cannot be scaled. */
#define MAX_FACTOR 256.0

static bool scales_fit(const Fuse *f, const XnnValue *in, const XnnValue *filter,
                       const XnnValue *out) {
  uint32_t count = filter->scales ? filter->scale_count : 1;
  for (uint32_t i = 0; i < count; i++) {
    double factor = (double)in->scale * (double)scale_at(f, filter, i) / (double)out->scale;
    if (!(factor < MAX_FACTOR && factor >= 0x1p-32))
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

/* The floats of a bias; NULL when they are none. */
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
      return true;
    }
  }
  uint32_t count = 0;
  const float *floats = data.order ? NULL : bias_floats(f, &data, &count);
  if (!floats || count != value.dims[0])
    return false;
  ValueId steps = bias_steps(f, floats, count, &input, &weights);
  *codes = xnn_constant(x, datatype, 1, value.dims, (XnnData){.v = steps});
  if (channels)
    xnn_set_channels(x, *codes, 0, x->data[weights.scales - 1], count);
  else
    xnn_set_scale(x, *codes, input.scale * weights.scale, 0);
  return true;
}

static bool compute_product(Fuse *f, const XnnNode *n) {
  uint32_t first = (uint32_t)strcspn(fields_of(n), "i");
  XnnId out = result_of(n), in = xf_operand(f, n->fields[first]),
        filter = filter_of(f, n, n->fields[first + 1]), bias;
  bool plain = n->kind != XNN_FULLY_CONNECTED || n->fields[4] == 0;
  if (in == XNN_NONE || filter == XNN_NONE || !plain ||
      !scales_fit(f, &f->x->values[in], &f->x->values[filter], &f->x->values[f->wanted[out]]) ||
      !bias_of(f, n->fields[first + 2], in, filter, &bias))
    return false;
  XnnNode made = *n;
  made.fields[first] = in;
  made.fields[first + 1] = filter;
  made.fields[first + 2] = bias;
  return give(f, &made, xf_codes_like(f, out, f->wanted[out]));
}

/* --- weights only --- */

/* A scale for each of count channels, times one over it or not, as a constant. */
static float *channel_scales(const Fuse *f, const XnnValue *filter, uint32_t count) {
  float *scales = ARENA_ARRAY(&f->l->g->arena, float, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++)
    scales[i] = scale_at(f, filter, filter->scales ? i : 0);
  return scales;
}

static XnnData floats_constant(Fuse *f, const float *values, uint32_t count) {
  Graph *g = f->l->g;
  SymInt dims[] = {count};
  TypeId type = graph_tensor_type(g, DTYPE_F32, 1, dims, ORDER_CONTIGUOUS);
  Constant c = {.data = (const void *)values, .size = count * sizeof *values};
  return (XnnData){.v = graph_add_constant(g, type, c, 0)};
}

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
  *out = xnn_constant(f->x, XNN_FP32, 1, &count, floats_constant(f, divided, count));
  return true;
}

/* The filter with a scale for each channel. */
static XnnId by_channels(Fuse *f, XnnId filter, const float *scales) {
  XnnValue codes = f->x->values[filter];
  if (codes.scales)
    return filter;
  XnnId made = xnn_constant(f->x, XNN_QCINT8, codes.rank, codes.dims, f->x->data[codes.data - 1]);
  xnn_set_channels(f->x, made, 0, floats_constant(f, scales, codes.dims[0]), codes.dims[0]);
  return made;
}

XnnNode xf_weight_only(Fuse *f, const XnnNode *n) {
  XnnNode made = *n;
  XnnId filter = n->kind == XNN_FULLY_CONNECTED && n->fields[4] == 0 ? filter_of(f, n, n->fields[1])
                                                                     : XNN_NONE;
  if (filter == XNN_NONE)
    return made;
  XnnValue codes = f->x->values[filter];
  uint32_t count = codes.dims[0];
  float *scales = channel_scales(f, &codes, count);
  XnnId bias;
  if (!scaled_bias(f, n->fields[2], scales, count, &bias))
    return made;
  made.fields[1] = by_channels(f, filter, scales);
  made.fields[2] = bias;
  return made;
}

/* --- operands that are quantized at run time --- */

/* XNNPACK quantizes each image by its range, and each row of a product: where the model has one
 * range for all rows, they are made the pixels of one image. A convolution of 1 x 1 would become a
 * product of rows again; with a row of padding, which is cut off behind it, it stays one. */
enum {
  CONV_PAD_BOTTOM = 2,
  CONV_KERNEL = 4,
  CONV_STRIDE = 6,
  CONV_DILATION = 8,
  CONV_GROUP_IN = 10
};
enum { CONV_GROUP_OUT = 11, CONV_GROUPS = 12, CONV_IN = 15, CONV_OUT = 18 };

static XnnId quantized_at_run(Fuse *f, XnnId in, uint32_t nonbatch, XnnId *kept) {
  if (*kept != XNN_NONE)
    return *kept;
  XnnValue like = f->x->values[in];
  *kept = xnn_dynamic(f->x, like.rank, like.dims, nonbatch);
  xf_emit(f, &(XnnNode){.kind = XNN_CONVERT, .fields = {in, *kept, 0}});
  return *kept;
}

static uint32_t rows_of(const XnnValue *value) {
  uint32_t rows = 1;
  for (uint32_t i = 0; i + 1 < value->rank; i++)
    rows *= value->dims[i];
  return rows;
}

static void emit_reshape(Fuse *f, XnnId in, XnnId out) {
  XnnValue to = f->x->values[out];
  uint32_t dims = xnn_vector(f->x, to.dims, to.rank);
  xf_emit(f, &(XnnNode){.kind = XNN_STATIC_RESHAPE,
                        .vector_count = to.rank,
                        .fields = {to.rank, dims, in, out, 0}});
}

/* wide, a result with one more row of pixels than out has. */
static void emit_cut(Fuse *f, XnnId wide, XnnId out) {
  static const uint32_t begin[4] = {0};
  uint32_t from = xnn_vector(f->x, begin, 4), size = xnn_vector(f->x, f->x->values[out].dims, 4);
  xf_emit(f, &(XnnNode){.kind = XNN_STATIC_SLICE,
                        .vector_count = 4,
                        .fields = {4, from, size, wide, out, 0}});
}

/* The node n, a convolution of 1 x 1, with a row of padding. */
static void emit_padded(Fuse *f, const XnnNode *n) {
  XnnNode padded = *n;
  XnnValue to = f->x->values[n->fields[CONV_OUT]];
  to.dims[1]++;
  padded.fields[CONV_PAD_BOTTOM] = 1;
  padded.fields[CONV_OUT] = xnn_value(f->x, XNN_FP32, 4, to.dims);
  xf_emit(f, &padded);
  emit_cut(f, padded.fields[CONV_OUT], n->fields[CONV_OUT]);
}

/* The filter of a product as one of a convolution. */
static XnnId filter_of_pixels(Fuse *f, XnnId filter) {
  XnnValue from = f->x->values[filter];
  uint32_t dims[] = {from.dims[0], 1, 1, from.dims[1]};
  XnnId made = xnn_constant(f->x, XNN_QCINT8, 4, dims, f->x->data[from.data - 1]);
  xnn_set_channels(f->x, made, 0, f->x->data[from.scales - 1], from.scale_count);
  return made;
}

static void emit_rows_as_image(Fuse *f, const XnnNode *n, XnnId in, XnnId filter, XnnId bias) {
  XnnGraph *x = f->x;
  XnnValue from = x->values[in];
  XnnId out = result_of(n);
  uint32_t rows = rows_of(&from), columns = from.dims[from.rank - 1],
           count = x->values[filter].dims[0];
  if (f->rows[in] == XNN_NONE) {
    XnnId image = xnn_value(x, XNN_FP32, 4, (uint32_t[]){1, rows, 1, columns});
    emit_reshape(f, in, image);
    quantized_at_run(f, image, 3, &f->rows[in]);
  }
  XnnId pixels = xnn_value(x, XNN_FP32, 4, (uint32_t[]){1, rows, 1, count});
  XnnNode conv = {.kind = XNN_CONV2D,
                  .limited = n->limited,
                  .limit_low = n->limit_low,
                  .limit_high = n->limit_high,
                  .fields = {[CONV_KERNEL] = 1,
                             1,
                             [CONV_STRIDE] = 1,
                             1,
                             [CONV_DILATION] = 1,
                             1,
                             [CONV_GROUP_IN] = columns,
                             [CONV_GROUP_OUT] = count,
                             [CONV_GROUPS] = 1,
                             [CONV_IN] = f->rows[in],
                             filter_of_pixels(f, filter),
                             bias,
                             pixels,
                             0}};
  emit_padded(f, &conv);
  emit_reshape(f, pixels, out);
}

/* A convolution that XNNPACK makes a product of rows. */
static bool takes_pixels(const XnnNode *n) {
  const uint32_t *v = n->fields;
  return n->kind == XNN_CONV2D && v[CONV_KERNEL] == 1 && v[CONV_KERNEL + 1] == 1 &&
         v[CONV_STRIDE] == 1 && v[CONV_STRIDE + 1] == 1 && v[CONV_GROUPS] == 1 && !v[0] && !v[1] &&
         !v[2] && !v[3];
}

/* All sizes are known when the program is made. */
static bool is_fixed(const XnnLowering *l) {
  for (uint32_t i = 0; i < l->input_count; i++)
    if (xl_open_dims(l->g, l->inputs[i]))
      return false;
  return true;
}

/* A depthwise convolution, which XNNPACK does not have for such operands, as one in groups: its
 * filter [channels, rows, columns, 1] lies as the model has it. */
static bool in_groups(Fuse *f, XnnNode *n, XnnId filter, XnnId *grouped) {
  XnnValue from = f->x->values[filter];
  if (n->fields[CONV_GROUP_IN] != 1)
    return false;
  uint32_t dims[] = {from.dims[3], from.dims[1], from.dims[2], 1};
  XnnData codes = f->x->data[from.data - 1];
  *grouped = xnn_constant(f->x, XNN_QCINT8, 4, dims, (XnnData){.v = codes.v});
  float *scales = channel_scales(f, &from, dims[0]);
  XnnData kept = from.scales ? f->x->data[from.scales - 1] : floats_constant(f, scales, dims[0]);
  xnn_set_channels(f->x, *grouped, 0, kept, dims[0]);
  n->kind = XNN_CONV2D;
  return true;
}

bool xf_compute_dynamic(Fuse *f, const XnnNode *n) {
  bool rows = n->kind == XNN_FULLY_CONNECTED && n->fields[4] == 0,
       images = n->kind == XNN_CONV2D || n->kind == XNN_CONV_TRANSPOSE2D ||
                n->kind == XNN_DEPTHWISE_CONV2D;
  uint32_t first = (uint32_t)strcspn(fields_of(n), "i");
  if ((!rows && !images) || !f->dynamic[n->fields[first]])
    return false;
  XnnId in = f->alias[n->fields[first]], filter = filter_of(f, n, n->fields[first + 1]);
  if (filter == XNN_NONE)
    return false;
  XnnNode copy = *n;
  XnnValue codes = f->x->values[filter];
  XnnId bias = n->fields[first + 2];
  bool whole = is_fixed(f->l);
  if (n->kind == XNN_DEPTHWISE_CONV2D && !in_groups(f, &copy, filter, &filter))
    return false;
  codes = f->x->values[filter];
  filter = by_channels(f, filter, channel_scales(f, &codes, codes.dims[0]));
  xf_make_floats(f, in);
  if (rows && whole && rows_of(&f->x->values[in]) > 1) {
    emit_rows_as_image(f, n, in, filter, bias);
    return true;
  }
  copy.fields[first] = quantized_at_run(f, in, rows ? 1 : 3, rows ? &f->rows[in] : &f->images[in]);
  copy.fields[first + 1] = filter;
  if (whole && takes_pixels(n) && rows_of(&f->x->values[in]) > 1)
    emit_padded(f, &copy);
  else
    xf_emit(f, &copy);
  return true;
}

/* --- others --- */

/* Largest slope times the ratio of the scales. */
enum { MAX_SLOPE = 128 };

static bool slope_fits(const Fuse *f, const XnnNode *n, XnnId in, XnnId out) {
  const XnnValue *from = &f->x->values[in], *to = &f->x->values[out];
  float slope;
  memcpy(&slope, &n->fields[0], sizeof slope);
  double ratio = (double)from->scale / (double)to->scale;
  return fabs((double)slope) * ratio < MAX_SLOPE && ratio < MAX_SLOPE && ratio > 1.0 / MAX_SLOPE;
}

/* Operands and result each with a quantization of their own. */
static bool compute_each(Fuse *f, const XnnNode *n) {
  XnnNode made = *n;
  XnnId out = result_of(n), wanted = f->wanted[out];
  for (uint32_t i = 0; fields_of(n)[i]; i++)
    if (is_operand(n, i) && (made.fields[i] = xf_operand(f, n->fields[i])) == XNN_NONE)
      return false;
  if (n->kind == XNN_BATCH_MATRIX_MULTIPLY && f->x->values[made.fields[1]].zero_point != 0)
    return false;
  if (n->kind == XNN_LEAKY_RELU && !slope_fits(f, n, made.fields[1], wanted))
    return false;
  return give(f, &made, xf_codes_like(f, out, wanted));
}

/* The result has the quantization of the operand, and is brought to the wanted one. */
static bool compute_alike(Fuse *f, const XnnNode *n) {
  uint32_t at = (uint32_t)strcspn(fields_of(n), "i");
  XnnNode made = *n;
  made.fields[at] = xf_operand(f, n->fields[at]);
  return made.fields[at] != XNN_NONE &&
         give(f, &made, xf_codes_like(f, result_of(n), made.fields[at]));
}

bool xf_compute(Fuse *f, const XnnNode *n) {
  if (f->wanted[result_of(n)] >= WANT_FLOATS)
    return false;
  switch (n->kind) {
  case XNN_CONV2D:
  case XNN_CONV_TRANSPOSE2D:
  case XNN_DEPTHWISE_CONV2D:
  case XNN_FULLY_CONNECTED:
    return compute_product(f, n);
  case XNN_ABS:
  case XNN_ADD:
  case XNN_BATCH_MATRIX_MULTIPLY:
  case XNN_CEILING:
  case XNN_COS:
  case XNN_DIV:
  case XNN_ELU:
  case XNN_EXP:
  case XNN_FLOOR:
  case XNN_GELU:
  case XNN_GLOBAL_AVG_POOLING2D:
  case XNN_HARDSWISH:
  case XNN_LEAKY_RELU:
  case XNN_LOG:
  case XNN_MULTIPLY:
  case XNN_NEGATE:
  case XNN_RECIPROCAL_SQUARE_ROOT:
  case XNN_SIGMOID:
  case XNN_SIN:
  case XNN_SQUARE:
  case XNN_SQUARE_ROOT:
  case XNN_SUBTRACT:
  case XNN_TANH:
    return compute_each(f, n);
  case XNN_STATIC_RESIZE_BILINEAR2D:
    return compute_alike(f, n);
  default:
    return false;
  }
}
