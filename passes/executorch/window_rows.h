/* Bands of a number of rows that varies: a loop. */
#ifndef ETC_PASSES_EXECUTORCH_WINDOW_ROWS_H
#define ETC_PASSES_EXECUTORCH_WINDOW_ROWS_H

#include "passes/executorch/window_bands.h"

/* As window_bands; the padded x is in memory besides. Of x, `freed` bytes are not needed any more
 * once it is padded. */
Bands window_rows(const Graph *g, const Windows *w, uint64_t room, uint64_t freed);

/* For window_bands_build: the convolution's result; 0 after a failure. */
ValueId window_rows_build(Builder *b, const Windows *w, int64_t rows);

#endif
