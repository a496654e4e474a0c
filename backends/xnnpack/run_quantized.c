/* Nodes on quantized bytes, as XNNPACK computes them: products of whole steps are exact, in f64,
 * and scaled in f32; kernels of 16 bits multiply by 8 fractional bits; sums by 20. What has no
 * kernel of its own goes through f32. Formulas: XNNPACK at the commit of ExecuTorch 1.4.1,
 * src/microparams-init.c and src/reference. */
#include <math.h>

#include "backends/xnnpack/run.h"
#include "support/number.h"

enum { SUM_BITS = 20, SHORT_ONE = 256 };

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
  if (!xr_is_byte(v->datatype))
    return xr_converted(r, t, DTYPE_F32);
  Tensor out = xr_temp(r, DTYPE_F32, t->rank, t->dims);
  XR_KERNEL(r, OP_DEQUANTIZE_PER_TENSOR, &out, K_TENSOR(t), K_FLOAT((double)v->scale),
            K_INT(v->zero_point), K_INT(INT8_MIN), K_INT(UINT8_MAX), K_INT(t->dtype));
  return out;
}

/* Ties round to even, after the zero point is added. */
static void quantize(const XrValue *v, const Tensor *y, Tensor *out, XrRange range) {
  const float *from = y->data, steps = 1 / v->scale;
  for (int64_t i = 0; i < tensor_numel(out); i++) {
    float q = from[i] * steps + range.zero_point;
    store(out, i, (double)(isnan(q) ? 0.0F : nearbyintf(q)), range);
  }
}

static void run_reals(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  Tensor reals[XR_MAX_INPUTS], y = xr_temp(r, DTYPE_F32, out->rank, out->dims), limited = y;
  for (uint32_t i = 0; i < n->input_count; i++)
    reals[i] = real(r, value_of(r, n->inputs[i]), &in[i]);
  xr_compute(r, n, reals, &y);
  if (n->kind == XR_Clamp) {
    limited = xr_temp(r, DTYPE_F32, out->rank, out->dims);
    xr_limit(r, n, &y, &limited);
  }
  if (!r->fault)
    quantize(value_of(r, n->output), &limited, out, xr_range(r, n));
}

/* --- as codes --- */

/* Codes are chosen, blended or limited as floats, which are exact. */
static void run_codes(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  XrNode coded = *n;
  coded.number = quantized_number(value_of(r, n->output), n->number);
  if (xr_form(n->kind) != XR_FORM_POOL && xr_form(n->kind) != XR_FORM_RESIZE &&
      n->kind != XR_Clamp) {
    xr_compute(r, &coded, in, out);
    return;
  }
  XrRange range = xr_range(r, n);
  Tensor x = xr_converted(r, in, DTYPE_F32), y = xr_temp(r, DTYPE_F32, out->rank, out->dims),
         limited = xr_temp(r, DTYPE_F32, out->rank, out->dims);
  coded.low = range.least;
  coded.high = range.most;
  xr_compute(r, &coded, &x, &y);
  xr_limit(r, &coded, &y, &limited);
  XR_KERNEL(r, OP_TO_COPY, out, K_TENSOR(&limited));
}

/* --- by element --- */

static bool same_parameters(const XrValue *a, const XrValue *b) {
  return a->scale == b->scale && a->zero_point == b->zero_point;
}

/* Bytes to those of another scale, with a slope below zero of its own: multiplied by numbers with 8
 * fractional bits, rounded half up. */
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
    if (!xr_is_byte(to->datatype))
      xr_compute(r, n, &y, out);
    else if (!r->fault)
      quantize(to, &y, out, full_range(to));
  } else {
    XrRange range = full_range(to);
    float steps = 1 / to->scale;
    for (int64_t i = 0; i < tensor_numel(x); i++) {
      float number = (float)tensor_load(x, i);
      xr_store_steps(out, i, isnan(number) ? range.most * 2 : number * steps, range);
    }
  }
}

/* --- two operands --- */

static void scale_by(Tensor *t, double factor) {
  double *at = t->data;
  for (int64_t i = 0; i < tensor_numel(t); i++)
    at[i] *= factor;
}

/* Products of steps are scaled. The operands of sums are multiplied by integers, so that the larger
 * one has SUM_BITS, and rounded half up. */
static void run_steps(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  const XrValue *a = value_of(r, n->inputs[0]), *b = value_of(r, n->inputs[1]),
                *y = value_of(r, n->output);
  bool sum = n->kind == XR_Add || n->kind == XR_Subtract;
  float a_ratio = a->scale / y->scale, b_ratio = b->scale / y->scale,
        scale = a->scale * b->scale / y->scale;
  int shift = SUM_BITS - ilogbf(fmaxf(a_ratio, b_ratio));
  Tensor steps[] = {xr_steps(r, a, &in[0]), xr_steps(r, b, &in[1])},
         total = xr_temp(r, DTYPE_F64, out->rank, out->dims);
  if (sum && !r->fault) {
    scale_by(&steps[0], nearbyint(ldexp((double)a_ratio, shift)));
    scale_by(&steps[1], nearbyint(ldexp((double)b_ratio, shift)));
  }
  xr_compute(r, n, steps, &total);
  XrRange range = xr_range(r, n);
  const double *from = total.data;
  for (int64_t i = 0; i < tensor_numel(out) && !r->fault; i++) {
    double q =
        sum ? floor(ldexp(from[i], -shift) + 0.5) : (double)nearbyintf((float)from[i] * scale);
    store(out, i, q + (double)range.zero_point, range);
  }
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

/* --- kinds --- */

void xr_run_quantized(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  const XrValue *x = value_of(r, n->inputs[0]), *y = value_of(r, n->output);
  if (xr_has(n->kind, XR_WEIGHTED))
    xr_run_weighted(r, n, in, out);
  else if (n->kind == XR_Convert)
    run_convert(r, n, in, out);
  else if (n->kind == XR_LeakyReLU)
    run_slopes(n, x, y, in, out);
  else if (n->kind == XR_GlobalAvgPooling2d)
    run_global_average(r, n, in, out);
  else if (n->kind == XR_Add || n->kind == XR_Subtract || n->kind == XR_Multiply ||
           n->kind == XR_BatchMatrixMultiply)
    run_steps(r, n, in, out);
  else if (xr_has(n->kind, XR_KEEPS) || (n->kind == XR_Clamp && same_parameters(x, y)))
    run_codes(r, n, in, out);
  else
    run_reals(r, n, in, out);
}
