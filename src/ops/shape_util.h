/* What the shape rules share: reading arguments that nobody has checked yet, dims that may be
 * symbolic, result types.
 *
 * A rule must hold against anything the parser or an importer hands it, so each reader here checks
 * the kind of the argument and reports what is wrong with it; tensors are where the schema has them
 * (shape_infer has looked). Dims that can neither be proven equal nor different are taken as equal,
 * and the assumption is kept as a constraint of the graph. */
#ifndef ETC_OPS_SHAPE_UTIL_H
#define ETC_OPS_SHAPE_UTIL_H

#include "ir/builder.h"
#include "ir/text.h"

/* A short list argument (strides, paddings, axes), at most two entries a dim. */
typedef struct IntList {
  uint32_t count;
  SymInt v[2 * MAX_RANK];
} IntList;

/* Says what does not fit at node n; the value is the Status to return. Shapes, element types,
 * other arguments. */
#define bad_shape(g, n, ...) shape_error((g), (n), DIAG_SHAPE_MISMATCH, __VA_ARGS__)
#define bad_dtype(g, n, ...) shape_error((g), (n), DIAG_DTYPE_MISMATCH, __VA_ARGS__)
#define bad_arg(g, n, ...) shape_error((g), (n), DIAG_ARG_RANGE, __VA_ARGS__)

/* Name of argument i in the schema, for messages. */
StrView arg_name(const Graph *g, NodeId n, uint32_t i);

/* Dims and element type of a tensor argument. */
static inline Dims operand_dims(const Graph *g, NodeId n, uint32_t i) {
  return value_dims(g, node_value(g, n, i));
}
static inline DType operand_dtype(const Graph *g, NodeId n, uint32_t i) {
  return value_dtype(g, node_value(g, n, i));
}
/* An integer: a literal, or a run-time scalar whose expression is known. */
Status arg_int(Graph *g, NodeId n, uint32_t i, SymInt *out);
/* An integer that must be a constant: axes, kernel sizes, flags of torch's int type. */
Status arg_const_int(Graph *g, NodeId n, uint32_t i, int64_t *out);
/* A list of at most 2 * MAX_RANK integers; absent gives an empty list. */
Status arg_int_list(Graph *g, NodeId n, uint32_t i, IntList *out);
/* A list given once for all or once a dim: empty is filled with `fill` (an error when fill is
 * negative), one entry is repeated. */
Status arg_spatial(Graph *g, NodeId n, uint32_t i, uint32_t count, int64_t fill, SymInt *out);
bool arg_flag(const Graph *g, NodeId n, uint32_t i); /* BOOL argument; absent is false */
/* Category of a Scalar argument, as a dtype: BOOL, I64 or F32 (a run-time scalar has that of its
 * type). */
Status arg_scalar_kind(Graph *g, NodeId n, uint32_t i, DType *out);
/* Whether a literal Scalar argument is in the range of dtype, as the runtime's check before it
 * casts the scalar has it (c10::overflows: infinity and NaN pass for floats, negatives wrap for
 * unsigned). True for absent arguments and run-time scalars. */
bool scalar_fits(const Graph *g, NodeId n, uint32_t i, DType dtype);
/* The dtype argument when given, else `natural`. */
Status arg_dtype(Graph *g, NodeId n, uint32_t i, DType natural, DType *out);

/* Dims. */
/* A dim argument, negative counted from the end, to 0..rank-1. A 0-d tensor takes 0 and -1 and
 * gives 0. */
Status shape_axis(Graph *g, NodeId n, int64_t dim, uint32_t rank, uint32_t *out);
/* Integer argument i as a dim of a tensor of that rank, as shape_axis takes it. */
Status arg_axis(Graph *g, NodeId n, uint32_t i, uint32_t rank, uint32_t *out);
/* An int or int[] argument of dims as a bit set; absent or empty gives all dims when
 * `empty_is_all`. Repeated dims are an error. */
Status shape_axes(Graph *g, NodeId n, uint32_t arg, uint32_t rank, bool empty_is_all,
                  uint32_t *set);
/* Checks that a == b; when that cannot be known, assumes it. `what` names the pair: "rows of mat2
 * and columns of self". */
Status shape_equal(Graph *g, NodeId n, SymInt a, SymInt b, const char *what);
/* A size of an operand, for messages, which name the value as the model does. */
typedef struct SizeOf {
  ValueId v;
  SymInt size;
  const char *what; /* "columns" */
} SizeOf;
/* Checks that two sizes, which are multiplied, are equal; when that cannot be known, assumes it. */
Status shape_equal_of(Graph *g, NodeId n, SizeOf x, SizeOf y);
/* The operands a and b have one element type. */
Status shape_one_dtype(Graph *g, NodeId n, ValueId a, ValueId b);
/* Checks that a >= b; when that cannot be known, assumes it. */
Status shape_at_least(Graph *g, NodeId n, SymInt a, SymInt b, const char *what);
/* Keeps an assumption once. */
void shape_assume(Graph *g, NodeId n, ConstraintKind kind, SymInt lhs, SymInt rhs);
/* Widens *acc by broadcasting b against it (right-aligned). */
Status shape_broadcast(Graph *g, NodeId n, Dims *acc, const Dims *b);
/* Checks that the dims broadcast to exactly `to`. */
Status shape_broadcasts_to(Graph *g, NodeId n, const Dims *from, const Dims *to, const char *what);
/* Dims after reducing those in `set`: kept as 1, or dropped. */
Dims dims_reduce(const Dims *in, uint32_t set, bool keepdim);
/* Number of elements, as an expression. */
SymInt dims_numel(Graph *g, const Dims *d);

/* One spatial dim of a convolution or pool. Constants among the arguments are checked by the caller
 * (stride >= 1 …). size = floor((in + pad_begin + pad_end - dilation * (kernel - 1) - 1) / stride)
 * + 1; with ceil_mode as torch pools have it (the last window must start inside the input or its
 * left padding). Reports a window that does not fit. */
typedef struct Window {
  SymInt in, kernel;
  int64_t stride, dilation;
  SymInt pad_begin, pad_end;
  bool ceil_mode;
} Window;
Status shape_window(Graph *g, NodeId n, const Window *w, SymInt *out);

/* Result i: checks dims (not negative, element count and bytes in range) and sets the type. */
Status shape_result(Graph *g, NodeId n, uint32_t i, DType dtype, const Dims *d);
/* Result 0 with the element type of operand 0. */
Status shape_result_dims(Graph *g, NodeId n, const Dims *d);
/* The promoted dtype of two operands; reports when they have none. */
Status shape_promote(Graph *g, NodeId n, DType a, DType b, DType *out);
/* torch's rule for a tensor and a Scalar of category `scalar` (BOOL, I64, F32): only a higher
 * category promotes. */
DType dtype_with_scalar(DType tensor, DType scalar);
/* Result of float functions on this dtype (ints and bool -> f32), and of sums (ints and bool ->
 * i64). */
DType dtype_to_float(DType t);
DType dtype_to_sum(DType t);

#endif
