/* Which nodes the sizes in the arguments of a node come from.
 *
 * A size that is known only while running is read by a node, or is a dim of what a node makes
 * (NonZero). A node whose arguments have it, such as arange(s0), comes behind that one, and has no
 * operand that says so: whoever puts nodes into another order asks here. */
#ifndef ETC_IR_SIZE_SOURCE_H
#define ETC_IR_SIZE_SOURCE_H

#include "ir/graph.h"

typedef struct SizeSources {
  const Graph *g;
  NodeId *of; /* by symbol; 0: an input has it. NULL where no size is known only while running */
  uint32_t asked; /* how often */
  uint32_t *seen; /* by expression: when it was asked last */
  NodeId *found;  /* at that time */
  uint32_t count; /* of found */
} SizeSources;

/* Of the graph as it is: no expression may be made while this is in use. */
SizeSources size_sources(const Graph *g, Arena *a);
/* Finds those of node n: s->found, s->count of them, n not among them. */
void size_sources_of(SizeSources *s, NodeId n);

#endif
