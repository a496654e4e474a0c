/* The exact search for places, and the planner that uses it: against all permutations on small
 * cases, on cases made from a full arena cut into pieces, and on instances from a folder.
 *
 * A folder of instances, PLAN_INSTANCES, has files of lines "id,lower,upper,size" (the format of
 * MiniMalloc's benchmarks, of which benchmarks/challenging fits into 1048576 bytes); without it
 * that test is skipped. */
#include "unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "passes/executorch/plan_search.h"

typedef struct Case {
  Arena arena;
  PlanProblem q;
  Span *spans;
  uint64_t *offsets, proved;
  uint64_t state; /* of the random numbers */
} Case;

static void case_init(Case *c, uint32_t count, uint32_t end, uint64_t seed) {
  *c = (Case){.q = {.count = count, .end = end, .alignment = PLAN_ALIGNMENT},
              .state = seed * 0x9e3779b97f4a7c15u + 1};
  c->arena = (Arena){0};
  c->spans = ARENA_ARRAY(&c->arena, Span, count);
  c->offsets = ARENA_ARRAY(&c->arena, uint64_t, count);
  c->q.spans = c->spans;
}

static void case_bound(Case *c) {
  Liveness l = {.spans = c->spans, .span_count = c->q.count, .end = c->q.end - 1};
  c->q.bound = liveness_bound(&l, PLAN_ALIGNMENT, &c->arena);
  c->q.proved = &c->proved;
}

static bool together(const Span *a, const Span *b) {
  return a->size && b->size && a->first <= b->last && b->first <= a->last;
}

static void check_places(const Case *c, const uint64_t *offsets, uint64_t total) {
  for (uint32_t i = 0; i < c->q.count; i++) {
    const Span *a = &c->spans[i];
    assert_true(!a->size || offsets[i] + a->size <= total);
    assert_true(!a->size || offsets[i] % c->q.alignment == 0);
    for (uint32_t k = 0; k < i; k++) {
      const Span *b = &c->spans[k];
      if (together(a, b) && offsets[i] < offsets[k] + b->size && offsets[k] < offsets[i] + a->size)
        fail_msg("spans %u and %u overlap", k, i);
    }
  }
}

/* Some optimal plan puts each span, in some order, upon those before it: all orders are tried. */
static uint64_t least_of_orders(const Case *c, uint32_t *order, uint32_t placed,
                                uint64_t *offsets) {
  uint64_t least = UINT64_MAX, top = 0;
  for (uint32_t k = placed; k < c->q.count; k++) {
    uint32_t span = order[k];
    order[k] = order[placed];
    order[placed] = span;
    offsets[span] = 0;
    for (uint32_t i = 0; i < placed; i++) {
      uint64_t end = offsets[order[i]] + c->spans[order[i]].size;
      if (together(&c->spans[order[i]], &c->spans[span]) && end > offsets[span])
        offsets[span] = end;
    }
    uint64_t total = least_of_orders(c, order, placed + 1, offsets);
    least = total < least ? total : least;
    order[placed] = order[k];
    order[k] = span;
  }
  for (uint32_t i = 0; i < placed; i++) {
    uint64_t end = offsets[order[i]] + c->spans[order[i]].size;
    top = end > top ? end : top;
  }
  return placed == c->q.count ? top : least;
}

/* Four units are in use at most, and no plan has less than five. */
static const Span knot[] = {{32, 1, 2}, {16, 2, 4}, {32, 4, 5}, {32, 6, 6}, {16, 3, 4},
                            {32, 1, 1}, {32, 5, 7}, {16, 2, 3}, {32, 7, 7}};

/* The answer to each size is that of trying all orders. */
static void check_against_orders(Case *c) {
  case_bound(c);
  uint32_t *order = ARENA_ARRAY(&c->arena, uint32_t, c->q.count);
  for (uint32_t i = 0; i < c->q.count; i++)
    order[i] = i;
  uint64_t least = least_of_orders(c, order, 0, c->offsets);
  PlanSearch *s = plan_search_make(c->spans, c->q.count, c->q.end, &c->arena);
  for (uint64_t size = 0; size <= least + 32; size += 16) {
    uint64_t work = 10000000;
    SearchAnswer answer = plan_search_run(s, size, &work, c->offsets);
    assert_int_equal(answer, size < least ? SEARCH_IMPOSSIBLE : SEARCH_FOUND);
    if (answer == SEARCH_FOUND)
      check_places(c, c->offsets, size);
  }
  uint64_t best = planner_best(&c->q, 0, &c->arena, c->offsets);
  check_places(c, c->offsets, best);
  assert_int_equal(best, least);
  assert_int_equal(c->proved, least);
}

static void test_against_orders(void **state) {
  Case c;
  for (uint32_t seed = 1; seed <= 400; seed++) {
    case_init(&c, 3 + seed % 6, 5 + seed % 3, seed);
    for (uint32_t i = 0; i < c.q.count; i++) {
      uint32_t first = draw_below(&c.state, c.q.end), last = first + draw_below(&c.state, 4);
      c.spans[i] = (Span){PLAN_ALIGNMENT * (uint64_t)draw_below(&c.state, 5), first,
                          last < c.q.end ? last : c.q.end - 1};
    }
    check_against_orders(&c);
    arena_release(&c.arena);
  }
  case_init(&c, COUNT_OF(knot), 8, 1);
  memcpy(c.spans, knot, sizeof knot);
  check_against_orders(&c);
  assert_true(c.proved > c.q.bound);
  arena_release(&c.arena);
}

/* Cuts a full arena, [from, to) in time and [0, size), into up to 2^depth pieces. */
static void cut(Case *c, uint32_t from, uint32_t to, uint64_t size, uint32_t depth) {
  bool across = draw_below(&c->state, 2);
  if (depth == 0 || to - from < 3 || size < 64) {
    c->spans[c->q.count++] = (Span){size, from, to - 1};
  } else if (across) {
    uint32_t at = from + 1 + draw_below(&c->state, to - from - 1);
    cut(c, from, at, size, depth - 1);
    cut(c, at, to, size, depth - 1);
  } else {
    uint64_t part =
        PLAN_ALIGNMENT * (1 + (uint64_t)draw_below(&c->state, (uint32_t)(size / 16) - 1));
    cut(c, from, to, part, depth - 1);
    cut(c, from, to, size - part, depth - 1);
  }
}

enum { CUTS = 6 };

/* Plans without a gap exist, and are found; one step less is impossible. */
static void test_cut_up(void **state) {
  for (uint32_t seed = 1; seed <= 30; seed++) {
    Case c;
    case_init(&c, 1 << CUTS, 60, seed);
    c.q.count = 0;
    cut(&c, 0, c.q.end, (uint64_t)1 << 16, CUTS);
    case_bound(&c);
    assert_int_equal(c.q.bound, 1 << 16);
    uint64_t best = planner_best(&c.q, 0, &c.arena, c.offsets), work = 1000000;
    check_places(&c, c.offsets, best);
    assert_int_equal(best, c.q.bound);
    PlanSearch *s = plan_search_make(c.spans, c.q.count, c.q.end, &c.arena);
    assert_int_equal(plan_search_run(s, best - 16, &work, c.offsets), SEARCH_IMPOSSIBLE);
    arena_release(&c.arena);
  }
}

/* That a part is impossible is found among many that are not. A span in use all the time keeps them
 * together. */
static void test_impossible_window(void **state) {
  Case c;
  case_init(&c, 400, 161, 5);
  uint64_t in_use[161] = {0};
  c.q.count = 0;
  c.spans[c.q.count++] = (Span){16, 0, 160};
  for (uint32_t i = 0; i < COUNT_OF(knot); i++)
    c.spans[c.q.count++] = (Span){knot[i].size, 75 + knot[i].first, 75 + knot[i].last};
  for (uint32_t i = 0; i < 380; i++) {
    uint32_t first = draw_below(&c.state, 70) + (i % 2 ? 85 : 0),
             last = first + draw_below(&c.state, 6);
    uint64_t most = 0, size = 16 * (1 + (uint64_t)draw_below(&c.state, 2));
    for (uint32_t t = first; t <= last; t++)
      most = in_use[t] > most ? in_use[t] : most;
    if (most + size > 64)
      continue;
    for (uint32_t t = first; t <= last; t++)
      in_use[t] += size;
    c.spans[c.q.count++] = (Span){size, first, last};
  }
  case_bound(&c);
  assert_int_equal(c.q.bound, 80);
  uint64_t best = planner_best(&c.q, 20000000, &c.arena, c.offsets);
  check_places(&c, c.offsets, best);
  assert_int_equal(best, 96);
  assert_int_equal(c.proved, 96);
  arena_release(&c.arena);
}

/* With no work nothing is claimed; the limit is kept; the same spans give the same plan. */
static void test_limits(void **state) {
  Case c;
  case_init(&c, 120, 80, 11);
  for (uint32_t i = 0; i < c.q.count; i++) {
    uint32_t first = draw_below(&c.state, c.q.end), last = first + draw_below(&c.state, 9);
    c.spans[i] = (Span){PLAN_ALIGNMENT * (uint64_t)(1 + draw_below(&c.state, 900)), first,
                        last < c.q.end ? last : c.q.end - 1};
  }
  case_bound(&c);
  uint64_t *again = ARENA_ARRAY(&c.arena, uint64_t, c.q.count), none = 0;
  PlanSearch *s = plan_search_make(c.spans, c.q.count, c.q.end, &c.arena);
  assert_int_equal(plan_search_run(s, c.q.bound, &none, again), SEARCH_UNDECIDED);
  uint64_t best = planner_best(&c.q, 1000000, &c.arena, c.offsets);
  check_places(&c, c.offsets, best);
  assert_true(c.q.bound <= c.proved && c.proved <= best);
  assert_int_equal(planner_best(&c.q, 1000000, &c.arena, again), best);
  assert_memory_equal(again, c.offsets, c.q.count * sizeof *again);
  arena_release(&c.arena);
  case_init(&c, 0, 1, 1);
  case_bound(&c);
  assert_int_equal(planner_best(&c.q, 0, &c.arena, c.offsets), 0);
  arena_release(&c.arena);
}

/* --- instances from files --- */

enum { MOST_LINES = 4096 };

static void read_instance(Case *c, FILE *f) {
  static char line[128];
  case_init(c, MOST_LINES, 0, 1);
  c->q.count = 0;
  while (fgets(line, sizeof line, f) && c->q.count < MOST_LINES) {
    unsigned first, end;
    unsigned long long size;
    if (sscanf(line, "%*[^,],%u,%u,%llu", &first, &end, &size) != 3)
      continue;
    c->spans[c->q.count++] = (Span){size, first, end - 1};
    c->q.end = end > c->q.end ? end : c->q.end;
  }
}

static void test_instances(void **state) {
  const char *folder = getenv("PLAN_INSTANCES");
  if (!folder)
    skip();
  DIR *dir = opendir(folder);
  assert_non_null(dir);
  for (struct dirent *entry; (entry = readdir(dir));) {
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    const char *dot = strchr(entry->d_name, '.');
    FILE *f = dot && strstr(dot, ".csv") ? fopen(path, "r") : NULL;
    if (!f)
      continue;
    Case c;
    read_instance(&c, f);
    (void)fclose(f);
    uint64_t size = strtoull(dot + 1, NULL, 10), work = (uint64_t)10 << 30;
    clock_t begin = clock();
    PlanSearch *s = plan_search_make(c.spans, c.q.count, c.q.end, &c.arena);
    assert_non_null(s);
    SearchAnswer answer = plan_search_run(s, size, &work, c.offsets);
    print_message("%s: %s, %.2f s\n", entry->d_name, answer == SEARCH_FOUND ? "found" : "not found",
                  (double)(clock() - begin) / CLOCKS_PER_SEC);
    assert_int_equal(answer, SEARCH_FOUND);
    check_places(&c, c.offsets, size);
    arena_release(&c.arena);
  }
  (void)closedir(dir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_against_orders), cmocka_unit_test(test_cut_up),
      cmocka_unit_test(test_impossible_window), cmocka_unit_test(test_limits),
      cmocka_unit_test(test_instances)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
