/* Products with weights of 8 bits as calls of the runtime's quantized kernels, where the user says
 * that it has them (--kernels portable,quantized):
 *
 *   linear(x, dequantize(W), bias)  =>  mixed_linear(x, W) + bias
 *   mm(x, dequantize(W))            =>  mixed_linear(x, W'), with W' a transposed copy
 *
 * for a constant i8 matrix W with a scale for each result, or one for all, and no zero points. The
 * kernel reads the codes as they are, so that weights take a quarter of the program and no memory.
 * It is a plain loop (about 1 ns for a multiplication on a CPU where the runtime's products of
 * floats take 0.03), which is why it is called only where the user asks.
 *
 * Behind this pass, expand_quantized leaves quantizations that have kernels. */
#include "ops/quantized.h"
#include "passes/pass.h"

enum { COPY_MAX = 32 << 20 }; /* bytes of a transposed copy */

/* The codes [N, K] of a weight whose results, of which there are N, lie along dim `axis`; 0 when
 * the kernel does not take them. */
static ValueId codes_of(Builder *b, NodeId dequantize, uint32_t axis) {
  Graph *g = b->g;
  ValueId codes = node_value(g, dequantize, 0);
  if (axis == 0)
    return codes;
  const Constant *c = value_constant(g, codes);
  uint64_t rows = (uint64_t)value_dim(g, codes, 0), columns = (uint64_t)value_dim(g, codes, 1);
  if (c->size > COPY_MAX)
    return 0;
  int8_t *copy = arena_alloc(&g->arena, (size_t)c->size + 1);
  for (uint64_t i = 0; i < rows; i++)
    for (uint64_t j = 0; j < columns; j++)
      copy[j * rows + i] = (int8_t)c->data[i * columns + j];
  return build_const(b, DTYPE_I8, 2, (int64_t[]){(int64_t)columns, (int64_t)rows}, copy);
}

static ValueId scales_of(Builder *b, const Quantization *q, int64_t count) {
  if (q->scales)
    return q->scales;
  float *scales = ARENA_ARRAY(&b->g->arena, float, (size_t)count + 1);
  for (int64_t i = 0; i < count; i++)
    scales[i] = q->scale;
  return build_const(b, DTYPE_F32, 1, &count, scales);
}

static bool all_zero(const Graph *g, const Quantization *q) {
  const Constant *c = q->zeros ? value_constant(g, q->zeros) : NULL;
  for (uint64_t i = 0; c && i < c->size; i++)
    if (c->data[i])
      return false;
  return q->zero == 0;
}

/* The product of the rows of x, a tensor with K in its last dim, and the weight; 0 when the kernel
 * does not take it. */
static ValueId product(Builder *b, ValueId x, ValueId weight, uint32_t axis) {
  const PassOptions *options = b->data;
  Graph *g = b->g;
  NodeId dequantize = options->quantized_kernels ? dequantized_constant(g, weight) : 0;
  if (!dequantize || value_rank(g, weight) != 2 || value_dtype(g, x) != DTYPE_F32)
    return 0;
  Quantization q = quantization_of(g, dequantize);
  if (q.dtype != DTYPE_I8 || q.block || (q.scales && q.axis != axis) || !all_zero(g, &q))
    return 0;
  SymInt rows = 1, length = value_dim(g, weight, 1 - axis), count = value_dim(g, weight, axis);
  for (uint32_t i = 0; i + 1 < value_rank(g, x); i++)
    rows = sym_mul(&g->syms, rows, value_dim(g, x, i));
  ValueId codes = sym_is_const(rows) && rows == 0 ? 0 : codes_of(b, dequantize, axis);
  if (!codes)
    return 0;
  ValueId matrix = build_view(b, x, (SymInt[]){rows, length}, 2), scales = scales_of(b, &q, count);
  return build(b, OP_MIXED_LINEAR, A_VAL(matrix), A_VAL(codes), A_VAL(scales), A_NONE, A_NONE);
}

static ValueId linear(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId bias = node_value(g, n, 2), y = product(b, node_value(g, n, 0), node_value(g, n, 1), 0);
  if (!y)
    return 0;
  y = build_view_as(b, y, value_dims(g, node_result(g, n, 0)));
  return bias ? build(b, OP_ADD_TENSOR, A_VAL(y), A_VAL(bias)) : y;
}

static ValueId mm(Builder *b, NodeId n) {
  Graph *g = b->g;
  return product(b, node_value(g, n, 0), node_value(g, n, 1), 1);
}

Status pass_call_quantized(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_LINEAR, linear, "products"}, {OP_MM, mm, "products"}};
  PassOptions options = *p->options;
  return pass_rewriter(
      p, g, &(Rewriter){.rules = rules, .rule_count = COUNT_OF(rules), .data = &options});
}
