/* Printing and parsing of symbolic integers: "s0*4 + 3", "min(s0, 8)". */
#include "ir/sym.h"

#include "support/text.h"

#define MAX_PARSE_DEPTH (SYM_MAX_DEPTH + 8)

/* How an expression is printed: in parentheses where it is a sum within something, with symbols by
 * name. */
enum { NESTED = 1, NAMED = 2 };

static void print_expr(const SymTable *t, SymInt v, StrBuf *out, unsigned how);

/* A term as text, to be put in order. */
typedef struct Term {
  size_t at, size; /* in a buffer shared by the terms */
  int64_t coefficient;
  bool is_symbol;
  uint32_t index; /* of a symbol */
  uint32_t place; /* among the terms of its expression */
} Term;

/* Handles depend on the order in which expressions were made; text must not. Symbols come first, by
 * number, then other terms by length and bytes. */
static bool term_before(const StrBuf *texts, const Term *a, const Term *b) {
  if (a->is_symbol || b->is_symbol)
    return a->is_symbol && (!b->is_symbol || a->index < b->index);
  if (a->size != b->size)
    return a->size < b->size;
  return memcmp(texts->data + a->at, texts->data + b->at, a->size) < 0;
}

static void sort_terms(const SymTable *t, const SymExpr *e, unsigned how, StrBuf *texts,
                       Term *terms) {
  for (uint32_t i = 0; i < e->count; i++) {
    Term term = {
        .at = texts->size, .coefficient = e->coefficients ? e->coefficients[i] : 1, .place = i};
    print_expr(t, e->terms[i], texts, how);
    term.size = texts->size - term.at;
    term.is_symbol = !sym_is_const(e->terms[i]) && sym_expr(t, e->terms[i])->kind == SYM_SYMBOL;
    term.index = term.is_symbol ? sym_expr(t, e->terms[i])->index : 0;
    uint32_t k = i;
    for (; k > 0 && term_before(texts, &term, &terms[k - 1]); k--)
      terms[k] = terms[k - 1];
    terms[k] = term;
  }
}

static void print_sum(const SymExpr *e, const StrBuf *texts, const Term *terms, StrBuf *out) {
  for (uint32_t i = 0; i < e->count; i++) {
    int64_t c = terms[i].coefficient;
    if (i)
      strbuf_append(out, c < 0 ? SV(" - ") : SV(" + "));
    else if (c < 0)
      strbuf_append(out, SV("-"));
    strbuf_append(out, (StrView){texts->data + terms[i].at, terms[i].size});
    uint64_t magnitude = c < 0 ? 0 - (uint64_t)c : (uint64_t)c;
    if (magnitude != 1)
      strbuf_printf(out, "*%llu", (unsigned long long)magnitude);
  }
  if (e->constant > 0)
    strbuf_printf(out, " + %lld", (long long)e->constant);
  else if (e->constant < 0)
    strbuf_printf(out, " - %llu", (unsigned long long)(0 - (uint64_t)e->constant));
}

static void print_joined(const SymExpr *e, const char *between, const StrBuf *texts,
                         const Term *terms, StrBuf *out) {
  for (uint32_t i = 0; i < e->count; i++) {
    strbuf_append(out, sv_from(i ? between : ""));
    strbuf_append(out, (StrView){texts->data + terms[i].at, terms[i].size});
  }
}

/* Sums, products, minima and maxima: their operands have no order of their own. */
static void print_unordered(const SymTable *t, const SymExpr *e, StrBuf *out, unsigned how) {
  StrBuf texts = {0};
  Term terms[SYM_MAX_TERMS];
  bool is_call = e->kind == SYM_MIN || e->kind == SYM_MAX;
  sort_terms(t, e, is_call ? how & NAMED : how | NESTED, &texts, terms);
  if (e->kind == SYM_SUM) {
    strbuf_append(out, how & NESTED ? SV("(") : SV(""));
    print_sum(e, &texts, terms, out);
    strbuf_append(out, how & NESTED ? SV(")") : SV(""));
  } else if (is_call) {
    strbuf_append(out, e->kind == SYM_MIN ? SV("min(") : SV("max("));
    print_joined(e, ", ", &texts, terms, out);
    strbuf_append_char(out, ')');
  } else {
    print_joined(e, "*", &texts, terms, out);
  }
  strbuf_release(&texts);
}

static bool is_unordered(SymKind kind) {
  return kind == SYM_SUM || kind == SYM_PRODUCT || kind == SYM_MIN || kind == SYM_MAX;
}

void sym_print_order(const SymTable *t, SymInt v, uint32_t order[SYM_MAX_TERMS]) {
  StrBuf texts = {0};
  Term terms[SYM_MAX_TERMS];
  const SymExpr *e = sym_expr(t, v);
  bool sorted = is_unordered(e->kind);
  if (sorted)
    sort_terms(t, e, NESTED, &texts, terms);
  for (uint32_t i = 0; i < e->count; i++)
    order[i] = sorted ? terms[i].place : i;
  strbuf_release(&texts);
}

static void print_expr(const SymTable *t, SymInt v, StrBuf *out, unsigned how) {
  if (sym_is_const(v)) {
    strbuf_printf(out, "%lld", (long long)v);
    return;
  }
  const SymExpr *e = sym_expr(t, v);
  switch (e->kind) {
  case SYM_SYMBOL:
    if (how & NAMED && e->name && e->name[0])
      strbuf_append_printable(out, sv_from(e->name));
    else
      strbuf_printf(out, "s%u", e->index);
    return;
  case SYM_SUM:
  case SYM_PRODUCT:
  case SYM_MIN:
  case SYM_MAX:
    print_unordered(t, e, out, how);
    return;
  case SYM_FLOORDIV:
  case SYM_MOD:
    strbuf_append(out, e->kind == SYM_MOD ? SV("mod(") : SV("floordiv("));
    print_expr(t, e->terms[0], out, how & NAMED);
    strbuf_append(out, SV(", "));
    print_expr(t, e->terms[1], out, how & NAMED);
    strbuf_append_char(out, ')');
    return;
  }
}

void sym_print(const SymTable *t, SymInt v, StrBuf *out) { print_expr(t, v, out, 0); }
void sym_print_named(const SymTable *t, SymInt v, StrBuf *out) { print_expr(t, v, out, NAMED); }

typedef struct SymCursor {
  SymTable *t;
  const char *at, *end;
  unsigned depth;
} SymCursor;

static void skip(SymCursor *c) {
  while (c->at < c->end && *c->at == ' ')
    c->at++;
}

static bool take(SymCursor *c, char wanted) {
  skip(c);
  if (c->at >= c->end || *c->at != wanted)
    return false;
  c->at++;
  return true;
}

static bool parse_sum(SymCursor *c, SymInt *out);

static bool parse_number(SymCursor *c, bool negative, SymInt *out) {
  char text[24];
  size_t size = 0;
  if (negative)
    text[size++] = '-';
  while (c->at < c->end && is_digit(*c->at) && size < sizeof text - 1)
    text[size++] = *c->at++;
  int64_t value;
  if (!text_parse_i64((StrView){text, size}, &value))
    return false;
  return sym_from_number(value, out);
}

static bool parse_symbol(SymCursor *c, SymInt *out) {
  SymInt index;
  if (!parse_number(c, false, &index) || index < 0 || index >= (int64_t)c->t->symbol_count)
    return false;
  *out = sym_symbol_by_index(c->t, (uint32_t)index);
  return true;
}

static bool parse_call(SymCursor *c, SymInt *out) {
  static const struct {
    StrView name;
    SymInt (*make)(SymTable *, SymInt, SymInt);
  } calls[] = {{{"floordiv", 8}, sym_floordiv},
               {{"mod", 3}, sym_mod},
               {{"min", 3}, sym_min},
               {{"max", 3}, sym_max}};
  StrView rest = {c->at, (size_t)(c->end - c->at)};
  for (size_t i = 0; i < COUNT_OF(calls); i++) {
    if (!sv_starts_with(rest, calls[i].name))
      continue;
    c->at += calls[i].name.size;
    SymInt a, b;
    if (!take(c, '(') || !parse_sum(c, &a) || !take(c, ',') || !parse_sum(c, &b) || !take(c, ')'))
      return false;
    *out = calls[i].make(c->t, a, b);
    return true;
  }
  return false;
}

static bool parse_factor(SymCursor *c, SymInt *out) {
  skip(c);
  if (c->at >= c->end)
    return false;
  if (take(c, '('))
    return parse_sum(c, out) && take(c, ')');
  if (*c->at == '-' && c->at + 1 < c->end && is_digit(c->at[1])) {
    c->at++;
    return parse_number(c, true, out);
  }
  if (is_digit(*c->at))
    return parse_number(c, false, out);
  if (*c->at == 's' && c->at + 1 < c->end && is_digit(c->at[1])) {
    c->at++;
    return parse_symbol(c, out);
  }
  return parse_call(c, out);
}

static bool parse_product(SymCursor *c, SymInt *out) {
  if (!parse_factor(c, out))
    return false;
  while (take(c, '*')) {
    SymInt next;
    if (!parse_factor(c, &next))
      return false;
    *out = sym_mul(c->t, *out, next);
  }
  return true;
}

static bool parse_sum(SymCursor *c, SymInt *out) {
  if (++c->depth > MAX_PARSE_DEPTH)
    return false;
  skip(c);
  bool negate = c->at + 1 < c->end && *c->at == '-' && !is_digit(c->at[1]);
  if (negate)
    c->at++;
  if (!parse_product(c, out))
    return false;
  if (negate)
    *out = sym_sub(c->t, 0, *out);
  for (;;) {
    bool plus = take(c, '+');
    if (!plus && !take(c, '-'))
      break;
    SymInt next;
    if (!parse_product(c, &next))
      return false;
    *out = plus ? sym_add(c->t, *out, next) : sym_sub(c->t, *out, next);
  }
  c->depth--;
  return true;
}

bool sym_parse(SymTable *t, const char **cursor, const char *end, SymInt *out) {
  SymCursor c = {.t = t, .at = *cursor, .end = end};
  bool saturated = t->saturated;
  t->saturated = false;
  bool ok = parse_sum(&c, out) && !t->too_large && !t->saturated;
  t->saturated = saturated;
  *cursor = c.at;
  return ok;
}
