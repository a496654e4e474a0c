/* Products of activations that are quantized at run time (DynamicQuantizeLinear) with constant
 * weights of 8 bits, which models spell as a product of integers and scales behind it:
 *
 *     product(i32(codes) - zero, W) as f32 * (scale * weight_scale)
 *
 * becomes product(dequantize(codes), dequantize(W)), which backends match. */
#include "ops/quantized.h"
#include "passes/source/recover.h"

/* v without conversions to another type of integers. */
static ValueId uncast(const Graph *g, ValueId v) {
  for (NodeId n; (n = match_op(g, v, OP_TO_COPY));)
    if (dtype_is_int(value_dtype(g, node_value(g, n, 0))))
      v = node_value(g, n, 0);
    else
      break;
  return v;
}

/* v = codes - zero of one quantization at run time. */
static NodeId centred(const Graph *g, ValueId v) {
  NodeId sub = match_op(g, v, OP_SUB_TENSOR);
  NodeId n = sub ? value_def(g, uncast(g, node_value(g, sub, 0))) : 0;
  if (!is_quantize(g, n))
    return 0;
  Quantization q = quantization_of(g, n);
  return q.dynamic && uncast(g, node_value(g, sub, 1)) == q.zeros ? n : 0;
}

/* --- weights --- */

static bool int_at(const Graph *g, ValueId v, uint64_t i, int64_t *out) {
  const uint8_t *data = value_constant(g, v)->data;
  switch ((int)value_dtype(g, v)) {
  case DTYPE_U8:
    *out = data[i];
    return true;
  case DTYPE_I8:
    *out = (int8_t)data[i];
    return true;
  case DTYPE_I32: {
    int32_t number;
    memcpy(&number, data + i * sizeof number, sizeof number);
    *out = number;
    return true;
  }
  default:
    return false;
  }
}

static uint64_t count_of(const Graph *g, ValueId v) {
  return value_constant(g, v)->size / dtype_size(value_dtype(g, v));
}

/* The zero points of weights of that many elements: one, or one for each entry of the last dim. */
static bool zero_fits(const Graph *g, ValueId zero, ValueId weights) {
  uint32_t rank = value_rank(g, weights);
  uint64_t count = count_of(g, zero);
  return count == 1 ||
         (rank && value_rank(g, zero) >= 1 && value_dim(g, weights, rank - 1) == (SymInt)count &&
          value_dim(g, zero, value_rank(g, zero) - 1) == (SymInt)count);
}

/* Weights less their zero points as i8; 0 when they do not fit. */
static ValueId weight_codes(Builder *b, ValueId v) {
  Graph *g = b->g;
  NodeId sub = match_op(g, v, OP_SUB_TENSOR);
  ValueId codes = uncast(g, sub ? node_value(g, sub, 0) : v),
          zero = sub ? uncast(g, node_value(g, sub, 1)) : 0;
  if (!value_is_const(g, codes) || (zero && !value_is_const(g, zero)) ||
      (zero && !zero_fits(g, zero, codes)))
    return 0;
  if (!zero && value_dtype(g, codes) == DTYPE_I8)
    return codes;
  uint64_t count = count_of(g, codes), zeros = zero ? count_of(g, zero) : 1;
  int8_t *bytes = arena_alloc(&g->arena, count + 1);
  for (uint64_t i = 0; i < count; i++) {
    int64_t number, from = 0;
    if (!int_at(g, codes, i, &number) || (zero && !int_at(g, zero, i % zeros, &from)) ||
        number - from < INT8_MIN || number - from > INT8_MAX)
      return 0;
    bytes[i] = (int8_t)(number - from);
  }
  int64_t dims[MAX_RANK];
  for (uint32_t i = 0; i < value_rank(g, codes); i++)
    dims[i] = value_dim(g, codes, i);
  return build_const(b, DTYPE_I8, value_rank(g, codes), dims, bytes);
}

/* --- scales --- */

static ValueId unviewed(const Graph *g, ValueId v) {
  for (NodeId n; (n = match_op(g, v, OP_VIEW_COPY));)
    v = node_value(g, n, 0);
  return v;
}

/* v = scale * weight scales, a constant of f32 whose dims but one are 1; 0 when it is not. */
static ValueId weight_scales(const Graph *g, ValueId v, ValueId scale) {
  NodeId mul = match_op(g, unviewed(g, v), OP_MUL_TENSOR);
  for (uint32_t i = 0; mul && i < 2; i++) {
    ValueId c = node_value(g, mul, 1 - i);
    if (unviewed(g, node_value(g, mul, i)) == scale && value_is_const(g, c) &&
        value_dtype(g, c) == DTYPE_F32)
      return c;
  }
  return 0;
}

/* One scale, or one for each of `channels`, which v has in dim `axis` counted from the end. */
static bool set_scales(Builder *b, Quantization *q, ValueId scales, ValueId factor, SymInt channels,
                       uint32_t from_end) {
  Graph *g = b->g;
  const Constant *c = value_constant(g, scales);
  uint64_t count = c->size / sizeof(float);
  if (count == 1) {
    memcpy(&q->scale, c->data, sizeof q->scale);
    return true;
  }
  uint32_t rank = value_rank(g, factor);
  if ((SymInt)count != channels || rank <= from_end ||
      value_dim(g, factor, rank - 1 - from_end) != channels)
    return false;
  int64_t dim = (int64_t)count;
  q->scales = build_const(b, DTYPE_F32, 1, &dim, c->data);
  return true;
}

/* --- the product --- */

/* Where a weight has its columns. */
static uint32_t columns_of(const Graph *g, NodeId n) {
  ValueId w = node_value(g, n, 1);
  return node_cget(g, n)->op == OP_CONVOLUTION ? 0 : value_rank(g, w) - 1;
}

static ValueId on_floats(Builder *b, NodeId n, ValueId x, ValueId w) {
  Graph *g = b->g;
  ArgIn args[SCHEMA_MAX_ARGS];
  uint32_t count = node_cget(g, n)->arg_count;
  OpId op = node_cget(g, n)->op;
  for (uint32_t i = 2; i < count; i++)
    args[i] = node_arg_in(g, n, i, &g->arena);
  args[0] = A_VAL(x);
  args[1] = A_VAL(w);
  return b->status == STATUS_OK ? build_args(b, op, args, count) : 0;
}

static ValueId product(Builder *b, ValueId sums, ValueId factor) {
  Graph *g = b->g;
  NodeId cast = match_op(g, sums, OP_TO_COPY);
  NodeId n = cast ? value_def(g, node_value(g, cast, 0)) : 0;
  OpId op = n ? node_cget(g, n)->op : OP_NONE;
  if (op != OP_MATMUL && op != OP_MM && op != OP_CONVOLUTION)
    return 0;
  bool convolves = op == OP_CONVOLUTION;
  NodeId codes = centred(g, node_value(g, n, 0));
  if (!codes || value_rank(g, node_value(g, n, 1)) < 2 ||
      (convolves && (!node_absent(g, n, 2) || node_bool(g, n, 6))))
    return 0;
  Quantization from = quantization_of(g, codes),
               to = {.dtype = DTYPE_I8, .low = INT8_MIN, .high = INT8_MAX};
  ValueId scales = weight_scales(g, factor, from.scales), w = 0;
  to.axis = columns_of(g, n);
  uint32_t from_end = convolves ? value_rank(g, node_value(g, n, 1)) - 2 : 0;
  if (scales &&
      set_scales(b, &to, scales, factor, value_dim(g, node_value(g, n, 1), to.axis), from_end))
    w = weight_codes(b, node_value(g, n, 1));
  if (!w)
    return 0;
  ValueId x = build_dequantize(b, node_result(g, codes, 0), &from);
  return on_floats(b, n, x, build_dequantize(b, w, &to));
}

static ValueId scaled_product(Builder *b, NodeId n) {
  ValueId left = node_value(b->g, n, 0), right = node_value(b->g, n, 1),
          y = product(b, left, right);
  return y ? y : product(b, right, left);
}

Status pass_recover_dynamic(PassContext *p, Graph *g) {
  static const RecoverRow rows[] = {{OP_MUL_TENSOR, scaled_product, "products"}};
  return p->options->backend_count ? recover_run(p, g, rows, COUNT_OF(rows)) : STATUS_OK;
}
