/* The order of nodes in a file.
 *
 * ONNX wants the nodes of a graph sorted: a name is produced before it is used. Some tools write
 * them in another order, which other readers take. */
#ifndef ETC_ONNX_ORDER_H
#define ETC_ONNX_ORDER_H

#include "onnx/file/model.h"

typedef struct SortedNodes {
  const Onnx__NodeProto *first; /* that moved; NULL: all were sorted already */
  bool circle;                  /* some depend on each other, and cannot be sorted */
} SortedNodes;

/* Sorts the nodes of all graphs, subgraphs and functions of the model in place, in time linear in
 * their size: nodes stay in the order of the file, but what produces a name comes before its first
 * user, which may be a node of a subgraph. */
SortedNodes onnx_sort_nodes(OnnxModel *model);
/* The place in its list that the node has in the file; sorted: the one that it has now. */
size_t onnx_node_place(OnnxModel *model, const Onnx__NodeProto *node, size_t sorted);
/* Which of these sorted nodes the names depend on, by node. */
const bool *onnx_nodes_behind(Onnx__NodeProto *const *nodes, size_t count, const char *const *names,
                              size_t name_count, Arena *arena);
/* The names of a cycle of nodes through node `at`, as "'a', 'b', 'a'"; NULL without one. */
const char *onnx_node_circle(Onnx__NodeProto *const *nodes, size_t count, size_t at, Arena *arena);

#endif
