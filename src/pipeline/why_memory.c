/* Where the results of an operator lie in memory, from when to when, and which others have the same
 * bytes at other times. */
#include <inttypes.h>
#include <stdlib.h>

#include "pipeline/why_internal.h"

static bool overlap(const Storage *a, const Storage *b) {
  return a->arena == b->arena && a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

static const Storage *storage_of(const Graph *g, ValueId v) {
  uint32_t kind = g->values[v].kind;
  bool there = kind == VALUE_INPUT || kind == VALUE_RESULT || kind == VALUE_STATE;
  return there && g->values[v].storage ? &g->storages[g->values[v].storage] : NULL;
}

/* The operand that has the same place. */
static ValueId in_place_of(const Graph *g, ValueId v) {
  NodeId n = value_def(g, v);
  const Storage *own = storage_of(g, v);
  if (!n)
    return 0;
  FOR_OPERANDS(g, n, operand, {
    const Storage *s = operand ? storage_of(g, operand) : NULL;
    if (s && s->arena == own->arena && s->offset == own->offset && s->size && own->size)
      return operand;
  })
  return 0;
}

/* --- sharing --- */

/* How many values of the place are in the span. */
static uint32_t *span_count(WhyPlaces *places, uint32_t place, uint32_t span) {
  uint32_t key[] = {place, span}, *slot;
  (void)keymap_get(&places->spans, key, sizeof key, &slot);
  return slot;
}

static void add_to_place(WhyPlaces *places, KeyMap *known, const Liveness *live, ValueId v,
                         const Storage *s, Arena *arena) {
  uint64_t key[] = {s->arena, s->offset, s->size};
  uint32_t *slot, place = keymap_get(known, key, sizeof key, &slot);
  if (!place) {
    ARENA_PUSH(arena, places->items, places->count, (WhyPlace){.storage = *s});
    *slot = place = places->count;
  }
  WhyPlace *p = &places->items[place - 1];
  ARENA_PUSH(arena, p->values, p->count, v);
  ++*span_count(places, place, live->span_of[v]);
}

WhyPlaces *why_find_places(const Graph *g, const Liveness *live, Arena *arena) {
  WhyPlaces *places = ARENA_NEW(arena, WhyPlaces);
  KeyMap known = keymap_make(arena, g->ctx->names.seed);
  places->spans = keymap_make(arena, g->ctx->names.seed);
  for (int named = 1; named >= 0; named--)
    for (ValueId v = 1; v < g->value_count; v++) {
      const Storage *s = storage_of(g, v);
      if (s && !g->values[v].name == !named)
        add_to_place(places, &known, live, v, s, arena);
    }
  return places;
}

/* Adds the first `most` values of the place that are not in the span. */
static void list_place(Why *w, const WhyPlace *p, uint32_t span, uint32_t most, ValueId **list,
                       uint32_t *count) {
  for (uint32_t i = 0, taken = 0; i < p->count && taken < most; i++) {
    if (w->program->live.span_of[p->values[i]] == span)
      continue;
    *list = arena_push(&w->arena, *list, *count, sizeof **list);
    (*list)[(*count)++] = p->values[i];
    taken++;
  }
}

/* Those that have a name first. */
static void put_named_first(const Graph *g, ValueId *list, uint32_t count, Arena *arena) {
  ValueId *rest = ARENA_ARRAY(arena, ValueId, (size_t)count + 1);
  uint32_t named = 0, other = 0;
  for (uint32_t i = 0; i < count; i++)
    if (g->values[list[i]].name)
      list[named++] = list[i];
    else
      rest[other++] = list[i];
  if (other)
    memcpy(list + named, rest, other * sizeof *rest);
}

/* Values of other spans in the same bytes, those first that have a name. */
static void find_sharing(Why *w, WhyMemory *m) {
  WhyPlaces *places = w->program->places;
  uint32_t span = w->program->live.span_of[m->value];
  uint32_t most = w->json ? UINT32_MAX : SHARING_SHOWN;
  ValueId *list = NULL;
  for (uint32_t i = 0; i < places->count; i++) {
    const WhyPlace *p = &places->items[i];
    if (!overlap(&p->storage, &m->storage))
      continue;
    uint32_t others = p->count - *span_count(places, i + 1, span);
    m->sharing_count += others;
    if (others)
      list_place(w, p, span, most, &list, &m->sharing_listed);
  }
  if (m->sharing_listed) {
    qsort(list, m->sharing_listed, sizeof *list, compare_u32);
    put_named_first(w->g, list, m->sharing_listed, &w->arena);
  }
  m->sharing_listed = m->sharing_listed < most ? m->sharing_listed : most;
  m->sharing = list;
}

static void lifetime(Why *w, WhyMemory *m) {
  uint32_t span = w->program->live.span_of[m->value];
  m->from = m->to = "always";
  if (!span || span > w->program->live.span_count)
    return;
  const Span *s = &w->program->live.spans[span - 1];
  m->from = s->first == 0
                ? "the beginning of the call"
                : arena_printf(&w->arena, "instruction %" PRIu32, w->program->begin[s->first]);
  if (s->last >= w->g->live_nodes + 1)
    m->to = "the end of the call";
  else
    m->to = arena_printf(&w->arena, "instruction %" PRIu32,
                         w->program->end[s->last] ? w->program->end[s->last] - 1 : 0);
}

static void add_memory(Why *w, ValueId v) {
  const Storage *s = storage_of(w->g, v);
  if (!s || !s->size)
    return;
  for (uint32_t i = 0; i < w->memory_count; i++)
    if (w->memory[i].value == v)
      return;
  w->memory = arena_push(&w->arena, w->memory, w->memory_count, sizeof *w->memory);
  WhyMemory *m = &w->memory[w->memory_count++];
  *m = (WhyMemory){.value = v, .storage = *s, .bank = "", .in_place = in_place_of(w->g, v)};
  if (s->arena && s->arena <= w->g->bank_count)
    m->bank = arena_strdup(&w->arena, w->g->banks[s->arena - 1].name);
  lifetime(w, m);
  find_sharing(w, m);
}

/* Whether result v of a delegate is an output of the target in the model. */
static bool is_output_of_target(const Why *w, ValueId v) {
  for (uint32_t i = 0; i < w->output_count; i++)
    if (w->outputs[i] == value_cget(w->g, v)->name)
      return true;
  return false;
}

void why_find_memory(Why *w) {
  for (uint32_t i = 0; i < w->end_count; i++) {
    const WhyEnd *end = &w->ends[i];
    if (end->kind == WHY_INPUT || end->kind == WHY_STATE)
      add_memory(w, end->value);
    for (uint32_t k = 0;
         end->node && !w->t.target.value && k < node_cget(w->g, end->node)->result_count; k++) {
      ValueId v = node_result(w->g, end->node, k);
      if (end->kind != WHY_DELEGATE || is_output_of_target(w, v))
        add_memory(w, v);
    }
  }
}
