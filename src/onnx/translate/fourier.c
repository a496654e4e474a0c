/* DFT and STFT as products with matrices: constant ones, or where the length is known only as a
 * range ones that are computed while running. The runtime's FFT kernels work on complex
 * tensors, which programs cannot hold as inputs or outputs. Products are f64: a sum of n terms in
 * f32 would lose the digits that the operator promises near zero. */
#include <math.h>

#include "onnx/translate/fourier.h"

/* Contribution of input entry n, part p, to result k, part q. */
static double coefficient(const Fourier *f, int64_t n, uint32_t p, int64_t k, uint32_t q) {
  int64_t length = f->length;
  if (f->inverse && f->onesided) { /* real result of half a spectrum: the other half mirrors it */
    if (n > length / 2)
      return 0;
    double angle = 2 * M_PI * (double)(n * k % length) / (double)length,
           weight = n == 0 || 2 * n == length ? 1 : 2;
    return weight / (double)length * (p ? -sin(angle) : cos(angle));
  }
  if (n >= length)
    return 0;
  double angle = 2 * M_PI * (double)(n * k % length) / (double)length;
  double real = cos(angle), imaginary = f->inverse ? sin(angle) : -sin(angle),
         scale = f->inverse ? 1 / (double)length : 1;
  return scale * (p == q ? real : p ? -imaginary : imaginary);
}

/* 1 in f64 for the entries n of a spectrum that stand for themselves (those with n = 0, and the
 * middle of an even length), 2 for those that stand for a mirrored one as well; [in, 1]. */
static ValueId mirrored_weight(Import *im, ValueId n, ValueId length) {
  ValueId middle = ex_eq(im, ex_times(im, n, 2), length),
          alone = ex_or(im, ex_is(im, n, 0), middle);
  ValueId one = ex_int(im, 1), two = ex_int(im, 2);
  return ex_cast(im, ex_where(im, alone, one, two), DTYPE_F64);
}

/* coefficient() of all entries, as a value of the program. */
static ValueId running_matrix(Import *im, const Fourier *f) {
  ValueId n = EX_VIEW(im, ex_arange(im, f->in), f->in, 1), k = ex_arange(im, f->out),
          length = ex_size(im, f->length), divisor = ex_cast(im, length, DTYPE_F64);
  ValueId turns = ex_cast(im, ex_floor_mod(im, ex_mul(im, n, k), length), DTYPE_F64);
  ValueId angle = ex_div(im, ex_times(im, turns, 2 * M_PI), divisor);
  ValueId real = ex_unary(im, OP_COS, angle), imaginary = ex_unary(im, OP_SIN, angle);
  ValueId scale = f->inverse ? ex_div(im, ex_number(im, divisor, 1), divisor) : 0;
  if (f->inverse && f->onesided)
    scale = ex_mul(im, scale, mirrored_weight(im, n, length));
  if (f->in != f->length && !(f->inverse && f->onesided)) { /* entries behind the length: not met */
    ValueId met = ex_cast(im, ex_lt(im, n, length), DTYPE_F64);
    scale = scale ? ex_mul(im, scale, met) : met;
  }
  if (scale) {
    real = ex_mul(im, real, scale);
    imaginary = ex_mul(im, imaginary, scale);
  }
  ValueId minus = ex_unary(im, OP_NEG, imaginary), rows[2];
  bool result_is_real = f->out_parts == 1;
  real = EX_VIEW(im, real, f->in, 1, f->out, 1);
  minus = EX_VIEW(im, minus, f->in, 1, f->out, 1);
  imaginary = EX_VIEW(im, imaginary, f->in, 1, f->out, 1);
  rows[0] = result_is_real ? real : ex_cat2(im, real, f->inverse ? imaginary : minus, 3);
  rows[1] = result_is_real ? minus : ex_cat2(im, f->inverse ? minus : imaginary, real, 3);
  ValueId all = f->in_parts == 1 ? rows[0] : ex_cat2(im, rows[0], rows[1], 1);
  SymTable *t = &im->g->syms;
  return EX_VIEW(im, all, sym_mul(t, f->in, f->in_parts), sym_mul(t, f->out, f->out_parts));
}

/* [in * in_parts, out * out_parts] */
static ValueId matrix(Import *im, const Fourier *f) {
  const SymTable *t = &im->g->syms;
  int64_t rows = sym_upper(t, f->in), columns = sym_upper(t, f->out);
  if (rows < 1 || columns < 1 || rows > FOURIER_MATRIX_MAX / f->in_parts / f->out_parts / columns)
    return import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                       "a transform of %lld entries to %lld needs too large a matrix, but for a "
                       "fixed length that is a product of two numbers about as large",
                       (long long)rows, (long long)columns);
  if (!sym_is_const(f->in) || !sym_is_const(f->length))
    return running_matrix(im, f);
  rows *= f->in_parts;
  columns *= f->out_parts;
  double *values = ARENA_ARRAY(&im->scratch, double, (size_t)(rows * columns));
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      values[i * columns + j] = coefficient(f, i / f->in_parts, (uint32_t)(i % f->in_parts),
                                            j / f->out_parts, (uint32_t)(j % f->out_parts));
  return build_const(&im->b, DTYPE_F64, 2, (int64_t[]){rows, columns}, values);
}

/* --- DFT --- */

/* The transform of dim `axis` of x [.., parts]; length 0: that of the dim. */
static Fourier plan(Import *im, ValueId x, uint32_t axis, SymInt length) {
  Fourier f = {.inverse = attr_flag(im, "inverse", false),
               .onesided = attr_flag(im, "onesided", false),
               .in = ex_dim(im, x, axis),
               .in_parts = (uint32_t)ex_fixed(im, x, ex_rank(im, x) - 1)};
  bool real_result = f.inverse && f.onesided;
  SymTable *t = &im->g->syms;
  f.length = length ? length : real_result ? sym_mul(t, sym_sub(t, f.in, 1), 2) : f.in;
  f.out = f.onesided && !f.inverse ? sym_add(t, sym_floordiv(t, f.length, 2), 1) : f.length;
  f.out_parts = real_result ? 1 : 2;
  return f;
}

static ValueId transform_rows(Import *im, ValueId rows, const Fourier *f) {
  FourierSplit split;
  if (!import_ok(im))
    return 0;
  if (fourier_split(f, &split))
    return fourier_by_parts(im, fourier_arranged(im, rows, f, &split), f, &split);
  if (fourier_chirps_pay(im, f, ex_dim(im, rows, 0)))
    return fourier_by_chirps(im, rows, f);
  return ex_mm(im, rows, matrix(im, f));
}

/* In f64; the result has x's element type. */
static ValueId transform(Import *im, ValueId x, uint32_t axis, const Fourier *plan_of_axis) {
  uint32_t rank = ex_rank(im, x);
  Fourier f = *plan_of_axis;
  if (!import_ok(im))
    return 0;
  if (sym_lower(&im->g->syms, f.length) < 1 || f.in_parts < 1 || f.in_parts > 2)
    return import_fail(im, DIAG_SHAPE_MISMATCH, "a transform of length %lld of %u parts",
                       (long long)sym_lower(&im->g->syms, f.length), f.in_parts);
  ValueId moved = ex_move_dim(im, ex_cast(im, x, DTYPE_F64), axis, rank - 2);
  Dims dims = shape_of(im, moved);
  ValueId flat = EX_VIEW(im, moved, shape_product(im, dims.d, rank - 2),
                         sym_mul(&im->g->syms, f.in, f.in_parts));
  ValueId y = transform_rows(im, flat, &f);
  dims.d[rank - 2] = f.out;
  dims.d[rank - 1] = f.out_parts;
  y = ex_move_dim(im, ex_view_as(im, y, dims), rank - 2, axis);
  return ex_cast(im, y, ex_dtype(im, x));
}

/* The axis arrives while running: the transforms of all axes that give the declared shape, one of
 * them chosen. */
static ValueId transform_of_any(Import *im, ValueId x, ValueId axis, SymInt length) {
  Dims declared;
  uint32_t rank = ex_rank(im, x);
  if (!out_declared_dims(im, 0, &declared) || declared.rank != rank)
    return import_fail(
        im, DIAG_INPUT_NOT_CONST,
        "the axis is known only while running, and the output has no declared shape");
  ValueId place = ex_scalar(im, axis), result = 0;
  ValueId wrapped = ex_plus(im, place, rank);
  place = ex_where(im, ex_with(im, OP_LT_TENSOR, place, 0), wrapped, place);
  for (uint32_t i = 0; i + 1 < rank && import_ok(im); i++) {
    Fourier f = plan(im, x, i, length);
    bool fits = sym_lower(&im->g->syms, f.length) > 0 && f.out_parts == declared.d[rank - 1];
    for (uint32_t k = 0; k + 1 < rank && fits; k++)
      fits = (k == i ? f.out : ex_dim(im, x, k)) == declared.d[k];
    if (!fits)
      continue;
    ValueId y = transform(im, x, i, &f);
    result = result ? ex_where(im, ex_is(im, place, i), y, result) : y;
  }
  if (!result)
    return import_fail(im, DIAG_SHAPE_MISMATCH, "no axis gives the declared output shape");
  return result;
}

void translate_dft(Import *im) {
  ValueId x = in_required(im, 0), length_input = in(im, 1), axis_input = in(im, 2);
  uint32_t rank = ex_rank(im, x);
  SymInt length = 0;
  int64_t axis = im->opset >= 20 ? -2 : attr_int(im, "axis", 1);
  if (rank < 2)
    import_fail(im, DIAG_INPUT_RANK, "the input has rank %u, 2 or more are needed", rank);
  if (length_input) {
    Dims declared;
    if (!one_int(im, length_input, &length))
      import_fail(im, DIAG_INPUT_NOT_CONST, "dft_length must be known when lowering%s",
                  out_declared_dims(im, 0, &declared) ? "; make it an initializer" : "");
    int64_t least = sym_lower(&im->g->syms, length);
    if (least < 1 || sym_upper(&im->g->syms, length) > INT32_MAX)
      import_fail(im, DIAG_ATTR_VALUE, "dft_length is %lld", (long long)least);
  }
  if (axis_input && import_ok(im) && !one_const(im, axis_input, &axis)) {
    out(im, 0, transform_of_any(im, x, axis_input, length));
    return;
  }
  uint32_t place = import_axis(im, axis, rank);
  if (place + 1 == rank)
    import_fail(im, DIAG_AXIS_RANGE, "axis %lld is that of the parts", (long long)axis);
  Fourier f = plan(im, x, place, length);
  out(im, 0, transform(im, x, place, &f));
}

/* --- STFT --- */

typedef struct Frames {
  int64_t length, step;
  SymInt count;
} Frames;

/* How many steps make `count` frames of this length; *result gets the last of them. step: the one
 * that is known, or 0. */
static uint32_t steps_declared(int64_t signal, int64_t length, int64_t count, int64_t step,
                               Frames *result) {
  uint32_t found = 0;
  for (int64_t s = 1; s <= signal; s++)
    if ((!step || s == step) && (signal - length) / s + 1 == count) {
      *result = (Frames){length, s, 0};
      found++;
    }
  return found;
}

/* Length and step that arrive while running, from the declared shape [B, frames, bins, 2]: taken
 * when one pair alone gives it. */
static bool frames_declared(Import *im, int64_t signal, bool onesided, Frames *f) {
  Dims declared;
  uint32_t found = 0;
  if (!out_declared_dims(im, 0, &declared) || declared.rank != 4 || !sym_is_const(declared.d[1]) ||
      !sym_is_const(declared.d[2]) || signal > 1 << 20)
    return false;
  Frames result = {0};
  for (int64_t length = 1; length <= signal; length++) {
    if ((!f->length || length == f->length) &&
        (onesided ? length / 2 + 1 : length) == declared.d[2])
      found += steps_declared(signal, length, declared.d[1], f->step, &result);
  }
  if (found == 1)
    *f = result;
  return found == 1;
}

/* 0: known only while running. */
static int64_t frame_length(Import *im, ValueId signal, ValueId window) {
  int64_t length = 0;
  if (window)
    return ex_fixed(im, window, 0);
  if (!in(im, 3))
    return ex_fixed(im, signal, 1);
  return one_const(im, in(im, 3), &length) ? length : 0;
}

static bool read_frames(Import *im, ValueId signal, ValueId window, bool onesided, Frames *f) {
  SymTable *t = &im->g->syms;
  SymInt size = ex_dim(im, signal, 1);
  *f = (Frames){.length = frame_length(im, signal, window)};
  bool known = one_const(im, in(im, 1), &f->step) && f->length;
  if (!known && !(sym_is_const(size) && frames_declared(im, size, onesided, f)))
    import_fail(im, DIAG_INPUT_NOT_CONST,
                "frame_step or frame_length is known only while running, and the declared output "
                "shape does not settle them");
  int64_t longest = sym_upper(t, size);
  if (f->length < 1 || f->step < 1 || f->length > longest)
    return import_fail(im, DIAG_ATTR_VALUE, "frames of %lld at steps of %lld in a signal of %lld",
                       (long long)f->length, (long long)f->step, (long long)longest);
  f->count = sym_add(t, sym_floordiv(t, sym_sub(t, size, f->length), f->step), 1);
  f->count = sym_max(t, 0, f->count);
  int64_t most = sym_upper(t, f->count);
  if (most > FOURIER_MATRIX_MAX / f->length)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "%lld frames of %lld are too many", (long long)most,
                (long long)f->length);
  return import_ok(im);
}

/* The place in the signal of each element of each frame, one frame behind the other; order: of the
 * elements of a frame. */
static ValueId places(Import *im, const Frames *f, ValueId order) {
  SymInt total = sym_mul(&im->g->syms, f->count, f->length);
  ValueId begin = ex_times(im, ex_arange(im, f->count), (double)f->step),
          offset = order ? order : ex_arange(im, f->length);
  return EX_VIEW(im, ex_add(im, EX_VIEW(im, begin, f->count, 1), offset), total);
}

/* Frames [R, length * parts] times a window: a vector, or 0. */
static ValueId windowed(Import *im, ValueId rows, ValueId window, const Fourier *f) {
  if (!window)
    return rows;
  SymInt count = ex_dim(im, rows, 0);
  ValueId x = EX_VIEW(im, rows, count, f->in, f->in_parts), weights = EX_VIEW(im, window, f->in, 1);
  return EX_VIEW(im, ex_mul(im, x, weights), count, f->in * f->in_parts);
}

/* The matrix of the transform times the window. */
static ValueId windowed_matrix(Import *im, ValueId window, const Fourier *f) {
  SymInt rows = f->in * f->in_parts, columns = f->out * 2;
  ValueId product = matrix(im, f);
  if (!window)
    return product;
  ValueId weights = EX_VIEW(im, window, f->in, 1, 1);
  product = ex_mul(im, EX_VIEW(im, product, f->in, f->in_parts, columns), weights);
  return EX_VIEW(im, product, rows, columns);
}

/* Overlapping frames are picked by an index, in the order that the transform wants. */
static ValueId transform_frames(Import *im, ValueId signal, ValueId window, const Frames *frames,
                                const Fourier *f) {
  FourierSplit split;
  bool by_parts = fourier_split(f, &split);
  ValueId order = by_parts ? fourier_order(im, &split) : 0;
  ValueId picked = ex_index_select(im, signal, 1, places(im, frames, order));
  SymInt count = sym_mul(&im->g->syms, ex_dim(im, signal, 0), frames->count);
  ValueId rows = EX_VIEW(im, picked, count, f->in * f->in_parts);
  if (!by_parts)
    return ex_mm(im, rows, windowed_matrix(im, window, f));
  ValueId factors = window ? ex_index_select(im, window, 0, order) : 0;
  return fourier_by_parts(im, windowed(im, rows, factors, f), f, &split);
}

void translate_stft(Import *im) {
  ValueId signal = in_required(im, 0), window = in(im, 2);
  bool onesided = attr_flag(im, "onesided", true);
  Frames frames;
  if (ex_rank(im, signal) == 2) /* as torch.onnx writes it, and ONNX Runtime takes it */
    signal = ex_unsqueeze(im, signal, 2);
  if (ex_rank(im, signal) != 3)
    import_fail(im, DIAG_INPUT_RANK, "the signal has rank %u, not 3", ex_rank(im, signal));
  if (!import_ok(im) || !read_frames(im, signal, window, onesided, &frames))
    return;
  Fourier f = {.in = frames.length,
               .length = frames.length,
               .out = onesided ? frames.length / 2 + 1 : frames.length,
               .in_parts = (uint32_t)ex_fixed(im, signal, 2),
               .out_parts = 2};
  if (f.in_parts < 1 || f.in_parts > 2)
    import_fail(im, DIAG_SHAPE_MISMATCH, "the signal has %u parts", f.in_parts);
  if (!import_ok(im))
    return;
  ValueId wide = ex_cast(im, signal, DTYPE_F64), weights = 0;
  if (window)
    weights = ex_cast(im, window, DTYPE_F64);
  ValueId y = transform_frames(im, wide, weights, &frames, &f);
  y = EX_VIEW(im, y, ex_dim(im, signal, 0), frames.count, f.out, 2);
  out(im, 0, ex_cast(im, y, ex_dtype(im, signal)));
}
