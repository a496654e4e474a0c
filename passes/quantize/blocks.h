/* Weights of 4 bits, with a scale for each block of a row. */
#ifndef ETC_PASSES_QUANTIZE_BLOCKS_H
#define ETC_PASSES_QUANTIZE_BLOCKS_H

#include "support/base.h"

enum { BLOCK_CODE_MIN = -8, BLOCK_CODE_MAX = 7 };

/* A matrix of floats, which need not be aligned: [rows, columns], or transposed as it lies. block
 * divides columns. */
typedef struct BlockMatrix {
  const uint8_t *data;
  uint64_t rows, columns;
  bool transposed;
  uint32_t block;
} BlockMatrix;

/* codes [rows, columns] and scales [rows, columns / block], which are bfloat16 numbers, since
 * XNNPACK keeps them as such: those of the least squared error among some. On all threads. */
void quantize_blocks(const BlockMatrix *m, int8_t *codes, float *scales);

#endif
