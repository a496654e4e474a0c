/* `etc why`: the life of an operator or value of the model, told from the trace of the graphs and
 * the facts. */
#ifndef ETC_PIPELINE_WHY_H
#define ETC_PIPELINE_WHY_H

#include "pipeline/session.h"

/* Before anything is read: the graphs of the session get traces. */
void session_trace(Session *s);
/* After the stage import: all that is left, without any file; the program is thrown away. */
Status session_lower_in_memory(Session *s);
/* After that: appends what became of the operator or value of that name, as text or one
 * JSON object. name: of an operator, "SCOPE/NAME" with the path of a subgraph or function, or of a
 * value: an operator's output, an input, an initializer. Errors (usage, reported): no such name,
 * with the nearest; several operators that it may mean, which are listed. */
Status session_why(Session *s, StrView name, bool json, StrBuf *out);
/* Appends what became of every operator of the model, as session_why of one. */
Status session_why_all(Session *s, bool json, StrBuf *out);

#endif
