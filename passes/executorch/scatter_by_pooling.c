/* Sums at run-time indices along the last dim by the kernel that propagates gradients through max
 * pooling: it adds each element to the place of its plane that an index names, and does nothing
 * else. Its planes are as long as the indices and the entries together, which windows of one
 * element more than there are entries pool to the number of indices, whatever that is.
 *
 * Why: index_put and scatter_add find the coordinates of each element by divisions, 15 to 20 ns an
 * element (ExecuTorch 1.4.1); the gradient takes 1 to 2, and the copies around it 2 to 3.
 *
 * That kernel does not check its indices: they are first looked up in 0, 1, 2, … by index.Tensor,
 * which counts negative ones from the end and ends the call where one is out of bounds. It does not
 * fill its result with zeros either (a later one may), so that is done before. It refuses windows
 * that find no place, which they do where there are no indices. */
#include "passes/executorch/scatter_by_pooling.h"

#include "ir/match.h"
#include "passes/pass.h"

enum {
  ELEMENTS_MIN = 192,        /* from about 100 on the further calls take less than they save */
  INDEX_BYTES_MAX = 1 << 19, /* of repeated indices: planes are computed in parts beyond, */
  PARTS_MAX = 64,            /* of at most so many */
  ENTRIES_MAX = 1 << 19,     /* windows are one larger */
  COUNT_MAX = 1 << 28        /* sizes with a smaller bound do not overflow */
};

/* The only index tensor, and the dim that it is for. */
static ValueId only_index(const Graph *g, NodeId n, uint32_t *axis) {
  uint32_t count = node_list_count(g, n, 1), tensors = 0;
  for (uint32_t i = 0; i < count; i++)
    if (node_list_value(g, n, 1, i)) {
      *axis = i;
      tensors++;
    }
  return tensors == 1 ? node_list_value(g, n, 1, *axis) : 0;
}

/* Whether values are as large as what they are added to, not repeated, in rows of a fixed size;
 * then it is counted. */
static bool count_values(Graph *g, IndexedSum *s) {
  const Type *self = value_type(g, s->self), *values = value_type(g, s->values),
             *index = value_type(g, s->index);
  s->entries = self->dims[s->axis];
  s->count = s->rows = 1;
  for (uint32_t i = 0; i < index->rank; i++)
    s->count = sym_mul(&g->syms, s->count, index->dims[i]);
  for (uint32_t i = 0; i < values->rank; i++) {
    bool indexed = i >= s->axis && i < s->axis + index->rank;
    uint32_t own = i < s->axis ? i : i + 1 - index->rank;
    if (values->dims[i] != (indexed ? index->dims[i - s->axis] : self->dims[own]) ||
        (!indexed && !sym_is_const(values->dims[i])))
      return false;
    s->rows *= indexed ? 1 : values->dims[i];
  }
  return true;
}

bool read_indexed_sum(Graph *g, NodeId n, IndexedSum *s) {
  *s = (IndexedSum){.self = node_value(g, n, 0), .values = node_value(g, n, 2)};
  s->index = only_index(g, n, &s->axis);
  if (!s->index || !node_bool(g, n, 3) || !dtype_is_float(value_dtype(g, s->self)) ||
      value_dtype(g, s->index) != DTYPE_I64 ||
      value_rank(g, s->values) + 1 != value_rank(g, s->self) + value_rank(g, s->index) ||
      !count_values(g, s))
    return false;
  int64_t most = sym_upper(&g->syms, s->count), entries = sym_upper(&g->syms, s->entries);
  return sym_lower(&g->syms, s->count) >= 1 && entries <= ENTRIES_MAX && most <= COUNT_MAX &&
         most * s->rows >= ELEMENTS_MIN;
}

/* Planes that are computed together. */
static int64_t planes_at_once(const Graph *g, const IndexedSum *s) {
  int64_t count = sym_upper(&g->syms, s->count),
          most = INDEX_BYTES_MAX / (count * (int64_t)sizeof(int64_t)),
          least = (s->rows + PARTS_MAX - 1) / PARTS_MAX, n = most > least ? most : least;
  return n < s->rows ? n : s->rows;
}

/* The sums of `planes` planes, [planes, 1, entries]. */
static ValueId sums(Builder *b, const IndexedSum *s, ValueId values, ValueId indices,
                    int64_t planes) {
  Graph *g = b->g;
  int64_t entries = sym_upper(&g->syms, s->entries);
  SymInt size[] = {planes, 1, sym_add(&g->syms, s->count, entries)};
  ValueId zeros = build(b, OP_FULL, A_INTS(size, 3), A_INT(0), A_DTYPE(value_dtype(g, s->self)));
  ValueId y = build(b, OP_MAX_POOL2D_WITH_INDICES_BACKWARD, A_VAL(values), A_VAL(zeros),
                    A_INTS(((SymInt[]){1, entries + 1}), 2), A_INTS(((SymInt[]){1, 1}), 2),
                    A_INTS(((SymInt[]){0, 0}), 2), A_INTS(((SymInt[]){1, 1}), 2), A_BOOL(false),
                    A_VAL(indices), A_VAL(zeros));
  return build_slice(b, y, 2, 0, s->entries, 1);
}

static ValueId rewrite(Builder *b, NodeId n) {
  Graph *g = b->g;
  IndexedSum s;
  if (!read_indexed_sum(g, n, &s) || s.axis + 1 != value_rank(g, s.self))
    return 0;
  int64_t most = planes_at_once(g, &s), parts = (s.rows + most - 1) / most;
  ValueId every = build(b, OP_ARANGE, A_INT(s.entries), A_DTYPE(DTYPE_I64)),
          flat = build_view(b, s.index, &s.count, 1),
          found = build(b, OP_INDEX_TENSOR, A_VAL(every), A_VALS(&flat, 1)),
          row = build_view(b, found, (SymInt[]){1, 1, s.count}, 3),
          indices = build_expand(b, row, (SymInt[]){most, 1, s.count}, 3),
          values = build_view(b, s.values, (SymInt[]){s.rows, 1, s.count}, 3);
  ValueId *done = ARENA_ARRAY(b->data, ValueId, (size_t)parts);
  for (int64_t i = 0; i < parts; i++) {
    int64_t first = i * most, planes = most < s.rows - first ? most : s.rows - first;
    ValueId some = build_slice(b, values, 0, first, first + planes, 1),
            places = build_slice(b, indices, 0, 0, planes, 1);
    done[i] = sums(b, &s, some, places, planes);
  }
  ValueId all = parts == 1 ? done[0] : build(b, OP_CAT, A_VALS(done, (uint32_t)parts), A_INT(0));
  ValueId y = build_view_as(b, all, value_dims(g, s.self));
  return match_filled(g, s.self, 0) ? y : build(b, OP_ADD_TENSOR, A_VAL(s.self), A_VAL(y));
}

Status pass_scatter_by_pooling(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_INDEX_PUT, rewrite, "sums"}};
  Rewriter r = {.rules = rules, .rule_count = COUNT_OF(rules), .data = p->scratch};
  return pass_rewriter(p, g, &r);
}
