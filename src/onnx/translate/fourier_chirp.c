/* Transforms of a length N that varies, by the algorithm of Bluestein: as
 *   n k = (n^2 + k^2 - (k - n)^2) / 2,   X[k] = b[k] * sum over n of (x[n] b[n]) * conj(b[k - n])
 * with b[n] = w(2 N)^(n^2), w(n) the n-th root of unity. The sum is a convolution, which is a
 * product of transforms of a length that is fixed, at least 2 N - 1. */
#include <math.h>

#include "onnx/translate/fourier.h"

/* Times in ns, measured on x86-64 (ExecuTorch 1.4.1). */
enum {
  TIME_MATRIX = 100, /* of an entry of a matrix that is computed in each call */
  TIME_NUMBER = 40,  /* of a number of a transform by parts */
  TIME_CALLS = 60000 /* of the kernel calls */
};
#define TIME_MULTIPLY 0.04 /* by an entry of the matrix */
/* The matrices of its parts, 1024 complex numbers squared, are within FOURIER_MATRIX_MAX. */
enum { FIXED_MAX = 1 << 20 };

/* A power of two of at least 2 N - 1, so that the circular convolution does not wrap around; 0: too
 * long. */
static int64_t fixed_length(const SymTable *t, const Fourier *f) {
  int64_t most = sym_upper(t, f->length), length = 16;
  if (most < 1 || most > FIXED_MAX / 2)
    return 0;
  while (length < 2 * most - 1)
    length *= 2;
  return length;
}

bool fourier_chirps_pay(Import *im, const Fourier *f, SymInt rows) {
  const SymTable *t = &im->g->syms;
  double many = (double)sym_upper(t, rows), fixed = (double)fixed_length(t, f),
         entries = (double)sym_upper(t, f->in) * (double)sym_upper(t, f->out);
  if (fixed == 0 || (sym_is_const(f->in) && sym_is_const(f->length)))
    return false;
  return TIME_CALLS + (2 * many + 1) * fixed * TIME_NUMBER <
         entries * (TIME_MATRIX + many * f->in_parts * f->out_parts * TIME_MULTIPLY);
}

static Complex first_of(Import *im, Complex x, uint32_t dim, SymInt count) {
  x.real = ex_slice(im, x.real, dim, 0, count);
  x.imaginary = ex_slice(im, x.imaginary, dim, 0, count);
  return x;
}

static Complex parts_of(Import *im, ValueId x) {
  Complex parts = {.real = ex_select(im, x, 2, 0)};
  parts.imaginary = ex_select(im, x, 2, 1);
  return parts;
}

/* [rows, entries, 2] */
static ValueId joined(Import *im, Complex x) {
  ValueId real = ex_unsqueeze(im, x.real, 2), imaginary = ex_unsqueeze(im, x.imaginary, 2);
  return ex_cat2(im, real, imaginary, 2);
}

static ValueId numbers(Import *im, int64_t count, bool squares) {
  int64_t *n = ARENA_ARRAY(&im->scratch, int64_t, (size_t)count);
  for (int64_t i = 0; i < count; i++)
    n[i] = squares ? i * i : min_i64(i, count - i);
  return build_const(&im->b, DTYPE_I64, 1, &count, n);
}

/* b of all numbers below `count`, [count]. */
static Complex chirps(Import *im, const Fourier *f, int64_t count) {
  ValueId turn = ex_size(im, sym_mul(&im->g->syms, f->length, 2)),
          square = ex_floor_mod(im, numbers(im, count, true), turn),
          half = ex_cast(im, ex_size(im, f->length), DTYPE_F64);
  ValueId angle = ex_div(im, ex_times(im, ex_cast(im, square, DTYPE_F64), M_PI), half);
  ValueId cosine = ex_unary(im, OP_COS, angle), sine = ex_unary(im, OP_SIN, angle);
  if (!f->inverse)
    sine = ex_unary(im, OP_NEG, sine);
  return (Complex){cosine, sine};
}

/* conj(b[|j|]) for -N < j < N, negative j at the end (count + j), zeros between them; [1, count].
 */
static Complex convolved(Import *im, const Fourier *f, Complex b, int64_t count) {
  ValueId distance = numbers(im, count, false),
          met = ex_cast(im, ex_lt(im, distance, ex_size(im, f->length)), DTYPE_F64);
  ValueId real = ex_mul(im, ex_index_select(im, b.real, 0, distance), met),
          imaginary = ex_mul(im, ex_index_select(im, b.imaginary, 0, distance), met);
  imaginary = ex_unary(im, OP_NEG, imaginary);
  Complex y = {.real = EX_VIEW(im, real, 1, count)};
  y.imaginary = EX_VIEW(im, imaginary, 1, count);
  return y;
}

/* The transform of complex rows of the fixed length, or back. */
static Complex fixed_transform(Import *im, Complex x, int64_t length, bool inverse) {
  Fourier f = {.in = length,
               .length = length,
               .out = length,
               .inverse = inverse,
               .in_parts = 2,
               .out_parts = 2};
  FourierSplit split;
  SymInt rows = ex_dim(im, x.real, 0);
  fourier_factors(length, &split);
  ValueId flat = EX_VIEW(im, joined(im, x), rows, 2 * length);
  ValueId y = fourier_by_parts(im, fourier_arranged(im, flat, &f, &split), &f, &split);
  return parts_of(im, EX_VIEW(im, y, rows, length, 2));
}

/* Half a spectrum as a whole one, [rows, length, 2]: entry n > N / 2 is the conjugate of N - n. */
static ValueId whole_spectrum(Import *im, ValueId x, const Fourier *f) {
  SymTable *t = &im->g->syms;
  SymInt middle = sym_floordiv(t, f->length, 2),
         missing = sym_max(t, 0, sym_sub(t, sym_add(t, middle, 1), f->in));
  if (missing)
    x = ex_pad(im, x, 1, 0, missing);
  ValueId n = ex_arange(im, f->length), mirrored = ex_sub(im, ex_size(im, f->length), n),
          own = ex_le(im, n, ex_size(im, middle));
  x = ex_index_select(im, x, 1, ex_where(im, own, n, mirrored));
  ValueId one = ex_int(im, 1), minus = ex_int(im, -1);
  ValueId sign = ex_cast(im, ex_where(im, own, one, minus), DTYPE_F64);
  Complex parts = parts_of(im, x);
  parts.imaginary = ex_mul(im, parts.imaginary, sign);
  return joined(im, parts);
}

/* The entries that the transform reads, as complex numbers. */
static Complex entries(Import *im, ValueId rows, const Fourier *f) {
  SymInt count = ex_dim(im, rows, 0), read = sym_min(&im->g->syms, f->in, f->length);
  ValueId x = EX_VIEW(im, rows, count, f->in, f->in_parts);
  if (f->inverse && f->onesided)
    x = whole_spectrum(im, x, f);
  else if (read != f->in)
    x = ex_slice(im, x, 1, 0, read);
  if (f->in_parts == 2)
    return parts_of(im, x);
  ValueId real = ex_select(im, x, 2, 0);
  return (Complex){real, ex_times(im, real, 0)};
}

ValueId fourier_by_chirps(Import *im, ValueId rows, const Fourier *f) {
  SymTable *t = &im->g->syms;
  int64_t length = fixed_length(t, f);
  SymInt count = ex_dim(im, rows, 0);
  Complex b = chirps(im, f, length), x = entries(im, rows, f);
  SymInt read = ex_dim(im, x.real, 1), rest = sym_sub(t, length, read);
  x = complex_times(im, x, first_of(im, b, 0, read));
  x.real = ex_pad(im, x.real, 0, 0, rest);
  x.imaginary = ex_pad(im, x.imaginary, 0, 0, rest);
  Complex y = fixed_transform(im, x, length, false),
          other = fixed_transform(im, convolved(im, f, b, length), length, false);
  y = fixed_transform(im, complex_times(im, y, other), length, true);
  y = first_of(im, y, 1, f->out);
  y = complex_times(im, y, first_of(im, b, 0, f->out));
  ValueId result = f->out_parts == 2 ? joined(im, y) : y.real;
  if (f->inverse)
    result = ex_div(im, result, ex_cast(im, ex_size(im, f->length), DTYPE_F64));
  return EX_VIEW(im, result, count, sym_mul(t, f->out, f->out_parts));
}
