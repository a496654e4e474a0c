/* The memory plan of a program that was read. */
#ifndef ETC_PTE_VERIFY_PLAN_H
#define ETC_PTE_VERIFY_PLAN_H

#include "ir/graph.h"

/* Reports each fault of the plan of a method (ir/verify_plan.h) as DIAG_PTE_PLAN, at the node. */
Status pte_verify_plan(const Graph *g);

#endif
