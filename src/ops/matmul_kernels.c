/* Reference kernels of matrix products and distances. Floats narrower than f32 are computed in f32,
 * integers in i64. */
#include "ops/elementwise.h"
#include "ops/gemm.h"
#include "ops/ops.h"

#include <math.h>

#include "support/parallel.h"

/* A product of two matrices into result 0, by the dims the kernel really got. */
static Status product(Kernel *k, const Tensor *a, const Tensor *b, Tensor *c, double alpha,
                      double beta) {
  if (a->rank != 2 || b->rank != 2 || a->dims[1] != b->dims[0] ||
      tensor_numel(c) != a->dims[0] * b->dims[1])
    return kernel_error(k, "the matrices do not fit together");
  Gemm g = {.dtype = c->dtype,
            .m = a->dims[0],
            .n = b->dims[1],
            .k = a->dims[1],
            .alpha = alpha,
            .beta = beta,
            .a = a->data,
            .b = b->data,
            .c = c->data,
            .lda = max_i64(a->dims[1], 1),
            .ldb = max_i64(b->dims[1], 1),
            .ldc = max_i64(b->dims[1], 1),
            .own_loops = k->folds};
  gemm(&g);
  return STATUS_OK;
}

Status kern_mm(Kernel *k) {
  DType dtype = compute_dtype(kernel_tensor(k, 0)->dtype);
  Tensor a = kernel_in_dtype(k, kernel_tensor(k, 0), dtype),
         b = kernel_in_dtype(k, kernel_tensor(k, 1), dtype);
  Tensor c = kernel_result_in_dtype(k, 0, dtype);
  TRY(product(k, &a, &b, &c, 1, 0));
  kernel_store_result(k, 0, &c);
  return STATUS_OK;
}

/* f[0] * a + f[1] * b */
EW_DEFINE2(blend_f32, float, float, (float)job->f[0] * a + (float)job->f[1] * b)
EW_DEFINE2(blend_f64, double, double, job->f[0] * a + job->f[1] * b)
EW_DEFINE2(blend_i64, int64_t, int64_t,
           (uint64_t)job->i[0] * (uint64_t)a + (uint64_t)job->i[1] * (uint64_t)b)

/* beta * self + alpha * (mat1 x mat2); self broadcasts. With beta 0 self is not read, so that its
 * NaN do not spread. */
Status kern_addmm(Kernel *k) {
  DType dtype = compute_dtype(kernel_tensor(k, 1)->dtype);
  EwType type = ew_type(dtype);
  Tensor a = kernel_in_dtype(k, kernel_tensor(k, 1), dtype),
         b = kernel_in_dtype(k, kernel_tensor(k, 2), dtype);
  Tensor self = kernel_in_dtype(k, kernel_tensor(k, 0), dtype),
         c = kernel_result_in_dtype(k, 0, dtype);
  Tensor mm = c;
  mm.data = arena_alloc(k->scratch, tensor_bytes(&mm));
  TRY(product(k, &a, &b, &mm, 1, 0));
  EwOperand beta = ew_scalar(k, 3, type), alpha = ew_scalar(k, 4, type);
  EwJob job = {.fn = type == EW_F32   ? blend_f32
                     : type == EW_F64 ? blend_f64
                                      : blend_i64,
               .in = {beta.f == 0 ? (EwOperand){.type = type} : ew_tensor(&self, type),
                      ew_tensor(&mm, type)},
               .in_count = 2,
               .out_type = type,
               .out = &c,
               .f = {beta.f, alpha.f},
               .i = {beta.i, alpha.i}};
  ew_run(&job);
  kernel_store_result(k, 0, &c);
  return STATUS_OK;
}

Status kern_linear(Kernel *k) {
  DType dtype = compute_dtype(kernel_tensor(k, 0)->dtype);
  Tensor x = kernel_in_dtype(k, kernel_tensor(k, 0), dtype),
         w = kernel_in_dtype(k, kernel_tensor(k, 1), dtype);
  Tensor c = kernel_result_in_dtype(k, 0, dtype);
  if (x.rank == 0 || w.rank != 2 || x.dims[x.rank - 1] != w.dims[1])
    return kernel_error(k, "the matrices do not fit together");
  int64_t rows =
      w.dims[1] ? tensor_numel(&x) / w.dims[1] : tensor_numel(&c) / max_i64(w.dims[0], 1);
  const Tensor *bias = kernel_tensor(k, 2);
  if (bias) { /* every row starts as the bias */
    EwJob job = {.fn = ew_type(dtype) == EW_F32   ? blend_f32
                       : ew_type(dtype) == EW_F64 ? blend_f64
                                                  : blend_i64,
                 .in = {ew_tensor(bias, ew_type(dtype)), {.type = ew_type(dtype)}},
                 .in_count = 2,
                 .out_type = ew_type(dtype),
                 .out = &c,
                 .f = {1},
                 .i = {1}};
    ew_run(&job);
  }
  Gemm g = {.dtype = dtype,
            .trans_b = true,
            .m = rows,
            .n = w.dims[0],
            .k = w.dims[1],
            .alpha = 1,
            .beta = bias ? 1 : 0,
            .a = x.data,
            .b = w.data,
            .c = c.data,
            .lda = max_i64(w.dims[1], 1),
            .ldb = max_i64(w.dims[1], 1),
            .ldc = max_i64(w.dims[0], 1),
            .own_loops = k->folds};
  gemm(&g);
  kernel_store_result(k, 0, &c);
  return STATUS_OK;
}

/* --- batches --- */

typedef struct Batch {
  Gemm first;
  int64_t step_a, step_b, step_c; /* bytes */
} Batch;

static void batch_body(void *user, size_t begin, size_t end) {
  const Batch *batch = user;
  for (int64_t i = (int64_t)begin; i < (int64_t)end; i++) {
    Gemm g = batch->first;
    g.a = (const char *)g.a + i * batch->step_a;
    g.b = (const char *)g.b + i * batch->step_b;
    g.c = (char *)g.c + i * batch->step_c;
    gemm(&g);
  }
}

Status kern_bmm(Kernel *k) {
  DType dtype = compute_dtype(kernel_tensor(k, 0)->dtype);
  Tensor a = kernel_in_dtype(k, kernel_tensor(k, 0), dtype),
         b = kernel_in_dtype(k, kernel_tensor(k, 1), dtype);
  Tensor c = kernel_result_in_dtype(k, 0, dtype);
  if (a.rank != 3 || b.rank != 3 || a.dims[0] != b.dims[0] || a.dims[2] != b.dims[1])
    return kernel_error(k, "the matrices do not fit together");
  int64_t m = a.dims[1], inner = a.dims[2], n = b.dims[2], size = dtype_size(dtype);
  Batch batch = {.first = {.dtype = dtype,
                           .m = m,
                           .n = n,
                           .k = inner,
                           .alpha = 1,
                           .a = a.data,
                           .b = b.data,
                           .c = c.data,
                           .lda = max_i64(inner, 1),
                           .ldb = max_i64(n, 1),
                           .ldc = max_i64(n, 1),
                           .own_loops = k->folds},
                 .step_a = m * inner * size,
                 .step_b = inner * n * size,
                 .step_c = m * n * size};
  if (a.dims[0] < (int64_t)parallel_threads())
    batch_body(&batch, 0, (size_t)a.dims[0]);
  else
    parallel_for((size_t)a.dims[0], (size_t)(100000 / (m * n * inner + 1)) + 1, batch_body, &batch);
  kernel_store_result(k, 0, &c);
  return STATUS_OK;
}

/* --- distances --- */

typedef struct Distances {
  Tensor x, y, out;
  int64_t rows, columns, length;
  double p;
  int64_t x_strides[MAX_RANK], y_strides[MAX_RANK]; /* of the batch dims, broadcast */
} Distances;

static double distance(const Distances *d, int64_t x, int64_t y) {
  double total = 0;
  for (int64_t i = 0; i < d->length; i++) {
    double v = fabs(tensor_load(&d->x, x + i) - tensor_load(&d->y, y + i));
    if (d->p == 0)
      total += v != 0;
    else if (isinf(d->p))
      total = v > total || v != v ? v : total;
    else
      total += d->p == 1 ? v : d->p == 2 ? v * v : pow(v, d->p);
  }
  if (d->p == 2)
    return sqrt(total);
  return d->p == 0 || d->p == 1 || isinf(d->p) ? total : pow(total, 1.0 / d->p);
}

static void distance_body(void *user, size_t begin, size_t end) {
  Distances *d = user;
  for (int64_t row = (int64_t)begin; row < (int64_t)end; row++) {
    int64_t rest = row / d->rows, x = row % d->rows * d->length, y = 0;
    for (uint32_t i = d->out.rank - 2; i-- > 0;) {
      x += rest % d->out.dims[i] * d->x_strides[i];
      y += rest % d->out.dims[i] * d->y_strides[i];
      rest /= d->out.dims[i];
    }
    for (int64_t j = 0; j < d->columns; j++)
      tensor_store(&d->out, row * d->columns + j, distance(d, x, y + j * d->length));
  }
}

/* Strides of the batch dims of t against those of out. */
static void batch_strides(const Tensor *t, const Tensor *out, int64_t *strides) {
  Tensor batch = *t, to = *out;
  batch.rank -= 2;
  to.rank -= 2;
  strides_broadcast(&batch, to.rank, to.dims, strides);
  for (uint32_t i = 0; i < to.rank; i++)
    strides[i] *= t->dims[t->rank - 2] * t->dims[t->rank - 1];
}

Status kern_cdist_forward(Kernel *k) {
  Distances d = {.x = *kernel_tensor(k, 0),
                 .y = *kernel_tensor(k, 1),
                 .out = *k->results[0],
                 .p = kernel_scalar(k, 2)};
  if (d.x.rank < 2 || d.y.rank < 2 || d.out.rank < 2 ||
      d.x.dims[d.x.rank - 1] != d.y.dims[d.y.rank - 1])
    return kernel_error(k, "the operands do not fit together");
  d.rows = d.x.dims[d.x.rank - 2];
  d.columns = d.y.dims[d.y.rank - 2];
  d.length = d.x.dims[d.x.rank - 1];
  batch_strides(&d.x, &d.out, d.x_strides);
  batch_strides(&d.y, &d.out, d.y_strides);
  int64_t total = d.columns ? tensor_numel(&d.out) / d.columns : 0;
  parallel_for((size_t)total, (size_t)(4096 / (d.columns * d.length + 1)) + 1, distance_body, &d);
  return STATUS_OK;
}
