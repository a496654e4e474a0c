/* Weights of 4 bits, with a scale for each block of a row, and codes that are chosen by samples. */
#ifndef ETC_PASSES_QUANTIZE_BLOCKS_H
#define ETC_PASSES_QUANTIZE_BLOCKS_H

#include "ir/graph.h"

enum { BLOCK_CODE_MIN = -8, BLOCK_CODE_MAX = 7, BLOCK_CANDIDATES = 17 };

/* A matrix of floats, which need not be aligned: [rows, columns], or transposed as it lies. block
 * divides columns. */
typedef struct BlockMatrix {
  Constant floats;
  uint64_t rows, columns;
  bool transposed;
  uint32_t block;
} BlockMatrix;

/* An element; 0 where it is not finite. */
float block_load(const BlockMatrix *m, uint64_t row, uint64_t column);
/* Scale k of BLOCK_CANDIDATES for a block with that largest magnitude: it is worth cutting off a
 * little, which leaves finer steps for the rest. */
float block_candidate(float most, uint32_t k);

/* The scales [rows, columns / block], which are bfloat16 numbers, since XNNPACK keeps them as such:
 * those of the least squared error among some. On all threads. */
void block_scales(const BlockMatrix *m, float *scales);
/* The codes [rows, columns] by these scales, which must stay as long as the graph. */
Constant block_codes(Graph *g, const BlockMatrix *m, const float *scales);
/* Both, chosen so that products with operands of these moments (quant/moments.h, sums of columns)
 * change least: the codes are no longer the nearest ones. They are computed here, on all threads,
 * and kept in the graph, two in a byte. */
Constant block_codes_by_moments(Graph *g, const BlockMatrix *m, const float *moments,
                                float *scales);
/* The codes of 8 bits [rows, columns] by a scale for each row, likewise. Rows are groups, as those
 * of a convolution: moments [groups, columns, moments_width(columns)], block is columns. */
Constant channel_codes_by_moments(Graph *g, const BlockMatrix *m, uint64_t groups,
                                  const float *moments, float *scales);

#endif
