/* Names of dims: which inputs have them, which of them --dim NAME=OTHER makes equal, and which are
 * expressions in others. */
#include "onnx/import_state.h"

StrView onnx_dim_root(const DimFlag *flags, uint32_t count, StrView name) {
  for (uint32_t step = 0; step < count; step++) {
    uint32_t i = 0;
    while (i < count && !(flags[i].same.size && sv_eq(flags[i].name, name)))
      i++;
    if (i == count)
      break;
    name = flags[i].same;
  }
  return name;
}

bool import_has_dim(const Onnx__GraphProto *graph, StrView name) {
  for (size_t i = 0; i < graph->n_input; i++) {
    const Onnx__TypeProto__Tensor *t = onnx_tensor_type(graph->input[i]);
    for (size_t k = 0; t && t->shape && k < t->shape->n_dim; k++) {
      if (name.size && sv_eq(onnx_dim_param(t->shape->dim[k]), name))
        return true;
    }
  }
  return false;
}

/* --- names that are expressions --- */

enum { DEPTH_MAX = 16 }; /* parentheses within each other */

typedef struct DimParser {
  const DimTerms *terms;
  StrView rest;
  uint32_t depth;
} DimParser;

static void skip_blanks(DimParser *p) {
  while (p->rest.size && p->rest.data[0] == ' ')
    p->rest = (StrView){p->rest.data + 1, p->rest.size - 1};
}

/* Takes the text, and the blanks behind it, when it comes next. */
static bool take(DimParser *p, const char *text) {
  if (!sv_starts_with(p->rest, sv_from(text)))
    return false;
  p->rest = (StrView){p->rest.data + strlen(text), p->rest.size - strlen(text)};
  skip_blanks(p);
  return true;
}

/* Whether a term ends here. Names may have hyphens: only one between blanks is a minus. */
static bool at_operator(StrView rest) {
  return !rest.size || memchr("+*()", rest.data[0], 4) || sv_starts_with(rest, SV("//")) ||
         sv_starts_with(rest, SV(" - "));
}

static bool parse_term(DimParser *p, SymInt *out) {
  StrView term = {p->rest.data, 0};
  while (!at_operator(p->rest)) {
    term.size++;
    p->rest = (StrView){p->rest.data + 1, p->rest.size - 1};
  }
  skip_blanks(p);
  while (term.size && term.data[term.size - 1] == ' ')
    term.size--;
  return term.size && (onnx_dim_number(term, out) || p->terms->size_of(p->terms->user, term, out));
}

static bool parse_sum(DimParser *p, SymInt *out);

static bool parse_factor(DimParser *p, SymInt *out) {
  if (!take(p, "("))
    return parse_term(p, out);
  if (p->depth == DEPTH_MAX)
    return false;
  p->depth++;
  bool right = parse_sum(p, out) && take(p, ")");
  p->depth--;
  return right;
}

static bool parse_product(DimParser *p, SymInt *out) {
  SymTable *t = p->terms->syms;
  SymInt factor;
  if (!parse_factor(p, out))
    return false;
  for (;;) {
    bool times = take(p, "*");
    if (!times && !take(p, "//"))
      return true;
    if (!parse_factor(p, &factor) || (!times && (!sym_is_const(factor) || factor < 1)))
      return false;
    *out = times ? sym_mul(t, *out, factor) : sym_floordiv(t, *out, factor);
  }
}

static bool parse_sum(DimParser *p, SymInt *out) {
  SymTable *t = p->terms->syms;
  SymInt term;
  if (!parse_product(p, out))
    return false;
  for (;;) {
    bool plus = take(p, "+");
    if (!plus && !take(p, "- "))
      return true;
    if (!parse_product(p, &term))
      return false;
    *out = plus ? sym_add(t, *out, term) : sym_sub(t, *out, term);
  }
}

bool onnx_dim_expression(const DimTerms *terms, StrView name, SymInt *out) {
  DimParser p = {.terms = terms, .rest = name};
  skip_blanks(&p);
  return parse_sum(&p, out) && !p.rest.size;
}
