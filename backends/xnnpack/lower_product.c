/* Convolutions of constant weights as products.
 *
 * XNNPACK's loop for kernels of several taps takes 2.4 times as long as the one for products on
 * CPUs with AVX2, whatever the sizes: as ExecuTorch 1.4.1 is built, one of its ten sums is in
 * memory there. With AVX-512 both are equally fast, and the copies are lost. So a convolution is a
 * product where that gains much more with AVX2 than it loses with AVX-512: for many output
 * channels.
 *
 * BY_WINDOWS: what all taps meet is next to each other. BY_PATCHES: the same where windows neither
 * overlap nor leave gaps, so that each element only changes its place. BY_ROWS: what the taps of a
 * row of the kernel meet is; the product gives the rows of the kernel each a result of its own, and
 * these are shifted and added. That copies a third of the image's elements, and three times the
 * result's.
 *
 * BY_PICKS, where the sizes of images vary, so that nothing can be cut out by them: the image is
 * repeated for each tap along its channels, and a depthwise convolution picks of each copy what its
 * tap meets: its kernel is 1 there and 0 elsewhere. An infinite element makes NaN of its window.
 *
 * Where the copies would take much memory, the result is computed in strips, whose copies take the
 * place of each other; but XNNPACK packs the weights for each strip. */
#include "backends/xnnpack/product.h"

static const uint32_t channels_last[] = {0, 2, 3,
                                         1}; /* of weights: their taps, then the channels */

/* The product of v->in, an image [n, h, w, length], and the weights, permuted and seen as [outputs,
 * 1, 1, length]. */
static void add_product(XnnLowering *l, const ConvolutionValues *v, uint32_t outputs,
                        uint32_t length) {
  const uint32_t dims[] = {outputs, 1, 1, length};
  ConvolutionNode node = {.kind = XNN_CONV2D,
                          .kernel = {1, 1},
                          .stride = {1, 1},
                          .dilation = {1, 1},
                          .groups = 1,
                          .in_channels = length,
                          .out_channels = outputs};
  if (xl_ok(l))
    memcpy(l->x.values[v->weights].dims, dims, sizeof dims);
  xl_convolution_node(l, &node, v->in, v->weights, v->bias, v->out);
}

/* v->in, the windows, as pixels of an image: the product with all weights of each output. */
static void by_pixels(XnnLowering *l, const Windows *w, ConvolutionValues v) {
  const Convolution *c = w->c;
  uint32_t length = c->kernel[0] * c->kernel[1] * c->in_channels;
  SymInt pixels[] = {w->batch, w->out[0], w->out[1], length};
  v.in = xl_reshaped(l, v.in, pixels, 4);
  add_product(l, &v, c->out_channels, length);
}

/* Patches of an image in NHWC next to each other. */
static XnnId patches_of(XnnLowering *l, const Windows *w, XnnId in) {
  const Convolution *c = w->c;
  const uint32_t perm[] = {0, 1, 3, 2, 4};
  uint32_t rows = c->kernel[0], run = c->kernel[1] * c->in_channels;
  SymInt lines[] = {w->batch, w->out[0], rows, w->out[1], run},
         patches[] = {w->batch, w->out[0], w->out[1], rows, run};
  if (rows == 1)
    return in;
  XnnId seen = xl_reshaped(l, in, lines, 5), moved = xl_sym_temp(l, 5, patches);
  xl_transpose(l, seen, perm, 5, moved);
  return moved;
}

static XnnId gathered(XnnLowering *l, ProductWay way, Windows *w, XnnId in) {
  SymInt dims[WINDOW_RANK];
  if (way == BY_PATCHES)
    return patches_of(l, w, in);
  return xl_windows_of(l, w, xl_window_view(l, w, in), dims);
}

/* The weights in the order that perm brings [outputs, channels, rows, columns] to. */
static XnnId permuted_weights(XnnLowering *l, NodeId n, const Convolution *c,
                              const uint32_t perm[4]) {
  ValueId weight = node_value(l->g, n, 1);
  const uint32_t own[] = {c->out_channels, c->in_channels, c->kernel[0], c->kernel[1]};
  uint32_t filter[] = {own[perm[0]], own[perm[1]], own[perm[2]], own[perm[3]]};
  return xl_permuted_constant(l, weight, 4, filter, perm, value_dtype(l->g, weight) == DTYPE_F16);
}

static XnnId bias_of(XnnLowering *l, NodeId n) {
  ValueId bias = node_value(l->g, n, 2);
  return bias ? xl_filter(l, bias) : XNN_NONE;
}

/* The bias for the results of the first row of the kernel, zeros for the others. */
static XnnId bias_of_first_row(XnnLowering *l, ValueId bias, const Convolution *c) {
  uint32_t count = c->kernel[0] * c->out_channels;
  if (!bias || !xl_ok(l))
    return XNN_NONE;
  int32_t *from = ARENA_ARRAY(l->arena, int32_t, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++)
    from[i] = i < c->out_channels ? (int32_t)i : XL_NO_ELEMENT;
  return xl_picked_constant(l, bias, false, 1, &count, from);
}

/* The part of all results, [n, rows, columns, kernel's rows * outputs], that row r of the kernel
 * gives the result. */
static XnnId part_of_row(XnnLowering *l, const Windows *w, uint32_t r, XnnId all, XnnId out) {
  const Convolution *c = w->c;
  const uint32_t offsets[] = {0, r * c->dilation[0], 0, r * c->out_channels},
                 sizes[] = {0, w->out[0], 0, c->out_channels};
  XnnId part = xl_temp_like(l, out);
  xl_slice_dims(l, all, 4, offsets, sizes, part);
  return part;
}

static void by_rows(XnnLowering *l, NodeId n, const Windows *whole, XnnId in, XnnId out) {
  const Convolution *c = whole->c;
  Convolution row = *c;
  Windows w = *whole;
  SymInt dims[WINDOW_RANK];
  uint32_t rows = c->kernel[0], length = c->kernel[1] * c->in_channels,
           outputs = rows * c->out_channels,
           filter[] = {rows, c->out_channels, c->kernel[1], c->in_channels};
  w.c = &row;
  row.kernel[0] = row.dilation[0] = 1;
  w.out[0] = whole->out[0] + (rows - 1) * c->dilation[0];
  XnnId windows = xl_windows_of(l, &w, xl_window_view(l, &w, in), dims);
  SymInt seen[] = {w.batch, w.out[0], w.out[1], length},
         made[] = {w.batch, w.out[0], w.out[1], outputs};
  ConvolutionValues v = {.in = xl_reshaped(l, windows, seen, 4)};
  XnnId all = v.out = xl_sym_temp(l, 4, made);
  v.weights = xl_permuted_constant(l, node_value(l->g, n, 1), 4, filter, (uint32_t[]){2, 0, 3, 1},
                                   value_dtype(l->g, node_value(l->g, n, 1)) == DTYPE_F16);
  v.bias = bias_of_first_row(l, node_value(l->g, n, 2), c);
  add_product(l, &v, outputs, length);
  XnnId sum = part_of_row(l, whole, 0, all, out);
  for (uint32_t r = 1; r < rows; r++) {
    XnnId next = r + 1 == rows ? out : xl_temp_like(l, out);
    xl_binary(l, XNN_ADD, sum, part_of_row(l, whole, r, all, out), next);
    sum = next;
  }
}

/* [1, kernel's rows, columns, taps * channels]: for each tap 1 where it is. */
static XnnId picking_filter(XnnLowering *l, const Convolution *c) {
  uint32_t taps = c->kernel[0] * c->kernel[1],
           dims[] = {1, c->kernel[0], c->kernel[1], taps * c->in_channels};
  size_t count = (size_t)taps * dims[3];
  float *values = l->trial || !xl_ok(l) ? NULL : ARENA_ARRAY(l->arena, float, count);
  for (uint32_t t = 0; t < taps && values; t++)
    for (uint32_t i = 0; i < c->in_channels; i++)
      values[(size_t)t * dims[3] + t * c->in_channels + i] = 1;
  return xl_floats(l, 4, dims, values);
}

static void by_picks(XnnLowering *l, NodeId n, const Convolution *c, XnnId in, XnnId out) {
  XnnId copies[DEPTHWISE_TAPS];
  uint32_t taps = c->kernel[0] * c->kernel[1], channels = taps * c->in_channels;
  if (!xl_ok(l))
    return;
  for (uint32_t t = 0; t < taps; t++)
    copies[t] = in;
  XnnId wide = xl_temp_like(l, in), windows = xl_temp_like(l, out);
  l->x.values[wide].dims[3] = l->x.values[windows].dims[3] = channels;
  xl_concatenate(l, copies, taps, 3, wide);
  ConvolutionNode pick = {.kind = XNN_DEPTHWISE_CONV2D,
                          .groups = channels,
                          .in_channels = channels,
                          .out_channels = channels};
  for (uint32_t i = 0; i < 2; i++) {
    pick.before[i] = pick.after[i] = c->padding[i];
    pick.kernel[i] = c->kernel[i];
    pick.stride[i] = c->stride[i];
    pick.dilation[i] = c->dilation[i];
  }
  xl_convolution_node(l, &pick, wide, picking_filter(l, c), XNN_NONE, windows);
  ConvolutionValues v = {.in = windows, .bias = bias_of(l, n), .out = out};
  v.weights = permuted_weights(l, n, c, channels_last);
  add_product(l, &v, c->out_channels, channels);
}

static void one_strip(XnnLowering *l, NodeId n, ProductWay way, Windows *w, XnnId in, XnnId out) {
  if (way == BY_ROWS) {
    by_rows(l, n, w, in, out);
    return;
  }
  ConvolutionValues v = {.bias = bias_of(l, n), .out = out};
  v.weights = permuted_weights(l, n, w->c, channels_last);
  v.in = gathered(l, way, w, in);
  by_pixels(l, w, v);
}

/* What rows (dim 0) or columns (dim 1) begin to end - 1 of the result read of the image: sets begin
 * to the first one. */
static Windows windows_of_strip(const Windows *whole, uint32_t dim, uint32_t *begin, uint32_t end) {
  const Convolution *c = whole->c;
  Windows w = *whole;
  int64_t first = (int64_t)*begin * c->stride[dim] - whole->before[dim],
          last = (int64_t)(end - 1) * c->stride[dim] - whole->before[dim] +
                 (int64_t)(c->kernel[dim] - 1) * c->dilation[dim];
  w.out[dim] = end - *begin;
  w.before[dim] = (uint32_t)max_i64(-first, 0);
  *begin = (uint32_t)max_i64(first, 0);
  w.in[dim] = (uint32_t)(min_i64(last + 1, whole->in[dim]) - *begin);
  return w;
}

static void in_strips(XnnLowering *l, NodeId n, const ProductPlan *plan, Windows *whole, XnnId in,
                      XnnId out) {
  XnnId parts[MOST_STRIPS];
  uint32_t axis = plan->axis, count = plan->strips;
  if (count == 1 || !xl_ok(l)) {
    one_strip(l, n, plan->way, whole, in, out);
    return;
  }
  uint32_t size = l->x.values[out].dims[axis];
  for (uint32_t i = 0; i < count; i++) {
    uint32_t begin = size * i / count, end = size * (i + 1) / count;
    XnnValue like = l->x.values[out];
    like.dims[axis] = end - begin;
    parts[i] = xl_temp(l, like.rank, like.dims);
    Windows w = axis ? windows_of_strip(whole, axis - 1, &begin, end) : *whole;
    uint32_t read = axis ? w.in[axis - 1] : end - begin;
    w.batch = axis ? w.batch : (SymInt)read;
    one_strip(l, n, plan->way, &w, xl_sliced(l, in, axis, begin, read), parts[i]);
  }
  xl_concatenate(l, parts, count, axis, out);
}

static ProductPlan plan_of(const XnnLowering *l, const Windows *w, bool floats, bool strips) {
  return xl_plan_product(&(ProductJob){.w = w,
                                       .cpu = l->cpu,
                                       .batch = (double)sym_upper(&l->g->syms, w->batch),
                                       .fixed = sym_is_const(w->batch),
                                       .floats = floats,
                                       .strips = strips});
}

/* Whether a product could take its place. */
static bool is_candidate(const XnnLowering *l, NodeId n, const Convolution *c) {
  return xl_ok(l) && !c->transposed && c->groups == 1 &&
         value_is_const(l->g, node_value(l->g, n, 1));
}

bool xl_by_planar_patches(XnnLowering *l, NodeId n, const Convolution *c) {
  static const uint32_t perm[] = {0, 2, 4, 1, 3, 5}, channels_first[] = {0, 1, 2, 3};
  ValueId x = node_value(l->g, n, 0);
  Windows w;
  if (c->rank != 2 || xl_has_nhwc(l, x) || xl_has_permuted(l, x) || xl_is_moved(l, x) ||
      !is_candidate(l, n, c) || !xl_whole_windows(l, n, c, &w))
    return false;
  if (plan_of(l, &w, false, false).way != BY_PATCHES)
    return false;
  SymInt planes[] = {w.batch, c->in_channels, w.out[0], c->kernel[0], w.out[1], c->kernel[1]},
         patches[6];
  for (uint32_t i = 0; i < 6; i++)
    patches[i] = planes[perm[i]];
  XnnId view = xl_reshaped(l, xl_plain(l, x), planes, 6), moved = xl_sym_temp(l, 6, patches);
  xl_transpose(l, view, perm, 6, moved);
  ConvolutionValues v = {.in = moved, .out = xl_result_nhwc(l, node_result(l->g, n, 0))};
  v.bias = bias_of(l, n);
  v.weights = permuted_weights(l, n, c, channels_first);
  by_pixels(l, &w, v);
  return true;
}

/* The windows from in to out, with the sizes that these have, at most. */
static Windows windows_between(const XnnLowering *l, const Convolution *c, const uint32_t before[2],
                               XnnId in, XnnId out) {
  const uint32_t *from = l->x.values[in].dims, *to = l->x.values[out].dims;
  return (Windows){
      .c = c, .in = {from[1], from[2]}, .out = {to[1], to[2]}, .before = {before[0], before[1]}};
}

/* A convolution of images whose sizes vary. */
static bool by_varying_product(XnnLowering *l, NodeId n, const Convolution *c, bool floats,
                               XnnId in, XnnId out) {
  Windows w = windows_between(l, c, c->padding, in, out);
  ProductJob job = {
      .w = &w, .cpu = l->cpu, .batch = l->x.values[in].dims[0], .floats = floats, .varying = true};
  if (xl_plan_product(&job).way == BY_NODE)
    return false;
  by_picks(l, n, c, in, out);
  return true;
}

bool xl_by_product(XnnLowering *l, NodeId n, const Convolution *c, XnnId in, XnnId out) {
  Windows w;
  ValueId weight = node_value(l->g, n, 1), bias = node_value(l->g, n, 2);
  if (!is_candidate(l, n, c))
    return false;
  bool floats = dtype_is_float(value_dtype(l->g, weight)) && (!bias || value_is_const(l->g, bias));
  if (!xl_whole_windows(l, n, c, &w))
    return by_varying_product(l, n, c, floats, in, out);
  ProductPlan plan = plan_of(l, &w, floats, true);
  if (plan.way == BY_NODE)
    return false;
  in_strips(l, n, &plan, &w, in, out);
  return true;
}

void xl_node_or_product(XnnLowering *l, const ConvolutionNode *node, bool floats, SymInt batch,
                        const ConvolutionValues *v) {
  if (!xl_ok(l))
    return;
  Convolution c = {.rank = 2,
                   .stride = {node->stride[0], node->stride[1]},
                   .dilation = {node->dilation[0], node->dilation[1]},
                   .kernel = {node->kernel[0], node->kernel[1]},
                   .in_channels = node->in_channels,
                   .out_channels = node->out_channels};
  Windows w = windows_between(l, &c, node->before, v->in, v->out);
  w.batch = batch;
  ProductPlan plan = {.way = BY_NODE};
  if (floats && node->kind == XNN_CONV2D && node->groups == 1)
    plan = plan_of(l, &w, false, false);
  if (plan.way == BY_NODE) {
    xl_convolution_node(l, node, v->in, v->weights, v->bias, v->out);
    return;
  }
  ConvolutionValues of_windows = *v;
  of_windows.in = gathered(l, plan.way, &w, v->in);
  by_pixels(l, &w, of_windows);
}
