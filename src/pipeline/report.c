/* See report.h. */
#include "pipeline/report.h"

#include <math.h>
#include <stdio.h>

#include "pipeline/advice.h"
#include "pipeline/bank_figures.h"
#include "pipeline/explain.h"
#include "pipeline/quantize_error.h"
#include "pipeline/refusals.h"
#include "pipeline/settings.h"
#include "pipeline/summary.h"
#include "report/report.h"

static bool is_page(const char *path) { return sv_has_suffix(sv_from(path), SV(".html")); }

static EtcStatus refuse_folder(Session *s, const char *path) {
  Diag *d = diag_begin(&s->sink, DIAG_FILE_IS_DIRECTORY, diag_file(path));
  diag_message(d, "the report '%s' is a folder", path);
  diag_hint(d, "name a file in it: --report %s/report.html", path);
  return session_status(diag_end(d));
}

EtcStatus session_set_report(Session *s, StrView value) {
  const char *path = arena_strdup(&s->arena, value);
  if (file_is_folder(path))
    return refuse_folder(s, path);
  if (!is_page(path) && !sv_has_suffix(sv_from(path), SV(".json")))
    return session_usage(s, "--report", "write --report FILE.html or --report FILE.json",
                         "'" SV_FMT "' ends neither in .html nor in .json", SV_ARG(value));
  POOL_PUSH(s->reports, s->report_count, s->report_capacity, (SessionReport){.path = path});
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

Status session_report_quantize(Session *s, Method *m) {
  const char *samples = options_samples(m->options);
  if (!s->report_count || !m->options->pass.quantize || !samples)
    return STATUS_OK;
  m->errors = ARENA_NEW(&s->arena, QuantizeErrors);
  return quantize_error_measure(s, m, samples, &s->arena, m->errors);
}

void session_report_stage(Session *s, StageId stage) {
  Program *p = &s->program;
  if (!s->report_count)
    return;
  for (uint32_t i = 0; i < p->method_count; i++) {
    Method *m = &p->methods[i];
    if (!m->report)
      m->report = ARENA_NEW(&s->arena, ReportMethod);
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

/* --- what backends left --- */

/* Rounded, so that it is the same on all machines; null for no noise or nothing to compare. */
static void write_figure(JsonWriter *w, const char *key, double x, int digits) {
  char text[64];
  snprintf(text, sizeof text, "%.*f", digits, x + 0.0);
  json_key(w, key);
  if (isfinite(x))
    json_raw(w, sv_from(text));
  else
    json_null(w);
}

static void write_refused(JsonWriter *w, const NodeFact *n) {
  json_open_object(w);
  json_named_string(w, "op", op_schema(n->op)->full);
  if (n->loc)
    json_named_uint(w, "place", n->loc);
  if (n->work)
    json_named_uint(w, "work", n->work);
  json_named_object(w, "values");
  explain_json_values(w, &n->refusal);
  json_close_object(w);
  json_close_object(w);
}

static void write_group(JsonWriter *w, const BackendFact *b, const RuleGroups *groups,
                        const RuleGroup *group) {
  json_open_object(w);
  json_named_string(w, "rule", sv_from(group->first->rule));
  json_named_string(w, "message", sv_from(group->first->message));
  json_named_string(w, "advice", sv_from(group->first->advice));
  json_named_uint(w, "work", group->work);
  json_named_array(w, "nodes");
  for (uint32_t i = group->head; i; i = groups->next[i - 1])
    write_refused(w, &b->nodes[i - 1]);
  json_close_array(w);
  json_close_object(w);
}

static void write_estimate(JsonWriter *w, const uint32_t *numbers, const DelegateFact *d) {
  uint32_t number = numbers[d->call];
  if (!number)
    return;
  json_open_object(w);
  json_named_uint(w, "delegate", number);
  json_named_uint(w, "nodes", d->node_count);
  json_named_uint(w, "transposed_bytes", d->transposed_bytes);
  if (d->cost.spent != 0 || d->cost.saved != 0) {
    write_figure(w, "spent_ns_estimate", d->cost.spent, 0);
    write_figure(w, "saved_ns_estimate", d->cost.saved, 0);
  }
  json_close_object(w);
}

static void write_backend(JsonWriter *w, const uint32_t *numbers, const BackendFact *b,
                          Arena *scratch) {
  RuleGroups groups = refusals_group(b, scratch);
  json_open_object(w);
  json_named_string(w, "backend", sv_from(b->backend->name));
  json_named_uint(w, "work", b->work);
  json_named_uint(w, "taken", groups.taken);
  json_named_uint(w, "left", groups.left);
  json_named_array(w, "delegates");
  for (uint32_t i = 0; i < b->delegate_count; i++)
    write_estimate(w, numbers, &b->delegates[i]);
  json_close_array(w);
  json_named_array(w, "refusals");
  for (uint32_t i = 0; i < groups.count; i++)
    write_group(w, b, &groups, &groups.items[i]);
  json_close_array(w);
  json_close_object(w);
}

static void write_backends(const Session *s, const Method *m, JsonWriter *w, Arena *scratch) {
  const Facts *f = &s->program.facts;
  const uint32_t *numbers = delegate_numbers(m->graph, scratch, NULL);
  json_named_array(w, "backends");
  for (uint32_t i = 0; i < f->delegation_count; i++)
    for (uint32_t k = 0; f->delegations[i].graph == m->graph && k < f->delegations[i].backend_count;
         k++)
      write_backend(w, numbers, &f->delegations[i].backends[k], scratch);
  json_close_array(w);
}

/* --- what quantization costs --- */

static void write_error(JsonWriter *w, const QuantizeError *e, bool output) {
  json_open_object(w);
  if (output || e->value.size)
    json_named_string(w, output ? "output" : "value", e->value);
  if (!output) {
    json_named_string(w, "node", sv_from(e->node));
    write_figure(w, "output_sqnr", compare_effect(e->pair), 1);
    write_figure(w, "own_sqnr", compare_sqnr(&e->pair->own), 1);
  }
  if (e->loc)
    json_named_uint(w, "place", e->loc);
  write_figure(w, "sqnr", compare_sqnr(&e->pair->all), 1);
  write_figure(w, "cosine", compare_cosine(&e->pair->all), 4);
  json_close_object(w);
}

static void write_errors(JsonWriter *w, const QuantizeErrors *e) {
  json_named_object(w, "quantization");
  json_named_uint(w, "samples", e->samples);
  json_named_array(w, "values");
  for (uint32_t i = 0; i < e->row_count; i++)
    write_error(w, &e->rows[i], false);
  json_close_array(w);
  json_named_array(w, "outputs");
  for (uint32_t i = 0; i < e->output_count; i++)
    write_error(w, &e->outputs[i], true);
  json_close_array(w);
  json_close_object(w);
}

/* --- the document --- */

static void write_program(Session *s, const char *output, JsonWriter *w) {
  const EmitFigures *written = &s->program.written;
  BankFigures banks = {0};
  json_named_object(w, "program");
  json_named_string(w, "file", path_is_stdin(output) ? SV("<stdout>") : sv_from(output));
  json_named_uint(w, "file_bytes", written->file_bytes);
  json_named_uint(w, "weight_bytes", written->weight_bytes);
  json_named_uint(w, "arena_bytes", written->arena_bytes);
  for (uint32_t i = 0; i < s->program.method_count; i++)
    bank_figures_add(&banks, s->program.methods[i].graph);
  bank_figures_json(&banks, w);
  json_named_uint(w, "kernel_calls", written->kernel_calls);
  json_named_uint(w, "delegate_calls", written->delegate_calls);
  json_close_object(w);
}

static Status write_method(const Session *s, Method *m, JsonWriter *w) {
  Arena scratch = {0};
  json_open_object(w);
  json_named_string(w, "name", method_name(m));
  json_named_string(w, "model", source_name(m->source));
  json_named_array(w, "options");
  for (uint32_t i = 0; i < m->options->said_count; i++)
    json_string(w, m->options->said[i].text);
  json_close_array(w);
  write_backends(s, m, w, &scratch);
  if (m->errors)
    write_errors(w, m->errors);
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
  session_figures_json(s, &w);
  json_named_array(&w, "next");
  session_advise(s, &w);
  json_close_array(&w);
  json_named_array(&w, "methods");
  for (uint32_t i = 0; i < s->program.method_count && status == STATUS_OK; i++)
    status = write_method(s, &s->program.methods[i], &w);
  json_close_array(&w);
  json_close_object(&w);
  strbuf_append_char(out, '\n');
  return status;
}

static Status write_file(SessionReport *r, const StrBuf *json) {
  StrBuf page = {0};
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
  StrBuf json = {0};
  Status status = write_document(s, output, &json);
  for (uint32_t i = 0; i < s->report_count && status == STATUS_OK; i++)
    status = write_file(&s->reports[i], &json);
  strbuf_release(&json);
  return status;
}
