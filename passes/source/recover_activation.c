/* gelu, silu, hardswish, hardsigmoid and softplus as exporters spell them. Constants are compared
 * with a tolerance of half precision: exporters write sqrt(2) and 0.044715 in half, single or
 * double precision. */
#include "ir/match.h"
#include "passes/pass.h"

#define TOLERANCE 5e-4 /* 2^-11 is half a unit in the last place of half precision */
#define SQRT_2 1.4142135623730951
#define SQRT_2_OVER_PI 0.7978845608028654

/* v = x / sqrt(2) or x * (1 / sqrt(2)). */
static bool over_sqrt_2(const Graph *g, ValueId v, ValueId *x) {
  double c;
  if (match_then_number(g, v, OP_DIV_TENSOR, x, &c))
    return match_close(c, SQRT_2, TOLERANCE);
  return match_with_number(g, v, OP_MUL_TENSOR, x, &c) && match_close(c, 1 / SQRT_2, TOLERANCE);
}

/* v = 1 + op(x) */
static bool one_plus(const Graph *g, ValueId v, OpId op, ValueId *x) {
  ValueId y;
  double one;
  NodeId n = match_with_number(g, v, OP_ADD_TENSOR, &y, &one) && one == 1 ? match_op(g, y, op) : 0;
  *x = n ? node_value(g, n, 0) : 0;
  return n != 0;
}

/* v = 1 + erf(x / sqrt(2)) */
static bool erf_gate(const Graph *g, ValueId v, ValueId *x) {
  return one_plus(g, v, OP_ERF, x) && over_sqrt_2(g, *x, x);
}

/* v = sqrt(2 / pi) * (x + 0.044715 * x^3) */
static bool tanh_argument(const Graph *g, ValueId v, ValueId *x) {
  ValueId sum, cubic, cube, square;
  double c;
  if (!match_with_number(g, v, OP_MUL_TENSOR, &sum, &c) ||
      !match_close(c, SQRT_2_OVER_PI, TOLERANCE))
    return false;
  NodeId add = match_op(g, sum, OP_ADD_TENSOR);
  for (uint32_t i = 0; add && i < 2; i++) {
    *x = node_value(g, add, i);
    cubic = node_value(g, add, 1 - i);
    if (!match_with_number(g, cubic, OP_MUL_TENSOR, &cube, &c) ||
        !match_close(c, 0.044715, TOLERANCE))
      continue;
    NodeId power = match_op(g, cube, OP_POW_TENSOR_SCALAR);
    if (power && node_value(g, power, 0) == *x && node_scalar(g, power, 1) == 3)
      return true;
    if (match_other(g, cube, OP_MUL_TENSOR, *x, &square) && match_op(g, square, OP_MUL_TENSOR) &&
        match_other(g, square, OP_MUL_TENSOR, *x, &square) && square == *x)
      return true;
  }
  return false;
}

/* v = 1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)) */
static bool tanh_gate(const Graph *g, ValueId v, ValueId *x) {
  return one_plus(g, v, OP_TANH, x) && tanh_argument(g, *x, x);
}

typedef bool Gate(const Graph *g, ValueId v, ValueId *x);

/* v is (x * gate(x)) * 0.5. */
static bool gated_then_half(const Graph *g, ValueId v, Gate *gate, ValueId *x) {
  ValueId inner;
  double half;
  if (!match_with_number(g, v, OP_MUL_TENSOR, &inner, &half) || half != 0.5)
    return false;
  NodeId m = match_op(g, inner, OP_MUL_TENSOR);
  for (uint32_t i = 0; m && i < 2; i++)
    if (gate(g, node_value(g, m, i), x) && node_value(g, m, 1 - i) == *x)
      return true;
  return false;
}

/* v is x * 0.5 * gate(x) in any order of the products. */
static bool half_gated(const Graph *g, ValueId v, Gate *gate, ValueId *x) {
  ValueId inner, other;
  double half;
  NodeId n = match_op(g, v, OP_MUL_TENSOR);
  if (!n)
    return false;
  if (gated_then_half(g, v, gate, x))
    return true;
  for (uint32_t i = 0; i < 2; i++) {
    ValueId a = node_value(g, n, i), c = node_value(g, n, 1 - i);
    if (gate(g, a, x) && match_with_number(g, c, OP_MUL_TENSOR, &other, &half) && half == 0.5 &&
        other == *x)
      return true; /* (x * 0.5) * gate */
    if (match_with_number(g, a, OP_MUL_TENSOR, &inner, &half) && half == 0.5 && gate(g, inner, x) &&
        c == *x)
      return true; /* x * (gate * 0.5) */
  }
  return false;
}

static ValueId gelu(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x, r = node_result(g, n, 0);
  bool exact = half_gated(g, r, erf_gate, &x);
  if ((!exact && !half_gated(g, r, tanh_gate, &x)) || !match_fits(g, n, x))
    return 0;
  return build(b, OP_GELU, A_VAL(x), A_STR(exact ? "none" : "tanh"));
}

/* v is x times a constant factor, 1 where it is no product with one. */
static ValueId without_factor(const Graph *g, ValueId v, double *factor) {
  ValueId x;
  *factor = 1;
  return match_with_number(g, v, OP_MUL_TENSOR, &x, factor) ? x : v;
}

/* x * gate(x), either of them times a number, is a gelu times twice that number: tools that move
 * factors into the weights behind them (onnxsim does) leave no half. */
static ValueId scaled_gelu(Builder *b, NodeId n) {
  Graph *g = b->g;
  for (uint32_t i = 0; i < 2; i++) {
    double of_gate, of_x;
    ValueId x = 0, gate = without_factor(g, node_value(g, n, i), &of_gate);
    ValueId operand = node_value(g, n, 1 - i), bare = without_factor(g, operand, &of_x);
    bool exact = erf_gate(g, gate, &x);
    if (!exact && !tanh_gate(g, gate, &x))
      continue;
    if (x == operand)
      of_x = 1;
    else if (x != bare)
      continue;
    if (!match_fits(g, n, x))
      continue;
    ValueId whole = build(b, OP_GELU, A_VAL(x), A_STR(exact ? "none" : "tanh"));
    return build_binary(b, OP_MUL_TENSOR, whole,
                        build_scalar(b, value_dtype(g, x), 2 * of_gate * of_x));
  }
  return 0;
}

/* x * sigmoid(x) */
static ValueId silu(Builder *b, NodeId n) {
  Graph *g = b->g;
  for (uint32_t i = 0; i < 2; i++) {
    NodeId s = match_op(g, node_value(g, n, i), OP_SIGMOID);
    ValueId x = node_value(g, n, 1 - i);
    if (s && node_value(g, s, 0) == x && match_fits(g, n, x))
      return build(b, OP_SILU, A_VAL(x));
  }
  return 0;
}

/* clamp(x + 3, 0, 6) / 6 */
static ValueId hardsigmoid(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId r = node_result(g, n, 0), v, x;
  double six;
  bool divided = match_then_number(g, r, OP_DIV_TENSOR, &v, &six) && six == 6;
  if (!divided)
    divided = match_with_number(g, r, OP_MUL_TENSOR, &v, &six) && match_close(six, 1.0 / 6, 1e-6);
  return divided && match_ramp(g, v, &x) && match_fits(g, n, x) ? build(b, OP_HARDSIGMOID, A_VAL(x))
                                                                : 0;
}

/* x * hardsigmoid(x), or (x * clamp(x + 3, 0, 6)) / 6 */
static ValueId hardswish(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId r = node_result(g, n, 0), v, x;
  double six;
  for (uint32_t i = 0; node_cget(g, n)->op == OP_MUL_TENSOR && i < 2; i++) {
    NodeId h = match_op(g, node_value(g, n, i), OP_HARDSIGMOID);
    if (h && node_value(g, h, 0) == node_value(g, n, 1 - i))
      return build(b, OP_HARDSWISH, A_VAL(node_value(g, n, 1 - i)));
  }
  if (!match_then_number(g, r, OP_DIV_TENSOR, &v, &six) || six != 6)
    return 0;
  NodeId product = match_op(g, v, OP_MUL_TENSOR);
  for (uint32_t i = 0; product && i < 2; i++)
    if (match_ramp(g, node_value(g, product, i), &x) && node_value(g, product, 1 - i) == x &&
        match_fits(g, n, x))
      return build(b, OP_HARDSWISH, A_VAL(x));
  return 0;
}

/* where(z > t, x, softplus(z)) with z = x, or softplus(z) / c with z = c * x: for z above 16
 * softplus(z) is z in float32, as it exceeds z by less than half a unit in the last place. */
static ValueId softplus(Builder *b, NodeId n) {
  enum { THRESHOLD_MIN = 16 };
  Graph *g = b->g;
  ValueId x = node_value(g, n, 1), y = node_value(g, n, 2), z, soft = y, factor_of = x;
  double threshold, divisor = 1, factor = 1;
  if (!match_then_number(g, node_value(g, n, 0), OP_GT_TENSOR, &z, &threshold) ||
      threshold < THRESHOLD_MIN || value_dtype(g, x) == DTYPE_F64)
    return 0;
  bool divided = match_then_number(g, y, OP_DIV_TENSOR, &soft, &divisor);
  NodeId s = match_op(g, soft, OP_SOFTPLUS);
  if (!s || node_value(g, s, 0) != z || node_scalar(g, s, 1) != 1)
    return 0;
  if (divided && !match_with_number(g, z, OP_MUL_TENSOR, &factor_of, &factor))
    return 0;
  bool same = divided ? factor_of == x && factor == divisor : z == x;
  return same && match_fits(g, n, y) ? y : 0;
}

Status pass_recover_activation(PassContext *p, Graph *g) {
  static const RewriteRule rows[] = {
      {OP_MUL_TENSOR, gelu, "gelu"},
      {OP_DIV_TENSOR, hardsigmoid, "hardsigmoid"},
      {OP_MUL_TENSOR, hardsigmoid, "hardsigmoid"},
      {OP_MUL_TENSOR, hardswish, "hardswish"},
      {OP_DIV_TENSOR, hardswish, "hardswish"},
      {OP_MUL_TENSOR, silu, "silu"},
      {OP_WHERE_SELF, softplus, "softplus"},
  };
  /* Where no product with a half follows, which the first of the rows above would have seen. */
  static const RewriteRule rest[] = {{OP_MUL_TENSOR, scaled_gelu, "gelu"}};
  TRY(pass_rewrite(p, g, rows, COUNT_OF(rows)));
  return pass_rewrite(p, g, rest, COUNT_OF(rest));
}
