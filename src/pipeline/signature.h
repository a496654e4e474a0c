/* What callers of a method rely on: its name and its inputs and outputs. The pass manager compares
 * it before and after each pass of a plug-in, which may replace the value that an output refers to,
 * but may change nothing that is seen from outside, nor say that the graph is of another level. */
#ifndef ETC_PIPELINE_SIGNATURE_H
#define ETC_PIPELINE_SIGNATURE_H

#include "ir/graph.h"

typedef struct SignatureItem {
  NameId name;
  Type type;
} SignatureItem;

typedef struct SignatureItems {
  const SignatureItem *items;
  uint32_t count;
} SignatureItems;

typedef struct Signature {
  NameId name;
  Level level;
  SignatureItems inputs, outputs;
} Signature;

/* In `arena`; dims are those of g. */
Signature signature_of(const Graph *g, Arena *arena);

/* How that of g differs, behind "left a graph that ", or NULL. Handles in g may be wrong. */
const char *signature_change(const Signature *before, const Graph *g, Arena *arena);

#endif
