/* etc size: what a program takes of flash and of SRAM. */
#include "command.h"
#include "pte/size.h"

int cmd_size(const CommandLine *line) {
  Session *s = line->session;
  PteProgram program;
  EtcStatus status = expect_arguments(line, 1, "a program");
  if (status == ETC_OK)
    status = command_line_apply(line);
  if (status == ETC_OK)
    status = session_status(pte_program_open(&program, &s->sink, line->arguments[0]));
  if (status != ETC_OK)
    return (int)status;
  program.readers = s->ctx.readers;
  StrBuf text;
  strbuf_init(&text);
  PteSize size = pte_size(&program, NULL, &s->arena);
  if (command_line_has(line, OPT_JSON)) {
    JsonWriter w;
    json_init(&w, &text, true);
    json_open_object(&w);
    pte_size_json(&program, &size, &w);
    json_close_object(&w);
    strbuf_append_char(&text, '\n');
  } else {
    pte_size_text(&program, &size, s->sink.verbose, &text);
  }
  pte_program_close(&program);
  return print_and_release(line, &text);
}
