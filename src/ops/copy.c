/* Copies: of the bytes (clone, views), with another dtype (_to_copy), over an operand (copy_), and
 * glu.
 *
 * Conversions follow the runtime's static_cast: floats are truncated towards zero (saturating where
 * C++ leaves it undefined), anything but zero is true. */
#include <math.h>

#include "ops/elementwise.h"
#include "ops/move.h"
#include "ops/ops.h"
#include "ops/shape_util.h"

/* --- shape rules --- */

/* The dim_order argument: absent, the identity, or channels last of a tensor of rank 4 or 5. */
static Status read_dim_order(Graph *g, NodeId n, uint32_t i, uint32_t rank, DimOrder *order) {
  IntList list;
  TRY(arg_int_list(g, n, i, &list));
  bool contiguous = true, last = rank == 4 || rank == 5;
  if (node_arg(g, n, i)->kind == ARG_NONE)
    return STATUS_OK;
  if (list.count != rank)
    return bad_arg(g, n, "a dim order of %u entries for a tensor of rank %u", list.count, rank);
  for (uint32_t k = 0; k < rank; k++) {
    SymInt wanted = k == 0 ? 0 : k + 1 < rank ? (SymInt)k + 1 : 1;
    contiguous &= list.v[k] == k;
    last &= list.v[k] == wanted;
  }
  if (!contiguous && !last)
    return bad_arg(g, n, "a dim order that is neither contiguous nor channels last");
  *order = contiguous ? ORDER_CONTIGUOUS : ORDER_CHANNELS_LAST;
  return STATUS_OK;
}

static Status copy_result(Graph *g, NodeId n, ValueId self, DType dtype, uint32_t order_arg) {
  Dims dims = value_dims(g, self);
  DimOrder order = (DimOrder)value_type(g, self)->order;
  if (order_arg)
    TRY(read_dim_order(g, n, order_arg, dims.rank, &order));
  TRY(shape_result(g, n, 0, dtype, &dims));
  if (order != ORDER_CONTIGUOUS)
    result_type(g, n, 0, graph_tensor_type(g, dtype, dims.rank, dims.d, order));
  return STATUS_OK;
}

Status shape_to_copy(Graph *g, NodeId n) {
  DType dtype;
  ValueId self = node_value(g, n, 0);
  TRY(arg_dtype(g, n, 1, value_dtype(g, self), &dtype));
  return copy_result(g, n, self, dtype, node_cget(g, n)->op == OP_TO_DIM_ORDER_COPY ? 3 : 0);
}

Status shape_clone(Graph *g, NodeId n) {
  ValueId self = node_value(g, n, 0);
  return copy_result(g, n, self, value_dtype(g, self),
                     node_cget(g, n)->op == OP_CLONE_DIM_ORDER ? 2 : 0);
}

Status shape_copy_(Graph *g, NodeId n) {
  ValueId self = node_value(g, n, 0), src = node_value(g, n, 1);
  Dims to = value_dims(g, self), from = value_dims(g, src);
  TRY(shape_broadcasts_to(g, n, &from, &to, "src"));
  return shape_result(g, n, 0, value_dtype(g, self), &to);
}

/* The memory stays what it is: there must be room for the new size. */
Status shape_resize_(Graph *g, NodeId n) {
  IntList size;
  ValueId self = node_value(g, n, 0);
  TRY(arg_int_list(g, n, 1, &size));
  if (size.count != value_rank(g, self))
    return bad_arg(g, n, "a size of %u entries for a tensor of rank %u", size.count,
                   value_rank(g, self));
  Dims out = dims_make(size.v, size.count);
  for (uint32_t k = 0; k < out.rank; k++)
    TRY(shape_at_least(g, n, out.d[k], 0, "a dimension"));
  ValueId state = value_state(g, self);
  Dims room = value_dims(g, state ? state : self);
  int64_t least = sym_lower(&g->syms, dims_numel(g, &out));
  if (least > sym_upper(&g->syms, dims_numel(g, &room)))
    return bad_shape(g, n, "the memory of self has no room for %lld elements", (long long)least);
  return shape_result_dims(g, n, &out);
}

/* The runtime copies any element type, but broadcasts only those that its arithmetic has. */
const char *check_copy_(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  const Type *to = value_type(g, node_value(g, n, 0)), *from = value_type(g, node_value(g, n, 1));
  if (!dims_same(to->dims, to->rank, from->dims, from->rank) &&
      !dtype_in((DType)to->dtype, DTS_REAL_BOOL))
    return "this element type is not broadcast";
  return NULL;
}

Status shape_glu(Graph *g, NodeId n) {
  uint32_t axis;
  SymTable *t = &g->syms;
  ValueId self = node_value(g, n, 0);
  Dims dims = value_dims(g, self);
  if (dims.rank == 0)
    return bad_shape(g, n, "a 0-d tensor cannot be halved");
  TRY(arg_axis(g, n, 1, dims.rank, &axis));
  if (!dtype_is_float(value_dtype(g, self)))
    return bad_dtype(g, n, "glu needs floats, not %s", dtype_name(value_dtype(g, self)));
  SymInt half = sym_floordiv(t, dims.d[axis], 2);
  TRY(shape_equal(g, n, sym_mul(t, half, 2), dims.d[axis],
                  "an even size and the dimension to halve"));
  dims.d[axis] = half;
  return shape_result_dims(g, n, &dims);
}

/* --- what the runtime's kernels refuse --- */

const char *check_to_copy(const Graph *g, NodeId n, Arena *arena) {
  if (arg_flag(g, n, 2))
    return "non_blocking must be false";
  if (node_cget(g, n)->op == OP_TO_DIM_ORDER_COPY)
    return NULL;
  if (node_arg(g, n, 3)->kind == ARG_INT && node_arg(g, n, 3)->i != 0)
    return "memory_format must be contiguous";
  return check_contiguous(g, n, arena);
}

/* --- kernels --- */

Status kern_copy_bytes(Kernel *k) {
  const Tensor *self = kernel_tensor(k, 0);
  TRY(kernel_expect_dtype(k, self));
  if (tensor_numel(self) != tensor_numel(k->results[0]))
    return kernel_error(k, "%lld elements cannot be viewed as %lld", (long long)tensor_numel(self),
                        (long long)tensor_numel(k->results[0]));
  memcpy(k->results[0]->data, self->data, tensor_bytes(self));
  return STATUS_OK;
}

Status kern_view_dtype(Kernel *k) {
  const Tensor *self = kernel_tensor(k, 0);
  TRY(kernel_expect(k, 0, self->rank, self->dims));
  if (tensor_bytes(self) != tensor_bytes(k->results[0]))
    return kernel_error(k, "%s cannot be seen as %s", dtype_name(self->dtype),
                        dtype_name(k->results[0]->dtype));
  memcpy(k->results[0]->data, self->data, tensor_bytes(self));
  return STATUS_OK;
}

static Status can_convert(Kernel *k, DType from, DType to) {
  DTypeSet numbers = DTS_REAL_BOOL | DTS_UNSIGNED;
  if (from == to || (dtype_in(from, numbers) && dtype_in(to, numbers)))
    return STATUS_OK;
  return kernel_error(k, "%s cannot be converted to %s", dtype_name(from), dtype_name(to));
}

Status kern_to_copy(Kernel *k) {
  const Tensor *self = kernel_tensor(k, 0);
  TRY(kernel_expect(k, 0, self->rank, self->dims));
  TRY(can_convert(k, self->dtype, k->results[0]->dtype));
  if (self->dtype == k->results[0]->dtype)
    memcpy(k->results[0]->data, self->data, tensor_bytes(self));
  else
    tensor_convert(self, k->results[0]);
  return STATUS_OK;
}

/* Writes src over self and hands the new self on. */
Status kern_copy_(Kernel *k) {
  const Tensor *self = kernel_tensor(k, 0), *src = kernel_tensor(k, 1);
  TRY(can_convert(k, src->dtype, self->dtype));
  bool fits = src->rank <= self->rank;
  for (uint32_t i = 0; fits && i < src->rank; i++)
    fits = src->dims[i] == 1 || src->dims[i] == self->dims[self->rank - src->rank + i];
  if (!fits)
    return kernel_error(k, "src cannot be expanded to the shape of self");
  Tensor same = kernel_in_dtype(k, src, self->dtype);
  MoveSide from = {.data = same.data};
  strides_broadcast(&same, self->rank, self->dims, from.strides);
  move_elements(dtype_size(self->dtype), self->rank, self->dims, move_side(self), from);
  if (k->result_count == 0)
    return STATUS_OK;
  TRY(kernel_expect_like(k, self));
  memcpy(k->results[0]->data, self->data, tensor_bytes(self));
  return STATUS_OK;
}

Status kern_resize_(Kernel *k) {
  const Tensor *self = kernel_tensor(k, 0);
  Tensor *result = k->results[0];
  uint64_t bytes = tensor_bytes(result);
  if (bytes > self->capacity)
    return kernel_error(k, "%llu bytes are needed, and the memory of self has %llu",
                        (unsigned long long)bytes, (unsigned long long)self->capacity);
  if (result->data != self->data)
    memmove(result->data, self->data, (size_t)bytes);
  return STATUS_OK;
}

/* First half times the sigmoid of the second. */
Status kern_glu(Kernel *k) {
  uint32_t axis;
  const Tensor *self = kernel_tensor(k, 0);
  TRY(kernel_dim(k, k->args[1].i, self->rank, &axis));
  if (self->rank == 0 || self->dims[axis] % 2 != 0)
    return kernel_error(k, "the dim to halve is not even");
  int64_t dims[MAX_RANK];
  memcpy(dims, self->dims, self->rank * sizeof dims[0]);
  dims[axis] /= 2;
  TRY(kernel_expect(k, 0, self->rank, dims));
  Tensor *out = k->results[0];
  int64_t numel = tensor_numel(out), inner = dims_count(dims, axis, self->rank);
  for (int64_t i = 0; i < numel; i++) {
    int64_t a = i / inner * (2 * inner) + i % inner;
    double x = tensor_load(self, a), gate = tensor_load(self, a + inner);
    if (self->dtype == DTYPE_F64)
      tensor_store(out, i, x / (1.0 + exp(-gate)));
    else
      tensor_store(out, i, (double)((float)x / (1.0F + expf(-(float)gate))));
  }
  return STATUS_OK;
}
