/* Products with a constant matrix, and the constant biases added to them, as linear: the one form
 * in which weights of products are quantized, with a scale for each output channel. The matrix
 * stays as it lies in the file, behind a permute that `convert` carries out on its integers. What
 * else is added to a product, as the inputs of a recurrent layer's step are, is a sum behind it. A
 * batch of products with joined matrices, as recurrent layers of two directions have it, is a
 * linear for each.
 *
 * A hardsigmoid is a factor, a shift and limits: behind a product the first two go into weight and
 * bias, and limits cost an integer product nothing. A silu is a product with a sigmoid: two nodes
 * on integers, where XNNPACK, which has no silu, would compute both on floats, between
 * conversions. */
#include "ir/match.h"
#include "passes/core/decompose.h"
#include "passes/pass.h"

static bool is_weight(const Graph *g, ValueId v) {
  return value_is_const(g, v) && value_rank(g, v) == 2 && value_dtype(g, v) == DTYPE_F32;
}

/* The matrix [K, N] as [N, K]: what a permute already made of it, or a new permute. */
static ValueId transposed(Builder *b, ValueId w) {
  static const int64_t swap[] = {1, 0};
  NodeId permute = match_op(b->g, w, OP_PERMUTE_COPY);
  return permute ? node_value(b->g, permute, 0) : build_permute(b, w, swap);
}

static bool is_matrix(const Graph *g, ValueId w) {
  NodeId permute = match_op(g, w, OP_PERMUTE_COPY);
  return is_weight(g, w) || (permute && is_weight(g, node_value(g, permute, 0)) &&
                             value_dim(g, w, 0) == value_dim(g, node_value(g, permute, 0), 1) &&
                             node_ints(g, permute, 1)[0] % 2 != 0);
}

static ValueId product(Builder *b, NodeId n) {
  ValueId x = node_value(b->g, n, 0), w = node_value(b->g, n, 1);
  if (!is_matrix(b->g, w) || value_rank(b->g, x) < 2 || value_dtype(b->g, x) != DTYPE_F32)
    return 0;
  return build(b, OP_LINEAR, A_VAL(x), A_VAL(transposed(b, w)), A_NONE);
}

/* The matrix of which part i of a join is the view [1, K, N]; 0: it is something else. */
static ValueId joined_matrix(const Graph *g, NodeId join, uint32_t i) {
  ValueId part = node_list_value(g, join, 0, i);
  NodeId view = match_op(g, part, OP_VIEW_COPY);
  ValueId w = view ? node_value(g, view, 0) : 0;
  bool fits = w && value_rank(g, w) == 2 && is_matrix(g, w) && value_rank(g, part) == 3 &&
              value_dim(g, part, 0) == 1 && value_dim(g, part, 1) == value_dim(g, w, 0);
  return fits ? w : 0;
}

static ValueId batch(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0);
  NodeId join = match_op(g, node_value(g, n, 1), OP_CAT);
  uint32_t count = join && node_int(g, join, 1) == 0 ? node_list_count(g, join, 0) : 0;
  if (value_dtype(g, x) != DTYPE_F32 || value_dim(g, x, 0) != (SymInt)count)
    return 0;
  ValueId *made = ARENA_ARRAY(&g->arena, ValueId, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++)
    if (!(made[i] = joined_matrix(g, join, i)))
      return 0;
  for (uint32_t i = 0; i < count; i++) {
    ValueId row = build_slice(b, x, 0, (SymInt)i, (SymInt)(i + 1), 1);
    made[i] = build(b, OP_LINEAR, A_VAL(row), A_VAL(transposed(b, made[i])), A_NONE);
  }
  return build(b, OP_CAT, A_VALS(made, count), A_INT(0));
}

static ValueId as_row(Graph *g, ValueId v, SymInt columns) {
  return value_is_const(g, v) && value_dtype(g, v) == DTYPE_F32 ? match_row(g, v, columns) : 0;
}

static ValueId product_and_bias(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId bias = node_value(g, n, 0), x = node_value(g, n, 1), w = node_value(g, n, 2);
  if (node_scalar(g, n, 3) != 1 || node_scalar(g, n, 4) != 1 || !is_matrix(g, w) ||
      value_dtype(g, x) != DTYPE_F32)
    return 0;
  ValueId row = as_row(g, bias, value_dim(g, w, 1));
  ArgIn with = row ? A_VAL(row) : A_NONE;
  ValueId y = build(b, OP_LINEAR, A_VAL(x), A_VAL(transposed(b, w)), with);
  return row ? y : build(b, OP_ADD_TENSOR, A_VAL(bias), A_VAL(y), A_INT(1));
}

static ValueId bias(Builder *b, NodeId n) {
  Graph *g = b->g;
  if (node_scalar(g, n, 2) != 1)
    return 0;
  for (uint32_t i = 0; i < 2; i++) {
    ValueId y = node_value(g, n, i);
    NodeId linear = match_bare_linear(g, y);
    if (!linear || !match_fits(g, n, y))
      continue;
    ValueId row = as_row(g, node_value(g, n, 1 - i), value_dim(g, y, value_rank(g, y) - 1));
    if (row)
      return build(b, OP_LINEAR, A_VAL(node_value(g, linear, 0)), A_VAL(node_value(g, linear, 1)),
                   A_VAL(row));
  }
  return 0;
}

/* --- hardsigmoid: limits of x / 6 + 1 / 2 --- */

/* A constant of f32, as each element of it becomes. */
static ValueId mapped(Graph *g, ValueId v, double factor, double shift) {
  const Constant *c = value_constant(g, v);
  uint64_t count = c->size / sizeof(float);
  float *values = ARENA_ARRAY(&g->arena, float, (size_t)count + 1);
  memcpy(values, c->data, c->size);
  for (uint64_t i = 0; i < count; i++)
    values[i] = (float)(values[i] * factor + shift);
  Constant made = {.data = (const void *)values, .size = c->size};
  return graph_add_constant(g, value_cget(g, v)->type, made, 0);
}

static bool is_floats(const Graph *g, ValueId v) {
  return value_is_const(g, v) && value_dtype(g, v) == DTYPE_F32;
}

static ValueId ramp(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0);
  NodeId from = match_op_once(g, x, OP_CONVOLUTION);
  if (!from)
    from = match_op_once(g, x, OP_LINEAR);
  if (!from || !match_fits(g, n, x) || !is_floats(g, node_value(g, from, 1)) ||
      node_absent(g, from, 2) || !is_floats(g, node_value(g, from, 2)))
    return 0;
  ValueId weight = mapped(g, node_value(g, from, 1), 1.0 / 6, 0),
          shift = mapped(g, node_value(g, from, 2), 1.0 / 6, 0.5);
  ArgIn operands[] = {A_VAL(node_value(g, from, 0)), A_VAL(weight), A_VAL(shift)};
  LocId loc = b->loc;
  b->loc = node_cget(g, from)->loc;
  ValueId y = build_on(b, from, operands, 3);
  b->loc = loc;
  return build(b, OP_CLAMP, A_VAL(y), A_INT(0), A_INT(1));
}

Status pass_spell_linear(PassContext *p, Graph *g) {
  static const RewriteRule rows[] = {
      {OP_MM, product, "products"},    {OP_MATMUL, product, "products"},
      {OP_BMM, batch, "batches"},      {OP_ADDMM, product_and_bias, "products"},
      {OP_ADD_TENSOR, bias, "biases"},
  };
  static const RewriteRule integers[] = {{OP_HARDSIGMOID, ramp, "ramps"},
                                         {OP_SILU, decompose_silu, "factors"}};
  const QuantOptions *options = p->options->quantize;
  if (!options)
    return STATUS_OK;
  TRY(pass_rewrite(p, g, rows, COUNT_OF(rows)));
  return options->scheme == QUANT_INT8 ? pass_rewrite(p, g, integers, COUNT_OF(integers))
                                       : STATUS_OK;
}
