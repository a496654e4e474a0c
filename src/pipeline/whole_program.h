/* The program that is being written, looked at when it is whole and has not got its name yet: what
 * --size shows of it, and whether it is within --budget. */
#ifndef ETC_PIPELINE_WHOLE_PROGRAM_H
#define ETC_PIPELINE_WHOLE_PROGRAM_H

#include "pipeline/session.h"

/* Whether the program is to be looked at. */
bool session_wants_whole(const Session *s);
/* file: the whole program. maps: by method. Errors (reported): DIAG_BUDGET, DIAG_BUDGET_FILE; what
 * atomic_file_view reports. */
Status session_check_whole(Session *s, AtomicFile *file, const InstructionMap *maps);

#endif
