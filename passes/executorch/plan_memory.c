/* The memory plan: an arena for each bank of the device that the user named, or one (memory_id 1),
 * for inputs, outputs and everything between.
 *
 * `naive` gives every tensor a place of its own. `best` and `greedy` let tensors that are never in
 * use at the same time share bytes, and results be written over dying operands (liveness.c). Inputs
 * and outputs are planned too, unless the user wants them in memory of the host: a host needs no
 * buffers of its own, and their memory is reused. Values that share memory name the same Storage.
 * States lie one behind the other in an arena of their own behind the others; pipeline/states.c
 * moves those of several methods apart. Overlaps are never
 * noticed by the runtime, so the verifier checks the plan again on its own (ir/verify_plan.c). */
#include <inttypes.h>

#include "ir/overlap.h"
#include "ir/text.h"
#include "passes/executorch/host_buffers.h"
#include "passes/executorch/plan_banks.h"
#include "passes/pass.h"

/* What was asked for, and what is known of the graph. */
typedef struct MemoryPlan {
  Graph *g;
  const Planner *planner;
  const PassOptions *options;
  uint64_t alignment, spare; /* spare: bytes at the end of each arena */
  uint32_t banks;            /* arenas, states not counted */
  Liveness live;
  PlanProblem problem; /* the spans, sizes rounded up */
  uint64_t proved;     /* no arena can be smaller */
  uint32_t *bank;      /* by span, from 0 */
  uint64_t *offsets;   /* by span */
  uint64_t *totals;    /* by bank, without spare */
} MemoryPlan;

static Status check_total(PassContext *p, const MemoryPlan *m) {
  const Graph *g = m->g;
  uint64_t total = 0, alignment = m->alignment;
  for (uint32_t i = 0; i < g->state_count; i++) {
    uint64_t size = type_bytes_upper(g, value_type(g, g->states[i].value));
    if (size > INT64_MAX / 2 || !add_u64(total, size + alignment, &total))
      total = INT64_MAX;
  }
  for (uint32_t i = 0; i < m->live.span_count; i++)
    if (!add_u64(total, align_up(m->live.spans[i].size, alignment), &total) || total > INT64_MAX)
      return diag_report(p->sink, DIAG_TOO_LARGE, DIAG_NOWHERE,
                         "the tensors of the program need more memory than can be addressed");
  return STATUS_OK;
}

/* --- limits of sizes --- */

/* Of the format; said before the memory that such sizes need. */
static Status check_dims(PassContext *p, const Graph *g, ValueId v) {
  const Type *t = value_type(g, v);
  NodeId n = value_def(g, v);
  for (uint32_t i = 0; t->kind == TYPE_TENSOR && i < t->rank; i++) {
    int64_t most = sym_upper(&g->syms, t->dims[i]);
    if (most <= INT32_MAX)
      continue;
    StrBuf name = {0};
    if (value_name(g, v).size)
      strbuf_append_within(&name, "value '", value_name(g, v), "'");
    Diag *d = diag_begin(p->sink, DIAG_TOO_LARGE, n ? node_place(g, n) : context_place(g->ctx));
    diag_message(d, "dimension %u of %s is up to %" PRId64 ", and the format has 32 bits for it", i,
                 name.size ? strbuf_cstr(&name) : "a result", most);
    strbuf_release(&name);
    if (!sym_is_const(t->dims[i]))
      diag_hint(d, "give dynamic dimensions lower upper bounds (--dim NAME=LO..HI)");
    else if (!n)
      diag_hint(d, "give the input smaller dimensions (--dim NAME=N)");
    return diag_end(d);
  }
  return STATUS_OK;
}

static Status check_sizes(PassContext *p, const Graph *g) {
  for (uint32_t i = 0; i < g->input_count; i++)
    TRY(check_dims(p, g, g->inputs[i]));
  for (FOR_NODES(g, n))
    for (uint32_t i = 0; i < node_cget(g, n)->result_count; i++)
      TRY(check_dims(p, g, node_result(g, n, i)));
  return STATUS_OK;
}

/* --- the limit on memory --- */

enum { LARGEST_NAMED = 3, LARGEST_SEEN = 16 };

/* Whether the value is planned into `bank`; bank_of (by span) NULL: into any. */
static bool in_bank(const Liveness *l, ValueId v, const uint32_t *bank_of, uint32_t bank) {
  uint32_t span = l->span_of[v];
  return span && (!bank_of || (span <= l->span_count && bank_of[span - 1] == bank));
}

/* The largest value outside of the spans listed; 0 if all values are in them. */
static ValueId largest_value(const Graph *g, const Liveness *l, const uint32_t *listed,
                             uint32_t count, const uint32_t *bank_of, uint32_t bank) {
  ValueId best = 0;
  uint64_t most = 0;
  for (ValueId v = 1; v < g->value_count; v++) {
    bool known = !in_bank(l, v, bank_of, bank);
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

static void describe_tensor(const Graph *g, ValueId v, StrBuf *text) {
  StrView name = value_name(g, v);
  NodeId n = value_def(g, v);
  DiagPlace place = n ? node_place(g, n) : DIAG_NOWHERE;
  if (name.size)
    strbuf_printf(text, "'" SV_FMT "', ", SV_ARG(name));
  type_describe(g, value_type(g, v), text);
  strbuf_append(text, SV(": up to "));
  strbuf_append_bytes(text, type_bytes_upper(g, value_type(g, v)));
  if (place.op.size)
    strbuf_printf(text, ", made by " SV_FMT, SV_ARG(place.op));
  if (place.node.size)
    strbuf_printf(text, " '" SV_FMT "'", SV_ARG(place.node));
}

/* Tensors of which there is the same to say, such as those of one convolution, are one note. */
static void note_largest(Diag *d, const Graph *g, const Liveness *l, const uint32_t *bank_of,
                         uint32_t bank) {
  uint32_t listed[LARGEST_SEEN], alike = 0, notes = 0;
  StrBuf last = {0}, text = {0};
  for (uint32_t i = 0; i <= LARGEST_SEEN && notes < LARGEST_NAMED; i++) {
    ValueId v = i < LARGEST_SEEN ? largest_value(g, l, listed, i, bank_of, bank) : 0;
    strbuf_clear(&text);
    if (v) {
      describe_tensor(g, v, &text);
      listed[i] = l->span_of[v];
    }
    if (alike && (!v || strcmp(strbuf_cstr(&text), strbuf_cstr(&last)) != 0)) {
      diag_note(d, alike > 1 ? "%s (%u tensors)" : "%s", strbuf_cstr(&last), alike);
      alike = 0;
      notes++;
    }
    if (!v)
      break;
    alike++;
    strbuf_clear(&last);
    strbuf_append(&last, sv_from(strbuf_cstr(&text)));
  }
  strbuf_release(&last);
  strbuf_release(&text);
}

static bool has_dynamic_sizes(const Graph *g) {
  ValueId v = 1;
  while (v < g->value_count && type_is_static(value_type(g, v)))
    v++;
  return v < g->value_count;
}

/* The value of --max-arena that is enough, in the largest unit that is no smaller than it. */
static void hint_limit(Diag *d, const Graph *g, uint64_t total) {
  static const char units[] = "KMG";
  unsigned unit = 0;
  uint64_t size = (total + 1023) >> 10;
  for (; size >= 1024 && units[unit + 1]; unit++)
    size = (size + 1023) >> 10;
  diag_hint(d, "%s, or allow more with --max-arena %" PRIu64 "%c",
            has_dynamic_sizes(g) ? "give dynamic dimensions lower upper bounds (--dim NAME=LO..HI)"
                                 : "make the tensors above smaller in the model",
            size, units[unit]);
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
  StrBuf text = {0};
  strbuf_append(&text, SV("the program needs "));
  strbuf_append_bytes(&text, total);
  strbuf_append(&text, SV(" of memory for its tensors, the limit is "));
  strbuf_append_bytes(&text, limit);
  diag_message(d, "%s", strbuf_cstr(&text));
  strbuf_release(&text);
  note_largest(d, g, l, NULL, 0);
  hint_limit(d, g, total);
  return diag_end(d);
}

/* The last bank does not have room for all that is left for it. */
static Status report_full(PassContext *p, const MemoryPlan *m, uint64_t missing) {
  uint32_t last = m->banks - 1;
  const MemoryBank *b = &m->options->banks[last];
  Diag *d = diag_begin(p->sink, DIAG_BANK_FULL, DIAG_NOWHERE);
  StrBuf text = {0};
  strbuf_printf(&text, "bank '" SV_FMT "' of ", SV_ARG(b->name));
  strbuf_append_bytes(&text, b->size);
  strbuf_append(&text, SV(" lacks "));
  strbuf_append_bytes(&text, missing);
  strbuf_append(&text, m->banks > 1 ? SV(" for the tensors that no bank before it has room for")
                                    : SV(" for the tensors of the program"));
  diag_message(d, "%s", strbuf_cstr(&text));
  strbuf_release(&text);
  note_largest(d, m->g, &m->live, m->bank, last);
  return diag_end(d);
}

static bool has_delegate(const Graph *g) {
  for (FOR_NODES(g, n))
    if (op_has_trait(node_cget(g, n)->op, OP_DELEGATE))
      return true;
  return false;
}

static void store_plan(const MemoryPlan *m) {
  Graph *g = m->g;
  const Liveness *l = &m->live;
  uint32_t state_arena = m->banks + 1;
  uint64_t states = 0;
  g->storage_count = 1;
  g->storages = pool_reserve(g->storages, &g->storage_capacity,
                             (uint64_t)l->span_count + g->state_count + 1, sizeof *g->storages);
  for (uint32_t i = 0; i < l->span_count; i++)
    g->storages[g->storage_count++] =
        (Storage){.arena = m->bank[i] + 1, .offset = m->offsets[i], .size = l->spans[i].size};
  for (uint32_t i = 0; i < g->state_count; i++) {
    uint64_t size = type_bytes_upper(g, value_type(g, g->states[i].value));
    g->storages[g->storage_count++] =
        (Storage){.arena = state_arena, .offset = states, .size = size};
    states += align_up(size, m->alignment);
  }
  for (ValueId v = 1; v < g->value_count; v++)
    g->values[v].storage = l->span_of[v];
  g->arena_size_count = g->state_count ? state_arena + 1 : state_arena;
  g->arena_sizes = ARENA_ARRAY(&g->arena, uint64_t, g->arena_size_count);
  for (uint32_t i = 0; i < m->banks; i++)
    g->arena_sizes[i + 1] = m->totals[i] + m->spare;
  if (g->state_count)
    g->arena_sizes[state_arena] = states + m->spare;
  g->arena_excess = m->banks == 1 ? m->totals[0] - m->proved : ARENA_UNPROVEN;
}

/* --- planners --- */

static uint64_t place_best(const PlanProblem *q, Arena *scratch, uint64_t *offsets) {
  return planner_best(q, 0, scratch, offsets);
}

static uint64_t place_greedy(const PlanProblem *q, Arena *scratch, uint64_t *offsets) {
  return planner_greedy(q->spans, q->count, q->end, q->bound, scratch, offsets);
}

static uint64_t place_naive(const PlanProblem *q, Arena *scratch, uint64_t *offsets) {
  (void)scratch;
  return planner_naive(q->spans, q->count, offsets);
}

const Planner builtin_planners[] = {
    {.name = "best",
     .summary =
         "Nodes in an order that needs less, greedy's plan, an exact search for a better one",
     .in_place = true,
     .schedule = true,
     .place = place_best},
    {.name = "greedy",
     .summary = "Several orders of the tensors, each into the lowest or the tightest gap",
     .in_place = true,
     .place = place_greedy},
    {.name = "naive", .summary = "A place of its own for each tensor", .place = place_naive},
    {0},
};

typedef struct Overlaps {
  const uint64_t *offsets;
  uint64_t first[2]; /* the offsets of the first two that were found */
  uint32_t count;
} Overlaps;

static void note_overlap(void *user, uint32_t span, uint32_t other) {
  Overlaps *o = user;
  if (o->count++)
    return;
  o->first[0] = o->offsets[other];
  o->first[1] = o->offsets[span];
}

/* No two tensors that live at the same time overlap. */
static Status check_overlaps(PassContext *p, const Planner *planner, const PlanProblem *q,
                             const uint64_t *offsets) {
  Overlaps o = {.offsets = offsets};
  MemoryBlock *blocks = ARENA_ARRAY(p->scratch, MemoryBlock, q->count);
  for (uint32_t i = 0; i < q->count; i++)
    blocks[i] = (MemoryBlock){offsets[i], q->spans[i].size, 0, q->spans[i].first, q->spans[i].last};
  overlap_find(blocks, q->count, q->end, p->scratch, note_overlap, &o);
  if (!o.count)
    return STATUS_OK;
  return diag_report(p->sink, DIAG_PLUGIN_FAULT, DIAG_NOWHERE,
                     "planner '%s' of plug-in '%s' gives two tensors that live at the same time "
                     "offsets %" PRIu64 " and %" PRIu64 ", where they overlap",
                     planner->name, planner->plugin, o.first[0], o.first[1]);
}

static Status check_places(PassContext *p, const Planner *planner, const PlanProblem *q,
                           const uint64_t *offsets, uint64_t total) {
  for (uint32_t i = 0; i < q->count; i++) {
    bool inside = offsets[i] <= total && q->spans[i].size <= total - offsets[i];
    if (inside && offsets[i] % q->alignment == 0 && total <= INT64_MAX)
      continue;
    Diag *d = diag_begin(p->sink, DIAG_PLUGIN_FAULT, DIAG_NOWHERE);
    diag_message(d,
                 "planner '%s' of plug-in '%s' gives a tensor of %" PRIu64 " bytes offset %" PRIu64
                 " in an arena of %" PRIu64,
                 planner->name, planner->plugin, q->spans[i].size, offsets[i], total);
    diag_hint(d, "offsets are multiples of %" PRIu64 ", and tensors end within the arena",
              q->alignment);
    return diag_end(d);
  }
  if (q->proved && *q->proved > total)
    return diag_report(p->sink, DIAG_PLUGIN_FAULT, DIAG_NOWHERE,
                       "planner '%s' of plug-in '%s' proves that an arena needs %" PRIu64
                       " bytes, and makes one of %" PRIu64,
                       planner->name, planner->plugin, *q->proved, total);
  return check_overlaps(p, planner, q, offsets);
}

Status plan_place(PassContext *p, const Planner *planner, const PlanProblem *q, uint64_t *offsets,
                  uint64_t *total) {
  pass_enter(p, planner->plugin);
  *total = planner->place(q, p->scratch, offsets);
  pass_enter(p, NULL);
  return planner->plugin ? check_places(p, planner, q, offsets, *total) : STATUS_OK;
}

/* How often a node reads or writes each span. */
static uint32_t *count_accesses(const Graph *g, const Liveness *l, Arena *scratch) {
  uint32_t *accesses = ARENA_ARRAY(scratch, uint32_t, (size_t)l->span_count + 1);
  for (FOR_NODES(g, n)) {
    const Node *node = node_cget(g, n);
    FOR_OPERANDS(g, n, v, {
      if (v && l->span_of[v] && l->span_of[v] <= l->span_count)
        accesses[l->span_of[v] - 1]++;
    })
    for (uint32_t i = 0; i < node->result_count; i++) {
      uint32_t span = l->span_of[node->first_result + i];
      if (span && span <= l->span_count)
        accesses[span - 1]++;
    }
  }
  return accesses;
}

static Status place_in_banks(PassContext *p, MemoryPlan *m) {
  BankProblem q = {.planner = m->planner,
                   .all = &m->problem,
                   .accesses = count_accesses(m->g, &m->live, p->scratch),
                   .banks = m->options->banks,
                   .bank_count = m->banks,
                   .spare = m->spare};
  BankPlan plan = {.bank = m->bank, .offsets = m->offsets, .totals = m->totals};
  TRY(plan_banks(p, &q, &plan));
  return plan.missing ? report_full(p, m, plan.missing) : STATUS_OK;
}

static void find_problem(PassContext *p, MemoryPlan *m) {
  const Liveness *l = &m->live;
  Span *rounded = ARENA_ARRAY(p->scratch, Span, l->span_count);
  for (uint32_t i = 0; i < l->span_count; i++) {
    rounded[i] = l->spans[i];
    rounded[i].size = align_up(rounded[i].size, m->alignment);
  }
  m->problem = (PlanProblem){.spans = rounded,
                             .count = l->span_count,
                             .end = l->end + 1,
                             .bound = liveness_bound(l, m->alignment, p->scratch),
                             .alignment = m->alignment,
                             .proved = &m->proved};
  m->proved = m->problem.bound;
  m->bank = ARENA_ARRAY(p->scratch, uint32_t, l->span_count);
  m->offsets = ARENA_ARRAY(p->scratch, uint64_t, l->span_count);
  m->totals = ARENA_ARRAY(p->scratch, uint64_t, m->banks);
}

Status pass_plan_memory(PassContext *p, Graph *g) {
  static const PassOptions none;
  const PassOptions *o = p->options ? p->options : &none;
  MemoryPlan m = {.g = g,
                  .planner = o->planner ? o->planner : &builtin_planners[0],
                  .options = o,
                  .alignment = o->plan_alignment ? o->plan_alignment : PLAN_ALIGNMENT,
                  .spare = has_delegate(g) ? PLAN_DELEGATE_SPARE : 0,
                  .banks = o->bank_count ? o->bank_count : 1};
  TRY(host_buffers_prepare(p, g, o->host_inputs, o->host_outputs));
  TRY(liveness_compute(g, p->scratch,
                       (LivenessOptions){.in_place = m.planner->in_place,
                                         .host_inputs = o->host_inputs,
                                         .host_outputs = o->host_outputs},
                       &m.live));
  TRY(check_sizes(p, g));
  TRY(check_total(p, &m));
  find_problem(p, &m);
  TRY(o->bank_count ? place_in_banks(p, &m)
                    : plan_place(p, m.planner, &m.problem, m.offsets, m.totals));
  store_plan(&m);
  TRY(check_limit(p, g, &m.live));
  uint64_t total = 0;
  for (uint32_t i = 0; i < m.banks; i++)
    total += m.totals[i];
  pass_count(p, "tensors", m.live.span_count);
  pass_count(p, "in place", m.live.in_place);
  pass_count(p, "arena bytes", total);
  pass_count(p, "lower bound", m.proved);
  return STATUS_OK;
}
