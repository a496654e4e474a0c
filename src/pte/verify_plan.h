/* A second opinion on a memory plan, from the order of the instructions alone: shares with the
 * planner and the verifier of the IR only the search for blocks that overlap (ir/overlap.h). */
#ifndef ETC_PTE_VERIFY_PLAN_H
#define ETC_PTE_VERIFY_PLAN_H

#include "ir/graph.h"

/* g: at LEVEL_EXECUTORCH, planned; structure and types right. Checks that each planned tensor lies
 * inside its arena, is large enough for its (largest) contents and aligned to 16 bytes; that no two
 * tensors which are in use at the same time share bytes, unless one is a view of the other, or is
 * written over it by the very call that uses it last and whose kernel may do so (OpRow.alias); that
 * no unplanned tensor is written by a kernel. Inputs are in use from the start, outputs to the end.
 * Each fault is reported (DIAG_PTE_PLAN) at the node. n log n for n planned tensors. */
Status pte_verify_plan(const Graph *g);

#endif
