/* Elements of an array in the order of permuted dimensions, as far as they are wanted at a time. */
#ifndef ETC_SUPPORT_PERMUTE_H
#define ETC_SUPPORT_PERMUTE_H

#include "support/base.h"

enum { PERMUTE_MAX_RANK = 8 };

/* Dimensions of the result, outermost first, and how far apart in the source, in bytes, their
 * elements are. Dimensions of size 1 and those that stay together are joined: rank is 1 when the
 * order of elements stays as it is. */
typedef struct Permutation {
  size_t element; /* bytes: 1, 2, 4 or 8 */
  uint32_t rank;
  uint64_t dims[PERMUTE_MAX_RANK], strides[PERMUTE_MAX_RANK];
} Permutation;

/* Dimension i of the result, of size dims[i], is dimension perm[i] of the source. */
Permutation permutation_make(size_t element, uint32_t rank, const uint32_t *dims,
                             const uint32_t *perm);
bool permutation_keeps_order(const Permutation *p);
/* Elements [first, first + count) of the result. Needs no alignment. */
void permute_range(const Permutation *p, const uint8_t *from, uint64_t first, uint64_t count,
                   uint8_t *to);
/* The same on all threads. */
void permute(const Permutation *p, const uint8_t *from, uint64_t first, uint64_t count,
             uint8_t *to);
uint64_t permutation_count(const Permutation *p); /* of elements */

#endif
