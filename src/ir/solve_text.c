/* Constraints and their solution in words; see solve.h. */
#include "ir/solve.h"

enum { RUNS_SHOWN = 8 };

void constraint_print(const Graph *g, const Constraint *c, StrBuf *out) {
  static const char *const relations[] = {
      [CONSTRAINT_EQ] = " == ", [CONSTRAINT_GE] = " >= ", [CONSTRAINT_DIVISIBLE] = " % "};
  bool divides = c->kind == CONSTRAINT_DIVISIBLE;
  bool sum = divides && !sym_is_const(c->lhs) && sym_expr(&g->syms, c->lhs)->kind == SYM_SUM;
  bool swapped = c->kind == CONSTRAINT_GE && sym_is_const(c->lhs); /* "8 >= n" reads "n <= 8" */
  strbuf_append(out, sum ? SV("(") : SV(""));
  sym_print_named(&g->syms, swapped ? c->rhs : c->lhs, out);
  strbuf_append(out, sum ? SV(")") : SV(""));
  strbuf_append(out, sv_from(swapped ? " <= " : relations[c->kind]));
  sym_print_named(&g->syms, swapped ? c->lhs : c->rhs, out);
  strbuf_append(out, divides ? SV(" == 0") : SV(""));
}

void solve_print_place(const Graph *g, LocId loc, StrBuf *out) {
  DiagPlace place = graph_place(g, loc);
  if (place.node.size) {
    strbuf_append_within(out, "'", place.node, "'");
  } else if (place.index >= 0) {
    strbuf_printf(out, "node %lld", (long long)place.index);
  }
  if (place.op.size) {
    strbuf_append_within(out, " (", place.op, ")");
  }
}

static void print_cause(const Graph *g, uint32_t cause, const char *what, StrBuf *out) {
  if (cause == SOLVE_NONE)
    return;
  strbuf_printf(out, "; %s by ", what);
  solve_print_place(g, g->constraints[cause].loc, out);
}

/* "25..32, 57..64", … */
static void print_runs(const SymSizes *z, int64_t least, StrBuf *out) {
  int64_t from = -1;
  unsigned runs = 0;
  for (int64_t size = z->lo; size <= z->hi + 1; size++) {
    uint64_t bit = (uint64_t)(size - least);
    bool fits = size <= z->hi && (z->fits[bit / 64] >> (bit % 64) & 1);
    if (fits && from < 0)
      from = size;
    if (fits || from < 0)
      continue;
    if (runs++ == RUNS_SHOWN) {
      strbuf_append(out, SV(", ..."));
      return;
    }
    strbuf_printf(out, "%s%lld", runs > 1 ? ", " : "", (long long)from);
    if (size - 1 > from)
      strbuf_printf(out, "..%lld", (long long)size - 1);
    from = -1;
  }
}

/* By symbol: a value that has it as a dim, one with a name if there is one. */
static ValueId *find_sized(const Graph *g, Arena *arena) {
  ValueId *sized = ARENA_ARRAY(arena, ValueId, g->syms.symbol_count + 1);
  for (ValueId v = 1; v < g->value_count; v++) {
    const Type *t = value_type(g, v);
    for (uint32_t i = 0; t->kind == TYPE_TENSOR && i < t->rank; i++) {
      const SymExpr *e = sym_is_const(t->dims[i]) ? NULL : sym_expr(&g->syms, t->dims[i]);
      if (!e || e->kind != SYM_SYMBOL)
        continue;
      ValueId known = sized[e->index];
      if (!known || (!value_cget(g, known)->name && value_cget(g, v)->name))
        sized[e->index] = v;
    }
  }
  return sized;
}

static void append_origin(const Graph *g, ValueId sized, StrBuf *text) {
  StrView name = value_name(g, sized);
  if (name.size)
    strbuf_append_within(text, ", a size of '", name, "'");
  strbuf_append(text, SV(", known only while running"));
}

static void note_range(const Graph *g, const SymSizes *z, SymInt v, ValueId sized, Diag *d) {
  const SymExpr *e = sym_expr(&g->syms, v);
  StrBuf text = {0};
  sym_print_named(&g->syms, v, &text);
  strbuf_append(&text, SV(" in "));
  if (z->regular)
    strbuf_printf(&text, "%lld..%lld", (long long)z->lo, (long long)z->hi);
  else
    print_runs(z, e->lo, &text);
  if (z->regular && z->step > 1) {
    strbuf_append(&text, SV(", "));
    sym_print_named(&g->syms, v, &text);
    strbuf_printf(&text, " %% %lld == %lld", (long long)z->step, (long long)(z->lo % z->step));
  }
  if (e->unbacked)
    append_origin(g, sized, &text);
  print_cause(g, z->lo_cause, "lower bound", &text);
  print_cause(g, z->hi_cause, "upper bound", &text);
  print_cause(g, z->step_cause, z->regular ? "divisibility" : "gaps", &text);
  diag_note(d, "range constraint: %s", strbuf_cstr(&text));
  strbuf_release(&text);
}

void solve_note(const Graph *g, const Solution *s, Arena *arena, Diag *d) {
  const ValueId *sized = find_sized(g, arena);
  bool any = false;
  for (uint32_t i = 0; i < g->syms.symbol_count; i++) {
    SymInt v = sym_symbol_by_index(&g->syms, i);
    if (!sized[i] && sym_expr(&g->syms, v)->unbacked)
      continue; /* a counter of a loop, or another number that is no size */
    note_range(g, &s->sizes[i], v, sized[i], d);
    any = true;
  }
  if (!any)
    diag_note(d, "no size varies by itself: counters of loops, or numbers that data decide, do");
  for (uint32_t i = 0; i < g->constraint_count; i++) {
    const Constraint *c = &g->constraints[i];
    if (s->settled[i])
      continue;
    StrBuf text = {0};
    constraint_print(g, c, &text);
    strbuf_append(&text, SV("; by "));
    solve_print_place(g, c->loc, &text);
    diag_note(d, "%s constraint: %s", c->kind == CONSTRAINT_EQ ? "equality" : "range",
              strbuf_cstr(&text));
    strbuf_release(&text);
  }
}
