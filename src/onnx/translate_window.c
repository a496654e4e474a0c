/* Windows of signal processing and the matrix of mel filters. */
#include <math.h>

#include "onnx/compose.h"

static const double two_pi = 6.283185307179586476925;

static bool output_type(Import *im, DType *dtype) {
  *dtype = dtype_from_onnx((int32_t)attr_int(im, "output_datatype", 1));
  if (import_ok(im) && *dtype == DTYPE_NONE)
    import_fail(im, DIAG_ATTR_VALUE, "'output_datatype' is not a type that the runtime holds");
  return import_ok(im);
}

/* a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N); N is the size, less 1 when not periodic. The length
 * comes from a constant or from the declared output. */
static void window(Import *im, double a0, double a1, double a2) {
  const SymInt *size;
  uint32_t count;
  Shape s = {1, {0}};
  DType dtype;
  bool periodic = attr_int(im, "periodic", 1) != 0;
  if (!output_type(im, &dtype))
    return;
  if (in_ints(im, 0, &size, &count) && count == 1)
    s.d[0] = size[0];
  else if (import_ok(im) && (!out_declared_dims(im, 0, s.d, &s.rank) || s.rank != 1))
    fail_not_known(im, "the size of the window");
  if (!import_ok(im))
    return;
  ValueId n = build_cast(&im->b, counting(im, s.d[0]), DTYPE_F64);
  ValueId length = size_tensor(im, periodic ? s.d[0] : sym_sub(&im->g->syms, s.d[0], 1));
  length = import_ok(im) ? build_cast(&im->b, length, DTYPE_F64) : 0;
  ValueId angle = op2(im, OP_DIV_TENSOR, op2_number(im, OP_MUL_TENSOR, n, two_pi), length);
  ValueId y = op2_number(im, OP_MUL_TENSOR, op1(im, OP_COS, angle), -a1);
  y = op2_number(im, OP_ADD_TENSOR, y, a0);
  if (a2 != 0) {
    ValueId twice = op1(im, OP_COS, op2_number(im, OP_MUL_TENSOR, angle, 2));
    y = op2(im, OP_ADD_TENSOR, y, op2_number(im, OP_MUL_TENSOR, twice, a2));
  }
  if (import_ok(im))
    out(im, 0, build_cast(&im->b, y, dtype));
}

void translate_hann_window(Import *im) { window(im, 0.5, 0.5, 0); }
void translate_hamming_window(Import *im) { window(im, 25.0 / 46, 21.0 / 46, 0); }
void translate_blackman_window(Import *im) { window(im, 0.42, 0.5, 0.08); }

/* --- MelWeightMatrix --- */

/* Input i as a 0-d f64 tensor. */
static ValueId number(Import *im, uint32_t i) {
  Shape scalar = {0};
  ValueId v = view_as(im, in_required(im, i), &scalar);
  return import_ok(im) ? build_cast(&im->b, v, DTYPE_F64) : 0;
}

/* 2595 log10(1 + f / 700) */
static ValueId mel_of(Import *im, ValueId frequency) {
  ValueId scaled = op2_number(im, OP_MUL_TENSOR, frequency, 1 / 700.0);
  return op2_number(im, OP_MUL_TENSOR, op1(im, OP_LOG1P, scaled), 2595 / log(10));
}

/* The spectrogram bins at which the triangles begin, peak and end: bins + 2 whole numbers. */
static ValueId mel_edges(Import *im, SymInt bins) {
  SymInt edges = sym_add(&im->g->syms, bins, 2);
  ValueId length = number(im, 1), rate = number(im, 2);
  ValueId low = mel_of(im, number(im, 3)), high = mel_of(im, number(im, 4));
  ValueId at = counting(im, edges), span = op2(im, OP_SUB_TENSOR, high, low);
  if (!import_ok(im))
    return 0;
  ValueId step =
      op2(im, OP_DIV_TENSOR, span, build_cast(&im->b, size_tensor(im, edges), DTYPE_F64));
  ValueId mel =
      op2(im, OP_ADD_TENSOR, op2(im, OP_MUL_TENSOR, build_cast(&im->b, at, DTYPE_F64), step), low);
  ValueId hertz = op1(im, OP_EXPM1, op2_number(im, OP_MUL_TENSOR, mel, log(10) / 2595));
  hertz = op2_number(im, OP_MUL_TENSOR, hertz, 700);
  ValueId bin = op2(im, OP_MUL_TENSOR, hertz, op2_number(im, OP_ADD_TENSOR, length, 1));
  return op1(im, OP_FLOOR, op2(im, OP_DIV_TENSOR, bin, rate));
}

/* Rises from the left edge to 1 at the peak, falls to 0 at the right edge. A side of no width
 * leaves the 1 at the peak. */
static ValueId triangles(Import *im, ValueId edges, const Shape *s) {
  ValueId row = along_axis(im, counting(im, s->d[0]), 0, 2);
  row = import_ok(im) ? build_cast(&im->b, row, DTYPE_F64) : 0;
  ValueId corner[3];
  for (int i = 0; i < 3; i++)
    corner[i] = along_axis(im, cut(im, edges, 0, i, sym_add(&im->g->syms, s->d[1], i)), 1, 2);
  ValueId rise = op2(im, OP_DIV_TENSOR, op2(im, OP_SUB_TENSOR, row, corner[0]),
                     op2(im, OP_SUB_TENSOR, corner[1], corner[0])),
          fall = op2(im, OP_DIV_TENSOR, op2(im, OP_SUB_TENSOR, corner[2], row),
                     op2(im, OP_SUB_TENSOR, corner[2], corner[1]));
  ValueId rising = op2(im, OP_LOGICAL_AND, op2(im, OP_GE_TENSOR, row, corner[0]),
                       op2(im, OP_LT_TENSOR, row, corner[1])),
          falling = op2(im, OP_LOGICAL_AND, op2(im, OP_GT_TENSOR, row, corner[1]),
                        op2(im, OP_LT_TENSOR, row, corner[2])),
          peak = op2(im, OP_EQ_TENSOR, row, corner[1]);
  if (!import_ok(im))
    return 0;
  ValueId zero = build_scalar(&im->b, DTYPE_F64, 0), one = build_scalar(&im->b, DTYPE_F64, 1);
  return op_where(im, peak, one, op_where(im, rising, rise, op_where(im, falling, fall, zero)));
}

/* [length / 2 + 1, bins]; sizes from constants or from the declared output. */
void translate_mel_weight_matrix(Import *im) {
  const int64_t *bins, *length;
  uint32_t a, b;
  Shape s = {2, {0}};
  DType dtype;
  if (!output_type(im, &dtype))
    return;
  if (in_consts(im, 0, &bins, &a) && in_consts(im, 1, &length, &b) && a == 1 && b == 1)
    s = (Shape){2, {length[0] / 2 + 1, bins[0]}};
  else if (import_ok(im) && (!out_declared_dims(im, 0, s.d, &s.rank) || s.rank != 2))
    fail_not_known(im, "the number of mel bins");
  if (!import_ok(im))
    return;
  ValueId y = triangles(im, mel_edges(im, s.d[1]), &s);
  if (import_ok(im))
    out(im, 0, build_cast(&im->b, y, dtype));
}
