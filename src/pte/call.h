/* How a functional op of the table is called in a program: which of its arguments the out-variant
 * has, and how many values a KernelCall lists. One rule for the emitter and the reader. */
#ifndef ETC_PTE_CALL_H
#define ETC_PTE_CALL_H

#include "ir/op.h"

typedef struct CallShape {
  uint32_t arg_count;
  uint8_t args[SCHEMA_MAX_ARGS]; /* schema arguments of the functional op, in order, that the kernel
                                    has too */
  uint32_t out_count; /* values after them that receive results; a Tensor[] result is one value */
  int in_place;       /* schema argument that is written, -1 for none: instead of an out, or, when
                         out_count is 1, through an out at the same place */
  bool
      trailing; /* one more index at the end (the kernel's return slot): all but prim and sym ops */
  uint32_t boxed_count; /* length of KernelCall.args */
} CallShape;

/* op must have a kernel (op_row(op)->out). */
CallShape call_shape(OpId op);
/* "aten::add.out" as "aten::add" and "out"; the overload may be empty. */
void call_name(OpId op, StrView *name, StrView *overload);

#endif
