/* See life.h. */
#include "pipeline/life.h"

#include "ir/op.h"
#include <stdlib.h>

#include "support/keymap.h"
#include "support/number.h"

#define NONE LIFE_NO_EVENT

/* How a node or value ended. */
typedef struct End {
  LifeChange change;
  uint32_t event; /* that ended it; NONE: nobody ever used it */
  ValueId next;   /* what goes on; 0: `node` does, or nothing */
  NodeId node;
} End;

/* The last events about nodes and values, as indices; NONE where there is none. */
struct LifeIndex {
  const Graph *g;
  const Trace *trace;
  uint32_t *built, *removed;     /* by node */
  uint32_t *replaced, *released; /* by value */
  uint32_t *first_at;            /* by node: the first that was built where a rule looked at it */
  uint32_t *first_loc;           /* by location: the first that was built outside of rules */
  uint32_t *next;                /* by event: the next one of either list */
  End *ends;                     /* by node that was removed */
  /* Lists in the order of the events. */
  uint32_t *at_loc;    /* by location: the first BUILT or BOUND */
  uint32_t *edited;    /* by node */
  uint32_t *read;      /* by name: the first READ */
  uint32_t *next_same; /* by event: the next one of any of these */
  uint32_t *read_of;   /* by value: the first READ */
  uint32_t *next_of;   /* by event: the next READ of the value */
};

/* One search. */
typedef struct Follower {
  const LifeIndex *x;
  Life *life;
  Arena *arena;
  KeyMap carriers; /* by kind and id: 1 + the carrier that it is */
} Follower;

static uint32_t *nones(Arena *arena, uint32_t count) {
  uint32_t *items = ARENA_ARRAY(arena, uint32_t, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++)
    items[i] = NONE;
  return items;
}

static void index_event(LifeIndex *x, uint32_t i) {
  const TraceEvent *e = &x->trace->events[i];
  uint32_t *list;
  switch (e->kind) {
  case TRACE_BUILT:
    x->built[e->node] = i;
    list = e->at ? &x->first_at[e->at] : &x->first_loc[e->loc];
    x->next[i] = *list;
    *list = i;
    break;
  case TRACE_REMOVED:
    x->removed[e->node] = i;
    break;
  case TRACE_REPLACED:
    x->replaced[e->value] = i;
    break;
  case TRACE_RELEASED:
    x->released[e->value] = i;
    break;
  case TRACE_EDITED:
  case TRACE_BOUND:
  case TRACE_READ:
    break;
  }
}

/* From the last event to the first. */
static void index_list(LifeIndex *x, uint32_t i) {
  const TraceEvent *e = &x->trace->events[i];
  uint32_t *list = NULL;
  if (e->kind == TRACE_BUILT || e->kind == TRACE_BOUND)
    list = &x->at_loc[e->loc];
  else if (e->kind == TRACE_EDITED)
    list = &x->edited[e->node];
  else if (e->kind == TRACE_READ)
    list = &x->read[e->name];
  if (list) {
    x->next_same[i] = *list;
    *list = i;
  }
  if (e->kind == TRACE_READ) {
    x->next_of[i] = x->read_of[e->value];
    x->read_of[e->value] = i;
  }
}

/* The node that v is or was a result of; 0 for other values. */
static NodeId node_of(const LifeIndex *x, ValueId v) {
  const Value *value = value_cget(x->g, v);
  if (value->kind == VALUE_RESULT)
    return value->def;
  if (value->kind != VALUE_UNUSED || value->def >= x->g->node_count ||
      x->removed[value->def] == NONE)
    return 0;
  const TraceEvent *e = &x->trace->events[x->removed[value->def]];
  return e->value <= v && v < e->to ? value->def : 0;
}

/* Whether what v is a result of was made by the change that is event e: by the same rule at the
 * same node, or outside of rules in the same pass. */
static bool is_new(const LifeIndex *x, ValueId v, const TraceEvent *e) {
  NodeId n = node_of(x, v);
  if (!n || x->built[n] == NONE)
    return false;
  const TraceEvent *built = &x->trace->events[x->built[n]];
  return built->run == e->run && built->at == e->at;
}

static End replaced_by(const LifeIndex *x, uint32_t i) {
  const TraceEvent *e = &x->trace->events[i];
  End end = {.change = LIFE_EQUAL, .event = i, .next = e->to};
  if (value_is_const(x->g, e->to) && !value_is_const(x->g, e->value))
    end.change = LIFE_FOLDED;
  else if (is_new(x, e->to, e))
    end.change = LIFE_REPLACED;
  return end;
}

/* The end of a value that lost its last use in event i: it follows from what became of that user,
 * which was either removed before event i, or got other operands. */
static End end_of_released(const LifeIndex *x, uint32_t i) {
  NodeId user = x->trace->events[i].node;
  End end = {.change = LIFE_UNUSED, .event = i};
  if (user <= NODE_OUTPUT)
    return end;
  if (x->removed[user] == NONE || x->removed[user] > i) /* it has other operands now */
    return (End){.change = LIFE_FUSED, .event = i, .node = user};
  End users = x->ends[user];
  if (users.change == LIFE_FOLDED)
    return users;
  if (users.change != LIFE_REPLACED && users.change != LIFE_FUSED)
    return users.event == NONE ? end : (End){.change = LIFE_UNUSED, .event = users.event};
  users.change = LIFE_FUSED;
  return users;
}

static End end_of_value(const LifeIndex *x, ValueId v) {
  uint32_t replaced = x->replaced[v], released = x->released[v];
  if (replaced != NONE && (released == NONE || replaced > released))
    return replaced_by(x, replaced);
  if (released != NONE)
    return end_of_released(x, released);
  return (End){.change = LIFE_UNUSED, .event = NONE};
}

/* Of a node that event i removed: of its results one that goes on. */
static End end_of_node(const LifeIndex *x, const TraceEvent *removed, uint32_t i) {
  End best = {.change = LIFE_UNUSED, .event = NONE};
  for (ValueId v = removed->value; v < removed->to; v++) {
    End end = end_of_value(x, v);
    if (best.event == NONE || (best.change == LIFE_UNUSED && end.change != LIFE_UNUSED))
      best = end;
  }
  if (best.event == NONE)
    best.event = i;
  return best;
}

const LifeIndex *life_index(const Graph *g, Arena *arena) {
  LifeIndex *x = ARENA_NEW(arena, LifeIndex);
  x->g = g;
  x->trace = g->trace;
  x->built = nones(arena, g->node_count);
  x->removed = nones(arena, g->node_count);
  x->first_at = nones(arena, g->node_count);
  x->replaced = nones(arena, g->value_count);
  x->released = nones(arena, g->value_count);
  x->first_loc = nones(arena, g->loc_count);
  x->next = nones(arena, x->trace->count);
  x->ends = ARENA_ARRAY(arena, End, g->node_count);
  x->at_loc = nones(arena, g->loc_count);
  x->edited = nones(arena, g->node_count);
  x->read = nones(arena, g->ctx->names.count + 1); /* ids begin with 1 */
  x->read_of = nones(arena, g->value_count);
  x->next_same = nones(arena, x->trace->count);
  x->next_of = nones(arena, x->trace->count);
  for (uint32_t i = 0; i < x->trace->count; i++)
    index_event(x, i);
  for (uint32_t i = x->trace->count; i > 0; i--)
    index_list(x, i - 1);
  for (uint32_t i = 0; i < x->trace->count; i++)
    if (x->trace->events[i].kind == TRACE_REMOVED)
      x->ends[x->trace->events[i].node] = end_of_node(x, &x->trace->events[i], i);
  return x;
}

/* --- events --- */

bool life_owns(const LifeTarget *target, LocId loc) {
  uint32_t low = 0, high = target->loc_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (target->locs[middle] < loc)
      low = middle + 1;
    else
      high = middle;
  }
  return low < target->loc_count && target->locs[low] == loc;
}

uint32_t *life_events(const LifeIndex *x, const LifeTarget *target, TraceKind kind, Arena *arena,
                      uint32_t *count) {
  uint32_t *events = NULL;
  *count = 0;
  for (uint32_t k = 0; k < target->loc_count; k++)
    for (uint32_t i = x->at_loc[target->locs[k]]; i != NONE; i = x->next_same[i]) {
      if (x->trace->events[i].kind != kind)
        continue;
      events = arena_push(arena, events, *count, sizeof *events);
      events[(*count)++] = i;
    }
  if (target->loc_count > 1 && *count)
    qsort(events, *count, sizeof *events, compare_u32);
  return events;
}

uint32_t life_first_edit(const LifeIndex *x, NodeId n) { return x->edited[n]; }
uint32_t life_first_read(const LifeIndex *x, NameId name) { return x->read[name]; }
uint32_t life_first_read_of(const LifeIndex *x, ValueId v) { return x->read_of[v]; }
uint32_t life_next_event(const LifeIndex *x, uint32_t i, bool by_value) {
  return by_value ? x->next_of[i] : x->next_same[i];
}

/* --- carriers --- */

/* Where the number of the carrier is; good until the next call. */
static uint32_t *carrier_of(Follower *f, CarrierKind kind, uint32_t id) {
  uint32_t key[] = {(uint32_t)kind, id}, *slot;
  (void)keymap_get(&f->carriers, key, sizeof key, &slot);
  return slot;
}

static uint32_t add(Follower *f, Carrier c) {
  Life *life = f->life;
  life->carriers = arena_push(f->arena, life->carriers, life->count, sizeof *life->carriers);
  c.equal = c.from && life->carriers[c.from - 1].equal;
  life->carriers[life->count] = c;
  return ++life->count;
}

/* The carriers that come next are found through carrier `from` - 1, in that run. Adding returns 1 +
 * the index of the carrier; 0 where there is no carrier. */
static uint32_t add_node(Follower *f, NodeId n, uint32_t run, uint32_t from) {
  if (n <= NODE_OUTPUT || f->x->built[n] == NONE)
    return 0;
  const TraceEvent *e = &f->x->trace->events[f->x->built[n]];
  uint32_t *carrier = carrier_of(f, CARRIER_NODE, n);
  if (!*carrier)
    *carrier = add(
        f,
        (Carrier){
            .kind = CARRIER_NODE, .id = n, .op = e->op, .loc = e->loc, .born = run, .from = from});
  return *carrier;
}

/* The value, or the node that it is a result of, or was before that was removed. */
static uint32_t add_value(Follower *f, ValueId v, uint32_t run, uint32_t from) {
  NodeId n = node_of(f->x, v);
  if (n)
    return add_node(f, n, run, from);
  if (!v)
    return 0;
  uint32_t *carrier = carrier_of(f, CARRIER_VALUE, v);
  if (!*carrier)
    *carrier = add(f, (Carrier){.kind = CARRIER_VALUE, .id = v, .born = run, .from = from});
  return *carrier;
}

static bool is_delegate_call(const Follower *f, ValueId v) {
  const Value *value = value_cget(f->x->g, v);
  return value->kind == VALUE_RESULT &&
         op_has_trait(node_cget(f->x->g, value->def)->op, OP_DELEGATE);
}

/* Whether what event e built is still there when its pass is done. */
static bool outlives(const LifeIndex *x, const TraceEvent *e) {
  uint32_t removed = x->removed[e->node];
  return removed == NONE || x->trace->events[removed].run > e->run;
}

/* All that was built where n was, and outlived the pass: by the rule that looked at n, or outside
 * of rules for the same operator of the model. */
static void add_built(Follower *f, NodeId n, const TraceEvent *cause, uint32_t from) {
  const LifeIndex *x = f->x;
  LocId loc = x->trace->events[x->built[n]].loc;
  for (uint32_t i = cause->at ? x->first_at[n] : x->first_loc[loc]; i != NONE; i = x->next[i]) {
    const TraceEvent *e = &x->trace->events[i];
    if (e->run == cause->run && outlives(x, e))
      (void)add_node(f, e->node, e->run, from);
  }
}

/* Whether it is in the last graph; of constants those that are used. */
static bool stays(const Follower *f, const Carrier *c) {
  if (c->kind == CARRIER_NODE)
    return f->x->removed[c->id] == NONE;
  const Value *v = value_cget(f->x->g, c->id);
  return v->kind != VALUE_CONST || v->use_count;
}

/* Adds what goes on where carrier i ended; returns 1 + the index of the carrier that took its
 * place. What import read of a constant to compute another one is no longer that constant. */
static uint32_t add_next(Follower *f, uint32_t i, const End *end) {
  const TraceEvent *cause = &f->x->trace->events[end->event];
  bool node = f->life->carriers[i].kind == CARRIER_NODE;
  NodeId n = node ? f->life->carriers[i].id : 0;
  if (!node && cause->run == 0 && end->change == LIFE_FOLDED)
    return 0;
  uint32_t before = f->life->count;
  uint32_t next = end->next ? add_value(f, end->next, cause->run, i + 1)
                            : add_node(f, end->node, cause->run, i + 1);
  if (f->life->count > before && end->change == LIFE_EQUAL)
    f->life->carriers[before].equal = true;
  if (node && cause->run && end->change == LIFE_REPLACED && (!cause->at || cause->at == n))
    add_built(f, n, cause, i + 1);
  return next;
}

/* Notes how carrier i ended, and adds what goes on. */
static void follow(Follower *f, uint32_t i) {
  Carrier *c = &f->life->carriers[i];
  if (stays(f, c))
    return;
  End end = c->kind == CARRIER_NODE ? f->x->ends[c->id] : end_of_value(f->x, c->id);
  bool delegated = end.next && is_delegate_call(f, end.next);
  c->change = delegated ? LIFE_DELEGATED : end.change;
  c->lost = c->born;
  if (end.event == NONE)
    return;
  c->lost = f->x->trace->events[end.event].run;
  c->rule = f->x->trace->events[end.event].rule;
  uint32_t next = add_next(f, i, &end); /* may move c */
  f->life->carriers[i].next = next;
}

/* --- the first ones --- */

/* Tries of the importer are rolled back: nobody ever used those nodes, and nothing replaced them.
 */
static bool was_rolled_back(const Follower *f, NodeId n) {
  if (f->x->removed[n] == NONE)
    return false;
  const TraceEvent *e = &f->x->trace->events[f->x->removed[n]];
  bool touched = false;
  for (ValueId v = e->value; v < e->to; v++)
    touched |= f->x->replaced[v] != NONE;
  return e->run == 0 && !touched;
}

static void add_first(Follower *f, const LifeTarget *target, const uint32_t *built,
                      uint32_t count) {
  if (target->value)
    (void)add_value(f, target->value, 0, 0);
  for (uint32_t i = 0; i < count; i++) {
    const TraceEvent *e = &f->x->trace->events[built[i]];
    if (e->run == 0 && f->x->built[e->node] == built[i] && !was_rolled_back(f, e->node))
      (void)add_node(f, e->node, 0, 0);
  }
}

/* Of an operator of which nothing stays, the values that are its outputs: others' values that it
 * passes through (Identity, Dropout, If with one branch that can run). */
static void add_outputs(Follower *f, const LifeTarget *target) {
  const Life *life = f->life;
  uint32_t count;
  for (uint32_t i = 0; i < life->count; i++)
    if (life->carriers[i].change == LIFE_STAYS)
      return;
  const uint32_t *bound = life_events(f->x, target, TRACE_BOUND, f->arena, &count);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t before = life->count;
    (void)add_value(f, f->x->trace->events[bound[i]].value, 0, 0);
    if (life->count > before)
      life->carriers[before].equal = true;
  }
}

/* What passes built for the operator besides, and did not take away themselves. */
static void add_others(Follower *f, const uint32_t *built, uint32_t count) {
  const LifeIndex *x = f->x;
  for (uint32_t i = 0; i < count; i++) {
    const TraceEvent *e = &x->trace->events[built[i]];
    if (e->run && x->built[e->node] == built[i] && outlives(x, e))
      (void)add_node(f, e->node, e->run, 0);
  }
}

/* From carrier `done` on; returns how many there are then. */
static uint32_t follow_all(Follower *f, uint32_t done) {
  for (; done < f->life->count; done++)
    follow(f, done);
  return done;
}

Life life_find(const LifeIndex *index, LifeTarget target, Arena *arena) {
  const Graph *g = index->g;
  Life life = {.g = g};
  Follower f = {.x = index,
                .life = &life,
                .arena = arena,
                .carriers = keymap_make(arena, g->ctx->names.seed)};
  uint32_t count;
  const uint32_t *built = life_events(index, &target, TRACE_BUILT, arena, &count);
  add_first(&f, &target, built, count);
  uint32_t done = follow_all(&f, 0);
  add_others(&f, built, count);
  done = follow_all(&f, done);
  add_outputs(&f, &target);
  follow_all(&f, done);
  return life;
}
