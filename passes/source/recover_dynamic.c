/* Products of activations that are quantized at run time (DynamicQuantizeLinear) with constant
 * weights of 8 bits, which models spell as a product of integers and scales behind it:
 *
 *     product(i32(codes) - zero, W) as f32 * (scale * weight_scale)
 *
 * becomes product(dequantize(codes), dequantize(W)), which backends match; likewise where the
 * second operand, too, is quantized at run time. */
#include "ir/transform.h"
#include "ops/quantized.h"
#include "ir/match.h"
#include "passes/pass.h"
#include "passes/source/integer_weights.h"
#include "passes/source/spelt_range.h"

/* v = codes - zero of one quantization at run time. */
static NodeId centred(const Graph *g, ValueId v) {
  NodeId sub = match_op(g, v, OP_SUB_TENSOR);
  NodeId n = sub ? value_def(g, integer_uncast(g, node_value(g, sub, 0))) : 0;
  if (!is_quantize(g, n))
    return 0;
  Quantization q = quantization_of(g, n);
  return q.dynamic && integer_uncast(g, node_value(g, sub, 1)) == q.zeros ? n : 0;
}

/* --- weights --- */

/* What is subtracted from weights, besides their zero points, so that they fit i8: one number, or
 * one a column. */
typedef struct Shifts {
  uint64_t count;  /* 1, or of the columns */
  uint64_t behind; /* elements of the dims behind that of the columns */
  int64_t *by;
  bool any;
} Shifts;

/* Weights are visited in such runs: of one column each, or of one weight of each column. */
static uint64_t run_of(const Shifts *s) {
  return s->behind > 1 ? s->behind : s->count > 1 ? s->count : INTEGER_RUN;
}

static uint64_t column_of(const Shifts *s, uint64_t first, uint64_t i) {
  return s->behind > 1 ? first / s->behind % s->count : s->count > 1 ? i : 0;
}

/* Chooses the shift of each column; false when the range of its weights exceeds 8 bits, or they
 * cannot be read. */
static bool choose_shifts(Graph *g, const IntegerWeights *w, Shifts *s) {
  uint64_t run = run_of(s);
  int64_t *most = ARENA_ARRAY(&g->arena, int64_t, (size_t)s->count + 1);
  int32_t *numbers = ARENA_ARRAY(&g->arena, int32_t, (size_t)run);
  for (uint64_t c = 0; c < s->count; c++) {
    s->by[c] = INT64_MAX; /* the least weight, for now */
    most[c] = INT64_MIN;
  }
  for (uint64_t first = 0; first < w->count; first += run) {
    uint64_t count = min_u64(run, w->count - first);
    if (!integer_weights_get(g, w, first, count, numbers))
      return false;
    for (uint64_t i = 0; i < count; i++) {
      uint64_t c = column_of(s, first, i);
      s->by[c] = min_i64(s->by[c], numbers[i]);
      most[c] = max_i64(most[c], numbers[i]);
    }
  }
  for (uint64_t c = 0; c < s->count && w->count; c++) {
    int64_t least = s->by[c];
    if (most[c] - least > UINT8_MAX)
      return false;
    s->by[c] = least < INT8_MIN || most[c] > INT8_MAX ? least - INT8_MIN : 0;
    s->any = s->any || s->by[c];
  }
  return w->count != 0;
}

/* One shift for all weights where that does, else one a column. */
static bool find_shifts(Graph *g, const IntegerWeights *w, uint32_t axis, Shifts *s) {
  uint64_t columns = (uint64_t)value_dim(g, w->codes, axis);
  *s = (Shifts){.count = 1, .behind = 1};
  s->by = ARENA_ARRAY(&g->arena, int64_t, (size_t)columns + 1);
  if (choose_shifts(g, w, s))
    return true;
  s->count = columns;
  s->behind =
      (uint64_t)dims_count(value_type(g, w->codes)->dims, axis + 1, value_rank(g, w->codes));
  return s->count && s->behind && choose_shifts(g, w, s);
}

/* Weights less their zero points and their shifts as i8; 0 when they do not fit. */
static ValueId weight_codes(Builder *b, ValueId v, uint32_t axis, Shifts *shifts) {
  Graph *g = b->g;
  IntegerWeights read;
  *shifts = (Shifts){0};
  if (!integer_weights_read(g, v, &read))
    return 0;
  if (!read.zero && value_dtype(g, read.codes) == DTYPE_I8)
    return read.codes;
  if (!find_shifts(g, &read, axis, shifts))
    return 0;
  uint64_t run = run_of(shifts);
  int8_t *bytes = arena_alloc(&g->arena, read.count + 1);
  int32_t *numbers = ARENA_ARRAY(&g->arena, int32_t, (size_t)run);
  for (uint64_t first = 0; first < read.count; first += run) {
    uint64_t count = min_u64(run, read.count - first);
    integer_weights_get(g, &read, first, count, numbers);
    for (uint64_t i = 0; i < count; i++)
      bytes[first + i] = (int8_t)(numbers[i] - shifts->by[column_of(shifts, first, i)]);
  }
  return build_const(b, DTYPE_I8, value_rank(g, read.codes), value_type(g, read.codes)->dims,
                     bytes);
}

/* --- scales --- */

/* v = scale * weight scales, a constant of f32 whose dims but one are 1; 0 when it is not. */
static ValueId weight_scales(const Graph *g, ValueId v, ValueId scale) {
  NodeId mul = match_op(g, match_unviewed(g, v), OP_MUL_TENSOR);
  for (uint32_t i = 0; mul && i < 2; i++) {
    ValueId c = node_value(g, mul, 1 - i);
    if (match_unviewed(g, node_value(g, mul, i)) == scale && value_is_const(g, c) &&
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
  return build_on(b, n, (const ArgIn[]){A_VAL(x), A_VAL(w)}, 2);
}

/* Weights that are all 1: one column, or where there are groups as many as w has. */
static ValueId ones_like(Builder *b, ValueId w, uint32_t columns, bool groups) {
  Graph *g = b->g;
  int64_t dims[MAX_RANK];
  uint64_t count = 1;
  for (uint32_t i = 0; i < value_rank(g, w); i++)
    count *= (uint64_t)(dims[i] = i == columns && !groups ? 1 : value_dim(g, w, i));
  int8_t *ones = arena_alloc(&g->arena, count + 1);
  memset(ones, 1, count);
  Quantization q = {.dtype = DTYPE_I8, .low = INT8_MIN, .high = INT8_MAX, .scale = 1};
  return build_dequantize(b, build_const(b, DTYPE_I8, value_rank(g, w), dims, ones), &q);
}

/* shift * scale of each column, with that many dims of 1 behind. */
static ValueId column_shifts(Builder *b, const Shifts *s, const Quantization *q,
                             uint32_t from_end) {
  uint64_t scales = q->scales ? value_constant(b->g, q->scales)->size / sizeof(float) : 1,
           count = scales > s->count ? scales : s->count;
  float *shifts = ARENA_ARRAY(&b->g->arena, float, (size_t)count + 1);
  int64_t dims[MAX_RANK] = {(int64_t)count};
  for (uint64_t i = 0; i < count; i++) {
    float scale = q->scale;
    if (q->scales)
      memcpy(&scale, value_constant(b->g, q->scales)->data + i * sizeof scale, sizeof scale);
    shifts[i] = (float)s->by[i % s->count] * scale;
  }
  for (uint32_t i = 1; i <= from_end; i++)
    dims[i] = 1;
  return build_const(b, DTYPE_F32, count == 1 ? 0 : from_end + 1, dims, shifts);
}

/* y + shifts * sums of the operand: adds again what was subtracted from the weights. */
static ValueId add_shifts(Builder *b, NodeId n, ValueId x, ValueId y, const Shifts *s,
                          const Quantization *q, uint32_t from_end) {
  bool groups = node_cget(b->g, n)->op == OP_CONVOLUTION && node_int(b->g, n, 8) != 1;
  ValueId sums = on_floats(b, n, x, ones_like(b, node_value(b->g, n, 1), q->axis, groups)),
          shifts = column_shifts(b, s, q, from_end);
  ValueId all = build(b, OP_MUL_TENSOR, A_VAL(sums), A_VAL(shifts));
  return build(b, OP_ADD_TENSOR, A_VAL(y), A_VAL(all));
}

/* v = bias / (scale * weight scales) as an integer, a bias in steps of the sums: the bias, a vector
 * of floats, before it was rounded down; 0 when it is not. */
static ValueId bias_of_steps(const Graph *g, ValueId v, ValueId scale, ValueId scales) {
  NodeId cast = match_op(g, match_unviewed(g, v), OP_TO_COPY);
  NodeId floor = cast ? match_op(g, node_value(g, cast, 0), OP_FLOOR) : 0;
  NodeId div = floor ? value_def(g, node_value(g, floor, 0)) : 0;
  OpId op = div ? node_cget(g, div)->op : OP_NONE;
  if (op != OP_DIV_TENSOR && op != OP_DIV_TENSOR_MODE)
    return 0;
  ValueId bias = node_value(g, div, 0), own = weight_scales(g, node_value(g, div, 1), scale);
  bool fits = own && value_is_const(g, bias) && value_dtype(g, bias) == DTYPE_F32 &&
              value_rank(g, bias) == 1 &&
              constant_same(value_constant(g, own), value_constant(g, scales));
  return fits ? bias : 0;
}

/* sums = products, or products + steps of a bias: the node of the products. */
static NodeId products_of(const Graph *g, ValueId sums, ValueId *steps) {
  NodeId cast = match_op(g, sums, OP_TO_COPY);
  ValueId v = cast ? node_value(g, cast, 0) : 0;
  NodeId add = v ? match_op(g, v, OP_ADD_TENSOR) : 0;
  *steps = 0;
  for (uint32_t i = 0; add && i < 2; i++)
    if (match_op(g, match_unviewed(g, node_value(g, add, i)), OP_TO_COPY)) {
      *steps = node_value(g, add, i);
      return value_def(g, node_value(g, add, 1 - i));
    }
  return v ? value_def(g, v) : 0;
}

/* y + a bias, along the channels of a convolution. */
static ValueId add_bias(Builder *b, ValueId y, ValueId bias, uint32_t from_end) {
  SymInt dims[MAX_RANK] = {value_dim(b->g, bias, 0)};
  for (uint32_t i = 1; i <= from_end; i++)
    dims[i] = 1;
  ValueId wide = from_end ? build_view(b, bias, dims, from_end + 1) : bias;
  return build(b, OP_ADD_TENSOR, A_VAL(y), A_VAL(wide));
}

/* The padding by zeros of the operand of a convolution that has other zeros on each side; 0: none.
 */
static NodeId padding_of(const Graph *g, NodeId n) {
  NodeId pad = node_cget(g, n)->op == OP_CONVOLUTION
                   ? match_op(g, node_value(g, n, 0), OP_CONSTANT_PAD_ND)
                   : 0;
  return pad && node_scalar(g, pad, 2) == 0 ? pad : 0;
}

/* The quantization of the operand of product n; 0: it cannot be written on floats. */
static NodeId quantized_operand(const Graph *g, NodeId n) {
  OpId op = n ? node_cget(g, n)->op : OP_NONE;
  if ((op != OP_MATMUL && op != OP_MM && op != OP_CONVOLUTION) ||
      value_rank(g, node_value(g, n, 1)) < 2 ||
      (op == OP_CONVOLUTION && (!node_absent(g, n, 2) || node_bool(g, n, 6))))
    return 0;
  NodeId pad = padding_of(g, n);
  return centred(g, node_value(g, pad ? pad : n, 0));
}

/* The operand of product n, codes with that quantization, as floats. */
static ValueId operand_on_floats(Builder *b, NodeId n, ValueId codes, const Quantization *q) {
  Graph *g = b->g;
  NodeId pad = padding_of(g, n);
  ValueId x = build_dequantize(b, codes, q);
  if (!pad || b->status != STATUS_OK)
    return x;
  return build(b, OP_CONSTANT_PAD_ND, A_VAL(x), node_arg_in(g, pad, 1, &g->arena), A_FLOAT(0));
}

static ValueId product(Builder *b, ValueId sums, ValueId factor) {
  Graph *g = b->g;
  ValueId steps, bias = 0;
  NodeId n = products_of(g, sums, &steps);
  NodeId codes = quantized_operand(g, n);
  if (!codes)
    return 0;
  bool convolves = node_cget(g, n)->op == OP_CONVOLUTION;
  Quantization from = quantization_of(g, codes),
               to = {.dtype = DTYPE_I8, .low = INT8_MIN, .high = INT8_MAX};
  ValueId scales = weight_scales(g, factor, from.scales);
  Shifts shifts;
  to.axis = columns_of(g, n);
  uint32_t from_end = convolves ? value_rank(g, node_value(g, n, 1)) - 2 : 0;
  if (!scales ||
      !set_scales(b, &to, scales, factor, value_dim(g, node_value(g, n, 1), to.axis), from_end))
    return 0;
  if (steps && !(bias = bias_of_steps(g, steps, from.scales, scales)))
    return 0;
  ValueId w = weight_codes(b, node_value(g, n, 1), to.axis, &shifts);
  if (!w)
    return 0;
  ValueId x = operand_on_floats(b, n, node_result(g, codes, 0), &from),
          y = on_floats(b, n, x, build_dequantize(b, w, &to));
  if (shifts.any)
    y = add_shifts(b, n, x, y, &shifts, &to, from_end);
  return bias && y ? add_bias(b, y, bias, from_end) : y;
}

/* Both operands are quantized at run time: factor is the product of their scales. */
static ValueId product_of_two(Builder *b, ValueId sums, ValueId factor) {
  Graph *g = b->g;
  ValueId steps;
  NodeId n = products_of(g, sums, &steps),
         scale = match_op(g, match_unviewed(g, factor), OP_MUL_TENSOR);
  if (!n || steps || !scale || node_cget(g, n)->op != OP_MATMUL)
    return 0;
  NodeId left = centred(g, node_value(g, n, 0)), right = centred(g, node_value(g, n, 1));
  if (!left || !right)
    return 0;
  Quantization first = quantization_of(g, left), second = quantization_of(g, right);
  ValueId one = match_unviewed(g, node_value(g, scale, 0)),
          other = match_unviewed(g, node_value(g, scale, 1));
  if (!(one == first.scales && other == second.scales) &&
      !(one == second.scales && other == first.scales))
    return 0;
  ValueId x = build_dequantize(b, node_result(g, left, 0), &first),
          y = build_dequantize(b, node_result(g, right, 0), &second);
  return on_floats(b, n, x, y);
}

static ValueId scaled_product(Builder *b, NodeId n) {
  ValueId left = node_value(b->g, n, 0), right = node_value(b->g, n, 1),
          y = product(b, left, right);
  if (!y)
    y = product(b, right, left);
  if (!y)
    y = product_of_two(b, left, right);
  return y ? y : product_of_two(b, right, left);
}

Status pass_recover_dynamic(PassContext *p, Graph *g) {
  static const RewriteRule rows[] = {{OP_MUL_TENSOR, scaled_product, "products"},
                                     {OP_TO_COPY, recover_spelt_range, "products"}};
  return pass_rewrite(p, g, rows, COUNT_OF(rows));
}
