/* The smallest arena that a search within limits finds, and the proof of how small one can be.
 *
 * planner_greedy comes first and nearly always reaches the lower bound, the most bytes in use at
 * one time. Where it does not, an exact search (plan_search.h) is asked whether a plan of just the
 * bound exists, and then for sizes between what was proven impossible and the best plan so far. The
 * work is counted, not timed: the same spans give the same plan on every machine. */
#include "passes/executorch/plan_search.h"

enum { MAX_WORK = 400000000 }; /* about half a second */

/* Sizes of arenas: none below `low` is possible, one of `high` is known; whether one between `low`
 * and `undecided` is possible could not be decided. Multiples of the alignment. */
typedef struct Limits {
  uint64_t low, undecided, high, unit;
} Limits;

/* The size to ask for next: the lowest first, then the middle. */
static uint64_t next_size(const Limits *l, bool first) {
  return first ? l->low : l->undecided + (l->high - l->undecided) / l->unit / 2 * l->unit;
}

static void narrow(Limits *l, SearchAnswer answer, uint64_t size, uint64_t found) {
  if (answer == SEARCH_FOUND)
    l->high = found;
  else
    l->undecided = size + l->unit;
  if (answer == SEARCH_IMPOSSIBLE)
    l->low = l->undecided;
}

static uint64_t top_of(const PlanProblem *q, const uint64_t *offsets) {
  uint64_t top = 0;
  for (uint32_t i = 0; i < q->count; i++) {
    uint64_t end = q->spans[i].size ? offsets[i] + q->spans[i].size : 0;
    top = end > top ? end : top;
  }
  return top;
}

uint64_t planner_best(const PlanProblem *q, uint64_t work, Arena *scratch, uint64_t *offsets) {
  Limits l = {.low = q->bound, .undecided = q->bound, .unit = q->alignment};
  l.high = planner_greedy(q->spans, q->count, q->end, q->bound, scratch, offsets);
  PlanSearch *search =
      l.high > l.low ? plan_search_make(q->spans, q->count, q->end, scratch) : NULL;
  uint64_t *found = search ? ARENA_ARRAY(scratch, uint64_t, q->count) : NULL;
  work = work ? work : MAX_WORK;
  for (bool first = true; search && work && l.undecided < l.high; first = false) {
    uint64_t size = next_size(&l, first), share = work / 2 + 1;
    work -= share;
    SearchAnswer answer = plan_search_run(search, size, &share, found);
    work += share;
    narrow(&l, answer, size, top_of(q, found));
    if (answer == SEARCH_FOUND)
      memcpy(offsets, found, q->count * sizeof *found);
  }
  if (q->proved)
    *q->proved = l.low;
  return l.high;
}
