/* Short forms for translators that make their result out of several ops. Like the builder, they do
 * nothing and return 0 after a failure. */
#ifndef ETC_ONNX_COMPOSE_H
#define ETC_ONNX_COMPOSE_H

#include "onnx/translate.h"

/* Dims on the stack: the graph's pools may move, these do not. */
typedef struct Shape {
  uint32_t rank;
  SymInt d[MAX_RANK];
} Shape;

Shape shape_of(const Import *im, ValueId v); /* rank 0 after a failure */
SymInt shape_product(Import *im, const SymInt *dims, uint32_t count);
ValueId view_as(Import *im, ValueId v, const Shape *shape);
/* The elements of shape-like input i, or, when they arrive only at run time, the declared dims of
 * output 0; fails when neither is known. *known tells which it was. */
bool shape_input(Import *im, uint32_t i, const char *what, Shape *shape, bool *known);
/* Fails with a message that says what to do about an input that arrives at run time. */
ValueId fail_not_known(Import *im, const char *what);

ValueId op1(Import *im, OpId op, ValueId a);
ValueId op2(Import *im, OpId op, ValueId a, ValueId b);
ValueId op2_number(Import *im, OpId op, ValueId a, double number); /* a 0-d constant of a's type */
ValueId op_where(Import *im, ValueId condition, ValueId a, ValueId b);
ValueId op_flip(Import *im, ValueId x, uint32_t axis);
ValueId op_reduce(Import *im, OpId op, ValueId x, uint32_t axis, bool keepdim); /* one dim */
/* Picks entries of one dim by a 1-D index without negative entries. */
ValueId op_index_select(Import *im, ValueId x, uint32_t axis, ValueId index);
/* One element of a vector as a 0-d tensor. */
ValueId vector_element(Import *im, ValueId vector, int64_t i);
/* x cut from begin to end (exclusive) on axis. */
ValueId cut(Import *im, ValueId x, uint32_t axis, SymInt begin, SymInt end);
ValueId join2(Import *im, ValueId a, ValueId b, uint32_t axis);
/* A tensor of this shape filled with a number. */
ValueId filled(Import *im, DType dtype, const Shape *shape, double number);
/* 0, 1, …, n - 1 as i64. */
ValueId counting(Import *im, SymInt n);
/* A vector as a tensor of this rank that varies along axis only. */
ValueId along_axis(Import *im, ValueId vector, uint32_t axis, uint32_t rank);
/* Indices as i64 with negative entries counted from the end of a dim of `size` entries. */
ValueId wrap_index(Import *im, ValueId index, SymInt size);
/* a modulo b with the sign of b, for whole numbers; b is a 0-d or broadcasting tensor. */
ValueId floor_mod(Import *im, ValueId a, ValueId b);
/* A size as a 0-d i64 tensor. */
ValueId size_tensor(Import *im, SymInt n);

/* Axes from an attribute (versions below input_since) or input i. */
typedef struct Axes {
  bool given;  /* the attribute or input is there */
  bool known;  /* … and its elements are known: set and list are valid */
  ValueId run; /* the run-time tensor when not known */
  uint32_t count;
  uint32_t list[MAX_RANK]; /* in [0, rank), in the order given */
  uint32_t set;            /* bit per axis */
} Axes;
bool axes_read(Import *im, int64_t input_since, uint32_t input, uint32_t rank, Axes *axes);

#endif
