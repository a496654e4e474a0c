/* What QuantizeLinear makes of NaN. ONNX leaves it open; ONNX Runtime 1.31 takes the lowest code,
 * the runtime's kernels and XNNPACK others. Models have NaN where a mask of the lowest float is
 * quantized: its scale is rounded up, so that it becomes infinite, and 0 times that is NaN. */
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

ValueId quantized_without_nan(Import *im, ValueId x) {
  NodeId n = value_def(im->g, x);
  if (!n || node_cget(im->g, n)->op != OP_MUL_TENSOR || ex_dtype(im, x) != DTYPE_F32 ||
      (!is_infinite(im, node_value(im->g, n, 0)) && !is_infinite(im, node_value(im->g, n, 1))))
    return x;
  ValueId is_number = ex_binary(im, OP_EQ_TENSOR, x, x);
  return ex_where(im, is_number, x, ex_number(im, x, -(double)FLT_MAX));
}
