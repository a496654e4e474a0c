/* See verify_plan.h. */
#include "pte/verify_plan.h"

#include "ir/verify_plan.h"

typedef struct Faults {
  const Graph *g;
  Status status; /* of the first */
} Faults;

static void fault(void *user, ValueId v, const char *message) {
  Faults *f = user;
  const Graph *g = f->g;
  NodeId n = value_def(g, v);
  DiagPlace place = n ? node_place(g, n) : context_place(g->ctx);
  Status status = diag_report(g->ctx->sink, DIAG_PTE_PLAN, place, "method '" SV_FMT "': %s",
                              SV_ARG(graph_name(g)), message);
  if (f->status == STATUS_OK)
    f->status = status;
}

Status pte_verify_plan(const Graph *g) {
  Faults faults = {.g = g};
  verify_plan(g, fault, &faults);
  return faults.status;
}
