/* Convolutions, pools and resizing: XNNPACK has them for images in NHWC. */
#include <math.h>

#include "backends/xnnpack/lower.h"

enum { NODE_CONV_FIELDS = 20 };

/* Entry i of a list of one or two numbers. */
static int64_t entry(const Graph *g, NodeId n, uint32_t arg, uint32_t i, int64_t fallback) {
  uint32_t count = node_list_count(g, n, arg);
  return count == 0 ? fallback : node_ints(g, n, arg)[i < count ? i : count - 1];
}

typedef struct Convolution {
  uint32_t rank; /* spatial dims, 1 or 2 */
  uint32_t stride[2], padding[2], dilation[2], adjust[2], kernel[2];
  uint32_t groups, in_channels, out_channels;
  bool transposed;
} Convolution;

static bool read_convolution(XnnLowering *l, NodeId n, Convolution *c) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), weight = node_value(g, n, 1), bias = node_value(g, n, 2);
  *c = (Convolution){.transposed = node_bool(g, n, 6), .groups = (uint32_t)node_int(g, n, 8)};
  if (!value_is_const(g, weight) || (bias && !value_is_const(g, bias)))
    return xl_refuse(l, XNN_RULE_RUNTIME_WEIGHTS, "argument=%s",
                     value_is_const(g, weight) ? "bias" : "weight");
  if (value_rank(g, x) != 3 && value_rank(g, x) != 4)
    return xl_refuse(l, XNN_RULE_RANK, "rank=%u held=3,4", value_rank(g, x));
  if (!sym_is_const(value_dim(g, x, 1)))
    return xl_refuse(l, XNN_RULE_VARYING, "dim=1");
  c->rank = value_rank(g, x) - 2;
  c->in_channels = xl_dim(l, x, 1);
  c->out_channels = xl_dim(l, node_result(g, n, 0), 1);
  for (uint32_t i = 0; i < 2; i++) {
    /* A 1-D convolution is one of images that are 1 high. */
    bool absent = c->rank == 1 && i == 0;
    uint32_t k = c->rank == 1 ? 0 : i;
    c->kernel[i] = absent ? 1 : xl_dim(l, weight, 2 + k);
    c->stride[i] = absent ? 1 : (uint32_t)entry(g, n, 3, k, 1);
    c->padding[i] = absent ? 0 : (uint32_t)entry(g, n, 4, k, 0);
    c->dilation[i] = absent ? 1 : (uint32_t)entry(g, n, 5, k, 1);
    c->adjust[i] = absent ? 0 : (uint32_t)entry(g, n, 7, k, 0);
  }
  return xl_ok(l);
}

/* Weights of torch, [out, in / groups, kh, kw] or transposed [in, out / groups, kh, kw], as XNNPACK
 * wants them: [out, kh, kw, in / groups], for depthwise ones [1, kh, kw, out]. */
static XnnId filter(XnnLowering *l, ValueId weight, const Convolution *c, bool depthwise) {
  bool half = value_dtype(l->g, weight) == DTYPE_F16;
  uint32_t kh = c->kernel[0], kw = c->kernel[1], in = c->in_channels / c->groups,
           out = c->out_channels / c->groups;
  if (c->transposed && c->groups > 1) {
    /* Groups are outermost in both: [g, in, out, kh, kw] -> [g, out, kh, kw, in], told as 5 dims.
     */
    uint32_t dims[] = {c->groups, out, kh, kw, in}, perm[] = {0, 2, 3, 4, 1};
    XnnId id = xl_permuted_constant(l, weight, 5, dims, perm, half);
    if (xl_ok(l)) {
      XnnValue *value = &l->x.values[id];
      value->rank = 4;
      memcpy(value->dims, (uint32_t[]){c->out_channels, kh, kw, in}, 4 * sizeof(uint32_t));
    }
    return id;
  }
  if (depthwise) {
    uint32_t dims[] = {1, kh, kw, c->out_channels}, perm[] = {1, 2, 3, 0};
    return xl_permuted_constant(l, weight, 4, dims, perm, false);
  }
  /* With one spatial dim kh is 1 wherever it is written. */
  uint32_t dims[] = {c->out_channels, kh, kw, in}, straight[] = {0, 2, 3, 1},
           turned[] = {1, 2, 3, 0};
  return xl_permuted_constant(l, weight, 4, dims, c->transposed ? turned : straight, half);
}

/* A depthwise convolution takes f32 only. */
static XnnId wide_bias(XnnLowering *l, ValueId bias) {
  return xl_permuted_constant(l, bias, 1, (uint32_t[]){xl_dim(l, bias, 0)}, (uint32_t[]){0}, false);
}

/* [N, C, L] as an image [N, 1, L, C]. */
static XnnId line_as_image(XnnLowering *l, ValueId x) {
  Graph *g = l->g;
  uint32_t n = xl_dim(l, x, 0), c = xl_dim(l, x, 1), length = xl_dim(l, x, 2);
  XnnId turned = XL_TEMP(l, n, length, c), image = XL_TEMP(l, n, 1, length, c);
  xl_transpose(l, xl_plain(l, x), (uint32_t[]){0, 2, 1}, 3, turned);
  xl_reshape(l, turned, (SymInt[]){value_dim(g, x, 0), 1, value_dim(g, x, 2), value_dim(g, x, 1)},
             4, image);
  return image;
}

static void image_as_line(XnnLowering *l, XnnId image, ValueId y) {
  Graph *g = l->g;
  uint32_t n = xl_dim(l, y, 0), c = xl_dim(l, y, 1), length = xl_dim(l, y, 2);
  XnnId turned = XL_TEMP(l, n, length, c);
  xl_reshape(l, image, (SymInt[]){value_dim(g, y, 0), value_dim(g, y, 2), value_dim(g, y, 1)}, 3,
             turned);
  xl_transpose(l, turned, (uint32_t[]){0, 2, 1}, 3, xl_result(l, y));
}

void lower_convolution(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  Convolution c;
  if (!read_convolution(l, n, &c))
    return;
  ValueId x = node_value(g, n, 0), bias = node_value(g, n, 2), y = node_result(g, n, 0);
  bool depthwise = !c.transposed && c.groups > 1 && c.groups == c.in_channels;
  XnnId in = c.rank == 1 ? line_as_image(l, x) : xl_nhwc(l, x);
  XnnId weights = filter(l, node_value(g, n, 1), &c, depthwise);
  XnnId b = !bias ? XNN_NONE : depthwise ? wide_bias(l, bias) : xl_filter(l, bias);
  XnnId out = c.rank == 2 ? xl_result_nhwc(l, y)
                          : XL_TEMP(l, xl_dim(l, y, 0), 1, xl_dim(l, y, 2), xl_dim(l, y, 1));
  if (!xl_ok(l))
    return;
  XnnNodeKind kind = c.transposed ? XNN_CONV_TRANSPOSE2D
                     : depthwise  ? XNN_DEPTHWISE_CONV2D
                                  : XNN_CONV2D;
  const uint32_t fields[NODE_CONV_FIELDS] = {c.padding[0],
                                             c.padding[1],
                                             c.padding[0],
                                             c.padding[1],
                                             c.kernel[0],
                                             c.kernel[1],
                                             c.stride[0],
                                             c.stride[1],
                                             c.dilation[0],
                                             c.dilation[1],
                                             c.in_channels / c.groups,
                                             c.out_channels / c.groups,
                                             c.groups,
                                             c.adjust[0],
                                             c.adjust[1],
                                             in,
                                             weights,
                                             b,
                                             out,
                                             0};
  xnn_node(&l->x, kind, fields, NODE_CONV_FIELDS);
  if (c.rank == 1)
    image_as_line(l, out, y);
}

/* --- pools --- */

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
    p->kernel[i] = (uint32_t)entry(g, n, 1, i, 1);
    p->stride[i] = (uint32_t)entry(g, n, 2, i, p->kernel[i]);
    p->before[i] = p->after[i] = (uint32_t)entry(g, n, 3, i, 0);
    p->dilation[i] = dilation ? (uint32_t)entry(g, n, dilation, i, 1) : 1;
    if (!ceil_mode)
      continue;
    if (!sym_is_const(value_dim(g, x, 2 + i)) || !sym_is_const(value_dim(g, y, 2 + i)))
      return xl_refuse(l, XNN_RULE_VARYING, "dim=%u ceil_mode=1", 2 + i);
    /* The windows that hang over the end get padding to hang over. */
    int64_t reach = (value_dim(g, y, 2 + i) - 1) * p->stride[i] +
                    (int64_t)p->dilation[i] * (p->kernel[i] - 1) + 1;
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

void lower_max_pool(XnnLowering *l, NodeId n) {
  Pool p;
  if (value_cget(l->g, node_result(l->g, n, 1))->use_count) {
    xl_refuse(l, XNN_RULE_RESULT_USED, "result=1");
    return;
  }
  if (!read_pool(l, n, 4, node_bool(l->g, n, 5), &p))
    return;
  if (p.kernel[0] * p.kernel[1] == 1) {
    xl_refuse(l, XNN_RULE_WINDOW, "kernel=1x1");
    return;
  }
  XnnId in = xl_nhwc(l, node_value(l->g, n, 0));
  pool(l, XNN_MAX_POOLING2D, &p, in, xl_result_nhwc(l, node_result(l->g, n, 0)));
}

/* The divisor of XNNPACK leaves padding out; where it counts, zeros are added first. */
void lower_avg_pool(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  Pool p;
  if (node_bool(g, n, 4) || !node_absent(g, n, 6)) {
    xl_refuse(l, XNN_RULE_ATTRIBUTE, "ceil_mode=%d divisor_override=%d", node_bool(g, n, 4),
              !node_absent(g, n, 6));
    return;
  }
  if (!read_pool(l, n, 0, false, &p))
    return;
  if (p.kernel[0] * p.kernel[1] == 1) {
    xl_refuse(l, XNN_RULE_WINDOW, "kernel=1x1");
    return;
  }
  ValueId x = node_value(g, n, 0);
  XnnId in = xl_nhwc(l, x);
  if (node_bool(g, n, 5) && p.before[0] + p.before[1] && xl_ok(l)) {
    uint32_t pads[] = {0, p.before[0], p.before[1], 0};
    XnnId padded = XL_TEMP(l, xl_dim(l, x, 0), xl_dim(l, x, 2) + 2 * pads[1],
                           xl_dim(l, x, 3) + 2 * pads[2], xl_dim(l, x, 1));
    if (!xl_ok(l))
      return;
    uint32_t first = xnn_vector(&l->x, pads, 4), second = xnn_vector(&l->x, pads, 4);
    XNN_ADD_NODE(&l->x, XNN_STATIC_CONSTANT_PAD, first, second, xnn_float(0), in, padded, 0)
        ->vector_count = 4;
    in = padded;
    for (uint32_t i = 0; i < 2; i++)
      p.before[i] = p.after[i] = 0;
  }
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
      xl_refuse(l, XNN_RULE_WINDOW, "dim=%u sizes=several", 2 + i);
    p.kernel[i] = p.stride[i] = xl_dim(l, x, 2 + i) / xl_dim(l, y, 2 + i);
  }
  XnnId in = xl_nhwc(l, x), out = xl_result_nhwc(l, y);
  if (!xl_ok(l))
    return;
  if (whole)
    XNN_ADD_NODE(&l->x, XNN_GLOBAL_AVG_POOLING2D, in, out, XNN_FLAG_KEEP_DIMS);
  else if (!sym_is_const(value_dim(g, x, 2)) || !sym_is_const(value_dim(g, x, 3)) ||
           p.kernel[0] * p.kernel[1] == 1)
    xl_refuse(l, XNN_RULE_WINDOW, "sizes=several");
  else
    pool(l, XNN_AVG_POOLING2D, &p, in, out);
}

/* --- resizing --- */

void lower_upsample_bilinear(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  if (value_rank(g, y) != 4 || !sym_is_const(value_dim(g, y, 2)) ||
      !sym_is_const(value_dim(g, y, 3))) {
    xl_refuse(l, XNN_RULE_VARYING, "result-rank=%u", value_rank(g, y));
    return;
  }
  for (uint32_t i = 0; i < 2; i++) { /* a scale of its own would be used instead of the sizes' */
    double scale = node_absent(g, n, 3) ? 0 : g->floats[node_arg(g, n, 3)->at + i];
    double extent = xl_dim(l, x, 2 + i);
    if (scale != 0 && floor(extent * scale) == xl_dim(l, y, 2 + i) &&
        extent * scale != floor(extent * scale))
      xl_refuse(l, XNN_RULE_ATTRIBUTE, "scale=%g held=%g", scale, xl_dim(l, y, 2 + i) / extent);
  }
  XnnId in = xl_nhwc(l, x), out = xl_result_nhwc(l, y);
  if (xl_ok(l))
    XNN_ADD_NODE(&l->x, XNN_STATIC_RESIZE_BILINEAR2D, xl_dim(l, y, 2), xl_dim(l, y, 3), in, out,
                 node_bool(g, n, 2) ? XNN_FLAG_ALIGN_CORNERS : 0);
}

/* Whole factors: [N, H, 1, W, 1, C] times ones of [1, 1, fh, 1, fw, 1]. */
void lower_upsample_nearest(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  if (!xl_is_image(l, x))
    return;
  for (uint32_t i = 1; i < 4; i++)
    if (!sym_is_const(value_dim(g, x, i)) || !sym_is_const(value_dim(g, y, i)))
      xl_refuse(l, XNN_RULE_VARYING, "dim=%u", i);
  if (!xl_ok(l))
    return;
  SymInt batch = value_dim(g, x, 0), h = value_dim(g, x, 2), w = value_dim(g, x, 3),
         c = value_dim(g, x, 1), oh = value_dim(g, y, 2), ow = value_dim(g, y, 3);
  if (oh % h || ow % w || (oh / h) * (ow / w) > 4096) {
    xl_refuse(l, XNN_RULE_WINDOW, "factor-h=%g factor-w=%g", (double)oh / (double)h,
              (double)ow / (double)w);
    return;
  }
  uint32_t fh = (uint32_t)(oh / h), fw = (uint32_t)(ow / w), ones[] = {1, 1, fh, 1, fw, 1};
  float *values = ARENA_ARRAY(l->arena, float, (size_t)fh *fw);
  for (uint32_t i = 0; i < fh * fw; i++)
    values[i] = 1;
  uint32_t many = xl_dim(l, x, 0);
  XnnId in = xl_nhwc(l, x), out = xl_result_nhwc(l, y),
        apart = XL_TEMP(l, many, (uint32_t)h, 1, (uint32_t)w, 1, (uint32_t)c),
        grown = XL_TEMP(l, many, (uint32_t)h, fh, (uint32_t)w, fw, (uint32_t)c);
  xl_reshape(l, in, (SymInt[]){batch, h, 1, w, 1, c}, 6, apart);
  xl_binary(l, XNN_MULTIPLY, apart, xl_floats(l, 6, ones, values), grown);
  xl_reshape(l, grown, (SymInt[]){batch, oh, ow, c}, 4, out);
}
