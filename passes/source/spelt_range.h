/* Part of recover_dynamic: quantization by a range that is computed node by node. */
#ifndef ETC_PASSES_SOURCE_SPELT_RANGE_H
#define ETC_PASSES_SOURCE_SPELT_RANGE_H

#include "ir/builder.h"

/* A rule (ir/rewrite.h) for the conversion that makes codes. */
ValueId recover_spelt_range(Builder *b, NodeId n);

#endif
