/* Which of several ways to round the values of a graph changes its outputs least, on samples. */
#ifndef ETC_QUANT_TRIAL_H
#define ETC_QUANT_TRIAL_H

#include "quant/dataset.h"

/* x becomes (clamp(round(x / scale) + zero, low, high) - zero) * scale. */
typedef struct TrialRounding {
  ValueId value; /* f32 results of nodes; other values are left as they are */
  float scale;   /* not 0 */
  int64_t zero, low, high;
} TrialRounding;

typedef struct Trial {
  TrialRounding *list;
  uint32_t count;
  double noise; /* the result: noise over signal of each output, added up */
} Trial;

/* Runs g in floats and by each trial on the samples that set has left, which are kept in memory.
 * noise does not depend on the number of threads; it is infinite where an output is not finite.
 * Errors, reported to sink: of the data set, and of the first sample that fails. */
Status trial_run(const Graph *g, Trial *trials, uint32_t count, DataSet *set, DiagSink *sink);

#endif
