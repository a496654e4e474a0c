/* An interpreter of XNNPACK graphs: the second witness beside the delegate itself. */
#ifndef ETC_BACKENDS_XNNPACK_RUN_H
#define ETC_BACKENDS_XNNPACK_RUN_H

#include "ops/delegate.h"

/* See DelegateReader.run. */
const char *xr_run(const DelegateCall *call, Arena *arena);

#endif
