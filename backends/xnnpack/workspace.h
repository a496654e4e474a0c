/* Where XNNPACK puts the values between the nodes of a delegate, and the order in which they are
 * told to it so that they need little memory. */
#ifndef ETC_BACKENDS_XNNPACK_WORKSPACE_H
#define ETC_BACKENDS_XNNPACK_WORKSPACE_H

#include "backends/xnnpack/read.h"

/* Bytes of memory for values between the nodes, and for what nodes pack in each call, when the
 * sizes are the upper bounds. */
uint64_t xr_workspace_values(const XrGraph *x, Arena *arena);

/* The ids of all values in the order in which they are to be in the blob, for the least memory;
 * NULL when the order that they have is as good. */
const uint32_t *xr_value_order(const XrGraph *x, Arena *arena);

#endif
