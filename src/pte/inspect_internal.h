/* The figures that both forms of the report show. */
#ifndef ETC_PTE_INSPECT_INTERNAL_H
#define ETC_PTE_INSPECT_INTERNAL_H

#include "ops/delegate.h"
#include "pte/inspect.h"
#include "support/json.h"

extern const char *const inspect_instruction_names[PTE_INSTRUCTION_KIND_COUNT];
/* "int"; of tensors their element type. */
const char *inspect_kind(const PteValue *v);
bool inspect_is_state(const PteValue *v);
/* "606176 bytes (592.0 KiB)". */
void inspect_append_bytes(StrBuf *out, uint64_t bytes);
/* At most the first bytes of a name that many rows repeat: a file may share a long one. */
StrView inspect_clip(StrView name);
/* "f32[1..8, 4]", "int". ranges: of its dims; NULL where they are not known, and
 * may be empty. */
void inspect_append_value(StrBuf *out, const PteValue *v, const PteRange *ranges);
/* What an arena has beyond the lower bound. One smaller than what is in use at once is a fault of
 * the plan; the gap is 0 then, and verify tells. */
uint64_t inspect_gap(PteMemory m);
double inspect_gap_percent(PteMemory m);

typedef struct ProgramFigures {
  uint64_t constant_bytes; /* of all constant tensors, as often as they are named */
  uint64_t unique_bytes;   /* each data index once */
  uint64_t external_bytes; /* of tensors in a file of their own */
  uint32_t constant_tensors, unique_constants, external_tensors;
} ProgramFigures;
ProgramFigures program_figures(const PteProgram *p, Arena *arena);

typedef struct MethodFigures {
  uint32_t *calls;          /* by operator */
  uint32_t *delegate_calls; /* by delegate */
  uint32_t *order;          /* operators that are called, most calls first, then by name */
  uint32_t used;            /* of them */
  uint32_t kinds[PTE_INSTRUCTION_KIND_COUNT];
  PteMemory memory;
} MethodFigures;
MethodFigures method_figures(const PteMethod *m, Arena *arena);

/* A tensor with a place, in use from the first instruction that names it to the last. */
typedef struct PteSpan {
  uint64_t offset, size;
  uint32_t value, arena, begin, end;
  bool read; /* before it is written: it is a view of what was there */
} PteSpan;

typedef struct PteSpans {
  PteSpan *spans; /* in order of place, then of time */
  uint32_t count, positions;
} PteSpans;
PteSpans method_spans(const PteMethod *m, Arena *arena);
/* By value: the position of the first instruction that names it; 1: inputs and states, the number
 * of instructions + 2: outputs alone, 0: not named; instruction i has position i + 2. */
const uint32_t *method_first_uses(const PteMethod *m, Arena *arena);
/* Makes one of spans that are one piece of memory: a tensor seen through views, written in parts,
 * or written over in place. What is left overlaps in place or in time, not in both. */
void spans_merge(PteSpans *s, Arena *arena);
/* The bytes in use at once, each tensor rounded up to its alignment, and the first position with so
 * many; of spans that are merged. */
typedef struct PtePeak {
  uint64_t bytes;
  uint32_t at;
} PtePeak;
PtePeak spans_peak(const PteSpan *spans, uint32_t count, Arena *arena);
/* PteMemory.live_peak of a method's spans. Merges them in place: a copy is needed to ask again. */
uint64_t spans_live_peak(PteSpans s, Arena *arena);

/* The live peak of a method at some sizes of one dim of an input; the other dims have their upper
 * bounds, or what follows from that size. */
enum { DIM_SAMPLES = 5 };

typedef struct InputDim {
  uint32_t input, dim;
} InputDim;

typedef struct DimCurve {
  InputDim at;
  InputDim *equal; /* dims that must have the same size */
  uint32_t equal_count;
  uint32_t count; /* 2..DIM_SAMPLES */
  int64_t sizes[DIM_SAMPLES];
  uint64_t peaks[DIM_SAMPLES];
  bool linear; /* three sizes or more, and the peak is constant + factor * size at each */
  int64_t constant, factor;
} DimCurve;

typedef struct MethodDims {
  bool dynamic;                 /* some input is; nothing else is set otherwise */
  PteRange **inputs, **outputs; /* by position and dim, as far as the instructions tell; NULL: not
                                   known */
  const char *fault;            /* why there are no curves; NULL: there may be */
  DimCurve *curves;
  uint32_t count;
  uint32_t left_out; /* dims beyond the number that is looked at */
} MethodDims;
/* By method. */
const MethodDims *program_dims(const PteProgram *p, Arena *arena);

/* What is in the code of a delegate. budget: bytes of code that may still be looked at, which it
 * takes from. NULL, or why there are no figures. */
const char *inspect_delegate(const PteProgram *p, const PteDelegate *d, uint64_t *budget,
                             Arena *arena, DelegateFigures *out);
/* The delegates of a method. budget: bytes of code that may still be looked at. */
typedef struct DelegateTotals {
  uint64_t code, nodes, byte_nodes, transposes, constant_bytes, work;
  uint64_t packed, workspace; /* estimates; delegates share a workspace */
  uint32_t unknown;           /* those without figures */
} DelegateTotals;
DelegateTotals delegate_totals(const PteProgram *p, const PteMethod *m, uint64_t budget);
/* calls: how often each is called. */
void text_delegates(StrBuf *out, const PteProgram *p, const PteMethod *m, const uint32_t *calls,
                    uint64_t *budget);
void json_delegates(JsonWriter *w, const PteProgram *p, const PteMethod *m, const uint32_t *calls,
                    uint64_t *budget);

/* Library that registers a kernel: "portable", "quantized", "llm" or "other" by its namespace. */
const char *operator_library(StrView name);
/* The names of the libraries that the program needs beside the prim ops of the runtime itself,
 * sorted; returns how many. */
#define MAX_LIBRARIES 5
uint32_t program_libraries(const PteProgram *p, const char *names[MAX_LIBRARIES]);

#endif
