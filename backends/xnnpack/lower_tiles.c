/* Convolutions of a few more output channels than fill XNNPACK's tiles.
 *
 * Where its kernels read a window of several taps, they compute 32 channels at a time, or 16 where
 * there are no more in all: 48 take as long as 64. Products of one tap compute 16 at a time; where
 * a multiple of 8 needs fewer zeros, CPUs without AVX-512 compute 8 at a time, at less than half
 * the rate: 728 channels take 2.3 times as long as 736. So the channels beyond a multiple of 32, or
 * of 16, are a convolution of their own if they are at most half of that, and the results are
 * joined. No weight is stored twice. */
#include "backends/xnnpack/convolution.h"

enum { TILE = 32, SMALL_TILE = 16 };

/* ns for one input channel and tap: of a tile, and of a small one. */
#define TIME_TILE 0.6
#define TIME_SMALL_TILE 0.35
/* What a product by eights takes more, for one input and output channel. */
#define TIME_EIGHTS 0.03
#define WORTH 1.5 /* times what joining takes must be saved */
/* The least for products: joining takes at most a tenth of them where nothing is gained. */
#define LEAST_INPUTS 128

/* Few channels for the taps may be wanted in strips (lower_strips.c). */
static bool may_have_strips(const Convolution *c, uint32_t taps) {
  return 2 * c->in_channels < taps;
}

/* The output channels beyond whole tiles, if they are few enough for a convolution of their own. */
static uint32_t channels_beyond(const Convolution *c, uint32_t taps) {
  uint32_t tile = taps == 1 ? SMALL_TILE : TILE, rest = c->out_channels % tile;
  return c->out_channels > tile && rest <= tile / 2 ? rest : 0;
}

static bool is_faster(XnnLowering *l, const Convolution *c, XnnId out) {
  uint32_t taps = c->kernel[0] * c->kernel[1];
  if (channels_beyond(c, taps) == 0 || may_have_strips(c, taps) ||
      (taps == 1 && c->in_channels < LEAST_INPUTS))
    return false;
  const XnnValue *y = &l->x.values[out];
  double places = (double)y->dims[0] * y->dims[1] * y->dims[2];
  double each = taps == 1 ? c->out_channels * TIME_EIGHTS : taps * (TIME_TILE - TIME_SMALL_TILE);
  double saved = places * c->in_channels * each,
         joined = places * c->out_channels * TIME_COPIED + 2 * TIME_NODE;
  return saved > WORTH * joined;
}

/* Elements [first, first + count) of the weights or the bias, in the order of the node: of taps and
 * input channels, which are stored the other way round. */
static XnnId channels_of(XnnLowering *l, ValueId v, const Convolution *c, uint32_t first,
                         uint32_t count, bool is_bias) {
  uint32_t taps = is_bias ? 1 : c->kernel[0] * c->kernel[1], inner = is_bias ? 1 : c->in_channels,
           dims[] = {count, c->kernel[0], c->kernel[1], c->in_channels};
  int32_t *from = NULL;
  if (!l->trial) {
    from = ARENA_ARRAY(l->arena, int32_t, (size_t)count * taps * inner + 1);
    for (uint64_t i = 0; i < (uint64_t)count * taps * inner; i++) {
      uint64_t channel = i % inner, tap = i / inner % taps, output = first + i / inner / taps;
      from[i] = (int32_t)((output * inner + channel) * taps + tap);
    }
  }
  return xl_picked_constant(l, v, false, is_bias ? 1 : 4, dims, from);
}

bool xl_by_tiles(XnnLowering *l, NodeId n, const Convolution *c, XnnId in, XnnId out) {
  Graph *g = l->g;
  ValueId weight = node_value(g, n, 1), bias = node_value(g, n, 2);
  if (!xl_ok(l) || c->transposed || c->groups > 1 || !value_is_const(g, weight) ||
      (bias && !value_is_const(g, bias)) || xl_elements(l, weight) > INT32_MAX ||
      !is_faster(l, c, out))
    return false;
  uint32_t beyond = channels_beyond(c, c->kernel[0] * c->kernel[1]),
           whole = c->out_channels - beyond, sizes[] = {whole, beyond};
  XnnId parts[2];
  for (uint32_t i = 0; i < 2; i++) {
    ConvolutionNode node = {
        .kind = XNN_CONV2D, .groups = 1, .in_channels = c->in_channels, .out_channels = sizes[i]};
    for (uint32_t k = 0; k < 2; k++) {
      node.before[k] = node.after[k] = c->padding[k];
      node.kernel[k] = c->kernel[k];
      node.stride[k] = c->stride[k];
      node.dilation[k] = c->dilation[k];
    }
    XnnValue like = l->x.values[out];
    like.dims[3] = sizes[i];
    parts[i] = xl_temp(l, 4, like.dims);
    XnnId weights = channels_of(l, weight, c, i * whole, sizes[i], false),
          shift = bias ? channels_of(l, bias, c, i * whole, sizes[i], true) : XNN_NONE;
    xl_convolution_node(l, &node, in, weights, shift, parts[i]);
  }
  xl_concatenate(l, parts, 2, 3, out);
  return true;
}
