/* Multiply-adds of products and convolutions, and shares of them. */
#include "ops_fixture.h"

#include "ops/work.h"

#define INTS(...)                                                                                  \
  A_INTS(((const SymInt[]){__VA_ARGS__}), sizeof((const SymInt[]){__VA_ARGS__}) / sizeof(SymInt))

static ValueId input(OpsFixture *f, const SymInt *dims, uint32_t rank) {
  return fixture_input(f, DTYPE_F32, dims, rank);
}

static void check_work(OpsFixture *f, ValueId v, uint64_t work) {
  assert_true(v != 0);
  assert_int_equal(node_work(f->g, value_def(f->g, v)), work);
}

static void test_products(void **state) {
  OpsFixture *f = *state;
  SymInt rows = sym_symbol(&f->g->syms, SV("rows"), 1, 8, false);
  ValueId x = input(f, DIMS(rows, 5)), w = input(f, DIMS(5, 3)), b = input(f, DIMS(3)),
          t = input(f, DIMS(3, 5)), batch = input(f, DIMS(4, 2, 5)),
          other = input(f, DIMS(4, 5, 3));
  check_work(f, build(&f->b, OP_MM, A_VAL(x), A_VAL(w)), 8 * 3 * 5);
  check_work(f, build(&f->b, OP_ADDMM, A_VAL(b), A_VAL(x), A_VAL(w)), 8 * 3 * 5);
  check_work(f, build(&f->b, OP_LINEAR, A_VAL(x), A_VAL(t), A_NONE), 8 * 3 * 5);
  check_work(f, build(&f->b, OP_BMM, A_VAL(batch), A_VAL(other)), 4 * 2 * 3 * 5);
  check_work(f, build(&f->b, OP_ADD_TENSOR, A_VAL(x), A_VAL(x)), 0);
}

static void test_convolutions(void **state) {
  OpsFixture *f = *state;
  ValueId x = input(f, DIMS(1, 4, 6, 6)), w = input(f, DIMS(8, 2, 3, 3)),
          t = input(f, DIMS(4, 8, 2, 2));
  check_work(f,
             build(&f->b, OP_CONVOLUTION, A_VAL(x), A_VAL(w), A_NONE, INTS(1, 1), INTS(0, 0),
                   INTS(1, 1), A_BOOL(false), INTS(0, 0), A_INT(2)),
             8 * 4 * 4 * 2 * 9);
  check_work(f,
             build(&f->b, OP_CONVOLUTION, A_VAL(x), A_VAL(t), A_NONE, INTS(2, 2), INTS(0, 0),
                   INTS(1, 1), A_BOOL(true), INTS(0, 0), A_INT(1)),
             4 * 6 * 6 * 8 * 4);
}

static void test_shares(void **state) {
  assert_int_equal(work_percent(0, 0), 0);
  assert_int_equal(work_percent(0, 7), 0);
  assert_int_equal(work_percent(7, 7), 100);
  assert_int_equal(work_percent(1, 1000000), 1);
  assert_int_equal(work_percent(999999, 1000000), 99);
  assert_int_equal(work_percent(1, 3), 33);
  assert_int_equal(work_percent(UINT64_MAX / 2, UINT64_MAX), 50);
  assert_true(work_times(UINT64_MAX / 2, 3) == UINT64_MAX);
  assert_true(work_plus(UINT64_MAX, 1) == UINT64_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {OPS_TEST(test_products), OPS_TEST(test_convolutions),
                                     OPS_TEST(test_shares)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
