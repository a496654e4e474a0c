/* See model_names.h. */
#include "pipeline/model_names.h"

#include "ops/delegate.h"
#include "support/keymap.h"

/* Constants of delegates. */
typedef struct DataNames {
  KeyMap keys; /* item + 1 */
  DataName *items;
  uint32_t count;
} DataNames;

typedef struct Names {
  Session *s;
  const InstructionMap *maps;
  DataNames data;
} Names;

static StrView first_name(const Graph *g, const LocId *locs, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    StrView name = graph_place(g, locs[i]).node;
    if (name.size)
      return name;
  }
  return SV("");
}

StrView delegate_label(Arena *arena, StrView backend, StrView node) {
  if (!node.size)
    return node;
  return sv_from(arena_printf(arena, SV_FMT " from " SV_FMT, SV_ARG(backend), SV_ARG(node)));
}

static StrView delegate_name(const Names *names, const Graph *g, NodeId call) {
  const DelegateOrigin *origin = delegate_origin(g, call);
  StrView name = origin ? first_name(g, origin->locs, origin->count) : SV("");
  return delegate_label(&names->s->arena, node_str(g, call, DELEGATE_ARG_BACKEND), name);
}

/* The node of the model that the instruction is of. */
static StrView instruction_name(void *user, uint32_t method, uint32_t instruction) {
  const Names *names = user;
  if (method >= names->s->program.method_count || instruction >= names->maps[method].count)
    return SV("");
  const Graph *g = names->s->program.methods[method].graph;
  NodeId n = names->maps[method].nodes[instruction];
  if (!n)
    return SV("");
  return op_has_trait(node_cget(g, n)->op, OP_DELEGATE) ? delegate_name(names, g, n)
                                                        : node_place(g, n).node;
}

static StrView data_name(void *user, StrView key) {
  Names *names = user;
  uint32_t *slot, item = keymap_get(&names->data.keys, key.data, (uint32_t)key.size, &slot);
  return item ? names->data.items[item - 1].name : SV("");
}

/* --- constants of delegates --- */

/* Those that the call finds by key. */
static void add_data(DataNames *names, const Graph *g, NodeId call, Arena *arena) {
  StrView keys = node_str(g, call, DELEGATE_ARG_KEYS);
  uint32_t count = node_list_count(g, call, DELEGATE_ARG_DATA);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t *slot;
    ValueId v = node_list_value(g, call, DELEGATE_ARG_DATA, i);
    StrView key = delegate_next_key(&keys), name = intern_get(&g->ctx->names, g->values[v].name);
    if (!name.size || keymap_get(&names->keys, key.data, (uint32_t)key.size, &slot))
      continue;
    ARENA_PUSH(arena, names->items, names->count, (DataName){key, name});
    *slot = names->count;
  }
}

static DataNames all_data(Session *s) {
  DataNames names = {.keys = keymap_make(&s->arena, s->ctx.names.seed)};
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    const Graph *g = s->program.methods[i].graph;
    for (FOR_NODES(g, n))
      if (op_has_trait(g->nodes[n].op, OP_DELEGATE))
        add_data(&names, g, n, &s->arena);
  }
  return names;
}

DataName *model_data_names(Session *s, uint32_t *count) {
  DataNames names = all_data(s);
  *count = names.count;
  return names.items;
}

PteNames model_names(Session *s, const InstructionMap *maps) {
  Names *names = ARENA_NEW(&s->arena, Names);
  *names = (Names){.s = s, .maps = maps, .data = all_data(s)};
  return (PteNames){names, instruction_name, data_name};
}
