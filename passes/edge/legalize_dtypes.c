/* Element types: a call that the runtime's kernel does not support is rewritten on types that it
 * supports, where that gives the same results.
 *
 * - Unsigned integers of 16, 32 and 64 bits are known to few kernels. Where only bits count
 *   they are viewed as signed ones; 16 and 32 bits are widened to i64 elsewhere; of
 * 64 bits, comparisons run on values moved by 2^63, division and shifts are spelt out
 *   (element_types.c).
 * - f16 and bf16 go by f32, small integers and bool by wider ones, whose results are cut back.
 * f64 is never narrowed, integers never become floats: that would change results. What is left then
 * is reported before emission (ir/verify.h). */
#include "interp/fold.h"
#include "passes/edge/dynamic_bits.h"
#include "passes/edge/element_types.h"
#include "passes/pass.h"

typedef struct Legalizer {
  PassContext *p;
  Graph *g;
  Fold fold;
} Legalizer;

static bool type_taken(const Graph *g, const OpRow *row, ValueId v) {
  const Type *t = value_type(g, v);
  return t->kind != TYPE_TENSOR || !row->dtypes || dtype_in((DType)t->dtype, row->dtypes);
}

/* Whether the kernel supports the call as far as the op table knows. */
static bool node_taken(const Graph *g, NodeId n, Arena *scratch) {
  const OpRow *row = op_row(node_cget(g, n)->op);
  FOR_OPERANDS(g, n, v, {
    if (v && !type_taken(g, row, v))
      return false;
  })
  for (uint32_t i = 0; i < node_cget(g, n)->result_count; i++)
    if (!type_taken(g, row, node_result(g, n, i)))
      return false;
  return !row->check || !row->check(g, n, scratch);
}

/* --- rewriting one call --- */

static ArgIn change_arg(Builder *b, NodeId n, uint32_t i, const Change *changes, Arena *scratch) {
  ArgIn in = node_arg_in(b->g, n, i, scratch);
  if (in.kind == ARG_VALUE)
    return A_VAL(change_in(b, (ValueId)in.i, changes));
  if (in.kind == ARG_DTYPE)
    in.i = changes[in.i].how == HOW_KEEP ? in.i : (int64_t)changes[in.i].to;
  if (in.kind == ARG_VALUES) {
    ValueId *values = ARENA_ARRAY(scratch, ValueId, in.count);
    for (uint32_t k = 0; k < in.count; k++)
      values[k] = in.values[k] ? change_in(b, in.values[k], changes) : 0;
    in.values = values;
  }
  return in;
}

/* The width that a literal of the call is taken at; 0 when it is not to be changed. */
static unsigned literal_bits(const Graph *g, NodeId n, const Change *changes) {
  const Node *node = node_cget(g, n);
  DType dtype = node->arg_count && node_arg(g, n, 0)->kind == ARG_VALUE && node_value(g, n, 0)
                    ? value_dtype(g, node_value(g, n, 0))
                    : value_dtype(g, node->first_result);
  return changes[dtype].how == HOW_BITS ? 8 * dtype_size(dtype) : 0;
}

/* A call like n with the types changed, before n; the first of its results, 0 when it does not fit.
 */
static ValueId build_changed(Builder *b, NodeId n, const Change *changes, Arena *scratch) {
  Graph *g = b->g;
  ArgIn args[SCHEMA_MAX_ARGS];
  uint32_t count = g->nodes[n].arg_count;
  OpId op = g->nodes[n].op;
  unsigned bits = literal_bits(g, n, changes);
  for (uint32_t i = 0; i < count && b->status == STATUS_OK; i++) {
    args[i] = change_arg(b, n, i, changes, scratch);
    bool literal = op_schema(op)->args[i].type == ST_SCALAR && args[i].kind == ARG_INT;
    if (literal && bits && bits < 64 && sym_is_const(args[i].i))
      args[i].i = sign_extend(args[i].i, bits);
  }
  return build_args(b, op, args, count);
}

static void replace_results(Builder *b, NodeId n, ValueId first, const Change *changes) {
  Graph *g = b->g;
  for (uint32_t i = 0; i < g->nodes[n].result_count; i++) {
    ValueId old = node_result(g, n, i), new = first + i;
    if (value_type(g, old)->kind == TYPE_TENSOR)
      new = change_out(b, new, value_dtype(g, old), changes);
    graph_replace_value(g, old, new);
  }
}

/* Removes what an attempt inserted between `from` and n. */
static void take_back(Graph *g, NodeId from, NodeId n) {
  for (NodeId m = g->nodes[n].prev, before; m != from; m = before) {
    before = g->nodes[m].prev;
    graph_remove_node(g, m);
  }
}

static bool results_match(const Graph *g, NodeId n, ValueId first) {
  for (uint32_t i = 0; i < g->nodes[n].result_count; i++) {
    const Type *old = value_type(g, node_result(g, n, i)), *new = value_type(g, first + i);
    if (old->kind != new->kind || !dims_same(old->dims, old->rank, new->dims, new->rank))
      return false;
  }
  return true;
}

/* Rewrites n with these changes if its kernel supports it then. */
static bool try_changes(Legalizer *l, NodeId n, const Change *changes) {
  Graph *g = l->g;
  NodeId from = g->nodes[n].prev;
  Builder b = builder_make(g, n, g->nodes[n].loc);
  b.fold = fold_node;
  b.fold_data = &l->fold;
  b.quiet = true;
  ValueId first = build_changed(&b, n, changes, l->p->scratch);
  NodeId made = first ? value_def(g, first) : 0;
  bool taken = first && (!made || node_taken(g, made, l->p->scratch)) && results_match(g, n, first);
  if (taken)
    replace_results(&b, n, first, changes);
  if (!taken)
    take_back(g, from, n);
  else if (b.status != STATUS_OK)
    BUG("a result of %s cannot be converted back", op_row(g->nodes[n].op)->id);
  return taken;
}

/* --- which changes --- */

/* All element types of the operands and results of n as a set. */
static DTypeSet dtypes_of(const Graph *g, NodeId n, bool results) {
  const Node *node = node_cget(g, n);
  DTypeSet set = 0;
  FOR_OPERANDS(g, n, v, {
    if (v && value_type(g, v)->kind == TYPE_TENSOR)
      set |= dtype_bit(value_dtype(g, v));
  })
  for (uint32_t i = 0; results && i < node->result_count; i++)
    if (value_type(g, node_result(g, n, i))->kind == TYPE_TENSOR)
      set |= dtype_bit(value_dtype(g, node_result(g, n, i)));
  return set;
}

static void set_change(Change *changes, DType from, How how, DType to) {
  changes[from] = (Change){how, to};
}

/* Conversions between integers, u64 among them, by way of i64. */
static bool by_way_of_i64(const Graph *g, NodeId n) {
  bool floats = (dtypes_of(g, n, true) & DTS_FLOAT) != 0;
  return (node_cget(g, n)->op == OP_TO_COPY || node_cget(g, n)->op == OP_TO_DIM_ORDER_COPY) &&
         !floats;
}

static bool unsigned_changes(const Graph *g, NodeId n, Change *changes) {
  OpId op = node_cget(g, n)->op;
  DTypeSet wide = dtypes_of(g, n, true) & DT(U64);
  memset(changes, 0, CHANGE_COUNT * sizeof *changes);
  if (op_has_trait(op, OP_SIGN_BLIND)) {
    set_change(changes, DTYPE_U16, HOW_BITS, DTYPE_I16);
    set_change(changes, DTYPE_U32, HOW_BITS, DTYPE_I32);
    set_change(changes, DTYPE_U64, HOW_BITS, DTYPE_I64);
    return true;
  }
  set_change(changes, DTYPE_U16, HOW_WIDEN, DTYPE_I64);
  set_change(changes, DTYPE_U32, HOW_WIDEN, DTYPE_I64);
  if (wide && op_has_trait(op, OP_SIGN_ORDERS))
    set_change(changes, DTYPE_U64, HOW_FLIP, DTYPE_I64);
  else if (wide && by_way_of_i64(g, n))
    set_change(changes, DTYPE_U64, HOW_BITS, DTYPE_I64);
  else if (wide)
    return false;
  return true;
}

/* Wider types in the order in which they are tried. */
typedef struct Wider {
  DType from, to;
} Wider;
static const Wider wider[] = {
    {DTYPE_F16, DTYPE_F32},  {DTYPE_BF16, DTYPE_F32}, {DTYPE_BOOL, DTYPE_U8},
    {DTYPE_I8, DTYPE_I32},   {DTYPE_U8, DTYPE_I32},   {DTYPE_I16, DTYPE_I32},
    {DTYPE_BOOL, DTYPE_I32}, {DTYPE_I8, DTYPE_I64},   {DTYPE_U8, DTYPE_I64},
    {DTYPE_I16, DTYPE_I64},  {DTYPE_I32, DTYPE_I64},  {DTYPE_BOOL, DTYPE_I64}};

static void report(const Legalizer *l, NodeId n, DType from, DType to) {
  (void)diag_report(
      l->p->sink, DIAG_CAST_INSERTED, node_place(l->g, n), "'" SV_FMT "' on %s runs on %s",
      SV_ARG(op_schema(node_cget(l->g, n)->op)->full), dtype_name(from), dtype_name(to));
}

static bool widen(Legalizer *l, NodeId n) {
  Graph *g = l->g;
  const OpRow *row = op_row(node_cget(g, n)->op);
  DTypeSet set = dtypes_of(g, n, true);
  for (size_t i = 0; i < COUNT_OF(wider); i++) {
    bool refused = row->dtypes && !dtype_in(wider[i].from, row->dtypes);
    if (!dtype_in(wider[i].from, set) || (row->dtypes && !refused && !row->check))
      continue;
    Change changes[CHANGE_COUNT] = {{0}};
    set_change(changes, wider[i].from, HOW_CAST, wider[i].to);
    if (!try_changes(l, n, changes))
      continue;
    report(l, n, wider[i].from, wider[i].to);
    return true;
  }
  return false;
}

/* Bits of tensors that may have no elements cannot be viewed, see dynamic_bits.c. */
static bool may_be_empty(const Graph *g, ValueId v) {
  const Type *t = value_type(g, v);
  for (uint32_t i = 0; t->kind == TYPE_TENSOR && i < t->rank; i++)
    if (!sym_is_const(t->dims[i]) && sym_lower(&g->syms, t->dims[i]) < 1)
      return true;
  return false;
}

static bool some_may_be_empty(const Graph *g, NodeId n) {
  FOR_OPERANDS(g, n, v, {
    if (v && may_be_empty(g, v))
      return true;
  })
  for (uint32_t i = 0; i < g->nodes[n].result_count; i++)
    if (may_be_empty(g, node_result(g, n, i)))
      return true;
  return false;
}

/* Division, right shift and further ops of u64. */
static bool spell_out(Legalizer *l, NodeId n) {
  Graph *g = l->g;
  Builder b = builder_make(g, n, g->nodes[n].loc);
  b.fold = fold_node;
  b.fold_data = &l->fold;
  ValueId v = unsigned64_spelt_out(&b, n);
  if (!v || b.status != STATUS_OK)
    return false;
  graph_replace_value(g, node_result(g, n, 0), v);
  return true;
}

static bool legalize(Legalizer *l, NodeId n) {
  DTypeSet set = dtypes_of(l->g, n, true) & DTS_UNSIGNED;
  if (!set)
    return widen(l, n);
  Change changes[CHANGE_COUNT];
  if (some_may_be_empty(l->g, n))
    return false;
  if (!unsigned_changes(l->g, n, changes))
    return spell_out(l, n);
  if (!try_changes(l, n, changes))
    return false;
  DType from = (DType)__builtin_ctz(set);
  report(l, n, from, changes[from].to);
  return true;
}

static void remove_unused(Graph *g) {
  for (NodeId n = g->last, before; n; n = before) {
    before = g->nodes[n].prev;
    if (!op_has_trait(g->nodes[n].op, OP_EFFECT) && node_unused(g, n, 0))
      graph_remove_node(g, n);
  }
}

/* Whether a tensor whose sizes vary is seen as another type. */
static bool some_bits_vary(const Graph *g) {
  for (FOR_NODES(g, n))
    if (node_cget(g, n)->op == OP_VIEW_COPY_DTYPE &&
        !type_is_static(value_type(g, node_result(g, n, 0))))
      return true;
  return false;
}

Status pass_legalize_dtypes(PassContext *p, Graph *g) {
  static const RewriteRule dynamic_bits[] = {{OP_VIEW_COPY_DTYPE, bits_of_rows, "views"}};
  Legalizer l = {.p = p, .g = g};
  uint64_t changed = 0;
  fold_init(&l.fold, p->options ? p->options->fold_limit : 0);
  for (NodeId n = g->first, next; n; n = next) {
    next = g->nodes[n].next;
    const OpRow *row = op_row(node_cget(g, n)->op);
    if (!row->out || (row->traits & OP_EFFECT) || node_taken(g, n, p->scratch) || !legalize(&l, n))
      continue;
    graph_remove_node(g, n);
    changed++;
  }
  if (changed)
    remove_unused(g);
  fold_release(&l.fold);
  if (some_bits_vary(g))
    TRY(pass_rewrite(p, g, dynamic_bits, COUNT_OF(dynamic_bits)));
  pass_count(p, "calls", changed);
  return STATUS_OK;
}
