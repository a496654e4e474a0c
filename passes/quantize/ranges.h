/* Which values of a graph have a range in common while `observe` chooses them. */
#ifndef ETC_PASSES_QUANTIZE_RANGES_H
#define ETC_PASSES_QUANTIZE_RANGES_H

#include "ir/graph.h"
#include "quant/stats.h"

/* A node `observe` that waits for its range. */
typedef struct Watch {
  NodeId node;
  uint32_t range; /* an index of Watches.stats */
  ValueId value;  /* what it marks */
} Watch;

typedef struct Watches {
  Watch *list;
  uint32_t count, ranges; /* ranges: how many different ones, numbered from 0 */
  Stats *stats;           /* by range */
} Watches;

/* Gives operands of joins (cat, stack) the range of the result, where its scale is not much coarser
 * than their own, or nothing else reads them: such codes need no conversion. What shares a range
 * has statistics of all of it, and is marked alike. */
void share_joined_ranges(Graph *g, Watches *w, Arena *arena);

#endif
