/* Memory that the runtime takes beside the arenas, so that hosts without a heap know how much to
 * give it.
 *
 * The method allocator holds what Method::load makes of the tables of a program, the temporary
 * allocator what a kernel call needs while it is resolved or runs. Both only ever advance a
 * pointer, so that the bytes follow from the order of requests in ExecuTorch 1.4.1
 * (runtime/executor/method.cpp, tensor_parser_portable.cpp, kernels/portable/cpu/op_topk.cpp) and
 * the sizes of its structs. What backends take is theirs to say, and not part of it. */
#ifndef ETC_PTE_RUNTIME_MEMORY_H
#define ETC_PTE_RUNTIME_MEMORY_H

#include "pte/program.h"

typedef struct RuntimeMemory {
  uint64_t method; /* bytes of the method allocator, where it begins at a multiple of 16 */
  uint64_t temp;   /* of the temporary allocator, with portable kernels */
} RuntimeMemory;

/* word: bytes of a pointer on the device, 4 or 8; 64-bit integers are aligned to 8 there. */
RuntimeMemory pte_runtime_memory(const PteMethod *m, unsigned word);

#endif
