/* Nodes on images in NHWC. Where a window ends is said by the size of the result: kernels of the op
 * table take that and the padding before, so that the padding behind needs no place of its own. */
#include <math.h>

#include "backends/xnnpack/run.h"
#include "support/number.h"

enum { FLAG_SAME_PADDING = 4, FLAG_LEGACY_RESIZE = 4, FLAG_ALIGN_CORNERS = 8, RESIZE_ONE = 2048 };

static const uint32_t to_planes[] = {0, 3, 1, 2}, to_pixels[] = {0, 2, 3, 1};

/* Planes for the pixels of an image. */
static Tensor planes_of(Runner *r, DType dtype, const Tensor *image) {
  const int64_t dims[] = {image->dims[0], image->dims[3], image->dims[1], image->dims[2]};
  return xr_temp(r, dtype, 4, dims);
}

/* The arguments of windows as ops have them: two ints each. */
typedef struct Windows {
  int64_t kernel[2], stride[2], before[2], dilation[2], adjust[2];
} Windows;

static Windows windows_of(const XrNode *n, const Tensor *x, const Tensor *out) {
  const XrWindow *w = &n->window;
  Windows s;
  for (uint32_t i = 0; i < 2; i++) {
    s.kernel[i] = w->kernel[i];
    s.stride[i] = w->stride[i];
    s.before[i] = w->before[i];
    s.dilation[i] = w->dilation[i];
    s.adjust[i] = w->adjust[i];
    if (n->flags & FLAG_SAME_PADDING) {
      int64_t reach = (s.kernel[i] - 1) * s.dilation[i] + 1,
              both = (out->dims[1 + i] - 1) * s.stride[i] + reach - x->dims[1 + i];
      s.before[i] = max_i64(both, 0) / 2;
    }
  }
  return s;
}

/* --- convolutions --- */

/* The filter as torch has it. */
static Tensor torch_filter(Runner *r, const XrNode *n, const Tensor *filter) {
  static const uint32_t depthwise[] = {3, 0, 1, 2}, transposed[] = {0, 4, 1, 2, 3};
  if (n->kind != XR_ConvTranspose2d)
    return xr_permuted(r, filter, n->kind == XR_Conv2d ? to_planes : depthwise);
  const XrWindow *w = &n->window;
  Tensor grouped = {
      .dtype = filter->dtype,
      .rank = 5,
      .dims = {w->groups, w->group_out, w->kernel[0], w->kernel[1], w->group_in},
      .data = filter->data,
      .capacity = filter->capacity,
  };
  Tensor out = xr_permuted(r, &grouped, transposed);
  out.rank = 4;
  out.dims[1] *= out.dims[0];
  memmove(out.dims, out.dims + 1, 4 * sizeof *out.dims);
  return out;
}

void xr_run_convolution(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  Windows s = windows_of(n, &in[0], out);
  Tensor x = xr_permuted(r, &in[0], to_planes), filter = torch_filter(r, n, &in[1]),
         y = planes_of(r, x.dtype, out);
  XR_KERNEL(r, OP_CONVOLUTION, &y, K_TENSOR(&x), K_TENSOR(&filter),
            in[2].data ? K_TENSOR(&in[2]) : K_NONE, K_INTS(s.stride, 2), K_INTS(s.before, 2),
            K_INTS(s.dilation, 2), K_INT(n->kind == XR_ConvTranspose2d), K_INTS(s.adjust, 2),
            K_INT(n->window.groups));
  xr_permute(r, &y, to_pixels, out);
}

/* --- pools, resizing --- */

/* The op takes NaN for the largest, XNNPACK does not. */
static void pass_over_nan(const Runner *r, Tensor *t) {
  float *at = t->data;
  for (int64_t i = 0; i < tensor_numel(t) && !r->fault; i++)
    at[i] = isnan(at[i]) ? -INFINITY : at[i];
}

/* The largest elements, or the means of those that are no padding. */
void xr_run_pool(Runner *r, const XrNode *n, const Tensor *x, Tensor *out) {
  Windows s = windows_of(n, x, out);
  Tensor planes = xr_permuted(r, x, to_planes), y[] = {planes_of(r, x->dtype, out), {0}};
  if (n->kind == XR_AvgPooling2d) {
    XR_KERNEL(r, OP_AVG_POOL2D, y, K_TENSOR(&planes), K_INTS(s.kernel, 2), K_INTS(s.stride, 2),
              K_INTS(s.before, 2), K_INT(0), K_INT(0));
  } else {
    pass_over_nan(r, &planes);
    y[1] = planes_of(r, DTYPE_I64, out);
    XR_KERNEL(r, OP_MAX_POOL2D_WITH_INDICES, y, K_TENSOR(&planes), K_INTS(s.kernel, 2),
              K_INTS(s.stride, 2), K_INTS(s.before, 2), K_INTS(s.dilation, 2));
  }
  xr_permute(r, &y[0], to_pixels, out);
}

/* The largest element of a window and its place there: the first, until one is larger; NaN is not,
 * and stays where it comes first. */
static void find_largest(const XrWindow *w, const Tensor *x, const int64_t at[4], float *most,
                         int32_t *where) {
  int64_t top = at[1] * w->stride[0] - w->before[0], left = at[2] * w->stride[1] - w->before[1],
          bottom = min_i64(top + w->kernel[0], x->dims[1]),
          right = min_i64(left + w->kernel[1], x->dims[2]);
  *where = -1;
  for (int64_t row = max_i64(top, 0); row < bottom; row++)
    for (int64_t column = max_i64(left, 0); column < right; column++) {
      int64_t pixel = (at[0] * x->dims[1] + row) * x->dims[2] + column;
      float here = ((const float *)x->data)[pixel * x->dims[3] + at[3]];
      if (*where < 0 || here > *most) {
        *most = here;
        *where = (int32_t)((row - top) * w->kernel[1] + column - left);
      }
    }
}

void xr_run_positions(Runner *r, const XrNode *n, const Tensor *x, Tensor *out) {
  Tensor *positions = xr_result(r, n->positions);
  const int64_t *to = out->dims;
  for (int64_t i = 0; i < tensor_numel(out) && !r->fault; i++) {
    int64_t pixel = i / to[3], row = pixel / to[2],
            at[] = {row / to[1], row % to[1], pixel % to[2], i % to[3]};
    find_largest(&n->window, x, at, (float *)out->data + i, (int32_t *)positions->data + i);
  }
}

/* Where an element of the result of a resize lies between two of the operand. */
typedef struct Between {
  int64_t low, high;
  float share; /* of high */
} Between;

static Between between(const XrNode *n, int64_t at, int64_t from, int64_t to) {
  double position;
  if (n->flags & FLAG_ALIGN_CORNERS)
    position = to > 1 ? (double)at * (double)(from - 1) / (double)(to - 1) : 0;
  else if (n->flags & FLAG_LEGACY_RESIZE)
    position = (double)at * (double)from / (double)to;
  else
    position = ((double)at + 0.5) * (double)from / (double)to - 0.5;
  position = position < 0 ? 0 : position > (double)(from - 1) ? (double)(from - 1) : position;
  Between b = {.low = int_clamped(position, 0, from - 1)};
  b.high = b.low + 1 < from ? b.low + 1 : b.low;
  b.share = (float)(position - (double)b.low);
  return b;
}

/* Of four neighbours. */
static float blend(float a, float b, float c, float d, float down, float right) {
  float upper = a + (b - a) * right, lower = c + (d - c) * right;
  return upper + (lower - upper) * down;
}

/* The same of codes: shares in parts of RESIZE_ONE, rounded half up. */
static float blend_codes(double a, double b, double c, double d, float down, float right) {
  double across = (double)nearbyintf(right * RESIZE_ONE),
         along = (double)nearbyintf(down * RESIZE_ONE), upper = a * RESIZE_ONE + (b - a) * across,
         lower = c * RESIZE_ONE + (d - c) * across;
  return (float)floor((upper * RESIZE_ONE + (lower - upper) * along) / RESIZE_ONE / RESIZE_ONE +
                      0.5);
}

void xr_run_resize(const Runner *r, const XrNode *n, const Tensor *x, Tensor *out) {
  bool codes = xr_is_byte(r->x->values[n->output].datatype);
  int64_t h = x->dims[1], w = x->dims[2], to_h = out->dims[1], to_w = out->dims[2],
          channels = x->dims[3];
  float *to = out->data;
  for (int64_t pixel = 0; pixel < out->dims[0] * to_h * to_w; pixel++, to += channels) {
    Between y = between(n, pixel / to_w % to_h, h, to_h), z = between(n, pixel % to_w, w, to_w);
    const float *image = (const float *)x->data + pixel / to_w / to_h * h * w * channels,
                *a = image + (y.low * w + z.low) * channels,
                *b = image + (y.low * w + z.high) * channels,
                *c = image + (y.high * w + z.low) * channels,
                *d = image + (y.high * w + z.high) * channels;
    for (int64_t k = 0; k < channels; k++)
      to[k] = codes ? blend_codes((double)a[k], (double)b[k], (double)c[k], (double)d[k], y.share,
                                  z.share)
                    : blend(a[k], b[k], c[k], d[k], y.share, z.share);
  }
}
