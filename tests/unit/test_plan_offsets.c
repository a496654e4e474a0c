/* The planners of offsets on spans alone: no overlap (checked by brute force), never below the
 * lower bound, and the bound itself on the shapes where a plan must reach it. */
#include "unit.h"

#include "passes/executorch/planner.h"

typedef struct Case {
  Arena arena;
  Span *spans;
  uint32_t count, end;
  uint64_t bound;
  uint64_t *offsets;
  uint64_t state; /* of the random numbers */
} Case;

static void case_init(Case *c, uint32_t count, uint32_t end, uint64_t seed) {
  *c = (Case){.count = count, .end = end, .state = seed * 0x9e3779b97f4a7c15u + 1};
  c->arena = (Arena){0};
  c->spans = ARENA_ARRAY(&c->arena, Span, count);
  c->offsets = ARENA_ARRAY(&c->arena, uint64_t, count);
}

static void case_bound(Case *c) {
  Liveness l = {.spans = c->spans, .span_count = c->count, .end = c->end - 1};
  c->bound = liveness_bound(&l, PLAN_ALIGNMENT, &c->arena);
}

static void check_plan(const Case *c, uint64_t total) {
  uint64_t top = 0;
  for (uint32_t i = 0; i < c->count; i++) {
    const Span *a = &c->spans[i];
    assert_int_equal(c->offsets[i] % PLAN_ALIGNMENT, 0);
    assert_true(c->offsets[i] + a->size <= total);
    top = c->offsets[i] + a->size > top ? c->offsets[i] + a->size : top;
    for (uint32_t k = 0; k < i; k++) {
      const Span *b = &c->spans[k];
      bool together = a->first <= b->last && b->first <= a->last;
      bool overlap =
          c->offsets[i] < c->offsets[k] + b->size && c->offsets[k] < c->offsets[i] + a->size;
      if (together && overlap)
        fail_msg("spans %u and %u overlap", k, i);
    }
  }
  assert_true(total >= c->bound);
  assert_int_equal(top, total);
}

/* All planners; returns what the greedy one needs. */
static uint64_t run_all(Case *c) {
  case_bound(c);
  check_plan(c, planner_naive(c->spans, c->count, c->offsets));
  uint64_t sweep = planner_sweep(c->spans, c->count, c->end, &c->arena, c->offsets);
  check_plan(c, sweep);
  uint64_t greedy = planner_greedy(c->spans, c->count, c->end, c->bound, &c->arena, c->offsets);
  check_plan(c, greedy);
  assert_true(greedy <= sweep);
  return greedy;
}

static void random_spans(Case *c, uint32_t longest, uint32_t largest) {
  for (uint32_t i = 0; i < c->count; i++) {
    uint32_t first = draw_below(&c->state, c->end);
    uint32_t last = first + draw_below(&c->state, longest);
    c->spans[i] = (Span){.size = (uint64_t)draw_below(&c->state, largest) * PLAN_ALIGNMENT,
                         .first = first,
                         .last = last < c->end ? last : c->end - 1};
  }
}

static void test_random(void **state) {
  double over = 0;
  uint32_t reached = 0, cases = 0;
  for (uint32_t seed = 1; seed <= 150; seed++) {
    Case c;
    case_init(&c, 1 + seed % 90, 2 + seed % 70, seed);
    random_spans(&c, 1 + seed % 13, 1 + (seed % 5 ? 1000 : 6));
    uint64_t total = run_all(&c);
    if (c.bound) {
      over += (double)(total - c.bound) / (double)c.bound;
      reached += total == c.bound;
      cases++;
    }
    arena_release(&c.arena);
  }
  print_message("bound reached in %u of %u random cases, %.2f %% above it on average\n", reached,
                cases, 100 * over / cases);
  assert_true(over / cases < 0.03);
}

/* Each value is read by the next node only: two live at a time. */
static void test_chain(void **state) {
  for (uint32_t seed = 1; seed <= 20; seed++) {
    Case c;
    case_init(&c, 300, 301, seed);
    for (uint32_t i = 0; i < c.count; i++)
      c.spans[i] = (Span){(uint64_t)(1 + draw_below(&c.state, 5000)) * PLAN_ALIGNMENT, i, i + 1};
    uint64_t total = run_all(&c);
    assert_int_equal(total, c.bound);
    arena_release(&c.arena);
  }
}

/* Skip connections over a few nodes, as in residual networks, and long ones, as in U-Nets. */
static void test_skips(void **state) {
  for (uint32_t seed = 1; seed <= 20; seed++) {
    Case c;
    case_init(&c, 120, 121, seed);
    for (uint32_t i = 0; i < c.count; i++) {
      uint32_t level = i < 60 ? i / 6 : (119 - i) / 6;
      uint32_t last = i % 6 == 0 && i < 60 ? 119 - i : i + 1 + i % 3;
      c.spans[i] = (Span){((uint64_t)1 << 20) >> level, i, last < 121 ? last : 120};
    }
    uint64_t total = run_all(&c);
    assert_int_equal(total, c.bound);
    arena_release(&c.arena);
  }
}

static void test_edges(void **state) {
  Case c;
  case_init(&c, 0, 1, 1);
  assert_int_equal(run_all(&c), 0);
  arena_release(&c.arena);
  case_init(&c, 3, 2, 1); /* empty tensors take no place */
  c.spans[1] = (Span){32, 0, 1};
  assert_int_equal(run_all(&c), 32);
  assert_int_equal(c.offsets[0], 0);
  assert_int_equal(c.offsets[2], 0);
  arena_release(&c.arena);
  case_init(&c, 4, 9, 1); /* near the end of the address space */
  for (uint32_t i = 0; i < 4; i++)
    c.spans[i] = (Span){((uint64_t)1 << 61) - 16 * (i + 1), 2 * i, 2 * i + 1 + i % 2};
  (void)run_all(&c);
  arena_release(&c.arena);
}

/* Everything in use at once: more pairs than are ever looked at, and still quick. */
static void test_large(void **state) {
  Case c;
  case_init(&c, 100000, 100001, 7);
  for (uint32_t i = 0; i < c.count; i++)
    c.spans[i] = (Span){(uint64_t)(1 + draw_below(&c.state, 50)) * PLAN_ALIGNMENT, 0, c.end - 1};
  case_bound(&c);
  assert_int_equal(planner_greedy(c.spans, c.count, c.end, c.bound, &c.arena, c.offsets), c.bound);
  for (uint32_t i = 0; i < c.count; i++) {
    uint32_t first = draw_below(&c.state, c.end - 40);
    c.spans[i] = (Span){(uint64_t)(1 + draw_below(&c.state, 500)) * PLAN_ALIGNMENT, first,
                        first + draw_below(&c.state, 40)};
  }
  case_bound(&c);
  uint64_t total = planner_greedy(c.spans, c.count, c.end, c.bound, &c.arena, c.offsets);
  assert_true(total >= c.bound && total < 2 * c.bound);
  print_message("100000 spans: %.2f times the bound\n", (double)total / (double)c.bound);
  arena_release(&c.arena);
}

/* The same spans give the same plan. */
static void test_deterministic(void **state) {
  Case a, b;
  case_init(&a, 80, 60, 3);
  case_init(&b, 80, 60, 3);
  random_spans(&a, 12, 1000);
  random_spans(&b, 12, 1000);
  assert_int_equal(run_all(&a), run_all(&b));
  assert_memory_equal(a.offsets, b.offsets, a.count * sizeof *a.offsets);
  arena_release(&a.arena);
  arena_release(&b.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random), cmocka_unit_test(test_chain),
      cmocka_unit_test(test_skips),  cmocka_unit_test(test_edges),
      cmocka_unit_test(test_large),  cmocka_unit_test(test_deterministic)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
