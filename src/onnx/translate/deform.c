/* DeformConv and MaxUnpool. */
#include "onnx/express.h"
#include "onnx/translate/spatial.h"

/* --- DeformConv ---
 *
 * Samples at base + offset are grid_sampler_2d (bilinear, zeros beyond the image), one image a
 * group of offsets, all taps of the kernel below each other; what is left of the convolution has a
 * 1 x 1 kernel. */

typedef struct Deform {
  Window w;
  SymInt batch;
  int64_t channels, groups, taps, size[2], cells[2]; /* of the image and of the result */
} Deform;

static bool deform_read(Import *im, ValueId x, ValueId weight, ValueId offset, Deform *d) {
  if (ex_rank(im, x) != 4 || ex_rank(im, weight) != 4 || ex_rank(im, offset) != 4)
    return import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                       "DeformConv is supported for two spatial dimensions");
  *d = (Deform){.groups = attr_int(im, "offset_group", 1), .batch = ex_dim(im, x, 0)};
  if (!window_read(im, x, vt(im, weight)->dims + 2, &d->w))
    return false;
  d->taps = d->w.kernel[0] * d->w.kernel[1];
  d->channels = ex_fixed(im, x, 1);
  for (uint32_t i = 0; i < 2; i++) {
    d->size[i] = ex_fixed(im, x, 2 + i);
    d->cells[i] = ex_fixed(im, offset, 2 + i);
  }
  int64_t offsets = ex_fixed(im, offset, 1);
  if (d->groups < 1 || d->channels % d->groups || d->size[0] < 1 || d->size[1] < 1 ||
      offsets != d->groups * d->taps * 2)
    import_fail(im, DIAG_SHAPE_MISMATCH, "%lld offset channels in %lld groups for %lld taps",
                (long long)offsets, (long long)d->groups, (long long)d->taps);
  return import_ok(im);
}

/* Where the taps stand without offsets, [taps, rows, columns, 2], in the sampler's units: -1 and 1
 * are the outer edges of the image. */
static ValueId deform_base(Import *im, const Deform *d) {
  int64_t dims[] = {d->taps, d->cells[0], d->cells[1], 2};
  int64_t count;
  if (!mul_i64(d->taps, d->cells[0], &count) || !mul_i64(count, d->cells[1], &count) ||
      count > (1 << 24))
    return import_fail(im, DIAG_UNSUPPORTED_FEATURE, "more than %d samples", 1 << 24);
  float *values = ARENA_ARRAY(&im->scratch, float, (size_t)count * 2);
  for (int64_t i = 0; i < count; i++) {
    int64_t tap = i / (d->cells[0] * d->cells[1]), cell[2];
    cell[0] = i / d->cells[1] % d->cells[0];
    cell[1] = i % d->cells[1];
    int64_t at[] = {tap / d->w.kernel[1], tap % d->w.kernel[1]};
    for (uint32_t k = 0; k < 2; k++) {
      double place = (double)(cell[k] * d->w.stride[k] - d->w.begin[k] + at[k] * d->w.dilation[k]);
      values[2 * i + k] = (float)((2 * place + 1) / (double)d->size[k] - 1);
    }
  }
  return build_const(&im->b, DTYPE_F32, 4, dims, values);
}

/* [N * groups, taps * rows, columns, 2]; the sampler wants the column first. */
static ValueId deform_grid(Import *im, const Deform *d, ValueId offset) {
  SymInt images = sym_mul(&im->g->syms, d->batch, d->groups);
  ValueId split = EX_VIEW(im, offset, images, d->taps, 2, d->cells[0], d->cells[1]);
  split = EX_PERMUTE(im, split, 0, 1, 3, 4, 2);
  float unit[] = {(float)(2.0 / (double)d->size[0]), (float)(2.0 / (double)d->size[1])};
  ValueId units = build_const(&im->b, DTYPE_F32, 1, (int64_t[]){2}, unit);
  DType dtype = ex_dtype(im, offset);
  ValueId base = ex_cast(im, deform_base(im, d), dtype),
          grid = ex_add(im, ex_mul(im, split, ex_cast(im, units, dtype)), base);
  return EX_VIEW(im, ex_flip(im, grid, 4), images, d->taps * d->cells[0], d->cells[1], 2);
}

void translate_deform_conv(Import *im) {
  ValueId x = in_required(im, 0), weight = in_required(im, 1), offset = in_required(im, 2),
          bias = in(im, 3), mask = in(im, 4);
  int64_t group = attr_int(im, "group", 1);
  Deform d;
  if (!deform_read(im, x, weight, offset, &d))
    return;
  SymInt images = sym_mul(&im->g->syms, d.batch, d.groups);
  ValueId planes = EX_VIEW(im, x, images, d.channels / d.groups, d.size[0], d.size[1]);
  ValueId grid = deform_grid(im, &d, offset);
  ValueId y = build(&im->b, OP_GRID_SAMPLER_2D, A_VAL(planes), A_VAL(grid), A_INT(0), A_INT(0),
                    A_BOOL(false));
  if (mask)
    y = ex_mul(im, y, EX_VIEW(im, mask, images, 1, d.taps * d.cells[0], d.cells[1]));
  y = EX_VIEW(im, y, d.batch, d.channels * d.taps, d.cells[0], d.cells[1]);
  int64_t results = ex_fixed(im, weight, 0), own = ex_fixed(im, weight, 1);
  ValueId flat = EX_VIEW(im, weight, results, own * d.taps, 1, 1);
  const Window taps = {.rank = 2, .stride = {1, 1}, .dilation = {1, 1}};
  out(im, 0, window_convolve(im, y, flat, bias, &taps, group));
}

/* --- MaxUnpool --- */

/* The sizes that the attributes give; indices count in a tensor of these. */
static bool unpooled_dims(Import *im, ValueId x, SymInt *dims, SymInt *total) {
  uint32_t rank = ex_rank(im, x), count = rank - 2;
  int64_t kernel[MAX_RANK], pads[2 * MAX_RANK], strides[MAX_RANK];
  if (rank < 3)
    return import_fail(im, DIAG_INPUT_RANK, "MaxUnpool needs rank 3 or more, the input has %u",
                       rank);
  if (!attr_list(im, "kernel_shape", count, 0, 1, kernel) ||
      !attr_list(im, "pads", 2 * count, 0, 0, pads) ||
      !attr_list(im, "strides", count, 1, 1, strides))
    return false;
  SymTable *t = &im->g->syms;
  *total = 1;
  for (uint32_t i = 0; i < rank; i++) {
    dims[i] = ex_dim(im, x, i);
    if (i >= 2) {
      uint32_t k = i - 2;
      SymInt span = sym_mul(t, sym_sub(t, dims[i], 1), strides[k]);
      dims[i] = sym_add(t, span, kernel[k] - pads[k] - pads[count + k]);
    }
    *total = sym_mul(t, *total, dims[i]);
  }
  return import_ok(im);
}

/* The dims of output_shape: its elements, or the declared ones of the output. */
static bool wanted_dims(Import *im, uint32_t rank, Dims *dims) {
  Ints values;
  if (!in_ints(im, 2, &values))
    return out_declared_dims(im, 0, dims) && dims->rank == rank;
  if (values.count == rank)
    *dims = dims_make(values.at, rank);
  return values.count == rank;
}

void translate_max_unpool(Import *im) {
  ValueId x = in_required(im, 0), index = in_required(im, 1);
  SymInt dims[MAX_RANK], pads[2 * MAX_RANK] = {0}, total;
  Dims wanted;
  if (!unpooled_dims(im, x, dims, &total))
    return;
  uint32_t rank = ex_rank(im, x), count = 2 * (rank - 2);
  ValueId zeros = ex_full(im, ex_dtype(im, x), &total, 1, 0);
  Dims s = shape_of(im, x);
  ValueId places = EX_VIEW(im, ex_cast(im, index, DTYPE_I64), shape_product(im, s.d, s.rank)),
          values = ex_flat(im, x);
  ValueId y = ex_view(im, ex_scatter(im, zeros, 0, places, values), dims, rank);
  if (in(im, 2)) {
    if (!wanted_dims(im, rank, &wanted)) {
      import_fail(im, DIAG_INPUT_NOT_CONST,
                  "output_shape is known only while running, and the output has no declared shape");
      return;
    }
    bool grows = false;
    for (uint32_t i = 2; i < rank; i++) {
      SymInt more = sym_sub(&im->g->syms, wanted.d[i], dims[i]);
      grows |= more != 0;
      pads[2 * (rank - 1 - i) + 1] = more;
      if (sym_is_const(more) && more < 0)
        import_fail(im, DIAG_SHAPE_MISMATCH, "output_shape is smaller than what is unpooled");
    }
    if (grows)
      y = build(&im->b, OP_CONSTANT_PAD_ND, A_VAL(y), A_INTS(pads, count), A_FLOAT(0));
  }
  out(im, 0, y);
}
