/* Convolutions and average pools of f16 and bf16 compute in f32.
 *
 * Why: the runtime's kernels convolution.out and avg_pool2d.out add up in the element type
 * (ExecuTorch 1.4.1, portable): a sum of ones stands still at 2048, of bf16 at 256. Its matrix
 * products add up in f32. So what convolution_to_matmul and gather_windows left is converted here,
 * and the result is rounded once, as in ONNX Runtime. */
#include "passes/pass.h"

static bool is_half(const Graph *g, ValueId v) {
  return value_dtype(g, v) == DTYPE_F16 || value_dtype(g, v) == DTYPE_BF16;
}

static ValueId rewrite(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId result = node_result(g, n, 0);
  uint32_t count = node_cget(g, n)->arg_count;
  ArgIn args[SCHEMA_MAX_ARGS];
  Arena lists = {0};
  if (!is_half(g, result))
    return 0;
  for (uint32_t i = 0; i < count; i++) {
    args[i] = node_arg_in(g, n, i, &lists);
    if (args[i].kind == ARG_VALUE)
      args[i].i = build_cast(b, (ValueId)args[i].i, DTYPE_F32);
  }
  ValueId wide = build_args(b, node_cget(g, n)->op, args, count);
  arena_release(&lists);
  return build_cast(b, wide, value_dtype(g, result));
}

Status pass_widen_sums(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_CONVOLUTION, rewrite, "convolutions"},
                                      {OP_AVG_POOL2D, rewrite, "means"}};
  return pass_rewrite(p, g, rules, COUNT_OF(rules));
}
