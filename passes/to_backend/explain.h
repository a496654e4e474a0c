/* What --explain says about a backend's choice. */
#ifndef ETC_PASSES_TO_BACKEND_EXPLAIN_H
#define ETC_PASSES_TO_BACKEND_EXPLAIN_H

#include "backends/backend.h"
#include "passes/pass.h"

/* Tags are set and the graph is as the backend saw it. As messages: how many nodes each rule
 * leaves out, and their share of the work; with -v each node that stays with the rule, the values
 * that failed and advice. As JSON, where the options ask
 * for it: an object for every node, taken or left, and one with the numbers. */
void explain_delegation(PassContext *p, const Graph *g, const Backend *backend,
                        const Refusal *refusals);

/* How many nodes of each op every backend takes, and how many are left. */
typedef struct ExplainTable {
  uint32_t *counts; /* by op and column; NULL: nobody wants to know */
  uint32_t columns; /* the backends, and the portable kernels */
} ExplainTable;
ExplainTable explain_table_begin(PassContext *p);
/* Counts the nodes with a tag for a backend. */
void explain_table_add(ExplainTable *t, const Graph *g, uint32_t backend);
/* Counts the nodes that are left, and prints the table. */
void explain_table_end(ExplainTable *t, PassContext *p, const Graph *g);

/* Says, where the sink shows it, that nothing is delegated since no backend was named. */
void explain_no_backend(PassContext *p, const Graph *g);

/* The same of the code of one partition, with -v and as JSON: which transposes are in it. */
void explain_code(PassContext *p, const Graph *g, const Backend *backend, uint32_t tag,
                  const DelegateCode *code);

#endif
