/* etc lower: the public interface of the library, driven by the command line. */
#include <stdio.h>

#include "command.h"
#include "pipeline/summary.h"
#include "progress.h"

/* Standard error stays JSON for those who asked for JSON there: the summary is, with messages. */
static void print_summary(const Session *s, const char *output) {
  StrBuf text = {0};
  bool other_json = s->explain_json || s->size_json || (s->time_passes && s->time_json);
  if (s->sink.quiet || (other_json && s->sink.format != DIAG_JSON))
    return;
  output = output ? output : s->output; /* of a recipe */
  session_summary(s, strcmp(output, "-") == 0 ? "<stdout>" : output, &text);
  fwrite(strbuf_cstr(&text), 1, text.size, stderr);
  strbuf_release(&text);
}

int cmd_lower(const CommandLine *line) {
  EtcSession *session = line->session;
  const char *output = command_line_value(line, OPT_OUTPUT);
  TRY(command_line_apply(line));
  if (line->argument_count > 1)
    return (int)session_usage(
        line->session, "",
        "a program of several models has several methods: --method NAME=MODEL.onnx",
        "'etc lower' takes one model; '%s' is another one", line->arguments[1]);
  EtcStatus status = ETC_OK;
  progress_start(line);
  if (line->argument_count)
    status = etc_session_add_method(session, "forward", line->arguments[0]);
  if (status == ETC_OK)
    status = etc_lower(session, output);
  progress_stop();
  if (status == ETC_OK)
    print_summary(session, output);
  return (int)status;
}
