/* etc inspect: what is in programs, models and textual graphs. */
#include "inspect.h"

#include "pte/bundle.h"
#include "pte/inspect.h"
#include "pte/kernels.h"
#include "support/text.h"

/* Delegate `number` of all methods, counted from 1; NULL when there are fewer. */
static const PteDelegate *find_delegate(const PteProgram *p, uint64_t number) {
  for (uint32_t i = 0; i < p->method_count; i++) {
    const PteMethod *m = &p->methods[i];
    if (number >= 1 && number <= m->delegate_count)
      return &m->delegates[number - 1];
    number -= m->delegate_count < number ? m->delegate_count : 0;
  }
  return NULL;
}

/* N=FILE */
static EtcStatus extract(Session *s, const PteProgram *p, const char *value) {
  const char *equals = strchr(value, '=');
  uint64_t number;
  if (!equals || !equals[1] ||
      !text_parse_u64((StrView){value, (size_t)(equals - value)}, &number) || number == 0)
    return session_usage(s, "--extract", "write --extract N=FILE, N from 1",
                         "'%s' does not give a number and a file", value);
  const PteDelegate *d = find_delegate(p, number);
  if (!d)
    return session_usage(s, "--extract", "they are counted from 1, over all methods",
                         "the program has no delegate %llu", (unsigned long long)number);
  AtomicFile file;
  Status status = atomic_file_open(&file, &s->arena, &s->sink, equals + 1);
  if (status == STATUS_OK) {
    atomic_file_write(&file, d->data, d->size);
    status = atomic_file_commit(&file, false);
  }
  return session_status(status);
}

static EtcStatus extract_all(const CommandLine *line, const PteProgram *p) {
  EtcStatus status = ETC_OK;
  for (uint32_t i = 0; i < line->option_count && status == ETC_OK; i++)
    if (line->options[i].row->id == OPT_EXTRACT)
      status = extract(line->session, p, line->options[i].value);
  return status;
}

static EtcStatus inspect_tensors(const CommandLine *line, const char *path, StrBuf *out) {
  Session *s = line->session;
  PtdFile file;
  TRY(session_status(ptd_open(&file, &s->sink, s->ctx.names.seed, path)));
  if (command_line_has(line, OPT_JSON))
    ptd_inspect_json(&file, out);
  else
    ptd_inspect(&file, s->sink.verbose, out);
  ptd_close(&file);
  return ETC_OK;
}

/* Of an open program, which it closes. */
static EtcStatus show_program(const CommandLine *line, PteProgram *program, StrBuf *out) {
  Session *s = line->session;
  program->readers = s->ctx.readers;
  if (command_line_has(line, OPT_JSON))
    pte_inspect_json(program, out);
  else
    pte_inspect_text(program, s->sink.verbose, out);
  EtcStatus status = extract_all(line, program);
  pte_program_close(program);
  return status;
}

/* {"test_sets": …, "program": what is shown of a .pte} */
static EtcStatus bundle_json(const CommandLine *line, const BundleFile *b, PteProgram *program,
                             StrBuf *out) {
  StrBuf shown = {0};
  JsonWriter w;
  EtcStatus status = show_program(line, program, &shown);
  json_init(&w, out, true);
  json_open_object(&w);
  json_key(&w, "test_sets");
  bundle_inspect_json(b, &w);
  json_key(&w, "program");
  json_raw(&w, (StrView){shown.data, shown.size});
  json_close_object(&w);
  strbuf_release(&shown);
  return status;
}

static EtcStatus inspect_bundle(const CommandLine *line, BundleFile *b, StrBuf *out) {
  Session *s = line->session;
  PteProgram program;
  EtcStatus status = session_status(
      pte_program_open_bytes(&program, &s->sink, b->file.path, b->program, b->program_size));
  if (status == ETC_OK && command_line_has(line, OPT_JSON)) {
    status = bundle_json(line, b, &program, out);
  } else if (status == ETC_OK) {
    bundle_inspect_text(b, s->sink.verbose, out);
    strbuf_append_char(out, '\n');
    status = show_program(line, &program, out);
  }
  bundle_close(b);
  return status;
}

/* read: as in inspect_model. */
static EtcStatus inspect_program(const CommandLine *line, const char *path, const Source *read,
                                 StrBuf *out) {
  Session *s = line->session;
  const MappedFile *bytes = read ? &read->mapped : NULL;
  PteProgram program;
  BundleFile bundle;
  if (command_line_has(line, OPT_DIM))
    return session_usage(s, "--dim", "give --dim when the .onnx is lowered or inspected",
                         "'%s' is not an ONNX model: its dimensions are fixed or bounded already",
                         path);
  if (read ? bundle_is(bytes->data, bytes->size) : bundle_is_file(path)) {
    Status opened =
        read ? bundle_open_bytes(&bundle, &s->sink, bytes->path, bytes->data, bytes->size)
             : bundle_open(&bundle, &s->sink, path);
    return opened == STATUS_OK ? inspect_bundle(line, &bundle, out) : session_status(opened);
  }
  TRY(open_program(line, path, read, &program));
  return show_program(line, &program, out);
}

static EtcStatus inspect_file(const CommandLine *line, const char *path, StrBuf *out) {
  const Source *read = NULL;
  if (path_is_stdin(path))
    TRY(read_stdin(line, &read));
  else if (sv_has_suffix(sv_from(path), SV(".ptd")))
    return inspect_tensors(line, path, out);
  switch (read ? read->kind : source_kind(path)) {
  case SOURCE_ONNX:
    return inspect_model(line, path, read, out);
  case SOURCE_TEXT:
    return inspect_graphs(line, path, read, out);
  default:
    return inspect_program(line, path, read, out);
  }
}

/* One list for all of the programs: a runtime is built once. */
static EtcStatus inspect_kernels(const CommandLine *line, const char *form, StrBuf *out) {
  Session *s = line->session;
  bool yaml = !*form || strcmp(form, "yaml") == 0;
  if (!yaml && strcmp(form, "cmake") != 0)
    return session_usage(s, "--kernels", "--kernels=yaml or --kernels=cmake",
                         "there is no list of kernels '%s'", form);
  if (command_line_has(line, OPT_JSON) || command_line_has(line, OPT_EXTRACT))
    return session_usage(s, "--kernels", "leave out --json and --extract",
                         "--kernels prints the list and nothing else");
  KernelList list;
  kernel_list_init(&list);
  EtcStatus status = ETC_OK;
  for (uint32_t i = 0; i < line->argument_count; i++) {
    PteProgram program;
    EtcStatus one = open_program(line, line->arguments[i], NULL, &program);
    if (one == ETC_OK) {
      kernel_list_add(&list, &program);
      pte_program_close(&program);
    }
    status = status == ETC_OK ? one : status;
  }
  if (status == ETC_OK)
    (yaml ? kernel_list_yaml : kernel_list_cmake)(&list, out);
  kernel_list_release(&list);
  return status;
}

/* Several files as JSON are one array. */
static EtcStatus inspect_all(const CommandLine *line, StrBuf *out) {
  EtcStatus status = ETC_OK;
  bool json = command_line_has(line, OPT_JSON), array = json && line->argument_count > 1;
  StrView before = array ? SV("[\n") : SV(""), between = json ? SV(",\n") : SV("\n");
  for (uint32_t i = 0; i < line->argument_count; i++) {
    StrBuf text = {0};
    EtcStatus one = inspect_file(line, line->arguments[i], &text);
    if (text.size) {
      strbuf_append(out, out->size ? between : before);
      strbuf_append(out, (StrView){text.data, text.size});
    }
    strbuf_release(&text);
    status = status == ETC_OK ? one : status;
  }
  if (array)
    strbuf_append(out, out->size ? SV("\n]\n") : SV("[]\n"));
  else if (json && out->size)
    strbuf_append_char(out, '\n');
  return status;
}

int cmd_inspect(const CommandLine *line) {
  TRY(expect_some(line, "a program or a model"));
  TRY(command_line_apply(line));
  if (line->argument_count > 1 && command_line_has(line, OPT_EXTRACT))
    TRY(session_usage(line->session, "--extract", "name one program", "--extract is for one file"));
  StrBuf text = {0};
  const char *kernels = command_line_value(line, OPT_KERNEL_LIST);
  EtcStatus status = kernels ? inspect_kernels(line, kernels, &text) : inspect_all(line, &text);
  int printed = print_and_release(line, &text);
  return status != ETC_OK ? (int)status : printed;
}
