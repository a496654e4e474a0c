/* What to try next, of which the summary (summary.h) says only what matters most. */
#ifndef ETC_PIPELINE_ADVICE_H
#define ETC_PIPELINE_ADVICE_H

#include "pipeline/session.h"
#include "support/json.h"

/* Writes texts into an array that is open: each an option or a change of the model with the reason,
 * from facts of this program. After session_emit. */
void session_advise(Session *s, JsonWriter *w);

#endif
