/* Convolutions whose weights arrive at run time: modulated layers, correlation with a template.
 *
 * XNNPACK's nodes for convolutions pack constant weights. Here the elements that each tap meets are
 * sliced out of the padded image, next to each other as the channels of one image, and a product
 * with the weights as a matrix adds them up. Where each channel has a kernel of its own, the slices
 * are multiplied by its weights and added.
 *
 * An image is seen as [n, rows, stride, columns, stride, c], so that also the elements which a
 * stride skips between are slices. */
#include "backends/xnnpack/convolution.h"

enum { MAX_TAPS = 256, MAX_ADDED_TAPS = 64, VIEW_RANK = 6 };

typedef struct Windows {
  const Convolution *c;
  uint32_t in[2], out[2];
  SymInt dims[VIEW_RANK]; /* of the view of the padded image */
} Windows;

/* The last elements that windows meet may be missing to a whole stride, and those behind them are
 * seen all the same. */
static uint32_t whole_strides(const Windows *w, uint32_t i) {
  const Convolution *c = w->c;
  uint32_t met = (c->kernel[i] - 1) * c->dilation[i] + (w->out[i] - 1) * c->stride[i] + 1,
           there = w->in[i] + c->padding[i], all = met > there ? met : there;
  return (all + c->stride[i] - 1) / c->stride[i];
}

static XnnId view_of(XnnLowering *l, Windows *w, SymInt batch, XnnId in) {
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
  return xl_reshaped(l, in, dims, VIEW_RANK);
}

/* Elements [begin, begin + size) of one dim, all of which may be all there are. */
static XnnId part(XnnLowering *l, XnnId in, SymInt dims[VIEW_RANK], uint32_t axis, uint32_t begin,
                  uint32_t size) {
  if (dims[axis] == size)
    return in;
  dims[axis] = size;
  XnnId out = xl_sym_temp(l, VIEW_RANK, dims);
  xl_slice(l, in, axis, VIEW_RANK, begin, size, out);
  return out;
}

/* What tap `tap` of dim i meets. */
static XnnId met(XnnLowering *l, const Windows *w, uint32_t i, uint32_t tap, XnnId in,
                 SymInt dims[VIEW_RANK]) {
  uint32_t at = tap * w->c->dilation[i], stride = w->c->stride[i];
  in = part(l, in, dims, 1 + 2 * i, at / stride, w->out[i]);
  return part(l, in, dims, 2 + 2 * i, at % stride, 1);
}

/* items next to each other in the last dim, which has c elements in each. */
static XnnId joined(XnnLowering *l, const XnnId *items, uint32_t count, SymInt dims[VIEW_RANK]) {
  if (count == 1 || !xl_ok(l))
    return items[0];
  dims[VIEW_RANK - 1] *= count;
  XnnId out = xl_sym_temp(l, VIEW_RANK, dims);
  xl_concatenate(l, items, count, VIEW_RANK - 1, out);
  return out;
}

/* [n, rows, 1, columns, 1, taps * c] */
static XnnId windows_of(XnnLowering *l, const Windows *w, XnnId in, SymInt dims[VIEW_RANK]) {
  XnnId rows[MAX_TAPS], taps[MAX_TAPS];
  for (uint32_t i = 0; i < w->c->kernel[0]; i++) {
    SymInt row_dims[VIEW_RANK];
    memcpy(row_dims, w->dims, sizeof row_dims);
    XnnId row = met(l, w, 0, i, in, row_dims);
    for (uint32_t k = 0; k < w->c->kernel[1]; k++) {
      memcpy(dims, row_dims, sizeof row_dims);
      taps[k] = met(l, w, 1, k, row, dims);
    }
    rows[i] = joined(l, taps, w->c->kernel[1], dims);
  }
  return joined(l, rows, w->c->kernel[0], dims);
}

/* The weights [out, in / groups, kh, kw] with their dims in the order perm, as the matrix dims. */
static XnnId matrix_of(XnnLowering *l, const Convolution *c, ValueId weight, const uint32_t perm[4],
                       const SymInt *dims, uint32_t rank) {
  uint32_t in = c->in_channels / c->groups,
           from[] = {c->out_channels, in, c->kernel[0], c->kernel[1]}, to[4];
  XnnId all = xl_plain(l, weight);
  if (c->rank == 1)
    all = xl_reshaped(l, all, (SymInt[]){c->out_channels, in, 1, c->kernel[1]}, 4);
  for (uint32_t i = 0; i < 4; i++)
    to[i] = from[perm[i]];
  XnnId permuted = xl_temp(l, 4, to);
  xl_transpose(l, all, perm, 4, permuted);
  return xl_reshaped(l, permuted, dims, rank);
}

static XnnId product_of(XnnLowering *l, NodeId n, Windows *w, SymInt batch, XnnId in) {
  const Convolution *c = w->c;
  SymInt dims[VIEW_RANK], length = (SymInt)c->kernel[0] * c->kernel[1] * c->in_channels,
                          places = sym_mul(&l->g->syms, batch, (SymInt)w->out[0] * w->out[1]);
  XnnId windows = windows_of(l, w, view_of(l, w, batch, in), dims);
  windows = xl_reshaped(l, windows, (SymInt[]){1, places, length}, 3);
  XnnId matrix = matrix_of(l, c, node_value(l->g, n, 1), (uint32_t[]){2, 3, 1, 0},
                           (SymInt[]){1, length, c->out_channels}, 3),
        out = xl_sym_temp(l, 3, (SymInt[]){1, places, c->out_channels});
  xl_binary(l, XNN_BATCH_MATRIX_MULTIPLY, windows, matrix, out);
  return out;
}

/* The elements that each tap meets times the weights of the tap, added. */
static XnnId sum_of(XnnLowering *l, NodeId n, Windows *w, SymInt batch, XnnId in) {
  const Convolution *c = w->c;
  uint32_t taps = c->kernel[0] * c->kernel[1];
  XnnId view = view_of(l, w, batch, in),
        weights = matrix_of(l, c, node_value(l->g, n, 1), (uint32_t[]){2, 3, 1, 0},
                            (SymInt[]){taps, c->out_channels}, 2),
        sum = XNN_NONE;
  for (uint32_t t = 0; t < taps && xl_ok(l); t++) {
    SymInt dims[VIEW_RANK];
    memcpy(dims, w->dims, sizeof dims);
    XnnId elements = met(l, w, 0, t / c->kernel[1], view, dims);
    elements = met(l, w, 1, t % c->kernel[1], elements, dims);
    XnnId factors = weights, product = xl_sym_temp(l, VIEW_RANK, dims);
    if (taps > 1) {
      factors = XL_TEMP(l, 1, c->out_channels);
      xl_slice(l, weights, 0, 2, t, 1, factors);
    }
    xl_binary(l, XNN_MULTIPLY, elements, factors, product);
    if (sum != XNN_NONE) {
      XnnId total = xl_sym_temp(l, VIEW_RANK, dims);
      xl_binary(l, XNN_ADD, sum, product, total);
      product = total;
    }
    sum = product;
  }
  return sum;
}

static bool is_small(const XnnLowering *l, NodeId n, const Windows *w) {
  const Convolution *c = w->c;
  uint64_t size = 4 * (uint64_t)c->in_channels;
  bool ok = mul_u64(
      size, (uint64_t)sym_upper(&l->g->syms, value_dim(l->g, node_value(l->g, n, 0), 0)), &size);
  for (uint32_t i = 0; i < 2; i++) {
    uint64_t met =
                 (uint64_t)(c->kernel[i] - 1) * c->dilation[i] + (uint64_t)w->out[i] * c->stride[i],
             there = (uint64_t)w->in[i] + c->padding[i] + c->stride[i];
    ok = ok && mul_u64(size, (met > there ? met : there) * c->kernel[i], &size);
  }
  return ok && size <= INT32_MAX;
}

bool xl_by_windows(XnnLowering *l, NodeId n, const Convolution *c, XnnId in, XnnId out) {
  Graph *g = l->g;
  Windows w = {.c = c};
  ValueId weight = node_value(g, n, 1), bias = node_value(g, n, 2);
  uint64_t taps = (uint64_t)c->kernel[0] * c->kernel[1];
  bool each = c->depthwise && c->out_channels == c->in_channels;
  if (c->transposed || (c->groups > 1 && !each) || taps > (each ? MAX_ADDED_TAPS : MAX_TAPS))
    return xl_refuse(l, XNN_RULE_RUNTIME_WEIGHTS, R_STR("argument", "weight"));
  if (!xl_image_sizes(l, n, c, w.in, w.out) || !type_is_static(value_type(g, weight)))
    return xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", 2));
  if (!is_small(l, n, &w))
    return xl_refuse(l, XNN_RULE_SIZE_LIMIT);
  SymInt batch = value_dim(g, node_value(g, n, 0), 0),
         dims[] = {batch, w.out[0], w.out[1], c->out_channels};
  XnnId sums = each ? sum_of(l, n, &w, batch, in) : product_of(l, n, &w, batch, in);
  if (bias) {
    XnnId whole = xl_ok(l) ? xl_temp_like(l, sums) : XNN_NONE;
    xl_binary(l, XNN_ADD, sums, xl_plain(l, bias), whole);
    sums = whole;
  }
  xl_reshape(l, sums, dims, 4, out);
  return xl_ok(l);
}
