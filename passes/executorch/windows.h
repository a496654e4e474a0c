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
  int64_t part;                 /* input channels whose windows are gathered at a time; 0: all */
  const ValueId *matrices;      /* of each part, as matrix */
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
/* The same convolution, gathered in so many parts (window_parts.h), with what a part costs. */
Windows windows_in_parts(const Graph *g, const Windows *w, int64_t parts);
/* The channels that the columns have: of a part, or of all and of the bias. */
static inline int64_t windows_channels(const Windows *w) {
  return w->part ? w->part : w->geometry.in + w->geometry.bias_row;
}
/* The rows of the product of so many channels. */
static inline int64_t windows_out_of(const Windows *w, int64_t channels) {
  const Geometry *y = &w->geometry;
  return y->groups == 1 ? w->out : w->out / y->groups * (channels / (y->in / y->groups));
}
/* Makes matrix, or matrices, and column, which windows_matmul and windows_result need: constants,
 * or views of what arrives at run time. */
void windows_weights(Builder *b, Windows *w);
/* x with its zeros around it, and the channel of the bias; x itself without any. */
ValueId windows_padded(Builder *b, const Windows *w);
/* [C * taps, N * places], a matrix; 0 after a failure. */
ValueId windows_columns(Builder *b, const Windows *w);
/* matrix times the columns: [out, N * places]; 0 after a failure. */
ValueId windows_matmul(Builder *b, const Windows *w, ValueId columns);
/* The convolution's result from that: with its bias, in its order; 0 after a failure. */
ValueId windows_result(Builder *b, const Windows *w, ValueId product);

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
