/* index.Tensor and index_put: advanced indexing with several index tensors, gaps and masks.
 *
 * torch's rules: index tensors broadcast against each other to a block of dims; the block stands
 * where they stood when they are adjacent, else in front. A mask of rank r stands for r index
 * tensors, the coordinates of its true elements. Indices may be negative. The runtime's kernel has
 * the same rules. */
#include "ops/index_util.h"
#include "ops/ops.h"

static bool is_mask(DType t) { return t == DTYPE_BOOL || t == DTYPE_U8; }

/* --- shape rules --- */

/* What the list of indices does to the dims of self. */
typedef struct IndexLayout {
  uint32_t indexed;    /* set of dims of self */
  uint32_t block_rank; /* of the broadcast index tensors */
  uint32_t block_at;   /* its position in the result */
  uint32_t result_rank;
  bool has_mask;
} IndexLayout;

/* Position of the block and rank of the result, from the set of indexed dims. */
static void place_block(IndexLayout *l, uint32_t rank) {
  uint32_t first = 0, last = 0, count = 0;
  for (uint32_t i = 0; i < rank; i++)
    if (l->indexed >> i & 1) {
      first = count++ ? first : i;
      last = i;
    }
  bool adjacent = count == 0 || last - first + 1 == count;
  l->block_at = adjacent ? first : 0;
  l->result_rank = rank - count + l->block_rank;
}

static Status layout_of(Graph *g, NodeId n, const Dims *self, IndexLayout *l) {
  *l = (IndexLayout){0};
  uint32_t at = 0, count = node_list_count(g, n, 1);
  for (uint32_t i = 0; i < count; i++) {
    ValueId v = node_list_value(g, n, 1, i);
    uint32_t takes = 1, rank = v ? value_rank(g, v) : 0;
    if (v && is_mask(value_dtype(g, v))) {
      if (rank == 0)
        return bad_shape(g, n, "index %u is a 0-d mask", i);
      takes = rank;
      rank = 1;
      l->has_mask = true;
    } else if (v && value_dtype(g, v) != DTYPE_I64 && value_dtype(g, v) != DTYPE_I32) {
      return bad_dtype(g, n, "index %u is %s, must be i64, i32 or a mask", i,
                       dtype_name(value_dtype(g, v)));
    }
    if (takes > self->rank - at)
      return bad_shape(g, n, "the indices stand for more than the %u dimensions of self",
                       self->rank);
    if (v) {
      l->indexed |= (((uint32_t)1 << takes) - 1) << at;
      l->block_rank = rank > l->block_rank ? rank : l->block_rank;
    }
    at += takes;
  }
  place_block(l, self->rank);
  if (l->result_rank > MAX_RANK)
    return bad_shape(g, n, "the result would have more than %u dimensions", MAX_RANK);
  return STATUS_OK;
}

/* Checks masks against the dims they stand for; gives the bound of the number of true elements, and
 * the last mask. */
static Status check_masks(Graph *g, NodeId n, const Dims *self, int64_t *bound, ValueId *only) {
  *bound = INT64_MAX;
  uint32_t at = 0, masks = 0;
  for (uint32_t i = 0; i < node_arg(g, n, 1)->count; i++) {
    ValueId v = node_list_value(g, n, 1, i);
    if (!v || !is_mask(value_dtype(g, v))) {
      at++;
      continue;
    }
    Dims mask = value_dims(g, v);
    for (uint32_t d = 0; d < mask.rank; d++)
      TRY(shape_equal(g, n, mask.d[d], self->d[at + d], "dims of a mask and of self"));
    *bound = min_i64(*bound, sym_upper(&g->syms, dims_numel(g, &mask)));
    at += mask.rank;
    *only = masks++ ? 0 : v;
  }
  return STATUS_OK;
}

/* Broadcasts the index tensors; all masks are taken to have `count` true elements. */
static Status block_dims(Graph *g, NodeId n, SymInt count, Dims *block) {
  *block = (Dims){0};
  for (uint32_t i = 0; i < node_arg(g, n, 1)->count; i++) {
    ValueId v = node_list_value(g, n, 1, i);
    if (!v)
      continue;
    Dims dims = is_mask(value_dtype(g, v)) ? (Dims){1, {count}} : value_dims(g, v);
    TRY(shape_broadcast(g, n, block, &dims));
  }
  return STATUS_OK;
}

/* Dims of self[indices]. For index.Tensor the count of a mask is taken from the result type when it
 * has one already. */
static Status indexed_dims(Graph *g, NodeId n, const Dims *self, Dims *out) {
  IndexLayout l;
  TRY(layout_of(g, n, self, &l));
  SymInt count = 0;
  Dims block = {0};
  if (l.has_mask) {
    int64_t bound;
    ValueId mask = 0;
    TRY(check_masks(g, n, self, &bound, &mask));
    uint32_t at = l.block_at + l.block_rank - 1;
    if (node_cget(g, n)->op == OP_INDEX_TENSOR)
      count = shape_count(g, n, l.result_rank, at, bound, mask);
    else
      count =
          1; /* values of an index_put broadcast; what they broadcast to is checked while running */
  }
  if (l.indexed)
    TRY(block_dims(g, n, count, &block));
  Dims kept = dims_reduce(self, l.indexed, false);
  *out = (Dims){.rank = l.result_rank};
  memcpy(out->d, kept.d, l.block_at * sizeof kept.d[0]);
  memcpy(out->d + l.block_at, block.d, block.rank * sizeof kept.d[0]);
  memcpy(out->d + l.block_at + block.rank, kept.d + l.block_at,
         (kept.rank - l.block_at) * sizeof kept.d[0]);
  return STATUS_OK;
}

Status shape_index(Graph *g, NodeId n) {
  Dims dims = operand_dims(g, n, 0), out;
  TRY(indexed_dims(g, n, &dims, &out));
  return shape_result_dims(g, n, &out);
}

Status shape_index_put(Graph *g, NodeId n) {
  IndexLayout l;
  ValueId self = node_value(g, n, 0), values = node_value(g, n, 2);
  Dims dims = value_dims(g, self), given = value_dims(g, values), target;
  TRY(indexed_dims(g, n, &dims, &target));
  TRY(layout_of(g, n, &dims, &l));
  if (!l.has_mask)
    TRY(shape_broadcasts_to(g, n, &given, &target, "values"));
  else if (given.rank > target.rank)
    return bad_shape(g, n, "values have rank %u, more than the %u of what they are written to",
                     given.rank, target.rank);
  if (value_dtype(g, self) != value_dtype(g, values))
    return bad_dtype(g, n, "self is %s, values are %s", dtype_name(value_dtype(g, self)),
                     dtype_name(value_dtype(g, values)));
  return shape_result(g, n, 0, value_dtype(g, self), &dims);
}

/* --- what the runtime's kernels refuse --- */

/* index.Tensor moves bytes of any type when it has one index tensor of rank 1; otherwise, and in
 * index_put, the kernel knows fewer types (op_index.cpp of ExecuTorch 1.4.1). */
const char *check_index(const Graph *g, NodeId n, Arena *arena) {
  uint32_t tensors = 0;
  bool plain = node_cget(g, n)->op == OP_INDEX_TENSOR;
  for (uint32_t i = 0; i < node_list_count(g, n, 1); i++) {
    ValueId v = node_list_value(g, n, 1, i);
    tensors += v != 0;
    plain = plain && (!v || (!is_mask(value_dtype(g, v)) && value_rank(g, v) == 1));
  }
  if (!tensors)
    return "no dimension is indexed";
  DType dtype = value_dtype(g, node_value(g, n, 0));
  if (!(plain && tensors == 1) && !dtype_in(dtype, DTS_REAL_BOOL))
    return arena_printf(arena, "%s is only taken with one index tensor of rank 1",
                        dtype_name(dtype));
  return check_contiguous(g, n, arena);
}

/* In place the kernel has one case: an index tensor of rank 1, whose rows are replaced. */
const char *check_index_put_(const Graph *g, NodeId n, Arena *arena) {
  uint32_t tensors = 0;
  for (uint32_t i = 0; i < node_list_count(g, n, 1); i++) {
    ValueId v = node_list_value(g, n, 1, i);
    tensors += v != 0;
    if (v && (is_mask(value_dtype(g, v)) || value_rank(g, v) != 1))
      return "the index tensor must have rank 1";
  }
  if (tensors != 1)
    return "there must be one index tensor";
  if (arg_flag(g, n, 3))
    return "accumulate must be false";
  return check_index(g, n, arena);
}

/* --- kernels --- */

/* One index tensor, masks taken apart into coordinates. */
typedef struct IndexTensor {
  Tensor tensor; /* of i64 or i32 */
  uint32_t dim;  /* of self */
} IndexTensor;

typedef struct IndexPlan {
  const Tensor *self;
  uint32_t count;
  IndexTensor indices[MAX_RANK];
  bool has_mask;
  uint32_t rank; /* of the result */
  int64_t dims[MAX_RANK];
  uint32_t block_at, block_rank;
  int64_t before, block, behind;
  int64_t *before_offsets, *block_offsets, *behind_offsets; /* behind NULL: 0, 1, 2, … */
} IndexPlan;

static Status add_index(Kernel *k, IndexPlan *p, const Tensor *t, uint32_t dim) {
  if (dim >= p->self->rank || p->count == MAX_RANK)
    return kernel_error(k, "more indices than dims");
  p->indices[p->count++] = (IndexTensor){*t, dim};
  return STATUS_OK;
}

/* Adds the coordinates of the true elements of a mask over dims dim… of self. */
static Status add_mask(Kernel *k, IndexPlan *p, const Tensor *mask, uint32_t dim) {
  p->has_mask = true;
  if (mask->rank == 0 || dim + mask->rank > p->self->rank)
    return kernel_error(k, "a mask of rank %u does not fit", mask->rank);
  for (uint32_t d = 0; d < mask->rank; d++)
    if (mask->dims[d] != p->self->dims[dim + d])
      return kernel_error(k, "dim %u of the mask has size %lld, self has %lld", d,
                          (long long)mask->dims[d], (long long)p->self->dims[dim + d]);
  int64_t numel = tensor_numel(mask), found = 0;
  const uint8_t *set = mask->data;
  for (int64_t i = 0; i < numel; i++)
    found += set[i] != 0;
  int64_t *coordinates[MAX_RANK];
  for (uint32_t d = 0; d < mask->rank; d++) {
    coordinates[d] = arena_calloc(k->scratch, (size_t)found, sizeof(int64_t));
    Tensor t = {.dtype = DTYPE_I64, .rank = 1, .dims = {found}, .data = coordinates[d]};
    TRY(add_index(k, p, &t, dim + d));
  }
  Walk w = walk_make(mask->rank, mask->dims);
  for (int64_t i = 0, at = 0; i < numel; i++, walk_next(&w)) {
    for (uint32_t d = 0; set[i] && d < mask->rank; d++)
      coordinates[d][at] = w.index[d];
    at += set[i] != 0;
  }
  return STATUS_OK;
}

static Status collect_indices(Kernel *k, IndexPlan *p) {
  uint32_t dim = 0;
  const KernelArg *list = &k->args[1];
  for (uint32_t i = 0; list->kind == ARG_VALUES && i < list->count; i++) {
    const Tensor *t = list->tensors[i];
    if (t && is_mask(t->dtype)) {
      TRY(add_mask(k, p, t, dim));
      dim += t->rank;
      continue;
    }
    if (t && t->dtype != DTYPE_I64 && t->dtype != DTYPE_I32)
      return kernel_error(k, "index %u is %s", i, dtype_name(t->dtype));
    if (t)
      TRY(add_index(k, p, t, dim));
    dim++;
  }
  return STATUS_OK;
}

/* Broadcasts the index tensors to the dims of the block. */
static Status broadcast_block(Kernel *k, IndexPlan *p, int64_t *dims) {
  p->block_rank = 0;
  for (uint32_t i = 0; i < p->count; i++)
    if (p->indices[i].tensor.rank > p->block_rank)
      p->block_rank = p->indices[i].tensor.rank;
  for (uint32_t d = 0; d < p->block_rank; d++)
    dims[d] = 1;
  for (uint32_t i = 0; i < p->count; i++) {
    const Tensor *t = &p->indices[i].tensor;
    for (uint32_t d = 0; d < t->rank; d++) {
      int64_t *have = &dims[p->block_rank - t->rank + d];
      if (t->dims[d] == 1 || t->dims[d] == *have)
        continue;
      if (*have != 1)
        return kernel_error(k, "index tensors of sizes %lld and %lld do not fit together",
                            (long long)*have, (long long)t->dims[d]);
      *have = t->dims[d];
    }
  }
  return STATUS_OK;
}

/* Element offset in self of every position of the block. */
static Status block_offsets(Kernel *k, IndexPlan *p, const int64_t *dims) {
  int64_t strides[MAX_RANK];
  strides_of(p->self, strides);
  p->block = 1;
  for (uint32_t d = 0; d < p->block_rank; d++)
    if (!mul_i64(p->block, dims[d], &p->block))
      return kernel_error(k, "too many indices");
  p->block_offsets = arena_calloc(k->scratch, (size_t)p->block, sizeof(int64_t));
  for (uint32_t i = 0; i < p->count; i++) {
    const IndexTensor *index = &p->indices[i];
    int64_t size = p->self->dims[index->dim];
    Walk w = walk_make(p->block_rank, dims);
    strides_broadcast(&index->tensor, p->block_rank, dims, w.first_strides);
    for (int64_t b = 0; b < p->block; b++, walk_next(&w)) {
      int64_t v = tensor_load_int(&index->tensor, w.first);
      if (v < -size || v >= size)
        return kernel_error(k, "index %lld is out of range for dim %u of size %lld", (long long)v,
                            index->dim, (long long)size);
      p->block_offsets[b] += (v < 0 ? v + size : v) * strides[index->dim];
    }
  }
  return STATUS_OK;
}

/* Offsets in self of every position of some of its dims. */
static int64_t *dims_offsets(Kernel *k, uint32_t rank, const int64_t *dims, const int64_t *strides,
                             int64_t *count) {
  *count = dims_count(dims, 0, rank);
  int64_t *offsets = arena_calloc(k->scratch, (size_t)*count, sizeof *offsets);
  Walk w = walk_make(rank, dims);
  memcpy(w.first_strides, strides, rank * sizeof *strides);
  for (int64_t i = 0; i < *count; i++, walk_next(&w))
    offsets[i] = w.first;
  return offsets;
}

static Status plan_index(Kernel *k, IndexPlan *p) {
  IndexLayout l = {0};
  int64_t block[MAX_RANK], strides[MAX_RANK], kept[MAX_RANK], kept_strides[MAX_RANK];
  *p = (IndexPlan){.self = kernel_tensor(k, 0)};
  TRY(collect_indices(k, p));
  TRY(broadcast_block(k, p, block));
  TRY(block_offsets(k, p, block));
  strides_of(p->self, strides);
  for (uint32_t i = 0; i < p->count; i++)
    l.indexed |= (uint32_t)1 << p->indices[i].dim;
  l.block_rank = p->block_rank;
  place_block(&l, p->self->rank);
  if (l.result_rank > MAX_RANK)
    return kernel_error(k, "the result has too many dims");
  uint32_t rest = 0, highest = 0;
  for (uint32_t i = 0; i < p->self->rank; i++) {
    if (l.indexed >> i & 1) {
      highest = i + 1;
      continue;
    }
    kept[rest] = p->self->dims[i];
    kept_strides[rest++] = strides[i];
  }
  p->rank = l.result_rank;
  memcpy(p->dims, kept, l.block_at * sizeof kept[0]);
  memcpy(p->dims + l.block_at, block, p->block_rank * sizeof kept[0]);
  memcpy(p->dims + l.block_at + p->block_rank, kept + l.block_at,
         (rest - l.block_at) * sizeof kept[0]);
  p->before_offsets = dims_offsets(k, l.block_at, kept, kept_strides, &p->before);
  if (rest - l.block_at == p->self->rank - highest) { /* only dims behind all indices are left */
    p->behind = 1;
    for (uint32_t i = l.block_at; i < rest; i++)
      p->behind *= kept[i];
  } else {
    p->behind_offsets = dims_offsets(k, rest - l.block_at, kept + l.block_at,
                                     kept_strides + l.block_at, &p->behind);
  }
  return STATUS_OK;
}

Status kern_index(Kernel *k) {
  IndexPlan p;
  TRY(plan_index(k, &p));
  TRY(kernel_expect_dtype(k, p.self));
  if (p.has_mask)
    TRY(kernel_resize(k, 0, p.rank, p.dims));
  TRY(kernel_expect(k, 0, p.rank, p.dims));
  size_t element = dtype_size(p.self->dtype);
  const char *from = p.self->data;
  char *to = k->results[0]->data;
  for (int64_t a = 0; a < p.before && p.behind; a++)
    for (int64_t b = 0; b < p.block; b++) {
      const char *base = from + (size_t)(p.before_offsets[a] + p.block_offsets[b]) * element;
      if (!p.behind_offsets)
        memcpy(to, base, (size_t)p.behind * element);
      for (int64_t c = 0; p.behind_offsets && c < p.behind; c++)
        memcpy(to + (size_t)c * element, base + (size_t)p.behind_offsets[c] * element, element);
      to += (size_t)p.behind * element;
    }
  return STATUS_OK;
}

/* out[i] = v, or += v. */
static void put_element(Tensor *out, int64_t i, const Tensor *values, int64_t v, bool accumulate) {
  size_t element = dtype_size(out->dtype);
  if (!accumulate)
    memcpy((char *)out->data + (size_t)i * element,
           (const char *)values->data + (size_t)v * element, element);
  else if (dtype_is_float(out->dtype))
    tensor_store(out, i, tensor_load(out, i) + tensor_load(values, v));
  else
    tensor_store_int(
        out, i,
        (int64_t)((uint64_t)tensor_load_int(out, i) + (uint64_t)tensor_load_int(values, v)));
}

Status kern_index_put(Kernel *k) {
  IndexPlan p;
  TRY(plan_index(k, &p));
  const Tensor *values = kernel_tensor(k, 2);
  TRY(kernel_expect_dtype(k, p.self));
  TRY(kernel_expect_dtype(k, values));
  TRY(kernel_expect(k, 0, p.self->rank, p.self->dims));
  bool fits = values->rank <= p.rank;
  for (uint32_t d = 0; fits && d < values->rank; d++)
    fits = values->dims[d] == 1 || values->dims[d] == p.dims[p.rank - values->rank + d];
  if (!fits)
    return kernel_error(k, "values do not have the shape of what they are written to");
  Tensor *out = k->results[0];
  if (out->data != p.self->data) /* the same in place */
    memcpy(out->data, p.self->data, tensor_bytes(p.self));
  Walk w = walk_make(p.rank, p.dims);
  strides_broadcast(values, p.rank, p.dims, w.first_strides);
  bool accumulate = k->args[3].i != 0;
  for (int64_t a = 0; a < p.before; a++)
    for (int64_t b = 0; b < p.block; b++)
      for (int64_t c = 0; c < p.behind; c++, walk_next(&w)) {
        int64_t at =
            p.before_offsets[a] + p.block_offsets[b] + (p.behind_offsets ? p.behind_offsets[c] : c);
        put_element(out, at, values, w.first, accumulate);
      }
  return STATUS_OK;
}
