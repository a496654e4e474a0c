/* Pools and resizing: XNNPACK has them for images in NHWC. */
#include <math.h>

#include "backends/xnnpack/convolution.h"

typedef struct Pool {
  uint32_t kernel[2], stride[2], before[2], after[2], dilation[2];
} Pool;

/* kernel_size, stride, padding, dilation at arguments 1 to 4 (dilation: 0 for none). */
static bool read_pool(XnnLowering *l, NodeId n, uint32_t dilation, bool ceil_mode, Pool *p) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  if (!xl_is_image(l, x))
    return false;
  for (uint32_t i = 0; i < 2; i++) {
    p->kernel[i] = (uint32_t)node_entry(g, n, 1, i, 1);
    p->stride[i] = (uint32_t)node_entry(g, n, 2, i, p->kernel[i]);
    p->before[i] = p->after[i] = (uint32_t)node_entry(g, n, 3, i, 0);
    p->dilation[i] = dilation ? (uint32_t)node_entry(g, n, dilation, i, 1) : 1;
    if (!ceil_mode)
      continue;
    int64_t extent = (int64_t)p->dilation[i] * (p->kernel[i] - 1) + 1;
    if (!sym_is_const(value_dim(g, x, 2 + i)) || !sym_is_const(value_dim(g, y, 2 + i))) {
      /* ceil(room / stride) is floor((room + stride - 1) / stride). A window that starts behind the
       * image would be one too many. */
      if (extent < (int64_t)p->stride[i] + p->before[i])
        return xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", 2 + i), R_INT("ceil_mode", 1));
      p->after[i] += p->stride[i] - 1;
      continue;
    }
    /* The windows that hang over the end get padding to hang over. */
    int64_t reach = (value_dim(g, y, 2 + i) - 1) * p->stride[i] + extent;
    int64_t after = reach - value_dim(g, x, 2 + i) - p->before[i];
    if (after > p->after[i])
      p->after[i] = (uint32_t)after;
  }
  return xl_ok(l);
}

static void pool(XnnLowering *l, XnnNodeKind kind, const Pool *p, XnnId in, XnnId out) {
  if (xl_ok(l))
    XNN_ADD_NODE(&l->x, kind, p->before[0], p->after[1], p->after[0], p->before[1], p->kernel[0],
                 p->kernel[1], p->stride[0], p->stride[1], p->dilation[0], p->dilation[1], in, out,
                 0);
}

/* A max pool reads the whole window for each element of the result. Maxima along one dim and then
 * the other read fewer elements, but store an intermediate: worth it from half as many reads on. */
static bool separates(const Pool *p) {
  uint64_t window = (uint64_t)p->kernel[0] * p->kernel[1],
           apart = (uint64_t)p->kernel[1] * p->stride[0] + p->kernel[0];
  return p->kernel[0] > 1 && p->kernel[1] > 1 && 2 * apart <= window;
}

/* The part of a window in one dim, as that of dim `at`. */
static Pool along(const Pool *p, uint32_t dim, uint32_t at) {
  Pool one = {.kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
  one.kernel[at] = p->kernel[dim];
  one.stride[at] = p->stride[dim];
  one.before[at] = p->before[dim];
  one.after[at] = p->after[dim];
  one.dilation[at] = p->dilation[dim];
  return one;
}

/* --- few channels ---
 *
 * XNNPACK pools several channels at a time, and few take as long as those. So columns become the
 * channels of a pool along rows, and rows those of one along columns. */

enum {
  FEW_IN_NHWC = 2, /* channels that are worth three transposes, */
  FEW = 6,         /* or one more than pooling in NHWC */
  LEAST_LINE = 28
};

static bool is_by_lines(XnnLowering *l, NodeId n) {
  ValueId x = node_value(l->g, n, 0), y = node_result(l->g, n, 0);
  uint32_t few = xl_has_nhwc(l, x) ? FEW_IN_NHWC : FEW;
  return xl_dim(l, x, 1) <= few && xl_dim(l, x, 3) >= LEAST_LINE && xl_dim(l, y, 2) >= LEAST_LINE &&
         value_dtype(l->g, x) == DTYPE_F32;
}

/* Along dim 1 of an image; zeros: they are counted. dims become those of the result, of which dim 1
 * has `size`. */
static XnnId pool_line(XnnLowering *l, XnnNodeKind kind, Pool p, bool zeros, XnnId in,
                       SymInt dims[4], SymInt size) {
  if (zeros && p.before[0]) {
    const XnnPad pad = {
        .dims = dims, .rank = 4, .before = {0, p.before[0]}, .after = {0, p.before[0]}};
    SymInt more[] = {dims[0], sym_add(&l->g->syms, dims[1], 2 * (int64_t)p.before[0]), dims[2],
                     dims[3]};
    XnnId padded = xl_sym_temp(l, 4, more);
    xl_pad(l, in, &pad, padded);
    in = padded;
    p.after[0] -= p.before[0];
    p.before[0] = 0;
  }
  dims[1] = size;
  XnnId out = xl_sym_temp(l, 4, dims);
  pool(l, kind, &p, in, out);
  return out;
}

/* Of images [c, h, n, w], then [c, w, n, h]. */
static void pool_lines(XnnLowering *l, XnnNodeKind kind, const Pool *p, bool zeros, NodeId n) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  Permuted t = xl_any_order(l, x);
  SymInt dims[] = {value_dim(g, x, 1), value_dim(g, x, 2), value_dim(g, x, 0), value_dim(g, x, 3)};
  xl_permute_axes(l, &t, (uint32_t[]){t.axis[1], t.axis[2], t.axis[0], t.axis[3]}, 4);
  t.id = pool_line(l, kind, along(p, 0, 0), zeros, t.id, dims, value_dim(g, y, 2));
  xl_permute_axes(l, &t, (uint32_t[]){0, 3, 2, 1}, 4);
  dims[1] = dims[3];
  dims[3] = value_dim(g, y, 2);
  t.id = pool_line(l, kind, along(p, 1, 0), zeros, t.id, dims, value_dim(g, y, 3));
  xl_set_permuted(l, y, (Permuted){.id = t.id, .axis = {2, 0, 3, 1}});
}

void lower_max_pool(XnnLowering *l, NodeId n) {
  Pool p;
  if (!xl_results_unused(l, n, 1) || !read_pool(l, n, 4, node_bool(l->g, n, 5), &p))
    return;
  if (is_by_lines(l, n)) {
    pool_lines(l, XNN_MAX_POOLING2D, &p, false, n);
    return;
  }
  ValueId x = node_value(l->g, n, 0), y = node_result(l->g, n, 0);
  XnnId in = xl_nhwc(l, x);
  if (separates(&p)) {
    Pool columns = along(&p, 1, 1);
    SymInt sizes[] = {value_dim(l->g, x, 0), value_dim(l->g, x, 2), value_dim(l->g, y, 3),
                      value_dim(l->g, x, 1)};
    XnnId narrow = xl_sym_temp(l, 4, sizes);
    pool(l, XNN_MAX_POOLING2D, &columns, in, narrow);
    in = narrow;
    p = along(&p, 0, 0);
  }
  pool(l, XNN_MAX_POOLING2D, &p, in, xl_result_nhwc(l, y));
}

/* Zeros around the image, which the divisor counts; what ceil_mode hangs over stays padding. */
static XnnId padded(XnnLowering *l, NodeId n, XnnId in, Pool *p) {
  ValueId x = node_value(l->g, n, 0);
  const uint32_t *pads = p->before;
  if (pads[0] + pads[1] == 0)
    return in;
  SymInt dims[] = {value_dim(l->g, x, 0), value_dim(l->g, x, 2), value_dim(l->g, x, 3),
                   value_dim(l->g, x, 1)};
  XnnId out = XL_TEMP(l, xl_dim(l, x, 0), xl_dim(l, x, 2) + 2 * pads[0],
                      xl_dim(l, x, 3) + 2 * pads[1], xl_dim(l, x, 1));
  const XnnPad pad = {
      .dims = dims, .rank = 4, .before = {0, pads[0], pads[1]}, .after = {0, pads[0], pads[1]}};
  xl_pad(l, in, &pad, out);
  for (uint32_t i = 0; i < 2; i++) {
    p->after[i] -= p->before[i];
    p->before[i] = 0;
  }
  return out;
}

/* The divisor of XNNPACK leaves padding out; where it counts, zeros are added first. */
void lower_avg_pool(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  Pool p;
  if (!node_absent(g, n, 6)) {
    xl_refuse(l, XNN_RULE_ATTRIBUTE, R_FLOAT("divisor_override", node_scalar(g, n, 6)));
    return;
  }
  if (!read_pool(l, n, 0, node_bool(g, n, 4), &p))
    return;
  if (is_by_lines(l, n)) {
    pool_lines(l, XNN_AVG_POOLING2D, &p, node_bool(g, n, 5), n);
    return;
  }
  XnnId in = xl_nhwc(l, node_value(g, n, 0));
  if (node_bool(g, n, 5))
    in = padded(l, n, in, &p);
  pool(l, XNN_AVG_POOLING2D, &p, in, xl_result_nhwc(l, node_result(g, n, 0)));
}

/* Windows that divide the image evenly, of which there may be one only. */
void lower_adaptive_avg_pool(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  if (!xl_is_image(l, x))
    return;
  Pool p = {.dilation = {1, 1}};
  bool whole = true;
  for (uint32_t i = 0; i < 2; i++) {
    SymInt from = value_dim(g, x, 2 + i), to = value_dim(g, y, 2 + i);
    whole &= to == 1;
    if (to != 1 && (!sym_is_const(from) || !sym_is_const(to) || from % to != 0))
      xl_refuse(l, XNN_RULE_WINDOW, R_INT("dim", 2 + i), R_STR("sizes", "several"));
    p.kernel[i] = p.stride[i] = xl_dim(l, x, 2 + i) / xl_dim(l, y, 2 + i);
  }
  if (xl_ok(l) && !whole && is_by_lines(l, n)) {
    pool_lines(l, XNN_AVG_POOLING2D, &p, false, n);
    return;
  }
  XnnId in = xl_nhwc(l, x), out = xl_result_nhwc(l, y);
  if (!xl_ok(l))
    return;
  if (whole)
    XNN_ADD_NODE(&l->x, XNN_GLOBAL_AVG_POOLING2D, in, out, XNN_FLAG_KEEP_DIMS);
  else if (!sym_is_const(value_dim(g, x, 2)) || !sym_is_const(value_dim(g, x, 3)))
    xl_refuse(l, XNN_RULE_WINDOW, R_STR("sizes", "several"));
  else
    pool(l, XNN_AVG_POOLING2D, &p, in, out);
}

/* --- resizing --- */

enum {
  MOST_TIMES = 4096, /* that a pixel is repeated */
  MOST_BLENDED = 64, /* the same where pixels are blended, which takes longer for larger windows */
  ONE_PASS = 9,      /* pixels of a window that XNNPACK reads at once */
  MOST_TAPS = 1 << 16, /* of the weights of a repetition */
};

/* How many times the size `from` goes into `to`, for every size; 0 if that is not an integer. */
static uint32_t whole_factor(XnnLowering *l, SymInt from, SymInt to) {
  SymTable *t = &l->g->syms;
  SymInt factor = sym_floordiv(t, to, from);
  bool whole =
      sym_is_const(factor) && factor > 0 && factor <= MOST_TIMES && sym_mul(t, from, factor) == to;
  return whole ? (uint32_t)factor : 0;
}

/* Repeats pixels of an image with several dynamic sizes, which no reshape can infer: a
 * transposed convolution whose windows do not meet. XNNPACK computes 16 channels at a time, so that
 * each of a group of so many takes no longer than one alone. */
static void repeat_pixels(XnnLowering *l, ValueId x, uint32_t fh, uint32_t fw, XnnId out) {
  uint32_t c = xl_dim(l, x, 1), group = 16;
  uint64_t taps = (uint64_t)c * fh * fw;
  while (group > 1 && (c % group || taps * group > MOST_TAPS))
    group--;
  if (taps > MOST_TAPS || value_dtype(l->g, x) != DTYPE_F32) {
    xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", 2));
    return;
  }
  float *values = ARENA_ARRAY(l->arena, float, taps *group);
  for (uint64_t i = 0; i < taps; i++)
    values[i * group + i / (fh * fw) % group] = 1;
  ConvolutionNode node = {.kind = XNN_CONV_TRANSPOSE2D,
                          .kernel = {fh, fw},
                          .stride = {fh, fw},
                          .dilation = {1, 1},
                          .groups = c / group,
                          .in_channels = c,
                          .out_channels = c};
  XnnId in = xl_nhwc(l, x);
  if (xl_ok(l))
    xl_convolution_node(l, &node, in, xl_floats(l, 4, (uint32_t[]){c, fh, fw, group}, values),
                        XNN_NONE, out);
}

/* Whole factors: [N, H, 1, W, 1, C] times ones of [1, 1, fh, 1, fw, 1]. */
static void repeat_by_ones(XnnLowering *l, ValueId x, ValueId y, uint32_t fh, uint32_t fw,
                           XnnId out) {
  Graph *g = l->g;
  SymInt batch = value_dim(g, x, 0), h = value_dim(g, x, 2), w = value_dim(g, x, 3),
         c = value_dim(g, x, 1);
  SymInt split[] = {batch, h, 1, w, 1, c}, grown[] = {batch, h, fh, w, fw, c},
         joined[] = {batch, value_dim(g, y, 2), value_dim(g, y, 3), c};
  XnnId in = xl_nhwc(l, x), more = xl_sym_temp(l, 6, grown);
  XnnId ones = xl_ones(l, 6, (uint32_t[]){1, 1, fh, 1, fw, 1});
  xl_binary(l, XNN_MULTIPLY, xl_reshaped(l, in, split, 6), ones, more);
  xl_reshape(l, more, joined, 4, out);
}

/* The whole factors from x to y, of which there must be two; how many pixels one becomes. */
static uint32_t whole_factors(XnnLowering *l, ValueId x, ValueId y, uint32_t factor[2]) {
  Graph *g = l->g;
  for (uint32_t i = 0; i < 2; i++) {
    SymInt from = value_dim(g, x, 2 + i), to = value_dim(g, y, 2 + i);
    factor[i] = whole_factor(l, from, to);
    if (!factor[i] && sym_is_const(from) && sym_is_const(to))
      xl_refuse(l, XNN_RULE_WINDOW,
                R_FLOAT(i ? "factor-w" : "factor-h", (double)to / (double)from));
    else if (!factor[i])
      xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", 2 + i));
  }
  if (!sym_is_const(value_dim(g, x, 1)))
    xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", 1));
  return factor[0] * factor[1];
}

/* Every pixel of x so many times. */
static void repeat(XnnLowering *l, NodeId n, const uint32_t factor[2], XnnId out) {
  ValueId x = node_value(l->g, n, 0);
  if (xl_dynamic_dim_count(l->g, x) > 1)
    repeat_pixels(l, x, factor[0], factor[1], out);
  else
    repeat_by_ones(l, x, node_result(l->g, n, 0), factor[0], factor[1], out);
}

void lower_upsample_nearest(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  if (!xl_is_image(l, x))
    return;
  uint32_t factor[2];
  if (whole_factors(l, x, y, factor) > MOST_TIMES)
    xl_refuse(l, XNN_RULE_WINDOW, R_INT("factor-h", factor[0]), R_INT("factor-w", factor[1]));
  if (xl_ok(l))
    repeat(l, n, factor, xl_result_nhwc(l, y));
}

/* The mean over windows of h x w, in which padding does not count; sizes become those of the
 * result.
 */
static XnnId window_mean(XnnLowering *l, XnnId in, SymInt *sizes, Pool *window, XnnId out) {
  for (uint32_t i = 0; i < 2; i++) {
    window->stride[i] = window->dilation[i] = 1;
    window->after[i] = window->before[i];
    int64_t more = 2 * (int64_t)window->before[i] + 1 - window->kernel[i];
    sizes[1 + i] = sym_add(&l->g->syms, sizes[1 + i], more);
  }
  if (out == XNN_NONE)
    out = xl_sym_temp(l, 4, sizes);
  pool(l, XNN_AVG_POOLING2D, window, in, out);
  return out;
}

/* By whole factors, for sizes that XNNPACK's own node does not have: each pixel is repeated; the
 * mean of f of them and, for an even f, of each two of these means is linear between the centres of
 * pixels. Windows that reach over an edge see the last pixel alone, as they should. */
static void blend_repeated(XnnLowering *l, NodeId n, const uint32_t f[2]) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  SymInt sizes[] = {value_dim(g, x, 0), value_dim(g, y, 2), value_dim(g, y, 3), value_dim(g, x, 1)};
  XnnId from = xl_sym_temp(l, 4, sizes), out = xl_result_nhwc(l, y);
  uint32_t even[] = {f[0] % 2 == 0, f[1] % 2 == 0};
  Pool windows[3];
  uint32_t count = 0;
  if (f[0] * f[1] <= ONE_PASS) {
    windows[count++] = (Pool){.kernel = {f[0], f[1]}, .before = {f[0] / 2, f[1] / 2}};
  } else {
    if (f[0] > 1)
      windows[count++] = (Pool){.kernel = {f[0], 1}, .before = {f[0] / 2, 0}};
    if (f[1] > 1)
      windows[count++] = (Pool){.kernel = {1, f[1]}, .before = {0, f[1] / 2}};
  }
  if (even[0] || even[1])
    windows[count++] = (Pool){.kernel = {1 + even[0], 1 + even[1]}};
  repeat(l, n, f, from);
  for (uint32_t i = 0; i < count; i++)
    from = window_mean(l, from, sizes, &windows[i], i + 1 < count ? XNN_NONE : out);
}

static void lower_blended(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  uint32_t f[2];
  if (node_bool(g, n, 2))
    xl_refuse(l, XNN_RULE_VARYING, R_INT("align_corners", 1));
  else if (value_dtype(g, x) != DTYPE_F32)
    xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", 2));
  else if (whole_factors(l, x, y, f) > MOST_BLENDED)
    xl_refuse(l, XNN_RULE_WINDOW, R_INT("factor-h", f[0]), R_INT("factor-w", f[1]));
  else if (f[0] * f[1] == 1)
    xl_refuse(l, XNN_RULE_WINDOW, R_INT("factor-h", 1));
  if (xl_ok(l))
    blend_repeated(l, n, f);
}

void lower_upsample_bilinear(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  if (!xl_is_image(l, x))
    return;
  if (!sym_is_const(value_dim(g, y, 2)) || !sym_is_const(value_dim(g, y, 3))) {
    lower_blended(l, n);
    return;
  }
  for (uint32_t i = 0; i < 2; i++) { /* a scale of its own would be used instead of the sizes' */
    double scale = node_absent(g, n, 3) ? 0 : g->floats[node_arg(g, n, 3)->at + i];
    double extent = xl_dim(l, x, 2 + i);
    if (scale != 0 && floor(extent * scale) == xl_dim(l, y, 2 + i) &&
        extent * scale != floor(extent * scale))
      xl_refuse(l, XNN_RULE_ATTRIBUTE, R_FLOAT("scale", scale),
                R_FLOAT("supported", xl_dim(l, y, 2 + i) / extent));
  }
  XnnId in = xl_nhwc(l, x), out = xl_result_nhwc(l, y);
  if (xl_ok(l))
    XNN_ADD_NODE(&l->x, XNN_STATIC_RESIZE_BILINEAR2D, xl_dim(l, y, 2), xl_dim(l, y, 3), in, out,
                 node_bool(g, n, 2) ? XNN_FLAG_ALIGN_CORNERS : 0);
}
