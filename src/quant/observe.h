/* Runs a graph over a data set and collects statistics of its values. */
#ifndef ETC_QUANT_OBSERVE_H
#define ETC_QUANT_OBSERVE_H

#include "quant/dataset.h"
#include "quant/stats.h"
#include "support/files.h"

/* How far it is, for whoever shows it: samples. */
typedef struct ObserveProgress {
  volatile uint64_t done, total; /* total is 0 before it is known */
} ObserveProgress;

/* Whether statistics can be made of v: a tensor of floats that is an input or a result of a node.
 */
bool observe_accepts(const Graph *g, ValueId v);
/* All values that observe_accepts, inputs first, then in the order of the nodes; in arena. */
ValueId *observe_values(const Graph *g, Arena *arena, uint32_t *count);

/* Runs g on the samples that set has left, on up to parallel_threads() threads, each with one
 * sample at a time, and adds the values to stats, one a value of `values`, which observe_accepts.
 * The Stats are initialized here (with extremes by channel for results of convolutions) and
 * released by the caller, also after an error. They do not depend on the number of threads. g is
 * only read. Errors, reported to sink: of the data set, and of the run on the first sample that
 * fails. */
Status observe(Graph *g, const ValueId *values, uint32_t count, DataSet *set, Stats *stats,
               ObserveProgress *progress, DiagSink *sink);

#endif
