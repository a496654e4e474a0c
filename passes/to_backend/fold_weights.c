/* Weights of convolutions that are computed from constants, as quantized ones are from 8 bits, are
 * left alone by fold_constants when they are large: products take them as well at run time, and the
 * file stays small. Backends want weights of convolutions as constants, and the kernel that would
 * run instead is a hundred times slower; so these are folded whatever their size, unless
 * --fold-limit says how large they may be. */
#include "interp/fold.h"
#include "passes/pass.h"

enum { WEIGHT = 1, BIAS = 2, MAX_STEPS = 4 };

/* v as a constant; v itself when it is still not constant after that many steps. */
static ValueId constant_of(Builder *b, ValueId v, uint32_t steps, uint64_t *folded) {
  Graph *g = b->g;
  NodeId n = v ? value_def(g, v) : 0;
  if (!n || value_is_const(g, v) || steps == 0 || b->status != STATUS_OK)
    return v;
  bool constant = true;
  FOR_OPERANDS(g, n, w,
               { constant &= !w || value_is_const(g, constant_of(b, w, steps - 1, folded)); })
  ValueId made = constant ? fold_node(b, n) : 0;
  if (!made)
    return v;
  graph_replace_results(g, n, made);
  ++*folded;
  return made + (v - node_result(g, n, 0));
}

Status pass_fold_weights(PassContext *p, Graph *g) {
  if (p->options->fold_limit)
    return STATUS_OK;
  Fold fold;
  fold_init(&fold, UINT64_MAX);
  uint64_t folded = 0;
  Builder b = builder_make(g, 0, 0);
  b.fold_data = &fold;
  for (NodeId n = g->first; n && b.status == STATUS_OK; n = node_cget(g, n)->next)
    for (uint32_t arg = WEIGHT; arg <= BIAS && node_cget(g, n)->op == OP_CONVOLUTION; arg++)
      if (!node_absent(g, n, arg))
        (void)constant_of(&b, node_value(g, n, arg), MAX_STEPS, &folded);
  fold_release(&fold);
  pass_count(p, "nodes folded", folded);
  return b.status;
}
