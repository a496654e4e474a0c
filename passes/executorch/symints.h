/* Values of the running program for symbolic sizes. Symbols are given by a scalar that a node
 * computes (the length of a state), else by aten::sym_size.int of the first tensor that has the
 * bare symbol as a dim, or a multiple of it plus a number, expressions by executorch_prim
 * arithmetic on them. Each is computed once and as early as its symbols are known, so that it is
 * there before every use. */
#ifndef ETC_PASSES_EXECUTORCH_SYMINTS_H
#define ETC_PASSES_EXECUTORCH_SYMINTS_H

#include "ir/builder.h"
#include "ir/region.h"
#include "passes/pass.h"

/* Where a symbol can be read. */
typedef struct Source {
  ValueId value;
  uint32_t dim;
  bool line; /* the dim is a multiple of the symbol plus a number: "16*h" */
} Source;

typedef struct Symints {
  PassContext *p;
  Graph *g;
  Source *sources;     /* by symbol; empty until the first expression turns up */
  uint32_t node_count; /* nodes that were there before are below */
  uint32_t *position;  /* of these, from 1 */
  ValueId *known;      /* by expression: the value that holds it */
  NodeId *after; /* by expression: the node that was there before after which it is known, 0 = from
                    the start */
  uint32_t capacity;
  SymInt *stack; /* expressions to compute */
  uint32_t stack_count, stack_capacity;
  uint64_t computed;
  Regions regions;
} Symints;

Symints symints_make(PassContext *p, Graph *g);
/* Nodes that compute the expression, where it is symbolic and not computed yet. An error that names
 * `user`, a node that was there before, when that is not possible in front of it. */
Status symints_compute(Symints *s, SymInt wanted, NodeId user);
/* What holds an expression that was computed, and the node that was there before behind which it is
 * known; 0: from the start. */
ValueId symints_value(const Symints *s, SymInt v, NodeId *after);
/* Of two nodes that were there before, 0 = the start, the one that comes later. */
NodeId symints_later(const Symints *s, NodeId a, NodeId b);
/* A builder that appends behind what was inserted behind that node so far. */
Builder symints_behind(const Symints *s, NodeId after);

#endif
