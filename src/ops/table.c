/* schema/ops.def as data. */
#include "ops/delegate.h"
#include "ops/ops.h"

const OpRow op_table[OP_PLUGIN] = {
    [OP_NONE] = {.id = "NONE"},
    [OP_OUTPUT] = {.id = "OUTPUT"},
#define OP(name, ...) [OP_##name] = {.id = #name, __VA_ARGS__},
#include "ops.def"
#undef OP
};
