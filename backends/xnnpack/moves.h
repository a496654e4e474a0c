/* What views and permutes do to a value, as one step.
 *
 * The dims of a value are cut into factors, and each later dim is a row of factors: a view cuts and
 * joins, a permute changes the order. From the order in which memory has the factors of the first
 * value, and the order in which they are wanted, follows the one transpose that does what all the
 * steps do, or that none is needed. Both ends may be in NHWC (lower.h): a change of layout is a
 * step like any other. */
#ifndef ETC_BACKENDS_XNNPACK_MOVES_H
#define ETC_BACKENDS_XNNPACK_MOVES_H

#include "backends/xnnpack/subgraph.h"

enum { MOVES_FACTORS = 10 };

/* Part `part`, outermost first, of dim `dim` of the first value. Its size is not 1. */
typedef struct MoveFactor {
  SymInt size;
  uint8_t dim, part;
} MoveFactor;

typedef struct Moves {
  ValueId from;
  ValueId alike; /* has the same elements in the same order, plain; perhaps the result itself */
  bool permuted; /* a permute is among the steps */
  uint8_t rank, count;             /* dims of the result; factors */
  uint8_t begin[XNN_MAX_RANK + 1]; /* where the factors of each dim begin */
  MoveFactor factors[MOVES_FACTORS];
} Moves;

/* No steps. v has at most XNN_MAX_RANK dims. */
Moves moves_none(const Graph *g, ValueId v);
void moves_permute(Moves *m, const uint32_t *perm);
/* One more step: a view with the dims of y. False when that has no factors. */
bool moves_view(Moves *m, Graph *g, ValueId y);

/* Between two layouts: reshape to dims, transpose by perm; a rank below 2 says that the order stays
 * as it is. */
typedef struct MoveRoute {
  uint32_t rank; /* may be larger than XNN_MAX_RANK */
  SymInt dims[MOVES_FACTORS];
  uint32_t perm[MOVES_FACTORS];
} MoveRoute;
MoveRoute moves_route(const Moves *m, Graph *g, bool from_nhwc, bool to_nhwc);

/* Costs, to compare them. A transpose moves its elements by the block or in tiles; small blocks and
 * narrow tiles, with `narrow` elements on the shorter side, take longer. */
uint64_t moves_elements(const Graph *g, ValueId v); /* upper bound, no more than 2^40 */
uint64_t transpose_cost(uint64_t elements, uint64_t narrow);
/* From layout to layout, on the best way: 0 when the order stays as it is. */
uint64_t moves_cost(const Moves *m, Graph *g, bool from_nhwc, bool to_nhwc);
/* Whether that way goes through plain values at both ends. */
bool moves_through_plain(const Moves *m, Graph *g, bool from_nhwc, bool to_nhwc);

#endif
