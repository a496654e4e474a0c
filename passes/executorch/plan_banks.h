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

/* Runs the planner on the problem. Of a plug-in's planner the answer is checked: spans inside the
 * arena, aligned, and no two that live at the same time overlap; reported if not. */
Status plan_place(PassContext *p, const Planner *planner, const PlanProblem *q, uint64_t *offsets,
                  uint64_t *total);

#endif
