/* etc inspect of a model that is no program yet. */
#ifndef ETC_TOOLS_INSPECT_H
#define ETC_TOOLS_INSPECT_H

#include "command.h"

/* What is in the ONNX model at path, whether it lowers, and how. ETC_OK also when it does not
 * lower: that is in the report. */
EtcStatus inspect_model(const CommandLine *line, const char *path, StrBuf *out);

#endif
