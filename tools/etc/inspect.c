/* etc inspect: what is in programs, models and textual graphs. */
#include "inspect.h"

#include "pte/inspect.h"

/* What has another name is read as a program, whose reader says what it is instead. */
static bool is_named(const char *path, const char *suffix) {
  size_t size = strlen(path);
  size_t end = strlen(suffix);
  return size > end && strcmp(path + size - end, suffix) == 0;
}

static EtcStatus inspect_tensors(const CommandLine *line, const char *path, StrBuf *out) {
  Session *s = line->session;
  PtdFile file;
  EtcStatus status = session_status(ptd_open(&file, &s->sink, s->ctx.names.seed, path));
  if (status != ETC_OK)
    return status;
  ptd_inspect(&file, s->sink.verbose, out);
  ptd_close(&file);
  return ETC_OK;
}

/* read: as in inspect_model. */
static EtcStatus inspect_program(const CommandLine *line, const char *path, const Source *read,
                                 StrBuf *out) {
  Session *s = line->session;
  if (!read && is_named(path, ".ptd"))
    return inspect_tensors(line, path, out);
  PteProgram program;
  EtcStatus status =
      session_status(read ? pte_program_open_bytes(&program, &s->sink, read->mapped.path,
                                                   read->mapped.data, read->mapped.size)
                          : pte_program_open(&program, &s->sink, path));
  if (status != ETC_OK)
    return status;
  program.readers = s->ctx.readers;
  if (command_line_has(line, OPT_JSON))
    pte_inspect_json(&program, out);
  else
    pte_inspect_text(&program, s->sink.verbose, out);
  pte_program_close(&program);
  return ETC_OK;
}

static EtcStatus inspect_stdin(const CommandLine *line, StrBuf *out) {
  Session *s = line->session;
  EtcStatus status = s->program.source_count ? session_usage(s, "", "name it once",
                                                             "standard input can be read only once")
                                             : session_add_source(s, "forward", "-");
  if (status != ETC_OK)
    return status;
  const Source *read = s->program.sources[0];
  switch (read->kind) {
  case SOURCE_ONNX:
    return inspect_model(line, "-", read, out);
  case SOURCE_TEXT:
    return inspect_graphs(line, "-", read, out);
  default:
    return inspect_program(line, "-", read, out);
  }
}

static EtcStatus inspect_file(const CommandLine *line, const char *path, StrBuf *out) {
  if (strcmp(path, "-") == 0)
    return inspect_stdin(line, out);
  if (is_named(path, ".onnx"))
    return inspect_model(line, path, NULL, out);
  if (is_named(path, ".etir"))
    return inspect_graphs(line, path, NULL, out);
  return inspect_program(line, path, NULL, out);
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
    EtcStatus one = inspect_file(line, path, &text);
    status = status == ETC_OK ? one : status;
  }
  int printed = print_and_release(line, &text);
  return status != ETC_OK ? (int)status : printed;
}
