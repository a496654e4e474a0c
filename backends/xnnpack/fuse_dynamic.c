/* Products of operands that are quantized at run time.
 *
 * XNNPACK quantizes each image by its range, and each row of a product. The model has one range for
 * all rows, so they are made the pixels of one image, in one column; rows of which two dims vary,
 * which no reshape could split again, are an image of that height and width. XNNPACK makes a
 * convolution of 1 x 1 a product of rows again, but no transposed one, which computes the same.
 *
 * Several images become one, too, which has them one below the other. */
#include "backends/xnnpack/fuse.h"
#include "support/number.h"

enum {
  CONV_PAD_BOTTOM = 2,
  CONV_KERNEL = 4,
  CONV_STRIDE = 6,
  CONV_DILATION = 8,
  CONV_GROUP_IN = 10
};
enum { CONV_GROUP_OUT = 11, CONV_GROUPS = 12, CONV_IN = 15, CONV_OUT = 18 };

XnnId xf_quantized_at_run(Fuse *f, XnnId in, uint32_t nonbatch, XnnId *kept) {
  if (*kept != XNN_NONE)
    return *kept;
  XnnValue like = f->x->values[in];
  *kept = xnn_dynamic(f->x, like.rank, like.dims, nonbatch);
  f->x->values[*kept].dynamic = like.dynamic;
  xf_emit(f, &(XnnNode){.kind = XNN_CONVERT, .fields = {in, *kept, 0}});
  return *kept;
}

uint32_t xf_rows_of(const XnnValue *value) {
  return value->rank ? (uint32_t)xnn_dims_count(value->dims, value->rank - 1) : 1;
}

void xf_emit_reshape(Fuse *f, XnnId in, XnnId out) {
  XnnValue to = f->x->values[out];
  for (uint32_t i = 0; i < to.rank; i++)
    if (to.dynamic >> i & 1)
      to.dims[i] = 0; /* follows from the others */
  uint32_t dims = xnn_vector(f->x, to.dims, to.rank);
  xf_emit(f, &(XnnNode){.kind = XNN_STATIC_RESHAPE,
                        .vector_count = to.rank,
                        .fields = {to.rank, dims, in, out, 0}});
}

/* The filter of a product as one of a convolution. */
static XnnId filter_of_pixels(Fuse *f, XnnId filter) {
  XnnValue from = f->x->values[filter];
  uint32_t dims[] = {from.dims[0], 1, 1, from.dims[1]};
  XnnId made = xnn_constant(f->x, XNN_QCINT8, 4, dims, f->x->data[from.data - 1]);
  xnn_set_channels(f->x, made, 0, f->x->data[from.scales - 1], from.scale_count);
  return made;
}

/* The product n of pixels and the filter of a product, as a convolution. */
static XnnNode product_of_pixels(Fuse *f, const XnnNode *n, XnnId pixels, XnnId filter, XnnId out) {
  return (XnnNode){.kind = XNN_CONV_TRANSPOSE2D,
                   .limited = n->limited,
                   .limit_low = n->limit_low,
                   .limit_high = n->limit_high,
                   .fields = {[CONV_KERNEL] = 1,
                              1,
                              [CONV_STRIDE] = 1,
                              1,
                              [CONV_DILATION] = 1,
                              1,
                              [CONV_GROUP_IN] = f->x->values[filter].dims[1],
                              [CONV_GROUP_OUT] = f->x->values[filter].dims[0],
                              [CONV_GROUPS] = 1,
                              [CONV_IN] = pixels,
                              filter_of_pixels(f, filter),
                              n->fields[2],
                              out,
                              0}};
}

static void emit_grid(Fuse *f, const XnnNode *n, XnnId in, XnnId filter) {
  XnnId pixels = xf_quantized_at_run(f, in, 3, &f->image_codes[in]);
  XnnNode conv = product_of_pixels(f, n, pixels, filter, xnn_result(n));
  xf_emit(f, &conv);
}

static void emit_rows_as_image(Fuse *f, const XnnNode *n, XnnId in, XnnId filter) {
  XnnGraph *x = f->x;
  XnnValue from = x->values[in];
  XnnId out = xnn_result(n);
  uint32_t rows = xf_rows_of(&from), columns = from.dims[from.rank - 1],
           count = x->values[filter].dims[0];
  if (f->image_row_codes[in] == XNN_NONE) {
    XnnId image = xnn_value(x, XNN_FP32, 4, (uint32_t[]){1, rows, 1, columns});
    x->values[image].dynamic = from.dynamic ? 2 : 0;
    xf_emit_reshape(f, in, image);
    xf_quantized_at_run(f, image, 3, &f->image_row_codes[in]);
  }
  XnnId pixels = xnn_value(x, XNN_FP32, 4, (uint32_t[]){1, rows, 1, count});
  XnnNode conv = product_of_pixels(f, n, f->image_row_codes[in], filter, pixels);
  xf_emit(f, &conv);
  xf_emit_reshape(f, pixels, out);
}

/* A convolution that XNNPACK makes a product of rows. */
static bool takes_pixels(const XnnNode *n) {
  const uint32_t *v = n->fields;
  return n->kind == XNN_CONV2D && v[CONV_KERNEL] == 1 && v[CONV_KERNEL + 1] == 1 &&
         v[CONV_STRIDE] == 1 && v[CONV_STRIDE + 1] == 1 && v[CONV_GROUPS] == 1 && !v[0] && !v[1] &&
         !v[2] && !v[3];
}

/* XNNPACK's kernels take 8 channels of a group at once. */
enum { GROUP = 8, MAX_GROUPED = 1 << 22 };

/* Channels of a group: the most, up to GROUP, that divide all. */
static uint32_t group_size(const XnnNode *n, uint32_t channels, uint64_t bytes) {
  uint32_t size = n->fields[CONV_GROUP_OUT] == 1 && bytes * GROUP <= MAX_GROUPED ? GROUP : 1;
  while (channels % size)
    size--;
  return size;
}

/* The codes as [channels, rows, columns, size], dims: 0 but for the channel itself. They lie as
 * the model has them, [channels, rows, columns]; or, as parts of a filter, channels last. */
static ValueId diagonal_codes(Graph *g, XnnData codes, const uint32_t *dims, uint32_t size) {
  const Constant *c = value_constant(g, codes.v);
  uint64_t channels = dims[0], taps = (uint64_t)dims[1] * dims[2];
  uint8_t *bytes = arena_alloc(&g->arena, c->size * size + 1);
  memset(bytes, 0, c->size * size);
  for (uint64_t i = 0; i < channels; i++)
    for (uint64_t k = 0; k < taps; k++)
      bytes[(i * taps + k) * size + i % size] =
          c->data[codes.order ? i * taps + k : k * channels + i];
  SymInt wide[] = {dims[0], dims[1], dims[2], size};
  TypeId type = graph_tensor_type(g, DTYPE_I8, 4, wide, ORDER_CONTIGUOUS);
  return graph_add_constant(g, type, (Constant){.data = bytes, .size = c->size * size}, 0);
}

/* A depthwise convolution, which XNNPACK does not have for such operands, as one in groups, whose
 * filter [channels, rows, columns, 1] lies as the model has it. Groups of one channel would take
 * as long as those of 8, of which most weights are 0. */
static bool in_groups(Fuse *f, XnnNode *n, XnnId filter, XnnId *grouped) {
  XnnValue from = f->x->values[filter];
  if (n->fields[CONV_GROUP_IN] != 1)
    return false;
  XnnData codes = f->x->data[from.data - 1];
  uint32_t channels = from.dims[3],
           size = group_size(n, channels, value_constant(f->l->g, codes.v)->size);
  uint32_t dims[] = {channels, from.dims[1], from.dims[2], size};
  ValueId v = size > 1 || !codes.order ? diagonal_codes(f->l->g, codes, dims, size) : codes.v;
  *grouped = xnn_constant(f->x, XNN_QCINT8, 4, dims, (XnnData){.v = v});
  float *scales = xf_channel_scales(f, &from, channels);
  XnnData kept =
      from.scales ? f->x->data[from.scales - 1] : xf_floats_constant(f, scales, channels);
  xnn_set_channels(f->x, *grouped, 0, kept, channels);
  n->kind = XNN_CONV2D;
  if (size > 1) {
    n->fields[CONV_GROUPS] = channels / size;
    n->fields[CONV_GROUP_IN] = n->fields[CONV_GROUP_OUT] = size;
  }
  return true;
}

/* Moves may have made something else of what was one. */
static bool is_grid(const XnnValue *value) { return value->rank == 4 && value->dims[0] == 1; }

static bool compute_rows(Fuse *f, const XnnNode *n) {
  XnnId in = f->alias[n->fields[0]], filter = xf_filter_of(f, n, n->fields[1]);
  if (filter == XNN_NONE)
    return false;
  XnnNode copy = *n;
  copy.fields[1] = filter = xf_by_channels(f, n, filter);
  xf_make_floats(f, in);
  bool whole = f->dynamic[n->fields[0]] == XF_AS_A_WHOLE && xf_rows_of(&f->x->values[in]) > 1 &&
               xf_dynamic_dim_count(&f->x->values[in]) <= 1 &&
               xf_dynamic_dim_count(&f->x->values[xnn_result(n)]) <= 1;
  if (whole) {
    emit_rows_as_image(f, n, in, filter);
    return true;
  }
  if (f->dynamic[n->fields[0]] == XF_AS_GRID && is_grid(&f->x->values[in])) {
    emit_grid(f, n, in, filter);
    return true;
  }
  copy.fields[0] = xf_quantized_at_run(f, in, 1, &f->row_codes[in]);
  xf_emit(f, &copy);
  return true;
}

/* Images one below the other, each with its padding, so that no window that counts reads two. */
typedef struct Stack {
  uint32_t above, rows; /* of padding; of an image with its padding: whole strides */
  uint32_t results;     /* rows of results for an image; those behind its own mean nothing */
  uint32_t below;       /* padding for the last windows of the last image */
} Stack;

static Stack stack_of(const Fuse *f, const XnnNode *n) {
  const uint32_t *v = n->fields;
  uint32_t image = f->x->values[v[CONV_IN]].dims[1], wanted = f->x->values[v[CONV_OUT]].dims[1];
  uint32_t stride = v[CONV_STRIDE], window = (v[CONV_KERNEL] - 1) * v[CONV_DILATION] + 1;
  uint32_t read = (wanted - 1) * stride + window, has = v[0] + image;
  Stack stack = {.above = v[0], .rows = read > has ? read : has};
  stack.results = (stack.rows + stride - 1) / stride;
  stack.rows = stack.results * stride;
  stack.below = window > stride ? window - stride : 0;
  return stack;
}

enum { IMAGES = 1, ROWS = 2 }; /* bits of a dynamic dim */

/* The dims of what was made on the way to the convolution are not marked as dynamic. */
static void mark_dynamic(Fuse *f, XnnId v, uint8_t dims) {
  if (f->has_dynamic_dims)
    f->x->values[v].dynamic |= dims;
}

/* Images like v, with other rows. */
static XnnId images_like(Fuse *f, XnnId v, uint32_t rows) {
  const uint32_t *dims = f->x->values[v].dims;
  XnnId made = xnn_value(f->x, XNN_FP32, 4, (uint32_t[]){dims[0], rows, dims[2], dims[3]});
  mark_dynamic(f, made, IMAGES);
  return made;
}

/* The images as one; of which only pixels count, in one column. */
static XnnId one_like(Fuse *f, XnnId images, bool pixels) {
  const uint32_t *dims = f->x->values[images].dims;
  uint32_t columns = pixels ? 1 : dims[2], rows = dims[0] * dims[1] * (dims[2] / columns);
  XnnId made = xnn_value(f->x, XNN_FP32, 4, (uint32_t[]){1, rows, columns, dims[3]});
  mark_dynamic(f, made, ROWS);
  return made;
}

static XnnId stacked(Fuse *f, const Stack *s, XnnId in, bool pixels) {
  uint32_t rows = f->x->values[in].dims[1];
  XnnId padded = in;
  if (s->rows != rows) {
    uint32_t before[4] = {0, s->above}, after[4] = {0, s->rows - s->above - rows};
    uint32_t first = xnn_vector(f->x, before, 4), second = xnn_vector(f->x, after, 4);
    padded = images_like(f, in, s->rows);
    xf_emit(f, &(XnnNode){.kind = XNN_STATIC_CONSTANT_PAD,
                          .vector_count = 4,
                          .fields = {first, second, float_bits(0), in, padded, 0}});
  }
  XnnId one = one_like(f, padded, pixels);
  xf_emit_reshape(f, padded, one);
  return one;
}

static void emit_image(Fuse *f, XnnNode *n) {
  if (takes_pixels(n) && xf_rows_of(&f->x->values[n->fields[CONV_IN]]) > 1)
    n->kind = XNN_CONV_TRANSPOSE2D;
  xf_emit(f, n);
}

/* n, whose operand is not quantized yet, for several images. */
static void emit_stacked(Fuse *f, XnnNode *n) {
  Stack s = stack_of(f, n);
  XnnId out = n->fields[CONV_OUT], kept = XNN_NONE;
  bool cut = s.results > f->x->values[out].dims[1], pixels = takes_pixels(n);
  XnnId wide = cut ? images_like(f, out, s.results) : out, one = one_like(f, wide, pixels);
  mark_dynamic(f, wide, IMAGES);
  n->fields[CONV_IN] = xf_quantized_at_run(f, stacked(f, &s, n->fields[CONV_IN], pixels), 3, &kept);
  n->fields[0] = 0;
  n->fields[CONV_PAD_BOTTOM] = s.below;
  n->fields[CONV_OUT] = one;
  emit_image(f, n);
  xf_emit_reshape(f, one, wide);
  if (!cut)
    return;
  uint32_t begin[4] = {0}, size[4] = {0, f->x->values[out].dims[1]}; /* 0: all */
  uint32_t from = xnn_vector(f->x, begin, 4), to = xnn_vector(f->x, size, 4);
  xf_emit(f, &(XnnNode){.kind = XNN_STATIC_SLICE,
                        .vector_count = 4,
                        .fields = {4, from, to, wide, out, 0}});
}

static bool compute_images(Fuse *f, const XnnNode *n) {
  XnnNode copy = *n;
  XnnId in = f->alias[n->fields[CONV_IN]], filter = xf_filter_of(f, n, n->fields[CONV_IN + 1]);
  if (filter == XNN_NONE ||
      (n->kind == XNN_DEPTHWISE_CONV2D && !in_groups(f, &copy, filter, &filter)))
    return false;
  copy.fields[CONV_IN] = in;
  copy.fields[CONV_IN + 1] = xf_by_channels(f, &copy, filter);
  xf_make_floats(f, in);
  if (f->x->values[in].dims[0] != 1 || (f->x->values[in].dynamic & IMAGES)) {
    emit_stacked(f, &copy);
    return true;
  }
  copy.fields[CONV_IN] = xf_quantized_at_run(f, in, 3, &f->image_codes[in]);
  emit_image(f, &copy);
  return true;
}

bool xf_compute_dynamic(Fuse *f, const XnnNode *n) {
  switch (n->kind) {
  case XNN_FULLY_CONNECTED:
    if (n->fields[4] != 0)
      return false;
    return (f->dynamic[n->fields[0]] && compute_rows(f, n)) || xf_compute_blocks(f, n);
  case XNN_CONV2D:
  case XNN_CONV_TRANSPOSE2D:
  case XNN_DEPTHWISE_CONV2D:
    return f->dynamic[n->fields[CONV_IN]] && compute_images(f, n);
  default:
    return false;
  }
}
