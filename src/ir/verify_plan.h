/* The check of a memory plan, from the order of the nodes alone: it shares with the planner only
 * the search for blocks that overlap (overlap.h). One for the graphs of the compiler and for those
 * that were read from a program. */
#ifndef ETC_IR_VERIFY_PLAN_H
#define ETC_IR_VERIFY_PLAN_H

#include "ir/graph.h"

/* v: the value whose place is wrong. The message lives until the function returns. */
typedef void PlanFault(void *user, ValueId v, const char *message);

/* g: at LEVEL_EXECUTORCH, planned; structure and types right. Checks that each planned tensor lies
 * inside its arena, is large enough for its (largest) contents and aligned to 16 bytes; that no two
 * tensors which are in use at the same time share bytes, unless one is a view of the other, or is
 * written over it by the very call that uses it last and whose kernel may do so (OpRow.alias); that
 * no unplanned tensor is written by a kernel; that the results of a marker lie where their operands
 * do. Inputs are in use from the start, outputs to the end, states always. n log n for n planned
 * tensors. */
void verify_plan(const Graph *g, PlanFault *report, void *user);

#endif
