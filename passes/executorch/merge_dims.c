/* Arithmetic with a broadcast operand: dims that are broadcast alike become one, [1, 64, 14, 14] *
 * [1, 64, 1, 1] is [64, 196] * [64, 1].
 *
 * Why: the runtime's add, sub, mul and div have loops over rows where, leading dims of 1 aside, the
 * operands have as many dims and one of these is 1 in one of them, or two dims and one (the
 * optimized kernels of ExecuTorch 1.4.1). Otherwise the place of each element is computed
 * of its coordinates: the product above takes 26 us, as rows 4.5. Views of known sizes cost
 * nothing. */
#include "passes/executorch/merge_dims.h"
#include "passes/executorch/views.h"

/* Runs of dims that are broadcast alike. */
typedef struct Runs {
  uint32_t count;
  SymInt large[MAX_RANK], small[MAX_RANK]; /* the operand that is broadcast has 1 or the same */
} Runs;

static Dims without_leading_ones(const Type *t) {
  uint32_t first = 0;
  while (first < t->rank && t->dims[first] == 1)
    first++;
  return dims_make(t->dims + first, t->rank - first);
}

/* Whether the kernel goes by rows. */
static bool goes_by_rows(const Type *x, const Type *y) {
  Dims a = without_leading_ones(x), b = without_leading_ones(y);
  if (a.rank + b.rank == 3 && a.rank && b.rank)
    return a.d[a.rank - 1] == b.d[b.rank - 1];
  uint32_t ones = 0;
  for (uint32_t i = 0; i < a.rank && a.rank == b.rank; i++)
    ones += a.d[i] == 1 || b.d[i] == 1;
  return ones == 1;
}

/* Sizes are known and not 0, and small broadcasts to large, whose dims are those of the result. */
static void find_runs(Graph *g, const Type *large, const Type *small, Runs *runs) {
  bool before = false;
  runs->count = 0;
  for (uint32_t i = 0; i < large->rank; i++) {
    uint32_t missing = large->rank - small->rank;
    SymInt whole = large->dims[i], part = i < missing ? 1 : small->dims[i - missing];
    if (whole == 1)
      continue;
    bool broadcast = part == 1;
    if (runs->count == 0 || broadcast != before) {
      runs->large[runs->count] = runs->small[runs->count] = 1;
      runs->count++;
    }
    SymInt *to = &runs->large[runs->count - 1];
    *to = sym_mul(&g->syms, *to, whole);
    if (!broadcast)
      runs->small[runs->count - 1] = *to;
    before = broadcast;
  }
}

static bool is_plain(const Type *t) {
  if (t->kind != TYPE_TENSOR || t->dtype != DTYPE_F32 || t->order != ORDER_CONTIGUOUS ||
      !type_is_static(t))
    return false;
  for (uint32_t i = 0; i < t->rank; i++)
    if (t->dims[i] == 0)
      return false;
  return true;
}

/* Two runs, or three of which the middle one is broadcast, are rows. */
static bool are_rows(const Runs *runs) {
  return runs->count == 2 || (runs->count == 3 && runs->small[1] == 1);
}

static ValueId reshaped(Builder *b, ValueId v, const SymInt *dims, uint32_t rank) {
  const Type *t = value_type(b->g, v);
  return dims_same(t->dims, t->rank, dims, rank) ? v : build_reshaped(b, v, dims, rank);
}

static ValueId merge(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId y = node_result(g, n, 0), operands[2] = {node_value(g, n, 0), node_value(g, n, 1)};
  const Type *types[] = {value_type(g, operands[0]), value_type(g, operands[1])},
             *result = value_type(g, y);
  if (!is_plain(types[0]) || !is_plain(types[1]) || !is_plain(result))
    return 0;
  uint32_t large = !dims_same(types[0]->dims, types[0]->rank, result->dims, result->rank);
  if (!dims_same(types[large]->dims, types[large]->rank, result->dims, result->rank) ||
      goes_by_rows(types[0], types[1]))
    return 0;
  Runs runs;
  find_runs(g, result, types[1 - large], &runs);
  if (!are_rows(&runs))
    return 0;
  Dims dims = value_dims(g, y);
  for (uint32_t i = 0; i < 2; i++)
    operands[i] = reshaped(b, view_base_of_type(g, operands[i]),
                           i == large ? runs.large : runs.small, runs.count);
  ValueId merged = build_on(b, n, (ArgIn[]){A_VAL(operands[0]), A_VAL(operands[1])}, 2);
  return merged ? build_et_view(b, merged, dims.d, dims.rank) : 0;
}

/* A view that takes back what others did. Views of sizes that vary may give a result the shape that
 * its kernel loses (legalize_cats.c). */
static ValueId view(Builder *b, NodeId n) {
  ValueId y = node_result(b->g, n, 0), base = view_base_of_type(b->g, y);
  return base != y && is_plain(value_type(b->g, y)) && value_def(b->g, base) &&
                 value_same_type(b->g, base, y)
             ? base
             : 0;
}

static void remove_unused_views(Graph *g) {
  for (NodeId n = g->last, before; n; n = before) {
    before = node_cget(g, n)->prev;
    if (node_cget(g, n)->op == OP_ET_VIEW && node_unused(g, n, 0))
      graph_remove_node(g, n);
  }
}

Status merge_broadcast_dims(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_ADD_TENSOR, merge, NULL},
                                      {OP_SUB_TENSOR, merge, NULL},
                                      {OP_MUL_TENSOR, merge, NULL},
                                      {OP_DIV_TENSOR, merge, NULL},
                                      {OP_ET_VIEW, view, NULL}};
  uint64_t counts[COUNT_OF(rules)] = {0}, merged = 0;
  Rewriter r = {
      .rules = rules, .rule_count = COUNT_OF(rules), .name = "broadcasts", .counts = counts};
  TRY(rewrite_graph(g, &r));
  for (uint32_t i = 0; i + 1 < COUNT_OF(counts); i++)
    merged += counts[i];
  if (!merged)
    return STATUS_OK;
  remove_unused_views(g);
  pass_count(p, r.name, merged); /* only where there are some: most networks have none */
  return STATUS_OK;
}
