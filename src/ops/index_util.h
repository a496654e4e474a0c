/* What the indexing ops share: checks of index operands, sizes known only while running, walks
 * along an index tensor. */
#ifndef ETC_OPS_INDEX_UTIL_H
#define ETC_OPS_INDEX_UTIL_H

#include "ops/move.h"
#include "ops/shape_util.h"

/* Argument `arg` as a tensor of i64 or i32. */
Status shape_index_tensor(Graph *g, NodeId n, uint32_t arg, ValueId *index);
/* Checks the dims of the index of gather and scatter: rank of self, and no dim but the indexed one
 * larger than self's. A 0-d tensor counts as one of shape [1]. dim_arg is the argument with the
 * dim. */
Status shape_index_within(Graph *g, NodeId n, uint32_t dim_arg, ValueId self, ValueId index);
/* The size of dim `at` of result 0, of the given rank, that depends on how many elements of
 * `counted` are not zero (0: on something else). What the result's type already has there when the
 * rule runs again; the count when `counted` is a constant; else a new unbacked symbol in [0,
 * bound]. */
SymInt shape_count(Graph *g, NodeId n, uint32_t rank, uint32_t at, int64_t bound, ValueId counted);

/* Every position of an index tensor with the element of self that it names (as first), and of a
 * source (as second). */
typedef struct IndexedWalk {
  Walk walk;
  const Tensor *index;
  int64_t size, stride; /* of the indexed dim of self */
} IndexedWalk;
Status indexed_walk(Kernel *k, uint32_t dim_arg, const Tensor *self, const Tensor *index,
                    IndexedWalk *out);
/* Element of self at position i of the index, which the walk has reached; reports an index out of
 * range. */
Status indexed_offset(Kernel *k, const IndexedWalk *w, int64_t i, int64_t *offset);

#endif
