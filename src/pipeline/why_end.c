/* What became of an operator or value in the program: instructions and constants. */
#include <inttypes.h>
#include <stdlib.h>

#include "ir/text.h"
#include "ir/transform.h"
#include "passes/executorch/planner.h"
#include "ops/delegate.h"
#include "pipeline/why_internal.h"

typedef struct Ender {
  Why *w;
  const WhyProgram *p;
} Ender;

/* --- instructions --- */

static void index_instructions(WhyProgram *p, const Graph *g, const InstructionMap *map,
                               Arena *arena) {
  p->first = ARENA_ARRAY(arena, uint32_t, g->node_count);
  p->count = ARENA_ARRAY(arena, uint32_t, g->node_count);
  for (uint32_t i = 0; i < map->count; i++) {
    NodeId n = map->nodes[i];
    if (n && !p->first[n])
      p->first[n] = i + 1;
    p->count[n]++;
  }
  p->begin = ARENA_ARRAY(arena, uint32_t, (size_t)g->live_nodes + 2);
  p->end = ARENA_ARRAY(arena, uint32_t, (size_t)g->live_nodes + 2);
  uint32_t position = 0, next = 0;
  for (FOR_NODES(g, n)) {
    position++;
    p->begin[position] = p->first[n] ? p->first[n] - 1 : next;
    next = p->first[n] ? p->begin[position] + p->count[n] : next;
    p->end[position] = next;
  }
}

/* By node of the method. Those of the methods before it are counted first. */
static uint32_t *number_delegates(const Session *s, uint32_t method, Arena *arena) {
  uint32_t before = 0, count;
  for (uint32_t m = 0; m < method; m++) {
    (void)delegate_numbers(s->program.methods[m].graph, arena, &count);
    before += count;
  }
  const Graph *g = s->program.methods[method].graph;
  const uint32_t *own = delegate_numbers(g, arena, NULL);
  uint32_t *numbers = ARENA_ARRAY(arena, uint32_t, (size_t)g->node_count + 1);
  for (FOR_NODES(g, n))
    numbers[n] = own[n] ? before + own[n] : 0;
  return numbers;
}

static void add_backend(WhyProgram *p, const BackendFact *fact, uint32_t node_count, Arena *arena) {
  uint32_t last = 0;
  for (uint32_t i = 0; i < fact->node_count; i++)
    last = fact->nodes[i].partition > last ? fact->nodes[i].partition : last;
  for (uint32_t i = 0; i < fact->delegate_count; i++)
    last = fact->delegates[i].partition > last ? fact->delegates[i].partition : last;
  const DelegateFact **delegates = ARENA_ARRAY(arena, const DelegateFact *, (size_t)last + 1);
  for (uint32_t i = 0; i < fact->delegate_count; i++)
    delegates[fact->delegates[i].partition] = &fact->delegates[i];
  WhyBackend b = {.fact = fact,
                  .delegates = delegates,
                  .first = ARENA_ARRAY(arena, uint32_t, (size_t)node_count + 1),
                  .next = ARENA_ARRAY(arena, uint32_t, (size_t)fact->node_count + 1)};
  for (uint32_t i = fact->node_count; i > 0; i--) {
    b.next[i - 1] = b.first[fact->nodes[i - 1].node];
    b.first[fact->nodes[i - 1].node] = i;
  }
  ARENA_PUSH(arena, p->backends, p->backend_count, b);
}

static void index_facts(WhyProgram *p, const Facts *f, const Graph *g, Arena *arena) {
  p->backends = NULL;
  p->backend_count = 0;
  for (uint32_t i = 0; i < f->delegation_count; i++) {
    const DelegationFact *d = &f->delegations[i];
    for (uint32_t k = 0; d->graph == g && k < d->backend_count; k++)
      add_backend(p, &d->backends[k], g->node_count, arena);
  }
}

/* Constants that are in use, by their bytes. */
static void index_constants(WhyProgram *p, const Graph *g, Arena *arena) {
  p->constants = ARENA_NEW(arena, KeyMap);
  *p->constants = keymap_make(arena, g->ctx->names.seed);
  p->next_of_bytes = ARENA_ARRAY(arena, ValueId, (size_t)g->value_count + 1);
  for (ValueId v = g->value_count; v-- > 1;) {
    uint32_t *slot;
    if (!value_is_const(g, v) || !g->values[v].use_count)
      continue;
    const uint8_t *bytes = constant_source(value_lazy_constant(g, v))->data;
    p->next_of_bytes[v] = keymap_get(p->constants, &bytes, sizeof bytes, &slot);
    *slot = v;
  }
}

Status why_program_init(WhyProgram *p, const Session *s, uint32_t method, Arena *arena) {
  const Method *m = &s->program.methods[method];
  const PassOptions *o = &m->options->pass;
  const Planner *planner = o->planner ? o->planner : &builtin_planners[0];
  p->index = life_index(m->graph, arena);
  index_instructions(p, m->graph, &s->program.maps[method], arena);
  p->delegate = number_delegates(s, method, arena);
  index_facts(p, &s->program.facts, m->graph, arena);
  index_constants(p, m->graph, arena);
  TRY(liveness_compute(m->graph, arena,
                       (LivenessOptions){.in_place = planner->in_place,
                                         .host_inputs = o->host_inputs,
                                         .host_outputs = o->host_outputs},
                       &p->live));
  p->places = why_find_places(m->graph, &p->live, arena);
  return STATUS_OK;
}

static void add_end(Why *w, WhyEnd end) { ARENA_PUSH(&w->arena, w->ends, w->end_count, end); }

/* Its first instruction, or the next one behind it. */
static uint32_t position_of(const Ender *e, NodeId n) {
  for (; n; n = node_cget(e->w->g, n)->next)
    if (e->p->first[n])
      return e->p->first[n] - 1;
  return UINT32_MAX;
}

static void end_node(Ender *e, NodeId n) {
  Why *w = e->w;
  OpId op = node_cget(w->g, n)->op;
  WhyEnd end = {.node = n,
                .instruction = position_of(e, n),
                .instruction_count = e->p->count[n],
                .what = why_op_name(op, &w->arena)};
  if (op_has_trait(op, OP_DELEGATE)) {
    end.kind = WHY_DELEGATE;
    end.delegate = e->p->delegate[n];
    end.what = node_str(w->g, n, DELEGATE_ARG_BACKEND).data;
  } else if (op_has_trait(op, OP_CONTROL)) {
    end.kind = WHY_CONTROL;
  } else if (!e->p->count[n]) {
    end.kind = WHY_VIEW;
  } else {
    end.kind = WHY_KERNEL;
    end.what = op_row(op)->out ? op_row(op)->out : end.what;
  }
  add_end(w, end);
}

/* --- constants --- */

/* "data of delegate 1, instruction 0" or "instructions 3, 7". */
static const char *users_text(const Ender *e, ValueId v) {
  enum { SHOWN = 4 };
  Why *w = e->w;
  const char *text = "";
  uint32_t shown = 0;
  for (UseId u = first_use(w->g, v); u; u = w->g->uses[u].next) {
    NodeId n = w->g->uses[u].node;
    if (n == NODE_OUTPUT || !e->p->first[n] || shown > SHOWN)
      continue;
    const char *comma = shown ? ", " : "";
    if (shown++ == SHOWN)
      text = arena_printf(&w->arena, "%s, ...", text);
    else if (op_has_trait(node_cget(w->g, n)->op, OP_DELEGATE))
      text = arena_printf(&w->arena, "%s%sdelegate %" PRIu32, text, comma, e->p->delegate[n]);
    else
      text = arena_printf(&w->arena, "%s%sinstruction %" PRIu32, text, comma, e->p->first[n] - 1);
  }
  return text;
}

static const char *form_of(const Constant *c) {
  const Transform *t = c->transform;
  if (!t)
    return "as they are";
  if (t->code == TRANSFORM_COPY)
    return "permuted";
  return t->code == TRANSFORM_INT8 ? "quantized to 8 bits" : "quantized to 4 bits";
}

static void end_constant(Ender *e, ValueId v) {
  Why *w = e->w;
  StrBuf type = {0};
  type_print(w->g, value_type(w->g, v), &type);
  const Constant *c = value_lazy_constant(w->g, v);
  const char *users = users_text(e, v);
  WhyEnd end = (WhyEnd){
      .kind = WHY_CONSTANT,
      .value = v,
      .what = arena_printf(&w->arena, "%s, %" PRIu64 " bytes", strbuf_cstr(&type), c->size),
      .form = arena_printf(&w->arena, "%s%s%s", form_of(c), users[0] ? ", for " : "", users)};
  strbuf_release(&type);
  for (uint32_t i = 0; i < w->end_count; i++) /* equal constants are one in the program */
    if (w->ends[i].kind == WHY_CONSTANT && strcmp(w->ends[i].what, end.what) == 0 &&
        strcmp(w->ends[i].form, end.form) == 0)
      return;
  add_end(w, end);
}

/* Constants of the program that are the bytes of a constant of the model, in another order or as
 * codes perhaps. */
static void end_bytes(Ender *e, ValueId v) {
  const Constant *source = constant_source(value_lazy_constant(e->w->g, v));
  const uint8_t *bytes = source->data;
  uint32_t *slot;
  if (!bytes || !source->size)
    return;
  for (ValueId other = keymap_get(e->p->constants, &bytes, sizeof bytes, &slot); other;
       other = e->p->next_of_bytes[other])
    end_constant(e, other);
}

/* The state that stands for an input (--state), which has its name; other values themselves. */
static ValueId state_for(const Graph *g, ValueId v) {
  const Value *input = value_cget(g, v);
  for (uint32_t i = 0; input->kind == VALUE_UNUSED && input->name && i < g->state_count; i++)
    if (value_cget(g, g->states[i].value)->name == input->name)
      return g->states[i].value;
  return v;
}

static void end_value(Ender *e, const Carrier *c) {
  Why *w = e->w;
  StrBuf type = {0};
  ValueId v = state_for(w->g, c->id);
  switch (value_cget(w->g, v)->kind) {
  case VALUE_CONST:
    end_bytes(e, v);
    return;
  case VALUE_INPUT:
  case VALUE_STATE:
    type_print(w->g, value_type(w->g, v), &type);
    add_end(w, (WhyEnd){.kind = value_cget(w->g, v)->kind == VALUE_INPUT ? WHY_INPUT : WHY_STATE,
                        .value = v,
                        .what = strbuf_keep(&type, &w->arena).data});
    return;
  default:
    return;
  }
}

/* Where the bytes of a constant are in the program, that is enough. */
static void keep_constants(Why *w) {
  uint32_t constants = 0;
  for (uint32_t i = 0; i < w->end_count && w->t.target.value; i++)
    if (w->ends[i].kind == WHY_CONSTANT)
      w->ends[constants++] = w->ends[i];
  w->end_count = constants ? constants : w->end_count;
}

/* Constants, then what runs, in order. */
static int compare_ends(const void *a, const void *b) {
  const WhyEnd *x = a, *y = b;
  if (!x->node != !y->node)
    return x->node ? 1 : -1;
  int order = ORDER(x->instruction, y->instruction);
  return order ? order : ORDER(x->node, y->node);
}

void why_find_ends(Why *w) {
  Ender e = {.w = w, .p = w->program};
  for (uint32_t i = 0; i < w->life.count; i++) {
    const Carrier *c = &w->life.carriers[i];
    if (!why_tells(w, c))
      continue;
    if (c->kind == CARRIER_VALUE)
      end_value(&e, c);
    else if (c->change == LIFE_STAYS)
      end_node(&e, c->id);
  }
  keep_constants(w);
  if (w->end_count)
    qsort(w->ends, w->end_count, sizeof *w->ends, compare_ends);
  why_find_memory(w);
}
