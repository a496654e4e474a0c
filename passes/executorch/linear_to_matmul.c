/* linear and addmm as mm and add.
 *
 * Why: of the runtime's products only mm and bmm without transposes are fast. Measured with the
 * kernels of the ExecuTorch 1.4.1 wheel, 128 x 768 by 768 x 768: linear with bias 860 ms, without
 * 17 ms (its weight is read transposed), addmm 470 ms (portable), mm and add 1.6 ms. The add is
 * done in place. The kernels of a device without the optimized library multiply as fast either way.
 * It stands in the last stage, because backends know linear.
 *
 *   one row         W x with x as a column: nothing is moved
 *   several rows    x W' with W' a transposed copy of a constant W, as long as the copies of a
 *                   graph stay within COPIES_MAX: they are the only weights that the compiler
 *                   holds in memory of its own. The others stay linear.
 *   a small one     addmm, with factors or beside convolutions with a thousand times its work:
 *                   8192 products are 1 to 3 us slower than mm and add, or faster, and calls are
 *                   saved. */
#include "passes/executorch/transpose.h"
#include "passes/executorch/views.h"
#include "passes/source/weight_codes.h"

enum { COPIES_MAX = 32 << 20, SMALL = 8192, BESIDE = 1000 };

typedef struct Products {
  Graph *g;
  ValueId *transposed; /* by weight: its transposed copy, 0 = none yet */
  uint32_t transposed_count;
  uint64_t copied;     /* bytes */
  double convolutions; /* products of two numbers in all of them, at the largest sizes */
} Products;

static double numel_upper(const Graph *g, ValueId v) {
  double n = 1;
  for (uint32_t i = 0; i < value_rank(g, v); i++)
    n *= (double)sym_upper(&g->syms, value_dim(g, v, i));
  return n;
}

static double work_of_convolutions(const Graph *g) {
  double work = 0;
  for (FOR_NODES(g, n))
    if (node_cget(g, n)->op == OP_CONVOLUTION)
      work += numel_upper(g, node_result(g, n, 0)) * numel_upper(g, node_value(g, n, 1)) /
              (double)sym_upper(&g->syms, value_dim(g, node_value(g, n, 1), 0));
  return work;
}

static double work_of(const Graph *g, ValueId result, SymInt length) {
  return numel_upper(g, result) * (double)sym_upper(&g->syms, length);
}

/* Not f16 and bf16: how their addmm adds up was not looked at. */
static bool is_small(const Products *p, ValueId result, SymInt length) {
  DType dtype = value_dtype(p->g, result);
  double work = work_of(p->g, result, length);
  return (dtype == DTYPE_F32 || dtype == DTYPE_F64) && work <= SMALL &&
         work * BESIDE <= p->convolutions;
}

/* The transpose of a constant matrix, whose rows may have several dims; 0 when w is no constant, or
 * too large. */
static ValueId transposed_weight(Products *p, ValueId w) {
  Graph *g = p->g;
  if (!value_is_const(g, w) || w >= p->transposed_count)
    return 0;
  if (p->transposed[w])
    return p->transposed[w];
  const Constant *c = value_constant(g, w);
  if (c->size == 0 || c->size > COPIES_MAX - p->copied)
    return 0;
  DType dtype = value_dtype(g, w);
  SymInt rows = value_dim(g, w, 0), columns = (SymInt)(c->size / dtype_size(dtype)) / rows;
  uint8_t *data = arena_alloc(&g->arena, c->size);
  transpose_matrix(data, c->data, (uint64_t)rows, (uint64_t)columns, dtype_size(dtype));
  TypeId type = graph_tensor_type(g, dtype, 2, (SymInt[]){columns, rows}, ORDER_CONTIGUOUS);
  p->copied += c->size;
  Constant bytes = {.data = data, .size = c->size};
  return p->transposed[w] = graph_add_constant(g, type, bytes, value_cget(g, w)->name);
}

/* by, constants of a step, for the transpose of x: one for each row is one for each column there, a
 * number stays. 0 when it is something else. */
static ValueId along_columns(Builder *b, ValueId by, ValueId x) {
  if (value_rank(b->g, by) == 0)
    return by;
  SymInt rows = value_dim(b->g, x, 0);
  return widening_by_row(b->g, by, x) ? build_reshaped(b, by, &rows, 1) : 0;
}

/* The transpose of a matrix whose constant codes are widened, and perhaps scaled by row; 0 when w
 * is something else. */
static ValueId transposed_widening(Builder *b, ValueId w, SymInt rows) {
  const Graph *g = b->g;
  NodeId n = value_def(g, w);
  OpId op = n ? node_cget(g, n)->op : OP_NONE;
  if (value_rank(g, w) == 0 || value_dim(g, w, 0) != rows)
    return 0;
  if (op == OP_TO_COPY) {
    ValueId codes = transposed_weight(b->data, node_value(g, n, 0));
    return codes ? build_cast(b, codes, value_dtype(g, w)) : 0;
  }
  if (!n || !widening_step(g, n))
    return 0;
  if (op == OP_VIEW_COPY)
    return transposed_widening(b, node_value(g, n, 0), rows);
  ValueId by = along_columns(b, node_value(g, n, 1), node_value(g, n, 0)),
          x = by ? transposed_widening(b, node_value(g, n, 0), rows) : 0;
  return x ? build_binary(b, op, x, by) : 0;
}

static ValueId in_shape_of(Builder *b, ValueId v, ValueId like) {
  return build_view_as(b, v, value_dims(b->g, like));
}

static ValueId rewrite_linear(Builder *b, NodeId n) {
  Products *p = b->data;
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0), w = node_value(g, n, 1), bias = node_value(g, n, 2);
  ValueId result = node_result(g, n, 0);
  SymInt rows = 1, length = value_dim(g, w, 1);
  ValueId y, other;
  if (!dtype_is_float(value_dtype(g, result)))
    return 0;
  for (uint32_t i = 0; i + 1 < value_rank(g, x); i++)
    rows = sym_mul(&g->syms, rows, value_dim(g, x, i));
  if (bias && is_small(p, result, length) && (other = transposed_weight(p, w))) {
    x = build_view(b, x, (SymInt[]){rows, length}, 2);
    return in_shape_of(b, build(b, OP_ADDMM, A_VAL(bias), A_VAL(x), A_VAL(other)), result);
  }
  if (rows == 1) {
    y = build(b, OP_MM, A_VAL(w), A_VAL(build_view(b, x, (SymInt[]){length, 1}, 2)));
  } else {
    other = value_is_const(g, w) ? transposed_weight(p, w)
                                 : transposed_widening(b, w, value_dim(g, w, 0));
    if (!other)
      return 0;
    y = build(b, OP_MM, A_VAL(build_view(b, x, (SymInt[]){rows, length}, 2)), A_VAL(other));
  }
  ValueId shaped = in_shape_of(b, y, result);
  return bias ? build(b, OP_ADD_TENSOR, A_VAL(shaped), A_VAL(bias)) : shaped;
}

static ValueId times(Builder *b, ValueId v, double factor) {
  return factor == 1 ? v : build(b, OP_MUL_SCALAR, A_VAL(v), A_FLOAT(factor));
}

/* Integers stay: their products wrap the same, but nothing was measured; f16 and bf16 with factors,
 * too, whose product would be rounded once more. */
static ValueId rewrite_addmm(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId bias = node_value(g, n, 0), x = node_value(g, n, 1), result = node_result(g, n, 0);
  double beta = node_scalar(g, n, 3), alpha = node_scalar(g, n, 4);
  DType dtype = value_dtype(g, result);
  SymInt length = value_dim(g, x, 1);
  bool scaled = beta != 1 || alpha != 1, exact = dtype == DTYPE_F32 || dtype == DTYPE_F64;
  if (!dtype_is_float(dtype) || is_small(b->data, result, length) ||
      (scaled && (!exact || work_of(g, result, length) <= SMALL)))
    return 0;
  ValueId y = build(b, OP_MM, A_VAL(x), A_VAL(node_value(g, n, 2)));
  y = times(b, y, alpha);
  if (beta == 0) /* also of a bias that is not finite */
    return y;
  return build(b, OP_ADD_TENSOR, A_VAL(y), A_VAL(times(b, bias, beta)));
}

Status pass_linear_to_matmul(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_LINEAR, rewrite_linear, "products"},
                                      {OP_ADDMM, rewrite_addmm, "products"}};
  Products products = {
      .g = g, .transposed_count = g->value_count, .convolutions = work_of_convolutions(g)};
  products.transposed = ARENA_ARRAY(p->scratch, ValueId, g->value_count);
  Rewriter r = {.rules = rules, .rule_count = COUNT_OF(rules), .data = &products};
  return pass_rewriter(p, g, &r);
}
