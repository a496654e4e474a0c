/* Short forms for translators that make their result out of several ops: one call an operation, and
 * after a failure each of them quietly returns 0 (sizes: 0), so that a formula needs no test
 * between its steps. */
#ifndef ETC_ONNX_EXPRESS_H
#define ETC_ONNX_EXPRESS_H

#include "onnx/translate.h"

/* One op of one or two tensors (numpy broadcasting). */
ValueId ex_unary(Import *im, OpId op, ValueId x);
ValueId ex_binary(Import *im, OpId op, ValueId x, ValueId y);
#define EX_BINARY(name, op)                                                                        \
  static inline ValueId name(Import *im, ValueId x, ValueId y) { return ex_binary(im, op, x, y); }
EX_BINARY(ex_add, OP_ADD_TENSOR)
EX_BINARY(ex_sub, OP_SUB_TENSOR)
EX_BINARY(ex_mul, OP_MUL_TENSOR)
EX_BINARY(ex_div, OP_DIV_TENSOR)
EX_BINARY(ex_floor_div, OP_FLOOR_DIVIDE)
EX_BINARY(ex_min, OP_MINIMUM)
EX_BINARY(ex_max, OP_MAXIMUM)
EX_BINARY(ex_eq, OP_EQ_TENSOR)
EX_BINARY(ex_ne, OP_NE_TENSOR)
EX_BINARY(ex_lt, OP_LT_TENSOR)
EX_BINARY(ex_le, OP_LE_TENSOR)
EX_BINARY(ex_gt, OP_GT_TENSOR)
EX_BINARY(ex_ge, OP_GE_TENSOR)
EX_BINARY(ex_and, OP_LOGICAL_AND)
EX_BINARY(ex_or, OP_LOGICAL_OR)
EX_BINARY(ex_mm, OP_MM)
EX_BINARY(ex_bmm, OP_BMM)
#undef EX_BINARY
/* A 0-d constant of x's element type; one of i64. */
ValueId ex_number(Import *im, ValueId like, double number);
ValueId ex_int(Import *im, int64_t number);
/* op(x, number) with the number in x's element type; +0, -0, *1 and /1 give x itself. */
ValueId ex_with(Import *im, OpId op, ValueId x, double number);
#define EX_WITH(name, op)                                                                          \
  static inline ValueId name(Import *im, ValueId x, double n) { return ex_with(im, op, x, n); }
EX_WITH(ex_plus, OP_ADD_TENSOR)
EX_WITH(ex_minus, OP_SUB_TENSOR)
EX_WITH(ex_times, OP_MUL_TENSOR)
EX_WITH(ex_is, OP_EQ_TENSOR)
EX_WITH(ex_at_least, OP_MAXIMUM)
#undef EX_WITH
ValueId ex_pow(Import *im, ValueId x, double exponent);
ValueId ex_where(Import *im, ValueId condition, ValueId x, ValueId y);
ValueId ex_clamp(Import *im, ValueId x, double low, double high); /* of float tensors */
ValueId ex_cast(Import *im, ValueId x, DType to);
/* f16 and bf16 as f32, anything else as it is. For formulas whose steps leave the range or the
 * precision of f16 though their result does not; the caller casts the result back. */
ValueId ex_widen(Import *im, ValueId x);
/* mm or matmul, as the ranks say. */
ValueId ex_matmul(Import *im, ValueId x, ValueId y);
/* x w' + bias; the bias may be 0. */
ValueId ex_linear(Import *im, ValueId x, ValueId w, ValueId bias);
/* a modulo b with the sign of b, for integers; b is a 0-d or broadcasting tensor. */
ValueId ex_floor_mod(Import *im, ValueId a, ValueId b);

/* Reductions over one dim or several; keep: the dims stay as 1. Sums keep the element type. */
ValueId ex_reduce(Import *im, OpId op, ValueId x, const int64_t *axes, uint32_t count, bool keep);
/* Over the dims from `first` up to `end`; x itself when there are none. */
ValueId ex_reduce_dims(Import *im, OpId op, ValueId x, uint32_t first, uint32_t end, bool keep);
ValueId ex_reduce_one(Import *im, OpId op, ValueId x, int64_t axis, bool keep);
ValueId ex_sum(Import *im, ValueId x, int64_t axis, bool keep);
ValueId ex_argmax(Import *im, ValueId x, int64_t axis, bool keep);
/* The k largest or smallest along a dim, sorted, equal ones in any order; their positions are the
 * next value. */
ValueId ex_topk(Import *im, ValueId x, SymInt k, int64_t axis, bool largest);
ValueId ex_swish(Import *im, ValueId x, double alpha); /* x * sigmoid(alpha * x) */
ValueId ex_softmax(Import *im, ValueId x, int64_t axis);
/* x / sqrt(mean of squares + epsilon) over the dims from `axis` on, computed in the type `work`;
 * the result has the type of x. */
ValueId ex_rms_norm(Import *im, ValueId x, uint32_t axis, DType work, double epsilon);
/* alpha * a' * b' + beta * c of inputs 0 to 2 and the attributes of the current node (Gemm). */
ValueId ex_gemm(Import *im);
/* Of x [N, C, …] with weights per channel, which may be 0. */
ValueId ex_group_norm(Import *im, ValueId x, ValueId weight, ValueId bias, int64_t groups,
                      double epsilon);
/* The least and the greatest number of an integer type. */
double int_least(DType dtype);
double int_most(DType dtype);
/* 0 as a number of that type. */
ArgIn zero_arg(DType dtype);
/* The kernel has no f64: that is made of other ops. */
ValueId ex_log_softmax(Import *im, ValueId x, int64_t axis);

/* --- shapes --- */

Dims shape_of(const Import *im, ValueId v); /* rank 0 after a failure */
SymInt shape_product(Import *im, const SymInt *dims, uint32_t count);
/* The elements of shape-like input i, of which element k is dim `first` + k of output 0. Where they
 * arrive only at run time: the declared dims of output 0 (then *known is false), or sizes that are
 * read while running (data_sizes.h). Fails when none of it is possible. */
bool shape_input(Import *im, uint32_t i, uint32_t first, const char *what, Dims *shape,
                 bool *known);
/* Fails with a message that says what to do about an input that arrives at run time. */
ValueId fail_not_known(Import *im, uint32_t input, const char *what);
/* Fails when a and b, of the first two inputs of the node, have two element types. */
bool types_agree(Import *im, ValueId a, ValueId b);

uint32_t ex_rank(const Import *im, ValueId x);
SymInt ex_dim(const Import *im, ValueId x, uint32_t i);
/* The dim when it is a plain number; a failure that names the op otherwise. */
int64_t ex_fixed(Import *im, ValueId x, uint32_t i);
DType ex_dtype(const Import *im, ValueId x); /* DTYPE_F32 after a failure */
ValueId ex_view(Import *im, ValueId x, const SymInt *dims, uint32_t rank);
ValueId ex_view_as(Import *im, ValueId x, Dims shape);
/* Gives v other dims than its node found: those of a state that grows in a loop. */
void ex_set_shape(Import *im, ValueId v, Dims shape);
ValueId ex_scalar(Import *im, ValueId x); /* a tensor of one element as a 0-d one */
ValueId ex_flat(Import *im, ValueId x);   /* as a vector */
/* As a matrix of the dims before axis and those from it on. */
ValueId ex_rows(Import *im, ValueId x, uint32_t axis);
#define EX_VIEW(im, x, ...)                                                                        \
  ex_view((im), (x), (SymInt[]){__VA_ARGS__},                                                      \
          (uint32_t)(sizeof((SymInt[]){__VA_ARGS__}) / sizeof(SymInt)))
ValueId ex_expand(Import *im, ValueId x, const SymInt *dims, uint32_t rank);
#define EX_EXPAND(im, x, ...)                                                                      \
  ex_expand((im), (x), (SymInt[]){__VA_ARGS__},                                                    \
            (uint32_t)(sizeof((SymInt[]){__VA_ARGS__}) / sizeof(SymInt)))
ValueId ex_permute(Import *im, ValueId x, const int64_t *perm); /* rank of x entries */
/* Fails when x has another rank than `count`. */
ValueId ex_permute_of(Import *im, ValueId x, const int64_t *perm, uint32_t count);
#define EX_PERMUTE(im, x, ...)                                                                     \
  ex_permute_of((im), (x), (int64_t[]){__VA_ARGS__},                                               \
                (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
/* One dim to another place; those between make room. */
ValueId ex_move_dim(Import *im, ValueId x, uint32_t from, uint32_t to);
ValueId ex_unsqueeze(Import *im, ValueId x, uint32_t dim);
/* A vector as a tensor of this rank that varies along axis only. */
ValueId ex_along_axis(Import *im, ValueId vector, uint32_t axis, uint32_t rank);

/* --- moving elements --- */

/* Elements [start, end) of one dim; the dim goes away in ex_select, which is a slice and a view,
 * and in ex_pick, one kernel. */
ValueId ex_slice(Import *im, ValueId x, uint32_t dim, SymInt start, SymInt end);
ValueId ex_select(Import *im, ValueId x, uint32_t dim, int64_t index);
ValueId ex_pick(Import *im, ValueId x, int64_t dim, SymInt index);
/* rows with row `number`, a size that is known while running, replaced by `row`. */
ValueId ex_put_row(Import *im, ValueId rows, ValueId row, SymInt number);
/* One element of a vector as a 0-d tensor. */
ValueId ex_element(Import *im, ValueId vector, int64_t i);
ValueId ex_cat(Import *im, const ValueId *items, uint32_t count, uint32_t dim);
ValueId ex_cat2(Import *im, ValueId a, ValueId b, uint32_t dim);
/* Zeros before and behind a dim, which is counted from the last one, 0; x itself without any. */
ValueId ex_pad(Import *im, ValueId x, uint32_t from_last, SymInt before, SymInt behind);
ValueId ex_flip(Import *im, ValueId x, uint32_t dim);
/* Picks entries of one dim by a 1-D index without negative entries. */
ValueId ex_index_select(Import *im, ValueId x, uint32_t dim, ValueId index);
/* Picks entries of a vector by an index of any rank, whose shape the result has. */
ValueId ex_look_up(Import *im, ValueId vector, ValueId index);
/* Reads and writes by an index of the same rank. */
ValueId ex_gather(Import *im, ValueId x, int64_t dim, ValueId index);
ValueId ex_scatter(Import *im, ValueId x, int64_t dim, ValueId index, ValueId source);
/* Indices as i64 with negative entries counted from the end of a dim of `size` entries. */
ValueId ex_wrap_index(Import *im, ValueId index, SymInt size);
/* The vector that index is along axis, where it is the same along all other dims, which have x's
 * sizes: rows of x are meant then. 0 otherwise. */
ValueId ex_row_index(Import *im, ValueId x, uint32_t axis, ValueId index);
/* Component k of the tuples along the last dim of indices (GatherND, ScatterND), that dim dropped.
 */
ValueId ex_component(Import *im, ValueId indices, uint32_t k);

/* --- new tensors --- */

/* A tensor of this shape filled with a number. */
ValueId ex_full(Import *im, DType dtype, const SymInt *dims, uint32_t rank, double value);
ValueId ex_filled(Import *im, DType dtype, Dims shape, double value);
/* 0, 1, …, n - 1 as i64. */
ValueId ex_arange(Import *im, SymInt n);
/* A size as a 0-d i64 tensor. */
ValueId ex_size(Import *im, SymInt n);

/* --- axes --- */

/* Axes from an attribute (versions below input_since) or input 1. */
typedef struct Axes {
  bool given;  /* the attribute or input is there */
  bool known;  /* … and its elements are known: set and list are valid */
  ValueId run; /* the run-time tensor when not known */
  uint32_t count;
  uint32_t list[MAX_RANK]; /* in [0, rank), in the order given */
  uint32_t set;            /* bit per axis */
} Axes;
bool axes_read(Import *im, int64_t input_since, uint32_t rank, Axes *axes);

#endif
