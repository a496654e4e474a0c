/* Operators of f16 and bf16 between codes compute in f32:
 *
 *     quantize(f32(conv(f16(dequantize(x)), f16(dequantize(w)), bias)))
 *     =>  quantize(conv(dequantize(x), dequantize(w), f32(bias)))
 *     f16(i32 product) * f16(scale)
 *     =>  f16(f32(i32 product) * scale)
 *
 * as models of f16 are quantized, with scales of f16, or with conversions around quantize and
 * dequantize, which a conversion to f16 left in f32.
 *
 * Why: backends have integer kernels for real numbers of f32 only, and codes are coarser than f16.
 * Sums of products of codes are larger than f16 can be; ONNX Runtime, too, scales them in f32. An
 * operator is widened where all operands of these types come from codes, by other such operators or
 * at once, but for small constants; a product also where only its weights do. What is no code at
 * the end is converted back. */
#include "interp/fold.h"
#include "ir/match.h"
#include "ops/quantized.h"
#include "passes/pass.h"

typedef struct Widener {
  Builder b;
  bool *wide; /* by ValueId: of f16 or bf16, converted from what comes from codes */
  uint32_t capacity;
  Arena *scratch;
  uint64_t count;
} Widener;

static void mark(Widener *w, ValueId v) {
  if (v >= w->capacity) {
    uint32_t capacity = 2 * v + 1;
    bool *wide = ARENA_ARRAY(w->scratch, bool, capacity);
    memset(wide, 0, capacity);
    if (w->capacity)
      memcpy(wide, w->wide, w->capacity);
    w->wide = wide;
    w->capacity = capacity;
  }
  w->wide[v] = true;
}

static bool is_half(const Graph *g, ValueId v) {
  return value_type(g, v)->kind == TYPE_TENSOR && dtype_is_half(value_dtype(g, v));
}

static bool is_wide(const Widener *w, ValueId v) { return v < w->capacity && w->wide[v]; }

/* A bias or the like: of one dim but for dims of 1. */
static bool is_small_constant(const Graph *g, ValueId v) {
  uint32_t long_dims = 0;
  for (uint32_t i = 0; i < value_rank(g, v); i++)
    long_dims += value_dim(g, v, i) != 1;
  return value_is_const(g, v) && long_dims <= 1;
}

/* Whether n computes the same function of real numbers in f32. */
static bool can_widen(const Graph *g, NodeId n) {
  const Node *node = node_cget(g, n);
  const uint32_t others =
      OP_EFFECT | OP_CONTROL | OP_RANDOM | OP_PRIM | OP_QUANTIZE | OP_DEQUANTIZE | OP_DELEGATE;
  if (node->op == OP_TO_COPY || node->op == OP_VIEW_COPY_DTYPE || !node->result_count ||
      (op_row(node->op)->traits & others) || !is_half(g, node_result(g, n, 0)))
    return false;
  for (uint32_t i = 0; i < node->arg_count; i++)
    if (node_arg(g, n, i)->kind == ARG_DTYPE && !dtype_is_half((DType)node_arg(g, n, i)->i))
      return false;
  return true;
}

static bool is_product(OpId op) { return match_matrix_product(op) || op == OP_CONVOLUTION; }

/* Whether the operands of n that are f16 or bf16 come from codes. */
static bool all_from_codes(const Widener *w, NodeId n) {
  const Graph *g = w->b.g;
  bool any = false;
  FOR_OPERANDS(g, n, v, {
    if (v && is_half(g, v) && !is_wide(w, v) && !is_small_constant(g, v))
      return false;
    any = any || is_wide(w, v);
  })
  return any;
}

/* The operand v in f32. */
static ValueId widened(void *user, ValueId v) {
  Widener *w = user;
  if (is_wide(w, v))
    v = node_value(w->b.g, value_def(w->b.g, v), 0);
  else if (!v || !is_half(w->b.g, v))
    return v;
  return build_cast(&w->b, v, DTYPE_F32);
}

static void replace_result(Widener *w, ValueId result, ValueId wide, bool from_codes) {
  Graph *g = w->b.g;
  bool half = is_half(g, result);
  ValueId made = half ? build_cast(&w->b, wide, value_dtype(g, result)) : wide;
  graph_replace_value(g, result, made);
  if (half && from_codes)
    mark(w, made);
}

static Status widen(Widener *w, NodeId n, bool from_codes) {
  Graph *g = w->b.g;
  ValueId wide = build_again(&w->b, n, DTYPE_F32, widened, w);
  TRY(w->b.status);
  for (uint32_t i = 0; i < node_cget(g, n)->result_count; i++)
    replace_result(w, node_result(g, n, i), wide + i, from_codes);
  graph_remove_node(g, n);
  w->count++;
  return w->b.status;
}

/* quantize rounds more than the conversions in front of it. */
static void quantize_wide(Widener *w, NodeId n) {
  Graph *g = w->b.g;
  NodeId up = value_def(g, node_value(g, n, 0));
  if (!up || node_cget(g, up)->op != OP_TO_COPY || !is_wide(w, node_value(g, up, 0)))
    return;
  node_set_arg(g, n, 0, A_VAL(widened(w, node_value(g, up, 0))));
  w->count++;
}

/* Conversions whose users were widened. */
static void remove_unused(const Widener *w) {
  Graph *g = w->b.g;
  for (NodeId n = g->last, before; n; n = before) {
    before = node_cget(g, n)->prev;
    if (node_cget(g, n)->op == OP_TO_COPY && node_unused(g, n, 0))
      graph_remove_node(g, n);
  }
}

static bool chooses_scale(OpId op) {
  return op == OP_CHOOSE_QPARAMS_TENSOR || op == OP_CHOOSE_QPARAMS_PER_TOKEN;
}

/* Whether v is real numbers of codes, a scale of codes, or a product of codes. */
static bool is_from_codes(const Graph *g, ValueId v) {
  NodeId n = value_def(g, v);
  OpId op = n ? node_cget(g, n)->op : OP_NONE;
  return is_dequantize(g, n) || chooses_scale(op) ||
         (is_product(op) && value_dtype(g, v) == DTYPE_I32);
}

static Status visit(Widener *w, NodeId n) {
  Graph *g = w->b.g;
  OpId op = node_cget(g, n)->op;
  w->b.before = n;
  w->b.loc = node_cget(g, n)->loc;
  if (is_quantize(g, n) || chooses_scale(op))
    quantize_wide(w, n);
  else if (op == OP_TO_COPY && is_half(g, node_result(g, n, 0)) &&
           is_from_codes(g, node_value(g, n, 0)))
    mark(w, node_result(g, n, 0));
  if (!can_widen(g, n))
    return STATUS_OK;
  bool from_codes = all_from_codes(w, n);
  if (!from_codes && !(is_product(op) && is_wide(w, node_value(g, n, 1))))
    return STATUS_OK;
  return widen(w, n, from_codes);
}

Status pass_widen_quantized(PassContext *p, Graph *g) {
  Fold fold;
  Status status = STATUS_OK;
  fold_init(&fold, p->options->fold_limit);
  Widener w = {.b = builder_make(g, 0, 0), .scratch = p->scratch};
  w.b.fold = fold_node;
  w.b.fold_data = &fold;
  for (NodeId n = g->first, next; n && status == STATUS_OK; n = next) {
    next = node_cget(g, n)->next;
    status = visit(&w, n);
  }
  fold_release(&fold);
  if (w.count)
    remove_unused(&w);
  pass_count(p, "nodes", w.count);
  return status;
}
