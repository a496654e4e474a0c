/* --report FILE: what src/report gathers of each method, with what the session knows of the
 * program: its figures, the options, and what to try next. */
#ifndef ETC_PIPELINE_REPORT_H
#define ETC_PIPELINE_REPORT_H

#include "pipeline/session.h"

/* --report FILE.html or FILE.json */
EtcStatus session_set_report(Session *s, StrView value);
/* Before the stage quantize: measures what it will cost, where there are samples. The graph is as
 * before. Nothing without --report. */
Status session_report_quantize(Session *s, Method *m);
/* After a stage: keeps the graphs as they are now. Nothing without --report. */
void session_report_stage(Session *s, StageId stage);
/* Before the program is written: opens the files, which appear under their names when they are
 * whole.
 */
Status session_report_open(Session *s);
/* After the program was written: writes the reports. */
Status session_report_write(Session *s, const char *output);
/* Forgets what was kept, and files that were opened only. */
void session_report_release(Session *s);

#endif
