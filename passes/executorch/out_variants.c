/* The step to the executorch level. A node keeps its functional op; the kernel that is called is
 * the out-variant in the op's row, and each result is its own out argument. So all there is to do
 * is to see that every op has one, and to name all that have none. */
#include "passes/pass.h"

static void report_op(PassContext *p, Graph *g, OpId op, NodeId first, uint32_t count) {
  Diag *d = diag_begin(p->sink, DIAG_NO_KERNEL, node_place(g, first));
  diag_message(d, "the runtime has no kernel for '" SV_FMT "'", SV_ARG(op_schema(op)->full));
  if (count > 1)
    diag_note(d, "%u nodes came down to this operator; this is the first", count);
  (void)diag_end(d);
}

Status pass_out_variants(PassContext *p, Graph *g) {
  NodeId *first = ARENA_ARRAY(p->scratch, NodeId, OP_COUNT);
  uint32_t *count = ARENA_ARRAY(p->scratch, uint32_t, OP_COUNT);
  for (FOR_NODES(g, n)) {
    OpId op = node_cget(g, n)->op;
    /* A view may be no call at all, a marker becomes jumps, and a delegate is no kernel. */
    bool called = op_row(op)->out || op_has_trait(op, OP_VIEW | OP_CONTROL | OP_DELEGATE);
    if (called && op_allowed_at(op, LEVEL_EXECUTORCH))
      continue;
    if (!count[op]++)
      first[op] = n;
  }
  Status status = STATUS_OK;
  for (uint32_t op = 0; op < OP_COUNT; op++)
    if (count[op]) {
      report_op(p, g, (OpId)op, first[op], count[op]);
      status = STATUS_UNSUPPORTED;
    }
  p->changed |= g->level != LEVEL_EXECUTORCH;
  return status;
}
