/* Windows of an image next to each other, with which a convolution is a product.
 *
 * An image is seen as [n, rows, stride, columns, stride, c], so that also the elements which a
 * stride skips between are slices.
 *
 * XNNPACK's loop for kernels of several taps takes 2.4 times as long as the one for products on
 * CPUs with AVX2, whatever the sizes: as ExecuTorch 1.4.1 is built, one of its ten sums is in
 * memory there. With AVX-512 both are equally fast, and the copies are lost. So windows are
 * gathered where that gains much more with AVX2 than it loses with AVX-512: for many output
 * channels, on images that are small enough for the copies to stay in the second cache. */
#include "backends/xnnpack/convolution.h"

enum {
  MOST_JOINED = 9,      /* taps that are joined at once */
  MOST_BYTES = 1 << 20, /* of all windows: of larger ones each copy takes twice as long */
  LEAST_CHANNELS = 16,  /* of the image: copies of fewer take longer than what they hold */
  EIGHT = 8,            /* outputs beyond sixteens that CPUs without AVX-512 compute slowly */
};
#define MOST_LOSS 1.2 /* with AVX-512; on Arm, where a product takes longer, it is less */

/* ns for one input channel and tap of 16 outputs, in one node and as a product. */
static const struct {
  double node, product;
} with_avx512 = {0.3, 0.3},   /* a Xeon, of what tests/bench/convolutions.py shows */
    with_avx2 = {1.03, 0.44}; /* Zen 3: 31 and 73 GFLOP/s, of 64 to 512 channels */

/* The last elements that windows meet may be missing to a whole stride, and those behind them are
 * seen all the same. */
static uint32_t whole_strides(const Windows *w, uint32_t i) {
  const Convolution *c = w->c;
  uint32_t met = (c->kernel[i] - 1) * c->dilation[i] + (w->out[i] - 1) * c->stride[i] + 1,
           there = w->in[i] + c->padding[i], all = met > there ? met : there;
  return (all + c->stride[i] - 1) / c->stride[i];
}

XnnId xl_window_view(XnnLowering *l, Windows *w, SymInt batch, XnnId in) {
  const Convolution *c = w->c;
  uint32_t before[4] = {0}, after[4] = {0}, rows[2];
  for (uint32_t i = 0; i < 2; i++) {
    rows[i] = whole_strides(w, i);
    before[1 + i] = c->padding[i];
    after[1 + i] = rows[i] * c->stride[i] - w->in[i] - c->padding[i];
  }
  if (before[1] || before[2] || after[1] || after[2]) {
    SymInt dims[] = {batch, (SymInt)rows[0] * c->stride[0], (SymInt)rows[1] * c->stride[1],
                     c->in_channels};
    SymInt image[] = {batch, w->in[0], w->in[1], c->in_channels};
    XnnId padded = xl_sym_temp(l, 4, dims);
    xl_pad(l, in, image, 4, before, after, 0, padded);
    in = padded;
  }
  const SymInt dims[] = {batch, rows[0], c->stride[0], rows[1], c->stride[1], c->in_channels};
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
           at_once = taps <= MOST_JOINED ? taps : w->c->kernel[1];
  XnnId rows[MAX_WINDOW_TAPS], items[MAX_WINDOW_TAPS];
  for (uint32_t t = 0; t < taps; t++) {
    items[t % at_once] = xl_met_by_tap(l, w, t, in, dims);
    if (t % at_once + 1 == at_once)
      rows[t / at_once] = joined(l, items, at_once, dims);
  }
  return joined(l, rows, taps / at_once, dims);
}

/* --- constant weights --- */

/* A loss with AVX-512 counts twice. */
static bool is_faster(const Windows *w, double batch) {
  const Convolution *c = w->c;
  uint32_t taps = c->kernel[0] * c->kernel[1], beyond = c->out_channels % 16;
  double image = batch * w->in[0] * w->in[1] * c->in_channels,
         gathered = batch * w->out[0] * w->out[1] * taps * c->in_channels,
         products = gathered * sixteens(c->out_channels),
         copies = gathered * (taps > 1 ? TIME_READ + TIME_COPIED : TIME_READ) +
                  (c->padding[0] || c->padding[1] ? image * TIME_READ : 0) + taps * TIME_SMALL_NODE,
         loss = (products * with_avx512.product + copies) / (products * with_avx512.node),
         gain = products * with_avx2.node / (products * with_avx2.product + copies);
  return gathered * sizeof(float) <= MOST_BYTES && c->in_channels >= LEAST_CHANNELS &&
         (beyond == 0 || beyond > EIGHT) && loss < MOST_LOSS && gain > loss * loss;
}

bool xl_by_product(XnnLowering *l, NodeId n, const Convolution *c, XnnId in, XnnId out) {
  Graph *g = l->g;
  Windows w = {.c = c};
  ValueId weight = node_value(g, n, 1), bias = node_value(g, n, 2);
  uint64_t taps = (uint64_t)c->kernel[0] * c->kernel[1];
  bool is_product = taps == 1 && c->stride[0] == 1 && c->stride[1] == 1;
  SymInt batch = value_dim(g, node_value(g, n, 0), 0), dims[WINDOW_RANK];
  if (!xl_ok(l) || c->transposed || c->groups > 1 || is_product || taps > MOST_JOINED ||
      !value_is_const(g, weight) || !xl_image_sizes(l, n, c, w.in, w.out) ||
      !is_faster(&w, (double)sym_upper(&g->syms, batch)))
    return false;
  uint32_t length = (uint32_t)taps * c->in_channels,
           filter[] = {c->out_channels, c->kernel[0], c->kernel[1], c->in_channels};
  XnnId windows = xl_windows_of(l, &w, xl_window_view(l, &w, batch, in), dims),
        image = xl_reshaped(l, windows, (SymInt[]){batch, w.out[0], w.out[1], length}, 4),
        weights = xl_permuted_constant(l, weight, 4, filter, (uint32_t[]){0, 2, 3, 1},
                                       value_dtype(g, weight) == DTYPE_F16),
        shift = bias ? xl_filter(l, bias) : XNN_NONE;
  if (xl_ok(l))
    memcpy(l->x.values[weights].dims, (uint32_t[]){c->out_channels, 1, 1, length}, sizeof filter);
  ConvolutionNode node = {.kind = XNN_CONV2D,
                          .kernel = {1, 1},
                          .stride = {1, 1},
                          .dilation = {1, 1},
                          .groups = 1,
                          .in_channels = length,
                          .out_channels = c->out_channels};
  xl_convolution_node(l, &node, image, weights, shift, out);
  return true;
}
