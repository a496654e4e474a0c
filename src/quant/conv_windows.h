/* The windows of a convolution, one at a time: what its weights are multiplied by at one place of
 * its result. */
#ifndef ETC_QUANT_CONV_WINDOWS_H
#define ETC_QUANT_CONV_WINDOWS_H

#include "ir/graph.h"
#include "ops/kernel.h"

/* Spatial arrays have three entries; missing leading dims are 1. */
typedef struct ConvWindows {
  int64_t channels, taps, count; /* count: of all images of the batch */
  int64_t size[3], kernel[3], result[3], stride[3], pad[3], dilation[3];
} ConvWindows;

/* The windows of aten::convolution n, not transposed, over the operand x; false: it does not fit.
 */
bool conv_windows(ConvWindows *w, const Graph *g, NodeId n, const Tensor *x);
/* Window i of them: [channels, taps], zeros where it is beyond the operand, whose elements x is. */
void conv_window(const ConvWindows *w, const float *x, int64_t i, float *out);

#endif
