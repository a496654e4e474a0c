/* Weights of convolutions that are computed from constants, as quantized ones are from 8 bits, are
 * left alone by fold_constants when they are large: products take them as well at run time, and the
 * file stays small. Backends want weights of convolutions as constants, and the kernel that would
 * run instead is a hundred times slower; so these are folded whatever their size, unless
 * --fold-limit says how large they may be. */
#include "interp/fold.h"
#include "passes/pass.h"

enum { WEIGHT = 1, BIAS = 2, MAX_STEPS = 64 };

typedef struct Folding {
  Builder *b;
  bool *given_up; /* by ValueId, of those that the graph had: nothing makes them constant */
  uint64_t folded;
} Folding;

static ValueId constant_of(Folding *f, ValueId v, uint32_t steps);

/* Folds the node once its operands are, as far as they are constant at all; its first result. */
static ValueId fold_with_operands(Folding *f, NodeId n, uint32_t steps) {
  bool constant = true;
  FOR_OPERANDS(f->b->g, n, w, {
    constant = constant && (!w || value_is_const(f->b->g, constant_of(f, w, steps)));
  })
  return constant ? fold_node(f->b, n) : 0;
}

/* v as a constant; v itself when it is still not constant after that many steps. */
static ValueId constant_of(Folding *f, ValueId v, uint32_t steps) {
  Graph *g = f->b->g;
  NodeId n = v ? value_def(g, v) : 0;
  if (!n || value_is_const(g, v) || f->given_up[v] || steps == 0 || f->b->status != STATUS_OK)
    return v;
  ValueId made = fold_with_operands(f, n, steps - 1);
  f->given_up[v] = !made;
  if (!made)
    return v;
  graph_replace_results(g, n, made);
  f->folded++;
  return made + (v - node_result(g, n, 0));
}

Status pass_fold_weights(PassContext *p, Graph *g) {
  if (p->options->fold_limit)
    return STATUS_OK;
  Fold fold;
  fold_init(&fold, UINT64_MAX);
  Builder b = builder_make(g, 0, 0);
  Folding f = {.b = &b, .given_up = ARENA_ARRAY(p->scratch, bool, (size_t)g->value_count + 1)};
  b.fold_data = &fold;
  for (NodeId n = g->first; n && b.status == STATUS_OK; n = node_cget(g, n)->next)
    for (uint32_t arg = WEIGHT; arg <= BIAS && node_cget(g, n)->op == OP_CONVOLUTION; arg++)
      if (!node_absent(g, n, arg))
        (void)constant_of(&f, node_value(g, n, arg), MAX_STEPS);
  fold_release(&fold);
  pass_count(p, "nodes folded", f.folded);
  return b.status;
}
