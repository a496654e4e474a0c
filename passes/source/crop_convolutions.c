/* What a slice cuts off a convolution with padding is not computed: there is less padding then.
 *   slice(convolution(x, padding=4), 2, 0, length)  ->  convolution(constant_pad_nd(x, [4, 0]))
 * Causal convolutions of temporal convolutional networks are spelt so: padded at both ends, and cut
 * at the end by as much. A size that varies has no slice from its end in backends.
 *
 * Then the taps at either end of a kernel are dropped that see nothing but padding in every window,
 * with the padding that they alone reach:
 *   convolution(x: [1, 8, 24], w: [8, 8, 3], padding=32, dilation=32)
 *     ->  convolution(x, w[:, :, 1:2], padding=0)
 * Networks whose dilations double from layer to layer have such taps where the input is shorter
 * than what the last layers look back on, and so have the dilated branches of DeepLab on small
 * images. */
#include "ir/builder.h"
#include "ir/match.h"
#include "passes/pass.h"

enum { INPUT = 0, WEIGHT = 1, STRIDE = 3, PADDING = 4, DILATION = 5, TRANSPOSED = 6, ARGS = 9 };

/* The zeros around an operand, by spatial dim. */
typedef struct Pads {
  uint32_t spatial;
  int64_t before[MAX_RANK], after[MAX_RANK];
} Pads;

static Pads read_pads(const Graph *g, NodeId conv) {
  Pads pads = {.spatial = value_rank(g, node_result(g, conv, 0)) - 2};
  for (uint32_t i = 0; i < pads.spatial; i++)
    pads.before[i] = pads.after[i] = node_entry(g, conv, PADDING, i, 0);
  return pads;
}

/* conv again, on other operands and with other padding. */
static ValueId build_convolution(Builder *b, NodeId conv, ValueId x, ValueId weight,
                                 const Pads *pads) {
  Graph *g = b->g;
  ArgIn args[ARGS];
  SymInt padding[MAX_RANK];
  for (uint32_t i = 0; i < ARGS; i++)
    args[i] = node_arg_in(g, conv, i, &g->arena);
  b->loc = node_cget(g, conv)->loc;
  for (uint32_t i = 0; i < pads->spatial; i++) {
    bool equal = pads->before[i] == pads->after[i];
    padding[i] = equal ? pads->before[i] : 0;
    if (!equal)
      x = build_pad(b, x, i + 2, pads->before[i], pads->after[i]);
  }
  args[INPUT] = A_VAL(x);
  args[WEIGHT] = A_VAL(weight);
  args[PADDING] = A_INTS(padding, pads->spatial);
  return build_args(b, OP_CONVOLUTION, args, ARGS);
}

static bool read_crop(Graph *g, NodeId slice, NodeId conv, Pads *pads) {
  ValueId whole = node_result(g, conv, 0), part = node_result(g, slice, 0);
  uint32_t axis = (uint32_t)wrap_dim(node_int(g, slice, 1), value_rank(g, whole));
  if (axis < 2 || node_int(g, slice, 4) != 1 || node_bool(g, conv, TRANSPOSED) ||
      node_entry(g, conv, STRIDE, axis - 2, 1) != 1)
    return false;
  SymInt start = node_int_or(g, slice, 2, 0), length = value_dim(g, part, axis),
         rest = sym_sub(&g->syms, sym_sub(&g->syms, value_dim(g, whole, axis), length), start);
  if (!sym_is_const(start) || !sym_is_const(rest) || start < 0 || rest < 0 ||
      sym_lower(&g->syms, length) < 1)
    return false;
  pads->before[axis - 2] -= start;
  pads->after[axis - 2] -= rest;
  return pads->before[axis - 2] >= 0 && pads->after[axis - 2] >= 0;
}

static ValueId crop(Builder *b, NodeId n) {
  Graph *g = b->g;
  NodeId conv = match_op_once(g, node_value(g, n, 0), OP_CONVOLUTION);
  if (!conv)
    return 0;
  Pads pads = read_pads(g, conv);
  if (!read_crop(g, n, conv, &pads))
    return 0;
  return build_convolution(b, conv, node_value(g, conv, INPUT), node_value(g, conv, WEIGHT), &pads);
}

/* Taps [first, end) of a kernel. */
typedef struct Taps {
  int64_t first, end;
} Taps;

/* Those along spatial dim i that see x in some window; takes the padding of the others away. */
static Taps reaching_taps(const Graph *g, NodeId conv, ValueId x, uint32_t i, Pads *pads) {
  int64_t taps = value_dim(g, node_value(g, conv, WEIGHT), i + 2),
          dilation = node_entry(g, conv, DILATION, i, 1),
          stride = node_entry(g, conv, STRIDE, i, 1), before = pads->before[i],
          after = pads->after[i], size = sym_upper(&g->syms, value_dim(g, x, i + 2)),
          places = sym_upper(&g->syms, value_dim(g, node_result(g, conv, 0), i + 2));
  if (max_i64(max_i64(max_i64(before, after), max_i64(dilation, stride)), max_i64(size, places)) >
      INT32_MAX)
    return (Taps){0, taps};
  /* Tap k of the first window is at k * dilation - before, that of the last one so much behind: */
  int64_t last = (places - 1) * stride, front = 0, back;
  if (last < before)
    front = min_i64((before - 1 - last) / dilation + 1, before / dilation);
  front = min_i64(front, taps - 1);
  back = taps - (before + size + dilation - 1) / dilation;
  back = min_i64(max_i64(back, 0), min_i64(after / dilation, taps - 1 - front));
  pads->before[i] -= front * dilation;
  pads->after[i] -= back * dilation;
  return (Taps){front, taps - back};
}

static ValueId drop_taps(Builder *b, NodeId conv) {
  Graph *g = b->g;
  ValueId weight = node_value(g, conv, WEIGHT);
  if (node_bool(g, conv, TRANSPOSED) || !value_is_const(g, weight))
    return 0;
  Pads pads = read_pads(g, conv);
  ValueId x = match_zero_pad(g, node_value(g, conv, INPUT), pads.spatial, pads.before, pads.after);
  Taps kept[MAX_RANK];
  bool all = true;
  for (uint32_t i = 0; i < pads.spatial; i++) {
    kept[i] = reaching_taps(g, conv, x, i, &pads);
    all &= kept[i].end - kept[i].first == value_dim(g, weight, i + 2);
  }
  if (all)
    return 0;
  b->loc = node_cget(g, conv)->loc;
  for (uint32_t i = 0; i < pads.spatial; i++)
    weight = build_slice(b, weight, i + 2, kept[i].first, kept[i].end, 1);
  return build_convolution(b, conv, x, weight, &pads);
}

Status pass_crop_convolutions(PassContext *p, Graph *g) {
  static const RewriteRule crops[] = {{OP_SLICE_COPY_TENSOR, crop, "convolutions"}},
                           taps[] = {{OP_CONVOLUTION, drop_taps, "kernels"}};
  TRY(pass_rewrite(p, g, crops, COUNT_OF(crops)));
  return pass_rewrite(p, g, taps, COUNT_OF(taps));
}
