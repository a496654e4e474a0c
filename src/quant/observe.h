/* Runs a graph over a data set and collects statistics of its values. */
#ifndef ETC_QUANT_OBSERVE_H
#define ETC_QUANT_OBSERVE_H

#include "quant/samples.h"
#include "quant/stats.h"
#include "support/files.h"

/* Whether statistics can be made of v: a tensor of floats that is an input or a result of a node.
 */
bool observe_accepts(const Graph *g, ValueId v);
/* All values that observe_accepts, inputs first, then in the order of the nodes; in arena. */
ValueId *observe_values(const Graph *g, Arena *arena, uint32_t *count);

/* Runs g on the samples that set has left (samples_run), and adds the values to stats, one a value
 * of `values`, which observe_accepts. The Stats are initialized here (with extremes by channel for
 * results of convolutions) and released by the caller, also after an error. They do not depend on
 * the number of threads. g is only read. */
Status observe(Graph *g, const ValueId *values, uint32_t count, DataSet *set, Stats *stats,
               SampleProgress *progress, DiagSink *sink);

#endif
