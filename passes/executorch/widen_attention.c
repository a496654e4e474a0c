/* The weights of attention on f16 and bf16 stay f32 between softmax and the product with the
 * values.
 *
 *   _softmax (f16) -> views -> bmm (f16)   =>   _softmax (f32) -> views -> bmm (f32) -> f16
 *
 * Both kernels compute in f32 inside. Rounding what goes from one to the other adds an error of the
 * size of the last place of f16 to the result, which ONNX Runtime does not have: it takes out the
 * conversions between neighbours. */
#include "passes/pass.h"

enum { VIEWS_MAX = 4 };

/* The softmax that v is a view of, 0 for anything else; views[0] is the last of *count views. */
static NodeId softmax_behind(const Graph *g, ValueId v, ValueId *views, uint32_t *count) {
  for (*count = 0;; views[(*count)++] = v, v = node_value(g, value_def(g, v), 0)) {
    NodeId n = value_def(g, v);
    if (!n || !value_used_once(g, v))
      return 0;
    if (node_cget(g, n)->op == OP_SOFTMAX)
      return n;
    if (node_cget(g, n)->op != OP_VIEW_COPY || *count == VIEWS_MAX)
      return 0;
  }
}

static ValueId rewrite(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId result = node_result(g, n, 0), views[VIEWS_MAX];
  uint32_t count;
  NodeId softmax = dtype_is_half(value_dtype(g, result))
                       ? softmax_behind(g, node_value(g, n, 0), views, &count)
                       : 0;
  if (!softmax)
    return 0;
  ValueId x = build_cast(b, node_value(g, softmax, 0), DTYPE_F32);
  x = build(b, OP_SOFTMAX, A_VAL(x), A_INT(node_int(g, softmax, 1)), A_BOOL(false));
  while (count > 0 && b->status == STATUS_OK)
    x = build_view_as(b, x, value_dims(g, views[--count]));
  x = build(b, node_cget(g, n)->op, A_VAL(x), A_VAL(build_cast(b, node_value(g, n, 1), DTYPE_F32)));
  return build_cast(b, x, value_dtype(g, result));
}

Status pass_widen_attention(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_MM, rewrite, "products"},
                                      {OP_BMM, rewrite, "batched products"}};
  return pass_rewrite(p, g, rules, COUNT_OF(rules));
}
