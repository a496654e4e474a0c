/* Convolutions whose weights arrive at run time: modulated layers, correlation with a template.
 *
 * XNNPACK's nodes for convolutions pack constant weights. Here the elements that each tap meets are
 * sliced out of the padded image, next to each other as the channels of one image, and a product
 * with the weights as a matrix adds them up. Where each channel has a kernel of its own, the slices
 * are multiplied by its weights and added.
 */
#include "backends/xnnpack/convolution.h"

enum { MAX_ADDED_TAPS = 64 };

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

static XnnId product_of(XnnLowering *l, NodeId n, Windows *w, XnnId in) {
  const Convolution *c = w->c;
  SymInt dims[WINDOW_RANK], length = (SymInt)c->kernel[0] * c->kernel[1] * c->in_channels,
                            places = sym_mul(&l->g->syms, w->batch, (SymInt)w->out[0] * w->out[1]);
  XnnId windows = xl_windows_of(l, w, xl_window_view(l, w, in), dims);
  windows = xl_reshaped(l, windows, (SymInt[]){1, places, length}, 3);
  XnnId matrix = matrix_of(l, c, node_value(l->g, n, 1), (uint32_t[]){2, 3, 1, 0},
                           (SymInt[]){1, length, c->out_channels}, 3),
        out = xl_sym_temp(l, 3, (SymInt[]){1, places, c->out_channels});
  xl_binary(l, XNN_BATCH_MATRIX_MULTIPLY, windows, matrix, out);
  return out;
}

/* The elements that each tap meets times the weights of the tap, added. */
static XnnId sum_of(XnnLowering *l, NodeId n, Windows *w, XnnId in) {
  const Convolution *c = w->c;
  uint32_t taps = c->kernel[0] * c->kernel[1];
  XnnId view = xl_window_view(l, w, in),
        weights = matrix_of(l, c, node_value(l->g, n, 1), (uint32_t[]){2, 3, 1, 0},
                            (SymInt[]){taps, c->out_channels}, 2),
        sum = XNN_NONE;
  for (uint32_t t = 0; t < taps && xl_ok(l); t++) {
    SymInt dims[WINDOW_RANK];
    XnnId elements = xl_met_by_tap(l, w, t, view, dims);
    XnnId factors = weights, product = xl_sym_temp(l, WINDOW_RANK, dims);
    if (taps > 1) {
      factors = XL_TEMP(l, 1, c->out_channels);
      xl_slice(l, weights, 0, t, 1, factors);
    }
    xl_binary(l, XNN_MULTIPLY, elements, factors, product);
    if (sum != XNN_NONE) {
      XnnId total = xl_sym_temp(l, WINDOW_RANK, dims);
      xl_binary(l, XNN_ADD, sum, product, total);
      product = total;
    }
    sum = product;
  }
  return sum;
}

static bool is_small(const XnnLowering *l, const Windows *w) {
  const Convolution *c = w->c;
  uint64_t size = 4 * (uint64_t)c->in_channels;
  bool ok = mul_u64(size, (uint64_t)sym_upper(&l->g->syms, w->batch), &size);
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
  Windows w;
  ValueId weight = node_value(g, n, 1), bias = node_value(g, n, 2);
  uint64_t taps = (uint64_t)c->kernel[0] * c->kernel[1];
  bool each = c->depthwise && c->out_channels == c->in_channels;
  if (c->transposed || (c->groups > 1 && !each) || taps > (each ? MAX_ADDED_TAPS : MAX_WINDOW_TAPS))
    return xl_refuse(l, XNN_RULE_RUNTIME_WEIGHTS, R_STR("argument", "weight"));
  if (!xl_whole_windows(l, n, c, &w) || !type_is_static(value_type(g, weight)))
    return xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", 2));
  if (!is_small(l, &w))
    return xl_refuse(l, XNN_RULE_SIZE_LIMIT);
  SymInt dims[] = {w.batch, w.out[0], w.out[1], c->out_channels};
  XnnId sums = each ? sum_of(l, n, &w, in) : product_of(l, n, &w, in);
  if (bias) {
    XnnId whole = xl_ok(l) ? xl_temp_like(l, sums) : XNN_NONE;
    xl_binary(l, XNN_ADD, sums, xl_plain(l, bias), whole);
    sums = whole;
  }
  xl_reshape(l, sums, dims, 4, out);
  return xl_ok(l);
}
