/* See report.h. */
#include "pipeline/report.h"

#include <sys/stat.h>

#include "pipeline/settings.h"
#include "pipeline/summary.h"
#include "report/report.h"

static bool is_page(const char *path) { return sv_has_suffix(sv_from(path), SV(".html")); }

static bool is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static EtcStatus refuse_folder(Session *s, const char *path) {
  Diag *d = diag_begin(&s->sink, DIAG_FILE_IS_DIRECTORY, diag_file(path));
  diag_message(d, "the report '%s' is a folder", path);
  diag_hint(d, "name a file in it: --report %s/report.html", path);
  return session_status(diag_end(d));
}

EtcStatus session_set_report(Session *s, StrView value) {
  const char *path = session_path(s, value);
  if (is_folder(path))
    return refuse_folder(s, path);
  if (!is_page(path) && !sv_has_suffix(sv_from(path), SV(".json")))
    return session_usage(s, "--report", "write --report FILE.html or --report FILE.json",
                         "'" SV_FMT "' ends neither in .html nor in .json", SV_ARG(value));
  s->reports = pool_reserve(s->reports, &s->report_capacity, (uint64_t)s->report_count + 1,
                            sizeof *s->reports);
  s->reports[s->report_count++] = (SessionReport){.path = path};
  return ETC_OK;
}

EtcStatus session_check_reports(Session *s, const char *output) {
  for (uint32_t i = 0; i < s->report_count; i++) {
    const char *path = s->reports[i].path;
    for (uint32_t k = 0; k < i; k++)
      if (strcmp(path, s->reports[k].path) == 0)
        return session_usage(s, "--report", "give each report a name of its own",
                             "'%s' is named twice", path);
    if (strcmp(path, output) == 0)
      return session_usage(s, "--report", "give the report another name",
                           "program and report would be the same file");
  }
  return ETC_OK;
}

Status session_report_open(Session *s) {
  for (uint32_t i = 0; i < s->report_count; i++) {
    SessionReport *r = &s->reports[i];
    TRY(atomic_file_open(&r->file, &s->arena, &s->sink, r->path));
    r->open = true;
  }
  return STATUS_OK;
}

void session_report_stage(Session *s, StageId stage) {
  Program *p = &s->program;
  if (!s->report_count)
    return;
  for (uint32_t i = 0; i < p->method_count; i++) {
    Method *m = &p->methods[i];
    if (!m->report) {
      m->report = ARENA_NEW(&s->arena, ReportMethod);
      report_method_init(m->report);
    }
    report_stage(m->report, m->graph, stage_name(stage), stage_summary(stage));
  }
}

void session_report_release(Session *s) {
  for (uint32_t i = 0; i < s->program.method_count; i++)
    if (s->program.methods[i].report)
      report_method_release(s->program.methods[i].report);
  for (uint32_t i = 0; i < s->report_count; i++)
    if (s->reports[i].open)
      atomic_file_abandon(&s->reports[i].file);
  xfree(s->reports);
}

/* --- the document --- */

static void write_program(Session *s, const char *output, JsonWriter *w) {
  const EmitFigures *written = &s->program.written;
  json_key(w, "program");
  json_open_object(w);
  json_named_string(w, "file", path_is_stdin(output) ? SV("<stdout>") : sv_from(output));
  json_named_uint(w, "file_bytes", written->file_bytes);
  json_named_uint(w, "weight_bytes", written->weight_bytes);
  json_named_uint(w, "arena_bytes", written->arena_bytes);
  json_named_uint(w, "kernel_calls", written->kernel_calls);
  json_named_uint(w, "delegate_calls", written->delegate_calls);
  json_close_object(w);
}

static Status write_method(Method *m, JsonWriter *w) {
  Arena scratch;
  arena_init(&scratch);
  json_open_object(w);
  json_named_string(w, "name", method_name(m));
  json_named_string(w, "model", source_name(m->source));
  json_key(w, "options");
  json_open_array(w);
  for (uint32_t i = 0; i < m->options->said_count; i++)
    json_string(w, m->options->said[i].text);
  json_close_array(w);
  Status status = report_method(m->report, m->graph, w, &scratch);
  json_close_object(w);
  arena_release(&scratch);
  return status;
}

static Status write_document(Session *s, const char *output, StrBuf *out) {
  JsonWriter w;
  Status status = STATUS_OK;
  json_init(&w, out, false);
  json_open_object(&w);
  json_named_string(&w, "format", SV("etc-report"));
  json_named_uint(&w, "version", 1);
  json_named_string(&w, "etc", SV(ETC_VERSION));
  write_program(s, output, &w);
  session_advice_json(s, &w);
  json_key(&w, "methods");
  json_open_array(&w);
  for (uint32_t i = 0; i < s->program.method_count && status == STATUS_OK; i++)
    status = write_method(&s->program.methods[i], &w);
  json_close_array(&w);
  json_close_object(&w);
  strbuf_append_char(out, '\n');
  return status;
}

static Status write_file(SessionReport *r, const StrBuf *json) {
  StrBuf page;
  strbuf_init(&page);
  if (is_page(r->path))
    report_page((StrView){json->data, json->size}, &page);
  const StrBuf *text = page.size ? &page : json;
  atomic_file_write(&r->file, text->data, text->size);
  strbuf_release(&page);
  r->open = false;
  return atomic_file_commit(&r->file, false);
}

Status session_report_write(Session *s, const char *output) {
  if (!s->report_count)
    return STATUS_OK;
  StrBuf json;
  strbuf_init(&json);
  Status status = write_document(s, output, &json);
  for (uint32_t i = 0; i < s->report_count && status == STATUS_OK; i++)
    status = write_file(&s->reports[i], &json);
  strbuf_release(&json);
  return status;
}
