/* Shared by read.c (calls), read_delegate.c and read_values.c (operands). */
#ifndef ETC_PTE_READ_INTERNAL_H
#define ETC_PTE_READ_INTERNAL_H

#include "ir/op.h"
#include "pte/read.h"
#include "support/bitset.h"
#include "support/keymap.h"

/* What a value was before it changed within a branch or loop. */
typedef struct JournalEntry {
  uint32_t index;
  bool is_write; /* not a view that was only looked at */
  ValueId current, base;
  const PteTensor *place; /* NULL: nothing was written there */
  ValueId at_place;
} JournalEntry;

typedef struct MethodReader {
  const PteProgram *p;
  const PteMethod *m;
  Graph *g;
  Arena *scratch;
  PtdFile *external; /* or NULL */
  ValueId *current;  /* by value index: the SSA value that it holds now, 0 = none yet */
  ValueId *latest;   /* by value index: what was written there last, wherever; 0 = nothing */
  ValueId *base;     /* by value index: what current is a view of, 0 = it is no view */
  Bitset outputs;    /* value indices */
  int32_t *bound; /* by value index: the largest size that an Int is for a tensor + 1, 0 = none */
  bool *computed; /* by value index: an instruction writes it */
  KeyMap places;  /* arena and offset -> ValueId written there last */
  KeyMap named;   /* key -> 1 + index of named data; of delegates, made when first needed */
  ValueId *named_values; /* by index of named data: its constant, 0 = none yet */
  uint64_t *code_budget; /* bytes of delegates that may still be looked at */
  uint32_t instruction;
  LocId loc; /* of the instruction */
  /* Control flow, read_control.c */
  Bitset written, lost,
      seen;           /* value indices: by any call; not on all ways to here; for short use */
  uint32_t *position; /* by value index, for short use */
  JournalEntry *journal;
  uint32_t journal_count, journal_capacity;
  uint32_t depth; /* of the regions around the instruction */
} MethodReader;

/* Reports "method 'm', instruction n: message"; returns the code's status. */
Status read_error(const MethodReader *r, DiagCode code, const char *format, ...) ETC_PRINTF(3, 4);
/* The graph's type of a tensor, dims constant. */
Status read_type(MethodReader *r, const PteTensor *t, TypeId *out);
/* A value of the graph that was just written to value index: gives it its place and makes it
 * current. */
void read_define(MethodReader *r, uint32_t index, ValueId v);
/* The memory at the place of a tensor that is going to be written there. */
Status read_memory(MethodReader *r, uint32_t index, ValueId *out);
/* The states that have first contents. */
Status read_states(MethodReader *r);
/* All instructions. */
Status read_chain(MethodReader *r);
/* The KernelCall, DelegateCall or MoveCall at instruction i. */
Status read_call(MethodReader *r, uint32_t i);
/* Value index is going to change. place: the tensor whose place is written, NULL if none is. */
void read_note(MethodReader *r, uint32_t index, const PteTensor *place, bool is_write);
/* The value written last at the tensor's place. */
ValueId *read_place(MethodReader *r, const PteTensor *t);
/* The tensor in a value index, as an operand. */
Status read_tensor(MethodReader *r, uint32_t index, ValueId *out);
/* m as a constant method, in arena; NULL when it computes, or returns other values. */
const ConstantMethod *read_constant_method(const PteProgram *p, const PteMethod *m, Arena *arena);
/* A DelegateCall as a node. */
Status read_delegate_call(MethodReader *r, const PteInstruction *in);
/* How many arguments of the call are inputs, the others being written; all of them when nothing is
 * known of the backend or the code is wrong. */
uint32_t read_delegate_inputs(MethodReader *r, const PteInstruction *in);
/* The argument of a call in a value index. */
Status read_arg(MethodReader *r, uint32_t index, const SchemaArg *arg, ArgIn *out);

#endif
