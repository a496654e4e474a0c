/* Nodes that move elements, and those on images in NHWC. */
#include <math.h>

#include "backends/xnnpack/run_internal.h"
#include "ops/move.h"
#include "support/number.h"

enum { FLAG_SAME_PADDING = 4, FLAG_LEGACY_RESIZE = 4, FLAG_ALIGN_CORNERS = 8 };

static unsigned element(const Tensor *t) { return dtype_size(t->dtype); }

static MoveSide permuted_side(const Tensor *t, const uint32_t *perm) {
  MoveSide plain = move_side(t), side = plain;
  for (uint32_t i = 0; i < t->rank; i++)
    side.strides[i] = plain.strides[perm[i]];
  return side;
}

Tensor xr_permuted(Runner *r, const Tensor *t, const uint32_t *perm) {
  int64_t dims[XR_MAX_RANK];
  for (uint32_t i = 0; i < t->rank; i++)
    dims[i] = t->dims[perm[i]];
  Tensor out = xr_temp(r, t->dtype, t->rank, dims);
  if (!r->fault)
    move_elements(element(t), t->rank, dims, move_side(&out), permuted_side(t, perm));
  return out;
}

/* Copies x into out from an offset on (out is larger), or out of x (out is smaller). */
static void move_at(const Tensor *x, Tensor *out, const int64_t *offsets, bool into) {
  MoveSide from = move_side(x), to = move_side(out), *moved = into ? &to : &from;
  for (uint32_t i = 0; i < x->rank; i++)
    move_offset(moved, element(x), offsets[i], moved->strides[i]);
  move_elements(element(x), x->rank, into ? x->dims : out->dims, to, from);
}

static void fill(Tensor *t, float number) {
  uint64_t element_of[1] = {0};
  Tensor one = {.dtype = t->dtype, .data = element_of, .capacity = sizeof element_of};
  tensor_store(&one, 0, (double)number);
  move_fill(element(t), t->data, element_of, tensor_numel(t));
}

static void join(const XrNode *n, const Tensor *in, Tensor *out) {
  uint32_t axis = n->axis > INT32_MAX ? n->axis + out->rank : n->axis;
  int64_t offsets[XR_MAX_RANK] = {0};
  for (uint32_t k = 0; k < n->input_count; k++) {
    move_at(&in[k], out, offsets, true);
    offsets[axis] += in[k].dims[axis];
  }
}

void xr_run_move(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  int64_t offsets[XR_MAX_RANK];
  for (uint32_t i = 0; i < XR_MAX_RANK; i++)
    offsets[i] = n->first[i];
  switch (xr_form(n->kind)) {
  case XR_FORM_RESHAPE:
    memcpy(out->data, in->data, tensor_bytes(out));
    return;
  case XR_FORM_TRANSPOSE:
    move_elements(element(out), out->rank, out->dims, move_side(out), permuted_side(in, n->first));
    return;
  case XR_FORM_SLICE:
    move_at(in, out, offsets, false);
    return;
  case XR_FORM_PAD:
    fill(out, n->number);
    move_at(in, out, offsets, true);
    return;
  case XR_FORM_JOIN:
    join(n, in, out);
    return;
  default:
    xr_run_fail(r, "a kind that cannot be run");
  }
}

/* To integers XNNPACK rounds, halves to the even one. */
void xr_run_convert(Runner *r, const Tensor *x, Tensor *out) {
  KernelArg args[] = {K_TENSOR(x), K_NONE, K_NONE, K_NONE};
  if (out->dtype != DTYPE_I32) {
    xr_kernel(r, OP_TO_COPY, args, COUNT_OF(args), out);
    return;
  }
  for (int64_t i = 0; i < tensor_numel(out); i++)
    tensor_store(out, i, nearbyint(tensor_load(x, i)));
}

/* --- convolutions --- */

/* x with zeros around it. */
static Tensor padded(Runner *r, const Tensor *x, const int64_t *before, const int64_t *after) {
  if (before[0] + before[1] + after[0] + after[1] == 0)
    return *x;
  int64_t dims[] = {x->dims[0], x->dims[1] + before[0] + after[0],
                    x->dims[2] + before[1] + after[1], x->dims[3]},
          offsets[] = {0, before[0], before[1], 0};
  Tensor out = xr_temp(r, x->dtype, 4, dims);
  if (r->fault)
    return out;
  fill(&out, 0);
  move_at(x, &out, offsets, true);
  return out;
}

/* The filter as torch has it. */
static Tensor torch_filter(Runner *r, const XrNode *n, const Tensor *filter) {
  static const uint32_t straight[] = {0, 3, 1, 2}, depthwise[] = {3, 0, 1, 2},
                        transposed[] = {0, 4, 1, 2, 3};
  if (n->kind == XR_Conv2d)
    return xr_permuted(r, filter, straight);
  if (n->kind == XR_DepthwiseConv2d)
    return xr_permuted(r, filter, depthwise);
  Tensor grouped = *filter; /* [groups, out, kh, kw, in] */
  int64_t dims[] = {n->window.groups, n->window.group_out, n->window.kernel[0], n->window.kernel[1],
                    n->window.group_in};
  grouped.rank = 5;
  memcpy(grouped.dims, dims, sizeof dims);
  Tensor out = xr_permuted(r, &grouped, transposed);
  out.rank = 4;
  int64_t flat[] = {dims[0] * dims[4], dims[1], dims[2], dims[3]};
  memcpy(out.dims, flat, sizeof flat);
  return out;
}

void xr_run_convolution(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  static const uint32_t to_nchw[] = {0, 3, 1, 2}, to_nhwc[] = {0, 2, 3, 1};
  static const int64_t none[] = {0, 0};
  const XrWindow *w = &n->window;
  bool transposed = n->kind == XR_ConvTranspose2d;
  int64_t before[2], after[2], stride[2], dilation[2], adjust[2], full[4] = {out->dims[0], 0, 0, 0};
  full[1] = out->dims[3];
  for (uint32_t i = 0; i < 2; i++) {
    int64_t reach = (int64_t)(w->kernel[i] - 1) * w->dilation[i] + 1;
    before[i] = w->before[i];
    after[i] = w->after[i];
    stride[i] = w->stride[i];
    dilation[i] = w->dilation[i];
    adjust[i] = w->adjust[i];
    if (n->flags & FLAG_SAME_PADDING) {
      int64_t both = (out->dims[1 + i] - 1) * stride[i] + reach - in[0].dims[1 + i];
      before[i] = both > 0 ? both / 2 : 0;
      after[i] = both > 0 ? both - both / 2 : 0;
    }
    full[2 + i] = out->dims[1 + i] + (transposed ? before[i] + after[i] : 0);
  }
  Tensor x = transposed ? in[0] : padded(r, &in[0], before, after);
  x = xr_permuted(r, &x, to_nchw);
  Tensor filter = torch_filter(r, n, &in[1]), y = xr_temp(r, x.dtype, 4, full);
  KernelArg args[] = {K_TENSOR(&x),      K_TENSOR(&filter), K_NONE,
                      K_INTS(stride, 2), K_INTS(none, 2),   K_INTS(dilation, 2),
                      K_INT(transposed), K_INTS(adjust, 2), K_INT(w->groups)};
  if (n->inputs[2] != XR_NONE)
    args[2] = K_TENSOR(&in[2]);
  xr_kernel(r, OP_CONVOLUTION, args, COUNT_OF(args), &y);
  y = xr_permuted(r, &y, to_nhwc);
  int64_t offsets[] = {0, transposed ? before[0] : 0, transposed ? before[1] : 0, 0};
  if (!r->fault)
    move_at(&y, out, offsets, false);
}

/* --- pools, resizing --- */

/* One window: the largest element, or the mean of those that are no padding, for each channel. */
static void window(const XrNode *n, const Tensor *x, int64_t batch, const int64_t *at, float *out) {
  const XrWindow *w = &n->window;
  bool largest = n->kind == XR_MaxPooling2d;
  int64_t channels = x->dims[3], count = 0;
  for (int64_t c = 0; c < channels; c++)
    out[c] = largest ? -INFINITY : 0;
  for (int64_t ky = 0; ky < w->kernel[0]; ky++)
    for (int64_t kx = 0; kx < w->kernel[1]; kx++) {
      int64_t row = at[0] * w->stride[0] + ky * w->dilation[0] - w->before[0],
              column = at[1] * w->stride[1] + kx * w->dilation[1] - w->before[1];
      if (row < 0 || column < 0 || row >= x->dims[1] || column >= x->dims[2])
        continue;
      const float *pixel =
          (const float *)x->data + ((batch * x->dims[1] + row) * x->dims[2] + column) * channels;
      count++;
      for (int64_t c = 0; c < channels; c++)
        out[c] = largest ? fmaxf(out[c], pixel[c]) : out[c] + pixel[c];
    }
  for (int64_t c = 0; c < channels && !largest; c++)
    out[c] /= (float)count;
}

void xr_run_pool(Runner *r, const XrNode *n, const Tensor *x, Tensor *out) {
  float *pixel = out->data;
  if (x->dtype != DTYPE_F32) {
    xr_run_fail(r, "elements that are no floats");
    return;
  }
  for (int64_t batch = 0; batch < out->dims[0]; batch++)
    for (int64_t row = 0; row < out->dims[1]; row++)
      for (int64_t column = 0; column < out->dims[2]; column++, pixel += out->dims[3])
        window(n, x, batch, (const int64_t[]){row, column}, pixel);
}

/* The first of the largest elements of one window, for each channel. */
static void find_largest(const XrNode *n, const Tensor *x, int64_t batch, const int64_t *at,
                         float *most, int32_t *where) {
  const XrWindow *w = &n->window;
  int64_t channels = x->dims[3];
  for (int64_t c = 0; c < channels; c++)
    where[c] = -1;
  for (int64_t k = 0; k < (int64_t)w->kernel[0] * w->kernel[1]; k++) {
    int64_t row = at[0] * w->stride[0] + k / w->kernel[1] - w->before[0],
            column = at[1] * w->stride[1] + k % w->kernel[1] - w->before[1];
    if (row < 0 || column < 0 || row >= x->dims[1] || column >= x->dims[2])
      continue;
    const float *pixel =
        (const float *)x->data + ((batch * x->dims[1] + row) * x->dims[2] + column) * channels;
    for (int64_t c = 0; c < channels; c++)
      if (where[c] < 0 || pixel[c] > most[c]) {
        most[c] = pixel[c];
        where[c] = (int32_t)k;
      }
  }
}

void xr_run_positions(Runner *r, const XrNode *n, const Tensor *x, Tensor *out) {
  Tensor *positions = xr_result(r, n->positions);
  if (r->fault)
    return;
  float *most = out->data;
  int32_t *where = positions->data;
  for (int64_t batch = 0; batch < out->dims[0]; batch++)
    for (int64_t row = 0; row < out->dims[1]; row++)
      for (int64_t column = 0; column < out->dims[2]; column++) {
        find_largest(n, x, batch, (const int64_t[]){row, column}, most, where);
        most += out->dims[3];
        where += out->dims[3];
      }
}

XrBetween xr_between(const XrNode *n, int64_t at, int64_t from, int64_t to) {
  double position;
  if (n->flags & FLAG_ALIGN_CORNERS)
    position = to > 1 ? (double)at * (double)(from - 1) / (double)(to - 1) : 0;
  else if (n->flags & FLAG_LEGACY_RESIZE)
    position = (double)at * (double)from / (double)to;
  else
    position = ((double)at + 0.5) * (double)from / (double)to - 0.5;
  position = position < 0 ? 0 : position > (double)(from - 1) ? (double)(from - 1) : position;
  XrBetween b = {.low = int_clamped(position, 0, from - 1)};
  b.high = b.low + 1 < from ? b.low + 1 : b.low;
  b.share = (float)(position - (double)b.low);
  return b;
}

void xr_run_resize(Runner *r, const XrNode *n, const Tensor *x, Tensor *out) {
  int64_t h = x->dims[1], w = x->dims[2], channels = x->dims[3];
  const float *image = x->data;
  float *pixel = out->data;
  if (x->dtype != DTYPE_F32) {
    xr_run_fail(r, "elements that are no floats");
    return;
  }
  for (int64_t batch = 0; batch < out->dims[0]; batch++, image += h * w * channels)
    for (int64_t row = 0; row < out->dims[1]; row++)
      for (int64_t column = 0; column < out->dims[2]; column++, pixel += channels) {
        XrBetween y = xr_between(n, row, h, out->dims[1]),
                  z = xr_between(n, column, w, out->dims[2]);
        const float *a = image + (y.low * w + z.low) * channels,
                    *b = image + (y.low * w + z.high) * channels,
                    *c = image + (y.high * w + z.low) * channels,
                    *d = image + (y.high * w + z.high) * channels;
        for (int64_t k = 0; k < channels; k++) {
          float upper = a[k] + (b[k] - a[k]) * z.share, lower = c[k] + (d[k] - c[k]) * z.share;
          pixel[k] = upper + (lower - upper) * y.share;
        }
      }
}
