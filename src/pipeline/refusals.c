/* See refusals.h. */
#include "pipeline/refusals.h"

#include <stdlib.h>

#include "ops/work.h"

static RuleGroup *group_of(RuleGroups *groups, const Refusal *r) {
  uint32_t i = 0;
  while (i < groups->count && strcmp(groups->items[i].first->rule, r->rule) != 0)
    i++;
  if (i == groups->count)
    groups->items[groups->count++] = (RuleGroup){.first = r};
  return &groups->items[i];
}

static int compare_groups(const void *a, const void *b) {
  const RuleGroup *x = a, *y = b;
  int order = ORDER(y->work, x->work);
  order = order ? order : ORDER(y->count, x->count);
  return order ? order : ORDER(x->head, y->head);
}

static void add(RuleGroups *groups, const NodeFact *n, uint32_t number) {
  RuleGroup *group = group_of(groups, &n->refusal);
  group->work = work_plus(group->work, n->work);
  group->count++;
  if (group->tail)
    groups->next[group->tail - 1] = number;
  else
    group->head = number;
  group->tail = number;
}

RuleGroups refusals_group(const BackendFact *b, Arena *arena) {
  RuleGroups groups = {.items = ARENA_ARRAY(arena, RuleGroup, (size_t)b->node_count + 1),
                       .next = ARENA_ARRAY(arena, uint32_t, (size_t)b->node_count + 1)};
  for (uint32_t i = 0; i < b->node_count; i++) {
    bool taken = b->nodes[i].partition != 0;
    groups.taken += taken;
    groups.left += !taken;
    if (!taken)
      add(&groups, &b->nodes[i], i + 1);
  }
  qsort(groups.items, groups.count, sizeof *groups.items, compare_groups);
  return groups;
}
