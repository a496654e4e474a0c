/* aten::convolution with three spatial dims, which the runtime has no kernel for, as one with two:
 * the depth taps of each output plane are gathered next to each other (index_select by a constant
 * index) and become input channels. [N, C, D, H, W] -> [N, C, D', K, H, W] -> [N * D', C * K, H,
 * W]; the weight [M, C / g, K, h, w] is [M, C / g * K, h, w] without moving a byte, and groups stay
 * together. A transposed convolution gathers too: taps that no input plane reaches take one of
 * zeros. Where the depth is known only as a range, the index is computed while running. */
#include "passes/core/decompose.h"

enum { TAPS_MAX = 1 << 20 };

typedef struct Depth {
  SymInt in, out; /* plain numbers, or for convolutions that are not transposed sizes */
  int64_t taps, stride, padding, dilation;
} Depth;

static bool is_fixed(const Depth *d) { return sym_is_const(d->in) && sym_is_const(d->out); }

/* The input plane of tap k of output plane o; `in` stands for zeros. */
static int64_t plane_of(const Depth *d, bool transposed, int64_t o, int64_t k) {
  int64_t at =
      transposed ? o + d->padding - k * d->dilation : o * d->stride - d->padding + k * d->dilation;
  if (transposed && at >= 0)
    at = at % d->stride ? d->in : at / d->stride;
  return at < 0 || at >= d->in ? d->in : at;
}

static ValueId pad_depth(Builder *b, ValueId x, int64_t before, int64_t after) {
  bool pads = before || after;
  ArgIn zero = dtype_is_float(value_dtype(b->g, x)) ? A_FLOAT(0) : A_INT(0);
  return pads ? build(b, OP_CONSTANT_PAD_ND, A_VAL(x),
                      A_INTS(((SymInt[]){0, 0, 0, 0, before, after}), 6), zero)
              : x;
}

/* The taps of all output planes one behind the other. */
static ValueId fixed_taps(Builder *b, ValueId x, const Depth *d, bool transposed) {
  uint32_t count = (uint32_t)(d->out * d->taps);
  int64_t *planes = ARENA_ARRAY(&b->g->arena, int64_t, count);
  bool zeros = false, same = d->taps == 1 && d->out == d->in;
  for (uint32_t i = 0; i < count; i++) {
    planes[i] = plane_of(d, transposed, i / d->taps, i % d->taps);
    zeros |= planes[i] == d->in;
    same &= planes[i] == i;
  }
  if (same)
    return x;
  x = pad_depth(b, x, 0, zeros);
  ValueId index = build_const_ints(b, planes, count);
  return b->status == STATUS_OK ? build(b, OP_INDEX_SELECT, A_VAL(x), A_INT(2), A_VAL(index)) : 0;
}

static ValueId dynamic_taps(Builder *b, ValueId x, const Depth *d) {
  if (d->taps == 1 && d->stride == 1 && !d->padding)
    return x;
  int64_t *taps = ARENA_ARRAY(&b->g->arena, int64_t, (size_t)d->taps);
  for (int64_t k = 0; k < d->taps; k++)
    taps[k] = k * d->dilation;
  x = pad_depth(b, x, d->padding, d->padding);
  ValueId index = build(b, OP_ARANGE, A_INT(d->out), A_DTYPE(DTYPE_I64));
  ValueId stride = build_scalar_int(b, DTYPE_I64, d->stride);
  ValueId offsets = build_const_ints(b, taps, (uint32_t)d->taps);
  if (b->status != STATUS_OK)
    return 0;
  index =
      build_view(b, build(b, OP_MUL_TENSOR, A_VAL(index), A_VAL(stride)), (SymInt[]){d->out, 1}, 2);
  index = build(b, OP_ADD_TENSOR, A_VAL(index), A_VAL(offsets));
  index = build_view(b, index, (SymInt[]){sym_mul(&b->g->syms, d->out, d->taps)}, 1);
  return b->status == STATUS_OK ? build(b, OP_INDEX_SELECT, A_VAL(x), A_INT(2), A_VAL(index)) : 0;
}

/* [N, C, D, H, W] -> [N * D', C * K, H, W] */
static ValueId gather_taps(Builder *b, ValueId x, const Depth *d, bool transposed) {
  Graph *g = b->g;
  SymInt dims[5];
  memcpy(dims, value_type(g, x)->dims, sizeof dims);
  x = is_fixed(d) ? fixed_taps(b, x, d, transposed) : dynamic_taps(b, x, d);
  if (b->status != STATUS_OK)
    return 0;
  SymInt n = dims[0], c = dims[1], h = dims[3], w = dims[4];
  x = build_view(b, x, (SymInt[]){n, c, d->out, d->taps, h, w}, 6);
  x = build_permute(b, x, (int64_t[]){0, 2, 1, 3, 4, 5});
  SymInt batch = sym_mul(&g->syms, n, d->out), channels = sym_mul(&g->syms, c, d->taps);
  return build_view(b, x, (SymInt[]){batch, channels, h, w}, 4);
}

static ValueId flat_weight(Builder *b, ValueId weight, bool transposed) {
  SymInt d[5];
  memcpy(d, value_type(b->g, weight)->dims, sizeof d);
  if (!transposed)
    return build_view(b, weight, (SymInt[]){d[0], sym_mul(&b->g->syms, d[1], d[2]), d[3], d[4]}, 4);
  weight = build_permute(b, weight, (int64_t[]){0, 2, 1, 3, 4});
  return build_view(b, weight, (SymInt[]){sym_mul(&b->g->syms, d[0], d[2]), d[1], d[3], d[4]}, 4);
}

/* Entry of a list argument that may have one entry for all dims. */
static SymInt entry(const Graph *g, NodeId n, uint32_t arg, uint32_t i) {
  uint32_t count = node_list_count(g, n, arg);
  return node_ints(g, n, arg)[count == 1 ? 0 : i];
}

ValueId decompose_convolution(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0), weight = node_value(g, n, 1), bias = node_value(g, n, 2);
  if (value_rank(g, x) != 5)
    return 0;
  SymInt result[5], stride[2], padding[2], dilation[2], extra[2];
  memcpy(result, value_type(g, node_result(g, n, 0))->dims, sizeof result);
  bool transposed = node_bool(g, n, 6);
  SymInt taps = value_dim(g, weight, 2);
  Depth d = {.in = value_dim(g, x, 2), .out = result[2], .taps = taps};
  if ((transposed && !is_fixed(&d)) || !sym_is_const(taps) || !sym_is_const(result[1]) ||
      sym_lower(&g->syms, d.out) < 1 || taps < 1 || sym_upper(&g->syms, d.out) > TAPS_MAX / taps)
    return 0; /* stays, and is refused for want of a kernel */
  d.stride = entry(g, n, 3, 0);
  d.padding = entry(g, n, 4, 0);
  d.dilation = entry(g, n, 5, 0);
  for (uint32_t i = 0; i < 2; i++) {
    stride[i] = entry(g, n, 3, 1 + i);
    padding[i] = entry(g, n, 4, 1 + i);
    dilation[i] = entry(g, n, 5, 1 + i);
    extra[i] = entry(g, n, 7, 1 + i);
  }
  SymInt groups = node_int(g, n, 8);
  ValueId planes = gather_taps(b, x, &d, transposed);
  ValueId flat = flat_weight(b, weight, transposed);
  if (b->status != STATUS_OK)
    return 0;
  ValueId y = build(b, OP_CONVOLUTION, A_VAL(planes), A_VAL(flat), A_OPT(bias), A_INTS(stride, 2),
                    A_INTS(padding, 2), A_INTS(dilation, 2), A_BOOL(transposed), A_INTS(extra, 2),
                    A_INT(groups));
  y = build_view(b, y, (SymInt[]){result[0], result[2], result[1], result[3], result[4]}, 5);
  return build_permute(b, y, (int64_t[]){0, 2, 1, 3, 4});
}
