/* Values for the inputs of `etc run --random`. */
#ifndef ETC_TOOLS_RUN_RANDOM_H
#define ETC_TOOLS_RUN_RANDOM_H

#include "command.h"
#include "ops/kernel.h"

/* A tensor for input i of g in the session's arena, dims at their upper bounds: floats in [-1, 1),
 * integers 0 to 9, bools. The same for the same seed. Errors (reported): an element type that
 * cannot be made, a dim without a bound, a tensor beyond 2 GiB. */
EtcStatus random_input(Session *s, const Graph *g, uint32_t i, uint64_t seed, Tensor *out);

#endif
