/* Passes that put something else in the place of each node of one op. */
#ifndef ETC_PASSES_EXECUTORCH_REWRITE_H
#define ETC_PASSES_EXECUTORCH_REWRITE_H

#include "ir/builder.h"
#include "passes/pass.h"

/* Builds before node n what is equal to its first result and returns it, or returns 0. */
typedef ValueId Rewrite(Builder *b, NodeId n);

/* Tries each node of op; one that is replaced is removed, so its other results must be unused.
 * name: for the statistics. */
Status rewrite_nodes(PassContext *p, Graph *g, OpId op, Rewrite *rewrite, const char *name);

#endif
