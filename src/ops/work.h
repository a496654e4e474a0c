/* How much a graph computes: multiplications with an addition, those of matrix products and
 * convolutions. Dynamic sizes count with their upper bounds. Numbers saturate. */
#ifndef ETC_OPS_WORK_H
#define ETC_OPS_WORK_H

#include "ir/op.h"

/* Multiply-adds of one node; of a call of a delegate those of its code, as far as its reader knows
 * (ops/delegate.h). 0 for ops that are neither a product nor a convolution. */
uint64_t node_work(const Graph *g, NodeId n);
/* a * b and a + b, UINT64_MAX where that is too large. */
uint64_t work_times(uint64_t a, uint64_t b);
uint64_t work_plus(uint64_t a, uint64_t b);
/* In percent of the whole, rounded; 0 of nothing. 100 only for all of it, 0 only for none. */
uint32_t work_percent(uint64_t part, uint64_t whole);

#endif
