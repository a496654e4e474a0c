/* Reading a program back: .pte file to graphs at LEVEL_EXECUTORCH, planned as the file says, for
 * `etc run`, `etc verify` and `etc print`.
 *
 * Kernel calls become nodes of the functional ops they were made from; each write of a value makes
 * a new SSA value. A tensor that no call writes but that lies where another one does is a view of
 * it: it becomes a view_copy node. Result types come from the op's shape rule and must agree with
 * the file's. A tensor of dynamic shape is read with a symbol of range [0, bound] for each of its
 * dims other than 1, since the file has only the bounds; sizes of what a delegate computes follow
 * from those of its inputs where its reader knows how. Inputs and outputs have the names that the
 * file gives them (extra_tensor_info.fully_qualified_name), else input_0, …, output_0, ….
 *
 * Where the context says which method is wanted, only that is read; the others need not be
 * supported.
 *
 * Jumps are read back as the markers of ir/region.h, when they are those that etc writes.
 *
 * Calls of delegates are nodes whose code and named data are constants; the backend's reader
 * (ops/delegate.h) says which.
 *
 * Not supported, and reported as such: operators that are not in the op table, other jumps, state
 * kept between runs, states with external data, tensors that are not contiguous. */
#ifndef ETC_PTE_READ_H
#define ETC_PTE_READ_H

#include "ir/constant_method.h"
#include "pte/program.h"
#include "pte/ptd.h"

typedef struct PteFile {
  PteProgram program;               /* owns the file: constants of the graphs are spans of it */
  Graph **methods;                  /* NULL for a constant method, and for one that is not wanted */
  const ConstantMethod **constants; /* by method; NULL for the others */
  ValueId **latest; /* by method and value index: what was written there last; 0 = nothing */
  uint32_t method_count;
} PteFile;

/* Reads path into *out, which must not move while the graphs live. data: where constants are that
 * the program does not have itself; it outlives the graphs; NULL: nowhere. All faults are reported;
 * after one there is nothing to close. */
Status pte_read(Context *ctx, const char *path, PtdFile *data, PteFile *out);
/* Reads a program from memory, which must outlive the file; name stands for the path in
 * diagnostics. */
Status pte_read_bytes(Context *ctx, const char *name, const uint8_t *data, uint64_t size,
                      PtdFile *external, PteFile *out);
void pte_close(PteFile *file); /* frees the graphs too */

#endif
