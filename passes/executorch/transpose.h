/* The transpose of a matrix in memory. */
#ifndef ETC_PASSES_EXECUTORCH_TRANSPOSE_H
#define ETC_PASSES_EXECUTORCH_TRANSPOSE_H

#include <stddef.h>
#include <stdint.h>

/* to [columns, rows] of from [rows, columns], elements of `size` bytes; the two do not overlap. */
void transpose_matrix(uint8_t *to, const uint8_t *from, uint64_t rows, uint64_t columns,
                      size_t size);

#endif
