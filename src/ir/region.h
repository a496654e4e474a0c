/* Control flow: the regions of a graph.
 *
 * A graph stays one list of nodes. Markers cut regions out of it, as `if … else … end` does in a
 * text:
 *
 *   control::if(%c)                                  control::loop(%trip, %c, [%a0])
 *     …                                                … once for each iteration
 *   control::else()                                  %r = control::next(%again, [%a1])
 *     …
 *   %r = control::endif([%then], [%else])
 *
 * The results of control::loop are the number of the iteration and the states, which are the
 * operands of the loop in the first iteration and those of control::next in each later one; the
 * results of control::next are the states after the last. A value can be used in the region in
 * which it is defined and in all regions within that one, and as an operand of the marker that ends
 * its region. Markers have the trait OP_CONTROL, and OP_EFFECT: they stay where they are. So do
 * control::fail and control::require, which begin and end nothing, but end the call with an error,
 * the latter unless its condition holds. */
#ifndef ETC_IR_REGION_H
#define ETC_IR_REGION_H

#include "ir/op.h"

#define REGION_DEPTH_MAX 64

typedef struct Regions {
  bool any;        /* false: no markers, and the tables are not there */
  NodeId *scope;   /* by node: the marker that opens the region it is in; 0 = the method */
  NodeId *partner; /* by marker: if -> else -> endif -> if; loop -> next -> loop */
} Regions;

/* Tables in arena. NULL, or what is wrong with the markers and *at, the node where it shows. */
const char *regions_find(const Graph *g, Arena *arena, Regions *out, NodeId *at);
/* Is `scope` the region `outer` or one within it? */
bool region_within(const Regions *r, NodeId scope, NodeId outer);
/* The region in which the results of n can be used: that of n itself; of a loop marker, the region
 * that it opens, since its results are values of one iteration. */
NodeId region_of_results(const Graph *g, const Regions *r, NodeId n);
/* The region whose values argument i of n may use: that of n itself; of a marker that ends a
 * region, that region for the values that it passes out. */
NodeId region_of_argument(const Graph *g, const Regions *r, NodeId n, uint32_t i);
/* Of the loops that n is in (or whose end n is), but region `outer` is not, the outermost; 0 when
 * there is none. A value that is stored in `outer` and used by n is used again in each iteration,
 * and must stay in memory until that loop ends. n may be behind `outer`, if that is a branch. */
NodeId region_outermost_loop(const Graph *g, const Regions *r, NodeId n, NodeId outer);
/* The control::if or control::loop to which n (else, endif or next) belongs, found by walking
 * backwards from n; 0 when the markers do not match. */
NodeId region_opening(const Graph *g, NodeId n);

#endif
