/* Values on other element types, for legalize_dtypes.c. */
#ifndef ETC_PASSES_EDGE_ELEMENT_TYPES_H
#define ETC_PASSES_EDGE_ELEMENT_TYPES_H

#include "ir/builder.h"

/* How a value of one type becomes one of another, and back. */
typedef enum How {
  HOW_KEEP,
  HOW_CAST,  /* converted; results are converted back */
  HOW_BITS,  /* the same bits as a signed integer of that width */
  HOW_WIDEN, /* u16, u32: the same number as i64; of results the low bits count */
  HOW_FLIP   /* u64: the number less 2^63, which keeps the order */
} How;
typedef struct Change {
  How how;
  DType to;
} Change;
enum { CHANGE_COUNT = DTYPE_NONE + 1 }; /* a change for each element type */

/* v as its type's change says. */
ValueId change_in(Builder *b, ValueId v, const Change *changes);
/* A result as `wanted`, the type it had without the changes. */
ValueId change_out(Builder *b, ValueId v, DType wanted, const Change *changes);

/* The low bits of value as a signed number. */
int64_t sign_extend(int64_t value, unsigned bits);

/* The result of a division, right shift, abs or sign of u64, or of a conversion between it and
 * floats, computed with signed kernels; 0 for other nodes. */
ValueId unsigned64_spelt_out(Builder *b, NodeId n);

#endif
