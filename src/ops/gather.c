/* Picking rows and elements by one index tensor: index_select, embedding, gather.
 *
 * The runtime's kernels take no negative indices here, so neither do these: importers normalise
 * them. */
#include "ops/index_util.h"
#include "ops/ops.h"

/* --- shape rules --- */

Status shape_index_tensor(Graph *g, NodeId n, uint32_t arg, ValueId *index) {
  *index = node_value(g, n, arg);
  DType t = value_dtype(g, *index);
  if (t == DTYPE_I64 || t == DTYPE_I32)
    return STATUS_OK;
  return bad_dtype(g, n, "indices must be i64 or i32, not %s", dtype_name(t));
}

Status shape_index_select(Graph *g, NodeId n) {
  ValueId index;
  uint32_t axis;
  TRY(shape_index_tensor(g, n, 2, &index));
  Dims dims = operand_dims(g, n, 0), picks = value_dims(g, index);
  TRY(arg_axis(g, n, 1, dims.rank, &axis));
  if (picks.rank > 1)
    return bad_shape(g, n, "the index has rank %u, must be 0 or 1", picks.rank);
  if (dims.rank)
    dims.d[axis] = dims_numel(g, &picks);
  else
    TRY(shape_equal(g, n, dims_numel(g, &picks), 1,
                    "the count of indices into a 0-d tensor and 1"));
  return shape_result_dims(g, n, &dims);
}

Status shape_embedding(Graph *g, NodeId n) {
  ValueId indices;
  ValueId weight = node_value(g, n, 0);
  TRY(shape_index_tensor(g, n, 1, &indices));
  Dims rows = value_dims(g, weight), out = value_dims(g, indices);
  if (rows.rank != 2)
    return bad_shape(g, n, "the weight has rank %u, must be 2", rows.rank);
  if (out.rank == MAX_RANK)
    return bad_shape(g, n, "the result would have more than %u dimensions", MAX_RANK);
  out.d[out.rank++] = rows.d[1];
  return shape_result_dims(g, n, &out);
}

Status shape_gather(Graph *g, NodeId n) {
  ValueId index;
  ValueId self = node_value(g, n, 0);
  TRY(shape_index_tensor(g, n, 2, &index));
  TRY(shape_index_within(g, n, 1, self, index));
  Dims out = value_dims(g, index);
  return shape_result_dims(g, n, &out);
}

Status shape_index_within(Graph *g, NodeId n, uint32_t dim_arg, ValueId self, ValueId index) {
  uint32_t axis;
  Dims dims = value_dims(g, self), at = value_dims(g, index);
  TRY(arg_axis(g, n, dim_arg, dims.rank, &axis));
  if ((dims.rank ? dims.rank : 1) != (at.rank ? at.rank : 1))
    return bad_shape(g, n, "self has rank %u, the index %u", dims.rank, at.rank);
  for (uint32_t i = 0; i < dims.rank && i < at.rank; i++)
    if (i != axis)
      TRY(shape_at_least(g, n, dims.d[i], at.d[i], "a dimension of self beside the indexed one"));
  return STATUS_OK;
}

/* --- what the runtime's kernels refuse --- */

const char *check_index_select(const Graph *g, NodeId n, Arena *arena) {
  ValueId self = node_value(g, n, 0);
  uint32_t rank = value_rank(g, self);
  if (rank == 0)
    return "self is 0-d";
  if (value_dim(g, self, (uint32_t)wrap_dim(node_arg(g, n, 1)->i, rank)) == 0)
    return "the indexed dimension has size 0";
  return check_contiguous(g, n, arena);
}

const char *check_index_i64(const Graph *g, NodeId n, Arena *arena) {
  if (value_dtype(g, node_value(g, n, 2)) != DTYPE_I64)
    return "the index must be i64";
  return check_contiguous(g, n, arena);
}

/* --- kernels --- */

static Status need_indices(Kernel *k, uint32_t i, const Tensor **out) {
  *out = kernel_tensor(k, i);
  if ((*out)->dtype != DTYPE_I64 && (*out)->dtype != DTYPE_I32)
    return kernel_error(k, "indices of dtype %s", dtype_name((*out)->dtype));
  return STATUS_OK;
}

/* Copies row index[i] of a table of outer x size rows of `inner` bytes to row i, for each outer. */
static Status pick_rows(Kernel *k, const Tensor *table, const Tensor *index, int64_t outer,
                        int64_t size, int64_t inner) {
  int64_t count = tensor_numel(index);
  char *to = k->results[0]->data;
  for (int64_t i = 0; i < count; i++) {
    int64_t row = tensor_load_int(index, i);
    if (row < 0 || row >= size)
      return kernel_error(k, "index %lld is out of range for a dim of size %lld", (long long)row,
                          (long long)size);
  }
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < count; i++) {
      int64_t row = o * size + tensor_load_int(index, i);
      memcpy(to, (const char *)table->data + row * inner, (size_t)inner);
      to += inner;
    }
  return STATUS_OK;
}

Status kern_index_select(Kernel *k) {
  const Tensor *index;
  uint32_t axis;
  const Tensor *self = kernel_tensor(k, 0);
  TRY(need_indices(k, 2, &index));
  TRY(kernel_expect_dtype(k, self));
  TRY(kernel_dim(k, k->args[1].i, self->rank, &axis));
  int64_t dims[MAX_RANK];
  memcpy(dims, self->dims, self->rank * sizeof dims[0]);
  if (self->rank)
    dims[axis] = tensor_numel(index);
  else if (tensor_numel(index) != 1)
    return kernel_error(k, "a 0-d tensor takes one index");
  TRY(kernel_expect(k, 0, self->rank, dims));
  return pick_rows(k, self, index, dims_count(self->dims, 0, axis),
                   self->rank ? self->dims[axis] : 1,
                   dims_count(self->dims, axis + 1, self->rank) * dtype_size(self->dtype));
}

Status kern_embedding(Kernel *k) {
  const Tensor *indices;
  const Tensor *weight = kernel_tensor(k, 0);
  TRY(need_indices(k, 1, &indices));
  TRY(kernel_expect_dtype(k, weight));
  if (weight->rank != 2 || indices->rank == MAX_RANK)
    return kernel_error(k, "the weight has rank %u", weight->rank);
  int64_t dims[MAX_RANK];
  memcpy(dims, indices->dims, indices->rank * sizeof dims[0]);
  dims[indices->rank] = weight->dims[1];
  TRY(kernel_expect(k, 0, indices->rank + 1, dims));
  return pick_rows(k, weight, indices, 1, weight->dims[0],
                   weight->dims[1] * (int64_t)dtype_size(weight->dtype));
}

Status indexed_walk(Kernel *k, uint32_t dim_arg, const Tensor *self, const Tensor *index,
                    IndexedWalk *out) {
  uint32_t axis, rank = self->rank ? self->rank : 1;
  TRY(kernel_dim(k, k->args[dim_arg].i, self->rank, &axis));
  if (rank != (index->rank ? index->rank : 1))
    return kernel_error(k, "self has rank %u, the index %u", self->rank, index->rank);
  int64_t one[MAX_RANK] = {1};
  const int64_t *dims = index->rank ? index->dims : one, *whole = self->rank ? self->dims : one;
  for (uint32_t i = 0; i < rank; i++)
    if (i != axis && dims[i] > whole[i])
      return kernel_error(k, "dim %u of the index is larger than self's", i);
  *out = (IndexedWalk){.walk = walk_make(rank, dims), .index = index, .size = whole[axis]};
  int64_t stride = 1;
  for (uint32_t i = rank; i-- > 0;) {
    out->walk.first_strides[i] = i == axis ? 0 : stride;
    out->stride = i == axis ? stride : out->stride;
    stride *= whole[i];
  }
  return STATUS_OK;
}

Status indexed_offset(Kernel *k, const IndexedWalk *w, int64_t i, int64_t *offset) {
  int64_t at = tensor_load_int(w->index, i);
  if (at < 0 || at >= w->size)
    return kernel_error(k, "index %lld is out of range for a dim of size %lld", (long long)at,
                        (long long)w->size);
  *offset = w->walk.first + at * w->stride;
  return STATUS_OK;
}

Status kern_gather(Kernel *k) {
  const Tensor *index;
  IndexedWalk w;
  const Tensor *self = kernel_tensor(k, 0);
  TRY(need_indices(k, 2, &index));
  TRY(kernel_expect_dtype(k, self));
  TRY(kernel_expect(k, 0, index->rank, index->dims));
  TRY(indexed_walk(k, 1, self, index, &w));
  size_t element = dtype_size(self->dtype);
  int64_t count = tensor_numel(index);
  for (int64_t i = 0; i < count; i++, walk_next(&w.walk)) {
    int64_t from = 0;
    TRY(indexed_offset(k, &w, i, &from));
    memcpy((char *)k->results[0]->data + (size_t)i * element,
           (const char *)self->data + (size_t)from * element, element);
  }
  return STATUS_OK;
}
