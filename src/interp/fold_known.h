/* The part of folding that works on symbolic elements; for fold.c, see fold.h. */
#ifndef ETC_INTERP_FOLD_KNOWN_H
#define ETC_INTERP_FOLD_KNOWN_H

#include "interp/fold.h"

/* Records the known elements of the first result; when all are numbers, gives a constant for it,
 * else 0. */
ValueId fold_known(Fold *f, Builder *b, NodeId n);
/* What the op of n makes of two elements; false where no expression says it, or the op does not
 * take two numbers (fold_element.c). */
bool fold_binary(Graph *g, NodeId n, SymInt a, SymInt b, SymInt *out);
/* Of abs, neg, sign, logical_not, and a conversion to bool. */
SymInt fold_unary(SymTable *t, OpId op, SymInt a);
/* The condition is 0 or 1. */
SymInt fold_choice(SymTable *t, SymInt condition, SymInt yes, SymInt no);

#endif
