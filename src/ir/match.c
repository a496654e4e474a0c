/* See match.h. */
#include "ir/match.h"

#include <math.h>

#include "support/half.h"

/* add and sub with an alpha of their own are another computation. */
static bool plain(const Graph *g, NodeId n) {
  OpId op = node_cget(g, n)->op;
  return (op != OP_ADD_TENSOR && op != OP_SUB_TENSOR) || node_scalar(g, n, 2) == 1;
}

NodeId match_op(const Graph *g, ValueId v, OpId op) {
  NodeId n = v ? value_def(g, v) : 0;
  return n && node_cget(g, n)->op == op && plain(g, n) ? n : 0;
}

NodeId match_op_once(const Graph *g, ValueId v, OpId op) {
  NodeId n = match_op(g, v, op);
  return n && value_cget(g, v)->use_count == 1 ? n : 0;
}

static bool load_number(DType dtype, const uint8_t *data, double *number) {
  union {
    float f32;
    double f64;
    uint16_t u16;
    int32_t i32;
    int64_t i64;
  } u;
  memcpy(&u, data, dtype_size(dtype));
  switch (dtype) {
  case DTYPE_F32:
    *number = (double)u.f32;
    return true;
  case DTYPE_F64:
    *number = u.f64;
    return true;
  case DTYPE_F16:
    *number = (double)half_to_float(u.u16);
    return true;
  case DTYPE_BF16:
    *number = (double)bfloat_to_float(u.u16);
    return true;
  case DTYPE_I32:
    *number = u.i32;
    return true;
  case DTYPE_I64:
    *number = (double)u.i64;
    return true;
  default:
    return false;
  }
}

bool match_number(const Graph *g, ValueId v, double *number) {
  const Constant *c = v ? value_lazy_constant(g, v) : NULL;
  if (!c || c->transform)
    return false;
  DType dtype = value_dtype(g, v);
  return c->size && c->size == dtype_size(dtype) && load_number(dtype, c->data, number);
}

bool match_filled(const Graph *g, ValueId v, double number) {
  const Constant *c = v ? value_lazy_constant(g, v) : NULL;
  if (!c || c->transform)
    return false;
  DType dtype = value_dtype(g, v);
  uint64_t size = dtype_size(dtype);
  double x;
  for (uint64_t i = 0; size && i + size <= c->size; i += size)
    if (!load_number(dtype, c->data + i, &x) || x != number)
      return false;
  return size != 0;
}

bool match_then_number(const Graph *g, ValueId v, OpId op, ValueId *x, double *number) {
  NodeId n = match_op(g, v, op);
  if (!n || !match_number(g, node_value(g, n, 1), number))
    return false;
  *x = node_value(g, n, 0);
  return true;
}

bool match_with_number(const Graph *g, ValueId v, OpId op, ValueId *x, double *number) {
  if (match_then_number(g, v, op, x, number))
    return true;
  NodeId n = match_op(g, v, op);
  if (!n || !match_number(g, node_value(g, n, 0), number))
    return false;
  *x = node_value(g, n, 1);
  return true;
}

bool match_other(const Graph *g, ValueId v, OpId op, ValueId x, ValueId *other) {
  NodeId n = match_op(g, v, op);
  if (!n)
    return false;
  ValueId a = node_value(g, n, 0), b = node_value(g, n, 1);
  *other = a == x ? b : a;
  return a == x || b == x;
}

bool match_fits(const Graph *g, NodeId n, ValueId x) {
  return value_cget(g, x)->type == value_cget(g, node_result(g, n, 0))->type &&
         dtype_is_float(value_dtype(g, x));
}

NodeId match_lone_norm(const Graph *g, ValueId v, OpId op) {
  NodeId n = match_op_once(g, v, op);
  return n && node_result(g, n, 0) == v && !value_cget(g, v + 1)->use_count &&
                 !value_cget(g, v + 2)->use_count
             ? n
             : 0;
}

bool match_close(double a, double b, double relative) { return fabs(a - b) <= relative * fabs(b); }
