/* The pipeline. A recipe says what a stage does, never in which order they run. */
#include <errno.h>
#include <sys/stat.h>

#include "ops/quantized.h"
#include "pipeline/budget.h"
#include "pipeline/bundles.h"
#include "pipeline/constant_methods.h"
#include "pipeline/explain.h"
#include "pipeline/max_drop.h"
#include "pipeline/report.h"
#include "pipeline/settings.h"
#include "pipeline/states.h"
#include "support/text.h"

typedef struct StageRow {
  const char *name;
  Level level; /* of graphs after it */
  Status (*run)(Session *s, StageId stage);
  const char *summary;
} StageRow;

static Status run_import(Session *s, StageId stage);
static Status run_passes(Session *s, StageId stage);
static Status run_source(Session *s, StageId stage);
static Status run_quantize(Session *s, StageId stage);
static Status run_to_executorch(Session *s, StageId stage);
static Status run_emit(Session *s, StageId stage);

static const StageRow stages[STAGE_COUNT] = {
    [STAGE_IMPORT] = {"import", LEVEL_ATEN, run_import,
                      "read the model into ATen ops, fold what shapes need"},
    [STAGE_SOURCE] = {"source", LEVEL_ATEN, run_source,
                      "recover what the exporter spelt out, simplify"},
    [STAGE_QUANTIZE] = {"quantize", LEVEL_ATEN, run_quantize, "annotate, observe, convert"},
    [STAGE_CORE] = {"core", LEVEL_CORE, run_passes, "decompose to the core ATen set"},
    [STAGE_EDGE] = {"edge", LEVEL_EDGE, run_passes, "element types that kernels take"},
    [STAGE_TO_BACKEND] = {"to_backend", LEVEL_EDGE, run_passes, "cut out what backends take"},
    [STAGE_TO_EXECUTORCH] = {"to_executorch", LEVEL_EXECUTORCH, run_to_executorch,
                             "views, out-variants, memory plan"},
    [STAGE_EMIT] = {"emit", LEVEL_EXECUTORCH, run_emit,
                    "check against the runtime's kernels, write the program"},
};

Level stage_level(StageId stage) { return stages[stage].level; }
const char *stage_name(StageId stage) { return stages[stage].name; }
const char *stage_summary(StageId stage) { return stages[stage].summary; }

StageId stage_find(StrView name) {
  unsigned i = 0;
  while (i < STAGE_COUNT && !sv_eq_str(name, stages[i].name))
    i++;
  return (StageId)i;
}

const char *stage_nearest(StrView name) {
  const char *names[STAGE_COUNT];
  for (unsigned i = 0; i < STAGE_COUNT; i++)
    names[i] = stages[i].name;
  return text_nearest(name, names, STAGE_COUNT);
}

/* --- what every stage has --- */

/* To the folder of artifacts; releases text. */
static Status write_text(Session *s, const char *name, StrBuf *text) {
  Status status = STATUS_OK;
  if (mkdir(s->artifacts, 0777) != 0 && errno != EEXIST)
    status = diag_report(&s->sink, DIAG_FILE_WRITE, diag_file(s->artifacts),
                         "cannot make folder '%s': %s", s->artifacts, strerror(errno));
  if (status == STATUS_OK)
    status =
        atomic_file_whole(&s->arena, &s->sink, arena_printf(&s->arena, "%s/%s", s->artifacts, name),
                          (StrView){strbuf_cstr(text), text->size});
  strbuf_release(text);
  return status;
}

static Status write_artifact(Session *s, StageId stage) {
  if (!s->artifacts)
    return STATUS_OK;
  StrBuf text = {0};
  session_print(s, (PrintOptions){.full_constants = true, .locations = true, .pipeline = true},
                &text);
  return write_text(s, arena_printf(&s->arena, "%02d-%s.etir", (int)stage + 1, stage_name(stage)),
                    &text);
}

/* Where it fails, the artifact of the stage fails as well. */
void session_keep_delegate(void *user, Graph *part) {
  Session *s = user;
  StrBuf text = {0};
  graph_print(part, (PrintOptions){.full_constants = true, .locations = true}, &text);
  (void)write_text(s,
                   arena_printf(&s->arena, "%02d-%s.delegate-%u.etir", STAGE_TO_BACKEND + 1,
                                stage_name(STAGE_TO_BACKEND), ++s->delegates_kept),
                   &text);
}

/* A textual graph goes on behind the stage that it says, or else at the first stage that raises its
 * level. */
static bool is_past(const Method *m, StageId stage) {
  const Graph *g = m->graph;
  if (m->source->kind == SOURCE_ONNX)
    return false;
  if (g->stage.size)
    return stage <= stage_find(g->stage); /* checked when it was read */
  bool delegates = stage == STAGE_TO_BACKEND && g->level == stage_level(stage);
  return g->level > LEVEL_ATEN && g->level >= stage_level(stage) && !delegates;
}

static Status no_preparation(Session *s, Method *m) {
  (void)s;
  (void)m;
  return STATUS_OK;
}

/* The passes of the stage on every method, each after `prepare`. */
static Status run_methods(Session *s, StageId stage, Status prepare(Session *s, Method *m)) {
  Status status = STATUS_OK;
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    Method *m = &s->program.methods[i];
    if (is_past(m, stage))
      continue;
    session_enter(s, m);
    Status one = prepare(s, m);
    if (one == STATUS_OK)
      one = manager_run_stage(&s->manager, m->graph, stage, &m->options->passes);
    session_explain(s);
    status = status == STATUS_OK ? one : status;
  }
  return status;
}

/* --- the stages --- */

static Status run_import(Session *s, StageId stage) {
  (void)stage;
  TRY(session_import(s, false));
  return bundles_prepare(s);
}

static Status run_passes(Session *s, StageId stage) {
  return run_methods(s, stage, no_preparation);
}

/* f32 where no constant has two dims and another type of floats. */
static DType weight_type(const Graph *g) {
  DType type = DTYPE_F32;
  for (ValueId v = 1; v < g->value_count; v++) {
    if (!value_is_const(g, v) || !value_cget(g, v)->use_count || value_rank(g, v) < 2 ||
        !dtype_is_float(value_dtype(g, v)))
      continue;
    type = value_dtype(g, v);
    if (type == DTYPE_F32)
      break;
  }
  return type;
}

/* Before passes expand the operators. */
static Status prepare_source(Session *s, Method *m) {
  (void)s;
  if (!m->options->pass.quantize)
    return STATUS_OK;
  for (FOR_NODES(m->graph, n))
    m->quantized_before |= is_quantize(m->graph, n) || is_dequantize(m->graph, n);
  m->weights = weight_type(m->graph);
  return STATUS_OK;
}

static Status run_source(Session *s, StageId stage) {
  return run_methods(s, stage, prepare_source);
}

static Status prepare_quantize(Session *s, Method *m) {
  TRY(session_begin_quantize(s, m));
  if (m->options->max_drop > 0)
    TRY(session_find_kept(s, m));
  else if (m->options->pass.quantize && options_samples(m->options) &&
           budget_limit(s->budget, BUDGET_SQNR, method_name(m)))
    TRY(session_measure_sqnr(s, m));
  return session_report_quantize(s, m);
}

static Status run_quantize(Session *s, StageId stage) {
  return run_methods(s, stage, prepare_quantize);
}

/* The run of `convert` on the method; NULL for a graph that is past it. */
static const PassRun *find_conversion(Session *s, const Method *m) {
  const Facts *f = &s->program.facts;
  for (uint32_t i = f->run_count; i > 0; i--) {
    const PassRun *run = &f->runs[i - 1];
    if (strcmp(run->row->name, "convert") == 0 && sv_eq(run->method, method_name(m)))
      return run;
  }
  return NULL;
}

static bool has_converted(const PassRun *run) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < run->stat_count; i++)
    count += run->stats[i].count;
  return count != 0;
}

static bool has_blocks(const PassRun *run) {
  for (uint32_t i = 0; i < run->stat_count; i++)
    if (strcmp(run->stats[i].name, "of blocks") == 0)
      return run->stats[i].count != 0;
  return false;
}

static void warn_nothing(Session *s, DiagPlace place, const Method *m) {
  Diag *d = diag_begin(&s->sink, DIAG_QUANTIZE_NOTHING, place);
  diag_message(d, "%s: the program computes as without --quantize",
               m->quantized_before ? "the model is quantized already"
                                   : "there is nothing to quantize");
  if (m->quantized_before)
    diag_hint(d, "leave --quantize out, or give the model in floats");
  else if (m->weights != DTYPE_F32)
    diag_hint(d, "weights of %s are not quantized: convert the model to float32",
              dtype_name(m->weights));
  else if (m->options->quantize.floats.size)
    diag_hint(d, "--quantize-config keeps nodes in floats: take some out of its list, or leave "
                 "--quantize out");
  else if (m->options->quantize.scheme != QUANT_INT8)
    diag_hint(d, "convolutions are quantized by --quantize int8 with --calibrate PATH; else leave "
                 "--quantize out");
  (void)diag_end(d);
}

/* --quantize that finds nothing to quantize. */
static void check_quantize_used(Session *s) {
  DiagPlace place = DIAG_NOWHERE;
  place.option = SV("--quantize");
  const Method *in_vain = NULL;
  bool quantized = false;
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    Method *m = &s->program.methods[i];
    const PassOptions *o = &m->options->pass;
    const PassRun *run = o->quantize ? find_conversion(s, m) : NULL;
    if (!run)
      continue;
    m->quantized_nothing = !has_converted(run);
    m->quantized_blocks = has_blocks(run);
    if (m->quantized_nothing && !(m->options->max_drop > 0)) { /* the summary has the latter */
      in_vain = m;
      continue;
    }
    quantized = true;
  }
  if (in_vain && !quantized)
    warn_nothing(s, place, in_vain);
}

static bool has_codes(const Graph *g) {
  for (ValueId v = 1; v < g->value_count; v++)
    if (value_is_const(g, v) && value_cget(g, v)->use_count &&
        dtype_in(value_dtype(g, v), DT(I8) | DT(U8)))
      return true;
  return false;
}

/* --quantize that gains nothing: portable kernels compute in floats, and no weight stayed in 8 bits
 * for each call to widen it. */
static void check_quantize_gains(Session *s) {
  DiagPlace place = DIAG_NOWHERE;
  place.option = SV("--quantize");
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    const Method *m = &s->program.methods[i];
    const PassOptions *o = &m->options->pass;
    const PassRun *run = o->quantize ? find_conversion(s, m) : NULL;
    if (run && has_converted(run) && !quantized_stands(o) && !has_codes(m->graph))
      (void)diag_report(&s->sink, DIAG_QUANTIZE_FLOATS, place,
                        "method '" SV_FMT "' gets no smaller: portable kernels compute in floats, "
                        "so its weights are stored as floats",
                        SV_ARG(method_name(m)));
  }
}

static Status run_to_executorch(Session *s, StageId stage) {
  check_quantize_used(s);
  TRY(run_passes(s, stage));
  if (s->manager.stopped)
    return STATUS_OK;
  check_quantize_gains(s);
  return states_place(s);
}

static Status run_emit(Session *s, StageId stage) {
  (void)stage;
  return session_emit(s, s->output);
}

/* An option of graphs that only counts up to a stage. */
static const struct {
  uint32_t bit;
  StageId stage;
  const char *name;
} last_stages[] = {
    {GIVEN_SCHEME, STAGE_QUANTIZE, "--quantize"},
    {GIVEN_BACKENDS, STAGE_TO_BACKEND, "--backend"},
    {GIVEN_PLAN, STAGE_TO_EXECUTORCH, "--plan"},
    {GIVEN_MEMORY, STAGE_TO_EXECUTORCH, "--memory"},
};

static void warn_past(Session *s, const Method *m, const char *option, StageId stage) {
  DiagPlace place = DIAG_NOWHERE;
  place.file = source_name(m->source);
  (void)diag_report(&s->sink, DIAG_OPTION_PAST, place,
                    "%s changes nothing: method '" SV_FMT "' is past the stage %s", option,
                    SV_ARG(method_name(m)), stage_name(stage));
}

/* Options that the user gave for stages that a textual graph went through already. */
static void check_past_options(Session *s, const Method *m) {
  for (uint32_t i = 0; i < s->layer_count; i++) {
    const Layer *layer = s->layers[i];
    if (layer->priority == PRIORITY_FILE ||
        (layer->method && !sv_eq_str(method_name(m), layer->method)))
      continue;
    for (size_t k = 0; k < COUNT_OF(last_stages); k++)
      if ((layer->options.given & last_stages[k].bit) && is_past(m, last_stages[k].stage))
        warn_past(s, m, last_stages[k].name, last_stages[k].stage);
    if (layer->options.value_count && m->source->kind != SOURCE_ONNX &&
        (layer->method || s->program.source_count == 1))
      warn_past(s, m, "--value", STAGE_IMPORT);
    for (uint32_t k = 0; k < layer->options.passes.count; k++)
      if (is_past(m, layer->options.passes.items[k].stage))
        warn_past(s, m, "--pass", layer->options.passes.items[k].stage);
  }
}

/* For who writes the graph as text: it goes on from there. */
static void record_stage(Method *m, StageId stage) {
  Graph *g = m->graph;
  const MethodOptions *o = m->options;
  if (is_past(m, stage))
    return;
  g->stage = sv_from(stages[stage].name);
  StrView *texts = ARENA_ARRAY(&g->arena, StrView, (size_t)o->said_count + 1);
  g->options = texts;
  g->option_count = 0;
  for (uint32_t i = 0; i < o->said_count; i++)
    if (o->said[i].of_graph)
      texts[g->option_count++] = o->said[i].text;
}

/* What can be known to be wrong when the models are read. */
static Status check_options(Session *s, StageId last) {
  for (uint32_t i = 0; i < s->program.method_count && last >= STAGE_TO_EXECUTORCH; i++)
    check_past_options(s, &s->program.methods[i]);
  return session_check_quantize(s);
}

Status session_run(Session *s, StageId last) {
  for (unsigned stage; (stage = s->program.next) <= last;) {
    if (stage == STAGE_SOURCE)
      TRY(check_options(s, last));
    TRY(stages[stage].run(s, (StageId)stage));
    if (s->manager.stopped)
      return STATUS_OK;
    for (uint32_t i = 0; i < s->program.method_count; i++)
      record_stage(&s->program.methods[i], (StageId)stage);
    s->program.next = (StageId)(stage + 1);
    if (stage == STAGE_EMIT)
      break;
    session_report_stage(s, (StageId)stage);
    TRY(write_artifact(s, (StageId)stage));
  }
  return STATUS_OK;
}
