/* The values of transforms; for transform.c. */
#ifndef ETC_IR_TRANSFORM_RUN_H
#define ETC_IR_TRANSFORM_RUN_H

#include "ir/transform.h"

/* Bytes [first, first + size) of the result, on all threads. */
void transform_run(const Transform *t, uint64_t first, uint64_t size, uint8_t *to);
/* Whether the elements are all those of the source, in their order. */
bool transform_in_order(const Transform *t);
/* How many bytes are best computed at a time: whole rows, about TRANSFORM_PIECE. */
uint64_t transform_piece(const Transform *t);

#endif
