/* See fourier.h. Entry second * a + b of a row, and c + first * d of its transform, where w(n) is
 * the n-th root of unity:
 *   inner[b, c] = sum over a of w(first)^(a c) * x[a, b]
 *   X[c, d]     = sum over b of w(second)^(b d) * w(length)^(b c) * inner[b, c]
 * Both sums are products of rows with a matrix. */
#include <math.h>

#include "onnx/translate/fourier.h"

/* A number between the products costs as much as so many of their multiplications: 30 ns for the
 * factors and what puts it into its place, which are kernels for each element (x86-64, ExecuTorch
 * 1.4.1). */
enum { NUMBER_COST = 768 };

/* The outer sums give only those of k that are wanted. */
static int64_t outer_columns(const Fourier *f, const FourierSplit *s) {
  return (f->out + s->first - 1) / s->first;
}

void fourier_factors(int64_t length, FourierSplit *split) {
  int64_t first = 1;
  for (int64_t i = 2; i * i <= length; i++)
    if (length % i == 0)
      first = i;
  *split = (FourierSplit){first, length / first};
}

bool fourier_split(const Fourier *f, FourierSplit *split) {
  if (!sym_is_const(f->in) || !sym_is_const(f->length) || f->length > INT32_MAX || f->length < 4)
    return false;
  fourier_factors(f->length, split);
  int64_t columns = outer_columns(f, split) * f->out_parts, first = split->first;
  if (first == 1 || split->second > FOURIER_MATRIX_MAX / 2 / columns)
    return false;
  double whole = (double)f->in * f->in_parts * (double)f->out * f->out_parts,
         inner = (double)f->length * f->in_parts * 2 * (double)first,
         outer = (double)first * 2 * (double)split->second * (double)columns;
  return inner + outer + NUMBER_COST * (double)f->length < whole;
}

ValueId fourier_order(Import *im, const FourierSplit *split) {
  int64_t count = split->first * split->second;
  int64_t *places = ARENA_ARRAY(&im->scratch, int64_t, (size_t)count);
  for (int64_t i = 0; i < count; i++)
    places[i] = i % split->first * split->second + i / split->first;
  return build_const(&im->b, DTYPE_I64, 1, &count, places);
}

/* The real (part 0) or imaginary part of w(length)^(a b), of the inverse root if `inverse`. */
static double root(int64_t a, int64_t b, int64_t length, bool inverse, uint32_t part) {
  double angle = 2 * M_PI * (double)(a * b % length) / (double)length;
  return part == 0 ? cos(angle) : inverse ? sin(angle) : -sin(angle);
}

/* What part p of a number adds to part q of its product with a root. */
static double times_root(uint32_t p, uint32_t q, int64_t a, int64_t b, int64_t length,
                         bool inverse) {
  double factor = root(a, b, length, inverse, p != q);
  return p == 1 && q == 0 ? -factor : factor;
}

/* [first * in_parts, first]: the inner sums, of which q is the part. */
static ValueId inner_matrix(Import *im, const Fourier *f, const FourierSplit *s, uint32_t q) {
  int64_t rows = s->first * f->in_parts, columns = s->first;
  double *m = ARENA_ARRAY(&im->scratch, double, (size_t)(rows * columns));
  for (int64_t i = 0; i < rows; i++)
    for (int64_t c = 0; c < columns; c++)
      m[i * columns + c] =
          times_root((uint32_t)(i % f->in_parts), q, i / f->in_parts, c, s->first, f->inverse);
  return build_const(&im->b, DTYPE_F64, 2, (int64_t[]){rows, columns}, m);
}

/* [2 * second, columns * out_parts]: the outer sums of real parts, then of imaginary ones. */
static ValueId outer_matrix(Import *im, const Fourier *f, const FourierSplit *s) {
  int64_t rows = 2 * s->second, columns = outer_columns(f, s) * f->out_parts;
  double *m = ARENA_ARRAY(&im->scratch, double, (size_t)(rows * columns)),
         scale = f->inverse ? 1 / (double)f->length : 1;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < columns; k++)
      m[i * columns + k] =
          scale * times_root(i >= s->second, (uint32_t)(k % f->out_parts), i % s->second,
                             k / f->out_parts, s->second, f->inverse);
  return build_const(&im->b, DTYPE_F64, 2, (int64_t[]){rows, columns}, m);
}

/* [second, first]: part q of the factors between the sums. */
static ValueId factors(Import *im, const Fourier *f, const FourierSplit *s, uint32_t q) {
  double *m = ARENA_ARRAY(&im->scratch, double, (size_t)f->length);
  for (int64_t b = 0; b < s->second; b++)
    for (int64_t c = 0; c < s->first; c++)
      m[b * s->first + c] = root(b, c, f->length, f->inverse, q);
  return build_const(&im->b, DTYPE_F64, 2, (int64_t[]){s->second, s->first}, m);
}

Complex complex_times(Import *im, Complex a, Complex b) {
  ValueId p = ex_mul(im, a.real, b.real), q = ex_mul(im, a.imaginary, b.imaginary),
          r = ex_mul(im, a.real, b.imaginary), s = ex_mul(im, a.imaginary, b.real);
  Complex y = {.real = ex_sub(im, p, q)};
  y.imaginary = ex_add(im, r, s);
  return y;
}

ValueId fourier_by_parts(Import *im, ValueId rows, const Fourier *f, const FourierSplit *s) {
  SymTable *t = &im->g->syms;
  SymInt count = ex_dim(im, rows, 0);
  int64_t columns = outer_columns(f, s);
  ValueId inner = EX_VIEW(im, rows, sym_mul(t, count, s->second), s->first * f->in_parts), sums[2];
  for (uint32_t q = 0; q < 2; q++)
    sums[q] = EX_VIEW(im, ex_mm(im, inner, inner_matrix(im, f, s, q)), count, s->second, s->first);
  Complex between = {.real = factors(im, f, s, 0)};
  between.imaginary = factors(im, f, s, 1);
  Complex x = complex_times(im, (Complex){sums[0], sums[1]}, between);
  ValueId both = EX_PERMUTE(im, ex_cat2(im, x.real, x.imaginary, 1), 0, 2, 1);
  both = EX_VIEW(im, both, sym_mul(t, count, s->first), 2 * s->second);
  ValueId y =
      EX_VIEW(im, ex_mm(im, both, outer_matrix(im, f, s)), count, s->first, columns, f->out_parts);
  y = EX_VIEW(im, EX_PERMUTE(im, y, 0, 2, 1, 3), count, columns * s->first * f->out_parts);
  return ex_slice(im, y, 1, 0, f->out * f->out_parts);
}

/* The other half of spectra [R, in, 2], of which there is the half that a real transform has. */
static ValueId mirrored(Import *im, ValueId x, int64_t length) {
  double signs[] = {1, -1};
  ValueId own = ex_slice(im, x, 1, 1, (length + 1) / 2),
          conjugate = build_const(&im->b, DTYPE_F64, 1, (int64_t[]){2}, signs);
  return ex_mul(im, ex_flip(im, own, 1), conjugate);
}

ValueId fourier_arranged(Import *im, ValueId rows, const Fourier *f, const FourierSplit *s) {
  SymInt count = ex_dim(im, rows, 0);
  bool half = f->inverse && f->onesided;
  int64_t wanted = half ? f->length / 2 + 1 : f->length;
  ValueId x = EX_VIEW(im, rows, count, f->in, f->in_parts);
  if (f->in > wanted)
    x = ex_slice(im, x, 1, 0, wanted);
  else if (f->in < wanted)
    x = ex_pad(im, x, 1, 0, wanted - f->in);
  if (half && f->length > 2)
    x = ex_cat2(im, x, mirrored(im, x, f->length), 1);
  x = EX_VIEW(im, x, count, s->first, s->second, f->in_parts);
  x = EX_PERMUTE(im, x, 0, 2, 1, 3);
  return EX_VIEW(im, x, count, f->length * f->in_parts);
}
