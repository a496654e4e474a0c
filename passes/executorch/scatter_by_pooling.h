/* Sums at run-time indices, which scatter_by_pooling and permute_scatters (to_backend) speak of. */
#ifndef ETC_PASSES_SCATTER_BY_POOLING_H
#define ETC_PASSES_SCATTER_BY_POOLING_H

#include "ir/graph.h"

/* index_put that adds values at one index tensor along one dim of self. */
typedef struct IndexedSum {
  ValueId self, index, values;
  uint32_t axis;
  SymInt entries; /* of the axis */
  SymInt count;   /* of indices */
  int64_t rows;   /* elements of self at one entry of the axis */
} IndexedSum;

/* Whether n is one, and large enough that the calls of scatter_by_pooling take less time. */
bool read_indexed_sum(Graph *g, NodeId n, IndexedSum *s);

#endif
