/* The memory plan: one arena (memory_id 1) for inputs, outputs and everything between.
 *
 * `naive` gives every tensor a place of its own. `greedy` lets tensors that are never in use at the
 * same time share bytes, and results be written over dying operands (liveness.c). Inputs and
 * outputs are planned too: a host needs no buffers of its own, and their memory is reused. Values
 * that share memory name the same Storage. States lie one behind the other in an arena of their
 * own (memory_id 2); pipeline/states.c moves those of several methods apart. Overlaps are never
 * noticed by the runtime, so the verifier checks the plan again on its own (ir/verify_plan.c). */
#include <inttypes.h>

#include "ir/text.h"
#include "passes/executorch/planner.h"
#include "passes/pass.h"

static Status check_total(PassContext *p, const Graph *g, const Liveness *l) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < g->state_count; i++) {
    uint64_t size = type_bytes_upper(g, value_type(g, g->states[i].value));
    if (size > INT64_MAX / 2 || !add_u64(total, size + PLAN_ALIGNMENT, &total))
      total = INT64_MAX;
  }
  for (uint32_t i = 0; i < l->span_count; i++)
    if (!add_u64(total, align_up(l->spans[i].size, PLAN_ALIGNMENT), &total) || total > INT64_MAX)
      return diag_report(p->sink, DIAG_TOO_LARGE, DIAG_NOWHERE,
                         "the tensors of the program need more memory than can be addressed");
  return STATUS_OK;
}

/* --- the limit on memory --- */

enum { LARGEST_NAMED = 3 };

/* The largest value outside of the spans listed; 0 if all values are in them. */
static ValueId largest_value(const Graph *g, const Liveness *l, const uint32_t *listed,
                             uint32_t count) {
  ValueId best = 0;
  uint64_t most = 0;
  for (ValueId v = 1; v < g->value_count; v++) {
    bool known = l->span_of[v] == 0;
    for (uint32_t i = 0; i < count; i++)
      known |= listed[i] == l->span_of[v];
    uint64_t size = known ? 0 : type_bytes_upper(g, value_type(g, v));
    if (size > most) {
      most = size;
      best = v;
    }
  }
  return best;
}

static void note_tensor(Diag *d, const Graph *g, ValueId v) {
  StrBuf text;
  strbuf_init(&text);
  StrView name = intern_get(&g->ctx->names, value_cget(g, v)->name);
  NodeId n = value_def(g, v);
  DiagPlace place = n ? node_place(g, n) : DIAG_NOWHERE;
  if (name.size)
    strbuf_printf(&text, "'" SV_FMT "', ", SV_ARG(name));
  type_print(g, value_type(g, v), &text);
  strbuf_append(&text, SV(": up to "));
  strbuf_append_bytes(&text, type_bytes_upper(g, value_type(g, v)));
  if (place.op.size)
    strbuf_printf(&text, ", made by " SV_FMT, SV_ARG(place.op));
  if (place.node.size)
    strbuf_printf(&text, " '" SV_FMT "'", SV_ARG(place.node));
  diag_note(d, "%s", strbuf_cstr(&text));
  strbuf_release(&text);
}

/* A program is not written that no device could load. */
static Status check_limit(PassContext *p, const Graph *g, const Liveness *l) {
  uint64_t limit = p->options && p->options->max_arena ? p->options->max_arena : PASS_MAX_ARENA,
           total = 0;
  for (uint32_t i = 1; i < g->arena_size_count; i++)
    total += g->arena_sizes[i];
  if (total <= limit)
    return STATUS_OK;
  Diag *d = diag_begin(p->sink, DIAG_ARENA_LIMIT, DIAG_NOWHERE);
  StrBuf text;
  strbuf_init(&text);
  strbuf_append(&text, SV("the program needs "));
  strbuf_append_bytes(&text, total);
  strbuf_append(&text, SV(" of memory for its tensors, the limit is "));
  strbuf_append_bytes(&text, limit);
  diag_message(d, "%s", strbuf_cstr(&text));
  strbuf_release(&text);
  uint32_t listed[LARGEST_NAMED];
  for (uint32_t i = 0; i < LARGEST_NAMED; i++) {
    ValueId v = largest_value(g, l, listed, i);
    if (!v)
      break;
    note_tensor(d, g, v);
    listed[i] = l->span_of[v];
  }
  return diag_end(d);
}

static bool has_delegate(const Graph *g) {
  for (NodeId n = g->first; n; n = node_cget(g, n)->next)
    if (op_has_trait(node_cget(g, n)->op, OP_DELEGATE))
      return true;
  return false;
}

static void store_plan(Graph *g, const Liveness *l, const uint64_t *offsets, uint64_t total) {
  uint64_t states = 0;
  g->storage_count = 1;
  g->storages = pool_reserve(g->storages, &g->storage_capacity,
                             (uint64_t)l->span_count + g->state_count + 1, sizeof *g->storages);
  for (uint32_t i = 0; i < l->span_count; i++)
    g->storages[g->storage_count++] =
        (Storage){.arena = 1, .offset = offsets[i], .size = l->spans[i].size};
  for (uint32_t i = 0; i < g->state_count; i++) {
    uint64_t size = type_bytes_upper(g, value_type(g, g->states[i].value));
    g->storages[g->storage_count++] =
        (Storage){.arena = PLAN_STATE_ARENA, .offset = states, .size = size};
    states += align_up(size, PLAN_ALIGNMENT);
  }
  for (ValueId v = 1; v < g->value_count; v++)
    g->values[v].storage = l->span_of[v];
  g->arena_size_count = g->state_count ? PLAN_STATE_ARENA + 1 : 2;
  g->arena_sizes = ARENA_ARRAY(&g->arena, uint64_t, g->arena_size_count);
  uint64_t spare = has_delegate(g) ? PLAN_DELEGATE_SPARE : 0;
  g->arena_sizes[1] = total + spare;
  if (g->state_count)
    g->arena_sizes[PLAN_STATE_ARENA] = states + spare;
}

/* --- planners --- */

static uint64_t place_greedy(const PlanProblem *q, Arena *scratch, uint64_t *offsets) {
  return planner_greedy(q->spans, q->count, q->end, q->bound, scratch, offsets);
}

static uint64_t place_naive(const PlanProblem *q, Arena *scratch, uint64_t *offsets) {
  (void)scratch;
  return planner_naive(q->spans, q->count, offsets);
}

const Planner planners[] = {
    {"greedy", "Several orders of the tensors, each into the lowest or the tightest gap", true,
     place_greedy, NULL},
    {"naive", "A place of its own for each tensor", false, place_naive, NULL},
    {0},
};

/* What a plug-in answered: tensors inside the arena and aligned. */
static Status check_places(PassContext *p, const Planner *planner, const PlanProblem *q,
                           const uint64_t *offsets, uint64_t total) {
  for (uint32_t i = 0; i < q->count; i++) {
    bool inside = offsets[i] <= total && q->spans[i].size <= total - offsets[i];
    if (inside && offsets[i] % PLAN_ALIGNMENT == 0 && total <= INT64_MAX)
      continue;
    Diag *d = diag_begin(p->sink, DIAG_PLUGIN_FAULT, DIAG_NOWHERE);
    diag_message(d,
                 "planner '%s' of plug-in '%s' gives a tensor of %" PRIu64 " bytes offset %" PRIu64
                 " in an arena of %" PRIu64,
                 planner->name, planner->plugin, q->spans[i].size, offsets[i], total);
    diag_hint(d, "offsets are multiples of %d, and tensors end within the arena", PLAN_ALIGNMENT);
    return diag_end(d);
  }
  return STATUS_OK;
}

/* The other half: no two tensors that live at the same time overlap. */
static Status check_overlaps(PassContext *p, const Planner *planner, const PlanProblem *q,
                             const uint64_t *offsets) {
  for (uint32_t i = 0; i < q->count; i++)
    for (uint32_t k = 0; k < i; k++) {
      const Span *a = &q->spans[i], *b = &q->spans[k];
      bool together = a->size && b->size && a->first <= b->last && b->first <= a->last;
      if (!together || offsets[i] >= offsets[k] + b->size || offsets[k] >= offsets[i] + a->size)
        continue;
      return diag_report(p->sink, DIAG_PLUGIN_FAULT, DIAG_NOWHERE,
                         "planner '%s' of plug-in '%s' gives two tensors that live at the same "
                         "time offsets %" PRIu64 " and %" PRIu64 ", where they overlap",
                         planner->name, planner->plugin, offsets[k], offsets[i]);
    }
  return STATUS_OK;
}

Status pass_plan_memory(PassContext *p, Graph *g) {
  const Planner *planner = p->options && p->options->planner ? p->options->planner : &planners[0];
  Liveness l;
  TRY(liveness_compute(g, p->scratch, planner->in_place, &l));
  TRY(check_total(p, g, &l));
  uint64_t bound = liveness_bound(&l, p->scratch), total;
  Span *rounded = ARENA_ARRAY(p->scratch, Span, l.span_count);
  for (uint32_t i = 0; i < l.span_count; i++) {
    rounded[i] = l.spans[i];
    rounded[i].size = align_up(rounded[i].size, PLAN_ALIGNMENT);
  }
  uint64_t *offsets = ARENA_ARRAY(p->scratch, uint64_t, l.span_count);
  PlanProblem problem = {rounded, l.span_count, l.end + 1, bound};
  total = planner->place(&problem, p->scratch, offsets);
  if (planner->plugin)
    TRY(check_places(p, planner, &problem, offsets, total));
  if (planner->plugin)
    TRY(check_overlaps(p, planner, &problem, offsets));
  store_plan(g, &l, offsets, total);
  TRY(check_limit(p, g, &l));
  pass_count(p, "tensors", l.span_count);
  pass_count(p, "in place", l.in_place);
  pass_count(p, "arena bytes", total);
  pass_count(p, "lower bound", bound);
  return STATUS_OK;
}
