/* What the writers of instructions share: plan_writer.c (calls), plan_delegate.c and plan_control.c
 * (jumps). */
#ifndef ETC_PTE_PLAN_INTERNAL_H
#define ETC_PTE_PLAN_INTERNAL_H

#include "ir/region.h"
#include "pte/emit.h"
#include "pte/schema.h"
#include "pte/segments.h"
#include "pte/value_writer.h"

/* A call that is written, or a jump, whose destination may still be to come. */
typedef struct PlanInstruction {
  NodeId node; /* that it is of */
  FbRef table; /* the Instruction; 0: a jump */
  int32_t condition;
  uint32_t label;
} PlanInstruction;

typedef struct PlanWriter {
  ValueWriter values;
  FlatBuilder *b;
  Graph *g;
  Arena *scratch;
  bool *is_output;   /* by value */
  int32_t *op_index; /* by OpId: index in the operators table + 1 */
  FbRef *operators;  /* first-use order */
  uint32_t operator_count;
  NodeId node; /* that is being written; 0 outside of the chain */
  PlanInstruction *instructions;
  uint32_t instruction_count, instruction_capacity;
  SegmentList *segments;
  EmitFigures *figures;
  FbRef *delegates;
  uint32_t delegate_count;
  KeyMap delegate_index; /* by DelegateIdentity: index in the delegates table + 1 */
  Regions regions;
  uint32_t *labels; /* by label: the instruction that it names */
  uint32_t label_count;
  uint32_t *label_of; /* by marker: of if: where the else begins; of else: where it ends; of loop:
                         its first instruction, and with 1 added where it ends; of fail: what comes
                         after it */
} PlanWriter;

/* A KernelCall of op, which has a kernel, with these values. */
void plan_call(PlanWriter *p, OpId op, const int32_t *args, uint32_t count);
/* A KernelCall or DelegateCall of number index. */
void plan_add_call(PlanWriter *p, PteInstructionKind kind, int32_t index, const int32_t *args,
                   uint32_t count);
/* A BUG when result v of n cannot be written. */
void plan_check_written(const PlanWriter *p, NodeId n, ValueId v);
/* A delegate and its call. */
void plan_delegate_call(PlanWriter *p, NodeId n);
/* The Instruction table of a finished member of the union. */
FbRef plan_instruction(PlanWriter *p, PteInstructionKind kind, FbRef member);

/* Finds the regions, and the values that are one tensor of the program: what markers return. */
void plan_control_begin(PlanWriter *p);
/* The jumps of a marker. */
void plan_control(PlanWriter *p, NodeId n);
/* Writes the jumps, all of whose destinations are known now: the instructions of the chain. */
FbRef plan_instructions(PlanWriter *p);

#endif
