/* Whether a partition is worth the call of a delegate.
 *
 * What kernels spend on its nodes beyond what XNNPACK spends is saved; the call itself, and what
 * the delegate moves only to have it as XNNPACK wants it, is spent. Both in nanoseconds of one
 * thread, measured on ExecuTorch 1.4.1 and an AVX-512 CPU as the difference between two programs: a
 * chain of kernels, and the same one with every second link in a delegate of its own. Sizes that
 * vary count with their bounds. It is an estimate for small partitions: those of networks save a
 * thousand times what they spend. */
#ifndef ETC_BACKENDS_XNNPACK_ESTIMATE_H
#define ETC_BACKENDS_XNNPACK_ESTIMATE_H

#include "backends/xnnpack/subgraph.h"

typedef enum XnnWork {
  XNN_WORK_VIEW,       /* nothing: the same elements in the same order */
  XNN_WORK_COPY,       /* elements that stay in order, which kernels copy just as fast */
  XNN_WORK_ORDER,      /* elements that change places */
  XNN_WORK_JOIN,       /* a copy of several, or among others */
  XNN_WORK_SHUFFLE,    /* elements that change places, by several moves */
  XNN_WORK_ARITHMETIC, /* a few instructions an element */
  XNN_WORK_CHOICE,     /* one of several numbers, or the next integer: an element at a time */
  XNN_WORK_ROUNDING,   /* to codes: kernels divide, round, add and limit, one after the other */
  XNN_WORK_FUNCTION,   /* exponentials, roots and the like */
  XNN_WORK_REDUCTION,  /* for each element that is read */
  XNN_WORK_MEAN,       /* likewise; the kernels of sums and means also begin slowly */
  XNN_WORK_NORM,
  XNN_WORK_WINDOW, /* windows on images, for each element of the result */
  XNN_WORK_PRODUCT /* for each multiplication and addition */
} XnnWork;

/* Estimates err by that factor: what is closer is delegated, since one call of a delegate also
 * takes less memory and fewer instructions than many kernels. */
#define XNN_DOUBT 1.25

/* A partition is divided where equal parts of it save that many bytes of packed weights, at least
 * so many for each nanosecond that the further calls take. Weights that are read for the first time
 * in a call take about a tenth of a nanosecond a byte, so that the program becomes no slower. */
#define XNN_LEAST_REPEATED ((uint64_t)128 << 10)
#define XNN_BYTES_PER_TIME 16.0

/* What is saved by not calling kernels for n. */
double xnn_saved(const Graph *g, NodeId n, XnnWork work);
/* What one call of a delegate with this graph costs besides computing. */
double xnn_spent(const XnnGraph *x);

#endif
