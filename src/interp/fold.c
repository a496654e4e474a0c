/* Folding while building, see fold.h: the evaluation of nodes whose operands are constants. */
#include "interp/fold_known.h"
#include "interp/interp.h"
#include "ir/match.h"

void fold_init(Fold *f, uint64_t limit) {
  *f = (Fold){.limit = limit ? limit : FOLD_LIMIT_DEFAULT};
}

void fold_release(Fold *f) {
  arena_release(&f->arena);
  arena_release(&f->scratch);
  xfree(f->contents);
  *f = (Fold){0};
}

static bool is_view(OpId op) { return op_has_trait(op, OP_VIEW) || op == OP_ET_VIEW; }

/* Pure, not random, with a kernel or a view. */
static bool fold_allowed(const Fold *f, OpId op) {
  return op == OP_ET_VIEW || (op_row(op)->kernel && op != OP_EXECUTORCH_CALL_DELEGATE &&
                              !op_has_trait(op, OP_RANDOM | OP_EFFECT | OP_PRIM) &&
                              (f->dequantizes || !op_has_trait(op, OP_DEQUANTIZE)));
}

/* Bytes of the operands together and of the largest one, or false when one is not a constant. */
static bool operands_constant(Fold *f, const Graph *g, NodeId n, uint64_t *bytes,
                              uint64_t *largest) {
  *bytes = *largest = 0;
  FOR_OPERANDS(g, n, v, {
    if (!v)
      continue;
    if (!value_is_const(g, v))
      return false;
    const Constant *c = value_lazy_constant(g, v);
    *bytes += c->size;
    *largest = c->size > *largest ? c->size : *largest;
    if (c->file && c->file->size > f->file)
      f->file = c->file->size;
  })
  return true;
}

/* Whether n is a slice of a constant whose elements follow each other there, from *first on: only
 * dims in front of it, of size 1, could come between them. */
static bool is_run(const Graph *g, NodeId n, uint64_t *first) {
  if (node_cget(g, n)->op != OP_SLICE_COPY_TENSOR || node_int(g, n, 4) != 1)
    return false;
  ValueId x = node_value(g, n, 0);
  SymInt start = node_int_or(g, n, 2, 0);
  if (!sym_is_const(start) || value_lazy_constant(g, x)->transform)
    return false;
  uint32_t dim = (uint32_t)wrap_dim(node_int(g, n, 1), value_rank(g, x));
  int64_t size = value_dim(g, x, dim);
  start = start < 0 ? start + size : start;
  *first = (uint64_t)(min_i64(max_i64(start, 0), size) *
                      dims_count(value_type(g, x)->dims, dim + 1, value_rank(g, x)));
  for (uint32_t i = 0; i < dim; i++)
    if (value_dim(g, x, i) != 1)
      return false;
  return true;
}

static bool is_product(OpId op) { return match_matrix_product(op) || op == OP_ADDMM; }

/* A loop over the rows of a matrix multiplies this many elements in the time of another step. */
enum { PRODUCT_LANES = 4 };

/* Element steps of a costly op, of results of so many bytes; false: too many to be counted. */
static bool costly_work(const Graph *g, NodeId n, uint64_t bytes, uint64_t largest,
                        uint64_t *work) {
  OpId op = node_cget(g, n)->op;
  if (!is_product(op))
    return mul_u64(bytes / 4 + 1, largest / 4 + 1, work);
  ValueId a = node_value(g, n, op == OP_ADDMM);
  return mul_u64(bytes / 4 + 1, (uint64_t)value_dim(g, a, value_rank(g, a) - 1) / PRODUCT_LANES + 1,
                 work);
}

/* Whether the results may be computed, as far as this graph's folding goes; if so, it is counted.
 */
static bool afford(Fold *f, const Graph *g, NodeId n, uint64_t bytes, uint64_t operand_bytes,
                   uint64_t largest) {
  OpId op = node_cget(g, n)->op;
  uint64_t first, work = is_run(g, n, &first) ? 0 : bytes + operand_bytes;
  if (is_view(op) || bytes + operand_bytes <= FOLD_ALWAYS_MAX)
    return true;
  if (op_has_trait(op, OP_COSTLY) &&
      (!costly_work(g, n, bytes, largest, &work) || work > FOLD_COSTLY_MAX + f->file))
    return false;
  uint64_t *done = is_product(op) ? &f->products : &f->work,
           most = is_product(op) ? FOLD_PRODUCTS_MAX + 8 * f->file : FOLD_WORK_MAX + 4 * f->file;
  if (bytes > FOLD_TOTAL_MAX + 2 * f->file - f->made || work > most - *done)
    return false;
  f->made += bytes;
  *done += work;
  return true;
}

/* Whether n converts f16 or bf16 to f32, as models do in front of weights that are stored so: at
 * run time each call would convert them. */
static bool is_widening(const Graph *g, NodeId n) {
  return node_cget(g, n)->op == OP_TO_COPY && dtype_is_half(value_dtype(g, node_value(g, n, 0))) &&
         value_dtype(g, node_result(g, n, 0)) == DTYPE_F32;
}

static bool results_fit(Fold *f, const Graph *g, NodeId n, uint64_t operand_bytes,
                        uint64_t largest) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < node_cget(g, n)->result_count; i++) {
    const Type *t = value_type(g, node_result(g, n, i));
    uint64_t bytes = type_bytes_upper(g, t);
    if (t->kind != TYPE_TENSOR || !type_is_static(t) || !add_u64(total, bytes, &total))
      return false;
  }
  if (is_widening(g, n))
    operand_bytes *= 2;
  return (total <= f->limit || total <= operand_bytes) &&
         afford(f, g, n, total, operand_bytes, largest);
}

/* A view of a constant is the constant under another type: no bytes move. */
static ValueId fold_view(Graph *g, NodeId n) {
  ValueId base = node_value(g, n, 0);
  Constant bytes = *value_lazy_constant(g, base);
  return graph_add_constant(g, value_get(g, node_result(g, n, 0))->type, bytes, 0);
}

static ValueId fold_run(Graph *g, NodeId n, uint64_t first) {
  ValueId y = node_result(g, n, 0);
  Constant bytes =
      constant_run(*value_lazy_constant(g, node_value(g, n, 0)),
                   first * dtype_size(value_dtype(g, y)), type_bytes_upper(g, value_type(g, y)));
  return graph_add_constant(g, value_get(g, y)->type, bytes, 0);
}

/* The transpose of a matrix so large that it is better not folded, see Fold.keep_transposes. */
static bool is_large_transpose(const Graph *g, NodeId n, uint64_t operand_bytes) {
  return node_cget(g, n)->op == OP_PERMUTE_COPY && value_rank(g, node_result(g, n, 0)) == 2 &&
         operand_bytes > (1 << 14);
}

/* Unpacking of packed weights, which would be stored unpacked. */
static bool is_large_unpacking(const Graph *g, NodeId n, uint64_t operand_bytes) {
  OpId op = node_cget(g, n)->op;
  return (op == OP_BITWISE_AND_SCALAR || op == OP_BITWISE_RIGHT_SHIFT_TENSOR_SCALAR) &&
         value_dtype(g, node_result(g, n, 0)) == DTYPE_U8 && operand_bytes > (1 << 14);
}

static bool is_large_widening(const Graph *g, NodeId n, uint64_t operand_bytes) {
  if (node_cget(g, n)->op != OP_TO_COPY || operand_bytes <= 1 << 14)
    return false;
  DType from = value_dtype(g, node_value(g, n, 0)), to = value_dtype(g, node_result(g, n, 0));
  return (from == DTYPE_U8 || from == DTYPE_I8) && dtype_size(to) > 1;
}

/* What stays as it is for passes that look for it, or to keep the file small. */
static bool is_kept(const Fold *f, const Graph *g, NodeId n, uint64_t operand_bytes) {
  return (f->keep_transposes && is_large_transpose(g, n, operand_bytes)) ||
         (f->keep_widenings && is_large_widening(g, n, operand_bytes)) ||
         is_large_unpacking(g, n, operand_bytes);
}

static ValueId fold_constants(Fold *f, Builder *b, NodeId n) {
  Graph *g = b->g;
  uint64_t operand_bytes, largest, begin;
  OpId op = node_cget(g, n)->op;
  if (!fold_allowed(f, op) || op_has_trait(op, OP_DATA_SHAPE) ||
      !operands_constant(f, g, n, &operand_bytes, &largest) || is_kept(f, g, n, operand_bytes) ||
      !results_fit(f, g, n, operand_bytes, largest))
    return 0;
  uint32_t count = node_cget(g, n)->result_count;
  if (is_view(op) && count == 1)
    return fold_view(g, n);
  if (is_run(g, n, &begin))
    return fold_run(g, n, begin);
  arena_reset(&f->scratch);
  Tensor *results = ARENA_ARRAY(&f->scratch, Tensor, count);
  DiagSink silent;
  diag_sink_init_silent(&silent);
  Status status =
      interp_eval_const_node(g, n, &f->scratch, results, b->quiet ? &silent : g->ctx->sink);
  diag_sink_release(&silent);
  if (status == STATUS_UNSUPPORTED)
    return 0;
  if (status != STATUS_OK) {
    b->status = status;
    return 0;
  }
  ValueId first = 0;
  for (uint32_t i = 0; i < count; i++) {
    ValueId v = graph_add_constant_copy(g, value_get(g, node_result(g, n, i))->type,
                                        results[i].data, tensor_bytes(&results[i]));
    first = first ? first : v;
  }
  return first;
}

ValueId fold_node(Builder *b, NodeId n) {
  Fold *f = b->fold_data;
  ValueId folded = fold_constants(f, b, n);
  return folded || b->status != STATUS_OK ? folded : fold_known(f, b, n);
}

/* --- what values are computed of --- */

enum { UNKNOWN, CONSTANT, VARYING };
enum { CHAIN_MAX = 64 }; /* steps back */

void fold_chain_init(FoldChain *c, Graph *g, Arena *arena) {
  *c = (FoldChain){.b = builder_make(g, 0, 0), .arena = arena};
  fold_init(&c->fold, UINT64_MAX);
  c->fold.dequantizes = true;
  c->b.fold = fold_node;
  c->b.fold_data = &c->fold;
}

void fold_chain_release(FoldChain *c) { fold_release(&c->fold); }

static bool from_constants(FoldChain *c, ValueId v, uint32_t steps) {
  const Graph *g = c->b.g;
  if (value_is_const(g, v))
    return true;
  if (c->known[v])
    return c->known[v] == CONSTANT;
  NodeId n = value_def(g, v);
  bool constant = n && steps && fold_allowed(&c->fold, node_cget(g, n)->op);
  FOR_OPERANDS(g, n, w, { constant = constant && (!w || from_constants(c, w, steps - 1)); })
  c->known[v] = constant ? CONSTANT : VARYING;
  return constant;
}

/* v, computed by nodes of its own, which the builder folds. */
static ValueId computed(void *user, ValueId v) {
  FoldChain *c = user;
  const Graph *g = c->b.g;
  if (!v || value_is_const(g, v))
    return v;
  NodeId n = value_def(g, v);
  if (c->made[v])
    return c->made[v];
  ValueId first = build_again(&c->b, n, DTYPE_NONE, computed, c);
  for (uint32_t i = 0; first && i < node_cget(g, n)->result_count; i++)
    c->made[node_result(g, n, i)] = first + i;
  c->folded++;
  return c->made[v];
}

void fold_chain(FoldChain *c, NodeId n) {
  Graph *g = c->b.g;
  ValueId v = node_result(g, n, 0);
  if (!c->known) {
    c->known = ARENA_ARRAY(c->arena, uint8_t, (size_t)g->value_count + 1);
    c->made = ARENA_ARRAY(c->arena, ValueId, (size_t)g->value_count + 1);
  }
  if (!from_constants(c, v, CHAIN_MAX))
    return;
  c->b.before = n;
  c->b.loc = node_cget(g, n)->loc;
  ValueId made = computed(c, v);
  if (made && value_is_const(g, made))
    graph_replace_results(g, n, made);
}
