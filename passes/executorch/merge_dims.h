/* Part of choose_kernels: arithmetic with a broadcast operand, of fewer dims. */
#ifndef ETC_PASSES_EXECUTORCH_MERGE_DIMS_H
#define ETC_PASSES_EXECUTORCH_MERGE_DIMS_H

#include "passes/pass.h"

/* After eliminate_views. */
Status merge_broadcast_dims(PassContext *p, Graph *g);

#endif
