/* See symints.h. Division and remainder follow kernels/prim_ops/register_prim_ops.cpp of ExecuTorch
 * 1.4.1: floordiv.Scalar rounds to minus infinity, mod.Scalar has the sign of the dividend. */
#include "passes/executorch/symints.h"

static uint32_t index_of(SymInt v) { return (uint32_t)(v - SYM_BAND); }

static ValueId known(const Symints *s, SymInt v) {
  return index_of(v) < s->capacity ? s->known[index_of(v)] : 0;
}

ValueId symints_value(const Symints *s, SymInt v, NodeId *after) {
  *after = s->after[index_of(v)];
  return known(s, v);
}

static void set_known(Symints *s, SymInt v, ValueId value, NodeId after) {
  uint32_t index = index_of(v);
  if (index >= s->capacity) {
    uint32_t capacity = index + index / 2 + 64;
    size_t old = s->capacity;
    s->known =
        arena_grow(s->p->scratch, s->known, old * sizeof *s->known, capacity * sizeof *s->known);
    memset(s->known + old, 0, (capacity - old) * sizeof *s->known);
    s->after =
        arena_grow(s->p->scratch, s->after, old * sizeof *s->after, capacity * sizeof *s->after);
    s->capacity = capacity;
  }
  s->known[index] = value;
  s->after[index] = after;
}

/* --- symbols --- */

/* A dim that is a symbol, or a multiple of one plus a number. Of inputs a bare symbol is preferred;
 * what nodes make comes too late for some. */
static void note_dim(Symints *s, ValueId v, uint32_t i) {
  const SymExpr *e = sym_expr(&s->g->syms, value_dim(s->g, v, i));
  bool bare = e->kind == SYM_SYMBOL, line = e->kind == SYM_SUM && e->count == 1;
  if (line)
    e = sym_expr(&s->g->syms, e->terms[0]);
  Source *source = e->kind == SYM_SYMBOL ? &s->sources[e->index] : NULL;
  if (source && (!source->value || (bare && source->line && !value_def(s->g, v))))
    *source = (Source){v, i, line};
}

static void note_source(Symints *s, ValueId v) {
  const Type *t = value_type(s->g, v);
  if (t->kind == TYPE_INT && t->rank == 1 && !sym_is_const(t->dims[0]) &&
      sym_expr(&s->g->syms, t->dims[0])->kind == SYM_SYMBOL && !known(s, t->dims[0]))
    set_known(s, t->dims[0], v, value_def(s->g, v));
  for (uint32_t i = 0; t->kind == TYPE_TENSOR && i < t->rank; i++) {
    if (!sym_is_const(t->dims[i]))
      note_dim(s, v, i);
  }
}

static void find_sources(Symints *s) {
  Graph *g = s->g;
  s->sources = ARENA_ARRAY(s->p->scratch, Source, g->syms.symbol_count);
  s->position = ARENA_ARRAY(s->p->scratch, uint32_t, s->node_count);
  NodeId at;
  const char *wrong = regions_find(g, s->p->scratch, &s->regions, &at);
  if (wrong)
    BUG("the marker %s", wrong);
  uint32_t position = 0;
  for (uint32_t i = 0; i < g->input_count; i++)
    note_source(s, g->inputs[i]);
  for (FOR_NODES(g, n)) { /* none of ours is there yet */
    s->position[n] = ++position;
    for (uint32_t i = 0; i < g->nodes[n].result_count; i++)
      note_source(s, node_result(g, n, i));
  }
}

NodeId symints_later(const Symints *s, NodeId a, NodeId b) {
  return a && (!b || s->position[a] > s->position[b]) ? a : b;
}

Builder symints_behind(const Symints *s, NodeId after) {
  Graph *g = s->g;
  NodeId before = after ? g->nodes[after].next : g->first;
  while (before && (before >= s->node_count))
    before = g->nodes[before].next;
  return builder_make(g, before, after ? g->nodes[after].loc : 0);
}

static Status no_way(Symints *s, SymInt v, NodeId user) {
  StrBuf text = {0};
  sym_print(&s->g->syms, v, &text);
  Status status =
      diag_report(s->p->sink, DIAG_NOT_IMPLEMENTED, node_place(s->g, user),
                  "the size '%s' cannot be computed while the program runs", strbuf_cstr(&text));
  strbuf_release(&text);
  return status;
}

/* size op number, or size itself where that changes nothing. */
static ValueId line_step(Symints *s, Builder *b, OpId op, ValueId size, int64_t number,
                         int64_t nothing) {
  if (number == nothing)
    return size;
  s->computed++;
  return build(b, op, A_VAL(size), A_INT(number));
}

static Status read_symbol(Symints *s, SymInt v, NodeId user) {
  Source source = s->sources[sym_expr(&s->g->syms, v)->index];
  if (!source.value)
    return no_way(s, v, user);
  NodeId after = value_def(s->g, source.value);
  Builder b = symints_behind(s, after);
  ValueId size = build(&b, OP_SYM_SIZE_INT, A_VAL(source.value), A_INT(source.dim));
  s->computed++;
  if (source.line) { /* size = symbol * coefficient + constant */
    SymInt dim = value_dim(s->g, source.value, source.dim);
    int64_t constant = sym_expr(&s->g->syms, dim)->constant,
            coefficient = sym_expr(&s->g->syms, dim)->coefficients[0];
    size = line_step(s, &b, OP_PRIM_SUB, size, constant, 0);
    size = line_step(s, &b, OP_PRIM_FLOORDIV, size, coefficient, 1);
  }
  TRY(b.status);
  set_known(s, v, size, after);
  return STATUS_OK;
}

/* --- expressions --- */

/* An expression whose terms have an order of their own, so that the same program comes of every
 * text of it; in a sum, a term that is added is the first. */
typedef struct Ordered {
  SymExpr e;
  SymInt terms[SYM_MAX_TERMS];
  int64_t coefficients[SYM_MAX_TERMS];
} Ordered;

static void in_order(const SymTable *t, SymInt v, Ordered *o) {
  uint32_t order[SYM_MAX_TERMS], first = 0;
  const SymExpr *e = sym_expr(t, v);
  o->e = *e;
  if (e->kind == SYM_SYMBOL)
    return;
  sym_print_order(t, v, order);
  while (e->coefficients && first + 1 < e->count && e->coefficients[order[first]] < 0)
    first++;
  for (uint32_t i = 0; i < e->count; i++) {
    uint32_t from = order[i == 0 ? first : i <= first ? i - 1 : i];
    o->terms[i] = e->terms[from];
    o->coefficients[i] = e->coefficients ? e->coefficients[from] : 1;
  }
  o->e.terms = o->terms;
  o->e.coefficients = o->coefficients;
}

/* What an expression is computed with: where, and the operand so far. */
typedef struct Compute {
  Symints *s;
  Builder b;
  NodeId after;
} Compute;

static ArgIn operand(Compute *c, SymInt v) {
  return sym_is_const(v) ? A_INT(v) : A_VAL(known(c->s, v));
}

/* a op b, taken from what is known when it is. */
static ValueId binary(Compute *c, OpId op, ArgIn a, ArgIn b) {
  ValueId v = build(&c->b, op, a, b);
  c->s->computed += v != 0;
  return v;
}

static ValueId compute_sum(Compute *c, const SymExpr *e) {
  ValueId sum = 0;
  for (uint32_t i = 0; i < e->count; i++) {
    ArgIn term = operand(c, e->terms[i]);
    int64_t k = e->coefficients[i];
    if (sum && k == -1) {
      sum = binary(c, OP_PRIM_SUB, A_VAL(sum), term);
      continue;
    }
    if (k != 1)
      term = A_VAL(binary(c, OP_PRIM_MUL, term, A_INT(k)));
    if (!term.i)
      return 0;
    sum = sum ? binary(c, OP_PRIM_ADD, A_VAL(sum), term) : (ValueId)term.i;
    if (!sum)
      return 0;
  }
  return e->constant ? binary(c, OP_PRIM_ADD, A_VAL(sum), A_INT(e->constant)) : sum;
}

static ValueId compute_product(Compute *c, const SymExpr *e) {
  ValueId product = known(c->s, e->terms[0]);
  for (uint32_t i = 1; i < e->count && product; i++)
    product = binary(c, OP_PRIM_MUL, A_VAL(product), operand(c, e->terms[i]));
  return product;
}

static ValueId compute_mod(Compute *c, const SymExpr *e) {
  const SymTable *t = &c->s->g->syms;
  ArgIn a = operand(c, e->terms[0]), b = operand(c, e->terms[1]);
  if (sym_lower(t, e->terms[0]) >= 0 && sym_lower(t, e->terms[1]) > 0)
    return binary(c, OP_PRIM_MOD, a, b);
  ValueId quotient = binary(c, OP_PRIM_FLOORDIV, a, b);
  ValueId whole = quotient ? binary(c, OP_PRIM_MUL, A_VAL(quotient), b) : 0;
  return whole ? binary(c, OP_PRIM_SUB, a, A_VAL(whole)) : 0;
}

static ValueId compute(Compute *c, const SymExpr *e) {
  switch (e->kind) {
  case SYM_SUM:
    return compute_sum(c, e);
  case SYM_PRODUCT:
    return compute_product(c, e);
  case SYM_FLOORDIV:
    return binary(c, OP_PRIM_FLOORDIV, operand(c, e->terms[0]), operand(c, e->terms[1]));
  case SYM_MOD:
    return compute_mod(c, e);
  case SYM_MIN:
    return binary(c, OP_PRIM_SYM_MIN, operand(c, e->terms[0]), operand(c, e->terms[1]));
  case SYM_MAX:
    return binary(c, OP_PRIM_SYM_MAX, operand(c, e->terms[0]), operand(c, e->terms[1]));
  case SYM_SYMBOL:
    break;
  }
  return 0;
}

/* The expression v, all of whose terms are known. */
static Status compute_known(Symints *s, SymInt v, const Ordered *o, NodeId user) {
  const SymExpr *e = &o->e;
  if (e->kind == SYM_SYMBOL)
    return read_symbol(s, v, user);
  Compute c = {.s = s};
  for (uint32_t i = 0; i < e->count; i++) {
    NodeId after = sym_is_const(e->terms[i]) ? 0 : s->after[index_of(e->terms[i])];
    c.after = symints_later(s, after, c.after);
  }
  c.b = symints_behind(s, c.after);
  ValueId value = compute(&c, e);
  TRY(c.b.status);
  const Type *t = value_type(s->g, value);
  if (t->rank != 1 || t->dims[0] != v)
    return no_way(s, v, user);
  set_known(s, v, value, c.after);
  return STATUS_OK;
}

static void push(Symints *s, SymInt v) {
  if (s->stack_count == s->stack_capacity) {
    uint32_t capacity = s->stack_capacity * 2 + 64;
    s->stack = arena_grow(s->p->scratch, s->stack, s->stack_capacity * sizeof *s->stack,
                          capacity * sizeof *s->stack);
    s->stack_capacity = capacity;
  }
  s->stack[s->stack_count++] = v;
}

/* Terms first; on a stack of our own, since nesting has no limit. */
Status symints_compute(Symints *s, SymInt wanted, NodeId user) {
  if (sym_is_const(wanted))
    return STATUS_OK;
  if (!s->sources)
    find_sources(s);
  push(s, wanted);
  while (s->stack_count) {
    SymInt v = s->stack[s->stack_count - 1];
    uint32_t before = s->stack_count;
    Ordered o = {0};
    if (known(s, v)) {
      s->stack_count--;
      continue;
    }
    in_order(&s->g->syms, v, &o);
    for (uint32_t i = 0; o.e.kind != SYM_SYMBOL && i < o.e.count; i++)
      if (!sym_is_const(o.terms[i]) && !known(s, o.terms[i]))
        push(s, o.terms[i]);
    if (s->stack_count > before)
      continue;
    s->stack_count--;
    TRY(compute_known(s, v, &o, user));
  }
  NodeId after = s->after[index_of(wanted)];
  const Regions *r = &s->regions;
  bool there = !after || (s->position[after] < s->position[user] &&
                          region_within(r, region_of_argument(s->g, r, user, 0),
                                        region_of_results(s->g, r, after)));
  return there ? STATUS_OK : no_way(s, wanted, user);
}

Symints symints_make(PassContext *p, Graph *g) {
  return (Symints){.p = p, .g = g, .node_count = g->node_count};
}
