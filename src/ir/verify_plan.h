/* The part of the verifier that looks at the memory plan. Not for use outside src/ir. */
#ifndef ETC_IR_VERIFY_PLAN_H
#define ETC_IR_VERIFY_PLAN_H

#include "ir/op.h"

typedef void PlanFault(void *user, NodeId n, const char *message);

/* Reports each fault of the plan of a graph whose structure is right. position: of every node in
 * the order, from 1. Takes n log n time for n planned values. Messages live in arena. */
void verify_plan(const Graph *g, const uint32_t *position, Arena *arena, PlanFault *report,
                 void *user);

#endif
