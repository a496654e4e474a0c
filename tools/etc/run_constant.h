/* etc run of a constant method. */
#ifndef ETC_TOOLS_RUN_CONSTANT_H
#define ETC_TOOLS_RUN_CONSTANT_H

#include "command.h"
#include "pipeline/constant_methods.h"

/* Prints its values, or writes each to DIR/output_N.npy, text to DIR/output_N.txt. */
EtcStatus run_constant(const CommandLine *line, const ConstantMethod *m);

#endif
