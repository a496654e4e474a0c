/* The sizes that satisfy the constraints of a graph.
 *
 * Symbols have bounds, so what the constraints on one symbol leave of its range is found by trying
 * every size. Constraints that tie several symbols together narrow their bounds, as far as linear
 * equations and inequalities do. */
#ifndef ETC_IR_SOLVE_H
#define ETC_IR_SOLVE_H

#include "ir/graph.h"

#define SOLVE_NONE UINT32_MAX

/* What is left of a symbol's range: the sizes lo, lo + step, … hi, all of them when regular. Causes
 * are constraints; SOLVE_NONE where the range that was given is the bound. */
typedef struct SymSizes {
  int64_t lo, hi, step; /* step >= 1 */
  bool regular;         /* false: some of these do not fit either */
  uint32_t lo_cause, hi_cause, step_cause;
  uint64_t *fits; /* bit i: the least size of the range + i fits; NULL when nothing was tried */
} SymSizes;

typedef struct Solution {
  SymSizes *sizes; /* by symbol */
  bool *settled;   /* by constraint: sizes says all of it */
} Solution;

/* Whether two numbers are in the relation. */
bool constraint_holds(ConstraintKind kind, int64_t lhs, int64_t rhs);
/* Solves the constraints; the solution is in arena. One that cannot hold is reported, with what it
 * contradicts: other constraints, or the ranges given for its symbols. */
Status graph_solve(Graph *g, Arena *arena, Solution *out);

/* "height % 32 == 0", "total == past + new". */
void constraint_print(const Graph *g, const Constraint *c, StrBuf *out);
/* "'conv1' (Conv)", "node 3 (Conv)"; "" for a place without a node. */
void solve_print_place(const Graph *g, LocId loc, StrBuf *out);
/* Notes of a diagnostic: the range of every symbol and every relation that is left, with the nodes
 * that they come from. */
void solve_note(const Graph *g, const Solution *s, Arena *arena, Diag *d);

#endif
