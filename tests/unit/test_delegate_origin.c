/* What calls of delegates were made of is found in any number of them, and not by looking at all.
 */
#include "ir_graph.h"

#include <time.h>

#include "ops/delegate.h"

enum { FEW = 8000, TIMES = 8, MANY = FEW * TIMES };

static DelegateOrigin origins[MANY];

static Graph graph_of(uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    origins[i] = (DelegateOrigin){.call = 10 + 3 * i, .count = i};
  return (Graph){.origins = origins, .origin_count = count};
}

static void test_found(void **state) {
  for (uint32_t count = 0; count < 6; count++) {
    Graph g = graph_of(count);
    for (NodeId n = 0; n < 40; n++) {
      bool is = n >= 10 && (n - 10) % 3 == 0 && (n - 10) / 3 < count;
      const DelegateOrigin *found = delegate_origin(&g, n);
      assert_ptr_equal(found, is ? &origins[(n - 10) / 3] : NULL);
    }
  }
}

/* Processor time of asking for each once, `rounds` times. */
static double seconds_of(uint32_t count, uint32_t rounds) {
  Graph g = graph_of(count);
  uint64_t found = 0;
  clock_t begin = clock();
  for (uint32_t k = 0; k < rounds; k++)
    for (uint32_t i = 0; i < count; i++)
      found += delegate_origin(&g, 10 + 3 * i)->count == i;
  assert_int_equal(found, (uint64_t)count * rounds);
  return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* As many questions about many as about few: looking at all would take eight times as long. */
static void test_many(void **state) {
  double few = seconds_of(FEW, 4 * TIMES), many = seconds_of(MANY, 4);
  assert_true(many < 4 * few);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_found), cmocka_unit_test(test_many)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
