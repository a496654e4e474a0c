/* Whether two nodes are the same: op, number of results, and each argument. What operands count as
 * is the caller's business: values themselves, constants by their bytes, or no more than a type. */
#ifndef ETC_IR_SAME_H
#define ETC_IR_SAME_H

#include "ir/op.h"

/* Operands with equal keys count as the same. v may be 0, an absent element of a list. */
typedef uint64_t ValueKeyFn(void *user, ValueId v);

/* Equal for nodes that are the same. */
uint32_t same_hash(const Graph *g, NodeId n, ValueKeyFn *key, void *user);
/* Numbers are compared by their bits. Result types are not compared. */
bool same_nodes(const Graph *g, NodeId a, NodeId b, ValueKeyFn *key, void *user);

#endif
