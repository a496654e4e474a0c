/* What `etc lower` says when a program was written: its size, what is in it, and what to do next
 * when that matters. The advice follows from figures of the program and is decided here only. */
#ifndef ETC_PIPELINE_SUMMARY_H
#define ETC_PIPELINE_SUMMARY_H

#include "pipeline/session.h"
#include "support/json.h"

/* Appends three lines at most, or one JSON object on a line where messages are JSON. After
 * session_emit. */
void session_summary(const Session *s, const char *output, StrBuf *out);
/* Writes the member "figures" into the current JSON object: those of all methods. After
 * session_emit.
 */
void session_figures_json(const Session *s, JsonWriter *w);
/* Appends what the summary has to say on what to do next; nothing when that is nothing. */
void session_advise_first(const Session *s, StrBuf *out);

/* The figures of the summary as lines for an entry of the cache, which session_summary_read takes
 * back for session_summary to print. False when they are not understood. */
void session_summary_write(const Session *s, StrBuf *out);
bool session_summary_read(Session *s, StrView text);

#endif
