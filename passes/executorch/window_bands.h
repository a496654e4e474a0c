/* A convolution by the products of windows.h, one band of result rows after the other, so that the
 * columns of one band are in memory at a time. */
#ifndef ETC_PASSES_EXECUTORCH_WINDOW_BANDS_H
#define ETC_PASSES_EXECUTORCH_WINDOW_BANDS_H

#include "passes/executorch/windows.h"

enum {
  BAND_PRODUCTS_MIN =
      4000 /* in a band: 80 us as convolution (20 ns each), more than its calls cost */
};

typedef struct Bands {
  uint32_t count;  /* 0: there is no way */
  uint32_t axis;   /* spatial dim that is cut: rows, or where one row takes too much columns */
  int64_t rows;    /* of the result along it, in all bands but the last */
  bool over_x;     /* the result is written over x, which nothing else reads */
  bool loop;       /* the number of rows varies: count is the most that there can be */
  int64_t samples; /* not 0: so many samples, one after the other; count 1: all rows of one */
  int64_t parts;   /* more than 1: the windows of each band are gathered in so many parts */
} Bands;

/* The fewest bands that need at most `room` bytes besides x and the result (over_x: besides x,
 * which is the result as well), and are large enough to make up for their calls; count 0: there are
 * none. */
Bands window_bands(const Graph *g, const Windows *w, bool over_x, uint64_t room);

/* Whether the result may be written over x, band after band: it has the same type, with no more
 * channels, and a band needs nothing above the band before it. */
bool window_bands_fit_over_x(const Graph *g, const Windows *w);

/* Planned bytes of the columns and of the product of a band of that many rows. */
typedef struct BandBytes {
  uint64_t columns, product;
} BandBytes;
BandBytes window_band_bytes(const Graph *g, const Windows *w, int64_t rows);

/* The convolution's result; 0 after a failure. */
ValueId window_bands_build(Builder *b, const Windows *w, Bands bands);

#endif
