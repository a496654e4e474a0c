/* Weights of 4 bits, with a scale for each block of a row. */
#ifndef ETC_PASSES_QUANTIZE_BLOCKS_H
#define ETC_PASSES_QUANTIZE_BLOCKS_H

#include "ir/graph.h"

enum { BLOCK_CODE_MIN = -8, BLOCK_CODE_MAX = 7 };

/* A matrix of floats, which need not be aligned: [rows, columns], or transposed as it lies. block
 * divides columns. */
typedef struct BlockMatrix {
  Constant floats;
  uint64_t rows, columns;
  bool transposed;
  uint32_t block;
} BlockMatrix;

/* The scales [rows, columns / block], which are bfloat16 numbers, since XNNPACK keeps them as such:
 * those of the least squared error among some. On all threads. */
void block_scales(const BlockMatrix *m, float *scales);
/* The codes [rows, columns] by these scales, which must stay as long as the graph. */
Constant block_codes(Graph *g, const BlockMatrix *m, const float *scales);

#endif
