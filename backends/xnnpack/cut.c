/* See cut.h. Dinic's algorithm: shortest paths first, and all of one length at a time. */
#include "backends/xnnpack/cut.h"

enum { LOOKS = 256 }; /* at each arc; graphs of networks take a few */

void cut_init(Cut *c) {
  *c = (Cut){0};
  cut_vertex(c);
  cut_vertex(c);
}

void cut_release(Cut *c) {
  xfree(c->first);
  xfree(c->arcs);
  xfree(c->level);
  xfree(c->at);
  xfree(c->queue);
  xfree(c->second);
}

uint32_t cut_vertex(Cut *c) {
  c->first =
      pool_reserve(c->first, &c->vertex_capacity, (uint64_t)c->vertex_count + 1, sizeof *c->first);
  c->first[c->vertex_count] = 0;
  return c->vertex_count++;
}

static void add_arc(Cut *c, uint32_t from, uint32_t to, uint64_t left) {
  c->arcs = pool_reserve(c->arcs, &c->arc_capacity, (uint64_t)c->arc_count + 1, sizeof *c->arcs);
  c->arcs[c->arc_count] = (CutArc){to, c->first[from], left};
  c->first[from] = ++c->arc_count;
}

void cut_arc(Cut *c, uint32_t from, uint32_t to, uint64_t cost) {
  bool decided = from == CUT_SECOND || to == CUT_FIRST || (from == CUT_FIRST && to == CUT_SECOND);
  if (from == to || decided || cost == 0)
    return;
  add_arc(c, from, to, cost);
  add_arc(c, to, from, 0);
}

/* Numbers the vertices by their distance from the first end; false when the second is out of
 * reach. */
static bool find_levels(Cut *c) {
  uint32_t count = 0;
  memset(c->level, 0, c->vertex_count * sizeof *c->level);
  c->level[CUT_FIRST] = 1;
  c->queue[count++] = CUT_FIRST;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t a = c->first[c->queue[i]]; a; a = c->arcs[a - 1].next, c->work++) {
      const CutArc *arc = &c->arcs[a - 1];
      if (!arc->residual || c->level[arc->to])
        continue;
      c->level[arc->to] = c->level[c->queue[i]] + 1;
      c->queue[count++] = arc->to;
    }
  return c->level[CUT_SECOND] != 0;
}

/* The path in queue, arcs from one end to the other, takes what its narrowest arc has left. Returns
 * how much of the path remains usable. */
static uint32_t fill(Cut *c, uint32_t length) {
  uint64_t least = UINT64_MAX;
  uint32_t keep = 0;
  for (uint32_t i = length; i-- > 0;)
    if (c->arcs[c->queue[i]].residual <= least) {
      least = c->arcs[c->queue[i]].residual;
      keep = i;
    }
  for (uint32_t i = 0; i < length; i++) {
    c->arcs[c->queue[i]].residual -= least;
    c->arcs[c->queue[i] ^ 1].residual += least;
  }
  return keep;
}

/* Fills all shortest paths. */
static bool fill_paths(Cut *c) {
  memcpy(c->at, c->first, c->vertex_count * sizeof *c->at);
  uint32_t length = 0, v = CUT_FIRST;
  while (c->work++ <= c->most_work) {
    uint32_t a = c->at[v];
    if (v == CUT_SECOND) {
      c->work += length;
      length = fill(c, length);
      v = c->arcs[c->queue[length] ^ 1].to;
    } else if (!a) { /* no way from here */
      if (length == 0)
        return true;
      v = c->arcs[c->queue[--length] ^ 1].to;
      c->at[v] = c->arcs[c->at[v] - 1].next;
    } else if (c->arcs[a - 1].residual && c->level[c->arcs[a - 1].to] == c->level[v] + 1) {
      c->queue[length++] = a - 1;
      v = c->arcs[a - 1].to;
    } else {
      c->at[v] = c->arcs[a - 1].next;
    }
  }
  return false;
}

/* The second side: from where the second end can still be reached. */
static void find_sides(Cut *c) {
  uint32_t count = 0;
  c->second[CUT_SECOND] = true;
  c->queue[count++] = CUT_SECOND;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t a = c->first[c->queue[i]]; a; a = c->arcs[a - 1].next) {
      uint32_t from = c->arcs[a - 1].to;
      if (!c->arcs[(a - 1) ^ 1].residual || c->second[from])
        continue;
      c->second[from] = true;
      c->queue[count++] = from;
    }
}

bool cut_solve(Cut *c) {
  c->level = xrealloc(c->level, c->vertex_count * sizeof *c->level);
  c->at = xrealloc(c->at, c->vertex_count * sizeof *c->at);
  c->queue = xrealloc(c->queue, c->vertex_count * sizeof *c->queue);
  c->second = xrealloc(c->second, c->vertex_count * sizeof *c->second);
  memset(c->second, 0, c->vertex_count * sizeof *c->second);
  c->most_work = (uint64_t)LOOKS * (c->arc_count + 16);
  while (find_levels(c))
    if (!fill_paths(c))
      return false;
  find_sides(c);
  return true;
}
