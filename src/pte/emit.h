/* Writing a program: planned graphs to a .pte file. */
#ifndef ETC_PTE_EMIT_H
#define ETC_PTE_EMIT_H

#include "ir/constant_method.h"
#include "support/files.h"

/* What was written. */
typedef struct EmitFigures {
  uint64_t file_bytes;
  uint64_t weight_bytes; /* constants, first contents of states, data of delegates */
  uint64_t arena_bytes;  /* of all methods */
  uint32_t kernel_calls, delegate_calls;
} EmitFigures;

/* Which node of the graph each instruction of a method is of; 0: none. In the arena of the graph.
 */
typedef struct InstructionMap {
  const NodeId *nodes;
  uint32_t count;
} InstructionMap;

typedef struct EmitOptions {
  InstructionMap *maps; /* by method, filled; may be NULL */
  const char *external; /* constants go into this file (.ptd); NULL: into the program */
  /* With the path "-": takes the bytes in place of standard output, or NULL. */
  void (*deliver)(void *user, const char *data, size_t size);
  void *deliver_user;
  /* Called when the program is whole and has not got its name yet; after an error nothing of it is
   * left. May be NULL. */
  Status (*whole)(void *user, AtomicFile *file);
  /* Called after that: writes what belongs beside the program. */
  Status (*beside)(void *user, AtomicFile *file);
  void *whole_user;                /* of both */
  bool sync;                       /* fsync file and folder before the file gets its name */
  WriteProgress *progress;         /* or NULL */
  const ConstantMethod *constants; /* constant_count of them, with names of their own */
  uint32_t constant_count;
  EmitFigures *figures; /* set on success; may be NULL */
} EmitOptions;

/* Writes the methods, each at LEVEL_EXECUTORCH with a memory plan, as one program. The bytes depend
 * on the graphs only. The file appears under its name when it is whole, or not at all. Constants go
 * from their mapped files by the kernel's copy. Methods have different names. Errors (reported):
 * DIAG_TOO_LARGE when a limit of the format or of the loader would be passed; what atomic_file_*
 * report. */
Status pte_emit(Graph *const *methods, uint32_t count, DiagSink *sink, const char *path,
                EmitOptions options);

#endif
