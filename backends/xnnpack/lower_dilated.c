/* Dilated convolutions without the taps that fall on padding.
 *
 * XNNPACK multiplies with padding, too. Where the dilation is of the size of the image, that is
 * most of the work: of a kernel of 3 x 3 with dilation 18 on an image of 33 x 33 it is 60 %. A tap,
 * or a row or column of the kernel, that meets the image only for a part of the result is then a
 * convolution of its own, of the part of the image that it meets; the parts are filled up with
 * zeros and added. What is cheaper is taken, in each of the two dims. */
#include "backends/xnnpack/convolution.h"
#include "ir/transform.h"

enum { MAX_TAPS = 16 };

/* Taps of one dim of a kernel, and what of the image they meet. */
typedef struct Part {
  uint32_t tap, taps;     /* the first one, how many */
  uint32_t from, in;      /* elements of the image that are read */
  uint32_t at, out;       /* elements of the result */
  uint32_t before, after; /* padding */
} Part;

typedef struct Axis {
  Part parts[MAX_TAPS];
  uint32_t count, in, out;
} Axis;

typedef struct Dilated {
  const Convolution *c;
  NodeId n;
  SymInt batch;
  Axis axis[2];
} Dilated;

/* One part for each tap, or one for all. */
static bool split_axis(const Convolution *c, uint32_t i, bool split, Axis *a) {
  a->count = 0;
  if (!split) {
    a->parts[a->count++] =
        (Part){0, c->kernel[i], 0, a->in, 0, a->out, c->padding[i], c->padding[i]};
    return true;
  }
  if (c->stride[i] != 1 || c->kernel[i] > MAX_TAPS || c->kernel[i] < 2)
    return false;
  bool whole = false;
  for (uint32_t t = 0; t < c->kernel[i]; t++) {
    int64_t shift = (int64_t)t * c->dilation[i] - c->padding[i];
    int64_t begin = shift < 0 ? -shift : 0, end = a->in - shift < a->out ? a->in - shift : a->out;
    if (begin >= end)
      continue;
    Part p = {t,
              1,
              (uint32_t)(begin + shift),
              (uint32_t)(end - begin),
              (uint32_t)begin,
              (uint32_t)(end - begin),
              0,
              0};
    bool first = p.out == a->out && !whole; /* the others are added to it */
    whole |= first;
    a->parts[a->count++] = p;
    if (first) {
      a->parts[a->count - 1] = a->parts[0];
      a->parts[0] = p;
    }
  }
  return whole;
}

static double cost_of(const Graph *g, const Dilated *d, const Axis axis[2]) {
  const Convolution *c = d->c;
  double in = c->in_channels, out = c->out_channels, cost = 0;
  double outputs = c->groups * sixteens(c->out_channels / c->groups);
  for (uint32_t i = 0; i < axis[0].count; i++) {
    const Part *h = &axis[0].parts[i];
    for (uint32_t k = 0; k < axis[1].count; k++) {
      const Part *w = &axis[1].parts[k];
      double places = (double)h->out * w->out;
      cost += TIME_NODE + places * h->taps * w->taps * (in / c->groups) * outputs * TIME_PRODUCT;
      if (w->out < axis[1].out || k)
        cost += 2 * TIME_NODE + (double)h->in * w->in * in * TIME_READ +
                (double)h->out * axis[1].out * out * TIME_ADDED;
    }
    if (i)
      cost += 2 * TIME_NODE + (double)h->in * axis[1].in * in * TIME_READ +
              (double)axis[0].out * axis[1].out * out * TIME_ADDED;
  }
  return cost * (double)sym_upper(&g->syms, d->batch);
}

static bool choose(const Graph *g, Dilated *d) {
  double best = 0;
  uint32_t chosen = 0;
  for (uint32_t way = 0; way < 4; way++) {
    if (!split_axis(d->c, 0, way & 1, &d->axis[0]) || !split_axis(d->c, 1, way & 2, &d->axis[1]))
      continue;
    double cost = cost_of(g, d, d->axis);
    if (way && 1.1 * cost >= best)
      continue;
    best = cost;
    chosen = way;
  }
  return chosen && split_axis(d->c, 0, chosen & 1, &d->axis[0]) &&
         split_axis(d->c, 1, chosen & 2, &d->axis[1]);
}

static bool read_dilated(XnnLowering *l, NodeId n, const Convolution *c, Dilated *d) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0);
  *d = (Dilated){.c = c, .n = n, .batch = value_dim(g, x, 0)};
  if (c->transposed || c->depthwise || !value_is_const(g, node_value(g, n, 1)) ||
      xl_elements(l, node_value(g, n, 1)) > INT32_MAX ||
      (c->dilation[0] == 1 && c->dilation[1] == 1))
    return false;
  uint32_t in[2], out[2];
  if (!xl_image_sizes(l, n, c, in, out))
    return false;
  for (uint32_t i = 0; i < 2; i++) {
    d->axis[i].in = in[i];
    d->axis[i].out = out[i];
  }
  return true;
}

/* --- nodes --- */

/* The weights of some taps: [out, in / groups, kh, kw] -> [out, rows, columns, in / groups]. They
 * are picked when the program is written. */
static XnnId filter(XnnLowering *l, const Dilated *d, const Part *h, const Part *w) {
  const Convolution *c = d->c;
  ValueId weight = node_value(l->g, d->n, 1);
  bool half = value_dtype(l->g, weight) == DTYPE_F16;
  uint32_t in = c->in_channels / c->groups, dims[] = {c->out_channels, h->taps, w->taps, in};
  if (l->trial || !xl_ok(l))
    return xl_made_constant(l, half, 4, dims, NULL);
  uint64_t taps = (uint64_t)c->kernel[0] * c->kernel[1];
  Transform t = {.source = *value_constant(l->g, weight),
                 .element = half ? sizeof(uint16_t) : sizeof(float),
                 .rank = 4,
                 .dims = {{dims[0], in * taps, 0},
                          {dims[1], c->kernel[1], 0},
                          {dims[2], 1, 0},
                          {dims[3], taps, 0}}};
  uint64_t skipped = ((uint64_t)h->tap * c->kernel[1] + w->tap) * t.element;
  t.source = constant_run(t.source, skipped, t.source.size - skipped);
  SymInt sizes[] = {dims[0], dims[1], dims[2], dims[3]};
  TypeId type = graph_tensor_type(l->g, value_dtype(l->g, weight), 4, sizes, ORDER_CONTIGUOUS);
  ValueId v = graph_add_constant(l->g, type, constant_transform(l->g, &t), 0);
  return xnn_constant(&l->x, half ? XNN_FP16 : XNN_FP32, 4, dims, (XnnData){.v = v});
}

/* The part of an image that the taps meet in one dim. */
static XnnId met(XnnLowering *l, const Dilated *d, uint32_t i, const Part *p, XnnId in,
                 SymInt dims[4]) {
  if (p->in == d->axis[i].in)
    return in;
  dims[1 + i] = p->in;
  XnnId out = xl_sym_temp(l, 4, dims);
  xl_slice(l, in, 1 + i, p->from, p->in, out);
  return out;
}

/* sum plus a part that is filled up in one dim; dims: of the part. */
static XnnId added(XnnLowering *l, const Dilated *d, uint32_t i, const Part *p, XnnId part,
                   XnnId sum, SymInt dims[4]) {
  const Axis *a = &d->axis[i];
  SymInt own[4];
  XnnPad pad = {.dims = own, .rank = 4};
  pad.before[1 + i] = p->at;
  pad.after[1 + i] = a->out - p->at - p->out;
  memcpy(own, dims, sizeof own);
  dims[1 + i] = a->out;
  if (p->out < a->out) {
    XnnId whole = xl_sym_temp(l, 4, dims);
    xl_pad(l, part, &pad, whole);
    part = whole;
  }
  if (sum == XNN_NONE)
    return part;
  XnnId total = xl_sym_temp(l, 4, dims);
  xl_binary(l, XNN_ADD, sum, part, total);
  return total;
}

/* What the rows h of the kernel add, [n, rows of the result, w, c]. in: the rows that they meet. */
static XnnId rows_of(XnnLowering *l, const Dilated *d, const Part *h, XnnId in, bool first) {
  const Convolution *c = d->c;
  ValueId bias = node_value(l->g, d->n, 2);
  XnnId sum = XNN_NONE;
  for (uint32_t i = 0; i < d->axis[1].count; i++) {
    const Part *w = &d->axis[1].parts[i];
    SymInt from[] = {d->batch, h->in, d->axis[1].in, c->in_channels},
           to[] = {d->batch, h->out, w->out, c->out_channels};
    ConvolutionNode node = {
        .kind = XNN_CONV2D,
        .before = {h->before, w->before},
        .after = {h->after, w->after},
        .kernel = {h->taps, w->taps},
        .stride = {h->taps > 1 ? c->stride[0] : 1, w->taps > 1 ? c->stride[1] : 1},
        .dilation = {c->dilation[0], c->dilation[1]},
        .groups = c->groups,
        .in_channels = c->in_channels,
        .out_channels = c->out_channels};
    ConvolutionValues v = {.out = xl_sym_temp(l, 4, to)};
    v.in = met(l, d, 1, w, in, from);
    v.weights = filter(l, d, h, w);
    v.bias = first && i == 0 && bias ? xl_filter(l, bias) : XNN_NONE;
    xl_node_or_product(l, &node, value_is_const(l->g, node_value(l->g, d->n, 1)), d->batch, &v);
    sum = added(l, d, 1, w, v.out, sum, to);
  }
  return sum;
}

bool xl_by_live_taps(XnnLowering *l, NodeId n, const Convolution *c, XnnId in, XnnId out) {
  Dilated d;
  if (!xl_ok(l) || !read_dilated(l, n, c, &d) || !choose(l->g, &d))
    return false;
  XnnId sum = XNN_NONE;
  for (uint32_t i = 0; i < d.axis[0].count; i++) {
    const Part *h = &d.axis[0].parts[i];
    SymInt from[] = {d.batch, d.axis[0].in, d.axis[1].in, c->in_channels},
           to[] = {d.batch, h->out, d.axis[1].out, c->out_channels};
    XnnId rows = rows_of(l, &d, h, met(l, &d, 0, h, in, from), i == 0);
    sum = added(l, &d, 0, h, rows, sum, to);
  }
  xl_unary(l, XNN_COPY, sum, out);
  return true;
}
