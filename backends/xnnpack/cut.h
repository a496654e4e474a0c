/* The cheapest division of vertices into two sides, given what it costs when two are parted: a
 * minimum cut. */
#ifndef ETC_BACKENDS_XNNPACK_CUT_H
#define ETC_BACKENDS_XNNPACK_CUT_H

#include "support/arena.h"

enum { CUT_FIRST, CUT_SECOND, CUT_FREE }; /* the two ends, and the first of the other vertices */
#define CUT_NEVER ((uint64_t)1 << 60)     /* a cost that is never paid */

typedef struct CutArc {
  uint32_t to, next; /* 1 + the next arc of the same vertex; 0: none */
  uint64_t residual; /* capacity */
} CutArc;

typedef struct Cut {
  uint32_t *first, *level, *at, *queue; /* by vertex */
  CutArc *arcs;                         /* arc i ^ 1 goes back */
  bool *second;                         /* by vertex: its side, after cut_solve */
  uint32_t vertex_count, arc_count, vertex_capacity, arc_capacity;
  uint64_t work, most_work; /* arcs looked at */
} Cut;

void cut_init(Cut *c);
void cut_release(Cut *c);
uint32_t cut_vertex(Cut *c);
/* Costs so much when `from` is on the first side and `to` on the second. */
void cut_arc(Cut *c, uint32_t from, uint32_t to, uint64_t cost);
/* False when it would take long: more than a constant number of looks at each arc. Vertices for
 * which both sides cost the same come to the first. */
bool cut_solve(Cut *c);

#endif
