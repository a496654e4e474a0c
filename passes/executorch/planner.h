/* Giving each span an offset in the arena, so that spans in use at the same time do not overlap. */
#ifndef ETC_PASSES_EXECUTORCH_PLANNER_H
#define ETC_PASSES_EXECUTORCH_PLANNER_H

#include "passes/executorch/liveness.h"

/* What a planner is asked. */
typedef struct PlanProblem {
  const Span *spans; /* sizes are multiples of alignment and add up to less than 2^63 */
  uint32_t count;
  uint32_t end;       /* one more than the greatest Span.last */
  uint64_t bound;     /* no plan can need less (liveness_bound) */
  uint64_t alignment; /* PLAN_ALIGNMENT or a greater power of two */
  uint64_t *proved;   /* `bound`, to be raised by a planner that proves more; or NULL */
} PlanProblem;

/* None of name, summary and place may be NULL. */
typedef struct Planner {
  const char *name; /* of --plan */
  const char *summary;
  bool in_place; /* results may be written over operands that are not needed any more */
  bool schedule; /* nodes come in an order that needs less memory (schedule_nodes.c) */
  /* Writes one offset a span, a multiple of the alignment, so that spans in use at the same time
   * do not overlap; returns the bytes of the arena. Checked by plan_memory. */
  uint64_t (*place)(const PlanProblem *problem, Arena *scratch, uint64_t *offsets);
  const char *plugin; /* the plug-in that has it, set where it is registered; NULL: built in */
} Planner;

extern const Planner
    builtin_planners[]; /* the built-in ones, the default first; ends without a name */

/* All planners take sizes as multiples of the alignment that add up to less than 2^63, write one
 * offset a span and return the bytes of the arena. Spans of size 0 get offset 0. The result depends
 * on the spans only. */

/* Every span has its own place. */
uint64_t planner_naive(const Span *spans, uint32_t count, uint64_t *offsets);

/* The best of several orders of placing spans into the lowest or the tightest gap; stops as soon as
 * `bound` (see liveness_bound) is reached. The work is limited, so that it grows no faster than
 * n log n on large graphs. end: one more than the greatest Span.last. */
uint64_t planner_greedy(const Span *spans, uint32_t count, uint32_t end, uint64_t bound,
                        Arena *scratch, uint64_t *offsets);

/* The least arena that a search finds with that much work (plan_search.h; 0: half a second's):
 * begins with planner_greedy. Writes to q->proved how small an arena can be. Found or proven
 * optimal is what has some hundred spans, as a rule; thousands are left to planner_greedy. */
uint64_t planner_best(const PlanProblem *q, uint64_t work, Arena *scratch, uint64_t *offsets);

/* One sweep over time with a free list: what planner_greedy starts with. Linear time. */
uint64_t planner_sweep(const Span *spans, uint32_t count, uint32_t end, Arena *scratch,
                       uint64_t *offsets);

#endif
