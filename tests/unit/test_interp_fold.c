/* What folding knows of elements that are symbolic: what is computed of two sizes that may be
 * negative, zero or positive is the right number for each value of the symbols. */
#include "ir_graph.h"

#include "interp/fold.h"

enum { VALUES = 6, OFFSET = 3 }; /* both symbols are 0 to 5, the numbers -3 to 2 */

typedef struct Known {
  Sample s;
  Fold fold;
  Builder b;
  ValueId x, y;
} Known;

static ValueId number(Known *k, StrView name) {
  SymInt symbol = sym_symbol(&k->s.g->syms, name, 0, VALUES - 1, false);
  return build(&k->b, OP_SCALAR_TENSOR, A_INT(sym_sub(&k->s.g->syms, symbol, OFFSET)),
               A_DTYPE(DTYPE_I64));
}

static void known_init(Known *k) {
  sample_init(&k->s);
  fold_init(&k->fold, 0);
  k->b = builder_make(k->s.g, 0, 0);
  k->b.fold = fold_node, k->b.fold_data = &k->fold;
  k->x = number(k, SV("n"));
  k->y = number(k, SV("m"));
}

static void known_release(Known *k) {
  fold_release(&k->fold);
  sample_release(&k->s);
}

typedef int64_t Reference(int64_t x, int64_t y);

static void check(Known *k, ValueId v, Reference *reference) {
  const SymTable *t = &k->s.g->syms;
  uint32_t count;
  int64_t is;
  assert_int_equal(k->b.status, STATUS_OK);
  const SymInt *known = fold_contents(&k->fold, k->s.g, v, &k->fold.scratch, &count);
  assert_non_null(known);
  assert_int_equal(count, 1);
  for (int64_t n = 0; n < VALUES; n++)
    for (int64_t m = 0; m < VALUES; m++) {
      assert_true(sym_eval(t, known[0], (int64_t[]){n, m}, &is));
      assert_int_equal(is, reference(n - OFFSET, m - OFFSET));
      assert_in_range(is - sym_lower(t, known[0]), 0,
                      (uint64_t)(sym_upper(t, known[0]) - sym_lower(t, known[0])));
    }
}

static int64_t is_equal(int64_t x, int64_t y) { return x == y; }
static int64_t is_other(int64_t x, int64_t y) { return x != y; }
static int64_t is_less(int64_t x, int64_t y) { return x < y; }
static int64_t is_greater(int64_t x, int64_t y) { return x > y; }
static int64_t at_most(int64_t x, int64_t y) { return x <= y; }
static int64_t at_least(int64_t x, int64_t y) { return x >= y; }
static int64_t both(int64_t x, int64_t y) { return x && y; }
static int64_t either(int64_t x, int64_t y) { return x || y; }
static int64_t just_one(int64_t x, int64_t y) { return !x != !y; }
static int64_t magnitude(int64_t x, int64_t y) { return x < 0 ? -x : x; }
static int64_t sign(int64_t x, int64_t y) { return (x > 0) - (x < 0); }
static int64_t is_zero(int64_t x, int64_t y) { return x == 0; }
static int64_t is_true(int64_t x, int64_t y) { return x != 0; }
static int64_t remainder_by_2(int64_t x, int64_t y) { return x % 2; }
static int64_t choice(int64_t x, int64_t y) { return x < y ? x : 7; }

static void test_two_numbers(void **state) {
  static const struct {
    OpId op;
    Reference *reference;
  } rows[] = {{OP_EQ_TENSOR, is_equal},   {OP_NE_TENSOR, is_other}, {OP_LT_TENSOR, is_less},
              {OP_GT_TENSOR, is_greater}, {OP_LE_TENSOR, at_most},  {OP_GE_TENSOR, at_least},
              {OP_LOGICAL_AND, both},     {OP_LOGICAL_OR, either},  {OP_LOGICAL_XOR, just_one}};
  Known k;
  known_init(&k);
  for (size_t i = 0; i < COUNT_OF(rows); i++)
    check(&k, build_binary(&k.b, rows[i].op, k.x, k.y), rows[i].reference);
  known_release(&k);
}

static void test_one_number(void **state) {
  Known k;
  known_init(&k);
  check(&k, build_unary(&k.b, OP_ABS, k.x), magnitude);
  check(&k, build_unary(&k.b, OP_SIGN, k.x), sign);
  check(&k, build_unary(&k.b, OP_LOGICAL_NOT, k.x), is_zero);
  ValueId truth = build_cast(&k.b, k.x, DTYPE_BOOL);
  check(&k, truth, is_true);
  check(&k, build_cast(&k.b, truth, DTYPE_I64), is_true);
  check(&k, build_unary(&k.b, OP_LOGICAL_NOT, truth), is_zero);
  known_release(&k);
}

static void test_choices(void **state) {
  Known k;
  known_init(&k);
  ValueId seven = build_scalar_int(&k.b, DTYPE_I64, 7), two = build_scalar_int(&k.b, DTYPE_I64, 2);
  ValueId less = build_binary(&k.b, OP_LT_TENSOR, k.x, k.y);
  check(&k, build(&k.b, OP_WHERE_SELF, A_VAL(less), A_VAL(k.x), A_VAL(seven)), choice);
  check(&k, build_binary(&k.b, OP_FMOD_TENSOR, k.x, two), remainder_by_2);
  known_release(&k);
}

/* What all values of the symbols decide is a constant. A remainder of floats may be -0, which no
 * expression gives. */
static void test_decided(void **state) {
  Known k;
  known_init(&k);
  ValueId ten = build_scalar_int(&k.b, DTYPE_I64, 10), two = build_scalar(&k.b, DTYPE_F32, 2);
  ValueId above = build_binary(&k.b, OP_ADD_TENSOR, k.x, ten);
  assert_true(value_is_const(k.s.g, build_unary(&k.b, OP_SIGN, above)));
  assert_true(value_is_const(k.s.g, build_binary(&k.b, OP_LT_TENSOR, k.x, ten)));
  ValueId rest = build_binary(&k.b, OP_FMOD_TENSOR, build_cast(&k.b, k.x, DTYPE_F32), two);
  uint32_t count;
  assert_int_equal(k.b.status, STATUS_OK);
  assert_null(fold_contents(&k.fold, k.s.g, rest, &k.fold.scratch, &count));
  known_release(&k);
}

/* Joined along a dim, elements are where they are in memory. */
static void test_joined(void **state) {
  Known k;
  known_init(&k);
  SymInt row[] = {1, 2}, column[] = {2, 1};
  ValueId x = build_view(&k.b, k.x, (SymInt[]){1}, 1), y = build_view(&k.b, k.y, (SymInt[]){1}, 1);
  ValueId both = build(&k.b, OP_CAT, A_VALS(((ValueId[]){x, y}), 2), A_INT(0));
  ValueId rows[] = {build_view(&k.b, both, row, 2), build_view(&k.b, both, row, 2)};
  ValueId columns[] = {build_view(&k.b, both, column, 2), build_view(&k.b, both, column, 2)};
  ValueId joined[] = {both, build(&k.b, OP_CAT, A_VALS(rows, 2), A_INT(0)),
                      build(&k.b, OP_CAT, A_VALS(columns, 2), A_INT(-1))};
  static const bool second[3][4] = {{0, 1}, {0, 1, 0, 1}, {0, 0, 1, 1}}; /* y, not x */
  assert_int_equal(k.b.status, STATUS_OK);
  for (uint32_t i = 0; i < COUNT_OF(joined); i++) {
    uint32_t count;
    const SymInt *known = fold_contents(&k.fold, k.s.g, joined[i], &k.fold.scratch, &count);
    assert_non_null(known);
    assert_int_equal(count, i ? 4 : 2);
    for (uint32_t e = 0; e < count; e++) {
      int64_t is;
      assert_true(sym_eval(&k.s.g->syms, known[e], (int64_t[]){1, 5}, &is));
      assert_int_equal(is, (second[i][e] ? 5 : 1) - OFFSET);
    }
  }
  known_release(&k);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_two_numbers), cmocka_unit_test(test_one_number),
      cmocka_unit_test(test_choices),     cmocka_unit_test(test_decided),
      cmocka_unit_test(test_joined),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
