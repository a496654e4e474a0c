/* Convolutions with many taps on large images of few channels.
 *
 * XNNPACK keeps a pointer for each tap of each element of an image's result, for the images of a
 * batch once. With few channels these are much more than the image: 16 MB for 9x9 taps on 160x160.
 * So the image is made a batch of strips, which overlap by the rows that two of them read. Lines
 * are images of one column here. */
#include "backends/xnnpack/convolution.h"

enum {
  POINTER = 8,           /* bytes */
  LEAST_SAVED = 1 << 20, /* bytes of pointers, from which on strips are worth their copies */
  WANTED = 1 << 19,      /* bytes of pointers that stay: what a cache holds */
  COPIES = 4,            /* of the image, that strips need */
  LEAST_STRIPS = 4,
  MOST_STRIPS = 128
};

typedef struct Strips {
  uint32_t dim;          /* 0: rows, 1: what is left of lines, columns */
  uint32_t batch, count; /* strips of an image */
  uint32_t step, more;   /* rows from one to the next, and those that it reads of the next */
  uint32_t in, out;      /* rows of the image and of the result of a strip */
  uint32_t width, channels;
} Strips;

/* Rows of the result in a strip: those of the fewest strips that have few pointers. 0: none. */
static uint32_t rows_of_strip(const Convolution *c, uint32_t dim, uint32_t rows,
                              uint64_t pointers) {
  uint64_t reach = (uint64_t)(c->kernel[dim] - 1) * c->dilation[dim] + 1;
  uint32_t found = 0;
  for (uint32_t count = LEAST_STRIPS; count <= MOST_STRIPS && count <= rows; count++) {
    uint64_t step = (uint64_t)rows / count * c->stride[dim];
    if (rows % count || step + c->stride[dim] < reach)
      continue;
    found = rows / count;
    if (pointers / count <= WANTED)
      break;
  }
  return found;
}

static bool find_strips(XnnLowering *l, NodeId n, const Convolution *c, Strips *s) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  if (c->transposed || c->depthwise || !value_is_const(g, node_value(g, n, 1)) ||
      xl_dynamic_dim_count(g, x))
    return false;
  uint32_t dim = c->rank == 1, rows = xl_dim(l, y, 2);
  *s = (Strips){.dim = dim,
                .batch = xl_dim(l, x, 0),
                .in = xl_dim(l, x, 2),
                .width = c->rank == 1 ? 1 : xl_dim(l, x, 3),
                .channels = c->in_channels};
  uint64_t size = (uint64_t)rows * (c->rank == 1 ? 1 : xl_dim(l, y, 3)),
           pointers = size * c->kernel[0] * c->kernel[1] * POINTER,
           image = (uint64_t)s->in * s->width * s->channels * sizeof(float);
  if (pointers < LEAST_SAVED || pointers < COPIES * image + size * c->out_channels * sizeof(float))
    return false;
  s->out = rows_of_strip(c, dim, rows, pointers);
  if (!s->out)
    return false;
  int64_t reach = (int64_t)(c->kernel[dim] - 1) * c->dilation[dim] + 1;
  s->count = rows / s->out;
  s->step = s->out * c->stride[dim];
  s->more = (uint32_t)max_i64(reach - c->stride[dim], 0);
  return (uint64_t)s->in + c->padding[dim] <= (uint64_t)(s->count + (s->more > 0)) * s->step;
}

/* blocks, [batch, steps, step, inner], each but for the last with the first rows of the next. */
static XnnId with_next(XnnLowering *l, const Strips *s, XnnId blocks, uint32_t inner) {
  XnnId own = XL_TEMP(l, s->batch, s->count, s->step, inner),
        heads = XL_TEMP(l, s->batch, s->count + 1, s->more, inner),
        next = XL_TEMP(l, s->batch, s->count, s->more, inner),
        joined = XL_TEMP(l, s->batch, s->count, s->step + s->more, inner);
  xl_slice(l, blocks, 1, 0, s->count, own);
  xl_slice(l, blocks, 2, 0, s->more, heads);
  xl_slice(l, heads, 1, 1, s->count, next);
  xl_concatenate(l, (XnnId[]){own, next}, 2, 2, joined);
  return joined;
}

/* The strips of in as images. */
static XnnId strips_of(XnnLowering *l, const Convolution *c, const Strips *s, XnnId in) {
  uint32_t steps = s->count + (s->more > 0), inner = s->width * s->channels,
           rows = s->step + s->more;
  const XnnPad pad = {.rank = 3,
                      .before = {0, c->padding[s->dim]},
                      .after = {0, steps * s->step - s->in - c->padding[s->dim]}};
  SymInt flat[] = {s->batch, s->in, inner}, split[] = {s->batch, steps, s->step, inner},
         dims[] = {(SymInt)s->batch * s->count, s->dim ? 1 : rows, s->dim ? rows : s->width,
                   s->channels};
  XnnId image = xl_sym_temp(l, 3, flat), padded = XL_TEMP(l, s->batch, steps * s->step, inner),
        blocks = xl_sym_temp(l, 4, split), strips = xl_sym_temp(l, 4, dims);
  xl_reshape(l, in, flat, 3, image);
  xl_pad(l, image, &pad, padded);
  xl_reshape(l, padded, split, 4, blocks);
  xl_reshape(l, s->more ? with_next(l, s, blocks, inner) : blocks, dims, 4, strips);
  return strips;
}

bool xl_by_strips(XnnLowering *l, NodeId n, const Convolution *c, const ConvolutionValues *v) {
  Strips s;
  if (!xl_ok(l) || !find_strips(l, n, c, &s))
    return false;
  ConvolutionNode node = {.kind = XNN_CONV2D,
                          .groups = c->groups,
                          .in_channels = c->in_channels,
                          .out_channels = c->out_channels};
  for (uint32_t i = 0; i < 2; i++) {
    node.before[i] = node.after[i] = i == s.dim ? 0 : c->padding[i];
    node.kernel[i] = c->kernel[i];
    node.stride[i] = c->stride[i];
    node.dilation[i] = c->dilation[i];
  }
  XnnValue like = l->x.values[v->out];
  SymInt dims[] = {like.dims[0], like.dims[1], like.dims[2], like.dims[3]};
  like.dims[0] = s.batch * s.count;
  like.dims[1 + s.dim] = s.out;
  XnnId parts = xl_temp(l, 4, like.dims);
  xl_convolution_node(l, &node, strips_of(l, c, &s, v->in), v->weights, v->bias, parts);
  xl_reshape(l, parts, dims, 4, v->out);
  return true;
}
