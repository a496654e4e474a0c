/* The bytes of an XNNPACK delegate, read back.
 *
 * A second witness of what blob.h writes: it shares no table with the writer. The bytes may be
 * hostile. xr_read checks what can be seen without the call of the delegate: bounds, counts, ids,
 * enums; xr_check (check.h) does the rest. Sources: ExecuTorch 1.4.1, backends/xnnpack,
 * serialization/schema.fbs, runtime/XNNHeader.cpp and runtime/XNNCompiler.cpp. */
#ifndef ETC_BACKENDS_XNNPACK_READ_H
#define ETC_BACKENDS_XNNPACK_READ_H

#include "support/arena.h"

enum { XR_MAX_RANK = 6, XR_MAX_INPUTS = 5, XR_MAX_EXTERNALS = 4096 };
#define XR_NONE UINT32_MAX /* no value, not external */

typedef enum XrKind {
#define XR_KIND(name, tag, form) XR_##name = tag,
#include "backends/xnnpack/read.def"
#undef XR_KIND
  XR_KIND_COUNT
} XrKind;

/* What a table of a node is like. */
typedef enum XrForm {
  XR_FORM_NONE, /* no kind that is known */
  XR_FORM_UNARY,
  XR_FORM_UNARY_NUMBER,
  XR_FORM_BINARY,
  XR_FORM_PRODUCT,
  XR_FORM_CONVOLUTION,
  XR_FORM_POOL,
  XR_FORM_POSITION, /* a pool with two results: maxima, and where they are */
  XR_FORM_TRANSPOSE,
  XR_FORM_RESHAPE,
  XR_FORM_SLICE,
  XR_FORM_PAD,
  XR_FORM_RESIZE,
  XR_FORM_JOIN
} XrForm;
XrForm xr_form(uint32_t kind);
const char *xr_name(uint32_t kind); /* "Add"; "?" when it is not known */

/* Of the datatypes of the schema those that have no quantization parameters. XR_SIGNED and
 * XR_BYTES: qint8 and quint8 whose bytes stand for themselves, as booleans do. */
typedef enum XrDatatype {
  XR_FP32 = 1,
  XR_FP16 = 2,
  XR_SIGNED = 3,
  XR_BYTES = 4,
  XR_INT32 = 12
} XrDatatype;

static inline bool xr_is_byte(uint32_t datatype) {
  return datatype == XR_SIGNED || datatype == XR_BYTES;
}

enum { XR_INPUT = 1, XR_OUTPUT = 2 }; /* XrValue.flags */

typedef struct XrValue {
  uint16_t datatype; /* a number of the schema; XrDatatype if not quantized */
  bool quantized;
  uint8_t rank;
  uint32_t dims[XR_MAX_RANK]; /* upper bounds, if not of a constant */
  uint32_t constant;          /* index of an XrConstant, 0 = none */
  uint32_t external;          /* index of an argument of the call, or XR_NONE */
  uint32_t flags;
} XrValue;

typedef struct XrConstant {
  StrView key;           /* of the named data; no data: in the blob */
  uint64_t offset, size; /* in the region of the blob; size of named data */
} XrConstant;

/* Windows of convolutions and pools: rows, columns. */
typedef struct XrWindow {
  uint32_t before[2], after[2]; /* padding */
  uint32_t kernel[2], stride[2], dilation[2], adjust[2];
  uint32_t groups, group_in, group_out;
} XrWindow;

typedef struct XrNode {
  uint8_t kind; /* XrKind */
  bool limited; /* low and high hold */
  uint8_t input_count;
  uint8_t vector_count;
  uint32_t inputs[XR_MAX_INPUTS]; /* values; products: input, filter, bias or XR_NONE */
  uint32_t output, flags;
  uint32_t positions;                               /* its second result, or XR_NONE */
  uint32_t axis;                                    /* joins */
  uint32_t size[2];                                 /* resizing */
  float low, high, number;                          /* number: alpha, slope, padding value */
  uint32_t first[XR_MAX_RANK], second[XR_MAX_RANK]; /* permutation; new shape; offsets and sizes;
                                                       padding before and after */
  XrWindow window;
} XrNode;

typedef struct XrGraph {
  XrValue *values; /* by id */
  XrNode *nodes;
  XrConstant *constants; /* 0: none */
  uint32_t value_count, node_count, constant_count, external_count;
  const uint8_t *region; /* constants in the blob */
  uint64_t region_size;
} XrGraph;

/* NULL, or what is wrong with the bytes. All in arena; text of keys in the blob. */
const char *xr_read(const uint8_t *blob, uint64_t size, Arena *arena, XrGraph *x);

#endif
