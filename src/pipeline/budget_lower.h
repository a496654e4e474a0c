/* The program that is being written, held against the budget of the session. */
#ifndef ETC_PIPELINE_BUDGET_LOWER_H
#define ETC_PIPELINE_BUDGET_LOWER_H

#include "pipeline/session.h"

/* file: the whole program, not yet under its name. maps: by method. Nothing without a budget.
 * Errors (reported): DIAG_BUDGET, DIAG_BUDGET_FILE; what atomic_file_view reports. */
Status session_check_budget(Session *s, AtomicFile *file, const InstructionMap *maps);

#endif
