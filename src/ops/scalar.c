/* Ops on run-time scalars: shape rules that carry sizes as expressions, so that a size computed
 * while running is known to the compiler. Kinds that the prim kernels take:
 * kernels/prim_ops/register_prim_ops.cpp of ExecuTorch 1.4.1. Reference kernels: scalar_kernels.c.
 */
#include "ops/ops.h"
#include "ops/scalar.h"
#include "ops/shape_util.h"

#include <math.h>

typedef struct Scalar {
  TypeKind kind; /* INT, FLOAT, BOOL */
  bool known;    /* INT only: value is its expression */
  SymInt value;
} Scalar;

Status shape_none(Graph *g, NodeId n) {
  (void)g;
  (void)n;
  return STATUS_OK;
}

static Status scalar_result(Graph *g, NodeId n, TypeKind kind, SymInt value, bool known) {
  result_type(g, n, 0, graph_scalar_type(g, kind, known ? value : 0, known));
  return STATUS_OK;
}

Status shape_sym_size(Graph *g, NodeId n) {
  int64_t dim;
  uint32_t axis;
  ValueId self = node_value(g, n, 0);
  TRY(arg_const_int(g, n, 1, &dim));
  TRY(shape_axis(g, n, dim, value_rank(g, self), &axis));
  if (value_rank(g, self) == 0)
    return bad_shape(g, n, "the tensor has no dimensions");
  return scalar_result(g, n, TYPE_INT, value_dim(g, self, axis), true);
}

Status shape_sym_numel(Graph *g, NodeId n) {
  Dims d = operand_dims(g, n, 0);
  return scalar_result(g, n, TYPE_INT, dims_numel(g, &d), true);
}

/* First element of a constant of an integer type. */
static bool constant_int(const Graph *g, ValueId v, SymInt *out) {
  const Constant *c = value_constant(g, v);
  DType dtype = value_dtype(g, v);
  if (!c || c->size < dtype_size(dtype) || !c->size)
    return false;
  int64_t i64;
  int32_t i32;
  if (dtype == DTYPE_I64) {
    memcpy(&i64, c->data, sizeof i64);
    return sym_from_number(i64, out);
  }
  if (dtype != DTYPE_I32)
    return false;
  memcpy(&i32, c->data, sizeof i32);
  *out = i32;
  return true;
}

Status shape_local_scalar_dense(Graph *g, NodeId n) {
  ValueId self = node_value(g, n, 0);
  Dims d = value_dims(g, self);
  SymInt numel = dims_numel(g, &d), value = 0;
  TRY(shape_at_least(g, n, numel, 1, "the number of elements"));
  DType dtype = value_dtype(g, self);
  if (dtype == DTYPE_BOOL)
    return scalar_result(g, n, TYPE_BOOL, 0, false);
  if (dtype_is_float(dtype))
    return scalar_result(g, n, TYPE_FLOAT, 0, false);
  if (!dtype_is_int(dtype))
    return bad_dtype(g, n, "a scalar cannot be read from %s", dtype_name(dtype));
  bool known = constant_int(g, self, &value);
  const Type *have = value_type(g, node_result(g, n, 0));
  if (!known && have->kind == TYPE_INT &&
      have->rank == 1) { /* its maker knows what it stands for */
    known = true;
    value = have->dims[0];
  }
  return scalar_result(g, n, TYPE_INT, value, known);
}

static Status scalar_operand(Graph *g, NodeId n, uint32_t i, Scalar *s) {
  const Arg *arg = node_arg(g, n, i);
  DType kind;
  TRY(arg_scalar_kind(g, n, i, &kind));
  *s = (Scalar){.kind = kind == DTYPE_BOOL ? TYPE_BOOL : kind == DTYPE_I64 ? TYPE_INT : TYPE_FLOAT};
  if (arg->kind == ARG_VALUE) {
    const Type *t = value_type(g, node_value(g, n, i));
    s->known = t->kind == TYPE_INT && t->rank == 1;
    s->value = s->known ? t->dims[0] : 0;
  } else if (arg->kind == ARG_INT) {
    s->known = true;
    s->value = arg->i;
  }
  return STATUS_OK;
}

static Status wrong_kind(Graph *g, NodeId n, const char *wanted) {
  return bad_dtype(g, n, "the operands must be %s", wanted);
}

/* C's division and remainder agree with the rounding ones when neither operand is negative. */
static bool not_negative(const Graph *g, const Scalar *a, const Scalar *b) {
  return sym_lower(&g->syms, a->value) >= 0 && sym_lower(&g->syms, b->value) >= 0;
}

/* Result of an op on two integers with known expressions; false when the rule has no
 * expression for it. */
static bool int_expression(Graph *g, OpId op, const Scalar *a, const Scalar *b, SymInt *out) {
  SymTable *t = &g->syms;
  switch ((int)op) {
  case OP_PRIM_ADD:
    *out = sym_add(t, a->value, b->value);
    return true;
  case OP_PRIM_SUB:
    *out = sym_sub(t, a->value, b->value);
    return true;
  case OP_PRIM_MUL:
    *out = sym_mul(t, a->value, b->value);
    return true;
  case OP_PRIM_FLOORDIV:
    *out = sym_floordiv(t, a->value, b->value);
    return true;
  case OP_PRIM_FLOORDIV_INT:
    if (!not_negative(g, a, b))
      return false;
    *out = sym_floordiv(t, a->value, b->value);
    return true;
  case OP_PRIM_MOD:
  case OP_PRIM_MOD_INT:
    if (!not_negative(g, a, b))
      return false;
    *out = sym_mod(t, a->value, b->value);
    return true;
  case OP_PRIM_SYM_MAX:
    *out = sym_max(t, a->value, b->value);
    return true;
  case OP_PRIM_SYM_MIN:
    *out = sym_min(t, a->value, b->value);
    return true;
  default:
    return false;
  }
}

static bool is_compare(OpId op) {
  return op == OP_PRIM_EQ || op == OP_PRIM_GE || op == OP_PRIM_GT || op == OP_PRIM_LE ||
         op == OP_PRIM_LT;
}
static bool is_int_only(OpId op) {
  return op == OP_PRIM_FLOORDIV_INT || op == OP_PRIM_MOD || op == OP_PRIM_MOD_INT ||
         op == OP_PRIM_SYM_MAX || op == OP_PRIM_SYM_MIN;
}

/* Bools are compared with bools, and nothing else. */
static bool kinds_fit(OpId op, const Scalar *a, const Scalar *b) {
  bool bools = a->kind == TYPE_BOOL || b->kind == TYPE_BOOL;
  return !bools || (is_compare(op) && a->kind == b->kind);
}

static Status shape_prim_binary(Graph *g, NodeId n, OpId op) {
  Scalar a, b;
  TRY(scalar_operand(g, n, 0, &a));
  TRY(scalar_operand(g, n, 1, &b));
  bool ints = a.kind == TYPE_INT && b.kind == TYPE_INT;
  if (!kinds_fit(op, &a, &b))
    return wrong_kind(g, n, "numbers");
  if (is_compare(op))
    return scalar_result(g, n, TYPE_BOOL, 0, false);
  if (is_int_only(op) && !ints)
    return wrong_kind(g, n, "integers");
  if (op == OP_PRIM_TRUEDIV || !ints)
    return scalar_result(g, n, TYPE_FLOAT, 0, false);
  if (is_int_division(op) && b.known && b.value == 0)
    return bad_arg(g, n, "division by zero");
  SymInt value = 0;
  bool known = a.known && b.known && int_expression(g, op, &a, &b, &value);
  return scalar_result(g, n, TYPE_INT, value, known);
}

/* ceil, round and trunc of a literal, which then is a known size. */
static bool rounded_literal(const Graph *g, NodeId n, OpId op, SymInt *out) {
  const Arg *arg = node_arg(g, n, 0);
  if (arg->kind != ARG_FLOAT || !(arg->f > -0x1p53 && arg->f < 0x1p53))
    return false;
  double v = op == OP_PRIM_CEIL    ? ceil(arg->f)
             : op == OP_PRIM_ROUND ? nearbyint(arg->f)
                                   : trunc(arg->f);
  return sym_from_float(v, out);
}

static Status shape_prim_unary(Graph *g, NodeId n, OpId op) {
  Scalar a;
  SymInt value = 0;
  TRY(scalar_operand(g, n, 0, &a));
  if (op == OP_PRIM_SYM_FLOAT)
    return scalar_result(g, n, TYPE_FLOAT, 0, false);
  if (op == OP_PRIM_SYM_INT)
    return scalar_result(g, n, TYPE_INT, a.value, a.known);
  if (op == OP_PRIM_SYM_NOT)
    return a.kind == TYPE_BOOL ? scalar_result(g, n, TYPE_BOOL, 0, false)
                               : wrong_kind(g, n, "bool");
  if (op == OP_PRIM_NEG) {
    if (a.kind == TYPE_BOOL)
      return wrong_kind(g, n, "numbers");
    return scalar_result(g, n, a.kind, a.known ? sym_sub(&g->syms, 0, a.value) : 0, a.known);
  }
  if (a.kind != TYPE_FLOAT)
    return wrong_kind(g, n, "floats");
  bool known = rounded_literal(g, n, op, &value);
  return scalar_result(g, n, TYPE_INT, value, known);
}

Status shape_prim(Graph *g, NodeId n) {
  OpId op = node_cget(g, n)->op;
  uint32_t count = op_schema(op)->arg_count;
  if (count == 1)
    return shape_prim_unary(g, n, op);
  if (count == 2)
    return shape_prim_binary(g, n, op);
  Scalar condition, yes, no;
  TRY(scalar_operand(g, n, 0, &condition));
  TRY(scalar_operand(g, n, 1, &yes));
  TRY(scalar_operand(g, n, 2, &no));
  if (condition.kind != TYPE_BOOL)
    return wrong_kind(g, n, "a bool and two scalars");
  if (yes.kind != no.kind)
    return wrong_kind(g, n, "of one kind in both branches");
  bool known = yes.known && no.known && yes.value == no.value;
  return scalar_result(g, n, yes.kind, yes.value, known);
}

/* --- what the runtime refuses --- */

/* A negative dim ends the process. */
const char *check_sym_size(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  const Arg *dim = node_arg(g, n, 1);
  return dim->kind == ARG_INT && dim->i < 0 ? "the dimension must be counted from the front" : NULL;
}

/* Integer division by zero ends the process. */
const char *check_prim(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  if (!is_int_division(node_cget(g, n)->op))
    return NULL;
  const Arg *b = node_arg(g, n, 1);
  if (b->kind == ARG_VALUE) {
    const Type *t = value_type(g, node_value(g, n, 1));
    bool safe = t->kind == TYPE_FLOAT || (t->rank == 1 && (sym_lower(&g->syms, t->dims[0]) > 0 ||
                                                           sym_upper(&g->syms, t->dims[0]) < 0));
    return safe ? NULL : "the divisor may be zero while running";
  }
  return NULL;
}
