/* Choosing the bank of each span. */
#ifndef ETC_PASSES_EXECUTORCH_PLAN_BANKS_H
#define ETC_PASSES_EXECUTORCH_PLAN_BANKS_H

#include "passes/executorch/planner.h"
#include "passes/pass.h"

typedef struct BankProblem {
  const Planner *planner;
  const PlanProblem *all;
  const uint32_t *accesses; /* by span: reads and writes */
  const MemoryBank *banks;  /* the best first */
  uint32_t bank_count;
  uint64_t spare; /* bytes that the end of each arena needs beside the spans */
} BankProblem;

/* Writes the bank and the offset of each span, and the bytes of each bank without spare. A bank
 * takes the spans that are used most for the time that they stay, as many as the planner places
 * within it; the last takes what is left. *missing: bytes that bank *full lacks for that; 0: all is
 * placed. */
Status plan_banks(PassContext *p, const BankProblem *q, uint32_t *bank, uint64_t *offsets,
                  uint64_t *totals, uint32_t *full, uint64_t *missing);

/* Whether a plug-in's planner answered with spans inside the arena, and aligned; reported if not.
 * That no two overlap is checked with the other rules of plans, by the verifier. */
Status plan_check_places(PassContext *p, const Planner *planner, const PlanProblem *q,
                         const uint64_t *offsets, uint64_t total);

#endif
