/* etc quantize-report: what quantization costs, node by node, against the same model in floats. */
#include <inttypes.h>
#include <math.h>

#include "command.h"
#include "pipeline/quantize_error.h"
#include "pipeline/settings.h"
#include "progress.h"
#include "run_dims.h"
#include "support/json.h"

enum { ROWS = 10 };

typedef struct Report {
  Session *s;
  const char *data;
  Arena arena;
  QuantizeErrors errors;
} Report;

/* --- running --- */

static EtcStatus check_usage(const CommandLine *line, const char **data) {
  Session *s = line->session;
  const MethodOptions *own = session_own(s);
  TRY(expect_arguments(line, 1, "a model"));
  if (!(own->given & GIVEN_SCHEME))
    return session_usage(s, "--quantize", "add --quantize int8 and --calibrate DATA.npz",
                         "'etc quantize-report' needs a scheme");
  if (!quantize_calibrates(&own->quantize) && own->quantize.data)
    return session_usage(s, "--calibrate", "give the samples to compare with by --data",
                         "only int8 and int4-weight-only are calibrated");
  EtcStatus status = session_status(session_check_quantize(s));
  *data = command_line_value(line, OPT_DATA);
  if (!*data)
    *data = own->quantize.data;
  if (status == ETC_OK && !*data)
    status = session_usage(s, "--data", "add --data DATA.npz",
                           "'etc quantize-report' needs samples to compare with");
  return status;
}

static EtcStatus load(const CommandLine *line, const char *data, Method **method) {
  Session *s = line->session;
  TRY(session_add_source(s, "forward", line->arguments[0]));
  if (s->program.sources[0]->kind == SOURCE_PTE)
    return session_usage(s, "", "give the model that it was made from",
                         "'%s' is a program, not a model", line->arguments[0]);
  if (s->program.sources[0]->kind == SOURCE_ONNX)
    TRY(dims_from_data(line, s->program.sources[0], data));
  TRY(session_status(session_import(s, false)));
  TRY(session_status(session_run(s, STAGE_SOURCE)));
  TRY(session_status(session_method(s, SV(""), method)));
  if ((*method)->graph->level == LEVEL_ATEN)
    return ETC_OK;
  return session_usage(s, "", "give the graph as it is before the stage core",
                       "'%s' is past the stage quantize", line->arguments[0]);
}

/* --- printing --- */

/* Figures are rounded so that they are the same on all machines. */
static const char *decibel(Report *r, double x) {
  if (isnan(x))
    return "-";
  return isinf(x) ? (x > 0 ? "exact" : "-inf") : arena_printf(&r->arena, "%.1f", x + 0.0);
}

static const char *cosine(Report *r, const CompareSums *sums) {
  double x = compare_cosine(sums);
  return isnan(x) ? "-" : arena_printf(&r->arena, "%.4f", x);
}

static void print_text(Report *r, StrBuf *out) {
  const QuantizeErrors *e = &r->errors;
  uint32_t shown = r->s->sink.verbose || e->row_count < ROWS ? e->row_count : ROWS;
  if (e->row_count && e->effect_samples < e->samples)
    strbuf_printf(
        out, "output dB: each node alone, on %" PRIu64 " of %" PRIu64 " samples; the rest on all\n",
        e->effect_samples, e->samples);
  strbuf_printf(out, "%9s %7s %7s %8s  %s\n", "output dB", "own dB", "all dB", "cosine",
                e->row_count ? "value" : "no node is quantized");
  for (uint32_t i = 0; i < shown; i++) {
    const QuantizeError *row = &e->rows[i];
    strbuf_printf(out, "%9s %7s %7s %8s  " SV_FMT "%s%s\n", decibel(r, compare_effect(row->pair)),
                  decibel(r, compare_sqnr(&row->pair->own)),
                  decibel(r, compare_sqnr(&row->pair->all)), cosine(r, &row->pair->all),
                  SV_ARG(row->value), row->value.size ? ", " : "", row->node);
  }
  if (shown < e->row_count)
    strbuf_printf(out, "%" PRIu32 " more with -v\n", e->row_count - shown);
  for (uint32_t i = 0; i < e->output_count; i++) {
    const QuantizeError *output = &e->outputs[i];
    strbuf_printf(out, "%9s %7s %7s %8s  output " SV_FMT "\n", "", "",
                  decibel(r, compare_sqnr(&output->pair->all)), cosine(r, &output->pair->all),
                  SV_ARG(output->value));
  }
}

/* A number as in the table; null for what is no number, as "exact". */
static void json_figure(JsonWriter *w, const char *key, const char *text) {
  bool number = strspn(text, "-.0123456789") == strlen(text) && strpbrk(text, "0123456789");
  json_key(w, key);
  json_raw(w, number ? sv_from(text) : SV("null"));
}

static void json_all(Report *r, JsonWriter *w, const QuantizeError *e) {
  json_figure(w, "sqnr", decibel(r, compare_sqnr(&e->pair->all)));
  json_figure(w, "cosine", cosine(r, &e->pair->all));
}

static void print_json(Report *r, StrBuf *out) {
  const QuantizeErrors *e = &r->errors;
  JsonWriter w;
  json_init(&w, out, true);
  json_open_object(&w);
  json_named_uint(&w, "samples", e->samples);
  json_named_uint(&w, "output_sqnr_samples", e->effect_samples);
  json_named_array(&w, "values");
  for (uint32_t i = 0; i < e->row_count; i++) {
    const QuantizeError *row = &e->rows[i];
    json_open_object(&w);
    if (row->value.size)
      json_named_string(&w, "value", row->value);
    json_named_string(&w, "node", sv_from(row->node));
    json_figure(&w, "output_sqnr", decibel(r, compare_effect(row->pair)));
    json_figure(&w, "own_sqnr", decibel(r, compare_sqnr(&row->pair->own)));
    json_all(r, &w, row);
    json_close_object(&w);
  }
  json_close_array(&w);
  json_named_array(&w, "outputs");
  for (uint32_t i = 0; i < e->output_count; i++) {
    json_open_object(&w);
    json_named_string(&w, "output", e->outputs[i].value);
    json_all(r, &w, &e->outputs[i]);
    json_close_object(&w);
  }
  json_close_array(&w);
  json_close_object(&w);
  strbuf_append_char(out, '\n');
}

int cmd_quantize_report(const CommandLine *line) {
  Session *s = line->session;
  Report r = {.s = s};
  Method *method = NULL;
  StrBuf text = {0};
  TRY(command_line_apply(line));
  TRY(check_usage(line, &r.data));
  progress_start(line);
  EtcStatus status = load(line, r.data, &method);
  if (status == ETC_OK)
    status = session_status(quantize_error_measure(s, method, r.data, &r.arena, &r.errors));
  progress_stop();
  if (status != ETC_OK) {
    arena_release(&r.arena);
    return (int)status;
  }
  if (command_line_has(line, OPT_JSON))
    print_json(&r, &text);
  else
    print_text(&r, &text);
  arena_release(&r.arena);
  return print_and_release(line, &text);
}
