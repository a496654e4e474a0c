/* See region.h. One walk with a stack of the open regions. */
#include "ir/region.h"

/* The regions that are open: the marker, and the if that an else belongs to. */
typedef struct Open {
  NodeId marker, first;
} Open;

typedef struct Stack {
  Open open[REGION_DEPTH_MAX];
  uint32_t depth;
} Stack;

static const char *open_region(Stack *s, NodeId n, NodeId first) {
  if (s->depth == REGION_DEPTH_MAX)
    return "is within too many ifs and loops";
  s->open[s->depth++] = (Open){n, first};
  return NULL;
}

/* Closes the innermost region, which the marker before n must have opened. */
static const char *close_region(const Graph *g, Regions *r, Stack *s, NodeId n, OpId opener) {
  if (!s->depth || node_cget(g, s->open[s->depth - 1].marker)->op != opener)
    return "ends what does not begin";
  Open closed = s->open[--s->depth];
  r->partner[closed.marker] = n;
  r->partner[n] = closed.first;
  r->scope[n] = r->scope[closed.first];
  return NULL;
}

static const char *mark(const Graph *g, Regions *r, Stack *s, NodeId n) {
  const char *fault;
  switch ((enum Op)node_cget(g, n)->op) {
  case OP_IF:
  case OP_LOOP:
    return open_region(s, n, n);
  case OP_ELSE:
    fault = close_region(g, r, s, n, OP_IF);
    return fault ? fault : open_region(s, n, r->partner[n]);
  case OP_ENDIF:
    return close_region(g, r, s, n, OP_ELSE);
  case OP_NEXT:
    return close_region(g, r, s, n, OP_LOOP);
  default:
    return NULL;
  }
}

static bool has_markers(const Graph *g) {
  for (FOR_NODES(g, n))
    if (op_has_trait(node_cget(g, n)->op, OP_CONTROL))
      return true;
  return false;
}

const char *regions_find(const Graph *g, Arena *arena, Regions *out, NodeId *at) {
  *out = (Regions){.any = has_markers(g)};
  if (!out->any)
    return NULL;
  out->scope = ARENA_ARRAY(arena, NodeId, g->node_count);
  out->partner = ARENA_ARRAY(arena, NodeId, g->node_count);
  Stack s = {.depth = 0};
  for (FOR_NODES(g, n)) {
    out->scope[n] = s.depth ? s.open[s.depth - 1].marker : 0;
    const char *fault = mark(g, out, &s, n);
    *at = n;
    if (fault)
      return fault;
  }
  if (s.depth)
    *at = s.open[s.depth - 1].marker;
  return s.depth ? "begins what does not end" : NULL;
}

static NodeId around(const Regions *r, NodeId scope) { return r->scope[scope]; }

bool region_within(const Regions *r, NodeId scope, NodeId outer) {
  while (scope && scope != outer)
    scope = around(r, scope);
  return scope == outer;
}

NodeId region_of_results(const Graph *g, const Regions *r, NodeId n) {
  if (!r->any || !n)
    return 0;
  return node_cget(g, n)->op == OP_LOOP ? n : r->scope[n];
}

NodeId region_of_argument(const Graph *g, const Regions *r, NodeId n, uint32_t i) {
  if (!r->any || n == NODE_OUTPUT)
    return 0;
  OpId op = node_cget(g, n)->op;
  if (op == OP_NEXT)
    return r->partner[n];
  if (op == OP_ENDIF)
    return i == 0 ? r->partner[n] : r->partner[r->partner[n]];
  return r->scope[n];
}

NodeId region_outermost_loop(const Graph *g, const Regions *r, NodeId n, NodeId outer) {
  NodeId found = 0;
  if (!r->any || n == NODE_OUTPUT)
    return 0;
  for (NodeId scope = region_of_argument(g, r, n, 0); scope && !region_within(r, outer, scope);
       scope = around(r, scope))
    if (node_cget(g, scope)->op == OP_LOOP)
      found = scope;
  return found;
}

NodeId region_opening(const Graph *g, NodeId n) {
  OpId op = node_cget(g, n)->op;
  uint32_t inner = 0;
  for (NodeId m = g->nodes[n].prev; m; m = g->nodes[m].prev) {
    OpId other = node_cget(g, m)->op;
    if (other == OP_ENDIF || other == OP_NEXT)
      inner++;
    else if ((other == OP_IF || other == OP_LOOP) && inner)
      inner--;
    else if (other == OP_IF || other == OP_LOOP)
      return (other == OP_LOOP) == (op == OP_NEXT) ? m : 0;
  }
  return 0;
}
