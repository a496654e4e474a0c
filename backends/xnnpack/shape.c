/* Shapes of XNNPACK nodes, as xnn_reshape_runtime computes them from those of the inputs. A dim
 * that is not known, or an expression, fits everything. */
#include <math.h>

#include "backends/xnnpack/check.h"

enum {
  FLAG_TRANSPOSED_FILTER = 1, /* of products */
  FLAG_TRANSPOSED_B = 1,
  FLAG_SAME_PADDING = 4,
  FLAG_LEGACY_RESIZE = 4,
  FLAG_ALIGN_CORNERS = 8,
  FLAG_KEEP_DIMS = 0x40
};

static const XrShape *shape_of(const XrCheck *c, uint32_t id) { return &c->shapes[id]; }

static bool differ(int64_t a, int64_t b) { return a >= 0 && b >= 0 && a != b; }

static void need_rank(XrCheck *c, uint32_t id, uint32_t rank, const char *what) {
  if (shape_of(c, id)->rank != rank)
    xr_fail(c, "%s has rank %u instead of %u", what, shape_of(c, id)->rank, rank);
}

static void need_dim(XrCheck *c, uint32_t id, uint32_t i, int64_t size, const char *what) {
  const XrShape *s = shape_of(c, id);
  if (i < s->rank && differ(s->dims[i], size))
    xr_fail(c, "dim %u of %s is %lld instead of %lld", i, what, (long long)s->dims[i],
            (long long)size);
}

static void allow_flags(XrCheck *c, const XrNode *n, uint32_t flags) {
  if (n->flags & ~flags)
    xr_fail(c, "flags %#x, of which only %#x are known", n->flags, flags);
}

static void check_bias(XrCheck *c, const XrNode *n, int64_t size) {
  if (n->inputs[2] == XR_NONE)
    return;
  need_rank(c, n->inputs[2], 1, "the bias");
  need_dim(c, n->inputs[2], 0, size, "the bias");
}

/* Dims of both but the last `skip`. */
static void broadcast(XrCheck *c, const XrShape *a, const XrShape *b, uint8_t skip, XrShape *out) {
  uint8_t rank = a->rank > b->rank ? a->rank : b->rank;
  out->rank = rank;
  for (uint8_t i = skip; i < rank; i++) {
    int64_t x = i < a->rank ? a->dims[a->rank - 1 - i] : 1,
            y = i < b->rank ? b->dims[b->rank - 1 - i] : 1, both;
    if (x == 1 || y == 1)
      both = x == 1 ? y : x;
    else if (differ(x, y))
      both = xr_fail(c, "%lld and %lld do not broadcast", (long long)x, (long long)y);
    else if (x >= 0 || x == y)
      both = x;
    else /* one of two that vary may be 1 */
      both = y >= 0 ? y : XR_UNKNOWN;
    out->dims[rank - 1 - i] = both;
  }
}

static void product_shape(XrCheck *c, const XrNode *n, XrShape *out) {
  const XrShape *x = shape_of(c, n->inputs[0]), *filter = shape_of(c, n->inputs[1]);
  allow_flags(c, n, FLAG_TRANSPOSED_FILTER);
  need_rank(c, n->inputs[1], 2, "the filter");
  if (x->rank == 0)
    xr_fail(c, "the input has rank 0");
  if (c->fault)
    return;
  bool transposed = n->flags & FLAG_TRANSPOSED_FILTER;
  int64_t channels = filter->dims[transposed ? 0 : 1], results = filter->dims[transposed ? 1 : 0];
  need_dim(c, n->inputs[0], x->rank - 1, channels, "the input");
  check_bias(c, n, results);
  *out = *x;
  out->dims[x->rank - 1] = results;
}

static void matrix_shape(XrCheck *c, const XrNode *n, XrShape *out) {
  const XrShape *a = shape_of(c, n->inputs[0]), *b = shape_of(c, n->inputs[1]);
  allow_flags(c, n, FLAG_TRANSPOSED_B);
  if (a->rank < 2 || b->rank < 2) {
    xr_fail(c, "operands of rank %u and %u", a->rank, b->rank);
    return;
  }
  uint32_t inner = n->flags & FLAG_TRANSPOSED_B ? 1 : 2, outer = 3 - inner;
  need_dim(c, n->inputs[1], b->rank - inner, a->dims[a->rank - 1], "the second operand");
  broadcast(c, a, b, 2, out);
  out->dims[out->rank - 2] = a->dims[a->rank - 2];
  out->dims[out->rank - 1] = b->dims[b->rank - outer];
}

/* --- windows --- */

static int64_t reach_of(const XrWindow *w, uint32_t i) {
  return (int64_t)(w->kernel[i] - 1) * w->dilation[i] + 1;
}

static void check_window(XrCheck *c, const XrWindow *w, bool pool) {
  for (uint32_t i = 0; i < 2; i++) {
    if (w->kernel[i] == 0 || w->stride[i] == 0 || w->dilation[i] == 0)
      xr_fail(c, "a kernel, stride or dilation of 0");
    uint64_t reach = (uint64_t)(w->kernel[i] - 1) * w->dilation[i] + 1;
    if (reach > XR_SIZE_MAX || w->before[i] > XR_SIZE_MAX || w->after[i] > XR_SIZE_MAX ||
        w->stride[i] > XR_SIZE_MAX || w->adjust[i] > XR_SIZE_MAX)
      xr_fail(c, "a window of %llu elements", (unsigned long long)reach);
    /* A window of nothing but padding has no average. */
    if (pool && (w->before[i] >= reach || w->after[i] >= reach))
      xr_fail(c, "windows of padding only");
  }
}

static int64_t window_count(XrCheck *c, const XrWindow *w, uint32_t i, int64_t size, bool same) {
  SymTable *syms = c->syms;
  if (size == XR_UNKNOWN)
    return XR_UNKNOWN;
  if (same)
    return sym_ceildiv(syms, size, w->stride[i]);
  int64_t reach = reach_of(w, i), padding = (int64_t)w->before[i] + w->after[i];
  if (size < 0)
    return sym_add(syms, sym_floordiv(syms, sym_add(syms, size, padding - reach), w->stride[i]), 1);
  int64_t padded = size + padding;
  if (padded < reach)
    return xr_fail(c, "a window of %lld elements in an image of %lld", (long long)reach,
                   (long long)padded);
  return (padded - reach) / w->stride[i] + 1;
}

static int64_t spread(XrCheck *c, const XrWindow *w, uint32_t i, int64_t size) {
  SymTable *syms = c->syms;
  if (size == XR_UNKNOWN)
    return XR_UNKNOWN;
  if (w->adjust[i] >= w->stride[i])
    xr_fail(c, "an adjustment of %u with a stride of %u", w->adjust[i], w->stride[i]);
  int64_t more = reach_of(w, i) + w->adjust[i] - w->stride[i] - w->before[i] - w->after[i],
          out = sym_add(syms, sym_mul(syms, size, w->stride[i]), more);
  if (out <= 0 && sym_is_const(out))
    xr_fail(c, "padding takes all of the result");
  return out;
}

/* The filter as the kind wants it, and the bias. */
static void check_filter(XrCheck *c, const XrNode *n, int64_t channels) {
  const XrWindow *w = &n->window;
  int64_t in = (int64_t)w->groups * w->group_in, out = (int64_t)w->groups * w->group_out;
  bool depthwise = n->kind == XR_DepthwiseConv2d;
  if (w->groups == 0 || w->group_in == 0 || w->group_out == 0 || in > XR_SIZE_MAX ||
      out > XR_SIZE_MAX)
    xr_fail(c, "%u groups of %u and %u channels", w->groups, w->group_in, w->group_out);
  if (depthwise && w->group_in != 1)
    xr_fail(c, "%u channels a group", w->group_in);
  if (differ(channels, in))
    xr_fail(c, "the input has %lld channels instead of %lld", (long long)channels, (long long)in);
  int64_t dims[] = {depthwise ? 1 : out, w->kernel[0], w->kernel[1], depthwise ? out : w->group_in};
  need_rank(c, n->inputs[1], 4, "the filter");
  for (uint32_t i = 0; i < 4; i++)
    need_dim(c, n->inputs[1], i, dims[i], "the filter");
  check_bias(c, n, out);
}

static void convolution_shape(XrCheck *c, const XrNode *n, XrShape *out) {
  const XrShape *x = shape_of(c, n->inputs[0]);
  const XrWindow *w = &n->window;
  bool transposed = n->kind == XR_ConvTranspose2d, same = n->flags & FLAG_SAME_PADDING;
  allow_flags(c, n, transposed ? 0 : FLAG_SAME_PADDING);
  need_rank(c, n->inputs[0], 4, "the input");
  check_window(c, w, false);
  if (!transposed && (w->adjust[0] || w->adjust[1]))
    xr_fail(c, "an adjustment");
  if (same && (w->before[0] || w->before[1] || w->after[0] || w->after[1]))
    xr_fail(c, "padding of its own beside that of the flag");
  if (c->fault)
    return;
  check_filter(c, n, x->dims[3]);
  *out = (XrShape){4, {x->dims[0], 0, 0, (int64_t)w->groups * w->group_out}};
  for (uint32_t i = 0; i < 2; i++)
    out->dims[1 + i] =
        transposed ? spread(c, w, i, x->dims[1 + i]) : window_count(c, w, i, x->dims[1 + i], same);
}

static void pool_shape(XrCheck *c, const XrNode *n, XrShape *out) {
  const XrShape *x = shape_of(c, n->inputs[0]);
  const XrWindow *w = &n->window;
  allow_flags(c, n, FLAG_KEEP_DIMS); /* which the official writer sets, and which does nothing */
  need_rank(c, n->inputs[0], 4, "the input");
  check_window(c, w, true);
  if (n->kind == XR_AvgPooling2d && (w->dilation[0] != 1 || w->dilation[1] != 1))
    xr_fail(c, "a dilation");
  if (n->kind == XR_ArgMaxPooling2d && w->kernel[0] == 1 && w->kernel[1] == 1)
    xr_fail(c, "windows of one element");
  if (c->fault)
    return;
  *out = *x;
  for (uint32_t i = 0; i < 2; i++)
    out->dims[1 + i] = window_count(c, w, i, x->dims[1 + i], false);
}

static void global_pool_shape(XrCheck *c, const XrNode *n, XrShape *out) {
  const XrShape *x = shape_of(c, n->inputs[0]);
  allow_flags(c, n, FLAG_KEEP_DIMS);
  if (x->rank < 3) {
    xr_fail(c, "the input has rank %u", x->rank);
    return;
  }
  *out = *x;
  if (n->flags & FLAG_KEEP_DIMS) {
    out->dims[x->rank - 3] = out->dims[x->rank - 2] = 1;
    return;
  }
  out->rank = x->rank - 2;
  out->dims[out->rank - 1] = x->dims[x->rank - 1];
}

static void resize_shape(XrCheck *c, const XrNode *n, XrShape *out) {
  allow_flags(c, n, n->flags & FLAG_LEGACY_RESIZE ? FLAG_LEGACY_RESIZE : FLAG_ALIGN_CORNERS);
  need_rank(c, n->inputs[0], 4, "the input");
  *out = *shape_of(c, n->inputs[0]);
  for (uint32_t i = 0; i < 2; i++) {
    if (n->size[i] == 0 || n->size[i] > XR_SIZE_MAX)
      xr_fail(c, "a new size of %u", n->size[i]);
    out->dims[1 + i] = n->size[i];
  }
}

/* --- moves --- */

static void transpose_shape(XrCheck *c, const XrNode *n, XrShape *out) {
  const XrShape *x = shape_of(c, n->inputs[0]);
  uint32_t seen = 0;
  out->rank = x->rank;
  if (n->vector_count != x->rank) {
    xr_fail(c, "a permutation of %u dims for rank %u", n->vector_count, x->rank);
    return;
  }
  for (uint32_t i = 0; i < x->rank; i++) {
    if (n->first[i] >= x->rank || seen & 1u << n->first[i]) {
      xr_fail(c, "entry %u, %u, makes it no permutation", i, n->first[i]);
      return;
    }
    seen |= 1u << n->first[i];
    out->dims[i] = x->dims[n->first[i]];
  }
}

/* The product of the dims; XR_UNKNOWN when one is not known. */
static int64_t count_of(XrCheck *c, const XrShape *s) {
  int64_t count = 1;
  for (uint32_t i = 0; i < s->rank; i++) {
    if (s->dims[i] < 0)
      return XR_UNKNOWN;
    if (!mul_i64(count, s->dims[i], &count) || count > (int64_t)1 << 48)
      return xr_fail(c, "a value of too many elements");
  }
  return count;
}

/* The dim of the new shape that takes what `rest`, the product of the others, leaves of x. */
static int64_t inferred_dim(XrCheck *c, const XrShape *x, int64_t rest) {
  int64_t count = 1;
  for (uint32_t i = 0; i < x->rank; i++) {
    if (x->dims[i] == XR_UNKNOWN)
      return XR_UNKNOWN;
    count = sym_mul(c->syms, count, x->dims[i]);
  }
  return sym_floordiv(c->syms, count, rest);
}

static void reshape_shape(XrCheck *c, const XrNode *n, XrShape *out) {
  int64_t count = count_of(c, shape_of(c, n->inputs[0])), rest = 1;
  uint32_t inferred = XR_MAX_RANK;
  out->rank = n->vector_count;
  for (uint32_t i = 0; i < n->vector_count; i++) {
    if (n->first[i] > XR_SIZE_MAX || (n->first[i] == 0 && inferred < XR_MAX_RANK))
      xr_fail(c, "dim %u of the new shape is %u", i, n->first[i]);
    if (n->first[i] == 0)
      inferred = i;
    else if (!mul_i64(rest, n->first[i], &rest))
      xr_fail(c, "a value of too many elements");
    out->dims[i] = n->first[i];
  }
  if (c->fault)
    return;
  if (inferred < XR_MAX_RANK)
    out->dims[inferred] = inferred_dim(c, shape_of(c, n->inputs[0]), rest);
  if (count >= 0 && (inferred < XR_MAX_RANK ? count % rest != 0 : count != rest))
    xr_fail(c, "%lld elements do not make a shape of %lld", (long long)count, (long long)rest);
}

static void slice_shape(XrCheck *c, const XrNode *n, XrShape *out) {
  const XrShape *x = shape_of(c, n->inputs[0]);
  *out = *x;
  if (n->vector_count != x->rank) {
    xr_fail(c, "%u offsets for rank %u", n->vector_count, x->rank);
    return;
  }
  for (uint32_t i = 0; i < x->rank; i++) {
    uint64_t end = (uint64_t)n->first[i] + n->second[i];
    if (n->second[i] == 0) { /* all of the dim */
      if (n->first[i])
        xr_fail(c, "nothing is taken of dim %u from %u on", i, n->first[i]);
      continue;
    }
    if (end > XR_SIZE_MAX || (x->dims[i] >= 0 && (int64_t)end > x->dims[i]))
      xr_fail(c, "elements up to %llu are taken of dim %u, which has %lld", (unsigned long long)end,
              i, (long long)x->dims[i]);
    out->dims[i] = n->second[i];
  }
}

static void pad_shape(XrCheck *c, const XrNode *n, XrShape *out) {
  const XrShape *x = shape_of(c, n->inputs[0]);
  *out = *x;
  if (n->vector_count != x->rank) {
    xr_fail(c, "padding of %u dims for rank %u", n->vector_count, x->rank);
    return;
  }
  for (uint32_t i = 0; i < x->rank; i++) {
    if (n->first[i] > XR_SIZE_MAX || n->second[i] > XR_SIZE_MAX)
      xr_fail(c, "padding of %u and %u", n->first[i], n->second[i]);
    if (x->dims[i] != XR_UNKNOWN)
      out->dims[i] = sym_add(c->syms, x->dims[i], (int64_t)n->first[i] + n->second[i]);
  }
}

static int64_t joined(XrCheck *c, int64_t a, int64_t b) {
  return a == XR_UNKNOWN || b == XR_UNKNOWN ? XR_UNKNOWN : sym_add(c->syms, a, b);
}

static void join_shape(XrCheck *c, const XrNode *n, XrShape *out) {
  *out = *shape_of(c, n->inputs[0]);
  uint32_t axis = n->axis > INT32_MAX ? n->axis + out->rank : n->axis;
  if (axis >= out->rank) {
    xr_fail(c, "axis %d of rank %u", (int32_t)n->axis, out->rank);
    return;
  }
  for (uint32_t k = 1; k < n->input_count; k++) {
    const XrShape *x = shape_of(c, n->inputs[k]);
    need_rank(c, n->inputs[k], out->rank, "an operand");
    for (uint32_t i = 0; i < out->rank && !c->fault; i++) {
      if (i == axis) {
        out->dims[i] = joined(c, out->dims[i], x->dims[i]);
        continue;
      }
      need_dim(c, n->inputs[k], i, out->dims[i], "an operand");
      if (out->dims[i] == XR_UNKNOWN || x->dims[i] >= 0)
        out->dims[i] = x->dims[i];
    }
  }
}

static void unary_shape(XrCheck *c, const XrNode *n, XrShape *out) {
  *out = *shape_of(c, n->inputs[0]);
  allow_flags(c, n, n->kind == XR_GlobalAvgPooling2d ? FLAG_KEEP_DIMS : 0);
  if (n->kind == XR_GlobalAvgPooling2d)
    global_pool_shape(c, n, out);
  if (n->kind == XR_Softmax && out->rank == 0)
    xr_fail(c, "rank 0");
  if (n->kind == XR_Clamp && !n->limited)
    xr_fail(c, "it has no limits");
  if ((n->kind == XR_ELU && !(n->number > 0)) || !isfinite(n->number))
    xr_fail(c, "the factor is %g", (double)n->number);
}

static void binary_shape(XrCheck *c, const XrNode *n, XrShape *out) {
  if (n->kind == XR_BatchMatrixMultiply) {
    matrix_shape(c, n, out);
    return;
  }
  allow_flags(c, n, 0);
  broadcast(c, shape_of(c, n->inputs[0]), shape_of(c, n->inputs[1]), 0, out);
}

void xr_shape(XrCheck *c, const XrNode *n, XrShape *out) {
  typedef void FormFn(XrCheck *, const XrNode *, XrShape *);
  static FormFn *const shapes[] = {
      [XR_FORM_UNARY] = unary_shape,
      [XR_FORM_UNARY_NUMBER] = unary_shape,
      [XR_FORM_BINARY] = binary_shape,
      [XR_FORM_PRODUCT] = product_shape,
      [XR_FORM_CONVOLUTION] = convolution_shape,
      [XR_FORM_POSITION] = pool_shape,
      [XR_FORM_POOL] = pool_shape,
      [XR_FORM_RESIZE] = resize_shape,
      [XR_FORM_TRANSPOSE] = transpose_shape,
      [XR_FORM_RESHAPE] = reshape_shape,
      [XR_FORM_SLICE] = slice_shape,
      [XR_FORM_PAD] = pad_shape,
      [XR_FORM_JOIN] = join_shape,
  };
  shapes[xr_form(n->kind)](c, n, out);
  for (uint32_t i = 0; i < out->rank; i++)
    if (out->dims[i] > XR_SIZE_MAX)
      xr_fail(c, "dim %u of the result is %lld", i, (long long)out->dims[i]);
  (void)count_of(c, out);
}
