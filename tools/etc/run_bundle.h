/* etc run of a bundle: its test sets instead of inputs on the command line. */
#ifndef ETC_TOOLS_RUN_BUNDLE_H
#define ETC_TOOLS_RUN_BUNDLE_H

#include "command.h"

/* Whether the file is a bundle, and no inputs are given. */
bool runs_test_sets(const CommandLine *line);
/* Runs the test sets of the methods (of --method, if given), prints a line for each, and reports
 * those whose outputs are not the expected ones (DIAG_RUN_BUNDLE). Exit status. */
int run_bundle(const CommandLine *line, const Source *source);

#endif
