/* Elementwise ops of one tensor: shape rules, and what the runtime refuses beyond element types
 * (kernels/portable/cpu/op_clamp.cpp, op_gelu.cpp of ExecuTorch 1.4.1). Reference kernels:
 * unary_kernels.c. */
#include "ops/ops.h"
#include "ops/shape_util.h"

/* Result 0 has the shape of `self` and the given dtype. */
static Status result_like(Graph *g, NodeId n, ValueId self, DType dtype) {
  Dims d = value_dims(g, self);
  return shape_result(g, n, 0, dtype, &d);
}

Status shape_same(Graph *g, NodeId n) {
  ValueId self = node_value(g, n, 0);
  return result_like(g, n, self, value_dtype(g, self));
}

Status shape_unary_float(Graph *g, NodeId n) {
  ValueId self = node_value(g, n, 0);
  return result_like(g, n, self, dtype_to_float(value_dtype(g, self)));
}

Status shape_bool(Graph *g, NodeId n) {
  ValueId self = node_value(g, n, 0);
  return result_like(g, n, self, DTYPE_BOOL);
}

Status shape_gelu(Graph *g, NodeId n) {
  if (node_arg(g, n, 1)->kind != ARG_STR)
    return bad_arg(g, n, "argument 'approximate' must be a string");
  StrView mode = node_str(g, n, 1);
  if (!sv_eq_str(mode, "none") && !sv_eq_str(mode, "tanh"))
    return bad_arg(g, n, "argument 'approximate' is '" SV_FMT "', expected 'none' or 'tanh'",
                   SV_ARG(mode));
  return shape_same(g, n);
}

Status shape_clamp(Graph *g, NodeId n) {
  ValueId self = node_value(g, n, 0);
  if (node_absent(g, n, 1) && node_absent(g, n, 2))
    return bad_arg(g, n, "at least one of 'min' and 'max' must be given");
  DType dtype = value_dtype(g, self);
  for (uint32_t i = 1; i <= 2; i++) {
    DType kind = DTYPE_BOOL;
    if (!node_absent(g, n, i))
      TRY(arg_scalar_kind(g, n, i, &kind));
    dtype = dtype_with_scalar(dtype, kind);
  }
  return result_like(g, n, self, dtype);
}

const char *check_clamp(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  DType dtype = value_dtype(g, node_result(g, n, 0));
  for (uint32_t i = 1; i <= 2; i++) {
    const Arg *bound = node_arg(g, n, i);
    bool wraps = dtype_is_unsigned(dtype) && bound->kind == ARG_INT && bound->i < 0;
    if (wraps || !scalar_fits(g, n, i, dtype))
      return "a bound is not in the range of the element type";
  }
  return NULL;
}

const char *check_hardtanh(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  DType dtype = value_dtype(g, node_result(g, n, 0));
  if (!scalar_fits(g, n, 1, dtype) || !scalar_fits(g, n, 2, dtype))
    return "a bound is not in the range of the element type";
  return NULL;
}
