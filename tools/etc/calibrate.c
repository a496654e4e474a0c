/* etc calibrate: its place on the command line is fixed; what it does is for a later version. */
#include "command.h"

int cmd_calibrate(const CommandLine *line) {
  Diag *d = diag_begin(&line->session->sink, DIAG_NOT_IMPLEMENTED, DIAG_NOWHERE);
  diag_message(d, "'etc calibrate' is not available yet");
  diag_hint(d, "models are lowered as they are; nothing was written");
  return (int)session_status(diag_end(d));
}
