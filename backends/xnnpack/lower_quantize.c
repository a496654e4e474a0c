/* Quantized values. In the XNNPACK graph as it is lowered, quantize and dequantize are conversions
 * and everything between them computes in f32; fuse.c makes integer nodes of that afterwards.
 *
 * Codes are int8: those of u8 are moved by 128 where they come in and go out. A dequantized
 * constant is a constant of floats with a twin that holds its codes. */
#include <math.h>

#include "backends/xnnpack/lower.h"
#include "ops/delegate.h"

enum { UNSIGNED_SHIFT = 128 };

/* --- activations --- */

bool xl_codes(const Graph *g, ValueId v, Quantization *q) {
  const Type *t = value_type(g, v);
  if (t->kind != TYPE_TENSOR || !dtype_in((DType)t->dtype, DT(I8) | DT(U8)) || value_is_const(g, v))
    return false;
  NodeId node = value_def(g, v);
  if (!is_quantize(g, node)) {
    node = 0;
    for (UseId u = first_use(g, v); u && !node; u = g->uses[u].next)
      if (g->uses[u].node != NODE_OUTPUT && is_dequantize(g, g->uses[u].node))
        node = g->uses[u].node;
  }
  if (node)
    *q = quantization_of(g, node);
  return node && !q->scales && isnormal(q->scale) && q->scale > 0;
}

void xl_set_codes(XnnLowering *l, XnnId id, const Quantization *q) {
  if (!xl_ok(l))
    return;
  l->x.values[id].datatype = XNN_QINT8;
  xnn_set_scale(&l->x, id, q->scale,
                (int32_t)q->zero - (q->dtype == DTYPE_U8 ? UNSIGNED_SHIFT : 0));
}

XnnId xl_equal_codes(XnnLowering *l, uint32_t rank, const uint32_t *dims, int8_t code,
                     float scale) {
  uint64_t count = xnn_dims_count(dims, rank);
  uint8_t *bytes = arena_alloc(&l->g->arena, count + 1);
  memset(bytes, code, count);
  SymInt size = (SymInt)count;
  TypeId type = graph_tensor_type(l->g, DTYPE_I8, 1, &size, ORDER_CONTIGUOUS);
  ValueId v = graph_add_constant(l->g, type, (Constant){.data = bytes, .size = count}, 0);
  XnnId id = xnn_constant(&l->x, XNN_QINT8, rank, dims, (XnnData){.v = v});
  xnn_set_scale(&l->x, id, scale, 0);
  return id;
}

/* A value like id, and the conversion of one into the other. */
static XnnId other_codes(XnnLowering *l, const Quantization *q, XnnId id, bool comes_in) {
  XnnId bytes = xl_temp_like(l, id);
  if (!xl_ok(l))
    return XNN_NONE;
  l->x.values[bytes].datatype = XNN_QUINT8;
  xnn_set_scale(&l->x, bytes, q->scale, (int32_t)q->zero);
  xl_unary(l, XNN_CONVERT, comes_in ? bytes : id, comes_in ? id : bytes);
  return bytes;
}

XnnId xl_codes_in(XnnLowering *l, ValueId v, XnnId id) {
  Quantization q;
  if (!xl_ok(l) || !xl_codes(l->g, v, &q))
    return XNN_NONE;
  xl_input(l, v, q.dtype == DTYPE_U8 ? other_codes(l, &q, id, true) : id);
  return id;
}

XnnId xl_codes_out(XnnLowering *l, ValueId v, XnnId id) {
  Quantization q;
  bool moved = xl_codes(l->g, v, &q) && q.dtype == DTYPE_U8;
  return moved ? other_codes(l, &q, id, false) : id;
}

/* x and y in the same layout, or both as views left x. */
static void convert(XnnLowering *l, ValueId x, ValueId y) {
  Quantization q;
  l->takes_codes = true;
  XnnInOut io = xl_in_out(l, x, y);
  if (xl_codes(l->g, y, &q))
    xl_set_codes(l, io.out, &q);
  xl_unary(l, XNN_CONVERT, io.in, io.out);
  l->takes_codes = false;
}

/* x not as views left it: axes are dropped from floats only, and nodes that quantize at run time
 * take the rows and images that the graph has. */
static void convert_in_order(XnnLowering *l, ValueId x, ValueId y) {
  if (xl_has_permuted(l, x))
    (void)xl_plain(l, x);
  convert(l, x, y);
}

static bool check_parameters(XnnLowering *l, NodeId n, ValueId codes) {
  Graph *g = l->g;
  Quantization own = quantization_of(g, n), q;
  if (own.scales)
    return xl_refuse(l, XNN_RULE_QUANTIZATION, R_STR("supported", "per-tensor"));
  if (!dtype_in(own.dtype, DT(I8) | DT(U8)))
    return xl_refuse(l, XNN_RULE_ELEMENT_TYPE, R_STR("dtype", dtype_name(own.dtype)));
  if (!xl_codes(g, codes, &q))
    return xl_refuse(l, XNN_RULE_QUANTIZATION, R_FLOAT("scale", own.scale));
  if (!quantization_equal(g, &own, &q))
    return xl_refuse(l, XNN_RULE_QUANTIZATION, R_FLOAT("scale", own.scale),
                     R_FLOAT("other", q.scale));
  int64_t least = own.dtype == DTYPE_U8 ? 0 : INT8_MIN;
  if (own.low != least || own.high != least + UINT8_MAX)
    return xl_refuse(l, XNN_RULE_QUANTIZATION, R_INT("low", own.low), R_INT("high", own.high));
  return own.zero >= own.low && own.zero <= own.high
             ? true
             : xl_refuse(l, XNN_RULE_QUANTIZATION, R_INT("zero-point", own.zero));
}

void lower_quantize(XnnLowering *l, NodeId n) {
  ValueId x = node_value(l->g, n, 0), y = node_result(l->g, n, 0);
  if (!check_parameters(l, n, y))
    return;
  if (xl_is_output(l, y))
    convert_in_order(l, x, y);
  else
    convert(l, x, y);
}

void lower_dequantize(XnnLowering *l, NodeId n) {
  ValueId x = node_value(l->g, n, 0), y = node_result(l->g, n, 0);
  if (check_parameters(l, n, x))
    convert(l, x, y);
}

/* --- at run time --- */

enum { MOVES = 8 };

static bool moves(OpId op) {
  return op == OP_CONSTANT_PAD_ND || op == OP_INDEX_SELECT || op == OP_VIEW_COPY ||
         op == OP_PERMUTE_COPY || op == OP_SLICE_COPY_TENSOR || op == OP_EXPAND_COPY;
}

/* Whether the node, which moves, leaves nothing out: the range stays the same. */
static bool moves_all(const Graph *g, NodeId n) {
  OpId op = node_cget(g, n)->op;
  bool all = op == OP_CONSTANT_PAD_ND || op == OP_VIEW_COPY || op == OP_PERMUTE_COPY;
  for (uint32_t i = 0; op == OP_CONSTANT_PAD_ND && i < node_list_count(g, n, 1); i++)
    all = all && node_ints(g, n, 1)[i] >= 0;
  return all;
}

/* Whether the images that the convolution takes can become one (fuse_dynamic.c). */
static bool can_stack(const Graph *g, NodeId convolution) {
  ValueId x = node_value(g, convolution, 0);
  uint32_t rank = value_rank(g, x);
  bool known = true;
  for (uint32_t i = 2; i < rank; i++)
    known = known && sym_is_const(value_dim(g, x, i));
  return known && (rank == 3 || rank == 4) && !node_bool(g, convolution, 6);
}

/* Whether a convolution takes x for several images that cannot become one, at most so many moves
 * away: as one over three dims is computed by planes, a part of the planes each time. */
static bool takes_images(const Graph *g, ValueId x, uint32_t most, bool all) {
  for (UseId u = first_use(g, x); u; u = g->uses[u].next) {
    NodeId user = g->uses[u].node;
    OpId op = user == NODE_OUTPUT ? OP_NONE : node_cget(g, user)->op;
    if (op == OP_CONVOLUTION && value_dim(g, x, 0) != 1 && !(all && can_stack(g, user)))
      return true;
    if (most && moves(op) &&
        takes_images(g, node_result(g, user, 0), most - 1, all && moves_all(g, user)))
      return true;
  }
  return false;
}

/* Whether x, rows that are quantized as a whole, is a grid of them: [height, width, columns], the
 * first two of which vary (fuse_dynamic.c). */
static bool is_grid(const Graph *g, ValueId x) {
  return value_rank(g, x) == 3 && xl_dynamic_dim_count(g, x) == 2 &&
         sym_is_const(value_dim(g, x, 2));
}

bool xl_is_quantized_at_run(const Graph *g, ValueId x) {
  NodeId n = value_def(g, x);
  return is_dequantize(g, n) && quantization_of(g, n).dynamic;
}

/* Whether v, or what it is made of by moves, is quantized at run time. A delegate stands for its
 * nodes, which were asked before. */
static bool has_codes_at_run(const Graph *g, ValueId v) {
  NodeId n = value_def(g, v);
  for (uint32_t i = 0; n && i < MOVES && moves(node_cget(g, n)->op); i++) {
    v = node_value(g, n, 0);
    n = value_def(g, v);
  }
  return n && (op_has_trait(node_cget(g, n)->op, OP_DELEGATE) || xl_is_quantized_at_run(g, v));
}

/* Whether n is a product of two operands that are quantized at run time, as those of attention:
 * it is computed on floats (fuse.c). */
static bool is_float_product(const Graph *g, NodeId n) {
  OpId op = node_cget(g, n)->op;
  return (op == OP_MATMUL || op == OP_BMM) && has_codes_at_run(g, node_value(g, n, 0)) &&
         has_codes_at_run(g, node_value(g, n, 1));
}

/* Whether such products are all that uses x, at most so many moves away: its range is not needed.
 */
static bool stays_floats(const Graph *g, ValueId x, uint32_t most) {
  for (UseId u = first_use(g, x); u; u = g->uses[u].next) {
    NodeId user = g->uses[u].node;
    if (user == NODE_OUTPUT)
      return false;
    OpId op = node_cget(g, user)->op;
    if (!is_float_product(g, user) && !op_has_trait(op, OP_DELEGATE) &&
        !(most && moves(op) && stays_floats(g, node_result(g, user, 0), most - 1)))
      return false;
  }
  return true;
}

/* Whether products that quantize by rows or images can quantize x, a result of a node that
 * dequantizes it, as a whole: an image, or rows of which at most one dim varies, or a grid of them
 * (fuse_dynamic.c). */
static bool is_one_image(const Graph *g, ValueId x) {
  if (quantization_of(g, value_def(g, x)).rows || stays_floats(g, x, MOVES))
    return true;
  bool rows = false;
  for (UseId u = first_use(g, x); u; u = g->uses[u].next) {
    NodeId user = g->uses[u].node;
    rows = rows || user == NODE_OUTPUT || node_cget(g, user)->op != OP_CONVOLUTION;
  }
  if (takes_images(g, x, MOVES, true))
    return false;
  return !rows || is_grid(g, x) ||
         (xl_dynamic_dim_count(g, x) <= 1 && value_rank(g, x) >= 2 &&
          sym_is_const(value_dim(g, x, value_rank(g, x) - 1)));
}

/* Whether everything that uses results of n quantizes and dequantizes one value so. */
static bool used_by_pair(const Graph *g, NodeId n) {
  for (uint32_t i = 0; i < node_cget(g, n)->result_count; i++)
    for (UseId u = first_use(g, node_result(g, n, i)); u; u = g->uses[u].next) {
      NodeId user = g->uses[u].node;
      if (user == NODE_OUTPUT || (!is_quantize(g, user) && !is_dequantize(g, user)) ||
          !quantization_of(g, user).dynamic)
        return false;
      if (is_dequantize(g, user) && !is_one_image(g, node_result(g, user, 0)))
        return false;
    }
  return true;
}

/* Other sizes of x might do, where they are not known. */
static void refuse_range(XnnLowering *l, ValueId x) {
  bool varies = xl_dynamic_dim_count(l->g, x) != 0;
  xl_refuse(l, varies ? XNN_RULE_RUN_TIME_RANGE : XNN_RULE_QUANTIZATION,
            R_STR("supported", "one-image"));
}

/* Nothing: products of codes quantize their operand by themselves. */
void lower_choice(XnnLowering *l, NodeId n) {
  if (!used_by_pair(l->g, n))
    refuse_range(l, node_value(l->g, n, 0));
}

/* x, with its three dims in order behind an axis of size 1. */
static Permuted behind_one(XnnLowering *l, ValueId x) {
  Permuted t = xl_permuted(l, x), to = {.axis = {1, 2, 3}};
  uint32_t perm[] = {0, t.axis[0], t.axis[1], t.axis[2]};
  if (xl_rank(l, t.id) != 4 || xl_is_unmerged(&t, 3)) {
    t = (Permuted){.id = xl_plain(l, x), .axis = {0, 1, 2}};
    xl_add_axis(l, &t, 3);
    return t;
  }
  while (perm[0] < 3 && !xl_is_extra_axis(&t, 3, perm[0]))
    perm[0]++;
  to.id = t.id;
  xl_permute_axes(l, &to, perm, 4);
  return to;
}

/* Marks x, which is y quantized, as [1, height, width, columns]. */
static void mark_grid(XnnLowering *l, ValueId x, ValueId y) {
  Permuted t = behind_one(l, x);
  XnnId out = xl_temp_like(l, t.id);
  xl_unary(l, XNN_CONVERT, t.id, out);
  if (!xl_ok(l))
    return;
  l->x.nodes[l->x.node_count - 1].fields[2] = XNN_MARK_GRID;
  t.id = out;
  xl_set_permuted(l, y, t);
}

/* A conversion of floats to floats marks what is quantized. */
void lower_dynamic(XnnLowering *l, NodeId n) {
  NodeId from = value_def(l->g, node_value(l->g, n, 0));
  if (!is_quantize(l->g, from) || !quantization_of(l->g, from).dynamic ||
      !is_one_image(l->g, node_result(l->g, n, 0)))
    refuse_range(l, node_result(l->g, n, 0));
  if (!xl_ok(l))
    return;
  bool by_rows = quantization_of(l->g, from).rows;
  if (!by_rows && is_grid(l->g, node_result(l->g, n, 0))) {
    mark_grid(l, node_value(l->g, from, 0), node_result(l->g, n, 0));
    return;
  }
  convert_in_order(l, node_value(l->g, from, 0), node_result(l->g, n, 0));
  if (xl_ok(l) && by_rows)
    l->x.nodes[l->x.node_count - 1].fields[2] = XNN_MARK_ROWS;
}

/* --- constants --- */

/* A constant of int8 with the dims of `like`; bytes in the arena of the graph. */
static ValueId signed_constant(Graph *g, ValueId like, const uint8_t *bytes) {
  const Type *t = value_type(g, like);
  SymInt dims[MAX_RANK];
  if (t->rank)
    memcpy(dims, t->dims, t->rank * sizeof *dims);
  TypeId type = graph_tensor_type(g, DTYPE_I8, t->rank, dims, ORDER_CONTIGUOUS);
  return graph_add_constant(g, type,
                            (Constant){.data = bytes, .size = value_constant(g, like)->size}, 0);
}

/* The codes of u8 as int8, when all zero points are 128. */
static ValueId signed_codes(XnnLowering *l, ValueId codes) {
  const Constant *c = value_constant(l->g, codes);
  uint8_t *bytes = arena_alloc(&l->g->arena, c->size + 1);
  for (uint64_t i = 0; i < c->size; i++)
    bytes[i] = c->data[i] ^ UNSIGNED_SHIFT;
  return signed_constant(l->g, codes, bytes);
}

/* Whether all zero points are that number. */
static bool zeros_are(const Graph *g, const Quantization *q, int64_t number) {
  const Constant *c = q->zeros ? value_constant(g, q->zeros) : NULL;
  if (!c)
    return (q->scales ? 0 : q->zero) == number;
  for (uint64_t i = 0; i < c->size; i += sizeof number)
    if (memcmp(c->data + i, &number, sizeof number) != 0)
      return false;
  return true;
}

static bool scales_are_normal(const Graph *g, const Quantization *q) {
  const Constant *c = q->scales ? value_constant(g, q->scales) : NULL;
  if (!c)
    return isnormal(q->scale) && q->scale > 0;
  for (uint64_t i = 0; i < c->size; i += sizeof(float)) {
    float scale;
    memcpy(&scale, c->data + i, sizeof scale);
    if (!isnormal(scale) || scale < 0)
      return false;
  }
  return c->size > 0;
}

float xl_scale_at(const Graph *g, const Quantization *q, uint64_t at) {
  float scale;
  memcpy(&scale, value_constant(g, q->scales)->data + at * sizeof scale, sizeof scale);
  return scale;
}

/* The datatype of the codes as a filter, an operand or a bias; FP32 when there is none. */
static XnnDatatype twin_datatype(const Graph *g, const Quantization *q) {
  bool signed_zero = zeros_are(g, q, 0), unsigned_zero = zeros_are(g, q, UNSIGNED_SHIFT);
  if (!scales_are_normal(g, q))
    return XNN_FP32;
  if (q->dtype == DTYPE_I32 && signed_zero)
    return q->scales ? XNN_QCINT32 : XNN_QINT32;
  bool eight = (q->dtype == DTYPE_I8 && signed_zero) || (q->dtype == DTYPE_U8 && unsigned_zero);
  if (eight)
    return q->scales ? XNN_QCINT8 : XNN_QINT8;
  bool any = !q->scales && (q->dtype == DTYPE_I8 || q->dtype == DTYPE_U8) && q->zero >= q->low &&
             q->zero <= q->high;
  return any ? XNN_QINT8 : XNN_FP32; /* an operand, no filter */
}

/* --- constants of codes --- */

/* Elements of constant codes that follow each other in one channel. */
static uint64_t channel_run(const Graph *g, const Quantization *q, ValueId codes) {
  return (uint64_t)dims_count(value_type(g, codes)->dims, q->axis + 1, value_rank(g, codes));
}

static int64_t zero_at(const Graph *g, const Quantization *q, uint64_t channel) {
  const Constant *c = q->zeros ? value_constant(g, q->zeros) : NULL;
  int64_t zero = q->zero;
  if (c)
    memcpy(&zero, c->data + channel * sizeof zero, sizeof zero);
  return zero;
}

/* Codes less their zero points, when those are int8, too: what has 4 bits, or few values. */
static void take_zeros_away(XnnLowering *l, Quantization *q, ValueId *codes) {
  Graph *g = l->g;
  if ((q->dtype != DTYPE_I8 && q->dtype != DTYPE_U8) || zeros_are(g, q, 0) ||
      (q->dtype == DTYPE_U8 && zeros_are(g, q, UNSIGNED_SHIFT)))
    return;
  const Constant *c = value_constant(g, *codes);
  uint64_t run = q->scales ? channel_run(g, q, *codes) : c->size,
           channels = q->scales ? (uint64_t)value_dim(g, q->scales, 0) : 1;
  uint8_t *bytes = arena_alloc(&g->arena, c->size + 1);
  for (uint64_t i = 0; i < c->size; i++) {
    int64_t code = q->dtype == DTYPE_U8 ? c->data[i] : (int8_t)c->data[i],
            number = code - zero_at(g, q, i / run % channels);
    if (number < INT8_MIN || number > INT8_MAX)
      return;
    bytes[i] = (uint8_t)number;
  }
  *codes = signed_constant(g, *codes, bytes);
  q->dtype = DTYPE_I8;
  q->zero = 0;
  q->zeros = 0;
}

/* The codes of v in the order of the floats. */
static XnnId twin_of(XnnLowering *l, const Quantization *q, ValueId codes, uint32_t rank,
                     const uint32_t *dims, const uint32_t *perm, XnnId *shift) {
  if (q->block)
    return rank == 2 ? xl_block_twin(l, q, codes, dims, perm, shift) : XNN_NONE;
  XnnDatatype datatype = twin_datatype(l->g, q);
  size_t size = dtype_size(q->dtype);
  if (datatype == XNN_FP32)
    return q->dtype == DTYPE_I32 || rank != 2 ? XNN_NONE
                                              : xl_row_twin(l, q, codes, dims, perm, shift);
  if (q->dtype == DTYPE_U8)
    codes = signed_codes(l, codes);
  XnnId id = xnn_constant(&l->x, datatype, rank, dims,
                          (XnnData){codes, xl_order(l, size, rank, dims, perm)});
  if (!q->scales) {
    xnn_set_scale(&l->x, id, q->scale,
                  (int32_t)q->zero - (q->dtype == DTYPE_U8 ? UNSIGNED_SHIFT : 0));
    return id;
  }
  uint32_t channel = 0;
  while (perm[channel] != q->axis)
    channel++;
  xnn_set_channels(&l->x, id, channel, (XnnData){.v = q->scales},
                   (uint32_t)value_dim(l->g, q->scales, 0));
  return id;
}

XnnId xl_dequantized_constant(XnnLowering *l, ValueId v, uint32_t rank, const uint32_t *dims,
                              const uint32_t *perm) {
  NodeId n = dequantized_constant(l->g, v);
  XnnId id = xnn_constant(&l->x, XNN_FP32, rank, dims,
                          (XnnData){v, xl_order(l, sizeof(float), rank, dims, perm)});
  if (l->trial)
    return id;
  Quantization q = quantization_of(l->g, n);
  ValueId codes = node_value(l->g, n, 0);
  if (!q.block)
    take_zeros_away(l, &q, &codes);
  XnnId shift = XNN_NONE, twin = twin_of(l, &q, codes, rank, dims, perm, &shift);
  l->x.values[id].shift = shift == XNN_NONE ? 0 : shift + 1;
  l->x.values[id].codes = twin == XNN_NONE ? 0 : twin + 1;
  return id;
}

/* --- picked constants --- */

/* Element i is element from[i] of `bytes`, or `zero` where that is XL_NO_ELEMENT. */
static uint8_t *picked(XnnLowering *l, const void *bytes, size_t element, const int32_t *from,
                       uint64_t count, int32_t zero) {
  uint8_t *all = arena_alloc(&l->g->arena, count * element + 1), *to = all;
  for (uint64_t i = 0; i < count; i++, to += element)
    if (from[i] == XL_NO_ELEMENT)
      memset(to, zero, element); /* a number of one byte, or 0 */
    else
      memcpy(to, (const uint8_t *)bytes + (uint64_t)from[i] * element, element);
  return all;
}

/* The channel of all `row` elements, whose numbers in the constant are from[i], where each of
 * `channels` has `run` elements that follow each other; -1: they are of several. */
static int64_t channel_of(const int32_t *from, uint64_t row, uint64_t run, uint64_t channels) {
  int64_t channel = -1;
  for (uint64_t k = 0; k < row; k++) {
    if (from[k] == XL_NO_ELEMENT)
      continue;
    int64_t own = (int64_t)((uint64_t)from[k] / run % channels);
    if (channel >= 0 && channel != own)
      return -1;
    channel = own;
  }
  return channel;
}

/* The scale of each of `rows` rows of that many elements; 0 when one has several. */
static ValueId picked_scales(XnnLowering *l, const Quantization *q, uint64_t run,
                             const int32_t *from, uint32_t rows, uint64_t row) {
  uint64_t channels = (uint64_t)value_dim(l->g, q->scales, 0);
  float *scales = ARENA_ARRAY(&l->g->arena, float, (size_t)rows + 1);
  for (uint32_t i = 0; i < rows; i++) {
    int64_t channel = channel_of(from + i * row, row, run, channels);
    if (channel < 0)
      return 0;
    scales[i] = xl_scale_at(l->g, q, (uint64_t)channel);
  }
  SymInt dims[] = {rows};
  return graph_add_constant(l->g, graph_tensor_type(l->g, DTYPE_F32, 1, dims, ORDER_CONTIGUOUS),
                            (Constant){.data = (void *)scales, .size = rows * sizeof *scales}, 0);
}

static XnnId picked_twin(XnnLowering *l, NodeId n, uint32_t rank, const uint32_t *dims,
                         const int32_t *from, uint64_t count) {
  Graph *g = l->g;
  Quantization q = quantization_of(g, n);
  ValueId codes = node_value(g, n, 0);
  if (q.block)
    return XNN_NONE;
  uint64_t run = channel_run(g, &q, codes);
  take_zeros_away(l, &q, &codes);
  XnnDatatype datatype = twin_datatype(g, &q);
  ValueId scales = q.scales ? picked_scales(l, &q, run, from, dims[0], count / dims[0]) : 0;
  if (datatype == XNN_FP32 || (q.scales && !scales))
    return XNN_NONE;
  int32_t zero = q.scales ? 0 : (int32_t)q.zero - (q.dtype == DTYPE_U8 ? UNSIGNED_SHIFT : 0);
  if (q.dtype == DTYPE_U8)
    codes = signed_codes(l, codes);
  DType dtype = q.dtype == DTYPE_I32 ? DTYPE_I32 : DTYPE_I8;
  SymInt sizes[XNN_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++)
    sizes[i] = dims[i];
  uint8_t *bytes = picked(l, value_constant(g, codes)->data, dtype_size(dtype), from, count, zero);
  ValueId v = graph_add_constant(g, graph_tensor_type(g, dtype, rank, sizes, ORDER_CONTIGUOUS),
                                 (Constant){.data = bytes, .size = count * dtype_size(dtype)}, 0);
  XnnId id = xnn_constant(&l->x, datatype, rank, dims, (XnnData){.v = v});
  if (scales)
    xnn_set_channels(&l->x, id, 0, (XnnData){.v = scales}, dims[0]);
  else
    xnn_set_scale(&l->x, id, q.scale, zero);
  return id;
}

XnnId xl_picked_constant(XnnLowering *l, ValueId v, bool wide, uint32_t rank, const uint32_t *dims,
                         const int32_t *from) {
  bool half = !wide && xl_ok(l) && value_dtype(l->g, v) == DTYPE_F16;
  if (!xl_ok(l) || l->trial)
    return xl_made_constant(l, half, rank, dims, NULL);
  uint64_t count = xnn_dims_count(dims, rank);
  const void *source =
      half ? value_constant(l->g, v)->data : (const void *)xl_constant_floats(l, v);
  XnnId id =
      xl_made_constant(l, half, rank, dims,
                       picked(l, source, half ? sizeof(uint16_t) : sizeof(float), from, count, 0));
  NodeId n = dequantized_constant(l->g, v);
  XnnId twin = n ? picked_twin(l, n, rank, dims, from, count) : XNN_NONE;
  l->x.values[id].codes = twin == XNN_NONE ? 0 : twin + 1;
  return id;
}

XnnId xl_repeated_bias(XnnLowering *l, ValueId bias, uint32_t count) {
  uint32_t own = xl_dim(l, bias, 0);
  int32_t *from = ARENA_ARRAY(l->arena, int32_t, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++)
    from[i] = (int32_t)(i % own);
  return xl_picked_constant(l, bias, false, 1, &count, from);
}

/* Floats that are still needed, of dequantized constants, are made now. */
static void make_floats(XnnLowering *l, XnnData *data) {
  NodeId n = dequantized_constant(l->g, data->v);
  if (!n || value_is_const(l->g, data->v))
    return;
  uint64_t size = type_bytes_upper(l->g, value_type(l->g, data->v));
  float *floats = arena_alloc(&l->g->arena, size + 1);
  dequantize_constant(l->g, n, floats);
  data->v = graph_add_constant(l->g, value_cget(l->g, data->v)->type,
                               (Constant){.data = (const void *)floats, .size = size}, 0);
}

void xl_finish_constants(XnnLowering *l) {
  XnnGraph *x = &l->x;
  xnn_drop_constants(x, l->arena);
  for (uint32_t i = 0; i < x->data_count; i++)
    make_floats(l, &x->data[i]);
}
