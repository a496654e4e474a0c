/* Sizes that data decide: a length regulator repeats each row as often as a tensor says.
 *
 * Such a size is read from its tensor while the program runs, and stands in the graph as a symbol.
 * Memory is planned for its upper bound, which --bound gives where nothing else tells it. */
#ifndef ETC_ONNX_DATA_SIZES_H
#define ETC_ONNX_DATA_SIZES_H

#include "onnx/express.h"

/* The upper bound of dim `dim` of output i of the current node: by --bound, else by what the model
 * declares there. */
bool out_bound(Import *im, uint32_t i, uint32_t dim, int64_t *most);
/* Fails with the flag to add for each dim of output i in the set that has no upper bound. */
ValueId fail_unbounded(Import *im, uint32_t i, uint32_t dims, const char *what);
/* The elements of a list of sizes, of which element k is dim `first` + k of output 0: known ones,
 * others read while running. False when the list is no vector of known length; fails when a size
 * has no bound. */
bool data_sizes(Import *im, ValueId list, uint32_t first, const char *what, Dims *shape);
/* The bound of dim `dim` of output i (out_bound), or `most`, which follows from the operands, where
 * that is less or there is no bound. */
int64_t out_bound_below(Import *im, uint32_t i, uint32_t dim, int64_t most);
/* The greatest length of output i, distinct integers, where Gather nodes of the main graph take
 * rows by it: the number of rows, of values that are imported by now. False when there is no such
 * node. Costs a walk over the nodes. */
bool out_gathered_bound(Import *im, uint32_t i, int64_t *most);
/* The most that `to` is above `from`, or 0, where how they are computed tells it: min(from + 1, a)
 * is at most 1 above. Both have one element. */
bool span_most(Import *im, ValueId from, ValueId to, int64_t *most);
/* A scalar tensor as a size of at most `most`, read while running unless it is known. */
SymInt data_size(Import *im, ValueId scalar, int64_t most);
/* The positions of the elements of x that are not zero, a row each. Of one tensor they are found
 * once, so that their number is one symbol. */
ValueId found_rows(Import *im, ValueId x);

#endif
