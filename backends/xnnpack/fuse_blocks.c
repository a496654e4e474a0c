/* Products with filters whose rows have a scale for each block of columns.
 *
 * Those of 4 bits are one product of XNNPACK, with rows of 8 bits only, as ONNX Runtime does it,
 * too. It has none of 8 bits, and none of 4 with floats: they are a product for each block, whose
 * filter has a scale a row, and the sum of these. Where the model quantizes the operand at run
 * time, each block of a row is, as ONNX Runtime does it; else XNNPACK multiplies floats by codes.
 * Either is as fast as one product of floats or faster, at a quarter of its size.
 *
 * Zero points other than the middle, which XNNPACK does not have, come to a product of the sums
 * over the blocks of each row. So do those of weights of 8 bits with one scale, beside floats: they
 * are one block. */
#include "backends/xnnpack/fuse.h"

/* A value of floats with another last dim. */
static XnnId with_columns(Fuse *f, XnnId like, uint32_t columns) {
  XnnValue value = f->x->values[like];
  value.dims[value.rank - 1] = columns;
  XnnId made = xnn_value(f->x, XNN_FP32, value.rank, value.dims);
  f->x->values[made].dynamic = value.dynamic;
  return made;
}

static void emit_product(Fuse *f, XnnId in, XnnId filter, XnnId bias, XnnId out) {
  xf_emit(f, &(XnnNode){.kind = XNN_FULLY_CONNECTED, .fields = {in, filter, bias, out, 0}});
}

/* Sums over groups of `size` elements each of rows of `groups` times as many, as a filter. */
static XnnId sums_of_groups(Fuse *f, uint32_t groups, uint32_t size) {
  uint32_t columns = groups * size;
  float *ones = ARENA_ARRAY(&f->l->g->arena, float, (size_t)groups *columns + 1);
  for (uint32_t i = 0; i < columns; i++)
    ones[(size_t)(i / size) * columns + i] = 1;
  return xl_floats(f->l, 2, (uint32_t[]){groups, columns}, ones);
}

/* XNNPACK's products compute as many columns at once: sums of fewer take as long. */
enum { SUMS_AT_ONCE = 16 };

/* The sums over the blocks of each row of `in`: rows are cut into pieces of a few blocks, so that a
 * piece is multiplied by one filter of ones that does not grow with the square of the row. */
static XnnId sums_of_blocks(Fuse *f, XnnId in, uint32_t blocks) {
  XnnGraph *x = f->x;
  XnnValue like = x->values[in];
  uint32_t columns = like.dims[like.rank - 1], size = columns / blocks, at_once;
  XnnId kept = f->sums[in];
  if (kept != XNN_NONE && x->values[kept].dims[like.rank - 1] == blocks)
    return kept;
  XnnId sums = f->sums[in] = with_columns(f, in, blocks);
  for (at_once = xf_dynamic_dim_count(&like) > 1 ? blocks : SUMS_AT_ONCE; blocks % at_once;
       at_once--)
    ;
  if (at_once == blocks) {
    emit_product(f, in, sums_of_groups(f, blocks, size), XNN_NONE, sums);
    return sums;
  }
  uint32_t pieces = xf_rows_of(&like) * (blocks / at_once);
  XnnId piece = xnn_value(x, XNN_FP32, 2, (uint32_t[]){pieces, at_once * size}),
        cut = xnn_value(x, XNN_FP32, 2, (uint32_t[]){pieces, at_once});
  x->values[piece].dynamic = x->values[cut].dynamic = like.dynamic ? 1 : 0;
  xf_emit_reshape(f, in, piece);
  emit_product(f, piece, sums_of_groups(f, at_once, size), XNN_NONE, cut);
  xf_emit_reshape(f, cut, sums);
  return sums;
}

/* What the zero points of the filter add, and the bias; the bias itself without zero points. */
static XnnId begin_sum(Fuse *f, const XnnNode *n, XnnId in, XnnId shift) {
  if (!shift)
    return n->fields[2];
  XnnId out = xnn_result(n), sums = sums_of_blocks(f, in, f->x->values[shift - 1].dims[1]),
        sum = with_columns(f, out, f->x->values[shift - 1].dims[0]);
  emit_product(f, sums, shift - 1, n->fields[2], sum);
  return sum;
}

/* The node with its limits, as one of that kind. */
static void emit_limited(Fuse *f, const XnnNode *n, XnnNode made) {
  made.limited = n->limited;
  made.limit_low = n->limit_low;
  made.limit_high = n->limit_high;
  xf_emit(f, &made);
}

static void compute_nibbles(Fuse *f, const XnnNode *n, XnnId in, XnnId filter, XnnId shift) {
  XnnNode copy = *n;
  copy.fields[0] = xf_quantized_at_run(f, in, 1, &f->row_codes[in]);
  copy.fields[1] = filter;
  if (!shift) {
    xf_emit(f, &copy);
    return;
  }
  XnnId out = xnn_result(n), sum = begin_sum(f, n, in, shift),
        bare = with_columns(f, out, f->x->values[filter].dims[0]);
  emit_product(f, copy.fields[0], filter, XNN_NONE, bare);
  emit_limited(f, n, (XnnNode){.kind = XNN_ADD, .fields = {bare, sum, out, 0}});
}

/* The first of the blocks of `in`, of so many columns each. */
static XnnId floats_by_block(Fuse *f, XnnId in, uint32_t size) {
  XnnGraph *x = f->x;
  uint32_t rank = x->values[in].rank, last = rank - 1, begin[XNN_MAX_RANK] = {0},
           sizes[XNN_MAX_RANK] = {0}, count = x->values[in].dims[last] / size;
  XnnId first = f->floats_by_block[in];
  if (count == 1)
    return in;
  if (first != XNN_NONE && x->values[first].dims[last] == size)
    return first;
  first = f->floats_by_block[in] = x->value_count;
  sizes[last] = size; /* of the others 0: all */
  for (uint32_t k = 0; k < count; k++) {
    begin[last] = k * size;
    uint32_t from = xnn_vector(x, begin, rank), to = xnn_vector(x, sizes, rank);
    XnnId block = with_columns(f, in, size);
    xf_emit(f, &(XnnNode){.kind = XNN_STATIC_SLICE,
                          .vector_count = (uint8_t)rank,
                          .fields = {rank, from, to, in, block, 0}});
  }
  return first;
}

static XnnId tokens_by_block(Fuse *f, XnnId in, uint32_t size) {
  XnnGraph *x = f->x;
  uint32_t last = x->values[in].rank - 1U, count = x->values[in].dims[last] / size;
  XnnId first = f->row_codes_by_block[in];
  if (first != XNN_NONE && x->values[first].dims[last] == size)
    return first;
  XnnId floats = floats_by_block(f, in, size);
  first = f->row_codes_by_block[in] = x->value_count;
  for (uint32_t k = 0; k < count; k++) {
    XnnId none = XNN_NONE;
    (void)xf_quantized_at_run(f, floats + k, 1, &none);
  }
  return first;
}

/* filter: the first of those of the blocks. */
static void compute_bytes(Fuse *f, const XnnNode *n, XnnId in, XnnId filter, XnnId shift) {
  XnnValue own = f->x->values[filter];
  uint32_t outputs = own.dims[0], size = own.dims[1],
           count = f->x->values[in].dims[f->x->values[in].rank - 1] / size;
  bool dynamic = f->dynamic[n->fields[0]] != XF_NOT_DYNAMIC;
  XnnId out = xnn_result(n), sum = begin_sum(f, n, in, shift),
        blocks = dynamic ? tokens_by_block(f, in, size) : floats_by_block(f, in, size);
  for (uint32_t k = 0; k < count; k++) {
    XnnId product = with_columns(f, out, outputs), total = product;
    emit_product(f, blocks + k, filter + k, XNN_NONE, product);
    if (sum != XNN_NONE) {
      XnnNode add = {.kind = XNN_ADD, .fields = {sum, product, 0, 0}};
      total = add.fields[2] = k + 1 == count ? out : with_columns(f, out, outputs);
      if (total == out)
        emit_limited(f, n, add);
      else
        xf_emit(f, &add);
    }
    sum = total;
  }
}

/* What a zero point adds to each weight, as of blocks of whole rows: [outputs, 1]. */
static XnnId row_shifts(Fuse *f, const XnnValue *codes) {
  uint32_t dims[] = {codes->dims[0], 1};
  float *shifts = ARENA_ARRAY(&f->l->g->arena, float, (size_t)dims[0] + 1);
  for (uint32_t i = 0; i < dims[0]; i++)
    shifts[i] = (float)-codes->zero_point * codes->scale;
  return xl_floats(f->l, 2, dims, shifts);
}

bool xf_compute_blocks(Fuse *f, const XnnNode *n) {
  const XnnValue *value = &f->x->values[n->fields[1]];
  if (!value->data || !value->codes)
    return false;
  XnnId in = f->alias[n->fields[0]], filter = value->codes - 1, shift = value->shift;
  if (!xf_is_in_blocks(f->x, value)) {
    XnnValue codes = f->x->values[filter];
    if (codes.datatype != XNN_QINT8 || codes.zero_point == 0 || codes.rank != 2)
      return false;
    shift = row_shifts(f, &codes) + 1;
    filter = xf_by_channels(f, n, filter);
  }
  xf_make_floats(f, in);
  if (f->x->values[filter].datatype == (uint8_t)XNN_QBINT4)
    compute_nibbles(f, n, in, filter, shift);
  else
    compute_bytes(f, n, in, filter, shift);
  return true;
}
