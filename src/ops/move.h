/* Moving elements between strided views: what slice, permute, expand, cat and their like have in
 * common.
 *
 * Elements are opaque runs of bytes, so one routine serves every dtype. The readers of arguments
 * below are for kernels: a kernel trusts neither its arguments nor the shape of its result. */
#ifndef ETC_OPS_MOVE_H
#define ETC_OPS_MOVE_H

#include "ops/kernel.h"

#define MOVE_MAX_RANK (2 * MAX_RANK)

/* One side of a move: bytes of the element at index 0…0 and strides in elements (any sign, 0
 * repeats an element). */
typedef struct MoveSide {
  void *data;
  int64_t strides[MOVE_MAX_RANK];
} MoveSide;

/* dst[i] = src[i] for every index i below dims. Both sides must be in bounds for all of them and
 * must not overlap. element: bytes of an element (1, 2, 4 or 8); rank <= MOVE_MAX_RANK. Large moves
 * run on the thread pool. */
void move_elements(unsigned element, uint32_t rank, const int64_t *dims, MoveSide dst,
                   MoveSide src);
/* Fills count elements at dst with the element at value. */
void move_fill(unsigned element, void *dst, const void *value, int64_t count);

/* A side that walks a dense tensor in its own order. */
MoveSide move_side(const Tensor *t);
/* Moves the base of a side by an index along a dim. */
static inline void move_offset(MoveSide *side, unsigned element, int64_t index, int64_t stride) {
  side->data = (char *)side->data + index * stride * (int64_t)element;
}

/* Steps an index through dims in row-major order and keeps the element offsets of two strided
 * sides. */
typedef struct Walk {
  uint32_t rank;
  int64_t dims[MAX_RANK], index[MAX_RANK];
  int64_t first_strides[MAX_RANK], second_strides[MAX_RANK];
  int64_t first, second;
} Walk;
Walk walk_make(uint32_t rank, const int64_t *dims);
void walk_next(Walk *w);

/* Argument i as a dim of a tensor of that rank, counted from the end when negative; a 0-d tensor
 * takes 0 and -1. */
Status kernel_dim(Kernel *k, int64_t dim, uint32_t rank, uint32_t *out);
/* Checks that result i has these dims. */
Status kernel_expect(Kernel *k, uint32_t i, uint32_t rank, const int64_t *dims);
/* Checks that a tensor has the dtype of result 0. */
Status kernel_expect_dtype(Kernel *k, const Tensor *t);
/* Checks that result 0 has its dims, too. */
Status kernel_expect_like(Kernel *k, const Tensor *t);

#endif
