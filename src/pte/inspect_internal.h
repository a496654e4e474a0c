/* The figures that both forms of the report show. */
#ifndef ETC_PTE_INSPECT_INTERNAL_H
#define ETC_PTE_INSPECT_INTERNAL_H

#include "pte/inspect.h"

typedef struct ProgramFigures {
  uint64_t constant_bytes; /* of all constant tensors, as often as they are named */
  uint64_t unique_bytes;   /* each data index once */
  uint32_t constant_tensors, unique_constants;
} ProgramFigures;
ProgramFigures program_figures(const PteProgram *p, Arena *arena);

typedef struct MethodFigures {
  uint32_t *calls; /* by operator */
  uint32_t *order; /* operators that are called, most calls first, then by name */
  uint32_t used;   /* of them */
  uint32_t kinds[PTE_INSTRUCTION_KIND_COUNT];
  PteMemory memory;
} MethodFigures;
MethodFigures method_figures(const PteMethod *m, Arena *arena);

/* Library that registers a kernel: "portable", "quantized", "llm" or "other" by its namespace. */
const char *operator_library(StrView name);
/* The names of the libraries that the program needs beside the prim ops of the runtime itself,
 * sorted; returns how many. */
#define MAX_LIBRARIES 5
uint32_t program_libraries(const PteProgram *p, const char *names[MAX_LIBRARIES]);

#endif
