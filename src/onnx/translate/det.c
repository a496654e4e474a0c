/* Det: the closed form up to 3 x 3; larger matrices lose a row and a column a step by elimination
 * with the largest element of the first column as pivot. */
#include "onnx/express.h"

enum { DET_MAX = 64 };

/* Element (i, k) of each matrix [batch, n, n] as [batch]. */
static ValueId element(Import *im, ValueId m, uint32_t i, uint32_t k) {
  ValueId row = ex_pick(im, m, 1, i);
  return ex_pick(im, row, 1, k);
}

/* m[0][a] m[1][b] - m[0][b] m[1][a], of rows r and r + 1. */
static ValueId minor2(Import *im, ValueId m, uint32_t r, uint32_t a, uint32_t b) {
  ValueId below_b = element(im, m, r + 1, b), x = ex_mul(im, element(im, m, r, a), below_b),
          below_a = element(im, m, r + 1, a), y = ex_mul(im, element(im, m, r, b), below_a);
  return ex_sub(im, x, y);
}

static ValueId small_det(Import *im, ValueId m, SymInt n) {
  if (n == 1)
    return element(im, m, 0, 0);
  if (n == 2)
    return minor2(im, m, 0, 0, 1);
  static const uint32_t others[3][2] = {{1, 2}, {0, 2}, {0, 1}};
  ValueId term[3];
  for (uint32_t k = 0; k < 3; k++) {
    ValueId minor = minor2(im, m, 1, others[k][0], others[k][1]);
    term[k] = ex_mul(im, element(im, m, 0, k), minor);
  }
  return ex_add(im, ex_sub(im, term[0], term[1]), term[2]);
}

/* Rows of m by an index [batch, rows, 1]. */
static ValueId take_rows(Import *im, ValueId m, ValueId index) {
  Dims s = shape_of(im, m), at = shape_of(im, index);
  s.d[1] = at.d[1];
  index = ex_expand(im, index, s.d, 3);
  return ex_gather(im, m, 1, index);
}

/* One step: *m becomes the rest [batch, n - 1, n - 1], *det takes the pivot with its sign. */
static void eliminate(Import *im, ValueId *m, ValueId *det) {
  Dims s = shape_of(im, *m), vector = {1, {s.d[0]}};
  DType dtype = ex_dtype(im, *m);
  SymInt n = s.d[1];
  ValueId column = ex_slice(im, *m, 2, 0, 1), sizes = ex_unary(im, OP_ABS, column);
  ValueId at = ex_argmax(im, sizes, 1, true);
  ValueId top = take_rows(im, *m, at), others = ex_along_axis(im, ex_arange(im, n - 1), 1, 3);
  ValueId below = ex_ge(im, others, at);
  others = ex_add(im, others, ex_cast(im, below, DTYPE_I64));
  ValueId rest = take_rows(im, *m, others), pivot = ex_slice(im, top, 2, 0, 1);
  ValueId zero = ex_is(im, pivot, 0);
  ValueId one = build_scalar(&im->b, dtype, 1), divisor = ex_where(im, zero, one, pivot);
  ValueId factor = ex_div(im, ex_slice(im, rest, 2, 0, 1), divisor);
  ValueId eliminated = ex_mul(im, factor, ex_slice(im, top, 2, 1, n));
  *m = ex_sub(im, ex_slice(im, rest, 2, 1, n), eliminated);
  /* The pivot of an odd row changes the sign. */
  ValueId odd = ex_floor_mod(im, at, ex_size(im, 2));
  ValueId sign = ex_times(im, ex_cast(im, odd, dtype), -2);
  sign = ex_plus(im, sign, 1);
  ValueId share = ex_view_as(im, ex_mul(im, pivot, sign), &vector);
  *det = *det ? ex_mul(im, *det, share) : share;
}

void translate_det(Import *im) {
  ValueId x = in_required(im, 0), det = 0;
  Dims s = shape_of(im, x), to = s;
  SymInt n = s.rank < 2 ? -1 : s.d[s.rank - 1];
  if (!sym_is_const(n) || n < 1 || n > DET_MAX || s.d[s.rank - 2] != n) {
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "Det takes square matrices of a size from 1 to %d known when lowering", DET_MAX);
    return;
  }
  to.rank -= 2;
  Dims batch = {3, {shape_product(im, s.d, to.rank), n, n}};
  ValueId m = ex_view_as(im, x, &batch);
  for (SymInt left = n; left > 3 && import_ok(im); left--)
    eliminate(im, &m, &det);
  ValueId last = small_det(im, m, n < 3 ? n : 3);
  out(im, 0, ex_view_as(im, det ? ex_mul(im, det, last) : last, &to));
}
