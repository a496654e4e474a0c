/* Nodes on quantized bytes, as XNNPACK computes them: products of whole steps are exact, in f64,
 * and scaled in f32; kernels of 16 bits multiply by 8 fractional bits; sums by 20. What has no
 * kernel of its own goes through f32. Formulas: XNNPACK at the commit of ExecuTorch 1.4.1,
 * src/microparams-init.c and src/reference. */
#include <math.h>

#include "backends/xnnpack/run_internal.h"
#include "support/number.h"

enum { SUM_BITS = 20, SHORT_ONE = 256, RESIZE_ONE = 2048 };

static const XrValue *value_of(const Runner *r, uint32_t id) { return &r->x->values[id]; }

/* --- rounding --- */

static XrRange full_range(const XrValue *v) {
  bool is_signed = v->datatype == XR_QINT8;
  return (XrRange){(float)v->zero_point, is_signed ? INT8_MIN : 0,
                   is_signed ? INT8_MAX : UINT8_MAX};
}

/* A real number as a bound or filler. */
static float quantized_number(const XrValue *v, float number) {
  XrRange range = full_range(v);
  return nearbyintf(fminf(fmaxf(number / v->scale + range.zero_point, range.least), range.most));
}

XrRange xr_range(const Runner *r, const XrNode *n) {
  const XrValue *v = value_of(r, n->output);
  XrRange range = full_range(v);
  if (!n->limited)
    return range;
  range.least = quantized_number(v, n->low);
  range.most = quantized_number(v, n->high);
  return range;
}

/* q within the range. */
static void store(Tensor *out, int64_t i, double q, XrRange range) {
  q = fmin(fmax(q, (double)range.least), (double)range.most);
  tensor_store_int(out, i, int_clamped(q, INT8_MIN, UINT8_MAX));
}

void xr_store_steps(Tensor *out, int64_t i, float steps, XrRange range) {
  store(out, i, (double)nearbyintf(steps) + (double)range.zero_point, range);
}

Tensor xr_steps(Runner *r, const XrValue *v, const Tensor *t) {
  Tensor out = xr_temp(r, DTYPE_F64, t->rank, t->dims);
  if (r->fault)
    return out;
  double *to = out.data;
  for (int64_t i = 0; i < tensor_numel(t); i++)
    to[i] = (double)(tensor_load_int(t, i) - v->zero_point);
  return out;
}

/* --- through f32 --- */

static Tensor real(Runner *r, const XrValue *v, const Tensor *t) {
  Tensor out = xr_temp(r, DTYPE_F32, t->rank, t->dims);
  if (r->fault)
    return out;
  float *to = out.data, zero = xr_is_byte(v->datatype) ? (float)v->zero_point : 0,
        scale = xr_is_byte(v->datatype) ? v->scale : 1;
  for (int64_t i = 0; i < tensor_numel(t); i++)
    to[i] = ((float)tensor_load(t, i) - zero) * scale;
  return out;
}

/* Halves go to the even one of the numbers with the zero point added. */
static void quantize(const XrValue *v, const Tensor *y, Tensor *out, XrRange range) {
  const float *from = y->data, steps = 1 / v->scale;
  for (int64_t i = 0; i < tensor_numel(out); i++) {
    float q = from[i] * steps + range.zero_point;
    store(out, i, (double)(isnan(q) ? 0.0F : nearbyintf(q)), range);
  }
}

static void run_reals(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  const XrValue *v = value_of(r, n->output);
  Tensor reals[XR_MAX_INPUTS], y = *out;
  for (uint32_t i = 0; i < n->input_count; i++)
    reals[i] = real(r, value_of(r, n->inputs[i]), &in[i]);
  if (xr_is_byte(v->datatype))
    y = xr_temp(r, DTYPE_F32, out->rank, out->dims);
  if (!r->fault)
    xr_compute(r, n, reals, &y);
  if (n->kind == XR_Clamp && !r->fault)
    xr_limit(r, n, &y);
  if (!r->fault && xr_is_byte(v->datatype))
    quantize(v, &y, out, xr_range(r, n));
}

/* --- by element --- */

static bool same_parameters(const XrValue *a, const XrValue *b) {
  return a->datatype == b->datatype && a->scale == b->scale && a->zero_point == b->zero_point;
}

/* Bytes to those of another scale, with a slope below zero of its own: multiplied by numbers with 8
 * fractional bits, halves go up. */
static void run_slopes(const XrNode *n, const XrValue *from, const XrValue *to, const Tensor *x,
                       Tensor *out) {
  float ratio = from->scale / to->scale,
        slope = n->kind == XR_LeakyReLU ? ratio * n->number : ratio;
  double above = (double)nearbyintf(SHORT_ONE * ratio),
         below = (double)nearbyintf(SHORT_ONE * slope);
  XrRange range = full_range(to);
  for (int64_t i = 0; i < tensor_numel(x); i++) {
    double steps = (double)(tensor_load_int(x, i) - from->zero_point),
           scaled = steps * (steps > 0 ? above : below);
    store(out, i, floor(scaled / SHORT_ONE + 0.5) + (double)to->zero_point, range);
  }
}

static void run_convert(Runner *r, const XrNode *n, const Tensor *x, Tensor *out) {
  const XrValue *from = value_of(r, n->inputs[0]), *to = value_of(r, n->output);
  if (to->datatype == XR_QDINT8) {
    memcpy(out->data, x->data, tensor_bytes(out));
  } else if (xr_is_byte(from->datatype) && from->datatype == to->datatype) {
    run_slopes(n, from, to, x, out);
  } else if (!xr_is_byte(to->datatype) || from->datatype == XR_INT32 ||
             xr_is_byte(from->datatype)) {
    Tensor y = real(r, from, x);
    if (!r->fault && xr_is_byte(to->datatype))
      quantize(to, &y, out, full_range(to));
    else if (!r->fault)
      xr_run_convert(r, &y, out);
  } else {
    XrRange range = full_range(to);
    float steps = 1 / to->scale;
    for (int64_t i = 0; i < tensor_numel(x); i++) {
      float number = (float)tensor_load(x, i);
      xr_store_steps(out, i, isnan(number) ? range.most * 2 : number * steps, range);
    }
  }
}

static void run_clamp(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  if (!same_parameters(value_of(r, n->inputs[0]), value_of(r, n->output))) {
    run_reals(r, n, in, out);
    return;
  }
  XrRange range = xr_range(r, n);
  for (int64_t i = 0; i < tensor_numel(out); i++)
    store(out, i, (double)tensor_load_int(in, i), range);
}

/* --- two operands --- */

static void scale_by(Tensor *t, double factor) {
  double *at = t->data;
  for (int64_t i = 0; i < tensor_numel(t); i++)
    at[i] *= factor;
}

/* The operands are multiplied by integers, so that the larger one has SUM_BITS; halves go up.
 */
static void run_sum(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  const XrValue *a = value_of(r, n->inputs[0]), *b = value_of(r, n->inputs[1]),
                *y = value_of(r, n->output);
  float x_ratio = a->scale / y->scale, z_ratio = b->scale / y->scale;
  int shift = SUM_BITS - ilogbf(fmaxf(x_ratio, z_ratio));
  Tensor steps[] = {xr_steps(r, a, &in[0]), xr_steps(r, b, &in[1])},
         total = xr_temp(r, DTYPE_F64, out->rank, out->dims);
  if (r->fault)
    return;
  scale_by(&steps[0], nearbyint(ldexp((double)x_ratio, shift)));
  scale_by(&steps[1], nearbyint(ldexp((double)z_ratio, shift)));
  xr_compute(r, n, steps, &total);
  XrRange range = xr_range(r, n);
  const double *from = total.data;
  for (int64_t i = 0; i < tensor_numel(out) && !r->fault; i++)
    store(out, i, floor(ldexp(from[i], -shift) + 0.5) + (double)range.zero_point, range);
}

/* Products of steps, and sums of them. */
static void run_multiply(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  const XrValue *a = value_of(r, n->inputs[0]), *b = value_of(r, n->inputs[1]);
  float scale = a->scale * b->scale / value_of(r, n->output)->scale;
  Tensor steps[] = {xr_steps(r, a, &in[0]), xr_steps(r, b, &in[1])},
         total = xr_temp(r, DTYPE_F64, out->rank, out->dims);
  if (!r->fault)
    xr_compute(r, n, steps, &total);
  XrRange range = xr_range(r, n);
  const double *from = total.data;
  for (int64_t i = 0; i < tensor_numel(out) && !r->fault; i++)
    xr_store_steps(out, i, (float)from[i] * scale, range);
}

/* --- images --- */

static void run_max_pool(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  XrValue plain = {.datatype = XR_INT32};
  Tensor numbers = real(r, &plain, in), largest = xr_temp(r, DTYPE_F32, out->rank, out->dims);
  if (!r->fault)
    xr_run_pool(r, n, &numbers, &largest);
  XrRange range = xr_range(r, n);
  for (int64_t i = 0; i < tensor_numel(out) && !r->fault; i++)
    store(out, i, tensor_load(&largest, i), range);
}

/* The sum of all bytes is scaled, then less what the zero point adds to it. */
static void run_global_average(const Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  const XrValue *from = value_of(r, n->inputs[0]), *to = value_of(r, n->output);
  int64_t channels = in->dims[in->rank - 1], area = in->dims[in->rank - 2] * in->dims[in->rank - 3];
  float scale = from->scale / to->scale * (1.0F / (float)area),
        zero = (float)to->zero_point - (float)(area * from->zero_point) * scale;
  XrRange range = xr_range(r, n);
  for (int64_t i = 0; i < tensor_numel(out); i++) {
    int64_t first = i / channels * area * channels + i % channels, sum = 0;
    for (int64_t k = 0; k < area; k++)
      sum += tensor_load_int(in, first + k * channels);
    store(out, i, (double)nearbyintf((float)sum * scale + zero), range);
  }
}

/* One element: shares in parts of RESIZE_ONE, halves go up. */
static double blend(const Tensor *x, const int64_t corners[4], XrBetween y, XrBetween z) {
  double down = (double)nearbyintf(y.share * RESIZE_ONE),
         right = (double)nearbyintf(z.share * RESIZE_ONE), q[4];
  for (uint32_t i = 0; i < 4; i++)
    q[i] = (double)tensor_load_int(x, corners[i]);
  double upper = q[0] * RESIZE_ONE + (q[1] - q[0]) * right,
         lower = q[2] * RESIZE_ONE + (q[3] - q[2]) * right;
  return floor((upper * RESIZE_ONE + (lower - upper) * down) / RESIZE_ONE / RESIZE_ONE + 0.5);
}

static void run_resize(const Runner *r, const XrNode *n, const Tensor *x, Tensor *out) {
  int64_t h = x->dims[1], w = x->dims[2], channels = x->dims[3], at = 0;
  XrRange range = xr_range(r, n);
  for (int64_t batch = 0; batch < out->dims[0]; batch++)
    for (int64_t row = 0; row < out->dims[1]; row++)
      for (int64_t column = 0; column < out->dims[2]; column++) {
        XrBetween y = xr_between(n, row, h, out->dims[1]),
                  z = xr_between(n, column, w, out->dims[2]);
        int64_t upper = (batch * h + y.low) * w, lower = (batch * h + y.high) * w;
        for (int64_t k = 0; k < channels; k++, at++) {
          int64_t corners[] = {(upper + z.low) * channels + k, (upper + z.high) * channels + k,
                               (lower + z.low) * channels + k, (lower + z.high) * channels + k};
          store(out, at, blend(x, corners, y, z), range);
        }
      }
}

/* --- kinds --- */

static void run_kind(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  XrNode padding = *n;
  switch (n->kind) {
  case XR_Convert:
    run_convert(r, n, in, out);
    return;
  case XR_LeakyReLU:
    run_slopes(n, value_of(r, n->inputs[0]), value_of(r, n->output), in, out);
    return;
  case XR_Clamp:
    run_clamp(r, n, in, out);
    return;
  case XR_Add:
  case XR_Subtract:
    run_sum(r, n, in, out);
    return;
  case XR_Multiply:
  case XR_BatchMatrixMultiply:
    run_multiply(r, n, in, out);
    return;
  case XR_MaxPooling2d:
    run_max_pool(r, n, in, out);
    return;
  case XR_GlobalAvgPooling2d:
    run_global_average(r, n, in, out);
    return;
  case XR_StaticResizeBilinear2D:
    run_resize(r, n, in, out);
    return;
  case XR_StaticConstantPad:
    padding.number = quantized_number(value_of(r, n->output), n->number);
    xr_run_move(r, &padding, in, out);
    return;
  case XR_Copy:
    memcpy(out->data, in->data, tensor_bytes(out));
    return;
  default:
    run_reals(r, n, in, out);
  }
}

void xr_run_quantized(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  switch (xr_form(n->kind)) {
  case XR_FORM_PRODUCT:
  case XR_FORM_CONVOLUTION:
    xr_run_weighted(r, n, in, out);
    return;
  case XR_FORM_TRANSPOSE:
  case XR_FORM_RESHAPE:
  case XR_FORM_SLICE:
  case XR_FORM_JOIN:
    xr_run_move(r, n, in, out);
    return;
  default:
    run_kind(r, n, in, out);
  }
}
