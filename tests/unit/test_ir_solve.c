/* What constraints leave of the ranges of symbols. */
#include "ir_graph.h"

#include "ir/solve.h"

/* A graph with symbols n in 1..64 and m in 0..20. */
typedef struct Solved {
  Sample sample;
  Arena arena;
  SymInt n, m;
  Solution s;
} Solved;

static void solved_init(Solved *t) {
  sample_init(&t->sample);
  t->arena = (Arena){0};
  t->n = sym_symbol(&t->sample.g->syms, SV("n"), 1, 64, false);
  t->m = sym_symbol(&t->sample.g->syms, SV("m"), 0, 20, false);
}

static void solved_release(Solved *t) {
  arena_release(&t->arena);
  sample_release(&t->sample);
}

static void assume(Solved *t, ConstraintKind kind, SymInt lhs, SymInt rhs) {
  Context *ctx = &t->sample.ctx;
  char name[] = "node0";
  name[4] = (char)('0' + t->sample.g->constraint_count);
  LocId loc = graph_add_loc(t->sample.g, (Loc){.name = intern_add(&ctx->names, sv_from(name))});
  graph_add_constraint(t->sample.g, (Constraint){kind, lhs, rhs, loc});
}

static void expect(const Solved *t, uint32_t symbol, int64_t lo, int64_t hi, int64_t step,
                   bool regular) {
  const SymSizes *z = &t->s.sizes[symbol];
  assert_int_equal(z->lo, lo);
  assert_int_equal(z->hi, hi);
  assert_int_equal(z->step, step);
  assert_int_equal(z->regular, regular);
}

static void solve(Solved *t) {
  assert_int_equal(graph_solve(t->sample.g, &t->arena, &t->s), STATUS_OK);
}

/* What solve_note says. */
static void expect_text(Solved *t, const char *wanted) {
  Diag *d = diag_begin(&t->sample.capture.sink, DIAG_DIM_NARROWED, DIAG_NOWHERE);
  solve_note(t->sample.g, &t->s, &t->arena, d);
  (void)diag_end(d);
  if (!strstr(sample_messages(&t->sample), wanted))
    fail_msg("'%s' is not in:\n%s", wanted, sample_messages(&t->sample));
}

static void test_ranges(void **state) {
  Solved t;
  solved_init(&t);
  SymTable *syms = &t.sample.g->syms;
  assume(&t, CONSTRAINT_GE, t.n, 3);
  assume(&t, CONSTRAINT_GE, 40, sym_add(syms, t.n, 2));
  solve(&t);
  expect(&t, 0, 3, 38, 1, true);
  expect(&t, 1, 0, 20, 1, true);
  assert_true(t.s.settled[0] && t.s.settled[1]);
  expect_text(&t, "n in 3..38; lower bound by 'node0'; upper bound by 'node1'");
  solved_release(&t);
}

static void test_divisible(void **state) {
  Solved t;
  solved_init(&t);
  SymTable *syms = &t.sample.g->syms;
  SymInt half = sym_floordiv(syms, t.n, 2), quarter = sym_floordiv(syms, t.n, 4);
  assume(&t, CONSTRAINT_EQ, t.n, sym_mul(syms, half, 2));
  assume(&t, CONSTRAINT_EQ, half, sym_mul(syms, quarter, 2));
  assume(&t, CONSTRAINT_DIVISIBLE, sym_add(syms, t.m, 1), 3);
  solve(&t);
  expect(&t, 0, 4, 64, 4, true);
  expect(&t, 1, 2, 20, 3, true);
  expect_text(&t, "m in 2..20, m % 3 == 2");
  solved_release(&t);
}

/* ceil(n / 4) even, in 1..64: 5..8, 13..16, … */
static void test_gaps(void **state) {
  Solved t;
  solved_init(&t);
  SymTable *syms = &t.sample.g->syms;
  assume(&t, CONSTRAINT_EQ, sym_mul(syms, sym_ceildiv(syms, t.n, 8), 2), sym_ceildiv(syms, t.n, 4));
  solve(&t);
  expect(&t, 0, 5, 64, 1, false);
  expect_text(&t, "n in 5..8, 13..16, 21..24,");
  solved_release(&t);
}

static void test_two_symbols(void **state) {
  Solved t;
  solved_init(&t);
  SymTable *syms = &t.sample.g->syms;
  assume(&t, CONSTRAINT_EQ, t.n, sym_add(syms, sym_mul(syms, t.m, 2), 10)); /* n = 2m + 10 */
  assume(&t, CONSTRAINT_GE, sym_sub(syms, 30, t.m), t.n);                   /* n + m <= 30 */
  solve(&t);
  expect(&t, 0, 10, 30, 1, true);
  expect(&t, 1, 0, 10, 1, true);
  assert_false(t.s.settled[0]);
  expect_text(&t, "equality constraint: n == m*2 + 10; by 'node0'");
  solved_release(&t);
}

static void test_contradictions(void **state) {
  Solved t;
  solved_init(&t);
  assume(&t, CONSTRAINT_GE, t.n, 30);
  assume(&t, CONSTRAINT_EQ, t.n, t.m);
  assert_int_equal(graph_solve(t.sample.g, &t.arena, &t.s), STATUS_INVALID);
  const char *said = sample_messages(&t.sample);
  assert_non_null(strstr(said, "node1"));
  assert_non_null(strstr(said, "n is at least 30 by node 'node0'"));
  assert_non_null(strstr(said, "--dim m=0..20 was given"));
  solved_release(&t);
}

/* Nobody tries 2^40 sizes, and a size that only a run knows is not narrowed. */
static void test_limits(void **state) {
  Solved t;
  solved_init(&t);
  SymTable *syms = &t.sample.g->syms;
  SymInt wide = sym_symbol(syms, SV("wide"), 1, (int64_t)1 << 40, false);
  SymInt found = sym_symbol(syms, SV(""), 0, 10, true);
  assume(&t, CONSTRAINT_GE, wide, 5);
  assume(&t, CONSTRAINT_EQ, sym_mul(syms, sym_floordiv(syms, wide, 3), 3), wide);
  assume(&t, CONSTRAINT_GE, found, 3);
  solve(&t);
  expect(&t, 2, 5, ((int64_t)1 << 40) - 1, 1, true); /* the last multiple of 3 */
  expect(&t, 3, 0, 10, 1, true);
  assert_false(t.s.settled[1] || t.s.settled[2]);
  solved_release(&t);
}

/* Of what only a run knows, sizes are told, with a value that has them; counters of loops are not.
 */
static void test_found_sizes(void **state) {
  Solved t;
  solved_init(&t);
  Graph *g = t.sample.g;
  SymInt counter = sym_symbol(&g->syms, SV(""), 0, 9, true);
  SymInt found = sym_symbol(&g->syms, SV(""), 0, 10, true);
  TypeId type = graph_tensor_type(g, DTYPE_F32, 1, &found, ORDER_CONTIGUOUS);
  (void)graph_add_input(g, type, intern_add(&t.sample.ctx.names, SV("rows")));
  solve(&t);
  expect_text(&t, "s3 in 0..10, a size of 'rows', known only while running");
  assert_null(strstr(sample_messages(&t.sample), "s2 in"));
  assert_false(sym_is_const(counter));
  solved_release(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ranges),         cmocka_unit_test(test_divisible),
      cmocka_unit_test(test_gaps),           cmocka_unit_test(test_two_symbols),
      cmocka_unit_test(test_contradictions), cmocka_unit_test(test_limits),
      cmocka_unit_test(test_found_sizes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
