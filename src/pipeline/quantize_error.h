/* What quantization costs, node by node, against the same model in floats. */
#ifndef ETC_PIPELINE_QUANTIZE_ERROR_H
#define ETC_PIPELINE_QUANTIZE_ERROR_H

#include "pipeline/session.h"
#include "quant/compare.h"

/* A value that was compared. */
typedef struct QuantizeError {
  StrView value;    /* its name; of outputs that of the output; empty for what a pass made */
  const char *node; /* operator and name of the model's node, the op, or "input" */
  LocId loc;        /* of the node; 0 for inputs and outputs */
  uint32_t order;   /* in the graph */
  const ComparePair *pair;
} QuantizeError;

typedef struct QuantizeErrors {
  uint64_t samples, effect_samples; /* these: on which nodes were quantized alone */
  QuantizeError *rows, *outputs;    /* rows: the worst `effect` first */
  uint32_t row_count, output_count;
} QuantizeErrors;

/* Quantizes the graph of m, which is after the stage source, compares it with what it was on the
 * samples in data, and undoes it. Everything lives in arena. Errors (reported): of the samples and
 * of the passes. */
Status quantize_error_measure(Session *s, const Method *m, const char *data, Arena *arena,
                              QuantizeErrors *out);

#endif
