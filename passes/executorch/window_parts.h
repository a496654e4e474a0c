/* A convolution by the products of windows.h, with the windows of some input channels in memory at
 * a time: the sum of the products; of groups, their products next to each other. */
#ifndef ETC_PASSES_EXECUTORCH_WINDOW_PARTS_H
#define ETC_PASSES_EXECUTORCH_WINDOW_PARTS_H

#include "passes/executorch/windows.h"

/* For windows_weights: the matrix of each part. */
void window_parts_weights(Graph *g, Windows *w);

static inline int64_t window_parts_count(const Windows *w) {
  return (w->geometry.in + w->part - 1) / w->part;
}

/* Rows of the result, as many from that one on, of a number that varies. */
typedef struct RowBand {
  SymInt count, first;
} RowBand;

/* The convolution's result, or some rows of it, in parts if w has any; 0 after a failure. */
ValueId window_parts_build(Builder *b, const Windows *w, const RowBand *rows);

#endif
