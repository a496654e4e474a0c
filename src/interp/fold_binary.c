/* Arithmetic on two elements that are known although they may be symbolic. */
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

/* a / b rounded towards 0. */
static bool truncated(Graph *g, NodeId n, SymInt a, SymInt b, SymInt *out) {
  SymTable *t = &g->syms;
  if (sym_lower(t, b) <= 0 || node_absent(g, n, 2) || !sv_eq_str(node_str(g, n, 2), "trunc"))
    return false;
  if (sym_lower(t, a) >= 0) {
    *out = sym_floordiv(t, a, b);
  } else {
    SymInt above = sym_max(t, 0, sym_floordiv(t, a, b)); /* made first, as it is written first */
    *out = sym_add(t, above, sym_min(t, 0, sym_ceildiv(t, a, b)));
  }
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
    return divides(t, a, b, out) || truncated(g, n, a, b, out);
  case OP_FLOOR_DIVIDE:
    if (divides(t, a, b, out))
      return true;
    if (sym_lower(t, b) <= 0)
      return false;
    *out = sym_floordiv(t, a, b);
    return true;
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

/* A comparison whose answer is the same for the whole range of the symbols. */
static bool compare(SymTable *t, OpId op, SymInt a, SymInt b, SymInt *out) {
  int answer = -1;
  switch ((enum Op)op) {
  case OP_EQ_TENSOR:
    answer = sym_known_eq(t, a, b);
    break;
  case OP_NE_TENSOR:
    answer = sym_known_eq(t, a, b);
    answer = answer < 0 ? -1 : !answer;
    break;
  case OP_LT_TENSOR:
    answer = sym_known_lt(t, a, b);
    break;
  case OP_GT_TENSOR:
    answer = sym_known_lt(t, b, a);
    break;
  case OP_LE_TENSOR:
    answer = sym_known_le(t, a, b);
    break;
  case OP_GE_TENSOR:
    answer = sym_known_le(t, b, a);
    break;
  default:
    break;
  }
  *out = answer;
  return answer >= 0;
}

bool fold_binary(Graph *g, NodeId n, SymInt a, SymInt b, SymInt *out) {
  return arith(g, n, a, b, out) || compare(&g->syms, node_cget(g, n)->op, a, b, out);
}
