/* The shape rules, reference kernels and checks that schema/ops.def names: src/CMakeLists.txt makes
 * their declarations of the table. One family a file in this folder. */
#ifndef ETC_OPS_OPS_H
#define ETC_OPS_OPS_H

#include "ir/op.h"
#include "op_functions.inc"

#endif
