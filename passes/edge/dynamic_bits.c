/* A tensor seen as another element type is a second tensor at the same place, of fixed sizes: no
 * kernel sets them. Rows whose number varies are followed by copies of the last one up to the
 * greatest number, seen as the other type, and cut to the number that they are. */
#include "passes/edge/dynamic_bits.h"

/* The rows of a matrix that has all dims but the trailing fixed ones in its first. */
static Dims rows_of(Graph *g, ValueId v) {
  Dims dims = value_dims(g, v);
  uint32_t first = dims.rank;
  while (first && sym_is_const(dims.d[first - 1]))
    first--;
  return (Dims){2,
                {sym_product(&g->syms, dims.d, first),
                 sym_product(&g->syms, dims.d + first, dims.rank - first)}};
}

ValueId bits_of_rows(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  if (type_is_static(value_type(g, x)))
    return 0;
  Dims rows = rows_of(g, x);
  SymInt end = sym_sub(&g->syms, rows.d[0], 1), most = sym_upper(&g->syms, rows.d[0]);
  ValueId last = build(b, OP_SCALAR_TENSOR, A_INT(end), A_DTYPE(DTYPE_I64)),
          at = build(b, OP_ARANGE, A_INT(most), A_DTYPE(DTYPE_I64));
  at = build_binary(b, OP_MINIMUM, at, last);
  ValueId all = build(b, OP_INDEX_SELECT, A_VAL(build_view_as(b, x, rows)), A_INT(0), A_VAL(at));
  all = build(b, OP_VIEW_COPY_DTYPE, A_VAL(all), A_DTYPE(value_dtype(g, y)));
  return build_view_as(b, build_slice(b, all, 0, 0, rows.d[0], 1), value_dims(g, y));
}
