/* See why.h. */
#include "pipeline/why.h"

#include <inttypes.h>
#include <stdlib.h>

#include "pipeline/why_internal.h"

enum { LISTED = 16 };

static void drop_program(void *user, const char *data, size_t size) {
  (void)user;
  (void)data;
  (void)size;
}

void session_trace(Session *s) { s->ctx.traced = true; }

Status session_lower_in_memory(Session *s) {
  /* What a recipe may name beside the program is left out. */
  s->artifacts = s->map = s->depfile = s->external = NULL;
  s->budget = NULL;
  s->report_count = 0;
  for (uint32_t i = 0; i < s->layer_count; i++)
    s->layers[i]->options.bundle = NULL;
  s->default_depfile = s->size = s->explain_json = s->explain_table = false;
  s->deliver = drop_program;
  s->output = "-";
  return session_run(s, STAGE_EMIT);
}

/* --- names --- */

const char *why_op_name(OpId op, Arena *arena) { return arena_strdup(arena, op_schema(op)->full); }

const char *why_loc_name(const Graph *g, LocId id, Arena *arena) {
  DiagPlace place = graph_place(g, id);
  if (place.node.size)
    return arena_printf(arena, "'" SV_FMT "' (" SV_FMT ")", SV_ARG(place.node), SV_ARG(place.op));
  if (place.index >= 0)
    return arena_printf(arena, SV_FMT " (node %" PRId64 ")", SV_ARG(place.op), place.index);
  return arena_strdup(arena, place.op);
}

const char *why_value_name(const Why *w, ValueId v, Arena *arena) {
  StrView name = value_name(w->g, v);
  NodeId n = value_def(w->g, v);
  if (name.size)
    return arena_printf(arena, "'" SV_FMT "'", SV_ARG(name));
  return n ? arena_printf(arena, "a result of %s",
                          why_loc_name(w->g, node_cget(w->g, n)->loc, arena))
           : "an unnamed value";
}

/* --- what is known --- */

static bool is_output(const Why *w, NameId name) {
  for (uint32_t i = 0; i < w->output_count; i++)
    if (w->outputs[i] == name)
      return true;
  return false;
}

static void find_outputs(Why *w) {
  uint32_t count;
  const uint32_t *bound =
      life_events(w->program->index, &w->t.target, TRACE_BOUND, &w->arena, &count);
  for (uint32_t i = 0; i < count; i++) {
    const TraceEvent *e = &w->g->trace->events[bound[i]];
    if (is_output(w, e->name))
      continue;
    ARENA_PUSH(&w->arena, w->outputs, w->output_count, e->name);
  }
}

/* The first `most` TRACE_READ of the value or of each output, in order: numbers of events. */
static uint32_t *find_reads(Why *w, uint32_t most, uint32_t *count) {
  const LifeIndex *index = w->program->index;
  bool by_value = w->t.target.value != 0;
  uint32_t lists = by_value ? 1 : w->output_count;
  uint32_t *reads = ARENA_ARRAY(&w->arena, uint32_t, (size_t)most * lists + 1);
  *count = 0;
  for (uint32_t k = 0; k < lists; k++) {
    uint32_t i = by_value ? life_first_read_of(index, w->t.target.value)
                          : life_first_read(index, w->outputs[k]);
    for (uint32_t taken = 0; taken < most && i != LIFE_NO_EVENT; taken++) {
      reads[(*count)++] = i;
      i = life_next_event(index, i, by_value);
    }
  }
  qsort(reads, *count, sizeof *reads, compare_u32);
  return reads;
}

const char *why_readers(Why *w) {
  enum { SHOWN = 6 };
  const char *text = "";
  uint32_t count;
  const uint32_t *reads = find_reads(w, SHOWN + 1, &count);
  for (uint32_t i = 0; i < count && i <= SHOWN; i++)
    text = arena_printf(
        &w->arena, "%s%s%s", text, i ? ", " : "",
        i == SHOWN ? "..." : why_loc_name(w->g, w->g->trace->events[reads[i]].loc, &w->arena));
  return text;
}

static bool has_own(const Why *w) {
  for (uint32_t i = 0; i < w->life.count; i++)
    if (w->life.carriers[i].change == LIFE_STAYS && !w->life.carriers[i].equal)
      return true;
  return false;
}

bool why_tells(const Why *w, const Carrier *c) { return !c->equal || !w->has_own; }

/* In the order of the backends, and of the nodes that each tells of. */
static int compare_facts(const void *a, const void *b) {
  const WhyFact *x = a, *y = b;
  int order = ORDER(x->order, y->order);
  return order ? order : ORDER(x->node, y->node);
}

static void add_fact(Why *w, uint32_t backend, const NodeFact *n) {
  const WhyBackend *b = &w->program->backends[backend];
  const DelegateFact *delegate = b->delegates[n->partition];
  uint32_t number = delegate ? w->program->delegate[delegate->call] : 0;
  ARENA_PUSH(&w->arena, w->facts, w->fact_count, (WhyFact){n, b->fact, delegate, number, backend});
}

static void find_facts(Why *w) {
  for (uint32_t i = 0; i < w->life.count; i++) {
    const Carrier *c = &w->life.carriers[i];
    for (uint32_t k = 0; k < w->program->backend_count; k++) {
      const WhyBackend *b = &w->program->backends[k];
      if (c->kind != CARRIER_NODE || !why_tells(w, c))
        continue;
      for (uint32_t f = b->first[c->id]; f; f = b->next[f - 1])
        add_fact(w, k, &b->fact->nodes[f - 1]);
    }
  }
  if (w->fact_count)
    qsort(w->facts, w->fact_count, sizeof *w->facts, compare_facts);
}

/* --- changes --- */

static const char *carrier_name(Why *w, const Carrier *c) {
  if (c->kind == CARRIER_NODE)
    return why_op_name(c->op, &w->arena);
  if (value_is_const(w->g, c->id))
    return w->t.target.value == c->id ? "the constant" : "a constant";
  return why_value_name(w, c->id, &w->arena);
}

/* Words, each once, and how often they came: "aten::mul.Tensor, 2 aten::add.Tensor". */
typedef struct WordList {
  const char *words[8];
  uint32_t counts[8], count, more;
} WordList;

static void add_word(WordList *list, const char *word, bool counted) {
  for (uint32_t i = 0; i < list->count; i++)
    if (strcmp(list->words[i], word) == 0) {
      list->counts[i] += counted;
      return;
    }
  if (list->count == COUNT_OF(list->words)) {
    list->more++;
    return;
  }
  list->words[list->count] = word;
  list->counts[list->count++] = 1;
}

static const char *words_text(Why *w, const WordList *list) {
  const char *text = "";
  for (uint32_t i = 0; i < list->count; i++) {
    const char *comma = i ? ", " : "";
    text = list->counts[i] == 1 ? arena_printf(&w->arena, "%s%s%s", text, comma, list->words[i])
                                : arena_printf(&w->arena, "%s%s%" PRIu32 " %s", text, comma,
                                               list->counts[i], list->words[i]);
  }
  return list->more ? arena_printf(&w->arena, "%s, ...", text) : text;
}

/* Those that carry on from each carrier, in order; numbers from 1. */
typedef struct Followers {
  uint32_t *first; /* by number of the carrier */
  uint32_t *next;  /* by number of the follower */
} Followers;

static Followers index_followers(Why *w) {
  Followers f = {ARENA_ARRAY(&w->arena, uint32_t, (size_t)w->life.count + 1),
                 ARENA_ARRAY(&w->arena, uint32_t, (size_t)w->life.count + 1)};
  for (uint32_t k = w->life.count; k > 0; k--) {
    uint32_t from = w->life.carriers[k - 1].from;
    f.next[k] = f.first[from];
    f.first[from] = k;
  }
  return f;
}

/* What goes on for carrier i: what was found through it, and what another one found before it. */
static void find_became(Why *w, uint32_t i, const Followers *f, WhyChange *change) {
  WordList ops = {0}, others = {0};
  const Carrier *all = w->life.carriers;
  uint32_t own_next = f->first[i + 1], other = all[i].next;
  if (other && all[other - 1].from == i + 1)
    other = 0;
  while (own_next || other) {
    bool take_other = other && (!own_next || other < own_next);
    const Carrier *next = &all[(take_other ? other : own_next) - 1];
    other = take_other ? 0 : other;
    own_next = take_other ? own_next : f->next[own_next];
    add_word(&ops, carrier_name(w, next), true);
    if (next->kind == CARRIER_NODE && w->t.loc && !life_owns(&w->t.target, next->loc) &&
        !op_has_trait(next->op, OP_DELEGATE))
      add_word(&others, why_loc_name(w->g, next->loc, &w->arena), false);
  }
  change->became = ops.count ? words_text(w, &ops) : NULL;
  change->of = words_text(w, &others);
}

static uint32_t text_number(Why *w, const char *text) {
  uint32_t *slot;
  if (text && !keymap_get(&w->change_texts, text, (uint32_t)strlen(text), &slot))
    *slot = w->change_texts.count;
  return text ? *slot : 0;
}

/* Equal ones are one, and counted. */
static void add_change(Why *w, WhyChange change) {
  uint32_t key[] = {change.run,
                    (uint32_t)change.change,
                    text_number(w, change.rule),
                    text_number(w, change.what),
                    text_number(w, change.became),
                    text_number(w, change.of)};
  uint32_t *slot, old = keymap_get(&w->change_keys, key, sizeof key, &slot);
  if (old) {
    w->changes[old - 1].count++;
    return;
  }
  ARENA_PUSH(&w->arena, w->changes, w->change_count, change);
  *slot = w->change_count;
}

static int compare_changes(const void *a, const void *b) {
  const WhyChange *x = a, *y = b;
  int order = ORDER(x->run, y->run);
  return order ? order : ORDER(x->order, y->order);
}

/* A rule that changed a carrier in place. */
typedef struct Edit {
  uint32_t event;
  OpId op; /* of the carrier */
} Edit;

static int compare_edits(const void *a, const void *b) {
  const Edit *x = a, *y = b;
  return ORDER(x->event, y->event);
}

static void find_edits(Why *w) {
  const LifeIndex *index = w->program->index;
  Edit *edits = NULL;
  uint32_t count = 0;
  for (uint32_t i = 0; i < w->life.count; i++) {
    const Carrier *c = &w->life.carriers[i];
    uint32_t event = c->kind == CARRIER_NODE ? life_first_edit(index, c->id) : LIFE_NO_EVENT;
    for (; event != LIFE_NO_EVENT; event = life_next_event(index, event, false)) {
      ARENA_PUSH(&w->arena, edits, count, (Edit){event, c->op});
    }
  }
  if (count)
    qsort(edits, count, sizeof *edits, compare_edits);
  for (uint32_t i = 0; i < count; i++) {
    const TraceEvent *e = &w->g->trace->events[edits[i].event];
    add_change(w, (WhyChange){.run = e->run,
                              .change = LIFE_STAYS,
                              .rule = e->rule,
                              .what = why_op_name(edits[i].op, &w->arena),
                              .of = "",
                              .count = 1});
  }
}

static void find_changes(Why *w) {
  Followers followers = index_followers(w);
  w->change_texts = w->change_keys = keymap_make(&w->arena, w->s->ctx.names.seed);
  for (uint32_t i = 0; i < w->life.count; i++) {
    const Carrier *c = &w->life.carriers[i];
    if (!c->from && c->born)
      add_change(w, (WhyChange){.run = c->born,
                                .change = LIFE_ADDED,
                                .what = carrier_name(w, c),
                                .of = "",
                                .count = 1});
    if (c->change == LIFE_STAYS || !why_tells(w, c))
      continue;
    WhyChange change = {.run = c->lost,
                        .change = c->change,
                        .rule = c->rule,
                        .what = carrier_name(w, c),
                        .constant = c->kind == CARRIER_VALUE,
                        .count = 1};
    find_became(w, i, &followers, &change);
    add_change(w, change);
  }
  find_edits(w);
  for (uint32_t i = 0; i < w->change_count; i++)
    w->changes[i].order = i;
  if (w->change_count)
    qsort(w->changes, w->change_count, sizeof *w->changes, compare_changes);
}

/* --- one target --- */

static void tell(Session *s, const WhyTarget *target, const WhyProgram *program, bool json,
                 StrBuf *out) {
  Why w = {.s = s, .t = *target, .g = target->method->graph, .program = program, .json = json};
  find_outputs(&w);
  w.life = life_find(program->index, target->target, &w.arena);
  w.has_own = has_own(&w);
  find_facts(&w);
  find_changes(&w);
  why_find_ends(&w);
  (json ? why_print_json : why_print_text)(&w, out);
  arena_release(&w.arena);
}

/* The targets, those of a method behind each other. */
static Status tell_all(Session *s, const WhyTarget *targets, uint32_t count, bool json,
                       StrBuf *out) {
  Arena arena = {0};
  WhyProgram program = {0};
  Status status = STATUS_OK;
  for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
    uint32_t method = targets[i].method_index;
    if (i == 0 || method != targets[i - 1].method_index)
      status = why_program_init(&program, s, method, &arena);
    if (status == STATUS_OK)
      tell(s, &targets[i], &program, json, out);
  }
  arena_release(&arena);
  return status;
}

/* name is the type of operators: hints at one of them. */
static bool hint_type(const Session *s, StrView name, Diag *d) {
  uint32_t count = 0;
  const Graph *g = NULL;
  LocId first = 0;
  for (uint32_t m = 0; m < s->program.method_count; m++) {
    const Graph *own = s->program.methods[m].graph;
    for (LocId i = 1; i < own->loc_count; i++)
      if (own->locs[i].name && sv_eq(graph_place(own, i).op, name) && !count++) {
        g = own;
        first = i;
      }
  }
  if (count)
    diag_hint(d,
              "that is a type; give the name of an operator, as '" SV_FMT "'; --all tells of all",
              SV_ARG(graph_place(g, first).node));
  return count != 0;
}

static Status unknown(Session *s, StrView name, Arena *arena) {
  Diag *d = diag_begin(&s->sink, DIAG_USAGE, DIAG_NOWHERE);
  diag_message(d, "the model has no operator and no value '" SV_FMT "'", SV_ARG(name));
  if (!why_hint_nearest(s, name, arena, d) && !hint_type(s, name, d))
    diag_hint(d, "'etc why MODEL --all' tells of all operators");
  return diag_end(d);
}

static bool is_ambiguous(const WhyTarget *targets, uint32_t count) {
  for (uint32_t i = 1; i < count; i++)
    if (targets[i].method_index == targets[i - 1].method_index)
      return true;
  return false;
}

static Status ambiguous(Session *s, StrView name, const WhyTarget *targets, uint32_t count) {
  Diag *d = diag_begin(&s->sink, DIAG_USAGE, DIAG_NOWHERE);
  diag_message(d, "'" SV_FMT "' may be one of %" PRIu32 " operators", SV_ARG(name), count);
  for (uint32_t i = 0; i < count && i < LISTED; i++) {
    DiagPlace place = graph_place(targets[i].method->graph, targets[i].loc);
    diag_note(d, "'" SV_FMT "%s" SV_FMT "' (" SV_FMT ", node %" PRId64 ")", SV_ARG(place.graph),
              place.graph.size ? "/" : "", SV_ARG(place.node), SV_ARG(place.op), place.index);
  }
  if (count > LISTED)
    diag_note(d, "%" PRIu32 " more", count - LISTED);
  diag_hint(d, "name one of its outputs, or SCOPE/NAME");
  return diag_end(d);
}

Status session_why(Session *s, StrView name, bool json, StrBuf *out) {
  Arena arena = {0};
  uint32_t count;
  WhyTarget *targets = why_targets(s, name, &arena, &count);
  Status status = STATUS_OK;
  const Onnx__NodeProto *left_out = count ? NULL : why_left_out(s, name);
  if (left_out)
    why_print_left_out(left_out, json, out);
  else if (!count)
    status = unknown(s, name, &arena);
  else if (is_ambiguous(targets, count))
    status = ambiguous(s, name, targets, count);
  if (status == STATUS_OK)
    status = tell_all(s, targets, count, json, out);
  arena_release(&arena);
  return status;
}

Status session_why_all(Session *s, bool json, StrBuf *out) {
  Arena arena = {0};
  uint32_t count;
  const WhyTarget *targets = why_operators(s, &arena, &count);
  Status status = tell_all(s, targets, count, json, out);
  arena_release(&arena);
  return status;
}
