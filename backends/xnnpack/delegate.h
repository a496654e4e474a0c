/* What the program gets of a partition that is lowered. */
#ifndef ETC_BACKENDS_XNNPACK_DELEGATE_H
#define ETC_BACKENDS_XNNPACK_DELEGATE_H

#include "backends/xnnpack/lower.h"

/* Fuses what was lowered and writes it. `code` has no blob when that is larger than 2 GiB. */
void xnn_write_delegate(BackendContext *c, Graph *g, XnnLowering *l, DelegateCode *code);

#endif
