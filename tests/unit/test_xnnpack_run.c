/* The interpreter of XNNPACK delegates: every kind of node that the backend can write is run, and
 * compared with what xnnpack.h says that it computes, written down here the long way. */
#include <math.h>

#include "xnn_cases.h"

#include "backends/backend.h"
#include "backends/xnnpack/subgraph.h"

enum { MANY = 512, ROUNDS = 300 };

static bool seen[256]; /* by tag */

typedef struct Run {
  Made m;
  const float *in[2];
  const void *constants[MADE_CONSTANTS];
  float out[MANY];
  uint32_t dims[MADE_DIMS]; /* of the result */
} Run;

static uint64_t element_count(const Tensor *t) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < t->rank; i++)
    count *= (uint64_t)t->dims[i];
  return count;
}

/* Runs a delegate with one output of f32; NULL or the fault. */
static const char *run(Run *r, Arena *arena) {
  DelegateCall call = made_call(&r->m, arena, r->constants);
  for (uint32_t i = 0; i < MADE_NODES; i++)
    seen[r->m.nodes[i].tag & 255] = true;
  for (uint32_t i = 0; i < call.input_count; i++) {
    Tensor *t = (Tensor *)(uintptr_t)&call.inputs[i];
    t->capacity = element_count(t) * sizeof(float);
    t->data = arena_alloc(arena, t->capacity);
    memcpy(t->data, r->in[i], t->capacity);
  }
  Tensor *out = &call.outputs[0];
  out->capacity = sizeof r->out;
  out->data = arena_alloc(arena, sizeof r->out);
  const char *fault = reader_xnnpack.run(&call, arena);
  memcpy(r->out, out->data, sizeof r->out);
  for (uint32_t i = 0; i < out->rank; i++)
    r->dims[i] = (uint32_t)out->dims[i];
  return fault;
}

static void expect(Run *r, const double *want, uint32_t count, const char *what) {
  Arena arena = {0};
  const char *fault = run(r, &arena);
  if (fault)
    fail_msg("%s: %s", what, fault);
  for (uint32_t i = 0; i < count; i++)
    if (!(fabs((double)r->out[i] - want[i]) <= 1e-5 * (1 + fabs(want[i]))))
      fail_msg("%s: element %u is %g instead of %g", what, i, (double)r->out[i], want[i]);
  arena_release(&arena);
}

/* --- by element --- */

static double f_abs(double x) { return fabs(x); }
static double f_negate(double x) { return -x; }
static double f_square(double x) { return x * x; }
static double f_same(double x) { return x; }
static double f_sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double f_hardswish(double x) { return x * fmin(fmax(x + 3, 0), 6) / 6; }
static double f_gelu(double x) { return x * 0.5 * (1 + erf(x / sqrt(2))); }
static double f_rsqrt(double x) { return 1 / sqrt(x); }
static double f_elu(double x) { return x > 0 ? x : 1.5 * (exp(x) - 1); }
static double f_leaky(double x) { return x > 0 ? x : 1.5 * x; }
static double f_clamp(double x) { return fmin(fmax(x, -1), 0.5); }

typedef struct Unary {
  uint8_t tag;
  double (*f)(double);
  bool positive, number;
} Unary;

static void unary_nodes(void **state) {
  static const Unary rows[] = {
      {4, f_sigmoid},
      {6, f_clamp},
      {17, floor},
      {18, f_same},
      {22, sqrt, true},
      {23, ceil},
      {24, f_hardswish},
      {25, f_leaky, .number = true},
      {27, f_negate},
      {28, f_square},
      {29, f_elu, .number = true},
      {30, f_abs},
      {40, f_rsqrt, true},
      {41, log, true},
      {42, f_gelu},
      {43, tanh},
      {44, exp},
      {45, sin},
      {46, f_same},
      {47, cos},
  };
  static const float any[] = {-3.5f, -1, -0.25f, 0.5f, 1.75f, 4},
                     positive[] = {0.1f, 0.5f, 1, 2, 3, 9};
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    const Unary *row = &rows[i];
    float number = 1.5f;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    Run r = {.m = {.values = {IN(0, 2, 3), OUT(1, 2, 3)}, .nodes = {{row->tag, {0, 1, 0}}}},
             .in = {row->positive ? positive : any}};
    if (row->number)
      r.m.nodes[0] = (MadeNode){row->tag, {bits, 0, 1, 0}};
    if (row->tag == CLAMP) {
      r.m.nodes[0].limited = true;
      r.m.nodes[0].low = -1;
      r.m.nodes[0].high = 0.5f;
    }
    double want[6];
    for (uint32_t k = 0; k < 6; k++)
      want[k] = row->f((double)r.in[0][k]);
    expect(&r, want, 6, xr_name(row->tag));
  }
}

static double g_add(double a, double b) { return a + b; }
static double g_subtract(double a, double b) { return a - b; }
static double g_multiply(double a, double b) { return a * b; }
static double g_divide(double a, double b) { return a / b; }
static double g_prelu(double a, double b) { return a > 0 ? a : a * b; }

static void binary_nodes(void **state) {
  static const struct {
    uint8_t tag;
    double (*f)(double, double);
  } rows[] = {{1, g_add},       {8, g_divide}, {12, fmin},   {15, g_multiply},
              {16, g_subtract}, {26, fmax},    {31, g_prelu}};
  static const float a[] = {-3, -2, -1, 1, 2, 3}, b[] = {0.5f, -1.5f, 2.5f};
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    /* the second operand is broadcast, at first from outside, then as a constant */
    Run r = {.m = {.values = {IN(0, 2, 3), IN(1, 3), OUT(2, 2, 3)},
                   .nodes = {{rows[i].tag, {0, 1, 2, 0}}}},
             .in = {a, b}};
    double want[6];
    for (uint32_t k = 0; k < 6; k++)
      want[k] = rows[i].f((double)a[k], (double)b[k % 3]);
    expect(&r, want, 6, xr_name(rows[i].tag));
    Run c = {.m = {.values = {IN(0, 2, 3), CONSTANT(1, 3), OUT(1, 2, 3)},
                   .nodes = {{rows[i].tag, {0, 1, 2, 0}}}},
             .in = {a},
             .constants = {NULL, b}};
    expect(&c, want, 6, xr_name(rows[i].tag));
  }
}

/* Limits of the result, and a chain through halves. */
static void limits_and_halves(void **state) {
  static const float a[] = {-3, 0.1f, 2, 9};
  Run r = {.m = {.values = {IN(0, 4), OUT(1, 4)},
                 .nodes = {{.tag = ADD, .fields = {0, 0, 1, 0}, .limited = true, .high = 5}}},
           .in = {a}};
  expect(&r, (const double[]){0, 0.2, 4, 5}, 4, "limits");
  Run h = {
      .m = {.values = {IN(0, 4), OUT(1, 4), {.datatype = 2, SHAPE(4)}, {.datatype = 2, SHAPE(4)}},
            .nodes = {{CONVERT, {0, 2, 0}}, {ADD, {2, 2, 3, 0}}, {CONVERT, {3, 1, 0}}}},
      .in = {a}};
  expect(&h, (const double[]){-6, 0.199951171875, 4, 18}, 4, "halves");
}

/* To whole numbers, halves to the even one. */
static void conversion(void **state) {
  static const float a[] = {-2.5f, 1.5f, 0.5f, 3.7f};
  Run r = {.m = {.values = {IN(0, 4), OUT(1, 4), {.datatype = 12, SHAPE(4)}},
                 .nodes = {{CONVERT, {0, 2, 0}}, {CONVERT, {2, 1, 0}}}},
           .in = {a}};
  expect(&r, (const double[]){-2, 2, 0, 4}, 4, "conversion");
}

/* --- products --- */

static void product_nodes(void **state) {
  static const float x[] = {1, 2, 3, -1, 0, 2}, w[] = {1, 0, 2, -1, 1, 1},
                     t[] = {1, -1, 0, 1, 2, 1}, bias[] = {10, 20};
  Run r = {.m = {.values = {IN(0, 2, 3), OUT(1, 2, 2), CONSTANT(1, 2, 3), CONSTANT(2, 2)},
                 .nodes = {{PRODUCT, {0, 2, 3, 1, 0}}}},
           .in = {x},
           .constants = {NULL, w, bias}};
  expect(&r, (const double[]){17, 24, 13, 23}, 4, "FullyConnected");
  r.m.values[2] = (MadeValue)CONSTANT(1, 3, 2);
  r.m.nodes[0] = (MadeNode){PRODUCT, {0, 2, MADE_NONE, 1, 1}};
  r.constants[1] = t;
  expect(&r, (const double[]){7, 4, 3, 3}, 4, "FullyConnected, transposed");
  Run b = {.m = {.values = {IN(0, 2, 3), IN(1, 2, 3, 1), OUT(2, 2, 2, 1)},
                 .nodes = {{MATMUL, {0, 1, 2, 0}}}},
           .in = {x, w}};
  expect(&b, (const double[]){7, 3, 4, 3}, 4, "BatchMatrixMultiply");
  b.m.values[1] = (MadeValue)IN(1, 2, 1, 3);
  b.m.nodes[0] = (MadeNode){MATMUL, {0, 1, 2, 1}};
  expect(&b, (const double[]){7, 3, 4, 3}, 4, "BatchMatrixMultiply, transposed");
  static const float soft[] = {0, 0, 1, 1, 1, 1};
  Run s = {.m = {.values = {IN(0, 2, 3), OUT(1, 2, 3)}, .nodes = {{SOFTMAX, {0, 1, 0}}}},
           .in = {soft}};
  double e = exp(1) + 2;
  expect(&s, (const double[]){1 / e, 1 / e, exp(1) / e, 1.0 / 3, 1.0 / 3, 1.0 / 3}, 6, "Softmax");
}

/* --- moves --- */

static void move_nodes(void **state) {
  static const float x[] = {0, 1, 2, 3, 4, 5};
  Run r = {.m = {.values = {IN(0, 2, 3), OUT(1, 3, 2)}}, .in = {x}};
  r.m.nodes[0] = (MadeNode){TRANSPOSE, {2, VEC(0), 0, 1, 0}, .vectors = {{2, {1, 0}}}};
  expect(&r, (const double[]){0, 3, 1, 4, 2, 5}, 6, "StaticTranspose");
  r.m.nodes[0] = (MadeNode){RESHAPE, {2, VEC(0), 0, 1, 0}, .vectors = {{2, {0, 2}}}};
  expect(&r, (const double[]){0, 1, 2, 3, 4, 5}, 6, "StaticReshape");
  r.m.values[1] = (MadeValue)OUT(1, 2, 2);
  r.m.nodes[0] =
      (MadeNode){SLICE, {2, VEC(0), VEC(1), 0, 1, 0}, .vectors = {{2, {0, 1}}, {2, {0, 2}}}};
  expect(&r, (const double[]){1, 2, 4, 5}, 4, "StaticSlice");
  float number = 7;
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  r.m.values[1] = (MadeValue)OUT(1, 3, 4);
  r.m.nodes[0] =
      (MadeNode){PAD, {VEC(0), VEC(1), bits, 0, 1, 0}, .vectors = {{2, {1, 0}}, {2, {0, 1}}}};
  expect(&r, (const double[]){7, 7, 7, 7, 0, 1, 2, 7, 3, 4, 5, 7}, 12, "StaticConstantPad");
}

/* Joins of 2 to 5 operands, by turns x and y. */
static void join_nodes(void **state) {
  static const float x[] = {0, 1, 2, 3}, y[] = {8, 9};
  static const uint32_t tags[] = {0, 0, 32, 33, 34, 38}, widths[] = {0, 0, 3, 5, 6, 8};
  for (uint32_t count = 2; count <= 5; count++) {
    uint32_t used[5];
    double want[16];
    for (uint32_t i = 0; i < 5; i++)
      used[i] = i < count ? i % 2 : MADE_NONE;
    for (uint32_t row = 0, at = 0; row < 2; row++)
      for (uint32_t i = 0; i < count; i++) {
        if (i % 2) {
          want[at++] = (double)y[row];
          continue;
        }
        want[at++] = (double)x[row * 2];
        want[at++] = (double)x[row * 2 + 1];
      }
    Run r = {
        .m = {.values = {IN(0, 2, 2), IN(1, 2, 1), OUT(2, 2, widths[count])},
              .nodes = {{tags[count], {1, used[0], used[1], used[2], used[3], 2, 0, used[4]}}}},
        .in = {x, y}};
    expect(&r, want, 2 * widths[count], xr_name(tags[count]));
  }
}

/* --- windows --- */

static uint32_t next(uint64_t *state, uint32_t below) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 40) % below;
}

typedef struct Image {
  uint32_t height, width, channels;
  float data[MANY];
} Image;

static double pixel(const Image *x, int64_t row, int64_t column, uint32_t channel, double outside) {
  if (row < 0 || column < 0 || row >= x->height || column >= x->width)
    return outside;
  return (double)x->data[((uint64_t)row * x->width + (uint64_t)column) * x->channels + channel];
}

static void fill(float *data, uint32_t count, uint64_t *state) {
  for (uint32_t i = 0; i < count; i++)
    data[i] = (float)next(state, 2001) / 500 - 2;
}

typedef struct Window {
  uint32_t top, right, bottom, left, kernel[2], stride[2], dilation[2];
} Window;

static Window random_window(uint64_t *state) {
  Window w = {.top = next(state, 2),
              .right = next(state, 2),
              .bottom = next(state, 2),
              .left = next(state, 2)};
  for (uint32_t i = 0; i < 2; i++) {
    w.kernel[i] = 2 + next(state, 2);
    w.stride[i] = 1 + next(state, 2);
    w.dilation[i] = 1 + next(state, 2);
  }
  return w;
}

static uint32_t window_count(uint32_t size, uint32_t pads, const Window *w, uint32_t i) {
  return (size + pads - ((w->kernel[i] - 1) * w->dilation[i] + 1)) / w->stride[i] + 1;
}

static Image random_image(uint64_t *state, uint32_t channels) {
  Image x = {5 + next(state, 2), 5 + next(state, 3), channels, {0}};
  fill(x.data, x.height * x.width * channels, state);
  return x;
}

static void pool_nodes(void **state) {
  uint64_t seed = 5;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    bool largest = round % 2;
    Image x = random_image(&seed, 2);
    Window w = random_window(&seed);
    if (!largest)
      w.dilation[0] = w.dilation[1] = 1;
    uint32_t h = window_count(x.height, w.top + w.bottom, &w, 0),
             v = window_count(x.width, w.left + w.right, &w, 1), at = 0;
    double want[MANY];
    for (uint32_t i = 0; i < h * v * 2; i++, at++) {
      double sum = 0, most = -INFINITY, count = 0;
      for (uint32_t k = 0; k < w.kernel[0] * w.kernel[1]; k++) {
        int64_t row = (int64_t)(i / 2 / v * w.stride[0] + k / w.kernel[1] * w.dilation[0]) - w.top,
                column =
                    (int64_t)(i / 2 % v * w.stride[1] + k % w.kernel[1] * w.dilation[1]) - w.left;
        double p = pixel(&x, row, column, i % 2, NAN);
        if (isnan(p))
          continue;
        sum += p;
        count++;
        most = fmax(most, p);
      }
      want[at] = largest ? most : sum / count;
    }
    Run r = {.m = {.values = {IN(0, 1, x.height, x.width, 2), OUT(1, 1, h, v, 2)},
                   .nodes = {{largest ? MAXPOOL : AVERAGE,
                              {w.top, w.right, w.bottom, w.left, w.kernel[0], w.kernel[1],
                               w.stride[0], w.stride[1], w.dilation[0], w.dilation[1], 0, 1, 0}}}},
             .in = {x.data}};
    expect(&r, want, at, largest ? "MaxPooling2d" : "AvgPooling2d");
  }
}

typedef struct Positions {
  const float *x;
  uint32_t height, width, channels, kernel[2];
  uint32_t above; /* rows of padding */
  uint32_t rows;  /* of the result, which has one column */
} Positions;

/* Position and maximum, added. */
static void expect_positions(const Positions *p, const double *want) {
  uint32_t h = p->rows, c = p->channels;
  Run r = {.m = {.values = {IN(0, 1, p->height, p->width, c),
                            TEMP(1, h, 1, c),
                            {.datatype = 12, SHAPE(1, h, 1, c)},
                            TEMP(1, h, 1, c),
                            OUT(1, 1, h, 1, c)},
                 .nodes = {{POSITION, {p->above, 0, 0, 0, p->kernel[0], p->kernel[1], 0, 1, 2, 0}},
                           {18, {2, 3, 0}},
                           {ADD, {3, 1, 4, 0}}}},
           .in = {p->x}};
  expect(&r, want, h * c, "ArgMaxPooling2d");
}

/* Of equal ones the first; padding is none. */
static void position_nodes(void **state) {
  static const float x[] = {1, -1, 5, -2, 5, -3, 2, -4, 0, -5, 3, 7}, line[] = {4, 1, 9};
  expect_positions(&(Positions){x, 3, 2, 2, {3, 2}, 0, 1}, (const double[]){1 + 5, 5 + 7});
  expect_positions(&(Positions){line, 3, 1, 1, {2, 1}, 1, 2}, (const double[]){1 + 4, 1 + 9});
}

/* Maxima pass over NaN, and a slope is for what is below zero alone. */
static void special_values(void **state) {
  static const float square[] = {NAN, 1, -2, NAN}, line[] = {1, NAN, 2}, x[] = {2, -1},
                     slopes[] = {INFINITY, 0.5f};
  Run largest = {.m = {.values = {IN(0, 1, 2, 2, 1), OUT(1, 1, 1, 1, 1)},
                       .nodes = {{MAXPOOL, {0, 0, 0, 0, 2, 2, 2, 2, 1, 1, 0, 1, 0}}}},
                 .in = {square}};
  expect(&largest, (const double[]){1}, 1, "MaxPooling2d");
  expect_positions(&(Positions){line, 3, 1, 1, {3, 1}, 0, 1}, (const double[]){2 + 2});
  Run slope = {
      .m = {.values = {IN(0, 1, 2), IN(1, 1, 2), OUT(2, 1, 2)}, .nodes = {{31, {0, 1, 2, 0}}}},
      .in = {x, slopes}};
  expect(&slope, (const double[]){2, -0.5}, 2, "PReLU");
}

static void mean_and_resize_nodes(void **state) {
  static const float x[] = {1, 10, 2, 20, 3, 30, 6, 60}, line[] = {0, 1};
  Run m = {.m = {.values = {IN(0, 1, 2, 2, 2), OUT(1, 1, 2)}, .nodes = {{GLOBAL, {0, 1, 0}}}},
           .in = {x}};
  expect(&m, (const double[]){3, 30}, 2, "GlobalAvgPooling2d");
  static const struct {
    uint32_t flags;
    double want[4];
  } modes[] = {{0, {0, 0.25, 0.75, 1}}, {8, {0, 1.0 / 3, 2.0 / 3, 1}}, {4, {0, 0.5, 1, 1}}};
  for (size_t i = 0; i < COUNT_OF(modes); i++) {
    Run r = {.m = {.values = {IN(0, 1, 1, 2, 1), OUT(1, 1, 1, 4, 1)},
                   .nodes = {{RESIZE, {1, 4, 0, 1, modes[i].flags}}}},
             .in = {line}};
    expect(&r, modes[i].want, 4, "StaticResizeBilinear2D");
    Run down = {.m = {.values = {IN(0, 1, 2, 1, 1), OUT(1, 1, 4, 1, 1)},
                      .nodes = {{RESIZE, {4, 1, 0, 1, modes[i].flags}}}},
                .in = {line}};
    expect(&down, modes[i].want, 4, "StaticResizeBilinear2D");
  }
}

/* What element o of the result of a convolution is; filter [out][kh][kw][in of a group]. */
static double convolved(const Image *x, const Window *w, const float *filter, uint32_t in,
                        uint32_t out, int64_t row, int64_t column, uint32_t channel) {
  double sum = 0;
  for (uint32_t k = 0; k < w->kernel[0] * w->kernel[1] * in; k++) {
    uint32_t c = k % in, kx = k / in % w->kernel[1], ky = k / in / w->kernel[1];
    sum += pixel(x, row * w->stride[0] + (int64_t)(ky * w->dilation[0]) - w->top,
                 column * w->stride[1] + (int64_t)(kx * w->dilation[1]) - w->left,
                 channel / out * in + c, 0) *
           (double)filter[channel * w->kernel[0] * w->kernel[1] * in + k];
  }
  return sum;
}

/* The same for a transposed one: what each element of x adds to the result. */
static double spread(const Image *x, const Window *w, const float *filter, uint32_t in,
                     uint32_t out, int64_t row, int64_t column, uint32_t channel) {
  double sum = 0;
  for (uint32_t k = 0; k < w->kernel[0] * w->kernel[1] * in; k++) {
    uint32_t c = k % in, kx = k / in % w->kernel[1], ky = k / in / w->kernel[1];
    int64_t y = row + w->top - (int64_t)(ky * w->dilation[0]),
            z = column + w->left - (int64_t)(kx * w->dilation[1]);
    if (y < 0 || z < 0 || y % w->stride[0] || z % w->stride[1])
      continue;
    sum += pixel(x, y / w->stride[0], z / w->stride[1], channel / out * in + c, 0) *
           (double)filter[channel * w->kernel[0] * w->kernel[1] * in + k];
  }
  return sum;
}

/* The layout of depthwise filters: channels last. */
static void turn_filter(const float *from, uint32_t area, uint32_t channels, float *to) {
  for (uint32_t c = 0; c < channels; c++)
    for (uint32_t k = 0; k < area; k++)
      to[k * channels + c] = from[c * area + k];
}

static void convolution_nodes(void **state) {
  static const uint32_t tags[] = {CONV, DEPTHWISE, DECONV};
  uint64_t seed = 9;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    uint32_t tag = tags[round % 3], groups = 1 + next(&seed, 2), in = 1 + next(&seed, 2),
             out = 1 + next(&seed, 2);
    if (tag == DEPTHWISE)
      in = 1;
    Window w = random_window(&seed);
    Image x = random_image(&seed, groups * in);
    bool same = tag != DECONV && next(&seed, 4) == 0;
    uint32_t sizes[2] = {x.height, x.width}, result[2], adjust[2] = {0, 0};
    if (same)
      w.top = w.right = w.bottom = w.left = 0;
    Window used = w;
    for (uint32_t i = 0; i < 2; i++) {
      uint32_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1,
               pads = i ? w.left + w.right : w.top + w.bottom;
      adjust[i] = tag == DECONV ? next(&seed, w.stride[i]) : 0;
      result[i] = tag == DECONV ? (sizes[i] - 1) * w.stride[i] + reach + adjust[i] - pads
                  : same        ? (sizes[i] + w.stride[i] - 1) / w.stride[i]
                                : window_count(sizes[i], pads, &w, i);
      uint32_t covered = (result[i] - 1) * w.stride[i] + reach;
      if (same && covered > sizes[i])
        *(i ? &used.left : &used.top) = (covered - sizes[i]) / 2;
    }
    float filter[MANY], turned[MANY], bias[8];
    uint32_t area = w.kernel[0] * w.kernel[1], channels = groups * out;
    fill(filter, channels * area * in, &seed);
    fill(bias, channels, &seed);
    turn_filter(filter, area, channels, turned);
    static double want[2048];
    uint32_t at = 0;
    for (; at < result[0] * result[1] * channels && at < MANY; at++)
      want[at] = (double)bias[at % channels] +
                 (tag == DECONV ? spread : convolved)(&x, &used, filter, in, out,
                                                      at / channels / result[1],
                                                      at / channels % result[1], at % channels);
    if (result[0] * result[1] * channels > MANY)
      continue;
    Run r = {.m = {.values = {IN(0, 1, x.height, x.width, x.channels),
                              OUT(1, 1, result[0], result[1], channels),
                              CONSTANT(1, channels, w.kernel[0], w.kernel[1], in),
                              CONSTANT(2, channels)},
                   .nodes = {{tag,
                              {w.top,
                               w.right,
                               w.bottom,
                               w.left,
                               w.kernel[0],
                               w.kernel[1],
                               w.stride[0],
                               w.stride[1],
                               w.dilation[0],
                               w.dilation[1],
                               in,
                               out,
                               groups,
                               adjust[0],
                               adjust[1],
                               0,
                               2,
                               3,
                               1,
                               same ? 4 : 0}}}},
             .in = {x.data},
             .constants = {NULL, tag == DEPTHWISE ? turned : filter, bias}};
    if (tag == DEPTHWISE)
      r.m.values[2] = (MadeValue)CONSTANT(1, 1, w.kernel[0], w.kernel[1], channels);
    expect(&r, want, at, xr_name(tag));
  }
}

/* --- the whole --- */

/* One code for several sizes; more memory than there is is an error. */
static void sizes_and_memory(void **state) {
  Made m = {.values = {IN(0, 4, 3), OUT(1, 4, 3)}, .nodes = {{SIGMOID, {0, 1, 0}}}};
  float x[6] = {0}, y[12];
  Arena arena = {0};
  DelegateCall call = made_call(&m, &arena, NULL);
  Tensor *in = (Tensor *)(uintptr_t)&call.inputs[0];
  in->dims[0] = 2;
  in->data = x;
  call.outputs[0].data = y;
  call.outputs[0].capacity = sizeof y;
  call.fixed = false;
  assert_null(reader_xnnpack.run(&call, &arena));
  assert_int_equal(call.outputs[0].dims[0], 2);
  assert_true(y[5] == 0.5f);
  call.outputs[0].dims[0] = 1;
  assert_contains(reader_xnnpack.run(&call, &arena), "larger than its bound");
  call.outputs[0].dims[0] = 4;
  call.memory = 16;
  assert_contains(reader_xnnpack.run(&call, &arena), "more memory than there is");
  arena_release(&arena);
}

/* Last: whatever the backend can write was run above. */
static void all_kinds_were_run(void **state) {
#define XNN_NODE(name, tag, fields)                                                                \
  if (!seen[tag])                                                                                  \
    fail_msg("nodes.def writes %s, and nothing here runs it", #name);
#include "backends/xnnpack/nodes.def"
#undef XNN_NODE
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(unary_nodes),       cmocka_unit_test(binary_nodes),
      cmocka_unit_test(limits_and_halves), cmocka_unit_test(conversion),
      cmocka_unit_test(product_nodes),     cmocka_unit_test(move_nodes),
      cmocka_unit_test(join_nodes),        cmocka_unit_test(pool_nodes),
      cmocka_unit_test(position_nodes),    cmocka_unit_test(mean_and_resize_nodes),
      cmocka_unit_test(convolution_nodes), cmocka_unit_test(sizes_and_memory),
      cmocka_unit_test(special_values),    cmocka_unit_test(all_kinds_were_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
