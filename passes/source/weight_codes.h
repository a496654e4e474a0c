/* Weights of 8 bits that stay codes in programs of portable kernels, which widen them to f32 in
 * each call: that takes a fourth of the bytes in the file, and memory while the program runs. */
#ifndef ETC_PASSES_SOURCE_WEIGHT_CODES_H
#define ETC_PASSES_SOURCE_WEIGHT_CODES_H

#include "passes/executorch/liveness.h"
#include "passes/pass.h"

enum { WIDENED_LEAST = 1 << 10 }; /* elements of a weight that is worth the calls */

/* A constant of 8 bits as a weight. */
typedef struct WidenedWeight {
  NodeId node;       /* converts the codes to f32 */
  ValueId weight;    /* in f32, its zero points subtracted and scaled */
  NodeId reader;     /* the last node that reads the weight */
  uint32_t readers;  /* all of them products or convolutions */
  uint64_t elements; /* of the weight */
  uint64_t uses;     /* of each element in a call: columns of a product, places of an image */
} WidenedWeight;

/* Fills *list, which lives in scratch, in the order of the graph. */
uint32_t widened_weights(const Graph *g, Arena *scratch, WidenedWeight **list);
/* Takes the memory of the f32 of these weights out of live. */
void widened_weights_discount(const Graph *g, const WidenedWeight *list, uint32_t count,
                              Liveness *live);
/* Whether n, behind such a conversion, subtracts zero points, multiplies by scales, or is a view,
 * which copies nothing. */
bool widening_step(const Graph *g, NodeId n);

/* Whether by, which such a step subtracts from x or multiplies it by, has a number for each row. */
bool widening_by_row(const Graph *g, ValueId by, ValueId x);

/* By node: whether it widens a weight that one node reads, and is not to be folded, because this
 * takes little time beside what the whole graph computes. NULL: no node of g is such a one, or a
 * backend was chosen, which would get no constants. Moves these, and the steps behind them, in
 * front of their readers. Lives in p->scratch. */
bool *weight_codes(const PassContext *p, Graph *g);

#endif
