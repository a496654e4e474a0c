/* Parts of a partition that are equal but for activations: layers that share their weights, towers,
 * steps of an unrolled recurrence.
 *
 * XNNPACK packs the weights of each node anew. Where each copy of such a part is a partition of its
 * own, all copies are one delegate of the program, which is loaded once and called several times.
 *
 * Copies are found by growing: from nodes with the same weights, which are equal already, to what
 * follows and what comes before, as long as that is equal in all copies. */
#ifndef ETC_BACKENDS_XNNPACK_REPEAT_H
#define ETC_BACKENDS_XNNPACK_REPEAT_H

#include "ir/graph.h"

/* Copy c is nodes[c * size] to nodes[c * size + size - 1], in the order of the graph. Nodes of one
 * place are equal in all copies: op, arguments, constants by their bytes, types of operands and
 * results, which operands come from the copy itself and which results leave it. No path between two
 * nodes of a copy leaves it. */
typedef struct Repeat {
  uint32_t partition;
  const NodeId *nodes;
  uint32_t copies, size;
  uint64_t saved; /* bytes of weights that all copies but one have as well */
} Repeat;

/* The repeats that save `least` bytes each, in the order of the graph; returns how many. No node is
 * in two. partitions: by NodeId, 0 for nodes that are in none; each repeat lies in one partition.
 * Memory comes from arena. */
uint32_t repeat_find(const Graph *g, const uint32_t *partitions, uint64_t least, Arena *arena,
                     const Repeat **out);

/* Divides a partition, whose nodes come in the order of the graph: each copy of the repeats, which
 * lie in it, becomes a part, and what is left as few parts as do not depend on themselves. part:
 * for each of the nodes, from 0. Returns the number of parts; 0 when copies depend on each other in
 * a circle. */
uint32_t repeat_divide(const Graph *g, const NodeId *nodes, uint32_t count, const Repeat *repeats,
                       uint32_t repeat_count, Arena *arena, uint32_t *part);

#endif
