/* Products and convolutions with quantized filters. The sums of steps are exact, in f64; then they
 * are scaled in f32 as XNNPACK does it at the commit of ExecuTorch 1.4.1: to bytes with the scale
 * of input times filter by result; to floats with the scale of each channel, and that of the row
 * when the input is quantized while it runs (src/xnnpack/quantization.h). */
#include <math.h>

#include "backends/xnnpack/run.h"
#include "support/half.h"
#include "support/number.h"

#define PRODUCT_SCALE_END 256.0F
/* What the runtime multiplies scales of groups by that stand in the table as f32. */
#define GROUP_SCALE_FACTOR 1.00389105F

static const XrValue *value_of(const Runner *r, uint32_t id) { return &r->x->values[id]; }

/* --- scales --- */

static float load_bf16(const uint8_t *at) {
  uint16_t bits;
  memcpy(&bits, at, sizeof bits);
  return bfloat_to_float(bits);
}

static float cut_to_bf16(float f) {
  uint8_t bytes[4];
  memcpy(bytes, &f, sizeof bytes);
  return load_bf16(bytes + 2);
}

static float scale_at(const XrValue *v, const uint8_t *bytes, uint32_t i) {
  if (v->datatype != XR_QBINT4)
    return float_at(bytes, i);
  return v->scales ? load_bf16(bytes + 2 * (size_t)i)
                   : cut_to_bf16(float_at(bytes, i) * GROUP_SCALE_FACTOR);
}

/* count of them: of channels, or groups; all the same where the tensor has one. */
static float *scales_of(Runner *r, const XrValue *v, uint32_t count) {
  float *out = ARENA_ARRAY(&r->scratch, float, (size_t)count + 1);
  const uint8_t *bytes = v->scales ? xr_constant_bytes(r, v->scales) : v->scale_bytes;
  for (uint32_t i = 0; i < count; i++) {
    out[i] = xr_scheme(v->datatype) == XR_PER_TENSOR ? v->scale : scale_at(v, bytes, i);
    if (!isnormal(out[i]) || out[i] < 0)
      xr_run_fail(r, "a scale of the filter is not a normal number above zero");
  }
  return out;
}

/* --- operands --- */

/* Nibbles as numbers from -8 to 7; scaled when there are groups. */
static Tensor unpacked(Runner *r, const XrValue *v, const Tensor *t) {
  const int64_t dims[] = {v->dims[0], v->dims[1]};
  Tensor out = xr_temp(r, DTYPE_F64, 2, dims);
  const float *scales = v->datatype == XR_QBINT4 ? scales_of(r, v, v->scale_count) : NULL;
  if (r->fault)
    return out;
  const uint8_t *row = t->data;
  double *to = out.data;
  for (int64_t i = 0; i < dims[0]; i++, row += t->dims[1])
    for (int64_t k = 0; k < dims[1]; k++) {
      uint8_t byte = row[k / 2];
      int nibble = (k % 2 ? byte >> 4 : byte & 15) - 8;
      double scale = scales ? (double)scales[(i * dims[1] + k) / v->group_size] : 1;
      *to++ = nibble * scale;
    }
  return out;
}

static Tensor filter_steps(Runner *r, const XrValue *v, const Tensor *t) {
  bool nibbles = v->datatype == XR_QCINT4 || v->datatype == XR_QBINT4;
  return nibbles ? unpacked(r, v, t) : xr_steps(r, v, t);
}

/* The parameters that keep the range with zero in it: inverse scale, zero point. */
static float row_parameters(const float *row, int64_t count, float *zero_point) {
  float low = 0, high = 0;
  for (int64_t i = 0; i < count; i++) {
    low = fminf(low, row[i]);
    high = fmaxf(high, row[i]);
  }
  float steps = low == high ? 1 : (INT8_MAX - INT8_MIN) / (high - low),
        from_low = INT8_MIN - low * steps, from_high = INT8_MAX - high * steps,
        zero = INT8_MIN + low * steps + (INT8_MAX + high * steps) > 0 ? from_low : from_high;
  *zero_point = nearbyintf(fminf(fmaxf(zero, INT8_MIN), INT8_MAX));
  return steps;
}

/* x in steps of each row, which has count elements; and what a step is. */
static Tensor dynamic_steps(Runner *r, const Tensor *x, int64_t count, float **scales) {
  Tensor out = xr_temp(r, DTYPE_F64, x->rank, x->dims);
  int64_t rows = tensor_numel(x) / count;
  *scales = ARENA_ARRAY(&r->scratch, float, (size_t)rows + 1);
  if (r->fault)
    return out;
  const float *from = x->data;
  double *to = out.data;
  for (int64_t i = 0; i < rows; i++, from += count, to += count) {
    float zero, steps = row_parameters(from, count, &zero);
    (*scales)[i] = 1 / steps;
    for (int64_t k = 0; k < count; k++) {
      float q = nearbyintf(fminf(fmaxf(from[k] * steps, INT8_MIN - zero), INT8_MAX - zero));
      to[k] = (double)q;
    }
  }
  return out;
}

/* --- results --- */

/* What becomes of the sums. */
typedef struct Finish {
  const double *bias;         /* NULL: none */
  const float *scales;        /* by channel */
  const float *rows;          /* scales of a dynamic input, NULL: it is not dynamic */
  int64_t channels, row_size; /* row_size: elements of the result that share an entry of rows */
} Finish;

static double bias_of(const Finish *f, int64_t i) { return f->bias ? f->bias[i % f->channels] : 0; }

static void finish_bytes(Runner *r, const XrNode *n, Finish *f, const double *sums, Tensor *out) {
  float input = value_of(r, n->inputs[0])->scale, result = value_of(r, n->output)->scale,
        *scales = ARENA_ARRAY(&r->scratch, float, (size_t)f->channels + 1);
  XrRange range = xr_range(r, n);
  for (int64_t i = 0; i < f->channels; i++) {
    scales[i] = input * f->scales[i] / result;
    if (!(scales[i] < PRODUCT_SCALE_END))
      xr_run_fail(r, "the scale of the sums is 256 times that of the result, or more");
  }
  for (int64_t i = 0; i < tensor_numel(out) && !r->fault; i++)
    xr_store_steps(out, i, (float)(sums[i] + bias_of(f, i)) * scales[i % f->channels], range);
}

static void finish_floats(const XrNode *n, const Finish *f, const double *sums, Tensor *out) {
  float *to = out->data;
  for (int64_t i = 0; i < tensor_numel(out); i++) {
    float scale = f->scales[i % f->channels], bias = (float)bias_of(f, i);
    if (f->rows)
      to[i] = fmaf((float)sums[i] * f->rows[i / f->row_size], scale, bias);
    else /* weights alone are quantized: the bias is scaled as they are */
      to[i] = (float)(sums[i] + (double)bias) * scale;
    if (n->limited)
      to[i] = fminf(fmaxf(to[i], n->low), n->high);
  }
}

/* The first operand in steps. Of one that is quantized at run time, each row has a scale. */
static Tensor operand_steps(Runner *r, const XrNode *n, const Tensor *in, const Tensor *out,
                            Finish *f) {
  const XrValue *x = value_of(r, n->inputs[0]);
  if (x->datatype != XR_QDINT8)
    return xr_is_byte(x->datatype) ? xr_steps(r, x, in) : xr_converted(r, in, DTYPE_F64);
  bool by_row = xr_form(n->kind) == XR_FORM_PRODUCT || xr_is_pointwise(n);
  int64_t count = dims_count(in->dims, by_row ? in->rank - 1 : 1, in->rank);
  float *rows = NULL;
  Tensor steps = dynamic_steps(r, in, count, &rows);
  if (!r->fault) {
    f->rows = rows;
    f->row_size = tensor_numel(out) / (tensor_numel(in) / count);
  }
  return steps;
}

void xr_run_weighted(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  const XrValue *filter = value_of(r, n->inputs[1]);
  int64_t channels = out->dims[out->rank - 1];
  Finish f = {.channels = channels};
  XrValue ones = {.datatype = XR_QINT8, .scale = 1};
  f.scales = scales_of(r, filter->datatype == XR_QBINT4 ? &ones : filter, (uint32_t)channels);
  Tensor steps[3] = {operand_steps(r, n, &in[0], out, &f), filter_steps(r, filter, &in[1])},
         sums = xr_temp(r, DTYPE_F64, out->rank, out->dims);
  if (n->inputs[2] != XR_NONE)
    f.bias = xr_converted(r, &in[2], DTYPE_F64).data;
  xr_compute(r, n, steps, &sums);
  if (!r->fault && xr_is_byte(value_of(r, n->output)->datatype))
    finish_bytes(r, n, &f, sums.data, out);
  else if (!r->fault)
    finish_floats(n, &f, sums.data, out);
}
