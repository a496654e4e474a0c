/* Rows that are picked from a dequantized table. */
#ifndef ETC_PASSES_SOURCE_PICK_ROWS_H
#define ETC_PASSES_SOURCE_PICK_ROWS_H

#include "ir/builder.h"

/* Whether n picks entries of dim 0 of its first operand, by one list of indices. */
bool picks_rows(const Graph *g, NodeId n);
/* A rewrite rule: entries picked from a dequantized table, of which codes are picked instead. */
ValueId pick_codes(Builder *b, NodeId n);

#endif
