/* Composite ops made of matrix products and rows: matmul, scaled_dot_product_attention, rms_norm.
 * Like those of composite.c they are decomposed before the edge level; semantics are torch's. */
#include <math.h>

#include "ops/elementwise.h"
#include "ops/gemm.h"
#include "ops/move.h"
#include "ops/ops.h"
#include "ops/shape_util.h"

/* --- shape rules --- */

/* The dims before the last two. */
static Dims batch_dims(const Dims *d) { return dims_make(d->d, d->rank - 2); }

/* A vector counts as a row on the left and as a column on the right; the dim of 1 is dropped from
 * the result. */
Status shape_matmul(Graph *g, NodeId n) {
  ValueId a = node_value(g, n, 0), b = node_value(g, n, 1);
  TRY(shape_one_dtype(g, n, a, b));
  Dims x = value_dims(g, a), y = value_dims(g, b);
  if (x.rank == 0 || y.rank == 0)
    return bad_shape(g, n, "ranks %u and %u: both must be at least 1", x.rank, y.rank);
  bool row = x.rank == 1, column = y.rank == 1;
  if (row)
    x = (Dims){2, {1, x.d[0]}};
  if (column)
    y = (Dims){2, {y.d[0], 1}};
  SymInt rows = x.d[x.rank - 2], columns = y.d[y.rank - 1];
  TRY(shape_equal_of(g, n, (SizeOf){a, x.d[x.rank - 1], "columns"},
                     (SizeOf){b, y.d[y.rank - 2], "rows"}));
  Dims out = batch_dims(&x), other = batch_dims(&y);
  TRY(shape_broadcast(g, n, &out, &other));
  if (!row)
    out.d[out.rank++] = rows;
  if (!column)
    out.d[out.rank++] = columns;
  return shape_result(g, n, 0, value_dtype(g, a), &out);
}

/* With grouped queries the heads of key and value stand for several heads of the query. */
static Status group_heads(Graph *g, NodeId n, const Dims *query, Dims *other) {
  if (query->rank < 3 || other->rank < 3)
    return bad_shape(g, n, "enable_gqa needs a dimension of heads");
  SymInt heads = query->d[query->rank - 3], *mine = &other->d[other->rank - 3];
  SymInt rest = sym_mod(&g->syms, heads, *mine);
  if (*mine == 0 || (sym_is_const(rest) && rest != 0))
    return bad_shape(g, n, "the heads of the query are no multiple of those of key and value");
  if (rest != 0)
    shape_assume(g, n, CONSTRAINT_DIVISIBLE, heads, *mine);
  *mine = heads;
  return STATUS_OK;
}

static Status sdpa_options(Graph *g, NodeId n, ValueId query, ValueId mask) {
  if (arg_flag(g, n, 5) && mask)
    return bad_arg(g, n, "a mask and is_causal cannot both be given");
  const Arg *dropout = node_arg(g, n, 4);
  if ((dropout->kind != ARG_FLOAT && dropout->kind != ARG_INT) || node_scalar(g, n, 4) != 0)
    return bad_arg(g, n, "dropout_p must be 0: programs are for inference");
  if (node_arg(g, n, 6)->kind != ARG_NONE && node_arg(g, n, 6)->kind != ARG_FLOAT)
    return bad_arg(g, n, "argument 'scale' must be a number");
  if (!dtype_is_float(value_dtype(g, query)))
    return bad_dtype(g, n, "attention over %s", dtype_name(value_dtype(g, query)));
  if (mask && value_dtype(g, mask) != DTYPE_BOOL)
    return shape_one_dtype(g, n, query, mask);
  return STATUS_OK;
}

Status shape_sdpa(Graph *g, NodeId n) {
  ValueId query = node_value(g, n, 0), key = node_value(g, n, 1), value = node_value(g, n, 2),
          mask = node_value(g, n, 3);
  TRY(shape_one_dtype(g, n, query, key));
  TRY(shape_one_dtype(g, n, query, value));
  TRY(sdpa_options(g, n, query, mask));
  Dims q = value_dims(g, query), k = value_dims(g, key), v = value_dims(g, value);
  if (q.rank < 2 || k.rank < 2 || v.rank < 2)
    return bad_shape(g, n, "query, key and value need at least 2 dimensions");
  TRY(shape_equal(g, n, q.d[q.rank - 1], k.d[k.rank - 1], "last dims of query and key"));
  TRY(shape_equal(g, n, k.d[k.rank - 2], v.d[v.rank - 2], "lengths of key and value"));
  if (arg_flag(g, n, 7)) {
    TRY(group_heads(g, n, &q, &k));
    TRY(group_heads(g, n, &q, &v));
  }
  Dims out = batch_dims(&q), other = batch_dims(&k);
  TRY(shape_broadcast(g, n, &out, &other));
  other = batch_dims(&v);
  TRY(shape_broadcast(g, n, &out, &other));
  Dims scores = out;
  scores.d[scores.rank++] = q.d[q.rank - 2];
  scores.d[scores.rank++] = k.d[k.rank - 2];
  if (mask) {
    Dims m = value_dims(g, mask);
    TRY(shape_broadcasts_to(g, n, &m, &scores, "attn_mask"));
  }
  out.d[out.rank++] = q.d[q.rank - 2];
  out.d[out.rank++] = v.d[v.rank - 1];
  return shape_result(g, n, 0, value_dtype(g, query), &out);
}

Status shape_rms_norm(Graph *g, NodeId n) {
  IntList shape;
  ValueId input = node_value(g, n, 0);
  TRY(arg_int_list(g, n, 1, &shape));
  ValueId weight = node_value(g, n, 2);
  Dims dims = value_dims(g, input);
  if (shape.count == 0 || shape.count > dims.rank)
    return bad_arg(g, n, "normalized_shape has %u entries, the input rank %u", shape.count,
                   dims.rank);
  if (!dtype_is_float(value_dtype(g, input)))
    return bad_dtype(g, n, "input is %s, must be a float type", dtype_name(value_dtype(g, input)));
  for (uint32_t i = 0; i < shape.count; i++)
    TRY(shape_equal(g, n, shape.v[i], dims.d[dims.rank - shape.count + i],
                    "normalized_shape and the last dims of the input"));
  if (weight) {
    Dims w = value_dims(g, weight);
    TRY(shape_one_dtype(g, n, input, weight));
    if (w.rank != shape.count)
      return bad_shape(g, n, "weight has rank %u, expected %u", w.rank, shape.count);
    for (uint32_t i = 0; i < shape.count; i++)
      TRY(shape_equal(g, n, w.d[i], shape.v[i], "dims of weight and normalized_shape"));
  }
  if (node_arg(g, n, 3)->kind != ARG_NONE && node_arg(g, n, 3)->kind != ARG_FLOAT)
    return bad_arg(g, n, "argument 'eps' must be a number");
  return shape_result_dims(g, n, &dims);
}

/* --- matrix products --- */

/* c[rows, columns] = a[rows, inner] times b, which is [inner, columns] or, transposed, [columns,
 * inner]. All of the dtype to compute in. */
typedef struct Product {
  DType dtype;
  int64_t rows, inner, columns;
  bool transposed;
  bool folds; /* as of the kernel */
} Product;

static void product(const Product *p, const void *a, const void *b, void *c) {
  Gemm g = {.dtype = p->dtype,
            .trans_b = p->transposed,
            .m = p->rows,
            .n = p->columns,
            .k = p->inner,
            .alpha = 1,
            .a = a,
            .b = b,
            .c = c,
            .lda = max_i64(p->inner, 1),
            .ldb = max_i64(p->transposed ? p->inner : p->columns, 1),
            .ldc = max_i64(p->columns, 1),
            .own_loops = p->folds};
  gemm(&g);
}

/* Matrix i of a tensor of matrices of `size` elements. */
static char *matrix_at(const Tensor *t, int64_t i, int64_t size) {
  return (char *)t->data + (size_t)(i * size) * dtype_size(t->dtype);
}

/* Which of its matrices an operand gives to the position `index` of the batch dims. A dim smaller
 * than the batch's, and not 1, is one of grouped heads. */
static int64_t matrix_index(const Tensor *t, const Walk *batch) {
  int64_t at = 0;
  uint32_t rank = t->rank - 2;
  for (uint32_t d = 0; d < rank; d++) {
    uint32_t b = batch->rank - rank + d;
    int64_t size = t->dims[d];
    at = at * size + (size == 1 ? 0 : batch->index[b] / (batch->dims[b] / size));
  }
  return at;
}

/* Whether the batch dims of t broadcast to those of the batch; the last one may be grouped. */
static bool batch_fits(const Tensor *t, const Walk *batch, bool grouped) {
  uint32_t rank = t->rank - 2;
  bool fits = rank <= batch->rank;
  for (uint32_t d = 0; fits && d < rank; d++) {
    int64_t size = t->dims[d], whole = batch->dims[batch->rank - rank + d];
    fits =
        size == 1 || size == whole || (grouped && d + 1 == rank && size > 0 && whole % size == 0);
  }
  return fits;
}

Status kern_matmul(Kernel *k) {
  const Tensor *self = kernel_tensor(k, 0), *other = kernel_tensor(k, 1);
  TRY(kernel_expect_dtype(k, self));
  TRY(kernel_expect_dtype(k, other));
  Tensor a = *self, b = *other, *out = k->results[0];
  if (a.rank == 0 || b.rank == 0 || !dtype_in(a.dtype, DTS_REAL | DTS_UNSIGNED))
    return kernel_error(k, "a product of ranks %u and %u of %s", a.rank, b.rank,
                        dtype_name(a.dtype));
  if (a.rank == 1)
    a = (Tensor){a.dtype, 2, {1, a.dims[0]}, a.data, a.capacity};
  if (b.rank == 1)
    b = (Tensor){b.dtype, 2, {b.dims[0], 1}, b.data, b.capacity};
  DType dtype = compute_dtype(a.dtype);
  Product p = {dtype, a.dims[a.rank - 2], a.dims[a.rank - 1], b.dims[b.rank - 1], false, k->folds};
  uint32_t tail = (self->rank > 1) + (other->rank > 1);
  if (out->rank < tail)
    return kernel_error(k, "the result of the product has rank %u", out->rank);
  Walk batch = walk_make(out->rank - tail, out->dims);
  int64_t matrices = dims_count(batch.dims, 0, batch.rank), size = p.rows * p.columns;
  if (p.inner != b.dims[b.rank - 2] || !batch_fits(&a, &batch, false) ||
      !batch_fits(&b, &batch, false) || matrices * size != tensor_numel(out))
    return kernel_error(k, "operands and result of the product do not fit");
  a = kernel_in_dtype(k, &a, dtype);
  b = kernel_in_dtype(k, &b, dtype);
  Tensor c = kernel_result_in_dtype(k, 0, dtype);
  if (b.rank == 2 && tensor_numel(&a) == matrices * p.rows * p.inner) { /* one tall product */
    p.rows *= matrices;
    product(&p, a.data, b.data, c.data);
    matrices = 0;
  }
  for (int64_t i = 0; i < matrices; i++, walk_next(&batch))
    product(&p, matrix_at(&a, matrix_index(&a, &batch), p.rows * p.inner),
            matrix_at(&b, matrix_index(&b, &batch), p.inner * p.columns), matrix_at(&c, i, size));
  kernel_store_result(k, 0, &c);
  return STATUS_OK;
}

/* --- attention --- */

typedef struct Attention {
  const Tensor *query, *key, *value, *mask;
  Walk batch;
  int64_t rows, length; /* of query, of key and value */
  bool causal;
  double scale;
  EwType type; /* of the scores */
} Attention;

static double get(const void *p, EwType type, int64_t i) {
  return type == EW_F32 ? (double)((const float *)p)[i] : ((const double *)p)[i];
}

static void put(void *p, EwType type, int64_t i, double v) {
  if (type == EW_F32)
    ((float *)p)[i] = (float)v;
  else
    ((double *)p)[i] = v;
}

/* What the mask adds to the score of row i and column j of the batch. */
static double masked(const Attention *a, const int64_t *strides, int64_t i, int64_t j) {
  int64_t at = 0;
  if (a->causal && j > i)
    return -INFINITY;
  if (!a->mask)
    return 0;
  for (uint32_t d = 0; d < a->batch.rank; d++)
    at += a->batch.index[d] * strides[d];
  at += i * strides[a->batch.rank] + j * strides[a->batch.rank + 1];
  if (a->mask->dtype == DTYPE_BOOL)
    return tensor_load_int(a->mask, at) ? 0 : -INFINITY;
  return tensor_load(a->mask, at);
}

/* Scales, masks and normalises the scores in place. */
static void attention_softmax(const Attention *a, const int64_t *mask_strides, void *scores) {
  for (int64_t i = 0; i < a->rows; i++) {
    int64_t row = i * a->length;
    double highest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < a->length; j++) {
      double v = get(scores, a->type, row + j) * a->scale + masked(a, mask_strides, i, j);
      put(scores, a->type, row + j, v);
      highest = v > highest ? v : highest;
    }
    for (int64_t j = 0; j < a->length; j++) {
      double v = exp(get(scores, a->type, row + j) - highest);
      put(scores, a->type, row + j, v);
      sum += v;
    }
    for (int64_t j = 0; j < a->length; j++)
      put(scores, a->type, row + j, get(scores, a->type, row + j) / sum);
  }
}

static bool mask_fits(const Attention *a, const int64_t *scores) {
  uint32_t rank = a->batch.rank + 2;
  bool fits = !a->mask || a->mask->rank <= rank;
  for (uint32_t d = 0; fits && a->mask && d < a->mask->rank; d++)
    fits = a->mask->dims[d] == 1 || a->mask->dims[d] == scores[rank - a->mask->rank + d];
  return fits;
}

static Status attention_start(Kernel *k, Attention *a, int64_t *mask_strides) {
  const Tensor *out = k->results[0];
  a->query = kernel_tensor(k, 0);
  a->key = kernel_tensor(k, 1);
  a->value = kernel_tensor(k, 2);
  a->mask = kernel_tensor(k, 3);
  const Tensor *all[3] = {a->query, a->key, a->value};
  for (uint32_t i = 0; i < 3; i++) {
    TRY(kernel_expect_dtype(k, all[i]));
    if (all[i]->rank < 2 || !dtype_is_float(all[i]->dtype) || out->rank < 2)
      return kernel_error(k, "operand %u is not a batch of float matrices", i);
  }
  a->batch = walk_make(out->rank - 2, out->dims);
  a->rows = a->query->dims[a->query->rank - 2];
  a->length = a->key->dims[a->key->rank - 2];
  a->causal = k->args[5].i != 0;
  a->type = ew_type(out->dtype);
  int64_t width = a->query->dims[a->query->rank - 1], scores[MAX_RANK];
  bool grouped = k->args[7].i != 0;
  memcpy(scores, out->dims, out->rank * sizeof scores[0]);
  scores[out->rank - 1] = a->length;
  if (a->key->dims[a->key->rank - 1] != width || a->length != a->value->dims[a->value->rank - 2] ||
      out->dims[out->rank - 2] != a->rows ||
      out->dims[out->rank - 1] != a->value->dims[a->value->rank - 1] ||
      !batch_fits(a->query, &a->batch, false) || !batch_fits(a->key, &a->batch, grouped) ||
      !batch_fits(a->value, &a->batch, grouped) || !mask_fits(a, scores))
    return kernel_error(k, "operands and result of the attention do not fit");
  a->scale = k->args[6].kind == ARG_NONE ? 1 / sqrt((double)width) : kernel_scalar(k, 6);
  if (a->mask)
    strides_broadcast(a->mask, out->rank, scores, mask_strides);
  return STATUS_OK;
}

Status kern_sdpa(Kernel *k) {
  Attention a = {0};
  int64_t mask_strides[MAX_RANK] = {0};
  TRY(attention_start(k, &a, mask_strides));
  int64_t width = a.query->dims[a.query->rank - 1], columns = a.value->dims[a.value->rank - 1];
  DType dtype = compute_dtype(a.query->dtype);
  Tensor q = kernel_in_dtype(k, a.query, dtype), key = kernel_in_dtype(k, a.key, dtype),
         v = kernel_in_dtype(k, a.value, dtype), out = kernel_result_in_dtype(k, 0, dtype);
  Product scoring = {dtype, a.rows, width, a.length, true, k->folds};
  Product mixing = {dtype, a.rows, a.length, columns, false, k->folds};
  uint64_t cells;
  if (!mul_u64((uint64_t)a.rows, (uint64_t)a.length, &cells))
    return kernel_error(k, "too many scores");
  void *scores = arena_calloc(k->scratch, cells, dtype_size(dtype));
  int64_t count = dims_count(a.batch.dims, 0, a.batch.rank);
  for (int64_t i = 0; i < count; i++, walk_next(&a.batch)) {
    product(&scoring, matrix_at(&q, matrix_index(&q, &a.batch), a.rows * width),
            matrix_at(&key, matrix_index(&key, &a.batch), a.length * width), scores);
    attention_softmax(&a, mask_strides, scores);
    product(&mixing, scores, matrix_at(&v, matrix_index(&v, &a.batch), a.length * columns),
            matrix_at(&out, i, a.rows * columns));
  }
  kernel_store_result(k, 0, &out);
  return STATUS_OK;
}

/* --- rms_norm --- */

/* torch's default eps: the distance from 1 to the next value of the type it computes in. */
static double default_eps(DType dtype) { return dtype == DTYPE_F64 ? 0x1p-52 : 0x1p-23; }

Status kern_rms_norm(Kernel *k) {
  const Tensor *input = kernel_tensor(k, 0), *weight = kernel_tensor(k, 2);
  TRY(kernel_expect_like(k, input));
  const KernelArg *shape = &k->args[1];
  if (shape->kind != ARG_INTS || shape->count == 0 || shape->count > input->rank)
    return kernel_error(k, "normalized_shape does not fit");
  int64_t size = dims_count(input->dims, input->rank - shape->count, input->rank),
          count = tensor_numel(input);
  if (weight && (tensor_numel(weight) != size || weight->dtype != input->dtype))
    return kernel_error(k, "the weight does not fit");
  double eps = k->args[3].kind == ARG_NONE ? default_eps(input->dtype) : kernel_scalar(k, 3);
  for (int64_t row = 0; size && row < count; row += size) {
    double sum = 0;
    for (int64_t i = 0; i < size; i++) {
      double v = tensor_load(input, row + i);
      sum += v * v;
    }
    double factor = 1 / sqrt(sum / (double)size + eps);
    for (int64_t i = 0; i < size; i++) {
      double v = tensor_load(input, row + i) * factor;
      tensor_store(k->results[0], row + i, weight ? v * tensor_load(weight, i) : v);
    }
  }
  return STATUS_OK;
}
