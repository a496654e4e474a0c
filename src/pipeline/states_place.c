/* The places of the states of several methods: apart, or shared (--share-state). See states.h. */
#include "passes/executorch/liveness.h"
#include "pipeline/settings.h"
#include "pipeline/states.h"
#include "support/text.h"

static uint32_t *arena_of(const Graph *g, uint32_t state) {
  return &g->storages[g->values[g->states[state].value].storage].arena;
}

/* Puts the states of g into arena `to`. */
static void move_arena(Graph *g, uint32_t to) {
  uint32_t from = *arena_of(g, 0), count = to + 1;
  if (from == to)
    return;
  uint64_t *sizes = ARENA_ARRAY(&g->arena, uint64_t, count);
  memcpy(sizes, g->arena_sizes, from * sizeof *sizes);
  sizes[to] = g->arena_sizes[from];
  for (uint32_t i = 1; i < g->storage_count; i++)
    if (g->storages[i].arena == from)
      g->storages[i].arena = to;
  g->arena_sizes = sizes;
  g->arena_size_count = count;
}

/* The arena of the states, the same for all methods: behind those of every method. 0: none has
 * states. */
static uint32_t state_arena(const Session *s) {
  uint32_t others = 0;
  bool any = false;
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    const Graph *g = s->program.methods[i].graph;
    uint32_t count = g->arena_size_count ? g->arena_size_count : 1;
    count -= g->state_count && count > 1 ? 2 : 1;
    others = count > others ? count : others;
    any |= g->state_count > 0;
  }
  return any ? others + 1 : 0;
}

/* --- states of one name in several methods --- */

/* A state that --share-state names, as the first method has it. */
typedef struct SharedState {
  const Graph *g;
  uint32_t state;
  uint64_t offset;
  uint32_t methods;
} SharedState;

typedef struct SharedStates {
  SharedState *items;
  uint32_t count;
  uint64_t bytes;
} SharedStates;

static StrView state_name(const Graph *g, uint32_t state) {
  return value_name(g, g->states[state].value);
}

/* A state that grows is shared together with its length. */
static bool is_shared(const Session *s, StrView name) {
  StrView of = name, stars;
  const StrView end = SV(STATE_LENGTH);
  if (sv_has_suffix(name, end))
    of.size -= end.size;
  for (uint32_t i = 0; i < s->shared_count; i++)
    if (name.size &&
        (text_match(s->shared[i], name, &stars) || text_match(s->shared[i], of, &stars)))
      return true;
  return false;
}

/* --- states that grow --- */

/* Of a length that methods share all states are shared, or one method would read rows that it never
 * wrote. */
static Status check_together(Session *s, const BoundState *a, const BoundState *b) {
  const Intern *names = &s->ctx.names;
  StrView other = intern_get(names, b->name);
  if (a->g != b->g || !a->length || a->length != b->length || is_shared(s, other))
    return STATUS_OK;
  Diag *d = diag_begin(&s->sink, DIAG_STATE_MISMATCH, DIAG_NOWHERE);
  diag_message(d,
               "states '" SV_FMT "' and '" SV_FMT "' of method '" SV_FMT
               "' grow together, and --share-state names only the first",
               SV_ARG(intern_get(names, a->name)), SV_ARG(other), SV_ARG(graph_name(a->g)));
  diag_hint(d, "share all states that grow together, or none of them");
  return diag_end(d);
}

static Status refuse_sharing(Session *s, const Graph *first, const Graph *second, StrView name,
                             const char *hint, const char *why) {
  Diag *d = diag_begin(&s->sink, DIAG_STATE_MISMATCH, DIAG_NOWHERE);
  diag_message(d, "methods '" SV_FMT "' and '" SV_FMT "' cannot share state '" SV_FMT "': it %s",
               SV_ARG(graph_name(first)), SV_ARG(graph_name(second)), SV_ARG(name), why);
  diag_hint(d, "%s", hint);
  return diag_end(d);
}

/* A state of two methods must have the same length in both. */
static Status check_lengths(Session *s, const BoundState *a, const BoundState *b) {
  if (a->g == b->g || a->name != b->name || a->length == b->length)
    return STATUS_OK;
  StrView name = intern_get(&s->ctx.names, a->name);
  if (a->length && b->length)
    return refuse_sharing(s, a->g, b->g, name,
                          "states that grow together must have the same names in both methods",
                          "grows together with other states in the second");
  return refuse_sharing(s, a->g, b->g, name,
                        "make the dim that grows a range in both methods: --dim NAME=LO..HI",
                        "grows in one of them only");
}

Status states_check_growth(Session *s, const BoundStates *bound) {
  for (uint32_t i = 0; i < bound->count; i++) {
    if (!is_shared(s, intern_get(&s->ctx.names, bound->items[i].name)))
      continue;
    for (uint32_t k = 0; k < bound->count; k++) {
      TRY(check_together(s, &bound->items[i], &bound->items[k]));
      TRY(check_lengths(s, &bound->items[i], &bound->items[k]));
    }
  }
  return STATUS_OK;
}

/* --- the same in two methods --- */

static bool same_state(const Graph *g, uint32_t i, const Graph *h, uint32_t k) {
  const Type *a = value_type(g, g->states[i].value), *b = value_type(h, h->states[k].value);
  uint64_t bytes = type_bytes_upper(g, a);
  if (a->dtype != b->dtype || a->rank != b->rank || bytes != type_bytes_upper(h, b))
    return false;
  for (uint32_t d = 0; d < a->rank; d++)
    if (sym_upper(&g->syms, a->dims[d]) != sym_upper(&h->syms, b->dims[d]))
      return false;
  return true;
}

/* Which contents come first is up to the method that is loaded first. */
static bool same_contents(const Graph *g, uint32_t i, const Graph *h, uint32_t k) {
  ConstId a = g->states[i].initial, b = h->states[k].initial;
  return !a == !b &&
         (!a || (g->constants[a].size == h->constants[b].size &&
                 memcmp(g->constants[a].data, h->constants[b].data, g->constants[a].size) == 0));
}

/* --- shared states of programs --- */

/* The states of one name. */
typedef struct NamedStates {
  const Graph *g; /* the first method that has one */
  uint32_t state, methods;
  bool apart; /* they are no memory of all these methods */
} NamedStates;

static void add_named(NamedStates *n, const Graph *g, uint32_t state) {
  ValueId v = g->states[state].value;
  if (n->methods++ == 0) {
    n->g = g;
    n->state = state;
    return;
  }
  ValueId first = n->g->states[n->state].value;
  const Storage *a = &n->g->storages[n->g->values[first].storage],
                *b = &g->storages[g->values[v].storage];
  n->apart |= a->arena != b->arena || a->offset != b->offset ||
              !same_state(n->g, n->state, g, state) || !same_contents(n->g, n->state, g, state);
}

void states_find_shared(Session *s) {
  NamedStates *named = ARENA_ARRAY(&s->arena, NamedStates, (size_t)s->ctx.names.count + 1);
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    const Graph *g = s->program.methods[i].graph;
    for (uint32_t k = 0; k < g->state_count; k++)
      add_named(&named[g->values[g->states[k].value].name], g, k);
  }
  for (NameId name = 1; name <= s->ctx.names.count; name++) {
    StrView text = intern_get(&s->ctx.names, name);
    if (named[name].methods > 1 && !named[name].apart && !is_shared(s, text))
      (void)session_set_share_state(s, text);
  }
}

/* --- places --- */

static SharedState *find_shared(SharedStates *shared, StrView name) {
  for (uint32_t i = 0; i < shared->count; i++)
    if (sv_eq(state_name(shared->items[i].g, shared->items[i].state), name))
      return &shared->items[i];
  return NULL;
}

static uint64_t alignment_of(const Method *m) {
  uint32_t alignment = m->options->pass.plan_alignment;
  return alignment > PLAN_ALIGNMENT ? alignment : PLAN_ALIGNMENT;
}

static Status report_types(Session *s, const SharedState *known, const Graph *g, uint32_t state) {
  StrBuf text = {0};
  strbuf_append(&text, SV("is "));
  type_print(known->g, value_type(known->g, known->g->states[known->state].value), &text);
  strbuf_append(&text, SV(" in the first, "));
  type_print(g, value_type(g, g->states[state].value), &text);
  strbuf_append(&text, SV(" in the second"));
  Status status = refuse_sharing(
      s, known->g, g, state_name(g, state),
      "give its dims the same largest sizes in both methods; a dim that grows has the largest past "
      "and the largest number of new rows together",
      strbuf_cstr(&text));
  strbuf_release(&text);
  return status;
}

static Status share_state(Session *s, const Method *m, uint32_t state, SharedStates *shared) {
  const Graph *g = m->graph;
  StrView name = state_name(g, state);
  SharedState *known = find_shared(shared, name);
  if (!known) {
    known = &shared->items[shared->count++];
    *known = (SharedState){.g = g, .state = state, .offset = shared->bytes};
    shared->bytes +=
        align_up(type_bytes_upper(g, value_type(g, g->states[state].value)), alignment_of(m));
  }
  known->methods++;
  if (!same_state(known->g, known->state, g, state))
    return report_types(s, known, g, state);
  if (!same_contents(known->g, known->state, g, state))
    return refuse_sharing(s, known->g, g, name,
                          "give both the same first contents: --state IN:OUT=FILE.npy",
                          "begins with other contents in the second");
  return STATUS_OK;
}

/* Each pattern must name a state of two methods. */
static Status check_shared(Session *s, const SharedStates *shared) {
  for (uint32_t i = 0; i < s->shared_count; i++) {
    uint32_t methods = 0;
    StrView stars;
    for (uint32_t k = 0; k < shared->count; k++)
      if (text_match(s->shared[i], state_name(shared->items[k].g, shared->items[k].state), &stars))
        methods = shared->items[k].methods > methods ? shared->items[k].methods : methods;
    if (methods < 2)
      return diag_report(&s->sink, DIAG_STATE_UNKNOWN, DIAG_NOWHERE, "--share-state " SV_FMT ": %s",
                         SV_ARG(s->shared[i]),
                         methods ? "only one method has such a state"
                                 : "no method has such a state");
  }
  return STATUS_OK;
}

static Status find_all_shared(Session *s, SharedStates *shared) {
  uint32_t states = 0;
  for (uint32_t i = 0; i < s->program.method_count; i++)
    states += s->program.methods[i].graph->state_count;
  shared->items = ARENA_ARRAY(&s->arena, SharedState, (size_t)states + 1);
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    const Method *m = &s->program.methods[i];
    for (uint32_t k = 0; k < m->graph->state_count; k++)
      if (is_shared(s, state_name(m->graph, k)))
        TRY(share_state(s, m, k, shared));
  }
  return check_shared(s, shared);
}

/* Bytes that the arena has behind its last state. */
static uint64_t spare_of(const Method *m, uint32_t arena) {
  const Graph *g = m->graph;
  uint64_t end = 0;
  for (uint32_t k = 1; k < g->storage_count; k++) {
    const Storage *storage = &g->storages[k];
    uint64_t last = storage->offset + align_up(storage->size, alignment_of(m));
    end = storage->arena == arena && last > end ? last : end;
  }
  return g->arena_sizes[arena] > end ? g->arena_sizes[arena] - end : 0;
}

/* Shared states where all methods have them, the others from `from` on; returns where they end. */
static uint64_t place_states(const Method *m, uint32_t arena, SharedStates *shared, uint64_t from) {
  Graph *g = m->graph;
  uint64_t spare = spare_of(m, arena), end = from;
  for (uint32_t k = 0; k < g->state_count; k++) {
    Storage *storage = &g->storages[g->values[g->states[k].value].storage];
    const SharedState *same = find_shared(shared, state_name(g, k));
    storage->offset = same ? same->offset : end;
    end += same ? 0 : align_up(storage->size, alignment_of(m));
  }
  g->arena_sizes[arena] = end + spare;
  return end == from ? from : end + spare;
}

Status states_place(Session *s) {
  SharedStates shared = {0};
  uint32_t arena = state_arena(s);
  TRY(find_all_shared(s, &shared));
  uint64_t total = shared.bytes;
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    const Method *m = &s->program.methods[i];
    Graph *g = m->graph;
    if (g->state_count == 0 || g->arena_size_count < 3 || !*arena_of(g, 0))
      continue;
    move_arena(g, arena);
    total = place_states(m, arena, &shared, total);
  }
  return STATUS_OK;
}
