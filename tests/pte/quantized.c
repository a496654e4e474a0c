/* Writes programs that are one XNNPACK delegate with quantized values each, of random shapes and
 * parameters, for run_quantized.py. Usage: pte_quantized FOLDER SEED ROUNDS
 *
 * For each program a line is printed: its name, how far results may be from the runtime's (steps of
 * a quantized result, parts per million of a float one), and its inputs as dtype:dim,dim. */
#include <stdio.h>
#include <stdlib.h>

#include "quantized_draw.h"

#include "backends/backend.h"
#include "pte/emit.h"
#include "support/number.h"

/* --- cases --- */

static void convert_from_floats(Draw *d) {
  uint32_t dims[XNN_MAX_RANK], rank = some_dims(d, dims);
  XnnId x = as_input(d, xnn_value(&d->x, XNN_FP32, rank, dims)),
        y = as_output(d, activation(d, rank, dims, 0.02f));
  XNN_ADD_NODE(&d->x, XNN_CONVERT, x, y, 0);
}

static void convert_to_floats(Draw *d) {
  uint32_t dims[XNN_MAX_RANK], rank = some_dims(d, dims);
  XnnId x = as_input(d, activation(d, rank, dims, 0.02f)),
        y = as_output(d, xnn_value(&d->x, XNN_FP32, rank, dims));
  XNN_ADD_NODE(&d->x, XNN_CONVERT, x, y, 0);
}

static void convert_bytes(Draw *d) {
  static const float ratios[] = {0.001f, 0.01f, 0.5f, 1, 3, 40, 83};
  uint32_t dims[XNN_MAX_RANK], rank = some_dims(d, dims);
  float scale = ratios[upto(d, COUNT_OF(ratios) - 1)];
  XnnId x = as_input(d, activation(d, rank, dims, scale));
  if (upto(d, 3) == 0)
    d->is_signed = !d->is_signed;
  XnnId y = as_output(d, with_scale(d, bytes(d), rank, dims, 1, zero_near(d)));
  XNN_ADD_NODE(&d->x, XNN_CONVERT, x, y, 0);
}

/* Half floats and integers, either way. */
static void convert_others(Draw *d) {
  uint32_t dims[XNN_MAX_RANK], rank = some_dims(d, dims);
  XnnDatatype other = upto(d, 1) ? XNN_FP16 : XNN_INT32;
  bool from = upto(d, 1);
  XnnId x, y;
  if (from) {
    x = as_input(d, xnn_value(&d->x, other, rank, dims));
    y = as_output(d, activation(d, rank, dims, other == XNN_FP16 ? 0.02f : 0.3f));
  } else {
    x = as_input(d, activation(d, rank, dims, 0.3f));
    y = as_output(d, xnn_value(&d->x, other, rank, dims));
  }
  if (other == XNN_FP16) /* scales are rounded to half floats */
    d->off = from ? 1 : 1000;
  XNN_ADD_NODE(&d->x, XNN_CONVERT, x, y, 0);
}

static void convert_halves(Draw *d) { /* exact halves */
  uint32_t dims[] = {256};
  XnnId x = as_input(d, with_scale(d, bytes(d), 1, dims, 0.5f, zero_near(d))),
        y = as_output(d, with_scale(d, bytes(d), 1, dims, 1, zero_near(d)));
  XNN_ADD_NODE(&d->x, XNN_CONVERT, x, y, 0);
}

static void unary(Draw *d) {
  static const XnnNodeKind kinds[] = {XNN_SIGMOID,
                                      XNN_TANH,
                                      XNN_GELU,
                                      XNN_HARDSWISH,
                                      XNN_EXP,
                                      XNN_LOG,
                                      XNN_SIN,
                                      XNN_COS,
                                      XNN_ABS,
                                      XNN_NEGATE,
                                      XNN_SQUARE,
                                      XNN_SQUARE_ROOT,
                                      XNN_RECIPROCAL_SQUARE_ROOT,
                                      XNN_FLOOR,
                                      XNN_CEILING};
  uint32_t dims[] = {2, 128};
  XnnId x = as_input(d, activation(d, 2, dims, 0.03f)),
        y = as_output(d, activation(d, 2, dims, 0.02f));
  XNN_ADD_NODE(&d->x, kinds[upto(d, COUNT_OF(kinds) - 1)], x, y, 0);
}

static void elu(Draw *d) {
  uint32_t dims[] = {256};
  XnnId x = as_input(d, activation(d, 1, dims, 0.03f)),
        y = as_output(d, activation(d, 1, dims, 0.02f));
  XNN_ADD_NODE(&d->x, XNN_ELU, float_bits(scale_near(d, 1)), x, y, 0);
}

static void leaky_relu(Draw *d) {
  uint32_t dims[] = {256};
  XnnId x = as_input(d, activation(d, 1, dims, 0.03f)),
        y = as_output(d, activation(d, 1, dims, 0.02f));
  XNN_ADD_NODE(&d->x, XNN_LEAKY_RELU, float_bits((float)upto(d, 200) / 100 - 0.7f), x, y, 0);
}

static void clamp(Draw *d) {
  uint32_t dims[] = {256};
  XnnId x = as_input(d, activation(d, 1, dims, 0.03f)),
        y = as_output(d, xnn_value(&d->x, bytes(d), 1, dims));
  const XnnValue *from = &d->x.values[x];
  bool same = upto(d, 1);
  xnn_set_scale(&d->x, y, same ? from->scale : 0.025f, same ? from->zero_point : zero_near(d));
  XnnNode *node = XNN_ADD_NODE(&d->x, XNN_CLAMP, x, y, 0);
  limit_some(d, node);
  node->limited = true;
  node->limit_high = node->limit_high > 0 ? node->limit_high : 1.2f;
}

static void binary(Draw *d) {
  static const XnnNodeKind kinds[] = {XNN_ADD,     XNN_SUBTRACT, XNN_MULTIPLY, XNN_MINIMUM,
                                      XNN_MAXIMUM, XNN_DIV,      XNN_PRELU};
  static const float scales[] = {0.0001f, 0.01f, 0.02f, 0.02f, 0.3f, 1};
  uint32_t a[XNN_MAX_RANK], b[XNN_MAX_RANK], y[XNN_MAX_RANK], rank = some_dims(d, a);
  XnnNodeKind kind = kinds[upto(d, COUNT_OF(kinds) - 1)];
  for (uint32_t i = 0; i < rank; i++) {
    y[i] = b[i] = a[i];
    if (upto(d, 2) == 0)
      b[i] = 1;
    else if (upto(d, 2) == 0 && kind != XNN_PRELU)
      a[i] = 1;
  }
  d->off = kind == XNN_MINIMUM || kind == XNN_MAXIMUM || kind == XNN_PRELU;
  uint32_t least = kind == XNN_MULTIPLY; /* products must not be all zero */
  float first = scales[from_to(d, least, 5)], second = scales[from_to(d, least, 5)];
  XnnId left = as_input(d, activation(d, rank, a, first)),
        right = as_input(d, activation(d, rank, b, second)),
        out = as_output(d, activation(d, rank, y, 0.02f));
  XnnNode *node = XNN_ADD_NODE(&d->x, kind, left, right, out, 0);
  if (kind != XNN_MINIMUM && kind != XNN_MAXIMUM && kind != XNN_PRELU)
    limit_some(d, node);
}

static void sum_of_halves(Draw *d) {
  uint32_t dims[] = {300};
  XnnId left = as_input(d, with_scale(d, bytes(d), 1, dims, 0.5f, zero_near(d))),
        right = as_input(d, with_scale(d, bytes(d), 1, dims, 0.5f, zero_near(d))),
        out = as_output(d, with_scale(d, bytes(d), 1, dims, 1, zero_near(d)));
  XNN_ADD_NODE(&d->x, upto(d, 1) ? XNN_ADD : XNN_MULTIPLY, left, right, out, 0);
}

/* Weights of products and convolutions. */
static XnnDatatype filter_type(Draw *d) {
  return d->is_signed ? (upto(d, 1) ? XNN_QCINT8 : XNN_QINT8) : XNN_QUINT8;
}

static void fully_connected(Draw *d) {
  uint32_t in = 2 * from_to(d, 1, 40), rows = from_to(d, 1, 5), outputs = from_to(d, 1, 35);
  XnnDatatype type = filter_type(d);
  uint32_t turned = 0, x_dims[] = {rows, in}, y_dims[] = {rows, outputs};
  if (type == XNN_QCINT8 && upto(d, 2) == 0)
    type = XNN_QCINT4;
  else
    turned = upto(d, 1);
  uint32_t w_dims[] = {turned ? in : outputs, turned ? outputs : in};
  XnnId x = as_input(d, activation(d, 2, x_dims, 0.02f)), w = filter(d, type, 2, w_dims, turned),
        b = bias(d, type, XNN_QINT8, outputs), y = as_output(d, activation(d, 2, y_dims, 0.1f));
  XnnNode *node =
      XNN_ADD_NODE(&d->x, XNN_FULLY_CONNECTED, x, w, b, y, turned ? XNN_FLAG_TRANSPOSE_WEIGHTS : 0);
  limit_some(d, node);
}

static void weight_only(Draw *d) {
  uint32_t in = from_to(d, 1, 60), rows = from_to(d, 1, 5), outputs = from_to(d, 1, 35),
           x_dims[] = {rows, in}, y_dims[] = {rows, outputs}, w_dims[] = {outputs, in};
  XnnDatatype type = upto(d, 1) ? XNN_QCINT8 : XNN_QCINT4;
  XnnId x = as_input(d, xnn_value(&d->x, XNN_FP32, 2, x_dims)), w = filter(d, type, 2, w_dims, 0),
        b = bias(d, type, XNN_FP32, outputs),
        y = as_output(d, xnn_value(&d->x, XNN_FP32, 2, y_dims));
  limit_some(d, XNN_ADD_NODE(&d->x, XNN_FULLY_CONNECTED, x, w, b, y, 0));
}

static void dynamic_product(Draw *d) {
  static const XnnDatatype types[] = {XNN_QCINT8, XNN_QCINT4, XNN_QBINT4};
  XnnDatatype type = types[upto(d, 2)];
  uint32_t in = type == XNN_QBINT4 ? 32 * from_to(d, 1, 4) : 2 * from_to(d, 1, 40),
           rows = from_to(d, 1, 5), outputs = from_to(d, 1, 35), x_dims[] = {rows, in},
           y_dims[] = {rows, outputs}, w_dims[] = {outputs, in};
  XnnId x = as_input(d, xnn_value(&d->x, XNN_FP32, 2, x_dims)),
        q = xnn_dynamic(&d->x, 2, x_dims, 1), w = filter(d, type, 2, w_dims, 0),
        b = bias(d, type, XNN_QDINT8, outputs),
        y = as_output(d, xnn_value(&d->x, XNN_FP32, 2, y_dims));
  XNN_ADD_NODE(&d->x, XNN_CONVERT, x, q, 0);
  limit_some(d, XNN_ADD_NODE(&d->x, XNN_FULLY_CONNECTED, q, w, b, y, 0));
}

/* The size of the result of a window: h for each of 2 dims. */
typedef struct Windows {
  uint32_t kernel[2], stride[2], dilation[2], before[2], after[2], in[2], out[2], adjust[2];
} Windows;

static Windows windows(Draw *d, bool transposed, bool pool) {
  Windows w;
  for (uint32_t i = 0; i < 2; i++) {
    w.kernel[i] = from_to(d, pool ? 2 : 1, 3);
    w.stride[i] = from_to(d, 1, 3);
    w.dilation[i] = pool ? 1 : from_to(d, 1, 2);
    w.before[i] = upto(d, w.kernel[i] - 1);
    w.after[i] = upto(d, w.kernel[i] - 1);
    w.in[i] = from_to(d, 5, 9);
    w.adjust[i] = transposed && w.stride[i] > 1 ? upto(d, 1) : 0;
    uint32_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1, pad = w.before[i] + w.after[i];
    w.out[i] = transposed ? (w.in[i] - 1) * w.stride[i] + reach + w.adjust[i] - pad
                          : (w.in[i] + pad - reach) / w.stride[i] + 1;
  }
  return w;
}

static XnnNode *convolve(Draw *d, XnnNodeKind kind, const Windows *w, uint32_t groups, uint32_t in,
                         uint32_t out, XnnId x, XnnId f, XnnId b, XnnId y) {
  return XNN_ADD_NODE(&d->x, kind, w->before[0], w->after[1], w->after[0], w->before[1],
                      w->kernel[0], w->kernel[1], w->stride[0], w->stride[1], w->dilation[0],
                      w->dilation[1], in, out, groups, w->adjust[0], w->adjust[1], x, f, b, y, 0);
}

static void convolution(Draw *d) {
  uint32_t groups = from_to(d, 1, 2), in = from_to(d, 1, 9), out = from_to(d, 1, 18),
           kind = upto(d, 1), batch = from_to(d, 1, 2);
  Windows w = windows(d, kind, false);
  XnnDatatype type = filter_type(d);
  uint32_t x_dims[] = {batch, w.in[0], w.in[1], groups * in},
           y_dims[] = {batch, w.out[0], w.out[1], groups * out},
           w_dims[] = {groups * out, w.kernel[0], w.kernel[1], in};
  XnnId x = as_input(d, activation(d, 4, x_dims, 0.02f)), f = filter(d, type, 4, w_dims, 0),
        b = bias(d, type, XNN_QINT8, groups * out),
        y = as_output(d, activation(d, 4, y_dims, 0.1f));
  limit_some(
      d, convolve(d, kind ? XNN_CONV_TRANSPOSE2D : XNN_CONV2D, &w, groups, in, out, x, f, b, y));
}

static void depthwise(Draw *d) {
  uint32_t in = from_to(d, 1, 20), times = from_to(d, 1, 2);
  Windows w = windows(d, false, false);
  XnnDatatype type = filter_type(d);
  uint32_t x_dims[] = {1, w.in[0], w.in[1], in}, y_dims[] = {1, w.out[0], w.out[1], in * times},
           w_dims[] = {1, w.kernel[0], w.kernel[1], in * times};
  XnnId x = as_input(d, activation(d, 4, x_dims, 0.02f)), f = filter(d, type, 4, w_dims, 3),
        b = bias(d, type, XNN_QINT8, in * times), y = as_output(d, activation(d, 4, y_dims, 0.05f));
  limit_some(d, convolve(d, XNN_DEPTHWISE_CONV2D, &w, in, 1, times, x, f, b, y));
}

static void dynamic_convolution(Draw *d) {
  uint32_t in = from_to(d, 1, 9), out = from_to(d, 1, 18), kind = upto(d, 1),
           batch = from_to(d, 1, 3);
  Windows w = windows(d, kind, false);
  for (uint32_t i = 0; i < 2 && upto(d, 2) == 0; i++) { /* pixels on their own */
    w.kernel[i] = w.stride[i] = 1;
    w.before[i] = w.after[i] = w.adjust[i] = 0;
    w.out[i] = w.in[i];
  }
  uint32_t x_dims[] = {batch, w.in[0], w.in[1], in}, y_dims[] = {batch, w.out[0], w.out[1], out},
           w_dims[] = {out, w.kernel[0], w.kernel[1], in};
  XnnId x = as_input(d, xnn_value(&d->x, XNN_FP32, 4, x_dims)),
        q = xnn_dynamic(&d->x, 4, x_dims, 3), f = filter(d, XNN_QCINT8, 4, w_dims, 0),
        b = bias(d, XNN_QCINT8, XNN_QDINT8, out),
        y = as_output(d, xnn_value(&d->x, XNN_FP32, 4, y_dims));
  XNN_ADD_NODE(&d->x, XNN_CONVERT, x, q, 0);
  limit_some(d, convolve(d, kind ? XNN_CONV_TRANSPOSE2D : XNN_CONV2D, &w, 1, in, out, q, f, b, y));
}

static XnnId like(Draw *d, XnnId x, uint32_t rank, const uint32_t *dims) {
  const XnnValue v = d->x.values[x];
  return with_scale(d, (XnnDatatype)v.datatype, rank, dims, v.scale, v.zero_point);
}

static void max_pool(Draw *d) {
  Windows w = windows(d, false, true);
  uint32_t x_dims[] = {2, w.in[0], w.in[1], 5}, y_dims[] = {2, w.out[0], w.out[1], 5};
  XnnId x = as_input(d, activation(d, 4, x_dims, 0.02f)), y = as_output(d, like(d, x, 4, y_dims));
  limit_some(d, XNN_ADD_NODE(&d->x, XNN_MAX_POOLING2D, w.before[0], w.after[1], w.after[0],
                             w.before[1], w.kernel[0], w.kernel[1], w.stride[0], w.stride[1], 1, 1,
                             x, y, 0));
}

static void global_pool(Draw *d) {
  uint32_t x_dims[] = {2, from_to(d, 1, 9), from_to(d, 1, 9), from_to(d, 1, 30)},
           y_dims[] = {2, 1, 1, x_dims[3]};
  XnnId x = as_input(d, activation(d, 4, x_dims, 0.02f)),
        y = as_output(d, activation(d, 4, y_dims, 0.015f));
  limit_some(d, XNN_ADD_NODE(&d->x, XNN_GLOBAL_AVG_POOLING2D, x, y, XNN_FLAG_KEEP_DIMS));
}

static void resize(Draw *d) {
  uint32_t x_dims[] = {2, from_to(d, 1, 7), from_to(d, 1, 7), from_to(d, 1, 9)},
           y_dims[] = {2, from_to(d, 1, 13), from_to(d, 1, 13), x_dims[3]};
  XnnId x = as_input(d, activation(d, 4, x_dims, 0.02f)), y = as_output(d, like(d, x, 4, y_dims));
  XNN_ADD_NODE(&d->x, XNN_STATIC_RESIZE_BILINEAR2D, y_dims[1], y_dims[2], x, y,
               upto(d, 1) ? XNN_FLAG_ALIGN_CORNERS : 0);
}

static void pad(Draw *d) {
  uint32_t x_dims[] = {3, 4}, before[] = {1, 0}, after[] = {2, 3}, y_dims[] = {6, 7};
  XnnId x = as_input(d, activation(d, 2, x_dims, 0.02f)), y = as_output(d, like(d, x, 2, y_dims));
  uint32_t first = xnn_vector(&d->x, before, 2), last = xnn_vector(&d->x, after, 2);
  XNN_ADD_NODE(&d->x, XNN_STATIC_CONSTANT_PAD, first, last, float_bits(scale_near(d, 1) - 1), x, y,
               0)
      ->vector_count = 2;
}

static void moves(Draw *d) {
  uint32_t x_dims[] = {3, 4}, turned[] = {4, 3}, perm[] = {1, 0}, joined[] = {8, 3}, flat[] = {24},
           half[] = {10}, at[] = {5}, size[] = {10};
  XnnId x = as_input(d, activation(d, 2, x_dims, 0.02f)), t = like(d, x, 2, turned),
        j = like(d, x, 2, joined), f = like(d, x, 1, flat), y = as_output(d, like(d, x, 1, half));
  XNN_ADD_NODE(&d->x, XNN_STATIC_TRANSPOSE, 2, xnn_vector(&d->x, perm, 2), x, t, 0)->vector_count =
      2;
  XNN_ADD_NODE(&d->x, XNN_CONCATENATE2, 0, t, t, XNN_NONE, XNN_NONE, j, 0, XNN_NONE);
  XNN_ADD_NODE(&d->x, XNN_STATIC_RESHAPE, 1, xnn_vector(&d->x, flat, 1), j, f, 0)->vector_count = 1;
  uint32_t first = xnn_vector(&d->x, at, 1), count = xnn_vector(&d->x, size, 1);
  XNN_ADD_NODE(&d->x, XNN_STATIC_SLICE, 1, first, count, f, y, 0)->vector_count = 1;
}

/* XNNPACK makes one table of these nodes. */
static void chain(Draw *d) {
  static const XnnNodeKind kinds[] = {XNN_TANH, XNN_GELU, XNN_SIGMOID, XNN_HARDSWISH, XNN_EXP};
  uint32_t dims[] = {256}, one[] = {1};
  XnnId x = as_input(d, activation(d, 1, dims, 0.03f)), real = xnn_value(&d->x, XNN_FP32, 1, dims),
        bent = xnn_value(&d->x, XNN_FP32, 1, dims), times = xnn_value(&d->x, XNN_FP32, 1, dims),
        c = xnn_constant(&d->x, XNN_FP32, 1, one, random_floats(d, 1, 1, true)),
        y = as_output(d, activation(d, 1, dims, 0.02f));
  XNN_ADD_NODE(&d->x, XNN_CONVERT, x, real, 0);
  XNN_ADD_NODE(&d->x, kinds[upto(d, COUNT_OF(kinds) - 1)], real, bent, 0);
  XNN_ADD_NODE(&d->x, XNN_MULTIPLY, bent, c, times, 0);
  XNN_ADD_NODE(&d->x, XNN_CONVERT, times, y, 0);
}

/* Layers that hand on bytes, and a dense one that is quantized by weights alone. */
static void layers(Draw *d) {
  Windows w = windows(d, false, false);
  uint32_t x_dims[] = {1, w.in[0], w.in[1], 4}, y_dims[] = {1, w.out[0], w.out[1], 6},
           f_dims[] = {6, w.kernel[0], w.kernel[1], 4}, pooled[] = {1, 1, 1, 6},
           out[] = {1, 1, 1, 3}, dense[] = {3, 6};
  d->is_signed = true;
  XnnId x = as_input(d, xnn_value(&d->x, XNN_FP32, 4, x_dims)), q = activation(d, 4, x_dims, 0.02f),
        f = filter(d, XNN_QCINT8, 4, f_dims, 0), b = bias(d, XNN_QCINT8, XNN_QINT8, 6),
        h = activation(d, 4, y_dims, 0.1f), p = activation(d, 4, pooled, 0.05f),
        v = xnn_value(&d->x, XNN_FP32, 4, pooled), g = filter(d, XNN_QCINT8, 2, dense, 0),
        y = as_output(d, xnn_value(&d->x, XNN_FP32, 4, out));
  XNN_ADD_NODE(&d->x, XNN_CONVERT, x, q, 0);
  limit_some(d, convolve(d, XNN_CONV2D, &w, 1, 4, 6, q, f, b, h));
  XNN_ADD_NODE(&d->x, XNN_GLOBAL_AVG_POOLING2D, h, p, XNN_FLAG_KEEP_DIMS);
  XNN_ADD_NODE(&d->x, XNN_CONVERT, p, v, 0);
  XNN_ADD_NODE(&d->x, XNN_FULLY_CONNECTED, v, g, XNN_NONE, y, 0);
}

static void matmul(Draw *d) {
  uint32_t a[] = {2, from_to(d, 1, 5), from_to(d, 1, 40)}, turned = upto(d, 1),
           n = from_to(d, 1, 9), b[] = {2, turned ? n : a[2], turned ? a[2] : n},
           y[] = {2, a[1], n};
  d->is_signed = true;
  XnnId left = as_input(d, activation(d, 3, a, 0.02f)),
        right = as_input(d, with_scale(d, XNN_QINT8, 3, b, scale_near(d, 0.01f), 0)),
        out = as_output(d, activation(d, 3, y, 0.05f));
  XNN_ADD_NODE(&d->x, XNN_BATCH_MATRIX_MULTIPLY, left, right, out,
               turned ? XNN_FLAG_TRANSPOSE_B : 0);
}

static const struct {
  const char *name;
  void (*make)(Draw *d);
  uint32_t off;
} cases[] = {
    {"convert_from_floats", convert_from_floats, 0},
    {"convert_to_floats", convert_to_floats, 0},
    {"convert_bytes", convert_bytes, 0},
    {"convert_others", convert_others, 0},
    {"convert_halves", convert_halves, 0},
    {"unary", unary, 0},
    {"elu", elu, 0},
    {"leaky_relu", leaky_relu, 0},
    {"clamp", clamp, 0},
    {"binary", binary, 0},
    {"sum_of_halves", sum_of_halves, 0},
    {"fully_connected", fully_connected, 0},
    {"weight_only", weight_only, 20},
    {"dynamic_product", dynamic_product, 20},
    {"convolution", convolution, 0},
    {"depthwise", depthwise, 0},
    {"dynamic_convolution", dynamic_convolution, 20},
    {"max_pool", max_pool, 0},
    {"global_pool", global_pool, 0},
    {"resize", resize, 0},
    {"pad", pad, 0},
    {"moves", moves, 0},
    {"chain", chain, 0},
    {"layers", layers, 20},
    {"matmul", matmul, 0},
};

/* --- programs --- */

static void call_delegate(Draw *d) {
  Graph *g = d->m.g;
  const XnnValue *out = &d->x.values[d->out];
  uint32_t count = d->x.data_count;
  const char **keys = ARENA_ARRAY(&g->arena, const char *, (size_t)count + 1), *names = "";
  ValueId *data = ARENA_ARRAY(&g->arena, ValueId, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++) {
    keys[i] = arena_printf(&g->arena, "k%u", i);
    names = arena_printf(&g->arena, "%s%s%s", names, i ? " " : "", keys[i]);
    data[i] = d->x.data[i].v;
  }
  xnn_make_external(&d->x, d->out, false);
  XnnBlob blob = xnn_blob(&d->x, g, keys, NULL, 0, &g->arena);
  const SymInt size[] = {(SymInt)blob.size};
  ValueId code = constant(&d->m, DTYPE_U8, 1, size, blob.data);
  DType dtype = dtype_of(out->datatype);
  const SymInt dtypes[] = {dtype}, ranks[] = {out->rank};
  SymInt dims[XNN_MAX_RANK];
  for (uint32_t i = 0; i < out->rank; i++)
    dims[i] = out->dims[i];
  ValueId y = plan(&d->m, NODE(&d->m, OP_EXECUTORCH_CALL_DELEGATE,
                               value_type_of(d, dtype, out->rank, out->dims), A_STR(XNN_BACKEND_ID),
                               A_STR(names), A_VAL(code), A_VALS(data, count),
                               A_VALS(d->inputs, d->input_count), A_INTS(dtypes, 1),
                               A_INTS(ranks, 1), A_INTS(dims, out->rank)));
  finish(&d->m, &y, 1);
}

static Status write_case(Context *ctx, const char *folder, uint64_t seed, size_t k,
                         uint32_t round) {
  Draw d = {.m = {.ctx = ctx}, .state = seed * 1000003 + k * 7919 + round};
  d.is_signed = upto(&d, 2) > 0;
  begin(&d.m, "forward");
  d.off = cases[k].off;
  cases[k].make(&d);
  call_delegate(&d);
  printf("%s_%u %u", cases[k].name, round, d.off);
  for (uint32_t i = 0; i < d.input_count; i++) {
    const Type *t = value_type(d.m.g, d.inputs[i]);
    printf(" %s:", dtype_name(t->dtype));
    for (uint32_t j = 0; j < t->rank; j++)
      printf("%s%lld", j ? "," : "", (long long)t->dims[j]);
  }
  printf("\n");
  char *path = arena_printf(&ctx->arena, "%s/%s_%u.pte", folder, cases[k].name, round);
  Status status = pte_emit(d.m.graphs, d.m.count, ctx->sink, path, (EmitOptions){0});
  graph_free(d.m.g);
  xnn_release(&d.x);
  return status;
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: %s FOLDER SEED ROUNDS\n", argv[0]);
    return 2;
  }
  DiagSink sink;
  Context ctx;
  diag_sink_init(&sink);
  context_init(&ctx, &sink);
  ctx.readers = &backend_readers;
  int failures = 0;
  uint64_t seed = strtoull(argv[2], NULL, 10);
  uint32_t rounds = (uint32_t)strtoul(argv[3], NULL, 10);
  for (size_t k = 0; k < COUNT_OF(cases); k++)
    for (uint32_t i = 0; i < rounds; i++)
      failures += write_case(&ctx, argv[1], seed, k, i) != STATUS_OK;
  context_release(&ctx);
  diag_sink_release(&sink);
  return failures ? 1 : 0;
}
