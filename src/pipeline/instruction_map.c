/* See instruction_map.h.
 *
 * {"methods": [{"name": "forward", "instructions": [
 *   {"index": 0, "call": "aten::add.out", "nodes": [
 *     {"name": "/head/Add", "op": "Add", "index": 12, "origin": "model.py:30"}]}]}],
 *  "data": [{"key": "3f1c…", "name": "head.weight"}]}
 *
 * An instruction has several nodes when it was fused from them, or is a delegate; none when a pass
 * made it, as copies and jumps. data are the constants that delegates find by a key. */
#include "pipeline/instruction_map.h"

#include "pipeline/model_names.h"
#include "support/json.h"
#include "support/keymap.h"

enum { CHAIN_MAX = 64 }; /* of locations: a file may make longer ones, or circles */

typedef struct MapWriter {
  JsonWriter json;
  const Graph *g;
  LocId *same;    /* by location: the first one that says the same */
  uint32_t *seen; /* by location: the instruction that has it, from 1 */
  uint32_t instruction;
} MapWriter;

static void write_name(MapWriter *w, const char *key, NameId name) {
  if (name)
    json_named_string(&w->json, key, intern_get(&w->g->ctx->names, name));
}

/* The location and those that it comes from, each once in an instruction. */
static void write_locs(MapWriter *w, LocId id) {
  for (uint32_t i = 0; id && id < w->g->loc_count && i < CHAIN_MAX; i++, id = w->g->locs[id].from) {
    const Loc *loc = &w->g->locs[id];
    uint32_t *seen = &w->seen[w->same[id]];
    if (*seen == w->instruction || (!loc->name && loc->index < 0))
      continue;
    *seen = w->instruction;
    json_open_object(&w->json);
    write_name(w, "name", loc->name);
    write_name(w, "op", loc->op_type);
    if (loc->index >= 0)
      json_named_uint(&w->json, "index", (uint64_t)loc->index);
    write_name(w, "scope", loc->scope);
    write_name(w, "origin", loc->origin);
    json_close_object(&w->json);
  }
}

/* A node whose function is called twice, or whose loop is unrolled, has several. */
static LocId *same_locs(const Graph *g, Arena *arena) {
  LocId *same = ARENA_ARRAY(arena, LocId, (size_t)g->loc_count + 1);
  KeyMap known = keymap_make(arena, g->ctx->names.seed);
  for (LocId i = 1; i < g->loc_count; i++) {
    const Loc *loc = &g->locs[i];
    const uint32_t key[] = {loc->name, loc->op_type, loc->scope, loc->origin, (uint32_t)loc->index};
    uint32_t *slot;
    if (!keymap_get(&known, key, sizeof key, &slot))
      *slot = i;
    same[i] = *slot;
  }
  return same;
}

static StrView call_of(const Graph *g, NodeId n) {
  OpId op = node_cget(g, n)->op;
  if (op_has_trait(op, OP_DELEGATE))
    return SV("delegate");
  return op_has_trait(op, OP_CONTROL) ? SV("jump") : sv_from(op_row(op)->out);
}

static void write_instruction(MapWriter *w, uint32_t index, NodeId n) {
  const Graph *g = w->g;
  const DelegateOrigin *origin =
      n && op_has_trait(node_cget(g, n)->op, OP_DELEGATE) ? delegate_origin(g, n) : NULL;
  w->instruction = index + 1;
  json_open_object(&w->json);
  json_named_uint(&w->json, "index", index);
  json_named_string(&w->json, "call", n ? call_of(g, n) : SV("jump"));
  json_named_array(&w->json, "nodes");
  if (n)
    write_locs(w, node_cget(g, n)->loc);
  for (uint32_t i = 0; origin && i < origin->count; i++)
    write_locs(w, origin->locs[i]);
  json_close_array(&w->json);
  json_close_object(&w->json);
}

static void write_method(MapWriter *w, const Method *m, const InstructionMap *map, Arena *arena) {
  w->g = m->graph;
  w->same = same_locs(m->graph, arena);
  w->seen = ARENA_ARRAY(arena, uint32_t, (size_t)m->graph->loc_count + 1);
  json_open_object(&w->json);
  json_named_string(&w->json, "name", method_name(m));
  json_named_array(&w->json, "instructions");
  for (uint32_t i = 0; i < map->count; i++)
    write_instruction(w, i, map->nodes[i]);
  json_close_array(&w->json);
  json_close_object(&w->json);
}

static void write_data(MapWriter *w, Session *s) {
  uint32_t count;
  const DataName *data = model_data_names(s, &count);
  json_named_array(&w->json, "data");
  for (uint32_t i = 0; i < count; i++) {
    json_open_object(&w->json);
    json_named_string(&w->json, "key", data[i].key);
    json_named_string(&w->json, "name", data[i].name);
    json_close_object(&w->json);
  }
  json_close_array(&w->json);
}

Status instruction_map_write(Session *s, const char *path) {
  StrBuf text = {0};
  MapWriter w = {0};
  json_init(&w.json, &text, true);
  json_open_object(&w.json);
  json_named_array(&w.json, "methods");
  for (uint32_t i = 0; i < s->program.method_count; i++)
    write_method(&w, &s->program.methods[i], &s->program.maps[i], &s->arena);
  json_close_array(&w.json);
  write_data(&w, s);
  json_close_object(&w.json);
  strbuf_append_char(&text, '\n');
  Status status =
      atomic_file_whole(&s->arena, &s->sink, path, (StrView){strbuf_cstr(&text), text.size});
  strbuf_release(&text);
  return status;
}
