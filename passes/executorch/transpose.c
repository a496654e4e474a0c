/* See transpose.h. */
#include "passes/executorch/transpose.h"

#include <string.h>

enum { BLOCK = 16 };

static inline void transpose_of(uint8_t *to, const uint8_t *from, uint64_t rows, uint64_t columns,
                                size_t size) {
  for (uint64_t r0 = 0; r0 < rows; r0 += BLOCK)
    for (uint64_t c = 0; c < columns; c++)
      for (uint64_t r = r0; r < rows && r < r0 + BLOCK; r++)
        memcpy(to + (c * rows + r) * size, from + (r * columns + c) * size, size);
}

/* Copies of a size that the compiler knows are single instructions: a third of the time. */
void transpose_matrix(uint8_t *to, const uint8_t *from, uint64_t rows, uint64_t columns,
                      size_t size) {
  if (size == 4)
    transpose_of(to, from, rows, columns, 4);
  else if (size == 2)
    transpose_of(to, from, rows, columns, 2);
  else
    transpose_of(to, from, rows, columns, size);
}
