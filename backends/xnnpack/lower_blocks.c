/* Convolutions on blocks of columns.
 *
 * XNNPACK computes 16 output channels at a time, and products of codes 4 or 8 input channels,
 * however few there are. In NHWC columns that follow each other are channels already: an image
 * [n, h, w, c] is one of [n, h, w / 4, 4 * c], no element moves. So f columns of the result are
 * computed at once, as f times the output channels, from blocks of f * stride columns of the image,
 * with a kernel that holds a shifted copy of the weights for each of the f columns, and zeros
 * around it. That multiplies with some zeros, and fills the channels.
 *
 * The image may also stay as it is, with a kernel as wide as what f windows read together, in steps
 * of f windows: fewer zeros, but a tap of few input channels takes longer than what it multiplies.
 *
 * Long kernels over a line of samples, as those of a spectrum, are a few blocks of a part of their
 * stride: 400 samples with stride 160 are 5 blocks of 80 with stride 2, which can be a product. */
#include "backends/xnnpack/product.h"

enum {
  SIXTEEN = 16,            /* output channels that XNNPACK computes at a time */
  MANY = 4,                /* sixteens, for which one more is little */
  MOST_COLUMNS = 16,       /* of the result in a block */
  MOST_CHANNELS = 1 << 12, /* of an image of blocks, and of its result */
  LEAST_POINTERS = 1 << 20 /* bytes that any convolution may have */
};

#define TIME_TAP 0.3    /* of 16 channels of a result, in steps: beside the products */
#define TIME_CODES 0.12 /* like TIME_PRODUCT, for codes of 8 bits */
#define WORTH 0.9
#define MOST_ZEROS 1.3 /* times a kernel's samples that parts of the stride multiply with */

typedef struct Job {
  const Convolution *c;
  uint32_t in[2], out[2];
  double batch;
  bool codes;
  bool whole; /* all of the image is read: XNNPACK finds the range of its codes */
} Job;

static uint32_t rounded_up(uint32_t n, uint32_t unit) { return (n + unit - 1) / unit * unit; }

/* Input channels as they are computed; how many codes at once depends on the CPU. */
static double input_channels(const Job *j, uint32_t count) {
  return j->codes ? (rounded_up(count, 4) + rounded_up(count, 8)) * 0.5 * TIME_CODES
                  : count * TIME_PRODUCT;
}

static uint64_t weights(const Job *j, const Blocks *b) {
  const Convolution *c = j->c;
  return (uint64_t)b->out * c->out_channels * c->kernel[0] * b->kernel * b->in * c->in_channels;
}

static bool is_in_place(const Job *j, const Blocks *b) {
  return (uint64_t)b->image * b->in == j->in[1];
}

static double time_of(const Job *j, const Blocks *b) {
  const Convolution *c = j->c;
  double places = j->batch * j->out[0] * (j->out[1] / b->out),
         bytes = (double)weights(j, b) * (j->codes ? 1 : sizeof(float)),
         copied =
             is_in_place(j, b) ? 0 : j->batch * j->in[0] * j->in[1] * c->in_channels * TIME_COPIED;
  bool steps = b->in < b->out;
  double channels = input_channels(j, b->in * c->in_channels) + (steps ? TIME_TAP : 0);
  return places * c->kernel[0] * b->kernel * channels *
             sixteens((uint64_t)b->out * c->out_channels) +
         bytes * (steps ? TIME_OF_STEPS : TIME_OF_BYTE) + copied;
}

/* XNNPACK keeps a pointer for each tap of each place. */
static bool has_few_pointers(const Job *j, const Blocks *b) {
  const Convolution *c = j->c;
  uint64_t pointers = (uint64_t)j->out[0] * (j->out[1] / b->out) * c->kernel[0] * b->kernel * 8,
           images = (uint64_t)j->in[0] * j->in[1] * c->in_channels +
                    (uint64_t)j->out[0] * j->out[1] * c->out_channels;
  return pointers <= LEAST_POINTERS || pointers <= 2 * images * (j->codes ? 1 : sizeof(float));
}

/* Blocks of `columns` columns of the result; false when there are none. copied: the padding becomes
 * part of the image, so that the first block begins where the first window does. Columns of the
 * image behind the last block that is read are cut off. */
static bool make_blocks(const Job *j, uint32_t columns, bool copied, Blocks *b) {
  const Convolution *c = j->c;
  uint32_t stride = c->stride[1], padding = copied ? 0 : c->padding[1], last;
  if ((uint64_t)columns * stride * c->in_channels > MOST_CHANNELS ||
      (uint64_t)columns * c->out_channels > MOST_CHANNELS)
    return false;
  *b = (Blocks){.in = columns * stride, .out = columns, .front = copied ? c->padding[1] : 0};
  b->before = (padding + b->in - 1) / b->in;
  last = (columns - 1) * stride + c->kernel[1] - 1 + b->before * b->in - padding;
  b->kernel = last / b->in + 1;
  b->image = (j->in[1] + b->front + b->in - 1) / b->in;
  uint32_t read = j->out[1] / columns + b->kernel - 1;
  if (j->out[1] % columns || read <= b->before)
    return false;
  if (b->image > read - b->before && j->whole)
    return false;
  b->image = b->image < read - b->before ? b->image : read - b->before;
  b->after = read - b->before - b->image;
  return b->image * b->in > b->front;
}

/* Windows of `columns` columns of the result as one, on the image as it is. */
static bool make_steps(const Job *j, uint32_t columns, Blocks *b) {
  const Convolution *c = j->c;
  uint32_t stride = c->stride[1], read = j->in[1] + c->padding[1];
  if ((uint64_t)columns * c->out_channels > MOST_CHANNELS || j->out[1] % columns)
    return false;
  uint32_t kernel = (columns - 1) * stride + c->kernel[1],
           reach = (j->out[1] / columns - 1) * columns * stride + kernel;
  *b = (Blocks){.in = 1,
                .out = columns,
                .before = c->padding[1],
                .after = reach > read ? reach - read : 0,
                .kernel = kernel,
                .image = j->in[1]};
  return true;
}

/* Takes the blocks if they are faster than `least`. */
static double take_faster(const Job *j, const Blocks *found, double least, Blocks *b) {
  double time = time_of(j, found);
  if ((found->in == 1 && found->out == 1) || !has_few_pointers(j, found) || time >= least)
    return least;
  *b = *found;
  return time;
}

/* The outputs that are computed: as a product up to the next sixteen, where XNNPACK would compute
 * few beyond the last one eight at a time, all of them. Spectra have them: 402 for 400 samples. */
static uint32_t computed_outputs(const Convolution *c, const Blocks *b, bool floats) {
  uint32_t outputs = b->out * c->out_channels, few = xl_few_beyond(outputs);
  bool fills = floats && b->out == 1 && few > 0 && outputs > MANY * SIXTEEN;
  return fills ? outputs - few + SIXTEEN : outputs;
}

/* Blocks of a part of the stride, of which few make a window. */
static bool make_parts(const Job *j, uint32_t part, Blocks *b) {
  const Convolution *c = j->c;
  uint32_t step = c->stride[1] / part;
  *b = (Blocks){.in = part,
                .out = 1,
                .before = (c->padding[1] + part - 1) / part,
                .image = (j->in[1] + part - 1) / part};
  b->kernel = (c->kernel[1] - 1 + b->before * part - c->padding[1]) / part + 1;
  uint32_t met = (j->out[1] - 1) * step + b->kernel, there = b->before + b->image;
  b->after = met > there ? met - there : 0;
  return c->stride[1] % part == 0 && b->kernel <= TAPS_AT_ONCE && there < met + step;
}

/* Whether the convolution on these blocks is a product. */
static bool becomes_product(const XnnLowering *l, const Job *j, const Blocks *b) {
  Convolution c = {.rank = 2,
                   .stride = {1, j->c->stride[1] / b->in},
                   .dilation = {1, 1},
                   .kernel = {1, b->kernel},
                   .in_channels = b->in,
                   .out_channels = computed_outputs(j->c, b, true)};
  Windows w = {.c = &c, .in = {1, b->image}, .out = {1, j->out[1]}, .before = {0, b->before}};
  return xl_plan_product(&(ProductJob){.w = &w, .cpu = l->cpu, .batch = j->batch, .floats = true})
             .way != BY_NODE;
}

/* The parts of a stride over a line of samples that meet the fewest zeros, if they make a product.
 */
static void find_parts(const XnnLowering *l, const Job *j, Blocks *b) {
  const Convolution *c = j->c;
  Blocks found, best = {0};
  if (c->in_channels > 1 || c->kernel[0] > 1 || j->in[0] > 1 || j->out[0] > 1 ||
      c->stride[1] > MOST_CHANNELS)
    return;
  for (uint32_t part = SIXTEEN; part <= c->stride[1]; part++)
    if (make_parts(j, part, &found) &&
        (best.in == 0 || found.kernel * found.in < best.kernel * best.in))
      best = found;
  if (best.in && best.kernel * best.in < MOST_ZEROS * c->kernel[1] && becomes_product(l, j, &best))
    *b = best;
}

/* Steps that are faster than `least`. Planes are weighed without them, beside which they were
 * measured to be faster: weights of wide kernels leave the first cache, which the estimate does not
 * know. */
static void find_steps(const Job *j, double least, Blocks *b) {
  Blocks found;
  for (uint32_t columns = 2; columns <= MOST_COLUMNS; columns++)
    if (make_steps(j, columns, &found))
      least = take_faster(j, &found, least, b);
}

bool xl_find_blocks(XnnLowering *l, NodeId n, const Convolution *c, Blocks *b) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0);
  Job j = {.c = c, .batch = (double)sym_upper(&g->syms, value_dim(g, x, 0))};
  Blocks single = {.in = 1, .out = 1, .kernel = c->kernel[1]}, found;
  if (!xl_ok(l) || c->transposed || c->groups > 1 || c->dilation[1] > 1 ||
      !xl_image_sizes(l, n, c, j.in, j.out))
    return false;
  single.image = j.in[1];
  j.codes = !value_is_const(g, node_value(g, n, 1)) && is_dequantize(g, value_def(g, x));
  j.whole = xl_is_quantized_at_run(g, x);
  double direct = time_of(&j, &single), least = direct * WORTH;
  *b = single;
  for (uint32_t columns = 1; columns <= MOST_COLUMNS; columns++)
    for (int copied = 0; copied < 2; copied++)
      if (make_blocks(&j, columns, copied, &found))
        least = take_faster(&j, &found, least, b);
  double share = least / direct;
  find_steps(&j, least, b);
  if (b->in == 1 && b->out == 1 && !j.codes && value_is_const(g, node_value(g, n, 1)))
    find_parts(l, &j, b);
  b->share = share;
  return b->in > 1 || b->out > 1;
}

/* --- constants --- */

/* Which element of the weights [o, c, h, w] each of the blocks' weights [(column, o), h, block,
 * (column, c)] is. */
static const int32_t *weights_of_blocks(XnnLowering *l, const Convolution *c, const Blocks *b,
                                        uint64_t count) {
  uint32_t taps = c->kernel[0] * c->kernel[1], inner = b->in * c->in_channels;
  int32_t *from = ARENA_ARRAY(l->arena, int32_t, (size_t)count + 1);
  for (uint64_t i = 0; i < count; i++) {
    uint32_t channel = (uint32_t)(i % c->in_channels),
             column = (uint32_t)(i / c->in_channels % b->in);
    uint64_t block = i / inner, row = block / b->kernel, output = row / c->kernel[0];
    int64_t tap = (int64_t)(block % b->kernel) * b->in + column + c->padding[1] - b->front -
                  (int64_t)b->before * b->in - (int64_t)(output / c->out_channels) * c->stride[1];
    uint64_t kernel = output % c->out_channels * c->in_channels + channel;
    bool inside = tap >= 0 && tap < c->kernel[1] && output < (uint64_t)b->out * c->out_channels;
    from[i] = inside ? (int32_t)(kernel * taps + row % c->kernel[0] * c->kernel[1] + (uint64_t)tap)
                     : XL_NO_ELEMENT;
  }
  return from;
}

static XnnId filter(XnnLowering *l, ValueId weight, const Convolution *c, const Blocks *b,
                    uint32_t outputs) {
  uint32_t dims[] = {outputs, c->kernel[0], b->kernel, b->in * c->in_channels};
  uint64_t count = (uint64_t)dims[0] * dims[1] * dims[2] * dims[3];
  return xl_picked_constant(l, weight, false, 4, dims,
                            l->trial ? NULL : weights_of_blocks(l, c, b, count));
}

/* --- nodes --- */

/* in with columns of zeros before it, and up to the last block; cut off behind that. */
static XnnId whole_blocks(XnnLowering *l, const Convolution *c, const Blocks *b, SymInt batch,
                          XnnId in) {
  uint32_t columns = b->image * b->in, most = columns - b->front;
  if (l->x.values[in].dims[2] > most)
    in = xl_sliced(l, in, 2, 0, most);
  if (!xl_ok(l) || columns == l->x.values[in].dims[2])
    return in;
  XnnValue like = l->x.values[in];
  SymInt dims[] = {batch, like.dims[1], like.dims[2], c->in_channels};
  const XnnPad pad = {
      .dims = dims, .rank = 4, .before = {0, 0, b->front}, .after = {0, 0, most - like.dims[2]}};
  XnnId padded = XL_TEMP(l, like.dims[0], like.dims[1], columns, c->in_channels);
  xl_pad(l, in, &pad, padded);
  return padded;
}

void xl_by_blocks(XnnLowering *l, NodeId n, const Convolution *c, const Blocks *b, XnnId in,
                  XnnId out) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), bias = node_value(g, n, 2);
  if (!xl_ok(l))
    return;
  uint32_t height = l->x.values[in].dims[1], rows = l->x.values[out].dims[1],
           columns = l->x.values[out].dims[2];
  ValueId weight = node_value(g, n, 1);
  bool floats = value_is_const(g, weight);
  uint32_t outputs = b->out * c->out_channels, computed = computed_outputs(c, b, floats);
  SymInt batch = value_dim(g, x, 0), inputs = (SymInt)b->in * c->in_channels,
         blocks[] = {batch, height, b->image, inputs},
         results[] = {batch, rows, columns / b->out, computed},
         whole[] = {batch, rows, columns, c->out_channels};
  ConvolutionNode node = {.kind = XNN_CONV2D,
                          .before = {c->padding[0], b->before},
                          .after = {c->padding[0], b->after},
                          .kernel = {c->kernel[0], b->kernel},
                          .stride = {c->stride[0], b->out * c->stride[1] / b->in},
                          .dilation = {c->dilation[0], 1},
                          .groups = 1,
                          .in_channels = (uint32_t)inputs,
                          .out_channels = computed};
  XnnId image = b->in > 1 ? xl_reshaped(l, whole_blocks(l, c, b, batch, in), blocks, 4) : in,
        result = xl_sym_temp(l, 4, results);
  XnnId added = bias ? xl_repeated_bias(l, bias, computed) : XNN_NONE;
  const ConvolutionValues values = {image, filter(l, weight, c, b, computed), added, result};
  xl_node_or_product(l, &node, floats, batch, &values);
  if (computed > outputs)
    result = xl_sliced(l, result, 3, 0, outputs);
  xl_reshape(l, result, whole, 4, out);
}
