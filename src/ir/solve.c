/* See solve.h. */
#include "ir/solve.h"

#include "ir/sym_internal.h"
#include "support/number.h"

enum {
  SIZES_TRIED = 1 << 16, /* of one symbol; wider ranges are only narrowed as linear relations do */
  STEPS_TRIED = 1 << 26, /* of all: evaluations times the size of their expressions */
  ROUNDS = 16,           /* narrowing one symbol may narrow the next */
  MENTIONED_MAX = 8
};

typedef struct Solver {
  Graph *g;
  Arena *arena;
  SymSizes *sizes;
  bool *settled;
  int64_t *values; /* by symbol, for evaluation */
  uint64_t steps;
  bool changed;
} Solver;

/* The symbols of an expression. */
typedef struct Mentioned {
  uint32_t symbols[MENTIONED_MAX], count;
  bool more; /* than there is room for */
} Mentioned;

static void mention(const SymTable *t, SymInt v, Mentioned *m) {
  if (sym_is_const(v))
    return;
  const SymExpr *e = sym_expr(t, v);
  if (e->kind != SYM_SYMBOL) {
    for (uint32_t i = 0; i < e->count; i++)
      mention(t, e->terms[i], m);
    return;
  }
  for (uint32_t i = 0; i < m->count; i++)
    if (m->symbols[i] == e->index)
      return;
  if (m->count < MENTIONED_MAX)
    m->symbols[m->count++] = e->index;
  else
    m->more = true;
}

static Mentioned mentioned_by(const SymTable *t, const Constraint *c) {
  Mentioned m = {0};
  mention(t, c->lhs, &m);
  mention(t, c->rhs, &m);
  return m;
}

static const SymExpr *symbol(const Solver *s, uint32_t index) {
  return sym_expr(&s->g->syms, sym_symbol_by_index(&s->g->syms, index));
}

/* --- contradictions --- */

static void note_bound(const Graph *g, Diag *d, const char *name, const char *what, int64_t bound,
                       uint32_t cause) {
  StrBuf text = {0};
  solve_print_place(g, g->constraints[cause].loc, &text);
  diag_note(d, "%s is %s %lld by node %s", name, what, (long long)bound, strbuf_cstr(&text));
  strbuf_release(&text);
}

static void note_symbol(const Solver *s, uint32_t index, Diag *d) {
  const Graph *g = s->g;
  const SymExpr *e = symbol(s, index);
  const SymSizes *z = &s->sizes[index];
  StrBuf name = {0};
  sym_print_named(&g->syms, sym_symbol_by_index(&g->syms, index), &name);
  const char *n = strbuf_cstr(&name);
  if (e->name[0] && !e->unbacked)
    diag_note(d, "--dim %s=%lld..%lld was given", n, (long long)e->lo, (long long)e->hi);
  else
    diag_note(d, "%s is in %lld..%lld", n, (long long)e->lo, (long long)e->hi);
  if (z->lo_cause != SOLVE_NONE)
    note_bound(g, d, n, "at least", z->lo, z->lo_cause);
  if (z->hi_cause != SOLVE_NONE && z->hi_cause != z->lo_cause)
    note_bound(g, d, n, "at most", z->hi, z->hi_cause);
  if (z->step_cause != SOLVE_NONE && z->step_cause != z->lo_cause && z->step_cause != z->hi_cause)
    note_bound(g, d, n, "not every size from", z->lo, z->step_cause);
  strbuf_release(&name);
}

static Status contradiction(const Solver *s, const Constraint *c) {
  const Graph *g = s->g;
  Mentioned m = mentioned_by(&g->syms, c);
  StrBuf text = {0};
  constraint_print(g, c, &text);
  Diag *d = diag_begin(g->ctx->sink, DIAG_DIM_CONTRADICTION, graph_place(g, c->loc));
  diag_message(d, "the node needs %s, which no size that is left satisfies", strbuf_cstr(&text));
  for (uint32_t i = 0; i < m.count; i++)
    note_symbol(s, m.symbols[i], d);
  strbuf_release(&text);
  return diag_end(d);
}

/* --- one symbol --- */

bool constraint_holds(ConstraintKind kind, int64_t lhs, int64_t rhs) {
  switch (kind) {
  case CONSTRAINT_EQ:
    return lhs == rhs;
  case CONSTRAINT_GE:
    return lhs >= rhs;
  case CONSTRAINT_DIVISIBLE:
    return rhs != 0 && sym_const_mod(lhs, rhs) == 0;
  }
  return false;
}

static bool fits(const SymSizes *z, int64_t least, int64_t size) {
  uint64_t bit = (uint64_t)(size - least);
  return !z->fits || (z->fits[bit / 64] >> (bit % 64) & 1);
}

/* Moves the bounds to sizes that fit; false when there are none. */
static bool tighten(Solver *s, uint32_t index, uint32_t cause) {
  SymSizes *z = &s->sizes[index];
  int64_t least = symbol(s, index)->lo, lo = z->lo, hi = z->hi;
  while (lo <= hi && !fits(z, least, lo))
    lo++;
  while (hi > lo && !fits(z, least, hi))
    hi--;
  if (lo > hi)
    return false;
  s->changed |= lo != z->lo || hi != z->hi;
  if (lo != z->lo)
    z->lo_cause = cause;
  if (hi != z->hi)
    z->hi_cause = cause;
  z->lo = lo;
  z->hi = hi;
  return true;
}

static bool can_try(Solver *s, const Constraint *c, uint32_t index) {
  const SymTable *t = &s->g->syms;
  const SymExpr *e = symbol(s, index);
  uint64_t size = 2;
  size += sym_is_const(c->lhs) ? 0 : sym_expr(t, c->lhs)->size;
  size += sym_is_const(c->rhs) ? 0 : sym_expr(t, c->rhs)->size;
  if (e->unbacked || (uint64_t)e->hi - (uint64_t)e->lo >= SIZES_TRIED)
    return false;
  uint64_t steps = size * (uint64_t)(s->sizes[index].hi - s->sizes[index].lo + 1);
  if (steps > STEPS_TRIED - s->steps)
    return false;
  s->steps += steps;
  return true;
}

/* Tries every size that is left. */
static Status try_sizes(Solver *s, uint32_t constraint, uint32_t index) {
  const Constraint *c = &s->g->constraints[constraint];
  SymSizes *z = &s->sizes[index];
  int64_t least = symbol(s, index)->lo, lhs, rhs;
  uint64_t words = (uint64_t)(symbol(s, index)->hi - least) / 64 + 1;
  if (!z->fits) {
    z->fits = ARENA_ARRAY(s->arena, uint64_t, words);
    memset(z->fits, 0xff, words * sizeof *z->fits);
  }
  int64_t before = z->hi - z->lo, inner = 0;
  for (int64_t size = z->lo; size <= z->hi; size++) {
    uint64_t bit = (uint64_t)(size - least);
    s->values[index] = size;
    bool good = sym_eval(&s->g->syms, c->lhs, s->values, &lhs) &&
                sym_eval(&s->g->syms, c->rhs, s->values, &rhs) &&
                constraint_holds(c->kind, lhs, rhs);
    if (good || !fits(z, least, size))
      continue;
    z->fits[bit / 64] &= ~((uint64_t)1 << (bit % 64));
    inner++;
  }
  s->settled[constraint] = true;
  if (!tighten(s, index, constraint))
    return contradiction(s, c);
  if (inner > before - (z->hi - z->lo)) /* more than the two ends: gaps */
    z->step_cause = constraint;
  return STATUS_OK;
}

/* --- linear relations --- */

static void interval(const Solver *s, SymInt term, int64_t *lo, int64_t *hi) {
  const SymTable *t = &s->g->syms;
  const SymExpr *e = sym_expr(t, term);
  *lo = e->kind == SYM_SYMBOL ? s->sizes[e->index].lo : e->lo;
  *hi = e->kind == SYM_SYMBOL ? s->sizes[e->index].hi : e->hi;
}

/* The range of constant + the terms of a sum other than `but`; false when a bound is missing. */
static bool rest_range(const Solver *s, const SymExpr *sum, uint32_t but, int64_t *lo,
                       int64_t *hi) {
  *lo = *hi = sum->constant;
  for (uint32_t i = 0; i < sum->count; i++) {
    int64_t a, b, c = sum->coefficients[i];
    if (i == but)
      continue;
    interval(s, sum->terms[i], &a, &b);
    if (a == INT64_MIN || b == INT64_MAX || !mul_i64(a, c, &a) || !mul_i64(b, c, &b) ||
        !add_i64(*lo, min_i64(a, b), lo) || !add_i64(*hi, max_i64(a, b), hi))
      return false;
  }
  return *lo > INT64_MIN && *hi > INT64_MIN;
}

/* Narrows the symbol of term i so that the sum can be 0 (or positive). */
static bool narrow_term(Solver *s, uint32_t constraint, const SymExpr *sum, uint32_t i,
                        bool equal) {
  const SymExpr *e = sym_expr(&s->g->syms, sum->terms[i]);
  int64_t rest_lo, rest_hi, c = sum->coefficients[i];
  if (e->kind != SYM_SYMBOL || e->unbacked || !rest_range(s, sum, i, &rest_lo, &rest_hi))
    return true;
  /* c * x >= -rest_hi, and c * x <= -rest_lo when equal */
  SymSizes *z = &s->sizes[e->index];
  int64_t lo = z->lo, hi = z->hi;
  if (c > 0 || equal)
    lo = max_i64(lo, -sym_const_floordiv(c > 0 ? rest_hi : rest_lo, c));
  if (c < 0 || equal)
    hi = min_i64(hi, sym_const_floordiv(c < 0 ? -rest_hi : -rest_lo, c));
  if (lo > hi)
    return false;
  s->changed |= lo != z->lo || hi != z->hi;
  z->lo_cause = lo != z->lo ? constraint : z->lo_cause;
  z->hi_cause = hi != z->hi ? constraint : z->hi_cause;
  z->lo = lo;
  z->hi = hi;
  return tighten(s, e->index, constraint);
}

static Status narrow(Solver *s, uint32_t constraint) {
  Constraint c = s->g->constraints[constraint];
  SymTable *t = &s->g->syms;
  if (c.kind == CONSTRAINT_DIVISIBLE)
    return STATUS_OK;
  bool before = t->too_large;
  t->too_large = false;
  SymInt difference = sym_sub(t, c.lhs, c.rhs);
  bool usable = !t->too_large && !sym_is_const(difference);
  t->too_large = before;
  if (!usable)
    return STATUS_OK;
  SymExpr e = *sym_expr(t, difference);
  int64_t one = 1;
  if (e.kind != SYM_SUM) /* the difference is one term */
    e = (SymExpr){.kind = SYM_SUM, .count = 1, .terms = &difference, .coefficients = &one};
  for (uint32_t i = 0; i < e.count; i++)
    if (!narrow_term(s, constraint, &e, i, c.kind == CONSTRAINT_EQ))
      return contradiction(s, &c);
  return STATUS_OK;
}

/* --- all of them --- */

/* A bound that the range has already, for its node: n >= 3 of a symbol in 3..8. */
static void credit(Solver *s, uint32_t constraint) {
  const Constraint *c = &s->g->constraints[constraint];
  bool upper = sym_is_const(c->lhs);
  SymInt v = upper ? c->rhs : c->lhs, bound = upper ? c->lhs : c->rhs;
  if (c->kind != CONSTRAINT_GE || sym_is_const(v) || !sym_is_const(bound) ||
      sym_expr(&s->g->syms, v)->kind != SYM_SYMBOL)
    return;
  SymSizes *z = &s->sizes[sym_expr(&s->g->syms, v)->index];
  if (upper && bound == z->hi && z->hi_cause == SOLVE_NONE)
    z->hi_cause = constraint;
  if (!upper && bound == z->lo && z->lo_cause == SOLVE_NONE)
    z->lo_cause = constraint;
}

/* The greatest step by which all sizes that fit are reached. */
static void find_step(Solver *s, uint32_t index) {
  SymSizes *z = &s->sizes[index];
  int64_t least = symbol(s, index)->lo, step = 0, count = 0;
  for (int64_t size = z->lo; z->fits && size <= z->hi; size++) {
    if (!fits(z, least, size))
      continue;
    count++;
    step = greatest_divisor(step, size - z->lo);
  }
  z->step = step ? step : 1;
  z->regular = !z->fits || (z->hi - z->lo) / z->step + 1 == count;
}

static Status solve_constraint(Solver *s, uint32_t i) {
  const Constraint *c = &s->g->constraints[i];
  Mentioned m = mentioned_by(&s->g->syms, c);
  if (m.count == 0 || m.more)
    return STATUS_OK;
  if (m.count == 1 && can_try(s, c, m.symbols[0]))
    return try_sizes(s, i, m.symbols[0]);
  return narrow(s, i);
}

Status graph_solve(Graph *g, Arena *arena, Solution *out) {
  uint32_t symbols = g->syms.symbol_count;
  Solver s = {.g = g,
              .arena = arena,
              .sizes = ARENA_ARRAY(arena, SymSizes, symbols + 1),
              .settled = ARENA_ARRAY(arena, bool, g->constraint_count + 1),
              .values = ARENA_ARRAY(arena, int64_t, symbols + 1),
              .changed = true};
  for (uint32_t i = 0; i < symbols; i++)
    s.sizes[i] = (SymSizes){.lo = symbol(&s, i)->lo,
                            .hi = symbol(&s, i)->hi,
                            .lo_cause = SOLVE_NONE,
                            .hi_cause = SOLVE_NONE,
                            .step_cause = SOLVE_NONE};
  for (unsigned round = 0; round < ROUNDS && s.changed; round++) {
    s.changed = false;
    for (uint32_t i = 0; i < g->constraint_count; i++)
      if (!s.settled[i])
        TRY(solve_constraint(&s, i));
  }
  for (uint32_t i = 0; i < g->constraint_count; i++)
    credit(&s, i);
  for (uint32_t i = 0; i < symbols; i++)
    find_step(&s, i);
  *out = (Solution){s.sizes, s.settled};
  return STATUS_OK;
}
