/* Samples that are made up, for a graph that comes without data. They say nothing about the ranges
 * of values, but much about how the columns of an operand go together, which its layers decide more
 * than its inputs. Floats are normal numbers; integers that select rows of a table are uniform
 * among these; other integers are 1, as in a mask or a count, and bools true. Symbols are 64, or
 * the nearest number in their range. The same numbers for the same graph. */
#ifndef ETC_QUANT_MADE_SAMPLES_H
#define ETC_QUANT_MADE_SAMPLES_H

#include "ops/kernel.h"

typedef struct MadeSamples {
  const Graph *g;
  int64_t *sizes; /* by symbol */
  int64_t *rows;  /* by value: how many rows its integers may select from; INT64_MAX: they do not */
  uint32_t made;
} MadeSamples;

/* arena must outlive s. */
void made_samples_init(MadeSamples *s, const Graph *g, Arena *arena);
/* From the first sample on again, with symbols of smaller sizes: of what is above their lower limit
 * one divisor-th. 1: as at first. */
void made_samples_restart(MadeSamples *s, int64_t divisor);
/* The next sample: one tensor an input of the graph, in order, data in arena. *more is false, and
 * no tensor made, when there have been enough. Errors (reported): an input that is no tensor of
 * real numbers, or takes more than 2 GiB. */
Status made_samples_next(MadeSamples *s, Arena *arena, Tensor *tensors, bool *more, DiagSink *sink);

#endif
