/* Numbers of the ExecuTorch program format: field ids, union codes, the extended header.
 * Facts from ExecuTorch 1.4.1, schema/program.fbs and runtime/executor/program.cpp; our own
 * schema/program.fbs says the same for flatc. */
#ifndef ETC_PTE_SCHEMA_H
#define ETC_PTE_SCHEMA_H

#define PTE_IDENTIFIER "ET12"
#define PTE_HEADER_MAGIC "eh00"
#define PTD_IDENTIFIER "FT01"
#define PTD_HEADER_MAGIC "FH01"
#define BUNDLE_IDENTIFIER "BP08"

enum {
  PTE_HEADER_AT = 8, /* file offset of the extended header */
  PTE_HEADER_SIZE =
      32, /* magic, u32 length, u64 program size, u64 segment base, u64 segment bytes */
  PTE_HEADER_MIN = 24,  /* without the last field */
  PTD_HEADER_SIZE = 40, /* magic, u32 length, u64 offset and size of the FlatBuffer, u64 segment
                           base, u64 segment bytes */
  PTD_HEADER_ROOM = 48, /* with padding */
  PTE_FILE_MIN = 64,    /* the loader reads that many bytes first */
  PTE_SEGMENT_ALIGNMENT = 128,
  PTE_TENSOR_ALIGNMENT = 16, /* of constants and of planned memory */
  PTE_MAX_INSTRUCTIONS = 10000000
};

enum { /* Program */
       PROGRAM_VERSION,
       PROGRAM_EXECUTION_PLAN,
       PROGRAM_CONSTANT_BUFFER,
       PROGRAM_BACKEND_DELEGATE_DATA,
       PROGRAM_SEGMENTS,
       PROGRAM_CONSTANT_SEGMENT,
       PROGRAM_MUTABLE_DATA_SEGMENTS,
       PROGRAM_NAMED_DATA
};
enum {
  PLAN_NAME,
  PLAN_CONTAINER_META_TYPE,
  PLAN_VALUES,
  PLAN_INPUTS,
  PLAN_OUTPUTS,
  PLAN_CHAINS,
  PLAN_OPERATORS,
  PLAN_DELEGATES,
  PLAN_NON_CONST_BUFFER_SIZES,
  PLAN_NON_CONST_BUFFER_DEVICE
};
enum { CONTAINER_INPUTS, CONTAINER_OUTPUTS };
enum { CHAIN_INPUTS, CHAIN_OUTPUTS, CHAIN_INSTRUCTIONS, CHAIN_STACKTRACE };
enum { INSTRUCTION_ARGS_TYPE, INSTRUCTION_ARGS };
enum { CALL_INDEX, CALL_ARGS }; /* KernelCall, DelegateCall */
enum { MOVE_FROM, MOVE_TO };
enum { JUMP_CONDITION, JUMP_DESTINATION };
enum { FREE_VALUE };
enum { OPERATOR_NAME, OPERATOR_OVERLOAD };
enum { EVALUE_TYPE, EVALUE_VALUE };
enum { SCALAR_VALUE }; /* the only field of Int, Bool, Double, String and the lists */
enum {
  TENSOR_SCALAR_TYPE,
  TENSOR_STORAGE_OFFSET,
  TENSOR_SIZES,
  TENSOR_DIM_ORDER,
  TENSOR_REQUIRES_GRAD,
  TENSOR_DATA_BUFFER_IDX,
  TENSOR_ALLOCATION_INFO,
  TENSOR_LAYOUT,
  TENSOR_SHAPE_DYNAMISM,
  TENSOR_EXTRA_INFO
};
enum { ALLOCATION_MEMORY_ID, ALLOCATION_OFFSET_LOW, ALLOCATION_OFFSET_HIGH };
enum { EXTRA_MUTABLE_SEGMENT, EXTRA_NAME, EXTRA_LOCATION, EXTRA_DEVICE_TYPE, EXTRA_DEVICE_INDEX };
enum { SEGMENT_OFFSET, SEGMENT_SIZE };
enum { SUBSEGMENT_INDEX, SUBSEGMENT_OFFSETS };
enum { DELEGATE_ID, DELEGATE_PROCESSED, DELEGATE_COMPILE_SPECS };
enum { PROCESSED_LOCATION, PROCESSED_INDEX };
enum { COMPILE_SPEC_KEY, COMPILE_SPEC_VALUE };
enum { INLINE_DATA };
enum { NAMED_KEY, NAMED_SEGMENT };
enum { PTD_VERSION, PTD_SEGMENTS, PTD_ENTRIES }; /* FlatTensor */
enum { PTD_KEY, PTD_SEGMENT, PTD_LAYOUT };       /* NamedData of it */
enum { LAYOUT_SCALAR_TYPE, LAYOUT_SIZES, LAYOUT_DIM_ORDER };

/* Union KernelTypes. */
typedef enum PteKind {
  PTE_NONE,
  PTE_NULL,
  PTE_INT,
  PTE_BOOL,
  PTE_DOUBLE,
  PTE_TENSOR,
  PTE_STRING,
  PTE_INT_LIST, /* items are value indices of Ints */
  PTE_DOUBLE_LIST,
  PTE_BOOL_LIST,
  PTE_TENSOR_LIST,
  PTE_OPTIONAL_TENSOR_LIST,
  PTE_KIND_COUNT
} PteKind;

/* Union InstructionArguments. */
typedef enum PteInstructionKind {
  PTE_CALL_NONE,
  PTE_KERNEL_CALL,
  PTE_DELEGATE_CALL,
  PTE_MOVE_CALL,
  PTE_JUMP_FALSE_CALL,
  PTE_FREE_CALL,
  PTE_INSTRUCTION_KIND_COUNT
} PteInstructionKind;

enum { PTE_STATIC, PTE_DYNAMIC_BOUND, PTE_DYNAMIC_UNBOUND }; /* TensorShapeDynamism */
enum { PTE_SEGMENT, PTE_EXTERNAL };                          /* location of a tensor's data */
enum { PTE_DATA_INLINE, PTE_DATA_SEGMENT }; /* DataLocation of a delegate's bytes */

/* Bundles (bundled_program.fbs) */
enum { BUNDLE_VERSION, BUNDLE_SUITES, BUNDLE_PROGRAM };
enum { SUITE_METHOD, SUITE_SETS };
enum { SET_INPUTS, SET_OUTPUTS };
enum { BUNDLED_TYPE, BUNDLED_VALUE };
enum { BUNDLED_SCALAR_TYPE, BUNDLED_SIZES, BUNDLED_DATA, BUNDLED_DIM_ORDER };

#endif
