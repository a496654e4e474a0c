/* slice, select and their scatter forms: a part of a tensor along one dim, taken out or written
 * over.
 *
 * Starts and ends are clamped as torch does. With symbolic sizes the clamp becomes min and max of
 * expressions unless ranges prove it away; a symbolic start or end that may have either sign is
 * assumed not to be negative. */
#include "ops/move.h"
#include "ops/ops.h"
#include "ops/shape_util.h"

/* --- shape rules --- */

/* A start or end against the size of its dim, clamped to 0..size. */
static SymInt clamp_bound(Graph *g, NodeId n, SymInt bound, SymInt size) {
  SymTable *t = &g->syms;
  if (sym_upper(t, bound) < 0)
    return sym_max(t, sym_add(t, size, bound), 0);
  if (sym_lower(t, bound) < 0)
    shape_assume(g, n, CONSTRAINT_GE, bound, 0);
  return sym_min(t, bound, size);
}

/* Reads start, end and step at arguments arg…arg + 2 and gives the length of the slice. */
static Status slice_length(Graph *g, NodeId n, uint32_t arg, SymInt size, SymInt *length) {
  SymTable *t = &g->syms;
  SymInt start = 0, end = size;
  int64_t step;
  if (node_arg(g, n, arg)->kind != ARG_NONE) {
    TRY(arg_int(g, n, arg, &start));
    start = clamp_bound(g, n, start, size);
  }
  if (node_arg(g, n, arg + 1)->kind != ARG_NONE) {
    TRY(arg_int(g, n, arg + 1, &end));
    end = clamp_bound(g, n, end, size);
  }
  TRY(arg_const_int(g, n, arg + 2, &step));
  if (step < 1)
    return bad_arg(g, n, "step %lld: a slice steps forward by at least 1", (long long)step);
  SymInt span = sym_max(t, sym_sub(t, end, start), 0);
  *length = sym_ceildiv(t, span, step);
  return STATUS_OK;
}

static Status sliced_axis(Graph *g, NodeId n, uint32_t arg, uint32_t rank, uint32_t *axis) {
  if (rank == 0)
    return bad_shape(g, n, "a 0-d tensor has no dimension to take a part of");
  return arg_axis(g, n, arg, rank, axis);
}

Status shape_slice_copy(Graph *g, NodeId n) {
  uint32_t axis;
  Dims out = operand_dims(g, n, 0);
  TRY(sliced_axis(g, n, 1, out.rank, &axis));
  TRY(slice_length(g, n, 2, out.d[axis], &out.d[axis]));
  return shape_result_dims(g, n, &out);
}

/* The dims without the selected one; checks the index against it. */
static Status select_dims(Graph *g, NodeId n, uint32_t dim_arg, Dims *dims) {
  uint32_t axis;
  SymInt index;
  TRY(sliced_axis(g, n, dim_arg, dims->rank, &axis));
  TRY(arg_int(g, n, dim_arg + 1, &index));
  SymTable *t = &g->syms;
  SymInt size = dims->d[axis];
  if (sym_upper(t, index) < 0) {
    TRY(shape_at_least(g, n, sym_add(t, size, index), 0,
                       "size plus index of the selected dimension"));
  } else {
    if (sym_lower(t, index) < 0)
      shape_assume(g, n, CONSTRAINT_GE, index, 0);
    TRY(shape_at_least(g, n, sym_sub(t, size, 1), index,
                       "the last index of the selected dimension"));
  }
  memmove(&dims->d[axis], &dims->d[axis + 1], (dims->rank - axis - 1) * sizeof dims->d[0]);
  dims->rank--;
  return STATUS_OK;
}

Status shape_select_copy(Graph *g, NodeId n) {
  Dims out = operand_dims(g, n, 0);
  TRY(select_dims(g, n, 1, &out));
  return shape_result_dims(g, n, &out);
}

/* src must have exactly the dims of the part it is written over. */
static Status scatter_result(Graph *g, NodeId n, ValueId self, ValueId src, const Dims *part) {
  Dims given = value_dims(g, src), whole = value_dims(g, self);
  if (given.rank != part->rank)
    return bad_shape(g, n, "src has rank %u, the part it is written over %u", given.rank,
                     part->rank);
  for (uint32_t i = 0; i < part->rank; i++)
    TRY(shape_equal(g, n, given.d[i], part->d[i],
                    "dims of src and of the part it is written over"));
  if (value_dtype(g, self) != value_dtype(g, src))
    return bad_dtype(g, n, "self is %s, src is %s", dtype_name(value_dtype(g, self)),
                     dtype_name(value_dtype(g, src)));
  return shape_result(g, n, 0, value_dtype(g, self), &whole);
}

Status shape_select_scatter(Graph *g, NodeId n) {
  ValueId self = node_value(g, n, 0), src = node_value(g, n, 1);
  Dims part = value_dims(g, self);
  TRY(select_dims(g, n, 2, &part));
  return scatter_result(g, n, self, src, &part);
}

/* As slice_length; but where the end is as far behind a start that varies as src is long, as with
 * rows in a loop, nothing is taken to be cut off: the kernel compares src with what is left. */
static Status scattered_length(Graph *g, NodeId n, SymInt size, SymInt given, SymInt *length) {
  SymInt start, end, span;
  int64_t step;
  if (!node_absent(g, n, 3) && !node_absent(g, n, 4)) {
    TRY(arg_int(g, n, 3, &start));
    TRY(arg_int(g, n, 4, &end));
    TRY(arg_const_int(g, n, 5, &step));
    span = sym_sub(&g->syms, end, start);
    if (step == 1 && !sym_is_const(start) && sym_lower(&g->syms, start) >= 0 && span != 0 &&
        span == given) {
      *length = span;
      return STATUS_OK;
    }
  }
  return slice_length(g, n, 3, size, length);
}

Status shape_slice_scatter(Graph *g, NodeId n) {
  uint32_t axis;
  ValueId self = node_value(g, n, 0), src = node_value(g, n, 1);
  Dims part = value_dims(g, self);
  TRY(sliced_axis(g, n, 2, part.rank, &axis));
  SymInt given = value_rank(g, src) == part.rank ? value_dim(g, src, axis) : 0;
  TRY(scattered_length(g, n, part.d[axis], given, &part.d[axis]));
  return scatter_result(g, n, self, src, &part);
}

/* --- kernels --- */

static int64_t clamp_index(int64_t index, int64_t size) {
  if (index < 0)
    index += size;
  return max_i64(0, min_i64(index, size));
}

typedef struct Part {
  uint32_t axis;
  int64_t start, step, length;
} Part;

static Status kernel_axis(Kernel *k, uint32_t arg, uint32_t rank, uint32_t *axis) {
  if (rank == 0)
    return kernel_error(k, "a 0-d tensor has no dimension to take a part of");
  return kernel_dim(k, k->args[arg].i, rank, axis);
}

/* Reads dim, start, end, step at arguments arg…arg + 3. */
static Status slice_part(Kernel *k, uint32_t arg, const Tensor *self, Part *p) {
  TRY(kernel_axis(k, arg, self->rank, &p->axis));
  const KernelArg *a = &k->args[arg + 1];
  int64_t size = self->dims[p->axis];
  p->start = a[0].kind == ARG_NONE ? 0 : clamp_index(a[0].i, size);
  int64_t end = a[1].kind == ARG_NONE ? size : clamp_index(a[1].i, size);
  p->step = a[2].i;
  if (p->step < 1)
    return kernel_error(k, "step %lld is not positive", (long long)p->step);
  int64_t span = max_i64(0, end - p->start);
  p->length = span / p->step + (span % p->step != 0);
  return STATUS_OK;
}

static Status select_part(Kernel *k, uint32_t arg, const Tensor *self, Part *p) {
  TRY(kernel_axis(k, arg, self->rank, &p->axis));
  int64_t size = self->dims[p->axis], index = k->args[arg + 1].i;
  if (index < -size || index >= size)
    return kernel_error(k, "index %lld is out of range for a dim of size %lld", (long long)index,
                        (long long)size);
  *p = (Part){p->axis, index < 0 ? index + size : index, 1, 1};
  return STATUS_OK;
}

/* The elements of the part as a side: base moved to its start, stride of the axis stretched. */
static MoveSide part_side(const Tensor *t, const Part *p) {
  MoveSide side = move_side(t);
  if (p->length > 0)
    move_offset(&side, dtype_size(t->dtype), p->start, side.strides[p->axis]);
  if (p->length > 1) /* the step may be huge when there is one element */
    side.strides[p->axis] *= p->step;
  return side;
}

/* dims and natural strides of a small tensor (dst or src) that has the part's dims, with or without
 * the axis. */
static void part_dims(const Tensor *whole, const Part *p, bool keep_axis, int64_t *full,
                      uint32_t *rank, int64_t *dims) {
  *rank = 0;
  for (uint32_t i = 0; i < whole->rank; i++) {
    full[i] = i == p->axis ? p->length : whole->dims[i];
    if (i != p->axis || keep_axis)
      dims[(*rank)++] = full[i];
  }
}

static MoveSide dense_side(void *data, uint32_t rank, const int64_t *dims) {
  MoveSide side = {.data = data};
  int64_t stride = 1;
  for (uint32_t i = rank; i-- > 0;) {
    side.strides[i] = stride;
    stride *= dims[i];
  }
  return side;
}

static Status take_part(Kernel *k, const Tensor *self, const Part *p, bool keep_axis) {
  int64_t full[MAX_RANK], dims[MAX_RANK];
  uint32_t rank;
  part_dims(self, p, keep_axis, full, &rank, dims);
  TRY(kernel_expect(k, 0, rank, dims));
  TRY(kernel_expect_dtype(k, self));
  move_elements(dtype_size(self->dtype), self->rank, full,
                dense_side(k->results[0]->data, self->rank, full), part_side(self, p));
  return STATUS_OK;
}

static Status put_part(Kernel *k, const Tensor *self, const Tensor *src, const Part *p,
                       bool keep_axis) {
  int64_t full[MAX_RANK], dims[MAX_RANK];
  uint32_t rank;
  part_dims(self, p, keep_axis, full, &rank, dims);
  bool fits = src->rank == rank;
  for (uint32_t i = 0; fits && i < rank; i++)
    fits = src->dims[i] == dims[i];
  if (!fits)
    return kernel_error(k, "src does not have the shape of the part it is written over");
  TRY(kernel_expect(k, 0, self->rank, self->dims));
  TRY(kernel_expect_dtype(k, self));
  TRY(kernel_expect_dtype(k, src));
  memcpy(k->results[0]->data, self->data, tensor_bytes(self));
  move_elements(dtype_size(self->dtype), self->rank, full, part_side(k->results[0], p),
                dense_side(src->data, self->rank, full));
  return STATUS_OK;
}

Status kern_slice_copy(Kernel *k) {
  Part part;
  const Tensor *self = kernel_tensor(k, 0);
  TRY(slice_part(k, 1, self, &part));
  return take_part(k, self, &part, true);
}

Status kern_select_copy(Kernel *k) {
  Part part;
  const Tensor *self = kernel_tensor(k, 0);
  TRY(select_part(k, 1, self, &part));
  return take_part(k, self, &part, false);
}

Status kern_slice_scatter(Kernel *k) {
  Part part;
  const Tensor *self = kernel_tensor(k, 0), *src = kernel_tensor(k, 1);
  TRY(slice_part(k, 2, self, &part));
  return put_part(k, self, src, &part, true);
}

Status kern_select_scatter(Kernel *k) {
  Part part;
  const Tensor *self = kernel_tensor(k, 0), *src = kernel_tensor(k, 1);
  TRY(select_part(k, 2, self, &part));
  return put_part(k, self, src, &part, false);
}
