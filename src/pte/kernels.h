/* What a selective build of the runtime must register for one or more programs: kernels, with the
 * element types and dim orders of their calls, and backends.
 *
 * The YAML is what ExecuTorch 1.4.1 makes of a program in codegen/tools/gen_oplist.py
 * (selected_operators.yaml), the CMake sets the options of its CMakeLists.txt. */
#ifndef ETC_PTE_KERNELS_H
#define ETC_PTE_KERNELS_H

#include "pte/program.h"
#include "support/keymap.h"

/* Pairs of texts, each once. */
typedef struct PairSet {
  KeyMap seen;
  struct Pair *pairs;
  uint32_t count, capacity;
} PairSet;

typedef struct KernelList {
  Arena arena;
  PairSet operators; /* name, path of the program that names it */
  PairSet keys;      /* operator, kernel key of a call: "v1/6;0,1|6;0,1" */
  PairSet dtypes;    /* operator, element type of a tensor in a call: "f32" */
  PairSet backends;  /* id, path of the program */
} KernelList;

void kernel_list_init(KernelList *l);
void kernel_list_release(KernelList *l);
/* Adds what p needs; p may be closed then. */
void kernel_list_add(KernelList *l, const PteProgram *p);
/* Appends the list. Both sort it. */
void kernel_list_yaml(KernelList *l, StrBuf *out);
void kernel_list_cmake(KernelList *l, StrBuf *out);

#endif
