/* Convolutions with few output channels as one product and sums of shifted planes.
 *
 * XNNPACK computes 16 output channels at a time, however few there are. A product of every place
 * with all taps of the kernel at once, [n, h, w, c] x [c, taps * outputs], has enough of them: it
 * yields a plane for each tap, of what the tap adds to the result from where it reads. Shifted by
 * their taps and added up, first those of a row of the kernel, then the rows, the planes are the
 * result. A transposed convolution of stride s has s sums of every s-th tap in each dim, its
 * phases, which are interleaved in the end. The result is plain, which is what few channels are
 * wanted in. */
#include "backends/xnnpack/convolution.h"

enum { MAX_TAPS = 32, MAX_PHASES = 16 };

/* One dim. Element stride * q + r of the result is the sum of elements q + shift - t of the planes
 * of taps first + stride * t; of a convolution that is not transposed, element q that of elements q
 * + t - padding. */
typedef struct Line {
  uint32_t in, out, taps, stride, padding;
  uint32_t length;        /* of a phase */
  uint32_t before, after; /* zeros around a plane */
} Line;

typedef struct Planes {
  const Convolution *c;
  SymInt batch;
  Line line[2];
} Planes;

/* Where the plane of a tap is read for the elements of a phase, within its zeros. */
static uint32_t start_of(const Planes *p, const Line *d, uint32_t phase, uint32_t tap) {
  if (!p->c->transposed)
    return tap;
  return d->before + (phase + d->padding) / d->stride - tap / d->stride;
}

/* Whether a tap adds to the elements of a phase. */
static bool meets(const Planes *p, const Line *d, uint32_t phase, uint32_t tap) {
  return !p->c->transposed || tap % d->stride == (phase + d->padding) % d->stride;
}

static bool read_line(const Planes *p, const Convolution *c, uint32_t i, Line *d) {
  d->taps = c->kernel[i];
  d->stride = c->stride[i];
  d->padding = c->padding[i];
  if (c->dilation[i] != 1 || d->taps > MAX_TAPS || d->stride > MAX_PHASES || d->stride > d->taps ||
      (!c->transposed && d->stride > 1))
    return false;
  d->length = (d->out + d->stride - 1) / d->stride;
  if (!c->transposed) {
    d->before = d->after = d->padding;
    return true;
  }
  d->before = (d->taps - 1) / d->stride;
  uint32_t last = 0; /* element that is read */
  for (uint32_t r = 0; r < d->stride; r++)
    for (uint32_t t = 0; t < d->taps; t++)
      if (meets(p, d, r, t) && start_of(p, d, r, t) + d->length > last)
        last = start_of(p, d, r, t) + d->length;
  d->after = last > d->before + d->in ? last - d->before - d->in : 0;
  return true;
}

static bool read_planes(XnnLowering *l, NodeId n, const Convolution *c, Planes *p) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), bias = node_value(g, n, 2);
  *p = (Planes){.c = c, .batch = value_dim(g, x, 0)};
  if (c->groups > 1 || !value_is_const(g, node_value(g, n, 1)) ||
      xl_elements(l, node_value(g, n, 1)) > INT32_MAX || (bias && !value_is_const(g, bias)))
    return false;
  uint32_t in[2], out[2];
  if (!xl_image_sizes(l, n, c, in, out))
    return false;
  for (uint32_t i = 0; i < 2; i++) {
    p->line[i].in = in[i];
    p->line[i].out = out[i];
    if (!read_line(p, c, i, &p->line[i]))
      return false;
  }
  return true;
}

/* --- what it costs --- */

/* Whether planes take less time than the best other way, which takes `share` of the time of the
 * convolution as one node, or as one for each phase. Three copies of the planes are live at a time:
 * together they may not have many more channels than the operand. */
static bool is_cheaper(const Graph *g, const Planes *p, double share) {
  const Line *h = &p->line[0], *w = &p->line[1];
  uint64_t taps = (uint64_t)h->taps * w->taps, out = p->c->out_channels;
  double in = p->c->in_channels;
  double batch = (double)sym_upper(&g->syms, p->batch), places = batch * h->in * w->in;
  /* Phases share the sixteen channels where their taps agree. */
  uint64_t together =
      (uint64_t)(h->taps % h->stride ? 1 : h->stride) * (w->taps % w->stride ? 1 : w->stride);
  double direct = p->c->transposed
                      ? places * (double)taps / (double)together * sixteens(out * together)
                      : batch * h->out * w->out * (double)taps * sixteens(out);
  double product = places * sixteens(taps * out) * in * TIME_PRODUCT,
         sums = places * (double)(taps * out) * TIME_PLANE;
  double nodes = (2.0 * (h->taps + w->taps) + 8) * TIME_SMALL_NODE; /* parts and sums of taps */
  return (double)(taps * out) <= 1.5 * in &&
         1.1 * (product + sums + nodes) < direct * in * TIME_PRODUCT * share;
}

/* --- nodes --- */

/* Elements [first, first + count) of one dim. */
typedef struct Window {
  uint32_t axis, first, count;
} Window;

static XnnId part_of(XnnLowering *l, XnnId in, const Window *cut, SymInt *dims, uint32_t rank) {
  uint32_t offsets[XNN_MAX_RANK] = {0}, sizes[XNN_MAX_RANK] = {0};
  for (uint32_t i = 0; i < 2; i++) {
    offsets[cut[i].axis] = cut[i].first;
    sizes[cut[i].axis] = cut[i].count;
    dims[cut[i].axis] = cut[i].count;
  }
  XnnId out = xl_sym_temp(l, rank, dims);
  if (!xl_ok(l))
    return XNN_NONE;
  xl_slice_dims(l, in, rank, offsets, sizes, out);
  return out;
}

/* The sums over one dim of [a, taps, b, length, c], where the planes of a tap have dims b, length
 * and c: [a, phases, b, length, c]. dims become those of the result. */
static XnnId summed(XnnLowering *l, const Planes *p, uint32_t i, XnnId in, SymInt dims[5]) {
  const Line *d = &p->line[i];
  uint32_t phases = p->c->transposed ? d->stride : 1;
  XnnId items[MAX_PHASES];
  for (uint32_t r = 0; r < phases; r++) {
    items[r] = XNN_NONE;
    for (uint32_t t = 0; t < d->taps; t++) {
      if (!meets(p, d, r, t))
        continue;
      SymInt cut[5];
      memcpy(cut, dims, sizeof cut);
      XnnId plane =
          part_of(l, in, (Window[]){{1, t, 1}, {3, start_of(p, d, r, t), d->length}}, cut, 5);
      XnnId sum = items[r] == XNN_NONE ? plane : xl_temp_like(l, plane);
      if (items[r] != XNN_NONE)
        xl_binary(l, XNN_ADD, items[r], plane, sum);
      items[r] = sum;
    }
  }
  dims[1] = phases;
  dims[3] = d->length;
  if (phases == 1)
    return items[0];
  XnnId out = xl_sym_temp(l, 5, dims);
  xl_concatenate(l, items, phases, 1, out);
  return out;
}

/* What each tap makes of each place, with zeros around: [n, columns of the kernel, rows * outputs,
 * h, w]. */
static XnnId planes_of(XnnLowering *l, NodeId n, const Planes *p, XnnId in) {
  const Convolution *c = p->c;
  const Line *h = &p->line[0], *w = &p->line[1];
  ValueId weight = node_value(l->g, n, 1);
  uint32_t count = h->taps * w->taps * c->out_channels;
  uint32_t dims[] = {w->taps, h->taps, c->out_channels, c->in_channels};
  bool half = value_dtype(l->g, weight) == DTYPE_F16;
  XnnId weights = xl_permuted_constant(
      l, weight, 4, dims, c->transposed ? (uint32_t[]){3, 2, 1, 0} : (uint32_t[]){3, 2, 0, 1},
      half);
  if (xl_ok(l))
    memcpy(l->x.values[weights].dims, (uint32_t[]){count, 1, 1, c->in_channels},
           4 * sizeof(uint32_t));
  ConvolutionNode node = {.kind = XNN_CONV2D,
                          .kernel = {1, 1},
                          .stride = {1, 1},
                          .dilation = {1, 1},
                          .groups = 1,
                          .in_channels = c->in_channels,
                          .out_channels = count};
  XnnId product = xl_sym_temp(l, 4, (SymInt[]){p->batch, h->in, w->in, count}),
        planes = xl_sym_temp(l, 4, (SymInt[]){p->batch, count, h->in, w->in});
  xl_convolution_node(l, &node, in, weights, XNN_NONE, product);
  xl_transpose(l, product, (uint32_t[]){0, 3, 1, 2}, 4, planes);
  if (h->before + h->after + w->before + w->after == 0)
    return planes;
  XnnId padded = xl_sym_temp(
      l, 4,
      (SymInt[]){p->batch, count, h->in + h->before + h->after, w->in + w->before + w->after});
  const XnnPad pad = {
      .rank = 4, .before = {0, 0, h->before, w->before}, .after = {0, 0, h->after, w->after}};
  xl_pad(l, planes, &pad, padded);
  return padded;
}

/* The phases in their places, without what is beyond the result: [n, outputs, h, w]. in: [n,
 * phases of columns, phases of rows, outputs * h, w]. */
static XnnId interleaved(XnnLowering *l, const Planes *p, XnnId in) {
  const Line *h = &p->line[0], *w = &p->line[1];
  SymInt outputs = p->c->out_channels;
  if (p->c->transposed && h->stride * w->stride > 1) {
    SymInt split[] = {p->batch, w->stride, h->stride, outputs * h->length, w->length},
           permuted[] = {p->batch, outputs * h->length, h->stride, w->length, w->stride};
    XnnId out = xl_sym_temp(l, 5, permuted);
    xl_transpose(l, xl_reshaped(l, in, split, 5), (uint32_t[]){0, 3, 2, 4, 1}, 5, out);
    in = out;
  }
  uint32_t stride[] = {p->c->transposed ? h->stride : 1, p->c->transposed ? w->stride : 1};
  SymInt dims[] = {p->batch, outputs, (SymInt)h->length * stride[0], (SymInt)w->length * stride[1]};
  in = xl_reshaped(l, in, dims, 4);
  if (dims[2] == h->out && dims[3] == w->out)
    return in;
  return part_of(l, in, (Window[]){{2, 0, h->out}, {3, 0, w->out}}, dims, 4);
}

bool xl_by_planes(XnnLowering *l, NodeId n, const Convolution *c, double share, XnnId in) {
  Planes p;
  if (!xl_ok(l) || !read_planes(l, n, c, &p) || !is_cheaper(l->g, &p, share))
    return false;
  const Line *h = &p.line[0], *w = &p.line[1];
  ValueId bias = node_value(l->g, n, 2), y = node_result(l->g, n, 0);
  SymInt high = h->in + h->before + h->after, wide = w->in + w->before + w->after;
  SymInt rows = (SymInt)h->taps * c->out_channels;
  /* Columns: dim 3 of what is summed is the width. */
  SymInt dims[5] = {p.batch, w->taps, rows * high, wide, 1};
  XnnId planes = xl_reshaped(l, planes_of(l, n, &p, in), dims, 5);
  XnnId sums = summed(l, &p, 1, planes, dims);
  SymInt phases = dims[1];
  SymInt each[5] = {sym_mul(&l->g->syms, p.batch, phases), h->taps, c->out_channels, high,
                    w->length};
  sums = summed(l, &p, 0, xl_reshaped(l, sums, each, 5), each);
  XnnId whole = interleaved(l, &p, sums);
  SymInt flat[] = {p.batch, c->out_channels, w->out};
  XnnId out = xl_result(l, y);
  if (c->rank == 1)
    whole = xl_reshaped(l, whole, flat, 3);
  if (!bias) {
    xl_unary(l, XNN_COPY, whole, out);
    return true;
  }
  uint32_t one[] = {c->out_channels, 1, 1}, keep[] = {0, 1, 2};
  XnnId shift = xl_permuted_constant(l, bias, c->rank == 1 ? 2 : 3, one, keep, false);
  xl_binary(l, XNN_ADD, whole, shift, out);
  return true;
}
