/* Whether an XNNPACK graph fits the call of its delegate, and itself.
 *
 * Checks ids, shapes, element types, constants, and what the runtime does not check though it then
 * computes something else or crashes. Nothing here is shared with what writes such graphs. Sources:
 * ExecuTorch 1.4.1, backends/xnnpack/runtime/{XNNCompiler,XNNExecutor}.cpp; XNNPACK, src/subgraph.
 */
#ifndef ETC_BACKENDS_XNNPACK_CHECK_H
#define ETC_BACKENDS_XNNPACK_CHECK_H

#include "backends/xnnpack/read.h"
#include "ops/delegate.h"

enum { XR_UNKNOWN = DELEGATE_DIM_UNKNOWN, XR_SIZE_MAX = INT32_MAX };

/* Dims as they are in one call; XR_UNKNOWN where they vary and nothing says how large they are.
 * Those that are expressions over the inputs' are negative numbers, too, and fit everything. */
typedef struct XrShape {
  uint8_t rank;
  int64_t dims[XR_MAX_RANK];
} XrShape;

typedef struct XrCheck {
  const XrGraph *x;
  const DelegateCall *call;
  Arena *arena;
  SymTable *syms;            /* the call's, or one without expressions */
  const char *fault;         /* the first */
  XrShape *shapes;           /* by value */
  bool *defined;             /* by value */
  uint8_t *uses;             /* by value: XR_USE_* */
  const DelegateData **data; /* by constant: of named ones */
} XrCheck;

/* XNNPACK packs filters and biases that are constant and the delegate then frees them; it keeps
 * pointers to all others. */
enum { XR_USE_PACKED = 1, XR_USE_COPIED = 2, XR_USE_KEPT = 4 };

/* Returns the fault, or NULL; then shapes and data are right. The sizes of outputs are not looked
 * at: for a call that runs they are bounds. */
const char *xr_check(XrCheck *c, const XrGraph *x, const DelegateCall *call, Arena *arena);

/* --- between check.c, check_quantized.c and shape.c --- */

/* Keeps the first fault. Returns false. */
bool xr_fail(XrCheck *c, const char *format, ...) ETC_PRINTF(2, 3);
/* What a quantized value may be: an argument, a constant, between the nodes. */
void xr_check_value(XrCheck *c, uint32_t id);
/* The datatypes and quantization parameters of a product or convolution. */
void xr_check_weighted(XrCheck *c, const XrNode *n);
void xr_check_convert(XrCheck *c, const XrNode *n);
/* Any other node with a quantized result; its operands have the same datatype. */
void xr_check_bytes(XrCheck *c, const XrNode *n);
/* Whether a 1x1 convolution is one for XNNPACK, too: it makes a product of a plain one, and then
 * quantizes a dynamic input by pixels. */
bool xr_is_pointwise(const XrNode *n);
/* The shape of the result of n, whose operands are there. Checks what n demands of them. */
void xr_shape(XrCheck *c, const XrNode *n, XrShape *out);

#endif
