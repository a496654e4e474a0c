/* Convolutions of images of one row, as convolutions of lines. */
#ifndef ETC_PASSES_EXECUTORCH_WINDOW_LINES_H
#define ETC_PASSES_EXECUTORCH_WINDOW_LINES_H

#include "ir/builder.h"

/* conv2d of [N, C, 1, W] with a kernel of one row -> conv1d of [N, C, W] between views. Bands are
 * cut along the first spatial dim where they are a loop or written over x (window_bands.h), which
 * must have several entries then. */
Status window_lines(Graph *g);

#endif
