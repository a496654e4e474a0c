/* Sizes of inputs that the program was not made for end the call with an error.
 *
 * The runtime compares sizes with their upper bounds only, which are the memory that there is.
 * Below the lower one, and between the multiples that a network takes, kernels would compute
 * something all the same, and delegates read beyond their operands.
 *
 * Dims that were taken as equal are compared, too: tensors of [a, 3] and [b, 3] that are added have
 * a result of [a, 3]: a and b are sizes that the host gives, and may be different names of one.
 * Kernels would broadcast a size of 1 all the same, into memory that the result shares with an
 * operand, and what is computed from a would be wrong. Each equation between sizes of inputs is
 * compared as soon as both sides are known. Sizes that the data tell are checked by those who made
 * them. */
#include "ops/shape_util.h"
#include "passes/executorch/symints.h"

/* Kernels and delegates make nothing of an empty tensor, or end the call; but log_softmax along or
 * in front of a dim of no elements ends the process. */
static int64_t least_checked(const Graph *g) {
  for (FOR_NODES(g, n)) {
    ValueId x = node_cget(g, n)->op == OP_LOG_SOFTMAX ? node_value(g, n, 0) : 0;
    uint32_t rank = x ? value_rank(g, x) : 0;
    for (uint32_t i = rank ? (uint32_t)wrap_dim(node_int(g, n, 1), rank) : 0; i < rank; i++)
      if (!sym_is_const(value_dim(g, x, i)))
        return 1;
  }
  return 2;
}

/* Whether all symbols of v are sizes that inputs have. */
static bool given_by_inputs(const Graph *g, SymInt v) {
  if (sym_is_const(v))
    return true;
  const SymExpr *e = sym_expr(&g->syms, v);
  if (e->kind == SYM_SYMBOL)
    return !e->unbacked;
  for (uint32_t i = 0; i < e->count; i++)
    if (!given_by_inputs(g, e->terms[i]))
      return false;
  return true;
}

static ArgIn side(const Symints *s, SymInt v, NodeId *behind) {
  NodeId after;
  if (sym_is_const(v))
    return A_INT(v);
  ValueId value = symints_value(s, v, &after);
  *behind = symints_later(s, after, *behind);
  return A_VAL(value);
}

typedef struct Requirement {
  OpId op; /* a comparison */
  SymInt left, right;
  LocId loc;
  const char *message; /* what is said where it does not hold */
} Requirement;

/* The comparison of two numbers, and the end of the call unless it holds. */
static Status compare(Builder *b, OpId op, ArgIn left, ArgIn right, const char *message) {
  ValueId holds = build(b, op, left, right);
  (void)build(b, OP_REQUIRE, A_VAL(holds), A_STR(message));
  return b->status;
}

/* last: the last node that was there before. */
static Status require(Symints *s, const Requirement *r, NodeId last) {
  TRY(symints_compute(s, r->left, last));
  TRY(symints_compute(s, r->right, last));
  NodeId behind = 0;
  ArgIn lhs = side(s, r->left, &behind), rhs = side(s, r->right, &behind);
  Builder b = symints_behind(s, behind);
  b.loc = r->loc;
  return compare(&b, r->op, lhs, rhs, r->message);
}

/* A size of an input that has a range, or the symbol that it is a multiple of, the first time that
 * an input has it. */
static Status check_least(Symints *s, SymInt size, int64_t least, bool *checked, NodeId last,
                          uint64_t *checks) {
  if (sym_is_const(size))
    return STATUS_OK;
  const SymExpr *e = sym_expr(&s->g->syms, size);
  if (e->kind == SYM_SUM && e->count == 1)
    return check_least(s, e->terms[0], least, checked, last, checks);
  if (e->kind != SYM_SYMBOL || e->lo < least || checked[e->index])
    return STATUS_OK;
  checked[e->index] = true;
  ++*checks;
  const char *message = arena_printf(s->p->scratch, "%.200s must be at least %lld",
                                     dim_text(s->g, size), (long long)e->lo);
  return require(s, &(Requirement){OP_PRIM_GE, size, e->lo, 0, message}, last);
}

/* A size that is a multiple of a symbol plus a number, as "16*h": it was divided to find the
 * symbol.
 */
static Status check_line(Symints *s, ValueId input, uint32_t dim, NodeId last, uint64_t *checks) {
  Graph *g = s->g;
  SymInt size = value_dim(g, input, dim);
  const SymExpr *e = sym_is_const(size) ? NULL : sym_expr(&g->syms, size);
  if (!e || e->kind != SYM_SUM || e->count != 1 || e->coefficients[0] == 1)
    return STATUS_OK;
  ++*checks;
  TRY(symints_compute(s, size, last));
  NodeId after;
  ValueId wanted = symints_value(s, size, &after);
  Builder b = symints_behind(s, after);
  ValueId given = build(&b, OP_SYM_SIZE_INT, A_VAL(input), A_INT(dim));
  StrView name = value_name(g, input);
  const char *message =
      arena_printf(s->p->scratch, "dimension %u of '%.*s' must be %.100s", dim,
                   (int)min_i64((int64_t)name.size, 100), name.data, dim_text(g, size));
  return compare(&b, OP_PRIM_EQ, A_VAL(wanted), A_VAL(given), message);
}

static Status check_inputs(Symints *s, NodeId last, uint64_t *checks) {
  Graph *g = s->g;
  bool *checked = ARENA_ARRAY(s->p->scratch, bool, (size_t)g->syms.symbol_count + 1);
  int64_t least = least_checked(g);
  for (uint32_t i = 0; i < g->input_count; i++) {
    const Type t = *value_type(g, g->inputs[i]); /* a check adds types, which moves them all */
    for (uint32_t k = 0; t.kind == TYPE_TENSOR && k < t.rank; k++) {
      TRY(check_line(s, g->inputs[i], k, last, checks));
      TRY(check_least(s, t.dims[k], least, checked, last, checks));
    }
  }
  return STATUS_OK;
}

static Status check_equal(Symints *s, const Constraint *c, NodeId last, uint64_t *checks) {
  Graph *g = s->g;
  if (sym_known_eq(&g->syms, c->lhs, c->rhs) == 1)
    return STATUS_OK;
  ++*checks;
  const char *left = dim_text(g, c->lhs), *right = dim_text(g, c->rhs);
  const char *message = arena_printf(s->p->scratch, "%.200s and %.200s must be equal", left, right);
  return require(s, &(Requirement){OP_PRIM_EQ, c->lhs, c->rhs, c->loc, message}, last);
}

static Status check_multiple(Symints *s, const Constraint *c, NodeId last, uint64_t *checks) {
  Graph *g = s->g;
  if (!sym_is_const(c->rhs))
    return STATUS_OK;
  SymInt rest = sym_mod(&g->syms, c->lhs, c->rhs);
  if (sym_known_eq(&g->syms, rest, 0) == 1)
    return STATUS_OK;
  ++*checks;
  const char *message = arena_printf(s->p->scratch, "%.200s must be a multiple of %lld",
                                     dim_text(g, c->lhs), (long long)c->rhs);
  return require(s, &(Requirement){OP_PRIM_EQ, rest, 0, c->loc, message}, last);
}

Status pass_check_sizes(PassContext *p, Graph *g) {
  Symints s = symints_make(p, g);
  uint64_t checks = 0;
  NodeId last = g->last;
  if (last)
    TRY(check_inputs(&s, last, &checks));
  for (uint32_t i = 0; last && i < g->constraint_count; i++) {
    const Constraint c = g->constraints[i];
    if (!given_by_inputs(g, c.lhs) || !given_by_inputs(g, c.rhs))
      continue;
    if (c.kind == CONSTRAINT_EQ)
      TRY(check_equal(&s, &c, last, &checks));
    if (c.kind == CONSTRAINT_DIVISIBLE)
      TRY(check_multiple(&s, &c, last, &checks));
  }
  pass_count(p, "checks", checks);
  return STATUS_OK;
}
