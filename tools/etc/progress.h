/* One line on the terminal that says what a long run is doing. */
#ifndef ETC_TOOLS_PROGRESS_H
#define ETC_TOOLS_PROGRESS_H

#include "command.h"

/* From half a second on, the stage, the pass and how much of the output is written, on a line of
 * standard error that is redrawn, makes way for messages and is gone in the end. Nothing where
 * standard error is no terminal that can do that, with --quiet and --diagnostics=json. */
void progress_start(const CommandLine *line);
void progress_stop(void);
/* Removes the line; safe in a signal handler. */
void progress_erase(void);

#endif
