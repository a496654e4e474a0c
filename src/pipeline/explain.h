/* What --explain says about the choices of backends, from the facts (passes/facts.h). */
#ifndef ETC_PIPELINE_EXPLAIN_H
#define ETC_PIPELINE_EXPLAIN_H

#include "pipeline/session.h"

/* Tells the delegations that were recorded since the last call, all of the method that was entered
 * last (session_enter). As messages, where the sink shows them: how many nodes each rule leaves
 * out, and their share of the work; with -v each node that stays, with the rule, the values that
 * failed and advice, and the transposes in each delegate. To the output, where that was asked for:
 * as JSON an object for every node, taken or left, one with the numbers, and one for each delegate;
 * or a table of ops. */
void session_explain(Session *s);

/* "rank=7 most=6"; nothing for none. */
void explain_append_values(StrBuf *out, const Refusal *r);
/* Writes the same members into the current JSON object. */
void explain_json_values(JsonWriter *w, const Refusal *r);

#endif
