/* Scales of values, and scales and codes of constant weights. The codes are transforms of the
 * floats (ir/transform.h): here each weight is read once, and again when the program is written. */
#ifndef ETC_PASSES_QUANTIZE_SCALES_H
#define ETC_PASSES_QUANTIZE_SCALES_H

#include "ir/transform.h"
#include "ops/quantized.h"

/* A tensor as [outer, count, inner], with a scale for each of count channels. */
typedef struct Channels {
  uint64_t outer, count, inner;
} Channels;

/* A scale as a normal number that is not 0, also after a few products of such. */
float usable_scale(double scale);
/* Scale and zero point of the value that is observed at n, in a range that holds 0. */
Quantization observed_quantization(const Graph *g, NodeId n);

/* The largest finite magnitude of each channel of f32 elements, on all threads. */
void channel_magnitudes(const Constant *c, const Channels *ch, float *out);
/* The codes of c in the order of c, or of the transposed matrix (inner is 1). */
Constant channel_codes(Graph *g, const Constant *c, const Channels *ch, bool transposed,
                       const float *scales, int64_t low, int64_t high);
/* c, which is a transform; its bytes when there are few. */
Constant codes_constant(Constant c);

#endif
