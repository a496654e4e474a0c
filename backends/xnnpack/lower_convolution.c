/* Convolutions: XNNPACK has them for images in NHWC.
 *
 * Taps of a kernel that fall on padding wherever it stands are left out, which is most of a kernel
 * whose dilation is that of the image. Depthwise kernels are cut into pieces (lower_depthwise.c),
 * whose results are added. */
#include "backends/xnnpack/convolution.h"

enum { NODE_CONV_FIELDS = 20 };

bool xl_has_one_input_a_group(const Convolution *c) {
  return c->groups > 1 && c->groups == c->in_channels;
}

bool xl_image_sizes(const XnnLowering *l, NodeId n, const Convolution *c, uint32_t in[2],
                    uint32_t out[2]) {
  Dims x = value_dims(l->g, node_value(l->g, n, 0)), y = value_dims(l->g, node_result(l->g, n, 0));
  for (uint32_t i = 0; i < 2; i++) {
    bool absent = c->rank == 1 && i == 0;
    SymInt from = absent ? 1 : x.d[x.rank - 2 + i], to = absent ? 1 : y.d[y.rank - 2 + i];
    if (!sym_is_const(from) || !sym_is_const(to))
      return false;
    in[i] = (uint32_t)from;
    out[i] = (uint32_t)to;
  }
  return true;
}

/* A 1-D convolution is one of images that are 1 high. */
static void read_window(XnnLowering *l, NodeId n, Convolution *c) {
  const Graph *g = l->g;
  uint32_t first = 2 - c->rank;
  for (uint32_t i = 0; i < first; i++) {
    c->kernel[i] = c->stride[i] = c->dilation[i] = 1;
    c->padding[i] = c->adjust[i] = 0;
  }
  for (uint32_t i = first; i < 2; i++) {
    uint32_t k = i - first;
    c->kernel[i] = xl_dim(l, node_value(g, n, 1), 2 + k);
    c->stride[i] = (uint32_t)node_entry(g, n, 3, k, 1);
    c->padding[i] = (uint32_t)node_entry(g, n, 4, k, 0);
    c->dilation[i] = (uint32_t)node_entry(g, n, 5, k, 1);
    c->adjust[i] = (uint32_t)node_entry(g, n, 7, k, 0);
  }
}

static bool read_convolution(XnnLowering *l, NodeId n, Convolution *c) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), weight = node_value(g, n, 1), bias = node_value(g, n, 2);
  *c = (Convolution){.transposed = node_bool(g, n, 6), .groups = (uint32_t)node_int(g, n, 8)};
  if (is_constant_or_codes(g, weight) && bias && !is_constant_or_codes(g, bias))
    return xl_refuse(l, XNN_RULE_RUNTIME_WEIGHTS, R_STR("argument", "bias"));
  if (value_rank(g, x) != 3 && value_rank(g, x) != 4)
    return xl_refuse(l, XNN_RULE_RANK, R_INT("rank", value_rank(g, x)), R_STR("supported", "3,4"));
  if (!sym_is_const(value_dim(g, x, 1)))
    return xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", 1));
  c->rank = value_rank(g, x) - 2;
  c->in_channels = xl_dim(l, x, 1);
  c->out_channels = xl_dim(l, node_result(g, n, 0), 1);
  read_window(l, n, c);
  c->depthwise = !c->transposed && xl_has_one_input_a_group(c);
  return xl_ok(l);
}

/* --- which taps --- */

int64_t xl_piece_before(const Convolution *c, const Piece *p, uint32_t dim) {
  return (int64_t)c->padding[dim] - (int64_t)p->taps[dim].first * c->dilation[dim];
}

int64_t xl_piece_after(const Convolution *c, const Piece *p, uint32_t dim) {
  const Taps *t = &p->taps[dim];
  uint32_t behind = c->kernel[dim] - 1 - (t->first + (t->count - 1) * t->step);
  return (int64_t)c->padding[dim] - (int64_t)behind * c->dilation[dim];
}

/* The taps that meet more than padding, as far as padding for the others can be left out. */
static Piece live_taps(XnnLowering *l, NodeId n, const Convolution *c) {
  Graph *g = l->g;
  Piece p = {.taps = {{0, c->kernel[0], 1}, {0, c->kernel[1], 1}}};
  bool can_cut = !c->transposed && xl_elements(l, node_value(g, n, 1)) <= INT32_MAX;
  for (uint32_t i = c->rank == 1; i < 2 && can_cut; i++) {
    SymInt in = value_dim(g, node_value(g, n, 0), c->rank + i),
           out = value_dim(g, node_result(g, n, 0), c->rank + i);
    if (!sym_is_const(in) || !sym_is_const(out))
      continue;
    Taps *t = &p.taps[i];
    int64_t reach = (out - 1) * c->stride[i], dilation = c->dilation[i];
    for (;
         t->count > 1 && xl_piece_before(c, &p, i) >= dilation && reach < xl_piece_before(c, &p, i);
         t->count--)
      t->first++;
    while (t->count > 1 && xl_piece_after(c, &p, i) >= dilation &&
           (t->count - 1) * dilation - xl_piece_before(c, &p, i) >= in)
      t->count--;
  }
  return p;
}

static bool is_whole(const Convolution *c, const Piece *p) {
  return p->taps[0].count == c->kernel[0] && p->taps[1].count == c->kernel[1];
}

/* --- operands --- */

/* The weights of a piece, in the layout of the node. */
static XnnId partial_filter(XnnLowering *l, ValueId weight, const Convolution *c, const Piece *p) {
  uint32_t rows = p->taps[0].count, columns = p->taps[1].count,
           outer = c->depthwise ? 1 : c->out_channels,
           inner = c->depthwise ? c->out_channels : c->in_channels / c->groups,
           taps = c->kernel[0] * c->kernel[1], dims[] = {outer, rows, columns, inner};
  if (!xl_ok(l) || l->trial)
    return xl_picked_constant(l, weight, c->depthwise, 4, dims, NULL);
  int32_t *from = ARENA_ARRAY(l->arena, int32_t, (size_t)outer * rows * columns * inner + 1),
          *to = from;
  for (uint32_t o = 0; o < outer; o++)
    for (uint32_t i = 0; i < rows * columns; i++) {
      uint32_t row = p->taps[0].first + i / columns * p->taps[0].step,
               column = p->taps[1].first + i % columns * p->taps[1].step;
      uint64_t tap = (uint64_t)o * inner * taps + row * c->kernel[1] + column;
      for (uint32_t k = 0; k < inner; k++, tap += taps)
        *to++ = (int32_t)tap;
    }
  return xl_picked_constant(l, weight, c->depthwise, 4, dims, from);
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
           permuted[] = {1, 2, 3, 0};
  return xl_permuted_constant(l, weight, 4, dims, c->transposed ? permuted : straight, half);
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
  if (xl_ok(l) && !sym_is_const(value_dim(g, x, 2)))
    l->x.values[image].dynamic = 1 << 2;
  return image;
}

static void image_as_line(XnnLowering *l, XnnId image, ValueId y) {
  Graph *g = l->g;
  xl_reshape(l, image, (SymInt[]){value_dim(g, y, 0), value_dim(g, y, 2), value_dim(g, y, 1)}, 3,
             xl_result_nhwc(l, y));
}

/* [N, C, L], of which N and L vary, as an image [1, N, L, C] or [N, 1, L, C]. */
static Permuted lines_as_image(XnnLowering *l, ValueId x) {
  Permuted t;
  if (xl_was_permuted(l, x, &t) && xl_rank(l, t.id) == 4 && !xl_is_unmerged(&t, 3) &&
      t.axis[2] == 2 && t.axis[1] == 3)
    return t;
  t = (Permuted){.id = xl_nhwc(l, x), .axis = {0, 2, 1}};
  xl_add_axis(l, &t, 3);
  xl_set_permuted(l, x, t);
  return t;
}

void xl_convolution_node(XnnLowering *l, const ConvolutionNode *c, XnnId in, XnnId weights,
                         XnnId bias, XnnId out) {
  const uint32_t fields[NODE_CONV_FIELDS] = {c->before[0],
                                             c->after[1],
                                             c->after[0],
                                             c->before[1],
                                             c->kernel[0],
                                             c->kernel[1],
                                             c->stride[0],
                                             c->stride[1],
                                             c->dilation[0],
                                             c->dilation[1],
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
    xnn_node(&l->x, c->kind, fields, NODE_CONV_FIELDS);
}

static void add_node(XnnLowering *l, const Convolution *c, const Piece *p,
                     const ConvolutionValues *v) {
  ConvolutionNode node = {.kind = c->transposed  ? XNN_CONV_TRANSPOSE2D
                                  : c->depthwise ? XNN_DEPTHWISE_CONV2D
                                                 : XNN_CONV2D,
                          .groups = c->groups,
                          .in_channels = c->in_channels,
                          .out_channels = c->out_channels};
  for (uint32_t i = 0; i < 2; i++) {
    int64_t padding[] = {xl_piece_before(c, p, i), xl_piece_after(c, p, i)};
    node.before[i] = c->transposed ? c->padding[i] : (uint32_t)max_i64(padding[0], 0);
    node.after[i] = c->transposed ? c->padding[i] : (uint32_t)max_i64(padding[1], 0);
    node.kernel[i] = p->taps[i].count;
    node.stride[i] = c->stride[i];
    node.dilation[i] = c->dilation[i] * p->taps[i].step;
    node.adjust[i] = c->adjust[i];
  }
  xl_convolution_node(l, &node, v->in, v->weights, v->bias, v->out);
}

/* The image without the rows (dim 0) or columns (dim 1) that no tap of the piece reads. */
static XnnId cropped(XnnLowering *l, const Convolution *c, const Piece *p, uint32_t dim, XnnId in) {
  int64_t begin = -min_i64(xl_piece_before(c, p, dim), 0),
          end = -min_i64(xl_piece_after(c, p, dim), 0);
  if (!xl_ok(l) || c->transposed || begin + end == 0)
    return in;
  uint32_t size = l->x.values[in].dims[1 + dim] - (uint32_t)(begin + end);
  return xl_sliced(l, in, 1 + dim, (uint32_t)begin, size);
}

/* The sum of the pieces into out. */
static void add_pieces(XnnLowering *l, NodeId n, const Convolution *c, const Piece *pieces,
                       uint32_t count, XnnId in, XnnId out) {
  ValueId weight = node_value(l->g, n, 1), bias = node_value(l->g, n, 2);
  XnnId sum = XNN_NONE, columns = in;
  for (uint32_t i = 0; i < count; i++) {
    if (i == 0 || memcmp(&pieces[i].taps[1], &pieces[i - 1].taps[1], sizeof(Taps)) != 0)
      columns = cropped(l, c, &pieces[i], 1, in);
    ConvolutionValues v = {.in = in, .weights = filter(l, weight, c, &pieces[i])};
    v.bias = i || !bias ? XNN_NONE : c->depthwise ? wide_bias(l, bias) : xl_filter(l, bias);
    XnnId part = v.out = count == 1 ? out : xl_temp_like(l, out);
    if (!is_whole(c, &pieces[i]) || !xl_by_strips(l, n, c, &v)) {
      v.in = cropped(l, c, &pieces[i], 0, columns);
      add_node(l, c, &pieces[i], &v);
    }
    if (i) {
      XnnId total = i + 1 == count ? out : xl_temp_like(l, out);
      xl_binary(l, XNN_ADD, sum, part, total);
      part = total;
    }
    sum = part;
  }
}

/* The pieces that the convolution is computed in. */
static uint32_t cut(XnnLowering *l, NodeId n, const Convolution *c, Piece *pieces) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0);
  Piece live = live_taps(l, n, c);
  uint32_t in[2] = {1, 1};
  for (uint32_t i = c->rank == 1; i < 2; i++) {
    SymInt size = value_dim(g, x, c->rank + i);
    in[i] = sym_is_const(size) ? (uint32_t)size : 0;
  }
  /* Codes that are cut are floats, which pays only where XNNPACK would have no loop. On operands
   * that are quantized at run time the loop is another one, of groups. */
  bool floats = value_is_const(g, node_value(g, n, 1)), groups = xl_is_quantized_at_run(g, x);
  if (c->depthwise && !groups)
    return xl_depthwise_pieces(c, &live, in, floats ? 1 : DEPTHWISE_TAPS + 1, pieces);
  pieces[0] = live;
  return 1;
}

/* The image of x, and the place of the result, in NHWC; image_as_line has to follow for lines. */
static XnnId image_of(XnnLowering *l, const Convolution *c, ValueId x) {
  return c->rank == 1 ? line_as_image(l, x) : xl_nhwc(l, x);
}

static XnnId image_of_result(XnnLowering *l, const Convolution *c, ValueId y) {
  return c->rank == 2 ? xl_result_nhwc(l, y)
                      : XL_TEMP(l, xl_dim(l, y, 0), 1, xl_dim(l, y, 2), xl_dim(l, y, 1));
}

/* By other nodes than one for each piece; whole: there is one, with all taps. */
static bool by_other_nodes(XnnLowering *l, NodeId n, const Convolution *c, bool whole, XnnId in,
                           XnnId out) {
  if (c->transposed)
    return xl_by_phases(l, n, c, in, out);
  return xl_by_live_taps(l, n, c, in, out) ||
         (whole && (xl_by_product(l, n, c, in, out) || xl_by_tiles(l, n, c, in, out)));
}

/* Of lines whose number and length vary. */
static void on_varying_lines(XnnLowering *l, NodeId n, const Convolution *c, const Piece *pieces,
                             uint32_t count, bool whole) {
  Permuted t = lines_as_image(l, node_value(l->g, n, 0));
  XnnId result = xl_result_permuted(l, node_result(l->g, n, 0), t);
  bool other = c->transposed ? xl_by_dynamic_phases(l, n, c, t.id, result)
                             : whole && xl_by_product(l, n, c, t.id, result);
  if (!other)
    add_pieces(l, n, c, pieces, count, t.id, result);
}

/* By nodes that need no NHWC. */
static bool in_any_layout(XnnLowering *l, NodeId n, const Convolution *c) {
  return xl_by_planar_patches(l, n, c) || xl_by_lines(l, n, c);
}

void lower_convolution(XnnLowering *l, NodeId n) {
  Convolution c;
  if (!read_convolution(l, n, &c))
    return;
  ValueId x = node_value(l->g, n, 0), y = node_result(l->g, n, 0);
  if (!is_constant_or_codes(l->g, node_value(l->g, n, 1))) {
    XnnId in = image_of(l, &c, x), out = image_of_result(l, &c, y);
    if (xl_by_windows(l, n, &c, in, out) && c.rank == 1)
      image_as_line(l, out, y);
    return;
  }
  Piece pieces[MAX_PIECES];
  uint32_t count = cut(l, n, &c, pieces);
  bool whole = count == 1 && is_whole(&c, pieces);
  if (c.rank == 1 && (xl_dynamic_dim_count(l->g, x) > 1 || xl_dynamic_dim_count(l->g, y) > 1)) {
    on_varying_lines(l, n, &c, pieces, count, whole);
    return;
  }
  if (in_any_layout(l, n, &c))
    return;
  XnnId in = image_of(l, &c, x);
  Blocks blocks;
  bool blocked = xl_find_blocks(l, n, &c, &blocks);
  if (xl_by_planes(l, n, &c, blocked ? blocks.share : 1, in))
    return;
  in = xl_repeat_channels(l, n, &c, in);
  XnnId out = image_of_result(l, &c, y);
  if (blocked)
    xl_by_blocks(l, n, &c, &blocks, in, out);
  else if (!by_other_nodes(l, n, &c, whole, in, out))
    add_pieces(l, n, &c, pieces, count, in, out);
  if (c.rank == 1)
    image_as_line(l, out, y);
}
