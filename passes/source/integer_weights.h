/* Weights that are integers: constants, less constant zero points. */
#ifndef ETC_PASSES_SOURCE_INTEGER_WEIGHTS_H
#define ETC_PASSES_SOURCE_INTEGER_WEIGHTS_H

#include "ir/builder.h"

enum { INTEGER_RUN = 1024 }; /* weights that are read at once */

/* v without conversions to another type of integers. */
ValueId integer_uncast(const Graph *g, ValueId v);

typedef struct IntegerWeights {
  ValueId codes; /* a constant of the shape of the weights */
  ValueId zero;  /* a constant: one, or one for each entry of the last dim; 0: none */
  uint64_t count;
} IntegerWeights;

/* False when v is not spelt so, or has another type than u8, i8 and i32. */
bool integer_weights_read(const Graph *g, ValueId v, IntegerWeights *w);
/* Weights first, first + 1, ... in the order of memory. False when one does not fit i32. */
bool integer_weights_get(const Graph *g, const IntegerWeights *w, uint64_t first, uint64_t count,
                         int32_t *out);

#endif
