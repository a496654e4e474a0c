/* The nodes that a backend refused, by rule. */
#ifndef ETC_PIPELINE_REFUSALS_H
#define ETC_PIPELINE_REFUSALS_H

#include "passes/facts.h"

/* The nodes of one rule: facts `head`, next[head - 1], … up to 0, each the index of a node fact
 * + 1. */
typedef struct RuleGroup {
  const Refusal *first;
  uint64_t work; /* multiply-adds */
  uint32_t head, tail, count;
} RuleGroup;

typedef struct RuleGroups {
  RuleGroup *items; /* the most work first, then the most nodes */
  uint32_t *next;   /* by node fact */
  uint32_t count, taken, left;
} RuleGroups;

/* Arrays in arena. */
RuleGroups refusals_group(const BackendFact *b, Arena *arena);

#endif
