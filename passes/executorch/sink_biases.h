/* Moving biases of products into later ones; what it does is told in sink_biases.c. */
#ifndef ETC_PASSES_EXECUTORCH_SINK_BIASES_H
#define ETC_PASSES_EXECUTORCH_SINK_BIASES_H

#include "ir/graph.h"

/* *count: the sums that are gone. Memory comes from the graph and scratch. */
Status sink_biases(Graph *g, Arena *scratch, uint64_t *count);

#endif
