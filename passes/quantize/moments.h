/* What the operands of products were on samples, which tells what rounding their weights does. */
#ifndef ETC_PASSES_QUANTIZE_MOMENTS_H
#define ETC_PASSES_QUANTIZE_MOMENTS_H

#include "passes/pass.h"

/* Runs g on the samples of p's options, or on made-up ones, and gives each weight that is marked to
 * be quantized in blocks, and by int8 each of a convolution or linear layer, the moments of what it
 * is multiplied by: of all its products, when it has several. Does nothing when there is no such
 * weight. int8 takes part by the method auto alone: the others need no more than statistics. */
Status observe_moments(PassContext *p, Graph *g);

#endif
