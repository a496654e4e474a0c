/* Whether spans fit into an arena of a given size: an exact search with a limit on its work. */
#ifndef ETC_PASSES_EXECUTORCH_PLAN_SEARCH_H
#define ETC_PASSES_EXECUTORCH_PLAN_SEARCH_H

#include "passes/executorch/planner.h"

typedef enum SearchAnswer {
  SEARCH_FOUND,      /* offsets are written */
  SEARCH_IMPOSSIBLE, /* proven: no plan is as small */
  SEARCH_UNDECIDED   /* the work was used up first */
} SearchAnswer;

typedef struct PlanSearch PlanSearch;

/* Everything lives in arena. Sizes are multiples of an alignment, which all offsets then are, too.
 * end: one more than the greatest Span.last. NULL: there are too many spans for a search. */
PlanSearch *plan_search_make(const Span *spans, uint32_t count, uint32_t end, Arena *arena);

/* Whether a plan of `capacity` bytes exists. *work: what may be done, in buffers and sections
 * looked at (about 10^9 a second); what was done is subtracted. offsets: one a span, those of spans
 * with a size are written; they mean something when the answer is SEARCH_FOUND. The answer and the
 * offsets depend on the spans, the capacity and *work only. */
SearchAnswer plan_search_run(PlanSearch *s, uint64_t capacity, uint64_t *work, uint64_t *offsets);

#endif
