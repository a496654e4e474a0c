/* Reference kernels of the reductions over sets of dims. Floats accumulate in double, integers in
 * i64 with wrap-around. NaN wins extrema and the first of equals is kept, as in
 * kernels/portable/cpu/op_amax.cpp of ExecuTorch 1.4.1.
 *
 * The input's dims are merged and split into kept and reduced ones. When the innermost dim is kept,
 * rows of it are added onto a row of accumulators; when it is reduced, each run of it is folded
 * into one. Either way memory is read in order. */
#include "ops/elementwise.h"
#include "ops/ops.h"

#include <math.h>

#include "support/parallel.h"

typedef enum ReduceKind {
  REDUCE_SUM,
  REDUCE_PROD,
  REDUCE_MAX,
  REDUCE_MIN,
  REDUCE_ANY,
  REDUCE_SQUARES
} ReduceKind;

typedef struct Axes {
  uint32_t rank;
  int64_t dims[MAX_RANK], strides[MAX_RANK];
} Axes;

typedef struct ReducePlan {
  ReduceKind kind;
  EwType type; /* EW_F64 or EW_I64 */
  const Tensor *in;
  Tensor *out;
  Axes kept, reduced; /* without the innermost dim */
  int64_t width;      /* of the innermost dim when it is kept, else 1 */
  int64_t run;        /* of the innermost dim when it is reduced, else 1 */
  int64_t steps;      /* combinations of the reduced dims but the innermost */
  double divisor;     /* the result is divided by it; 0: not */
  const double *mean; /* REDUCE_SQUARES: of each result */
} ReducePlan;

/* One type in a loop: clang 14 at -O3 keeps both members in registers where a loop may write
 * either, and stores both behind it. */
typedef union Accumulators {
  double f[EW_BLOCK];
  int64_t i[EW_BLOCK];
} Accumulators;

#define LOOP(X)                                                                                    \
  for (size_t n = 0; n < count; n++) {                                                             \
    X;                                                                                             \
  }                                                                                                \
  break
#define U(x) ((uint64_t)(x))

/* acc[n] combined with row[n] */
static void down_f64(ReduceKind kind, double *acc, const double *row, const double *mean,
                     size_t count) {
  switch (kind) {
  case REDUCE_SUM:
    LOOP(acc[n] += row[n]);
  case REDUCE_PROD:
    LOOP(acc[n] *= row[n]);
  case REDUCE_MAX:
    LOOP(acc[n] = row[n] != row[n] || row[n] > acc[n] ? row[n] : acc[n]);
  case REDUCE_MIN:
    LOOP(acc[n] = row[n] != row[n] || row[n] < acc[n] ? row[n] : acc[n]);
  case REDUCE_ANY:
    LOOP(acc[n] = acc[n] != 0 || row[n] != 0);
  case REDUCE_SQUARES:
    LOOP(acc[n] += (row[n] - mean[n]) * (row[n] - mean[n]));
  }
}

static void down_i64(ReduceKind kind, int64_t *acc, const int64_t *row, size_t count) {
  switch (kind) {
  case REDUCE_SUM:
    LOOP(acc[n] = (int64_t)(U(acc[n]) + U(row[n])));
  case REDUCE_PROD:
    LOOP(acc[n] = (int64_t)(U(acc[n]) * U(row[n])));
  case REDUCE_MAX:
    LOOP(acc[n] = max_i64(acc[n], row[n]));
  case REDUCE_MIN:
    LOOP(acc[n] = min_i64(acc[n], row[n]));
  case REDUCE_ANY:
    LOOP(acc[n] = acc[n] != 0 || row[n] != 0);
  case REDUCE_SQUARES:
    break;
  }
}

/* acc[0] combined with every element of row: the row is folded in four lanes first, which lets sums
 * run wide. */
static void across(const ReducePlan *p, Accumulators *acc, Accumulators *row, const double *mean,
                   size_t count) {
  if (p->type == EW_I64) {
    for (size_t n = 0; n < count; n++)
      down_i64(p->kind, acc->i, row->i + n, 1);
    return;
  }
  double means[4] = {0};
  for (size_t n = 0; n < 4 && mean; n++)
    means[n] = mean[0];
  bool wide = count >= 8 && p->kind == REDUCE_SUM;
  if (wide) {
    double lanes[4] = {0};
    size_t n = 0;
    for (; n + 4 <= count; n += 4)
      down_f64(REDUCE_SUM, lanes, row->f + n, NULL, 4);
    acc->f[0] += (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
    for (; n < count; n++)
      acc->f[0] += row->f[n];
    return;
  }
  for (size_t n = 0; n < count; n++)
    down_f64(p->kind, acc->f, row->f + n, means, 1);
}

static void accumulators_init(const ReducePlan *p, Accumulators *acc, size_t count) {
  double f = p->kind == REDUCE_PROD  ? 1.0
             : p->kind == REDUCE_MAX ? -INFINITY
             : p->kind == REDUCE_MIN ? INFINITY
                                     : 0.0;
  int64_t i = p->kind == REDUCE_PROD  ? 1
              : p->kind == REDUCE_MAX ? INT64_MIN
              : p->kind == REDUCE_MIN ? INT64_MAX
                                      : 0;
  if (p->type == EW_F64)
    for (size_t n = 0; n < count; n++)
      acc->f[n] = f;
  else
    for (size_t n = 0; n < count; n++)
      acc->i[n] = i;
}

/* Order of u64 as of i64. */
static void flip_unsigned(const ReducePlan *p, int64_t *v, size_t count) {
  if (p->in->dtype != DTYPE_U64 || (p->kind != REDUCE_MAX && p->kind != REDUCE_MIN))
    return;
  for (size_t n = 0; n < count; n++)
    v[n] = (int64_t)(U(v[n]) ^ U(INT64_MIN));
}

static void load_row(const ReducePlan *p, int64_t at, Accumulators *row, size_t count) {
  ew_load(p->in, p->type, at, 1, row, count);
  if (p->type == EW_I64)
    flip_unsigned(p, row->i, count);
}

static void store_row(const ReducePlan *p, int64_t at, Accumulators *acc, size_t count) {
  if (p->type == EW_F64) {
    for (size_t n = 0; n < count; n++)
      tensor_store(p->out, at + (int64_t)n, p->divisor != 0 ? acc->f[n] / p->divisor : acc->f[n]);
    return;
  }
  flip_unsigned(p, acc->i, count);
  for (size_t n = 0; n < count; n++)
    tensor_store_int(p->out, at + (int64_t)n, acc->i[n]);
}

static int64_t axes_offset(const Axes *axes, int64_t index) {
  int64_t offset = 0;
  for (uint32_t i = axes->rank; i-- > 0;) {
    offset += index % axes->dims[i] * axes->strides[i];
    index /= axes->dims[i];
  }
  return offset;
}

/* Computes count results from result `at` on: they lie in one row of the innermost kept dim. */
static void reduce_unit(const ReducePlan *p, int64_t at, size_t count) {
  Accumulators acc, row;
  int64_t base = axes_offset(&p->kept, at / p->width) + at % p->width;
  const double *mean = p->mean ? p->mean + at : NULL;
  accumulators_init(p, &acc, count);
  for (int64_t step = 0; step < p->steps; step++) {
    int64_t from = base + axes_offset(&p->reduced, step);
    if (p->width > 1 || p->run == 1) {
      load_row(p, from, &row, count);
      if (p->type == EW_F64)
        down_f64(p->kind, acc.f, row.f, mean, count);
      else
        down_i64(p->kind, acc.i, row.i, count);
      continue;
    }
    for (int64_t done = 0; done < p->run; done += EW_BLOCK) {
      size_t part = (size_t)min_i64(EW_BLOCK, p->run - done);
      load_row(p, from + done, &row, part);
      across(p, &acc, &row, mean, part);
    }
  }
  store_row(p, at, &acc, count);
}

static int64_t units_in_row(const ReducePlan *p) { return (p->width + EW_BLOCK - 1) / EW_BLOCK; }

static void reduce_body(void *user, size_t begin, size_t end) {
  const ReducePlan *p = user;
  int64_t per_row = units_in_row(p);
  for (size_t unit = begin; unit < end; unit++) {
    int64_t row = (int64_t)unit / per_row, block = (int64_t)unit % per_row * EW_BLOCK;
    reduce_unit(p, row * p->width + block, (size_t)min_i64(EW_BLOCK, p->width - block));
  }
}

static void axes_add(Axes *axes, int64_t dim, int64_t stride) {
  if (axes->rank && axes->strides[axes->rank - 1] == dim * stride) {
    axes->dims[axes->rank - 1] *= dim;
    axes->strides[axes->rank - 1] = stride;
    return;
  }
  axes->dims[axes->rank] = dim;
  axes->strides[axes->rank++] = stride;
}

static void plan_axes(ReducePlan *p, uint32_t set) {
  int64_t strides[MAX_RANK];
  strides_of(p->in, strides);
  uint32_t innermost = MAX_RANK;
  for (uint32_t i = 0; i < p->in->rank; i++)
    if (p->in->dims[i] != 1)
      innermost = i;
  for (uint32_t i = 0; i < p->in->rank; i++)
    if (p->in->dims[i] != 1)
      axes_add(set >> i & 1 ? &p->reduced : &p->kept, p->in->dims[i], strides[i]);
  p->width = p->run = 1;
  if (innermost < MAX_RANK && (set >> innermost & 1))
    p->run = p->reduced.dims[--p->reduced.rank];
  else if (innermost < MAX_RANK)
    p->width = p->kept.dims[--p->kept.rank];
  p->steps = dims_count(p->reduced.dims, 0, p->reduced.rank);
}

/* Over the dims in set. p: kind, type, in, out, and divisor and mean where the kind has them. */
static void reduce_run(ReducePlan p, uint32_t set) {
  int64_t results = tensor_numel(p.out), elements = tensor_numel(p.in);
  if (results == 0)
    return;
  if (elements == 0) { /* sums, products and any of nothing */
    Accumulators acc;
    accumulators_init(&p, &acc, 1);
    for (int64_t i = 0; i < results; i++)
      store_row(&p, i, &acc, 1);
    return;
  }
  plan_axes(&p, set);
  size_t units = (size_t)(results / p.width * units_in_row(&p));
  size_t work = (size_t)(elements / (int64_t)units) + 1; /* elements read a unit */
  parallel_for(units, 65536 / work + 1, reduce_body, &p);
}

/* A reduction that divides by nothing. */
static void reduce_plain(ReduceKind kind, EwType type, const Tensor *in, Tensor *out,
                         uint32_t set) {
  reduce_run((ReducePlan){.kind = kind, .type = type, .in = in, .out = out}, set);
}

/* --- arguments --- */

/* Dims in argument i of the kernel (int, int[] or absent) as a set; all when there are none. */
static uint32_t dims_set(const Kernel *k, uint32_t i, uint32_t rank) {
  const KernelArg *arg = &k->args[i];
  uint32_t set = 0, count = arg->kind == ARG_INTS ? arg->count : 0;
  const int64_t *dims = arg->ints;
  if (arg->kind == ARG_INT) {
    dims = &arg->i;
    count = 1;
  }
  for (uint32_t d = 0; d < count; d++) {
    int64_t dim = wrap_dim(dims[d], rank);
    if (dim >= 0 && dim < rank)
      set |= (uint32_t)1 << dim;
  }
  return count ? set : UINT32_MAX;
}

static int64_t reduced_count(const Tensor *t, uint32_t set) {
  int64_t count = 1;
  for (uint32_t i = 0; i < t->rank; i++)
    count *= set >> i & 1 ? t->dims[i] : 1;
  return count;
}

static EwType wide_type(DType dtype) { return ew_type(dtype) == EW_I64 ? EW_I64 : EW_F64; }

static Status extreme(Kernel *k, uint32_t set, ReduceKind kind) {
  const Tensor *in = kernel_tensor(k, 0);
  if (tensor_numel(k->results[0]) && reduced_count(in, set) == 0)
    return kernel_error(k, "an empty dimension has no extreme value");
  reduce_plain(kind, wide_type(in->dtype), in, k->results[0], set);
  return STATUS_OK;
}

Status kern_reduce(Kernel *k) {
  const Tensor *in = kernel_tensor(k, 0);
  Tensor *out = k->results[0];
  uint32_t set = k->op == OP_MEAN ? UINT32_MAX : dims_set(k, 1, in->rank);
  if (k->op == OP_AMAX || k->op == OP_AMIN)
    return extreme(k, set, k->op == OP_AMAX ? REDUCE_MAX : REDUCE_MIN);
  if (k->op == OP_SUM_DIM_INTLIST) {
    reduce_plain(REDUCE_SUM, wide_type(out->dtype), in, out, set);
    return STATUS_OK;
  }
  int64_t count = reduced_count(in, set);
  reduce_run((ReducePlan){.kind = REDUCE_SUM,
                          .type = EW_F64,
                          .in = in,
                          .out = out,
                          .divisor = count ? (double)count : NAN},
             set);
  return STATUS_OK;
}

Status kern_reduce_all(Kernel *k) {
  return extreme(k, UINT32_MAX, k->op == OP_MAX ? REDUCE_MAX : REDUCE_MIN);
}

Status kern_prod(Kernel *k) {
  const Tensor *in = kernel_tensor(k, 0);
  uint32_t set = k->op == OP_PROD ? UINT32_MAX : dims_set(k, 1, in->rank);
  reduce_plain(REDUCE_PROD, wide_type(k->results[0]->dtype), in, k->results[0], set);
  return STATUS_OK;
}

Status kern_any(Kernel *k) {
  const Tensor *in = kernel_tensor(k, 0);
  uint32_t set = k->op == OP_ANY ? UINT32_MAX : dims_set(k, 1, in->rank);
  reduce_plain(REDUCE_ANY, wide_type(in->dtype), in, k->results[0], set);
  return STATUS_OK;
}

/* var and var_mean: both results NaN when the count is not above the correction. */
Status kern_var(Kernel *k) {
  const Tensor *in = kernel_tensor(k, 0);
  uint32_t set = dims_set(k, 1, in->rank);
  double correction = k->args[2].kind == ARG_NONE ? 1.0 : kernel_scalar(k, 2);
  int64_t count = reduced_count(in, set);
  double divisor = (double)count - correction;
  bool undefined = count == 0 || !(divisor > 0);
  Tensor mean = *k->results[0];
  mean.dtype = DTYPE_F64;
  mean.capacity = tensor_bytes(&mean);
  mean.data = arena_alloc(k->scratch, mean.capacity);
  reduce_run((ReducePlan){.kind = REDUCE_SUM,
                          .type = EW_F64,
                          .in = in,
                          .out = &mean,
                          .divisor = undefined ? NAN : (double)count},
             set);
  reduce_run((ReducePlan){.kind = REDUCE_SQUARES,
                          .type = EW_F64,
                          .in = in,
                          .out = k->results[0],
                          .divisor = undefined ? NAN : divisor,
                          .mean = mean.data},
             set);
  if (k->result_count > 1)
    tensor_convert(&mean, k->results[1]);
  return STATUS_OK;
}
