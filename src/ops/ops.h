/* Shape rules and reference kernels: each function that schema/ops.def names as .shape or .kernel
 * is declared here, by a file that src/CMakeLists.txt makes of the table. One family a file in this
 * folder. */
#ifndef ETC_OPS_OPS_H
#define ETC_OPS_OPS_H

#include "ir/op.h"
#include "op_functions.inc"

#endif
