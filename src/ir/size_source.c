/* See size_source.h. Expressions share their parts: each is looked into once a question. */
#include "ir/size_source.h"

static bool any_unbacked(const SymTable *t) {
  for (uint32_t i = 0; i < t->symbol_count; i++)
    if (sym_expr(t, sym_symbol_by_index(t, i))->unbacked)
      return true;
  return false;
}

/* The first one that has the symbol as it is. */
static void note(SizeSources *s, SymInt size, NodeId n) {
  if (sym_is_const(size))
    return;
  const SymExpr *e = sym_expr(&s->g->syms, size);
  if (e->kind == SYM_SYMBOL && e->unbacked && !s->of[e->index])
    s->of[e->index] = n;
}

SizeSources size_sources(const Graph *g, Arena *a) {
  SizeSources s = {.g = g};
  if (!any_unbacked(&g->syms))
    return s;
  s.of = ARENA_ARRAY(a, NodeId, g->syms.symbol_count);
  s.found = ARENA_ARRAY(a, NodeId, g->syms.symbol_count);
  s.seen = ARENA_ARRAY(a, uint32_t, g->syms.count);
  for (FOR_NODES(g, n))
    for (uint32_t i = 0; i < g->nodes[n].result_count; i++) {
      const Type *t = value_type(g, node_result(g, n, i));
      for (uint32_t k = 0; (t->kind == TYPE_INT || t->kind == TYPE_TENSOR) && k < t->rank; k++)
        note(&s, t->dims[k], n);
    }
  return s;
}

/* Nests as far as expressions do, SYM_MAX_DEPTH. */
static void look_into(SizeSources *s, SymInt size, NodeId n) {
  if (sym_is_const(size) || s->seen[size - SYM_BAND] == s->asked)
    return;
  s->seen[size - SYM_BAND] = s->asked;
  const SymExpr *e = sym_expr(&s->g->syms, size);
  for (uint32_t i = 0; e->kind != SYM_SYMBOL && i < e->count; i++)
    look_into(s, e->terms[i], n);
  if (e->kind == SYM_SYMBOL && s->of[e->index] && s->of[e->index] != n)
    s->found[s->count++] = s->of[e->index];
}

void size_sources_of(SizeSources *s, NodeId n) {
  s->count = 0;
  s->asked++;
  for (uint32_t i = 0; s->of && i < s->g->nodes[n].arg_count; i++) {
    ArgKind kind = (ArgKind)node_arg(s->g, n, i)->kind;
    if (kind == ARG_INT)
      look_into(s, node_arg(s->g, n, i)->i, n);
    for (uint32_t k = 0; kind == ARG_INTS && k < node_list_count(s->g, n, i); k++)
      look_into(s, node_ints(s->g, n, i)[k], n);
  }
}
