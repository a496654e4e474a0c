/* Control flow: what the markers of ir/region.h say about types. Sizes that differ from branch to
 * branch or from iteration to iteration are symbols that are known only while running; with them a
 * rule is handed the types of its results, as nonzero is, and keeps them when they fit. */
#include "ir/region.h"
#include "ops/ops.h"
#include "ops/shape_util.h"

static bool is_unbacked(const Graph *g, SymInt d) {
  return !sym_is_const(d) && sym_expr(&g->syms, d)->kind == SYM_SYMBOL &&
         sym_expr(&g->syms, d)->unbacked;
}

/* Dim i of result r as it is now, which the text or a pass may have given; -1 when there is none.
 */
static SymInt handed_dim(const Graph *g, NodeId n, uint32_t r, uint32_t rank, uint32_t i) {
  const Type *t = value_type(g, node_result(g, n, r));
  return t->kind == TYPE_TENSOR && t->rank == rank ? t->dims[i] : -1;
}

/* A size in [lo, hi]: the one that is there (-1: none), or a new symbol. What is known of a size
 * may be too little to tell that it is not negative. */
static SymInt size_between(Graph *g, SymInt have, int64_t lo, int64_t hi) {
  lo = max_i64(lo, 0);
  hi = max_i64(hi, 0);
  if (sym_lower(&g->syms, have) >= lo && sym_upper(&g->syms, have) <= hi)
    return have;
  return sym_symbol(&g->syms, SV(""), lo, hi, true);
}

/* A text has the results already, so that it can give their types. */
static Status set_results(Graph *g, NodeId n, uint32_t count) {
  uint32_t have = node_cget(g, n)->result_count;
  if (have && have != count)
    return bad_arg(g, n, "there are %u results, not %u", count, have);
  result_list_size(g, n, count);
  return STATUS_OK;
}

static Status check_condition(Graph *g, NodeId n, uint32_t i) {
  ValueId condition = node_value(g, n, i);
  if (!condition)
    return STATUS_OK;
  Dims d = value_dims(g, condition);
  if (value_dtype(g, condition) != DTYPE_BOOL)
    return bad_dtype(g, n, "the condition is %s", dtype_name(value_dtype(g, condition)));
  return shape_equal(g, n, dims_numel(g, &d), 1, "elements of the condition");
}

Status shape_if(Graph *g, NodeId n) { return check_condition(g, n, 0); }

/* --- endif --- */

/* Pairs of sizes that the branches give and the size that each became. Beyond the limit equal pairs
 * become several symbols, of which less is known. */
enum { JOINED_MAX = 32 };

typedef struct JoinedSizes {
  SymInt from[JOINED_MAX][2], to[JOINED_MAX];
  uint32_t count;
} JoinedSizes;

/* The size of one dim of the results: of equal pairs the same, as all caches of a decoder have one
 * length whichever branch ran. */
static SymInt join_sizes(Graph *g, JoinedSizes *j, SymInt have, SymInt x, SymInt y) {
  SymTable *t = &g->syms;
  int64_t lo = min_i64(sym_lower(t, x), sym_lower(t, y)),
          hi = max_i64(sym_upper(t, x), sym_upper(t, y));
  for (uint32_t i = 0; i < j->count && !is_unbacked(g, have); i++)
    if (j->from[i][0] == x && j->from[i][1] == y)
      return j->to[i];
  SymInt joined = size_between(g, is_unbacked(g, have) ? have : -1, lo, hi);
  if (j->count < JOINED_MAX) {
    j->from[j->count][0] = x;
    j->from[j->count][1] = y;
    j->to[j->count++] = joined;
  }
  return joined;
}

static Status join_branches(Graph *g, NodeId n, uint32_t k, JoinedSizes *joined) {
  ValueId a = node_list_value(g, n, 0, k), b = node_list_value(g, n, 1, k);
  Dims x = value_dims(g, a), y = value_dims(g, b);
  if (value_dtype(g, a) != value_dtype(g, b))
    return bad_dtype(g, n, "result %u is %s in one branch and %s in the other", k,
                     dtype_name(value_dtype(g, a)), dtype_name(value_dtype(g, b)));
  if (x.rank != y.rank)
    return bad_shape(g, n, "result %u has rank %u in one branch and %u in the other", k, x.rank,
                     y.rank);
  for (uint32_t i = 0; i < x.rank; i++)
    if (x.d[i] != y.d[i])
      x.d[i] = join_sizes(g, joined, handed_dim(g, n, k, x.rank, i), x.d[i], y.d[i]);
  return shape_result(g, n, k, value_dtype(g, a), &x);
}

Status shape_endif(Graph *g, NodeId n) {
  uint32_t count = node_list_count(g, n, 0);
  if (count != node_list_count(g, n, 1))
    return bad_arg(g, n, "the branches give %u and %u values", count, node_list_count(g, n, 1));
  TRY(set_results(g, n, count));
  JoinedSizes joined = {.count = 0};
  for (uint32_t k = 0; k < count; k++)
    TRY(join_branches(g, n, k, &joined));
  return STATUS_OK;
}

/* --- loops --- */

/* The number of the iteration, as a symbol of its own. */
static void number_iterations(Graph *g, NodeId n, int64_t most) {
  const Type *have = value_type(g, node_result(g, n, 0));
  SymInt i = have->kind == TYPE_INT && have->rank == 1 && is_unbacked(g, have->dims[0])
                 ? have->dims[0]
                 : -1;
  i = size_between(g, i, 0, most == INT64_MAX ? most : max_i64(most, 1) - 1);
  result_type(g, n, 0, graph_scalar_type(g, TYPE_INT, i, true));
}

static Status begin_state(Graph *g, NodeId n, uint32_t k) {
  ValueId init = node_list_value(g, n, 2, k);
  Dims d = value_dims(g, init);
  for (uint32_t i = 0; i < d.rank; i++) {
    SymInt have = handed_dim(g, n, 1 + k, d.rank, i);
    bool holds = is_unbacked(g, have) && sym_lower(&g->syms, have) <= sym_lower(&g->syms, d.d[i]) &&
                 sym_upper(&g->syms, d.d[i]) <= sym_upper(&g->syms, have);
    d.d[i] = holds ? have : d.d[i];
  }
  return shape_result(g, n, 1 + k, value_dtype(g, init), &d);
}

Status shape_loop(Graph *g, NodeId n) {
  const Arg *trip = node_arg(g, n, 0);
  uint32_t count = node_list_count(g, n, 2);
  int64_t most = INT64_MAX;
  SymInt known;
  if (trip->kind == ARG_INT) {
    TRY(arg_int(g, n, 0, &known));
    most = sym_upper(&g->syms, known);
  } else if (trip->kind != ARG_NONE &&
             (trip->kind != ARG_VALUE || value_type(g, node_value(g, n, 0))->kind != TYPE_INT)) {
    return bad_arg(g, n, "the number of iterations is not an integer");
  }
  TRY(check_condition(g, n, 1));
  TRY(set_results(g, n, 1 + count));
  number_iterations(g, n, most);
  for (uint32_t k = 0; k < count; k++)
    TRY(begin_state(g, n, k));
  return STATUS_OK;
}

/* A state may change its sizes where the loop has given it a symbol of its own for them. */
static Status end_state(Graph *g, NodeId n, NodeId loop, uint32_t k) {
  ValueId next = node_list_value(g, n, 1, k), init = node_list_value(g, loop, 2, k),
          state = node_result(g, loop, 1 + k);
  Dims x = value_dims(g, next), begin = value_dims(g, init), d = value_dims(g, state);
  if (value_dtype(g, next) != value_dtype(g, state))
    return bad_dtype(g, n, "state %u changes from %s to %s", k, dtype_name(value_dtype(g, state)),
                     dtype_name(value_dtype(g, next)));
  if (x.rank != d.rank)
    return bad_shape(g, n, "state %u changes its rank from %u to %u", k, d.rank, x.rank);
  for (uint32_t i = 0; i < d.rank; i++) {
    SymTable *t = &g->syms;
    bool varies = d.d[i] != begin.d[i];
    if (x.d[i] != d.d[i] && (!varies || sym_lower(t, x.d[i]) > sym_upper(t, d.d[i])))
      return bad_shape(g, n, "dim %u of state %u changes from %s to %s", i, k, dim_text(g, d.d[i]),
                       dim_text(g, x.d[i]));
    if (varies)
      d.d[i] = size_between(g, handed_dim(g, n, k, d.rank, i), sym_lower(t, d.d[i]),
                            sym_upper(t, d.d[i]));
  }
  return shape_result(g, n, k, value_dtype(g, state), &d);
}

Status shape_next(Graph *g, NodeId n) {
  NodeId loop = region_opening(g, n);
  uint32_t count = node_list_count(g, n, 1);
  if (!loop)
    return bad_arg(g, n, "there is no loop that it could end");
  if (count != node_list_count(g, loop, 2))
    return bad_arg(g, n, "the loop has %u states, not %u", node_list_count(g, loop, 2), count);
  TRY(check_condition(g, n, 0));
  TRY(set_results(g, n, count));
  for (uint32_t k = 0; k < count; k++)
    TRY(end_state(g, n, loop, k));
  return STATUS_OK;
}

/* --- what a loop collects --- */

/* Rows 0 to index, of which the call writes the last. */
Status shape_et_copy_index(Graph *g, NodeId n) {
  SymInt index;
  ValueId to = node_value(g, n, 0), from = node_value(g, n, 1);
  TRY(arg_int(g, n, 2, &index));
  Dims d = value_dims(g, to), row = value_dims(g, from);
  if (value_dtype(g, to) != value_dtype(g, from))
    return bad_dtype(g, n, "a row of %s cannot be copied to %s", dtype_name(value_dtype(g, from)),
                     dtype_name(value_dtype(g, to)));
  if (d.rank != row.rank + 1)
    return bad_shape(g, n, "a row of rank %u cannot be copied to a tensor of rank %u", row.rank,
                     d.rank);
  for (uint32_t i = 0; i < row.rank; i++)
    TRY(shape_equal(g, n, d.d[i + 1], row.d[i], "dims of the row and of the tensor"));
  if (sym_upper(&g->syms, index) < 0)
    return bad_arg(g, n, "a row cannot have the index %s", dim_text(g, index));
  SymInt rows = sym_add(&g->syms, index, 1);
  int64_t bound = sym_upper(&g->syms, d.d[0]); /* the call fails beyond it */
  d.d[0] = sym_upper(&g->syms, rows) > bound ? sym_min(&g->syms, rows, bound) : rows;
  return shape_result(g, n, 0, value_dtype(g, to), &d);
}
