/* Which operators and values of the model a name may mean. */
#include "pipeline/why_internal.h"
#include "support/text.h"

typedef struct Finder {
  const Session *s;
  Arena *arena;
  StrView name;
  WhyTarget *found;
  uint32_t count;
} Finder;

static StrView name_of(const Graph *g, NameId name) { return intern_get(&g->ctx->names, name); }

/* NAME, or SCOPE/NAME. */
static bool is_named(const Graph *g, const Loc *loc, StrView name) {
  StrView own = name_of(g, loc->name), scope = name_of(g, loc->scope);
  if (!own.size)
    return false;
  if (sv_eq(own, name))
    return true;
  return scope.size && name.size == scope.size + 1 + own.size && sv_starts_with(name, scope) &&
         name.data[scope.size] == '/' && sv_has_suffix(name, own);
}

/* One operator has several locations where it is inlined several times. */
static bool same_operator(const Graph *g, LocId a, LocId b) {
  const Loc *x = &g->locs[a], *y = &g->locs[b];
  return x->name == y->name && x->scope == y->scope && x->index == y->index &&
         x->op_type == y->op_type;
}

static WhyTarget *add(Finder *f, uint32_t method) {
  f->found = arena_push(f->arena, f->found, f->count, sizeof *f->found);
  f->found[f->count] =
      (WhyTarget){.method = &f->s->program.methods[method], .method_index = method};
  return &f->found[f->count++];
}

static void add_operator(Finder *f, uint32_t method, LocId loc) {
  const Graph *g = f->s->program.methods[method].graph;
  for (uint32_t i = 0; i < f->count; i++)
    if (f->found[i].method_index == method && f->found[i].loc &&
        same_operator(g, f->found[i].loc, loc))
      return;
  WhyTarget *t = add(f, method);
  uint32_t count = 0;
  for (LocId i = 1; i < g->loc_count; i++)
    count += same_operator(g, i, loc);
  LocId *locs = ARENA_ARRAY(f->arena, LocId, count);
  for (LocId i = 1; i < g->loc_count; i++)
    if (same_operator(g, i, loc))
      locs[t->target.loc_count++] = i;
  t->target.locs = locs;
  t->loc = loc;
  t->name = g->locs[loc].name;
}

static void add_value(Finder *f, uint32_t method, ValueId v, NameId name) {
  for (uint32_t i = 0; i < f->count; i++)
    if (f->found[i].method_index == method && f->found[i].target.value == v)
      return;
  WhyTarget *t = add(f, method);
  t->target.value = v;
  t->name = name;
}

/* Values that operators of the model give come from those. */
static void find_outputs(Finder *f, uint32_t method) {
  const Graph *g = f->s->program.methods[method].graph;
  for (uint32_t i = 0; i < g->trace->count; i++) {
    const TraceEvent *e = &g->trace->events[i];
    if (e->kind == TRACE_BOUND && sv_eq(name_of(g, e->name), f->name))
      add_operator(f, method, e->loc);
  }
}

/* Inputs and initializers; of a textual graph results, too. The first value of a name is the
 * model's: passes give its name to what they make of it. */
static void find_value(Finder *f, uint32_t method) {
  const Graph *g = f->s->program.methods[method].graph;
  for (ValueId v = 1; v < g->value_count; v++)
    if (g->values[v].name && sv_eq(name_of(g, g->values[v].name), f->name)) {
      add_value(f, method, v, g->values[v].name);
      return;
    }
}

WhyTarget *why_targets(const Session *s, StrView name, Arena *arena, uint32_t *count) {
  Finder f = {.s = s, .arena = arena, .name = name};
  for (uint32_t m = 0; m < s->program.method_count; m++) {
    const Graph *g = s->program.methods[m].graph;
    uint32_t before = f.count;
    for (LocId i = 1; i < g->loc_count; i++)
      if (is_named(g, &g->locs[i], name))
        add_operator(&f, m, i);
    if (f.count == before)
      find_outputs(&f, m);
    if (f.count == before)
      find_value(&f, m);
  }
  StrBuf plain = {0};
  if (!f.count && memchr(name.data, '\\', name.size) && strbuf_append_unescaped(&plain, name))
    f.found = why_targets(s, strbuf_keep(&plain, arena), arena, &f.count); /* as it is printed */
  strbuf_release(&plain);
  *count = f.count;
  return f.found;
}

/* One location of an operator of the model, of which there may be several. */
static void add_location(Finder *f, KeyMap *known, uint32_t method, LocId id) {
  const Loc *loc = &f->s->program.methods[method].graph->locs[id];
  uint64_t key[] = {method, loc->name, loc->scope, (uint64_t)loc->index, loc->op_type};
  uint32_t *slot, found = keymap_get(known, key, sizeof key, &slot);
  if (!found) {
    WhyTarget *t = add(f, method);
    t->loc = id;
    t->name = loc->name;
    *slot = found = f->count;
  }
  LifeTarget *target = &f->found[found - 1].target;
  LocId *locs = (LocId *)target->locs;
  target->locs = locs = arena_push(f->arena, locs, target->loc_count, sizeof *locs);
  locs[target->loc_count++] = id;
}

WhyTarget *why_operators(const Session *s, Arena *arena, uint32_t *count) {
  Finder f = {.s = s, .arena = arena};
  KeyMap known = keymap_make(arena, s->ctx.names.seed);
  for (uint32_t m = 0; m < s->program.method_count; m++)
    for (LocId i = 1; i < s->program.methods[m].graph->loc_count; i++)
      if (s->program.methods[m].graph->locs[i].index >= 0)
        add_location(&f, &known, m, i);
  *count = f.count;
  return f.found;
}

enum { NESTED_MAX = 64 };

static const Onnx__NodeProto *find_proto(Onnx__NodeProto *const *nodes, size_t count, StrView name,
                                         unsigned depth);

static const Onnx__NodeProto *find_within(const Onnx__NodeProto *node, StrView name,
                                          unsigned depth) {
  const Onnx__NodeProto *found = NULL;
  for (size_t i = 0; i < node->n_attribute && !found && depth < NESTED_MAX; i++) {
    const Onnx__AttributeProto *a = node->attribute[i];
    if (a->g)
      found = find_proto(a->g->node, a->g->n_node, name, depth + 1);
    for (size_t k = 0; k < a->n_graphs && !found; k++)
      found = find_proto(a->graphs[k]->node, a->graphs[k]->n_node, name, depth + 1);
  }
  return found;
}

static const Onnx__NodeProto *find_proto(Onnx__NodeProto *const *nodes, size_t count, StrView name,
                                         unsigned depth) {
  for (size_t i = 0; i < count; i++) {
    bool is = sv_eq(onnx_text(nodes[i]->name), name);
    for (size_t k = 0; k < nodes[i]->n_output; k++)
      is |= sv_eq(onnx_text(nodes[i]->output[k]), name);
    const Onnx__NodeProto *found = is ? nodes[i] : find_within(nodes[i], name, depth);
    if (found)
      return found;
  }
  return NULL;
}

const Onnx__NodeProto *why_left_out(const Session *s, StrView name) {
  const Onnx__NodeProto *found = NULL;
  for (uint32_t i = 0; i < s->program.source_count && name.size && !found; i++) {
    const Source *source = s->program.sources[i];
    if (source->kind != SOURCE_ONNX || !source->open)
      continue;
    const Onnx__ModelProto *model = source->onnx.proto;
    found = find_proto(model->graph->node, model->graph->n_node, name, 0);
    for (size_t k = 0; k < model->n_functions && !found; k++)
      found = find_proto(model->functions[k]->node, model->functions[k]->n_node, name, 0);
  }
  return found;
}

bool why_hint_nearest(const Session *s, StrView name, Arena *arena, Diag *d) {
  size_t count = 0, all = 0;
  for (uint32_t m = 0; m < s->program.method_count; m++) {
    const Graph *g = s->program.methods[m].graph;
    all += (size_t)g->loc_count + g->value_count + g->trace->count;
  }
  const char **names = ARENA_ARRAY(arena, const char *, all + 1);
  for (uint32_t m = 0; m < s->program.method_count; m++) {
    const Graph *g = s->program.methods[m].graph;
    for (LocId i = 1; i < g->loc_count; i++)
      if (g->locs[i].name)
        names[count++] = name_of(g, g->locs[i].name).data;
    for (uint32_t i = 0; i < g->trace->count; i++)
      if (g->trace->events[i].kind == TRACE_BOUND)
        names[count++] = name_of(g, g->trace->events[i].name).data;
    for (ValueId v = 1; v < g->value_count; v++)
      if (g->values[v].name)
        names[count++] = name_of(g, g->values[v].name).data;
  }
  return diag_hint_nearest(d, name, names, count);
}
