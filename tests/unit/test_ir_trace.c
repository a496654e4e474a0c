/* The trace of a graph, and the lives that are found in it. */
#include "ir_graph.h"

#include "ir/rewrite.h"
#include "ir/trace.h"
#include "ir/verify.h"
#include "pipeline/life.h"

static void parse_traced(Sample *s, const char *text) {
  Graph **graphs;
  uint32_t count;
  capture_init(&s->capture);
  context_init(&s->ctx, &s->capture.sink);
  s->ctx.traced = true;
  if (graph_parse(&s->ctx, sv_from(text), SV("test.etir"), NULL, &graphs, &count) != STATUS_OK)
    fail_msg("%s", sample_messages(s));
  assert_int_equal(count, 1);
  s->g = graphs[0];
}

static const char text[] = "graph @forward level(aten) {\n"
                           "  %0: f32[2, 2] = input \"x\"\n"
                           "  %1: f32[2, 2] = aten::exp(%0) loc(\"e\", \"Exp\", 0)\n"
                           "  %2: f32[2, 2] = aten::neg(%1) loc(\"n\", \"Neg\", 1)\n"
                           "  %3: f32[2, 2] = aten::neg(%1) loc(\"m\", \"Neg\", 2)\n"
                           "  %4: f32[2, 2] = aten::sin(%0) loc(\"dead\", \"Sin\", 3)\n"
                           "  output %2 \"y\", %3 \"z\"\n"
                           "}\n";

/* -exp(x), of which each use becomes cos(x): stands for a fusion. */
static ValueId fuse(Builder *b, NodeId n) {
  NodeId exp = value_def(b->g, node_value(b->g, n, 0));
  return exp && node_cget(b->g, exp)->op == OP_EXP
             ? build(b, OP_COS, A_VAL(node_value(b->g, exp, 0)))
             : 0;
}

static void run_rule(Graph *g, uint32_t run, OpId op, RewriteFn *rewrite, const char *name) {
  RewriteRule rules[] = {{op, rewrite, name}};
  uint64_t counts[1] = {0};
  g->trace->run = run;
  assert_int_equal(rewrite_graph(g, &(Rewriter){.rules = rules, .rule_count = 1, .counts = counts}),
                   STATUS_OK);
}

static NodeId find_op(const Graph *g, OpId op, uint32_t nth) {
  for (FOR_NODES(g, n))
    if (g->nodes[n].op == op && nth-- == 0)
      return n;
  return 0;
}

static void test_nobody_asks(void **state) {
  Sample s;
  sample_parse(&s, text);
  assert_null(s.g->trace);
  sample_release(&s);
}

static void test_events(void **state) {
  Sample s;
  parse_traced(&s, text);
  Graph *g = s.g;
  NodeId neg = find_op(g, OP_NEG, 0);
  ValueId result = node_result(g, neg, 0);
  uint32_t before = g->trace->count;
  assert_int_equal(before, 4);
  run_rule(g, 7, OP_NEG, fuse, "fused");
  const TraceEvent *e = &g->trace->events[before];
  assert_int_equal(e[0].kind, TRACE_BUILT);
  assert_int_equal(e[0].op, OP_COS);
  assert_int_equal(e[0].run, 7);
  assert_int_equal(e[0].at, neg);
  assert_string_equal(e[0].rule, "fused");
  assert_int_equal(e[1].kind, TRACE_REPLACED);
  assert_int_equal(e[1].value, result);
  assert_int_equal(e[1].to, node_result(g, e[0].node, 0));
  assert_int_equal(e[2].kind, TRACE_REMOVED);
  assert_int_equal(e[2].node, neg);
  assert_int_equal(e[2].value, result);
  assert_int_equal(e[2].to, result + 1);
  assert_null(g->trace->rule);
  sample_release(&s);
}

static void test_restored(void **state) {
  Sample s;
  Arena arena = {0};
  parse_traced(&s, text);
  const Graph *kept = graph_snapshot(s.g, &arena);
  uint32_t before = s.g->trace->count;
  run_rule(s.g, 1, OP_NEG, fuse, "fused");
  assert_true(s.g->trace->count > before);
  graph_restore(s.g, kept);
  assert_int_equal(s.g->trace->count, before);
  assert_int_equal(graph_verify(s.g, NULL), STATUS_OK);
  arena_release(&arena);
  sample_release(&s);
}

static Life life_of(const Graph *g, const char *name, Arena *arena) {
  LocId *loc = ARENA_ARRAY(arena, LocId, 1);
  for (LocId i = 1; i < g->loc_count; i++)
    if (sv_eq_str(intern_get(&g->ctx->names, g->locs[i].name), name))
      *loc = i;
  return life_find(life_index(g, arena), (LifeTarget){.locs = loc, .loc_count = 1}, arena);
}

static void test_fused(void **state) {
  Sample s;
  Arena arena = {0};
  parse_traced(&s, text);
  Graph *g = s.g;
  run_rule(g, 1, OP_NEG, fuse, "fused");
  graph_remove_node(g, find_op(g, OP_EXP, 0));
  Life life = life_of(g, "e", &arena); /* goes on in what the last of its users became */
  assert_int_equal(life.count, 2);
  assert_int_equal(life.carriers[0].change, LIFE_FUSED);
  assert_int_equal(life.carriers[0].lost, 1);
  assert_string_equal(life.carriers[0].rule, "fused");
  assert_int_equal(life.carriers[0].next, 2);
  assert_int_equal(life.carriers[1].op, OP_COS);
  assert_int_equal(life.carriers[1].change, LIFE_STAYS);
  life = life_of(g, "n", &arena);
  assert_int_equal(life.count, 2);
  assert_int_equal(life.carriers[0].change, LIFE_REPLACED);
  assert_int_equal(life.carriers[1].from, 1);
  arena_release(&arena);
  sample_release(&s);
}

static void test_equal_and_dead(void **state) {
  Sample s;
  Arena arena = {0};
  parse_traced(&s, text);
  Graph *g = s.g;
  NodeId first = find_op(g, OP_NEG, 0), second = find_op(g, OP_NEG, 1);
  g->trace->run = 1;
  graph_replace_value(g, node_result(g, second, 0), node_result(g, first, 0));
  graph_remove_node(g, second);
  graph_remove_node(g, find_op(g, OP_SIN, 0));
  Life life = life_of(g, "m", &arena);
  assert_int_equal(life.count, 2);
  assert_int_equal(life.carriers[0].change, LIFE_EQUAL);
  assert_int_equal(life.carriers[1].id, first);
  life = life_of(g, "dead", &arena);
  assert_int_equal(life.count, 1);
  assert_int_equal(life.carriers[0].change, LIFE_UNUSED);
  assert_int_equal(life.carriers[0].lost, 1);
  arena_release(&arena);
  sample_release(&s);
}

static ValueId to_constant(Builder *b, NodeId n) {
  (void)n;
  static const float ones[4] = {1, 1, 1, 1};
  return build_const(b, DTYPE_F32, 2, (int64_t[]){2, 2}, ones);
}

static void test_folded(void **state) {
  Sample s;
  Arena arena = {0};
  parse_traced(&s, text);
  run_rule(s.g, 3, OP_NEG, to_constant, "folded");
  Life life = life_of(s.g, "n", &arena);
  assert_int_equal(life.count, 2);
  assert_int_equal(life.carriers[0].change, LIFE_FOLDED);
  assert_int_equal(life.carriers[0].lost, 3);
  assert_int_equal(life.carriers[1].kind, CARRIER_VALUE);
  assert_int_equal(life.carriers[1].change, LIFE_STAYS);
  arena_release(&arena);
  sample_release(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nobody_asks),    cmocka_unit_test(test_events),
      cmocka_unit_test(test_restored),       cmocka_unit_test(test_fused),
      cmocka_unit_test(test_equal_and_dead), cmocka_unit_test(test_folded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
