/* Elements that are gathered at indices which are the same along some dims are rows:
 *   gather(x [b, h, l, p], 3, expand(i [l, k]))  ->  x as [l * p, b * h], at rows l * p + i[l, k].
 * Attention with relative positions (DeBERTa) gathers so for each sample and head. index.Tensor
 * finds a row in the time in which gather finds an element (ExecuTorch 1.4.1); the transposes
 * around it are those of a backend. The indices are looked up in 0, 1, ..., p - 1 before, which
 * counts negative ones from the end and ends the call where one is out of bounds. */
#include "ir/builder.h"
#include "ir/match.h"
#include "passes/pass.h"

/* Times in ns, measured on x86-64. */
enum {
  TIME_ELEMENT = 20, /* of an element that is gathered */
  TIME_ROW = 19,     /* of a row, with its index */
  TIME_MOVE = 2,     /* of an element of a transpose */
  TIME_CALLS = 2000, /* of the further kernel calls */
  ELEMENTS_A_NS = 4  /* that are copied in rows */
};

typedef struct Gathered {
  ValueId x, index; /* the indices before they were expanded */
  uint32_t rank, kept;
  int64_t order[MAX_RANK]; /* of the dims: the kept ones, along which the indices differ, then those
                              along which they are the same */
  int64_t entries;         /* of the dim that is gathered, the last kept one */
  SymInt rows;             /* of all kept dims of the result but that one */
} Gathered;

/* The indices are the same along dim d of the result. */
static bool is_repeated(const Graph *g, ValueId index, ValueId result, uint32_t d) {
  uint32_t missing = value_rank(g, result) - value_rank(g, index);
  return d < missing || (value_dim(g, index, d - missing) == 1 && value_dim(g, result, d) != 1);
}

static bool read_order(Graph *g, NodeId n, Gathered *s) {
  ValueId result = node_result(g, n, 0);
  uint32_t axis = (uint32_t)wrap_dim(node_int(g, n, 1), s->rank), last = 0, count = 0;
  s->rows = 1;
  for (uint32_t d = 0; d < s->rank; d++) {
    if (d != axis && value_dim(g, s->x, d) != value_dim(g, result, d))
      return false;
    if (is_repeated(g, s->index, result, d))
      continue;
    s->order[count++] = last = d;
    s->rows = d == axis ? s->rows : sym_mul(&g->syms, s->rows, value_dim(g, result, d));
  }
  s->kept = count;
  for (uint32_t d = 0; d < s->rank; d++)
    if (is_repeated(g, s->index, result, d))
      s->order[count++] = d;
  return s->kept && s->kept < s->rank && last == axis;
}

/* Where a view only joined the leading dims, along which the indices are the same, what it is made
 * of is transposed instead: backends support no views that split several dynamic dims. */
static void before_view(const Graph *g, Gathered *s) {
  NodeId view = match_op(g, s->x, OP_VIEW_COPY);
  ValueId x = view ? node_value(g, view, 0) : 0;
  uint32_t rank = view ? value_rank(g, x) : 0, leading = s->rank - s->kept;
  bool same = rank >= s->kept && s->order[0] == leading;
  for (uint32_t i = 1; i <= s->kept && same; i++)
    same = value_dim(g, x, rank - i) == value_dim(g, s->x, s->rank - i);
  if (!same)
    return;
  s->x = x;
  s->rank = rank;
  for (uint32_t i = 0; i < rank; i++)
    s->order[i] = (i + rank - s->kept) % rank;
}

static double elements_at_most(const Graph *g, ValueId v, const Gathered *s, uint32_t from,
                               uint32_t to) {
  double count = 1;
  for (uint32_t i = from; i < to; i++)
    count *= (double)sym_upper(&g->syms, value_dim(g, v, s->order[i]));
  return count;
}

static bool pays(const Graph *g, NodeId n, const Gathered *s) {
  ValueId result = node_result(g, n, 0);
  double rows = elements_at_most(g, result, s, 0, s->kept),
         row = elements_at_most(g, result, s, s->kept, s->rank),
         moves = row * (rows + elements_at_most(g, s->x, s, 0, s->kept)) * TIME_MOVE;
  return TIME_CALLS + rows * (TIME_ROW + row / ELEMENTS_A_NS) + moves < rows * row * TIME_ELEMENT;
}

static bool read_gathered(Graph *g, NodeId n, Gathered *s) {
  NodeId expand = match_op(g, node_value(g, n, 2), OP_EXPAND_COPY);
  *s = (Gathered){.x = node_value(g, n, 0)};
  s->rank = value_rank(g, s->x);
  if (!expand || s->rank != value_rank(g, node_result(g, n, 0)))
    return false;
  s->index = node_value(g, expand, 0);
  if (!read_order(g, n, s))
    return false;
  SymInt entries = value_dim(g, s->x, s->order[s->kept - 1]);
  s->entries = entries;
  return sym_is_const(entries) && entries > 0 && pays(g, n, s);
}

/* The row of each index, [rows * count]. */
static ValueId rows_of(Builder *b, const Gathered *s, SymInt count) {
  SymTable *t = &b->g->syms;
  SymInt all = sym_mul(t, s->rows, count);
  ValueId every = build(b, OP_ARANGE, A_INT(s->entries), A_DTYPE(DTYPE_I64)),
          flat = build_view(b, s->index, &all, 1),
          found = build(b, OP_INDEX_TENSOR, A_VAL(every), A_VALS(&flat, 1));
  if (s->rows == 1)
    return found;
  SymInt end = sym_mul(t, s->rows, s->entries), one[] = {s->rows, 1}, each[] = {s->rows, count};
  ValueId begin =
      build(b, OP_ARANGE_START_STEP, A_INT(0), A_INT(end), A_INT(s->entries), A_DTYPE(DTYPE_I64));
  begin = build_view(b, begin, one, 2);
  found = build_view(b, found, each, 2);
  return build_view(b, build_binary(b, OP_ADD_TENSOR, begin, found), &all, 1);
}

static ValueId rewrite(Builder *b, NodeId n) {
  Graph *g = b->g;
  Gathered s;
  if (!read_gathered(g, n, &s))
    return 0;
  Dims to = value_dims(g, node_result(g, n, 0)), dims = {0};
  SymInt count = to.d[s.order[s.kept - 1]];
  int64_t back[MAX_RANK];
  before_view(g, &s);
  for (; dims.rank < s.rank; dims.rank++) {
    dims.d[dims.rank] = value_dim(g, s.x, (uint32_t)s.order[dims.rank]);
    back[s.order[dims.rank]] = dims.rank;
  }
  dims.d[s.kept - 1] = count;
  SymInt row = sym_product(&g->syms, dims.d + s.kept, s.rank - s.kept),
         matrix[] = {sym_mul(&g->syms, s.rows, s.entries), row};
  ValueId index = rows_of(b, &s, count),
          x = build_view(b, build_permute(b, s.x, s.order), matrix, 2),
          y = build(b, OP_INDEX_TENSOR, A_VAL(x), A_VALS(&index, 1));
  return build_view_as(b, build_permute(b, build_view_as(b, y, dims), back), to);
}

Status pass_gather_rows(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_GATHER, rewrite, "gathers"}};
  return pass_rewrite(p, g, rules, COUNT_OF(rules));
}
