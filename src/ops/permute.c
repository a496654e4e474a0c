/* Ops that reorder the elements of a tensor: permute, transpose, flip, roll, unfold, diagonal; tril
 * zeroes some. */
#include "ops/move.h"
#include "ops/ops.h"
#include "ops/shape_util.h"

/* --- shape rules --- */

Status shape_permute_copy(Graph *g, NodeId n) {
  IntList order;
  TRY(arg_int_list(g, n, 1, &order));
  Dims in = operand_dims(g, n, 0), out = {.rank = in.rank};
  if (order.count != in.rank)
    return bad_arg(g, n, "%u dims listed for a tensor of rank %u", order.count, in.rank);
  uint32_t seen = 0;
  for (uint32_t i = 0; i < in.rank; i++) {
    uint32_t axis;
    TRY(shape_axis(g, n, order.v[i], in.rank, &axis));
    if (seen >> axis & 1)
      return shape_error(g, n, DIAG_AXIS_RANGE, "dimension %u is listed twice", axis);
    seen |= (uint32_t)1 << axis;
    out.d[i] = in.d[axis];
  }
  return shape_result_dims(g, n, &out);
}

Status shape_transpose_copy(Graph *g, NodeId n) {
  uint32_t a, b;
  Dims dims = operand_dims(g, n, 0);
  TRY(arg_axis(g, n, 1, dims.rank, &a));
  TRY(arg_axis(g, n, 2, dims.rank, &b));
  if (dims.rank) {
    SymInt swapped = dims.d[a];
    dims.d[a] = dims.d[b];
    dims.d[b] = swapped;
  }
  return shape_result_dims(g, n, &dims);
}

Status shape_flip(Graph *g, NodeId n) {
  uint32_t set;
  Dims dims = operand_dims(g, n, 0);
  TRY(shape_axes(g, n, 1, dims.rank, false, &set));
  return shape_result_dims(g, n, &dims);
}

/* Without dims the tensor is rolled as if it were 1-D; a dim may be listed more than once. */
Status shape_roll(Graph *g, NodeId n) {
  IntList shifts, axes;
  TRY(arg_int_list(g, n, 1, &shifts));
  TRY(arg_int_list(g, n, 2, &axes));
  Dims dims = operand_dims(g, n, 0);
  if (shifts.count != (axes.count ? axes.count : 1))
    return bad_arg(g, n, "%u shifts for %u dims", shifts.count, axes.count);
  for (uint32_t i = 0; i < axes.count; i++) {
    uint32_t axis;
    TRY(shape_axis(g, n, axes.v[i], dims.rank, &axis));
  }
  return shape_result_dims(g, n, &dims);
}

Status shape_unfold_copy(Graph *g, NodeId n) {
  uint32_t axis;
  int64_t size, step;
  SymTable *t = &g->syms;
  Dims dims = operand_dims(g, n, 0);
  TRY(arg_axis(g, n, 1, dims.rank, &axis));
  TRY(arg_const_int(g, n, 2, &size));
  TRY(arg_const_int(g, n, 3, &step));
  if (size < 0 || step < 1)
    return bad_arg(g, n, "windows of %lld every %lld elements", (long long)size, (long long)step);
  if (dims.rank == MAX_RANK)
    return bad_shape(g, n, "the result would have more than %u dimensions", MAX_RANK);
  SymInt whole = dims.rank ? dims.d[axis] : 1;
  TRY(shape_at_least(g, n, whole, size, "the dimension under windows of this size"));
  if (dims.rank)
    dims.d[axis] = sym_add(t, sym_floordiv(t, sym_sub(t, whole, size), step), 1);
  dims.d[dims.rank++] = size;
  return shape_result_dims(g, n, &dims);
}

Status shape_diagonal_copy(Graph *g, NodeId n) {
  uint32_t a, b;
  int64_t offset;
  SymTable *t = &g->syms;
  Dims in = operand_dims(g, n, 0), out = {0};
  TRY(arg_const_int(g, n, 1, &offset));
  TRY(arg_axis(g, n, 2, in.rank, &a));
  TRY(arg_axis(g, n, 3, in.rank, &b));
  if (in.rank < 2 || a == b)
    return bad_arg(g, n, "a diagonal needs two different dimensions");
  SymInt rows = in.d[a], columns = in.d[b];
  if (offset >= 0)
    columns = sym_sub(t, columns, offset);
  else
    rows = sym_add(t, rows, offset);
  for (uint32_t i = 0; i < in.rank; i++)
    if (i != a && i != b)
      out.d[out.rank++] = in.d[i];
  out.d[out.rank++] = sym_max(t, sym_min(t, rows, columns), 0);
  return shape_result_dims(g, n, &out);
}

Status shape_tril(Graph *g, NodeId n) {
  SymInt diagonal;
  TRY(arg_int(g, n, 1, &diagonal));
  Dims dims = operand_dims(g, n, 0);
  if (dims.rank < 2)
    return bad_shape(g, n, "a triangle needs at least 2 dimensions, the tensor has %u", dims.rank);
  return shape_result_dims(g, n, &dims);
}

/* --- what the runtime's kernels refuse --- */

const char *check_roll(const Graph *g, NodeId n, Arena *arena) {
  if (node_list_count(g, n, 2) == 0)
    return "no dims are given: the kernel does not roll the flattened tensor";
  return check_contiguous(g, n, arena);
}

const char *check_unfold(const Graph *g, NodeId n, Arena *arena) {
  if (value_rank(g, node_value(g, n, 0)) == 0)
    return "self is 0-d";
  return check_contiguous(g, n, arena);
}

/* --- kernels --- */

/* result[i] = self at strides[i], an arrangement of self's strides that stays inside it. */
static void gather_strided(Kernel *k, const Tensor *self, const int64_t *strides) {
  Tensor *out = k->results[0];
  MoveSide src = {.data = self->data};
  memcpy(src.strides, strides, out->rank * sizeof *strides);
  move_elements(dtype_size(out->dtype), out->rank, out->dims, move_side(out), src);
}

static Status permute(Kernel *k, const Tensor *self, const uint32_t *order) {
  int64_t natural[MAX_RANK], strides[MAX_RANK], dims[MAX_RANK];
  strides_of(self, natural);
  for (uint32_t i = 0; i < self->rank; i++) {
    dims[i] = self->dims[order[i]];
    strides[i] = natural[order[i]];
  }
  TRY(kernel_expect(k, 0, self->rank, dims));
  TRY(kernel_expect_dtype(k, self));
  gather_strided(k, self, strides);
  return STATUS_OK;
}

Status kern_permute_copy(Kernel *k) {
  uint32_t order[MAX_RANK], seen = 0;
  const Tensor *self = kernel_tensor(k, 0);
  if ((k->args[1].kind != ARG_INTS && self->rank) || k->args[1].count != self->rank)
    return kernel_error(k, "%u dims listed for rank %u", k->args[1].count, self->rank);
  for (uint32_t i = 0; i < self->rank; i++) {
    TRY(kernel_dim(k, k->args[1].ints[i], self->rank, &order[i]));
    if (seen >> order[i] & 1)
      return kernel_error(k, "dim %u is listed twice", order[i]);
    seen |= (uint32_t)1 << order[i];
  }
  return permute(k, self, order);
}

Status kern_transpose_copy(Kernel *k) {
  uint32_t order[MAX_RANK], a, b;
  const Tensor *self = kernel_tensor(k, 0);
  TRY(kernel_dim(k, k->args[1].i, self->rank, &a));
  TRY(kernel_dim(k, k->args[2].i, self->rank, &b));
  for (uint32_t i = 0; i < self->rank; i++)
    order[i] = i == a ? b : i == b ? a : i;
  return permute(k, self, order);
}

Status kern_flip(Kernel *k) {
  const Tensor *self = kernel_tensor(k, 0);
  TRY(kernel_expect_like(k, self));
  MoveSide src = move_side(self);
  unsigned element = dtype_size(self->dtype);
  uint32_t count = k->args[1].kind == ARG_INTS ? k->args[1].count : 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t axis;
    TRY(kernel_dim(k, k->args[1].ints[i], self->rank, &axis));
    if (self->rank == 0 || self->dims[axis] == 0)
      continue;
    move_offset(&src, element, self->dims[axis] - 1, src.strides[axis]);
    src.strides[axis] = -src.strides[axis];
  }
  move_elements(element, self->rank, self->dims, move_side(k->results[0]), src);
  return STATUS_OK;
}

/* to = from rolled by shift along one axis of a tensor seen as outer x size x inner. */
static void roll_axis(unsigned element, const int64_t count[3], int64_t shift, void *to,
                      void *from) {
  int64_t size = count[1];
  if (size == 0)
    return;
  shift = (shift % size + size) % size;
  int64_t strides[3] = {count[1] * count[2], count[2], 1};
  for (uint32_t half = 0; half < 2; half++) {
    int64_t length = half ? shift : size - shift;
    MoveSide dst = {.data = to}, src = {.data = from};
    memcpy(dst.strides, strides, sizeof strides);
    memcpy(src.strides, strides, sizeof strides);
    move_offset(half ? &src : &dst, element, half ? size - shift : shift, strides[1]);
    move_elements(element, 3, (int64_t[]){count[0], length, count[2]}, dst, src);
  }
}

Status kern_roll(Kernel *k) {
  const Tensor *self = kernel_tensor(k, 0);
  TRY(kernel_expect_like(k, self));
  unsigned element = dtype_size(self->dtype);
  const KernelArg *shifts = &k->args[1], *dims = &k->args[2];
  uint32_t axes = dims->kind == ARG_INTS ? dims->count : 0, steps = axes ? axes : 1;
  if (shifts->kind != ARG_INTS || shifts->count != steps)
    return kernel_error(k, "%u shifts for %u dims", shifts->count, axes);
  void *spare = arena_alloc(k->scratch, tensor_bytes(self));
  memcpy(k->results[0]->data, self->data, tensor_bytes(self));
  for (uint32_t i = 0; i < steps; i++) {
    int64_t count[3] = {1, tensor_numel(self), 1};
    uint32_t axis = 0;
    if (axes)
      TRY(kernel_dim(k, dims->ints[i], self->rank, &axis));
    if (axes && self->rank) {
      count[0] = dims_count(self->dims, 0, axis);
      count[1] = self->dims[axis];
      count[2] = dims_count(self->dims, axis + 1, self->rank);
    }
    memcpy(spare, k->results[0]->data, tensor_bytes(self));
    roll_axis(element, count, shifts->ints[i], k->results[0]->data, spare);
  }
  return STATUS_OK;
}

Status kern_unfold_copy(Kernel *k) {
  uint32_t axis;
  const Tensor *self = kernel_tensor(k, 0);
  TRY(kernel_dim(k, k->args[1].i, self->rank, &axis));
  int64_t size = k->args[2].i, step = k->args[3].i;
  int64_t whole = self->rank ? self->dims[axis] : 1;
  if (self->rank == MAX_RANK || size < 0 || size > whole || step < 1)
    return kernel_error(k, "windows of %lld every %lld elements do not fit %lld", (long long)size,
                        (long long)step, (long long)whole);
  int64_t dims[MAX_RANK], strides[MAX_RANK];
  strides_of(self, strides);
  memcpy(dims, self->dims, self->rank * sizeof dims[0]);
  int64_t inner = self->rank ? strides[axis] : 1;
  if (self->rank) {
    dims[axis] = (whole - size) / step + 1;
    strides[axis] = dims[axis] > 1 ? strides[axis] * step : strides[axis];
  }
  dims[self->rank] = size;
  strides[self->rank] = inner;
  TRY(kernel_expect(k, 0, self->rank + 1, dims));
  TRY(kernel_expect_dtype(k, self));
  gather_strided(k, self, strides);
  return STATUS_OK;
}

Status kern_diagonal_copy(Kernel *k) {
  uint32_t a, b, rank = 0;
  const Tensor *self = kernel_tensor(k, 0);
  TRY(kernel_dim(k, k->args[2].i, self->rank, &a));
  TRY(kernel_dim(k, k->args[3].i, self->rank, &b));
  if (self->rank < 2 || a == b)
    return kernel_error(k, "a diagonal needs two different dims");
  int64_t offset = k->args[1].i, natural[MAX_RANK], dims[MAX_RANK], strides[MAX_RANK];
  strides_of(self, natural);
  for (uint32_t i = 0; i < self->rank; i++) {
    if (i == a || i == b)
      continue;
    dims[rank] = self->dims[i];
    strides[rank++] = natural[i];
  }
  int64_t rows = self->dims[a] + min_i64(offset, 0), columns = self->dims[b] - max_i64(offset, 0);
  dims[rank] = max_i64(0, min_i64(rows, columns));
  strides[rank] = natural[a] + natural[b];
  bool any = dims[rank++] > 0;
  TRY(kernel_expect(k, 0, rank, dims));
  TRY(kernel_expect_dtype(k, self));
  Tensor from = *self;
  if (any)
    from.data = (char *)self->data + dtype_size(self->dtype) *
                                         (offset >= 0 ? offset * natural[b] : -offset * natural[a]);
  gather_strided(k, &from, strides);
  return STATUS_OK;
}

/* Copies the columns of each row that the triangle keeps and zeroes the others. */
static Status triangle(Kernel *k, bool lower) {
  const Tensor *self = kernel_tensor(k, 0);
  TRY(kernel_expect_like(k, self));
  if (self->rank < 2)
    return kernel_error(k, "a triangle needs at least 2 dims");
  int64_t rows = self->dims[self->rank - 2], columns = self->dims[self->rank - 1];
  int64_t diagonal = max_i64(-rows - 1, min_i64(columns, k->args[1].i));
  int64_t numel = tensor_numel(self);
  size_t element = dtype_size(self->dtype);
  memset(k->results[0]->data, 0, tensor_bytes(self));
  for (int64_t row = 0; numel && row < numel / columns; row++) {
    /* columns [0, edge) are on or below the diagonal (lower), strictly below it (upper) */
    int64_t edge = row % rows + diagonal + (lower ? 1 : 0);
    edge = max_i64(0, min_i64(columns, edge));
    int64_t first = lower ? 0 : edge, count = lower ? edge : columns - edge;
    size_t at = (size_t)(row * columns + first) * element;
    memcpy((char *)k->results[0]->data + at, (const char *)self->data + at,
           (size_t)count * element);
  }
  return STATUS_OK;
}

Status kern_tril(Kernel *k) { return triangle(k, true); }

Status kern_triu(Kernel *k) { return triangle(k, false); }
