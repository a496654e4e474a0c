/* Rows of a constant matrix by their numbers, from a product of the matrix with one-hot rows:
 *   matmul(cast(eq(i[..., None], [0, 1, ..., n - 1])), w)  ->  embedding of i in w.
 * Exporters of JAX and TensorFlow spell embeddings so. A number below 0 or above n - 1 gives a row
 * of zeros: the matrix gets one before its first row and one behind its last. */
#include <math.h>

#include "ir/builder.h"
#include "ir/match.h"
#include "passes/pass.h"

/* v is the integers 0, 1, ..., count - 1 along its last dim. */
static bool counts_up(const Graph *g, ValueId v, int64_t count) {
  const Constant *c = value_lazy_constant(g, v);
  uint32_t rank = value_rank(g, v);
  if (!c || c->transform || rank == 0 || value_dim(g, v, rank - 1) != count)
    return false;
  size_t size = dtype_size(value_dtype(g, v));
  if (c->size != (uint64_t)count * size)
    return false;
  for (int64_t i = 0; i < count; i++) {
    int32_t narrow = (int32_t)i;
    const void *number = size == sizeof narrow ? (const void *)&narrow : (const void *)&i;
    if (memcmp(c->data + (uint64_t)i * size, number, size) != 0)
      return false;
  }
  return true;
}

/* The integers [..., 1] whose one-hot rows [..., count] the bools v are; 0 if they are not. */
static ValueId ids_of(const Graph *g, ValueId v, int64_t count) {
  NodeId eq = match_op(g, v, OP_EQ_TENSOR);
  for (uint32_t i = 0; eq && i < 2; i++) {
    ValueId ids = node_value(g, eq, i), numbers = node_value(g, eq, 1 - i);
    DType dtype = value_dtype(g, ids);
    Dims dims = value_dims(g, v), own = value_dims(g, ids);
    if ((dtype != DTYPE_I64 && dtype != DTYPE_I32) || value_dtype(g, numbers) != dtype ||
        dims.rank == 0 || dims.d[dims.rank - 1] != count)
      continue;
    dims.d[dims.rank - 1] = 1;
    if (dims_same(dims.d, dims.rank, own.d, own.rank) && counts_up(g, numbers, count))
      return ids;
  }
  return 0;
}

/* v before views that leave its last dim as it is. */
static ValueId before_views(const Graph *g, ValueId v) {
  NodeId view = match_op(g, v, OP_VIEW_COPY);
  for (; view; view = match_op(g, v, OP_VIEW_COPY)) {
    ValueId x = node_value(g, view, 0);
    uint32_t from = value_rank(g, x), to = value_rank(g, v);
    if (from == 0 || to == 0 || value_dim(g, x, from - 1) != value_dim(g, v, to - 1))
      break;
    v = x;
  }
  return v;
}

/* The bools that v is 1 and 0 for. */
static ValueId before_numbers(const Graph *g, ValueId v) {
  double yes, no;
  NodeId where = match_op(g, v, OP_WHERE_SELF), cast = match_op(g, v, OP_TO_COPY);
  if (where && match_number(g, node_value(g, where, 1), &yes) && yes == 1 &&
      match_number(g, node_value(g, where, 2), &no) && no == 0)
    return node_value(g, where, 0);
  return cast && dtype_is_float(value_dtype(g, v)) ? node_value(g, cast, 0) : 0;
}

static ValueId one_hot_ids(const Graph *g, ValueId v, int64_t count) {
  ValueId bools = before_numbers(g, before_views(g, v));
  return bools ? ids_of(g, before_views(g, bools), count) : 0;
}

/* A product with an infinite number or NaN has it in every row. */
static bool all_finite(const Constant *c) {
  float number;
  for (uint64_t i = 0; i + sizeof number <= c->size; i += sizeof number) {
    memcpy(&number, c->data + i, sizeof number);
    if (!isfinite(number))
      return false;
  }
  return true;
}

/* w between two rows of zeros. */
static ValueId guarded_table(Builder *b, ValueId w) {
  int64_t dims[] = {1, value_dim(b->g, w, 1)};
  float *zeros = ARENA_ARRAY(&b->g->arena, float, (size_t)dims[1] + 1);
  ValueId row = build_const(b, DTYPE_F32, 2, dims, zeros), rows[] = {row, w, row};
  return build(b, OP_CAT, A_VALS(rows, COUNT_OF(rows)), A_INT(0));
}

static ValueId product(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0), w = node_value(g, n, 1);
  const Constant *c = value_lazy_constant(g, w);
  if (!c || c->transform || value_dtype(g, w) != DTYPE_F32 || value_rank(g, w) != 2)
    return 0;
  int64_t count = value_dim(g, w, 0);
  ValueId ids = count ? one_hot_ids(g, x, count) : 0;
  if (!ids || !all_finite(c))
    return 0;
  Dims dims = value_dims(g, ids), shape = value_dims(g, node_result(g, n, 0));
  SymInt all = sym_product(&g->syms, dims.d, dims.rank);
  ids = build_view(b, build_cast(b, ids, DTYPE_I64), &all, 1);
  ids = build(b, OP_CLAMP, A_VAL(ids), A_INT(-1), A_INT(count));
  ValueId one = build_scalar_int(b, DTYPE_I64, 1),
          row = build(b, OP_ADD_TENSOR, A_VAL(ids), A_VAL(one), A_INT(1)),
          table = guarded_table(b, w);
  return build_view_as(b, build(b, OP_INDEX_SELECT, A_VAL(table), A_INT(0), A_VAL(row)), shape);
}

Status pass_recover_embedding(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_MM, product, "embeddings"},
                                      {OP_MATMUL, product, "embeddings"}};
  return pass_rewrite(p, g, rules, COUNT_OF(rules));
}
