/* as_strided_copy: any regular walk over the elements of a dense tensor, overlaps included. Sizes,
 * strides and the offset count elements. With constants the walk is checked against the operand
 * before anything runs; one of symbolic numbers by the kernel, here and in the runtime. */
#include "ops/move.h"
#include "ops/ops.h"
#include "ops/shape_util.h"

/* The last element that the walk touches, false on overflow; -1 when it touches none. */
static bool last_touched(const int64_t *size, const int64_t *stride, uint32_t rank, int64_t offset,
                         int64_t *last) {
  *last = offset;
  for (uint32_t i = 0; i < rank; i++) {
    int64_t step;
    if (size[i] == 0) {
      *last = -1;
      return true;
    }
    if (__builtin_mul_overflow(size[i] - 1, stride[i], &step) ||
        __builtin_add_overflow(*last, step, last))
      return false;
  }
  return true;
}

static Status walk_lists(Graph *g, NodeId n, IntList *size, IntList *stride, SymInt *offset) {
  TRY(arg_int_list(g, n, 1, size));
  TRY(arg_int_list(g, n, 2, stride));
  *offset = 0;
  if (!node_absent(g, n, 3))
    TRY(arg_int(g, n, 3, offset));
  if (size->count != stride->count || size->count > MAX_RANK)
    return bad_arg(g, n, "%u sizes and %u strides", size->count, stride->count);
  for (uint32_t i = 0; i < size->count; i++) {
    TRY(shape_at_least(g, n, size->v[i], 0, "a size of the walk"));
    TRY(shape_at_least(g, n, stride->v[i], 0, "a stride of the walk"));
  }
  return shape_at_least(g, n, *offset, 0, "the offset of the walk");
}

/* The walk against the elements of self, when all are numbers. */
static Status check_walk(Graph *g, NodeId n, const IntList *size, const IntList *stride,
                         SymInt offset, SymInt numel) {
  int64_t last;
  bool constant = sym_is_const(numel) && sym_is_const(offset);
  for (uint32_t i = 0; i < size->count; i++)
    constant &= sym_is_const(size->v[i]) && sym_is_const(stride->v[i]);
  if (constant && (!last_touched(size->v, stride->v, size->count, offset, &last) || last >= numel))
    return bad_arg(g, n, "the walk leaves the %lld elements of 'self'", (long long)numel);
  return STATUS_OK;
}

Status shape_as_strided_copy(Graph *g, NodeId n) {
  IntList size, stride;
  SymInt offset;
  int64_t count = 1;
  ValueId self = node_value(g, n, 0);
  TRY(walk_lists(g, n, &size, &stride, &offset));
  Dims from = value_dims(g, self), out = {.rank = size.count};
  for (uint32_t i = 0; i < from.rank; i++)
    if (sym_is_const(from.d[i]) && __builtin_mul_overflow(count, from.d[i], &count))
      return bad_shape(g, n, "argument 'self' has too many elements");
  if (size.count)
    memcpy(out.d, size.v, size.count * sizeof *out.d);
  TRY(check_walk(g, n, &size, &stride, offset, dims_numel(g, &from)));
  return shape_result_dims(g, n, &out);
}

Status kern_as_strided_copy(Kernel *k) {
  const Tensor *self = kernel_tensor(k, 0);
  TRY(kernel_expect_dtype(k, self));
  uint32_t rank = k->args[1].count;
  const int64_t *size = k->args[1].ints, *stride = k->args[2].ints;
  int64_t offset = k->args[3].kind == ARG_NONE ? 0 : k->args[3].i, last;
  if (rank != k->args[2].count || rank > MAX_RANK || offset < 0 ||
      !last_touched(size, stride, rank, offset, &last) || last >= tensor_numel(self))
    return kernel_error(k, "the walk leaves the operand");
  TRY(kernel_expect(k, 0, rank, size));
  if (last < 0)
    return STATUS_OK;
  MoveSide from = {.data = self->data};
  if (rank)
    memcpy(from.strides, stride, rank * sizeof *stride);
  move_offset(&from, (unsigned)dtype_size(self->dtype), offset, 1);
  move_elements((unsigned)dtype_size(self->dtype), rank, size, move_side(k->results[0]), from);
  return STATUS_OK;
}
