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
  return n && value_used_once(g, v) ? n : 0;
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

/* The operand whose elements n gives again, in other places or as i64; 0: n computes. */
static ValueId same_numbers(const Graph *g, NodeId n) {
  OpId op = node_cget(g, n)->op;
  bool moves = op == OP_EXPAND_COPY || op_keeps_numbers(op),
       widens = op == OP_TO_COPY && value_dtype(g, node_result(g, n, 0)) == DTYPE_I64;
  return moves || widens ? node_value(g, n, 0) : 0;
}

/* A bound of a clamp; false when it is not known. */
static bool bound_of(const Graph *g, NodeId n, uint32_t i, double *bound) {
  if (node_absent(g, n, i))
    return true;
  if (node_cget(g, n)->op == OP_CLAMP_TENSOR)
    return match_number(g, node_value(g, n, i), bound);
  *bound = node_scalar(g, n, i);
  return true;
}

bool match_clamped(const Graph *g, ValueId v, double *least, double *most) {
  enum { DEPTH_MAX = 16 };
  NodeId n = value_def(g, v);
  for (uint32_t depth = 0; n && depth < DEPTH_MAX && dtype_is_int(value_dtype(g, v)); depth++) {
    OpId op = node_cget(g, n)->op;
    *least = -INFINITY;
    *most = INFINITY;
    if (op == OP_CLAMP || op == OP_CLAMP_TENSOR) /* of a maximum below the minimum the maximum */
      return bound_of(g, n, 1, least) && bound_of(g, n, 2, most) && *least <= *most;
    v = same_numbers(g, n);
    n = v ? value_def(g, v) : 0;
  }
  return false;
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

bool match_weight(const Graph *g, ValueId v) {
  while (v && !value_is_const(g, v)) {
    NodeId n = value_def(g, v);
    uint32_t operands = 0;
    if (!n || op_has_trait(node_cget(g, n)->op, OP_EFFECT | OP_RANDOM))
      return false;
    FOR_OPERANDS(g, n, operand, {
      v = operand ? operand : v;
      operands += operand != 0;
    })
    if (operands != 1)
      return false;
  }
  return v != 0;
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
  return value_same_type(g, x, node_result(g, n, 0)) && dtype_is_float(value_dtype(g, x));
}

NodeId match_lone_norm(const Graph *g, ValueId v, OpId op) {
  NodeId n = match_op_once(g, v, op);
  return n && node_result(g, n, 0) == v && node_unused(g, n, 1) ? n : 0;
}

ValueId match_row(Graph *g, ValueId v, SymInt columns) {
  uint32_t rank = value_rank(g, v);
  for (uint32_t i = 0; i < rank; i++)
    if (value_dim(g, v, i) != (i + 1 == rank ? columns : 1))
      return 0;
  if (rank <= 1 || !value_is_const(g, v))
    return rank == 1 ? v : 0;
  TypeId type = graph_tensor_type(g, value_dtype(g, v), 1, &columns, ORDER_CONTIGUOUS);
  return graph_add_constant(g, type, *value_lazy_constant(g, v), 0);
}

bool match_close(double a, double b, double relative) { return fabs(a - b) <= relative * fabs(b); }

ValueId match_unviewed(const Graph *g, ValueId v) {
  for (NodeId n; (n = match_op(g, v, OP_VIEW_COPY));)
    v = node_value(g, n, 0);
  return v;
}

ValueId match_zero_pad(const Graph *g, ValueId x, uint32_t spatial, int64_t *before,
                       int64_t *after) {
  NodeId pad = match_op_once(g, x, OP_CONSTANT_PAD_ND);
  if (!pad || node_scalar(g, pad, 2) != 0 || node_list_count(g, pad, 1) > 2 * spatial)
    return x;
  const SymInt *zeros = node_ints(g, pad, 1); /* the last dim comes first */
  uint32_t count = node_list_count(g, pad, 1);
  for (uint32_t i = 0; i < count; i++)
    if (!sym_is_const(zeros[i]) || zeros[i] < 0 || zeros[i] > INT32_MAX)
      return x;
  for (uint32_t i = 0; i < count / 2; i++) {
    before[spatial - 1 - i] += zeros[2 * i];
    after[spatial - 1 - i] += zeros[2 * i + 1];
  }
  return node_value(g, pad, 0);
}

bool match_view_permute(const Graph *g, NodeId n) {
  const Type *t = value_type(g, node_value(g, n, 0));
  int64_t last = -1;
  for (uint32_t i = 0; i < node_list_count(g, n, 1); i++) {
    int64_t from = wrap_dim(node_ints(g, n, 1)[i], t->rank);
    if (from < 0 || from >= t->rank)
      return false;
    if (t->dims[from] == 1)
      continue;
    if (from < last)
      return false;
    last = from;
  }
  return true;
}

int64_t match_selected_dim(const Graph *g, NodeId n, uint32_t i, uint32_t k) {
  switch (node_cget(g, n)->op) {
  case OP_EMBEDDING:
    return i == 1 ? 0 : -1;
  case OP_INDEX_TENSOR:
    return i == 1 ? (int64_t)k : -1;
  case OP_INDEX_SELECT:
  case OP_GATHER:
    return i == 2 ? wrap_dim(node_int(g, n, 1), value_rank(g, node_value(g, n, 0))) : -1;
  default:
    return -1;
  }
}

bool match_ramp(const Graph *g, ValueId v, ValueId *x) {
  double three;
  NodeId n = match_op(g, v, OP_CLAMP);
  if (!n || node_absent(g, n, 1) || node_absent(g, n, 2) || node_scalar(g, n, 1) != 0 ||
      node_scalar(g, n, 2) != 6)
    return false;
  return match_with_number(g, node_value(g, n, 0), OP_ADD_TENSOR, x, &three) && three == 3;
}

NodeId match_bare_linear(const Graph *g, ValueId v) {
  NodeId linear = match_op_once(g, v, OP_LINEAR);
  return linear && node_absent(g, linear, 2) ? linear : 0;
}
