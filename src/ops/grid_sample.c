/* grid_sampler_2d: samples an image at given positions, as torch's GridSampler.h defines it.
 *
 * Positions are computed step by step in the precision of the kernel (float, double for f64),
 * because nearest rounds them: every step here is done in double and rounded, which for + - * / is
 * the same as doing it in float. */
#include <math.h>

#include "ops/move.h"
#include "ops/ops.h"
#include "ops/shape_util.h"
#include "support/number.h"

enum { MODE_BILINEAR, MODE_NEAREST, MODE_BICUBIC };
enum { PADDING_ZEROS, PADDING_BORDER, PADDING_REFLECTION };

Status shape_grid_sampler_2d(Graph *g, NodeId n) {
  int64_t mode, padding;
  ValueId input = node_value(g, n, 0), grid = node_value(g, n, 1);
  TRY(arg_const_int(g, n, 2, &mode));
  TRY(arg_const_int(g, n, 3, &padding));
  Dims in = value_dims(g, input), at = value_dims(g, grid);
  if (in.rank != 4 || at.rank != 4)
    return bad_shape(g, n, "input of rank %u and grid of rank %u: both must have rank 4", in.rank,
                     at.rank);
  if (mode < 0 || mode > 2 || padding < 0 || padding > 2)
    return bad_arg(g, n, "interpolation mode %lld, padding mode %lld: both must be 0, 1 or 2",
                   (long long)mode, (long long)padding);
  if (value_dtype(g, input) != value_dtype(g, grid) || !dtype_is_float(value_dtype(g, input)))
    return bad_dtype(g, n, "input and grid must have the same float type");
  TRY(shape_equal(g, n, in.d[0], at.d[0], "batch sizes of input and grid"));
  TRY(shape_equal(g, n, at.d[3], 2, "the last dimension of the grid and 2"));
  TRY(shape_at_least(g, n, in.d[2], 1, "the height of the input"));
  TRY(shape_at_least(g, n, in.d[3], 1, "the width of the input"));
  in.d[2] = at.d[1];
  in.d[3] = at.d[2];
  return shape_result(g, n, 0, value_dtype(g, input), &in);
}

/* --- positions --- */

typedef struct Sampler {
  const Tensor *input, *grid;
  Tensor *out;
  int64_t mode, padding;
  bool corners, wide;
  int64_t height, width;
} Sampler;

static double rounded(const Sampler *s, double x) { return s->wide ? x : (double)(float)x; }

static double unnormalize(const Sampler *s, double x, int64_t size) {
  double one = rounded(s, x + 1);
  if (s->corners)
    return rounded(s, rounded(s, one / 2) * (double)(size - 1));
  return rounded(s, rounded(s, rounded(s, one * (double)size) - 1) / 2);
}

/* NaN goes to the last position, as std::min of the kernel has it. */
static double clip(double x, int64_t size) {
  double last = (double)(size - 1);
  x = x < 0 ? 0 : x;
  return x < last ? x : last;
}

static double reflect(const Sampler *s, double x, int64_t twice_low, int64_t twice_high) {
  if (twice_low == twice_high)
    return 0;
  double low = (double)twice_low / 2, span = (double)(twice_high - twice_low) / 2;
  x = fabs(rounded(s, x - low));
  double extra = fmod(x, span), flips = floor(rounded(s, x / span));
  if (fmod(flips, 2) == 0)
    return rounded(s, extra + low);
  return rounded(s, rounded(s, span - extra) + low);
}

static double reflect_in(const Sampler *s, double x, int64_t size) {
  return s->corners ? reflect(s, x, 0, 2 * (size - 1)) : reflect(s, x, -1, 2 * size - 1);
}

static double source_position(const Sampler *s, double x, int64_t size) {
  x = unnormalize(s, x, size);
  if (s->padding == PADDING_REFLECTION)
    x = reflect_in(s, x, size);
  return s->padding == PADDING_ZEROS ? x : clip(x, size);
}

/* A rounded position as an index; what no image can hold (NaN, huge) becomes an index outside every
 * image. */
static int64_t to_index(double x) {
  double limit = (double)((int64_t)1 << 40);
  return x > -limit && x < limit ? int_clamped(x, INT64_MIN, INT64_MAX) : -((int64_t)1 << 40);
}

/* Index of a neighbour after padding, -1 when it counts as zero. */
static int64_t padded_index(const Sampler *s, int64_t i, int64_t size) {
  if (i >= 0 && i < size)
    return i;
  if (s->padding == PADDING_ZEROS)
    return -1;
  if (s->padding == PADDING_REFLECTION && s->mode == MODE_BICUBIC)
    return to_index(clip(reflect_in(s, (double)i, size), size));
  return i < 0 ? 0 : size - 1;
}

/* --- weights --- */

/* One dim of a sample: up to four neighbours with their weights. */
typedef struct Taps {
  uint32_t count;
  int64_t index[4];
  double weight[4];
} Taps;

static double cubic_near(const Sampler *s, double x) {
  double a = -0.75;
  double inner = rounded(s, rounded(s, (a + 2) * x) - (a + 3));
  return rounded(s, rounded(s, rounded(s, inner * x) * x) + 1);
}

static double cubic_far(const Sampler *s, double x) {
  double a = -0.75;
  double inner = rounded(s, rounded(s, a * x) - 5 * a);
  inner = rounded(s, rounded(s, inner * x) + 8 * a);
  return rounded(s, rounded(s, inner * x) - 4 * a);
}

static Taps taps_of(const Sampler *s, double x, int64_t size) {
  Taps t = {0};
  if (s->mode == MODE_NEAREST) {
    t.count = 1;
    t.index[0] = padded_index(s, to_index(nearbyint(source_position(s, x, size))), size);
    t.weight[0] = 1;
    return t;
  }
  double at = s->mode == MODE_BICUBIC ? unnormalize(s, x, size) : source_position(s, x, size);
  int64_t first = to_index(floor(at));
  double part = rounded(s, at - (double)first);
  if (s->mode == MODE_BILINEAR) {
    t.count = 2;
    t.weight[0] = rounded(s, (double)(first + 1) - at);
    t.weight[1] = part;
  } else {
    t.count = 4;
    double rest = rounded(s, 1 - part);
    t.weight[0] = cubic_far(s, rounded(s, part + 1));
    t.weight[1] = cubic_near(s, part);
    t.weight[2] = cubic_near(s, rest);
    t.weight[3] = cubic_far(s, rounded(s, rest + 1));
    first--;
  }
  for (uint32_t i = 0; i < t.count; i++)
    t.index[i] = padded_index(s, first + i, size);
  return t;
}

/* The sample of the plane that starts at element base. */
static double sample(const Sampler *s, int64_t base, const Taps *x, const Taps *y) {
  double sum = 0;
  for (uint32_t j = 0; j < y->count; j++) {
    double row = 0;
    for (uint32_t i = 0; i < x->count; i++) {
      if (x->index[i] < 0 || y->index[j] < 0)
        continue;
      double v = tensor_load(s->input, base + y->index[j] * s->width + x->index[i]);
      if (s->mode == MODE_NEAREST)
        return v;
      row += v * x->weight[i];
    }
    sum += row * y->weight[j];
  }
  return sum;
}

Status kern_grid_sampler_2d(Kernel *k) {
  Sampler s = {.input = kernel_tensor(k, 0),
               .grid = kernel_tensor(k, 1),
               .out = k->results[0],
               .mode = k->args[2].i,
               .padding = k->args[3].i};
  TRY(kernel_expect_dtype(k, s.input));
  if (s.input->rank != 4 || s.grid->rank != 4 || s.grid->dims[3] != 2 ||
      s.grid->dims[0] != s.input->dims[0] || s.input->dims[2] < 1 || s.input->dims[3] < 1)
    return kernel_error(k, "input and grid do not fit");
  int64_t channels = s.input->dims[1], height = s.grid->dims[1], width = s.grid->dims[2];
  TRY(kernel_expect(k, 0, 4, (int64_t[]){s.input->dims[0], channels, height, width}));
  s.corners = k->args[4].i != 0;
  s.wide = s.input->dtype == DTYPE_F64;
  s.height = s.input->dims[2];
  s.width = s.input->dims[3];
  int64_t area = height * width;
  for (int64_t i = 0; i < s.input->dims[0] * area; i++) {
    Taps x = taps_of(&s, tensor_load(s.grid, 2 * i), s.width);
    Taps y = taps_of(&s, tensor_load(s.grid, 2 * i + 1), s.height);
    int64_t batch = i / area;
    for (int64_t c = 0; c < channels; c++)
      tensor_store(s.out, (batch * channels + c) * area + i % area,
                   sample(&s, (batch * channels + c) * s.height * s.width, &x, &y));
  }
  return STATUS_OK;
}
