/* Convolutions that are matrix products become matrix products: those whose windows do not overlap
 * (stride = kernel size, no padding, one group), so that every input element is used at one place.
 *
 * Why: the runtime's only convolution kernel is the portable one, which spends some 25 ns on each
 * multiplication and adds up in the element type, while mm, bmm and linear are blocked products
 * that add up f16 and bf16 in f32 (kernels/portable/cpu/op_convolution.cpp and
 * kernels/optimized/blas/CPUBlas.cpp of ExecuTorch 1.4.1). Measured: 1x1, 256 to 128 channels,
 * 14 x 14: 51 ms as convolution, 0.5 ms as mm and add; a sum of 576 products in f16 is off by 0.6
 * against 0.03. It stands in the last stage, because backends know convolutions better than
 * products.
 *
 *   1x1, a batch of one   [M, C] x [C, H * W] + [M, 1]: x and the result are only viewed
 *   others                the windows as rows by a transpose, linear, and a transpose back, which
 *                         is only worth it for large ones; followed by the opposite transpose, as
 *                         in the patches of vision transformers, it is gone after canonicalize. */
#include "passes/executorch/windows.h"
#include "passes/pass.h"

enum { SPATIAL_MAX = 2, ROWS_WORTH = 1 << 14 /* multiplications */ };

typedef struct Conv {
  ValueId x, weight, bias, result;
  uint32_t spatial;                              /* spatial dims */
  SymInt batch, in, out;                         /* channels */
  SymInt kernel[SPATIAL_MAX], size[SPATIAL_MAX]; /* of a window; windows along each dim */
  SymInt taps, places;                           /* products of the two */
} Conv;

/* All entries of a list argument (which may have one for all dims) are these. */
static bool list_is(const Graph *g, NodeId n, uint32_t arg, const SymInt *wanted, uint32_t count) {
  uint32_t given = node_list_count(g, n, arg);
  for (uint32_t i = 0; i < count && given; i++)
    if (node_entry(g, n, arg, i, 0) != wanted[i])
      return false;
  return given > 0;
}

/* Of one element type, with one group, not transposed. */
static bool is_simple(const Graph *g, NodeId n, const Conv *c) {
  DType dtype = value_dtype(g, c->x);
  return !node_bool(g, n, 6) && node_int(g, n, 8) == 1 && windows_have(dtype) &&
         dtype == value_dtype(g, c->weight) && (!c->bias || value_dtype(g, c->bias) == dtype);
}

static bool read_conv(Graph *g, NodeId n, Conv *c) {
  *c = (Conv){.x = node_value(g, n, 0), .weight = node_value(g, n, 1), .bias = node_value(g, n, 2)};
  c->result = node_result(g, n, 0);
  uint32_t rank = value_rank(g, c->x);
  if (rank < 3 || rank > 2 + SPATIAL_MAX || !is_simple(g, n, c))
    return false;
  c->spatial = rank - 2;
  c->batch = value_dim(g, c->x, 0);
  c->in = value_dim(g, c->x, 1);
  c->out = value_dim(g, c->weight, 0);
  c->taps = c->places = 1;
  for (uint32_t i = 0; i < c->spatial; i++) {
    c->kernel[i] = value_dim(g, c->weight, 2 + i);
    c->size[i] = value_dim(g, c->result, 2 + i);
    c->taps = sym_mul(&g->syms, c->taps, c->kernel[i]);
    c->places = sym_mul(&g->syms, c->places, c->size[i]);
    if (sym_mul(&g->syms, c->size[i], c->kernel[i]) != value_dim(g, c->x, 2 + i))
      return false; /* windows that overlap, or elements left over */
  }
  static const SymInt zeros[SPATIAL_MAX] = {0};
  return sym_is_const(c->in) && sym_is_const(c->out) && sym_is_const(c->taps) && c->out > 0 &&
         c->in > 0 && list_is(g, n, 3, c->kernel, c->spatial) &&
         list_is(g, n, 4, zeros, c->spatial);
}

/* The value with other dims: a constant keeps its bytes where they are. */
static ValueId reshaped(Builder *b, ValueId v, const SymInt *dims, uint32_t rank) {
  Graph *g = b->g;
  if (!value_is_const(g, v))
    return build_view(b, v, dims, rank);
  TypeId type = graph_tensor_type(g, value_dtype(g, v), rank, dims, ORDER_CONTIGUOUS);
  return graph_add_constant(g, type, *value_lazy_constant(g, v), value_cget(g, v)->name);
}

static ValueId as_result(Builder *b, const Conv *c, ValueId v) {
  return build_view_as(b, v, value_dims(b->g, c->result));
}

/* One window a sample: x has its row already. */
static ValueId single_place(Builder *b, const Conv *c) {
  SymInt length = sym_mul(&b->g->syms, c->in, c->taps);
  ValueId weight = reshaped(b, c->weight, (SymInt[]){c->out, length}, 2);
  ValueId x = build_view(b, c->x, (SymInt[]){c->batch, length}, 2);
  return as_result(b, c, build(b, OP_LINEAR, A_VAL(x), A_VAL(weight), A_OPT(c->bias)));
}

/* 1x1 over one sample: the channels are rows already. */
static ValueId pointwise(Builder *b, const Conv *c) {
  ValueId weight = reshaped(b, c->weight, (SymInt[]){c->out, c->in}, 2);
  ValueId x = build_view(b, c->x, (SymInt[]){c->in, c->places}, 2);
  ValueId y = build(b, OP_MM, A_VAL(weight), A_VAL(x));
  if (c->bias)
    y = build(b, OP_ADD_TENSOR, A_VAL(y), A_VAL(reshaped(b, c->bias, (SymInt[]){c->out, 1}, 2)));
  return as_result(b, c, y);
}

/* [N, C, h * kh, w * kw] -> [N, h * w, C * kh * kw] -> linear -> [N, h * w, M] -> [N, M, h, w] */
static ValueId windows_as_rows(Builder *b, const Conv *c) {
  SymInt split[2 + 2 * SPATIAL_MAX] = {c->batch, c->in};
  int64_t perm[2 + 2 * SPATIAL_MAX] = {0};
  perm[1 + c->spatial] = 1;
  for (uint32_t i = 0; i < c->spatial; i++) {
    split[2 + 2 * i] = c->size[i];
    split[3 + 2 * i] = c->kernel[i];
    perm[1 + i] = 2 + 2 * i;
    perm[2 + c->spatial + i] = 3 + 2 * i;
  }
  SymInt length = sym_mul(&b->g->syms, c->in, c->taps);
  ValueId x = build_view(b, c->x, split, 2 + 2 * c->spatial);
  x = build_view(b, build_permute(b, x, perm), (SymInt[]){c->batch, c->places, length}, 3);
  ValueId weight = reshaped(b, c->weight, (SymInt[]){c->out, length}, 2);
  ValueId y = build(b, OP_LINEAR, A_VAL(x), A_VAL(weight), A_OPT(c->bias));
  return as_result(b, c, build_permute(b, y, (int64_t[]){0, 2, 1}));
}

/* The transposes copy in + out elements a window; the product must be worth more, at the largest
 * size. */
static bool rows_are_worth_it(const Graph *g, const Conv *c) {
  uint64_t work;
  return mul_u64((uint64_t)c->in, (uint64_t)c->taps, &work) &&
         mul_u64(work, (uint64_t)c->out, &work) && c->out >= 4 && work >= ROWS_WORTH / 64 &&
         mul_u64(work, (uint64_t)sym_upper(&g->syms, c->places), &work) && work >= ROWS_WORTH;
}

/* Of one sample with known shapes and weights, the product is also what gather_windows makes, which
 * weighs it against others. */
static bool is_weighed_later(const Graph *g, const Conv *c) {
  return c->batch == 1 && (c->taps == 1 || c->places == 1) && type_is_static(value_type(g, c->x)) &&
         value_is_const(g, c->weight) && (!c->bias || value_is_const(g, c->bias));
}

static ValueId rewrite(Builder *b, NodeId n) {
  Conv c;
  if (!read_conv(b->g, n, &c) || is_weighed_later(b->g, &c))
    return 0;
  if (c.places == 1)
    return single_place(b, &c);
  if (c.taps == 1 && c.batch == 1)
    return pointwise(b, &c);
  return rows_are_worth_it(b->g, &c) ? windows_as_rows(b, &c) : 0;
}

Status pass_convolution_to_matmul(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_CONVOLUTION, rewrite, "convolutions"}};
  return pass_rewrite(p, g, rules, COUNT_OF(rules));
}
