/* What is known of the runtime's kernel of native_layer_norm (kernels/optimized/cpu/
 * op_native_layer_norm.cpp of ExecuTorch 1.4.1), which has one way for short rows and one for long
 * ones: the variance of short rows is mean(x^2) - mean(x)^2 in f32, which cancels; long rows of f16
 * and bf16 are read as if they were f32. Short rows of f16 have an eps of f16: where that is 0,
 * equal elements become 0 / 0. */
#ifndef ETC_OPS_NORM_H
#define ETC_OPS_NORM_H

#include "ir/op.h"

#define LAYER_NORM_LONG_ROW 256 /* elements */
#define F16_ROUNDS_TO_0 0x1p-25 /* and what is below */

/* Bounds of the number of elements that native_layer_norm normalises together. */
void layer_norm_row(const Graph *g, NodeId n, int64_t *lower, int64_t *upper);
/* Whether the kernel's results may be garbage: f16 or bf16 with rows that may be long, f16 with a
 * tiny eps. */
bool layer_norm_is_garbage(const Graph *g, NodeId n);

#endif
