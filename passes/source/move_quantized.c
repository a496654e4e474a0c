/* Ops that copy elements of quantized tensors without computing on them: views, permutes, slices,
 * splits, concatenations, pads, max pools, nearest-neighbour resizing, rows at constant places.
 *
 *     view(quantize(x))           =>   quantize(view(dequantize(quantize(x))))
 *     view(dequantize(weight))    =>   dequantize(view(weight))
 *
 * The first changes no code, and is the one form that backends match; the second keeps weights
 * constants that are dequantized. */
#include <math.h>

#include "interp/fold.h"
#include "ir/match.h"
#include "ops/quantized.h"
#include "passes/pass.h"
#include "passes/source/pick_rows.h"

/* The node on another operand (one for a list of them), everything else alike. */
static ValueId again(Builder *b, NodeId n, const ValueId *operands, uint32_t count) {
  bool list = node_cget(b->g, n)->op == OP_CAT;
  return build_on(b, n, list ? &A_VALS(operands, count) : &A_VAL(operands[0]), 1);
}

static uint32_t operand_count(const Graph *g, NodeId n) {
  return node_cget(g, n)->op == OP_CAT ? node_list_count(g, n, 0) : 1;
}

static ValueId operand(const Graph *g, NodeId n, uint32_t i) {
  return node_cget(g, n)->op == OP_CAT ? node_list_value(g, n, 0, i) : node_value(g, n, 0);
}

/* All operands are quantized alike, per tensor. */
static bool quantized_alike(const Graph *g, NodeId n, Quantization *q) {
  for (uint32_t i = 0; i < operand_count(g, n); i++) {
    NodeId def = value_def(g, operand(g, n, i));
    if (!is_quantize(g, def))
      return false;
    Quantization own = quantization_of(g, def);
    if (own.scales || (i && !quantization_equal(g, q, &own)))
      return false;
    *q = own;
  }
  return operand_count(g, n) > 0;
}

/* Where the channels of a view of x are: a dim of the same size with as many elements before it. */
static bool axis_in_view(const Graph *g, ValueId x, ValueId y, uint32_t axis, uint32_t *to) {
  int64_t before = 1, seen = 1;
  for (uint32_t i = 0; i < axis; i++)
    if (!sym_is_const(value_dim(g, x, i)) || !mul_i64(before, value_dim(g, x, i), &before))
      return false;
  for (uint32_t i = 0; i < value_rank(g, y); i++) {
    SymInt dim = value_dim(g, y, i);
    if (seen == before && dim == value_dim(g, x, axis)) {
      *to = i;
      return true;
    }
    if (!sym_is_const(dim) || !mul_i64(seen, dim, &seen))
      return false;
  }
  return false;
}

/* Where the channels of a weight are after n, which moves it. */
static bool moved_axis(const Graph *g, NodeId n, uint32_t axis, uint32_t *to) {
  ValueId x = node_value(g, n, 0);
  uint32_t rank = value_rank(g, x);
  switch (node_cget(g, n)->op) {
  case OP_PERMUTE_COPY:
    for (uint32_t i = 0; i < rank; i++)
      if (wrap_dim(node_ints(g, n, 1)[i], rank) == axis)
        *to = i;
    return true;
  case OP_SLICE_COPY_TENSOR: {
    *to = axis;
    return wrap_dim(node_int(g, n, 1), rank) != axis;
  }
  case OP_VIEW_COPY:
  case OP_UNSQUEEZE_COPY:
  case OP_SQUEEZE_COPY_DIMS:
    return axis_in_view(g, x, node_result(g, n, 0), axis, to);
  default:
    return false;
  }
}

static ValueId move_weight(Builder *b, NodeId n) {
  Graph *g = b->g;
  NodeId def = node_cget(g, n)->op == OP_CAT ? 0 : value_def(g, node_value(g, n, 0));
  if (!is_dequantize(g, def) || !match_weight(g, node_value(g, def, 0)))
    return 0;
  Quantization q = quantization_of(g, def);
  if (q.block || q.dynamic || (q.scales && !moved_axis(g, n, q.axis, &q.axis)))
    return 0;
  ValueId codes = node_value(g, def, 0), moved = again(b, n, &codes, 1);
  return build_dequantize(b, moved, &q);
}

static ValueId move_codes(Builder *b, NodeId n) {
  Graph *g = b->g;
  Quantization q;
  if (!node_unused(g, n, 1))
    return 0;
  if (value_dtype(g, node_result(g, n, 0)) == DTYPE_F32)
    return move_weight(b, n);
  if (!quantized_alike(g, n, &q))
    return 0;
  uint32_t count = operand_count(g, n);
  ValueId *reals = ARENA_ARRAY(&g->arena, ValueId, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++)
    reals[i] = build_dequantize(b, operand(g, n, i), &q);
  ValueId moved = again(b, n, reals, count);
  return build_quantize(b, moved, &q);
}

/* The same of codes only: of weights these are rare, or have rules of their own. */
static ValueId move_activation(Builder *b, NodeId n) {
  Graph *g = b->g;
  bool indexed = node_cget(g, n)->op == OP_INDEX_SELECT;
  if (value_dtype(g, node_result(g, n, 0)) == DTYPE_F32 ||
      (indexed && !value_is_const(g, node_value(g, n, 2))))
    return 0;
  return move_codes(b, n);
}

/* The number that a code stands for, which is a scalar of the node. */
static double real_scalar(const Graph *g, NodeId n, uint32_t arg, const Quantization *q) {
  return (node_scalar(g, n, arg) - (double)q->zero) * (double)q->scale;
}

static ArgIn real_limit(const Graph *g, NodeId n, uint32_t arg, const Quantization *q) {
  return node_absent(g, n, arg) ? A_NONE : A_FLOAT(real_scalar(g, n, arg, q));
}

static ValueId pad_reals(Builder *b, NodeId n) {
  Graph *g = b->g;
  Quantization q;
  if (!quantized_alike(g, n, &q))
    return 0;
  ValueId real = build_dequantize(b, node_value(g, n, 0), &q),
          padded = build(b, OP_CONSTANT_PAD_ND, A_VAL(real), node_arg_in(g, n, 1, &g->arena),
                         A_FLOAT(real_scalar(g, n, 2, &q)));
  return build_quantize(b, padded, &q);
}

/* Limits of codes are limits of the numbers that are quantized: exporters write them for ranges of
 * fewer codes, such as those of 7 bits. */
static ValueId limit_reals(Builder *b, NodeId n) {
  Graph *g = b->g;
  Quantization q;
  if (!quantized_alike(g, n, &q))
    return 0;
  ValueId x = node_value(g, value_def(g, node_value(g, n, 0)), 0),
          limited = build(b, OP_CLAMP, A_VAL(x), real_limit(g, n, 1, &q), real_limit(g, n, 2, &q));
  return build_quantize(b, limited, &q);
}

/* The same of a node whose results are the parts of its operand. */
static ValueId move_parts(Builder *b, NodeId n) {
  Graph *g = b->g;
  Quantization q;
  if (!quantized_alike(g, n, &q))
    return 0;
  ValueId real = build_dequantize(b, operand(g, n, 0), &q), moved = again(b, n, &real, 1);
  NodeId parts = moved ? value_def(g, moved) : 0;
  for (uint32_t i = 1; parts && i < node_cget(g, n)->result_count; i++) {
    ValueId codes = build_quantize(b, node_result(g, parts, i), &q);
    if (!codes)
      return 0;
    graph_replace_value(g, node_result(g, n, i), codes);
  }
  return moved ? build_quantize(b, moved, &q) : 0;
}

enum { ARITHMETIC_STEPS = 4 }; /* of a dequantization: cast, sub, mul, and a cast */

/* Codes of 16 bits whose dequantization is spelt as casts, sub and mul with constants: the table,
 * and the nodes from it to v, the last one first. 0: v is something else. */
static ValueId spelt_codes(const Graph *g, ValueId v, NodeId *steps, uint32_t *count) {
  uint32_t rank = value_rank(g, v);
  for (*count = 0; *count < ARITHMETIC_STEPS && !value_is_const(g, v); ++*count) {
    NodeId n = value_def(g, v);
    OpId op = n ? node_cget(g, n)->op : OP_NONE;
    if (op != OP_TO_COPY && op != OP_SUB_TENSOR && op != OP_MUL_TENSOR)
      return 0;
    ValueId beside = op == OP_TO_COPY ? 0 : node_value(g, n, 1);
    if (beside && (!value_is_const(g, beside) || value_rank(g, beside) > rank))
      return 0;
    steps[*count] = n;
    v = node_value(g, n, 0);
  }
  bool codes = value_is_const(g, v) && dtype_in(value_dtype(g, v), DT(I16) | DT(U16));
  return codes && *count && value_rank(g, v) == rank ? v : 0;
}

/* Rows picked from a table that is spelt so: codes are picked, and of constants that have rows,
 * too.
 */
static ValueId pick_spelt(Builder *b, NodeId n) {
  Graph *g = b->g;
  NodeId steps[ARITHMETIC_STEPS];
  uint32_t count;
  ValueId table = picks_rows(g, n) ? spelt_codes(g, node_value(g, n, 0), steps, &count) : 0;
  if (!table)
    return 0;
  ValueId y = again(b, n, &table, 1);
  while (count-- > 0) {
    NodeId step = steps[count];
    bool cast = node_cget(g, step)->op == OP_TO_COPY;
    ValueId beside = cast ? 0 : node_value(g, step, 1);
    if (beside && value_rank(g, beside) == value_rank(g, table) && value_dim(g, beside, 0) != 1)
      beside = again(b, n, &beside, 1);
    y = build_on(b, step, (ArgIn[]){A_VAL(y), A_VAL(beside)}, cast ? 1 : 2);
  }
  return y;
}

/* The dim along which the constant lies beside a weight; false: it lies along several. */
static bool lies_along(const Graph *g, ValueId scales, ValueId codes, uint32_t *axis) {
  uint32_t rank = value_rank(g, codes), found = 0;
  if (value_rank(g, scales) != rank)
    return false;
  for (uint32_t i = 0; i < rank; i++) {
    if (value_dim(g, scales, i) == 1)
      continue;
    *axis = i;
    if (found++ || value_dim(g, scales, i) != value_dim(g, codes, i))
      return false;
  }
  return found == 1;
}

/* A weight that is spelt as f32(codes) * scales, with constants. */
static ValueId spelt_weight(Builder *b, NodeId n) {
  Graph *g = b->g;
  for (uint32_t i = 0; i < 2; i++) {
    NodeId cast = match_op(g, node_value(g, n, i), OP_TO_COPY);
    ValueId codes = cast ? node_value(g, cast, 0) : 0, scales = node_value(g, n, 1 - i);
    if (!codes || !value_is_const(g, codes) || !dtype_in(value_dtype(g, codes), DT(I8) | DT(U8)) ||
        !value_is_const(g, scales) || value_dtype(g, scales) != DTYPE_F32 ||
        value_rank(g, node_result(g, n, 0)) != value_rank(g, codes))
      continue;
    bool is_unsigned = value_dtype(g, codes) == DTYPE_U8;
    Quantization q = {.dtype = value_dtype(g, codes),
                      .low = is_unsigned ? 0 : INT8_MIN,
                      .high = is_unsigned ? UINT8_MAX : INT8_MAX};
    if (value_rank(g, codes) < 2 || !lies_along(g, scales, codes, &q.axis))
      continue;
    int64_t count = value_dim(g, codes, q.axis);
    q.scales = build_const(b, DTYPE_F32, 1, &count, value_constant(g, scales)->data);
    return build_dequantize(b, codes, &q);
  }
  return 0;
}

static bool is_view_or_permute(const Graph *g, NodeId n) {
  OpId op = n ? node_cget(g, n)->op : OP_NONE;
  return op == OP_VIEW_COPY || op == OP_PERMUTE_COPY || op == OP_SQUEEZE_COPY_DIMS ||
         op == OP_UNSQUEEZE_COPY;
}

enum { STEPS = 8 }; /* so that long chains take linear time */

/* Whether v, and what views and pairs make of it, is used once, at last by a permute. */
static bool leads_to_permute(const Graph *g, ValueId v) {
  for (uint32_t i = 0; i < 3 * STEPS; i++) {
    NodeId n = value_only_user(g, v);
    if (!n)
      return false;
    if (node_cget(g, n)->op == OP_PERMUTE_COPY)
      return true;
    if (!is_view_or_permute(g, n) && !is_quantize(g, n) && !is_dequantize(g, n))
      return false;
    v = node_result(g, n, 0);
  }
  return false;
}

/* Dequantized and quantized so, every code stays what it is. */
static bool takes_all_codes(const Quantization *q) {
  if (q->scales || !isnormal(q->scale))
    return false;
  return q->dtype == DTYPE_I8   ? q->low == INT8_MIN && q->high == INT8_MAX
         : q->dtype == DTYPE_U8 ? q->low == 0 && q->high == UINT8_MAX
                                : false;
}

/* Of a constant of 8 bits with one element. */
static bool single_code(const Graph *g, ValueId v, int *code) {
  if (!value_is_single(g, v))
    return false;
  const uint8_t *data = value_constant(g, v)->data;
  *code = value_dtype(g, v) == DTYPE_I8 ? (int8_t)data[0] : data[0];
  return true;
}

/* The larger or smaller of codes and constant codes: of one code for all a limit. */
static ValueId extreme_reals(Builder *b, NodeId n) {
  Graph *g = b->g;
  int code;
  uint32_t at = is_quantize(g, value_def(g, node_value(g, n, 0))) ? 0 : 1;
  ValueId codes = node_value(g, n, at), other = node_value(g, n, 1 - at);
  NodeId def = value_def(g, codes);
  if (!is_quantize(g, def) || !value_is_const(g, other) ||
      value_dtype(g, codes) != value_dtype(g, other))
    return 0;
  Quantization q = quantization_of(g, def);
  if (q.dynamic || !takes_all_codes(&q))
    return 0;
  bool low = node_cget(g, n)->op == OP_MAXIMUM;
  ValueId real;
  if (single_code(g, other, &code) && value_same_type(g, codes, node_result(g, n, 0))) {
    ArgIn limit = A_FLOAT((double)(code - q.zero) * (double)q.scale);
    real = build(b, OP_CLAMP, A_VAL(node_value(g, def, 0)), low ? limit : A_NONE,
                 low ? A_NONE : limit);
  } else {
    real = build_dequantize(b, codes, &q);
    other = build_dequantize(b, other, &q);
    real = build_binary(b, low ? OP_MAXIMUM : OP_MINIMUM, real, other);
  }
  return build_quantize(b, real, &q);
}

static bool has_parameters(const Graph *g, NodeId n, const Quantization *q) {
  Quantization own = quantization_of(g, n);
  return quantization_equal(g, &own, q);
}

/* Between two permutes of a dequantized value, and perhaps views, a pair that quantizes and
 * dequantizes as it was changes nothing, and without it backends see the steps as one. */
static ValueId drop_pair(Builder *b, NodeId n) {
  Graph *g = b->g;
  NodeId pair = value_def(g, node_value(g, n, 0));
  Quantization q = quantization_of(g, n);
  if (!takes_all_codes(&q) || !is_quantize(g, pair) || !has_parameters(g, pair, &q) ||
      !leads_to_permute(g, node_result(g, n, 0)))
    return 0;
  ValueId moved = node_value(g, pair, 0);
  NodeId def = value_def(g, moved);
  bool permuted = false;
  for (uint32_t i = 0; i < STEPS && is_view_or_permute(g, def); i++) {
    permuted |= node_cget(g, def)->op == OP_PERMUTE_COPY;
    def = value_def(g, node_value(g, def, 0));
  }
  return permuted && is_dequantize(g, def) && has_parameters(g, def, &q) ? moved : 0;
}

/* x, whose numbers these codes have, with the codes made and read again. */
static ValueId with_codes(Builder *b, ValueId x, const Quantization *q) {
  return build_dequantize(b, build_quantize(b, x, q), q);
}

static ValueId scaled(Builder *b, ValueId x, float factor) {
  return build_binary(b, OP_MUL_TENSOR, x, build_scalar(b, DTYPE_F32, factor));
}

static bool has_scale_about_one(const Quantization *q) {
  return q->scale > 0x1p-100F && q->scale < 0x1p100F;
}

/* Codes dequantized by other parameters than they were quantized by, as where a QLinearAdd is
 * arithmetic on codes (translate/qlinear.c): backends have one scale and zero point for a tensor.
 * The code less its zero point is a number of scale 1. Exact, as no code has more than 8 bits. */
static ValueId other_scale(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId codes = node_value(g, n, 0);
  if (!is_quantize(g, value_def(g, codes)))
    return 0;
  Quantization from = quantization_of(g, value_def(g, codes)), to = quantization_of(g, n);
  if (!takes_all_codes(&from) || !takes_all_codes(&to) || from.dtype != to.dtype ||
      !has_scale_about_one(&from) || !has_scale_about_one(&to) || quantization_equal(g, &from, &to))
    return 0;
  Quantization one = from;
  one.scale = 1;
  ValueId x = build_dequantize(b, codes, &from);
  if (from.scale != 1)
    x = with_codes(b, scaled(b, x, 1 / from.scale), &one);
  if (from.zero != to.zero)
    x = build_binary(b, OP_ADD_TENSOR, x,
                     build_scalar(b, DTYPE_F32, (double)(from.zero - to.zero)));
  return to.scale == 1 ? x : with_codes(b, scaled(b, x, to.scale), &to);
}

/* f32 of f16 of a dequantized constant, as networks of half precision spell weights between casts:
 * the numbers before they were rounded to f16, so that products see codes. They differ by half a
 * unit of f16 from those of the model, and are nearer to what was quantized. */
static ValueId unrounded_weight(Builder *b, NodeId n) {
  Graph *g = b->g;
  NodeId half = match_op(g, node_value(g, n, 0), OP_TO_COPY);
  ValueId x = half ? node_value(g, half, 0) : 0;
  bool rounds = half && value_dtype(g, node_result(g, half, 0)) == DTYPE_F16 &&
                value_dtype(g, node_result(g, n, 0)) == DTYPE_F32;
  return rounds && value_rank(g, x) > 1 && dequantized_constant(g, x) ? x : 0;
}

/* Where no backend waits, too. */
static const RewriteRule tables[] = {
    {OP_MUL_TENSOR, spelt_weight, "weights"}, {OP_EMBEDDING, pick_codes, "tables"},
    {OP_EMBEDDING, pick_spelt, "tables"},     {OP_INDEX_SELECT, pick_codes, "tables"},
    {OP_INDEX_SELECT, pick_spelt, "tables"},  {OP_INDEX_TENSOR, pick_codes, "tables"},
    {OP_INDEX_TENSOR, pick_spelt, "tables"},
};

Status pass_move_quantized(PassContext *p, Graph *g) {
  TRY(pass_rewrite(p, g, tables, COUNT_OF(tables)));
  static const RewriteRule rows[] = {
      {OP_AMAX, move_activation, "moves"},
      {OP_AMIN, move_activation, "moves"},
      {OP_CAT, move_codes, "moves"},
      {OP_CLAMP, limit_reals, "limits"},
      {OP_CLONE, move_codes, "moves"},
      {OP_CONSTANT_PAD_ND, pad_reals, "moves"},
      {OP_DEQUANTIZE_PER_TENSOR, drop_pair, "pairs"},
      {OP_DEQUANTIZE_PER_TENSOR, other_scale, "pairs"},
      {OP_EXPAND_COPY, move_codes, "moves"},
      {OP_FLIP, move_codes, "moves"},
      {OP_INDEX_SELECT, move_activation, "moves"},
      {OP_MAXIMUM, extreme_reals, "limits"},
      {OP_MAX_POOL2D_WITH_INDICES, move_codes, "moves"},
      {OP_MINIMUM, extreme_reals, "limits"},
      {OP_PERMUTE_COPY, move_codes, "moves"},
      {OP_PIXEL_SHUFFLE, move_activation, "moves"},
      {OP_REFLECTION_PAD1D, move_codes, "moves"},
      {OP_REFLECTION_PAD2D, move_codes, "moves"},
      {OP_REFLECTION_PAD3D, move_codes, "moves"},
      {OP_REPEAT, move_activation, "moves"},
      {OP_REPLICATION_PAD1D, move_codes, "moves"},
      {OP_REPLICATION_PAD2D, move_codes, "moves"},
      {OP_REPLICATION_PAD3D, move_codes, "moves"},
      {OP_SELECT_COPY_INT, move_codes, "moves"},
      {OP_SLICE_COPY_TENSOR, move_codes, "moves"},
      {OP_SPLIT_COPY_TENSOR, move_parts, "moves"},
      {OP_SPLIT_WITH_SIZES_COPY, move_parts, "moves"},
      {OP_SQUEEZE_COPY_DIMS, move_codes, "moves"},
      {OP_TO_COPY, unrounded_weight, "weights"},
      {OP_UNSQUEEZE_COPY, move_codes, "moves"},
      {OP_UPSAMPLE_NEAREST2D_VEC, move_codes, "moves"},
      {OP_VIEW_COPY, move_codes, "moves"},
  };
  if (!backends_take_quantized(p->options))
    return STATUS_OK;
  if (g->level == LEVEL_ATEN) /* codes are put in order while the program is written */
    return pass_rewrite(p, g, rows, COUNT_OF(rows));
  /* What decompositions do to weights may be several moves: the codes of each are constants. */
  Fold fold;
  fold_init(&fold, p->options->fold_limit);
  Rewriter r = {.rules = rows, .rule_count = COUNT_OF(rows), .fold = fold_node, .fold_data = &fold};
  Status status = pass_rewriter(p, g, &r);
  fold_release(&fold);
  return status;
}
