/* A graph kept as it was. Handles are positions in pools, so that copies of the pools are the whole
 * graph; what the pools point to (dims, bytes, terms) never changes and is shared. */
#include "ir/graph.h"

#define KEEP(items, count) ((items) = copy((items), (count), sizeof *(items), arena))

static void *copy(const void *items, uint32_t count, size_t size, Arena *arena) {
  void *to = arena_alloc(arena, count * size + 1);
  if (count)
    memcpy(to, items, count * size);
  return to;
}

const Graph *graph_snapshot(const Graph *g, Arena *arena) {
  Graph *kept = arena_alloc(arena, sizeof *kept);
  *kept = *g;
  KEEP(kept->nodes, g->node_count);
  KEEP(kept->values, g->value_count);
  KEEP(kept->uses, g->use_count);
  KEEP(kept->args, g->arg_count);
  KEEP(kept->ints, g->int_count);
  KEEP(kept->floats, g->float_count);
  KEEP(kept->types, g->type_count);
  KEEP(kept->constants, g->constant_count);
  KEEP(kept->locs, g->loc_count);
  KEEP(kept->storages, g->storage_count);
  KEEP(kept->constraints, g->constraint_count);
  KEEP(kept->type_slots, g->type_slot_count);
  KEEP(kept->inputs, g->input_count);
  KEEP(kept->states, g->state_count);
  KEEP(kept->syms.exprs, g->syms.count);
  KEEP(kept->syms.slots, g->syms.slot_count);
  KEEP(kept->syms.symbols, g->syms.symbol_count);
  return kept;
}

#define RESTORE(items, count)                                                                      \
  memcpy(g->items, kept->items, kept->count * sizeof *g->items), g->count = kept->count

void graph_restore(Graph *g, const Graph *kept) {
  RESTORE(nodes, node_count);
  RESTORE(values, value_count);
  RESTORE(uses, use_count);
  RESTORE(args, arg_count);
  g->constraint_count = kept->constraint_count;
  g->first = kept->first;
  g->last = kept->last;
  g->live_nodes = kept->live_nodes;
}
