/* Of two kernels that compute the same, the faster one.
 *
 *   clamp of floats      hardtanh: clamp takes 4 ns an element, hardtanh 0.7 (ExecuTorch 1.4.1,
 *                        x86-64). Both keep NaN. A bound that is not there is infinite.
 *   round, then clamp    x + m - m with m = 1.5 * 2^23, where the sum has no place for fractions:
 *                        round takes 4.3 ns, add and sub 0.5 each. The sum is off beyond 2^22,
 *                        where the clamp hides it: as codes are made (round(x / s) + z).
 *   gather, its index    index_select over the dims that the index varies along, as one: gather
 *   a constant           takes 25 ns an element, index_select 3. Relative positions of attention
 *                        are such an index, the same for each head.
 *   gather, its index    the same, with places that are computed: of relative positions for any
 *   a clamp, repeated    length. What cannot be out of bounds needs no check.
 *   x / number, rounded  div with a rounding mode (none): div multiplies by the reciprocal, so
 *                        that 41 / 41 is below 1. It takes 0.5 ns an element, div with a mode
 *                        1.5: only where the quotient is rounded later.
 *   flip of one dim      index_select of its entries from the last to the first: flip takes 10
 *                        ns an element, index_select 4 along the last dim and 14 a row along
 *                        others.
 *   arithmetic with a    the same of fewer dims (merge_dims.c).
 *   broadcast operand */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "ir/match.h"
#include "passes/executorch/merge_dims.h"
#include "passes/executorch/views.h"
#include "passes/pass.h"

enum {
  ROUNDER = 3 << 22, /* floats from 2^23 to 2^24 are the integers */
  CODES_MAX = 1 << 16,
  CASTS_MAX = 4,
  ROUNDED_MIN = 512 /* elements, 2 us */
};

/* v is clamped to integers that are no larger than codes, or converted from such. */
static bool is_zero_point(const Graph *g, ValueId v) {
  NodeId n = value_def(g, v);
  for (uint32_t i = 0; n && i < CASTS_MAX && node_cget(g, n)->op == OP_TO_COPY; i++)
    n = value_def(g, node_value(g, n, 0));
  OpId op = n ? node_cget(g, n)->op : OP_NONE;
  return (op == OP_CLAMP || op == OP_HARDTANH) &&
         node_scalar_or(g, n, 1, -INFINITY) >= -CODES_MAX &&
         node_scalar_or(g, n, 2, INFINITY) <= CODES_MAX;
}

/* Takes round out of the operand of clamp n, round(x) or round(x) + z. */
static void replace_round(Builder *b, NodeId n) {
  Graph *g = b->g;
  double zero = 0;
  ValueId v = node_value(g, n, 0), rounded = v, added = 0;
  NodeId add = match_op_once(g, v, OP_ADD_TENSOR);
  if (add) {
    rounded = node_value(g, add, 0);
    added = node_value(g, add, 1);
    if (match_number(g, added, &zero) && zero == rint(zero) && fabs(zero) <= CODES_MAX)
      added = 0;
    else if (!is_zero_point(g, added))
      return;
  }
  NodeId round = match_op_once(g, rounded, OP_ROUND);
  if (!round || value_dtype(g, rounded) != DTYPE_F32 || value_rank(g, rounded) == 0 ||
      type_bytes_upper(g, value_type(g, v)) < ROUNDED_MIN * sizeof(float))
    return;
  ValueId up = build_scalar(b, DTYPE_F32, ROUNDER),
          down = build_scalar(b, DTYPE_F32, ROUNDER - (added ? 0 : zero));
  ValueId sum = build_binary(b, OP_ADD_TENSOR, node_value(g, round, 0), up);
  sum = build_binary(b, OP_SUB_TENSOR, sum, down);
  if (added && sum)
    sum = build_binary(b, OP_ADD_TENSOR, sum, added);
  if (b->status != STATUS_OK)
    return;
  node_set_arg(g, n, 0, A_VAL(sum));
  if (add)
    graph_remove_node(g, add);
  graph_remove_node(g, round);
}

static ValueId clamp(Builder *b, NodeId n) {
  Graph *g = b->g;
  DType dtype = value_dtype(g, node_result(g, n, 0));
  double low = node_scalar_or(g, n, 1, -INFINITY), high = node_scalar_or(g, n, 2, INFINITY);
  if ((dtype != DTYPE_F32 && dtype != DTYPE_F64) || value_dtype(g, node_value(g, n, 0)) != dtype ||
      !(low <= high))
    return 0;
  if (low >= -CODES_MAX && high <= CODES_MAX)
    replace_round(b, n);
  return build(b, OP_HARDTANH, A_VAL(node_value(g, n, 0)), A_FLOAT(low), A_FLOAT(high));
}

/* --- gather --- */

enum { GATHERED_MIN = 64 /* elements: index_select is written with two views */ };

static uint64_t numel(const Graph *g, ValueId v, uint32_t first, uint32_t end) {
  return (uint64_t)dims_count(value_type(g, v)->dims, first, end);
}

/* As gather has it: the dims of x, but for the axis. */
static bool has_dims_of(const Graph *g, ValueId index, ValueId x, uint32_t axis) {
  for (uint32_t i = 0; i < value_rank(g, x); i++)
    if (i != axis && value_dim(g, index, i) != value_dim(g, x, i))
      return false;
  return true;
}

/* The number of leading dims, of those before the axis, along which the index does not change. */
static uint32_t repeated_dims(const Graph *g, ValueId index, const int64_t *entries,
                              uint32_t axis) {
  uint32_t rank = value_rank(g, index), dims = axis;
  for (; dims > 0; dims--) {
    uint64_t size = numel(g, index, dims, rank), count = numel(g, index, 0, dims), i = 1;
    while (i < count && memcmp(entries, entries + i * size, size * sizeof *entries) == 0)
      i++;
    if (i >= count)
      break;
  }
  return dims;
}

/* The places of the elements in the dims of x from `first` on as one; NULL: some index is out of
 * bounds. */
static int64_t *places(Builder *b, ValueId x, ValueId index, const int64_t *entries, uint32_t axis,
                       uint32_t first) {
  const Graph *g = b->g;
  uint32_t rank = value_rank(g, x);
  int64_t along = value_dim(g, x, axis), inner = (int64_t)numel(g, x, axis + 1, rank);
  uint64_t picked = (uint64_t)value_dim(g, index, axis), count = numel(g, index, first, rank);
  int64_t *at = ARENA_ARRAY(b->data, int64_t, (size_t)count);
  for (uint64_t i = 0; i < count; i++) {
    if (entries[i] < 0 || entries[i] >= along)
      return NULL;
    int64_t before = (int64_t)(i / (picked * (uint64_t)inner)), behind = (int64_t)i % inner;
    at[i] = (before * along + entries[i]) * inner + behind;
  }
  return at;
}

/* x as a matrix, of which each row gives the elements at these places to y. */
static ValueId picked_of_rows(Builder *b, ValueId x, const SymInt matrix[2], ValueId at,
                              ValueId y) {
  Dims dims = value_dims(b->g, y);
  ValueId picked =
      build(b, OP_INDEX_SELECT, A_VAL(build_et_view(b, x, matrix, 2)), A_INT(1), A_VAL(at));
  return build_et_view(b, picked, dims.d, dims.rank);
}

static ValueId gather_known(Builder *b, ValueId x, ValueId index, uint32_t axis, ValueId y) {
  Graph *g = b->g;
  uint32_t rank = value_rank(g, x);
  if (!type_is_static(value_type(g, x)) || numel(g, index, 0, rank) < GATHERED_MIN ||
      !has_dims_of(g, index, x, axis))
    return 0;
  const int64_t *entries = (const int64_t *)(const void *)value_constant(g, index)->data;
  uint32_t first = repeated_dims(g, index, entries, axis);
  const int64_t *at = places(b, x, index, entries, axis, first);
  if (!at)
    return 0;
  SymInt matrix[] = {(SymInt)numel(g, x, 0, first), (SymInt)numel(g, x, first, rank)};
  ValueId known = build_const_ints(b, at, (uint32_t)numel(g, index, first, rank));
  return picked_of_rows(b, x, matrix, known, y);
}

/* Whether the elements are places along a dim of that size. */
static bool is_within(const Graph *g, ValueId index, SymInt size) {
  double least, most;
  return match_clamped(g, index, &least, &most) && least >= 0 &&
         most < (double)sym_lower(&g->syms, size);
}

/* Along the last dim, by an index that is repeated along the first ones. */
static ValueId gather_repeated(Builder *b, ValueId x, ValueId index, uint32_t axis, ValueId y) {
  Graph *g = b->g;
  NodeId expand = match_op(g, index, OP_EXPAND_COPY);
  uint32_t rank = value_rank(g, x), first = 0;
  ValueId once = expand ? node_value(g, expand, 0) : 0;
  if (!once || axis + 1 != rank || value_rank(g, once) != rank || !has_dims_of(g, index, x, axis))
    return 0;
  while (first < axis && value_dim(g, once, first) == 1)
    first++;
  for (uint32_t i = first; i < rank; i++)
    if (value_dim(g, once, i) != value_dim(g, index, i))
      return 0;
  Dims dims = value_dims(g, x);
  SymInt along = dims.d[axis], picked = value_dim(g, once, axis);
  if (first == 0 || !is_within(g, once, along))
    return 0;
  SymInt lines = sym_product(&g->syms, dims.d + first, axis - first),
         matrix[] = {sym_product(&g->syms, dims.d, first), sym_mul(&g->syms, lines, along)};
  ValueId begins =
      build(b, OP_ARANGE_START_STEP, A_INT(0), A_INT(matrix[1]), A_INT(along), A_DTYPE(DTYPE_I64));
  SymInt column[] = {lines, 1}, table[] = {lines, picked};
  once = build_et_view(b, once, table, 2);
  begins = build_et_view(b, begins, column, 2);
  ValueId at = build(b, OP_ADD_TENSOR, A_VAL(once), A_VAL(begins), A_INT(1));
  SymInt count = sym_mul(&g->syms, lines, picked);
  return picked_of_rows(b, x, matrix, build_et_view(b, at, &count, 1), y);
}

static ValueId gather(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0), index = node_value(g, n, 2), y = node_result(g, n, 0);
  uint32_t rank = value_rank(g, x);
  uint32_t axis = (uint32_t)wrap_dim(node_int(g, n, 1), rank);
  if (rank == 0 || value_dtype(g, index) != DTYPE_I64)
    return 0;
  return value_is_const(g, index) ? gather_known(b, x, index, axis, y)
                                  : gather_repeated(b, x, index, axis, y);
}

static ValueId flip(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0);
  if (node_list_count(g, n, 1) != 1 || value_rank(g, x) == 0)
    return 0;
  for (uint32_t i = 0; i < value_rank(g, x); i++) /* index_select wants some to select from */
    if (sym_lower(&g->syms, value_dim(g, x, i)) < 1)
      return 0;
  int64_t dim = wrap_dim(node_ints(g, n, 1)[0], value_rank(g, x));
  SymInt size = value_dim(g, x, (uint32_t)dim), last = sym_add(&g->syms, size, -1);
  ValueId back =
      build(b, OP_ARANGE_START_STEP, A_INT(last), A_INT(-1), A_INT(-1), A_DTYPE(DTYPE_I64));
  return build(b, OP_INDEX_SELECT, A_VAL(x), A_INT(dim), A_VAL(back));
}

/* --- division --- */

enum { REACHED_MAX = 64 /* values that are looked at: beyond, the exact kernel is taken */ };

/* Whether the result of n may differ by 1 when a float operand differs in its last bit. */
static bool rounds(const Graph *g, NodeId n) {
  switch (node_cget(g, n)->op) {
  case OP_CEIL:
  case OP_DIV_TENSOR_MODE:
  case OP_FLOOR:
  case OP_FLOOR_DIVIDE:
  case OP_FMOD_SCALAR:
  case OP_FMOD_TENSOR:
  case OP_REMAINDER_SCALAR:
  case OP_REMAINDER_TENSOR:
  case OP_ROUND:
  case OP_SIGN:
  case OP_TRUNC:
    return true;
  default: /* conversions and comparisons */
    return op_has_trait(node_cget(g, n)->op, OP_ELEMENTWISE) &&
           !dtype_is_float(value_dtype(g, node_result(g, n, 0)));
  }
}

/* Whether v is rounded, perhaps after more arithmetic. */
static bool is_rounded(const Graph *g, ValueId v) {
  ValueId reached[REACHED_MAX] = {v};
  uint32_t count = 1;
  for (uint32_t i = 0; i < count; i++)
    for (UseId u = first_use(g, reached[i]); u; u = g->uses[u].next) {
      NodeId n = g->uses[u].node;
      OpId op = node_cget(g, n)->op;
      if (!op_has_trait(op, OP_ELEMENTWISE) && !op_keeps_numbers(op))
        continue;
      if (rounds(g, n) || count == REACHED_MAX)
        return true;
      reached[count++] = node_result(g, n, 0);
    }
  return false;
}

/* Reciprocals of powers of two are exact. */
static bool is_power_of_two(const Graph *g, ValueId v) {
  double number;
  int exponent;
  return match_number(g, v, &number) && fabs(frexp(number, &exponent)) == 0.5 &&
         abs(exponent) < FLT_MAX_EXP - 1;
}

static ValueId divide(Builder *b, NodeId n) {
  const Graph *g = b->g;
  ValueId x = node_value(g, n, 0), divisor = node_value(g, n, 1), y = node_result(g, n, 0);
  DType dtype = value_dtype(g, y);
  if ((dtype != DTYPE_F32 && dtype != DTYPE_F64) || value_dtype(g, x) != dtype ||
      value_dtype(g, divisor) != dtype || value_is_single(g, x) || !value_is_single(g, divisor) ||
      is_power_of_two(g, divisor) || !is_rounded(g, y))
    return 0;
  return build(b, OP_DIV_TENSOR_MODE, A_VAL(x), A_VAL(divisor), A_NONE);
}

Status pass_choose_kernels(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_CLAMP, clamp, "clamps"},
                                      {OP_GATHER, gather, "gathers"},
                                      {OP_FLIP, flip, "flips"},
                                      {OP_DIV_TENSOR, divide, "divisions"}};
  Rewriter r = {.rules = rules, .rule_count = COUNT_OF(rules), .data = p->scratch};
  TRY(pass_rewriter(p, g, &r));
  return merge_broadcast_dims(p, g);
}
