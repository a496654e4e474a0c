/* What the files of the interpreter share: interp.c (nodes), control.c (branches and loops). */
#ifndef ETC_INTERP_RUN_H
#define ETC_INTERP_RUN_H

#include "interp/interp.h"
#include "interp/symbols.h"
#include "ir/region.h"

#define RUN_PINNED UINT32_MAX /* Slot.remaining of what is kept until the end of the run */

/* What a value holds while the graph runs. */
typedef struct Slot {
  Tensor tensor;
  void *owned;        /* freed after the last use; NULL for borrowed and planned memory */
  KernelArg scalar;   /* kind INT, FLOAT or BOOL for values that are no tensors */
  uint32_t remaining; /* uses still to come */
} Slot;

/* A loop that runs. */
typedef struct LoopRun {
  int64_t iteration, trip; /* INT64_MAX: no limit */
  bool *bound, *checked;   /* symbols and constraints as they were before its first iteration */
} LoopRun;

typedef struct Run {
  const Graph *g;
  DiagSink *sink;
  Arena arena;   /* run-long tables */
  Arena scratch; /* of one node */
  Slot *slots;   /* by value */
  Symbols symbols;
  uint8_t **memory; /* planned arenas by memory id; NULL when there is no plan */
  Tensor *states;   /* by position; what the next call finds */
  uint64_t live;    /* bytes allocated now */
  uint64_t limit;   /* bytes of memory that the machine has */
  Regions regions;
  LoopRun **loops;    /* by node of the markers control::loop */
  uint64_t steps;     /* nodes that have run, in graphs with control flow */
  InterpWatch *watch; /* may be NULL */
  void *watch_user;
  InterpTrace *trace; /* may be NULL */
  void *trace_user;
} Run;

Status run_alloc(Run *r, DiagPlace place, uint64_t bytes, void **out);
void run_free(Run *r, Slot *slot);
/* Shows the tensor of v to the watch. */
void run_watch(const Run *r, ValueId v);
/* The tensor of an operand; a constant is brought to an aligned address when first needed, and to
 * memory of its own when it is going to be written. */
Status run_operand(Run *r, NodeId n, ValueId v, bool written, Tensor **out);
Status run_eval(Run *r, NodeId n, SymInt expr, int64_t *out);
/* Where the plan puts the value, checked against its arena; NULL when it is not planned. */
Status run_planned(Run *r, DiagPlace place, ValueId v, uint64_t bytes, void **out);
/* After n has run: frees what was used for the last time. */
void run_release(Run *r, NodeId n);

/* Finds the regions; what a loop uses from outside is kept until the end of the run. */
Status control_prepare(Run *r);
/* Before a node runs: it may run again, and not for ever. */
Status control_enter(Run *r, NodeId n);
/* Executes a marker; *next: the node that comes after it. */
Status control_step(Run *r, NodeId n, NodeId *next);

#endif
