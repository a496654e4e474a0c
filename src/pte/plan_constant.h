/* A constant method as an ExecutionPlan table. */
#ifndef ETC_PTE_PLAN_CONSTANT_H
#define ETC_PTE_PLAN_CONSTANT_H

#include "ir/constant_method.h"
#include "pte/constants.h"
#include "pte/flatbuffer.h"

/* The bytes of tensors go to the pool. scratch: for tables that live until the call ends. */
FbRef plan_constant(FlatBuilder *b, ConstantPool *pool, const ConstantMethod *m, Arena *scratch);

#endif
