/* Expands what the runtime has no kernel for into core ATen ops that have one. The table says
 * which; each rule is in decompose_*.c. Rules may build ops that are themselves in the table: the
 * walk visits new nodes too, and a rule that builds its own op leaves what it built alone. */
#include "passes/core/decompose.h"

#include "interp/fold.h"
#include "passes/pass.h"

static const RewriteRule rules[] = {
    {OP_ADDMM, decompose_addmm, NULL},
    {OP_MATMUL, decompose_matmul, NULL},
    {OP_CONVOLUTION, decompose_convolution, NULL},
    {OP_SDPA, decompose_sdpa, NULL},
    {OP_SILU, decompose_silu, NULL},
    {OP_HARDSWISH, decompose_hardswish, NULL},
    {OP_HARDSIGMOID, decompose_hardsigmoid, NULL},
    {OP_SOFTPLUS, decompose_softplus, NULL},
    {OP_MISH, decompose_mish, NULL},
    {OP_PRELU, decompose_prelu, NULL},
    {OP_SQUARE, decompose_square, NULL},
    {OP_TRIU, decompose_triu, NULL},
    {OP_RMS_NORM, decompose_rms_norm, NULL},
    {OP_SUM_DIM_INTLIST, decompose_sum, NULL},
    {OP_NATIVE_LAYER_NORM, decompose_layer_norm, NULL},
    {OP_NATIVE_GROUP_NORM, decompose_group_norm, NULL},
};

Status pass_decompose(PassContext *p, Graph *g) {
  Fold fold;
  fold_init(&fold, p->options->fold_limit);
  bool for_backends = p->options->backend_count > 0;
  Rewriter r = {.rules = rules,
                .rule_count = COUNT_OF(rules),
                .name = "ops decomposed",
                .revisit = true,
                .fold = fold_node,
                .fold_data = &fold,
                .data = &for_backends};
  Status status = pass_rewriter(p, g, &r);
  fold_release(&fold);
  return status;
}
