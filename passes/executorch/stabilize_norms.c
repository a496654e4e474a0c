/* Layer norms that the runtime's kernel computes badly (ops/norm.h):
 *
 * - Of f16 and bf16 with rows of 256 elements and more the results are garbage, and of f16 with an
 *   eps that f16 does not have (1e-12 of BERT) rows of equal elements become NaN: computed in f32.
 * - Of f32 with shorter rows the variance cancels where the mean is far above the deviation (at 0.5
 *   and 0.002, 128 columns: results are off by 1.6e-2, those of ONNX Runtime by 8e-6): the mean is
 *   subtracted first. Rows of f16 and bf16 are rounded about as much themselves, and stay. */
#include "ir/match.h"
#include "ops/norm.h"
#include "passes/pass.h"

/* Mean over the last count dims, kept as 1. */
static ValueId row_mean(Builder *b, ValueId x, uint32_t count) {
  int64_t axes[MAX_RANK];
  for (uint32_t i = 0; i < count; i++)
    axes[i] = (int64_t)i - count;
  return build(b, OP_MEAN_DIM, A_VAL(x), A_INTS(axes, count), A_BOOL(true));
}

static bool is_centred(const Graph *g, ValueId x) {
  NodeId n = match_op(g, x, OP_SUB_TENSOR);
  return n && match_op(g, node_value(g, n, 1), OP_MEAN_DIM);
}

static ArgIn in_f32(Builder *b, NodeId n, uint32_t i) {
  ValueId v = node_value(b->g, n, i);
  v = v ? build_cast(b, v, DTYPE_F32) : 0;
  return A_OPT(v);
}

static ValueId rewrite(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0), mean = 0;
  DType dtype = value_dtype(g, x);
  int64_t lower, upper;
  layer_norm_row(g, n, &lower, &upper);
  bool garbage = layer_norm_is_garbage(g, n), cancels = (garbage || dtype == DTYPE_F32) &&
                                                        lower < LAYER_NORM_LONG_ROW && upper > 1 &&
                                                        !is_centred(g, x);
  if (!garbage && !cancels)
    return 0;
  SymInt dims[MAX_RANK];
  uint32_t count = node_list_count(g, n, 1);
  memcpy(dims, node_ints(g, n, 1), count * sizeof *dims);
  double eps = node_scalar(g, n, 4);
  ArgIn weight = in_f32(b, n, 2), bias = in_f32(b, n, 3);
  x = build_cast(b, x, DTYPE_F32);
  if (cancels) {
    mean = row_mean(b, x, count);
    x = build(b, OP_SUB_TENSOR, A_VAL(x), A_VAL(mean));
  }
  ValueId y =
      build(b, OP_NATIVE_LAYER_NORM, A_VAL(x), A_INTS(dims, count), weight, bias, A_FLOAT(eps));
  ValueId results[] = {y, mean ? mean : y + 1, y + 2};
  for (uint32_t i = 1; i < 3 && b->status == STATUS_OK; i++)
    if (value_cget(g, node_result(g, n, i))->use_count)
      graph_replace_uses(g, node_result(g, n, i), build_cast(b, results[i], dtype));
  return build_cast(b, y, dtype);
}

Status pass_stabilize_norms(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_NATIVE_LAYER_NORM, rewrite, "norms"}};
  return pass_rewrite(p, g, rules, COUNT_OF(rules));
}
