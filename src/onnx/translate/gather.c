/* Gather, GatherElements, GatherND, Compress, ReverseSequence: reading by index. Kernels other than
 * index.Tensor refuse negative indices, so those that may be negative are wrapped in the graph. */
#include "onnx/data_sizes.h"
#include "onnx/express.h"

/* --- Gather --- */

/* Known indices on an axis of known size: one index is a select, a run is a slice, else
 * index_select. */
static ValueId gather_known(Import *im, ValueId x, uint32_t axis, Ints values, bool scalar) {
  int64_t size = ex_dim(im, x, axis);
  int64_t *index = ARENA_ARRAY(&im->scratch, int64_t, values.count + 1);
  bool run = values.count > 0;
  for (uint32_t i = 0; i < values.count; i++) {
    int64_t at = values.at[i];
    if (at < -size || at >= size)
      return import_fail(im, DIAG_ARG_RANGE, "index %lld is outside a dimension of %lld entries",
                         (long long)at, (long long)size);
    index[i] = at < 0 ? at + size : at;
    run &= index[i] == index[0] + (int64_t)i;
  }
  if (scalar)
    return ex_pick(im, x, axis, index[0]);
  if (run)
    return ex_slice(im, x, axis, index[0], index[0] + values.count);
  return ex_index_select(im, x, axis, build_const_ints(&im->b, index, values.count));
}

/* Dims of x with those of the indices in the place of axis. */
static Dims gathered_shape(const Import *im, ValueId x, uint32_t axis, ValueId index) {
  Dims from = shape_of(im, x), at = shape_of(im, index), to = {0};
  for (uint32_t i = 0; i < axis; i++)
    to.d[to.rank++] = from.d[i];
  for (uint32_t i = 0; i < at.rank; i++)
    to.d[to.rank++] = at.d[i];
  for (uint32_t i = axis + 1; i < from.rank; i++)
    to.d[to.rank++] = from.d[i];
  return to;
}

/* index.Tensor with one vector of indices, on the axis; it takes negative ones. */
static ValueId index_axis(Import *im, ValueId x, uint32_t axis, ValueId index) {
  ValueId list[MAX_RANK] = {0};
  list[axis] = index;
  return build(&im->b, OP_INDEX_TENSOR, A_VAL(x), A_VALS(list, axis + 1));
}

void translate_gather(Import *im) {
  ValueId x = in_required(im, 0), index = in_required(im, 1);
  uint32_t axis = import_axis(im, attr_int(im, "axis", 0), ex_rank(im, x)),
           index_rank = ex_rank(im, index);
  if (ex_rank(im, x) - 1 + index_rank > MAX_RANK)
    import_fail(im, DIAG_RANK_LIMIT, "the result would have more than %d dimensions", MAX_RANK);
  if (!import_ok(im))
    return;
  Dims to = gathered_shape(im, x, axis, index);
  Ints values;
  bool known = in_indices(im, 1, &values);
  ValueId y;
  if (known && sym_is_const(ex_dim(im, x, axis)))
    y = gather_known(im, x, axis, values, index_rank == 0);
  else if (known && index_rank == 0)
    y = ex_pick(im, x, axis, values.at[0]);
  else
    y = index_axis(im, x, axis, ex_flat(im, index));
  out(im, 0, ex_view_as(im, y, to));
}

void translate_gather_elements(Import *im) {
  ValueId x = in_required(im, 0), index = in_required(im, 1);
  uint32_t axis = import_axis(im, attr_int(im, "axis", 0), ex_rank(im, x));
  bool fits = ex_rank(im, index) == ex_rank(im, x);
  ValueId rows = fits ? ex_row_index(im, x, axis, index) : 0;
  if (rows)
    out(im, 0, index_axis(im, x, axis, rows));
  else
    out(im, 0, ex_gather(im, x, axis, ex_wrap_index(im, index, ex_dim(im, x, axis))));
}

/* --- GatherND --- */

/* Places of known tuples in the dims that they index, as one dim; NULL when a size is not known or
 * a tuple is outside. */
static int64_t *flat_places(Import *im, const Dims *from, uint32_t tuple, Ints values) {
  int64_t *places = ARENA_ARRAY(&im->scratch, int64_t, values.count / tuple + 1);
  for (uint32_t i = 0; i < values.count; i++) {
    SymInt size = from->d[i % tuple];
    int64_t at = values.at[i], *place = &places[i / tuple];
    if (!sym_is_const(size) || at < -size || at >= size)
      return NULL;
    *place = (i % tuple ? *place * size : 0) + (at < 0 ? at + size : at);
  }
  return places;
}

/* Known tuples: rows by their places. A row is copied at once, where index.Tensor looks up each
 * element. */
static bool gather_tuples(Import *im, ValueId x, uint32_t tuple, const Dims *from, const Dims *at) {
  Ints values;
  int64_t *places =
      in_indices(im, 1, &values) && values.count > 0 ? flat_places(im, from, tuple, values) : NULL;
  Dims rows = {1, {places ? shape_product(im, from->d, tuple) : 0}}, to = *at;
  to.rank--;
  if (!places || to.rank + from->rank - tuple > MAX_RANK)
    return false;
  for (uint32_t i = tuple; i < from->rank; i++)
    to.d[to.rank++] = rows.d[rows.rank++] = from->d[i];
  ValueId y =
      gather_known(im, ex_view_as(im, x, rows), 0, (Ints){places, values.count / tuple}, false);
  out(im, 0, ex_view_as(im, y, to));
  return true;
}

/* The tuples of the last dim become one index tensor a dim; batch dims are counted. */
void translate_gather_nd(Import *im) {
  ValueId x = in_required(im, 0), indices = in_required(im, 1);
  int64_t batch = attr_int(im, "batch_dims", 0);
  Dims from = shape_of(im, x), at = shape_of(im, indices);
  SymInt tuple = at.rank ? at.d[at.rank - 1] : 0;
  if (at.rank == 0 || batch < 0 || batch >= at.rank || !sym_is_const(tuple) || tuple < 1 ||
      batch + tuple > from.rank) {
    import_fail(im, DIAG_SHAPE_MISMATCH,
                "indices of rank %u with %lld batch dimensions do not fit a tensor of rank %u",
                at.rank, (long long)batch, from.rank);
    return;
  }
  if (batch == 0 && gather_tuples(im, x, (uint32_t)tuple, &from, &at))
    return;
  ValueId list[MAX_RANK] = {0};
  for (uint32_t i = 0; i < batch; i++)
    list[i] = ex_along_axis(im, ex_arange(im, from.d[i]), i, at.rank - 1);
  for (uint32_t k = 0; k < tuple; k++)
    list[batch + k] = ex_component(im, indices, k);
  out(im, 0, build(&im->b, OP_INDEX_TENSOR, A_VAL(x), A_VALS(list, (uint32_t)(batch + tuple))));
}

/* --- Compress --- */

/* ONNX wants a list that is no longer than the dim; others are taken as ONNX Runtime does. */
static ValueId compress_condition(Import *im, SymInt size) {
  ValueId condition = in_required(im, 1);
  uint32_t rank = ex_rank(im, condition);
  if (!import_ok(im))
    return 0;
  if (rank != 1) {
    (void)diag_report(im->ctx->sink, DIAG_BEYOND_STANDARD, graph_place(im->g, im->b.loc),
                      "the condition has rank %u, not 1: it is read as a list", rank);
    condition = ex_flat(im, condition);
  }
  SymInt given = ex_dim(im, condition, 0);
  if (import_ok(im) && sym_is_const(given) && sym_is_const(size) && given > size)
    condition = ex_slice(im, condition, 0, 0, size);
  return condition;
}

/* Entries where the condition holds; the condition may be shorter than the dim. */
void translate_compress(Import *im) {
  ValueId x = in_required(im, 0);
  bool flat = !attr_has(im, "axis");
  uint32_t axis = flat ? 0 : import_axis(im, attr_int(im, "axis", 0), ex_rank(im, x));
  x = flat ? ex_flat(im, x) : x;
  ValueId rows = found_rows(im, compress_condition(im, ex_dim(im, x, axis)));
  out(im, 0, ex_index_select(im, x, axis, EX_VIEW(im, rows, ex_dim(im, rows, 0))));
}

/* --- ReverseSequence --- */

/* Entry t of a sequence of length n comes from n - 1 - t when t < n, else from t. */
void translate_reverse_sequence(Import *im) {
  ValueId x = in_required(im, 0), lengths = in_required(im, 1);
  Dims s = shape_of(im, x);
  if (s.rank < 2)
    import_fail(im, DIAG_INPUT_RANK, "the input has rank %u, at least 2 is wanted", s.rank);
  uint32_t batch = import_axis(im, attr_int(im, "batch_axis", 1), s.rank),
           time = import_axis(im, attr_int(im, "time_axis", 0), s.rank);
  if (import_ok(im) && batch + time != 1)
    import_fail(im, DIAG_AXIS_RANGE, "'batch_axis' and 'time_axis' are %u and %u, not 0 and 1",
                batch, time);
  if (!import_ok(im))
    return;
  ValueId n = ex_along_axis(im, ex_cast(im, lengths, DTYPE_I64), batch, 2),
          t = ex_along_axis(im, ex_arange(im, s.d[time]), time, 2);
  ValueId mirrored = ex_sub(im, ex_minus(im, n, 1), t), at[2];
  at[time] = ex_where(im, ex_lt(im, t, n), mirrored, t);
  at[batch] = ex_along_axis(im, ex_arange(im, s.d[batch]), batch, 2);
  out(im, 0, build(&im->b, OP_INDEX_TENSOR, A_VAL(x), A_VALS(at, 2)));
}
