/* What a slice cuts off a convolution with padding is not computed: there is less padding then.
 *   slice(convolution(x, padding=4), 2, 0, length)  ->  convolution(constant_pad_nd(x, [4, 0]))
 * Causal convolutions of temporal convolutional networks are spelt so: padded at both ends, and cut
 * at the end by as much. A size that varies has no slice from its end in backends. */
#include "ir/builder.h"
#include "ir/match.h"
#include "passes/pass.h"

enum { INPUT = 0, STRIDE = 3, PADDING = 4, TRANSPOSED = 6, ARGS = 9 };

typedef struct Crop {
  uint32_t axis;         /* of x */
  int64_t before, after; /* zeros that are left along it */
} Crop;

static bool read_crop(Graph *g, NodeId slice, NodeId conv, Crop *c) {
  ValueId whole = node_result(g, conv, 0), part = node_result(g, slice, 0);
  uint32_t axis = (uint32_t)wrap_dim(node_int(g, slice, 1), value_rank(g, whole));
  if (axis < 2 || node_int(g, slice, 4) != 1 || node_bool(g, conv, TRANSPOSED) ||
      node_entry(g, conv, STRIDE, axis - 2, 1) != 1)
    return false;
  SymInt start = node_int_or(g, slice, 2, 0), length = value_dim(g, part, axis),
         padding = node_entry(g, conv, PADDING, axis - 2, 0),
         rest = sym_sub(&g->syms, sym_sub(&g->syms, value_dim(g, whole, axis), length), start);
  if (!sym_is_const(start) || !sym_is_const(rest) || start < 0 || rest < 0 ||
      sym_lower(&g->syms, length) < 1)
    return false;
  *c = (Crop){axis, padding - start, padding - rest};
  return c->before >= 0 && c->after >= 0;
}

static ValueId crop(Builder *b, NodeId n) {
  Graph *g = b->g;
  NodeId conv = match_op_once(g, node_value(g, n, 0), OP_CONVOLUTION);
  Crop c;
  if (!conv || !read_crop(g, n, conv, &c))
    return 0;
  ArgIn args[ARGS];
  SymInt padding[MAX_RANK];
  uint32_t spatial = value_rank(g, node_result(g, conv, 0)) - 2;
  for (uint32_t i = 0; i < ARGS; i++)
    args[i] = node_arg_in(g, conv, i, &g->arena);
  for (uint32_t i = 0; i < spatial; i++)
    padding[i] = node_entry(g, conv, PADDING, i, 0);
  b->loc = node_cget(g, conv)->loc;
  bool equal = c.before == c.after;
  padding[c.axis - 2] = equal ? c.before : 0;
  args[PADDING] = A_INTS(padding, spatial);
  if (!equal)
    args[INPUT] = A_VAL(build_pad(b, node_value(g, conv, INPUT), c.axis, c.before, c.after));
  return build_args(b, OP_CONVOLUTION, args, ARGS);
}

Status pass_crop_convolutions(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_SLICE_COPY_TENSOR, crop, "convolutions"}};
  return pass_rewrite(p, g, rules, COUNT_OF(rules));
}
