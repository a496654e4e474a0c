/* Sizes whose ranges follow from how they were computed, in text: the computations. Whoever reads
 * them computes the same again, and so need not trust the text. */
#include "ir/graph.h"
#include "ir/text.h"
#include "support/bitset.h"

typedef struct Marks {
  const SymTable *t;
  Bitset used; /* expressions that the graph is printed with, and what proofs of them need */
} Marks;

/* Of a broken graph, which is printed too, handles may be anything. */
static void mark(Marks *m, SymInt v) {
  uint64_t index = (uint64_t)(v - SYM_BAND);
  if (sym_is_const(v) || index >= m->t->count || bitset_has(&m->used, (uint32_t)index))
    return;
  bitset_add(&m->used, (uint32_t)index);
  const SymExpr *e = sym_expr(m->t, v);
  for (uint32_t i = 0; i < e->count; i++)
    mark(m, e->terms[i]);
}

static void mark_type(Marks *m, const Graph *g, ValueId v) {
  if (v >= g->value_count || g->values[v].type >= g->type_count)
    return;
  const Type *t = value_type(g, v);
  for (uint32_t i = 0; i < t->rank; i++)
    mark(m, t->dims[i]);
}

static void mark_node(Marks *m, const Graph *g, NodeId n) {
  const Node *node = node_cget(g, n);
  for (uint32_t i = 0; i < node->arg_count; i++) {
    const Arg *arg = node_arg(g, n, i);
    if (arg->kind == ARG_INT)
      mark(m, arg->i);
    for (uint32_t k = 0; arg->kind == ARG_INTS && k < arg->count; k++)
      mark(m, g->ints[arg->at + k]);
  }
  for (uint32_t i = 0; i < node->result_count; i++)
    mark_type(m, g, node->first_result + i);
}

static void mark_graph(Marks *m, const Graph *g) {
  for (uint32_t i = 0; i < g->input_count; i++)
    mark_type(m, g, g->inputs[i]);
  for (uint32_t i = 0; i < g->constraint_count; i++) {
    mark(m, g->constraints[i].lhs);
    mark(m, g->constraints[i].rhs);
  }
  for (FOR_NODES(g, n))
    mark_node(m, g, n);
}

/* Whether the value is written as it was computed. */
static bool is_written_so(const SymTable *t, const SymProof *p) {
  const SymExpr *e = sym_expr(t, p->value);
  return p->kind == SYM_FLOORDIV && e->kind == SYM_FLOORDIV && e->terms[0] == p->a &&
         e->terms[1] == p->b;
}

static void print_proof(const SymTable *t, const SymProof *p, StrBuf *out) {
  bool product = p->kind == SYM_PRODUCT;
  strbuf_append(out, product ? SV("  range (") : SV("  range floordiv("));
  sym_print(t, p->a, out);
  strbuf_append(out, product ? SV(")*(") : SV(", "));
  sym_print(t, p->b, out);
  strbuf_append(out, SV(")\n"));
}

void print_proofs(const Graph *g, StrBuf *out) {
  const SymTable *t = &g->syms;
  Arena arena = {0};
  if (!t->proof_count)
    return;
  Marks m = {.t = t, .used = bitset_make(&arena, t->count)};
  bool *wanted = ARENA_ARRAY(&arena, bool, t->proof_count);
  mark_graph(&m, g);
  for (uint32_t i = t->proof_count; i-- > 0;) { /* operands are older than what is made of them */
    const SymProof *p = &t->proofs[i];
    wanted[i] = bitset_has(&m.used, (uint32_t)(p->value - SYM_BAND)) && !is_written_so(t, p);
    if (!wanted[i])
      continue;
    mark(&m, p->a);
    mark(&m, p->b);
  }
  for (uint32_t i = 0; i < t->proof_count; i++)
    if (wanted[i])
      print_proof(t, &t->proofs[i], out);
  arena_release(&arena);
}
