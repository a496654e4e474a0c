/* Scales of quantized tensors behind the matrix products, convolutions and means: of
 *
 *     product((q - z) * s, (w - y) * t) + bias    with integers q, z, w, y
 *
 * this makes product(q - z, w - y) * (s * t) + bias. Sums of products of small integers are
 * exact in f32 (to 2^24), so that the order in which a kernel adds them no longer shows: what the
 * next quantization rounds is off by two roundings instead of by one for each term. Sums of few
 * terms are left alone, but for means: their error is small, and another runtime that adds in the
 * same order has the same. There is less to compute too, since s and t scale the result, not the
 * operands, and a constant weight stays what it is in the file.
 *
 * Between a quantization and the dequantization of its result the conversion to an integer and back
 * changes nothing, nor does adding the zero point to subtract it again; both go. (A zero may keep
 * its minus sign.) */
#include <math.h>

#include "ir/match.h"
#include "passes/pass.h"
#include "support/number.h"

/* Measured on a detector of 64 convolutions against ONNX Runtime: longer float sums are further
 * from its results than exact ones, shorter ones nearer, many of them equal. */
enum { FEW_TERMS = 256 };

/* --- matching --- */

static const uint8_t *constant_floats(const Graph *g, ValueId v, uint64_t *count) {
  const Constant *c = v ? value_lazy_constant(g, v) : NULL;
  if (!c || c->transform || value_dtype(g, v) != DTYPE_F32)
    return NULL;
  *count = c->size / sizeof(float);
  return c->data;
}

static bool whole_constant(const Graph *g, ValueId v) {
  uint64_t count;
  const uint8_t *data = constant_floats(g, v, &count);
  if (!data)
    return false;
  for (uint64_t i = 0; i < count; i++) {
    float value = float_at(data, i);
    if (!(fabsf(value) <= 65536) || rintf(value) != value)
      return false;
  }
  return true;
}

/* v is an integer of 16 bits or less converted to f32. */
static bool from_integer(const Graph *g, ValueId v) {
  NodeId cast = match_op(g, v, OP_TO_COPY);
  return cast && value_dtype(g, v) == DTYPE_F32 &&
         dtype_in(value_dtype(g, node_value(g, cast, 0)), DT(U8) | DT(I8) | DT(I16) | DT(U16));
}

/* clamp(round(x)) or clamp(round(x) + z) within ±2^17; *sum is what it limits. */
static NodeId rounded(const Graph *g, ValueId v, ValueId *sum) {
  NodeId clamp = match_op(g, v, OP_CLAMP);
  if (!clamp || value_dtype(g, v) != DTYPE_F32 || node_absent(g, clamp, 1) ||
      node_absent(g, clamp, 2) || !(node_scalar(g, clamp, 1) >= -131072) ||
      !(node_scalar(g, clamp, 2) <= 131072))
    return 0;
  *sum = node_value(g, clamp, 0);
  NodeId add = match_op(g, *sum, OP_ADD_TENSOR);
  ValueId round = add && whole_constant(g, node_value(g, add, 1)) ? node_value(g, add, 0) : *sum;
  return match_op(g, round, OP_ROUND) ? clamp : 0;
}

static bool is_whole(const Graph *g, ValueId v) {
  ValueId sum;
  NodeId sub = match_op(g, v, OP_SUB_TENSOR);
  if (sub && whole_constant(g, node_value(g, sub, 1)))
    v = node_value(g, sub, 0);
  return from_integer(g, v) || rounded(g, v, &sum);
}

/* v = integers times constant factors that are not 0. */
typedef struct Scaled {
  ValueId whole, scale;
  const uint8_t *factors; /* floats of any alignment */
  uint64_t count;
} Scaled;

static bool match_scaled(const Graph *g, ValueId v, Scaled *s) {
  NodeId mul = match_op(g, v, OP_MUL_TENSOR);
  for (uint32_t i = 0; mul && i < 2; i++) {
    s->whole = node_value(g, mul, i);
    s->scale = node_value(g, mul, 1 - i);
    s->factors = constant_floats(g, s->scale, &s->count);
    if (!s->factors || !is_whole(g, s->whole))
      continue;
    for (uint64_t k = 0; k < s->count; k++)
      if (!isnormal(float_at(s->factors, k)))
        return false;
    return s->count > 0;
  }
  return false;
}

/* All dims of the scale but `dim`, counted from the end, are 1. */
static bool along(const Graph *g, const Scaled *s, uint32_t from_end) {
  uint32_t rank = value_rank(g, s->scale);
  for (uint32_t i = 0; i < rank; i++)
    if (i + from_end + 1 != rank && value_dim(g, s->scale, i) != 1)
      return false;
  return true;
}

/* --- products --- */

/* A sum of `dims` of v together is long, or of unknown length. */
static bool long_sum(const Graph *g, ValueId v, uint32_t from, uint32_t to) {
  int64_t terms = 1;
  for (uint32_t i = from; i < to; i++)
    if (!sym_is_const(value_dim(g, v, i)) || !mul_i64(terms, value_dim(g, v, i), &terms))
      return true;
  return terms > FEW_TERMS;
}

/* The factors of a product as a constant whose `trailing` last dims are 1; 0 when one is not
 * normal. */
static ValueId joint_factor(Builder *b, const Scaled *x, const Scaled *w, uint32_t trailing) {
  if (w->count > (1 << 20))
    return 0;
  float *data = ARENA_ARRAY(&b->g->arena, float, (size_t)w->count);
  for (uint64_t i = 0; i < w->count; i++) {
    data[i] = float_at(x->factors, 0) * float_at(w->factors, i);
    if (!isnormal(data[i]))
      return 0;
  }
  int64_t dims[MAX_RANK] = {(int64_t)w->count};
  for (uint32_t i = 1; i <= trailing; i++)
    dims[i] = 1;
  return build_const(b, DTYPE_F32, w->count == 1 ? 0 : trailing + 1, dims, data);
}

/* The constant bias over the factors. One that was whole before it was scaled is whole again. */
static bool divided_bias(Builder *b, ValueId bias, ValueId factor, ValueId *out) {
  uint64_t count = 0, factors = 0;
  const uint8_t *values = constant_floats(b->g, bias, &count),
                *by = constant_floats(b->g, factor, &factors);
  *out = 0;
  if (!bias)
    return true;
  if (!values || value_rank(b->g, bias) != 1 || count > (1 << 20) ||
      (factors != 1 && factors != count))
    return false;
  float *data = ARENA_ARRAY(&b->g->arena, float, (size_t)count + 1);
  for (uint64_t i = 0; i < count; i++) {
    double quotient = (double)float_at(values, i) / (double)float_at(by, factors == 1 ? 0 : i);
    bool was_whole = fabs(quotient - rint(quotient)) <= 0x1p-22 * fabs(quotient);
    data[i] = (float)(was_whole ? rint(quotient) : quotient);
    if (!isfinite(data[i]))
      return false;
  }
  *out = build_const(b, DTYPE_F32, 1, (int64_t[]){(int64_t)count}, data);
  return true;
}

static ValueId convolution(Builder *b, NodeId n) {
  Graph *g = b->g;
  Scaled x, w;
  uint32_t rank = value_rank(g, node_value(g, n, 0));
  if (!long_sum(g, node_value(g, n, 1), 1, rank) || !match_scaled(g, node_value(g, n, 0), &x) ||
      x.count != 1 || !match_scaled(g, node_value(g, n, 1), &w))
    return 0;
  if (w.count != 1 &&
      (node_bool(g, n, 6) || value_rank(g, w.scale) != rank || !along(g, &w, rank - 1)))
    return 0;
  ValueId bias, factor = joint_factor(b, &x, &w, rank - 2);
  if (!factor || !divided_bias(b, node_value(g, n, 2), factor, &bias))
    return 0;
  ArgIn operands[] = {A_VAL(x.whole), A_VAL(w.whole), A_OPT(bias)};
  return build_binary(b, OP_MUL_TENSOR, build_on(b, n, operands, 3), factor);
}

static ValueId linear(Builder *b, NodeId n) {
  Graph *g = b->g;
  Scaled x, w;
  if (!long_sum(g, node_value(g, n, 1), 1, 2) || !match_scaled(g, node_value(g, n, 0), &x) ||
      x.count != 1 || !match_scaled(g, node_value(g, n, 1), &w) ||
      (w.count != 1 && !along(g, &w, 1)))
    return 0;
  ValueId bias, factor = joint_factor(b, &x, &w, 0);
  if (!factor || !divided_bias(b, node_value(g, n, 2), factor, &bias))
    return 0;
  return build_binary(b, OP_MUL_TENSOR,
                      build(b, OP_LINEAR, A_VAL(x.whole), A_VAL(w.whole), A_OPT(bias)), factor);
}

/* op(x, w) for mm and matmul. */
static ValueId matrix_product(Builder *b, OpId op, ValueId a, ValueId c) {
  Graph *g = b->g;
  Scaled x, w;
  uint32_t rank = value_rank(g, a);
  if (!rank || !long_sum(g, a, rank - 1, rank) || !match_scaled(g, a, &x) || x.count != 1 ||
      !match_scaled(g, c, &w) || (w.count != 1 && (value_rank(g, c) < 2 || !along(g, &w, 0))))
    return 0;
  ValueId factor = joint_factor(b, &x, &w, 0);
  return factor
             ? build_binary(b, OP_MUL_TENSOR, build(b, op, A_VAL(x.whole), A_VAL(w.whole)), factor)
             : 0;
}

static ValueId product(Builder *b, NodeId n) {
  return matrix_product(b, node_cget(b->g, n)->op, node_value(b->g, n, 0), node_value(b->g, n, 1));
}

static ValueId product_and_sum(Builder *b, NodeId n) {
  Graph *g = b->g;
  if (node_scalar(g, n, 3) != 1 || node_scalar(g, n, 4) != 1)
    return 0;
  ValueId c = node_value(g, n, 0),
          y = matrix_product(b, OP_MM, node_value(g, n, 1), node_value(g, n, 2));
  return y ? build(b, OP_ADD_TENSOR, A_VAL(y), A_VAL(c)) : 0;
}

/* --- means --- */

/* Of any number of terms: means of 64 codes are in the middle between two codes so often that the
 * error of a short sum shows, too. */
static ValueId mean(Builder *b, NodeId n) {
  Graph *g = b->g;
  Scaled x;
  if (!match_scaled(g, node_value(g, n, 0), &x) || x.count != 1)
    return 0;
  ValueId factor = build_const(b, DTYPE_F32, 0, NULL, x.factors);
  return build_binary(b, OP_MUL_TENSOR, build_on(b, n, &A_VAL(x.whole), 1), factor);
}

/* --- there and back --- */

/* The f32 of the integer of clamp(round(x) + z) is that sum. */
static ValueId round_trip(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId sum;
  if (!from_integer(g, node_result(g, n, 0)))
    return 0;
  NodeId back = match_op(g, node_value(g, n, 0), OP_TO_COPY);
  NodeId clamp = back ? rounded(g, node_value(g, back, 0), &sum) : 0;
  if (!clamp)
    return 0;
  DType dtype = value_dtype(g, node_value(g, n, 0));
  bool is_signed = dtype == DTYPE_I8 || dtype == DTYPE_I16;
  double span = ldexp(1, 8 * (int)dtype_size(dtype) - is_signed);
  if (node_scalar(g, clamp, 1) < (is_signed ? -span : 0) || node_scalar(g, clamp, 2) >= span)
    return 0;
  return node_value(g, back, 0);
}

/* clamp(round(x) + z, low, high) - z is clamp(round(x), low - z, high - z). */
static ValueId zero_point(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId sum;
  double taken, added;
  NodeId clamp = rounded(g, node_value(g, n, 0), &sum);
  NodeId add = clamp ? match_op(g, sum, OP_ADD_TENSOR) : 0;
  if (!add || !match_op(g, node_result(g, n, 0), OP_SUB_TENSOR) ||
      !match_number(g, node_value(g, n, 1), &taken) ||
      !match_number(g, node_value(g, add, 1), &added) || taken != added)
    return 0;
  return build(b, OP_CLAMP, A_VAL(node_value(g, add, 0)), A_FLOAT(node_scalar(g, clamp, 1) - taken),
               A_FLOAT(node_scalar(g, clamp, 2) - taken));
}

Status pass_factor_scales(PassContext *p, Graph *g) {
  static const RewriteRule rows[] = {
      {OP_TO_COPY, round_trip, "round trips"},
      {OP_SUB_TENSOR, zero_point, "zero points"},
      {OP_CONVOLUTION, convolution, "convolutions"},
      {OP_LINEAR, linear, "products"},
      {OP_MM, product, "products"},
      {OP_MATMUL, product, "products"},
      {OP_ADDMM, product_and_sum, "products"},
      {OP_MEAN_DIM, mean, "products"},
  };
  return pass_rewrite(p, g, rows, COUNT_OF(rows));
}
