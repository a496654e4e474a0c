/* A join copies codes where its operands have the scale of the result. Others are converted first,
 * which takes time, and rounds them once more. What only the join reads loses nothing by the scale
 * of the result: that it is rounded to in the end. What others read, too, loses precision for them:
 * all of it where it is small beside the other operands. */
#include "passes/quantize/ranges.h"

#include <math.h>

#include "ops/quantized.h"
#include "passes/quantize/roles.h"

/* How much wider the range of a join may be than that of an operand: one bit of eight. */
#define WIDER_MAX 2.0

/* Ranges that are one. */
typedef struct Shared {
  uint32_t parent;  /* another range of it, or itself */
  double low, high; /* of all; 0 is in it */
  double least;     /* the width of the narrowest one that nodes beside one join read */
} Shared;

typedef struct Ranges {
  Graph *g;
  Watches *w;
  uint32_t *by_node;  /* of a node `observe`: 1 + its watch */
  uint32_t *by_value; /* likewise, of what it marks */
  Shared *shared;     /* by range */
} Ranges;

/* Shortens the way for the next time: chains of joins may be long. */
static uint32_t top_of(const Ranges *r, uint32_t range) {
  Shared *all = r->shared;
  while (all[range].parent != range)
    range = all[range].parent = all[all[range].parent].parent;
  return range;
}

static const Watch *watch_of(const Ranges *r, ValueId v) {
  uint32_t at = r->by_node[value_def(r->g, v)];
  return at ? &r->w->list[at - 1] : NULL;
}

/* Whether n only moves what has the range, and what it makes has it, too. */
static bool keeps_range(const Ranges *r, NodeId n, uint32_t range) {
  if (n == NODE_OUTPUT || quant_role(r->g, n) != ROLE_MOVE)
    return false;
  uint32_t at = r->by_value[node_result(r->g, n, 0)];
  return at && r->w->list[at - 1].range == range;
}

/* How many nodes read values of each range, moves within it left out. */
static uint32_t *count_readers(const Ranges *r, Arena *arena) {
  uint32_t *readers = ARENA_ARRAY(arena, uint32_t, (size_t)r->w->ranges + 1);
  for (uint32_t i = 0; i < r->w->count; i++) {
    const Watch *at = &r->w->list[i];
    NodeId last = 0;
    for (UseId u = first_use(r->g, node_result(r->g, at->node, 0)); u; u = r->g->uses[u].next) {
      NodeId user = r->g->uses[u].node;
      readers[at->range] += user != last && !keeps_range(r, user, at->range);
      last = user;
    }
  }
  return readers;
}

static void find_widths(Ranges *r, Arena *arena) {
  const uint32_t *readers = count_readers(r, arena);
  for (uint32_t i = 0; i < r->w->ranges; i++) {
    const Stats *s = &r->w->stats[i];
    Shared *own = &r->shared[i];
    *own = (Shared){.parent = i, .least = INFINITY};
    if (s->low <= s->high) {
      own->low = fmin(0, s->low);
      own->high = fmax(0, s->high);
    }
    if (readers[i] > 1)
      own->least = own->high - own->low;
  }
}

static void share(Ranges *r, uint32_t a, uint32_t b) {
  a = top_of(r, a);
  b = top_of(r, b);
  Shared *x = &r->shared[a], *y = &r->shared[b];
  Shared both = {a, fmin(x->low, y->low), fmax(x->high, y->high), fmin(x->least, y->least)};
  if (both.high - both.low > both.least * WIDER_MAX)
    return;
  *x = both;
  y->parent = a;
}

static void mark_symmetric(Graph *g, NodeId n) {
  node_set_arg(g, n, OBSERVE_MIN, A_INT(-INT8_MAX));
  node_set_arg(g, n, OBSERVE_SYMMETRIC, A_BOOL(true));
}

/* Each range by the first of those that it is one with. */
static void merge_ranges(Ranges *r, Arena *arena) {
  Watches *w = r->w;
  bool *symmetric = ARENA_ARRAY(arena, bool, (size_t)w->ranges + 1);
  for (uint32_t i = 0; i < w->ranges; i++) {
    uint32_t top = top_of(r, i);
    if (top != i)
      stats_merge_values(&w->stats[top], &w->stats[i]);
  }
  for (uint32_t i = 0; i < w->count; i++) {
    w->list[i].range = top_of(r, w->list[i].range);
    symmetric[w->list[i].range] |= node_bool(r->g, w->list[i].node, OBSERVE_SYMMETRIC);
  }
  for (uint32_t i = 0; i < w->count; i++)
    if (symmetric[w->list[i].range])
      mark_symmetric(r->g, w->list[i].node);
}

void share_joined_ranges(Graph *g, Watches *w, Arena *arena) {
  Ranges r = {.g = g,
              .w = w,
              .by_node = ARENA_ARRAY(arena, uint32_t, g->node_count),
              .by_value = ARENA_ARRAY(arena, uint32_t, g->value_count),
              .shared = ARENA_ARRAY(arena, Shared, (size_t)w->ranges + 1)};
  for (uint32_t i = 0; i < w->count; i++) {
    r.by_node[w->list[i].node] = i + 1;
    r.by_value[w->list[i].value] = i + 1;
  }
  find_widths(&r, arena);
  for (FOR_NODES(g, n)) {
    uint32_t y = quant_role(g, n) == ROLE_JOIN ? r.by_value[node_result(g, n, 0)] : 0;
    for (uint32_t k = 0; y && k < quant_operand_count(g, n, ROLE_JOIN); k++) {
      const Watch *operand = watch_of(&r, quant_operand(g, n, ROLE_JOIN, k));
      if (operand)
        share(&r, w->list[y - 1].range, operand->range);
    }
  }
  merge_ranges(&r, arena);
}
