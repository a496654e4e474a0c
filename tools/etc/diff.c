/* etc diff: what differs between two programs, two models or two textual graphs. Exit codes as
 * those of diff(1): 0 nothing, 1 something, 2 it could not be found out. */
#include "inspect.h"

#include "onnx/describe.h"
#include "pte/inspect.h"

/* read: standard input, which has been read, or NULL; so below. */
static EtcStatus model_sheet(Session *s, const Source *read, Sheet *sheet) {
  OnnxModel model;
  Status status =
      read ? session_open_onnx(s, read, &model) : onnx_model_open(&model, &s->sink, sheet->path);
  if (status != STATUS_OK)
    return session_status(status);
  sheet->kind = "ONNX model";
  model.linked_data = s->ctx.linked_data;
  status = onnx_sheet(&model, &s->sink, sheet);
  onnx_model_close(&model);
  return session_status(status);
}

static EtcStatus program_sheet(const CommandLine *line, const Source *read, Sheet *sheet) {
  PteProgram program;
  TRY(open_program(line, sheet->path, read, &program));
  sheet->kind = "program";
  program.readers = line->session->ctx.readers;
  pte_sheet(&program, sheet);
  pte_program_close(&program);
  return ETC_OK;
}

static EtcStatus read_sheet(const CommandLine *line, const char *path, Sheet *sheet) {
  Session *s = line->session;
  *sheet = (Sheet){.arena = &s->arena, .path = path, .seed = s->ctx.names.seed};
  const Source *read = NULL;
  if (path_is_stdin(path))
    TRY(read_stdin(line, &read));
  switch (read ? read->kind : source_kind(path)) {
  case SOURCE_ONNX:
    return model_sheet(s, read, sheet);
  case SOURCE_TEXT:
    return graphs_sheet(line, path, read, sheet);
  default:
    return program_sheet(line, read, sheet);
  }
}

static EtcStatus read_both(const CommandLine *line, Sheet sheets[2]) {
  TRY(expect_arguments(line, 2, "two programs or models"));
  TRY(command_line_apply(line));
  for (int i = 0; i < 2; i++)
    TRY(read_sheet(line, line->arguments[i], &sheets[i]));
  if (strcmp(sheets[0].kind, sheets[1].kind) == 0)
    return ETC_OK;
  return session_usage(line->session, "",
                       "compare two programs, two ONNX models or two textual graphs",
                       "'%s' (%s) and '%s' (%s) cannot be compared", sheets[0].path, sheets[0].kind,
                       sheets[1].path, sheets[1].kind);
}

static void print_diff(const CommandLine *line, const SheetDiff *d, StrBuf *out) {
  if (command_line_has(line, OPT_JSON)) {
    JsonWriter w;
    json_init(&w, out, true);
    sheet_diff_json(d, &w);
    strbuf_append_char(out, '\n');
  } else if (command_line_has(line, OPT_MARKDOWN)) {
    sheet_diff_markdown(d, out);
  } else {
    sheet_diff_text(d, line->session->sink.verbose, out);
  }
}

int cmd_diff(const CommandLine *line) {
  enum { EQUAL, DIFFERENT, TROUBLE };
  Sheet sheets[2];
  EtcStatus status = read_both(line, sheets);
  if (status != ETC_OK)
    return status == ETC_FAILED || status == ETC_USAGE ? TROUBLE : (int)status;
  SheetDiff d = sheet_compare(&sheets[0], &sheets[1]);
  StrBuf text = {0};
  print_diff(line, &d, &text);
  if (print_and_release(line, &text) != ETC_OK)
    return TROUBLE;
  return d.count ? DIFFERENT : EQUAL;
}
