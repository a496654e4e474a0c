/* where(isnan(p), 0, p) with p = softmax(s), which exporters write so that rows of attention that a
 * mask hides whole come out as 0: softmax(max(s, lowest)) is no NaN in such rows, and times whether
 * s is a number at all, min(max(s - lowest + 1, 0), 1), it is 0 there. Backends have no isnan.
 *
 * It is the same for rows of finite numbers and -inf, which is what masked scores are. Where s is
 * scores plus a mask that is smaller, the mask says what is hidden.
 *
 * where(any(m), p, 0) with s = where(m, x, -inf) keeps its where, but p gets no NaN either: a
 * backend chooses by arithmetic. */
#include "ir/match.h"
#include "passes/pass.h"

#include <float.h>
#include <math.h>

/* Whether v is the smaller operand of a sum with that result. */
static bool is_broadcast(const Graph *g, ValueId v, ValueId result) {
  uint32_t rank = value_rank(g, result), own = value_rank(g, v);
  for (uint32_t i = 0; i < rank; i++) {
    SymInt to = value_dim(g, result, i);
    if (to != 1 && (i < rank - own || value_dim(g, v, i - (rank - own)) == 1))
      return true;
  }
  return false;
}

static ValueId mask_of(const Graph *g, ValueId scores) {
  NodeId sum = match_op(g, scores, OP_ADD_TENSOR);
  for (uint32_t i = 0; sum && i < 2; i++) {
    ValueId v = node_value(g, sum, i);
    if (is_broadcast(g, v, scores) && value_dtype(g, v) == value_dtype(g, scores))
      return v;
  }
  return scores;
}

static double lowest(const Graph *g, ValueId v) {
  return value_dtype(g, v) == DTYPE_F16 ? -65504 : -(double)FLT_MAX;
}

static bool is_supported_type(const Graph *g, ValueId v) {
  return dtype_in(value_dtype(g, v), DT(F32) | DT(F16));
}

/* What v is a conversion of, from another float type: both are NaN at the same places. */
static ValueId unconverted(const Graph *g, ValueId v) {
  NodeId convert = match_op(g, v, OP_TO_COPY);
  return convert && is_supported_type(g, node_value(g, convert, 0)) ? node_value(g, convert, 0) : v;
}

/* softmax of scores, of which none is -inf. */
static ValueId limited_softmax(Builder *b, ValueId scores, int64_t dim) {
  ValueId limited = build(b, OP_CLAMP, A_VAL(scores), A_FLOAT(lowest(b->g, scores)));
  return build(b, OP_SOFTMAX, A_VAL(limited), A_INT(dim), A_BOOL(false));
}

static ValueId guarded(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId p = unconverted(g, node_value(g, n, 2));
  NodeId test = match_op(g, node_value(g, n, 0), OP_ISNAN), soft = match_op(g, p, OP_SOFTMAX);
  double number;
  if (!test || unconverted(g, node_value(g, test, 0)) != p || !soft || !is_supported_type(g, p) ||
      !match_number(g, node_value(g, n, 1), &number) || number != 0)
    return 0;
  ValueId scores = node_value(g, soft, 0), mask = mask_of(g, scores);
  ValueId weights = limited_softmax(b, scores, node_int(g, soft, 1));
  DType dtype = value_dtype(g, p);
  ValueId above =
      build(b, OP_ADD_TENSOR, A_VAL(mask), A_VAL(build_scalar(b, dtype, -lowest(g, mask))));
  ValueId least = build(b, OP_ADD_TENSOR, A_VAL(above), A_VAL(build_scalar(b, dtype, 1)));
  ValueId seen = build(b, OP_CLAMP, A_VAL(least), A_FLOAT(0), A_FLOAT(1));
  ValueId product = build(b, OP_MUL_TENSOR, A_VAL(weights), A_VAL(seen));
  DType wanted = value_dtype(g, node_result(g, n, 0));
  return wanted == dtype ? product : build_cast(b, product, wanted);
}

static ValueId cleared(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId condition = node_value(g, n, 0), zero = node_value(g, n, 2);
  NodeId any = match_op(g, condition, OP_ANY_DIM),
         soft = match_op(g, node_value(g, n, 1), OP_SOFTMAX);
  double number;
  if (!any || !soft || !match_number(g, zero, &number) || number != 0)
    return 0;
  NodeId masked = match_op(g, unconverted(g, node_value(g, soft, 0)), OP_WHERE_SELF);
  if (!masked || node_value(g, masked, 0) != node_value(g, any, 0) || !is_supported_type(g, zero) ||
      !match_number(g, node_value(g, masked, 2), &number) || number != -INFINITY)
    return 0;
  ValueId weights = limited_softmax(b, node_value(g, soft, 0), node_int(g, soft, 1));
  return build(b, OP_WHERE_SELF, A_VAL(condition), A_VAL(weights), A_VAL(zero));
}

Status pass_guard_softmax(PassContext *p, Graph *g) {
  static const RewriteRule rows[] = {{OP_WHERE_SELF, guarded, "tests for NaN"},
                                     {OP_WHERE_SELF, cleared, "cleared rows"}};
  return pass_rewrite(p, g, rows, COUNT_OF(rows));
}
