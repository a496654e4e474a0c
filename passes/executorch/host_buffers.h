/* Inputs and outputs in memory that the host provides: they have no place in the plan, and the host
 * sets their addresses before each call. */
#ifndef ETC_PASSES_EXECUTORCH_HOST_BUFFERS_H
#define ETC_PASSES_EXECUTORCH_HOST_BUFFERS_H

#include "passes/pass.h"

/* Copies inputs, and outputs, that cannot be used where the host has them. */
Status host_buffers_prepare(PassContext *p, Graph *g, bool inputs, bool outputs);

#endif
