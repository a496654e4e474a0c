/* A planner with a fault: all tensors lie at the same place. */
#include <etc/plugin.h>

static uint64_t place(const PlanProblem *q, Arena *scratch, uint64_t *offsets) {
  uint64_t largest = 0;
  (void)scratch;
  for (uint32_t i = 0; i < q->count; i++) {
    offsets[i] = 0;
    largest = q->spans[i].size > largest ? q->spans[i].size : largest;
  }
  return largest;
}

static const Planner bad = {.name = "bad", .summary = "All at one place", .place = place};
static const Planner *const planners_of_it[] = {&bad, NULL};
ETC_PLUGIN = {.abi = ETC_PLUGIN_ABI, .name = "bad", .planners = planners_of_it};
