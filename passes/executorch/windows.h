/* Convolutions as products over gathered windows: what one needs, and how it is written. Which ones
 * are worth it is the choice of gather_windows.c. */
#ifndef ETC_PASSES_EXECUTORCH_WINDOWS_H
#define ETC_PASSES_EXECUTORCH_WINDOWS_H

#include "ir/builder.h"

enum {
  WINDOW_DIMS_MAX = 2,
  PRODUCTS_MIN = 1000,  /* products, 20 us as convolution: more than the calls cost */
  WEIGHTS_MAX = 8 << 20 /* bytes of a weight of which a copy is made that is larger */
};

/* Two convolutions with the same x and geometry gather the same columns. */
typedef struct Geometry {
  ValueId x;
  uint32_t spatial;
  SymInt batch, places; /* of windows in a sample */
  int64_t in, groups, taps;
  int64_t kernel[WINDOW_DIMS_MAX]; /* of a window */
  SymInt size[WINDOW_DIMS_MAX];    /* windows along each dim */
  int64_t stride[WINDOW_DIMS_MAX], dilation[WINDOW_DIMS_MAX];
  int64_t before[WINDOW_DIMS_MAX], after[WINDOW_DIMS_MAX]; /* zeros around x */
  int64_t phases[WINDOW_DIMS_MAX]; /* elements of the result that a window gives along each dim */
  SymInt offset;                   /* of the first window in x, elements */
  int64_t direct;                  /* 1: x has the columns as it is, else 0 */
  int64_t bias_row;                /* 1: the columns have rows to multiply a bias with, else 0 */
} Geometry;

typedef struct Windows {
  Geometry geometry;
  ValueId weight, bias, result;
  ValueId matrix, column; /* weight and bias as the product takes them, 0 without a bias to add */
  int64_t out;            /* products of a window: channels of the result, times phases */
  bool transposed;
  int64_t tap[WINDOW_DIMS_MAX]; /* transposed: of phase 0 for the first element of a window */
  bool pads;                    /* zeros around x, or a channel for the bias */
  uint64_t extra;               /* bytes of the padded input and of the columns */
  uint64_t work;                /* products of two numbers */
} Windows;

/* Floats, and i32, which codes become that are quantized at run time (ConvInteger). */
static inline bool windows_have(DType t) { return dtype_is_float(t) || t == DTYPE_I32; }
/* The products of all dims: more than 1 in transposed convolutions. */
int64_t windows_phases(const Geometry *y);
/* Whether the product is in another order than the result. */
bool windows_are_permuted(const Geometry *y);
/* False when n cannot be computed by gathering its windows. */
bool windows_read(Graph *g, NodeId n, Windows *w);
/* Those of one sample alone: x and the result stay those of all. */
Windows windows_of_sample(const Graph *g, const Windows *w);
/* Makes matrix and column, which windows_product needs: constants, or views of what arrives at run
 * time. */
void windows_weights(Builder *b, Windows *w);
/* x with its zeros around it, and the channel of the bias; x itself without any. */
ValueId windows_padded(Builder *b, const Windows *w);
/* [C * taps, N * places], a matrix; 0 after a failure. */
ValueId windows_columns(Builder *b, const Windows *w);
/* The convolution's result from its columns. */
ValueId windows_product(Builder *b, const Windows *w, ValueId columns);

/* A transposed convolution of stride s as windows that give s results each along a dim: sets
 * kernel, stride, before, after, phases and size. False for groups, dilations, or a size that is
 * not known to be a multiple of the stride. */
bool transposed_read(Graph *g, NodeId n, Windows *w);
/* Its weight and bias for them, as of a convolution with `out` channels: channel, then phases. */
void transposed_constants(Graph *g, Windows *w);
/* Those of lines that have more inputs than products of a window, without gathering windows
 * (transposed_lines.c). */
Status transposed_lines(Graph *g);

#endif
