/* Activations that have a scale for each channel, as NNCF quantizes them before depthwise
 * convolutions. Backends compute on tensors of one scale; the same codes come from
 *
 *     quantize(x / scales), scale 1        dequantize(codes) * scales
 *
 * The factor in front goes through ReLU, and through limits that the codes have anyway, to the
 * convolution that makes x, and fold_batch_norm puts it into the weights there; likewise the one
 * behind into the weights of a depthwise convolution. Where zero points differ, too, they are added
 * and subtracted as numbers. */
#include <math.h>

#include "ir/match.h"
#include "ops/quantized.h"
#include "passes/pass.h"

typedef struct Channels {
  int64_t count;
  uint32_t axis, rank; /* of the tensor */
  double *scale, *zero;
  double low, high; /* of the codes */
  bool same_zero;
} Channels;

static double zero_at(const Constant *zeros, const Quantization *q, int64_t i) {
  int64_t zero = q->zero;
  if (zeros)
    memcpy(&zero, zeros->data + (uint64_t)i * sizeof zero, sizeof zero);
  return (double)zero;
}

/* Of n, which quantizes or dequantizes x; false where it is not by channels that are known. */
static bool read_channels(const Graph *g, NodeId n, Arena *arena, Channels *c) {
  Quantization q = quantization_of(g, n);
  ValueId x = node_value(g, n, 0);
  const Constant *scales = q.scales ? value_constant(g, q.scales) : NULL,
                 *zeros = q.zeros ? value_constant(g, q.zeros) : NULL;
  if (!scales || (q.zeros && !zeros) || match_weight(g, x))
    return false;
  int64_t count = (int64_t)(scales->size / sizeof(float));
  *c = (Channels){.count = count,
                  .axis = q.axis,
                  .rank = value_rank(g, x),
                  .scale = ARENA_ARRAY(arena, double, (size_t)count + 1),
                  .zero = ARENA_ARRAY(arena, double, (size_t)count + 1),
                  .low = (double)q.low,
                  .high = (double)q.high,
                  .same_zero = true};
  for (int64_t i = 0; i < count; i++) {
    float scale;
    memcpy(&scale, scales->data + (uint64_t)i * sizeof scale, sizeof scale);
    if (!isnormal(scale) || !isnormal(1 / scale))
      return false;
    c->scale[i] = (double)scale;
    c->zero[i] = zero_at(zeros, &q, i);
    c->same_zero = c->same_zero && c->zero[i] == c->zero[0];
  }
  return count > 0;
}

/* A constant of one number a channel. */
static ValueId along_channels(Builder *b, const Channels *c, const double *numbers, bool inverse) {
  int64_t dims[MAX_RANK] = {c->count};
  float *data = ARENA_ARRAY(&b->g->arena, float, (size_t)c->count);
  for (int64_t i = 0; i < c->count; i++)
    data[i] = (float)(inverse ? 1 / numbers[i] : numbers[i]);
  for (uint32_t i = 1; i < c->rank - c->axis; i++)
    dims[i] = 1;
  return build_const(b, DTYPE_F32, c->rank - c->axis, dims, data);
}

/* One scale and zero point for all channels. */
static Quantization unified(const Graph *g, NodeId n, const Channels *c) {
  Quantization q = quantization_of(g, n);
  q.scales = q.zeros = 0;
  q.scale = 1;
  q.zero = c->same_zero ? (int64_t)c->zero[0] : 0;
  return q;
}

/* Whether numbers outside of the limits of a clamp have the lowest or the highest code without it,
 * too, in each channel. */
static bool limited_by_codes(const Graph *g, NodeId clamp, const Channels *c) {
  for (int64_t i = 0; i < c->count; i++) {
    double below = c->low - c->zero[i] + 0.5, above = c->high - c->zero[i] - 0.5;
    if ((!node_absent(g, clamp, 1) && !(node_scalar(g, clamp, 1) / c->scale[i] < below)) ||
        (!node_absent(g, clamp, 2) && !(node_scalar(g, clamp, 2) / c->scale[i] > above)))
      return false;
  }
  return true;
}

/* x / scales, computed before the functions that make x where that is the same. */
static ValueId divided(Builder *b, ValueId x, const Channels *c) {
  Graph *g = b->g;
  NodeId clamp = match_op_once(g, x, OP_CLAMP);
  if (clamp && limited_by_codes(g, clamp, c))
    x = node_value(g, clamp, 0);
  NodeId relu = match_op_once(g, x, OP_RELU);
  x = relu ? node_value(g, relu, 0) : x;
  ValueId factor = along_channels(b, c, c->scale, true);
  x = build(b, OP_MUL_TENSOR, A_VAL(x), A_VAL(factor));
  return relu ? build_unary(b, OP_RELU, x) : x;
}

static ValueId quantize_channels(Builder *b, NodeId n) {
  Channels c;
  if (!read_channels(b->g, n, b->data, &c))
    return 0;
  ValueId x = divided(b, node_value(b->g, n, 0), &c);
  if (!c.same_zero)
    x = build(b, OP_ADD_TENSOR, A_VAL(x), A_VAL(along_channels(b, &c, c.zero, false)), A_INT(1));
  Quantization q = unified(b->g, n, &c);
  return build_quantize(b, x, &q);
}

static ValueId dequantize_channels(Builder *b, NodeId n) {
  Channels c;
  if (!read_channels(b->g, n, b->data, &c))
    return 0;
  Quantization q = unified(b->g, n, &c);
  ValueId x = build_dequantize(b, node_value(b->g, n, 0), &q);
  if (!c.same_zero)
    x = build(b, OP_SUB_TENSOR, A_VAL(x), A_VAL(along_channels(b, &c, c.zero, false)), A_INT(1));
  return build_binary(b, OP_MUL_TENSOR, x, along_channels(b, &c, c.scale, false));
}

Status pass_unify_channels(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {
      {OP_QUANTIZE_PER_CHANNEL, quantize_channels, "quantizations"},
      {OP_DEQUANTIZE_PER_CHANNEL, dequantize_channels, "dequantizations"},
  };
  Rewriter r = {.rules = rules, .rule_count = COUNT_OF(rules), .data = p->scratch};
  return pass_rewriter(p, g, &r);
}
