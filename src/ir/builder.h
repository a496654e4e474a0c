/* Building nodes of the table: defaults are filled in, the shape rule gives the result types.
 *
 * The builder fails once: after the first error (reported to the sink) every further call returns 0
 * (or its operand, where it could be the result) and does nothing, so that code is straight and
 * looks at the status at its end. Value 0 may be asked for its type then: it has rank 0. */
#ifndef ETC_IR_BUILDER_H
#define ETC_IR_BUILDER_H

#include "ir/op.h"

/* Called for each new node whose shape is known; may replace it: returns the first of result_count
 * values equal to the node's results (the node is then removed), or 0 to keep the node. Constant
 * folding at import is such a hook (interp/fold.h). */
typedef struct Builder Builder;
typedef ValueId BuilderFold(Builder *b, NodeId n);

struct Builder {
  Graph *g;
  NodeId before; /* insertion point: new nodes go before this one; 0 = at the end */
  LocId loc;     /* of new nodes */
  Status status;
  bool quiet;        /* an attempt: what does not fit makes it fail, and is not reported */
  BuilderFold *fold; /* may be NULL */
  void *fold_data;
  void *data; /* of who builds, as the rules of a Rewriter (rewrite.h); may be NULL */
};

static inline Builder builder_make(Graph *g, NodeId before, LocId loc) {
  return (Builder){.g = g, .before = before, .loc = loc};
}

/* The first result of a new node, 0 after a failure. A required operand of value 0 without failure
 * is a BUG. */
ValueId build_args(Builder *b, OpId op, const ArgIn *args, uint32_t count);
#define build(b, op, ...)                                                                          \
  build_args((b), (op), (const ArgIn[]){__VA_ARGS__},                                              \
             (uint32_t)(sizeof((const ArgIn[]){__VA_ARGS__}) / sizeof(ArgIn)))

/* Constants. */
ValueId build_const(Builder *b, DType dtype, uint32_t rank, const int64_t *dims,
                    const void *data); /* data copied, host order */
ValueId build_const_ints(Builder *b, const int64_t *values, uint32_t count); /* i64 [count] */
ValueId build_scalar(Builder *b, DType dtype, double value);      /* 0-d, value converted */
ValueId build_scalar_int(Builder *b, DType dtype, int64_t value); /* 0-d, exact for 64 bits */

/* One op of one or two operands. */
ValueId build_unary(Builder *b, OpId op, ValueId x);
ValueId build_binary(Builder *b, OpId op, ValueId x, ValueId y);
/* The op of node n with other first arguments, everything else as it is there. */
ValueId build_on(Builder *b, NodeId n, const ArgIn *first, uint32_t count);
/* Node n again before b->before: each operand v as operand(user, v) gives it, and element types
 * among the arguments as dtype, or as they are (DTYPE_NONE). The first of the results. */
ValueId build_again(Builder *b, NodeId n, DType dtype, ValueId operand(void *user, ValueId v),
                    void *user);
/* Short forms that many callers need. Each returns x itself when nothing is to be done. */
ValueId build_cast(Builder *b, ValueId x, DType to);                          /* aten::_to_copy */
ValueId build_view(Builder *b, ValueId x, const SymInt *dims, uint32_t rank); /* aten::view_copy */
ValueId build_view_as(Builder *b, ValueId x, Dims dims);                      /* the same */
ValueId build_permute(Builder *b, ValueId x, const int64_t *perm); /* rank of x entries */
ValueId build_expand(Builder *b, ValueId x, const SymInt *dims, uint32_t rank);
ValueId build_unsqueeze(Builder *b, ValueId x, int64_t dim); /* as a view_copy */
/* Zeros along one dim, which counts from the end where it is negative; x itself without any. */
ValueId build_pad(Builder *b, ValueId x, int64_t dim, SymInt before, SymInt behind);
ValueId build_pad_with(Builder *b, ValueId x, int64_t dim, SymInt before, SymInt behind,
                       ArgIn value); /* the same with another number */
ValueId build_slice(Builder *b, ValueId x, int64_t dim, SymInt start, SymInt end,
                    int64_t step); /* start/end already clamped, step >= 1 */
/* Reports code at the builder's location and makes the builder fail; returns 0. */
ValueId build_fail(Builder *b, DiagCode code, const char *format, ...) ETC_PRINTF(3, 4);
/* The same with a hint of its own; NULL: the hint of the code. */
ValueId build_fail_hint(Builder *b, DiagCode code, const char *hint, const char *format, ...)
    ETC_PRINTF(4, 5);
void build_vfail(Builder *b, DiagCode code, const char *hint, const char *format, va_list args)
    ETC_PRINTF(4, 0);

/* In shape rules: set the type of result i of node n. */
void result_tensor(Graph *g, NodeId n, uint32_t i, DType dtype, uint32_t rank, const SymInt *dims);
void result_type(Graph *g, NodeId n, uint32_t i, TypeId type);
void result_list_size(Graph *g, NodeId n,
                      uint32_t count); /* for Tensor[] results, before result_tensor; only while the
                                          node is being built */
/* In shape rules: keeps the reason why the node is refused (g->ctx->fault) and returns the row's
 * status. A rule reports nothing: whoever ran it may want to try something else. */
Status shape_error(const Graph *g, NodeId n, DiagCode code, const char *format, ...)
    ETC_PRINTF(4, 5);
/* Runs the shape rule of n, which relies on tensors where the schema has them: that is looked at
 * first. */
Status shape_infer(Graph *g, NodeId n);
/* After a shape rule: refuses sizes of which one passed the limits of its table (sym.h). */
Status shape_check_sizes(Graph *g, NodeId n);
/* Reports the reason at its node, with the op and operand types as a note. */
void shape_report(const Graph *g);
/* shape_infer, which reports why when the rule refuses. */
Status shape_run(Graph *g, NodeId n);

#endif
