/* Values that codes of 8 bits would spoil. */
#ifndef ETC_PASSES_QUANTIZE_PRECISE_H
#define ETC_PASSES_QUANTIZE_PRECISE_H

#include "ir/graph.h"

typedef enum DivisorPart {
  DIVISOR_NONE,
  DIVISOR_WITHIN, /* behind a function or a sum of many elements: where it is 0, others are not */
  DIVISOR_WHOLE   /* the divisor is 0 where it is, or is the sum of it and others */
} DivisorPart;

typedef struct Precise {
  const Graph *g;
  bool *spectral;   /* by value: a logarithm is taken of what becomes of it */
  uint8_t *divisor; /* by value: DivisorPart, of what something is divided by */
} Precise;

Precise find_precise(const Graph *g, Arena *arena);
/* Whether n is on the way to a logarithm. */
bool precise_makes_spectrum(const Precise *p, NodeId n);
/* What the results of n are for a divisor. */
DivisorPart precise_divisor(const Precise *p, NodeId n);

#endif
