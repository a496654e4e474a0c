/* etc inspect of what is no program yet. */
#ifndef ETC_TOOLS_INSPECT_H
#define ETC_TOOLS_INSPECT_H

#include "command.h"
#include "support/sheet.h"

/* What is in the ONNX model at path, whether it lowers, and how. ETC_OK also when it does not
 * lower: that is in the report. read: standard input, which has been read, or NULL. */
EtcStatus inspect_model(const CommandLine *line, const char *path, const Source *read, StrBuf *out);
/* What is in the textual graphs at path, or in what has been read. */
EtcStatus inspect_graphs(const CommandLine *line, const char *path, const Source *read,
                         StrBuf *out);
/* Adds what is known of the textual graphs at path, or in what has been read, to be compared with
 * others. */
EtcStatus graphs_sheet(const CommandLine *line, const char *path, const Source *read, Sheet *sheet);

#endif
