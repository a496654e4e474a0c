/* Which nodes only give the bytes of their operand another shape. Shared by the passes of this
 * stage. */
#ifndef ETC_PASSES_EXECUTORCH_VIEWS_H
#define ETC_PASSES_EXECUTORCH_VIEWS_H

#include "ir/builder.h"

/* Whether the one result of n holds exactly the bytes of its first operand, in the same order:
 * views, permutations that only move dims of size 1, expansions that only add such dims. */
bool node_is_view(Graph *g, NodeId n);
/* Where the bytes of v come from when all views are looked through: an input, a constant or the
 * result of another node. */
ValueId view_base(Graph *g, ValueId v);
/* As view_base, but not beyond a change of the element type. */
ValueId view_base_of_type(Graph *g, ValueId v);
/* v with other dims, after eliminate_views: without a copy, as the views before it are by then. */
ValueId build_et_view(Builder *b, ValueId v, const SymInt *dims, uint32_t rank);
/* The same; a constant stays one. */
ValueId build_reshaped(Builder *b, ValueId v, const SymInt *dims, uint32_t rank);

#endif
