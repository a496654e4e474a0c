/* One planned graph as an ExecutionPlan table: its values, operators and instructions. */
#ifndef ETC_PTE_PLAN_WRITER_H
#define ETC_PTE_PLAN_WRITER_H

#include "ir/graph.h"
#include "pte/constants.h"
#include "pte/flatbuffer.h"

/* g: at LEVEL_EXECUTORCH, with a memory plan. Constants go to the pool. scratch: for tables that
 * live until the call ends. *plan is 0 when the buffer overflowed (b->overflow). Errors:
 * DIAG_TOO_LARGE for a tensor whose size the format cannot say. */
Status plan_write(FlatBuilder *b, ConstantPool *pool, ConstantPool *initial, Graph *g,
                  Arena *scratch, FbRef *plan);

#endif
