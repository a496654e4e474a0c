/* Depthwise convolution of f32 planes, for the sizes that networks have. */
#ifndef ETC_OPS_DEPTHWISE_H
#define ETC_OPS_DEPTHWISE_H

#include "ops/kernel.h"

enum { DEPTHWISE_TAPS_MAX = 256 };

/* Sizes of a plane, rows first; the rest follows from them. */
typedef struct Depthwise {
  int64_t size[2], kernel[2], result[2], stride[2], pad[2], dilation[2];
  int64_t rows, pitch, phase;         /* of the padded plane with every stride[i]-th element */
  int64_t offset[DEPTHWISE_TAPS_MAX]; /* of each tap in the phases */
  int64_t buffer, sums;               /* floats that the working memory has */
} Depthwise;

/* Fills in the rest. False for sizes for which other code is better: many taps, large strides,
 * padding that is larger than the plane. */
bool depthwise_plan(Depthwise *d);
/* Puts a plane into buffer, as depthwise_sum wants it. What is outside of the plane is not written:
 * it was zeros when buffer was made. */
void depthwise_load(const Depthwise *d, const float *plane, float *buffer);
/* The sum of bias and the products with weights, one a tap, all finite; sums is working memory. */
void depthwise_sum(const Depthwise *d, const float *buffer, const float *weights, float bias,
                   float *sums, float *result);

#endif
