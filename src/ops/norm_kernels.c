/* Reference kernels of the normalisations, in float or double; sums are kept in double. The
 * formulas are those of kernels/portable/cpu (op_native_batch_norm, op_native_group_norm,
 * op_native_layer_norm) of ExecuTorch 1.4.1. */
#include "ops/elementwise.h"
#include "ops/norm.h"
#include "ops/ops.h"

#include <math.h>

#include "support/parallel.h"

/* Operands and results converted to f32 or f64, seen as [outer, channels, inner] or as rows. */
typedef struct Norm {
  Tensor in, weight, bias, mean, var; /* data NULL when absent */
  Tensor out, out_mean, out_rstd;
  int64_t outer, channels, inner;
  int64_t rows, row; /* groups to normalise over, elements in each */
  int64_t groups;    /* of channels */
  bool per_element;  /* weight and bias have an entry for each element of a row (layer norm) */
  bool cancels;      /* mean and variance of a row as the runtime's layer norm has short ones */
  double eps;
} Norm;

static double at(const Tensor *t, int64_t i, double absent) {
  return t->data ? tensor_load(t, i) : absent;
}

static void norm_finish(Kernel *k, Norm *m) {
  kernel_store_result(k, 0, &m->out);
  kernel_store_result(k, 1, &m->out_mean);
  kernel_store_result(k, 2, &m->out_rstd);
}

static Norm norm_make(Kernel *k, uint32_t weight, uint32_t bias, uint32_t eps) {
  DType dtype = compute_dtype(kernel_tensor(k, 0)->dtype);
  return (Norm){.in = kernel_in_dtype(k, kernel_tensor(k, 0), dtype),
                .weight = kernel_in_dtype(k, kernel_tensor(k, weight), dtype),
                .bias = kernel_in_dtype(k, kernel_tensor(k, bias), dtype),
                .out = kernel_result_in_dtype(k, 0, dtype),
                .out_mean = kernel_result_in_dtype(k, 1, dtype),
                .out_rstd = kernel_result_in_dtype(k, 2, dtype),
                .eps = kernel_scalar(k, eps)};
}

/* y = x * scale + shift over count elements. */
static void scale_run(const Norm *m, int64_t from, int64_t count, double scale, double shift) {
  if (m->in.dtype == DTYPE_F64) {
    const double *x = (const double *)m->in.data + from;
    double *y = (double *)m->out.data + from;
    for (int64_t i = 0; i < count; i++)
      y[i] = x[i] * scale + shift;
    return;
  }
  const float *x = (const float *)m->in.data + from;
  float *y = (float *)m->out.data + from;
  for (int64_t i = 0; i < count; i++)
    y[i] = (float)((double)x[i] * scale + shift);
}

/* Mean and 1 / sqrt(variance + eps) from sums over runs of the input. */
typedef struct Moments {
  double sum, squares;
} Moments;

#define SUM_RUN(T)                                                                                 \
  {                                                                                                \
    const T *x = (const T *)t->data + from;                                                        \
    for (int64_t i = 0; i < count; i++) {                                                          \
      double v = (double)x[i] - about;                                                             \
      out->sum += v;                                                                               \
      out->squares += v * v;                                                                       \
    }                                                                                              \
  }
/* Adds sum and sum of squares of the elements minus `about`. */
static void sum_run(const Tensor *t, int64_t from, int64_t count, double about, Moments *out) {
  if (t->dtype == DTYPE_F64)
    SUM_RUN(double)
  else
    SUM_RUN(float)
}

static double rstd_of(double variance, double eps) { return 1.0 / sqrt(variance + eps); }

/* --- batch norm --- */

static void batch_norm_body(void *user, size_t begin, size_t end) {
  const Norm *m = user;
  for (size_t n = begin; n < end; n++) {
    int64_t c = (int64_t)n % m->channels;
    double scale = rstd_of(tensor_load(&m->var, c), m->eps) * at(&m->weight, c, 1.0);
    scale_run(m, (int64_t)n * m->inner, m->inner, scale,
              at(&m->bias, c, 0.0) - tensor_load(&m->mean, c) * scale);
  }
}

/* Dims as [outer, channels, inner]; a 1-D input has its channels first. */
static void split_channels(Norm *m) {
  uint32_t axis = m->in.rank > 1 ? 1 : 0;
  m->outer = axis ? m->in.dims[0] : 1;
  m->channels = m->in.dims[axis];
  m->inner = dims_count(m->in.dims, axis + 1, m->in.rank);
}

Status kern_native_batch_norm_legit_no_training(Kernel *k) {
  Norm m = norm_make(k, 1, 2, 6);
  m.mean = kernel_in_dtype(k, kernel_tensor(k, 3), m.in.dtype);
  m.var = kernel_in_dtype(k, kernel_tensor(k, 4), m.in.dtype);
  split_channels(&m);
  if (m.in.rank == 0 || tensor_numel(&m.mean) != m.channels || tensor_numel(&m.var) != m.channels)
    return kernel_error(k, "the statistics do not fit the channels");
  parallel_for((size_t)(m.outer * m.channels), (size_t)(16384 / (m.inner + 1) + 1), batch_norm_body,
               &m);
  norm_finish(k, &m);
  return STATUS_OK;
}

/* One channel: statistics over the batch, then the result. */
static void batch_stats_body(void *user, size_t begin, size_t end) {
  Norm *m = user;
  double count = (double)(m->outer * m->inner);
  for (int64_t c = (int64_t)begin; c < (int64_t)end; c++) {
    Moments first = {0}, second = {0};
    for (int64_t n = 0; n < m->outer; n++)
      sum_run(&m->in, (n * m->channels + c) * m->inner, m->inner, 0, &first);
    double mean = first.sum / count;
    for (int64_t n = 0; n < m->outer; n++)
      sum_run(&m->in, (n * m->channels + c) * m->inner, m->inner, mean, &second);
    double rstd = rstd_of(second.squares / count, m->eps), scale = rstd * at(&m->weight, c, 1.0);
    for (int64_t n = 0; n < m->outer; n++)
      scale_run(m, (n * m->channels + c) * m->inner, m->inner, scale,
                at(&m->bias, c, 0.0) - mean * scale);
    tensor_store(&m->out_mean, c, mean);
    tensor_store(&m->out_rstd, c, rstd);
  }
}

Status kern_native_batch_norm_legit(Kernel *k) {
  Norm m = norm_make(k, 1, 2, 5);
  if (m.in.rank < 2)
    return kernel_error(k, "the input has no channels");
  split_channels(&m);
  parallel_for((size_t)m.channels, 1, batch_stats_body, &m);
  norm_finish(k, &m);
  return STATUS_OK;
}

/* --- rows: group norm, layer norm --- */

static void row_scale_elements(const Norm *m, int64_t from, double mean, double rstd) {
  if (m->in.dtype == DTYPE_F64) {
    for (int64_t i = 0; i < m->row; i++) {
      double v = (((const double *)m->in.data)[from + i] - mean) * rstd;
      ((double *)m->out.data)[from + i] = v * at(&m->weight, i, 1.0) + at(&m->bias, i, 0.0);
    }
    return;
  }
  const float *x = (const float *)m->in.data + from, *w = m->weight.data, *b = m->bias.data;
  float *y = (float *)m->out.data + from;
  for (int64_t i = 0; i < m->row; i++) {
    float v = (float)(((double)x[i] - mean) * rstd);
    v = w ? v * w[i] : v;
    y[i] = b ? v + b[i] : v;
  }
}

/* Mean and variance of a row. */
static void row_moments(const Norm *m, int64_t from, double *mean, double *variance) {
  Moments first = {0}, second = {0};
  sum_run(&m->in, from, m->row, 0, &first);
  *mean = first.sum / (double)m->row;
  sum_run(&m->in, from, m->row, *mean, &second);
  *variance = second.squares / (double)m->row;
}

/* The same as the runtime's layer norm has it for short rows of f32: the variance cancels. */
static void row_moments_of_kernel(const Norm *m, int64_t from, double *mean, double *variance) {
  const float *x = (const float *)m->in.data + from;
  float sum = 0, squares = 0;
  for (int64_t i = 0; i < m->row; i++) {
    sum += x[i];
    squares += x[i] * x[i];
  }
  float average = sum / (float)m->row;
  *mean = (double)average;
  *variance = (double)(squares / (float)m->row - average * average);
}

static void rows_body(void *user, size_t begin, size_t end) {
  Norm *m = user;
  for (int64_t r = (int64_t)begin; r < (int64_t)end; r++) {
    int64_t from = r * m->row;
    double mean, variance;
    (m->cancels ? row_moments_of_kernel : row_moments)(m, from, &mean, &variance);
    double rstd = rstd_of(variance, m->eps);
    if (m->row == 0) { /* as the kernel has it */
      mean = 0;
      rstd = NAN;
    }
    if (m->per_element)
      row_scale_elements(m, from, mean, rstd);
    int64_t channels = m->per_element ? 0 : m->channels / m->groups;
    for (int64_t j = 0; j < channels; j++) {
      int64_t c = r % m->groups * channels + j;
      double scale = rstd * at(&m->weight, c, 1.0);
      scale_run(m, from + j * m->inner, m->inner, scale, at(&m->bias, c, 0.0) - mean * scale);
    }
    tensor_store(&m->out_mean, r, mean);
    tensor_store(&m->out_rstd, r, rstd);
  }
}

static void rows_run(Kernel *k, Norm *m) {
  parallel_for((size_t)m->rows, (size_t)(16384 / (m->row + 1) + 1), rows_body, m);
  norm_finish(k, m);
}

Status kern_native_group_norm(Kernel *k) {
  Norm m = norm_make(k, 1, 2, 7);
  m.groups = k->args[6].i;
  if (m.in.rank < 2 || m.groups < 1 || m.in.dims[1] % m.groups)
    return kernel_error(k, "%lld groups do not divide the channels", (long long)m.groups);
  split_channels(&m);
  m.rows = m.outer * m.groups;
  m.row = m.channels / m.groups * m.inner;
  rows_run(k, &m);
  return STATUS_OK;
}

Status kern_native_layer_norm(Kernel *k) {
  Norm m = norm_make(k, 2, 3, 4);
  uint32_t normalized = k->args[1].count;
  if (normalized == 0 || normalized > m.in.rank)
    return kernel_error(k, "normalized_shape does not fit the input");
  m.per_element = true;
  m.rows = dims_count(m.in.dims, 0, m.in.rank - normalized);
  m.row = dims_count(m.in.dims, m.in.rank - normalized, m.in.rank);
  DType dtype = kernel_tensor(k, 0)->dtype;
  if (k->as_runtime && m.row >= LAYER_NORM_LONG_ROW && dtype_size(dtype) == 2)
    return kernel_error(k, "the runtime's kernel gives garbage for rows of %lld elements of %s",
                        (long long)m.row, dtype_name(dtype));
  m.cancels = k->as_runtime && m.row < LAYER_NORM_LONG_ROW && m.in.dtype == DTYPE_F32;
  rows_run(k, &m);
  return STATUS_OK;
}
