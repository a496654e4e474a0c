/* etc inspect: what is in a program. */
#include "command.h"
#include "pte/inspect.h"

int cmd_inspect(const CommandLine *line) {
  EtcStatus status = expect_arguments(line, 1, "a program");
  if (status != ETC_OK)
    return (int)status;
  PteProgram program;
  status = session_status(pte_program_open(&program, &line->session->sink, line->arguments[0]));
  if (status != ETC_OK)
    return (int)status;
  StrBuf text;
  strbuf_init(&text);
  if (command_line_has(line, OPT_JSON))
    pte_inspect_json(&program, &text);
  else
    pte_inspect_text(&program, &text);
  pte_program_close(&program);
  return print_and_release(line, &text);
}
