/* etc inspect: what is in programs and models. */
#include "inspect.h"

#include "pte/inspect.h"

static EtcStatus inspect_program(const CommandLine *line, const char *path, StrBuf *out) {
  Session *s = line->session;
  PteProgram program;
  EtcStatus status = session_status(pte_program_open(&program, &s->sink, path));
  if (status != ETC_OK)
    return status;
  if (command_line_has(line, OPT_JSON))
    pte_inspect_json(&program, out);
  else
    pte_inspect_text(&program, s->sink.verbose, out);
  pte_program_close(&program);
  return ETC_OK;
}

/* What has another name is read as a program, whose reader says what it is instead. */
static bool is_model(const char *path) {
  size_t size = strlen(path);
  return size > 5 && strcmp(path + size - 5, ".onnx") == 0;
}

int cmd_inspect(const CommandLine *line) {
  EtcStatus status = expect_some(line, "a program or a model");
  if (status == ETC_OK)
    status = command_line_apply(line);
  if (status != ETC_OK)
    return (int)status;
  StrBuf text;
  strbuf_init(&text);
  for (uint32_t i = 0; i < line->argument_count; i++) {
    const char *path = line->arguments[i];
    if (i && text.size && !command_line_has(line, OPT_JSON))
      strbuf_append_char(&text, '\n');
    EtcStatus one =
        is_model(path) ? inspect_model(line, path, &text) : inspect_program(line, path, &text);
    status = status == ETC_OK ? one : status;
  }
  int printed = print_and_release(line, &text);
  return status != ETC_OK ? (int)status : printed;
}
