/* A pass that looks for the last node of a spelt-out op and puts the op in its place. */
#ifndef ETC_PASSES_SOURCE_RECOVER_H
#define ETC_PASSES_SOURCE_RECOVER_H

#include "ir/builder.h"
#include "ir/match.h"
#include "passes/pass.h"

/* Builds the recovered op before node n with b and returns its value, or returns 0. */
typedef ValueId Recover(Builder *b, NodeId n);
typedef struct RecoverRow {
  OpId root; /* op of the last node of the pattern */
  Recover *recover;
  const char *name; /* for the statistics */
} RecoverRow;

/* x may take the place of an op on floats that gives the type of its operand, at the result of n: x
 * has that type. To be asked before building: shape rules report operands that they refuse. */
bool recover_fits(const Graph *g, NodeId n, ValueId x);
/* The norm with mean and deviation as further results that computes v and nothing else that is
 * used; 0 otherwise. Those stay the same when v gets another scale, but the node is built anew. */
NodeId recover_lone_norm(const Graph *g, ValueId v, OpId op);
/* Tries each row at each node, in order; dead nodes are left to eliminate_dead. */
Status recover_run(PassContext *p, Graph *g, const RecoverRow *rows, uint32_t count);

#endif
