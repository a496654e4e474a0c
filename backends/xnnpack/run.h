/* An interpreter of XNNPACK graphs: the second witness beside the delegate itself. run.c has the
 * graph and plain nodes, run_image.c windows, run_quantized.c and run_weighted.c quantized nodes.
 */
#ifndef ETC_BACKENDS_XNNPACK_RUN_H
#define ETC_BACKENDS_XNNPACK_RUN_H

#include "backends/xnnpack/check.h"

/* See DelegateReader.run. */
const char *xr_run(const DelegateCall *call, Arena *arena);

/* --- between the files --- */

typedef struct XrSlot {
  Tensor tensor;
  Arena memory;
  uint64_t owned;     /* bytes in it */
  uint32_t remaining; /* uses still to come */
} XrSlot;

typedef struct Runner {
  const XrGraph *x;
  const DelegateCall *call;
  XrCheck c;                /* shapes, data of constants */
  XrSlot *slots;            /* by value */
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

/* Keeps the first fault; after it nothing is computed. */
void xr_run_fail(Runner *r, const char *what);
/* Memory until the node is done; no data after a fault. */
Tensor xr_temp(Runner *r, DType dtype, uint32_t rank, const int64_t *dims);
/* The reference kernel of an op: the first `count` arguments of its schema, the others as they are
 * by default. out: as many tensors as it has results. */
void xr_kernel(Runner *r, OpId op, const KernelArg *args, uint32_t count, Tensor *out);
#define XR_KERNEL(r, op, out, ...)                                                                 \
  xr_kernel((r), (op), (const KernelArg[]){__VA_ARGS__},                                           \
            (uint32_t)(sizeof((const KernelArg[]){__VA_ARGS__}) / sizeof(KernelArg)), (out))
/* The tensor of a result, which it keeps until its uses are over. */
Tensor *xr_result(Runner *r, uint32_t id);
/* t itself where it has that type. */
Tensor xr_converted(Runner *r, const Tensor *t, DType dtype);
/* Dim i of the result is dim perm[i] of t. */
void xr_permute(Runner *r, const Tensor *t, const uint32_t *perm, Tensor *out);
Tensor xr_permuted(Runner *r, const Tensor *t, const uint32_t *perm);

void xr_run_convolution(Runner *r, const XrNode *n, const Tensor *in, Tensor *out);
void xr_run_pool(Runner *r, const XrNode *n, const Tensor *x, Tensor *out);
/* A pool with two results; makes the second one. */
void xr_run_positions(Runner *r, const XrNode *n, const Tensor *x, Tensor *out);
void xr_run_resize(const Runner *r, const XrNode *n, const Tensor *x, Tensor *out);
/* Any node on operands of one type, limits left out: f32, i32, f64 for what is exact in it; moves
 * of codes, too. */
void xr_compute(Runner *r, const XrNode *n, const Tensor *in, Tensor *out);
/* t within the limits of the node. */
void xr_limit(Runner *r, const XrNode *n, const Tensor *t, Tensor *out);
/* The data of a constant, of its size. */
const uint8_t *xr_constant_bytes(const Runner *r, uint32_t constant);

/* --- quantized --- */

/* A node with a quantized operand or result. Operands are as they are kept: bytes, except that a
 * dynamic one (qdint8) is still f32 and is quantized by what uses it. */
void xr_run_quantized(Runner *r, const XrNode *n, const Tensor *in, Tensor *out);
void xr_run_weighted(Runner *r, const XrNode *n, const Tensor *in, Tensor *out);

/* The quantized values that a result may have. */
typedef struct XrRange {
  float zero_point, least, most;
} XrRange;
/* What a result of n may be: what its datatype holds, within the limits of the node. */
XrRange xr_range(const Runner *r, const XrNode *n);
/* Element i: steps from the zero point, rounded half to even, and clamped to the range. */
void xr_store_steps(Tensor *out, int64_t i, float steps, XrRange range);
/* t less the zero point of v, in f64. */
Tensor xr_steps(Runner *r, const XrValue *v, const Tensor *t);

#endif
