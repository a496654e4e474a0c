/* Tensors in a file of their own (.ptd): the constants of a program by name.
 *
 * The format is ExecuTorch's FlatTensor: a FlatBuffer with identifier FT01 and an extended header
 * FH01, then segments. Each entry has a key, a segment and, for tensors, element type and sizes,
 * which the runtime compares with those in the program. Source: ExecuTorch 1.4.1,
 * extension/flat_tensor/serialize and extension/flat_tensor/flat_tensor_data_map.cpp. */
#ifndef ETC_PTE_PTD_H
#define ETC_PTE_PTD_H

#include "ir/graph.h"
#include "pte/constants.h"
#include "pte/emit.h"
#include "support/keymap.h"

/* --- reading --- */

typedef struct PtdEntry {
  StrView key;
  const uint8_t *data;
  uint64_t size, file_offset;
  bool is_tensor; /* the fields below are set */
  uint8_t dtype, rank;
  uint8_t dim_order[MAX_RANK];
  int32_t sizes[MAX_RANK];
} PtdEntry;

typedef struct PtdFile {
  Arena arena;
  MappedFile file;
  PtdEntry *entries;
  uint32_t count;
  KeyMap keys;
} PtdFile;

/* By the identifier at byte 4. */
bool ptd_is(const uint8_t *data, uint64_t size);
/* Maps and checks path; each size, offset and index is checked. Errors are reported, nothing need
 * be closed then. */
Status ptd_open(PtdFile *p, DiagSink *sink, uint64_t seed, const char *path);
void ptd_close(PtdFile *p);
/* The first entry of that key, or NULL. */
const PtdEntry *ptd_find(PtdFile *p, StrView key);
/* Appends what is in it. all: every entry. */
void ptd_inspect(const PtdFile *p, bool all, StrBuf *out);
/* Appends one object: file, file_bytes, entries (key, bytes; of tensors dtype and sizes). */
void ptd_inspect_json(const PtdFile *p, StrBuf *out);

/* --- writing --- */

typedef struct PtdTensor {
  NameId key;
  uint32_t item; /* in the pool */
  uint8_t dtype, rank;
  uint8_t dim_order[MAX_RANK];
  int32_t sizes[MAX_RANK];
} PtdTensor;

/* The constants that go into the file, across all methods. */
typedef struct PtdWriter {
  Context *ctx;
  Arena *arena;
  ConstantPool pool;
  PtdTensor *tensors;
  uint32_t count, capacity;
  KeyMap layouts, keys;
} PtdWriter;

void ptd_writer_init(PtdWriter *w, Context *ctx, Arena *arena);
void ptd_writer_release(PtdWriter *w);
/* The key of a tensor of type t whose bytes are pool item `item`: its name where no other tensor
 * has it, else with a number behind it. The sizes of t are constant. */
NameId ptd_writer_add(PtdWriter *w, uint32_t item, const Type *t, NameId name);
/* Writes the file. Errors (reported): DIAG_TOO_LARGE, those of files. */
Status ptd_write(PtdWriter *w, DiagSink *sink, const char *path, bool sync);

#endif
