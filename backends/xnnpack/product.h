/* How a convolution becomes a product; see lower_product.c. */
#ifndef ETC_BACKENDS_XNNPACK_PRODUCT_H
#define ETC_BACKENDS_XNNPACK_PRODUCT_H

#include "backends/xnnpack/convolution.h"

enum { MOST_STRIPS = 125 }; /* three steps of joining five */

typedef enum ProductWay { BY_NODE, BY_WINDOWS, BY_ROWS, BY_PATCHES, BY_PICKS } ProductWay;

/* A convolution, and what it may be. */
typedef struct ProductJob {
  const Windows *w;
  XnnCpu cpu;
  double batch; /* at most */
  bool fixed;   /* the batch does not vary */
  bool floats;  /* the weights are, and the bias is known */
  bool strips;  /* more than one is possible */
  bool varying; /* the sizes of w are at most those; only BY_PICKS does not need to know them */
} ProductJob;

/* Strips are parts of the result along one dim of [n, h, w, c]. */
typedef struct ProductPlan {
  ProductWay way; /* BY_NODE: no product */
  uint32_t strips, axis;
} ProductPlan;

/* The way that is fastest on the CPU, or on none much slower where that is not said. */
ProductPlan xl_plan_product(const ProductJob *j);
/* The outputs beyond the last sixteen, where they are 1 to 8, which CPUs without AVX-512 compute
 * slowly, eight at a time; else 0. */
uint32_t xl_few_beyond(uint32_t outputs);

#endif
