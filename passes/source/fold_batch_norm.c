/* Folds factors and shifts per channel into the constant weights and bias of the convolution or
 * matrix product beside them.
 *
 *   batch norm at inference   factor = scale / sqrt(var + eps), shift = bias - mean * factor
 *   x * constant              a factor only ("layer scale")
 *   x + constant              a shift only
 *
 * Behind a convolution or linear, weight' = weight * factor and bias' = bias * factor + shift; a
 * factor is also folded into matmul with a constant matrix and the bias added to it. In front of a
 * convolution, a factor goes into its weights (per channel only if the convolution is depthwise),
 * and a shift into its bias if it pads nothing, since padding is not shifted. Where it pads, x * a
 * + b becomes (x + b / a) * a, and the factor a is folded (exchange_before).
 *
 * A batch norm that is not beside such a node stays a kernel of its own. For dequantized weights,
 * the scales are multiplied. Quantization-aware training in torch divides by the factor and adds
 * the bias between convolution and norm; these are folded with the norm (through_affine). Computed
 * in double precision for f32, rounded once. */
#include <math.h>

#include "ir/match.h"
#include "ops/kernel.h"
#include "interp/interp.h"
#include "ops/quantized.h"
#include "passes/pass.h"

typedef struct Affine {
  int64_t channels;
  double *factor, *shift;
} Affine;

static Affine make_affine(int64_t channels, Arena *arena) {
  return (Affine){.channels = channels,
                  .factor = ARENA_ARRAY(arena, double, (size_t)channels),
                  .shift = ARENA_ARRAY(arena, double, (size_t)channels)};
}

static bool load(const Graph *g, ValueId v, Arena *arena, int64_t channels, double *out) {
  if (!v || !value_is_const(g, v) || value_dtype(g, v) != DTYPE_F32)
    return false;
  Tensor t = interp_constant(g, v, arena);
  if (tensor_numel(&t) != channels)
    return false;
  for (int64_t i = 0; i < channels; i++)
    out[i] = tensor_load(&t, i);
  return true;
}

/* Factor and shift of a batch norm with constant statistics. */
static bool affine_of(const Graph *g, NodeId n, Arena *arena, Affine *a) {
  SymInt channels = value_dim(g, node_value(g, n, 0), 1);
  if (!sym_is_const(channels) || channels <= 0 || channels > (1 << 20))
    return false;
  *a = make_affine(channels, arena);
  double *mean = ARENA_ARRAY(arena, double, (size_t)channels),
         *var = ARENA_ARRAY(arena, double, (size_t)channels);
  for (int64_t i = 0; i < channels; i++)
    a->factor[i] = 1;
  bool scaled = node_absent(g, n, 1) || load(g, node_value(g, n, 1), arena, channels, a->factor);
  bool shifted = node_absent(g, n, 2) || load(g, node_value(g, n, 2), arena, channels, a->shift);
  if (!scaled || !shifted || !load(g, node_value(g, n, 3), arena, channels, mean) ||
      !load(g, node_value(g, n, 4), arena, channels, var))
    return false;
  double eps = node_scalar(g, n, 6);
  for (int64_t i = 0; i < channels; i++) {
    if (!(var[i] + eps > 0)) /* negative variance: the kernel's NaN must show */
      return false;
    a->factor[i] /= sqrt(var[i] + eps);
    a->shift[i] -= mean[i] * a->factor[i];
    if (!isfinite((float)a->factor[i]) || !isfinite((float)a->shift[i]))
      return false;
  }
  return true;
}

/* The weight with output channel c times factor[c]. Plain weights have channels first; transposed
 * ones second, by group. */
static ValueId scale_weight(Builder *b, ValueId weight, const Affine *a, bool transposed,
                            int64_t groups) {
  Graph *g = b->g;
  Arena scratch = {0};
  Tensor t = interp_constant(g, weight, &scratch);
  const float *in = t.data;
  float *out = arena_alloc(&g->arena, tensor_bytes(&t));
  int64_t inner = dims_count(t.dims, transposed ? 2 : 1, t.rank), outer = t.dims[0];
  int64_t per_group = transposed ? t.dims[1] : 1, in_per_group = transposed ? outer / groups : 1;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t k = 0; k < per_group; k++) {
      double factor = a->factor[transposed ? o / in_per_group * per_group + k : o];
      for (int64_t i = 0; i < inner; i++, in++)
        *out++ = (float)((double)*in * factor);
    }
  uint64_t bytes = tensor_bytes(&t);
  ValueId v = graph_add_constant(g, value_cget(g, weight)->type,
                                 (Constant){.data = (uint8_t *)out - bytes, .size = bytes},
                                 value_cget(g, weight)->name);
  arena_release(&scratch);
  return v;
}

static ValueId new_bias(Builder *b, ValueId bias, const Affine *a, Arena *arena) {
  double *old = ARENA_ARRAY(arena, double, (size_t)a->channels);
  if (bias && !load(b->g, bias, arena, a->channels, old))
    return 0;
  float *data = ARENA_ARRAY(arena, float, (size_t)a->channels);
  for (int64_t i = 0; i < a->channels; i++)
    data[i] = (float)(old[i] * a->factor[i] + a->shift[i]);
  return build_const(b, DTYPE_F32, 1, &a->channels, data);
}

/* Whether the scales of a dequantized weight can be multiplied: they lie along its output channels,
 * or are one number. */
static bool has_scales(const Graph *g, NodeId producer, NodeId dequantize) {
  Quantization q = quantization_of(g, dequantize);
  bool transposed = node_cget(g, producer)->op == OP_CONVOLUTION && node_bool(g, producer, 6);
  return !q.block && !q.zeros && (!q.scales || q.axis == (transposed ? 1 : 0)) &&
         !(transposed && node_int(g, producer, 8) > 1);
}

/* Whether weight and bias of n are constants that can be changed; asked before either is. */
static bool foldable(const Graph *g, NodeId n, uint32_t bias_arg) {
  ValueId w = node_value(g, n, 1), bias = node_value(g, n, bias_arg);
  NodeId codes = dequantized_constant(g, w);
  return (value_is_const(g, w) || (codes && has_scales(g, n, codes))) &&
         value_dtype(g, w) == DTYPE_F32 &&
         (!bias || (value_is_const(g, bias) && value_dtype(g, bias) == DTYPE_F32));
}

/* The dequantized weight with other scales; 0 where one would not be positive. */
static ValueId scale_codes(Builder *b, NodeId dequantize, const Affine *a, bool transposed) {
  Graph *g = b->g;
  Quantization q = quantization_of(g, dequantize);
  const Constant *old = q.scales ? value_constant(g, q.scales) : NULL;
  float *scales = ARENA_ARRAY(&g->arena, float, (size_t)a->channels + 1);
  int64_t *zeros = ARENA_ARRAY(&g->arena, int64_t, (size_t)a->channels + 1);
  for (int64_t i = 0; i < a->channels; i++) {
    float scale = q.scale;
    if (old)
      memcpy(&scale, old->data + (uint64_t)i * sizeof scale, sizeof scale);
    scales[i] = (float)((double)scale * a->factor[i]);
    zeros[i] = q.zero;
    if (!isnormal(scales[i]) || scales[i] < 0)
      return 0;
  }
  q.zeros = q.scales || q.zero == 0 ? 0 : build_const(b, DTYPE_I64, 1, &a->channels, zeros);
  q.scales = build_const(b, DTYPE_F32, 1, &a->channels, scales);
  q.axis = transposed ? 1 : 0;
  return build_dequantize(b, node_value(g, dequantize, 0), &q);
}

static bool is_shifting(const Affine *a) {
  for (int64_t i = 0; i < a->channels; i++)
    if (a->shift[i] != 0)
      return true;
  return false;
}

static ValueId fold_into(Builder *b, NodeId producer, const Affine *a, Arena *arena) {
  Graph *g = b->g;
  bool conv = node_cget(g, producer)->op == OP_CONVOLUTION,
       transposed = conv && node_bool(g, producer, 6);
  int64_t groups = conv ? node_int(g, producer, 8) : 1;
  ValueId old = node_value(g, producer, 2),
          bias = old || is_shifting(a) ? new_bias(b, old, a, arena) : 0;
  if (old && !bias)
    return 0;
  ValueId weight = node_value(g, producer, 1);
  NodeId codes = dequantized_constant(g, weight);
  weight =
      codes ? scale_codes(b, codes, a, transposed) : scale_weight(b, weight, a, transposed, groups);
  if (!weight)
    return 0;
  ArgIn operands[] = {A_VAL(node_value(g, producer, 0)), A_VAL(weight), A_OPT(bias)};
  return build_on(b, producer, operands, 3);
}

/* --- layer scale --- */

enum { CHANNELS_MAX = 1 << 20 };

/* A constant with one number for each index of dim `channel` of v, 1 elsewhere, as the factor. */
static bool factor_of(const Graph *g, ValueId c, ValueId v, uint32_t channel, Arena *arena,
                      Affine *a) {
  const Type *t = value_type(g, c), *of = value_type(g, v);
  uint32_t missing = of->rank - t->rank;
  if (!value_is_const(g, c) || t->rank > of->rank || channel < missing ||
      !sym_is_const(of->dims[channel]))
    return false;
  for (uint32_t i = 0; i < t->rank; i++)
    if (t->dims[i] != (i + missing == channel ? of->dims[channel] : 1))
      return false;
  if (of->dims[channel] <= 1 || of->dims[channel] > CHANNELS_MAX)
    return false;
  *a = make_affine(of->dims[channel], arena);
  return load(g, c, arena, a->channels, a->factor);
}

static Affine same_factors(double number, int64_t channels, Arena *arena) {
  Affine a = make_affine(channels, arena);
  for (int64_t i = 0; i < channels; i++)
    a.factor[i] = number;
  return a;
}

/* The same of channels of images, or one number for all of them. */
static bool channel_factor(const Graph *g, ValueId c, ValueId v, Arena *arena, Affine *a) {
  if (value_rank(g, v) < 2)
    return false;
  SymInt channels = value_dim(g, v, 1);
  double number;
  if (!match_number(g, c, &number) || value_dtype(g, c) != DTYPE_F32 ||
      value_rank(g, c) > value_rank(g, v))
    return factor_of(g, c, v, 1, arena, a);
  if (!sym_is_const(channels) || channels < 1 || channels > CHANNELS_MAX)
    return false;
  *a = same_factors(number, channels, arena);
  return true;
}

/* The matrix [K, N] with column n times factor[n]. */
static ValueId scale_columns(Builder *b, ValueId weight, const Affine *a) {
  Graph *g = b->g;
  const Constant *c = value_constant(g, weight);
  uint64_t count = c->size / sizeof(float);
  float *out = arena_alloc(&g->arena, c->size);
  for (uint64_t i = 0; i < count; i++) {
    memcpy(&out[i], c->data + i * sizeof(float), sizeof(float));
    out[i] = (float)((double)out[i] * a->factor[i % (uint64_t)a->channels]);
  }
  Constant bytes = {.data = (uint8_t *)out, .size = c->size};
  return graph_add_constant(g, value_cget(g, weight)->type, bytes, value_cget(g, weight)->name);
}

/* The product with a constant matrix that nothing else uses and that computes v; 0: there is none.
 */
static NodeId matrix_product(const Graph *g, ValueId v) {
  NodeId n = match_op_once(g, v, OP_MATMUL);
  n = n ? n : match_op_once(g, v, OP_MM);
  ValueId weight = n ? node_value(g, n, 1) : 0;
  return n && value_is_const(g, weight) && value_rank(g, weight) == 2 &&
                 value_dtype(g, weight) == DTYPE_F32 && value_used_once(g, weight)
             ? n
             : 0;
}

/* matmul(x, W) * factor, or (matmul(x, W) + bias) * factor. */
static ValueId scale_matmul(Builder *b, ValueId v, const Affine *a, Arena *arena) {
  Graph *g = b->g;
  NodeId sum = match_op_once(g, v, OP_ADD_TENSOR);
  ValueId bias = 0, product = v;
  if (sum) {
    uint32_t at = value_is_const(g, node_value(g, sum, 1)) ? 1 : 0;
    bias = node_value(g, sum, at);
    product = node_value(g, sum, 1 - at);
    if (value_rank(g, bias) != 1 || value_dim(g, bias, 0) != a->channels)
      return 0;
  }
  NodeId n = matrix_product(g, product);
  if (!n)
    return 0;
  ValueId weight = node_value(g, n, 1), shift = bias ? new_bias(b, bias, a, arena) : 0;
  if (bias && !shift)
    return 0;
  ArgIn args[] = {A_VAL(node_value(g, n, 0)), A_VAL(scale_columns(b, weight, a))};
  ValueId y = build_args(b, node_cget(g, n)->op, args, 2);
  return bias ? build(b, OP_ADD_TENSOR, A_VAL(y), A_VAL(shift)) : y;
}

/* x * constant, n, where x is a product itself. */
static ValueId fold_scale(Builder *b, NodeId n) {
  Graph *g = b->g;
  Arena *arena = b->data;
  uint32_t at = value_is_const(g, node_value(g, n, 1)) ? 1 : 0;
  ValueId c = node_value(g, n, at), x = node_value(g, n, 1 - at);
  uint32_t rank = value_rank(g, x);
  Affine a;
  if (rank < 2 || !value_same_type(g, x, node_result(g, n, 0)))
    return 0;
  NodeId conv = match_op_once(g, x, OP_CONVOLUTION), linear = match_op_once(g, x, OP_LINEAR);
  if (!(conv ? channel_factor(g, c, x, arena, &a) : factor_of(g, c, x, rank - 1, arena, &a)))
    return 0;
  if (!conv && !linear)
    return scale_matmul(b, x, &a, arena);
  NodeId producer = conv ? conv : linear;
  return foldable(g, producer, 2) && value_used_once(g, node_value(g, producer, 1))
             ? fold_into(b, producer, &a, arena)
             : 0;
}

/* A sum or difference of something and a constant a channel, or one number. */
typedef struct Shifted {
  ValueId x;
  Affine by; /* the shift; all factors are 1 */
} Shifted;

static bool is_shifted(const Graph *g, NodeId n, Arena *arena, Shifted *s) {
  bool minus = node_cget(g, n)->op == OP_SUB_TENSOR;
  uint32_t at = minus || value_is_const(g, node_value(g, n, 1)) ? 1 : 0;
  s->x = node_value(g, n, 1 - at);
  if (node_scalar(g, n, 2) != 1 || !value_same_type(g, s->x, node_result(g, n, 0)) ||
      !channel_factor(g, node_value(g, n, at), s->x, arena, &s->by))
    return false;
  for (int64_t i = 0; i < s->by.channels; i++) {
    s->by.shift[i] = minus ? -s->by.factor[i] : s->by.factor[i];
    s->by.factor[i] = 1;
  }
  return true;
}

/* n: convolution(x) + constant. Dequantized weights are left alone: with another bias the result
 * would be quantized to other codes. */
static ValueId fold_shift(Builder *b, NodeId n) {
  Graph *g = b->g;
  Shifted s;
  NodeId conv = is_shifted(g, n, b->data, &s) ? match_op_once(g, s.x, OP_CONVOLUTION) : 0;
  if (!conv || !value_is_const(g, node_value(g, conv, 1)))
    return 0;
  ValueId bias = new_bias(b, node_value(g, conv, 2), &s.by, b->data);
  if (!bias)
    return 0;
  node_set_arg(g, conv, 2, A_VAL(bias));
  return s.x;
}

/* v, or x where v is x with a constant per channel multiplied, divided, added or subtracted: *a is
 * then the factor and shift of x instead of v. */
static ValueId through_affine(const Graph *g, ValueId v, Arena *arena, Affine *a) {
  static const OpId ops[] = {OP_MUL_TENSOR, OP_DIV_TENSOR, OP_ADD_TENSOR, OP_SUB_TENSOR};
  for (uint32_t i = 0; i < COUNT_OF(ops); i++) {
    NodeId n = match_op_once(g, v, ops[i]);
    bool sum = i > 1;
    if (!n || (sum && node_scalar(g, n, 2) != 1))
      continue;
    uint32_t at = ops[i] == OP_DIV_TENSOR || ops[i] == OP_SUB_TENSOR ||
                  value_is_const(g, node_value(g, n, 1));
    Affine own;
    ValueId x = node_value(g, n, 1 - at);
    if (value_rank(g, x) < 2 || !value_same_type(g, x, v) ||
        !factor_of(g, node_value(g, n, at), x, 1, arena, &own))
      return v;
    for (int64_t k = 0; k < a->channels; k++) {
      double number = own.factor[k], factor = ops[i] == OP_DIV_TENSOR ? 1 / number : number;
      if (sum)
        a->shift[k] += a->factor[k] * (ops[i] == OP_SUB_TENSOR ? -number : number);
      else
        a->factor[k] *= factor;
    }
    return x;
  }
  return v;
}

/* --- factors in front --- */

/* The factors of the operand's channels for those of the result, of which each reads one. */
static Affine by_output(const Affine *a, int64_t outputs, Arena *arena) {
  Affine to = {.channels = outputs, .factor = ARENA_ARRAY(arena, double, (size_t)outputs)};
  for (int64_t i = 0; i < outputs; i++)
    to.factor[i] = a->factor[i / (outputs / a->channels)];
  return to;
}

/* Whether the weights of convolution n can take a factor. */
static bool takes_factor(const Graph *g, NodeId n) {
  return !node_bool(g, n, 6) && foldable(g, n, 2) && value_used_once(g, node_value(g, n, 1));
}

/* convolution(x * constant, weight), n: the weights take the factors, those of each channel where
 * each result reads one channel. */
static ValueId fold_factor_before(Builder *b, NodeId n) {
  Graph *g = b->g;
  NodeId mul = match_op(g, node_value(g, n, 0), OP_MUL_TENSOR);
  ValueId weight = node_value(g, n, 1);
  if (!mul || !takes_factor(g, n))
    return 0;
  uint32_t at = value_is_const(g, node_value(g, mul, 1)) ? 1 : 0;
  ValueId x = node_value(g, mul, 1 - at), c = node_value(g, mul, at);
  Affine a;
  double number;
  if (!value_same_type(g, x, node_result(g, mul, 0)) || !channel_factor(g, c, x, b->data, &a))
    return 0;
  bool whole =
      match_number(g, c, &number) && isfinite(number) && value_used_once(g, node_result(g, mul, 0));
  int64_t outputs = value_dim(g, weight, 0);
  if (!whole && node_int(g, n, 8) != a.channels)
    return 0;
  a = whole ? same_factors(number, outputs, b->data) : by_output(&a, outputs, b->data);
  NodeId codes = dequantized_constant(g, weight);
  weight = codes ? scale_codes(b, codes, &a, false) : scale_weight(b, weight, &a, false, 1);
  if (!weight)
    return 0;
  return build_on(b, n, (const ArgIn[]){A_VAL(x), A_VAL(weight)}, 2);
}

/* What each result of a convolution gets from a shift of its operand's channels. */
static Affine shifts_of(const Graph *g, NodeId n, const Affine *by, Arena *arena) {
  Tensor t = interp_constant(g, node_value(g, n, 1), arena);
  int64_t outputs = t.dims[0], inputs = t.dims[1], taps = dims_count(t.dims, 2, t.rank),
          in_group = outputs / node_int(g, n, 8);
  const float *weight = t.data;
  Affine to = same_factors(1, outputs, arena);
  for (int64_t o = 0; o < outputs; o++)
    for (int64_t i = 0; i < inputs; i++)
      for (int64_t k = 0; k < taps; k++)
        to.shift[o] += (double)*weight++ * by->shift[o / in_group * inputs + i];
  return to;
}

/* convolution(x + constant), n, without padding: the bias takes the shift, and x its place. */
static bool fold_shift_before(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId v = node_value(g, n, 0), weight = node_value(g, n, 1);
  NodeId sum = match_op_once(g, v, OP_ADD_TENSOR);
  sum = sum ? sum : match_op_once(g, v, OP_SUB_TENSOR);
  Shifted s;
  bool padded = node_bool(g, n, 6);
  for (uint32_t i = 0; i < node_list_count(g, n, 4); i++)
    padded = padded || node_ints(g, n, 4)[i] != 0;
  if (!sum || padded || !value_is_const(g, weight) || value_dtype(g, weight) != DTYPE_F32 ||
      !is_shifted(g, sum, b->data, &s))
    return false;
  Affine to = shifts_of(g, n, &s.by, b->data);
  ValueId bias = new_bias(b, node_value(g, n, 2), &to, b->data);
  if (!bias)
    return false;
  node_set_arg(g, n, 0, A_VAL(s.x));
  node_set_arg(g, n, 2, A_VAL(bias));
  graph_remove_node(g, sum);
  return true;
}

/* v / number, for each channel of y. */
static ValueId shift_below(Builder *b, ValueId v, double number, ValueId y) {
  Affine a;
  double shift;
  if (match_number(b->g, v, &shift) && value_dtype(b->g, v) == DTYPE_F32)
    return build_scalar(b, DTYPE_F32, shift / number);
  if (!factor_of(b->g, v, y, 1, b->data, &a))
    return 0;
  int64_t dims[MAX_RANK] = {a.channels};
  uint32_t rank = value_rank(b->g, y) - 1;
  for (uint32_t i = 1; i < rank; i++)
    dims[i] = 1;
  float *shifts = ARENA_ARRAY(b->data, float, (size_t)a.channels);
  for (int64_t i = 0; i < a.channels; i++)
    shifts[i] = (float)(a.factor[i] / number);
  return build_const(b, DTYPE_F32, rank, dims, shifts);
}

/* x * number + shift in front of convolution n, which pads, as (x + shift / number) * number: the
 * weights take the number then. */
static bool exchange_before(Builder *b, NodeId n) {
  Graph *g = b->g;
  NodeId sum = match_op_once(g, node_value(g, n, 0), OP_ADD_TENSOR);
  if (!sum || node_scalar(g, sum, 2) != 1 || !takes_factor(g, n))
    return false;
  uint32_t at = value_is_const(g, node_value(g, sum, 1)) ? 1 : 0;
  NodeId mul = match_op_once(g, node_value(g, sum, 1 - at), OP_MUL_TENSOR);
  double number;
  ValueId x;
  if (!mul || !match_with_number(g, node_result(g, mul, 0), OP_MUL_TENSOR, &x, &number) ||
      !isnormal((float)number) || value_dtype(g, x) != DTYPE_F32 ||
      !value_same_type(g, x, node_result(g, sum, 0)))
    return false;
  ValueId shift = shift_below(b, node_value(g, sum, at), number, x);
  if (!shift)
    return false;
  ValueId y = build_binary(b, OP_ADD_TENSOR, x, shift),
          product = build_binary(b, OP_MUL_TENSOR, y, build_scalar(b, DTYPE_F32, number));
  if (b->status != STATUS_OK)
    return false;
  node_set_arg(g, n, 0, A_VAL(product));
  graph_remove_node(g, sum);
  graph_remove_node(g, mul);
  return true;
}

static ValueId fold_before(Builder *b, NodeId n) {
  bool shifted = fold_shift_before(b, n) || exchange_before(b, n);
  ValueId y = fold_factor_before(b, n);
  return y || !shifted ? y : node_result(b->g, n, 0);
}

static bool is_finite(const Affine *a) {
  for (int64_t i = 0; i < a->channels; i++)
    if (!isfinite((float)a->factor[i]) || !isfinite((float)a->shift[i]))
      return false;
  return true;
}

static ValueId fold_norm(Builder *b, NodeId n) {
  Graph *g = b->g;
  Arena *arena = b->data;
  ValueId x = node_value(g, n, 0), before = 0;
  Affine a;
  if (!affine_of(g, n, arena, &a))
    return 0;
  for (; x != before; x = through_affine(g, x, arena, &a))
    before = x;
  NodeId producer = match_op_once(g, x, OP_CONVOLUTION);
  if (!producer && value_rank(g, x) == 2)
    producer = match_op_once(g, x, OP_LINEAR);
  return producer && foldable(g, producer, 2) && is_finite(&a) ? fold_into(b, producer, &a, arena)
                                                               : 0;
}

Status pass_fold_batch_norm(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {
      {OP_NATIVE_BATCH_NORM_LEGIT_NO_TRAINING, fold_norm, "batch norms folded"},
      {OP_MUL_TENSOR, fold_scale, "factors folded"},
      {OP_ADD_TENSOR, fold_shift, "shifts folded"},
      {OP_SUB_TENSOR, fold_shift, "shifts folded"},
      {OP_CONVOLUTION, fold_before, "factors folded"},
  };
  Rewriter r = {.rules = rules, .rule_count = COUNT_OF(rules), .data = p->scratch};
  return pass_rewriter(p, g, &r);
}
