/* What --explain says about a backend's choice. */
#ifndef ETC_PASSES_TO_BACKEND_EXPLAIN_H
#define ETC_PASSES_TO_BACKEND_EXPLAIN_H

#include "backends/backend.h"
#include "passes/pass.h"

/* Tags are set and the graph is as the backend saw it. As messages: each node that stays with the
 * rule, the values that failed and advice, and how many there are. As JSON, where the options ask
 * for it: an object for every node, taken or left, and one with the numbers. */
void explain_delegation(PassContext *p, const Graph *g, const Backend *backend,
                        const Refusal *refusals);

/* The same of the code of one partition: which transposes are in it. */
void explain_code(PassContext *p, const Graph *g, const Backend *backend, uint32_t tag,
                  const DelegateCode *code);

#endif
