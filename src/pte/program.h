/* A .pte file as it is: every table of it decoded and checked, nothing interpreted. What inspect
 * shows, and what read.h makes graphs of.
 *
 * The file may be hostile: each offset, index, size and enum is checked here, so that users of a
 * PteProgram need no checks of their own. Rules that the runtime's loader enforces are errors here
 * too. Sources: ExecuTorch 1.4.1, schema/program.fbs,
 * runtime/executor/{program,method,tensor_parser_exec_aten}.cpp. */
#ifndef ETC_PTE_PROGRAM_H
#define ETC_PTE_PROGRAM_H

#include "ir/graph.h"
#include "pte/schema.h"

typedef struct PteTensor {
  uint8_t dtype; /* scalar type number, 0..29: may be one that DType does not have */
  uint8_t rank;
  uint8_t dynamism; /* PTE_STATIC or PTE_DYNAMIC_BOUND: sizes are upper bounds then */
  bool external;    /* data in a .ptd file */
  uint8_t dim_order[MAX_RANK];
  int32_t sizes[MAX_RANK];
  uint32_t
      data; /* data_buffer_idx: a constant, or the first contents of a planned tensor; 0 = none */
  uint32_t memory_id; /* arena, 1-based; 0 = not planned */
  uint64_t offset;    /* in the arena, bytes */
  uint64_t bytes;     /* of the (largest) contents */
  StrView name;       /* fully qualified name, mostly empty */
} PteTensor;

/* Constant: data, here or in another file, without a place in an arena. */
static inline bool pte_is_constant(const PteTensor *t) {
  return (t->data != 0 || t->external) && t->memory_id == 0;
}

/* Memory that lives between calls: a planned tensor with first contents. */
static inline bool pte_is_state(const PteTensor *t) { return t->data != 0 && t->memory_id != 0; }

typedef struct PteValue {
  PteKind kind;
  uint32_t count; /* of lists */
  union {
    int64_t i; /* Int, Bool */
    double f;
    const PteTensor *tensor;
    StrView text;
    const int32_t *
        indices; /* IntList, TensorList, OptionalTensorList (-1 = absent): value indices, checked */
    const double *floats;
    const uint8_t *bools;
  };
} PteValue;

typedef struct PteInstruction {
  PteInstructionKind kind;
  int32_t index;  /* KernelCall: operator; DelegateCall: delegate; JumpFalseCall: destination */
  uint32_t count; /* of args */
  const int32_t *args; /* value indices, checked; MoveCall: from, to; JumpFalseCall: condition;
                          FreeCall: value */
} PteInstruction;

/* What the runtime hands to the backend with the bytes. */
typedef struct PteSpec {
  StrView key;
  const uint8_t *data;
  uint32_t size;
} PteSpec;

typedef struct PteDelegate {
  StrView id;
  const uint8_t *data; /* the blob */
  uint64_t size;
  PteSpec *specs;
  uint32_t spec_count;
} PteDelegate;

/* The sizes that a dim can have. */
typedef struct PteRange {
  int64_t lo, hi;
} PteRange;

typedef struct PteMethod {
  StrView name;
  PteValue *values;
  int32_t *inputs, *outputs; /* value indices, checked */
  StrView *operators;        /* "aten::add.out" */
  PteDelegate *delegates;
  PteInstruction *instructions;
  PteRange **ranges;     /* by input and dim; NULL: the file has bounds only (ranges.h) */
  uint64_t *arena_sizes; /* by memory_id; [0] unused */
  MemoryBank *banks;     /* of memory_id 1..bank_count, as far as the file names them (banks.h) */
  uint32_t bank_count;
  uint32_t arena_alignment; /* that the file asks for (banks.h); 0: it says nothing of it */
  uint32_t value_count, input_count, output_count, operator_count, delegate_count,
      instruction_count;
  uint32_t arena_count; /* entries of arena_sizes */
} PteMethod;

typedef struct PteSegment {
  uint64_t offset, size; /* offset from the start of the file */
} PteSegment;

/* Where the contents of tensors are. */
typedef struct PteContents {
  uint32_t segment;  /* index; segment_count: absent */
  uint64_t *offsets; /* in the segment, by data_buffer_idx; [0] unused */
  uint32_t count;
} PteContents;

typedef struct PteProgram {
  Arena arena;
  MappedFile file;
  DiagSink *sink;
  const struct DelegateReaders
      *readers;          /* of delegates, for inspection; NULL, or set by the owner */
  uint64_t program_size; /* of the FlatBuffer, header included */
  uint32_t version;
  bool has_header;
  PteSegment *segments;
  uint32_t segment_count;
  PteContents constants, initial; /* initial: first contents of states */
  PteMethod *methods;
  uint32_t method_count;
  StrView *named_data;      /* keys */
  uint32_t *named_segments; /* by named data: where its bytes are */
  uint32_t named_data_count;
} PteProgram;

/* Maps and checks path. All faults are reported (DIAG_PTE_*, or what file_map reports), with the
 * method and value or instruction. After an error nothing need be closed. The program's contents
 * live until pte_program_close. */
Status pte_program_open(PteProgram *p, DiagSink *sink, const char *path);
/* The number of the method of that name; p->method_count when there is none. */
uint32_t pte_find_method(const PteProgram *p, StrView name);
/* Opens a program in memory, which must outlive it; name stands for the path in diagnostics. */
Status pte_program_open_bytes(PteProgram *p, DiagSink *sink, const char *name, const uint8_t *data,
                              uint64_t size);
void pte_program_close(PteProgram *p);
/* The bytes of a constant tensor (pte_is_constant, not external), or the first contents of a
 * planned tensor that has some (data is not 0). */
const uint8_t *pte_tensor_data(const PteProgram *p, const PteTensor *t);
/* Bytes of delegates' code that readers look at, at most: many delegates may share one code. */
static inline uint64_t pte_code_budget(const PteProgram *p) { return 16 * p->file.size; }
static inline DiagPlace pte_place(const PteProgram *p) {
  return (DiagPlace){.file = sv_from(p->file.path), .index = -1};
}
/* Element size of any scalar type number 0..29, including those that DType lacks; its name ("f32",
 * "qint8"). */
unsigned pte_dtype_size(uint8_t dtype);
/* The bytes of a tensor; false when they are too many, or the dim order does not name each dim
 * once.
 */
bool pte_tensor_bytes(uint8_t dtype, uint8_t rank, const int32_t *sizes, const uint8_t *dim_order,
                      uint64_t *bytes);
const char *pte_dtype_name(uint8_t dtype);
/* Whether a DType of that number exists. */
bool pte_dtype_known(uint8_t dtype);

#endif
