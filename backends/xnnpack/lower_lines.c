/* Depthwise convolutions of few channels.
 *
 * XNNPACK computes several channels at a time, and few take as long as those. So the columns of all
 * channels become the channels of a kernel along rows, [n, h, 1, c * w] or [n, h, 1, w * c], a node
 * for each column of the kernel on an image shifted by that column; or rows and columns change
 * places. */
#include "backends/xnnpack/convolution.h"

enum {
  FEW = 6,
  LEAST_LINE = 28,
  MOST_SHIFTS = 9,
  LINES_A_TAP = 3, /* which a weight for each tap and place is worth */
  MOST_WEIGHTS = 1 << 17
};

/* The dim that the kernel goes along, and the other one, whose places are channels. */
typedef struct Lines {
  const Convolution *c;
  uint32_t along, across;
  uint32_t channels; /* of such an image: those of all places */
  uint32_t unit;     /* channels that are neighbours: all (w * c), or 1 (c * w) */
  SymInt batch;
  SymInt in[2], out[2];
} Lines;

static bool reads_few_channels(XnnLowering *l, NodeId n, const Convolution *c) {
  ValueId x = node_value(l->g, n, 0), weight = node_value(l->g, n, 1);
  return c->rank == 2 && !c->transposed && c->in_channels <= FEW && c->groups == c->in_channels &&
         c->out_channels == c->in_channels && value_is_const(l->g, weight) &&
         value_dtype(l->g, weight) == DTYPE_F32 && xl_dynamic_dim_count(l->g, x) <= 1;
}

/* Whether the kernel can go along that dim. */
static bool goes_along(XnnLowering *l, const Lines *d, uint32_t along) {
  const Convolution *c = d->c;
  uint32_t across = 1 - along;
  uint64_t taps = (uint64_t)c->kernel[0] * c->kernel[1], line = (uint64_t)d->out[across];
  return c->stride[across] == 1 && sym_is_const(d->out[across]) && line >= LEAST_LINE &&
         c->kernel[across] <= MOST_SHIFTS && c->kernel[along] <= DEPTHWISE_TAPS &&
         taps * LINES_A_TAP <= xl_upper(l, d->out[along]) &&
         line * c->in_channels * taps <= MOST_WEIGHTS;
}

/* Along the dim that leaves fewer shifts. */
static bool read_lines(XnnLowering *l, NodeId n, const Convolution *c, Lines *d) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  *d = (Lines){.c = c, .batch = value_dim(g, x, 0)};
  if (!reads_few_channels(l, n, c))
    return false;
  for (uint32_t i = 0; i < 2; i++) {
    d->in[i] = value_dim(g, x, 2 + i);
    d->out[i] = value_dim(g, y, 2 + i);
  }
  bool rows = goes_along(l, d, 0), columns = goes_along(l, d, 1);
  d->along = columns && (!rows || c->kernel[0] < c->kernel[1]);
  d->across = 1 - d->along;
  d->channels = (uint32_t)d->out[d->across] * c->in_channels;
  return rows || columns;
}

/* The channel of the image that channel i of a line belongs to. */
static uint32_t channel_of(const Lines *d, uint32_t i) {
  uint32_t count = d->c->in_channels;
  return d->unit == 1 ? i / (d->channels / count) : i % count;
}

/* For each place of a line the taps of a row or column of the kernel, [1, taps, 1, c * places]. */
static XnnId weights_of(XnnLowering *l, NodeId n, const Lines *d, uint32_t shift) {
  const Convolution *c = d->c;
  uint32_t taps = c->kernel[d->along], step[] = {c->kernel[1], 1},
           dims[] = {1, taps, 1, d->channels};
  int32_t *from = ARENA_ARRAY(l->arena, int32_t, (size_t)taps * d->channels), *to = from;
  for (uint32_t t = 0; t < taps; t++)
    for (uint32_t i = 0; i < d->channels; i++)
      *to++ = (int32_t)(channel_of(d, i) * c->kernel[0] * c->kernel[1] + t * step[d->along] +
                        shift * step[d->across]);
  return xl_picked_constant(l, node_value(l->g, n, 1), true, 4, dims, from);
}

static XnnId bias_of(XnnLowering *l, ValueId bias, const Lines *d) {
  if (!bias)
    return XNN_NONE;
  int32_t *from = ARENA_ARRAY(l->arena, int32_t, d->channels);
  for (uint32_t i = 0; i < d->channels; i++)
    from[i] = (int32_t)channel_of(d, i);
  return xl_picked_constant(l, bias, true, 1, &d->channels, from);
}

/* Lines [n, h, c / unit, w * unit] with zeros before and after each, which dims then have. */
static XnnId padded_lines(XnnLowering *l, const Lines *d, SymInt dims[4], XnnId in) {
  uint32_t zeros = d->c->padding[d->across] * d->unit;
  if (!zeros)
    return in;
  const XnnPad pad = {.rank = 4, .before = {0, 0, 0, zeros}, .after = {0, 0, 0, zeros}};
  dims[3] = sym_add(&l->g->syms, dims[3], 2 * (int64_t)zeros);
  XnnId out = xl_sym_temp(l, 4, dims);
  xl_pad(l, in, &pad, out);
  return out;
}

/* The convolution with a row or column of the kernel. */
static XnnId line_node(XnnLowering *l, NodeId n, const Lines *d, uint32_t shift, XnnId in) {
  const Convolution *c = d->c;
  ConvolutionNode node = {.kind = XNN_DEPTHWISE_CONV2D,
                          .before = {c->padding[d->along], 0},
                          .after = {c->padding[d->along], 0},
                          .kernel = {c->kernel[d->along], 1},
                          .stride = {c->stride[d->along], 1},
                          .dilation = {c->dilation[d->along], 1},
                          .groups = d->channels,
                          .in_channels = d->channels,
                          .out_channels = d->channels};
  XnnId out = xl_sym_temp(l, 4, (SymInt[]){d->batch, d->out[d->along], 1, d->channels});
  XnnId bias = shift ? XNN_NONE : bias_of(l, node_value(l->g, n, 2), d);
  xl_convolution_node(l, &node, in, weights_of(l, n, d, shift), bias, out);
  return out;
}

bool xl_by_lines(XnnLowering *l, NodeId n, const Convolution *c) {
  Lines d;
  if (!xl_ok(l) || !read_lines(l, n, c, &d))
    return false;
  ValueId x = node_value(l->g, n, 0), y = node_result(l->g, n, 0);
  Permuted t = xl_any_order(l, x);
  bool last = t.axis[1] == 3;
  d.unit = last ? c->in_channels : 1;
  uint32_t channel = last ? 3 : 2, place = 5 - channel, perm[4] = {t.axis[0], t.axis[2 + d.along]};
  perm[channel] = t.axis[1];
  perm[place] = t.axis[2 + d.across];
  xl_permute_axes(l, &t, perm, 4);
  SymInt rows = d.in[d.along], outer = c->in_channels / d.unit, length = d.channels / outer;
  SymInt dims[] = {d.batch, rows, outer, sym_mul(&l->g->syms, d.in[d.across], d.unit)},
         image[] = {d.batch, rows, 1, d.channels}, result[4] = {d.batch, d.out[d.along]};
  XnnId in = last ? xl_reshaped(l, t.id, dims, 4) : t.id, sum = XNN_NONE;
  in = padded_lines(l, &d, dims, in);
  for (uint32_t i = 0; i < c->kernel[d.across]; i++) {
    XnnId shifted = in;
    if (dims[3] != length)
      shifted = xl_sliced(l, in, 3, i * c->dilation[d.across] * d.unit, (uint32_t)length);
    XnnId part = line_node(l, n, &d, i, last ? shifted : xl_reshaped(l, shifted, image, 4));
    if (i) {
      XnnId total = xl_temp_like(l, part);
      xl_binary(l, XNN_ADD, sum, part, total);
      part = total;
    }
    sum = part;
  }
  result[channel] = c->in_channels;
  result[place] = d.out[d.across];
  Permuted at = {.id = xl_reshaped(l, sum, result, 4), .axis = {0, (uint8_t)channel}};
  at.axis[2 + d.along] = 1;
  at.axis[2 + d.across] = (uint8_t)place;
  xl_set_permuted(l, y, at);
  return true;
}
