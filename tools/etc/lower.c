/* etc lower: the public interface of the library, driven by the command line. */
#include "command.h"
#include "progress.h"

int cmd_lower(const CommandLine *line) {
  EtcSession *session = line->session;
  EtcStatus status = command_line_apply(line);
  if (status == ETC_OK && line->argument_count > 1)
    status = expect_arguments(line, 1, "a model");
  progress_start(line);
  if (status == ETC_OK && line->argument_count)
    status = etc_session_add_method(session, "forward", line->arguments[0]);
  if (status == ETC_OK)
    status = etc_lower(session, command_line_value(line, OPT_OUTPUT));
  progress_stop();
  return (int)status;
}
