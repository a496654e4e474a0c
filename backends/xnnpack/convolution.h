/* What the lowerings of convolutions share. */
#ifndef ETC_BACKENDS_XNNPACK_CONVOLUTION_H
#define ETC_BACKENDS_XNNPACK_CONVOLUTION_H

#include "backends/xnnpack/lower.h"

/* A convolution on images; one of lines is one on images that are 1 high. */
typedef struct Convolution {
  uint32_t rank; /* spatial dims, 1 or 2 */
  uint32_t stride[2], padding[2], dilation[2], adjust[2], kernel[2];
  uint32_t groups, in_channels, out_channels;
  bool transposed, depthwise;
} Convolution;

/* How a node of XNNPACK computes (a part of) one: its own window and channels. */
typedef struct ConvolutionNode {
  XnnNodeKind kind;
  uint32_t before[2], after[2]; /* padding */
  uint32_t kernel[2], stride[2], dilation[2], adjust[2];
  uint32_t groups, in_channels, out_channels;
} ConvolutionNode;

void xl_convolution_node(XnnLowering *l, const ConvolutionNode *c, XnnId in, XnnId weights,
                         XnnId bias, XnnId out);

/* Computes a transposed convolution, from in to out, both [n, h, w, c], by ordinary ones; false
 * when XNNPACK's own node is to do it. */
bool xl_by_phases(XnnLowering *l, NodeId n, const Convolution *c, XnnId in, XnnId out);

#endif
