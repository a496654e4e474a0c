/* Second moments of operands over samples: how large the products of two columns are in the mean,
 * which tells what an error in a weight does to a matrix product, and which other weights can make
 * up for it. */
#ifndef ETC_QUANT_MOMENTS_H
#define ETC_QUANT_MOMENTS_H

#include "ops/quantized.h"
#include "quant/dataset.h"
#include "quant/made_samples.h"

typedef struct Moments {
  ValueId value;   /* f32 of [..., columns], or the operand of a convolution */
  NodeId window;   /* that convolution, whose rows are its windows: [channels, taps]; or 0 */
  uint64_t groups; /* of the convolution, or 1: a row has groups * columns elements */
  uint64_t columns;
  uint64_t most; /* rows of a value that are taken, spread over all; 0: each */
  float *sums; /* [groups, columns, moments_width(columns)]: at [i, j] the sum of x_i * x_k over all
                  rows, where k is column j of the window of i. Zeros behind the last column */
} Moments;

static inline uint64_t moments_width(uint64_t columns) {
  return columns < OBSERVE_WINDOW ? columns : OBSERVE_WINDOW;
}

/* Runs g on the samples that set has left, or on made-up ones where set is NULL, and adds to the
 * sums. Rows with infinities or NaN are left out. The samples run one after the other, with all
 * threads in each, so that sums do not depend on the number of threads. Errors, reported to sink:
 * of the data set, and of the first sample that fails. */
Status moments_run(const Graph *g, const Moments *list, uint32_t count, DataSet *set,
                   DiagSink *sink);

#endif
