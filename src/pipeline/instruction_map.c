/* See instruction_map.h.
 *
 * {"methods": [{"name": "forward", "instructions": [
 *   {"index": 0, "call": "aten::add.out", "nodes": [
 *     {"name": "/head/Add", "op": "Add", "index": 12, "origin": "model.py:30"}]}]}],
 *  "data": [{"key": "3f1c…", "name": "head.weight"}]}
 *
 * An instruction has several nodes when it was fused from them, or is a delegate; none when a pass
 * made it, as copies and jumps. Those of a delegate have "debug_handles": [1, 2], the debug handles
 * that what was made of the node has in the code of the delegate (XNNPACK: debug_handle of XNode).
 * data are the constants that delegates find by a key. */
#include "pipeline/instruction_map.h"

#include "pipeline/model_names.h"
#include "support/json.h"
#include "support/keymap.h"

enum { CHAIN_MAX = 64 }; /* of locations: a file may make longer ones, or circles */

/* A list of debug handles: an item of a pool, from 1; 0: the end. */
typedef struct MapHandle {
  uint32_t debug_handle, next;
} MapHandle;

/* A node of the model that an instruction is of. */
typedef struct MapNode {
  LocId loc;
  uint32_t first, last; /* of its debug handles; 0: none */
} MapNode;

typedef struct MapWriter {
  JsonWriter json;
  const Graph *g;
  LocId *same;        /* by location: the first one that says the same */
  uint32_t *place;    /* by location: its place in nodes, from 1; 0: not of this instruction */
  MapNode *nodes;     /* of the instruction */
  MapHandle *handles; /* of these */
  uint32_t node_count, node_capacity, handle_count, handle_capacity;
} MapWriter;

static void write_name(MapWriter *w, const char *key, NameId name) {
  if (name)
    json_named_string(&w->json, key, intern_get(&w->g->ctx->names, name));
}

static void add_handle(MapWriter *w, MapNode *node, uint32_t debug_handle) {
  if (node->last && w->handles[node->last - 1].debug_handle == debug_handle)
    return;
  MapHandle handle = {.debug_handle = debug_handle};
  POOL_PUSH(w->handles, w->handle_count, w->handle_capacity, handle);
  if (node->last)
    w->handles[node->last - 1].next = w->handle_count;
  else
    node->first = w->handle_count;
  node->last = w->handle_count;
}

/* The instruction is of the location and of those that it comes from. debug_handle: of what was
 * made of it in the code of a delegate, or 0. */
static void add_locs(MapWriter *w, LocId id, uint32_t debug_handle) {
  for (uint32_t i = 0; id && id < w->g->loc_count && i < CHAIN_MAX; i++, id = w->g->locs[id].from) {
    if (!w->g->locs[id].name && w->g->locs[id].index < 0)
      continue;
    uint32_t *place = &w->place[w->same[id]];
    if (!*place) {
      MapNode node = {.loc = id};
      POOL_PUSH(w->nodes, w->node_count, w->node_capacity, node);
      *place = w->node_count;
    }
    if (debug_handle)
      add_handle(w, &w->nodes[*place - 1], debug_handle);
  }
}

static void write_node(MapWriter *w, const MapNode *node) {
  const Loc *loc = &w->g->locs[node->loc];
  json_open_object(&w->json);
  write_name(w, "name", loc->name);
  write_name(w, "op", loc->op_type);
  if (loc->index >= 0)
    json_named_uint(&w->json, "index", (uint64_t)loc->index);
  write_name(w, "scope", loc->scope);
  write_name(w, "origin", loc->origin);
  if (node->first) {
    json_named_array(&w->json, "debug_handles");
    for (uint32_t h = node->first; h; h = w->handles[h - 1].next)
      json_uint(&w->json, w->handles[h - 1].debug_handle);
    json_close_array(&w->json);
  }
  json_close_object(&w->json);
}

/* Writes the nodes that were added, each once, and forgets them. */
static void write_nodes(MapWriter *w) {
  json_named_array(&w->json, "nodes");
  for (uint32_t i = 0; i < w->node_count; i++) {
    write_node(w, &w->nodes[i]);
    w->place[w->same[w->nodes[i].loc]] = 0;
  }
  json_close_array(&w->json);
  w->node_count = w->handle_count = 0;
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
  json_open_object(&w->json);
  json_named_uint(&w->json, "index", index);
  json_named_string(&w->json, "call", n ? call_of(g, n) : SV("jump"));
  if (n)
    add_locs(w, node_cget(g, n)->loc, 0);
  for (uint32_t i = 0; origin && i < origin->count; i++)
    add_locs(w, origin->locs[i], i + 1);
  write_nodes(w);
  json_close_object(&w->json);
}

static void write_method(MapWriter *w, const Method *m, const InstructionMap *map, Arena *arena) {
  w->g = m->graph;
  w->same = same_locs(m->graph, arena);
  w->place = ARENA_ARRAY(arena, uint32_t, (size_t)m->graph->loc_count + 1);
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
  xfree(w.nodes);
  xfree(w.handles);
  return status;
}
