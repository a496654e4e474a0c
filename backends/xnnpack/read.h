/* The bytes of an XNNPACK delegate, read back.
 *
 * A second witness of what blob.h writes: it shares no table with the writer. The bytes may be
 * hostile. xr_read checks what can be seen without the call of the delegate: bounds, counts, ids,
 * enums; xr_check (check.h) does the rest. Sources: ExecuTorch 1.4.1, backends/xnnpack,
 * serialization/schema.fbs, runtime/XNNHeader.cpp and runtime/XNNCompiler.cpp. */
#ifndef ETC_BACKENDS_XNNPACK_READ_H
#define ETC_BACKENDS_XNNPACK_READ_H

#include "ir/op.h"

enum { XR_MAX_RANK = 6, XR_MAX_INPUTS = 5, XR_MAX_EXTERNALS = 4096 };
#define XR_NONE UINT32_MAX /* no value, not external */

typedef enum XrKind {
#define XR_KIND(name, tag, form, op, traits) XR_##name = tag,
#include "backends/xnnpack/read.def"
  XR_KINDS
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

typedef enum XrTrait {
  XR_LIMITS = 1,    /* honours the limits of a result; the others ignore them */
  XR_INTEGERS = 2,  /* computes on i32, too */
  XR_KEEPS = 4,     /* codes of 8 bits have the scale and zero point of the operands */
  XR_FLOATS = 8,    /* takes no codes */
  XR_WEIGHTED = 16, /* has a filter and a bias, which may be absent */
  XR_MOVES = XR_INTEGERS | XR_KEEPS
} XrTrait;

typedef struct XrKindRow {
  const char *name; /* "Add" */
  uint8_t form;     /* XrForm */
  uint8_t traits;   /* XrTrait */
  uint16_t op;      /* OpId */
} XrKindRow;
extern const XrKindRow xr_kinds[XR_KINDS]; /* no name, XR_FORM_NONE: not known */
static inline const XrKindRow *xr_kind(uint32_t kind) {
  return &xr_kinds[kind < XR_KINDS ? kind : 0];
}
static inline XrForm xr_form(uint32_t kind) { return (XrForm)xr_kind(kind)->form; }
static inline const char *xr_name(uint32_t kind) {
  return xr_kind(kind)->name ? xr_kind(kind)->name : "?";
}
static inline bool xr_has(uint32_t kind, XrTrait trait) {
  return (xr_kind(kind)->traits & trait) != 0;
}

/* Quantized ones stand for (q - zero point) * scale; booleans are quint8 of scale 1 and zero point
 * 0. */
typedef enum XrDatatype {
#define XR_DATATYPE(name, number, text, scheme, bits, dtype) XR_##name = number,
#include "backends/xnnpack/read.def"
  XR_DATATYPES
} XrDatatype;

/* Where the quantization parameters of a datatype are; the numbers of union XNNQuantParams. */
typedef enum XrScheme {
  XR_PLAIN = 0, /* it has none */
  XR_PER_CHANNEL = 1,
  XR_PER_TENSOR = 2,
  XR_PER_TOKEN = 3,
  XR_PER_GROUP = 4
} XrScheme;

typedef struct XrDatatypeRow {
  const char *name; /* "fp32" */
  uint8_t scheme;   /* XrScheme */
  uint8_t bits;     /* of an element */
  uint8_t dtype;    /* DType of its bytes */
} XrDatatypeRow;
extern const XrDatatypeRow xr_datatypes[XR_DATATYPES]; /* no name, 0 bits: not known */
static inline const XrDatatypeRow *xr_datatype(uint32_t datatype) {
  return &xr_datatypes[datatype < XR_DATATYPES ? datatype : 0];
}
static inline XrScheme xr_scheme(uint32_t datatype) {
  return (XrScheme)xr_datatype(datatype)->scheme;
}
static inline bool xr_is_byte(uint32_t datatype) {
  return datatype == XR_QINT8 || datatype == XR_QUINT8;
}

enum { XR_INPUT = 1, XR_OUTPUT = 2 }; /* XrValue.flags */

typedef struct XrValue {
  uint16_t datatype; /* XrDatatype */
  uint8_t rank;
  uint32_t dims[XR_MAX_RANK]; /* upper bounds, if not of a constant */
  uint32_t constant;          /* index of an XrConstant, 0 = none */
  uint32_t external;          /* index of an argument of the call, or XR_NONE */
  uint32_t flags;
  uint32_t position;                               /* in the list of values */
  float scale;                                     /* XR_PER_TENSOR */
  int32_t zero_point;                              /* likewise */
  uint32_t channel_dim, group_size, nonbatch_dims; /* of the other schemes */
  uint32_t scales;                                 /* constant with them; 0: scale_bytes */
  uint32_t scale_count;
  const uint8_t *scale_bytes; /* in the FlatBuffer: f32, not aligned */
} XrValue;

/* The bytes that a constant of v has. False when they are too many to count. */
bool xr_value_bytes(const XrValue *v, uint64_t *bytes);
/* The bytes of the scales of v, when they are a constant: bfloat16 for groups. */
uint64_t xr_scale_bytes(const XrValue *v);

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

/* The datatype of a value; 0 where it has none. */
static inline uint32_t xr_type_of(const XrGraph *x, uint32_t id) {
  return id == XR_NONE ? 0 : x->values[id].datatype;
}

/* NULL, or what is wrong with the bytes. All in arena; text of keys in the blob. */
const char *xr_read(const uint8_t *blob, uint64_t size, Arena *arena, XrGraph *x);

#endif
