/* Einsum: operands are joined from left to right, each pair by one batched matrix product.
 *
 * Labels are numbers: letters 0 to 51, then one a dim that "..." stands for, counted from the
 * right end of the ellipsis so that operands of fewer dims line up. */
#include "onnx/express.h"
#include "ir/text.h"

enum { ELLIPSIS_FIRST = 52, LABELS = ELLIPSIS_FIRST + MAX_RANK };

typedef struct Term {
  ValueId value;
  uint32_t rank;
  uint8_t labels[MAX_RANK];
} Term;

typedef struct Einsum {
  SymInt size[LABELS];
  bool known[LABELS];
  uint32_t later[LABELS]; /* in how many terms still to be joined, and the result, a label stands */
  uint32_t ellipsis;      /* most dims that "..." stands for */
} Einsum;

static int letter(char c) {
  return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}

/* Labels of one term; ellipsis: dims that "..." stands for. false on a syntax error. */
static bool parse_term(StrView text, uint32_t ellipsis, Term *t) {
  bool seen = false;
  t->rank = 0;
  for (size_t i = 0; i < text.size; i++) {
    if (text.data[i] == ' ')
      continue;
    if (text.data[i] == '.' && !seen && text.size - i >= 3 && text.data[i + 1] == '.' &&
        text.data[i + 2] == '.') {
      seen = true;
      i += 2;
      for (uint32_t k = ellipsis; k-- > 0 && t->rank < MAX_RANK;)
        t->labels[t->rank++] = (uint8_t)(ELLIPSIS_FIRST + k);
      continue;
    }
    int l = letter(text.data[i]);
    if (l < 0 || t->rank == MAX_RANK)
      return false;
    t->labels[t->rank++] = (uint8_t)l;
  }
  return true;
}

static uint32_t letters_in(StrView text, bool *dots) {
  uint32_t count = 0;
  *dots = false;
  for (size_t i = 0; i < text.size; i++) {
    count += letter(text.data[i]) >= 0;
    *dots |= text.data[i] == '.';
  }
  return count;
}

/* Cuts the part before `mark` off *rest; the whole rest when there is none. */
static StrView take_until(StrView *rest, char mark) {
  StrView part = *rest;
  for (size_t i = 0; i < rest->size; i++)
    if (rest->data[i] == mark) {
      part.size = i;
      *rest = (StrView){rest->data + i + 1, rest->size - i - 1};
      return part;
    }
  *rest = (StrView){rest->data + rest->size, 0};
  return part;
}

/* --- steps on one term --- */

static void drop_dim(Term *t, uint32_t at) {
  memmove(t->labels + at, t->labels + at + 1, t->rank - at - 1);
  t->rank--;
}

/* A label that stands twice in a term means the diagonal, which becomes the last dim. */
static void take_diagonals(Import *im, Term *t) {
  for (uint32_t i = 0; i < t->rank && import_ok(im); i++)
    for (uint32_t k = i + 1; k < t->rank; k++) {
      if (t->labels[i] != t->labels[k])
        continue;
      uint8_t label = t->labels[i];
      t->value = build(&im->b, OP_DIAGONAL_COPY, A_VAL(t->value), A_INT(0), A_INT(i), A_INT(k));
      drop_dim(t, k);
      drop_dim(t, i);
      t->labels[t->rank++] = label;
      i = (uint32_t)-1; /* from the start again: the dims have moved */
      break;
    }
}

/* Sums the labels that nothing else needs. */
static void sum_unused(Import *im, const Einsum *e, Term *t) {
  int64_t axes[MAX_RANK];
  uint32_t count = 0, kept = 0;
  for (uint32_t i = 0; i < t->rank; i++) {
    if (e->later[t->labels[i]] == 0)
      axes[count++] = i;
    else
      t->labels[kept++] = t->labels[i];
  }
  t->rank = kept;
  if (count)
    t->value = ex_reduce(im, OP_SUM_DIM_INTLIST, t->value, axes, count, false);
}

static int find_label(const Term *t, uint8_t label) {
  for (uint32_t i = 0; i < t->rank; i++)
    if (t->labels[i] == label)
      return (int)i;
  return -1;
}

/* The term's dims in the order of `labels`; labels it does not have become dims of size 1. */
static ValueId ordered(Import *im, const Term *t, const uint8_t *labels, uint32_t count) {
  int64_t perm[MAX_RANK];
  Dims s = shape_of(im, t->value), to = {.rank = count};
  uint32_t used = 0;
  for (uint32_t i = 0; i < count && import_ok(im); i++) {
    int at = find_label(t, labels[i]);
    to.d[i] = at < 0 ? 1 : s.d[at];
    if (at >= 0)
      perm[used++] = at;
  }
  return ex_view_as(im, ex_permute(im, t->value, perm), to);
}

/* --- joining two terms --- */

/* Labels of a pair in groups: in both and needed later, in one only, in both and summed here. */
typedef struct LabelList {
  uint32_t count;
  uint8_t at[3 * MAX_RANK];
} LabelList;
typedef struct Groups {
  LabelList both, left, right, sum;
} Groups;

static void add_label(LabelList *list, uint8_t label) { list->at[list->count++] = label; }

static Groups group(const Einsum *e, const Term *a, const Term *b) {
  Groups g = {0};
  for (uint32_t i = 0; i < a->rank; i++) {
    uint8_t label = a->labels[i];
    add_label(find_label(b, label) < 0 ? &g.left : e->later[label] ? &g.both : &g.sum, label);
  }
  for (uint32_t i = 0; i < b->rank; i++)
    if (find_label(a, b->labels[i]) < 0)
      add_label(&g.right, b->labels[i]);
  return g;
}

/* Those of all three, one list behind the other; fails when they are too many. */
static LabelList joined(Import *im, const LabelList *a, const LabelList *b, const LabelList *c) {
  LabelList all = *a;
  memcpy(all.at + all.count, b->at, b->count);
  memcpy(all.at + all.count + b->count, c->at, c->count);
  all.count += b->count + c->count;
  if (all.count > MAX_RANK)
    import_fail(im, DIAG_RANK_LIMIT, "more than %d dimensions at once", MAX_RANK);
  return all;
}

static Dims shape_by(const Einsum *e, const uint8_t *labels, uint32_t count) {
  Dims s = {.rank = count};
  for (uint32_t i = 0; i < count; i++)
    s.d[i] = e->size[labels[i]];
  return s;
}

/* [both, x, y] as a 3-D tensor, or [x, y] as a matrix where nothing is in both; dims of size 1 that
 * stand for more are expanded. */
static ValueId as_matrices(Import *im, const Einsum *e, const Term *t, const LabelList *both,
                           const LabelList *x, const LabelList *y) {
  LabelList all = joined(im, both, x, y);
  if (!import_ok(im))
    return 0;
  ValueId v = ordered(im, t, all.at, all.count);
  Dims full = shape_by(e, all.at, all.count);
  const SymInt *d = full.d, *end = d + both->count;
  v = ex_expand(im, v, d, full.rank);
  SymInt rows = shape_product(im, end, x->count),
         columns = shape_product(im, end + x->count, y->count);
  return both->count ? EX_VIEW(im, v, shape_product(im, d, both->count), rows, columns)
                     : EX_VIEW(im, v, rows, columns);
}

static void join(Import *im, const Einsum *e, Term *a, const Term *b) {
  Groups g = group(e, a, b);
  LabelList all = joined(im, &g.both, &g.left, &g.right);
  if (!import_ok(im))
    return;
  Term result = {.rank = all.count};
  memcpy(result.labels, all.at, all.count);
  if (g.sum.count == 0) { /* nothing to add up: a product with broadcasting */
    ValueId right = ordered(im, b, result.labels, result.rank);
    result.value = ex_mul(im, ordered(im, a, result.labels, result.rank), right);
    *a = result;
    return;
  }
  ValueId x = as_matrices(im, e, a, &g.both, &g.left, &g.sum),
          y = as_matrices(im, e, b, &g.both, &g.sum, &g.right);
  ValueId product = g.both.count ? ex_bmm(im, x, y) : ex_mm(im, x, y);
  result.value = ex_view_as(im, product, shape_by(e, result.labels, result.rank));
  *a = result;
}

/* --- the equation --- */

/* Notes the size of each label; a 1 gives way to any other size. */
static void note_sizes(Import *im, Einsum *e, const Term *t) {
  for (uint32_t i = 0; i < t->rank; i++) {
    uint8_t label = t->labels[i];
    SymInt size = ex_dim(im, t->value, i);
    if (!e->known[label] || e->size[label] == 1)
      e->size[label] = size;
    else if (size != 1 && sym_known_eq(&im->g->syms, size, e->size[label]) == 0)
      import_fail(im, DIAG_SHAPE_MISMATCH, "one label stands for sizes %s and %s",
                  dim_text(im->g, e->size[label]), dim_text(im->g, size));
    e->known[label] = true;
  }
}

/* Without "->": the ellipsis and then the labels that stand exactly once, in alphabetical order. */
static void implied_result(const Einsum *e, Term *result) {
  result->rank = 0;
  for (uint32_t k = e->ellipsis; k-- > 0;)
    result->labels[result->rank++] = (uint8_t)(ELLIPSIS_FIRST + k);
  for (uint32_t label = 0; label < ELLIPSIS_FIRST; label++)
    if (e->later[label] == 1 && result->rank < MAX_RANK)
      result->labels[result->rank++] = (uint8_t)label;
}

static bool read_terms(Import *im, StrView left, Einsum *e, Term *terms, uint32_t count) {
  for (int pass = 0; pass < 2; pass++) { /* first the widest ellipsis, then the labels */
    StrView rest = left;
    for (uint32_t i = 0; i < count && import_ok(im); i++) {
      bool dots, last = i + 1 == count;
      size_t before = rest.size;
      StrView text = take_until(&rest, ',');
      uint32_t rank = ex_rank(im, terms[i].value), letters = letters_in(text, &dots);
      if (letters > rank || (!dots && letters != rank) || last != (text.size == before))
        return import_fail(im, DIAG_ATTR_VALUE,
                           "the equation does not fit the inputs: term %u is '" SV_FMT
                           "', and input %u has rank %u",
                           i, SV_ARG(text), i, rank);
      if (pass == 0 && rank - letters > e->ellipsis)
        e->ellipsis = rank - letters;
      if (pass == 1 && !parse_term(text, rank - letters, &terms[i]))
        return import_fail(im, DIAG_ATTR_VALUE,
                           "term %u of the equation is '" SV_FMT
                           "', not up to %d letters and one '...'",
                           i, SV_ARG(text), MAX_RANK);
    }
  }
  for (uint32_t i = 0; i < count && import_ok(im); i++) {
    note_sizes(im, e, &terms[i]);
    for (uint32_t k = 0; k < terms[i].rank; k++)
      e->later[terms[i].labels[k]]++;
  }
  return import_ok(im);
}

static bool read_result(Import *im, StrView right, bool explicit_result, const Einsum *e,
                        Term *result) {
  *result = (Term){0};
  if (!explicit_result)
    implied_result(e, result);
  else if (!parse_term(right, e->ellipsis, result))
    import_fail(im, DIAG_ATTR_VALUE,
                "the result of the equation is '" SV_FMT "', not up to %d letters and one '...'",
                SV_ARG(right), MAX_RANK);
  for (uint32_t i = 0; i < result->rank && import_ok(im); i++)
    if (!e->known[result->labels[i]] || find_label(result, result->labels[i]) != (int)i)
      import_fail(im, DIAG_ATTR_VALUE,
                  "a label of the result stands in no input, or twice in the result");
  return import_ok(im);
}

/* Sums what nothing else needs and joins the terms one by one. */
static ValueId contract(Import *im, Einsum *e, Term *terms, uint32_t count, const Term *result) {
  for (uint32_t i = 0; i < result->rank; i++)
    e->later[result->labels[i]]++;
  for (uint32_t i = 0; i < count && import_ok(im); i++) {
    Term *t = &terms[i];
    for (uint32_t k = 0; k < t->rank; k++)
      e->later[t->labels[k]]--;
    take_diagonals(im, t);
    if (i == 0) {
      sum_unused(im, e, t);
      continue;
    }
    /* LabelList of this term alone are summed before the product, shared ones by it. */
    for (uint32_t k = 0; k < terms[0].rank; k++)
      e->later[terms[0].labels[k]]++;
    sum_unused(im, e, t);
    for (uint32_t k = 0; k < terms[0].rank; k++)
      e->later[terms[0].labels[k]]--;
    join(im, e, &terms[0], t);
  }
  ValueId y = ordered(im, &terms[0], result->labels, result->rank);
  Dims to = shape_by(e, result->labels, result->rank);
  return ex_expand(im, y, to.d, to.rank);
}

void translate_einsum(Import *im) {
  StrView right = attr_str(im, "equation", ""), left;
  uint32_t count = in_count(im);
  Term *terms = ARENA_ARRAY(&im->scratch, Term, count);
  Einsum *e = ARENA_NEW(&im->scratch, Einsum);
  Term result;
  for (uint32_t i = 0; i < count; i++)
    terms[i].value = in_required(im, i);
  left = take_until(&right, '-');
  bool explicit_result = right.size > 0 && right.data[0] == '>';
  if (explicit_result)
    right = (StrView){right.data + 1, right.size - 1};
  if (!import_ok(im) || !read_terms(im, left, e, terms, count) ||
      !read_result(im, right, explicit_result, e, &result))
    return;
  out(im, 0, contract(im, e, terms, count, &result));
}
