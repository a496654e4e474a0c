/* Pooling: max (with indices) and average over windows, adaptive average.
 *
 * Output sizes follow torch's pooling_output_shape (shape_window). Windows, divisors and the choice
 * of the maximum follow torch's CPU kernels, which the runtime's agree with: the first of equal
 * maxima wins, NaN beats all. */
#include <math.h>

#include "ops/elementwise.h"
#include "ops/index_util.h"
#include "ops/move.h"
#include "ops/ops.h"
#include "ops/shape_util.h"
#include "support/parallel.h"

/* --- shape rules --- */

/* Arguments of a pool in schema order: kernel_size, stride, padding; dilation only where dilated.
 */
typedef struct PoolArgs {
  SymInt kernel[2], stride[2], padding[2], dilation[2];
  bool ceil_mode;
} PoolArgs;

enum { KERNEL_MAX = 1 << 20, PADDING_MAX = 1 << 24, GRAIN = 1 << 15 };

static Status in_range(Graph *g, NodeId n, const SymInt v[2], int64_t low, int64_t high,
                       const char *what) {
  for (uint32_t i = 0; i < 2; i++)
    if (!sym_is_const(v[i]) || v[i] < low || v[i] > high) {
      const char *text = dim_text(g, v[i]);
      return bad_arg(g, n, "%s %s is out of range", what, text);
    }
  return STATUS_OK;
}

/* at: the argument with the kernel size. */
static Status read_pool(Graph *g, NodeId n, uint32_t at, bool dilated, PoolArgs *p) {
  TRY(arg_spatial(g, n, at, 2, -1, p->kernel));
  TRY(in_range(g, n, p->kernel, 1, KERNEL_MAX, "kernel_size"));
  IntList stride;
  TRY(arg_int_list(g, n, at + 1, &stride));
  if (stride.count == 0)
    memcpy(p->stride, p->kernel, sizeof p->stride);
  else
    TRY(arg_spatial(g, n, at + 1, 2, -1, p->stride));
  TRY(in_range(g, n, p->stride, 1, KERNEL_MAX, "stride"));
  TRY(arg_spatial(g, n, at + 2, 2, 0, p->padding));
  TRY(in_range(g, n, p->padding, 0, PADDING_MAX, "padding"));
  p->dilation[0] = p->dilation[1] = 1;
  if (dilated)
    TRY(arg_spatial(g, n, at + 3, 2, 1, p->dilation));
  TRY(in_range(g, n, p->dilation, 1, KERNEL_MAX, "dilation"));
  p->ceil_mode = arg_flag(g, n, at + (dilated ? 4 : 3));
  return STATUS_OK;
}

/* Dims after pooling the last two of argument at. */
static Status pool_dims(Graph *g, NodeId n, uint32_t at, bool dilated, Dims *dims) {
  PoolArgs p = {0};
  *dims = operand_dims(g, n, at);
  if (dims->rank != 3 && dims->rank != 4)
    return bad_shape(g, n, "rank %u, must be 3 or 4", dims->rank);
  TRY(read_pool(g, n, at + 1, dilated, &p));
  for (uint32_t i = 0; i < 2; i++) {
    SymInt *d = &dims->d[dims->rank - 2 + i];
    Window w = {*d,           p.kernel[i],  p.stride[i], p.dilation[i],
                p.padding[i], p.padding[i], p.ceil_mode};
    TRY(shape_window(g, n, &w, d));
  }
  return STATUS_OK;
}

Status shape_max_pool2d_with_indices(Graph *g, NodeId n) {
  Dims dims;
  TRY(pool_dims(g, n, 0, true, &dims));
  TRY(shape_result_dims(g, n, &dims));
  return shape_result(g, n, 1, DTYPE_I64, &dims);
}

/* The kernel takes no more of self than its shape: self and grad_input are one tensor. */
Status shape_max_pool2d_backward(Graph *g, NodeId n) {
  ValueId indices, grad_output = node_value(g, n, 0), self = node_value(g, n, 1);
  Dims out;
  TRY(pool_dims(g, n, 1, true, &out));
  TRY(shape_index_tensor(g, n, 7, &indices));
  ValueId grad_input = node_value(g, n, 8);
  if (value_dtype(g, grad_output) != value_dtype(g, self))
    return bad_dtype(g, n, "grad_output is %s, self %s", dtype_name(value_dtype(g, grad_output)),
                     dtype_name(value_dtype(g, self)));
  Dims from = value_dims(g, grad_output), at = value_dims(g, indices);
  if (from.rank != out.rank || at.rank != out.rank)
    return bad_shape(g, n, "grad_output has rank %u, indices %u, self %u", from.rank, at.rank,
                     out.rank);
  for (uint32_t i = 0; i < out.rank; i++) {
    TRY(shape_equal(g, n, from.d[i], out.d[i],
                    "a dimension of grad_output and of the pooled self"));
    TRY(shape_equal(g, n, at.d[i], out.d[i], "a dimension of indices and of the pooled self"));
  }
  if (grad_input != self)
    return bad_arg(g, n, "grad_input must be self");
  Dims dims = value_dims(g, self);
  return shape_result(g, n, 0, value_dtype(g, self), &dims);
}

Status shape_avg_pool2d(Graph *g, NodeId n) {
  Dims dims;
  TRY(pool_dims(g, n, 0, false, &dims));
  if (node_arg(g, n, 6)->kind != ARG_NONE) {
    int64_t divisor;
    TRY(arg_const_int(g, n, 6, &divisor));
    if (divisor == 0)
      return bad_arg(g, n, "divisor_override is 0");
  }
  if (!dtype_in(operand_dtype(g, n, 0), DTS_REAL))
    return bad_dtype(g, n, "an average of %s", dtype_name(operand_dtype(g, n, 0)));
  return shape_result_dims(g, n, &dims);
}

Status shape_adaptive_avg_pool2d(Graph *g, NodeId n) {
  SymInt size[2];
  TRY(arg_spatial(g, n, 1, 2, -1, size));
  Dims dims = operand_dims(g, n, 0);
  if (dims.rank != 3 && dims.rank != 4)
    return bad_shape(g, n, "rank %u, must be 3 or 4", dims.rank);
  for (uint32_t i = 0; i < 2; i++) {
    TRY(shape_at_least(g, n, size[i], 1, "output_size"));
    TRY(shape_at_least(g, n, dims.d[dims.rank - 2 + i], 1, "a dimension to pool"));
    dims.d[dims.rank - 2 + i] = size[i];
  }
  return shape_result_dims(g, n, &dims);
}

/* --- what the runtime's kernels refuse --- */

const char *check_pool2d(const Graph *g, NodeId n, Arena *arena) {
  uint32_t kernels = node_list_count(g, n, 1), pads = node_list_count(g, n, 3);
  for (uint32_t i = 0; i < 2 && kernels && pads; i++) {
    SymInt kernel = node_ints(g, n, 1)[i < kernels ? i : 0];
    SymInt pad = node_ints(g, n, 3)[i < pads ? i : 0];
    if (pad > kernel / 2)
      return arena_printf(arena, "padding %lld is more than half of the kernel size %lld",
                          (long long)pad, (long long)kernel);
  }
  ValueId self = node_value(g, n, 0);
  for (uint32_t i = value_rank(g, self) - 3; i < value_rank(g, self); i++)
    if (value_dim(g, self, i) == 0)
      return "only the batch may be empty";
  return node_cget(g, n)->op == OP_AVG_POOL2D ? check_contiguous(g, n, arena) : NULL;
}

const char *check_max_pool2d_backward(const Graph *g, NodeId n, Arena *arena) {
  if (!dtype_is_float(value_dtype(g, node_value(g, n, 0))))
    return "grad_output must be float";
  if (value_dtype(g, node_value(g, n, 7)) != DTYPE_I64)
    return "the indices must be i64";
  return check_contiguous(g, n, arena);
}

/* --- kernels --- */

/* Height and width, each as [2]. */
typedef struct Pool {
  const Tensor *self;
  Tensor *out, *indices;
  int64_t in[2], size[2], kernel[2], stride[2], padding[2], dilation[2];
  int64_t in_area, out_area, planes;
  const double *reals;   /* all elements, when float */
  const int64_t *wholes; /* all elements, else */
  bool include_pad;
  int64_t divisor; /* 0: by count */
} Pool;

/* Loads all elements once: windows overlap. */
static Status load_elements(Kernel *k, Pool *p) {
  size_t count = (size_t)tensor_numel(p->self);
  if (dtype_is_float(p->self->dtype)) {
    double *to = arena_calloc(k->scratch, count, sizeof *to);
    ew_load(p->self, EW_F64, 0, 1, to, count);
    p->reals = to;
    return STATUS_OK;
  }
  if (!dtype_in(p->self->dtype, DTS_INT))
    return kernel_error(k, "pooling of %s", dtype_name(p->self->dtype));
  int64_t *to = arena_calloc(k->scratch, count, sizeof *to);
  ew_load(p->self, EW_I64, 0, 1, to, count);
  p->wholes = to;
  return STATUS_OK;
}

static int64_t list_entry(const KernelArg *a, uint32_t i, int64_t fill) {
  if (a->kind == ARG_INT)
    return a->i;
  if (a->kind != ARG_INTS || a->count == 0)
    return fill;
  return a->ints[a->count == 1 ? 0 : i];
}

/* Reads operands and sizes; result 0 must have the other dims in common with self. */
static Status pool_start(Kernel *k, Pool *p) {
  *p = (Pool){.self = kernel_tensor(k, 0), .out = k->results[0]};
  TRY(kernel_expect_dtype(k, p->self));
  uint32_t rank = p->self->rank;
  if (rank < 2 || p->out->rank != rank)
    return kernel_error(k, "rank %u cannot be pooled", rank);
  for (uint32_t i = 0; i + 2 < rank; i++)
    if (p->self->dims[i] != p->out->dims[i])
      return kernel_error(k, "dim %u of operand and result differ", i);
  p->planes = dims_count(p->self->dims, 0, rank - 2);
  for (uint32_t i = 0; i < 2; i++) {
    p->in[i] = p->self->dims[rank - 2 + i];
    p->size[i] = p->out->dims[rank - 2 + i];
  }
  p->in_area = p->in[0] * p->in[1];
  p->out_area = p->size[0] * p->size[1];
  return STATUS_OK;
}

static Status pool_windows(Kernel *k, bool dilated, Pool *p) {
  for (uint32_t i = 0; i < 2; i++) {
    p->kernel[i] = list_entry(&k->args[1], i, 0);
    p->stride[i] = list_entry(&k->args[2], i, p->kernel[i]);
    p->padding[i] = list_entry(&k->args[3], i, 0);
    p->dilation[i] = dilated ? list_entry(&k->args[4], i, 1) : 1;
    if (p->kernel[i] < 1 || p->kernel[i] > KERNEL_MAX || p->stride[i] < 1 ||
        p->stride[i] > KERNEL_MAX || p->padding[i] < 0 || p->padding[i] > PADDING_MAX ||
        p->dilation[i] < 1 || p->dilation[i] > KERNEL_MAX)
      return kernel_error(k, "kernel, stride, padding or dilation out of range");
  }
  return STATUS_OK;
}

static bool better(const Pool *p, int64_t candidate, int64_t best) {
  if (p->wholes)
    return p->wholes[candidate] > p->wholes[best];
  return p->reals[candidate] > p->reals[best] || isnan(p->reals[candidate]);
}

/* Elements of a window along one axis: from, from + dilation, … below to. */
static void window_range(const Pool *p, uint32_t axis, int64_t at, int64_t *from, int64_t *to) {
  int64_t step = p->dilation[axis], first = at * p->stride[axis] - p->padding[axis];
  *to = min_i64(p->in[axis], first + (p->kernel[axis] - 1) * step + 1);
  *from = first < 0 ? first + (-first + step - 1) / step * step : first;
}

/* Index within the plane of the maximum of a window, -1 when all of it is padding. */
static int64_t window_max(const Pool *p, int64_t base, int64_t y, int64_t x) {
  int64_t best = -1, y0, y1, x0, x1, width = p->in[1];
  window_range(p, 0, y, &y0, &y1);
  window_range(p, 1, x, &x0, &x1);
  for (int64_t row = y0; row < y1; row += p->dilation[0])
    for (int64_t i = row * width + x0; i < row * width + x1; i += p->dilation[1])
      if (best < 0 || better(p, base + i, base + best))
        best = i;
  return best;
}

/* window_max and the copy for f32, with the greatest value at hand. */
static void max_row_f32(const Pool *p, const float *plane, int64_t y, float *out,
                        int64_t *indices) {
  int64_t y0, y1, x0, x1, width = p->in[1], dy = p->dilation[0], dx = p->dilation[1];
  window_range(p, 0, y, &y0, &y1);
  for (int64_t x = 0; x < p->size[1]; x++) {
    window_range(p, 1, x, &x0, &x1);
    bool empty = y0 >= y1 || x0 >= x1;
    int64_t best = empty ? 0 : y0 * width + x0;
    float top = empty ? -INFINITY : plane[best];
    for (int64_t row = y0; row < y1; row += dy)
      for (int64_t i = row * width + x0; i < row * width + x1; i += dx) {
        float value = plane[i];
        bool above = value > top || value != value;
        top = above ? value : top;
        best = above ? i : best;
      }
    out[x] = top;
    indices[x] = best;
  }
}

static void max_body_f32(void *user, size_t begin, size_t end) {
  const Pool *p = user;
  for (int64_t plane = (int64_t)begin; plane < (int64_t)end; plane++)
    for (int64_t y = 0; y < p->size[0]; y++) {
      int64_t at = plane * p->out_area + y * p->size[1];
      max_row_f32(p, (const float *)p->self->data + plane * p->in_area, y,
                  (float *)p->out->data + at, (int64_t *)p->indices->data + at);
    }
}

static void max_body(void *user, size_t begin, size_t end) {
  const Pool *p = user;
  size_t element = dtype_size(p->self->dtype);
  for (int64_t plane = (int64_t)begin; plane < (int64_t)end; plane++)
    for (int64_t i = 0; i < p->out_area; i++) {
      int64_t best = window_max(p, plane * p->in_area, i / p->size[1], i % p->size[1]),
              o = plane * p->out_area + i;
      tensor_store_int(p->indices, o, max_i64(best, 0));
      if (best >= 0)
        memcpy((char *)p->out->data + (size_t)o * element,
               (const char *)p->self->data + (size_t)(plane * p->in_area + best) * element,
               element);
      else
        tensor_store(p->out, o, -INFINITY);
    }
}

Status kern_max_pool2d_with_indices(Kernel *k) {
  Pool p;
  TRY(pool_start(k, &p));
  TRY(pool_windows(k, true, &p));
  if (p.self->dtype != DTYPE_F32) /* max_body_f32 reads the tensor itself */
    TRY(load_elements(k, &p));
  p.indices = k->results[1];
  if (p.indices->dtype != DTYPE_I64)
    return kernel_error(k, "indices must be i64");
  TRY(kernel_expect(k, 1, p.out->rank, p.out->dims));
  int64_t window = min_i64(p.kernel[0] * p.kernel[1], GRAIN);
  size_t grain = (size_t)(GRAIN / (p.out_area * window + 1)) + 1;
  parallel_for((size_t)p.planes, grain, p.self->dtype == DTYPE_F32 ? max_body_f32 : max_body, &p);
  return STATUS_OK;
}

/* Stores the sum over [first, last) of the plane at base, divided. */
static void store_mean(const Pool *p, int64_t base, const int64_t first[2], const int64_t last[2],
                       int64_t divisor, int64_t o) {
  double sum = 0;
  uint64_t whole = 0; /* wraps as the runtime's sum does */
  for (int64_t y = first[0]; y < last[0]; y++) {
    int64_t row = base + y * p->in[1];
    for (int64_t x = first[1]; x < last[1]; x++) {
      if (p->wholes)
        whole += (uint64_t)p->wholes[row + x];
      else
        sum += p->reals[row + x];
    }
  }
  if (!p->wholes)
    tensor_store(p->out, o, sum / (double)divisor);
  else if (divisor == -1)
    tensor_store_int(p->out, o, (int64_t)(0 - whole));
  else
    tensor_store_int(p->out, o, divisor ? (int64_t)whole / divisor : 0);
}

static void avg_body(void *user, size_t begin, size_t end) {
  const Pool *p = user;
  for (int64_t plane = (int64_t)begin; plane < (int64_t)end; plane++)
    for (int64_t i = 0; i < p->out_area; i++) {
      int64_t at[2] = {i / p->size[1], i % p->size[1]}, first[2], last[2], padded = 1, inside = 1;
      for (uint32_t d = 0; d < 2; d++) {
        first[d] = at[d] * p->stride[d] - p->padding[d];
        last[d] = min_i64(first[d] + p->kernel[d], p->in[d] + p->padding[d]);
        padded *= last[d] - first[d];
        first[d] = max_i64(first[d], 0);
        last[d] = min_i64(last[d], p->in[d]);
        inside *= max_i64(0, last[d] - first[d]);
      }
      int64_t divisor = p->divisor ? p->divisor : p->include_pad ? padded : inside;
      store_mean(p, plane * p->in_area, first, last, divisor, plane * p->out_area + i);
    }
}

Status kern_avg_pool2d(Kernel *k) {
  Pool p;
  TRY(pool_start(k, &p));
  TRY(pool_windows(k, false, &p));
  TRY(load_elements(k, &p));
  p.include_pad = k->args[5].i != 0;
  p.divisor = k->args[6].kind == ARG_INT ? k->args[6].i : 0;
  if (k->args[6].kind == ARG_INT && p.divisor == 0)
    return kernel_error(k, "divisor_override is 0");
  parallel_for((size_t)p.planes, 1, avg_body, &p);
  return STATUS_OK;
}

Status kern_adaptive_avg_pool2d(Kernel *k) {
  Pool p;
  TRY(pool_start(k, &p));
  TRY(load_elements(k, &p));
  for (int64_t plane = 0; plane < p.planes; plane++)
    for (int64_t i = 0; i < p.out_area; i++) {
      int64_t at[2] = {i / p.size[1], i % p.size[1]}, first[2], last[2];
      for (uint32_t d = 0; d < 2; d++) { /* floor and ceil of at * in / size */
        first[d] = at[d] * p.in[d] / p.size[d];
        last[d] = ((at[d] + 1) * p.in[d] + p.size[d] - 1) / p.size[d];
      }
      int64_t count = (last[0] - first[0]) * (last[1] - first[1]);
      store_mean(&p, plane * p.in_area, first, last, count, plane * p.out_area + i);
    }
  return STATUS_OK;
}

/* As the runtime's kernel does, it adds to what is there: zeros, by torch's meaning of the op. */
Status kern_max_pool2d_backward(Kernel *k) {
  const Tensor *from = kernel_tensor(k, 0), *at = kernel_tensor(k, 7), *to = kernel_tensor(k, 8);
  TRY(kernel_expect_dtype(k, from));
  TRY(kernel_expect(k, 0, to->rank, to->dims));
  Tensor *out = k->results[0];
  if (out->data != to->data)
    memcpy(out->data, to->data, tensor_bytes(to));
  int64_t planes = dims_count(to->dims, 0, to->rank - 2),
          area = to->dims[to->rank - 2] * to->dims[to->rank - 1];
  int64_t count = planes ? tensor_numel(from) / planes : 0;
  for (int64_t i = 0; i < planes * count; i++) {
    int64_t place = tensor_load_int(at, i), element = i / count * area + place;
    if (place < -1 || place >= area)
      return kernel_error(k, "index %lld is outside a plane of %lld elements", (long long)place,
                          (long long)area);
    if (place >= 0)
      tensor_store(out, element, tensor_load(out, element) + tensor_load(from, i));
  }
  return STATUS_OK;
}
