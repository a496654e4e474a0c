/* Binding of symbols: dims of the inputs are equations, expression = number.
 *
 * An equation with exactly one unbound symbol, in a sum, solves for it (s0*4 + 3 = 11 gives 2);
 * the others wait for a later round. Two inputs that share a symbol are thereby checked against
 * each other. */
#include "interp/symbols.h"

#include "interp/npy.h"
#include "ir/solve.h"
#include "ir/text.h"

enum {
  MAX_EXPR_DEPTH = 256
}; /* deeper ones count as unknown: no input can make the walk recurse further */

Symbols symbols_make(const Graph *g, Arena *arena) {
  Symbols s = {.g = g, .sink = g->ctx->sink};
  s.values = ARENA_ARRAY(arena, int64_t, (size_t)g->syms.symbol_count + 1);
  s.bound = ARENA_ARRAY(arena, bool, (size_t)g->syms.symbol_count + 1);
  s.checked = ARENA_ARRAY(arena, bool, (size_t)g->constraint_count + 1);
  return s;
}

static bool known_to_depth(const Symbols *s, SymInt expr, unsigned depth) {
  if (sym_is_const(expr))
    return true;
  if (depth == 0)
    return false;
  const SymExpr *e = sym_expr(&s->g->syms, expr);
  if (e->kind == SYM_SYMBOL)
    return s->bound[e->index];
  for (uint32_t i = 0; i < e->count; i++)
    if (!known_to_depth(s, e->terms[i], depth - 1))
      return false;
  return true;
}

static bool symbols_known(const Symbols *s, SymInt expr) {
  return known_to_depth(s, expr, MAX_EXPR_DEPTH);
}

bool symbols_eval(const Symbols *s, SymInt expr, int64_t *out) {
  if (sym_is_const(expr)) {
    *out = expr;
    return true;
  }
  return symbols_known(s, expr) && sym_eval(&s->g->syms, expr, s->values, out);
}

/* "input 'x'", "input 2" when it has no name. */
static void append_input(const Graph *g, uint32_t i, StrBuf *out) {
  StrView name = value_name(g, g->inputs[i]);
  if (name.size)
    strbuf_printf(out, "input '" SV_FMT "'", SV_ARG(name));
  else
    strbuf_printf(out, "input %u", i);
}

static const char *input_label(const Graph *g, uint32_t i, StrBuf *buf) {
  append_input(g, i, buf);
  return strbuf_cstr(buf);
}

/* The first dim of an input that is this size; false: none is. */
static bool append_dim(const Graph *g, SymInt size, StrBuf *out) {
  for (uint32_t i = 0; i < g->input_count; i++) {
    const Type *type = value_type(g, g->inputs[i]);
    for (uint32_t d = 0; d < type->rank; d++) {
      if (type->dims[d] != size)
        continue;
      strbuf_printf(out, "dim %u of ", d);
      append_input(g, i, out);
      return true;
    }
  }
  return false;
}

/* "s0 ('batch')", "dim 1 of input 'x'" where it has no name, "s0*4 + 3". */
static const char *expr_text(const Symbols *s, SymInt expr, StrBuf *buf) {
  const SymExpr *e = sym_is_const(expr) ? NULL : sym_expr(&s->g->syms, expr);
  bool symbol = e && e->kind == SYM_SYMBOL, named = symbol && e->name && e->name[0];
  strbuf_clear(buf);
  if (symbol && !named && append_dim(s->g, expr, buf))
    return strbuf_cstr(buf);
  sym_print(&s->g->syms, expr, buf);
  if (named)
    strbuf_append_within(buf, " ('", sv_from(e->name), "')");
  return strbuf_cstr(buf);
}

typedef enum Solved { SOLVED, SOLVED_LATER, SOLVED_NEVER, SOLVED_RANGE } Solved;

/* The sum equals *value: its only unknown term, and what that must be. */
static Solved solve_sum(Symbols *s, const SymExpr *e, int64_t *value, SymInt *unknown) {
  int64_t coefficient = 0;
  unsigned unknowns = 0;
  if (__builtin_sub_overflow(*value, e->constant, value))
    return SOLVED_NEVER;
  for (uint32_t i = 0; i < e->count; i++) {
    int64_t term, product;
    if (!symbols_known(s, e->terms[i])) {
      unknowns++;
      *unknown = e->terms[i];
      coefficient = e->coefficients[i];
    } else if (!symbols_eval(s, e->terms[i], &term) ||
               !mul_i64(term, e->coefficients[i], &product) ||
               __builtin_sub_overflow(*value, product, value)) {
      return SOLVED_NEVER;
    }
  }
  if (unknowns != 1)
    return SOLVED_LATER;
  if (coefficient == 0 || (coefficient == -1 && *value == INT64_MIN) || *value % coefficient != 0)
    return SOLVED_NEVER;
  *value /= coefficient;
  return SOLVED;
}

/* Binds one symbol of expr = value. LATER: more than one unknown; NEVER: no integer solves it;
 * RANGE: the solution is outside the symbol's range, *culprit is the symbol. */
static Solved solve(Symbols *s, SymInt expr, int64_t value, SymInt *culprit, int64_t *solution) {
  const SymExpr *e = sym_expr(&s->g->syms, expr);
  SymInt unknown = expr;
  if (e->kind == SYM_SUM) {
    Solved sum = solve_sum(s, e, &value, &unknown);
    if (sum != SOLVED)
      return sum;
    e = sym_expr(&s->g->syms, unknown);
  }
  if (e->kind != SYM_SYMBOL)
    return SOLVED_LATER;
  *culprit = unknown;
  *solution = value;
  if (value < e->lo || value > e->hi)
    return SOLVED_RANGE;
  s->values[e->index] = value;
  s->bound[e->index] = true;
  return SOLVED;
}

static Status constraint_failed(const Symbols *s, const Constraint *c, int64_t lhs, int64_t rhs) {
  static const char *const words[] = {"must equal", "must be at least", "must be a multiple of"};
  StrBuf left = {0}, right = {0};
  Diag *d = diag_begin(s->sink, DIAG_RUN_CONSTRAINT, graph_place(s->g, c->loc));
  diag_message(d, "%s %s %s, but they are %lld and %lld", expr_text(s, c->lhs, &left),
               words[c->kind], expr_text(s, c->rhs, &right), (long long)lhs, (long long)rhs);
  diag_note(d, "the model was lowered under this assumption, made at this node");
  strbuf_release(&left);
  strbuf_release(&right);
  return diag_end(d);
}

/* Those whose symbols are all bound and that were not checked before. */
static Status check_constraints(Symbols *s) {
  for (uint32_t i = 0; i < s->g->constraint_count; i++) {
    const Constraint *c = &s->g->constraints[i];
    if (s->checked[i] || !symbols_known(s, c->lhs) || !symbols_known(s, c->rhs))
      continue;
    int64_t lhs = 0, rhs = 0;
    if (!symbols_eval(s, c->lhs, &lhs) || !symbols_eval(s, c->rhs, &rhs) ||
        !constraint_holds(c->kind, lhs, rhs))
      return constraint_failed(s, c, lhs, rhs);
    s->checked[i] = true;
  }
  return STATUS_OK;
}

static Status input_dim_error(Symbols *s, uint32_t input, uint32_t dim, int64_t value) {
  const Type *type = value_type(s->g, s->g->inputs[input]);
  StrBuf text = {0}, name = {0};
  const char *label = input_label(s->g, input, &name);
  Diag *d = diag_begin(s->sink, DIAG_RUN_INPUT_SHAPE, context_place(s->g->ctx));
  int64_t expected;
  if (symbols_eval(s, type->dims[dim], &expected))
    diag_message(d, "dim %u of %s is %lld, and must be %lld", dim, label, (long long)value,
                 (long long)expected);
  else
    diag_message(d, "dim %u of %s is %lld, which nothing that %s stands for gives", dim, label,
                 (long long)value, expr_text(s, type->dims[dim], &text));
  if (!sym_is_const(type->dims[dim]))
    diag_note(d, "the graph says %s", expr_text(s, type->dims[dim], &text));
  if (s->g->dim_flags)
    diag_note(d, "the sizes are those of%s", s->g->dim_flags);
  strbuf_release(&text);
  strbuf_release(&name);
  return diag_end(d);
}

/* where: "dim 0 of input 'x' is", "this result makes s0". */
static Status range_error(Symbols *s, DiagPlace place, const char *where, SymInt symbol,
                          int64_t value) {
  const SymExpr *e = sym_expr(&s->g->syms, symbol);
  Diag *d = diag_begin(s->sink, DIAG_RUN_INPUT_SHAPE, place);
  diag_message(d, "%s %lld, outside its range %lld..%lld", where, (long long)value,
               (long long)e->lo, (long long)e->hi);
  if (e->unbacked)
    diag_hint(d, "lower the model with a greater upper bound, by --dim or --bound");
  else if (e->name && e->name[0])
    diag_hint(d, "lower the model with a wider --dim %s=LO..HI", e->name);
  else
    diag_hint(d, "lower the model with a wider --dim");
  return diag_end(d);
}

static Status input_range_error(Symbols *s, uint32_t input, uint32_t dim, SymInt symbol,
                                int64_t value) {
  StrBuf where = {0}, text = {0};
  strbuf_printf(&where, "dim %u of ", dim);
  append_input(s->g, input, &where);
  if (value_dim(s->g, s->g->inputs[input], dim) == symbol)
    strbuf_append(&where, SV(" is"));
  else
    strbuf_printf(&where, " makes %s", expr_text(s, symbol, &text));
  Status status = range_error(s, context_place(s->g->ctx), strbuf_cstr(&where), symbol, value);
  strbuf_release(&where);
  strbuf_release(&text);
  return status;
}

/* One round over all dims of all inputs. */
static Status bind_round(Symbols *s, const Tensor *inputs, bool last, bool *progress,
                         bool *waiting) {
  const Graph *g = s->g;
  *progress = *waiting = false;
  for (uint32_t i = 0; i < g->input_count; i++) {
    const Type *type = value_type(g, g->inputs[i]);
    for (uint32_t d = 0; d < type->rank; d++) {
      int64_t value = inputs[i].dims[d], known, solution = 0;
      SymInt culprit = 0;
      if (symbols_known(s, type->dims[d])) {
        if (!symbols_eval(s, type->dims[d], &known) || known != value)
          return input_dim_error(s, i, d, value);
        continue;
      }
      Solved solved = solve(s, type->dims[d], value, &culprit, &solution);
      if (solved == SOLVED_RANGE)
        return input_range_error(s, i, d, culprit, solution);
      if (solved == SOLVED_NEVER || (solved == SOLVED_LATER && last))
        return input_dim_error(s, i, d, value);
      *progress |= solved == SOLVED;
      *waiting |= solved == SOLVED_LATER;
    }
  }
  return STATUS_OK;
}

/* "input 'x' takes f32[1, 3], the array is f32[5, 3]": before sizes are solved for. */
static Status wrong_shape(const Symbols *s, const char *label, const Type *type,
                          const Tensor *input) {
  StrBuf want = {0}, have = {0};
  type_describe(s->g, type, &want);
  shape_describe(dtype_name(input->dtype), input->dims, input->rank, &have);
  Diag *d = diag_begin(s->sink, DIAG_RUN_INPUT_SHAPE, context_place(s->g->ctx));
  diag_message(d, "%s takes %s, the array is %s", label, strbuf_cstr(&want), strbuf_cstr(&have));
  if (s->g->dim_flags) {
    diag_note(d, "the sizes are those of%s", s->g->dim_flags);
    diag_hint(d, "give an array of that shape, or other sizes by --dim");
  } else {
    diag_hint(d, "give an array of that type and shape; other sizes are for 'etc lower' (--dim)");
  }
  strbuf_release(&want);
  strbuf_release(&have);
  return diag_end(d);
}

static Status check_type(const Symbols *s, const char *label, const Type *type,
                         const Tensor *input) {
  if (type->kind != TYPE_TENSOR)
    return diag_report(s->sink, DIAG_NOT_IMPLEMENTED, context_place(s->g->ctx),
                       "%s is a scalar, not a tensor", label);
  bool fits = type->rank == input->rank;
  for (uint32_t d = 0; fits && d < type->rank; d++)
    fits = !sym_is_const(type->dims[d]) || type->dims[d] == input->dims[d];
  if (!fits)
    return wrong_shape(s, label, type, input);
  if (type->dtype == input->dtype)
    return STATUS_OK;
  Diag *d = diag_begin(s->sink, DIAG_RUN_INPUT_TYPE, context_place(s->g->ctx));
  diag_message(d, "%s takes %s, not %s", label, dtype_name((DType)type->dtype),
               dtype_name(input->dtype));
  npy_hint_conversion(d, input->dtype, (DType)type->dtype);
  return diag_end(d);
}

static Status check_input(const Symbols *s, uint32_t i, const Tensor *input) {
  StrBuf name = {0};
  Status status =
      check_type(s, input_label(s->g, i, &name), value_type(s->g, s->g->inputs[i]), input);
  strbuf_release(&name);
  return status;
}

Status symbols_bind_inputs(Symbols *s, const Tensor *inputs, uint32_t count) {
  if (count != s->g->input_count)
    return diag_report(s->sink, DIAG_RUN_INPUT_MISSING, DIAG_NOWHERE,
                       "the graph has %u inputs, %u were given", s->g->input_count, count);
  for (uint32_t i = 0; i < count; i++)
    TRY(check_input(s, i, &inputs[i]));
  bool progress = true, waiting = true;
  while (progress && waiting)
    TRY(bind_round(s, inputs, false, &progress, &waiting));
  TRY(bind_round(s, inputs, true, &progress, &waiting));
  return check_constraints(s);
}

Status symbols_bind_result(Symbols *s, NodeId n, SymInt expr, int64_t value) {
  int64_t known, solution = 0;
  SymInt culprit = 0;
  if (!symbols_known(s, expr)) {
    if (solve(s, expr, value, &culprit, &solution) == SOLVED_RANGE)
      return range_error(s, node_place(s->g, n), "this result makes a size", culprit, solution);
    return check_constraints(s);
  }
  if (symbols_eval(s, expr, &known) && known == value)
    return STATUS_OK;
  StrBuf text = {0};
  Status status = diag_report(s->sink, DIAG_RUN_CONSTRAINT, node_place(s->g, n),
                              "a size of the result is %lld, the graph says %s", (long long)value,
                              expr_text(s, expr, &text));
  strbuf_release(&text);
  return status;
}
