/* Reference kernels that walk along one dim: softmax, cumsum, argmax, max.dim, topk. A tensor is
 * seen as [outer, length, inner] with the dim in the middle; a lane is one run of it, its elements
 * `inner` apart. */
#include "ops/elementwise.h"
#include "ops/ops.h"

#include <math.h>
#include <stdlib.h>

#include "support/parallel.h"

typedef struct Lanes {
  const Tensor *in;
  Tensor *out, *indices; /* indices may be NULL */
  int64_t length, inner, count;
  bool log, greatest;
} Lanes;

/* Lanes of tensor argument 0 along dim (already known to be in range); a 0-d tensor is one lane of
 * one element. */
static Lanes lanes_make(const Tensor *t, int64_t dim) {
  Lanes l = {.in = t, .length = 1, .inner = 1, .count = 1};
  if (t->rank == 0)
    return l;
  uint32_t axis = (uint32_t)wrap_dim(dim, t->rank);
  l.length = t->dims[axis];
  l.inner = dims_count(t->dims, axis + 1, t->rank);
  l.count = dims_count(t->dims, 0, axis) * l.inner;
  return l;
}

/* Element index of the start of a lane in a tensor whose lanes have the given length. */
static int64_t lane_start(const Lanes *l, int64_t lane, int64_t length) {
  return lane / l->inner * l->inner * length + lane % l->inner;
}

static bool axis_ok(const Tensor *t, int64_t dim) {
  int64_t rank = t->rank ? t->rank : 1;
  return dim >= -rank && dim < rank;
}

/* Lanes without elements may be more than a loop can count through. */
static void lanes_run(Lanes *l, ParallelBody *body) {
  if (tensor_numel(l->in) == 0)
    return;
  size_t grain = 16384 / (size_t)(l->length + 1) + 1;
  parallel_for((size_t)l->count, grain, body, l);
}

/* --- softmax --- */

#define SOFTMAX_BODY(name, T, EXP, LOG)                                                            \
  static void name(void *user, size_t begin, size_t end) {                                         \
    const Lanes *l = user;                                                                         \
    const int64_t step = l->inner, n = l->length;                                                  \
    for (size_t lane = begin; lane < end; lane++) {                                                \
      int64_t start = lane_start(l, (int64_t)lane, n);                                             \
      const T *x = (const T *)l->in->data + start;                                                 \
      T *y = (T *)l->out->data + start, most = -(T)INFINITY, sum = 0;                              \
      for (int64_t i = 0; i < n; i++)                                                              \
        most = x[i * step] != x[i * step] || x[i * step] > most ? x[i * step] : most;              \
      for (int64_t i = 0; i < n; i++) {                                                            \
        T e = EXP(x[i * step] - most);                                                             \
        y[i * step] = e;                                                                           \
        sum += e;                                                                                  \
      }                                                                                            \
      T shift = most + LOG(sum);                                                                   \
      for (int64_t i = 0; i < n; i++)                                                              \
        y[i * step] = l->log ? x[i * step] - shift : y[i * step] / sum;                            \
    }                                                                                              \
  }
SOFTMAX_BODY(softmax_f32, float, expf, logf)
SOFTMAX_BODY(softmax_f64, double, exp, log)

static Status softmax(Kernel *k, bool logarithm) {
  int64_t dim = k->args[1].i;
  DType dtype = compute_dtype(kernel_tensor(k, 0)->dtype);
  if (!axis_ok(kernel_tensor(k, 0), dim) || dtype == DTYPE_I64)
    return kernel_error(k, "the operand or the dimension does not fit");
  Tensor in = kernel_in_dtype(k, kernel_tensor(k, 0), dtype),
         out = kernel_result_in_dtype(k, 0, dtype);
  Lanes l = lanes_make(&in, dim);
  l.out = &out;
  l.log = logarithm;
  lanes_run(&l, dtype == DTYPE_F64 ? softmax_f64 : softmax_f32);
  kernel_store_result(k, 0, &out);
  return STATUS_OK;
}

Status kern_softmax(Kernel *k) { return softmax(k, false); }
Status kern_log_softmax(Kernel *k) { return softmax(k, true); }

/* --- cumsum --- */

static void cumsum_body(void *user, size_t begin, size_t end) {
  const Lanes *l = user;
  bool whole = ew_type(l->out->dtype) == EW_I64;
  for (size_t lane = begin; lane < end; lane++) {
    int64_t at = lane_start(l, (int64_t)lane, l->length);
    double sum = 0;
    uint64_t total = 0;
    for (int64_t i = 0; i < l->length; i++, at += l->inner) {
      if (whole) {
        total += (uint64_t)tensor_load_int(l->in, at);
        tensor_store_int(l->out, at, (int64_t)total);
      } else {
        sum += tensor_load(l->in, at);
        tensor_store(l->out, at, sum);
      }
    }
  }
}

Status kern_cumsum(Kernel *k) {
  if (!axis_ok(kernel_tensor(k, 0), k->args[1].i))
    return kernel_error(k, "the dimension is out of range");
  Lanes l = lanes_make(kernel_tensor(k, 0), k->args[1].i);
  l.out = k->results[0];
  lanes_run(&l, cumsum_body);
  return STATUS_OK;
}

/* --- extrema with positions --- */

/* The first position of the extreme value of a lane; NaN counts as more extreme than every number.
 */
#define EXTREME(name, T, TYPE, IS_NAN)                                                             \
  static int64_t name(const Lanes *l, int64_t start) {                                             \
    T row[EW_BLOCK], best = 0;                                                                     \
    int64_t where = 0;                                                                             \
    for (int64_t done = 0; done < l->length; done += EW_BLOCK) {                                   \
      int64_t part = min_i64(EW_BLOCK, l->length - done);                                          \
      ew_load(l->in, TYPE, start + done * l->inner, l->inner, row, (size_t)part);                  \
      for (int64_t i = 0; i < part; i++) {                                                         \
        T v = row[i];                                                                              \
        bool more = l->greatest ? v > best : v < best;                                             \
        if (done + i == 0 || (!(IS_NAN(best)) && (more || (IS_NAN(v))))) {                         \
          best = v;                                                                                \
          where = done + i;                                                                        \
        }                                                                                          \
      }                                                                                            \
    }                                                                                              \
    return where;                                                                                  \
  }
#define FLOAT_NAN(v) ((v) != (v))
#define INT_NAN(v) false
EXTREME(extreme_f64, double, EW_F64, FLOAT_NAN)
EXTREME(extreme_i64, int64_t, EW_I64, INT_NAN)

static void extreme_body(void *user, size_t begin, size_t end) {
  const Lanes *l = user;
  bool whole = ew_type(l->in->dtype) == EW_I64;
  for (size_t lane = begin; lane < end; lane++) {
    int64_t start = lane_start(l, (int64_t)lane, l->length);
    int64_t where = whole ? extreme_i64(l, start) : extreme_f64(l, start);
    tensor_store_int(l->indices, (int64_t)lane, where);
    if (l->out && whole)
      tensor_store_int(l->out, (int64_t)lane, tensor_load_int(l->in, start + where * l->inner));
    else if (l->out)
      tensor_store(l->out, (int64_t)lane, tensor_load(l->in, start + where * l->inner));
  }
}

static Status extreme(Kernel *k, Lanes *l, bool greatest) {
  if (l->count && l->length == 0)
    return kernel_error(k, "an empty dimension has no extreme value");
  l->greatest = greatest;
  lanes_run(l, extreme_body);
  return STATUS_OK;
}

Status kern_argmax(Kernel *k) {
  Tensor in = *kernel_tensor(k, 0);
  int64_t dim = 0;
  if (k->args[1].kind == ARG_NONE) { /* over all elements */
    in.dims[0] = tensor_numel(&in);
    in.rank = 1;
  } else {
    dim = k->args[1].i;
  }
  if (!axis_ok(&in, dim))
    return kernel_error(k, "the dimension is out of range");
  Lanes l = lanes_make(&in, dim);
  l.indices = k->results[0];
  return extreme(k, &l, k->op == OP_ARGMAX);
}

Status kern_max_dim(Kernel *k) {
  if (!axis_ok(kernel_tensor(k, 0), k->args[1].i))
    return kernel_error(k, "the dimension is out of range");
  Lanes l = lanes_make(kernel_tensor(k, 0), k->args[1].i);
  l.out = k->results[0];
  l.indices = k->results[1];
  return extreme(k, &l, k->op == OP_MAX_DIM);
}

/* --- topk --- */

typedef struct Ranked {
  double f;  /* floats */
  int64_t i; /* integers */
  int64_t position;
} Ranked;

static int by_position(const Ranked *a, const Ranked *b) {
  return a->position < b->position ? -1 : 1;
}

/* Ascending; NaN above all numbers; equal keys by position. */
static int ascending(const void *pa, const void *pb) {
  const Ranked *a = pa, *b = pb;
  bool nan_a = a->f != a->f, nan_b = b->f != b->f;
  if (nan_a != nan_b)
    return nan_a ? 1 : -1;
  if (!nan_a && a->f != b->f)
    return a->f < b->f ? -1 : 1;
  int order = ORDER(a->i, b->i);
  return order ? order : by_position(a, b);
}

static int descending(const void *pa, const void *pb) {
  const Ranked *a = pa, *b = pb;
  int order = ascending(pb, pa);
  bool equal = (a->f == b->f || (a->f != a->f && b->f != b->f)) && a->i == b->i;
  return equal ? by_position(a, b) : order;
}

static void topk_lane(const Lanes *l, int64_t lane, int64_t k, Ranked *items) {
  int64_t from = lane_start(l, lane, l->length), to = lane_start(l, lane, k);
  bool whole = ew_type(l->in->dtype) == EW_I64;
  for (int64_t i = 0; i < l->length; i++) {
    int64_t at = from + i * l->inner;
    items[i] = (Ranked){.position = i};
    if (whole)
      items[i].i = tensor_load_int(l->in, at);
    else
      items[i].f = tensor_load(l->in, at);
  }
  qsort(items, (size_t)l->length, sizeof *items, l->greatest ? descending : ascending);
  for (int64_t i = 0; i < k; i++, to += l->inner) {
    if (whole)
      tensor_store_int(l->out, to, items[i].i);
    else
      tensor_store(l->out, to, items[i].f);
    tensor_store_int(l->indices, to, items[i].position);
  }
}

Status kern_topk(Kernel *k) {
  const Tensor *in = kernel_tensor(k, 0);
  int64_t wanted = k->args[1].i;
  if (!axis_ok(in, k->args[2].i))
    return kernel_error(k, "the dimension is out of range");
  Lanes l = lanes_make(in, k->args[2].i);
  if (wanted < 0 || wanted > l.length)
    return kernel_error(k, "%lld elements asked for, the dimension has %lld", (long long)wanted,
                        (long long)l.length);
  l.out = k->results[0];
  l.indices = k->results[1];
  l.greatest = k->args[3].i != 0;
  Ranked *items = ARENA_ARRAY(k->scratch, Ranked, (size_t)l.length);
  for (int64_t lane = 0; lane < l.count; lane++)
    topk_lane(&l, lane, wanted, items);
  return STATUS_OK;
}
