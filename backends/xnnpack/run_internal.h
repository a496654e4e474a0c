/* Shared by run.c (the graph, arithmetic) and run_image.c (moves, windows). */
#ifndef ETC_BACKENDS_XNNPACK_RUN_INTERNAL_H
#define ETC_BACKENDS_XNNPACK_RUN_INTERNAL_H

#include "backends/xnnpack/check.h"

typedef struct Runner {
  const XrGraph *x;
  const DelegateCall *call;
  XrCheck c;                /* shapes, data of constants */
  Tensor *values;           /* by value */
  Arena *memory;            /* by value */
  uint64_t *owned;          /* by value: bytes in its arena */
  uint32_t *remaining;      /* by value: uses still to come */
  Arena scratch;            /* of one node */
  uint64_t live, temporary; /* bytes of values, and in scratch */
  DiagSink sink;
  const char *fault;
} Runner;

#define K_NONE ((KernelArg){.kind = ARG_NONE})
#define K_TENSOR(t) ((KernelArg){.kind = ARG_VALUE, .tensor = (Tensor *)(uintptr_t)(t)})
#define K_INT(x) ((KernelArg){.kind = ARG_INT, .i = (x)})
#define K_FLOAT(x) ((KernelArg){.kind = ARG_FLOAT, .f = (x)})
#define K_INTS(p, n) ((KernelArg){.kind = ARG_INTS, .count = (n), .ints = (p)})
#define K_STRING(s) ((KernelArg){.kind = ARG_STR, .str = SV(s)})

/* Keeps the first fault; after it nothing is computed. */
void xr_run_fail(Runner *r, const char *what);
/* Memory until the node is done; no data after a fault. */
Tensor xr_temp(Runner *r, DType dtype, uint32_t rank, const int64_t *dims);
/* The reference kernel of an op with one result; args as in its schema, all of them. */
void xr_kernel(Runner *r, OpId op, const KernelArg *args, uint32_t count, Tensor *out);
/* The tensor of a result, which it keeps until its uses are over. */
Tensor *xr_result(Runner *r, uint32_t id);
/* Dim i of the result is dim perm[i] of t. */
Tensor xr_permuted(Runner *r, const Tensor *t, const uint32_t *perm);

void xr_run_move(Runner *r, const XrNode *n, const Tensor *in, Tensor *out);
void xr_run_convert(Runner *r, const Tensor *x, Tensor *out);
void xr_run_convolution(Runner *r, const XrNode *n, const Tensor *in, Tensor *out);
void xr_run_pool(Runner *r, const XrNode *n, const Tensor *x, Tensor *out);
/* A pool with two results; makes the second one. */
void xr_run_positions(Runner *r, const XrNode *n, const Tensor *x, Tensor *out);
void xr_run_resize(Runner *r, const XrNode *n, const Tensor *x, Tensor *out);

#endif
