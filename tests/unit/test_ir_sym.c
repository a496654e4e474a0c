/* Symbolic integers against brute force: every expression of two operations over a few leaves, and
 * many of three, is compared with plain arithmetic at every value of its symbols. */
#include <math.h>

#include "ir_graph.h"

#include <stdio.h>
#include <stdlib.h>

/* Symbols s0 in [0, 4] and s1 in [1, 3]: 15 points. */
enum { POINTS = 15 };
static void symbols_make(SymTable *t) {
  *t = (SymTable){0};
  sym_symbol(t, SV("batch"), 0, 4, false);
  sym_symbol(t, SV("rows"), 1, 3, false);
}
static void point(int i, int64_t values[2]) {
  values[0] = i % 5;
  values[1] = 1 + i / 5;
}

/* An expression and what it must be; defined is false where it divides by zero. */
typedef struct Checked {
  SymInt v;
  int64_t value[POINTS];
  bool defined[POINTS];
} Checked;

typedef enum Operation { ADD, SUB, MUL, FLOORDIV, CEILDIV, MOD, MIN, MAX, OPERATIONS } Operation;

static SymInt apply(SymTable *t, Operation op, SymInt a, SymInt b) {
  static SymInt (*const make[])(SymTable *, SymInt, SymInt) = {
      sym_add, sym_sub, sym_mul, sym_floordiv, sym_ceildiv, sym_mod, sym_min, sym_max};
  return make[op](t, a, b);
}

static int64_t floor_of(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0) && ((a < 0) != (b < 0)) ? q - 1 : q;
}

static int64_t arithmetic(Operation op, int64_t a, int64_t b) {
  switch (op) {
  case ADD:
    return a + b;
  case SUB:
    return a - b;
  case MUL:
    return a * b;
  case FLOORDIV:
    return floor_of(a, b);
  case CEILDIV:
    return -floor_of(-a, b);
  case MOD:
    return a - floor_of(a, b) * b;
  case MIN:
    return a < b ? a : b;
  default:
    return a > b ? a : b;
  }
}

static Checked combine(SymTable *t, Operation op, const Checked *a, const Checked *b) {
  Checked c = {.v = apply(t, op, a->v, b->v)};
  bool divides = op == FLOORDIV || op == CEILDIV || op == MOD;
  for (int i = 0; i < POINTS; i++) {
    c.defined[i] = a->defined[i] && b->defined[i] && !(divides && b->value[i] == 0);
    if (c.defined[i])
      c.value[i] = arithmetic(op, a->value[i], b->value[i]);
  }
  return c;
}

static const char *text_of(const SymTable *t, SymInt v, StrBuf *buf) {
  strbuf_clear(buf);
  sym_print(t, v, buf);
  return strbuf_cstr(buf);
}

static void check_values(const SymTable *t, const Checked *c, StrBuf *buf) {
  for (int i = 0; i < POINTS; i++) {
    int64_t values[2], got;
    if (!c->defined[i])
      continue;
    point(i, values);
    if (!sym_eval(t, c->v, values, &got) || got != c->value[i])
      fail_msg("%s at (%lld, %lld) is not %lld", text_of(t, c->v, buf), (long long)values[0],
               (long long)values[1], (long long)c->value[i]);
    if (sym_lower(t, c->v) > got || sym_upper(t, c->v) < got)
      fail_msg("%s: %lld is outside [%lld, %lld]", text_of(t, c->v, buf), (long long)got,
               (long long)sym_lower(t, c->v), (long long)sym_upper(t, c->v));
  }
}

/* Text reads back to the same expression here, and to the same text in a table of another history.
 */
static void check_text(SymTable *t, SymTable *other, const Checked *c, StrBuf *buf, StrBuf *again) {
  const char *text = text_of(t, c->v, buf), *at = text;
  SymInt back;
  if (!sym_parse(t, &at, text + strlen(text), &back) || *at)
    fail_msg("'%s' does not parse", text);
  if (back != c->v)
    fail_msg("'%s' reads back as '%s'", text, text_of(t, back, again));
  at = text;
  assert_true(sym_parse(other, &at, text + strlen(text), &back));
  if (strcmp(text_of(other, back, again), text) != 0)
    fail_msg("'%s' is printed as '%s' elsewhere", text, strbuf_cstr(again));
}

static void check_comparison(SymTable *t, const Checked *a, const Checked *b, StrBuf *buf) {
  int eq = sym_known_eq(t, a->v, b->v), lt = sym_known_lt(t, a->v, b->v),
      le = sym_known_le(t, a->v, b->v);
  for (int i = 0; i < POINTS; i++) {
    if (!a->defined[i] || !b->defined[i])
      continue;
    int64_t x = a->value[i], y = b->value[i];
    if ((eq >= 0 && eq != (x == y)) || (lt >= 0 && lt != (x < y)) || (le >= 0 && le != (x <= y)))
      fail_msg("%s: %lld and %lld compare as %d %d %d", text_of(t, a->v, buf), (long long)x,
               (long long)y, eq, lt, le);
  }
}

typedef struct Tables {
  SymTable table, other;
  StrBuf buf, again;
} Tables;

static void tables_init(Tables *s) {
  symbols_make(&s->table);
  symbols_make(&s->other);
  /* Expressions made in another order get other handles. */
  SymInt a = sym_symbol_by_index(&s->other, 0), b = sym_symbol_by_index(&s->other, 1);
  sym_max(&s->other, sym_mod(&s->other, b, 2), sym_mul(&s->other, b, a));
  sym_floordiv(&s->other, sym_add(&s->other, a, b), 3);
  s->buf = (StrBuf){0};
  s->again = (StrBuf){0};
}
static void tables_release(Tables *s) {
  sym_release(&s->table);
  sym_release(&s->other);
  strbuf_release(&s->buf);
  strbuf_release(&s->again);
}
static void check_all(Tables *s, const Checked *c) {
  check_values(&s->table, c, &s->buf);
  check_text(&s->table, &s->other, c, &s->buf, &s->again);
}

enum { LEAVES = 7, PAIRS = LEAVES * LEAVES * OPERATIONS };

static void make_leaves(Tables *s, Checked *leaves) {
  static const int64_t constants[LEAVES - 2] = {-3, -1, 0, 1, 2};
  for (int k = 0; k < LEAVES; k++) {
    leaves[k].v = k < 2 ? sym_symbol_by_index(&s->table, (uint32_t)k) : constants[k - 2];
    for (int i = 0; i < POINTS; i++) {
      int64_t values[2];
      point(i, values);
      leaves[k].value[i] = k < 2 ? values[k] : constants[k - 2];
      leaves[k].defined[i] = true;
    }
  }
}

static Checked *make_pairs(Tables *s, const Checked *leaves) {
  Checked *pairs = malloc(PAIRS * sizeof *pairs);
  assert_non_null(pairs);
  int count = 0;
  for (int a = 0; a < LEAVES; a++)
    for (int b = 0; b < LEAVES; b++)
      for (Operation op = 0; op < OPERATIONS; op++)
        pairs[count++] = combine(&s->table, op, &leaves[a], &leaves[b]);
  return pairs;
}

static void test_two_operations(void **state) {
  Tables s;
  Checked leaves[LEAVES];
  tables_init(&s);
  make_leaves(&s, leaves);
  Checked *pairs = make_pairs(&s, leaves);
  for (int i = 0; i < PAIRS; i++) {
    check_all(&s, &pairs[i]);
    for (int k = 0; k < LEAVES; k++) {
      check_comparison(&s.table, &pairs[i], &leaves[k], &s.buf);
      for (Operation op = 0; op < OPERATIONS; op++) {
        Checked left = combine(&s.table, op, &pairs[i], &leaves[k]),
                right = combine(&s.table, op, &leaves[k], &pairs[i]);
        check_all(&s, &left);
        check_all(&s, &right);
      }
    }
  }
  free(pairs);
  tables_release(&s);
}

static void test_three_operations(void **state) {
  Tables s;
  Checked leaves[LEAVES];
  tables_init(&s);
  make_leaves(&s, leaves);
  Checked *pairs = make_pairs(&s, leaves);
  uint32_t seed = 12345;
  for (int i = 0; i < 20000; i++) {
    const Checked *two[2];
    for (int k = 0; k < 2; k++) {
      seed = seed * 1664525u + 1013904223u;
      two[k] = &pairs[(seed >> 8) % PAIRS];
    }
    check_comparison(&s.table, two[0], two[1], &s.buf);
    Checked c = combine(&s.table, (Operation)(i % OPERATIONS), two[0], two[1]);
    check_all(&s, &c);
  }
  free(pairs);
  tables_release(&s);
}

/* Trees of up to 10 operations, grown one by one. */
static void test_many_operations(void **state) {
  Tables s;
  Checked leaves[LEAVES];
  tables_init(&s);
  make_leaves(&s, leaves);
  uint32_t seed = 99;
  for (int i = 0; i < 3000; i++) {
    Checked grown = leaves[i % LEAVES];
    for (int k = 0; k < 10; k++) {
      seed = seed * 1664525u + 1013904223u;
      Operation op = (Operation)((seed >> 8) % OPERATIONS);
      const Checked *leaf = &leaves[(seed >> 16) % LEAVES];
      grown =
          seed >> 31 ? combine(&s.table, op, &grown, leaf) : combine(&s.table, op, leaf, &grown);
      check_all(&s, &grown);
    }
  }
  tables_release(&s);
}

/* Equal by + - * is equal as a number. */
static void test_canonical(void **state) {
  SymTable t;
  symbols_make(&t);
  SymInt a = sym_symbol_by_index(&t, 0), b = sym_symbol_by_index(&t, 1);
  SymInt sum = sym_add(&t, a, b), difference = sym_sub(&t, a, b);
  assert_true(sym_mul(&t, sum, difference) == sym_sub(&t, sym_mul(&t, a, a), sym_mul(&t, b, b)));
  assert_true(sym_sub(&t, sum, b) == a);
  assert_true(sym_sub(&t, sum, sum) == 0);
  assert_true(sym_floordiv(&t, sym_mul(&t, sym_mul(&t, a, b), 6), 6) == sym_mul(&t, a, b));
  assert_true(sym_floordiv(&t, sym_mul(&t, a, b), b) == a); /* b >= 1 */
  assert_true(sym_mod(&t, sym_add(&t, sym_mul(&t, a, 8), 3), 8) == 3);
  assert_true(sym_min(&t, a, 9) == a);
  assert_true(sym_max(&t, b, 0) == b);
  sym_release(&t);
}

/* Pools of ceil_mode on pools of it: no size may be thought to be 0. */
static void test_ceil_of_ceil(void **state) {
  SymTable t;
  t = (SymTable){0};
  SymInt size = sym_symbol(&t, SV("height"), 33, 71, false), half = sym_ceildiv(&t, size, 2),
         quarter = sym_ceildiv(&t, half, 2);
  assert_int_equal(sym_lower(&t, quarter), 9);
  assert_int_equal(sym_upper(&t, quarter), 18);
  assert_true(quarter == sym_ceildiv(&t, size, 4));
  sym_release(&t);
}

/* a % b as the importer spells it. */
static SymInt rest_of(SymTable *t, SymInt a, SymInt b) {
  return sym_sub(t, a, sym_mul(t, sym_floordiv(t, a, b), b));
}

/* Swin and other nets that fill images up: size + (4 - size % 4) % 4, twice, and what rolls them.
 */
static void test_filled_up(void **state) {
  SymTable t;
  t = (SymTable){0};
  SymInt size = sym_symbol(&t, SV("height"), 56, 96, false);
  SymInt more = rest_of(&t, sym_sub(&t, 4, rest_of(&t, size, 4)), 4);
  SymInt whole = sym_add(&t, size, more);
  assert_true(whole == sym_mul(&t, sym_ceildiv(&t, size, 4), 4));
  assert_int_equal(sym_lower(&t, whole), 56);
  assert_int_equal(sym_upper(&t, whole), 96);
  SymInt rows = sym_floordiv(&t, whole, 4);
  SymInt filled = sym_add(&t, rows, rest_of(&t, sym_sub(&t, 0, rows), 4));
  assert_true(filled == sym_mul(&t, sym_ceildiv(&t, size, 16), 4));
  assert_int_equal(sym_lower(&t, filled), 16);
  assert_int_equal(sym_upper(&t, filled), 24);
  SymInt frames = sym_sub(&t, sym_floordiv(&t, size, 8), 1); /* of a window of 16 by steps of 8 */
  SymInt gap = rest_of(&t, sym_sub(&t, 20, rest_of(&t, frames, 20)), 20);
  assert_int_equal(sym_lower(&t, gap), 9);
  assert_int_equal(sym_upper(&t, gap), 14);
  assert_int_equal(sym_lower(&t, sym_add(&t, frames, gap)), 20);
  assert_true(sym_mod(&t, 2, filled) == 2);
  assert_true(sym_floordiv(&t, 2, filled) == 0);
  assert_true(sym_mod(&t, -2, filled) == sym_sub(&t, filled, 2));
  assert_true(sym_floordiv(&t, -16, filled) == -1);
  assert_false(sym_is_const(sym_floordiv(&t, -17, filled)));
  assert_false(sym_is_const(sym_mod(&t, 16, filled)));
  sym_release(&t);
}

static void test_constants_saturate(void **state) {
  SymTable t;
  symbols_make(&t);
  assert_true(sym_add(&t, INT64_MAX, 1) == INT64_MAX);
  assert_true(sym_mul(&t, INT64_MIN, 2) == INT64_MIN);
  assert_true(sym_mul(&t, INT64_MIN, -1) == INT64_MAX);
  assert_true(sym_floordiv(&t, INT64_MIN, -1) == INT64_MAX);
  assert_true(sym_floordiv(&t, 7, 0) == 0);
  assert_true(sym_mod(&t, 5, INT64_MIN) == INT64_MIN + 5);
  assert_true(sym_mod(&t, -5, INT64_MIN) == -5);
  assert_true(sym_mod(&t, INT64_MIN, 3) == 1);
  assert_true(sym_mod(&t, INT64_MIN, -1) == 0);
  assert_true(sym_mod(&t, 7, 0) == 0);
  SymInt extreme = sym_add(&t, sym_symbol_by_index(&t, 0), INT64_MIN + 1);
  assert_true(sym_mod(&t, extreme, 8) != extreme);
  sym_release(&t);
}

/* Divisions by what is 0 for these symbols have no value, nor have results beyond 64 bits. */
static void test_eval_refuses(void **state) {
  SymTable t;
  t = (SymTable){0};
  SymInt a = sym_symbol(&t, SV("a"), 0, INT64_MAX - 1, false),
         b = sym_symbol(&t, SV("b"), 0, 8, false);
  SymInt quotient = sym_floordiv(&t, a, b), rest = sym_mod(&t, a, b);
  int64_t out;
  assert_false(sym_eval(&t, quotient, (int64_t[]){7, 0}, &out));
  assert_false(sym_eval(&t, rest, (int64_t[]){7, 0}, &out));
  assert_true(sym_eval(&t, quotient, (int64_t[]){7, 2}, &out) && out == 3);
  assert_true(sym_eval(&t, rest, (int64_t[]){7, 2}, &out) && out == 1);
  assert_true(sym_eval(&t, sym_min(&t, a, b), (int64_t[]){7, 0}, &out) && out == 0);
  assert_true(sym_eval(&t, sym_max(&t, a, b), (int64_t[]){7, 0}, &out) && out == 7);
  assert_false(sym_eval(&t, sym_add(&t, quotient, 1), (int64_t[]){7, 0}, &out));
  assert_false(sym_eval(&t, sym_mul(&t, a, 2), (int64_t[]){INT64_MAX - 1, 1}, &out));
  sym_release(&t);
}

/* A number that looks like a handle is never taken for another one. */
static void test_numbers_are_exact_or_refused(void **state) {
  SymTable t;
  symbols_make(&t);
  SymInt v;
  assert_false(sym_from_number(SYM_BAND, &v));
  assert_false(sym_from_number(SYM_BAND + ((int64_t)1 << 32) - 1, &v));
  assert_true(sym_from_number(SYM_BAND + ((int64_t)1 << 32), &v) &&
              v == SYM_BAND + ((int64_t)1 << 32));
  assert_true(sym_from_number(INT64_MIN, &v) && v == INT64_MIN);
  assert_true(sym_from_float(-5, &v) && v == -5);
  const double bad[] = {0.5, 0x1p63, -0x1.0p64, INFINITY, NAN, (double)SYM_BAND};
  for (size_t i = 0; i < COUNT_OF(bad); i++)
    assert_false(sym_from_float(bad[i], &v));
  assert_false(t.saturated);
  assert_true(sym_is_const(sym_add(&t, SYM_BAND - 1, 6)) && t.saturated);
  t.saturated = false;
  assert_true(sym_add(&t, INT64_MAX, -1) == INT64_MAX - 1 && !t.saturated);
  assert_true(sym_known_lt(&t, INT64_MIN, INT64_MAX) == 1 && !t.saturated);
  (void)sym_mul(&t, sym_mul(&t, sym_symbol_by_index(&t, 0), (int64_t)1 << 40), (int64_t)1 << 40);
  assert_true(t.saturated);
  const char *text = "-9223370937343148027", *end = text + strlen(text);
  assert_false(sym_parse(&t, &text, end, &v));
  sym_release(&t);
}

static void test_bad_text(void **state) {
  static const char *const bad[] = {
      "",       "s2",        "s",          "s99999999999999999999", "s0 +",  "1 + ", "(s0",
      "min(s0", "min(s0, 1", "pow(s0, 2)", "9223372036854775808",   "- s0 *"};
  SymTable t;
  symbols_make(&t);
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    const char *at = bad[i];
    SymInt out;
    if (sym_parse(&t, &at, bad[i] + strlen(bad[i]), &out))
      fail_msg("'%s' was taken", bad[i]);
  }
  char deep[2000];
  memset(deep, '(', sizeof deep);
  const char *at = deep;
  SymInt out;
  assert_false(sym_parse(&t, &at, deep + sizeof deep, &out));
  sym_release(&t);
}

/* A chain whose expression, as a tree, doubles at each step: it is refused long before a walk of it
 * would not end, and what was made before still evaluates and prints. */
static void test_tree_size(void **state) {
  SymTable t;
  symbols_make(&t);
  SymInt e = sym_symbol_by_index(&t, 0), last = e;
  int steps = 0;
  for (; steps < 200 && !t.too_large; steps++) {
    last = e;
    e = sym_min(&t, sym_add(&t, sym_floordiv(&t, sym_mul(&t, e, e), 3), 1), 8);
  }
  assert_true(t.too_large && steps > 5 && steps < 20);
  assert_true(sym_expr(&t, last)->size <= SYM_MAX_SIZE);
  int64_t expected = 4, out;
  for (int i = 1; i < steps; i++)
    expected = expected * expected / 3 + 1 < 8 ? expected * expected / 3 + 1 : 8;
  assert_true(sym_eval(&t, last, (int64_t[]){4, 1}, &out));
  assert_int_equal(out, expected);
  StrBuf text = {0};
  sym_print(&t, last, &text);
  assert_true(text.size < 100000);
  strbuf_release(&text);
  sym_release(&t);
}

/* A chain that only gets deeper; what is within the limit reads back. */
static void test_tree_depth(void **state) {
  SymTable t;
  symbols_make(&t);
  SymInt a = sym_symbol_by_index(&t, 0), b = sym_symbol_by_index(&t, 1), e = a, last = a;
  int steps = 0;
  for (; steps < 200 && !t.too_large; steps++) {
    last = e;
    e = sym_mod(&t, sym_add(&t, e, a), b);
  }
  assert_true(t.too_large && steps > 30);
  assert_true(sym_expr(&t, last)->depth <= SYM_MAX_DEPTH);
  t.too_large = false;
  StrBuf text = {0};
  sym_print(&t, last, &text);
  const char *at = text.data;
  SymInt back;
  assert_true(sym_parse(&t, &at, text.data + text.size, &back));
  assert_true(back == last);
  strbuf_release(&text);
  sym_release(&t);
}

/* The difference that a comparison looks at is no result: it may pass the limit. */
static void test_comparison_of_large(void **state) {
  SymTable t;
  symbols_make(&t);
  SymInt a = sym_symbol_by_index(&t, 0), e[2] = {a, sym_symbol_by_index(&t, 1)};
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < 100; i++) {
      SymInt next = sym_min(&t, sym_add(&t, sym_floordiv(&t, sym_mul(&t, e[k], e[k]), 3), k), 8);
      if (t.too_large)
        break;
      e[k] = next;
    }
  t.too_large = false;
  assert_int_equal(sym_known_eq(&t, e[0], e[1]), -1);
  assert_int_equal(sym_known_lt(&t, e[0], e[1]), -1);
  assert_int_equal(sym_known_le(&t, e[0], e[1]), -1);
  assert_false(t.too_large);
  sym_release(&t);
}

/* The same chain as sizes of tensors: the node where it becomes too long is told. */
static void test_too_large_at_a_node(void **state) {
  Sample s;
  sample_init(&s);
  SymTable *t = &s.g->syms;
  SymInt e = sym_symbol(t, SV("batch"), 0, 100, false);
  Builder b = builder_make(s.g, 0, 0);
  int steps = 0;
  for (; steps < 200 && b.status == STATUS_OK; steps++) {
    build(&b, OP_ARANGE, A_INT(e), A_DTYPE(DTYPE_I64));
    e = sym_min(t, sym_add(t, sym_floordiv(t, sym_mul(t, e, e), 3), 1), 8);
  }
  assert_true(b.status == STATUS_UNSUPPORTED && steps < 20);
  assert_contains(sample_messages(&s), "error[E0409]");
  assert_int_equal(s.g->live_nodes, steps - 1);
  sample_release(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_two_operations),
      cmocka_unit_test(test_three_operations),
      cmocka_unit_test(test_many_operations),
      cmocka_unit_test(test_canonical),
      cmocka_unit_test(test_ceil_of_ceil),
      cmocka_unit_test(test_filled_up),
      cmocka_unit_test(test_constants_saturate),
      cmocka_unit_test(test_eval_refuses),
      cmocka_unit_test(test_numbers_are_exact_or_refused),
      cmocka_unit_test(test_bad_text),
      cmocka_unit_test(test_tree_size),
      cmocka_unit_test(test_tree_depth),
      cmocka_unit_test(test_comparison_of_large),
      cmocka_unit_test(test_too_large_at_a_node),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
