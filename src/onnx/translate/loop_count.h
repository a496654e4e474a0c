/* The number of steps of a while loop, where its condition tells it: `i < n` with a counter that
 * each step moves by the same number, and an n that is the same in all of them. */
#ifndef ETC_ONNX_LOOP_COUNT_H
#define ETC_ONNX_LOOP_COUNT_H

#include "onnx/translate/control.h"

/* Counting assumes that there are no more steps than this, and holds only where they prove to be no
 * more: the ranges of counters depend on it. The runtime ends a call after ten million
 * instructions. */
#define LOOP_COUNTED_MAX ((int64_t)1 << 20)
#define COUNTER_MAX ((int64_t)1 << 62)
#define COUNTER_STEP_MAX ((int64_t)1 << 31)

/* A state of one element that is init + step * t in step t, if `known`. */
typedef struct LoopCounter {
  bool known;
  SymInt init;
  int64_t step;
} LoopCounter;

typedef struct LoopSteps {
  bool found;
  bool exact; /* the loop ends after `most` steps, whatever else; else it ends then or before */
  SymInt most;
} LoopSteps;

struct LoopCount {
  LoopCounter *counters; /* by state */
  LoopSteps steps;
};

/* Counts the steps of a loop with a numbered body; false when its condition does not tell. The
 * graph stays as it is, and what was found must be proven again for the nodes that are built: that
 * the counters hold, and that the conditions give the same steps. */
bool loop_count(Import *im, const RunLoop *loop, LoopCount *count);

/* The elements of a state are what the counter says. */
void counter_assume(Import *im, LoopCounter *c, ValueId state, SymInt number);
/* Is that still so after the step? */
bool counter_holds(Import *im, const LoopCounter *c, ValueId next, SymInt number);
/* first: the condition before the loop, 0 when it holds; again: that of the next step, whose
 * operands are known by `number`, which is 0 in the first step; symbols: how many symbols there
 * were before the loop, all later ones may change from step to step. */
LoopSteps loop_steps(Import *im, ValueId first, ValueId again, SymInt number, uint32_t symbols);
/* The iterations of a loop whose number is the symbol `number` are fewer than `below`. */
void loop_number_below(Import *im, SymInt number, SymInt below);
/* The most that v is in any iteration of the loops around it: their numbers are replaced by the
 * last ones, by loop_number_below(). */
SymInt loop_most(Import *im, SymInt v);
/* Does the size depend on a symbol that the loop has made? */
bool loop_is_inner(const SymTable *t, SymInt v, uint32_t symbols);

#endif
