/* A graph kept as it was. Handles are positions in pools, so that copies of the pools are the whole
 * graph; what the pools point to (dims, bytes, terms) never changes and is shared. */
#include "ir/trace.h"

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
  kept->traced = g->trace ? g->trace->count : 0;
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
  KEEP(kept->syms.proofs, g->syms.proof_count);
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
  g->edits++;
  if (g->trace)
    g->trace->count = kept->traced;
}

/* --- a part --- */

#define OWN(items, count, capacity)                                                                \
  ((items) = own((items), (count), sizeof *(items)), (capacity) = (count))

static void *own(const void *items, uint32_t count, size_t size) {
  void *to = xrealloc(NULL, count * size + 1);
  if (count)
    memcpy(to, items, count * size);
  return to;
}

/* A copy of g that may change: pools of its own, without states. */
static Graph *copy_graph(const Graph *g) {
  Graph *to = xrealloc(NULL, sizeof *to);
  *to = *g;
  to->arena = to->syms.arena = (Arena){0};
  OWN(to->nodes, g->node_count, to->node_capacity);
  OWN(to->values, g->value_count, to->value_capacity);
  OWN(to->uses, g->use_count, to->use_capacity);
  OWN(to->args, g->arg_count, to->arg_capacity);
  OWN(to->ints, g->int_count, to->int_capacity);
  OWN(to->floats, g->float_count, to->float_capacity);
  OWN(to->types, g->type_count, to->type_capacity);
  OWN(to->constants, g->constant_count, to->constant_capacity);
  OWN(to->locs, g->loc_count, to->loc_capacity);
  OWN(to->storages, g->storage_count, to->storage_capacity);
  OWN(to->constraints, g->constraint_count, to->constraint_capacity);
  to->type_slots = own(g->type_slots, g->type_slot_count, sizeof *g->type_slots);
  to->syms.exprs = own(g->syms.exprs, g->syms.count, sizeof *g->syms.exprs);
  to->syms.capacity = g->syms.count;
  to->syms.slots = own(g->syms.slots, g->syms.slot_count, sizeof *g->syms.slots);
  to->syms.symbols = own(g->syms.symbols, g->syms.symbol_count, sizeof *g->syms.symbols);
  to->syms.symbol_capacity = g->syms.symbol_count;
  to->syms.proofs = own(g->syms.proofs, g->syms.proof_count, sizeof *g->syms.proofs);
  to->syms.proof_capacity = g->syms.proof_count;
  to->inputs = NULL;
  to->states = NULL;
  to->arena_sizes = NULL;
  to->input_count = to->input_capacity = to->state_count = to->state_capacity = 0;
  to->arena_size_count = 0;
  to->trace = NULL;
  to->in_pass = false;
  to->transforms = NULL; /* those of its constants stay the property of g */
  to->stage = SV("");
  to->option_count = 0;
  return to;
}

Graph *graph_part(const Graph *g, const NodeId *nodes, uint32_t node_count, const ValueId *inputs,
                  uint32_t input_count, const ValueId *outputs, uint32_t output_count) {
  Graph *part = copy_graph(g);
  bool *kept = ARENA_ARRAY(&part->arena, bool, (size_t)g->node_count + 1);
  for (uint32_t i = 0; i < node_count; i++)
    kept[nodes[i]] = true;
  NameId *names = ARENA_ARRAY(&part->arena, NameId, (size_t)output_count + 1);
  for (uint32_t i = 0; i < output_count; i++)
    names[i] = g->values[outputs[i]].name;
  graph_set_outputs(part, outputs, output_count, names);
  for (uint32_t i = 0; i < input_count; i++) {
    ValueId input = graph_add_input(part, g->values[inputs[i]].type, g->values[inputs[i]].name);
    graph_replace_uses(part, inputs[i], input);
  }
  for (NodeId n = part->last, prev; n; n = prev) {
    prev = part->nodes[n].prev;
    part->nodes[n].tag = 0;
    /* What is no input is a part of those that use it, as a dequantized weight of several. */
    if (!kept[n] && node_unused(part, n, 0))
      graph_remove_node(part, n);
  }
  return part;
}
