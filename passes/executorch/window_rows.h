/* How window_bands_build writes bands of a number of rows that varies. */
#ifndef ETC_PASSES_EXECUTORCH_WINDOW_ROWS_H
#define ETC_PASSES_EXECUTORCH_WINDOW_ROWS_H

#include "passes/executorch/window_bands.h"

/* The convolution's result; 0 after a failure. */
ValueId window_rows_build(Builder *b, const Windows *w, int64_t rows);

#endif
