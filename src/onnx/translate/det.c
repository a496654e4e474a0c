/* Det: the closed form up to 3 x 3; larger matrices lose a row and a column a step by elimination
 * with the largest element of the first column as pivot. Inverse: Gauss-Jordan elimination. */
#include "onnx/express.h"

enum { SQUARE_MAX = 64 };

/* The number of rows and columns of the matrices x; 0 after a failure. */
static SymInt square_size(Import *im, ValueId x) {
  Dims s = shape_of(im, x);
  SymInt n = s.rank < 2 ? -1 : s.d[s.rank - 1];
  if (sym_is_const(n) && n >= 1 && n <= SQUARE_MAX && s.d[s.rank - 2] == n)
    return n;
  import_fail(im, DIAG_UNSUPPORTED_FEATURE,
              "Det and Inverse take square matrices of a size from 1 to %d known when lowering",
              SQUARE_MAX);
  return 0;
}

static ValueId as_batch(Import *im, ValueId x, SymInt n) {
  Dims s = shape_of(im, x);
  return EX_VIEW(im, x, shape_product(im, s.d, s.rank - 2), n, n);
}

/* Element (i, k) of each matrix [batch, n, n] as [batch]. */
static ValueId element(Import *im, ValueId m, uint32_t i, uint32_t k) {
  return ex_pick(im, ex_pick(im, m, 1, i), 1, k);
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
  return ex_gather(im, m, 1, ex_expand(im, index, s.d, 3));
}

/* A step of elimination: the row whose first element is the largest among the first `count` rows,
 * and the others in their order. */
typedef struct Pivot {
  ValueId at;        /* number of the row, [batch, 1, 1] */
  ValueId top, rest; /* [batch, 1, columns], [batch, rows - 1, columns] */
} Pivot;

static Pivot take_pivot(Import *im, ValueId m, SymInt count) {
  Dims s = shape_of(im, m);
  ValueId first = ex_slice(im, ex_slice(im, m, 2, 0, 1), 1, 0, count),
          at = ex_argmax(im, ex_unary(im, OP_ABS, first), 1, true),
          others = ex_along_axis(im, ex_arange(im, s.d[1] - 1), 1, 3),
          behind = ex_cast(im, ex_ge(im, others, at), DTYPE_I64);
  Pivot pivot = {.at = at, .top = take_rows(im, m, at)};
  pivot.rest = take_rows(im, m, ex_add(im, others, behind));
  return pivot;
}

/* rest - its first column * top, without that column. */
static ValueId subtracted(Import *im, ValueId rest, ValueId factor, ValueId top) {
  ValueId all = ex_slice(im, rest, 2, 1, ex_dim(im, rest, 2));
  return ex_sub(im, all, ex_mul(im, factor, top));
}

/* One step: *m becomes the rest [batch, n - 1, n - 1], *det takes the pivot with its sign. */
static void eliminate(Import *im, ValueId *m, ValueId *det) {
  DType dtype = ex_dtype(im, *m);
  SymInt n = ex_dim(im, *m, 1);
  Pivot p = take_pivot(im, *m, n);
  ValueId pivot = ex_slice(im, p.top, 2, 0, 1), zero = ex_is(im, pivot, 0),
          one = build_scalar(&im->b, dtype, 1), divisor = ex_where(im, zero, one, pivot),
          factor = ex_div(im, ex_slice(im, p.rest, 2, 0, 1), divisor);
  *m = subtracted(im, p.rest, factor, ex_slice(im, p.top, 2, 1, n));
  /* The pivot of an odd row changes the sign. */
  ValueId odd = ex_floor_mod(im, p.at, ex_size(im, 2));
  ValueId sign = ex_times(im, ex_cast(im, odd, dtype), -2);
  sign = ex_plus(im, sign, 1);
  ValueId share = ex_flat(im, ex_mul(im, pivot, sign));
  *det = *det ? ex_mul(im, *det, share) : share;
}

void translate_det(Import *im) {
  ValueId x = in_required(im, 0), det = 0;
  SymInt n = square_size(im, x);
  if (!import_ok(im))
    return;
  Dims to = shape_of(im, x);
  to.rank -= 2;
  ValueId m = as_batch(im, x, n);
  for (SymInt left = n; left > 3 && import_ok(im); left--)
    eliminate(im, &m, &det);
  ValueId last = small_det(im, m, n < 3 ? n : 3);
  out(im, 0, ex_view_as(im, det ? ex_mul(im, det, last) : last, to));
}

/* A step leads the first column to 1 in the pivot's row, 0 elsewhere, and leaves it out. The rows
 * that were pivots stand behind the others, in the order of their columns: what began as [m | 1]
 * has become the inverse when every column was led so. */
void translate_inverse(Import *im) {
  ValueId x = in_required(im, 0);
  SymInt n = square_size(im, x);
  if (!import_ok(im))
    return;
  ValueId m = as_batch(im, ex_widen(im, x), n), rows = ex_arange(im, n),
          one = ex_eq(im, EX_VIEW(im, rows, n, 1), rows);
  one = EX_VIEW(im, ex_cast(im, one, ex_dtype(im, m)), 1, n, n);
  m = ex_cat2(im, m, EX_EXPAND(im, one, ex_dim(im, m, 0), n, n), 2);
  for (SymInt left = n; left > 0 && import_ok(im); left--) {
    Pivot p = n > 1 ? take_pivot(im, m, left) : (Pivot){.top = m};
    ValueId top = ex_slice(im, p.top, 2, 1, n + left);
    top = ex_div(im, top, ex_slice(im, p.top, 2, 0, 1));
    m = n > 1 ? ex_cat2(im, subtracted(im, p.rest, ex_slice(im, p.rest, 2, 0, 1), top), top, 1)
              : top;
  }
  out(im, 0, ex_cast(im, ex_view_as(im, m, shape_of(im, x)), ex_dtype(im, x)));
}
