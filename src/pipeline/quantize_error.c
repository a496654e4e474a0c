/* See quantize_error.h. */
#include "pipeline/quantize_error.h"

#include <inttypes.h>
#include <stdlib.h>

#include "passes/quantize/pairs.h"
#include "pipeline/settings.h"

typedef struct Measure {
  Session *s;
  Graph *g; /* quantized */
  Arena *arena;
  Compare compare;
  NodeId *nodes; /* by pair */
} Measure;

static Status compare(Measure *r, const char *data, QuantizeErrors *out) {
  PassProgress *progress = r->s->manager.options.progress;
  DataSet *set = NULL;
  TRY(dataset_open(&set, r->g, data, (DataShard){0, 1}, &r->s->sink));
  out->samples = dataset_count(set);
  r->compare.effects = true;
  Status status = compare_run(&r->compare, set, progress ? &progress->samples : NULL, &r->s->sink);
  out->effect_samples = r->compare.effect_samples;
  dataset_close(set);
  return status;
}

/* --- names --- */

static StrView name_text(const Measure *r, NameId name) {
  return name ? intern_get(&r->g->ctx->names, name) : (StrView){0};
}

/* The operator and the name of the model's node, or the op. */
static const char *node_text(const Measure *r, NodeId n) {
  if (!n)
    return "input";
  const Loc *loc = &r->g->locs[node_cget(r->g, n)->loc];
  StrView op = op_schema(node_cget(r->g, n)->op)->full;
  StrView type = loc->op_type ? name_text(r, loc->op_type) : op;
  StrView name = name_text(r, loc->name);
  return name.size ? arena_printf(r->arena, SV_FMT " '" SV_FMT "'", SV_ARG(type), SV_ARG(name))
                   : arena_strdup(r->arena, type);
}

/* --- rows --- */

static int compare_rows(const void *a, const void *b) {
  const QuantizeError *x = a, *y = b;
  int order = compare_damage(x->pair, y->pair);
  return order ? order : ORDER(x->order, y->order);
}

/* Pairs that are outputs come last, one for each output of floats. */
static void list_outputs(const Measure *r, uint32_t pair, QuantizeErrors *out) {
  const Graph *plain = r->compare.plain;
  for (uint32_t i = 0; i < graph_output_count(plain) && pair < r->compare.pair_count; i++) {
    if (!dtype_is_float(value_dtype(plain, graph_output(plain, i))))
      continue;
    StrView name = name_text(r, graph_output_name(plain, i));
    out->outputs[out->output_count++] = (QuantizeError){
        .value = name.size ? name : sv_from(arena_printf(r->arena, "output_%" PRIu32, i)),
        .node = "output",
        .pair = &r->compare.pairs[pair++]};
  }
}

static void list_rows(const Measure *r, QuantizeErrors *out) {
  const Compare *c = &r->compare;
  out->rows = ARENA_ARRAY(r->arena, QuantizeError, (size_t)c->pair_count + 1);
  out->outputs = ARENA_ARRAY(r->arena, QuantizeError, (size_t)c->pair_count + 1);
  for (uint32_t i = 0; i < c->pair_count && !c->pairs[i].output; i++) {
    NodeId n = r->nodes[i];
    out->rows[out->row_count++] =
        (QuantizeError){.value = name_text(r, value_cget(c->plain, c->pairs[i].plain)->name),
                        .node = node_text(r, n),
                        .loc = n ? node_cget(r->g, n)->loc : 0,
                        .order = i,
                        .pair = &c->pairs[i]};
  }
  list_outputs(r, out->row_count, out);
  qsort(out->rows, out->row_count, sizeof *out->rows, compare_rows);
}

static Status measure(Measure *r, const char *data, QuantizeErrors *out) {
  TRY(manager_prepare_quantize(&r->s->manager, r->g));
  const Graph *plain = graph_snapshot(r->g, r->arena);
  TRY(manager_quantize(&r->s->manager, r->g));
  find_pairs(plain, r->g, r->arena, &r->compare, &r->nodes);
  TRY(compare(r, data, out));
  list_rows(r, out);
  return STATUS_OK;
}

Status quantize_error_measure(Session *s, const Method *m, const char *data, Arena *arena,
                              QuantizeErrors *out) {
  Measure r = {.s = s, .g = m->graph, .arena = arena};
  const Graph *original = graph_snapshot(m->graph, arena);
  *out = (QuantizeErrors){0};
  manager_enter(&s->manager, STAGE_QUANTIZE);
  s->ctx.model_path = source_name(m->source);
  TRY(session_begin_quantize(s, m));
  Status status = measure(&r, data, out);
  graph_restore(m->graph, original);
  return status;
}
