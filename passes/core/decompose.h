/* Decompositions, by file of this folder. Each builds the replacement of node n with b (which
 * stands before n) and returns the value that replaces n's first result, or 0 to keep the node (or
 * after a failure of b). */
#ifndef ETC_PASSES_CORE_DECOMPOSE_H
#define ETC_PASSES_CORE_DECOMPOSE_H

#include "ir/builder.h"

typedef ValueId Decompose(Builder *b, NodeId n);

Decompose decompose_addmm, decompose_matmul, decompose_sdpa; /* decompose_matmul.c */
Decompose decompose_silu, decompose_hardswish, decompose_hardsigmoid, decompose_softplus,
    decompose_mish, decompose_prelu, decompose_square, decompose_triu,
    decompose_rms_norm;                                              /* decompose_elementwise.c */
Decompose decompose_convolution;                                     /* decompose_conv.c */
Decompose decompose_sum, decompose_layer_norm, decompose_group_norm; /* decompose_exact.c */

static inline ValueId decompose_number(Builder *b, ValueId like, double value) {
  return b->status == STATUS_OK ? build_scalar(b, value_dtype(b->g, like), value) : 0;
}
/* build(), but quietly 0 after a failure of an operand. */
ValueId decompose_unary(Builder *b, OpId op, ValueId x);
ValueId decompose_binary(Builder *b, OpId op, ValueId x, ValueId y);

#endif
