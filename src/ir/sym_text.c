/* Printing and parsing of symbolic integers: "s0*4 + 3", "min(s0, 8)". */
#include "ir/sym.h"

#include "support/text.h"

#define MAX_PARSE_DEPTH 64

static void print_expr(const SymTable *t, SymInt v, StrBuf *out, bool nested);

static void print_sum(const SymTable *t, const SymExpr *e, StrBuf *out) {
  for (uint32_t i = 0; i < e->count; i++) {
    int64_t c = e->coefficients[i];
    if (i)
      strbuf_append(out, c < 0 ? SV(" - ") : SV(" + "));
    else if (c < 0)
      strbuf_append(out, SV("-"));
    print_expr(t, e->terms[i], out, true);
    uint64_t magnitude = c < 0 ? 0 - (uint64_t)c : (uint64_t)c;
    if (magnitude != 1)
      strbuf_printf(out, "*%llu", (unsigned long long)magnitude);
  }
  if (e->constant > 0)
    strbuf_printf(out, " + %lld", (long long)e->constant);
  else if (e->constant < 0)
    strbuf_printf(out, " - %llu", (unsigned long long)(0 - (uint64_t)e->constant));
}

static void print_expr(const SymTable *t, SymInt v, StrBuf *out, bool nested) {
  static const char *const functions[] = {
      [SYM_FLOORDIV] = "floordiv", [SYM_MOD] = "mod", [SYM_MIN] = "min", [SYM_MAX] = "max"};
  if (sym_is_const(v)) {
    strbuf_printf(out, "%lld", (long long)v);
    return;
  }
  const SymExpr *e = sym_expr(t, v);
  switch (e->kind) {
  case SYM_SYMBOL:
    strbuf_printf(out, "s%u", e->index);
    return;
  case SYM_SUM:
    strbuf_append(out, nested ? SV("(") : SV(""));
    print_sum(t, e, out);
    strbuf_append(out, nested ? SV(")") : SV(""));
    return;
  case SYM_PRODUCT:
    for (uint32_t i = 0; i < e->count; i++) {
      strbuf_append(out, i ? SV("*") : SV(""));
      print_expr(t, e->terms[i], out, true);
    }
    return;
  case SYM_FLOORDIV:
  case SYM_MOD:
  case SYM_MIN:
  case SYM_MAX:
    strbuf_printf(out, "%s(", functions[e->kind]);
    print_expr(t, e->terms[0], out, false);
    strbuf_append(out, SV(", "));
    print_expr(t, e->terms[1], out, false);
    strbuf_append_char(out, ')');
    return;
  }
}

void sym_print(const SymTable *t, SymInt v, StrBuf *out) { print_expr(t, v, out, false); }

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
  while (c->at < c->end && *c->at >= '0' && *c->at <= '9' && size < sizeof text - 1)
    text[size++] = *c->at++;
  int64_t value;
  if (!text_parse_i64((StrView){text, size}, &value))
    return false;
  *out = sym_const(value);
  return true;
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
  if (*c->at == '-' && c->at + 1 < c->end && c->at[1] >= '0' && c->at[1] <= '9') {
    c->at++;
    return parse_number(c, true, out);
  }
  if (*c->at >= '0' && *c->at <= '9')
    return parse_number(c, false, out);
  if (*c->at == 's' && c->at + 1 < c->end && c->at[1] >= '0' && c->at[1] <= '9') {
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
  bool negate = c->at + 1 < c->end && *c->at == '-' && !(c->at[1] >= '0' && c->at[1] <= '9');
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
  bool ok = parse_sum(&c, out);
  *cursor = c.at;
  return ok;
}
