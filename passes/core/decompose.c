/* Expands what the runtime has no kernel for into core ATen ops that have one. The table says
 * which; each rule is in decompose_*.c. Rules may build ops that are themselves in the table: the
 * walk visits new nodes too, and a rule that builds its own op leaves what it built alone. */
#include "passes/core/decompose.h"

#include "interp/fold.h"
#include "passes/pass.h"

typedef struct DecomposeRow {
  OpId op;
  Decompose *rule;
} DecomposeRow;

static const DecomposeRow rules[] = {
    {OP_ADDMM, decompose_addmm},
    {OP_MATMUL, decompose_matmul},
    {OP_CONVOLUTION, decompose_convolution},
    {OP_SDPA, decompose_sdpa},
    {OP_SILU, decompose_silu},
    {OP_HARDSWISH, decompose_hardswish},
    {OP_HARDSIGMOID, decompose_hardsigmoid},
    {OP_SOFTPLUS, decompose_softplus},
    {OP_MISH, decompose_mish},
    {OP_PRELU, decompose_prelu},
    {OP_SQUARE, decompose_square},
    {OP_TRIU, decompose_triu},
    {OP_RMS_NORM, decompose_rms_norm},
    {OP_SUM_DIM_INTLIST, decompose_sum},
    {OP_NATIVE_LAYER_NORM, decompose_layer_norm},
    {OP_NATIVE_GROUP_NORM, decompose_group_norm},
};

ValueId decompose_unary(Builder *b, OpId op, ValueId x) {
  return b->status == STATUS_OK ? build(b, op, A_VAL(x)) : 0;
}

ValueId decompose_binary(Builder *b, OpId op, ValueId x, ValueId y) {
  return b->status == STATUS_OK ? build(b, op, A_VAL(x), A_VAL(y)) : 0;
}

/* Replaces node n; returns where the walk goes on (the first new node, so that what a rule built is
 * visited too). */
static NodeId replace(Builder *b, NodeId n, Decompose *rule, uint64_t *count) {
  Graph *g = b->g;
  NodeId before = node_cget(g, n)->prev, next = node_cget(g, n)->next;
  b->before = n;
  b->loc = node_cget(g, n)->loc;
  ValueId value = rule(b, n);
  if (!value || b->status != STATUS_OK)
    return next;
  NameId name = value_cget(g, node_result(g, n, 0))->name;
  if (!value_cget(g, value)->name)
    value_get(g, value)->name = name;
  graph_replace_uses(g, node_result(g, n, 0), value);
  graph_remove_node(g, n);
  ++*count;
  return before ? node_cget(g, before)->next : g->first;
}

Status pass_decompose(PassContext *p, Graph *g) {
  Decompose *by_op[OP_COUNT] = {0};
  for (size_t i = 0; i < COUNT_OF(rules); i++)
    by_op[rules[i].op] = rules[i].rule;
  Fold fold;
  fold_init(&fold, p->options->fold_limit);
  Builder b = builder_make(g, 0, 0);
  b.fold = fold_node;
  b.fold_data = &fold;
  uint64_t count = 0;
  for (NodeId n = g->first; n && b.status == STATUS_OK;) {
    Decompose *rule = by_op[node_cget(g, n)->op];
    n = rule ? replace(&b, n, rule, &count) : node_cget(g, n)->next;
  }
  fold_release(&fold);
  pass_count(p, "ops decomposed", count);
  return b.status;
}
