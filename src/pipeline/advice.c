/* See advice.h. */
#include "pipeline/advice.h"

#include <inttypes.h>

#include "ops/work.h"
#include "passes/executorch/liveness.h"
#include "pipeline/quantize_error.h"
#include "pipeline/refusals.h"
#include "pipeline/summary.h"

enum {
  RULES_MAX = 3,
  LAYERS_MAX = 3,
  MANY_BYTES = 1 << 20,
  SHARE = 4 /* inputs and outputs are worth a word from a quarter of the arena on */
};
#define LOW_SQNR 20.0 /* dB: a tenth of the signal is noise */

/* A piece of advice in the making, and where it goes. */
typedef struct Advice {
  JsonWriter *w;
  StrBuf text;
} Advice;

static void say(Advice *a) {
  if (a->text.size)
    json_string(a->w, (StrView){a->text.data, a->text.size});
  strbuf_clear(&a->text);
}

static void append_name(StrBuf *out, StrView name) { strbuf_append_within(out, "'", name, "'"); }

/* --- what backends left --- */

static void advise_rules(const BackendFact *b, Advice *a) {
  Arena arena = {0};
  RuleGroups groups = refusals_group(b, &arena);
  for (uint32_t i = 0; i < groups.count && i < RULES_MAX; i++) {
    const RuleGroup *g = &groups.items[i];
    if (!g->first->advice[0])
      continue;
    strbuf_printf(&a->text, "%s leaves %" PRIu32 " node%s (%s): ", b->backend->name, g->count,
                  g->count == 1 ? "" : "s", g->first->rule);
    strbuf_printf(&a->text, "%s; %s", g->first->message, g->first->advice);
    say(a);
  }
  arena_release(&arena);
}

/* --- memory --- */

/* Whether an input has a dim of that name. */
static bool has_dim(const Graph *g, StrView name) {
  StrBuf text = {0};
  bool found = false;
  for (uint32_t i = 0; i < g->input_count; i++)
    for (uint32_t k = 0; k < value_rank(g, g->inputs[i]); k++) {
      strbuf_clear(&text);
      sym_print_named(&g->syms, value_dim(g, g->inputs[i], k), &text);
      found |= sv_eq_str(name, strbuf_cstr(&text));
    }
  strbuf_release(&text);
  return found;
}

static void advise_dims(const Method *m, Advice *a) {
  const MethodOptions *o = m->options;
  for (uint32_t i = 0; i < o->dim_count; i++) {
    const DimFlag *d = &o->dims[i].flag;
    if (d->same.size || d->lo >= d->hi || !has_dim(m->graph, d->name))
      continue;
    strbuf_append(&a->text, SV("memory is planned for "));
    append_name(&a->text, d->name);
    strbuf_printf(&a->text, " = %" PRId64 ": --dim ", d->hi);
    strbuf_append_printable(&a->text, d->name);
    strbuf_append(&a->text, SV("=N needs less where all calls have one smaller size"));
    say(a);
  }
}

static uint64_t arena_bytes(const Graph *g) {
  uint64_t bytes = 0;
  for (uint32_t i = 1; i < g->arena_size_count; i++)
    bytes = work_plus(bytes, g->arena_sizes[i]);
  return bytes;
}

static uint64_t planned(const Graph *g, ValueId v) {
  return value_cget(g, v)->storage ? type_bytes_upper(g, value_type(g, v)) : 0;
}

static void advise_ends(const Graph *g, Advice *a) {
  uint64_t ends = 0, arena = arena_bytes(g);
  for (uint32_t i = 0; i < g->input_count; i++)
    ends = work_plus(ends, planned(g, g->inputs[i]));
  for (uint32_t i = 0; i < graph_output_count(g); i++)
    ends = work_plus(ends, planned(g, graph_output(g, i)));
  if (arena < MANY_BYTES || ends < arena / SHARE)
    return;
  strbuf_append(&a->text, SV("inputs and outputs have "));
  strbuf_append_bytes(&a->text, ends);
  strbuf_append(&a->text, SV(" in the arena of "));
  strbuf_append_bytes(&a->text, arena);
  strbuf_append(&a->text,
                SV(": where the host has memory for them, --plan greedy:inputs=no,outputs=no "
                   "leaves them out"));
  say(a);
}

static void advise_planner(const Method *m, Advice *a) {
  const Planner *planner = m->options->pass.planner;
  Liveness live;
  Arena arena = {0};
  if (!planner || strcmp(planner->name, "naive") != 0)
    return;
  uint64_t bytes = arena_bytes(m->graph), least = bytes;
  if (liveness_compute(m->graph, &arena, (LivenessOptions){.in_place = true}, &live) == STATUS_OK)
    least = liveness_bound(&live, PLAN_ALIGNMENT, &arena);
  if (least < bytes) {
    strbuf_append(&a->text, SV("no two tensors share memory: --plan greedy needs less than "));
    strbuf_append_bytes(&a->text, bytes);
    strbuf_append(&a->text, SV(", at least "));
    strbuf_append_bytes(&a->text, least);
    say(a);
  }
  arena_release(&arena);
}

/* --- quantization --- */

static uint64_t float_bytes(const Graph *g) {
  Arena arena = {0};
  uint64_t bytes = 0;
  bool *seen = ARENA_ARRAY(&arena, bool, g->value_count);
  for (FOR_NODES(g, n))
    FOR_OPERANDS(g, n, v, {
      if (v && value_is_const(g, v) && !seen[v] && value_dtype(g, v) == DTYPE_F32)
        bytes = work_plus(bytes, value_lazy_constant(g, v)->size);
      seen[v] = true;
    })
  arena_release(&arena);
  return bytes;
}

static void advise_quantize(const Method *m, Advice *a) {
  uint64_t bytes = float_bytes(m->graph);
  if (m->options->pass.quantize || !backends_take_quantized(&m->options->pass) ||
      bytes < MANY_BYTES)
    return;
  strbuf_append_bytes(&a->text, bytes);
  strbuf_append(&a->text,
                SV(" of weights are f32: --quantize int8, with samples for --calibrate, keeps "
                   "those of products and convolutions in a quarter of it"));
  say(a);
}

static void advise_outputs(const Method *m, Advice *a) {
  const QuantizeErrors *e = m->errors;
  for (uint32_t i = 0; e && m->options->max_drop <= 0 && i < e->output_count; i++) {
    double all = compare_sqnr(&e->outputs[i].pair->all);
    if (!(all < LOW_SQNR))
      continue;
    strbuf_append(&a->text, SV("output "));
    append_name(&a->text, e->outputs[i].value);
    strbuf_printf(&a->text, " has %.1f dB: --max-drop DB leaves nodes in floats until it has more",
                  all);
    say(a);
  }
}

static void advise_layers(const QuantizeErrors *e, Advice *a) {
  for (uint32_t i = 0; e && i < e->row_count && i < LAYERS_MAX; i++) {
    double own = compare_sqnr(&e->rows[i].pair->own);
    if (!(own < LOW_SQNR) || !e->rows[i].loc)
      continue;
    strbuf_append_printable(&a->text, sv_from(e->rows[i].node));
    strbuf_printf(&a->text, " alone has %.1f dB: leave it in floats by --quantize-config", own);
    say(a);
  }
}

void session_advise(Session *s, JsonWriter *w) {
  const Facts *facts = &s->program.facts;
  Advice a = {.w = w};
  session_advise_first(s, &a.text);
  say(&a);
  for (uint32_t i = 0; i < facts->delegation_count; i++)
    for (uint32_t k = 0; k < facts->delegations[i].backend_count; k++)
      advise_rules(&facts->delegations[i].backends[k], &a);
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    const Method *m = &s->program.methods[i];
    advise_outputs(m, &a);
    advise_layers(m->errors, &a);
    advise_quantize(m, &a);
    advise_planner(m, &a);
    advise_dims(m, &a);
    advise_ends(m->graph, &a);
  }
  strbuf_release(&a.text);
}
