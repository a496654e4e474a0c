/* etc quantize-report: what quantization costs, node by node, against the same model in floats. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "command.h"
#include "passes/quantize/pairs.h"
#include "pipeline/settings.h"
#include "progress.h"
#include "run_dims.h"
#include "support/json.h"

enum { ROWS = 10 };

typedef struct Report {
  Session *s;
  const char *data;
  const Graph *g;
  Arena arena;
  Compare compare;
  NodeId *nodes; /* by pair */
  uint32_t *order;
  uint32_t rows; /* pairs that are no outputs; they come first */
  uint64_t samples;
} Report;

/* --- running --- */

static EtcStatus check_usage(const CommandLine *line, const char **data) {
  Session *s = line->session;
  const MethodOptions *own = session_own(s);
  EtcStatus status = expect_arguments(line, 1, "a model");
  if (status != ETC_OK)
    return status;
  if (!(own->given & GIVEN_SCHEME))
    return session_usage(s, "--quantize", "add --quantize int8 and --calibrate DATA.npz",
                         "'etc quantize-report' needs a scheme");
  if (own->quantize.scheme != QUANT_INT8 && own->quantize.data)
    return session_usage(s, "--calibrate", "give the samples to compare with by --data",
                         "only int8 needs the ranges of values");
  status = session_status(session_check_quantize(s));
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
  EtcStatus status = session_add_source(s, "forward", line->arguments[0]);
  if (status == ETC_OK && s->program.sources[0]->kind == SOURCE_PTE)
    status = session_usage(s, "", "give the model that it was made from",
                           "'%s' is a program, not a model", line->arguments[0]);
  if (status == ETC_OK && s->program.sources[0]->kind == SOURCE_ONNX)
    status = dims_from_data(line, s->program.sources[0], data);
  if (status == ETC_OK)
    status = session_status(session_import(s, false));
  if (status == ETC_OK)
    status = session_status(session_run(s, STAGE_SOURCE));
  if (status == ETC_OK)
    status = session_status(session_method(s, SV(""), method));
  if (status == ETC_OK && (*method)->graph->level != LEVEL_ATEN)
    status = session_usage(s, "", "give the graph as it is before the stage core",
                           "'%s' is past the stage quantize", line->arguments[0]);
  return status;
}

static Status run_passes(Report *r, Graph *g, const char *const *names, size_t count) {
  for (size_t i = 0; i < count; i++)
    TRY(manager_run_pass(&r->s->manager, g, pass_find(sv_from(names[i]))));
  return STATUS_OK;
}

static Status compare(Report *r) {
  PassProgress *progress = r->s->manager.options.progress;
  DataSet *set = NULL;
  TRY(dataset_open(&set, r->g, r->data, (DataShard){0, 1}, &r->s->sink));
  r->samples = dataset_count(set);
  Status status = compare_run(&r->compare, set, progress ? &progress->samples : NULL, &r->s->sink);
  dataset_close(set);
  return status;
}

static Status measure(Report *r, const Method *m) {
  static const char *const before[] = {"spell_linear", "equalize"};
  static const char *const after[] = {"annotate", "observe", "convert"};
  Session *s = r->s;
  Graph *g = m->graph;
  manager_enter(&s->manager, STAGE_QUANTIZE);
  s->ctx.model_path = source_name(m->source);
  TRY(session_begin_quantize(s, m));
  TRY(run_passes(r, g, before, COUNT_OF(before)));
  const Graph *plain = graph_snapshot(g, &r->arena);
  TRY(run_passes(r, g, after, COUNT_OF(after)));
  r->g = g;
  find_pairs(plain, g, &r->arena, &r->compare, &r->nodes);
  return compare(r);
}

/* --- order --- */

static double damage(const ComparePair *pair) {
  double own = compare_sqnr(&pair->own);
  return isnan(own) ? INFINITY : own;
}

static bool comes_before(const Report *r, uint32_t a, uint32_t b) {
  double x = damage(&r->compare.pairs[a]), y = damage(&r->compare.pairs[b]);
  return x < y || (x == y && a < b);
}

/* Sinks item i of a heap whose root is the last. */
static void sift(Report *r, uint32_t i, uint32_t count) {
  for (uint32_t child = 2 * i + 1; child < count; i = child, child = 2 * i + 1) {
    if (child + 1 < count && comes_before(r, r->order[child], r->order[child + 1]))
      child++;
    if (!comes_before(r, r->order[i], r->order[child]))
      return;
    uint32_t kept = r->order[i];
    r->order[i] = r->order[child];
    r->order[child] = kept;
  }
}

static void sort_rows(Report *r) {
  while (r->rows < r->compare.pair_count && !r->compare.pairs[r->rows].output)
    r->rows++;
  r->order = ARENA_ARRAY(&r->arena, uint32_t, (size_t)r->rows + 1);
  for (uint32_t i = 0; i < r->rows; i++)
    r->order[i] = i;
  for (uint32_t i = r->rows / 2; i > 0; i--)
    sift(r, i - 1, r->rows);
  for (uint32_t end = r->rows; end > 1; end--) {
    uint32_t last = r->order[0];
    r->order[0] = r->order[end - 1];
    r->order[end - 1] = last;
    sift(r, 0, end - 1);
  }
}

/* --- names --- */

static StrView name_text(const Report *r, NameId name) {
  return name ? intern_get(&r->g->ctx->names, name) : (StrView){0};
}

/* The operator and the name of the model's node, or the op. */
static const char *node_text(Report *r, uint32_t pair) {
  NodeId n = r->nodes[pair];
  if (!n)
    return "input";
  const Loc *loc = &r->g->locs[node_cget(r->g, n)->loc];
  StrView op = op_schema(node_cget(r->g, n)->op)->full;
  StrView type = loc->op_type ? name_text(r, loc->op_type) : op;
  StrView name = name_text(r, loc->name);
  return name.size ? arena_printf(&r->arena, SV_FMT " '" SV_FMT "'", SV_ARG(type), SV_ARG(name))
                   : arena_strdup(&r->arena, type);
}

/* Empty for what a pass made. */
static StrView value_text(const Report *r, uint32_t pair) {
  ValueId v = r->compare.pairs[pair].plain;
  return name_text(r, value_cget(r->compare.plain, v)->name);
}

static StrView output_text(Report *r, uint32_t pair) {
  uint32_t seen = r->rows;
  for (uint32_t i = 0; i < graph_output_count(r->compare.plain); i++) {
    DType dtype = value_dtype(r->compare.plain, graph_output(r->compare.plain, i));
    if (!dtype_is_float(dtype) || seen++ != pair)
      continue;
    StrView name = name_text(r, graph_output_name(r->compare.plain, i));
    return name.size ? name : sv_from(arena_printf(&r->arena, "output_%" PRIu32, i));
  }
  return SV("");
}

/* --- printing --- */

/* Figures are rounded so that they are the same on all machines. */
static const char *decibel(Report *r, const CompareSums *sums) {
  double x = compare_sqnr(sums);
  if (isnan(x))
    return "-";
  return isinf(x) ? (x > 0 ? "exact" : "-inf") : arena_printf(&r->arena, "%.1f", x + 0.0);
}

static const char *cosine(Report *r, const CompareSums *sums) {
  double x = compare_cosine(sums);
  return isnan(x) ? "-" : arena_printf(&r->arena, "%.4f", x);
}

static void print_text(Report *r, StrBuf *out) {
  uint32_t shown = r->s->sink.verbose || r->rows < ROWS ? r->rows : ROWS;
  strbuf_printf(out, "%7s %7s %8s  %s\n", "own dB", "all dB", "cosine",
                r->rows ? "value" : "no node is quantized");
  for (uint32_t i = 0; i < shown; i++) {
    uint32_t at = r->order[i];
    const ComparePair *pair = &r->compare.pairs[at];
    StrView value = value_text(r, at);
    strbuf_printf(out, "%7s %7s %8s  " SV_FMT "%s%s\n", decibel(r, &pair->own),
                  decibel(r, &pair->all), cosine(r, &pair->all), SV_ARG(value),
                  value.size ? ", " : "", node_text(r, at));
  }
  if (shown < r->rows)
    strbuf_printf(out, "%" PRIu32 " more with -v\n", r->rows - shown);
  for (uint32_t i = r->rows; i < r->compare.pair_count; i++) {
    const CompareSums *all = &r->compare.pairs[i].all;
    StrView name = output_text(r, i);
    strbuf_printf(out, "%7s %7s %8s  output " SV_FMT "\n", "", decibel(r, all), cosine(r, all),
                  SV_ARG(name));
  }
}

/* A number as in the table; null for what is no number, as "exact". */
static void json_figure(JsonWriter *w, const char *key, const char *text) {
  bool number = strspn(text, "-.0123456789") == strlen(text) && strpbrk(text, "0123456789");
  json_key(w, key);
  json_raw(w, number ? sv_from(text) : SV("null"));
}

static void json_all(Report *r, JsonWriter *w, const ComparePair *pair) {
  json_figure(w, "sqnr", decibel(r, &pair->all));
  json_figure(w, "cosine", cosine(r, &pair->all));
}

static void print_json(Report *r, StrBuf *out) {
  JsonWriter w;
  json_init(&w, out, true);
  json_open_object(&w);
  json_named_uint(&w, "samples", r->samples);
  json_key(&w, "values");
  json_open_array(&w);
  for (uint32_t i = 0; i < r->rows; i++) {
    const ComparePair *pair = &r->compare.pairs[r->order[i]];
    json_open_object(&w);
    if (value_text(r, r->order[i]).size)
      json_named_string(&w, "value", value_text(r, r->order[i]));
    json_named_string(&w, "node", sv_from(node_text(r, r->order[i])));
    json_figure(&w, "own_sqnr", decibel(r, &pair->own));
    json_all(r, &w, pair);
    json_close_object(&w);
  }
  json_close_array(&w);
  json_key(&w, "outputs");
  json_open_array(&w);
  for (uint32_t i = r->rows; i < r->compare.pair_count; i++) {
    json_open_object(&w);
    json_named_string(&w, "output", output_text(r, i));
    json_all(r, &w, &r->compare.pairs[i]);
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
  StrBuf text;
  EtcStatus status = command_line_apply(line);
  if (status == ETC_OK)
    status = check_usage(line, &r.data);
  if (status != ETC_OK)
    return (int)status;
  progress_start(line);
  status = load(line, r.data, &method);
  arena_init(&r.arena);
  if (status == ETC_OK)
    status = session_status(measure(&r, method));
  progress_stop();
  if (status != ETC_OK) {
    arena_release(&r.arena);
    return (int)status;
  }
  strbuf_init(&text);
  sort_rows(&r);
  if (command_line_has(line, OPT_JSON))
    print_json(&r, &text);
  else
    print_text(&r, &text);
  arena_release(&r.arena);
  return print_and_release(line, &text);
}
