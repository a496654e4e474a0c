/* See bounds.h. */
#include "onnx/bounds.h"

void bounds_init(Bounds *b, const ImportOptions *options) {
  *b = (Bounds){.given = options, .options = *options};
  b->flags = ARENA_ARRAY(&b->arena, DimFlag, options->dim_count + 1);
  b->narrowed = ARENA_ARRAY(&b->arena, Narrowed, options->dim_count + 1);
  if (options->dim_count)
    memcpy(b->flags, options->dims, options->dim_count * sizeof *b->flags);
  b->options.dims = b->flags;
}

void bounds_release(Bounds *b) { arena_release(&b->arena); }

/* The symbol that a flag bounds, or SOLVE_NONE. */
static uint32_t symbol_of(const Graph *g, StrView name) {
  for (uint32_t i = 0; i < g->syms.symbol_count; i++) {
    const SymExpr *e = sym_expr(&g->syms, sym_symbol_by_index(&g->syms, i));
    if (!e->unbacked && sv_eq(sv_from(e->name), name))
      return i;
  }
  return SOLVE_NONE;
}

/* The place of a constraint, without the locations of its graph, which goes away. */
static Loc loc_of(const Graph *g, uint32_t cause) {
  Loc loc = g->locs[cause == SOLVE_NONE ? 0 : g->constraints[cause].loc];
  loc.from = 0;
  return loc;
}

Status bounds_narrow(Bounds *b, Graph *g, bool *again) {
  Solution s;
  *again = false;
  TRY(graph_solve(g, &b->arena, &s));
  for (uint32_t i = 0; i < b->options.dim_count; i++) {
    uint32_t index = symbol_of(g, b->flags[i].name);
    if (index == SOLVE_NONE)
      continue;
    const SymSizes *z = &s.sizes[index];
    DimFlag *flag = &b->flags[i];
    Narrowed *n = &b->narrowed[i];
    if (z->lo != flag->lo) {
      n->lo = true;
      n->lo_loc = loc_of(g, z->lo_cause);
    }
    if (z->hi != flag->hi) {
      n->hi = true;
      n->hi_loc = loc_of(g, z->hi_cause);
    }
    *again |= z->lo != flag->lo || z->hi != flag->hi;
    flag->lo = z->lo;
    flag->hi = z->hi;
  }
  return STATUS_OK;
}

/* --- the constraints that stay --- */

static void keep(Graph *g, ConstraintKind kind, SymInt lhs, SymInt rhs, LocId loc) {
  graph_add_constraint(g, (Constraint){kind, lhs, rhs, loc});
}

/* Bounds that the ranges of the symbols already say, for their nodes. */
static void keep_bounds(const Bounds *b, Graph *g) {
  for (uint32_t i = 0; i < b->options.dim_count; i++) {
    const Narrowed *n = &b->narrowed[i];
    uint32_t index = symbol_of(g, b->flags[i].name);
    if (index == SOLVE_NONE)
      continue;
    SymInt v = sym_symbol_by_index(&g->syms, index);
    if (n->lo)
      keep(g, CONSTRAINT_GE, v, b->flags[i].lo, graph_add_loc(g, n->lo_loc));
    if (n->hi)
      keep(g, CONSTRAINT_GE, b->flags[i].hi, v, graph_add_loc(g, n->hi_loc));
  }
}

/* The one symbol of a constraint that was settled by trying sizes. */
static SymInt symbol_in(const SymTable *t, SymInt v) {
  while (!sym_is_const(v) && sym_expr(t, v)->kind != SYM_SYMBOL) {
    const SymExpr *e = sym_expr(t, v);
    uint32_t i = 0;
    while (i + 1 < e->count && sym_is_const(e->terms[i]))
      i++;
    v = e->terms[i];
  }
  return v;
}

/* Relations on one symbol that come to a range and a step are replaced by those. */
static void simplify(Graph *g, const Solution *s) {
  uint32_t count = g->constraint_count;
  Constraint *old = ARENA_ARRAY(&g->arena, Constraint, count + 1);
  if (count)
    memcpy(old, g->constraints, count * sizeof *old);
  g->constraint_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    SymInt v = symbol_in(&g->syms, sym_is_const(old[i].lhs) ? old[i].rhs : old[i].lhs);
    const SymSizes *z = s->settled[i] ? &s->sizes[sym_expr(&g->syms, v)->index] : NULL;
    if (!z || !z->regular || old[i].kind == CONSTRAINT_GE)
      keep(g, old[i].kind, old[i].lhs, old[i].rhs, old[i].loc);
    else if (z->step > 1)
      keep(g, CONSTRAINT_DIVISIBLE, sym_sub(&g->syms, v, z->lo % z->step), z->step, old[i].loc);
  }
}

/* --- reports --- */

static void report_narrowed(const Bounds *b, Graph *g, uint32_t i) {
  const DimFlag *was = &b->given->dims[i], *is = &b->flags[i];
  const Narrowed *n = &b->narrowed[i];
  if ((!n->lo && !n->hi) || was->asked)
    return;
  LocId loc = graph_add_loc(g, n->lo ? n->lo_loc : n->hi_loc);
  Diag *d = diag_begin(g->ctx->sink, DIAG_DIM_NARROWED, graph_place(g, loc));
  diag_message(d, "--dim " SV_FMT "=%lld..%lld is narrowed to %lld..%lld", SV_ARG(was->name),
               (long long)was->lo, (long long)was->hi, (long long)is->lo, (long long)is->hi);
  if (n->lo && n->hi) {
    StrBuf text = {0};
    solve_print_place(g, graph_add_loc(g, n->hi_loc), &text);
    diag_note(d, "the upper bound is by %s", strbuf_cstr(&text));
    strbuf_release(&text);
  }
  (void)diag_end(d);
}

Status bounds_finish(Bounds *b, Graph *g) {
  Solution s;
  keep_bounds(b, g);
  TRY(graph_solve(g, &b->arena, &s));
  simplify(g, &s);
  TRY(graph_solve(g, &b->arena, &s));
  for (uint32_t i = 0; i < b->options.dim_count; i++)
    report_narrowed(b, g, i);
  if (!g->syms.symbol_count)
    return STATUS_OK;
  Diag *d = diag_begin(g->ctx->sink, DIAG_DIM_SUMMARY, context_place(g->ctx));
  diag_message(d, "sizes that vary, and what the model needs of them");
  solve_note(g, &s, &b->arena, d);
  return diag_end(d);
}
