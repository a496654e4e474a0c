/* cat, stack and their inverses split, split_with_sizes, unbind.
 *
 * As in torch, cat skips tensors of shape [0] and promotes the dtypes of all; the number of pieces
 * of a split must be known when lowering, their sizes need not be. */
#include "ops/elementwise.h"
#include "ops/move.h"
#include "ops/ops.h"
#include "ops/shape_util.h"

enum { PIECES_MAX = 4096 };

/* --- shape rules --- */

static bool is_legacy_empty(const Dims *d) { return d->rank == 1 && d->d[0] == 0; }

static Status cat_add(Graph *g, NodeId n, Dims *out, const Dims *dims, uint32_t axis) {
  if (dims->rank != out->rank)
    return bad_shape(g, n, "tensors of ranks %u and %u cannot be joined", out->rank, dims->rank);
  for (uint32_t i = 0; i < dims->rank; i++) {
    if (i == axis)
      out->d[i] = sym_add(&g->syms, out->d[i], dims->d[i]);
    else
      TRY(shape_equal(g, n, out->d[i], dims->d[i], "dims of tensors to join"));
    if (i != axis && sym_is_const(dims->d[i]))
      out->d[i] = dims->d[i];
  }
  return STATUS_OK;
}

Status shape_cat(Graph *g, NodeId n) {
  uint32_t count = node_list_count(g, n, 0);
  int64_t dim;
  TRY(arg_const_int(g, n, 1, &dim));
  if (!count)
    return bad_arg(g, n, "there is no tensor to join");
  Dims out = {0};
  DType dtype = DTYPE_NONE;
  bool found = false;
  uint32_t axis = 0;
  for (uint32_t i = 0; i < count; i++) {
    ValueId v = node_list_value(g, n, 0, i);
    Dims dims = value_dims(g, v);
    if (dims.rank == 0)
      return bad_shape(g, n, "a 0-d tensor cannot be joined");
    DType mine = value_dtype(g, v);
    if (dtype == DTYPE_NONE || dtype == mine)
      dtype = mine;
    else
      TRY(shape_promote(g, n, dtype, mine, &dtype));
    if (is_legacy_empty(&dims))
      continue;
    if (found) {
      TRY(cat_add(g, n, &out, &dims, axis));
      continue;
    }
    out = dims;
    found = true;
    TRY(shape_axis(g, n, dim, out.rank, &axis));
  }
  if (!found) {
    out = (Dims){.rank = 1};
    TRY(shape_axis(g, n, dim, 1, &axis));
  }
  return shape_result(g, n, 0, dtype, &out);
}

Status shape_stack(Graph *g, NodeId n) {
  uint32_t count = node_list_count(g, n, 0);
  uint32_t axis;
  if (!count)
    return bad_arg(g, n, "there is no tensor to stack");
  ValueId first = node_list_value(g, n, 0, 0);
  Dims in = value_dims(g, first), out = {0};
  DType dtype = value_dtype(g, first);
  if (in.rank == MAX_RANK)
    return bad_shape(g, n, "the result would have more than %u dimensions", MAX_RANK);
  TRY(arg_axis(g, n, 1, in.rank + 1, &axis));
  for (uint32_t i = 1; i < count; i++) {
    ValueId v = node_list_value(g, n, 0, i);
    Dims dims = value_dims(g, v);
    if (dims.rank != in.rank)
      return bad_shape(g, n, "tensors of ranks %u and %u cannot be stacked", in.rank, dims.rank);
    for (uint32_t d = 0; d < in.rank; d++)
      TRY(shape_equal(g, n, in.d[d], dims.d[d], "dims of tensors to stack"));
    if (value_dtype(g, v) != dtype)
      TRY(shape_promote(g, n, dtype, value_dtype(g, v), &dtype));
  }
  for (uint32_t i = 0; i <= in.rank; i++)
    out.d[out.rank++] = i == axis ? (SymInt)count : in.d[i < axis ? i : i - 1];
  return shape_result(g, n, 0, dtype, &out);
}

/* Gives the node count results; a node that is checked again must have them already. */
static Status pieces(Graph *g, NodeId n, SymInt count) {
  if (!sym_is_const(count)) {
    const char *text = dim_text(g, count);
    return bad_shape(g, n, "the number of pieces, %s, must be known when lowering", text);
  }
  if (count < 1 || count > PIECES_MAX)
    return bad_shape(g, n, "%lld pieces: between 1 and %d are possible", (long long)count,
                     PIECES_MAX);
  uint32_t have = node_cget(g, n)->result_count;
  if (have && have != (uint32_t)count)
    return bad_shape(g, n, "%u results for %lld pieces", have, (long long)count);
  result_list_size(g, n, (uint32_t)count);
  return STATUS_OK;
}

static Status split_axis(Graph *g, NodeId n, uint32_t arg, Dims *in, uint32_t *axis) {
  if (in->rank == 0)
    return bad_shape(g, n, "a 0-d tensor cannot be split");
  return arg_axis(g, n, arg, in->rank, axis);
}

Status shape_split_copy(Graph *g, NodeId n) {
  SymInt size;
  uint32_t axis;
  SymTable *t = &g->syms;
  TRY(arg_int(g, n, 1, &size));
  Dims dims = operand_dims(g, n, 0);
  TRY(split_axis(g, n, 2, &dims, &axis));
  SymInt whole = dims.d[axis];
  if (sym_upper(t, size) < 0 || (size == 0 && whole != 0))
    return bad_arg(g, n, "the size of the pieces must be positive");
  SymInt count = size == 0 || whole == 0 ? 1 : sym_ceildiv(t, whole, size);
  TRY(pieces(g, n, count));
  for (uint32_t i = 0; i < (uint32_t)count; i++) {
    bool last = i + 1 == (uint32_t)count;
    dims.d[axis] = last ? sym_sub(t, whole, sym_mul(t, size, count - 1)) : size;
    TRY(shape_result(g, n, i, operand_dtype(g, n, 0), &dims));
  }
  return STATUS_OK;
}

Status shape_split_with_sizes_copy(Graph *g, NodeId n) {
  uint32_t axis;
  Dims dims = operand_dims(g, n, 0);
  TRY(split_axis(g, n, 2, &dims, &axis));
  const Arg *sizes = node_arg(g, n, 1);
  if (sizes->kind != ARG_INTS)
    return bad_arg(g, n, "argument 'split_sizes' must be a list of integers");
  uint32_t count = sizes->count;
  SymInt sum = 0;
  for (uint32_t i = 0; i < count; i++) {
    SymInt size = node_ints(g, n, 1)[i];
    if (sym_upper(&g->syms, size) < 0)
      return bad_arg(g, n, "size %u is negative", i);
    sum = sym_add(&g->syms, sum, size);
  }
  TRY(shape_equal(g, n, sum, dims.d[axis], "the sum of the sizes and the dimension"));
  TRY(pieces(g, n, count));
  for (uint32_t i = 0; i < count; i++) {
    dims.d[axis] = node_ints(g, n, 1)[i];
    TRY(shape_result(g, n, i, operand_dtype(g, n, 0), &dims));
  }
  return STATUS_OK;
}

Status shape_unbind_copy(Graph *g, NodeId n) {
  uint32_t axis;
  Dims dims = operand_dims(g, n, 0);
  TRY(split_axis(g, n, 1, &dims, &axis));
  SymInt count = dims.d[axis];
  TRY(pieces(g, n, count));
  memmove(&dims.d[axis], &dims.d[axis + 1], (dims.rank - axis - 1) * sizeof dims.d[0]);
  dims.rank--;
  for (uint32_t i = 0; i < (uint32_t)count; i++)
    TRY(shape_result(g, n, i, operand_dtype(g, n, 0), &dims));
  return STATUS_OK;
}

/* --- what the runtime's kernels refuse --- */

/* Tensors and result must share one memory layout. */
const char *check_cat(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  uint8_t order = value_type(g, node_result(g, n, 0))->order;
  for (uint32_t i = 0; i < node_list_count(g, n, 0); i++)
    if (value_type(g, node_list_value(g, n, 0, i))->order != order)
      return "the tensors and the result have different memory layouts";
  return NULL;
}

const char *check_pieces(const Graph *g, NodeId n, Arena *arena) {
  if (!type_is_static(value_type(g, node_value(g, n, 0))))
    return "the size of self is not static: the kernel does not resize the pieces";
  return check_contiguous(g, n, arena);
}

/* --- kernels --- */

/* A tensor as [outer, dims[axis], inner]: the products of the dims before and behind the axis. */
typedef struct Blocks {
  int64_t outer, inner; /* elements */
} Blocks;

static Blocks blocks_of(const Tensor *t, uint32_t axis) {
  return (Blocks){dims_count(t->dims, 0, axis), dims_count(t->dims, axis + 1, t->rank)};
}

/* Copies src into the result at offset `at` of the axis. */
static Status cat_one(Kernel *k, const Tensor *src, uint32_t axis, int64_t at) {
  Tensor *out = k->results[0];
  bool fits = src->rank == out->rank && src->dims[axis] <= out->dims[axis] - at;
  for (uint32_t i = 0; fits && i < out->rank; i++)
    fits = i == axis || src->dims[i] == out->dims[i];
  if (!fits)
    return kernel_error(k, "operands and result of the join do not fit");
  Tensor same = kernel_in_dtype(k, src, out->dtype);
  unsigned element = dtype_size(out->dtype);
  MoveSide dst = move_side(out);
  move_offset(&dst, element, at, dst.strides[axis]);
  move_elements(element, src->rank, src->dims, dst, move_side(&same));
  return STATUS_OK;
}

Status kern_cat(Kernel *k) {
  Tensor *out = k->results[0];
  uint32_t axis;
  int64_t at = 0;
  TRY(kernel_dim(k, k->args[1].i, out->rank, &axis));
  if (k->args[0].kind != ARG_VALUES || out->rank == 0)
    return kernel_error(k, "nothing to join");
  for (uint32_t i = 0; i < k->args[0].count; i++) {
    const Tensor *src = k->args[0].tensors[i];
    if (!src)
      return kernel_error(k, "tensor %u is absent", i);
    if (src->rank == 1 && src->dims[0] == 0)
      continue;
    TRY(cat_one(k, src, axis, at));
    at += src->dims[axis];
  }
  if (at != out->dims[axis])
    return kernel_error(k, "operands fill %lld of %lld", (long long)at, (long long)out->dims[axis]);
  return STATUS_OK;
}

Status kern_stack(Kernel *k) {
  Tensor *out = k->results[0];
  uint32_t axis;
  TRY(kernel_dim(k, k->args[1].i, out->rank, &axis));
  if (k->args[0].kind != ARG_VALUES || out->rank == 0 ||
      (int64_t)k->args[0].count != out->dims[axis])
    return kernel_error(k, "%u tensors do not make the result", k->args[0].count);
  for (uint32_t i = 0; i < k->args[0].count; i++) {
    if (!k->args[0].tensors[i])
      return kernel_error(k, "tensor %u is absent", i);
    Tensor src = *k->args[0].tensors[i];
    if (src.rank + 1 != out->rank)
      return kernel_error(k, "tensor %u has rank %u", i, src.rank);
    memmove(&src.dims[axis + 1], &src.dims[axis], (src.rank - axis) * sizeof src.dims[0]);
    src.dims[axis] = 1;
    src.rank++;
    TRY(cat_one(k, &src, axis, i));
  }
  return STATUS_OK;
}

/* Result i = self[at … at + size) along the axis; with drop, the axis (of size 1) is not in the
 * result. */
static Status split_one(Kernel *k, uint32_t axis, uint32_t i, int64_t at, int64_t size, bool drop) {
  const Tensor *self = kernel_tensor(k, 0);
  int64_t dims[MAX_RANK];
  uint32_t rank = 0;
  if (size < 0 || size > self->dims[axis] - at)
    return kernel_error(k, "piece %u reaches past the end", i);
  for (uint32_t d = 0; d < self->rank; d++)
    if (d != axis || !drop)
      dims[rank++] = d == axis ? size : self->dims[d];
  TRY(kernel_expect(k, i, rank, dims));
  TRY(kernel_expect_dtype(k, self));
  if (k->results[i]->dtype != self->dtype)
    return kernel_error(k, "piece %u has another dtype", i);
  Blocks b = blocks_of(self, axis);
  int64_t count[3] = {b.outer, size, b.inner};
  MoveSide src = {self->data, {self->dims[axis] * b.inner, b.inner, 1}};
  MoveSide dst = {k->results[i]->data, {size * b.inner, b.inner, 1}};
  move_offset(&src, dtype_size(self->dtype), at, b.inner);
  move_elements(dtype_size(self->dtype), 3, count, dst, src);
  return STATUS_OK;
}

static Status split_start(Kernel *k, uint32_t arg, const Tensor **self, uint32_t *axis) {
  *self = kernel_tensor(k, 0);
  if ((*self)->rank == 0)
    return kernel_error(k, "a 0-d tensor cannot be split");
  return kernel_dim(k, k->args[arg].i, (*self)->rank, axis);
}

Status kern_split_copy(Kernel *k) {
  const Tensor *self;
  uint32_t axis;
  TRY(split_start(k, 2, &self, &axis));
  int64_t at = 0, size = k->args[1].i, whole = self->dims[axis];
  if (size < 0 || (size == 0 && whole != 0))
    return kernel_error(k, "the size of the pieces must be positive");
  for (uint32_t i = 0; i < k->result_count; i++) {
    int64_t mine = min_i64(size, whole - at);
    TRY(split_one(k, axis, i, at, mine, false));
    at += mine;
  }
  return at == whole ? STATUS_OK : kernel_error(k, "the pieces do not cover the dimension");
}

Status kern_split_with_sizes_copy(Kernel *k) {
  const Tensor *self;
  uint32_t axis;
  TRY(split_start(k, 2, &self, &axis));
  if (k->args[1].kind != ARG_INTS || k->args[1].count != k->result_count)
    return kernel_error(k, "%u results for %u sizes", k->result_count, k->args[1].count);
  int64_t at = 0;
  for (uint32_t i = 0; i < k->result_count; i++) {
    TRY(split_one(k, axis, i, at, k->args[1].ints[i], false));
    at += k->args[1].ints[i];
  }
  return at == self->dims[axis] ? STATUS_OK
                                : kernel_error(k, "the pieces do not cover the dimension");
}

Status kern_unbind_copy(Kernel *k) {
  const Tensor *self;
  uint32_t axis;
  TRY(split_start(k, 1, &self, &axis));
  if (self->dims[axis] != (int64_t)k->result_count)
    return kernel_error(k, "%u results for a dim of size %lld", k->result_count,
                        (long long)self->dims[axis]);
  for (uint32_t i = 0; i < k->result_count; i++)
    TRY(split_one(k, axis, i, i, 1, true));
  return STATUS_OK;
}
