/* Which values share memory, and from when to when each piece of memory is in use.
 *
 * A span is one piece of memory: a value, its views, the results that kernels write over it. Time
 * is the position of nodes in the order, from 1; inputs are filled at 0, outputs are read at `end`.
 * A span is in use from `first` to `last`, both included, because a kernel must not write a result
 * over an operand that it still reads. States are no spans: their memory is nobody else's, always.
 */
#ifndef ETC_PASSES_EXECUTORCH_LIVENESS_H
#define ETC_PASSES_EXECUTORCH_LIVENESS_H

#include "ir/op.h"

#define PLAN_ALIGNMENT 16 /* arena bases and tensors in the arena */
/* After the last tensor of an arena, where a delegate works on it: XNNPACK's vector loops read past
 * the ends of tensors (XNN_EXTRA_BYTES); exir's planner leaves as many. */
#define PLAN_DELEGATE_SPARE 64

typedef struct Span {
  uint64_t size; /* bytes, upper bound for dynamic shapes; not rounded */
  uint32_t first, last;
} Span;

typedef struct Liveness {
  Span *spans;
  uint32_t span_count;
  uint32_t *span_of; /* by value: index into spans + 1; 0: no planned memory (constants, views of
                        constants, scalars); span_count + 1 + i: the memory of state i */
  uint32_t in_place; /* results that are written over an operand */
  uint32_t end;      /* position after the last node */
} Liveness;

typedef struct LivenessOptions {
  bool in_place; /* results are written over dying operands where the op table allows it */
  bool host_inputs, host_outputs; /* they have no planned memory (host_buffers.h) */
} LivenessOptions;

/* Everything lives in arena. Errors: DIAG_DIM_UNBOUND or DIAG_TOO_LARGE for values whose bytes have
 * no bound.
 */
Status liveness_compute(Graph *g, Arena *arena, LivenessOptions options, Liveness *out);

/* Whether the kernel of n may write `result` over the memory in which `lies` says that operands do:
 * the op table must allow it for each of those (OpRow.alias). */
bool liveness_may_overwrite(const Graph *g, NodeId n, ValueId result,
                            bool lies(void *user, ValueId v), void *user);

/* Bytes in use while each node runs, by position from 1, and the most of them. Lives in scratch. */
uint64_t *liveness_in_use(const Liveness *l, Arena *scratch, uint64_t *peak);

/* The most bytes, rounded up to `alignment` each, that are in use at one time: no plan can need
 * less. Sizes must add up to less than 2^63. */
uint64_t liveness_bound(const Liveness *l, uint64_t alignment, Arena *arena);

#endif
