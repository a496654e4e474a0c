/* What the layouts of XNNPACK graphs are chosen by: minimum cuts against all divisions there are,
 * and views and permutes that become one transpose. */
#include "ops_fixture.h"

#include "backends/xnnpack/cut.h"
#include "backends/xnnpack/moves.h"

enum { FREE_VERTICES = 7, ARCS = 18 };

typedef struct Arc {
  uint32_t from, to;
  uint64_t cost;
} Arc;

static uint32_t random_below(uint32_t *seed, uint32_t limit) {
  *seed = *seed * 1664525u + 1013904223u;
  return (*seed >> 16) % limit;
}

/* Bit i of `second`: vertex i is there. */
static uint64_t cost_of(const Arc *arcs, uint32_t second) {
  uint64_t cost = 0;
  for (uint32_t i = 0; i < ARCS; i++)
    if (!(second >> arcs[i].from & 1) && second >> arcs[i].to & 1)
      cost += arcs[i].cost;
  return cost;
}

static void cuts_are_the_cheapest(void **state) {
  uint32_t seed = 1;
  for (uint32_t graph = 0; graph < 200; graph++) {
    Arc arcs[ARCS];
    Cut c;
    cut_init(&c);
    for (uint32_t i = 0; i < FREE_VERTICES; i++)
      assert_int_equal(cut_vertex(&c), CUT_FREE + i);
    for (uint32_t i = 0; i < ARCS; i++) {
      arcs[i] = (Arc){random_below(&seed, CUT_FREE + FREE_VERTICES),
                      random_below(&seed, CUT_FREE + FREE_VERTICES), random_below(&seed, 9)};
      if (arcs[i].from == CUT_FIRST && arcs[i].to == CUT_SECOND)
        arcs[i].cost = 0; /* paid in any case */
      cut_arc(&c, arcs[i].from, arcs[i].to, arcs[i].cost);
    }
    assert_true(cut_solve(&c));
    uint32_t chosen = 0;
    for (uint32_t v = 0; v < CUT_FREE + FREE_VERTICES; v++)
      chosen |= (uint32_t)c.second[v] << v;
    assert_int_equal(chosen & 3, 1u << CUT_SECOND);
    uint64_t least = UINT64_MAX;
    for (uint32_t free = 0; free < 1u << FREE_VERTICES; free++) {
      uint64_t cost = cost_of(arcs, free << CUT_FREE | 1u << CUT_SECOND);
      least = cost < least ? cost : least;
    }
    assert_int_equal(cost_of(arcs, chosen), least);
    cut_release(&c);
  }
}

/* A chain is solved in one go, however long: no vertex is looked at for each other one. */
static void long_chains_are_cut(void **state) {
  enum { LENGTH = 100000 };
  Cut c;
  cut_init(&c);
  uint32_t before = CUT_FIRST;
  for (uint32_t i = 0; i < LENGTH; i++) {
    uint32_t v = cut_vertex(&c);
    cut_arc(&c, before, v, i == LENGTH / 2 ? 1 : 2);
    before = v;
  }
  cut_arc(&c, before, CUT_SECOND, 2);
  assert_true(cut_solve(&c));
  assert_false(c.second[CUT_FREE + LENGTH / 2 - 1]);
  assert_true(c.second[CUT_FREE + LENGTH / 2]);
  cut_release(&c);
}

static void steps_become_one(void **state) {
  OpsFixture f;
  fixture_init(&f);
  Graph *g = f.g;
  Moves m = moves_none(g, fixture_input(&f, DTYPE_F32, DIMS(1, 8, 4, 6)));
  assert_int_equal(moves_route(&m, g, false, false).rank, 1);
  assert_int_equal(moves_route(&m, g, true, false).rank, 2); /* pixels and channels */
  moves_permute(&m, (const uint32_t[]){0, 2, 3, 1});
  assert_int_equal(moves_route(&m, g, true, false).rank, 1); /* it is NHWC */
  assert_int_equal(moves_cost(&m, g, true, false), 0);
  assert_true(moves_cost(&m, g, false, false) > 0);
  /* windows of 2 x 3 pixels: h, 2, w, 3, c */
  assert_true(moves_view(&m, g, fixture_input(&f, DTYPE_F32, DIMS(2, 2, 2, 3, 8))));
  moves_permute(&m, (const uint32_t[]){0, 2, 1, 3, 4});
  assert_true(moves_view(&m, g, fixture_input(&f, DTYPE_F32, DIMS(4, 6, 8))));
  MoveRoute route = moves_route(&m, g, true, false);
  assert_int_equal(route.rank, 4); /* 3 and the channels stay together */
  assert_int_equal(route.dims[3], 24);
  assert_int_equal(route.perm[1], 2);
  /* no dims of 24 and 8 can be made of 2, 2, 2, 3 and 8 with 5 in the front */
  assert_false(moves_view(&m, g, fixture_input(&f, DTYPE_F32, DIMS(16, 12))));
  fixture_release(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cuts_are_the_cheapest),
                                     cmocka_unit_test(long_chains_are_cut),
                                     cmocka_unit_test(steps_become_one)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
