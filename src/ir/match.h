/* Matching of small patterns, backwards from a value to its operands. Each function answers "is v
 * the result of this op on such operands?" and gives the operands; none changes the graph. */
#ifndef ETC_IR_MATCH_H
#define ETC_IR_MATCH_H

#include "ir/op.h"

/* The node of this op that computes v, else 0. add and sub only with alpha 1. */
NodeId match_op(const Graph *g, ValueId v, OpId op);
/* As match_op, and v has no other user: the node would be dead after a rewrite. */
NodeId match_op_once(const Graph *g, ValueId v, OpId op);
/* An op that multiplies matrices of which the second is operand 1. */
static inline bool match_matrix_product(OpId op) {
  return op == OP_LINEAR || op == OP_MATMUL || op == OP_BMM || op == OP_MM;
}
/* v is one number everywhere: a float or integer constant of one element. */
bool match_number(const Graph *g, ValueId v, double *number);
/* All elements of v, which are integers, are *least to *most: a clamp says so, of what views, casts
 * to i64 and expand make it. Infinite: not limited. */
bool match_clamped(const Graph *g, ValueId v, double *least, double *most);
/* v is a constant of this number only, as exporters give where a norm has no scale or shift. */
bool match_filled(const Graph *g, ValueId v, double number);
/* v is a constant, or made of one alone, as large weights are that fold_constants leaves for its
 * size. */
bool match_weight(const Graph *g, ValueId v);
/* v = op(x, number) in either order of the operands (the caller knows that op commutes), number a
 * one-element constant. */
bool match_with_number(const Graph *g, ValueId v, OpId op, ValueId *x, double *number);
/* v = op(x, number), in this order. */
bool match_then_number(const Graph *g, ValueId v, OpId op, ValueId *x, double *number);
/* v = clamp(x + 3, 0, 6), the ramp of hardsigmoid and hardswish before it is divided by 6. */
bool match_ramp(const Graph *g, ValueId v, ValueId *x);
/* The linear without a bias that computes v for one user; else 0. */
NodeId match_bare_linear(const Graph *g, ValueId v);
/* v = op(a, b) or op(b, a) with one operand equal to x; gives the other. */
bool match_other(const Graph *g, ValueId v, OpId op, ValueId x, ValueId *other);
/* x may take the place of an op on floats that gives the type of its operand, at the result of n: x
 * has that type. To be asked before building: shape rules report operands that they refuse. */
bool match_fits(const Graph *g, NodeId n, ValueId x);
/* The norm with mean and deviation as further results that computes v and nothing else that is
 * used; 0 otherwise. Those stay the same when v gets another scale, but the node is built anew. */
NodeId match_lone_norm(const Graph *g, ValueId v, OpId op);
/* v, one element a column, as [columns]: itself, or of a constant with dims of 1 in front another
 * one with the same bytes; 0 for others. */
ValueId match_row(Graph *g, ValueId v, SymInt columns);
/* What v is a view of, through all view_copy. */
ValueId match_unviewed(const Graph *g, ValueId v);
/* The value around which x has zeros, if nothing else uses x: adds these to before and after, by
 * spatial dim (the last ones of x). x itself where it is no such value, or they vary. */
ValueId match_zero_pad(const Graph *g, ValueId x, uint32_t spatial, int64_t *before,
                       int64_t *after);
/* The permute n moves dims of size 1 only: its bytes stay in their order, as those of a view. */
bool match_view_permute(const Graph *g, NodeId n);
/* The dim that element k of argument i of n, indices, selects from the first operand of n; -1:
 * none.
 */
int64_t match_selected_dim(const Graph *g, NodeId n, uint32_t i, uint32_t k);
/* |a - b| <= relative * |b|. */
bool match_close(double a, double b, double relative);

#endif
