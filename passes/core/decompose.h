/* Decompositions, by file of this folder: rules of a Rewriter (ir/rewrite.h). */
#ifndef ETC_PASSES_CORE_DECOMPOSE_H
#define ETC_PASSES_CORE_DECOMPOSE_H

#include "ir/rewrite.h"

RewriteFn decompose_addmm, decompose_matmul, decompose_sdpa; /* decompose_matmul.c */
RewriteFn decompose_silu, decompose_hardswish, decompose_hardsigmoid, decompose_softplus,
    decompose_mish, decompose_prelu, decompose_square, decompose_triu,
    decompose_rms_norm;                                              /* decompose_elementwise.c */
RewriteFn decompose_convolution;                                     /* decompose_conv.c */
RewriteFn decompose_sum, decompose_layer_norm, decompose_group_norm; /* decompose_exact.c */

static inline ValueId decompose_number(Builder *b, ValueId like, double value) {
  return build_scalar(b, value_dtype(b->g, like), value);
}

#endif
