/* What the symbols of a graph stand for in one run. */
#ifndef ETC_INTERP_SYMBOLS_H
#define ETC_INTERP_SYMBOLS_H

#include "ops/kernel.h"

typedef struct Symbols {
  const Graph *g;
  DiagSink *sink;
  int64_t *values; /* by symbol index; 0 while unbound */
  bool *bound;
  bool *checked; /* by constraint: it was seen to hold */
} Symbols;

Symbols symbols_make(const Graph *g, Arena *arena);

/* Checks the inputs of a run against the graph's input types and binds every symbol that they
 * decide; then checks ranges and constraints. Errors (reported): number, dtype, rank or dims of an
 * input; a dim that no bound symbol explains; a symbol out of range; a constraint that fails. */
Status symbols_bind_inputs(Symbols *s, const Tensor *inputs, uint32_t count);
/* A size became known while running: binds what expr says is not known yet, checks the rest.
 * n: the node that made it. */
Status symbols_bind_result(Symbols *s, NodeId n, SymInt expr, int64_t value);
/* False when expr holds an unbound symbol or does not fit an int64. */
bool symbols_eval(const Symbols *s, SymInt expr, int64_t *out);

#endif
