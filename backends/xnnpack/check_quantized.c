/* See check.h. Which datatypes nodes have, and the limits of their quantization parameters: what
 * XNNPACK refuses, and what it takes and then computes wrongly. Sources: XNNPACK at the commit of
 * ExecuTorch 1.4.1, src/subgraph, src/operators, src/microparams-init.c. */
#include <math.h>

#include "backends/xnnpack/check.h"

enum { FLAG_TRANSPOSED_FILTER = 1 };

#define PRODUCT_SCALE_END 256.0F /* of input times filter by output */
#define MULTIPLIER_MOST 128.0F   /* of kernels that multiply by 16 bits with 8 fractional ones */
#define SUM_RATIO_LEAST 0x1p-10F /* of the larger operand's scale by the result's */
#define SUM_RATIO_END 256.0F
#define PRODUCT_RATIO_LEAST 0x1p-16F

static const XrValue *value_of(const XrCheck *c, uint32_t id) { return &c->x->values[id]; }

void xr_check_value(XrCheck *c, uint32_t id) {
  const XrValue *v = value_of(c, id);
  if (xr_scheme(v->datatype) == XR_PLAIN || xr_is_byte(v->datatype))
    return;
  if (v->datatype == XR_QDINT8 ? v->constant || v->external != XR_NONE : !v->constant)
    xr_fail(c, "value %u has the datatype %u, and is %s", id, v->datatype,
            v->external != XR_NONE ? "an argument"
            : v->constant          ? "a constant"
                                   : "not a constant");
}

/* --- products and convolutions --- */

enum { PRODUCT = 1, CONV = 2, DEPTHWISE = 4, DECONV = 8, WINDOWS = CONV | DEPTHWISE | DECONV };
enum { EVERY = PRODUCT | WINDOWS };

/* Input, filter, bias (0: none), result; the kinds that take them. */
typedef struct Mix {
  uint8_t input, filter, bias, result, kinds;
} Mix;

static const Mix mixes[] = {
    {XR_FP32, XR_FP32, XR_FP32, XR_FP32, EVERY},
    {XR_FP32, XR_FP16, XR_FP16, XR_FP32, PRODUCT | CONV | DECONV},
    {XR_FP32, XR_FP16, XR_FP32, XR_FP32, PRODUCT}, /* a convolution computes nonsense */
    {XR_FP16, XR_FP16, XR_FP16, XR_FP16, EVERY},
    {XR_FP16, XR_FP32, XR_FP32, XR_FP16, EVERY},
    {XR_FP32, XR_QCINT8, XR_FP32, XR_FP32, PRODUCT},
    {XR_FP32, XR_QCINT4, XR_FP32, XR_FP32, PRODUCT},
    {XR_QDINT8, XR_QCINT8, XR_FP32, XR_FP32, PRODUCT | CONV | DECONV},
    {XR_QDINT8, XR_QCINT4, XR_FP32, XR_FP32, PRODUCT},
    {XR_QDINT8, XR_QBINT4, XR_FP32, XR_FP32, PRODUCT},
    {XR_QINT8, XR_QCINT8, XR_QCINT32, XR_QINT8, EVERY},
    {XR_QINT8, XR_QCINT4, XR_QCINT32, XR_QINT8, PRODUCT},
    {XR_QINT8, XR_QINT8, XR_QINT32, XR_QINT8, EVERY},
    {XR_QUINT8, XR_QUINT8, XR_QINT32, XR_QUINT8, EVERY},
};

static uint8_t kind_of(const XrNode *n) {
  return n->kind == XR_FullyConnected    ? PRODUCT
         : n->kind == XR_Conv2d          ? CONV
         : n->kind == XR_DepthwiseConv2d ? DEPTHWISE
                                         : DECONV;
}

bool xr_is_pointwise(const XrNode *n) {
  const XrWindow *w = &n->window;
  bool plain = n->kind == XR_Conv2d && w->groups == 1;
  for (uint32_t i = 0; i < 2; i++)
    plain = plain && w->kernel[i] == 1 && w->stride[i] == 1 && !w->before[i] && !w->after[i];
  return plain;
}

static void check_filter_scales(XrCheck *c, const XrNode *n) {
  const XrValue *filter = value_of(c, n->inputs[1]);
  uint32_t transposed = kind_of(n) == PRODUCT && n->flags & FLAG_TRANSPOSED_FILTER,
           dim = kind_of(n) == DEPTHWISE ? 3 : transposed;
  bool nibbles = filter->datatype == XR_QCINT4 || filter->datatype == XR_QBINT4;
  if (xr_scheme(filter->datatype) == XR_PER_CHANNEL && filter->channel_dim != dim)
    xr_fail(c, "the filter has its scales for dim %u instead of %u", filter->channel_dim, dim);
  if (nibbles && transposed)
    xr_fail(c, "a transposed filter of nibbles");
  if (nibbles && xr_type_of(c->x, n->inputs[0]) != XR_FP32 && filter->dims[filter->rank - 1] % 2)
    xr_fail(c, "an odd number of inputs, %u, for a filter of nibbles",
            filter->dims[filter->rank - 1]);
  if (filter->datatype == XR_QINT8 && filter->zero_point != 0)
    xr_fail(c, "the filter has the zero point %d", filter->zero_point);
}

/* Scales of channels are looked at when there are data (run_weighted.c). */
static void check_product_scale(XrCheck *c, const XrNode *n) {
  const XrValue *in = value_of(c, n->inputs[0]), *filter = value_of(c, n->inputs[1]),
                *out = value_of(c, n->output);
  if (!xr_is_byte(out->datatype) || xr_scheme(filter->datatype) != XR_PER_TENSOR)
    return;
  float scale = in->scale * filter->scale / out->scale;
  if (!(scale < PRODUCT_SCALE_END))
    xr_fail(c, "the scale of the sums is %g times that of the result", (double)scale);
}

void xr_check_weighted(XrCheck *c, const XrNode *n) {
  const XrValue *in = value_of(c, n->inputs[0]);
  uint32_t filter = xr_type_of(c->x, n->inputs[1]), bias = xr_type_of(c->x, n->inputs[2]),
           result = xr_type_of(c->x, n->output);
  bool known = false;
  for (size_t i = 0; i < COUNT_OF(mixes); i++)
    known = known || (mixes[i].input == in->datatype && mixes[i].filter == filter &&
                      (!bias || mixes[i].bias == bias) && mixes[i].result == result &&
                      mixes[i].kinds & kind_of(n));
  if (!known) {
    xr_fail(c, "datatypes %u, %u, %u -> %u", in->datatype, filter, bias, result);
    return;
  }
  if (xr_scheme(filter) == XR_PLAIN)
    return;
  if (!value_of(c, n->inputs[1])->constant)
    xr_fail(c, "a quantized filter that is not constant");
  uint32_t nonbatch = kind_of(n) == PRODUCT ? 1 : 3;
  if (in->datatype == XR_QDINT8 && in->nonbatch_dims != nonbatch)
    xr_fail(c, "the input has a scale for its last %u dims instead of %u", in->nonbatch_dims,
            nonbatch);
  check_filter_scales(c, n);
  check_product_scale(c, n);
}

/* --- other nodes --- */

static bool is_convertible(uint32_t type) {
  return xr_scheme(type) == XR_PLAIN || xr_is_byte(type);
}

void xr_check_convert(XrCheck *c, const XrNode *n) {
  const XrValue *in = value_of(c, n->inputs[0]), *out = value_of(c, n->output);
  bool dynamic = in->datatype == XR_FP32 && out->datatype == XR_QDINT8;
  if (!dynamic && !(is_convertible(in->datatype) && is_convertible(out->datatype)))
    xr_fail(c, "datatype %u is not converted to %u", in->datatype, out->datatype);
  if (xr_is_byte(in->datatype) && in->datatype == out->datatype &&
      !(in->scale / out->scale <= MULTIPLIER_MOST))
    xr_fail(c, "the scale of the operand is %g times that of the result",
            (double)(in->scale / out->scale));
}

static void check_slope(XrCheck *c, const XrNode *n) {
  float above = value_of(c, n->inputs[0])->scale / value_of(c, n->output)->scale,
        below = fabsf(above * n->number);
  if (!(above <= MULTIPLIER_MOST) || !(below < MULTIPLIER_MOST))
    xr_fail(c, "the scale of the operand is %g times that of the result, %g below zero",
            (double)above, (double)below);
}

/* Beyond these limits XNNPACK shifts by more bits than there are, and debug builds stop. */
static void check_ratio(XrCheck *c, const XrNode *n) {
  float a = value_of(c, n->inputs[0])->scale, b = value_of(c, n->inputs[1])->scale,
        y = value_of(c, n->output)->scale;
  bool sum = n->kind == XR_Add || n->kind == XR_Subtract;
  float ratio = sum ? fmaxf(a / y, b / y) : a * b / y, least = sum ? SUM_RATIO_LEAST
                                                               : n->kind == XR_BatchMatrixMultiply
                                                                   ? 0
                                                                   : PRODUCT_RATIO_LEAST;
  if (!(ratio >= least && ratio < SUM_RATIO_END))
    xr_fail(c, "the scale of the %s is %g times that of the result",
            sum ? "larger operand" : "products", (double)ratio);
}

void xr_check_bytes(XrCheck *c, const XrNode *n) {
  const XrValue *out = value_of(c, n->output);
  if (!xr_is_byte(out->datatype) || xr_has(n->kind, XR_FLOATS)) {
    xr_fail(c, "the datatype %u", out->datatype);
    return;
  }
  for (uint32_t i = 0; i < n->input_count && xr_has(n->kind, XR_KEEPS); i++) {
    const XrValue *in = value_of(c, n->inputs[i]);
    if (in->scale != out->scale || in->zero_point != out->zero_point)
      xr_fail(c, "operand %u has the scale %g and zero point %d, and the result %g and %d", i,
              (double)in->scale, in->zero_point, (double)out->scale, out->zero_point);
  }
  if (n->kind == XR_BatchMatrixMultiply &&
      (out->datatype != XR_QINT8 || value_of(c, n->inputs[1])->zero_point != 0))
    xr_fail(c, "datatype %u, and the zero point %d of the second operand", out->datatype,
            value_of(c, n->inputs[1])->zero_point);
  if (n->kind == XR_BatchMatrixMultiply || n->kind == XR_Add || n->kind == XR_Subtract ||
      n->kind == XR_Multiply)
    check_ratio(c, n);
  if (n->kind == XR_LeakyReLU)
    check_slope(c, n);
}
