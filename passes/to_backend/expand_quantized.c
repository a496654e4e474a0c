/* Quantization as plain arithmetic, where no backend took it: a plain runtime has no kernels of
 * quantized_decomposed. Without a backend or kernels to wait for it is done first of all, so that
 * the passes that follow see what is computed. */
#include "ops/quantized.h"
#include "passes/pass.h"

static ValueId step(Builder *b, OpId op, ValueId x, ValueId y) {
  if (op == OP_DIV_TENSOR_MODE)
    return build(b, op, A_VAL(x), A_VAL(y), A_NONE);
  return build_binary(b, op, x, y);
}

/* count numbers along `axis` of a tensor of that rank. */
static ValueId along(Builder *b, const float *numbers, uint32_t count, uint32_t axis,
                     uint32_t rank) {
  int64_t dims[MAX_RANK] = {count};
  for (uint32_t i = 1; i < rank - axis; i++)
    dims[i] = 1;
  return build_const(b, DTYPE_F32, rank - axis, dims, numbers);
}

/* A vector that arrives at run time, likewise. */
static ValueId view_along(Builder *b, ValueId v, uint32_t axis, uint32_t rank) {
  SymInt dims[MAX_RANK] = {value_dim(b->g, v, 0)};
  for (uint32_t i = 1; i < rank - axis; i++)
    dims[i] = 1;
  return build_view(b, build_cast(b, v, DTYPE_F32), dims, rank - axis);
}

static ValueId scale_of(Builder *b, const Quantization *q, uint32_t rank) {
  if (q->dynamic)
    return q->scales;
  if (!q->scales)
    return build_scalar(b, DTYPE_F32, (double)q->scale);
  const Constant *c = value_constant(b->g, q->scales);
  if (!c)
    return view_along(b, q->scales, q->axis, rank);
  uint32_t count = (uint32_t)(c->size / sizeof(float));
  float *numbers = ARENA_ARRAY(&b->g->arena, float, count + 1);
  memcpy(numbers, c->data, c->size);
  return along(b, numbers, count, q->axis, rank);
}

/* 0 when all zero points are 0. */
static ValueId zero_of(Builder *b, const Quantization *q, uint32_t rank) {
  if (q->dynamic)
    return build_cast(b, q->zeros, DTYPE_F32);
  if (!q->zeros)
    return q->zero ? build_scalar(b, DTYPE_F32, (double)q->zero) : 0;
  const Constant *c = value_constant(b->g, q->zeros);
  if (!c)
    return view_along(b, q->zeros, q->axis, rank);
  uint32_t count = (uint32_t)(c->size / sizeof(int64_t));
  float *numbers = ARENA_ARRAY(&b->g->arena, float, count + 1);
  bool any = false;
  for (uint32_t i = 0; i < count; i++) {
    int64_t zero;
    memcpy(&zero, c->data + i * sizeof zero, sizeof zero);
    numbers[i] = (float)zero;
    any = any || zero;
  }
  return any ? along(b, numbers, count, q->axis, rank) : 0;
}

/* Whether the runtime's library `quantized` has a kernel for n. Constants are computed ahead. */
static bool stays_call(Builder *b, NodeId n) {
  const PassOptions *options = b->data;
  return options->quantized_kernels && quantized_call(b->g, n) &&
         !value_is_const(b->g, node_value(b->g, n, 0));
}

/* What n quantizes or dequantizes, and its scale and zero point, 0: none, along the axis. */
typedef struct Parts {
  Quantization q;
  ValueId x, scale, zero;
} Parts;

static Parts parts_of(Builder *b, NodeId n) {
  Parts p = {.q = quantization_of(b->g, n), .x = node_value(b->g, n, 0)};
  uint32_t rank = value_rank(b->g, p.x);
  p.scale = scale_of(b, &p.q, rank);
  p.zero = zero_of(b, &p.q, rank);
  return p;
}

/* The runtime's division multiplies by the reciprocal when the divisor has one element and no
 * rounding mode is named. */
static ValueId expand_quantize(Builder *b, NodeId n) {
  if (stays_call(b, n))
    return 0;
  const Parts p = parts_of(b, n);
  ValueId y = step(b, OP_DIV_TENSOR_MODE, p.x, p.scale);
  y = build(b, OP_ROUND, A_VAL(y));
  if (p.zero)
    y = step(b, OP_ADD_TENSOR, y, p.zero);
  y = build(b, OP_CLAMP, A_VAL(y), A_FLOAT((double)p.q.low), A_FLOAT((double)p.q.high));
  return build_cast(b, y, p.q.dtype);
}

/* v with the dim `axis` as blocks and elements of one. */
static ValueId split(Builder *b, ValueId v, uint32_t axis, int64_t block) {
  SymInt dims[MAX_RANK + 1];
  uint32_t rank = value_rank(b->g, v);
  for (uint32_t i = 0, k = 0; i < rank; i++) {
    dims[k++] = i == axis ? value_dim(b->g, v, i) / block : value_dim(b->g, v, i);
    if (i == axis)
      dims[k++] = block;
  }
  return build_view(b, v, dims, rank + 1);
}

static ValueId expand_blocks(Builder *b, NodeId n) {
  Quantization q = quantization_of(b->g, n);
  ValueId x = node_value(b->g, n, 0);
  ValueId y = build_cast(b, split(b, x, q.axis, q.block), DTYPE_F32);
  if (q.zeros)
    y = step(b, OP_SUB_TENSOR, y, build_cast(b, split(b, q.zeros, q.axis, 1), DTYPE_F32));
  y = step(b, OP_MUL_TENSOR, y, split(b, q.scales, q.axis, 1));
  return build_view_as(b, y, value_dims(b->g, x));
}

static ValueId expand_dequantize(Builder *b, NodeId n) {
  if (stays_call(b, n))
    return 0;
  const Parts p = parts_of(b, n);
  ValueId y = build_cast(b, p.x, DTYPE_F32);
  if (p.zero)
    y = step(b, OP_SUB_TENSOR, y, p.zero);
  return step(b, OP_MUL_TENSOR, y, p.scale);
}

/* The least or largest element of x, or of each row of it, or 0. */
static ValueId bound(Builder *b, OpId reduce, OpId pick, ValueId x, bool rows, ValueId zero) {
  int64_t axes[MAX_RANK];
  uint32_t rank = value_rank(b->g, x);
  for (uint32_t i = 0; i < MAX_RANK; i++)
    axes[i] = rows ? rank - 1 : i;
  ValueId most = build(b, reduce, A_VAL(x), A_INTS(axes, rows ? 1 : rank), A_BOOL(rows));
  return step(b, pick, most, zero);
}

/* As the document of DynamicQuantizeLinear has it. */
static ValueId expand_choice(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0);
  bool rows = node_cget(g, n)->op == OP_CHOOSE_QPARAMS_PER_TOKEN;
  double low = rows ? INT8_MIN : node_scalar(g, n, 1),
         high = rows ? INT8_MAX : node_scalar(g, n, 2);
  ValueId zero = build_scalar(b, DTYPE_F32, 0), one = build_scalar(b, DTYPE_F32, 1),
          least = bound(b, OP_AMIN, OP_MINIMUM, x, rows, zero),
          range = step(b, OP_SUB_TENSOR, bound(b, OP_AMAX, OP_MAXIMUM, x, rows, zero), least),
          steps = build_scalar(b, DTYPE_F32, high - low),
          ratio = step(b, OP_DIV_TENSOR_MODE, range, steps),
          flat = step(b, OP_EQ_TENSOR, range, zero);
  ValueId scale = build(b, OP_WHERE_SELF, A_VAL(flat), A_VAL(one), A_VAL(ratio));
  ValueId begin = step(b, OP_DIV_TENSOR_MODE, least, scale),
          from = step(b, OP_SUB_TENSOR, build_scalar(b, DTYPE_F32, low), begin);
  from = build(b, OP_ROUND, A_VAL(from));
  from = build(b, OP_CLAMP, A_VAL(from), A_FLOAT(low), A_FLOAT(high));
  from = build_cast(b, from, DTYPE_I64);
  if (b->status != STATUS_OK)
    return 0;
  graph_replace_value(g, node_result(g, n, 1), from);
  return scale;
}

Status pass_expand_quantized(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {
      {OP_CHOOSE_QPARAMS_TENSOR, expand_choice, "ranges"},
      {OP_CHOOSE_QPARAMS_PER_TOKEN, expand_choice, "ranges"},
      {OP_QUANTIZE_PER_TENSOR, expand_quantize, "quantizations"},
      {OP_QUANTIZE_PER_TENSOR_TENSOR, expand_quantize, "quantizations"},
      {OP_QUANTIZE_PER_TOKEN, expand_quantize, "quantizations"},
      {OP_QUANTIZE_PER_CHANNEL, expand_quantize, "quantizations"},
      {OP_DEQUANTIZE_PER_TENSOR, expand_dequantize, "dequantizations"},
      {OP_DEQUANTIZE_PER_TENSOR_TENSOR, expand_dequantize, "dequantizations"},
      {OP_DEQUANTIZE_PER_TOKEN, expand_dequantize, "dequantizations"},
      {OP_DEQUANTIZE_PER_CHANNEL, expand_dequantize, "dequantizations"},
      {OP_DEQUANTIZE_AFFINE, expand_blocks, "dequantizations"},
  };
  if (g->level == LEVEL_ATEN && quantized_stands(p->options))
    return STATUS_OK;
  PassOptions options = *p->options;
  return pass_rewriter(
      p, g, &(Rewriter){.rules = rules, .rule_count = COUNT_OF(rules), .data = &options});
}
