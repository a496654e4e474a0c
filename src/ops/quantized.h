/* Nodes that quantize and dequantize, read: what passes and backends ask of them. */
#ifndef ETC_OPS_QUANTIZED_H
#define ETC_OPS_QUANTIZED_H

#include "ir/builder.h"

/* How a tensor is quantized: real = (code - zero) * scale. */
typedef struct Quantization {
  DType dtype;       /* of the codes: U8, I8, I16, I32 */
  int64_t low, high; /* range of the codes */
  float scale;       /* per tensor */
  int64_t zero;      /* per tensor */
  ValueId scales;    /* f32, one a channel; 0: per tensor */
  ValueId zeros;     /* i64, one a channel; 0: all zero points are 0, or per tensor */
  uint32_t axis;     /* of the channels */
  int64_t block;     /* not 0: scales and zeros (of the type of the codes) have an entry for each
                        block of that many in dim `axis`, and for each index of the others */
  bool dynamic;      /* scales and zeros are one number each, computed at run time */
  bool rows;         /* and dynamic: one number for each row of the last dim */
} Quantization;

static inline bool is_quantize(const Graph *g, NodeId n) {
  return n && op_has_trait(node_cget(g, n)->op, OP_QUANTIZE);
}
static inline bool is_dequantize(const Graph *g, NodeId n) {
  return n && op_has_trait(node_cget(g, n)->op, OP_DEQUANTIZE);
}

/* Whether the runtime's library `quantized` has a kernel for n, at LEVEL_EDGE or later: a
 * quantization or dequantization per tensor whose scale and zero point are known. */
bool quantized_call(const Graph *g, NodeId n);

enum { OBSERVE_WINDOW = 128 }; /* columns of a matrix whose moments are known together */

/* Where the arguments of quantized_decomposed::observe are. */
enum {
  OBSERVE_RANGE = 1,
  OBSERVE_AXIS,
  OBSERVE_MIN,
  OBSERVE_MAX,
  OBSERVE_SYMMETRIC,
  OBSERVE_LOW,
  OBSERVE_HIGH,
  OBSERVE_MOMENTS /* of the operand of a matrix of weights: quant/moments.h, sums */
};

/* Of a node that quantizes or dequantizes. */
Quantization quantization_of(const Graph *g, NodeId n);
/* Whether scales and zero points are equal, by value, along the same axis, and make equal codes. */
bool quantization_equal(const Graph *g, const Quantization *a, const Quantization *b);
/* The node that makes v by dequantizing a constant whose scales and zero points are constants, too;
 * 0 when v is something else. */
NodeId dequantized_constant(const Graph *g, ValueId v);
/* The quantization of x (f32) to I8 or U8 by the range that it has at run time: a new node that
 * chooses scale and zero point. */
Quantization build_dynamic(Builder *b, ValueId x, DType dtype);
/* The quantization of x (f32) to I8 by the range that each row of its last dim has at run time. */
Quantization build_rows(Builder *b, ValueId x);
/* The node that dequantizes what v is, or is a view or a permutation of; 0: there is no such one.
 */
NodeId moved_dequantize(const Graph *g, ValueId v);
/* A constant of the graph, or codes of one that are dequantized; false for 0. */
static inline bool is_constant_or_codes(const Graph *g, ValueId v) {
  return v && (value_is_const(g, v) || dequantized_constant(g, v));
}
/* A new node: x quantized (f32), or dequantized (codes). 0 after a failure of the builder. */
ValueId build_quantize(Builder *b, ValueId x, const Quantization *q);
ValueId build_dequantize(Builder *b, ValueId x, const Quantization *q);
/* All codes of a dequantized constant (its elements in the order of the graph) as floats, written
 * to out: as many as the value has. */
void dequantize_constant(const Graph *g, NodeId n, float *out);

#endif
