/* See data_range.h. One rule an op, from operands to the result; values that were looked at are
 * remembered, and only so many are. */
#include "onnx/data_range.h"

#include <math.h>

#include "ops/shape_util.h"
#include "support/keymap.h"

enum { DEPTH_MAX = 64, VALUES_MAX = 1024, ELEMENTS_MAX = 4096 };

typedef struct Ranges {
  Import *im;
  KeyMap seen; /* position in known, from 1 */
  DataRange known[VALUES_MAX];
  uint32_t count, depth;
} Ranges;

typedef DataRange RangeFn(Ranges *r, NodeId n);

static DataRange range_of(Ranges *r, ValueId v);

static const DataRange unknown = {-INFINITY, INFINITY};

static DataRange operand(Ranges *r, NodeId n, uint32_t i) {
  ValueId v = node_absent(r->im->g, n, i) ? 0 : node_value(r->im->g, n, i);
  return v ? range_of(r, v) : unknown;
}

/* An operand that may be a number instead, or left out. */
static DataRange number(Ranges *r, NodeId n, uint32_t i, double otherwise) {
  const Graph *g = r->im->g;
  const Arg *arg = node_arg(g, n, i);
  if (arg->kind == ARG_VALUE)
    return operand(r, n, i);
  if (arg->kind == ARG_INT) /* of a size, perhaps */
    return (DataRange){(double)sym_lower(&g->syms, arg->i), (double)sym_upper(&g->syms, arg->i)};
  double x = node_scalar_or(g, n, i, otherwise);
  return (DataRange){x, x};
}

static DataRange joined(DataRange a, DataRange b) {
  return (DataRange){fmin(a.lo, b.lo), fmax(a.hi, b.hi)};
}

/* The least and the greatest of what the ends give; an infinite end times 0 may be anything. */
static DataRange of_ends(double a, double b, double c, double d) {
  if (isnan(a) || isnan(b) || isnan(c) || isnan(d))
    return unknown;
  return (DataRange){fmin(fmin(a, b), fmin(c, d)), fmax(fmax(a, b), fmax(c, d))};
}

/* --- rules --- */

static DataRange same(Ranges *r, NodeId n) { return operand(r, n, 0); }

/* A number that is too large for 32 bits or more is no size. */
static DataRange converted(Ranges *r, NodeId n) {
  DataRange x = operand(r, n, 0);
  DType to = value_dtype(r->im->g, node_result(r->im->g, n, 0));
  if (dtype_is_float(to))
    return x;
  bool fits = dtype_size(to) >= 4 || (x.lo >= 0 && x.hi <= INT8_MAX);
  return fits ? (DataRange){trunc(x.lo), trunc(x.hi)} : unknown;
}

static DataRange whole(Ranges *r, NodeId n) {
  DataRange x = operand(r, n, 0);
  return (DataRange){floor(x.lo), ceil(x.hi)};
}

static DataRange of_relu(Ranges *r, NodeId n) {
  DataRange x = operand(r, n, 0);
  return (DataRange){fmax(x.lo, 0), fmax(x.hi, 0)};
}

/* Of a maximum below the minimum all is the maximum. */
static DataRange of_clamp(Ranges *r, NodeId n) {
  DataRange x = operand(r, n, 0), low = number(r, n, 1, -INFINITY),
            high = number(r, n, 2, INFINITY);
  return (DataRange){fmin(fmax(x.lo, low.lo), high.lo), fmin(fmax(x.hi, low.hi), high.hi)};
}

static DataRange of_minimum(Ranges *r, NodeId n) {
  DataRange a = operand(r, n, 0), b = operand(r, n, 1);
  return (DataRange){fmin(a.lo, b.lo), fmin(a.hi, b.hi)};
}

static DataRange of_maximum(Ranges *r, NodeId n) {
  DataRange a = operand(r, n, 0), b = operand(r, n, 1);
  return (DataRange){fmax(a.lo, b.lo), fmax(a.hi, b.hi)};
}

static DataRange added(Ranges *r, NodeId n, double by) {
  DataRange a = operand(r, n, 0), b = operand(r, n, 1);
  if (by == 0)
    return a;
  double low = b.lo * by, high = b.hi * by;
  return (DataRange){a.lo + fmin(low, high), a.hi + fmax(low, high)};
}

static DataRange of_sum(Ranges *r, NodeId n) { return added(r, n, node_scalar(r->im->g, n, 2)); }

static DataRange of_difference(Ranges *r, NodeId n) {
  return added(r, n, -node_scalar(r->im->g, n, 2));
}

static DataRange of_product(Ranges *r, NodeId n) {
  DataRange a = operand(r, n, 0), b = operand(r, n, 1);
  return of_ends(a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi);
}

static DataRange of_quotient(Ranges *r, NodeId n) {
  DataRange a = operand(r, n, 0), b = operand(r, n, 1);
  if (b.lo <= 0 && b.hi >= 0)
    return unknown;
  return of_ends(a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi);
}

static DataRange of_integer_quotient(Ranges *r, NodeId n) {
  DataRange x = of_quotient(r, n);
  return (DataRange){floor(x.lo), ceil(x.hi)};
}

/* It has the sign of what is divided, and is no larger than that, nor than the divisor. */
static DataRange of_remainder(Ranges *r, NodeId n) {
  DataRange a = operand(r, n, 0), b = operand(r, n, 1);
  double most = fmax(fabs(b.lo), fabs(b.hi));
  return (DataRange){fmax(fmin(a.lo, 0), -most), fmin(fmax(a.hi, 0), most)};
}

static DataRange of_magnitude(Ranges *r, NodeId n) {
  DataRange x = operand(r, n, 0);
  return (DataRange){fmax(fmax(x.lo, -x.hi), 0), fmax(fabs(x.lo), fabs(x.hi))};
}

static DataRange of_sign(Ranges *r, NodeId n) {
  DataRange x = operand(r, n, 0);
  return (DataRange){(x.lo > 0) - (x.lo < 0), (x.hi > 0) - (x.hi < 0)};
}

/* Bits of what is not negative are no larger number. */
static DataRange of_bits(Ranges *r, NodeId n) {
  DataRange a = operand(r, n, 0), b = operand(r, n, 1);
  if (a.lo < 0 && b.lo < 0)
    return unknown;
  return (DataRange){0, fmin(a.lo >= 0 ? a.hi : INFINITY, b.lo >= 0 ? b.hi : INFINITY)};
}

static DataRange of_negative(Ranges *r, NodeId n) {
  DataRange x = operand(r, n, 0);
  return (DataRange){-x.hi, -x.lo};
}

static DataRange of_shift(Ranges *r, NodeId n) {
  DataRange x = operand(r, n, 0), by = number(r, n, 1, 0);
  double least = exp2(by.lo), most = exp2(by.hi);
  DataRange moved = of_ends(x.lo / least, x.lo / most, x.hi / least, x.hi / most);
  return (DataRange){floor(moved.lo), floor(moved.hi)};
}

static DataRange of_share(Ranges *r, NodeId n) {
  (void)r, (void)n;
  return (DataRange){0, 1};
}

static DataRange of_list(Ranges *r, NodeId n) {
  uint32_t count = node_list_count(r->im->g, n, 0);
  DataRange x = count ? range_of(r, node_list_value(r->im->g, n, 0, 0)) : unknown;
  for (uint32_t i = 1; i < count; i++)
    x = joined(x, range_of(r, node_list_value(r->im->g, n, 0, i)));
  return x;
}

static DataRange of_choice(Ranges *r, NodeId n) {
  DataRange yes = operand(r, n, 1), no = operand(r, n, 2);
  return joined(yes, no);
}

/* Elements that are written over some of the first operand's. */
static DataRange of_written(Ranges *r, NodeId n, uint32_t what) {
  return joined(operand(r, n, 0), number(r, n, what, 0));
}

static DataRange of_padded(Ranges *r, NodeId n) { return of_written(r, n, 2); }

static DataRange of_scattered(Ranges *r, NodeId n) { return of_written(r, n, 3); }

static DataRange of_put(Ranges *r, NodeId n) {
  return node_bool(r->im->g, n, 3) ? unknown : of_written(r, n, 2);
}

/* --- along dims --- */

/* How many elements the dims have that argument `arg` names, or all. */
static DataRange count_along(Ranges *r, NodeId n, uint32_t arg) {
  Graph *g = r->im->g;
  ValueId x = node_value(g, n, 0);
  uint32_t rank = value_rank(g, x), set = 0;
  if (shape_axes(g, n, arg, rank, true, &set) != STATUS_OK)
    return (DataRange){0, INFINITY};
  DataRange count = {1, 1};
  for (uint32_t i = 0; i < rank; i++) {
    if (!(set >> i & 1))
      continue;
    count.lo *= (double)sym_lower(&g->syms, value_dim(g, x, i));
    count.hi *= (double)sym_upper(&g->syms, value_dim(g, x, i));
  }
  return count;
}

/* Of so many elements, each within x. */
static DataRange sum_of(DataRange x, DataRange count) {
  return of_ends(x.lo * count.lo, x.lo * count.hi, x.hi * count.lo, x.hi * count.hi);
}

static DataRange of_total(Ranges *r, NodeId n) {
  return sum_of(operand(r, n, 0), count_along(r, n, 1));
}

static DataRange of_sums(Ranges *r, NodeId n) {
  return sum_of(operand(r, n, 0), (DataRange){1, fmax(count_along(r, n, 1).hi, 1)});
}

/* An element gets at most one of each of its lane, and perhaps nothing. */
static DataRange of_scattered_sums(Ranges *r, NodeId n) {
  const Graph *g = r->im->g;
  ValueId index = node_value(g, n, 2);
  uint32_t rank = value_rank(g, index),
           axis = rank ? (uint32_t)wrap_dim(node_int(g, n, 1), rank) : 0;
  double most = rank ? (double)sym_upper(&g->syms, value_dim(g, index, axis)) : 1;
  DataRange x = operand(r, n, 0), added_up = sum_of(operand(r, n, 3), (DataRange){0, most});
  return (DataRange){x.lo + added_up.lo, x.hi + added_up.hi};
}

static DataRange places(DataRange count) { return (DataRange){0, fmax(count.hi - 1, 0)}; }

static DataRange of_place(Ranges *r, NodeId n) { return places(count_along(r, n, 1)); }

static DataRange of_best_place(Ranges *r, NodeId n) { return places(count_along(r, n, 2)); }

static DataRange of_arange(Ranges *r, NodeId n) { return places(number(r, n, 0, 0)); }

static DataRange of_fill(Ranges *r, NodeId n) { return number(r, n, 1, 0); }

/* Positions along each of the dims. */
static DataRange of_found(Ranges *r, NodeId n) {
  const Graph *g = r->im->g;
  ValueId x = node_value(g, n, 0);
  DataRange count = {0, 1};
  for (uint32_t i = 0; i < value_rank(g, x); i++)
    count.hi = fmax(count.hi, (double)sym_upper(&g->syms, value_dim(g, x, i)));
  return places(count);
}

static const struct {
  OpId op;
  RangeFn *rule, *second; /* of the second result, where it has another one */
} rules[] = {{OP_ABS, of_magnitude},
             {OP_ADD_TENSOR, of_sum},
             {OP_AMAX, same},
             {OP_AMIN, same},
             {OP_ARANGE, of_arange},
             {OP_ARGMAX, of_place},
             {OP_ARGMIN, of_place},
             {OP_BITWISE_AND_TENSOR, of_bits},
             {OP_BITWISE_RIGHT_SHIFT_TENSOR, of_shift},
             {OP_BITWISE_RIGHT_SHIFT_TENSOR_SCALAR, of_shift},
             {OP_CAT, of_list},
             {OP_CEIL, whole},
             {OP_CLAMP, of_clamp},
             {OP_CLAMP_TENSOR, of_clamp},
             {OP_CLONE, same},
             {OP_CONSTANT_PAD_ND, of_padded},
             {OP_CUMSUM, of_sums},
             {OP_DIV_TENSOR, of_quotient},
             {OP_DIV_TENSOR_MODE, of_integer_quotient},
             {OP_EXPAND_COPY, same},
             {OP_FLIP, same},
             {OP_FLOOR, whole},
             {OP_FLOOR_DIVIDE, of_integer_quotient},
             {OP_FMOD_TENSOR, of_remainder},
             {OP_FULL, of_fill},
             {OP_FULL_LIKE, of_fill},
             {OP_GATHER, same},
             {OP_INDEX_PUT, of_put},
             {OP_INDEX_SELECT, same},
             {OP_INDEX_TENSOR, same},
             {OP_MAXIMUM, of_maximum},
             {OP_MAX_DIM, same, of_place},
             {OP_MEAN_DIM, same},
             {OP_MINIMUM, of_minimum},
             {OP_MIN_DIM, same, of_place},
             {OP_MUL_TENSOR, of_product},
             {OP_NEG, of_negative},
             {OP_NONZERO, of_found},
             {OP_PERMUTE_COPY, same},
             {OP_RELU, of_relu},
             {OP_REPEAT, same},
             {OP_ROUND, whole},
             {OP_SCATTER_ADD, of_scattered_sums},
             {OP_SCATTER_SRC, of_scattered},
             {OP_SCATTER_VALUE, of_scattered},
             {OP_SELECT_COPY_INT, same},
             {OP_SIGMOID, of_share},
             {OP_SIGN, of_sign},
             {OP_SLICE_COPY_TENSOR, same},
             {OP_SOFTMAX, of_share},
             {OP_SPLIT_COPY_TENSOR, same},
             {OP_SPLIT_WITH_SIZES_COPY, same},
             {OP_STACK, of_list},
             {OP_SUB_TENSOR, of_difference},
             {OP_SUM_DIM_INTLIST, of_total},
             {OP_TOPK, same, of_best_place},
             {OP_TO_COPY, converted},
             {OP_TRUNC, whole},
             {OP_UNBIND_COPY_INT, same},
             {OP_WHERE_SELF, of_choice}};

/* --- values --- */

/* Known elements: of constants, and sizes. */
static bool of_elements(Import *im, ValueId v, DataRange *range) {
  Ints ints;
  Doubles doubles;
  *range = (DataRange){INFINITY, -INFINITY};
  const Constant *constant = value_constant(im->g, v);
  if (constant && constant->size > ELEMENTS_MAX * sizeof(double))
    return false;
  if (value_ints(im, v, &ints)) {
    for (uint32_t i = 0; i < ints.count; i++)
      *range = joined(*range, (DataRange){(double)sym_lower(&im->g->syms, ints.at[i]),
                                          (double)sym_upper(&im->g->syms, ints.at[i])});
    return ints.count > 0;
  }
  if (!value_doubles(im, v, &doubles))
    return false;
  for (uint32_t i = 0; i < doubles.count; i++)
    *range = joined(*range, (DataRange){doubles.at[i], doubles.at[i]});
  return doubles.count > 0;
}

static DataRange compute(Ranges *r, ValueId v) {
  const Graph *g = r->im->g;
  NodeId n = value_def(g, v);
  DataRange range;
  if (value_type(g, v)->kind != TYPE_TENSOR)
    return unknown;
  if (of_elements(r->im, v, &range))
    return range;
  if (value_dtype(g, v) == DTYPE_BOOL)
    return (DataRange){0, 1};
  OpId op = n ? node_cget(g, n)->op : OP_NONE;
  for (size_t i = 0; n && i < COUNT_OF(rules); i++)
    if (op == rules[i].op)
      return rules[i].second && v != node_result(g, n, 0) ? rules[i].second(r, n)
                                                          : rules[i].rule(r, n);
  return n && op_keeps_numbers(op) ? same(r, n) : unknown;
}

static DataRange range_of(Ranges *r, ValueId v) {
  uint32_t *slot, at = keymap_get(&r->seen, &v, sizeof v, &slot);
  if (at)
    return r->known[at - 1];
  if (r->count == VALUES_MAX || r->depth == DEPTH_MAX)
    return unknown;
  at = *slot = ++r->count;
  r->known[at - 1] = unknown;
  r->depth++;
  r->known[at - 1] = compute(r, v);
  r->depth--;
  return r->known[at - 1];
}

DataRange data_range(Import *im, ValueId v) {
  if (!import_ok(im) || !v)
    return unknown;
  Ranges *r = ARENA_NEW(&im->scratch, Ranges);
  r->im = im;
  r->seen = keymap_make(&im->scratch, im->ctx->names.seed);
  return range_of(r, v);
}
