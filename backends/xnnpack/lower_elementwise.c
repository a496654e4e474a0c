/* Operations on each element by itself. They keep the layout that their operands are in. */
#include <math.h>

#include "backends/xnnpack/lower.h"
#include "ir/match.h"
#include "support/number.h"

/* Too small to change any code, and no zero to divide by. */
#define ERF_NOT_ZERO 1e-30

enum { MAX_POWER = 8 };

typedef struct KindOf {
  OpId op;
  XnnNodeKind kind;
} KindOf;

static const KindOf kinds[] = {
    {OP_ABS, XNN_ABS},          {OP_ADD_TENSOR, XNN_ADD},      {OP_CEIL, XNN_CEILING},
    {OP_COS, XNN_COS},          {OP_DIV_TENSOR, XNN_DIV},      {OP_DIV_TENSOR_MODE, XNN_DIV},
    {OP_EXP, XNN_EXP},          {OP_FLOOR, XNN_FLOOR},         {OP_LOG, XNN_LOG},
    {OP_MAXIMUM, XNN_MAXIMUM},  {OP_MINIMUM, XNN_MINIMUM},     {OP_MUL_TENSOR, XNN_MULTIPLY},
    {OP_NEG, XNN_NEGATE},       {OP_SIGMOID, XNN_SIGMOID},     {OP_SIN, XNN_SIN},
    {OP_SQRT, XNN_SQUARE_ROOT}, {OP_SUB_TENSOR, XNN_SUBTRACT}, {OP_TANH, XNN_TANH},
};

static XnnNodeKind kind_of(OpId op) {
  for (size_t i = 0; i < COUNT_OF(kinds); i++)
    if (kinds[i].op == op)
      return kinds[i].kind;
  BUG("'%s' is not an element-wise node of XNNPACK", op_row(op)->id);
}

static XnnInOut in_out(XnnLowering *l, NodeId n) {
  return xl_in_out(l, node_value(l->g, n, 0), node_result(l->g, n, 0));
}

void lower_unary(XnnLowering *l, NodeId n) {
  XnnInOut io = in_out(l, n);
  xl_unary(l, kind_of(node_cget(l->g, n)->op), io.in, io.out);
}

static bool one(const Graph *g, NodeId n, uint32_t arg) {
  return node_absent(g, n, arg) || node_scalar(g, n, arg) == 1;
}

/* The larger or smaller of a value and a number is a limit, which XNNPACK makes of it anyway: see
 * xl_clamp. Not in a trial, where no number is known. */
static bool lower_limit(XnnLowering *l, XnnNodeKind kind, ValueId a, ValueId b, ValueId y) {
  bool low = kind == XNN_MAXIMUM;
  ValueId number = is_constant_or_codes(l->g, b) ? b : a, x = number == b ? a : b;
  if ((!low && kind != XNN_MINIMUM) || !is_constant_or_codes(l->g, number) ||
      is_constant_or_codes(l->g, x) || xl_elements(l, number) != 1 ||
      value_rank(l->g, x) != value_rank(l->g, y))
    return false;
  const float *limit = xl_constant_floats(l, number);
  if (!limit || isnan(*limit))
    return false;
  XnnInOut io = xl_in_out(l, x, y);
  xl_clamp(l, io.in, low ? *limit : -INFINITY, low ? INFINITY : *limit, io.out);
  return true;
}

/* x, which v is, with the rank of y where a constant of one element gives it more dims. XNNPACK
 * makes one table of nodes between conversions of codes, and takes the rank of their result from x:
 * the call fails. */
static XnnId with_rank_of(XnnLowering *l, XnnId x, ValueId v, XnnId number, ValueId y) {
  Dims dims = value_dims(l->g, y);
  if (!xl_ok(l) || !type_is_static(value_type(l->g, y)) || value_rank(l->g, v) >= dims.rank)
    return x;
  XnnValue n = l->x.values[number];
  bool one = n.data != 0 && n.rank == dims.rank;
  for (uint32_t i = 0; i < n.rank; i++)
    one = one && n.dims[i] == 1;
  return one ? xl_reshaped(l, x, dims.d, dims.rank) : x;
}

static void binary(XnnLowering *l, XnnNodeKind kind, ValueId a, ValueId b, ValueId y) {
  if (lower_limit(l, kind, a, b, y))
    return;
  uint32_t rank = value_rank(l->g, y);
  ValueId operands[] = {a, b};
  Permuted t;
  if (xl_common_order(l, operands, 2, rank, &t)) {
    XnnId first = xl_in_order(l, a, t, rank), second = xl_in_order(l, b, t, rank);
    xl_binary(l, kind, first, second, xl_result_permuted(l, y, t));
    return;
  }
  bool nhwc = xl_in_nhwc(l, y);
  XnnId x = nhwc ? xl_nhwc_operand(l, a, rank) : xl_plain(l, a);
  XnnId z = nhwc ? xl_nhwc_operand(l, b, rank) : xl_plain(l, b);
  if (!nhwc) {
    x = with_rank_of(l, x, a, z, y);
    z = with_rank_of(l, z, b, x, y);
  }
  xl_binary(l, kind, x, z, nhwc ? xl_result_nhwc(l, y) : xl_result(l, y));
}

/* x * (clamp(x + 3, 0, 6) / 6), which has a node of its own; what it was made of stays unused. */
static bool hard_swish(const Graph *g, NodeId n, ValueId *x) {
  for (uint32_t i = 0; node_cget(g, n)->op == OP_MUL_TENSOR && i < 2; i++) {
    ValueId clamped, shifted;
    double six;
    *x = node_value(g, n, i);
    if (match_then_number(g, node_value(g, n, 1 - i), OP_DIV_TENSOR, &clamped, &six) && six == 6 &&
        match_ramp(g, clamped, &shifted) && shifted == *x)
      return true;
  }
  return false;
}

void lower_binary(XnnLowering *l, NodeId n) {
  OpId op = node_cget(l->g, n)->op;
  ValueId a = node_value(l->g, n, 0), b = node_value(l->g, n, 1), y = node_result(l->g, n, 0);
  if ((op == OP_ADD_TENSOR || op == OP_SUB_TENSOR) && !one(l->g, n, 2)) {
    xl_refuse(l, XNN_RULE_ATTRIBUTE, R_FLOAT("alpha", node_scalar(l->g, n, 2)),
              R_INT("supported", 1));
    return;
  }
  if (op == OP_DIV_TENSOR_MODE && !node_absent(l->g, n, 2)) {
    xl_refuse(l, XNN_RULE_ATTRIBUTE, R_TEXT("rounding_mode", node_str(l->g, n, 2)));
    return;
  }
  ValueId x;
  if (hard_swish(l->g, n, &x)) {
    XnnInOut io = xl_in_out(l, x, y);
    xl_unary(l, XNN_HARDSWISH, io.in, io.out);
    return;
  }
  binary(l, kind_of(op), a, b, y);
}

/* Whether n clamps to integer bounds within +-2^22, the range in which rounding is exact. */
static bool limits_of_codes(const Graph *g, NodeId n, float *low, float *high) {
  if (node_cget(g, n)->op != OP_CLAMP || node_absent(g, n, 1) || node_absent(g, n, 2))
    return false;
  double least = node_scalar(g, n, 1), most = node_scalar(g, n, 2), room = 1 << 22;
  *low = (float)least;
  *high = (float)most;
  return least <= most && least >= -room && most <= room && least == floor(least) &&
         most == floor(most);
}

/* The limits of the one node that uses the rounded number, if they are limits of codes. */
static bool rounds_to_codes(const Graph *g, ValueId rounded, float *low, float *high) {
  NodeId user = value_only_user(g, rounded);
  return user && limits_of_codes(g, user, low, high);
}

void lower_clamp(XnnLowering *l, NodeId n) {
  OpId op = node_cget(l->g, n)->op;
  float low = op == OP_RELU ? 0 : (float)node_scalar_or(l->g, n, 1, -INFINITY),
        high = op == OP_RELU ? INFINITY : (float)node_scalar_or(l->g, n, 2, INFINITY);
  if (!(low <= high)) {
    xl_refuse(l, XNN_RULE_ATTRIBUTE, R_FLOAT("min", low), R_FLOAT("max", high));
    return;
  }
  XnnInOut io = in_out(l, n);
  float same_low, same_high;
  ValueId x = node_value(l->g, n, 0);
  if (match_op(l->g, x, OP_ROUND) && rounds_to_codes(l->g, x, &same_low, &same_high))
    xl_unary(l, XNN_COPY, io.in, io.out); /* lower_round has limited them */
  else
    xl_clamp(l, io.in, low, high, io.out);
}

void lower_leaky_relu(XnnLowering *l, NodeId n) {
  XnnInOut io = in_out(l, n);
  float slope = (float)node_scalar(l->g, n, 1);
  if (!isfinite(slope))
    xl_refuse(l, XNN_RULE_ATTRIBUTE, R_FLOAT("negative_slope", slope));
  if (xl_ok(l))
    XNN_ADD_NODE(&l->x, XNN_LEAKY_RELU, float_bits(slope), io.in, io.out, 0);
}

/* scale * x above 0, scale * alpha * (exp(input_scale * x) - 1) below: the node with other numbers
 * between two products. */
void lower_elu(XnnLowering *l, NodeId n) {
  double before = node_scalar(l->g, n, 3), scale = node_scalar(l->g, n, 2);
  float alpha = (float)(node_scalar(l->g, n, 1) * before);
  double after = scale / before;
  if (!(before > 0) || !(alpha > 0) || !isfinite(alpha) || !isfinite(after)) {
    xl_refuse(l, XNN_RULE_ATTRIBUTE, R_FLOAT("alpha", alpha), R_FLOAT("scale", scale),
              R_FLOAT("input_scale", before));
    return;
  }
  XnnInOut io = in_out(l, n);
  XnnId in = before == 1 ? io.in : xl_scaled(l, io.in, before),
        out = after == 1 ? io.out : xl_temp_like(l, io.out);
  if (xl_ok(l))
    XNN_ADD_NODE(&l->x, XNN_ELU, float_bits(alpha), in, out, 0);
  if (after != 1)
    xl_binary(l, XNN_MULTIPLY, out, xl_number(l, after, xl_rank(l, out)), io.out);
}

/* The tanh form is spelt out: the Gelu node computes the exact one. */
static void gelu_tanh(XnnLowering *l, XnnInOut io, uint32_t rank) {
  XnnId square = xl_temp_like(l, io.in), cubic = xl_temp_like(l, io.in),
        inner = xl_temp_like(l, io.in), scaled = xl_temp_like(l, io.in),
        tanh = xl_temp_like(l, io.in), half = xl_temp_like(l, io.in), sum = xl_temp_like(l, io.in);
  /* sqrt(2 / pi) x (1 + 0.044715 x^2) */
  xl_unary(l, XNN_SQUARE, io.in, square);
  xl_binary(l, XNN_MULTIPLY, square, xl_number(l, 0.044715 * 0.7978845608028654, rank), cubic);
  xl_binary(l, XNN_ADD, cubic, xl_number(l, 0.7978845608028654, rank), inner);
  xl_binary(l, XNN_MULTIPLY, inner, io.in, scaled);
  xl_unary(l, XNN_TANH, scaled, tanh);
  xl_binary(l, XNN_MULTIPLY, io.in, xl_number(l, 0.5, rank), half);
  xl_binary(l, XNN_ADD, tanh, xl_number(l, 1, rank), sum);
  xl_binary(l, XNN_MULTIPLY, half, sum, io.out);
}

void lower_gelu(XnnLowering *l, NodeId n) {
  XnnInOut io = in_out(l, n);
  if (sv_eq_str(node_str(l->g, n, 1), "tanh"))
    gelu_tanh(l, io, value_rank(l->g, node_result(l->g, n, 0)));
  else
    xl_unary(l, XNN_GELU, io.in, io.out);
}

/* x is computed from codes, by nothing but products and sums with constants: it is finite. */
static bool from_codes(const Graph *g, ValueId x, uint32_t steps) {
  NodeId n = value_def(g, x);
  OpId op = n ? node_cget(g, n)->op : OP_NONE;
  if (is_dequantize(g, n) || op == OP_CLAMP)
    return true;
  bool simple = op == OP_ADD_TENSOR || op == OP_DIV_TENSOR || op == OP_MUL_TENSOR;
  return simple && steps && is_constant_or_codes(g, node_value(g, n, 1)) &&
         from_codes(g, node_value(g, n, 0), steps - 1);
}

/* n makes codes of y: by an op, or spelt out for codes of 16 bits. */
static bool makes_codes(const Graph *g, NodeId n, ValueId y) {
  if (n == NODE_OUTPUT || is_quantize(g, n))
    return n != NODE_OUTPUT;
  ValueId steps = node_cget(g, n)->op == OP_DIV_TENSOR_MODE && node_value(g, n, 0) == y
                      ? node_result(g, n, 0)
                      : 0;
  NodeId round = steps ? value_only_user(g, steps) : 0;
  float low, high;
  return round && node_cget(g, round)->op == OP_ROUND &&
         rounds_to_codes(g, node_result(g, round, 0), &low, &high);
}

/* Whether y becomes codes, and x comes from some. */
static bool between_codes(const Graph *g, ValueId x, ValueId y) {
  bool all = from_codes(g, x, 2);
  for (UseId u = first_use(g, y); u; u = g->uses[u].next)
    all = all && makes_codes(g, g->uses[u].node, y);
  return all;
}

/* gelu(x) = x / 2 * (1 + erf(x / sqrt(2))), so erf(x) = 2 * gelu(z) / z - 1 with z = sqrt(2) * x.
 * Near 0 that is exact to the last digit of 1 only, which codes do not see. */
void lower_erf(XnnLowering *l, NodeId n) {
  if (xl_ok(l) && !between_codes(l->g, node_value(l->g, n, 0), node_result(l->g, n, 0)))
    l->refusal = xl_refusal(XNN_RULE_NO_NODE);
  XnnInOut io = in_out(l, n);
  uint32_t rank = xl_rank(l, io.in);
  XnnId z = xl_temp_like(l, io.in), gelu = xl_temp_like(l, io.in), ratio = xl_temp_like(l, io.in);
  XnnId not_zero = xl_number(l, ERF_NOT_ZERO, rank), one;
  xl_binary(l, XNN_ADD, xl_scaled(l, io.in, M_SQRT2), not_zero, z);
  xl_unary(l, XNN_GELU, z, gelu);
  xl_binary(l, XNN_DIV, gelu, z, ratio);
  one = xl_number(l, 1, rank);
  xl_binary(l, XNN_SUBTRACT, xl_scaled(l, ratio, 2), one, io.out);
}

/* Not by the node that XNNPACK has for it, for which 1 / sqrt(0) is NaN. */
void lower_rsqrt(XnnLowering *l, NodeId n) {
  XnnInOut io = in_out(l, n);
  XnnId root = xl_temp_like(l, io.in);
  xl_unary(l, XNN_SQUARE_ROOT, io.in, root);
  xl_binary(l, XNN_DIV, xl_number(l, 1, xl_rank(l, io.in)), root, io.out);
}

void lower_reciprocal(XnnLowering *l, NodeId n) {
  XnnInOut io = in_out(l, n);
  xl_binary(l, XNN_DIV, xl_number(l, 1, value_rank(l->g, node_result(l->g, n, 0))), io.in, io.out);
}

static XnnId multiplied(XnnLowering *l, XnnId a, XnnId b) {
  if (a == XNN_NONE)
    return b;
  XnnId out = xl_temp_like(l, b);
  if (a == b)
    xl_unary(l, XNN_SQUARE, a, out);
  else
    xl_binary(l, XNN_MULTIPLY, a, b, out);
  return out;
}

/* Multiples of 1/4, by squares and square roots. */
void lower_pow(XnnLowering *l, NodeId n) {
  double exponent = node_scalar(l->g, n, 1), quarters = fabs(exponent) * 4;
  if (!(quarters >= 1) || quarters > MAX_POWER * 4 || quarters != floor(quarters)) {
    xl_refuse(l, XNN_RULE_ATTRIBUTE, R_FLOAT("exponent", exponent));
    return;
  }
  XnnInOut io = in_out(l, n);
  uint32_t left = (uint32_t)int_clamped(quarters, 0, MAX_POWER * 4);
  XnnId power = XNN_NONE, factor = io.in;
  for (uint32_t whole = left / 4; whole && xl_ok(l); whole /= 2) {
    if (whole % 2)
      power = multiplied(l, power, factor);
    if (whole > 1)
      factor = multiplied(l, factor, factor);
  }
  XnnId root = io.in;
  for (uint32_t bit = 2; bit && left % (2 * bit) && xl_ok(l); bit /= 2) {
    XnnId next = xl_temp_like(l, root);
    xl_unary(l, XNN_SQUARE_ROOT, root, next);
    root = next;
    if (left & bit)
      power = multiplied(l, power, root);
  }
  if (exponent < 0)
    xl_binary(l, XNN_DIV, xl_number(l, 1, xl_rank(l, io.in)), power, io.out);
  else
    xl_unary(l, XNN_COPY, power, io.out);
}

/* Rounds to the nearest, half to even: floats between 2^23 and 2^24 are integers, so adding and
 * subtracting 3 * 2^22 rounds x up to 2^22. Larger x are clamped anyway. */
static void round_to_codes(XnnLowering *l, XnnInOut io, float low, float high) {
  XnnId moved = xl_temp_like(l, io.in), middle = xl_number(l, 3 << 22, xl_rank(l, io.in));
  xl_binary(l, XNN_ADD, io.in, middle, moved);
  if (!xl_ok(l))
    return;
  XnnNode *back = XNN_ADD_NODE(&l->x, XNN_SUBTRACT, moved, middle, io.out, 0);
  back->limited = true;
  back->limit_low = low;
  back->limit_high = high;
}

/* Half to even. 2^23 has no room for fractions: added and taken away it rounds what lies between 0
 * and it, and there are no fractions beyond. */
void lower_round(XnnLowering *l, NodeId n) {
  const float big = 1 << 23;
  XnnInOut io = in_out(l, n);
  float low, high;
  if (rounds_to_codes(l->g, node_result(l->g, n, 0), &low, &high)) {
    round_to_codes(l, io, low, high);
    return;
  }
  XnnId parts[2], rest = io.in, sum = XNN_NONE;
  for (uint32_t i = 0; i < 2; i++)
    parts[i] = xl_temp_like(l, io.in);
  xl_clamp(l, io.in, 0, big, parts[0]);
  xl_clamp(l, io.in, -big, 0, parts[1]);
  for (uint32_t i = 0; i < 2; i++) {
    XnnId moved = xl_temp_like(l, io.in), back = xl_temp_like(l, io.in),
          less = xl_temp_like(l, io.in), number = xl_number(l, i ? -big : big, xl_rank(l, io.in));
    xl_binary(l, XNN_ADD, parts[i], number, moved);
    xl_binary(l, XNN_SUBTRACT, moved, number, back);
    xl_binary(l, XNN_SUBTRACT, rest, parts[i], less);
    rest = less;
    if (i) {
      XnnId both = xl_temp_like(l, io.in);
      xl_binary(l, XNN_ADD, sum, back, both);
      back = both;
    }
    sum = back;
  }
  xl_binary(l, XNN_ADD, sum, rest, io.out);
}

/* log(1 + e) of the e in [0, 1] that softplus has: what is lost is below 3e-7. It would be all of a
 * small result, so that no other operand is taken. */
void lower_log1p(XnnLowering *l, NodeId n) {
  NodeId power = match_op(l->g, node_value(l->g, n, 0), OP_EXP),
         negative = power ? match_op(l->g, node_value(l->g, power, 0), OP_NEG) : 0;
  if (!negative || !match_op(l->g, node_value(l->g, negative, 0), OP_ABS)) {
    xl_refuse(l, XNN_RULE_NO_NODE, R_STR("operand", "exp(-abs(x)) needed"));
    return;
  }
  XnnInOut io = in_out(l, n);
  XnnId sum = xl_temp_like(l, io.in);
  xl_binary(l, XNN_ADD, io.in, xl_number(l, 1, xl_rank(l, io.in)), sum);
  xl_unary(l, XNN_LOG, sum, io.out);
}

/* Bounds that are tensors; either may be absent. */
void lower_clamp_tensor(XnnLowering *l, NodeId n) {
  ValueId x = node_value(l->g, n, 0), low = node_value(l->g, n, 1), high = node_value(l->g, n, 2);
  if (!value_same_type(l->g, x, node_result(l->g, n, 0))) /* limits that broadcast x */
    xl_refuse(l, XNN_RULE_RANK, R_INT("rank", value_rank(l->g, x)));
  XnnId in = xl_plain(l, x), out = xl_result(l, node_result(l->g, n, 0));
  if (low) {
    XnnId raised = high ? xl_temp_like(l, out) : out;
    xl_binary(l, XNN_MAXIMUM, in, xl_plain(l, low), raised);
    in = raised;
  }
  if (high)
    xl_binary(l, XNN_MINIMUM, in, xl_plain(l, high), out);
  else if (!low)
    xl_unary(l, XNN_COPY, in, out);
}

/* --- PReLU: where(x >= 0, x, slope * x) --- */

ValueId xl_prelu_slope(const Graph *g, NodeId where) {
  NodeId sign = match_op(g, node_value(g, where, 0), OP_GE_SCALAR),
         product = match_op(g, node_value(g, where, 2), OP_MUL_TENSOR);
  ValueId x = node_value(g, where, 1);
  if (!sign || !product || node_value(g, sign, 0) != x || node_scalar(g, sign, 1) != 0)
    return 0;
  ValueId a = node_value(g, product, 0), b = node_value(g, product, 1),
          slope = a == x   ? b
                  : b == x ? a
                           : 0;
  return slope && is_constant_or_codes(g, slope) ? slope : 0;
}

bool xl_prelu(XnnLowering *l, NodeId where) {
  ValueId slope = xl_prelu_slope(l->g, where);
  if (slope)
    binary(l, XNN_PRELU, node_value(l->g, where, 1), slope, node_result(l->g, where, 0));
  return slope != 0;
}

/* The sign that the PReLU nodes find by themselves; nothing else may use it. */
void lower_ge(XnnLowering *l, NodeId n) {
  ValueId y = node_result(l->g, n, 0);
  for (UseId u = first_use(l->g, y); u; u = l->g->uses[u].next) {
    NodeId user = l->g->uses[u].node;
    if (user == NODE_OUTPUT || node_cget(l->g, user)->op != OP_WHERE_SELF ||
        !xl_prelu_slope(l->g, user))
      xl_refuse(l, XNN_RULE_NO_NODE, R_STR("supported", "as a part of PRelu"));
  }
  (void)xl_plain(l, node_value(l->g, n, 0));
}

/* To f32 and f16. What becomes a half is rounded to it: it may leave its range. */
void lower_convert(XnnLowering *l, NodeId n) {
  ValueId x = node_value(l->g, n, 0), y = node_result(l->g, n, 0);
  DType from = value_dtype(l->g, x);
  bool narrows = value_dtype(l->g, y) == DTYPE_F16 && (from == DTYPE_F32 || from == DTYPE_I32);
  if (dtype_in(from, DT(BOOL) | DT(U8) | DT(I8) | DT(I32))) {
    XnnId whole = xl_integers(l, x);
    XnnId result = xl_result(l, y);
    xl_unary(l, XNN_COPY, narrows ? xl_rounded(l, whole) : whole, result);
    return;
  }
  XnnInOut io = in_out(l, n);
  xl_unary(l, XNN_COPY, narrows ? xl_rounded(l, io.in) : io.in, io.out);
}

/* The node adds nothing to its operand. */
void lower_same(XnnLowering *l, NodeId n) {
  XnnInOut io = in_out(l, n);
  xl_unary(l, XNN_COPY, io.in, io.out);
}

/* (x - mean) / sqrt(var + eps) * weight + bias with everything but x constant: x * a + b. */
void lower_batch_norm(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), weight = node_value(g, n, 1), bias = node_value(g, n, 2),
          mean = node_value(g, n, 3), var = node_value(g, n, 4);
  ValueId parts[] = {weight, bias, mean, var};
  for (size_t i = 0; i < COUNT_OF(parts); i++)
    if (parts[i] && !is_constant_or_codes(g, parts[i]))
      xl_refuse(l, XNN_RULE_RUNTIME_WEIGHTS, R_INT("argument", i + 1));
  uint32_t rank = value_rank(g, x);
  if (rank < 2)
    xl_refuse(l, XNN_RULE_RANK, R_INT("rank", rank), R_INT("least", 2));
  if (!xl_ok(l))
    return;
  uint32_t channels = xl_dim(l, x, 1);
  const float *w = weight ? xl_constant_floats(l, weight) : NULL,
              *c = bias ? xl_constant_floats(l, bias) : NULL, *m = xl_constant_floats(l, mean),
              *v = xl_constant_floats(l, var);
  float *scale = ARENA_ARRAY(l->arena, float, channels),
        *shift = ARENA_ARRAY(l->arena, float, channels);
  for (uint32_t i = 0; i < channels && m && v; i++) {
    double a = (w ? (double)w[i] : 1) / sqrt((double)v[i] + node_scalar(g, n, 6));
    scale[i] = (float)a;
    shift[i] = (float)((c ? (double)c[i] : 0) - (double)m[i] * a);
  }
  XnnInOut io = in_out(l, n);
  uint32_t dims[XNN_MAX_RANK] = {channels, 1, 1, 1, 1, 1},
           used = xl_rank(l, io.in) - xl_whole_axis(l, &io.at, 1);
  XnnId scaled = xl_temp_like(l, io.in);
  xl_binary(l, XNN_MULTIPLY, io.in, xl_floats(l, used, dims, scale), scaled);
  xl_binary(l, XNN_ADD, scaled, xl_floats(l, used, dims, shift), io.out);
}
