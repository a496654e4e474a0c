/* Largest first, each at the lowest offset that is free while it lives. */
#include <etc/plugin.h>

static bool meet(const Span *a, const Span *b) {
  return a->first <= b->last && b->first <= a->last;
}

/* The lowest offset for span i among those that are placed. */
static uint64_t lowest(const PlanProblem *q, const bool *placed, const uint64_t *offsets,
                       uint32_t i) {
  uint64_t at = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t k = 0; k < q->count; k++) {
      uint64_t end = offsets[k] + q->spans[k].size;
      if (!placed[k] || !meet(&q->spans[i], &q->spans[k]) || at >= end ||
          at + q->spans[i].size <= offsets[k])
        continue;
      at = end;
      moved = true;
    }
  }
  return at;
}

static uint64_t place(const PlanProblem *q, Arena *scratch, uint64_t *offsets) {
  bool *placed = ARENA_ARRAY(scratch, bool, (size_t)q->count + 1);
  uint64_t total = 0;
  for (uint32_t round = 0; round < q->count; round++) {
    uint32_t largest = q->count;
    for (uint32_t i = 0; i < q->count; i++)
      if (!placed[i] && (largest == q->count || q->spans[i].size > q->spans[largest].size))
        largest = i;
    offsets[largest] = lowest(q, placed, offsets, largest);
    placed[largest] = true;
    uint64_t end = offsets[largest] + q->spans[largest].size;
    total = end > total ? end : total;
  }
  return total;
}

static const Planner stack = {.name = "stack",
                              .summary = "Largest first, each as low as it fits",
                              .in_place = true,
                              .place = place};
static const Planner *const planners_of_it[] = {&stack, NULL};
ETC_PLUGIN = {.abi = ETC_PLUGIN_ABI, .name = "stack", .planners = planners_of_it};
