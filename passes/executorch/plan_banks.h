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

typedef struct BankPlan {
  uint32_t *bank;    /* by span */
  uint64_t *offsets; /* by span */
  uint64_t *totals;  /* by bank: its bytes without spare */
  uint64_t missing;  /* bytes that the last bank lacks; 0: all is placed */
} BankPlan;

/* A bank takes the spans that are used most for the time that they stay, as many as the planner
 * places within it; the last takes what is left. The caller has the arrays of the plan. */
Status plan_banks(PassContext *p, const BankProblem *q, BankPlan *plan);

/* Runs the planner on the problem. Of a plug-in's planner the answer is checked: spans inside the
 * arena, aligned, and no two that live at the same time overlap; reported if not. */
Status plan_place(PassContext *p, const Planner *planner, const PlanProblem *q, uint64_t *offsets,
                  uint64_t *total);

#endif
