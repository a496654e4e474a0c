/* What QuantizeLinear makes of NaN. ONNX leaves it open; ONNX Runtime 1.31 takes the lowest code,
 * the runtime's kernels and XNNPACK others. Models have NaN where a mask of the lowest float is
 * quantized: its scale is rounded up, so that it becomes infinite, and 0 times that is NaN, as is
 * the softmax of a row that is masked as a whole. */
#include <float.h>
#include <math.h>

#include "onnx/translate/quantized.h"
#include "ops/quantized.h"

enum { FEW_CODES = 16 };

/* Whether v is infinite, a constant or codes of one. */
static bool is_infinite(Import *im, ValueId v) {
  NodeId n = value_def(im->g, v);
  bool codes = is_dequantize(im->g, n) && !quantization_of(im->g, n).scales &&
               value_is_const(im->g, node_value(im->g, n, 0));
  Quantization q = codes ? quantization_of(im->g, n) : (Quantization){.scale = 1};
  Doubles values;
  if (!value_doubles(im, codes ? node_value(im->g, n, 0) : v, &values) || values.count > FEW_CODES)
    return false;
  for (uint32_t i = 0; i < values.count; i++)
    if (isinf((float)((values.at[i] - (double)q.zero) * (double)q.scale)))
      return true;
  return false;
}

enum { CODES_OF_16_BITS = 1 << 16 };

/* Whether v are integers as floats, less a zero point. */
static bool holds_codes(const Graph *g, ValueId v) {
  NodeId n = value_def(g, v);
  if (n && node_cget(g, n)->op == OP_SUB_TENSOR)
    n = value_def(g, node_value(g, n, 0));
  return n && node_cget(g, n)->op == OP_TO_COPY &&
         dtype_is_int(value_dtype(g, node_value(g, n, 0)));
}

/* Whether v is computed, and some codes of it stand for numbers that are infinite in float32. Of 16
 * bits a dequantization is spelt as a product with the scale. */
static bool overflows(Import *im, ValueId v) {
  NodeId n = value_def(im->g, v);
  Doubles scale;
  if (is_dequantize(im->g, n)) {
    Quantization q = quantization_of(im->g, n);
    return !q.scales && !q.dynamic && isinf((float)((double)(q.low - q.zero) * (double)q.scale));
  }
  return n && node_cget(im->g, n)->op == OP_MUL_TENSOR &&
         holds_codes(im->g, node_value(im->g, n, 0)) &&
         value_doubles(im, node_value(im->g, n, 1), &scale) && scale.count == 1 &&
         isinf((float)(scale.at[0] * CODES_OF_16_BITS));
}

/* Whether x is a softmax whose operand, or what is added to make it, may be infinite. */
static bool is_masked_softmax(Import *im, NodeId n) {
  if (node_cget(im->g, n)->op != OP_SOFTMAX)
    return false;
  ValueId of = node_value(im->g, n, 0);
  NodeId sum = value_def(im->g, of);
  return overflows(im, of) ||
         (sum && node_cget(im->g, sum)->op == OP_ADD_TENSOR &&
          (overflows(im, node_value(im->g, sum, 0)) || overflows(im, node_value(im->g, sum, 1))));
}

static bool is_infinite_product(Import *im, NodeId n) {
  return node_cget(im->g, n)->op == OP_MUL_TENSOR &&
         (is_infinite(im, node_value(im->g, n, 0)) || is_infinite(im, node_value(im->g, n, 1)));
}

ValueId quantized_without_nan(Import *im, ValueId x) {
  NodeId n = value_def(im->g, x);
  if (!n || ex_dtype(im, x) != DTYPE_F32 ||
      (!is_infinite_product(im, n) && !is_masked_softmax(im, n)))
    return x;
  ValueId is_number = ex_binary(im, OP_EQ_TENSOR, x, x);
  return ex_where(im, is_number, x, ex_number(im, x, -(double)FLT_MAX));
}
