/* Reference kernel of convolution over one to three spatial dims: windows gathered into columns
 * (im2col) and multiplied by the weights tile by tile; each channel on its own where the groups are
 * that small (depthwise); for the transpose, products scattered onto the result. Floats narrower
 * than f32 are computed in f32, integers in i64. */
#include <math.h>

#include "ops/depthwise.h"
#include "ops/elementwise.h"
#include "ops/gemm.h"
#include "ops/ops.h"

#include "support/parallel.h"

#define TILE_ELEMENTS 131072       /* of a tile's columns */
#define SMALL_WORK 1000000         /* multiplications */
#define DEPTHWISE_GRAIN 262144     /* the same, of a chunk */
#define SCATTER_ELEMENTS (8 << 20) /* of the transpose's products at a time */

/* Spatial arrays have three entries; missing leading dims are 1. */
typedef struct Conv {
  Tensor in, weight, bias, out;     /* bias.data NULL: none */
  int64_t batch, groups, cin, cout; /* channels of one group */
  int64_t size[3], kernel[3], result[3], stride[3], pad[3], dilation[3];
  int64_t in_area, out_area, taps, depth; /* depth: rows of the columns, cin * taps */
  bool pointwise;                         /* columns are the input itself */
  bool folds;                             /* as of the kernel */
  int64_t tile, tiles, tasks, workers;
  char *columns; /* one buffer a worker */
} Conv;

static int64_t spatial_arg(const Kernel *k, uint32_t i, uint32_t d, uint32_t spatial) {
  const KernelArg *arg = &k->args[i];
  uint32_t from = 3 - spatial;
  if (d < from || arg->kind != ARG_INTS || arg->count == 0)
    return i == 4 ? 0 : 1; /* padding, else stride or dilation */
  return arg->ints[arg->count == 1 ? 0 : (d - from < arg->count ? d - from : arg->count - 1)];
}

static void conv_area(Conv *c) {
  c->in_area = c->out_area = c->taps = 1;
  c->pointwise = true;
  for (uint32_t d = 0; d < 3; d++) {
    c->in_area *= c->size[d];
    c->out_area *= c->result[d];
    c->taps *= c->kernel[d];
    c->pointwise = c->pointwise && c->kernel[d] == 1 && c->stride[d] == 1 && c->pad[d] == 0 &&
                   c->size[d] == c->result[d];
  }
  c->depth = c->cin * c->taps;
}

static bool conv_fits(const Tensor *in, const Tensor *weight, const Tensor *out, int64_t groups) {
  return in->rank >= 3 && in->rank <= 5 && weight->rank == in->rank && out->rank == in->rank &&
         groups >= 1 && weight->dims[0] % groups == 0 && in->dims[1] % groups == 0;
}

static Status conv_make(Kernel *k, Conv *c, bool transposed) {
  const Tensor *in = kernel_tensor(k, 0), *weight = kernel_tensor(k, 1),
               *bias = kernel_tensor(k, 2);
  DType dtype = compute_dtype(in->dtype);
  uint32_t rank = in->rank, from = 5 - rank;
  const Tensor *out = k->results[0];
  int64_t groups = k->args[8].i;
  if (!conv_fits(in, weight, out, groups))
    return kernel_error(k, "the operands do not fit together");
  *c = (Conv){.in = kernel_in_dtype(k, in, dtype),
              .folds = k->folds,
              .weight = kernel_in_dtype(k, weight, dtype),
              .bias = kernel_in_dtype(k, bias, dtype),
              .out = kernel_result_in_dtype(k, 0, dtype),
              .batch = in->dims[0],
              .groups = groups,
              .cin = in->dims[1] / groups,
              .cout = transposed ? weight->dims[1] : weight->dims[0] / groups};
  for (uint32_t d = 0; d < 3; d++) {
    c->size[d] = d < from ? 1 : in->dims[2 + d - from];
    c->kernel[d] = d < from ? 1 : weight->dims[2 + d - from];
    c->result[d] = d < from ? 1 : out->dims[2 + d - from];
    c->stride[d] = spatial_arg(k, 3, d, rank - 2);
    c->pad[d] = spatial_arg(k, 4, d, rank - 2);
    c->dilation[d] = spatial_arg(k, 5, d, rank - 2);
  }
  conv_area(c);
  bool fits = out->dims[0] == c->batch && out->dims[1] == c->cout * groups &&
              (!bias || tensor_numel(bias) == c->cout * groups);
  fits = fits && (transposed ? weight->dims[0] == in->dims[1] : weight->dims[1] == c->cin);
  return fits ? STATUS_OK : kernel_error(k, "the operands do not fit together");
}

/* Start value of every element of a result channel. */
static void fill_channel(const Conv *c, int64_t channel, int64_t at, int64_t count) {
  void *out = c->out.data;
  if (c->out.dtype == DTYPE_F32) {
    float v = c->bias.data ? ((const float *)c->bias.data)[channel] : 0;
    for (int64_t i = 0; i < count; i++)
      ((float *)out)[at + i] = v;
  } else if (c->out.dtype == DTYPE_F64) {
    double v = c->bias.data ? ((const double *)c->bias.data)[channel] : 0;
    for (int64_t i = 0; i < count; i++)
      ((double *)out)[at + i] = v;
  } else {
    int64_t v = c->bias.data ? ((const int64_t *)c->bias.data)[channel] : 0;
    for (int64_t i = 0; i < count; i++)
      ((int64_t *)out)[at + i] = v;
  }
}

/* --- columns --- */

/* Where a kernel tap reads for result row (depth, line): the offset of its input row, -1 in the
 * padding. */
static int64_t tap_row(const Conv *c, const int64_t tap[3], int64_t depth, int64_t line) {
  int64_t z = depth * c->stride[0] - c->pad[0] + tap[0] * c->dilation[0];
  int64_t y = line * c->stride[1] - c->pad[1] + tap[1] * c->dilation[1];
  return z < 0 || z >= c->size[0] || y < 0 || y >= c->size[1] ? -1
                                                              : (z * c->size[1] + y) * c->size[2];
}

/* Results x of a row for which the tap at offset `first` (of result 0) reads inside [0, size). */
static void valid_range(int64_t first, int64_t step, int64_t size, int64_t width, int64_t *begin,
                        int64_t *end) {
  *begin = first >= 0 ? 0 : (-first + step - 1) / step;
  *end = first >= size ? 0 : min_i64(width, (size - 1 - first) / step + 1);
}

/* Row of the columns: what one tap of one channel sees for results [from, from + count). */
#define GATHER(name, T)                                                                            \
  static void name(const Conv *c, const T *plane, const int64_t tap[3], int64_t from,              \
                   int64_t count, T *row) {                                                        \
    const int64_t width = c->result[2], step = c->stride[2];                                       \
    int64_t x = from % width, line = from / width, begin, end;                                     \
    const int64_t first = tap[2] * c->dilation[2] - c->pad[2];                                     \
    valid_range(first, step, c->size[2], width, &begin, &end);                                     \
    for (; count > 0; line++) {                                                                    \
      int64_t stop = min_i64(width, x + count), start = x;                                         \
      int64_t base = tap_row(c, tap, line / c->result[1], line % c->result[1]);                    \
      int64_t low = base < 0 ? stop : min_i64(begin, stop), high = min_i64(end, stop);             \
      for (; x < low; x++)                                                                         \
        row[x - start] = 0;                                                                        \
      for (; x < high; x++)                                                                        \
        row[x - start] = plane[base + first + x * step];                                           \
      for (; x < stop; x++)                                                                        \
        row[x - start] = 0;                                                                        \
      row += stop - start;                                                                         \
      count -= stop - start;                                                                       \
      x = 0;                                                                                       \
    }                                                                                              \
  }
GATHER(gather32, uint32_t)
GATHER(gather64, uint64_t)

/* The columns of one group of one image, results [from, from + count). */
static void gather_tile(const Conv *c, const char *image, int64_t from, int64_t count,
                        char *columns) {
  int64_t size = dtype_size(c->in.dtype);
  for (int64_t channel = 0; channel < c->cin; channel++) {
    const void *plane = image + channel * c->in_area * size;
    for (int64_t t = 0; t < c->taps; t++) {
      int64_t tap[3] = {t / c->kernel[2] / c->kernel[1], t / c->kernel[2] % c->kernel[1],
                        t % c->kernel[2]};
      void *row = columns + (channel * c->taps + t) * count * size;
      if (size == 4)
        gather32(c, plane, tap, from, count, row);
      else
        gather64(c, plane, tap, from, count, row);
    }
  }
}

static void conv_task(const Conv *c, int64_t task, char *columns) {
  int64_t size = dtype_size(c->in.dtype), which = task / c->tiles, from = task % c->tiles * c->tile;
  int64_t count = min_i64(c->tile, c->out_area - from), group = which % c->groups;
  const char *image = (const char *)c->in.data + which * c->cin * c->in_area * size;
  int64_t result = which * c->cout * c->out_area + from;
  if (!c->pointwise)
    gather_tile(c, image, from, count, columns);
  for (int64_t o = 0; c->bias.data && o < c->cout; o++)
    fill_channel(c, group * c->cout + o, result + o * c->out_area, count);
  Gemm g = {.dtype = c->in.dtype,
            .m = c->cout,
            .n = count,
            .k = c->depth,
            .alpha = 1,
            .beta = c->bias.data ? 1 : 0,
            .a = (const char *)c->weight.data + group * c->cout * c->depth * size,
            .lda = max_i64(c->depth, 1),
            .b = c->pointwise ? image + from * size : columns,
            .ldb = c->pointwise ? c->in_area : count,
            .c = (char *)c->out.data + result * size,
            .ldc = c->out_area,
            .own_loops = c->folds};
  gemm(&g);
}

static void conv_workers(void *user, size_t begin, size_t end) {
  const Conv *c = user;
  for (int64_t w = (int64_t)begin; w < (int64_t)end; w++) {
    int64_t share = w * c->depth * c->tile * dtype_size(c->in.dtype);
    char *columns = c->pointwise ? NULL : c->columns + share;
    for (int64_t task = c->tasks * w / c->workers; task < c->tasks * (w + 1) / c->workers; task++)
      conv_task(c, task, columns);
  }
}

static void conv_columns(Kernel *k, Conv *c) {
  int64_t threads = parallel_threads(), images = c->batch * c->groups;
  c->tile = max_i64(TILE_ELEMENTS / max_i64(c->depth, 1), 64);
  c->tile = max_i64(min_i64(c->tile, c->out_area), 1);
  c->tiles = (c->out_area + c->tile - 1) / c->tile;
  c->tasks = images * c->tiles;
  /* Few tasks: the product itself runs on all threads. Little work: it is done sooner by one. */
  bool large = c->tasks >= threads && c->tile * c->depth * c->cout * c->tasks >= SMALL_WORK;
  c->workers = large ? threads : 1;
  if (!c->pointwise)
    c->columns = arena_alloc(k->scratch,
                             (size_t)(c->workers * c->depth * c->tile) * dtype_size(c->in.dtype));
  parallel_for((size_t)c->workers, 1, conv_workers, c);
}

/* --- depthwise: one input channel a group, f32 --- */

static bool all_finite(const float *values, int64_t count) {
  bool finite = true;
  for (int64_t i = 0; i < count; i++)
    finite = finite && isfinite(values[i]);
  return finite;
}

/* Planes by way of their padded copies; weights are finite, as zeros of the padding times others
 * were no zeros. */
typedef struct DepthwiseRun {
  const Conv *conv;
  Depthwise plan;
} DepthwiseRun;

static void padded_body(void *user, size_t begin, size_t end) {
  const DepthwiseRun *r = user;
  const Conv *c = r->conv;
  float *buffer = xrealloc(NULL, (size_t)(r->plan.buffer + r->plan.sums) * sizeof *buffer);
  int64_t loaded = -1;
  memset(buffer, 0, (size_t)r->plan.buffer * sizeof *buffer);
  for (int64_t plane = (int64_t)begin; plane < (int64_t)end; plane++) {
    int64_t channel = plane % (c->groups * c->cout), in = plane / c->cout;
    float bias = c->bias.data ? ((const float *)c->bias.data)[channel] : 0;
    if (in != loaded)
      depthwise_load(&r->plan, (const float *)c->in.data + in * c->in_area, buffer);
    loaded = in;
    depthwise_sum(&r->plan, buffer, (const float *)c->weight.data + channel * c->taps, bias,
                  buffer + r->plan.buffer, (float *)c->out.data + plane * c->out_area);
  }
  xfree(buffer);
}

static bool plan_padded(const Conv *c, Depthwise *d) {
  if (c->kernel[0] != 1 || c->result[0] != 1 || c->size[0] != 1 || c->pad[0] != 0)
    return false;
  for (unsigned i = 0; i < 2; i++) {
    d->size[i] = c->size[i + 1];
    d->kernel[i] = c->kernel[i + 1];
    d->result[i] = c->result[i + 1];
    d->stride[i] = c->stride[i + 1];
    d->pad[i] = c->pad[i + 1];
    d->dilation[i] = c->dilation[i + 1];
  }
  return depthwise_plan(d) && all_finite(c->weight.data, c->groups * c->cout * c->taps);
}

static void depthwise_body(void *user, size_t begin, size_t end) {
  const Conv *c = user;
  int64_t width = c->result[2], step = c->stride[2];
  for (int64_t plane = (int64_t)begin; plane < (int64_t)end; plane++) {
    int64_t channel = plane % (c->groups * c->cout), from, to;
    const float *x = (const float *)c->in.data + plane / c->cout * c->in_area;
    const float *w = (const float *)c->weight.data + channel * c->taps;
    fill_channel(c, channel, plane * c->out_area, c->out_area);
    for (int64_t line = 0; line < c->result[0] * c->result[1]; line++) {
      float *y = (float *)c->out.data + plane * c->out_area + line * width;
      for (int64_t t = 0; t < c->taps; t++) {
        int64_t tap[3] = {t / c->kernel[2] / c->kernel[1], t / c->kernel[2] % c->kernel[1],
                          t % c->kernel[2]};
        int64_t base = tap_row(c, tap, line / c->result[1], line % c->result[1]);
        int64_t first = tap[2] * c->dilation[2] - c->pad[2];
        if (base < 0)
          continue;
        valid_range(first, step, c->size[2], width, &from, &to);
        const float weight = w[t], *row = x + base;
        for (int64_t i = from; i < to; i++)
          y[i] += weight * row[first + i * step];
      }
    }
  }
}

static void conv_depthwise(Conv *c) {
  DepthwiseRun run = {.conv = c};
  size_t planes = (size_t)(c->batch * c->groups * c->cout);
  size_t grain = (size_t)(DEPTHWISE_GRAIN / (c->out_area * c->taps + 1)) + 1;
  if (plan_padded(c, &run.plan))
    parallel_for(planes, grain, padded_body, &run);
  else
    parallel_for(planes, grain, depthwise_body, c);
}

/* --- transposed --- */

/* Adds products [taps, in_area] of one result channel onto it. */
#define SCATTER(name, T)                                                                           \
  static void name(const Conv *c, const T *products, T *plane) {                                   \
    for (int64_t t = 0; t < c->taps; t++) {                                                        \
      int64_t tz = t / c->kernel[2] / c->kernel[1], ty = t / c->kernel[2] % c->kernel[1],          \
              tx = t % c->kernel[2], from, to;                                                     \
      int64_t first = tx * c->dilation[2] - c->pad[2], step = c->stride[2];                        \
      valid_range(first, step, c->result[2], c->size[2], &from, &to);                              \
      for (int64_t line = 0; line < c->size[0] * c->size[1]; line++) {                             \
        int64_t z = line / c->size[1] * c->stride[0] - c->pad[0] + tz * c->dilation[0];            \
        int64_t y = line % c->size[1] * c->stride[1] - c->pad[1] + ty * c->dilation[1];            \
        if (z < 0 || z >= c->result[0] || y < 0 || y >= c->result[1])                              \
          continue;                                                                                \
        const T *row = products + (t * c->size[0] * c->size[1] + line) * c->size[2];               \
        T *target = plane + (z * c->result[1] + y) * c->result[2];                                 \
        for (int64_t x = from; x < to; x++)                                                        \
          target[first + x * step] += row[x];                                                      \
      }                                                                                            \
    }                                                                                              \
  }
SCATTER(scatter_f32, float)
SCATTER(scatter_f64, double)
SCATTER(scatter_i64, uint64_t)

typedef struct Scatter {
  const Conv *conv;
  int64_t image, channel; /* first result channel of the chunk, within all groups */
  const char *products;
} Scatter;

static void scatter_body(void *user, size_t begin, size_t end) {
  const Scatter *s = user;
  const Conv *c = s->conv;
  int64_t size = dtype_size(c->out.dtype);
  for (int64_t i = (int64_t)begin; i < (int64_t)end; i++) {
    int64_t at = (s->image * c->groups * c->cout + s->channel + i) * c->out_area;
    const void *products = s->products + i * c->taps * c->in_area * size;
    void *plane = (char *)c->out.data + at * size;
    fill_channel(c, s->channel + i, at, c->out_area);
    if (c->out.dtype == DTYPE_F32)
      scatter_f32(c, products, plane);
    else if (c->out.dtype == DTYPE_F64)
      scatter_f64(c, products, plane);
    else
      scatter_i64(c, products, plane);
  }
}

static void conv_transposed(Kernel *k, Conv *c) {
  int64_t size = dtype_size(c->in.dtype), each = max_i64(c->taps * c->in_area, 1);
  int64_t chunk = max_i64(min_i64(SCATTER_ELEMENTS / each, c->cout), 1);
  char *products = arena_alloc(k->scratch, (size_t)(chunk * each * size));
  for (int64_t which = 0; which < c->batch * c->groups; which++) {
    int64_t group = which % c->groups;
    for (int64_t o = 0; o < c->cout; o += chunk) {
      int64_t count = min_i64(chunk, c->cout - o), row = c->cout * c->taps;
      Gemm g = {.dtype = c->in.dtype,
                .trans_a = true,
                .m = count * c->taps,
                .n = c->in_area,
                .k = c->cin,
                .alpha = 1,
                .a = (const char *)c->weight.data + (group * c->cin * row + o * c->taps) * size,
                .lda = max_i64(row, 1),
                .b = (const char *)c->in.data + which * c->cin * c->in_area * size,
                .ldb = max_i64(c->in_area, 1),
                .c = products,
                .ldc = max_i64(c->in_area, 1),
                .own_loops = c->folds};
      gemm(&g);
      Scatter s = {.conv = c,
                   .image = which / c->groups,
                   .channel = group * c->cout + o,
                   .products = products};
      parallel_for((size_t)count, (size_t)(65536 / each) + 1, scatter_body, &s);
    }
  }
}

Status kern_convolution(Kernel *k) {
  Conv c;
  bool transposed = k->args[6].i != 0;
  TRY(conv_make(k, &c, transposed));
  if (tensor_numel(&c.out) == 0)
    return STATUS_OK;
  for (uint32_t d = 0; d < 3; d++)
    if (c.stride[d] < 1 || c.dilation[d] < 1 || c.pad[d] < 0)
      return kernel_error(k, "stride, padding or dilation is out of range");
  if (transposed)
    conv_transposed(k, &c);
  else if (c.cin == 1 && c.groups > 1 && c.in.dtype == DTYPE_F32)
    conv_depthwise(&c);
  else
    conv_columns(k, &c);
  kernel_store_result(k, 0, &c.out);
  return STATUS_OK;
}
