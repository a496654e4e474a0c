/* Operators that look for elements: ArgMax, ArgMin, Hardmax, TopK, NonZero; and running sums and
 * products. */
#include "onnx/data_sizes.h"
#include "onnx/express.h"

/* --- ArgMax, ArgMin, Hardmax --- */

static ValueId arg_extreme(Import *im, OpId op, ValueId x, uint32_t axis, bool keep, bool last) {
  if (!last)
    return build(&im->b, op, A_VAL(x), A_INT(axis), A_BOOL(keep));
  SymInt end = sym_sub(&im->g->syms, ex_dim(im, x, axis), 1);
  ValueId index = build(&im->b, op, A_VAL(ex_flip(im, x, axis)), A_INT(axis), A_BOOL(keep));
  return ex_sub(im, ex_size(im, end), index);
}

void translate_arg_extreme(Import *im) {
  ValueId x = in_required(im, 0);
  uint32_t rank = shape_of(im, x).rank,
           axis = import_axis(im, attr_int(im, "axis", 0), rank ? rank : 1);
  bool keep = attr_flag(im, "keepdims", true), last = attr_flag(im, "select_last_index", false);
  out(im, 0, arg_extreme(im, im->op, x, axis, keep, last));
}

/* 1 at the first maximum of each row, 0 elsewhere. Before opset 13 a row is everything from axis
 * on. */
void translate_hardmax(Import *im) {
  ValueId x = in_required(im, 0);
  Dims s = shape_of(im, x);
  uint32_t axis = import_axis(im, attr_int(im, "axis", im->opset < 13 ? 1 : -1), s.rank);
  ValueId y = im->opset < 13 ? ex_rows(im, x, axis) : x;
  axis = im->opset < 13 ? 1 : axis;
  ValueId at = arg_extreme(im, OP_ARGMAX, y, axis, true, false),
          hit = ex_eq(
              im, ex_along_axis(im, ex_arange(im, ex_dim(im, y, axis)), axis, ex_rank(im, y)), at);
  out(im, 0, ex_view_as(im, ex_cast(im, hit, ex_dtype(im, x)), s));
}

/* --- TopK --- */

typedef struct TopK {
  ValueId x; /* the axis is the last one */
  Dims shape;
  SymInt k;
  bool largest;
} TopK;

/* Where the k best are, equal ones in any order. The kernel takes any of those that are equal to
 * the last of them, instead of the first; the others are right. */
static ValueId topk_positions(Import *im, const TopK *t, ValueId sorted) {
  uint32_t last = t->shape.rank - 1;
  SymInt n = t->shape.d[last];
  if (t->k == n)
    return sorted + 1; /* result 1, of a constant too */
  SymTable *syms = &im->g->syms;
  ValueId least = ex_slice(im, sorted, last, sym_sub(syms, t->k, 1), t->k);
  /* n - position for equal elements, 0 for others: the first are the largest. */
  ValueId number = ex_arange(im, n), rest = ex_sub(im, ex_size(im, n), number),
          zero = ex_int(im, 0), weight = ex_along_axis(im, rest, last, t->shape.rank),
          key = ex_where(im, ex_eq(im, t->x, least), weight, zero),
          largest = ex_topk(im, key, t->k, -1, true), first = ex_sub(im, ex_size(im, n), largest);
  ValueId better = ex_cast(im, ex_ne(im, sorted, least), DTYPE_I64);
  ValueId before = ex_sum(im, better, last, true), at = ex_sub(im, ex_arange(im, t->k), before);
  at = ex_at_least(im, at, 0);
  ValueId equals = ex_gather(im, first, last, at);
  return ex_where(im, ex_eq(im, sorted, least), equals, sorted + 1);
}

/* Sorted elements are at these positions, but those that are equal in any order. Sorting numbers
 * made of the run of equal elements and the position puts each run in order and leaves the runs
 * where they are. The time of two sorts, where ranks take the square of k. */
static ValueId topk_in_order(Import *im, const TopK *t, ValueId sorted, ValueId positions) {
  uint32_t last = t->shape.rank - 1;
  ValueId before = ex_at_least(im, ex_minus(im, ex_arange(im, t->k), 1), 0);
  ValueId begins = ex_ne(im, sorted, ex_index_select(im, sorted, last, before));
  ValueId run = build(&im->b, OP_CUMSUM, A_VAL(ex_cast(im, begins, DTYPE_I64)), A_INT(last));
  ValueId base = ex_mul(im, run, ex_size(im, t->shape.d[last]));
  return ex_sub(im, ex_topk(im, ex_add(im, base, positions), t->k, -1, false), base);
}

/* Floats as integers in the same order: their bits, counted down from the least number where
 * the sign is set, so that both zeros are 0. Any others as they are; all in i64. */
static ValueId in_order(Import *im, ValueId x) {
  if (!dtype_is_float(ex_dtype(im, x)))
    return ex_cast(im, x, DTYPE_I64);
  x = ex_cast(im, x, DTYPE_F32);
  ValueId bits =
      ex_cast(im, build(&im->b, OP_VIEW_COPY_DTYPE, A_VAL(x), A_DTYPE(DTYPE_I32)), DTYPE_I64);
  ValueId down = ex_sub(im, ex_int(im, INT32_MIN), bits);
  return ex_where(im, ex_with(im, OP_LT_TENSOR, bits, 0), down, bits);
}

/* Numbers of elements of at most 32 bits in the same order, and no two alike in a row: of equal
 * elements the earlier one is better. So the kernel leaves no choice. Rows of 2^31 elements fit. */
static ValueId topk_by_position(Import *im, const TopK *t) {
  uint32_t last = t->shape.rank - 1;
  ValueId n = ex_size(im, t->shape.d[last]), at = ex_arange(im, t->shape.d[last]);
  if (t->largest)
    at = ex_sub(im, n, at);
  ValueId keys = ex_mul(im, in_order(im, t->x), n);
  keys = ex_add(im, keys, ex_along_axis(im, at, last, t->shape.rank));
  ValueId best = ex_topk(im, keys, t->k, -1, t->largest);
  return best ? best + 1 : 0; /* result 1, of a constant too */
}

/* Bits are not seen as numbers where sizes vary. */
static bool has_positions(Import *im, const TopK *t) {
  DType dtype = ex_dtype(im, t->x);
  return dtype_size(dtype) <= 4 &&
         (!dtype_is_float(dtype) || type_is_static(value_type(im->g, t->x)));
}

/* Values and indices in order; indices of equal elements rise, which the kernel alone does not
 * keep. Where nobody reads the indices, one call of the kernel is left. */
static void topk_stable(Import *im, const TopK *t, ValueId *values, ValueId *indices) {
  uint32_t last = t->shape.rank - 1;
  if (t->k == 1) {
    *indices = arg_extreme(im, t->largest ? OP_ARGMAX : OP_ARGMIN, t->x, last, true, false);
    *values = ex_reduce_one(im, t->largest ? OP_AMAX : OP_AMIN, t->x, last, true);
    return;
  }
  *values = ex_topk(im, t->x, t->k, -1, t->largest);
  *indices = has_positions(im, t) ? topk_by_position(im, t)
                                  : topk_in_order(im, t, *values, topk_positions(im, t, *values));
}

/* Known, or read while running: the axis has no fewer elements, or the kernel fails. */
static bool topk_count(Import *im, uint32_t axis, SymInt size, SymInt *k) {
  *k = 0;
  if (im->opset < 10)
    *k = attr_int_required(im, "k");
  else if (!one_int(im, in(im, 1), k) && !out_declared_dim(im, 0, axis, k))
    *k = data_size(im, ex_scalar(im, in_required(im, 1)),
                   out_bound_below(im, 0, axis, sym_upper(&im->g->syms, size)));
  return import_ok(im);
}

/* The best ones of each row. Of none the formulas have no last element: then those of one are
 * computed, and none taken. */
static void topk_rows(Import *im, TopK *t, ValueId *values, ValueId *indices) {
  uint32_t last = t->shape.rank - 1;
  SymInt k = t->k;
  if (k == 0) {
    *values = ex_slice(im, t->x, last, 0, 0);
    *indices = ex_cast(im, *values, DTYPE_I64);
    return;
  }
  if (!sym_is_const(k))
    t->k = sym_max(&im->g->syms, 1, k);
  topk_stable(im, t, values, indices);
  if (t->k != k) {
    *values = ex_slice(im, *values, last, 0, k);
    *indices = ex_slice(im, *indices, last, 0, k);
  }
}

/* Unsigned numbers as signed ones in the same order: the sign bit inverted. Its own inverse. */
static ValueId flip_sign(Import *im, ValueId x, DType to) {
  bool was_unsigned = dtype_is_unsigned(ex_dtype(im, x));
  if (was_unsigned)
    x = build(&im->b, OP_VIEW_COPY_DTYPE, A_VAL(x), A_DTYPE(to));
  DType dtype = ex_dtype(im, x);
  int64_t least = (int64_t)((uint64_t)1 << (8 * dtype_size(dtype) - 1));
  x = ex_binary(im, OP_BITWISE_XOR_TENSOR, x, build_scalar_int(&im->b, dtype, least));
  return was_unsigned ? x : build(&im->b, OP_VIEW_COPY_DTYPE, A_VAL(x), A_DTYPE(to));
}

static DType signed_alias(DType dtype) {
  return dtype == DTYPE_U16 ? DTYPE_I16 : dtype == DTYPE_U32 ? DTYPE_I32 : DTYPE_I64;
}

void translate_top_k(Import *im) {
  ValueId x = in_required(im, 0);
  Dims s = shape_of(im, x);
  DType dtype = ex_dtype(im, x);
  bool alias = dtype_in(dtype, DTS_UNSIGNED);
  if (alias)
    x = flip_sign(im, x, signed_alias(dtype));
  uint32_t axis = import_axis(im, attr_int(im, "axis", -1), s.rank);
  TopK t = {.largest = attr_flag(im, "largest", true)};
  if (!topk_count(im, axis, axis < s.rank ? s.d[axis] : 0, &t.k))
    return;
  int64_t perm[MAX_RANK]; /* the axis and the last one exchanged: its own inverse */
  for (uint32_t i = 0; i < s.rank; i++)
    perm[i] = i == axis ? s.rank - 1 : i == s.rank - 1 ? axis : i;
  t.x = ex_permute(im, x, perm);
  t.shape = shape_of(im, t.x);
  if (s.rank == MAX_RANK)
    import_fail(im, DIAG_RANK_LIMIT, "TopK needs a rank below %d", MAX_RANK);
  if (!import_ok(im))
    return;
  ValueId values = 0, indices = 0;
  topk_rows(im, &t, &values, &indices);
  values = ex_permute(im, values, perm);
  out(im, 0, alias ? flip_sign(im, values, dtype) : values);
  out(im, 1, ex_permute(im, indices, perm));
}

/* --- NonZero --- */

void translate_non_zero(Import *im) {
  ValueId x = in_required(im, 0);
  uint32_t rank = ex_rank(im, x);
  ValueId rows = found_rows(im, rank ? x : EX_VIEW(im, x, 1)),
          y = rank > 1 ? EX_PERMUTE(im, rows, 1, 0) : EX_VIEW(im, rows, 1, ex_dim(im, rows, 0));
  out(im, 0, rank ? y : ex_slice(im, y, 0, 0, 0)); /* of a scalar no coordinates at all: [0, n] */
}

/* --- CumSum, CumProd --- */

/* x moved n places along axis, the freed places filled with ones. */
static ValueId shifted(Import *im, ValueId x, uint32_t axis, SymInt n, double fill) {
  Dims s = shape_of(im, x);
  SymInt rest = sym_sub(&im->g->syms, s.d[axis], n);
  ValueId kept = ex_slice(im, x, axis, 0, rest);
  s.d[axis] = n;
  return ex_cat2(im, ex_filled(im, ex_dtype(im, x), s, fill), kept, axis);
}

/* The same where n may be more than the size: element max(i - n, 0), or one where i < n. */
static ValueId shifted_within(Import *im, ValueId x, uint32_t axis, int64_t n) {
  ValueId at = ex_minus(im, ex_arange(im, ex_dim(im, x, axis)), (double)n);
  ValueId kept = ex_index_select(im, x, axis, ex_at_least(im, at, 0));
  ValueId is_kept = ex_along_axis(im, ex_with(im, OP_GE_TENSOR, at, 0), axis, ex_rank(im, x));
  return ex_where(im, is_kept, kept, ex_number(im, x, 1));
}

/* Products of windows of 1, 2, 4, … elements: there is no kernel for running products. */
static ValueId running_product(Import *im, ValueId x, uint32_t axis) {
  SymInt size = ex_dim(im, x, axis);
  int64_t most = sym_upper(&im->g->syms, size);
  for (int64_t width = 1; width < most && width <= INT32_MAX && import_ok(im); width *= 2)
    x = ex_mul(im, x,
               sym_is_const(size) ? shifted(im, x, axis, width, 1)
                                  : shifted_within(im, x, axis, width));
  return x;
}

/* The kernel adds in the element type: in f16 a sum soon stands still. */
static ValueId running(Import *im, ValueId x, uint32_t axis, bool sum) {
  bool exclusive = attr_flag(im, "exclusive", false), reverse = attr_flag(im, "reverse", false);
  if (ex_dim(im, x, axis) == 0)
    return x;
  ValueId y = ex_widen(im, reverse ? ex_flip(im, x, axis) : x);
  if (exclusive)
    y = shifted(im, y, axis, 1, sum ? 0 : 1);
  y = sum ? build(&im->b, OP_CUMSUM, A_VAL(y), A_INT(axis), A_DTYPE(ex_dtype(im, y)))
          : running_product(im, y, axis);
  y = ex_cast(im, y, ex_dtype(im, x));
  return reverse ? ex_flip(im, y, axis) : y;
}

/* An axis that arrives at run time: every axis is computed and the right result picked. */
static void cumulate(Import *im, bool sum) {
  ValueId x = in_required(im, 0), axis_input = in_required(im, 1);
  int64_t axis;
  uint32_t rank = ex_rank(im, x);
  if (one_const(im, axis_input, &axis)) {
    out(im, 0, running(im, x, import_axis(im, axis, rank), sum));
    return;
  }
  ValueId which = ex_scalar(im, ex_wrap_index(im, axis_input, rank)), y = running(im, x, 0, sum);
  for (uint32_t i = 1; i < rank && import_ok(im); i++) {
    ValueId along = running(im, x, i, sum);
    y = ex_where(im, ex_is(im, which, i), along, y);
  }
  out(im, 0, y);
}

void translate_cum_sum(Import *im) { cumulate(im, true); }
void translate_cum_prod(Import *im) { cumulate(im, false); }
