/* Arithmetic, comparisons and logic of elements that are known although they may be symbolic. What
 * is true is 1, what is false 0: a condition on sizes is an expression like any other. */
#include "interp/fold_known.h"

/* Whether a / b is the same by every rounding, whatever the sign of b: b * p / p. */
static bool divides(SymTable *t, SymInt a, SymInt b, SymInt *out) {
  if (sym_is_const(a) || b == 0)
    return false;
  if (!sym_is_const(b))
    return sym_exact_div(t, a, b, out);
  *out = sym_floordiv(t, a, b);
  return sym_mul(t, *out, b) == a;
}

/* a / b rounded towards 0, of a divisor that is positive. */
static SymInt truncated(SymTable *t, SymInt a, SymInt b) {
  if (sym_lower(t, a) >= 0)
    return sym_floordiv(t, a, b);
  SymInt above = sym_max(t, 0, sym_floordiv(t, a, b)); /* made first, as it is written first */
  return sym_add(t, above, sym_min(t, 0, sym_ceildiv(t, a, b)));
}

/* A quotient of integers; false where the way that it is rounded is not known. */
static bool quotient(Graph *g, NodeId n, SymInt a, SymInt b, SymInt *out) {
  SymTable *t = &g->syms;
  bool floors = node_cget(g, n)->op == OP_FLOOR_DIVIDE;
  if (divides(t, a, b, out))
    return true;
  if (sym_lower(t, b) <= 0 ||
      (!floors && (node_absent(g, n, 2) || !sv_eq_str(node_str(g, n, 2), "trunc"))))
    return false;
  *out = floors ? sym_floordiv(t, a, b) : truncated(t, a, b);
  return true;
}

/* The remainder of a quotient that is rounded towards 0; that of a float may be -0. */
static bool remainder_of(Graph *g, NodeId n, SymInt a, SymInt b, SymInt *out) {
  SymTable *t = &g->syms;
  if (sym_lower(t, b) <= 0 || !dtype_is_int(value_dtype(g, node_result(g, n, 0))))
    return false;
  *out = sym_sub(t, a, sym_mul(t, truncated(t, a, b), b));
  return true;
}

static bool arith(Graph *g, NodeId n, SymInt a, SymInt b, SymInt *out) {
  SymTable *t = &g->syms;
  OpId op = node_cget(g, n)->op;
  int64_t alpha = 1;
  if (op == OP_ADD_TENSOR || op == OP_SUB_TENSOR) {
    const Arg *arg = node_arg(g, n, 2);
    if (arg->kind != ARG_INT)
      return false;
    alpha = arg->i;
  }
  switch ((enum Op)op) {
  case OP_ADD_TENSOR:
    *out = sym_add(t, a, sym_mul(t, b, alpha));
    return true;
  case OP_SUB_TENSOR:
    *out = sym_sub(t, a, sym_mul(t, b, alpha));
    return true;
  case OP_MUL_TENSOR:
    *out = sym_mul(t, a, b);
    return true;
  case OP_DIV_TENSOR_MODE:
  case OP_FLOOR_DIVIDE:
    return quotient(g, n, a, b, out);
  case OP_FMOD_TENSOR:
    return remainder_of(g, n, a, b, out);
  case OP_MINIMUM:
    *out = sym_min(t, a, b);
    return true;
  case OP_MAXIMUM:
    *out = sym_max(t, a, b);
    return true;
  default:
    return false;
  }
}

static SymInt absolute(SymTable *t, SymInt a) {
  SymInt minus = sym_sub(t, 0, a);
  return sym_max(t, 0, sym_max(t, a, minus));
}

/* Whether a is another number than 0. */
static SymInt truth(SymTable *t, SymInt a) { return sym_min(t, 1, absolute(t, a)); }

static SymInt equal(SymTable *t, SymInt a, SymInt b) {
  int known = sym_known_eq(t, a, b);
  return known >= 0 ? known : sym_sub(t, 1, truth(t, sym_sub(t, a, b)));
}

static SymInt less(SymTable *t, SymInt a, SymInt b) {
  int known = sym_known_lt(t, a, b);
  return known >= 0 ? known : sym_min(t, 1, sym_max(t, 0, sym_sub(t, b, a)));
}

static bool compare(SymTable *t, OpId op, SymInt a, SymInt b, SymInt *out) {
  switch ((enum Op)op) {
  case OP_EQ_TENSOR:
    *out = equal(t, a, b);
    return true;
  case OP_NE_TENSOR:
    *out = sym_sub(t, 1, equal(t, a, b));
    return true;
  case OP_LT_TENSOR:
    *out = less(t, a, b);
    return true;
  case OP_GT_TENSOR:
    *out = less(t, b, a);
    return true;
  case OP_LE_TENSOR:
    *out = sym_sub(t, 1, less(t, b, a));
    return true;
  case OP_GE_TENSOR:
    *out = sym_sub(t, 1, less(t, a, b));
    return true;
  default:
    return false;
  }
}

static bool logic(SymTable *t, OpId op, SymInt a, SymInt b, SymInt *out) {
  if (op != OP_LOGICAL_AND && op != OP_LOGICAL_OR && op != OP_LOGICAL_XOR)
    return false;
  SymInt x = truth(t, a), y = truth(t, b);
  if (op == OP_LOGICAL_XOR)
    *out = sym_sub(t, 1, equal(t, x, y));
  else
    *out = op == OP_LOGICAL_AND ? sym_min(t, x, y) : sym_max(t, x, y);
  return true;
}

bool fold_binary(Graph *g, NodeId n, SymInt a, SymInt b, SymInt *out) {
  OpId op = node_cget(g, n)->op;
  return arith(g, n, a, b, out) || compare(&g->syms, op, a, b, out) ||
         logic(&g->syms, op, a, b, out);
}

SymInt fold_unary(SymTable *t, OpId op, SymInt a) {
  switch ((enum Op)op) {
  case OP_ABS:
    return absolute(t, a);
  case OP_NEG:
    return sym_sub(t, 0, a);
  case OP_SIGN:
    return sym_min(t, 1, sym_max(t, -1, a));
  case OP_LOGICAL_NOT:
    return sym_sub(t, 1, truth(t, a));
  default: /* _to_copy to bool */
    return truth(t, a);
  }
}

SymInt fold_choice(SymTable *t, SymInt condition, SymInt yes, SymInt no) {
  if (sym_is_const(condition))
    return condition ? yes : no;
  return sym_add(t, no, sym_mul(t, condition, sym_sub(t, yes, no)));
}
