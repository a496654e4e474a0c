/* What a backend answered is checked before anything relies on it: that of a plug-in, which is
 * named when something is wrong. */
#ifndef ETC_PASSES_TO_BACKEND_DELEGATE_CHECKS_H
#define ETC_PASSES_TO_BACKEND_DELEGATE_CHECKS_H

#include "backends/backend.h"
#include "passes/facts.h"

typedef struct Delegation {
  PassContext *p;
  Graph *g;
  DelegationFact *run;
  const Backend *backend;
  BackendContext c;
  BackendFact *fact;
  uint32_t tags; /* partitions are 1 … tags */
  /* By NodeId, tag_count of them: the partitions as partition() left them, whatever later calls of
   * the backend do to the tags in the graph. */
  const uint32_t *tag_of;
  uint32_t tag_count;
} Delegation;

/* The partition of node n; 0 for one that was made since partition() was called. */
static inline uint32_t delegation_tag(const Delegation *d, NodeId n) {
  return n < d->tag_count ? d->tag_of[n] : 0;
}

/* A fault of the backend: of the plug-in that has it, or our own. */
Status delegation_fault(const Delegation *d, const char *format, ...) ETC_PRINTF(2, 3);

/* What the backend was given before a call, and how many edits the graph had. */
typedef struct Before {
  BackendContext context;
  uint64_t edits;
} Before;
Before delegation_before(const Delegation *d);

/* The checks of a plug-in's backend; nothing is checked of a built-in one, which has tests. */
/* After partition(). Gives each node that is left out a reason that can be shown. */
Status delegation_check_partitions(Delegation *d, const Before *before);
/* After preprocess(). */
Status delegation_check_code(const Delegation *d, const Before *before, const Partition *part,
                             const DelegateCode *code);
/* The call that was made of it, by the backend's reader. */
Status delegation_check_call(const Delegation *d, NodeId call);
/* When all partitions are cut out. */
Status delegation_check_end(const Delegation *d);

#endif
