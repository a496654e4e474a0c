/* What a delegate computes, and the memory that XNNPACK allocates for it beside the arenas of the
 * program: an estimate from its graph. */
#ifndef ETC_BACKENDS_XNNPACK_MEMORY_H
#define ETC_BACKENDS_XNNPACK_MEMORY_H

#include "backends/xnnpack/read.h"

/* Multiply-adds of one call, with dynamic sizes at their upper bounds. */
uint64_t xr_work(const XrGraph *x);
/* Bytes of packed weights. Each node packs a copy of its own. */
uint64_t xr_packed(const XrGraph *x);
/* Of a node that packs them in each call, since they are no constant; 0 for others. */
uint64_t xr_packed_each_call(const XrGraph *x, const XrNode *n);
/* Bytes for values between the nodes, and of what the nodes allocate to compute, when the sizes
 * are the upper bounds. */
uint64_t xr_workspace(const XrGraph *x, Arena *arena);

#endif
