/* Windows of signal processing and the matrix of mel filters. */
#include <math.h>

#include "onnx/data_sizes.h"

static const double two_pi = 6.283185307179586476925;

/* a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N); N is the size, less 1 when not periodic. The length
 * comes from a constant or from the declared output, or is read while running. */
static void window(Import *im, double a0, double a1, double a2) {
  Dims s = {1, {0}};
  DType dtype = attr_dtype(im, "output_datatype", DTYPE_F32);
  bool periodic = attr_flag(im, "periodic", true);
  ValueId size = in_required(im, 0);
  if (!one_int(im, size, &s.d[0]) && (!out_declared_dims(im, 0, &s) || s.rank != 1) &&
      !data_sizes(im, EX_VIEW(im, size, 1), 0, "the size of the window", &s))
    fail_not_known(im, 0, "the size of the window");
  ValueId n = ex_cast(im, ex_arange(im, s.d[0]), DTYPE_F64);
  ValueId length = ex_size(im, periodic ? s.d[0] : sym_sub(&im->g->syms, s.d[0], 1));
  length = ex_cast(im, length, DTYPE_F64);
  ValueId angle = ex_div(im, ex_times(im, n, two_pi), length);
  ValueId y = ex_plus(im, ex_times(im, ex_unary(im, OP_COS, angle), -a1), a0);
  if (a2 != 0)
    y = ex_add(im, y, ex_times(im, ex_unary(im, OP_COS, ex_times(im, angle, 2)), a2));
  out(im, 0, ex_cast(im, y, dtype));
}

void translate_hann_window(Import *im) { window(im, 0.5, 0.5, 0); }
void translate_hamming_window(Import *im) { window(im, 25.0 / 46, 21.0 / 46, 0); }
void translate_blackman_window(Import *im) { window(im, 0.42, 0.5, 0.08); }

/* --- MelWeightMatrix --- */

/* Input i as a 0-d f64 tensor. */
static ValueId number(Import *im, uint32_t i) {
  return ex_cast(im, ex_scalar(im, in_required(im, i)), DTYPE_F64);
}

/* 2595 log10(1 + f / 700) */
static ValueId mel_of(Import *im, ValueId frequency) {
  ValueId scaled = ex_times(im, frequency, 1 / 700.0);
  return ex_times(im, ex_unary(im, OP_LOG1P, scaled), 2595 / log(10));
}

/* The spectrogram bins at which the triangles begin, peak and end: bins + 2 integers. */
static ValueId mel_edges(Import *im, SymInt bins) {
  SymInt edges = sym_add(&im->g->syms, bins, 2);
  ValueId length = number(im, 1), rate = number(im, 2);
  ValueId low = mel_of(im, number(im, 3)), high = mel_of(im, number(im, 4));
  ValueId at = ex_arange(im, edges), span = ex_sub(im, high, low);
  ValueId step = ex_div(im, span, ex_cast(im, ex_size(im, edges), DTYPE_F64));
  ValueId mel = ex_add(im, ex_mul(im, ex_cast(im, at, DTYPE_F64), step), low);
  ValueId hertz = ex_unary(im, OP_EXPM1, ex_times(im, mel, log(10) / 2595));
  hertz = ex_times(im, hertz, 700);
  ValueId bin = ex_mul(im, hertz, ex_plus(im, length, 1));
  return ex_unary(im, OP_FLOOR, ex_div(im, bin, rate));
}

/* Rises from the left edge to 1 at the peak, falls to 0 at the right edge. A side of no width
 * leaves the 1 at the peak. */
static ValueId triangles(Import *im, ValueId edges, const Dims *s) {
  ValueId row = ex_along_axis(im, ex_arange(im, s->d[0]), 0, 2);
  row = ex_cast(im, row, DTYPE_F64);
  ValueId corner[3];
  for (int i = 0; i < 3; i++)
    corner[i] =
        ex_along_axis(im, ex_slice(im, edges, 0, i, sym_add(&im->g->syms, s->d[1], i)), 1, 2);
  ValueId left = ex_sub(im, corner[1], corner[0]),
          rise = ex_div(im, ex_sub(im, row, corner[0]), left),
          right = ex_sub(im, corner[2], corner[1]),
          fall = ex_div(im, ex_sub(im, corner[2], row), right);
  ValueId below_peak = ex_lt(im, row, corner[1]),
          rising = ex_and(im, ex_ge(im, row, corner[0]), below_peak),
          below_end = ex_lt(im, row, corner[2]),
          falling = ex_and(im, ex_gt(im, row, corner[1]), below_end),
          peak = ex_eq(im, row, corner[1]);
  ValueId zero = build_scalar(&im->b, DTYPE_F64, 0), one = build_scalar(&im->b, DTYPE_F64, 1);
  return ex_where(im, peak, one, ex_where(im, rising, rise, ex_where(im, falling, fall, zero)));
}

/* [length / 2 + 1, bins]; sizes from constants or from the declared output. */
void translate_mel_weight_matrix(Import *im) {
  int64_t bins, length;
  Dims s = {2, {0}};
  DType dtype = attr_dtype(im, "output_datatype", DTYPE_F32);
  if (one_const(im, in(im, 0), &bins) && one_const(im, in(im, 1), &length))
    s = (Dims){2, {length / 2 + 1, bins}};
  else if (!out_declared_dims(im, 0, &s) || s.rank != 2)
    fail_not_known(im, 0, "the number of mel bins");
  ValueId y = triangles(im, mel_edges(im, s.d[1]), &s);
  out(im, 0, ex_cast(im, y, dtype));
}
