/* Transposed convolutions over several dynamic sizes, which no reshape can infer.
 *
 * XNNPACK's own node computes 16 outputs at a time, however few there are, for each group by
 * itself. Two ways make use of all 16:
 *
 *   One group: all phases (lower_transposed.c) are the output channels of one convolution of
 *   stride 1. Its kernel is filled up with zeros to a multiple of the stride, so that every phase
 *   has the same number of taps. A transposed convolution whose kernel is as large as its stride
 *   then copies each phase to its place; its padding crops the result, and it adds the bias.
 *
 *   Several groups: some of them are joined to one whose kernels are zero between the groups. */
#include "backends/xnnpack/convolution.h"

enum {
  FULL = 16,              /* outputs that XNNPACK computes at a time */
  FREE_FLOATS = 1 << 14,  /* by which the weights may grow, whatever is saved */
  MOST_WEIGHTS = 1 << 24, /* of either way */
};

/* In products of an ordinary convolution, as measured. */
#define OWN_PRODUCT 1.5  /* of a transposed one */
#define OWN_TAP 4.0      /* beginning with a tap of 16 outputs, of a transposed one */
#define INTERLEAVED 16.0 /* a place of the result that is interleaved, beside its products */
#define CLEARLY 1.25     /* times the estimate: another way must be clearly faster */

/* One dim of the convolution that computes all phases, and what is cut off its result. */
typedef struct Span {
  uint32_t taps;          /* of a phase */
  uint32_t before, after; /* padding */
  uint32_t cut[2];        /* elements of the result, at both ends */
  uint32_t more;          /* elements at the end that no input reaches */
} Span;

typedef struct Dynamic {
  const Convolution *c;
  ValueId weight, bias;
  XnnId in, out;
  Span span[2];
} Dynamic;

static Span span_of(const Convolution *c, uint32_t i) {
  uint32_t s = c->stride[i], begin = c->padding[i];
  Span p = {.taps = (c->kernel[i] + s - 1) / s};
  /* All phases with all taps are that much longer than the result at its end. */
  int64_t end = (int64_t)p.taps * s - c->kernel[i] + c->padding[i] - c->adjust[i];
  uint32_t past = end > 0 ? (uint32_t)end : 0, reach = p.taps - 1;
  uint32_t first = begin / s < reach ? begin / s : reach,
           last = past / s < reach ? past / s : reach;
  p.before = reach - first;
  p.after = reach - last;
  p.cut[0] = begin - first * s;
  p.cut[1] = past - last * s;
  p.more = end < 0 ? (uint32_t)-end : 0;
  return p;
}

/* --- what it costs --- */

static uint64_t phases_of(const Convolution *c) { return (uint64_t)c->stride[0] * c->stride[1]; }

/* Elements of an image half as high and wide as the upper bounds. */
static double places_of(const XnnLowering *l, const Dynamic *d) {
  const XnnValue *in = &l->x.values[d->in];
  return (double)in->dims[0] * in->dims[1] * in->dims[2] / 4;
}

/* Whether a way of so many products for an element of the image is worth weights that many larger.
 * own: the products of XNNPACK's node. */
static bool is_faster(const XnnLowering *l, const Dynamic *d, double products, double own,
                      double weights) {
  double saved = (own - products * CLEARLY) * TIME_PRODUCT * places_of(l, d);
  double grown = weights - (double)FREE_FLOATS;
  return weights <= MOST_WEIGHTS &&
         saved > TIME_NODE + (grown > 0 ? grown * sizeof(float) * TIME_OF_STEPS : 0);
}

static bool phases_are_faster(const XnnLowering *l, const Dynamic *d) {
  const Convolution *c = d->c;
  double kernel = (double)c->kernel[0] * c->kernel[1], count = (double)phases_of(c),
         taps = (double)d->span[0].taps * d->span[1].taps, in = c->in_channels,
         own = kernel * in * sixteens(c->out_channels) * OWN_PRODUCT,
         outputs = count * c->out_channels,
         copies = count * (outputs * sixteens(c->out_channels) * OWN_PRODUCT + INTERLEAVED);
  return is_faster(l, d, taps * in * sixteens(phases_of(c) * c->out_channels) + copies, own,
                   outputs * (taps * in + outputs) - kernel * in * c->out_channels);
}

/* --- one group --- */

/* Which weight each one of the convolution is: [row phase, column phase, output, row, column,
 * input]. */
static void find_weights(const Dynamic *d, int32_t *to) {
  const Convolution *c = d->c;
  uint32_t taps = d->span[0].taps * d->span[1].taps, kernel = c->kernel[0] * c->kernel[1];
  uint64_t outputs = phases_of(c) * c->out_channels;
  for (uint64_t i = 0; i < outputs * taps; i++) {
    uint32_t tap = (uint32_t)(i % taps), output = (uint32_t)(i / taps % c->out_channels),
             phase = (uint32_t)(i / taps / c->out_channels);
    uint32_t at[2] = {tap / d->span[1].taps, tap % d->span[1].taps},
             own[2] = {phase / c->stride[1], phase % c->stride[1]};
    uint32_t from[2];
    for (uint32_t k = 0; k < 2; k++) /* may be one of the zeros behind the kernel */
      from[k] = (d->span[k].taps - 1 - at[k]) * c->stride[k] + own[k];
    bool inside = from[0] < c->kernel[0] && from[1] < c->kernel[1];
    for (uint32_t in = 0; in < c->in_channels; in++)
      *to++ = inside ? (int32_t)(((int64_t)in * c->out_channels + output) * kernel +
                                 from[0] * c->kernel[1] + from[1])
                     : XL_NO_ELEMENT;
  }
}

/* All phases as channels: the result of a convolution of stride 1. */
static XnnId phases(XnnLowering *l, const Dynamic *d) {
  const Convolution *c = d->c;
  const Span *h = &d->span[0], *w = &d->span[1];
  ConvolutionNode node = {.kind = XNN_CONV2D,
                          .before = {h->before, w->before},
                          .after = {h->after, w->after},
                          .kernel = {h->taps, w->taps},
                          .stride = {1, 1},
                          .dilation = {1, 1},
                          .groups = 1,
                          .in_channels = c->in_channels,
                          .out_channels = (uint32_t)phases_of(c) * c->out_channels};
  uint32_t dims[] = {node.out_channels, h->taps, w->taps, c->in_channels};
  int32_t *from = NULL;
  if (!l->trial) {
    from = ARENA_ARRAY(l->arena, int32_t, (size_t)xnn_dims_count(dims, 4) + 1);
    find_weights(d, from);
  }
  XnnValue like = l->x.values[d->in];
  for (uint32_t i = 0; i < 2; i++)
    like.dims[1 + i] += d->span[i].before + d->span[i].after - (d->span[i].taps - 1);
  like.dims[3] = node.out_channels;
  XnnId weights = xl_picked_constant(l, d->weight, false, 4, dims, from);
  XnnId out = xl_temp_of(l, &like);
  xl_convolution_node(l, &node, d->in, weights, XNN_NONE, out);
  return out;
}

/* Copies each phase to its place, by a transposed convolution whose windows do not meet. */
static void interleave(XnnLowering *l, const Dynamic *d, XnnId in) {
  const Convolution *c = d->c;
  uint32_t count = (uint32_t)phases_of(c), out = c->out_channels;
  uint32_t dims[] = {out, c->stride[0], c->stride[1], count * out};
  float *copies = ARENA_ARRAY(l->arena, float, (size_t)xnn_dims_count(dims, 4) + 1);
  for (uint32_t i = 0; i < out * count; i++) /* output i / count, phase i % count */
    copies[(size_t)i * count * out + i % count * out + i / count] = 1;
  ConvolutionNode node = {
      .kind = XNN_CONV_TRANSPOSE2D, .groups = 1, .in_channels = count * out, .out_channels = out};
  for (uint32_t i = 0; i < 2; i++) {
    node.before[i] = d->span[i].cut[0];
    node.after[i] = d->span[i].cut[1];
    node.kernel[i] = node.stride[i] = c->stride[i];
    node.dilation[i] = 1;
    node.adjust[i] = d->span[i].more;
  }
  XnnId bias = d->bias
                   ? xl_permuted_constant(l, d->bias, 1, (uint32_t[]){out}, (uint32_t[]){0}, false)
                   : XNN_NONE;
  xl_convolution_node(l, &node, in, xl_floats(l, 4, dims, copies), bias, d->out);
}

static bool by_phases(XnnLowering *l, Dynamic *d) {
  for (uint32_t i = 0; i < 2; i++)
    d->span[i] = span_of(d->c, i);
  if (phases_of(d->c) == 1 || !phases_are_faster(l, d))
    return false;
  interleave(l, d, phases(l, d));
  return true;
}

/* --- several groups --- */

/* How many groups are one, of at most 16 outputs. */
static uint32_t joined_groups(const Convolution *c) {
  uint32_t out = c->out_channels / c->groups, most = FULL / out;
  while (most > 1 && c->groups % most)
    most--;
  return most ? most : 1;
}

/* The weights of joined groups, [output, row, column, input]; zeros where the output is of another
 * group than the input. */
static XnnId joined_filter(XnnLowering *l, const Dynamic *d, uint32_t count) {
  const Convolution *c = d->c;
  uint32_t in = c->in_channels / c->groups, out = c->out_channels / c->groups,
           taps = c->kernel[0] * c->kernel[1];
  uint32_t dims[] = {c->out_channels, c->kernel[0], c->kernel[1], count * in};
  int32_t *from = NULL;
  if (!l->trial) {
    from = ARENA_ARRAY(l->arena, int32_t, (size_t)xnn_dims_count(dims, 4) + 1);
    for (uint64_t i = 0; i < xnn_dims_count(dims, 4); i++) {
      uint32_t input = (uint32_t)(i % (count * in)), tap = (uint32_t)(i / (count * in) % taps),
               output = (uint32_t)(i / (count * in) / taps), group = output / out;
      uint64_t row = (uint64_t)group * in + input % in;
      from[i] = group % count == input / in ? (int32_t)((row * out + output % out) * taps + tap)
                                            : XL_NO_ELEMENT;
    }
  }
  return xl_picked_constant(l, d->weight, false, 4, dims, from);
}

static bool by_joined_groups(XnnLowering *l, const Dynamic *d) {
  const Convolution *c = d->c;
  uint32_t count = joined_groups(c), in = c->in_channels / c->groups,
           out = c->out_channels / c->groups;
  double taps = (double)c->kernel[0] * c->kernel[1],
         own = taps * c->groups * (in * OWN_PRODUCT + OWN_TAP) * sixteens(out),
         products = taps * (c->groups / count) * (count * in * OWN_PRODUCT + OWN_TAP);
  if (count == 1 || !is_faster(l, d, products, own, taps * in * c->out_channels * (count - 1)))
    return false;
  ConvolutionNode node = {.kind = XNN_CONV_TRANSPOSE2D,
                          .groups = c->groups / count,
                          .in_channels = c->in_channels,
                          .out_channels = c->out_channels};
  for (uint32_t i = 0; i < 2; i++) {
    node.before[i] = node.after[i] = c->padding[i];
    node.kernel[i] = c->kernel[i];
    node.stride[i] = c->stride[i];
    node.dilation[i] = c->dilation[i];
    node.adjust[i] = c->adjust[i];
  }
  XnnId weights = joined_filter(l, d, count), bias = d->bias ? xl_filter(l, d->bias) : XNN_NONE;
  xl_convolution_node(l, &node, d->in, weights, bias, d->out);
  return true;
}

/* Of floats: codes stay with the node that integers have. */
bool xl_by_dynamic_phases(XnnLowering *l, NodeId n, const Convolution *c, XnnId in, XnnId out) {
  Dynamic d = {.c = c,
               .weight = node_value(l->g, n, 1),
               .bias = node_value(l->g, n, 2),
               .in = in,
               .out = out};
  if (!xl_ok(l) || !value_is_const(l->g, d.weight) || (d.bias && !value_is_const(l->g, d.bias)) ||
      xl_elements(l, d.weight) > MOST_WEIGHTS)
    return false;
  if (c->groups > 1)
    return by_joined_groups(l, &d);
  return c->dilation[0] == 1 && c->dilation[1] == 1 && by_phases(l, &d);
}
