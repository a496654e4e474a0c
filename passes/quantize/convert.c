/* Nodes `observe` become quantize and dequantize: of weights at once, which leaves their integers
 * behind a dequantize; of values by the ranges that were found. A value that was never seen (a
 * branch that no sample took) stays in floats. */
#include <math.h>

#include "ir/builder.h"
#include "ir/match.h"
#include "ops/quantized.h"
#include "passes/pass.h"
#include "passes/quantize/blocks.h"
#include "passes/quantize/roles.h"
#include "passes/quantize/scales.h"
#include "support/number.h"

enum { BIAS_MAX = 1 << 30 }; /* of int32, so that sums have room */

/* --- weights --- */

static Channels channels_of(const Graph *g, ValueId v, uint32_t axis) {
  Channels c = {1, 1, 1};
  for (uint32_t i = 0; i < value_rank(g, v); i++) {
    uint64_t dim = (uint64_t)value_dim(g, v, i);
    if (i < axis)
      c.outer *= dim;
    else if (i == axis)
      c.count = dim;
    else
      c.inner *= dim;
  }
  return c;
}

/* The scale of what a product multiplies by its weight; 0: it is not quantized. The nodes before n
 * are converted already. */
static double input_scale(const Graph *g, NodeId product) {
  NodeId def = value_def(g, node_value(g, product, 0));
  return is_dequantize(g, def) ? (double)quantization_of(g, def).scale : 0;
}

/* Biases become integers of the scale of the products, which must not be too small for them:
 * weights of a dead channel would make it so. */
static double least_scale(const Graph *g, NodeId product, uint64_t channel) {
  ValueId bias = product ? node_value(g, product, 2) : 0;
  double in = product ? input_scale(g, product) : 0;
  if (!bias || in == 0 || !value_is_const(g, bias) || value_dtype(g, bias) != DTYPE_F32 ||
      channel >= value_constant(g, bias)->size / sizeof(float))
    return 0;
  return fabs((double)float_at(value_constant(g, bias)->data, channel)) / (in * BIAS_MAX);
}

static float *scales_of(Graph *g, NodeId n, ValueId w, const Channels *ch, int64_t high) {
  float *scales = ARENA_ARRAY(&g->arena, float, ch->count + 1);
  NodeId product = quant_product_of(g, n);
  channel_magnitudes(value_constant(g, w), ch, scales);
  for (uint64_t c = 0; c < ch->count; c++) {
    double scale = (double)scales[c] / (double)high, least = least_scale(g, product, c);
    scale = scale > least ? scale : least;
    scales[c] = scale == 0 ? 1 : usable_scale(scale);
  }
  return scales;
}

/* The nearest codes, or those by moments of what the weight is multiplied by. */
static Constant codes_of_channels(Graph *g, NodeId n, const Quantization *q, const Channels *ch,
                                  float *scales, bool transposed) {
  ValueId w = node_value(g, n, 0), moments = node_value(g, n, OBSERVE_MOMENTS);
  if (!moments)
    return channel_codes(g, value_constant(g, w), ch, transposed, scales, q->low, q->high);
  uint64_t rows = (uint64_t)value_dim(g, moments, 0);
  BlockMatrix m = {.floats = *value_constant(g, w),
                   .rows = ch->count,
                   .columns = ch->inner,
                   .block = (uint32_t)ch->inner};
  return channel_codes_by_moments(g, &m, rows / ch->inner,
                                  (const void *)value_constant(g, moments)->data, scales);
}

/* The integers of a weight that is marked at n, transposed when a permute of a matrix follows. */
static ValueId weight_codes(Graph *g, NodeId n, const Quantization *q, const Channels *ch,
                            float *scales, bool transposed) {
  ValueId w = node_value(g, n, 0);
  Constant codes = codes_of_channels(g, n, q, ch, scales, transposed);
  SymInt dims[MAX_RANK];
  uint32_t rank = value_rank(g, w);
  for (uint32_t i = 0; i < rank; i++)
    dims[i] = value_dim(g, w, transposed ? rank - 1 - i : i);
  TypeId type = graph_tensor_type(g, DTYPE_I8, rank, dims, ORDER_CONTIGUOUS);
  return graph_add_constant(g, type, codes, value_cget(g, w)->name);
}

static ValueId vector(Graph *g, const float *numbers, uint64_t count) {
  SymInt dim = (SymInt)count;
  TypeId type = graph_tensor_type(g, DTYPE_F32, 1, &dim, ORDER_CONTIGUOUS);
  return graph_add_constant(
      g, type, (Constant){.data = (const void *)numbers, .size = count * sizeof(float)}, 0);
}

/* The only user of the weight, a permute of a matrix; 0 otherwise. */
static NodeId permute_behind(const Graph *g, NodeId n) {
  ValueId v = node_result(g, n, 0);
  NodeId user = value_only_user(g, v);
  bool permutes = user && node_cget(g, user)->op == OP_PERMUTE_COPY;
  return permutes && value_rank(g, v) == 2 && node_ints(g, user, 1)[0] % 2 != 0 ? user : 0;
}

/* Scales and codes, by the moments of the columns where they are known. */
static Constant codes_of_blocks(Graph *g, NodeId n, const BlockMatrix *m, float *scales) {
  ValueId moments = node_value(g, n, OBSERVE_MOMENTS);
  if (moments && value_dim(g, moments, 0) == (SymInt)m->columns)
    return block_codes_by_moments(g, m, (const void *)value_constant(g, moments)->data, scales);
  block_scales(m, scales);
  return block_codes(g, m, scales);
}

/* A matrix of 4 bits as [outputs, inputs], however it lies. */
static Status convert_blocks(Graph *g, NodeId n, int64_t block) {
  ValueId w = node_value(g, n, 0);
  NodeId permute = permute_behind(g, n);
  BlockMatrix m = {.floats = *value_constant(g, w),
                   .rows = (uint64_t)value_dim(g, w, permute ? 1 : 0),
                   .columns = (uint64_t)value_dim(g, w, permute ? 0 : 1),
                   .transposed = permute,
                   .block = (uint32_t)block};
  uint64_t scale_count = m.rows * m.columns / m.block;
  float *scales = ARENA_ARRAY(&g->arena, float, (size_t)scale_count + 1);
  Constant codes = codes_of_blocks(g, n, &m, scales);
  SymInt dims[] = {(SymInt)m.rows, (SymInt)m.columns},
         blocks[] = {(SymInt)m.rows, (SymInt)(m.columns / m.block)};
  TypeId type = graph_tensor_type(g, DTYPE_I8, 2, dims, ORDER_CONTIGUOUS),
         scale_type = graph_tensor_type(g, DTYPE_F32, 2, blocks, ORDER_CONTIGUOUS);
  Quantization q = {
      .dtype = DTYPE_I8, .low = BLOCK_CODE_MIN, .high = BLOCK_CODE_MAX, .axis = 1, .block = block};
  ValueId integers = graph_add_constant(g, type, codes, value_cget(g, w)->name);
  q.scales = graph_add_constant(
      g, scale_type, (Constant){.data = (const void *)scales, .size = scale_count * sizeof *scales},
      0);
  Builder b = builder_make(g, n, node_cget(g, n)->loc);
  ValueId to = build_dequantize(&b, integers, &q);
  TRY(b.status);
  graph_replace_uses(g, node_result(g, permute ? permute : n, 0), to);
  if (permute)
    graph_remove_node(g, permute);
  graph_remove_node(g, n);
  return STATUS_OK;
}

/* Marked as a matrix of blocks of that many elements; 0: it is not. */
static int64_t marked_block(const Graph *g, NodeId n) {
  int64_t block = node_int(g, n, OBSERVE_RANGE);
  ValueId w = node_value(g, n, 0);
  if (block <= 0 || block > INT32_MAX || value_rank(g, w) != 2)
    return 0;
  return value_dim(g, w, permute_behind(g, n) ? 0 : 1) % block == 0 ? block : 0;
}

static Status convert_weight(Graph *g, NodeId n) {
  int64_t block = marked_block(g, n);
  if (block)
    return convert_blocks(g, n, block);
  ValueId w = node_value(g, n, 0), from = node_result(g, n, 0);
  int64_t axis = node_int(g, n, OBSERVE_AXIS);
  Quantization q = {.dtype = DTYPE_I8,
                    .low = node_int(g, n, OBSERVE_MIN),
                    .high = node_int(g, n, OBSERVE_MAX),
                    .axis = (uint32_t)wrap_dim(axis, value_rank(g, w))};
  Channels ch = channels_of(g, w, q.axis);
  NodeId permute = permute_behind(g, n);
  bool transposed = permute && q.axis == 1;
  float *scales = scales_of(g, n, w, &ch, q.high);
  ValueId codes = weight_codes(g, n, &q, &ch, scales, transposed);
  q.scales = vector(g, scales, ch.count);
  q.axis = transposed ? 0 : q.axis;
  Builder b = builder_make(g, n, node_cget(g, n)->loc);
  ValueId to = build_dequantize(&b, codes, &q);
  TRY(b.status);
  graph_replace_uses(g, transposed ? node_result(g, permute, 0) : from, to);
  if (transposed)
    graph_remove_node(g, permute);
  graph_remove_node(g, n);
  return STATUS_OK;
}

/* --- tables --- */

static bool is_gather(OpId op) {
  return op == OP_EMBEDDING || op == OP_INDEX_TENSOR || op == OP_INDEX_SELECT;
}

/* Of rows that are chosen by positions, the integers and their scales are: floats are made of those
 * rows alone. */
static Status convert_table(Graph *g, NodeId n, NodeId gather) {
  ValueId w = node_value(g, n, 0), rows = node_result(g, gather, 0);
  Quantization q = {.dtype = DTYPE_I8, .low = -INT8_MAX, .high = INT8_MAX};
  Channels ch = channels_of(g, w, 0);
  float *scales = scales_of(g, n, w, &ch, q.high);
  ValueId codes = weight_codes(g, n, &q, &ch, scales, false), factors = vector(g, scales, ch.count);
  Builder b = builder_make(g, gather, node_cget(g, gather)->loc);
  bool select = node_cget(g, gather)->op == OP_INDEX_SELECT;
  ValueId index = node_cget(g, gather)->op == OP_INDEX_TENSOR ? node_list_value(g, gather, 1, 0)
                                                              : node_value(g, gather, 1 + select);
  SymInt dims[MAX_RANK];
  uint32_t rank = value_rank(g, rows);
  for (uint32_t i = 0; i < rank; i++)
    dims[i] = i + 1 < rank ? value_dim(g, rows, i) : 1;
  ValueId chosen = build(&b, OP_INDEX_TENSOR, A_VAL(codes), A_VALS(&index, 1));
  ValueId scale = build(&b, OP_INDEX_TENSOR, A_VAL(factors), A_VALS(&index, 1));
  ValueId reals = build_cast(&b, chosen, DTYPE_F32);
  scale = build_view(&b, scale, dims, rank);
  ValueId y = build(&b, OP_MUL_TENSOR, A_VAL(reals), A_VAL(scale));
  TRY(b.status);
  value_get(g, y)->name = value_cget(g, rows)->name;
  graph_replace_uses(g, rows, y);
  graph_remove_node(g, gather);
  graph_remove_node(g, n);
  return STATUS_OK;
}

static NodeId gather_behind(const Graph *g, NodeId n) {
  ValueId v = node_result(g, n, 0);
  NodeId user = value_only_user(g, v);
  return user && is_gather(node_cget(g, user)->op) ? user : 0;
}

/* --- values --- */

/* A constant with the scale of a range. */
static ValueId constant_codes(Graph *g, ValueId v, const Quantization *q) {
  Channels ch = {1, 1, value_constant(g, v)->size / sizeof(float)};
  int8_t *codes = arena_alloc(&g->arena, (size_t)ch.inner + 1);
  const Constant *c = value_constant(g, v);
  for (uint64_t i = 0; i < ch.inner; i++) {
    double code = nearbyint((double)(float_at(c->data, i) / q->scale)) + (double)q->zero;
    codes[i] = isnan(code) ? 0 : (int8_t)fmin(fmax(code, (double)q->low), (double)q->high);
  }
  const Type *t = value_type(g, v);
  SymInt dims[MAX_RANK];
  if (t->rank)
    memcpy(dims, t->dims, t->rank * sizeof *dims);
  TypeId type = graph_tensor_type(g, DTYPE_I8, t->rank, dims, ORDER_CONTIGUOUS);
  return graph_add_constant(g, type, (Constant){.data = (void *)codes, .size = ch.inner},
                            value_cget(g, v)->name);
}

static Status convert_value(Graph *g, NodeId n) {
  ValueId v = node_value(g, n, 0), to = v;
  if (!node_absent(g, n, OBSERVE_LOW) && !node_absent(g, n, OBSERVE_HIGH)) {
    Quantization q = observed_quantization(g, n);
    Builder b = builder_make(g, n, node_cget(g, n)->loc);
    to = value_is_const(g, v) ? constant_codes(g, v, &q) : build_quantize(&b, v, &q);
    to = build_dequantize(&b, to, &q);
    TRY(b.status);
  }
  graph_replace_uses(g, node_result(g, n, 0), to);
  graph_remove_node(g, n);
  return STATUS_OK;
}

Status pass_convert(PassContext *p, Graph *g) {
  uint64_t weights = 0, values = 0, blocks = 0;
  if (!p->options->quantize)
    return STATUS_OK;
  TRY(pass_eliminate_dead(p, g)); /* products that were spelt anew still name their weights */
  for (NodeId n = g->first, next; n; n = next) {
    next = node_cget(g, n)->next;
    if (node_cget(g, n)->op != OP_OBSERVE)
      continue;
    bool weight = !node_absent(g, n, OBSERVE_AXIS) && value_is_const(g, node_value(g, n, 0));
    NodeId gather = weight ? gather_behind(g, n) : 0;
    blocks += weight && !gather && marked_block(g, n) != 0;
    if (next && (next == gather || (weight && next == permute_behind(g, n))))
      next = node_cget(g, next)->next;
    TRY(gather ? convert_table(g, n, gather) : weight ? convert_weight(g, n) : convert_value(g, n));
    *(weight ? &weights : &values) += 1;
  }
  pass_count(p, "weights", weights);
  pass_count(p, "of blocks", blocks);
  pass_count(p, "values", values);
  return STATUS_OK;
}
