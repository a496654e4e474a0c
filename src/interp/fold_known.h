/* The part of folding that works on symbolic elements; for fold.c, see fold.h. */
#ifndef ETC_INTERP_FOLD_KNOWN_H
#define ETC_INTERP_FOLD_KNOWN_H

#include "interp/fold.h"

/* Records the known elements of the first result; when all are numbers, gives a constant for it,
 * else 0. */
ValueId fold_known(Fold *f, Builder *b, NodeId n);

#endif
