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
 * its region. Markers have the trait OP_CONTROL, and OP_EFFECT: they stay where they are. So does
 * control::fail, which begins and ends nothing, but ends the call with an error. */
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
/* The region that sees the results of n, which a loop shows to its iterations only. */
NodeId region_of_results(const Graph *g, const Regions *r, NodeId n);
/* The region whose values argument i of n may use. */
NodeId region_of_argument(const Graph *g, const Regions *r, NodeId n, uint32_t i);
/* The loop, within region `outer`, that n is in or ends, and that is in no other such loop; 0 when
 * there is none: what is defined in `outer` and used by n must live until that loop ends. */
NodeId region_outermost_loop(const Graph *g, const Regions *r, NodeId n, NodeId outer);
/* The marker that begins what n (else, endif or next) belongs to, found by a walk over the list; 0
 * when the markers do not match. */
NodeId region_opening(const Graph *g, NodeId n);

#endif
