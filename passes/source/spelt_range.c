/* DynamicQuantizeLinear as quantizers spelt it before ONNX had it (ONNX Runtime's until 1.2, those
 * of neural-compressor):
 *
 *     scale = (max(x) - min(x)) / 255;  zero = u8(floor((0 - min(x)) / scale))
 *     codes = u8(clamp(round(x / scale) + zero, 0, 255))
 *
 * The zero point is rounded here, and 0 is within the range, as of DynamicQuantizeLinear: numbers
 * of one end may be a step nearer. Models that use the codes for more than integer products keep
 * the formula; where 0 is outside of the range, it has no zero point that fits u8. */
#include "passes/source/spelt_range.h"
#include "ir/match.h"
#include "ops/quantized.h"

/* v = x / y */
static bool quotient(const Graph *g, ValueId v, ValueId *x, ValueId *y) {
  NodeId n = match_op(g, v, OP_DIV_TENSOR), mode = match_op(g, v, OP_DIV_TENSOR_MODE);
  if (mode && node_absent(g, mode, 2))
    n = mode;
  if (!n)
    return false;
  *x = node_value(g, n, 0);
  *y = node_value(g, n, 1);
  return true;
}

/* v = x - y */
static bool difference(const Graph *g, ValueId v, ValueId *x, ValueId *y) {
  NodeId n = match_op(g, v, OP_SUB_TENSOR);
  if (!n || node_scalar(g, n, 2) != 1)
    return false;
  *x = node_value(g, n, 0);
  *y = node_value(g, n, 1);
  return true;
}

static bool is_extreme(const Graph *g, ValueId v, OpId op, ValueId x) {
  NodeId n = match_op(g, v, op);
  return n && node_value(g, n, 0) == x && value_rank(g, v) == 0;
}

static bool is_scale(const Graph *g, ValueId v, ValueId x) {
  ValueId range, steps, most, least;
  double number;
  return quotient(g, v, &range, &steps) && match_number(g, steps, &number) && number == UINT8_MAX &&
         difference(g, range, &most, &least) && is_extreme(g, most, OP_AMAX, x) &&
         is_extreme(g, least, OP_AMIN, x);
}

static bool is_zero_point(const Graph *g, ValueId v, ValueId x, ValueId scale) {
  NodeId cast = match_op(g, v, OP_TO_COPY),
         floor = cast ? match_op(g, node_value(g, cast, 0), OP_FLOOR) : 0;
  ValueId steps, by, null, least;
  double number;
  return floor && value_dtype(g, v) == DTYPE_U8 &&
         quotient(g, node_value(g, floor, 0), &steps, &by) && by == scale &&
         difference(g, steps, &null, &least) && match_number(g, null, &number) && number == 0 &&
         is_extreme(g, least, OP_AMIN, x);
}

/* Codes or a zero point that only conversions read, to integers for products or, of the zero point,
 * to floats for the codes. */
static bool is_only_converted(const Graph *g, ValueId v, bool floats) {
  for (UseId u = first_use(g, v); u; u = g->uses[u].next) {
    NodeId user = g->uses[u].node;
    if (user == NODE_OUTPUT || node_cget(g, user)->op != OP_TO_COPY)
      return false;
    DType to = value_dtype(g, node_result(g, user, 0));
    if (to != DTYPE_I32 && !(floats && to == DTYPE_F32))
      return false;
  }
  return true;
}

/* The parts of what makes the codes of n. */
static bool match_codes(const Graph *g, NodeId n, ValueId *x, ValueId *scale, ValueId *zero) {
  NodeId clamp = match_op(g, node_value(g, n, 0), OP_CLAMP);
  if (value_dtype(g, node_result(g, n, 0)) != DTYPE_U8 || !clamp ||
      node_scalar_or(g, clamp, 1, -1) != 0 || node_scalar_or(g, clamp, 2, -1) != UINT8_MAX)
    return false;
  NodeId add = match_op(g, node_value(g, clamp, 0), OP_ADD_TENSOR);
  if (!add || node_scalar(g, add, 2) != 1)
    return false;
  NodeId round = match_op(g, node_value(g, add, 0), OP_ROUND),
         cast = match_op(g, node_value(g, add, 1), OP_TO_COPY);
  if (!round || !cast || !quotient(g, node_value(g, round, 0), x, scale))
    return false;
  *zero = node_value(g, cast, 0);
  return value_dtype(g, *x) == DTYPE_F32;
}

ValueId recover_spelt_range(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x, scale, zero;
  if (!match_codes(g, n, &x, &scale, &zero) || !is_scale(g, scale, x) ||
      !is_zero_point(g, zero, x, scale) || !is_only_converted(g, node_result(g, n, 0), false) ||
      !is_only_converted(g, zero, true))
    return 0;
  b->before = value_def(g, scale); /* in front of all that reads it */
  Quantization q = build_dynamic(b, x, DTYPE_U8);
  ValueId rounded = q.zeros ? build_cast(b, q.zeros, DTYPE_U8) : 0;
  if (b->status != STATUS_OK)
    return 0;
  graph_replace_uses(g, scale, q.scales);
  graph_replace_uses(g, zero, rounded);
  b->before = n;
  return build_quantize(b, x, &q);
}
