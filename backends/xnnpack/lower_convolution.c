/* Convolutions: XNNPACK has them for images in NHWC.
 *
 * Taps of a kernel that fall on padding wherever it stands are left out, which is most of a kernel
 * whose dilation is that of the image. A depthwise kernel of more taps than XNNPACK has loops for
 * would run as a convolution of one channel in each group, ten times slower: it becomes a sum of
 * kernels of every second row or column. */
#include "backends/xnnpack/lower.h"

enum {
  NODE_CONV_FIELDS = 20,
  DEPTHWISE_TAPS = 25, /* the most that XNNPACK has a loop for */
  MAX_PIECES = 64
};

/* Some rows or columns of a kernel. */
typedef struct Taps {
  uint32_t first, count, step;
} Taps;

/* The part of a kernel that one node computes: rows and columns. */
typedef struct Piece {
  Taps taps[2];
} Piece;

typedef struct Convolution {
  uint32_t rank; /* spatial dims, 1 or 2 */
  uint32_t stride[2], padding[2], dilation[2], adjust[2], kernel[2];
  uint32_t groups, in_channels, out_channels;
  bool transposed, depthwise;
} Convolution;

static bool read_convolution(XnnLowering *l, NodeId n, Convolution *c) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), weight = node_value(g, n, 1), bias = node_value(g, n, 2);
  *c = (Convolution){.transposed = node_bool(g, n, 6), .groups = (uint32_t)node_int(g, n, 8)};
  if (!is_constant_or_codes(g, weight) || (bias && !is_constant_or_codes(g, bias)))
    return xl_refuse(l, XNN_RULE_RUNTIME_WEIGHTS,
                     R_STR("argument", is_constant_or_codes(g, weight) ? "bias" : "weight"));
  if (value_rank(g, x) != 3 && value_rank(g, x) != 4)
    return xl_refuse(l, XNN_RULE_RANK, R_INT("rank", value_rank(g, x)), R_STR("supported", "3,4"));
  if (!sym_is_const(value_dim(g, x, 1)))
    return xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", 1));
  c->rank = value_rank(g, x) - 2;
  c->in_channels = xl_dim(l, x, 1);
  c->out_channels = xl_dim(l, node_result(g, n, 0), 1);
  for (uint32_t i = 0; i < 2; i++) {
    /* A 1-D convolution is one of images that are 1 high. */
    bool absent = c->rank == 1 && i == 0;
    uint32_t k = c->rank == 1 ? 0 : i;
    c->kernel[i] = absent ? 1 : xl_dim(l, weight, 2 + k);
    c->stride[i] = absent ? 1 : (uint32_t)xl_entry(g, n, 3, k, 1);
    c->padding[i] = absent ? 0 : (uint32_t)xl_entry(g, n, 4, k, 0);
    c->dilation[i] = absent ? 1 : (uint32_t)xl_entry(g, n, 5, k, 1);
    c->adjust[i] = absent ? 0 : (uint32_t)xl_entry(g, n, 7, k, 0);
  }
  c->depthwise = !c->transposed && c->groups > 1 && c->groups == c->in_channels;
  return xl_ok(l);
}

/* --- which taps --- */

/* Padding before and after the taps of a piece; negative where they begin inside of the image. */
static int64_t before(const Convolution *c, const Piece *p, uint32_t i) {
  return (int64_t)c->padding[i] - (int64_t)p->taps[i].first * c->dilation[i];
}

static int64_t after(const Convolution *c, const Piece *p, uint32_t i) {
  const Taps *t = &p->taps[i];
  uint32_t behind = c->kernel[i] - 1 - (t->first + (t->count - 1) * t->step);
  return (int64_t)c->padding[i] - (int64_t)behind * c->dilation[i];
}

/* The taps that meet more than padding, as far as padding for the others can be left out. */
static Piece live_taps(XnnLowering *l, NodeId n, const Convolution *c) {
  Graph *g = l->g;
  Piece p = {.taps = {{0, c->kernel[0], 1}, {0, c->kernel[1], 1}}};
  for (uint32_t i = c->rank == 1; i < 2 && !c->transposed; i++) {
    SymInt in = value_dim(g, node_value(g, n, 0), c->rank + i),
           out = value_dim(g, node_result(g, n, 0), c->rank + i);
    if (!sym_is_const(in) || !sym_is_const(out))
      continue;
    Taps *t = &p.taps[i];
    int64_t reach = (out - 1) * c->stride[i], dilation = c->dilation[i];
    for (; t->count > 1 && before(c, &p, i) >= dilation && reach < before(c, &p, i); t->count--)
      t->first++;
    while (t->count > 1 && after(c, &p, i) >= dilation &&
           (t->count - 1) * dilation - before(c, &p, i) >= in)
      t->count--;
  }
  return p;
}

static bool is_whole(const Convolution *c, const Piece *p) {
  return p->taps[0].count == c->kernel[0] && p->taps[1].count == c->kernel[1];
}

/* Cuts p into pieces that XNNPACK has loops for. False when one would begin inside of the image, or
 * when there would be too many. */
static bool cut(const Convolution *c, Piece p, Piece *pieces, uint32_t *count) {
  if (*count == MAX_PIECES || before(c, &p, 0) < 0 || before(c, &p, 1) < 0 || after(c, &p, 0) < 0 ||
      after(c, &p, 1) < 0)
    return false;
  if ((uint64_t)p.taps[0].count * p.taps[1].count <= DEPTHWISE_TAPS) {
    pieces[(*count)++] = p;
    return true;
  }
  uint32_t i = p.taps[1].count >= p.taps[0].count;
  Piece even = p, odd = p;
  even.taps[i] = (Taps){p.taps[i].first, (p.taps[i].count + 1) / 2, 2 * p.taps[i].step};
  odd.taps[i] = (Taps){p.taps[i].first + p.taps[i].step, p.taps[i].count / 2, 2 * p.taps[i].step};
  return cut(c, even, pieces, count) && cut(c, odd, pieces, count);
}

/* --- operands --- */

/* The weights of a piece in f32, in the layout of the node. */
static XnnId partial_filter(XnnLowering *l, ValueId weight, const Convolution *c, const Piece *p) {
  uint32_t rows = p->taps[0].count, columns = p->taps[1].count,
           outer = c->depthwise ? 1 : c->out_channels,
           inner = c->depthwise ? c->out_channels : c->in_channels / c->groups,
           taps = c->kernel[0] * c->kernel[1], dims[] = {outer, rows, columns, inner};
  const float *from = xl_constant_floats(l, weight);
  if (!from)
    return xl_floats(l, 4, dims, NULL);
  float *values = ARENA_ARRAY(l->arena, float, (size_t)outer *rows *columns *inner), *to = values;
  for (uint32_t o = 0; o < outer; o++)
    for (uint32_t i = 0; i < rows * columns; i++) {
      uint32_t row = p->taps[0].first + i / columns * p->taps[0].step,
               column = p->taps[1].first + i % columns * p->taps[1].step;
      const float *tap = from + (uint64_t)o * inner * taps + row * c->kernel[1] + column;
      for (uint32_t k = 0; k < inner; k++)
        *to++ = tap[(uint64_t)k * taps];
    }
  return xl_floats(l, 4, dims, values);
}

/* The scales of each group's channels, for all groups. */
static ValueId scales_of_groups(XnnLowering *l, ValueId scales, uint32_t groups) {
  const Constant *c = value_constant(l->g, scales);
  uint8_t *bytes = arena_alloc(&l->g->arena, c->size * groups + 1);
  for (uint32_t i = 0; i < groups; i++)
    memcpy(bytes + c->size * i, c->data, c->size);
  SymInt dims[] = {(SymInt)(c->size / sizeof(float) * groups)};
  return graph_add_constant(l->g, graph_tensor_type(l->g, DTYPE_F32, 1, dims, ORDER_CONTIGUOUS),
                            (Constant){.data = bytes, .size = c->size * groups}, 0);
}

/* The filter id, and its codes, which are [groups, out / groups, kh, kw, in / groups], as one of
 * all groups. The codes have scales for the channels of a group, or one. */
static void join_groups(XnnLowering *l, ValueId weight, const Convolution *c, XnnId id) {
  uint32_t dims[] = {c->out_channels, c->kernel[0], c->kernel[1], c->in_channels / c->groups};
  NodeId n = dequantized_constant(l->g, weight);
  XnnId twin = l->x.values[id].codes;
  l->x.values[id].rank = 4;
  memcpy(l->x.values[id].dims, dims, sizeof dims);
  if (!n || !twin)
    return;
  Quantization q = quantization_of(l->g, n);
  l->x.values[twin - 1].rank = 4;
  memcpy(l->x.values[twin - 1].dims, dims, sizeof dims);
  if (q.scales && q.axis == 1)
    xnn_set_channels(&l->x, twin - 1, 0, (XnnData){.v = scales_of_groups(l, q.scales, c->groups)},
                     c->out_channels);
  else if (q.scales)
    l->x.values[id].codes = 0;
}

/* Weights of torch, [out, in / groups, kh, kw] or transposed [in, out / groups, kh, kw], as XNNPACK
 * wants them: [out, kh, kw, in / groups], for depthwise ones [1, kh, kw, out]. */
static XnnId filter(XnnLowering *l, ValueId weight, const Convolution *c, const Piece *p) {
  if (!is_whole(c, p))
    return partial_filter(l, weight, c, p);
  bool half = value_dtype(l->g, weight) == DTYPE_F16;
  uint32_t kh = c->kernel[0], kw = c->kernel[1], in = c->in_channels / c->groups,
           out = c->out_channels / c->groups;
  if (c->transposed && c->groups > 1) {
    /* Groups are outermost in both: [g, in, out, kh, kw] -> [g, out, kh, kw, in], told as 5 dims.
     */
    uint32_t dims[] = {c->groups, out, kh, kw, in}, perm[] = {0, 2, 3, 4, 1};
    XnnId id = xl_permuted_constant(l, weight, 5, dims, perm, half);
    if (xl_ok(l))
      join_groups(l, weight, c, id);
    return id;
  }
  if (c->depthwise) {
    uint32_t dims[] = {1, kh, kw, c->out_channels}, perm[] = {1, 2, 3, 0};
    return xl_permuted_constant(l, weight, 4, dims, perm, false);
  }
  /* With one spatial dim kh is 1 wherever it is written. */
  uint32_t dims[] = {c->out_channels, kh, kw, in}, straight[] = {0, 2, 3, 1},
           turned[] = {1, 2, 3, 0};
  return xl_permuted_constant(l, weight, 4, dims, c->transposed ? turned : straight, half);
}

/* In f32. */
static XnnId wide_bias(XnnLowering *l, ValueId bias) {
  return xl_permuted_constant(l, bias, 1, (uint32_t[]){xl_dim(l, bias, 0)}, (uint32_t[]){0}, false);
}

/* [N, C, L] as an image [N, 1, L, C]. */
static XnnId line_as_image(XnnLowering *l, ValueId x) {
  Graph *g = l->g;
  XnnId image = XL_TEMP(l, xl_dim(l, x, 0), 1, xl_dim(l, x, 2), xl_dim(l, x, 1));
  xl_reshape(l, xl_nhwc(l, x),
             (SymInt[]){value_dim(g, x, 0), 1, value_dim(g, x, 2), value_dim(g, x, 1)}, 4, image);
  return image;
}

static void image_as_line(XnnLowering *l, XnnId image, ValueId y) {
  Graph *g = l->g;
  xl_reshape(l, image, (SymInt[]){value_dim(g, y, 0), value_dim(g, y, 2), value_dim(g, y, 1)}, 3,
             xl_result_nhwc(l, y));
}

/* [N, C, L], of which N and L vary, as an image [1, N, L, C] or [N, 1, L, C]. */
static Turned lines_as_image(XnnLowering *l, ValueId x) {
  Turned t;
  if (xl_was_turned(l, x, &t) && xl_rank(l, t.id) == 4 && t.axis[2] == 2 && t.axis[1] == 3)
    return t;
  t = (Turned){.id = xl_nhwc(l, x), .axis = {0, 2, 1}};
  xl_add_axis(l, &t, 3);
  xl_set_turned(l, x, t);
  return t;
}

static void add_node(XnnLowering *l, const Convolution *c, const Piece *p, XnnId in, XnnId weights,
                     XnnId bias, XnnId out) {
  XnnNodeKind kind = c->transposed  ? XNN_CONV_TRANSPOSE2D
                     : c->depthwise ? XNN_DEPTHWISE_CONV2D
                                    : XNN_CONV2D;
  const Taps *t = p->taps;
  const uint32_t fields[NODE_CONV_FIELDS] = {c->transposed ? c->padding[0] : before(c, p, 0),
                                             c->transposed ? c->padding[1] : after(c, p, 1),
                                             c->transposed ? c->padding[0] : after(c, p, 0),
                                             c->transposed ? c->padding[1] : before(c, p, 1),
                                             t[0].count,
                                             t[1].count,
                                             c->stride[0],
                                             c->stride[1],
                                             c->dilation[0] * t[0].step,
                                             c->dilation[1] * t[1].step,
                                             c->in_channels / c->groups,
                                             c->out_channels / c->groups,
                                             c->groups,
                                             c->adjust[0],
                                             c->adjust[1],
                                             in,
                                             weights,
                                             bias,
                                             out,
                                             0};
  if (xl_ok(l))
    xnn_node(&l->x, kind, fields, NODE_CONV_FIELDS);
}

/* The sum of the pieces into out. */
static void add_pieces(XnnLowering *l, NodeId n, const Convolution *c, const Piece *pieces,
                       uint32_t count, XnnId in, XnnId out) {
  ValueId weight = node_value(l->g, n, 1), bias = node_value(l->g, n, 2);
  bool wide = c->depthwise || !is_whole(c, &pieces[0]);
  XnnId sum = XNN_NONE;
  for (uint32_t i = 0; i < count; i++) {
    XnnId weights = filter(l, weight, c, &pieces[i]);
    XnnId b = i || !bias ? XNN_NONE : wide ? wide_bias(l, bias) : xl_filter(l, bias);
    XnnId part = count == 1 ? out : xl_temp_like(l, out);
    add_node(l, c, &pieces[i], in, weights, b, part);
    if (i) {
      XnnId total = i + 1 == count ? out : xl_temp_like(l, out);
      xl_binary(l, XNN_ADD, sum, part, total);
      part = total;
    }
    sum = part;
  }
}

void lower_convolution(XnnLowering *l, NodeId n) {
  Convolution c;
  if (!read_convolution(l, n, &c))
    return;
  ValueId x = node_value(l->g, n, 0), y = node_result(l->g, n, 0);
  Piece pieces[MAX_PIECES], live = live_taps(l, n, &c);
  uint32_t count = 0;
  if (!c.depthwise || !cut(&c, live, pieces, &count)) {
    pieces[0] = live;
    count = 1;
  }
  if (c.rank == 1 && (xl_open_dims(l->g, x) > 1 || xl_open_dims(l->g, y) > 1)) {
    Turned t = lines_as_image(l, x);
    add_pieces(l, n, &c, pieces, count, t.id, xl_result_turned(l, y, t));
    return;
  }
  XnnId in = c.rank == 1 ? line_as_image(l, x) : xl_nhwc(l, x);
  XnnId out = c.rank == 2 ? xl_result_nhwc(l, y)
                          : XL_TEMP(l, xl_dim(l, y, 0), 1, xl_dim(l, y, 2), xl_dim(l, y, 1));
  add_pieces(l, n, &c, pieces, count, in, out);
  if (c.rank == 1)
    image_as_line(l, out, y);
}
