/* Where tensors may have no elements: XNNPACK has none of these, so that the delegate is not
 * called then. That is right where its results have no elements either, whatever is computed: each
 * factor that makes an operand empty must be one of a dim of each result. */
#include "backends/xnnpack/lower.h"

enum { MAX_FACTORS = 2 * XNN_MAX_RANK };

typedef struct Factors {
  SymInt items[MAX_FACTORS];
  uint32_t count;
  bool more; /* than there is room for */
} Factors;

static void add_factor(Factors *f, SymInt factor) {
  for (uint32_t i = 0; i < f->count; i++)
    if (f->items[i] == factor)
      return;
  if (f->count == MAX_FACTORS)
    f->more = true;
  else
    f->items[f->count++] = factor;
}

/* The factors of a size that may be 0: s0 and s1 of 196*s0*s1. */
static void add_size(Factors *f, const SymTable *t, SymInt size) {
  while (!sym_is_const(size) && sym_lower(t, size) < 1) {
    const SymExpr *e = sym_expr(t, size);
    if (e->kind == SYM_SUM && e->constant == 0 && e->count == 1) {
      size = e->terms[0];
      continue;
    }
    if (e->kind != SYM_PRODUCT) {
      add_factor(f, size);
      return;
    }
    for (uint32_t i = 1; i < e->count; i++)
      if (sym_lower(t, e->terms[i]) < 1)
        add_factor(f, e->terms[i]);
    size = e->terms[0];
  }
}

static void add_sizes(Factors *f, const Graph *g, ValueId v) {
  const Type *type = value_type(g, v);
  for (uint32_t i = 0; type->kind == TYPE_TENSOR && i < type->rank; i++)
    add_size(f, &g->syms, type->dims[i]);
}

/* False where it is too long a formula. */
static bool product_of(SymTable *t, const Factors *f, SymInt *out) {
  bool before = t->too_large;
  t->too_large = false;
  *out = sym_product(t, f->items, f->count);
  bool fits = !t->too_large;
  t->too_large = before;
  return fits;
}

bool xl_guard(Graph *g, NodeId n, SymInt *guard) {
  Factors all = {.count = 0};
  FOR_OPERANDS(g, n, v, if (v) add_sizes(&all, g, v);)
  for (uint32_t i = 0; i < node_cget(g, n)->result_count; i++)
    add_sizes(&all, g, node_result(g, n, i));
  if (!product_of(&g->syms, &all, guard))
    return false;
  for (uint32_t i = 0; i < node_cget(g, n)->result_count; i++) {
    Factors own = {.count = 0};
    add_sizes(&own, g, node_result(g, n, i));
    if (own.count < all.count) /* those are among these */
      return false;
  }
  return !all.more;
}
