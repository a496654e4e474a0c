/* Which values of a quantized graph stand for which of the graph that it was made of. */
#ifndef ETC_PASSES_QUANTIZE_PAIRS_H
#define ETC_PASSES_QUANTIZE_PAIRS_H

#include "quant/compare.h"

/* plain: a snapshot of g after equalize and before annotate; g: after convert. Fills in c, in
 * arena: a pair for each node that was quantized, with the result that is left behind its clamp,
 * and for each input; in the order of the graph, then one for each output of floats. nodes: the
 * node of each pair, 0 for inputs and outputs. */
void find_pairs(const Graph *plain, const Graph *g, Arena *arena, Compare *c, NodeId **nodes);

#endif
