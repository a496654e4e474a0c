/* Short forms for translators that write formulas: one call an operation, and after a failure each
 * of them quietly returns 0 (sizes: 0), so that a formula needs no test between its steps. */
#ifndef ETC_ONNX_EXPRESS_H
#define ETC_ONNX_EXPRESS_H

#include "onnx/translate.h"

/* One op of one or two tensors (numpy broadcasting). */
ValueId ex_unary(Import *im, OpId op, ValueId x);
ValueId ex_binary(Import *im, OpId op, ValueId x, ValueId y);
/* A 0-d constant of x's element type. */
ValueId ex_number(Import *im, ValueId like, double number);
/* op(x, number) with the number in x's element type; +0, -0, *1 and /1 give x itself. */
ValueId ex_with(Import *im, OpId op, ValueId x, double number);
ValueId ex_add(Import *im, ValueId x, ValueId y);
ValueId ex_sub(Import *im, ValueId x, ValueId y);
ValueId ex_mul(Import *im, ValueId x, ValueId y);
ValueId ex_div(Import *im, ValueId x, ValueId y);
ValueId ex_where(Import *im, ValueId condition, ValueId x, ValueId y);
ValueId ex_clamp(Import *im, ValueId x, double low, double high); /* of float tensors */
ValueId ex_cast(Import *im, ValueId x, DType to);
/* mm or matmul, as the ranks say. */
ValueId ex_matmul(Import *im, ValueId x, ValueId y);

/* Reductions over one dim or several; keep: the dims stay as 1. */
ValueId ex_reduce(Import *im, OpId op, ValueId x, const int64_t *axes, uint32_t count, bool keep);
ValueId ex_reduce_one(Import *im, OpId op, ValueId x, int64_t axis, bool keep);
ValueId ex_softmax(Import *im, ValueId x, int64_t axis);

/* Shapes. */
uint32_t ex_rank(const Import *im, ValueId x);
SymInt ex_dim(const Import *im, ValueId x, uint32_t i);
/* The dim when it is a plain number; a failure that names the op otherwise. */
int64_t ex_fixed(Import *im, ValueId x, uint32_t i);
DType ex_dtype(const Import *im, ValueId x); /* DTYPE_F32 after a failure */
ValueId ex_view(Import *im, ValueId x, const SymInt *dims, uint32_t rank);
#define EX_VIEW(im, x, ...)                                                                        \
  ex_view((im), (x), (SymInt[]){__VA_ARGS__},                                                      \
          (uint32_t)(sizeof((SymInt[]){__VA_ARGS__}) / sizeof(SymInt)))
ValueId ex_expand(Import *im, ValueId x, const SymInt *dims, uint32_t rank);
#define EX_EXPAND(im, x, ...)                                                                      \
  ex_expand((im), (x), (SymInt[]){__VA_ARGS__},                                                    \
            (uint32_t)(sizeof((SymInt[]){__VA_ARGS__}) / sizeof(SymInt)))
ValueId ex_permute(Import *im, ValueId x, const int64_t *perm);
#define EX_PERMUTE(im, x, ...) ex_permute((im), (x), (int64_t[]){__VA_ARGS__})
/* Elements [start, end) of one dim; the dim goes away in ex_select. */
ValueId ex_slice(Import *im, ValueId x, uint32_t dim, SymInt start, SymInt end);
ValueId ex_select(Import *im, ValueId x, uint32_t dim, int64_t index);
ValueId ex_cat(Import *im, const ValueId *items, uint32_t count, uint32_t dim);
ValueId ex_unsqueeze(Import *im, ValueId x, uint32_t dim);
/* Zeros of a shape; 0 .. n-1 as i64. */
ValueId ex_full(Import *im, DType dtype, const SymInt *dims, uint32_t rank, double value);
ValueId ex_arange(Import *im, SymInt n);

#endif
