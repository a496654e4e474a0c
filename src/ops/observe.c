/* The shape rule of quantized_decomposed::observe, whose arguments are where quantized.h says. */
#include "ops/ops.h"
#include "ops/quantized.h"
#include "ops/shape_util.h"

/* The columns of a weight, a matrix; one with more dims is that of a convolution. 0: it has none.
 */
static int64_t weight_columns(const Type *t, uint32_t axis) {
  if (!type_is_static(t) || t->rank < 2 || (t->rank > 2 && axis != 0))
    return 0;
  return t->rank == 2 ? t->dims[1 - axis] : dims_count(t->dims, 1, t->rank);
}

/* Constants, a row for each column of the weight, and an entry in it for each column of a window.
 * The groups of a convolution have rows of their own. */
static Status check_moments(Graph *g, NodeId n, ValueId x, uint32_t axis) {
  ValueId m = node_value(g, n, OBSERVE_MOMENTS);
  const Type *t = value_type(g, x);
  int64_t columns = weight_columns(t, axis);
  if (node_absent(g, n, OBSERVE_AXIS) || columns <= 0)
    return bad_shape(g, n, "moments are of a matrix of weights with an axis");
  if (!value_is_const(g, m) || value_dtype(g, m) != DTYPE_F32 || value_rank(g, m) != 2)
    return bad_dtype(g, n, "moments are a constant matrix of f32");
  int64_t rows = value_dim(g, m, 0), groups = t->rank > 2 ? rows / columns : 1;
  if (groups < 1 || t->dims[axis] % groups != 0)
    return bad_shape(g, n, "moments of %lld columns do not fit", (long long)columns);
  TRY(shape_equal(g, n, rows, groups * columns, "rows of moments and columns"));
  return shape_equal(g, n, value_dim(g, m, 1), columns < OBSERVE_WINDOW ? columns : OBSERVE_WINDOW,
                     "moments of a column and columns of a window");
}

Status shape_observe(Graph *g, NodeId n) {
  int64_t low, high, dim;
  uint32_t axis = 0;
  ValueId x = node_value(g, n, 0);
  if (value_dtype(g, x) != DTYPE_F32)
    return bad_dtype(g, n, "the input is %s, not f32", dtype_name(value_dtype(g, x)));
  TRY(arg_const_int(g, n, OBSERVE_MIN, &low));
  TRY(arg_const_int(g, n, OBSERVE_MAX, &high));
  if (low < INT8_MIN || high > INT8_MAX || low >= high)
    return bad_arg(g, n, "the range %lld to %lld does not fit i8", (long long)low, (long long)high);
  if (!node_absent(g, n, OBSERVE_AXIS)) {
    TRY(arg_const_int(g, n, OBSERVE_AXIS, &dim));
    TRY(shape_axis(g, n, dim, value_rank(g, x), &axis));
  }
  if (!node_absent(g, n, OBSERVE_MOMENTS))
    TRY(check_moments(g, n, x, axis));
  Dims d = value_dims(g, x);
  return shape_result(g, n, 0, DTYPE_F32, &d);
}
