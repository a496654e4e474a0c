/* Interned strings: dense ids in order of first use, stable text, many strings, awkward bytes. */
#include "unit.h"

#include <stdio.h>

#include "support/intern.h"

static void test_ids(void **state) {
  Intern table;
  intern_init(&table);
  assert_int_equal(intern_find(&table, SV("a")), 0);
  assert_int_equal(intern_add(&table, SV("a")), 1);
  assert_int_equal(intern_add(&table, SV("b")), 2);
  assert_int_equal(intern_add(&table, SV("a")), 1);
  assert_int_equal(intern_add(&table, SV("")), 3);
  assert_int_equal(intern_add(&table, (StrView){NULL, 0}), 3);
  assert_int_equal(intern_find(&table, SV("b")), 2);
  assert_int_equal(intern_find(&table, SV("c")), 0);
  assert_int_equal(intern_add(&table, SV("a\0b")), 4);
  assert_int_equal(intern_add(&table, SV("a\0c")), 5);
  assert_string_equal(intern_get(&table, 0).data, "");
  assert_int_equal(intern_get(&table, 0).size, 0);
  assert_true(sv_eq(intern_get(&table, 4), SV("a\0b")));
  assert_int_equal(intern_get(&table, 2).data[1], '\0');
  intern_release(&table);
}

static void test_many(void **state) {
  enum { COUNT = 300000 };
  Intern table;
  intern_init(&table);
  table.seed = 0; /* so many strings then hold about ten pairs of equal 32-bit hashes, the same in
                     each run */
  const char *first = intern_get(&table, intern_add(&table, SV("name0"))).data;
  char name[32];
  for (unsigned round = 0; round < 2; round++) {
    for (unsigned i = 0; i < COUNT; i++) {
      snprintf(name, sizeof name, "name%u", i);
      assert_int_equal(intern_add(&table, sv_from(name)), i + 1);
    }
  }
  for (unsigned i = 0; i < COUNT; i++) {
    snprintf(name, sizeof name, "name%u", i);
    assert_int_equal(intern_find(&table, sv_from(name)), i + 1);
    assert_string_equal(intern_get(&table, i + 1).data, name);
  }
  assert_int_equal(table.count, COUNT);
  assert_ptr_equal(intern_get(&table, 1).data, first); /* text does not move */
  intern_release(&table);
}

/* Room for what is expected changes no id, whenever it is made, and whatever comes. */
static void test_expect(void **state) {
  (void)state;
  Intern table;
  intern_init(&table);
  intern_expect(&table, 0);
  assert_int_equal(intern_add(&table, SV("a")), 1);
  intern_expect(&table, 1000);
  uint32_t slots = table.slot_count;
  char name[32];
  for (unsigned i = 0; i < 3000; i++) {
    snprintf(name, sizeof name, "name%u", i);
    assert_int_equal(intern_add(&table, sv_from(name)), i + 2);
    if (i < 999)
      assert_int_equal(table.slot_count, slots);
  }
  assert_int_equal(intern_find(&table, SV("a")), 1);
  assert_int_equal(intern_find(&table, SV("name2999")), 3001);
  intern_release(&table);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_ids), cmocka_unit_test(test_many),
                                     cmocka_unit_test(test_expect)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
