/* Brings nodes to one form: what does nothing goes away, chains of views and permutations become
 * one, spelt-out squares and roots become the cheap op. Each rule looks at one node and its
 * operands; one walk in order sees operands in their final form. All rules keep the result bit for
 * bit, but powers of 2, 3 and 0.5, which are rounded otherwise; and the root of -inf is NaN, where
 * pow(-inf, 0.5) is inf in C (torch.pow takes the root as well). */
#include <math.h>

#include "ir/match.h"
#include "ir/transform.h"
#include "ops/kernel.h"
#include "ops/quantized.h"
#include "passes/pass.h"
#include "support/number.h"

static bool is_view(const Graph *g, NodeId n) {
  return n && op_has_trait(node_cget(g, n)->op, OP_VIEW);
}

/* Not of large ones, which would be read for nothing. */
static bool is_filled(const Graph *g, ValueId v, double number) {
  enum { BYTES_MAX = 4096 };
  const Constant *c = value_lazy_constant(g, v);
  return c && c->size <= BYTES_MAX && match_filled(g, v, number);
}

/* --- nothing to do --- */

static ValueId same_as_operand(Builder *b, NodeId n) {
  ValueId x = node_value(b->g, n, 0);
  return value_same_type(b->g, x, node_result(b->g, n, 0)) ? x : 0;
}

static bool converts_to(const Graph *g, NodeId n, DType dtype) {
  return n != NODE_OUTPUT && node_cget(g, n)->op == OP_TO_COPY &&
         value_dtype(g, node_result(g, n, 0)) == dtype;
}

/* Whether another node than `view` converts x, or a view of it, to that type. */
static bool is_converted(const Graph *g, ValueId x, NodeId view, DType dtype) {
  for (UseId u = first_use(g, x); u; u = g->uses[u].next) {
    NodeId n = g->uses[u].node;
    if (n == NODE_OUTPUT || n == view)
      continue;
    if (converts_to(g, n, dtype))
      return true;
    for (UseId w = is_view(g, n) ? first_use(g, node_result(g, n, 0)) : 0; w; w = g->uses[w].next)
      if (converts_to(g, g->uses[w].node, dtype))
        return true;
  }
  return false;
}

/* Two constant integers to choose from, as of OneHot, perhaps permuted, that are wanted as floats:
 * they are floats before one is chosen. */
static ValueId cast_of_choice(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0);
  DType to = value_dtype(g, node_result(g, n, 0));
  NodeId permute = match_op_once(g, x, OP_PERMUTE_COPY);
  NodeId where = match_op_once(g, permute ? node_value(g, permute, 0) : x, OP_WHERE_SELF);
  if (!where || dtype_is_float(value_dtype(g, x)) || !dtype_is_float(to))
    return 0;
  ValueId one = node_value(g, where, 1), other = node_value(g, where, 2);
  if (!value_is_const(g, one) || !value_is_const(g, other))
    return 0;
  one = build_cast(b, one, to);
  other = build_cast(b, other, to);
  ValueId chosen =
      build(b, OP_WHERE_SELF, A_VAL(node_value(g, where, 0)), A_VAL(one), A_VAL(other));
  return permute ? build_permute(b, chosen, node_ints(g, permute, 1)) : chosen;
}

/* Integers that are wanted as floats with several dims become floats before they get them, so that
 * one conversion serves all. */
static ValueId cast_rule(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId choice = cast_of_choice(b, n);
  if (choice)
    return choice;
  ValueId x = node_value(g, n, 0), r = node_result(g, n, 0), same = same_as_operand(b, n);
  NodeId view = value_def(g, x);
  ValueId whole = is_view(g, view) ? node_value(g, view, 0) : 0;
  DType to = value_dtype(g, r);
  if (same || !whole || dtype_is_float(value_dtype(g, x)) || !dtype_is_float(to) ||
      value_dtype(g, x) != value_dtype(g, whole) || !is_converted(g, whole, view, to))
    return same;
  return build_view_as(b, build_cast(b, whole, to), value_dims(g, r));
}

/* Padding on one side and cropping on the other may leave the type but moves the elements. */
static ValueId pad_rule(Builder *b, NodeId n) {
  Graph *g = b->g;
  for (uint32_t i = 0; i < node_list_count(g, n, 1); i++)
    if (node_ints(g, n, 1)[i] != 0)
      return 0;
  return same_as_operand(b, n);
}

/* A condition that is the same everywhere chooses one operand whole. */
static ValueId where_rule(Builder *b, NodeId n) {
  Graph *g = b->g;
  const Constant *c = value_lazy_constant(g, node_value(g, n, 0));
  if (!c || value_dtype(g, node_value(g, n, 0)) != DTYPE_BOOL || !constant_repeats(c, 1))
    return 0;
  ValueId chosen = node_value(g, n, c->data[0] ? 1 : 2);
  return value_same_type(g, chosen, node_result(g, n, 0)) ? chosen : 0;
}

static ValueId cat_rule(Builder *b, NodeId n) {
  Graph *g = b->g;
  DType dtype = value_dtype(g, node_result(g, n, 0));
  uint32_t count = node_list_count(g, n, 0), kept = 0;
  ValueId *list = ARENA_ARRAY(&g->arena, ValueId, count);
  bool same_dtype = true;
  for (uint32_t i = 0; i < count; i++) { /* operands of no elements add nothing but their dtype */
    ValueId v = node_list_value(g, n, 0, i);
    same_dtype &= value_dtype(g, v) == dtype;
    if (type_bytes_upper(g, value_type(g, v)) != 0)
      list[kept++] = v;
  }
  if (kept == 1 && value_same_type(g, list[0], node_result(g, n, 0)))
    return list[0];
  if (kept == 0 || kept == count || !same_dtype)
    return 0;
  return build(b, OP_CAT, A_VALS(list, kept), A_INT(node_int(g, n, 1)));
}

/* x * 1 and x / 1, when the 1 does not make x larger. */
static ValueId times_one(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0), y = node_value(g, n, 1), r = node_result(g, n, 0);
  if (value_same_type(g, x, r) && is_filled(g, y, 1))
    return x;
  if (node_cget(g, n)->op == OP_MUL_TENSOR && value_same_type(g, y, r) && is_filled(g, x, 1))
    return y;
  return 0;
}

/* --- the same throughout --- */

static bool constant_is_uniform(const Graph *g, ValueId v, int64_t *number) {
  const Constant *c = value_lazy_constant(g, v);
  size_t size = dtype_size(value_dtype(g, v));
  if (!c || !dtype_in(value_dtype(g, v), DT(I32) | DT(I64)) || !constant_repeats(c, size))
    return false;
  int32_t small;
  memcpy(&small, c->data, sizeof small);
  *number = small;
  if (size == sizeof *number)
    memcpy(number, c->data, size);
  return true;
}

/* Whether v holds one integer everywhere. */
static bool is_uniform(const Graph *g, ValueId v, int64_t *number) {
  NodeId d;
  while ((d = value_def(g, v)) &&
         (op_has_trait(node_cget(g, d)->op, OP_VIEW) || node_cget(g, d)->op == OP_EXPAND_COPY))
    v = node_value(g, d, 0);
  return value_is_const(g, v) && constant_is_uniform(g, v, number);
}

/* The product of integers with zeros: floats could be infinite. */
static ValueId times_zero(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId r = node_result(g, n, 0);
  DType dtype = value_dtype(g, r);
  int64_t number;
  if (!dtype_in(dtype, DT(I32) | DT(I64)))
    return 0;
  for (uint32_t i = 0; i < 2; i++)
    if (is_uniform(g, node_value(g, n, i), &number) && number == 0) {
      Dims dims = value_dims(g, r);
      return build_expand(b, build_scalar_int(b, dtype, 0), dims.d, dims.rank);
    }
  return 0;
}

/* Rows of a table that are all the same one: the token types of most text models. */
static ValueId index_rule(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId table = node_value(g, n, 0);
  Dims from = value_dims(g, table), to = value_dims(g, node_result(g, n, 0));
  int64_t row;
  if (node_list_count(g, n, 1) != 1 || !node_list_value(g, n, 1, 0) ||
      !is_uniform(g, node_list_value(g, n, 1, 0), &row) || !sym_is_const(from.d[0]) ||
      row < -from.d[0] || row >= from.d[0])
    return 0;
  ValueId chosen =
      build(b, OP_SELECT_COPY_INT, A_VAL(table), A_INT(0), A_INT(row < 0 ? row + from.d[0] : row));
  return build_expand(b, chosen, to.d, to.rank);
}

/* --- views and permutations --- */

/* A view of the expanded x that changes dims in which x has one element: x, expanded to them. */
static ValueId view_of_expand(Builder *b, ValueId expanded, Dims to) {
  Graph *g = b->g;
  NodeId d = match_op(g, expanded, OP_EXPAND_COPY);
  if (!d)
    return 0;
  ValueId x = node_value(g, d, 0);
  Dims from = value_dims(g, expanded), own = value_dims(g, x);
  uint32_t same = 0;
  while (same < to.rank && same < own.rank &&
         to.d[to.rank - 1 - same] == from.d[from.rank - 1 - same])
    same++;
  for (uint32_t i = 0; i + same < own.rank; i++)
    if (own.d[i] != 1)
      return 0;
  if (same < own.rank)
    x = build_view(b, x, own.d + (own.rank - same), same);
  return build_expand(b, x, to.d, to.rank);
}

/* The tensor that a chain of views ends in. */
static ValueId view_base(const Graph *g, ValueId v) {
  NodeId d;
  while (is_view(g, d = value_def(g, v)) &&
         value_dtype(g, node_value(g, d, 0)) == value_dtype(g, v))
    v = node_value(g, d, 0);
  return v;
}

static ValueId view_rule(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId r = node_result(g, n, 0), x = node_value(g, n, 0), base = view_base(g, x);
  if (value_same_type(g, base, r))
    return base;
  Dims dims = value_dims(g, r);
  ValueId expanded = view_of_expand(b, base, dims);
  if (expanded || (base == x && node_cget(g, n)->op == OP_VIEW_COPY))
    return expanded;
  return build(b, OP_VIEW_COPY, A_VAL(base), A_INTS(dims.d, dims.rank));
}

static bool read_perm(const Graph *g, NodeId n, int64_t *perm) {
  uint32_t rank = node_list_count(g, n, 1);
  for (uint32_t i = 0; i < rank; i++)
    perm[i] = wrap_dim(node_ints(g, n, 1)[i], rank);
  return rank > 0;
}

/* Dim i of `whole` is dims from[i] to from[i + 1] of its view `parts`; false when the view does
 * more than to split dims. */
static bool splits_dims(Graph *g, ValueId whole, ValueId parts, uint32_t *from) {
  uint32_t rank = value_rank(g, whole), count = value_rank(g, parts), k = 0;
  for (uint32_t i = 0; i < rank; i++) {
    SymInt dim = value_dim(g, whole, i), product = 1;
    for (from[i] = k; k < count && (product != dim || value_dim(g, parts, k) == 1); k++)
      product = sym_mul(&g->syms, product, value_dim(g, parts, k));
    if (product != dim)
      return false;
  }
  from[rank] = count;
  return rank > 0 && k == count;
}

/* permute(view(permute(z))) whose view splits dims: z may be split first, and permuted once. */
static ValueId permute_of_split(Builder *b, NodeId n, const int64_t *perm) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0);
  NodeId view = match_op(g, x, OP_VIEW_COPY);
  NodeId first = view ? match_op(g, node_value(g, view, 0), OP_PERMUTE_COPY) : 0;
  int64_t inner[MAX_RANK], place[MAX_RANK], both[MAX_RANK];
  uint32_t from[MAX_RANK + 1], rank = value_rank(g, x), count = 0;
  SymInt dims[MAX_RANK];
  if (!first || !read_perm(g, first, inner) || !splits_dims(g, node_value(g, view, 0), x, from))
    return 0;
  uint32_t whole = value_rank(g, node_value(g, view, 0));
  for (uint32_t k = 0; k < whole; k++) { /* dims of z in order */
    uint32_t i = 0;
    while (inner[i] != (int64_t)k)
      i++;
    for (uint32_t j = from[i]; j < from[i + 1]; j++) {
      place[j] = (int64_t)count;
      dims[count++] = value_dim(g, x, j);
    }
  }
  for (uint32_t i = 0; i < rank; i++)
    both[i] = place[perm[i]];
  return build_permute(b, build_view(b, node_value(g, first, 0), dims, rank), both);
}

static ValueId permute_rule(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0), r = node_result(g, n, 0);
  uint32_t rank = value_rank(g, x);
  int64_t perm[MAX_RANK], inner[MAX_RANK], both[MAX_RANK];
  if (!read_perm(g, n, perm))
    return x;
  NodeId d = match_op(g, x, OP_PERMUTE_COPY);
  if (d && read_perm(g, d, inner)) {
    for (uint32_t i = 0; i < rank; i++)
      both[i] = inner[perm[i]];
    return build_permute(b, node_value(g, d, 0), both);
  }
  if (!match_view_permute(g, n))
    return permute_of_split(b, n, perm);
  return build_view_as(b, x, value_dims(g, r));
}

/* --- powers --- */

static ValueId pow_rule(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0);
  if (!dtype_is_float(value_dtype(g, x)) || !value_same_type(g, x, node_result(g, n, 0)))
    return 0;
  double e = node_scalar(g, n, 1);
  if (e == 1)
    return x;
  if (e == 2)
    return build(b, OP_MUL_TENSOR, A_VAL(x), A_VAL(x));
  if (e == 3)
    return build(b, OP_MUL_TENSOR, A_VAL(build(b, OP_MUL_TENSOR, A_VAL(x), A_VAL(x))), A_VAL(x));
  return e == 0.5 ? build(b, OP_SQRT, A_VAL(x)) : 0;
}

/* --- broadcasts that the kernel does itself --- */

/* Is v's shape, seen against result dims, a broadcast of it? True when expanding v to the result is
 * what the kernel does anyway. */
static bool broadcasts_to(const Graph *g, ValueId v, ValueId other, ValueId result) {
  const Type *t = value_type(g, v), *o = value_type(g, other), *r = value_type(g, result);
  if (t->rank != r->rank && o->rank != r->rank)
    return false;
  for (uint32_t i = 0; i < r->rank; i++) {
    SymInt a = i + t->rank >= r->rank ? t->dims[i + t->rank - r->rank] : 1,
           c = i + o->rank >= r->rank ? o->dims[i + o->rank - r->rank] : 1;
    if (a != r->dims[i] && c != r->dims[i])
      return false;
  }
  return true;
}

/* What legalize_shapes sees to stays so behind it: a kernel may give the result the rank of the
 * operand of lower rank, unless the other one has the result's shape. */
static bool ranks_are_legal(const Graph *g, ValueId low, ValueId other, NodeId n) {
  ValueId result = node_result(g, n, 0);
  uint32_t rank = value_rank(g, low);
  return rank == 0 || rank == value_rank(g, result) || value_same_type(g, other, result);
}

/* The expand that gives v, or a repeat of nothing but dims of 1, which does the same. */
static NodeId match_expand(const Graph *g, ValueId v) {
  NodeId d = match_op(g, v, OP_REPEAT);
  if (!d)
    return match_op(g, v, OP_EXPAND_COPY);
  ValueId x = node_value(g, d, 0);
  uint32_t rank = value_rank(g, x), lead = value_rank(g, v) - rank;
  const SymInt *times = node_ints(g, d, 1);
  for (uint32_t i = 0; i < rank; i++)
    if (value_dim(g, x, i) != 1 && times[lead + i] != 1)
      return 0;
  return d;
}

/* An expand in front of a broadcasting elementwise op with two operands is left to the op. */
static ValueId unexpand_rule(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId changed = 0;
  for (uint32_t i = 0; i < 2; i++) {
    ValueId v = node_value(g, n, i), other = node_value(g, n, 1 - i);
    NodeId d = match_expand(g, v);
    if (!d || !broadcasts_to(g, node_value(g, d, 0), other, node_result(g, n, 0)) ||
        (g->level == LEVEL_EDGE && !ranks_are_legal(g, node_value(g, d, 0), other, n)))
      continue;
    node_set_arg(g, n, i, A_VAL(node_value(g, d, 0)));
    changed = node_result(g, n, 0);
  }
  OpId op = node_cget(g, n)->op;
  ValueId zeros = op == OP_MUL_TENSOR ? times_zero(b, n) : 0;
  if (zeros)
    return zeros;
  ValueId operand = op == OP_MUL_TENSOR || op == OP_DIV_TENSOR ? times_one(b, n) : 0;
  return operand ? operand : changed;
}

/* A scale and a zero point that are computed of constants are numbers. */
static ValueId quantize_rule(Builder *b, NodeId n) {
  Quantization q = quantization_of(b->g, n);
  double scale, zero;
  if (!match_number(b->g, q.scales, &scale) || !match_number(b->g, q.zeros, &zero) ||
      !(scale > 0 && scale < INFINITY))
    return 0;
  q.scale = (float)scale;
  q.zero = int_clamped(zero, q.low, q.high);
  q.scales = q.zeros = 0;
  q.dynamic = false;
  ValueId x = node_value(b->g, n, 0);
  return is_quantize(b->g, n) ? build_quantize(b, x, &q) : build_dequantize(b, x, &q);
}

/* A copy of the constant, to be changed. */
static Tensor copied(Graph *g, ValueId v) {
  const Constant *c = value_constant(g, v);
  Tensor t = {.dtype = value_dtype(g, v),
              .rank = value_rank(g, v),
              .data = arena_alloc(&g->arena, c->size),
              .capacity = c->size};
  memcpy(t.data, c->data, c->size);
  for (uint32_t i = 0; i < t.rank; i++)
    t.dims[i] = value_dim(g, v, i);
  return t;
}

static bool has_zero(const Graph *g, ValueId scales) {
  const Constant *c = value_constant(g, scales);
  static const uint8_t zero[sizeof(float)];
  bool found = false;
  for (size_t i = 0; c && i < c->size; i += sizeof zero)
    found |= memcmp(c->data + i, zero, sizeof zero) == 0;
  return found;
}

/* Channels of weights whose scale is 0, which some tools write for those that are all zeros, get
 * codes for 0 and a scale that backends take. */
static ValueId dead_channels(Builder *b, NodeId n) {
  Graph *g = b->g;
  Quantization q = quantization_of(g, n);
  if (!dequantized_constant(g, node_result(g, n, 0)) || !has_zero(g, q.scales))
    return 0;
  Tensor codes = copied(g, node_value(g, n, 0)), scales = copied(g, q.scales), zeros = {0};
  if (q.zeros)
    zeros = copied(g, q.zeros);
  int64_t inner = 1, channels = codes.dims[q.axis], count = tensor_numel(&codes);
  for (uint32_t i = q.axis + 1; i < codes.rank; i++)
    inner *= codes.dims[i];
  for (int64_t i = 0; i < count; i++) {
    int64_t channel = i / inner % channels;
    if (tensor_load(&scales, channel) == 0)
      tensor_store_int(&codes, i, q.zeros ? tensor_load_int(&zeros, channel) : q.zero);
  }
  for (int64_t i = 0; i < channels; i++)
    if (tensor_load(&scales, i) == 0)
      tensor_store(&scales, i, 1);
  q.scales = build_const(b, DTYPE_F32, scales.rank, scales.dims, scales.data);
  return build_dequantize(b, build_const(b, codes.dtype, codes.rank, codes.dims, codes.data), &q);
}

static const RewriteRule rules[] = {
    {OP_TO_COPY, cast_rule, NULL},
    {OP_EXPAND_COPY, same_as_operand, NULL},
    {OP_SLICE_COPY_TENSOR, same_as_operand, NULL}, /* of step 1 or more: all of it */
    {OP_CAT, cat_rule, NULL},
    {OP_VIEW_COPY, view_rule, NULL},
    {OP_UNSQUEEZE_COPY, view_rule, NULL},
    {OP_SQUEEZE_COPY_DIMS, view_rule, NULL},
    {OP_PERMUTE_COPY, permute_rule, NULL},
    {OP_POW_TENSOR_SCALAR, pow_rule, NULL},
    {OP_ADD_TENSOR, unexpand_rule, NULL},
    {OP_SUB_TENSOR, unexpand_rule, NULL},
    {OP_MUL_TENSOR, unexpand_rule, NULL},
    {OP_DIV_TENSOR, unexpand_rule, NULL},
    {OP_REPEAT, same_as_operand, NULL},
    {OP_CONSTANT_PAD_ND, pad_rule, NULL},
    {OP_WHERE_SELF, where_rule, NULL},
    {OP_INDEX_TENSOR, index_rule, NULL},
    {OP_QUANTIZE_PER_TENSOR_TENSOR, quantize_rule, NULL},
    {OP_DEQUANTIZE_PER_TENSOR_TENSOR, quantize_rule, NULL},
    {OP_DEQUANTIZE_PER_CHANNEL, dead_channels, NULL},
};

Status pass_canonicalize(PassContext *p, Graph *g) {
  Rewriter r = {.rules = rules, .rule_count = COUNT_OF(rules), .name = "nodes rewritten"};
  return pass_rewriter(p, g, &r);
}
