/* Upsampling of the last two dims: bilinear and nearest, by output size or by factors.
 *
 * Source positions follow torch's UpSample.h as the runtime's kernels have it: ratios in double
 * handed on as float, and 1 / (out / in) where only the output size is given. Blending is in float
 * (double for f64); integer results truncate. */
#include <math.h>

#include "ops/move.h"
#include "ops/ops.h"
#include "ops/shape_util.h"
#include "support/number.h"

#define SIZE_MAX_UP ((double)((int64_t)1 << 31))

/* --- shape rules --- */

/* Entry i of a list of factors; false when there is none. */
static bool factor(const Graph *g, NodeId n, uint32_t arg, uint32_t i, double *out) {
  const Arg *a = node_arg(g, n, arg);
  if (i >= a->count || (a->kind != ARG_FLOATS && a->kind != ARG_INTS))
    return false;
  *out = a->kind == ARG_FLOATS ? g->floats[a->at + i] : (double)g->ints[a->at + i];
  return true;
}

/* floor(size * scale); of a symbolic size only when the factor is an exact fraction p / 2^k. */
static Status scaled_size(Graph *g, NodeId n, SymInt size, double scale, SymInt *out) {
  if (!(scale > 0) || scale > SIZE_MAX_UP)
    return bad_arg(g, n, "the scale factor %g is out of range", scale);
  if (sym_is_const(size)) {
    double scaled = (double)size * scale;
    if (!(scaled < SIZE_MAX_UP))
      return shape_error(g, n, DIAG_SHAPE_OVERFLOW, "size %lld times %g", (long long)size, scale);
    *out = int_clamped(scaled, 0, INT64_MAX);
    return STATUS_OK;
  }
  for (int64_t q = 1; q <= 1 << 20; q *= 2) {
    SymInt p;
    if (!sym_from_float(scale * (double)q, &p) || p >= SIZE_MAX_UP)
      continue;
    *out = sym_floordiv(&g->syms, sym_mul(&g->syms, size, p), q);
    return STATUS_OK;
  }
  const char *text = dim_text(g, size);
  return bad_arg(g, n, "the dimension %s times %g has no exact size: give output_size or fix it",
                 text, scale);
}

static Status upsample_shape(Graph *g, NodeId n, uint32_t size_arg, uint32_t scale_arg) {
  IntList size;
  Dims dims = operand_dims(g, n, 0);
  if (dims.rank != 4)
    return bad_shape(g, n, "rank %u, must be 4", dims.rank);
  bool by_size = node_arg(g, n, size_arg)->kind != ARG_NONE;
  bool by_scale = node_arg(g, n, scale_arg)->kind != ARG_NONE;
  if (by_size == by_scale)
    return bad_arg(g, n, "exactly one of output_size and scale_factors must be given");
  TRY(arg_int_list(g, n, size_arg, &size));
  if (by_size ? size.count != 2 : node_arg(g, n, scale_arg)->count != 2)
    return bad_arg(g, n, "output_size or scale_factors must have 2 entries");
  for (uint32_t i = 0; i < 2; i++) {
    double scale = 0;
    SymInt *d = &dims.d[2 + i];
    TRY(shape_at_least(g, n, *d, 1, "a dimension to resize"));
    if (by_size)
      *d = size.v[i];
    else if (factor(g, n, scale_arg, i, &scale))
      TRY(scaled_size(g, n, *d, scale, d));
    else
      return bad_arg(g, n, "scale_factors must be numbers");
    TRY(shape_at_least(g, n, *d, 1, "a dimension after resizing"));
  }
  return shape_result_dims(g, n, &dims);
}

Status shape_upsample_bilinear2d(Graph *g, NodeId n) { return upsample_shape(g, n, 1, 3); }

Status shape_upsample_nearest2d(Graph *g, NodeId n) { return upsample_shape(g, n, 1, 2); }

/* --- kernels --- */

/* Where one output position comes from. */
typedef struct Source {
  int64_t at, next;
  float weight, next_weight;
} Source;

/* The list of factors as floats, whatever it was written as; 0 when absent. */
static double kernel_factor(const KernelArg *a, uint32_t i) {
  if (i >= a->count)
    return 0;
  return a->kind == ARG_FLOATS ? a->floats[i] : a->kind == ARG_INTS ? (double)a->ints[i] : 0;
}

static float source_ratio(int64_t in, int64_t out, bool corners, double scale) {
  if (corners)
    return out > 1 ? (float)((double)(in - 1) / (double)(out - 1)) : 0.0F;
  if (!(scale > 0))
    scale = (double)out / (double)in;
  return (float)(1.0 / scale);
}

static int64_t floor_index(float position, int64_t size) {
  if (!(position < (float)size))
    return size - 1;
  return max_i64(0, min_i64(int_clamped((double)floorf(position), INT64_MIN, INT64_MAX), size - 1));
}

static Source bilinear_source(int64_t i, int64_t in, int64_t out, bool corners, float ratio) {
  if (in == out)
    return (Source){i, i, 1.0F, 0.0F};
  float position = corners ? ratio * (float)i : ratio * ((float)i + 0.5F) - 0.5F;
  position = position < 0 ? 0 : position;
  Source s = {.at = floor_index(position, in)};
  s.next = s.at + (s.at < in - 1 ? 1 : 0);
  s.next_weight = fminf(fmaxf(position - (float)s.at, 0.0F), 1.0F);
  s.weight = 1.0F - s.next_weight;
  return s;
}

static Source nearest_source(int64_t i, int64_t in, float ratio) {
  int64_t at = floor_index((float)i * ratio, in);
  return (Source){at, at, 1.0F, 0.0F};
}

/* Sources of all positions of dim 2 + i. */
static Status make_sources(Kernel *k, const Tensor *self, uint32_t i, bool bilinear, Source **out) {
  int64_t in = self->dims[2 + i], size = k->results[0]->dims[2 + i];
  bool corners = bilinear && k->args[2].i != 0;
  double scale = kernel_factor(&k->args[bilinear ? 3 : 2], i);
  if (in < 1)
    return kernel_error(k, "nothing to resize");
  float ratio = source_ratio(in, size, corners, scale);
  *out = arena_calloc(k->scratch, (size_t)size, sizeof **out);
  for (int64_t x = 0; x < size; x++)
    (*out)[x] =
        bilinear ? bilinear_source(x, in, size, corners, ratio) : nearest_source(x, in, ratio);
  return STATUS_OK;
}

static Status upsample_start(Kernel *k, bool bilinear, const Tensor **self, Source **rows,
                             Source **columns) {
  *self = kernel_tensor(k, 0);
  TRY(kernel_expect_dtype(k, *self));
  const Tensor *out = k->results[0];
  if ((*self)->rank != 4 || out->rank != 4 || (*self)->dims[0] != out->dims[0] ||
      (*self)->dims[1] != out->dims[1])
    return kernel_error(k, "operand and result do not fit");
  TRY(make_sources(k, *self, 0, bilinear, rows));
  return make_sources(k, *self, 1, bilinear, columns);
}

Status kern_upsample_nearest2d(Kernel *k) {
  const Tensor *self;
  Source *rows, *columns;
  TRY(upsample_start(k, false, &self, &rows, &columns));
  const Tensor *out = k->results[0];
  int64_t height = out->dims[2], width = out->dims[3];
  size_t element = dtype_size(out->dtype);
  char *to = out->data;
  for (int64_t i = 0; i < out->dims[0] * out->dims[1] * height; i++) {
    int64_t row = i / height * self->dims[2] + rows[i % height].at;
    const char *from = (const char *)self->data + (size_t)(row * self->dims[3]) * element;
    for (int64_t x = 0; x < width; x++, to += element)
      memcpy(to, from + (size_t)columns[x].at * element, element);
  }
  return STATUS_OK;
}

static double blend(bool wide, double a, double b, const Source *s) {
  if (wide)
    return a * (double)s->weight + b * (double)s->next_weight;
  return (double)((float)a * s->weight + (float)b * s->next_weight);
}

Status kern_upsample_bilinear2d(Kernel *k) {
  const Tensor *self;
  Source *rows, *columns;
  TRY(upsample_start(k, true, &self, &rows, &columns));
  Tensor *out = k->results[0];
  int64_t height = out->dims[2], width = out->dims[3], in_width = self->dims[3];
  bool wide = self->dtype == DTYPE_F64;
  for (int64_t i = 0; i < out->dims[0] * out->dims[1] * height; i++) {
    const Source *y = &rows[i % height];
    int64_t plane = i / height * self->dims[2];
    int64_t top = (plane + y->at) * in_width, bottom = (plane + y->next) * in_width;
    for (int64_t x = 0; x < width; x++) {
      const Source *s = &columns[x];
      double a = blend(wide, tensor_load(self, top + s->at), tensor_load(self, top + s->next), s);
      double b =
          blend(wide, tensor_load(self, bottom + s->at), tensor_load(self, bottom + s->next), s);
      tensor_store(out, i * width + x, blend(wide, a, b, y));
    }
  }
  return STATUS_OK;
}
