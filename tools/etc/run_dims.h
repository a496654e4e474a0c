/* Sizes of symbolic dimensions from the arrays of `etc run`. */
#ifndef ETC_TOOLS_RUN_DIMS_H
#define ETC_TOOLS_RUN_DIMS_H

#include "command.h"

/* Gives the session a --dim flag for each symbolic dimension of the ONNX model whose size
 * an --input shows and that the user has not given. Errors (reported): a model or an array that
 * cannot be read, an input that the model does not have. */
EtcStatus dims_from_arrays(const CommandLine *line, const Source *source);
/* The same from the first file of a data set: one sample at a time, where the first axis is
 * symbolic. */
EtcStatus dims_from_data(const CommandLine *line, const Source *source, const char *path);

#endif
