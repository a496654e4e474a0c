/* For tests that run a graph on random inputs, before and after it was changed, and compare. */
#ifndef ETC_TESTS_GRAPH_VALUES_H
#define ETC_TESTS_GRAPH_VALUES_H

#include "unit.h"

#include <math.h>

#include "interp/interp.h"

enum { SYMBOLS_MAX = 8 };

static inline uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

/* Run 0 takes the smallest sizes, run 1 the largest, the others something between. What equals a
 * symbol is its size. */
static inline void choose_sizes(const Graph *g, uint32_t run, uint64_t *state, int64_t *sizes) {
  assert_true(g->syms.symbol_count <= SYMBOLS_MAX);
  for (uint32_t i = 0; i < g->syms.symbol_count; i++) {
    SymInt symbol = sym_symbol_by_index(&g->syms, i);
    int64_t lo = sym_lower(&g->syms, symbol), hi = sym_upper(&g->syms, symbol);
    bool drawn = run > 1 && !sym_expr(&g->syms, symbol)->unbacked; /* a pass may add others */
    sizes[i] = drawn ? lo + (int64_t)next_random(state) % (hi - lo + 1) : run == 1 ? hi : lo;
  }
  for (uint32_t i = 0; i < g->constraint_count; i++) {
    const Constraint *c = &g->constraints[i];
    if (c->kind != CONSTRAINT_EQ || sym_is_const(c->rhs) ||
        sym_expr(&g->syms, c->rhs)->kind != SYM_SYMBOL)
      continue;
    assert_true(sym_eval(&g->syms, c->lhs, sizes, &sizes[sym_expr(&g->syms, c->rhs)->index]));
  }
}

static inline bool is_unsigned(DType dtype) {
  return dtype == DTYPE_U8 || dtype_in(dtype, DT(U16) | DT(U32) | DT(U64));
}

/* Floats in [-5, 5) and now and then a zero of either sign, 20 or -20; integers in [-4, 4]. */
static inline void fill(Tensor *t, uint64_t *state) {
  static const double rare[] = {0.0, -0.0, 20.0, -20.0};
  for (int64_t i = 0, n = tensor_numel(t); i < n; i++) {
    uint64_t r = next_random(state);
    if (t->dtype == DTYPE_BOOL)
      tensor_store_int(t, i, r & 1);
    else if (dtype_is_int(t->dtype))
      tensor_store_int(t, i, (int64_t)(r % 9) - (is_unsigned(t->dtype) ? 0 : 4));
    else
      tensor_store(t, i, r % 16 == 0 ? rare[r / 16 % 4] : (double)(r % 10007) / 1000.7 - 5);
  }
}

static inline void make_inputs(const Graph *g, uint32_t run, Arena *arena, Tensor *inputs) {
  uint64_t state = 77 + run;
  int64_t sizes[SYMBOLS_MAX];
  choose_sizes(g, run, &state, sizes);
  for (uint32_t i = 0; i < g->input_count; i++) {
    const Type *type = value_type(g, g->inputs[i]);
    Tensor t = {.dtype = (DType)type->dtype, .rank = type->rank};
    for (uint32_t k = 0; k < t.rank; k++)
      assert_true(sym_eval(&g->syms, type->dims[k], sizes, &t.dims[k]));
    t.capacity = tensor_bytes(&t);
    t.data = arena_alloc(arena, t.capacity);
    fill(&t, &state);
    inputs[i] = t;
  }
}

/* scale: the largest element of the tensor, or 1. Sums of large products may cancel to a small one,
 * which then differs by what those were rounded by. */
static inline bool near(DType dtype, double a, double b, double scale) {
  double relative = dtype == DTYPE_F16 ? 4e-3 : dtype == DTYPE_BF16 ? 3e-2 : 2e-5;
  return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= relative * (scale / 10 + fabs(b));
}

static inline double scale_of(const Tensor *t) {
  double scale = 1;
  for (int64_t k = 0; k < tensor_numel(t); k++)
    if (isfinite(tensor_load(t, k)))
      scale = fmax(scale, fabs(tensor_load(t, k)));
  return scale;
}

#endif
