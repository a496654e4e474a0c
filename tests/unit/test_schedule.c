/* Orders of nodes, against all orders that are possible, on small graphs made at random. */
#include "unit.h"

#include "passes/executorch/schedule.h"

enum { NODES = 8, OPERANDS = 3 };

typedef struct Case {
  Arena arena;
  ScheduleProblem p;
  ScheduleNode *nodes;
  ScheduleBuffer *buffers;
  bool before[NODES][NODES];
  uint64_t state; /* of the random numbers */
} Case;

static void add_operand(Case *c, uint32_t node, ScheduleUse *uses, uint32_t buffer) {
  ScheduleNode *n = &c->nodes[node];
  for (uint32_t i = 0; i < n->use_count; i++)
    if (uses[i].buffer == buffer)
      return;
  uses[n->use_count++] = (ScheduleUse){buffer, draw_below(&c->state, 2)};
  c->buffers[buffer].uses++;
  if (buffer > 0) /* buffer 0 is the input, buffer k + 1 is made by node k */
    c->before[buffer - 1][node] = true;
}

/* Every node makes a buffer of those before it, a few of nothing; what nobody uses is an output. */
static void case_init(Case *c, uint32_t count, uint64_t seed) {
  *c = (Case){.state = seed * 0x9e3779b97f4a7c15u + 1};
  c->arena = (Arena){0};
  c->nodes = ARENA_ARRAY(&c->arena, ScheduleNode, count);
  c->buffers = ARENA_ARRAY(&c->arena, ScheduleBuffer, (size_t)count + 1);
  c->p = (ScheduleProblem){c->nodes, c->buffers, count, count + 1};
  for (uint32_t i = 0; i <= count; i++)
    c->buffers[i].size = 16 * (uint64_t)draw_below(&c->state, 20);
  c->buffers[0].given = true;
  for (uint32_t k = 0; k < count; k++) {
    ScheduleUse *uses = ARENA_ARRAY(&c->arena, ScheduleUse, OPERANDS);
    uint32_t *makes = ARENA_ARRAY(&c->arena, uint32_t, 1), *after;
    uint32_t operands = draw_below(&c->state, 6) ? draw_below(&c->state, OPERANDS) + 1 : 0;
    for (uint32_t i = operands; i > 0; i--)
      add_operand(c, k, uses, draw_below(&c->state, k + 1));
    makes[0] = k + 1;
    after = ARENA_ARRAY(&c->arena, uint32_t, count);
    c->nodes[k].uses = uses;
    c->nodes[k].defines = makes;
    c->nodes[k].define_count = 1;
    c->nodes[k].successors = after;
  }
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < count; k++)
      if (c->before[i][k]) {
        ((uint32_t *)c->nodes[i].successors)[c->nodes[i].successor_count++] = k;
        c->nodes[k].predecessor_count++;
      }
  for (uint32_t i = 0; i <= count; i++)
    if (c->buffers[i].uses == 0 || i == count)
      c->buffers[i].uses++;
}

static bool possible(const Case *c, const uint32_t *order, uint32_t placed, uint32_t node) {
  for (uint32_t i = 0; i < c->p.node_count; i++) {
    bool ran = false;
    for (uint32_t k = 0; k < placed; k++)
      ran |= order[k] == i;
    if ((c->before[i][node] && !ran) || (i == node && ran))
      return false;
  }
  return true;
}

static uint64_t least_of_orders(Case *c, uint32_t *order, uint32_t placed) {
  uint64_t least = UINT64_MAX;
  if (placed == c->p.node_count)
    return schedule_peak(&c->p, order, &c->arena);
  for (uint32_t node = 0; node < c->p.node_count; node++) {
    if (!possible(c, order, placed, node))
      continue;
    order[placed] = node;
    uint64_t peak = least_of_orders(c, order, placed + 1);
    least = peak < least ? peak : least;
  }
  return least;
}

static void test_against_orders(void **state) {
  uint32_t better = 0;
  for (uint32_t seed = 1; seed <= 2000; seed++) {
    Case c;
    uint32_t order[NODES], asis[NODES] = {0, 1, 2, 3, 4, 5, 6, 7};
    case_init(&c, 3 + seed % (NODES - 2), seed);
    uint64_t before = schedule_peak(&c.p, asis, &c.arena), least = least_of_orders(&c, order, 0);
    assert_true(schedule_bound(&c.p) <= least);
    bool found = schedule_search(&c.p, &c.arena, order);
    assert_int_equal(found, least < before);
    for (uint32_t i = 0; found && i < c.p.node_count; i++)
      assert_true(possible(&c, order, i, order[i]));
    if (found)
      assert_int_equal(schedule_peak(&c.p, order, &c.arena), least);
    better += found;
    arena_release(&c.arena);
  }
  assert_true(better > 200);
}

/* What runs in place, what an input takes, what an output keeps. */
static void test_peak(void **state) {
  Arena arena = {0};
  ScheduleBuffer buffers[] = {{32, 1, true}, {32, 2, false}, {16, 0, false}};
  uint32_t made[] = {1, 2};
  ScheduleUse over[] = {{0, true}}, kept[] = {{1, false}};
  ScheduleNode nodes[] = {{.uses = over, .use_count = 1, .defines = made, .define_count = 1},
                          {.uses = kept, .use_count = 1, .defines = made + 1, .define_count = 1}};
  ScheduleProblem p = {nodes, buffers, 2, 3};
  const uint32_t order[] = {0, 1};
  assert_int_equal(schedule_peak(&p, order, &arena), 48);
  over[0].in_place = false;
  assert_int_equal(schedule_peak(&p, order, &arena), 64);
  buffers[1].uses = 1;
  buffers[0].uses = 2;
  assert_int_equal(schedule_peak(&p, order, &arena), 80);
  arena_release(&arena);
}

/* A node that waits for none and frees an input goes before those that have no choice. */
static void test_early(void **state) {
  Arena arena = {0};
  ScheduleBuffer buffers[] = {{96, 1, true},  {16, 1, true},  {16, 1, false},
                              {96, 1, false}, {16, 1, false}, {16, 1, false}};
  uint32_t made[] = {2, 3, 4, 5}, after[] = {1, 3, 3}, order[4];
  ScheduleUse uses[] = {{1, false}, {2, false}, {0, false}, {3, false}, {4, false}};
  ScheduleNode nodes[4];
  for (uint32_t i = 0; i < 4; i++)
    nodes[i] = (ScheduleNode){.successors = after + i,
                              .successor_count = i < 3,
                              .uses = uses + i,
                              .use_count = i < 3 ? 1 : 2,
                              .defines = made + i,
                              .define_count = 1,
                              .predecessor_count = i == 1   ? 1
                                                   : i == 3 ? 2
                                                            : 0};
  ScheduleProblem p = {nodes, buffers, 4, 6};
  assert_true(schedule_search(&p, &arena, order));
  assert_int_equal(schedule_peak(&p, order, &arena), 128);
  arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_orders),
                                     cmocka_unit_test(test_peak), cmocka_unit_test(test_early)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
