/* See estimate.h. */
#include "backends/xnnpack/estimate.h"

#include "backends/xnnpack/moves.h"
#include "ir/op.h"
#include "ops/quantized.h"
#include "ops/work.h"

#define CALL 110.0 /* of a delegate, beyond that of a kernel */
#define NODE 65.0  /* of XNNPACK */
#define MOVED 0.15 /* a byte that is only put in another order or type */
#define TAP 0.5    /* an element of a window that kernels gather, the least of several ways */
#define KEPT 0.15  /* an element of weights that are codes: floats are 3 bytes larger */
#define SPREAD 2.5 /* an element of a result of which both operands are broadcast */

/* Of kernels: a call, an element beyond what XNNPACK takes for it, and what they take more for an
 * element of half precision, which they widen and round one at a time. */
static const struct {
  double call, element, half;
} rates[] = {
    [XNN_WORK_VIEW] = {0, 0, 0},         [XNN_WORK_COPY] = {75, 0, 0},
    [XNN_WORK_JOIN] = {75, 0, 0},        [XNN_WORK_SHUFFLE] = {75, 3, 0},
    [XNN_WORK_ORDER] = {75, 3, 0},       [XNN_WORK_ARITHMETIC] = {75, 0.15, 12},
    [XNN_WORK_CHOICE] = {75, 3, 12},     [XNN_WORK_ROUNDING] = {225, 5, 12},
    [XNN_WORK_FUNCTION] = {75, 2.5, 12}, [XNN_WORK_REDUCTION] = {75, 0.5, 0},
    [XNN_WORK_MEAN] = {5000, 0.5, 0},    [XNN_WORK_NORM] = {75, 0.8, 12},
    [XNN_WORK_WINDOW] = {150, 20, 0},    [XNN_WORK_PRODUCT] = {150, 0.003, 2},
};

/* Nodes that XNNPACK makes part of others, or does nothing for. */
static bool is_free(uint8_t kind) {
  return kind == XNN_STATIC_RESHAPE || kind == XNN_COPY || kind == XNN_CLAMP;
}

/* What kernels spend on gathering the windows of a convolution, which XNNPACK reads in place; those
 * of one element are products as they lie. */
static double windows(const Graph *g, NodeId n) {
  ValueId weight = node_value(g, n, 1);
  double taps = 1, products = (double)node_work(g, n);
  for (uint32_t i = 2; i < value_rank(g, weight); i++)
    taps *= (double)sym_upper(&g->syms, value_dim(g, weight, i));
  if (taps <= 1 || node_bool(g, n, 6))
    return taps <= 1 ? 0 : products;
  double outputs = (double)sym_upper(&g->syms, value_dim(g, weight, 0));
  return outputs > 0 ? products / outputs * (double)node_int(g, n, 8) : 0;
}

/* Kernels of sums and products are fast where one of two operands has all elements of the result.
 */
static bool broadcasts_both(const Graph *g, NodeId n) {
  ValueId result = node_result(g, n, 0);
  uint64_t all = moves_elements(g, result);
  bool both = op_has_trait(node_cget(g, n)->op, OP_ELEMENTWISE) && node_cget(g, n)->arg_count > 1;
  for (uint32_t i = 0; i < 2 && both; i++)
    both = node_arg(g, n, i)->kind == ARG_VALUE && moves_elements(g, node_value(g, n, i)) < all;
  return both;
}

/* Elements of operands that are dequantized constants: outside of a delegate they become floats. */
static double kept_codes(const Graph *g, NodeId n) {
  double count = 0;
  FOR_OPERANDS(g, n, v, {
    if (v && value_rank(g, v) > 1 && dequantized_constant(g, v))
      count += (double)moves_elements(g, v);
  })
  return count;
}

double xnn_saved(const Graph *g, NodeId n, XnnWork work) {
  bool reads = work == XNN_WORK_REDUCTION || work == XNN_WORK_MEAN;
  double count = (double)moves_elements(g, reads ? node_value(g, n, 0) : node_result(g, n, 0));
  if (work == XNN_WORK_PRODUCT) {
    ValueId left = node_value(g, n, node_cget(g, n)->op == OP_ADDMM ? 1 : 0);
    count *= (double)sym_upper(&g->syms, value_dim(g, left, value_rank(g, left) - 1));
  }
  double gathered = node_cget(g, n)->op == OP_CONVOLUTION ? windows(g, n) : 0,
         element = rates[work].element,
         kept = work == XNN_WORK_PRODUCT || work == XNN_WORK_WINDOW ? kept_codes(g, n) : 0;
  if (dtype_is_half(value_dtype(g, node_result(g, n, 0))))
    element += rates[work].half;
  if (work == XNN_WORK_ARITHMETIC && broadcasts_both(g, n))
    element += SPREAD;
  return rates[work].call + count * element + gathered * TAP + kept * KEPT;
}

double xnn_spent(const XnnGraph *x) {
  double spent = CALL;
  for (uint32_t i = 0; i < x->node_count; i++) {
    const XnnNode *node = &x->nodes[i];
    spent += is_free(node->kind) ? 0 : NODE;
    if (node->kind != XNN_STATIC_TRANSPOSE && node->kind != XNN_CONVERT)
      continue;
    const XnnValue *out = &x->values[xnn_result(node)];
    double bytes = xnn_element_size(out->datatype);
    for (uint32_t d = 0; d < out->rank; d++)
      bytes *= out->dims[d];
    spent += bytes * MOVED;
  }
  return spent;
}
