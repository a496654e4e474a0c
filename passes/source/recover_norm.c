/* layer_norm and rms_norm as exporters spell them:
 *   layer_norm: d = x - mean(x); d / sqrt(mean(d * d) + eps), then * weight, then + bias
 *   rms_norm:   x / sqrt(mean(x * x) + eps) or x * rsqrt(…) or x * (1 / sqrt(…)), then * weight
 * onnxscript's optimizer takes an eps of 1e-12 for 0 and drops its sum: a layer_norm is one
 * without, too (rows of equal elements are 0 / 0 either way).
 * Means are over trailing dims. The bare norm is recovered first; a weight and a bias are taken in
 * by further rows. */
#include "ir/match.h"
#include "passes/pass.h"

/* v = mean(x, trailing dims, keepdim); count of the dims. */
static bool trailing_mean(const Graph *g, ValueId v, ValueId *x, uint32_t *count) {
  NodeId n = match_op(g, v, OP_MEAN_DIM);
  if (!n || !node_bool(g, n, 2) || node_absent(g, n, 1))
    return false;
  *x = node_value(g, n, 0);
  *count = node_list_count(g, n, 1);
  uint32_t rank = value_rank(g, *x), seen = 0;
  for (uint32_t i = 0; i < *count; i++) {
    int64_t d = wrap_dim(node_ints(g, n, 1)[i], rank);
    if (d < (int64_t)(rank - *count) || d >= rank)
      return false;
    seen |= 1u << d;
  }
  return *count > 0 && *count <= rank && __builtin_popcount(seen) == (int)*count;
}

/* v = x * x or pow(x, 2) */
static bool squared(const Graph *g, ValueId v, ValueId *x) {
  NodeId n = match_op(g, v, OP_MUL_TENSOR);
  if (n) {
    *x = node_value(g, n, 0);
    return node_value(g, n, 1) == *x;
  }
  n = match_op(g, v, OP_POW_TENSOR_SCALAR);
  if (!n || node_scalar(g, n, 1) != 2)
    return false;
  *x = node_value(g, n, 0);
  return true;
}

/* v = mean(d * d) + eps, or without the sum, where eps is 0 */
static bool mean_square(const Graph *g, ValueId v, ValueId *d, uint32_t *count, double *eps) {
  ValueId mean = v, squares;
  if (!match_with_number(g, v, OP_ADD_TENSOR, &mean, eps))
    *eps = 0;
  return trailing_mean(g, mean, &squares, count) && squared(g, squares, d);
}

/* r = d / sqrt(mean(d * d) + eps), in any of its spellings. */
static bool normalised(const Graph *g, ValueId r, ValueId *d, uint32_t *count, double *eps) {
  ValueId of;
  NodeId n = match_op(g, r, OP_DIV_TENSOR);
  if (n) {
    NodeId root = match_op(g, node_value(g, n, 1), OP_SQRT);
    *d = node_value(g, n, 0);
    return root && mean_square(g, node_value(g, root, 0), &of, count, eps) && of == *d;
  }
  n = match_op(g, r, OP_MUL_TENSOR);
  for (uint32_t i = 0; n && i < 2; i++) {
    ValueId inverse = node_value(g, n, i);
    NodeId root = match_op(g, inverse, OP_RSQRT), reciprocal = match_op(g, inverse, OP_RECIPROCAL);
    if (reciprocal)
      root = match_op(g, node_value(g, reciprocal, 0), OP_SQRT);
    double one;
    NodeId quotient = match_op(g, inverse, OP_DIV_TENSOR);
    if (quotient && match_number(g, node_value(g, quotient, 0), &one) && one == 1)
      root = match_op(g, node_value(g, quotient, 1), OP_SQRT);
    *d = node_value(g, n, 1 - i);
    if (root && mean_square(g, node_value(g, root, 0), &of, count, eps) && of == *d)
      return true;
  }
  return false;
}

static ValueId norm(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId d, x, of;
  uint32_t count, mean_count;
  double eps;
  if (!normalised(g, node_result(g, n, 0), &d, &count, &eps) || !match_fits(g, n, d))
    return 0;
  SymInt dims[MAX_RANK];
  uint32_t rank = value_rank(g, d);
  for (uint32_t i = 0; i < count; i++)
    dims[i] = value_dim(g, d, rank - count + i);
  NodeId centred = match_op(g, d, OP_SUB_TENSOR);
  if (centred && trailing_mean(g, node_value(g, centred, 1), &of, &mean_count) &&
      mean_count == count && of == node_value(g, centred, 0) && match_fits(g, n, of)) {
    x = of;
    return build(b, OP_NATIVE_LAYER_NORM, A_VAL(x), A_INTS(dims, count), A_NONE, A_NONE,
                 A_FLOAT(eps));
  }
  return eps ? build(b, OP_RMS_NORM, A_VAL(d), A_INTS(dims, count), A_NONE, A_FLOAT(eps)) : 0;
}

/* w has exactly the normalised dims of this norm (leading ones aside, which its shape must not
 * have). */
static bool is_weight(const Graph *g, ValueId w, NodeId norm_node) {
  uint32_t count = node_list_count(g, norm_node, 1);
  if (value_rank(g, w) != count || value_dtype(g, w) != value_dtype(g, node_value(g, norm_node, 0)))
    return false;
  return memcmp(value_type(g, w)->dims, node_ints(g, norm_node, 1), count * sizeof(SymInt)) == 0;
}

static ValueId layer_norm_with(Builder *b, NodeId n, ValueId weight, ValueId bias) {
  Graph *g = b->g;
  SymInt dims[MAX_RANK];
  uint32_t count = node_list_count(g, n, 1);
  memcpy(dims, node_ints(g, n, 1), count * sizeof *dims);
  return build(b, OP_NATIVE_LAYER_NORM, A_VAL(node_value(g, n, 0)), A_INTS(dims, count),
               A_OPT(weight), A_OPT(bias), A_FLOAT(node_scalar(g, n, 4)));
}

static ValueId weight(Builder *b, NodeId n) {
  Graph *g = b->g;
  for (uint32_t i = 0; i < 2; i++) {
    ValueId v = node_value(g, n, i), w = node_value(g, n, 1 - i);
    NodeId layer = match_lone_norm(g, v, OP_NATIVE_LAYER_NORM),
           rms = match_op_once(g, v, OP_RMS_NORM);
    if (layer && node_absent(g, layer, 2) && node_absent(g, layer, 3) && is_weight(g, w, layer))
      return layer_norm_with(b, layer, w, 0);
    if (rms && node_absent(g, rms, 2) && is_weight(g, w, rms)) {
      SymInt dims[MAX_RANK];
      uint32_t count = node_list_count(g, rms, 1);
      memcpy(dims, node_ints(g, rms, 1), count * sizeof *dims);
      return build(b, OP_RMS_NORM, A_VAL(node_value(g, rms, 0)), A_INTS(dims, count), A_VAL(w),
                   A_FLOAT(node_scalar(g, rms, 3)));
    }
  }
  return 0;
}

static ValueId bias(Builder *b, NodeId n) {
  Graph *g = b->g;
  for (uint32_t i = 0; i < 2; i++) {
    ValueId v = node_value(g, n, i), w = node_value(g, n, 1 - i);
    NodeId layer = match_lone_norm(g, v, OP_NATIVE_LAYER_NORM);
    if (layer && node_absent(g, layer, 3) && is_weight(g, w, layer) && node_scalar(g, n, 2) == 1)
      return layer_norm_with(b, layer, node_value(g, layer, 2), w);
  }
  return 0;
}

Status pass_recover_norm(PassContext *p, Graph *g) {
  static const RewriteRule rows[] = {
      {OP_DIV_TENSOR, norm, "norms"},
      {OP_MUL_TENSOR, norm, "norms"},
      {OP_MUL_TENSOR, weight, "weights"},
      {OP_ADD_TENSOR, bias, "biases"},
  };
  return pass_rewrite(p, g, rows, COUNT_OF(rows));
}
