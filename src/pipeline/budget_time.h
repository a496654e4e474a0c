/* A rough time of a call, for limits that catch a model that has become several times slower. */
#ifndef ETC_PIPELINE_BUDGET_TIME_H
#define ETC_PIPELINE_BUDGET_TIME_H

#include "pipeline/program.h"

/* Milliseconds of one thread for a call of the slowest method, all sizes at their upper bounds, the
 * bodies of loops once. *slow, in arena: the nodes that take most of it. See budget_time.c for how
 * rough it is. */
double program_time(const Program *p, Arena *arena, const char **slow);

#endif
