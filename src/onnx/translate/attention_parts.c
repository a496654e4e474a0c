/* Parts of the attention operators; see attention_parts.h. */
#include "onnx/translate/attention_parts.h"

#include <math.h>

SymInt attention_share(Import *im, SymInt size, SymInt parts) {
  SymTable *t = &im->g->syms;
  SymInt share;
  if (size == parts)
    return 1;
  if (!sym_is_const(size) && !sym_is_const(parts) && sym_exact_div(t, size, parts, &share))
    return share;
  if (!sym_is_const(size))
    graph_add_constraint(im->g, (Constraint){CONSTRAINT_DIVISIBLE, size, parts, im->b.loc});
  return sym_floordiv(t, size, parts);
}

ValueId attention_split_heads(Import *im, ValueId x, int64_t heads) {
  uint32_t rank = ex_rank(im, x);
  if (rank == 4)
    return x;
  if (rank != 3)
    return import_fail(im, DIAG_INPUT_RANK, "an input of attention has rank %u, not 3 or 4", rank);
  SymInt wide = ex_dim(im, x, 2);
  if (heads < 1 || (sym_is_const(wide) && wide % heads))
    return import_fail(im, DIAG_ATTR_VALUE, "%lld heads do not divide a hidden size of %lld",
                       (long long)heads, (long long)wide);
  SymInt size = attention_share(im, wide, heads);
  ValueId four = EX_VIEW(im, x, ex_dim(im, x, 0), ex_dim(im, x, 1), heads, size);
  return EX_PERMUTE(im, four, 0, 2, 1, 3);
}

ValueId attention_merge_heads(Import *im, ValueId x) {
  SymInt wide = sym_mul(&im->g->syms, ex_dim(im, x, 1), ex_dim(im, x, 3));
  ValueId rows = EX_PERMUTE(im, x, 0, 2, 1, 3);
  return EX_VIEW(im, rows, ex_dim(im, rows, 0), ex_dim(im, rows, 1), wide);
}

/* x [B, Hq, S, N] times matrices [B, Hkv, N, M]: [B, Hq, S, M]. */
static ValueId grouped_product(Import *im, ValueId x, ValueId matrices) {
  SymTable *t = &im->g->syms;
  SymInt batch = ex_dim(im, x, 0), heads = ex_dim(im, x, 1), rows = ex_dim(im, x, 2),
         n = ex_dim(im, x, 3), m = ex_dim(im, matrices, 3);
  SymInt groups = ex_dim(im, matrices, 1);
  if (groups != heads)
    groups = ex_fixed(im, matrices, 1);
  if (groups == 0 || (sym_is_const(heads) && sym_is_const(groups) && heads % groups))
    return import_fail(im, DIAG_SHAPE_MISMATCH,
                       "the number of query heads is not a multiple of the %lld key heads",
                       (long long)groups);
  SymInt all = sym_mul(t, batch, groups),
         together = sym_mul(t, rows, attention_share(im, heads, groups));
  ValueId left = EX_VIEW(im, x, all, together, n), right = EX_VIEW(im, matrices, all, n, m);
  return EX_VIEW(im, ex_bmm(im, left, right), batch, heads, rows, m);
}

ValueId attention_scores(Import *im, ValueId q, ValueId k) {
  return grouped_product(im, q, EX_PERMUTE(im, k, 0, 1, 3, 2));
}

ValueId attention_mix(Import *im, ValueId weights, ValueId v) {
  return grouped_product(im, weights, v);
}

/* --- masks --- */

ValueId attention_and(Import *im, ValueId a, ValueId b) {
  if (!a || !b)
    return a ? a : b;
  return ex_and(im, a, b);
}

ValueId attention_apply(Import *im, ValueId scores, AttentionMask mask) {
  if (!mask.allowed && !mask.bias)
    return scores;
  ValueId hidden = ex_number(im, scores, -INFINITY);
  if (!mask.bias)
    return ex_where(im, mask.allowed, scores, hidden);
  ValueId bias = mask.allowed ? ex_where(im, mask.allowed, mask.bias, hidden) : mask.bias;
  return ex_add(im, scores, bias);
}

/* Is the value a constant whose elements are all true? */
static bool always(Import *im, ValueId v) {
  Ints values;
  if (!value_is_const(im->g, v) || !value_ints(im, v, &values))
    return false;
  for (uint32_t i = 0; i < values.count; i++)
    if (values.at[i] != 1)
      return false;
  return true;
}

ValueId attention_clear_rows(Import *im, ValueId weights, AttentionMask mask) {
  if (!mask.allowed && !mask.bias)
    return weights;
  ValueId seen;
  if (mask.bias) {
    ValueId bias = mask.bias;
    if (mask.allowed)
      bias = ex_where(im, mask.allowed, bias, ex_number(im, bias, -INFINITY));
    ValueId best = ex_reduce_one(im, OP_AMAX, bias, -1, true);
    seen = build(&im->b, OP_NE_SCALAR, A_VAL(best), A_FLOAT(-INFINITY));
  } else {
    seen = build(&im->b, OP_ANY_DIM, A_VAL(mask.allowed), A_INT(-1), A_BOOL(true));
  }
  return always(im, seen) ? weights : ex_where(im, seen, weights, ex_number(im, weights, 0));
}

ValueId attention_band(Import *im, SymInt queries, SymInt keys, ValueId offset, int64_t left,
                       int64_t right) {
  if (left < 0 && right < 0)
    return 0;
  ValueId i = EX_VIEW(im, ex_arange(im, queries), queries, 1), j = ex_arange(im, keys);
  offset = ex_cast(im, offset, DTYPE_I64);
  if (ex_rank(im, offset) == 1)
    offset = EX_VIEW(im, offset, ex_dim(im, offset, 0), 1, 1, 1);
  ValueId place = ex_add(im, i, offset), allowed = 0;
  if (right >= 0)
    allowed = ex_le(im, j, ex_plus(im, place, (double)right));
  if (left >= 0)
    allowed = attention_and(im, allowed, ex_ge(im, j, ex_minus(im, place, (double)left)));
  return allowed;
}
