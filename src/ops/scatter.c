/* Writing single elements by index: scatter (of a tensor or a value), scatter_add, masked_scatter.
 *
 * As in the runtime's kernels, negative indices are refused, and of several writes to one element
 * the last one in row-major order of the index wins. */
#include "ops/index_util.h"
#include "ops/ops.h"

/* --- shape rules --- */

static Status same_dtype(Graph *g, NodeId n, ValueId self, ValueId src) {
  if (value_dtype(g, self) == value_dtype(g, src))
    return STATUS_OK;
  return bad_dtype(g, n, "self is %s, the source %s", dtype_name(value_dtype(g, self)),
                   dtype_name(value_dtype(g, src)));
}

Status shape_scatter(Graph *g, NodeId n) {
  ValueId index;
  ValueId self = node_value(g, n, 0);
  TRY(shape_index_tensor(g, n, 2, &index));
  TRY(shape_index_within(g, n, 1, self, index));
  Dims dims = value_dims(g, self), at = value_dims(g, index);
  if (node_cget(g, n)->op == OP_SCATTER_VALUE) {
    DType kind;
    TRY(arg_scalar_kind(g, n, 3, &kind));
    return shape_result_dims(g, n, &dims);
  }
  ValueId src = node_value(g, n, 3);
  TRY(same_dtype(g, n, self, src));
  Dims from = value_dims(g, src);
  if ((from.rank ? from.rank : 1) != (at.rank ? at.rank : 1))
    return bad_shape(g, n, "src has rank %u, the index %u", from.rank, at.rank);
  for (uint32_t i = 0; i < from.rank && i < at.rank; i++)
    TRY(shape_at_least(g, n, from.d[i], at.d[i], "a dimension of src under the index"));
  return shape_result_dims(g, n, &dims);
}

/* That argument 1 is a mask. */
static Status check_mask(Graph *g, NodeId n) {
  DType dtype = operand_dtype(g, n, 1);
  return dtype == DTYPE_BOOL ? STATUS_OK
                             : bad_dtype(g, n, "the mask must be bool, not %s", dtype_name(dtype));
}

Status shape_masked_scatter(Graph *g, NodeId n) {
  TRY(check_mask(g, n));
  TRY(same_dtype(g, n, node_value(g, n, 0), node_value(g, n, 2)));
  Dims out = operand_dims(g, n, 0), other = operand_dims(g, n, 1);
  TRY(shape_broadcast(g, n, &out, &other));
  return shape_result_dims(g, n, &out);
}

Status shape_masked_select(Graph *g, NodeId n) {
  TRY(check_mask(g, n));
  Dims all = operand_dims(g, n, 0), other = operand_dims(g, n, 1), out = {.rank = 1};
  TRY(shape_broadcast(g, n, &all, &other));
  bool whole = dims_same(other.d, other.rank, all.d, all.rank);
  int64_t bound = sym_upper(&g->syms, dims_numel(g, &all));
  out.d[0] = shape_count(g, n, 1, 0, bound, whole ? node_value(g, n, 1) : 0);
  return shape_result_dims(g, n, &out);
}

/* --- what the runtime's kernels refuse --- */

const char *check_scatter_value(const Graph *g, NodeId n, Arena *arena) {
  if (!scalar_fits(g, n, 3, value_dtype(g, node_value(g, n, 0))))
    return "the value is out of range for the element type";
  return check_index_i64(g, n, arena);
}

/* --- kernels --- */

typedef enum ScatterKind { SCATTER_COPY, SCATTER_VALUE, SCATTER_ADD } ScatterKind;

static void add_element(Tensor *out, int64_t to, const Tensor *src, int64_t from) {
  if (dtype_is_float(out->dtype))
    tensor_store(out, to, tensor_load(out, to) + tensor_load(src, from));
  else
    tensor_store_int(
        out, to,
        (int64_t)((uint64_t)tensor_load_int(out, to) + (uint64_t)tensor_load_int(src, from)));
}

/* Walks src along the index: it may be larger. */
static Status walk_source(Kernel *k, const Tensor *src, Walk *w) {
  int64_t one[1] = {1};
  uint32_t rank = src->rank ? src->rank : 1;
  const int64_t *dims = src->rank ? src->dims : one;
  if (rank != w->rank)
    return kernel_error(k, "src has rank %u", src->rank);
  int64_t stride = 1;
  for (uint32_t i = rank; i-- > 0;) {
    if (w->dims[i] > dims[i])
      return kernel_error(k, "dim %u of the index is larger than src's", i);
    w->second_strides[i] = stride;
    stride *= dims[i];
  }
  return STATUS_OK;
}

static Status scatter(Kernel *k, ScatterKind kind) {
  const Tensor *self = kernel_tensor(k, 0), *index = kernel_tensor(k, 2), *src = NULL;
  IndexedWalk w;
  if (index->dtype != DTYPE_I64 && index->dtype != DTYPE_I32)
    return kernel_error(k, "indices of dtype %s", dtype_name(index->dtype));
  TRY(kernel_expect_like(k, self));
  TRY(indexed_walk(k, 1, self, index, &w));
  double storage = 0;
  Tensor value = {.dtype = self->dtype, .data = &storage, .capacity = sizeof storage};
  if (kind != SCATTER_VALUE) {
    src = kernel_tensor(k, 3);
    TRY(kernel_expect_dtype(k, src));
    TRY(walk_source(k, src, &w.walk));
  } else if (k->args[3].kind == ARG_FLOAT) {
    tensor_store(&value, 0, k->args[3].f);
  } else {
    tensor_store_int(&value, 0, k->args[3].i);
  }
  Tensor *out = k->results[0];
  size_t element = dtype_size(out->dtype);
  memcpy(out->data, self->data, tensor_bytes(self));
  const char *from = src ? src->data : value.data;
  int64_t count = tensor_numel(index);
  for (int64_t i = 0; i < count; i++, walk_next(&w.walk)) {
    int64_t to = 0;
    TRY(indexed_offset(k, &w, i, &to));
    if (kind == SCATTER_ADD)
      add_element(out, to, src, w.walk.second);
    else
      memcpy((char *)out->data + (size_t)to * element, from + (size_t)w.walk.second * element,
             element);
  }
  return STATUS_OK;
}

Status kern_scatter(Kernel *k) {
  return scatter(k, k->op == OP_SCATTER_VALUE ? SCATTER_VALUE : SCATTER_COPY);
}

Status kern_scatter_add(Kernel *k) { return scatter(k, SCATTER_ADD); }

/* A walk over the broadcast of self (first) and mask (second). */
static Status masked_walk(Kernel *k, const Tensor **self, const Tensor **mask, Walk *w,
                          int64_t *count) {
  *self = kernel_tensor(k, 0);
  *mask = kernel_tensor(k, 1);
  TRY(kernel_expect_dtype(k, *self));
  const Tensor *sides[2] = {*self, *mask};
  if ((*mask)->dtype != DTYPE_BOOL)
    return kernel_error(k, "the mask is %s", dtype_name((*mask)->dtype));
  *w = (Walk){.rank = (*self)->rank > (*mask)->rank ? (*self)->rank : (*mask)->rank};
  for (uint32_t i = 0; i < w->rank; i++)
    w->dims[i] = 1;
  for (uint32_t s = 0; s < 2; s++)
    for (uint32_t i = 0; i < sides[s]->rank; i++) {
      int64_t size = sides[s]->dims[i], *have = &w->dims[w->rank - sides[s]->rank + i];
      if (size != 1 && size != *have && *have != 1)
        return kernel_error(k, "self and mask do not broadcast: %lld and %lld", (long long)*have,
                            (long long)size);
      *have = size == 1 ? *have : size;
    }
  strides_broadcast(*self, w->rank, w->dims, w->first_strides);
  strides_broadcast(*mask, w->rank, w->dims, w->second_strides);
  *count = 1;
  for (uint32_t i = 0; i < w->rank; i++)
    if (!mul_i64(*count, w->dims[i], count))
      return kernel_error(k, "too many elements");
  return STATUS_OK;
}

Status kern_masked_scatter(Kernel *k) {
  const Tensor *self, *mask;
  Walk w;
  int64_t count, taken = 0;
  TRY(masked_walk(k, &self, &mask, &w, &count));
  const Tensor *source = kernel_tensor(k, 2);
  TRY(kernel_expect_dtype(k, source));
  TRY(kernel_expect(k, 0, w.rank, w.dims));
  size_t element = dtype_size(self->dtype);
  int64_t available = tensor_numel(source);
  for (int64_t i = 0; i < count; i++, walk_next(&w)) {
    bool set = ((const uint8_t *)mask->data)[w.second] != 0;
    if (set && taken == available)
      return kernel_error(k, "the source has only %lld elements", (long long)available);
    const char *from = set ? source->data : self->data;
    memcpy((char *)k->results[0]->data + (size_t)i * element,
           from + (size_t)(set ? taken++ : w.first) * element, element);
  }
  return STATUS_OK;
}

Status kern_masked_select(Kernel *k) {
  const Tensor *self, *mask;
  Walk w;
  int64_t count, found = 0;
  TRY(masked_walk(k, &self, &mask, &w, &count));
  Walk counting = w;
  for (int64_t i = 0; i < count; i++, walk_next(&counting))
    found += ((const uint8_t *)mask->data)[counting.second] != 0;
  TRY(kernel_resize(k, 0, 1, &found));
  size_t element = dtype_size(self->dtype);
  char *to = k->results[0]->data;
  for (int64_t i = 0; i < count; i++, walk_next(&w)) {
    if (!((const uint8_t *)mask->data)[w.second])
      continue;
    memcpy(to, (const char *)self->data + (size_t)w.first * element, element);
    to += element;
  }
  return STATUS_OK;
}
