/* Moves of codes of 16 bits:
 *
 *     to_copy(view(codes), f32)       =>   view(to_copy(codes, f32))
 *     to_copy(embedding(table), f32)  =>   to_copy(embedding(table - 32768), f32) + 32768
 *
 * Why: where codes are made of floats, the two conversions meet and go, and backends, which take no
 * integers of 16 bits, compute the moves as well. And the runtime's kernels take no uint16: with
 * sizes that are fixed they see the same bytes as int16, but a tensor that is resized for each call
 * cannot be seen so. Models of 16 bits, as QNN has them, have such moves between quantize and
 * dequantize, and tables of embeddings. */
#include "ir/match.h"
#include "passes/pass.h"

enum { SHIFT = 1 << 15 };

static bool is_move(OpId op) {
  static const OpId moves[] = {OP_AMAX,
                               OP_AMIN,
                               OP_CAT,
                               OP_CLONE,
                               OP_EMBEDDING,
                               OP_EXPAND_COPY,
                               OP_FLIP,
                               OP_GATHER,
                               OP_INDEX_SELECT,
                               OP_INDEX_TENSOR,
                               OP_MAX_POOL2D_WITH_INDICES,
                               OP_PERMUTE_COPY,
                               OP_PIXEL_SHUFFLE,
                               OP_REPEAT,
                               OP_SELECT_COPY_INT,
                               OP_SLICE_COPY_TENSOR,
                               OP_SPLIT_COPY_TENSOR,
                               OP_SPLIT_WITH_SIZES_COPY,
                               OP_SQUEEZE_COPY_DIMS,
                               OP_UNSQUEEZE_COPY,
                               OP_UPSAMPLE_NEAREST2D_VEC,
                               OP_VIEW_COPY};
  for (size_t i = 0; i < COUNT_OF(moves); i++)
    if (op == moves[i])
      return true;
  return false;
}

static bool is_uint16(const Graph *g, ValueId v) {
  return value_type(g, v)->kind == TYPE_TENSOR && value_dtype(g, v) == DTYPE_U16;
}

static bool is_codes(const Graph *g, ValueId v) {
  return value_type(g, v)->kind == TYPE_TENSOR && dtype_in(value_dtype(g, v), DT(U16) | DT(I16));
}

/* v, codes, is a conversion of floats, or moved from such ones, at most so many times. */
static bool from_floats(const Graph *g, ValueId v, uint32_t depth) {
  NodeId n = value_def(g, v);
  if (!n || depth == 0)
    return false;
  if (node_cget(g, n)->op == OP_TO_COPY)
    return dtype_in(value_dtype(g, node_value(g, n, 0)), DT(F32) | DT(F64));
  bool all = is_move(node_cget(g, n)->op), any = false;
  FOR_OPERANDS(
      g, n, x, if (all && x && is_codes(g, x) && !value_is_const(g, x)) {
        any = true;
        all = from_floats(g, x, depth - 1);
      })
  return all && any;
}

typedef struct Move {
  Builder *b;
  DType to;
} Move;

/* v as another type, converted right behind its node, once for all. */
static ValueId converted(void *user, ValueId v) {
  Move *m = user;
  Graph *g = m->b->g;
  if (!is_codes(g, v))
    return v;
  if (value_is_const(g, v))
    return build_cast(m->b, v, m->to);
  for (UseId u = first_use(g, v); u; u = g->uses[u].next) {
    NodeId n = g->uses[u].node;
    if (n != NODE_OUTPUT && node_cget(g, n)->op == OP_TO_COPY &&
        node_cget(g, n)->prev == value_def(g, v) && value_dtype(g, node_result(g, n, 0)) == m->to)
      return node_result(g, n, 0);
  }
  NodeId def = value_def(g, v);
  Builder b = builder_make(g, def ? node_cget(g, def)->next : g->first, m->b->loc);
  ValueId made = build_cast(&b, v, m->to);
  m->b->status = m->b->status ? m->b->status : b.status;
  return made;
}

/* A constant less 32768, as int16; another value as it is. */
static ValueId shifted(void *user, ValueId v) {
  Move *m = user;
  Graph *g = m->b->g;
  if (!is_uint16(g, v))
    return v;
  const Constant *c = value_constant(g, v);
  const Type *t = value_type(g, v);
  uint16_t *codes = arena_alloc(&g->arena, c->size);
  for (uint64_t i = 0; i < c->size / sizeof *codes; i++) {
    memcpy(&codes[i], c->data + i * sizeof *codes, sizeof *codes);
    codes[i] ^= SHIFT;
  }
  return graph_add_constant(g, graph_tensor_type(g, DTYPE_I16, t->rank, t->dims, ORDER_CONTIGUOUS),
                            (Constant){.data = (const uint8_t *)codes, .size = c->size}, 0);
}

static bool moves_constants(const Graph *g, NodeId n) {
  bool all = true;
  FOR_OPERANDS(g, n, v, all = all && (!v || !is_codes(g, v) || value_is_const(g, v));)
  return all;
}

/* Where v is among the results of its node. */
static uint32_t result_index(const Graph *g, ValueId v) {
  uint32_t i = 0;
  while (node_result(g, value_def(g, v), i) != v)
    i++;
  return i;
}

/* The move that n converts the result of, if what n makes holds all codes; else 0. */
static NodeId converted_move(const Graph *g, NodeId n) {
  enum { DEPTH = 16 };
  ValueId x = node_cget(g, n)->op == OP_TO_COPY ? node_value(g, n, 0) : 0;
  NodeId move = x && is_codes(g, x) ? value_def(g, x) : 0;
  if (!move || !is_move(node_cget(g, move)->op))
    return 0;
  DType to = value_dtype(g, node_result(g, n, 0));
  if (is_uint16(g, x) && !type_is_static(value_type(g, x)))
    return dtype_in(to, DT(I32) | DT(I64) | DT(F32) | DT(F64)) ? move : 0;
  return dtype_in(to, DT(F32) | DT(F64)) && from_floats(g, x, DEPTH) ? move : 0;
}

static Status convert_before(Graph *g, NodeId n, NodeId move) {
  Builder b = builder_make(g, n, node_cget(g, move)->loc);
  Move m = {&b, value_dtype(g, node_result(g, n, 0))};
  bool constants = moves_constants(g, move);
  ValueId first = constants ? build_again(&b, move, DTYPE_I16, shifted, &m)
                            : build_again(&b, move, m.to, converted, &m);
  if (b.status != STATUS_OK)
    return b.status;
  ValueId y = node_result(g, value_def(g, first), result_index(g, node_value(g, n, 0)));
  if (constants)
    y = build(&b, OP_ADD_SCALAR, A_VAL(build_cast(&b, y, m.to)), A_INT(SHIFT), A_INT(1));
  if (b.status == STATUS_OK)
    graph_replace_value(g, node_result(g, n, 0), y);
  return b.status;
}

/* From the end: the conversions that are made lie before the node. */
Status pass_move_uint16(PassContext *p, Graph *g) {
  uint64_t count = 0;
  for (NodeId n = g->last; n; n = node_cget(g, n)->prev) {
    NodeId move = converted_move(g, n);
    if (!move || node_unused(g, n, 0))
      continue;
    TRY(convert_before(g, n, move));
    count++;
  }
  pass_count(p, "conversions", count);
  return STATUS_OK;
}
