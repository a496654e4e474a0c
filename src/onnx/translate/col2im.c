/* Col2Im: adds up blocks of columns into an image.
 *
 * Of images of two dims and known size: the parts of all blocks that are no longer than a stride
 * do not overlap; next to each other they are an image. So the result is a sum of images, one for
 * each stride that a block is long, moved by as much.
 *
 * Of others every element of a column knows its place in the image by arithmetic on its position;
 * places outside (padding) go to one spare element. Block shapes may arrive at run time: then the
 * arithmetic runs in the graph. */
#include "onnx/express.h"
#include "onnx/translate/spatial.h"

typedef struct Columns {
  uint32_t dims;
  SymInt image[MAX_RANK];
  ValueId block[MAX_RANK]; /* 0-d i64 */
  int64_t stride[MAX_RANK], dilation[MAX_RANK], begin[MAX_RANK], end[MAX_RANK];
} Columns;

/* Blocks that fit on a dim: (image + pads - dilation * (block - 1) - 1) / stride + 1. */
static ValueId block_count(Import *im, const Columns *c, uint32_t d) {
  ValueId extent = ex_times(im, ex_minus(im, c->block[d], 1), (double)c->dilation[d]);
  SymInt room = sym_add(&im->g->syms, c->image[d], c->begin[d] + c->end[d] - 1);
  ValueId free = ex_sub(im, ex_size(im, room), extent);
  ValueId stride = ex_int(im, c->stride[d]);
  return ex_plus(im, ex_floor_div(im, free, stride), 1);
}

/* Digit of `rest` in a mixed radix; rest becomes what is above. */
static ValueId digit(Import *im, ValueId *rest, ValueId radix) {
  ValueId low = ex_floor_mod(im, *rest, radix);
  *rest = ex_floor_div(im, *rest, radix);
  return low;
}

/* Flat index into the image of each element of a column [block elements, blocks]; places outside
 * get `spare`. */
static ValueId places(Import *im, const Columns *c, SymInt elements, SymInt blocks, SymInt spare) {
  ValueId element = ex_along_axis(im, ex_arange(im, elements), 0, 2),
          block = ex_along_axis(im, ex_arange(im, blocks), 1, 2), flat = 0, inside = 0;
  SymInt pitch = 1;
  for (uint32_t i = c->dims; i-- > 0 && import_ok(im);) {
    ValueId offset = digit(im, &element, c->block[i]),
            start = digit(im, &block, block_count(im, c, i));
    ValueId within = ex_times(im, offset, (double)c->dilation[i]),
            at = ex_add(im, ex_times(im, start, (double)c->stride[i]), within);
    at = ex_minus(im, at, (double)c->begin[i]);
    ValueId before_end = ex_lt(im, at, ex_size(im, c->image[i])),
            here = ex_and(im, ex_with(im, OP_GE_TENSOR, at, 0), before_end);
    at = ex_mul(im, at, ex_size(im, pitch));
    flat = flat ? ex_add(im, flat, at) : at;
    inside = inside ? ex_and(im, inside, here) : here;
    pitch = sym_mul(&im->g->syms, pitch, c->image[i]);
  }
  return ex_where(im, inside, flat, ex_size(im, spare));
}

/* The spatial sizes of the image: input 1, or those that the model declares. */
static void read_image(Import *im, Columns *c) {
  Ints image;
  Dims declared;
  if (in_ints(im, 1, &image)) {
    c->dims = image.count;
    for (uint32_t i = 0; i < image.count && i < MAX_RANK; i++)
      c->image[i] = image.at[i];
  } else if (out_declared_dims(im, 0, &declared) && declared.rank > 2) {
    c->dims = declared.rank - 2;
    memcpy(c->image, declared.d + 2, c->dims * sizeof *declared.d);
  } else {
    fail_not_known(im, 1, "the shape of the image");
  }
}

static bool read_columns(Import *im, Columns *c, SymInt *block_elements) {
  Ints block;
  ValueId blocks = in_required(im, 2);
  *block_elements = -1;
  read_image(im, c);
  if (c->dims < 1 || c->dims > MAX_RANK - 2)
    import_fail(im, DIAG_INPUT_RANK, "an image of %u dimensions", c->dims);
  for (uint32_t i = 0; i < c->dims && import_ok(im); i++)
    c->block[i] = ex_cast(im, ex_element(im, blocks, i), DTYPE_I64);
  if (in_ints(im, 2, &block))
    *block_elements = shape_product(im, block.at, block.count);
  int64_t pads[2 * MAX_RANK];
  if (!import_ok(im) || !attr_list(im, "strides", c->dims, 1, 1, c->stride) ||
      !attr_list(im, "dilations", c->dims, 1, 1, c->dilation) ||
      !attr_list(im, "pads", 2 * c->dims, 0, 0, pads))
    return false;
  memcpy(c->begin, pads, c->dims * sizeof *pads);
  memcpy(c->end, pads + c->dims, c->dims * sizeof *pads);
  return true;
}

/* --- sums of images --- */

enum { PLANE = 2, IMAGES_MAX = 256 /* of a sum; scatter_add is one node whatever the block */ };

typedef struct Fold {
  SymInt batch;
  int64_t channels, block[PLANE], count[PLANE], stride[PLANE], image[PLANE], begin[PLANE];
  int64_t strides[PLANE]; /* that a block is long */
} Fold;

static bool is_size(int64_t n) { return n >= 0 && n <= INT32_MAX; }

static bool read_fold(Import *im, const Columns *c, const Dims *columns, Fold *f) {
  Ints block;
  if (c->dims != PLANE || !in_ints(im, 2, &block) || block.count != PLANE ||
      !sym_is_const(columns->d[1]) || !sym_is_const(columns->d[2]))
    return false;
  f->batch = columns->d[0];
  for (uint32_t i = 0; i < PLANE; i++) {
    if (!sym_is_const(c->image[i]) || !is_size(c->image[i]) || c->dilation[i] != 1 ||
        block.at[i] < 1 || !is_size(block.at[i]))
      return false;
    int64_t room = c->image[i] + c->begin[i] + c->end[i] - block.at[i];
    if (!is_size(room))
      return false;
    f->block[i] = block.at[i];
    f->stride[i] = c->stride[i];
    f->count[i] = room / c->stride[i] + 1;
    f->strides[i] = (block.at[i] + c->stride[i] - 1) / c->stride[i];
    f->image[i] = c->image[i];
    f->begin[i] = c->begin[i];
  }
  f->channels = columns->d[1] / (f->block[0] * f->block[1]);
  return f->strides[0] * f->strides[1] <= IMAGES_MAX &&
         f->channels * f->block[0] * f->block[1] == columns->d[1] &&
         f->count[0] * f->count[1] == columns->d[2];
}

/* The image of the parts that lie so many strides behind the begin of each block; x: [batch,
 * channels, block, block, count, count]. */
static ValueId part_image(Import *im, const Fold *f, ValueId x, const int64_t *at) {
  SymInt pads[2 * PLANE];
  for (uint32_t i = 0; i < PLANE; i++) {
    int64_t from = at[i] * f->stride[i], to = min_i64(from + f->stride[i], f->block[i]);
    x = ex_slice(im, x, 2 + i, from, to);
    x = ex_pad(im, x, 3 - i, 0, f->stride[i] - (to - from));
    pads[2 * (1 - i)] = from;
    pads[2 * (1 - i) + 1] = (f->strides[i] - 1 - at[i]) * f->stride[i];
  }
  x = EX_PERMUTE(im, x, 0, 1, 4, 2, 5, 3);
  x = EX_VIEW(im, x, f->batch, f->channels, f->count[0] * f->stride[0], f->count[1] * f->stride[1]);
  return build(&im->b, OP_CONSTANT_PAD_ND, A_VAL(x), A_INTS(pads, 2 * PLANE), A_FLOAT(0));
}

static ValueId fold(Import *im, const Fold *f, ValueId x) {
  ValueId y = 0;
  x = EX_VIEW(im, x, f->batch, f->channels, f->block[0], f->block[1], f->count[0], f->count[1]);
  int64_t at[PLANE];
  for (at[0] = 0; at[0] < f->strides[0] && import_ok(im); at[0]++)
    for (at[1] = 0; at[1] < f->strides[1] && import_ok(im); at[1]++) {
      ValueId part = part_image(im, f, x, at);
      y = y ? ex_add(im, y, part) : part;
    }
  for (uint32_t i = 0; i < PLANE; i++) {
    int64_t length = (f->count[i] + f->strides[i] - 1) * f->stride[i],
            end = f->begin[i] + f->image[i];
    y = ex_pad(im, y, 1 - i, 0, max_i64(end - length, 0));
    y = ex_slice(im, y, 2 + i, f->begin[i], end);
  }
  return y;
}

/* --- places of elements --- */

/* Channels: what the declared output says, or the rows of a column over the block's elements. */
static SymInt channel_count(Import *im, SymInt rows, SymInt block_elements) {
  SymInt declared = 1;
  if (block_elements > 0)
    return sym_floordiv(&im->g->syms, rows, block_elements);
  if (!out_declared_dim(im, 0, 1, &declared))
    fail_not_known(im, 2, "the shape of the blocks");
  return declared;
}

void translate_col2im(Import *im) {
  ValueId x = in_required(im, 0);
  Dims s = shape_of(im, x);
  Columns c = {0};
  SymInt block_elements;
  SymTable *t = &im->g->syms;
  if (s.rank != 3)
    import_fail(im, DIAG_INPUT_RANK, "the input has rank %u, 3 is wanted", s.rank);
  if (!import_ok(im) || !read_columns(im, &c, &block_elements))
    return;
  Fold f;
  if (read_fold(im, &c, &s, &f)) {
    out(im, 0, fold(im, &f, x));
    return;
  }
  SymInt channels = channel_count(im, s.d[1], block_elements),
         elements = sym_floordiv(t, s.d[1], channels), size = shape_product(im, c.image, c.dims);
  Dims flat = {2, {sym_mul(t, s.d[0], channels), sym_mul(t, elements, s.d[2])}},
       target = {2, {flat.d[0], sym_add(t, size, 1)}};
  ValueId index = EX_VIEW(im, places(im, &c, elements, s.d[2], size), 1, flat.d[1]);
  index = ex_expand(im, index, flat.d, 2);
  ValueId columns = ex_view_as(im, x, flat);
  ValueId y = build(&im->b, OP_SCATTER_ADD, A_VAL(ex_filled(im, ex_dtype(im, x), target, 0)),
                    A_INT(1), A_VAL(index), A_VAL(columns));
  Dims to = {2, {s.d[0], channels}};
  for (uint32_t i = 0; i < c.dims; i++)
    to.d[to.rank++] = c.image[i];
  out(im, 0, ex_view_as(im, ex_slice(im, y, 1, 0, size), to));
}
