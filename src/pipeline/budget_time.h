/* A rough time of a call, for limits that catch a model that has become several times slower. */
#ifndef ETC_PIPELINE_BUDGET_TIME_H
#define ETC_PIPELINE_BUDGET_TIME_H

#include "ir/graph.h"

/* Milliseconds of one thread for a call of the method, all sizes at their upper bounds, the bodies
 * of loops once. *slow, in arena: the nodes that take most of it. See budget_time.c for how rough
 * it is. */
double method_time(const Graph *g, Arena *arena, const char **slow);

#endif
