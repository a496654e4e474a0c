/* Reduce*: sums, means, extremes, products and what is composed of them.
 *
 * Axes that arrive at run time are settled by the declared shape of output 0. When several sets of
 * axes give that shape, all are computed and the right one is picked by comparing the axes.
 *
 * Empty reductions are constants. Kernels of extremes refuse them, so that dims which may be empty
 * while running get a row of that constant; means of nothing are 0, as ONNX Runtime has them. */
#include <math.h>

#include "onnx/express.h"
#include "support/number.h"

typedef struct ReduceKind {
  OpId op;     /* of the kernel; OP_EXP: log(sum(exp(x))) */
  OpId before; /* of the elements: OP_ABS, OP_MUL_TENSOR for their squares, or OP_NONE */
  OpId after;  /* of the result, or OP_NONE */
} ReduceKind;

typedef struct Reduction {
  ReduceKind kind;
  ValueId x;
  Dims shape;
  DType dtype;
  bool keep;
} Reduction;

static Dims reduced_shape(const Reduction *r, uint32_t set) {
  Dims s = {0};
  for (uint32_t i = 0; i < r->shape.rank; i++) {
    if (!(set >> i & 1))
      s.d[s.rank++] = r->shape.d[i];
    else if (r->keep)
      s.d[s.rank++] = 1;
  }
  return s;
}

/* The greatest or least number of all: what an extreme of no elements is. */
static ValueId extreme_of_none(Import *im, OpId op, DType dtype) {
  bool most = op == OP_AMIN;
  if (dtype_is_float(dtype))
    return build_scalar(&im->b, dtype, most ? INFINITY : -INFINITY);
  double edge = dtype == DTYPE_BOOL ? most : most ? int_most(dtype) : int_least(dtype);
  int64_t number = edge >= 0x1p64 ? -1 : int_clamped(edge, INT64_MIN, INT64_MAX);
  return build_scalar_int(&im->b, dtype, number);
}

static bool may_be_empty(const Import *im, const Dims *s, uint32_t set) {
  bool may = false;
  for (uint32_t i = 0; i < s->rank; i++)
    may |= (set >> i & 1) && sym_lower(&im->g->syms, s->d[i]) == 0;
  return may;
}

/* x with a row of the extreme of nothing in each dim of the set that may be empty. */
static ValueId never_empty(Import *im, OpId op, ValueId x, uint32_t set) {
  Dims s = shape_of(im, x);
  for (uint32_t i = 0; i < s.rank && import_ok(im); i++) {
    if (!may_be_empty(im, &s, set & (uint32_t)1 << i))
      continue;
    Dims row = shape_of(im, x);
    row.d[i] = 1;
    ValueId none = extreme_of_none(im, op, ex_dtype(im, x));
    x = ex_cat2(im, x, ex_expand(im, none, row.d, row.rank), i);
  }
  return x;
}

/* One kernel over the axes of the set; x itself when there is nothing to reduce. */
static ValueId over(Import *im, OpId op, ValueId x, uint32_t set, bool keep) {
  int64_t axes[MAX_RANK];
  uint32_t count = 0;
  for (uint32_t i = 0; i < MAX_RANK; i++)
    if (set >> i & 1)
      axes[count++] = i;
  if (!import_ok(im) || count == 0)
    return x;
  if (op == OP_AMAX || op == OP_AMIN)
    x = never_empty(im, op, x, set);
  return ex_reduce(im, op, x, axes, count, keep);
}

static ValueId product(Import *im, const Reduction *r, uint32_t set) {
  ValueId y = r->x;
  for (int i = (int)r->shape.rank - 1; i >= 0 && import_ok(im); i--)
    if (set >> i & 1)
      y = build(&im->b, OP_PROD_DIM_INT, A_VAL(y), A_INT(i), A_BOOL(r->keep), A_DTYPE(r->dtype));
  return y;
}

/* The sum over the count where there is no kernel: of integers, truncated, and where the count may
 * be 0. */
static ValueId mean(Import *im, const Reduction *r, uint32_t set) {
  bool floats = dtype_is_float(r->dtype);
  if (floats && !may_be_empty(im, &r->shape, set))
    return over(im, OP_MEAN_DIM, r->x, set, r->keep);
  SymInt count = 1;
  for (uint32_t i = 0; i < r->shape.rank; i++)
    if (set >> i & 1)
      count = sym_mul(&im->g->syms, count, r->shape.d[i]);
  ValueId sum = over(im, OP_SUM_DIM_INTLIST, ex_widen(im, r->x), set, r->keep),
          divisor = ex_size(im, sym_max(&im->g->syms, count, 1));
  divisor = ex_cast(im, divisor, ex_dtype(im, sum));
  if (floats)
    return ex_div(im, sum, divisor);
  return build(&im->b, OP_DIV_TENSOR_MODE, A_VAL(sum), A_VAL(divisor), A_STR("trunc"));
}

/* max + log(sum(exp(x - max))); an infinite maximum is left out, since inf - inf is NaN. */
static ValueId log_sum_exp(Import *im, const Reduction *r, uint32_t set) {
  DType work = dtype_is_float(r->dtype) ? r->dtype : DTYPE_F32;
  ValueId x = ex_cast(im, r->x, work), peak = over(im, OP_AMAX, x, set, true);
  ValueId infinite = ex_unary(im, OP_ISINF, peak);
  ValueId zero = build_scalar(&im->b, work, 0);
  ValueId shift = ex_where(im, infinite, zero, peak);
  ValueId e = ex_unary(im, OP_EXP, ex_sub(im, x, shift));
  ValueId y = ex_unary(im, OP_LOG, over(im, OP_SUM_DIM_INTLIST, e, set, r->keep));
  y = ex_add(im, y, ex_view_as(im, shift, reduced_shape(r, set)));
  return ex_cast(im, y, r->dtype);
}

/* What a reduction of no elements gives. */
static ValueId empty_value(Import *im, const Reduction *r) {
  OpId op = r->kind.op == OP_EXP || r->kind.after == OP_LOG ? OP_AMAX : r->kind.op;
  if (op == OP_AMAX || op == OP_AMIN)
    return extreme_of_none(im, op, r->dtype);
  return build_scalar(&im->b, r->dtype, op == OP_PROD_DIM_INT);
}

static bool is_empty(const Reduction *r, uint32_t set) {
  for (uint32_t i = 0; i < r->shape.rank; i++)
    if ((set >> i & 1) && r->shape.d[i] == 0)
      return true;
  return false;
}

static ValueId reduce_set(Import *im, const Reduction *r, uint32_t set) {
  if (is_empty(r, set)) {
    Dims s = reduced_shape(r, set);
    return ex_expand(im, empty_value(im, r), s.d, s.rank);
  }
  if (r->kind.op == OP_MEAN_DIM)
    return mean(im, r, set);
  if (r->kind.op == OP_PROD_DIM_INT)
    return product(im, r, set);
  if (r->kind.op == OP_EXP)
    return log_sum_exp(im, r, set);
  ValueId x = r->x;
  if (r->kind.before != OP_NONE)
    x = r->kind.before == OP_ABS ? ex_unary(im, OP_ABS, x) : ex_mul(im, x, x);
  ValueId y = over(im, r->kind.op, x, set, r->keep);
  /* log and sqrt give floats; integer tensors get their type back. */
  return r->kind.after == OP_NONE ? y : ex_cast(im, ex_unary(im, r->kind.after, y), r->dtype);
}

/* --- axes at run time --- */

/* Can reducing the set give the declared shape? */
static bool set_fits(const Reduction *r, uint32_t set, const Dims *declared) {
  Dims s = reduced_shape(r, set);
  return dims_same(s.d, s.rank, declared->d, declared->rank);
}

/* Sum of 2^axis over the run-time axes: equal to the set when the axes are those of the set. */
static ValueId axes_mask(Import *im, ValueId axes, uint32_t rank) {
  int64_t powers[MAX_RANK];
  for (uint32_t i = 0; i < rank; i++)
    powers[i] = (int64_t)1 << i;
  ValueId index = ex_wrap_index(im, axes, rank),
          bits = ex_index_select(im, build_const_ints(&im->b, powers, rank), 0, index);
  return ex_sum(im, bits, 0, false);
}

static ValueId reduce_run(Import *im, const Reduction *r, const Axes *axes) {
  Dims declared;
  if (!out_declared_dims(im, 0, &declared))
    return fail_not_known(im, 1, "the list of axes");
  ValueId result = 0, mask = 0;
  for (uint32_t set = 0; set < (uint32_t)1 << r->shape.rank && import_ok(im); set++) {
    if ((uint32_t)__builtin_popcount(set) != axes->count || !set_fits(r, set, &declared))
      continue;
    ValueId candidate = reduce_set(im, r, set);
    if (!result) {
      result = candidate;
      continue;
    }
    mask = mask ? mask : axes_mask(im, axes->run, r->shape.rank);
    result = ex_where(im, ex_is(im, mask, set), candidate, result);
  }
  if (!result)
    import_fail(im, DIAG_DIM_CONTRADICTION,
                "no %u axes of the input can be reduced to the declared shape of output 0",
                axes->count);
  return result;
}

/* Kernels add in f32 already; what lies between a sum and another step must not be a half either.
 */
static bool is_composed(ReduceKind kind) {
  return kind.op == OP_PROD_DIM_INT || kind.op == OP_EXP || kind.before == OP_MUL_TENSOR ||
         kind.after != OP_NONE;
}

static void reduce(Import *im, int64_t input_since, OpId op, OpId before, OpId after) {
  ReduceKind kind = {op, before, after};
  ValueId x = in_required(im, 0);
  DType dtype = ex_dtype(im, x);
  x = is_composed(kind) ? ex_widen(im, x) : x;
  Reduction r = {.kind = kind, .x = x, .shape = shape_of(im, x)};
  Axes axes;
  r.keep = attr_flag(im, "keepdims", true);
  if (!axes_read(im, input_since, r.shape.rank, &axes))
    return;
  r.dtype = ex_dtype(im, x);
  bool noop = im->opset >= input_since && attr_flag(im, "noop_with_empty_axes", false);
  uint32_t all = ((uint32_t)1 << r.shape.rank) - 1, set = axes.count ? axes.set : noop ? 0 : all;
  ValueId y = axes.run && !axes.known ? reduce_run(im, &r, &axes) : reduce_set(im, &r, set);
  out(im, 0, ex_cast(im, y, dtype));
}

void translate_reduce_sum(Import *im) { reduce(im, 13, OP_SUM_DIM_INTLIST, OP_NONE, OP_NONE); }
/* Mean, max, min, prod; log_sum_exp by OP_EXP. */
void translate_reduce(Import *im) { reduce(im, 18, im->op, OP_NONE, OP_NONE); }
void translate_reduce_l1(Import *im) { reduce(im, 18, OP_SUM_DIM_INTLIST, OP_ABS, OP_NONE); }
void translate_reduce_l2(Import *im) { reduce(im, 18, OP_SUM_DIM_INTLIST, OP_MUL_TENSOR, OP_SQRT); }
void translate_reduce_log_sum(Import *im) { reduce(im, 18, OP_SUM_DIM_INTLIST, OP_NONE, OP_LOG); }
void translate_reduce_sum_square(Import *im) {
  reduce(im, 18, OP_SUM_DIM_INTLIST, OP_MUL_TENSOR, OP_NONE);
}
