/* Ops whose result size depends on data: nonzero and repeat_interleave (masked_select is in
 * scatter.c, masks as indices in index.c). The size is an unbacked symbol with the bound that the
 * planner needs. */
#include "ops/index_util.h"
#include "ops/ops.h"

/* --- shape rules --- */

/* Elements of a constant that are not zero. Its bytes may be unaligned; -0.0 is zero. */
static int64_t count_constant(const Graph *g, ValueId v) {
  const Constant *c = value_constant(g, v);
  DType dtype = value_dtype(g, v);
  unsigned size = dtype_size(dtype);
  uint64_t sign = dtype_is_float(dtype) ? (uint64_t)1 << (8 * size - 1) : 0;
  int64_t count = 0;
  for (uint64_t at = 0; size && at + size <= c->size; at += size) {
    uint64_t bits = 0;
    memcpy(&bits, c->data + at, size);
    count += (bits & ~sign) != 0;
  }
  return count;
}

SymInt shape_count(Graph *g, NodeId n, uint32_t rank, uint32_t at, int64_t bound, ValueId counted) {
  const Type *t = value_type(g, node_result(g, n, 0));
  if (t->kind == TYPE_TENSOR && t->rank == rank && at < rank) {
    SymInt have = t->dims[at];
    if (!sym_is_const(have) || (have >= 0 && have <= bound))
      return have;
  }
  if (counted && value_is_const(g, counted))
    return count_constant(g, counted);
  return sym_symbol(&g->syms, SV(""), 0, max_i64(bound, 0), true);
}

Status shape_nonzero(Graph *g, NodeId n) {
  ValueId self = node_value(g, n, 0);
  Dims in = value_dims(g, self), out = {.rank = 2};
  out.d[0] = shape_count(g, n, 2, 0, sym_upper(&g->syms, dims_numel(g, &in)), self);
  out.d[1] = in.rank;
  return shape_result(g, n, 0, DTYPE_I64, &out);
}

/* Sum of a constant of i64 or i32 that holds no negative numbers. */
static Status sum_constant(Graph *g, NodeId n, ValueId v, SymInt *out) {
  const Constant *c = value_constant(g, v);
  unsigned size = dtype_size(value_dtype(g, v));
  int64_t sum = 0;
  for (uint64_t at = 0; at + size <= c->size; at += size) {
    int32_t narrow = 0;
    int64_t times = 0;
    memcpy(size == sizeof narrow ? (void *)&narrow : (void *)&times, c->data + at, size);
    times += narrow;
    if (times < 0 || !add_i64(sum, times, &sum))
      return bad_arg(g, n, "repeats hold %lld", (long long)times);
  }
  *out = sum;
  return STATUS_OK;
}

Status shape_repeat_interleave(Graph *g, NodeId n) {
  ValueId repeats;
  TRY(shape_index_tensor(g, n, 0, &repeats));
  Dims out = {.rank = 1};
  if (value_rank(g, repeats) != 1)
    return bad_shape(g, n, "repeats has rank %u, must be 1", value_rank(g, repeats));
  if (node_arg(g, n, 1)->kind != ARG_NONE)
    TRY(arg_int(g, n, 1, &out.d[0]));
  else if (value_is_const(g, repeats))
    TRY(sum_constant(g, n, repeats, &out.d[0]));
  else
    out.d[0] = shape_count(g, n, 1, 0, INT64_MAX, 0);
  return shape_result(g, n, 0, value_dtype(g, repeats), &out);
}

/* --- kernels --- */

static bool is_set(const Tensor *t, int64_t i) {
  return dtype_is_float(t->dtype) ? tensor_load(t, i) != 0 : tensor_load_int(t, i) != 0;
}

Status kern_nonzero(Kernel *k) {
  const Tensor *self = kernel_tensor(k, 0);
  if (k->results[0]->dtype != DTYPE_I64 || !dtype_in(self->dtype, DTS_REAL_BOOL | DTS_UNSIGNED))
    return kernel_error(k, "positions in a tensor of %s", dtype_name(self->dtype));
  int64_t count = tensor_numel(self), dims[2] = {0, self->rank};
  for (int64_t i = 0; i < count; i++)
    dims[0] += is_set(self, i);
  TRY(kernel_resize(k, 0, 2, dims));
  int64_t *to = k->results[0]->data;
  Walk w = walk_make(self->rank, self->dims);
  for (int64_t i = 0; i < count; i++, walk_next(&w))
    for (uint32_t d = 0; d < self->rank && is_set(self, i); d++)
      *to++ = w.index[d];
  return STATUS_OK;
}

/* 0 repeats[0] times, then 1 repeats[1] times, … */
Status kern_repeat_interleave(Kernel *k) {
  const Tensor *repeats = kernel_tensor(k, 0);
  TRY(kernel_expect_dtype(k, repeats));
  if (repeats->rank != 1 || (repeats->dtype != DTYPE_I64 && repeats->dtype != DTYPE_I32))
    return kernel_error(k, "repeats must be 1-D and of integers");
  int64_t total = 0;
  for (int64_t i = 0; i < repeats->dims[0]; i++) {
    int64_t times = tensor_load_int(repeats, i);
    if (times < 0 || !add_i64(total, times, &total))
      return kernel_error(k, "repeats %lld", (long long)times);
  }
  if (k->args[1].kind == ARG_INT && k->args[1].i != total)
    return kernel_error(k, "output_size is %lld, but the repeats sum to %lld",
                        (long long)k->args[1].i, (long long)total);
  TRY(kernel_resize(k, 0, 1, &total));
  for (int64_t i = 0, at = 0; i < repeats->dims[0]; i++)
    for (int64_t times = tensor_load_int(repeats, i); times > 0; times--)
      tensor_store_int(k->results[0], at++, i);
  return STATUS_OK;
}
