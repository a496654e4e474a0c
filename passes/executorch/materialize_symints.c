/* Symbolic sizes as numbers of the running program.
 *
 * Every expression that an argument of a call needs gets a value (symints.h). Arguments keep the
 * expression; the emitter puts the value slot that carries it in its place. */
#include "passes/executorch/symints.h"

Status pass_materialize_symints(PassContext *p, Graph *g) {
  Symints s = symints_make(p, g);
  if (g->syms.symbol_count == 0)
    return STATUS_OK;
  NodeId last = g->last;
  for (NodeId n = g->first; n; n = n == last ? 0 : g->nodes[n].next) {
    if (op_has_trait(g->nodes[n].op, OP_DELEGATE))
      continue; /* its sizes are no arguments of the call */
    for (uint32_t i = 0; i < g->nodes[n].arg_count; i++) {
      const Arg *arg = node_arg(g, n, i);
      ArgKind kind = (ArgKind)arg->kind;
      if (kind == ARG_INT)
        TRY(symints_compute(&s, arg->i, n));
      for (uint32_t k = 0; kind == ARG_INTS && k < node_list_count(g, n, i); k++)
        TRY(symints_compute(&s, node_ints(g, n, i)[k], n));
    }
  }
  pass_count(p, "scalars", s.computed);
  return STATUS_OK;
}
