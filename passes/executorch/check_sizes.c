/* Dims that were taken as equal end the call with an error where they are not.
 *
 * Tensors of [a, 3] and [b, 3] that are added have a result of [a, 3]: a and b are sizes that the
 * host gives, and may be different names of one. Kernels would broadcast a size of 1 all the same,
 * into memory that the result shares with an operand, and what is computed from a would be wrong.
 * Each equation between sizes of inputs is compared as soon as both sides are known. Sizes that the
 * data tell are checked by those who made them. */
#include "ops/shape_util.h"
#include "passes/executorch/symints.h"

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

/* last: the last node that was there before. */
static Status compare(Symints *s, const Constraint *c, NodeId last) {
  Graph *g = s->g;
  TRY(symints_compute(s, c->lhs, last));
  TRY(symints_compute(s, c->rhs, last));
  NodeId behind = 0;
  ArgIn lhs = side(s, c->lhs, &behind), rhs = side(s, c->rhs, &behind);
  const char *left = dim_text(g, c->lhs), *right = dim_text(g, c->rhs);
  const char *message = arena_printf(s->p->scratch, "%.200s and %.200s must be equal", left, right);
  Builder b = symints_behind(s, behind);
  b.loc = c->loc;
  ValueId equal = build(&b, OP_PRIM_EQ, lhs, rhs);
  (void)build(&b, OP_REQUIRE, A_VAL(equal), A_STR(message));
  return b.status;
}

Status pass_check_sizes(PassContext *p, Graph *g) {
  Symints s = symints_make(p, g);
  uint64_t checks = 0;
  NodeId last = g->last;
  for (uint32_t i = 0; last && i < g->constraint_count; i++) {
    const Constraint c = g->constraints[i];
    if (c.kind != CONSTRAINT_EQ || !given_by_inputs(g, c.lhs) || !given_by_inputs(g, c.rhs) ||
        sym_known_eq(&g->syms, c.lhs, c.rhs) == 1)
      continue;
    TRY(compare(&s, &c, last));
    checks++;
  }
  pass_count(p, "checks", checks);
  return STATUS_OK;
}
