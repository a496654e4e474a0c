/* See repeat.h: the parts that a partition falls into when the copies in it are parts of their own.
 */
#include "backends/xnnpack/repeat.h"

#include "ir/op.h"

typedef struct Unit {
  uint32_t first, count; /* of its nodes in Division.nodes */
  uint32_t pending;      /* operands that other units compute, which are not placed yet */
  uint32_t level;        /* the most times that a path to it leaves a copy */
} Unit;

typedef struct Division {
  const Graph *g;
  NodeId *nodes; /* by unit */
  uint32_t *of;  /* by NodeId: 1 + its unit; 0: not in the partition */
  Unit *units;   /* the copies, then each other node */
  uint32_t count, copies;
} Division;

static void make_units(Division *d, const NodeId *nodes, uint32_t count, const Repeat *repeats,
                       uint32_t repeat_count) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < repeat_count; i++)
    for (uint32_t c = 0; c < repeats[i].copies; c++) {
      d->units[d->count++] = (Unit){.first = at, .count = repeats[i].size};
      for (uint32_t k = 0; k < repeats[i].size; k++) {
        d->nodes[at] = repeats[i].nodes[c * repeats[i].size + k];
        d->of[d->nodes[at++]] = d->count;
      }
    }
  d->copies = d->count;
  for (uint32_t i = 0; i < count; i++) {
    if (d->of[nodes[i]])
      continue;
    d->units[d->count++] = (Unit){.first = at, .count = 1};
    d->nodes[at++] = nodes[i];
    d->of[nodes[i]] = d->count;
  }
}

static void count_operands(const Division *d) {
  for (uint32_t u = 0; u < d->count; u++)
    for (uint32_t k = 0; k < d->units[u].count; k++)
      FOR_OPERANDS(d->g, d->nodes[d->units[u].first + k], v, {
        NodeId def = v ? value_def(d->g, v) : 0;
        d->units[u].pending += def && d->of[def] && d->of[def] != u + 1;
      })
}

/* Tells the users of what unit u computes; those that wait for nothing more come to the end of
 * ready. */
static void place_unit(const Division *d, uint32_t u, uint32_t *ready, uint32_t *ready_count) {
  const Graph *g = d->g;
  for (uint32_t k = 0; k < d->units[u].count; k++) {
    NodeId n = d->nodes[d->units[u].first + k];
    for (uint32_t i = 0; i < node_cget(g, n)->result_count; i++)
      for (UseId use = first_use(g, node_result(g, n, i)); use; use = g->uses[use].next) {
        uint32_t to = d->of[g->uses[use].node];
        if (!to || to == u + 1)
          continue;
        Unit *user = &d->units[to - 1];
        uint32_t level = d->units[u].level + (u < d->copies && to > d->copies);
        user->level = level > user->level ? level : user->level;
        if (--user->pending == 0)
          ready[(*ready_count)++] = to - 1;
      }
  }
}

uint32_t repeat_divide(const Graph *g, const NodeId *nodes, uint32_t count, const Repeat *repeats,
                       uint32_t repeat_count, Arena *arena, uint32_t *part) {
  Division d = {.g = g};
  d.nodes = ARENA_ARRAY(arena, NodeId, (size_t)count + 1);
  d.of = ARENA_ARRAY(arena, uint32_t, g->node_count);
  d.units = ARENA_ARRAY(arena, Unit, (size_t)count + 1);
  make_units(&d, nodes, count, repeats, repeat_count);
  count_operands(&d);
  uint32_t *ready = ARENA_ARRAY(arena, uint32_t, (size_t)d.count + 1), placed = 0, ready_count = 0;
  for (uint32_t u = 0; u < d.count; u++)
    if (!d.units[u].pending)
      ready[ready_count++] = u;
  for (; placed < ready_count; placed++)
    place_unit(&d, ready[placed], ready, &ready_count);
  if (placed < d.count)
    return 0;
  /* Nodes outside of copies that have the same level are one part. */
  uint32_t *of_level = ARENA_ARRAY(arena, uint32_t, (size_t)count + 1), parts = d.copies;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t u = d.of[nodes[i]] - 1, level = d.units[u].level;
    if (u >= d.copies && !of_level[level])
      of_level[level] = ++parts;
    part[i] = u < d.copies ? u : of_level[level] - 1;
  }
  return parts;
}
