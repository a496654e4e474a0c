/* Facts: what was found out while a program was lowered, for those who tell it: --explain,
 * --time-passes, `etc why`, reports. The pass manager and the pass `delegate` record them; nothing
 * in here is parsed back from text, and no pass prints.
 *
 * Where else to look: what a method is now is in its graph (Graph.storages and arena_sizes after
 * plan_memory, Graph.origins of delegates), what was written in Program.written (EmitFigures), what
 * a delegate does in delegate_figures (ops/delegate.h).
 *
 * Units: bytes; nanoseconds where a field says so; work in multiply-adds (ops/work.h). Everything
 * lives in the arena of the facts, but names and places, which are the context's, and static texts.
 */
#ifndef ETC_PASSES_FACTS_H
#define ETC_PASSES_FACTS_H

#include "backends/backend.h"
#include "passes/pass.h"

/* One run of one pass on one method. */
typedef struct PassRun {
  const PassRow *row;
  StageId stage; /* that it ran in; outside of the pipeline its own */
  StrView method;
  double seconds; /* wall */
  uint32_t nodes_before, nodes_after;
  bool changed, skipped;
  PassStat stats[PASS_MAX_STATS]; /* what it counted: "3 linears" */
  uint32_t stat_count;
} PassRun;

/* A node as a backend saw it: taken, or refused for a reason. */
typedef struct NodeFact {
  NodeId node; /* it is gone when it was taken */
  LocId loc;   /* graph_place(DelegationFact.graph, loc) */
  OpId op;
  uint32_t partition; /* from 1; 0: refused */
  uint64_t work;
  Refusal refusal; /* no rule where it was taken */
} NodeFact;

/* A partition that became a call of a delegate. */
typedef struct DelegateFact {
  uint32_t partition; /* as in NodeFact */
  uint32_t node_count, input_count, output_count;
  NodeId call;                         /* the node that calls it */
  PartitionCost cost;                  /* estimated by the backend, nanoseconds */
  const DelegateTranspose *transposes; /* those in its code, what each is for, and bytes moved */
  uint32_t transpose_count;
  uint64_t transposed_bytes;
} DelegateFact;

/* What one backend made of the nodes that those before it left. */
typedef struct BackendFact {
  const Backend *backend;
  uint64_t work;         /* of all nodes that it saw */
  const NodeFact *nodes; /* in the order of the graph; control flow, earlier delegates and weights
                            in codes are not among them */
  uint32_t node_count;
  DelegateFact *delegates; /* in the order of the graph */
  uint32_t delegate_count;
} BackendFact;

/* One run of the pass `delegate`. */
typedef struct DelegationFact {
  const Graph *graph;
  uint32_t node_count;   /* of the graph before it */
  BackendFact *backends; /* in the order of preference; those that ran */
  uint32_t backend_count;
  const uint32_t *kernels; /* by op: the nodes that no backend took; NULL where the pass failed */
} DelegationFact;

typedef struct Facts {
  Arena arena;
  PassRun *runs; /* all so far, in order; of all methods */
  uint32_t run_count, run_capacity;
  DelegationFact *delegations; /* one a method, as a rule */
  uint32_t delegation_count, delegation_capacity;
} Facts;

void facts_release(Facts *f);

/* --- recording; the pointers that are returned are good until the next call of the same function
 * --- */

PassRun *facts_add_run(Facts *f);
/* At the begin of the pass; room for so many backends. */
DelegationFact *facts_add_delegation(Facts *f, const Graph *g, uint32_t backend_count);
/* Tags are set, and g is as the backend saw it; refusals by NodeId. */
BackendFact *facts_add_backend(Facts *f, DelegationFact *d, const Backend *backend,
                               const Refusal *refusals);
/* The code of a partition of the last backend; cost may be zeros. The call is filled in by the
 * caller. */
DelegateFact *facts_add_delegate(Facts *f, BackendFact *b, const Graph *g,
                                 const Partition *partition, const DelegateCode *code,
                                 PartitionCost cost);
/* At the end of the pass: what is left in the graph. */
void facts_count_kernels(Facts *f, DelegationFact *d);

#endif
