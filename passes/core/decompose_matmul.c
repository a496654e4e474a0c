/* aten::matmul -> mm or bmm (broadcasting: torch.matmul's document); scaled_dot_product_attention
 * -> two matmuls around a softmax. */
#include <math.h>

#include "passes/core/decompose.h"

static bool all_ones(const SymInt *d, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (d[i] != 1)
      return false;
  return true;
}

/* The runtime's addmm is a plain loop while mm and add are optimised, so the product and the sum go
 * apart where no factor is in the way. */
ValueId decompose_addmm(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId bias = node_value(g, n, 0), x = node_value(g, n, 1), y = node_value(g, n, 2);
  if (node_scalar(g, n, 3) != 1 || node_scalar(g, n, 4) != 1)
    return 0;
  return build_binary(b, OP_ADD_TENSOR, build_binary(b, OP_MM, x, y), bias);
}

/* x [..., K] times a matrix [K, N]: rows gathered into one matrix product. */
static ValueId by_matrix(Builder *b, ValueId x, ValueId matrix, const Dims *result) {
  Dims s = value_dims(b->g, x);
  SymInt k = s.d[s.rank - 1];
  ValueId rows = build_view(b, x, (SymInt[]){sym_product(&b->g->syms, s.d, s.rank - 1), k}, 2);
  ValueId y = build_binary(b, OP_MM, rows, matrix);
  return build_view(b, y, result->d, result->rank);
}

/* Both with batch dims: expanded to the common batch, folded into one dim. */
static ValueId by_batch(Builder *b, ValueId x, ValueId y, const Dims *result) {
  Dims sx = value_dims(b->g, x), sy = value_dims(b->g, y);
  uint32_t batch = result->rank - 2;
  SymInt m = sx.d[sx.rank - 2], k = sx.d[sx.rank - 1], n = sy.d[sy.rank - 1],
         all = sym_product(&b->g->syms, result->d, batch);
  SymInt wide[MAX_RANK];
  memcpy(wide, result->d, batch * sizeof *wide);
  wide[batch] = m, wide[batch + 1] = k;
  x = build_view(b, build_expand(b, x, wide, batch + 2), (SymInt[]){all, m, k}, 3);
  wide[batch] = k, wide[batch + 1] = n;
  y = build_view(b, build_expand(b, y, wide, batch + 2), (SymInt[]){all, k, n}, 3);
  return build_view(b, build_binary(b, OP_BMM, x, y), result->d, result->rank);
}

ValueId decompose_matmul(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0), y = node_value(g, n, 1), r = node_result(g, n, 0);
  Dims sx = value_dims(g, x), sy = value_dims(g, y), final = value_dims(g, r), result = final;
  if (sx.rank == 1)
    x = build_view(b, x, (SymInt[]){1, sx.d[0]}, 2);
  if (sy.rank == 1)
    y = build_view(b, y, (SymInt[]){sy.d[0], 1}, 2);
  if (sx.rank == 1 || sy.rank == 1) { /* the result with its unit dims back */
    Dims full = value_dims(g, sx.rank > sy.rank ? x : y);
    full.d[full.rank - 2] = sx.rank == 1 ? 1 : sx.d[sx.rank - 2];
    full.d[full.rank - 1] = sy.rank == 1 ? 1 : sy.d[sy.rank - 1];
    result = full;
  }
  sx = value_dims(g, x), sy = value_dims(g, y);
  ValueId out;
  if (sx.rank == 2 && sy.rank == 2) {
    out = build_binary(b, OP_MM, x, y);
  } else if (all_ones(sy.d, sy.rank - 2) && sx.rank >= sy.rank) {
    ValueId matrix = build_view(b, y, sy.d + sy.rank - 2, 2);
    out = by_matrix(b, x, matrix, &result);
  } else {
    out = by_batch(b, x, y, &result);
  }
  return build_view(b, out, final.d, final.rank);
}

static ValueId swap_last(Builder *b, ValueId x) {
  int64_t perm[MAX_RANK];
  uint32_t rank = b->status == STATUS_OK ? value_rank(b->g, x) : 0;
  for (uint32_t i = 0; i < rank; i++)
    perm[i] = i;
  if (rank < 2)
    return 0;
  perm[rank - 1] = rank - 2;
  perm[rank - 2] = rank - 1;
  return build_permute(b, x, perm);
}

/* The number of query heads over that of key heads; keys and values are repeated that often, each
 * head next to its copies. */
static ValueId repeat_heads(Builder *b, ValueId x, SymInt heads) {
  Dims s = value_dims(b->g, x);
  if (s.rank != 4 || s.d[1] == heads)
    return x;
  SymInt times = sym_floordiv(&b->g->syms, heads, s.d[1]);
  ValueId five = build_view(b, x, (SymInt[]){s.d[0], s.d[1], 1, s.d[2], s.d[3]}, 5);
  five = build_expand(b, five, (SymInt[]){s.d[0], s.d[1], times, s.d[2], s.d[3]}, 5);
  return build_view(b, five, (SymInt[]){s.d[0], heads, s.d[2], s.d[3]}, 4);
}

/* 0 where key j may be seen by query i (j <= i), -inf elsewhere; [L, S]. */
static ValueId causal_mask(Builder *b, ValueId like, SymInt rows, SymInt columns) {
  ValueId i = build(b, OP_ARANGE, A_INT(rows), A_DTYPE(DTYPE_I64)),
          j = build(b, OP_ARANGE, A_INT(columns), A_DTYPE(DTYPE_I64));
  ValueId seen = build_binary(b, OP_LE_TENSOR, j, build_view(b, i, (SymInt[]){rows, 1}, 2));
  ValueId zero = decompose_number(b, like, 0), hidden = decompose_number(b, like, -INFINITY);
  return build(b, OP_WHERE_SELF, A_VAL(seen), A_VAL(zero), A_VAL(hidden));
}

ValueId decompose_sdpa(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId q = node_value(g, n, 0), k = node_value(g, n, 1), v = node_value(g, n, 2),
          mask = node_value(g, n, 3);
  Dims sq = value_dims(g, q), sk = value_dims(g, k);
  SymInt depth = sq.d[sq.rank - 1];
  if (node_absent(g, n, 6) && !sym_is_const(depth))
    return 0;
  double scale = node_scalar_or(g, n, 6, 1 / sqrt((double)depth));
  bool causal = node_bool(g, n, 5);
  if (node_bool(g, n, 7) && sq.rank == 4) {
    k = repeat_heads(b, k, sq.d[1]);
    v = repeat_heads(b, v, sq.d[1]);
  }
  ValueId scores = build_binary(b, OP_MATMUL, q, swap_last(b, k));
  scores = build_binary(b, OP_MUL_TENSOR, scores, decompose_number(b, q, scale));
  if (mask && value_dtype(g, mask) == DTYPE_BOOL) {
    ValueId zero = decompose_number(b, q, 0), hidden = decompose_number(b, q, -INFINITY);
    mask = build(b, OP_WHERE_SELF, A_VAL(mask), A_VAL(zero), A_VAL(hidden));
  }
  if (mask)
    scores = build_binary(b, OP_ADD_TENSOR, scores, mask);
  if (causal)
    scores = build_binary(b, OP_ADD_TENSOR, scores,
                          causal_mask(b, q, sq.d[sq.rank - 2], sk.d[sk.rank - 2]));
  ValueId weights = build(b, OP_SOFTMAX, A_VAL(scores), A_INT(-1), A_BOOL(false));
  return build_binary(b, OP_MATMUL, weights, v);
}
