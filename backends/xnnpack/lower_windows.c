/* Windows of an image next to each other, with which a convolution is a product.
 *
 * An image is seen as [n, rows, stride, columns, stride, c], so that also the elements which a
 * stride skips between are slices. */
#include "backends/xnnpack/convolution.h"

bool xl_whole_windows(const XnnLowering *l, NodeId n, const Convolution *c, Windows *w) {
  *w = (Windows){.c = c,
                 .batch = value_dim(l->g, node_value(l->g, n, 0), 0),
                 .before = {c->padding[0], c->padding[1]}};
  return xl_image_sizes(l, n, c, w->in, w->out);
}

/* The last elements that windows meet may be missing to a whole stride, and those behind them are
 * seen all the same. */
static uint32_t whole_strides(const Windows *w, uint32_t i) {
  const Convolution *c = w->c;
  uint32_t met = (c->kernel[i] - 1) * c->dilation[i] + (w->out[i] - 1) * c->stride[i] + 1,
           there = w->in[i] + w->before[i], all = met > there ? met : there;
  return (all + c->stride[i] - 1) / c->stride[i];
}

XnnId xl_window_view(XnnLowering *l, Windows *w, XnnId in) {
  const Convolution *c = w->c;
  SymInt image[] = {w->batch, w->in[0], w->in[1], c->in_channels};
  XnnPad pad = {.dims = image, .rank = 4};
  uint32_t rows[2];
  for (uint32_t i = 0; i < 2; i++) {
    rows[i] = whole_strides(w, i);
    pad.before[1 + i] = w->before[i];
    pad.after[1 + i] = rows[i] * c->stride[i] - w->in[i] - w->before[i];
  }
  if (pad.before[1] || pad.before[2] || pad.after[1] || pad.after[2]) {
    SymInt dims[] = {w->batch, (SymInt)rows[0] * c->stride[0], (SymInt)rows[1] * c->stride[1],
                     c->in_channels};
    XnnId padded = xl_sym_temp(l, 4, dims);
    xl_pad(l, in, &pad, padded);
    in = padded;
  }
  const SymInt dims[] = {w->batch, rows[0], c->stride[0], rows[1], c->stride[1], c->in_channels};
  memcpy(w->dims, dims, sizeof dims);
  return xl_reshaped(l, in, dims, WINDOW_RANK);
}

XnnId xl_met_by_tap(XnnLowering *l, const Windows *w, uint32_t tap, XnnId in,
                    SymInt dims[WINDOW_RANK]) {
  const Convolution *c = w->c;
  uint32_t taps[] = {tap / c->kernel[1], tap % c->kernel[1]}, offsets[WINDOW_RANK] = {0},
           sizes[WINDOW_RANK] = {0};
  memcpy(dims, w->dims, sizeof w->dims);
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t at = taps[i] * c->dilation[i], axis = 1 + 2 * i;
    offsets[axis] = at / c->stride[i];
    offsets[axis + 1] = at % c->stride[i];
    dims[axis] = sizes[axis] = w->out[i];
    dims[axis + 1] = sizes[axis + 1] = 1;
  }
  if (memcmp(dims, w->dims, sizeof w->dims) == 0 || !xl_ok(l))
    return in;
  XnnId out = xl_sym_temp(l, WINDOW_RANK, dims);
  xl_slice_dims(l, in, WINDOW_RANK, offsets, sizes, out);
  return out;
}

/* items next to each other in the last dim, which has c elements in each. */
static XnnId joined(XnnLowering *l, const XnnId *items, uint32_t count, SymInt dims[WINDOW_RANK]) {
  if (count == 1 || !xl_ok(l))
    return items[0];
  dims[WINDOW_RANK - 1] *= count;
  XnnId out = xl_sym_temp(l, WINDOW_RANK, dims);
  xl_concatenate(l, items, count, WINDOW_RANK - 1, out);
  return out;
}

XnnId xl_windows_of(XnnLowering *l, const Windows *w, XnnId in, SymInt dims[WINDOW_RANK]) {
  uint32_t taps = w->c->kernel[0] * w->c->kernel[1],
           at_once = taps <= TAPS_AT_ONCE ? taps : w->c->kernel[1];
  XnnId rows[MAX_WINDOW_TAPS], items[MAX_WINDOW_TAPS];
  for (uint32_t t = 0; t < taps; t++) {
    items[t % at_once] = xl_met_by_tap(l, w, t, in, dims);
    if (t % at_once + 1 == at_once)
      rows[t / at_once] = joined(l, items, at_once, dims);
  }
  return joined(l, rows, taps / at_once, dims);
}
