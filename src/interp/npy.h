/* Arrays from and to numpy's .npy files.
 *
 * Element types that numpy has no name for are raw bytes, as the package ml_dtypes writes them:
 * bfloat16 is '<V2' (also "bfloat16" and '<u2' are read), the float8 types are '|V1' (also '|u1' is
 * read). A reader has to say what it expects. */
#ifndef ETC_INTERP_NPY_H
#define ETC_INTERP_NPY_H

#include "ops/kernel.h"

typedef struct NpyArray {
  Tensor tensor; /* data: in the mapped file or in the arena; read only; 16-byte aligned */
  MappedFile file;
} NpyArray;

/* What the header of a .npy file says. */
typedef struct NpyHead {
  DType dtype;
  uint32_t rank;
  int64_t dims[MAX_RANK];
  bool fortran, big_endian;
  uint64_t data_at; /* where the numbers begin */
  uint64_t bytes;   /* of the numbers */
} NpyHead;

enum { NPY_PREAMBLE = 12 };
/* Where the numbers begin, from the first NPY_PREAMBLE bytes of a file; 0 when it is no .npy file.
 */
uint64_t npy_data_at(const uint8_t *preamble);
/* Reads the header of a file of which the first size bytes are there, up to the numbers at least.
 * expected as for npy_read; path is for messages. Errors (reported): as for npy_read. */
Status npy_read_head(const uint8_t *bytes, uint64_t size, DType expected, const char *path,
                     DiagSink *sink, NpyHead *head);

/* Reads path (versions 1 to 3). expected decides what raw bytes mean; any other element type is
 * taken as the file says, to be compared by the caller. Fortran order and big-endian numbers are
 * converted. Errors (reported): those of file_map; not a .npy file, damaged, Python objects or
 * other types that a tensor cannot have; more dims than MAX_RANK; sizes that disagree with the
 * file's. */
Status npy_read(NpyArray *array, Arena *arena, DiagSink *sink, const char *path, DType expected);
/* Hint of d: how to convert an array of `given` to `wanted`. */
void npy_hint_conversion(Diag *d, DType given, DType wanted);
/* Whether a file begins as .npy and .npz files do. */
bool npy_is_array(const uint8_t *bytes, uint64_t size);
void npy_close(NpyArray *array);
/* From big-endian to little-endian numbers: reverses the bytes of each. */
void npy_swap_bytes(Tensor *t);

/* Writes t as version 1 to path, which appears when whole. Errors (reported): those of AtomicFile.
 */
Status npy_write(const Tensor *t, Arena *arena, DiagSink *sink, const char *path);

#endif
