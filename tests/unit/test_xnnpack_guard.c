/* Delegates of tensors that may be empty: the size that tells. */
#include "ops_fixture.h"

#include "backends/xnnpack/lower.h"

enum { RANK = 4, PARTS = 60, SYMBOLS = 48 };

/* A sum of quotients of sums, between 0 and some number: some 3,000 parts. */
static SymInt long_size(SymTable *t, const SymInt *symbols, int64_t divisor) {
  SymInt size = 0;
  for (int64_t i = 0; i < PARTS; i++) {
    SymInt sum = 0;
    for (int64_t k = 0; k < SYMBOLS; k++)
      sum = sym_add(t, sum, sym_mul(t, symbols[k], 1 + (i + k) % 5));
    size = sym_add(t, size, sym_floordiv(t, sum, divisor + i));
  }
  return size;
}

static void test_guard(void **state) {
  OpsFixture f;
  SymInt symbols[SYMBOLS], guard, dims[RANK];
  (void)state;
  fixture_init(&f);
  SymTable *t = &f.g->syms;
  for (uint32_t i = 0; i < SYMBOLS; i++)
    symbols[i] = sym_symbol(t, (StrView){0}, 0, 1, false);
  for (uint32_t i = 0; i < RANK; i++)
    dims[i] = i ? 3 : symbols[0];
  ValueId short_one = build_unary(&f.b, OP_EXP, fixture_input(&f, DTYPE_F32, dims, RANK));
  assert_true(xl_guard(f.g, value_def(f.g, short_one), &guard));
  assert_int_equal(guard, symbols[0]);
  for (int64_t i = 0; i < RANK; i++)
    dims[i] = long_size(t, symbols, 11 + 10 * i);
  ValueId long_one = build_unary(&f.b, OP_EXP, fixture_input(&f, DTYPE_F32, dims, RANK));
  assert_int_equal(f.b.status, STATUS_OK);
  assert_false(xl_guard(f.g, value_def(f.g, long_one), &guard));
  assert_false(t->too_large); /* or the next node would be refused for it */
  fixture_release(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_guard)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
