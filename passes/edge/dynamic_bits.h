/* Bits of tensors whose sizes vary as another element type, for legalize_dtypes.c. */
#ifndef ETC_PASSES_EDGE_DYNAMIC_BITS_H
#define ETC_PASSES_EDGE_DYNAMIC_BITS_H

#include "ir/builder.h"

/* What takes the place of view_copy.dtype of a tensor whose sizes vary; 0 for one of fixed sizes.
 */
ValueId bits_of_rows(Builder *b, NodeId n);

#endif
