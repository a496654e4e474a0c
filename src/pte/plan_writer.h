/* One planned graph as an ExecutionPlan table: its values, operators and instructions. */
#ifndef ETC_PTE_PLAN_WRITER_H
#define ETC_PTE_PLAN_WRITER_H

#include "ir/graph.h"
#include "pte/constants.h"
#include "pte/emit.h"
#include "pte/flatbuffer.h"
#include "pte/segments.h"

/* Where the bytes go that a plan refers to; shared by all methods of a program. */
typedef struct PlanData {
  ConstantPool *constants, *initial; /* initial: first contents of states */
  SegmentList *segments;             /* the bytes and data of delegates */
  EmitFigures *figures;              /* calls and arenas are added */
  InstructionMap *map;               /* is filled; may be NULL */
  struct PtdWriter *external;        /* where constants go; NULL: into the program */
} PlanData;

/* g: at LEVEL_EXECUTORCH, with a memory plan. scratch: for tables that live until the call ends.
 * *plan is 0 when the buffer overflowed (b->overflow). Errors: DIAG_TOO_LARGE for a tensor whose
 * size the format cannot say. */
Status plan_write(FlatBuilder *b, PlanData data, Graph *g, Arena *scratch, FbRef *plan);

#endif
