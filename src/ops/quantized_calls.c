/* What the runtime has kernels for in its library `quantized` (quantized_ops_lib of ExecuTorch
 * 1.4.1), probed with the wheel: quantization per tensor, and mixed_linear. */
#include "ops/elementwise.h"
#include "ops/gemm.h"
#include "ops/move.h"
#include "ops/ops.h"
#include "ops/quantized.h"
#include "ops/shape_util.h"

/* Where the arguments of mixed_linear are. */
enum { MIXED_INPUT, MIXED_WEIGHT, MIXED_SCALES, MIXED_ZEROS, MIXED_DTYPE };

/* Scales whose reciprocal, and products with it, are far from the ends of f32. */
static const float least_scale = 0x1p-60F, largest_scale = 0x1p60F;

bool quantized_call(const Graph *g, NodeId n) {
  OpId op = node_cget(g, n)->op;
  if (op != OP_QUANTIZE_PER_TENSOR && op != OP_DEQUANTIZE_PER_TENSOR)
    return false;
  Quantization q = quantization_of(g, n);
  return dtype_in(q.dtype, DT(U8) | DT(I8) | DT(I16)) && q.scale >= least_scale &&
         q.scale <= largest_scale && q.zero >= q.low && q.zero <= q.high;
}

const char *check_quantized_call(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  if (g->level != LEVEL_EXECUTORCH || node_cget(g, n)->op == OP_MIXED_LINEAR ||
      quantized_call(g, n))
    return NULL;
  return "the kernel takes u8, i8 and i16 with a scale of 2^-60 to 2^60 and a zero point in their "
         "range";
}

Status shape_mixed_linear(Graph *g, NodeId n) {
  ValueId x = node_value(g, n, MIXED_INPUT), w = node_value(g, n, MIXED_WEIGHT),
          scales = node_value(g, n, MIXED_SCALES), zeros = node_value(g, n, MIXED_ZEROS);
  if (zeros || !node_absent(g, n, MIXED_DTYPE))
    return bad_arg(g, n, "the kernel takes neither zero points nor another element type");
  if (value_dtype(g, x) != DTYPE_F32 || value_dtype(g, w) != DTYPE_I8 ||
      value_dtype(g, scales) != DTYPE_F32)
    return bad_dtype(g, n, "the operands are %s, %s and %s, not f32, i8 and f32",
                     dtype_name(value_dtype(g, x)), dtype_name(value_dtype(g, w)),
                     dtype_name(value_dtype(g, scales)));
  if (value_rank(g, x) != 2 || value_rank(g, w) != 2 || value_rank(g, scales) != 1)
    return bad_shape(g, n, "the operands have ranks %u, %u and %u, not 2, 2 and 1",
                     value_rank(g, x), value_rank(g, w), value_rank(g, scales));
  TRY(shape_equal_of(g, n, (SizeOf){x, value_dim(g, x, 1), "columns"},
                     (SizeOf){w, value_dim(g, w, 1), "columns"}));
  TRY(shape_equal(g, n, value_dim(g, scales, 0), value_dim(g, w, 0),
                  "scales and rows of the weight"));
  Dims d = {.rank = 2, .d = {value_dim(g, x, 0), value_dim(g, w, 0)}};
  return shape_result(g, n, 0, DTYPE_F32, &d);
}

Status kern_mixed_linear(Kernel *k) {
  const Tensor *x = kernel_tensor(k, MIXED_INPUT), *w = kernel_tensor(k, MIXED_WEIGHT),
               *scales = kernel_tensor(k, MIXED_SCALES);
  Tensor *y = k->results[0];
  if (x->rank != 2 || w->rank != 2 || x->dims[1] != w->dims[1] ||
      tensor_numel(scales) != w->dims[0])
    return kernel_error(k, "the matrices do not fit together");
  Tensor wide = kernel_in_dtype(k, w, DTYPE_F32);
  gemm(&(Gemm){.dtype = DTYPE_F32,
               .trans_b = true,
               .m = x->dims[0],
               .n = w->dims[0],
               .k = w->dims[1],
               .alpha = 1,
               .a = x->data,
               .b = wide.data,
               .c = y->data,
               .lda = max_i64(w->dims[1], 1),
               .ldb = max_i64(w->dims[1], 1),
               .ldc = max_i64(w->dims[0], 1)});
  float *out = y->data;
  for (int64_t i = 0; i < x->dims[0]; i++)
    for (int64_t j = 0; j < w->dims[0]; j++)
      out[i * w->dims[0] + j] *= ((const float *)scales->data)[j];
  return STATUS_OK;
}
