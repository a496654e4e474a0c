/* The driver of rewriting: which rules are tried where, what becomes of names, uses and nodes. And
 * builders that try something: what does not fit is not reported. */
#include "ir_graph.h"

#include "ir/rewrite.h"

static const char text[] = "graph @f level(aten) {\n"
                           "  %0: f32[4] = input \"x\"\n"
                           "  %1: f32[4] = aten::relu(%0) \"hidden\"\n"
                           "  %2: f32[4] = aten::neg(%1)\n"
                           "  %3: f32[2], %4: f32[2] = aten::split_with_sizes_copy(%2, [2, 2], 0)\n"
                           "  output %3 \"a\", %4 \"b\"\n"
                           "}\n";

static NodeId node_of(const Graph *g, OpId op) {
  for (FOR_NODES(g, n))
    if (node_cget(g, n)->op == op)
      return n;
  return 0;
}

/* Runs one rule; how often it applied. */
static uint64_t rewrite(Sample *s, OpId op, RewriteFn *rule, bool revisit) {
  RewriteRule rules[] = {{op, rule, NULL}};
  uint64_t count = 0;
  Rewriter r = {.rules = rules, .rule_count = 1, .revisit = revisit, .counts = &count};
  assert_int_equal(rewrite_graph(s->g, &r), STATUS_OK);
  if (graph_verify(s->g, "the test") != STATUS_OK)
    fail_msg("%s", sample_messages(s));
  return count;
}

static ValueId tanh_instead(Builder *b, NodeId n) {
  return build(b, OP_TANH, A_VAL(node_value(b->g, n, 0)));
}

static void test_replaces(void **state) {
  Sample s;
  sample_parse(&s, text);
  assert_int_equal(rewrite(&s, OP_RELU, tanh_instead, false), 1);
  assert_int_equal(node_of(s.g, OP_RELU), 0);
  NodeId made = node_of(s.g, OP_TANH);
  assert_int_equal(node_value(s.g, node_of(s.g, OP_NEG), 0), node_result(s.g, made, 0));
  StrView name = intern_get(&s.ctx.names, value_cget(s.g, node_result(s.g, made, 0))->name);
  assert_true(sv_eq_str(name, "hidden"));
  sample_release(&s);
}

static ValueId other_type(Builder *b, NodeId n) {
  return build_view(b, node_value(b->g, n, 0), (SymInt[]){2, 2}, 2);
}

static void test_other_type_is_refused(void **state) {
  Sample s;
  sample_parse(&s, text);
  assert_int_equal(rewrite(&s, OP_NONE, other_type, false), 0);
  assert_int_not_equal(node_of(s.g, OP_RELU), 0);
  sample_release(&s);
}

static ValueId in_place(Builder *b, NodeId n) {
  node_set_arg(b->g, n, 0, A_VAL(b->g->inputs[0]));
  return node_result(b->g, n, 0);
}

static void test_in_place(void **state) {
  Sample s;
  sample_parse(&s, text);
  assert_int_equal(rewrite(&s, OP_NEG, in_place, true), 1);
  assert_int_equal(node_value(s.g, node_of(s.g, OP_NEG), 0), s.g->inputs[0]);
  sample_release(&s);
}

/* Only the first of two results: the node must stay for the other. */
static ValueId first_half(Builder *b, NodeId n) {
  return build_slice(b, node_value(b->g, n, 0), 0, 0, 2, 1);
}

static void test_other_results_keep_the_node(void **state) {
  Sample s;
  sample_parse(&s, text);
  assert_int_equal(rewrite(&s, OP_SPLIT_WITH_SIZES_COPY, first_half, true), 1);
  assert_int_not_equal(node_of(s.g, OP_SPLIT_WITH_SIZES_COPY), 0);
  assert_int_equal(value_def(s.g, graph_output(s.g, 0)), node_of(s.g, OP_SLICE_COPY_TENSOR));
  sample_release(&s);
}

/* relu, neg -> neg, abs: visited again, what this built becomes abs. */
static ValueId step(Builder *b, NodeId n) {
  OpId op = node_cget(b->g, n)->op, next = op == OP_RELU ? OP_NEG : op == OP_NEG ? OP_ABS : OP_NONE;
  return next ? build(b, next, A_VAL(node_value(b->g, n, 0))) : 0;
}

static void test_revisit(void **state) {
  for (int revisit = 0; revisit < 2; revisit++) {
    Sample s;
    sample_parse(&s, text);
    assert_int_equal(rewrite(&s, OP_NONE, step, revisit), revisit ? 3 : 2);
    assert_int_equal(node_of(s.g, OP_NEG) == 0, revisit);
    sample_release(&s);
  }
}

static uint32_t asked[3];
static ValueId refuse_any(Builder *b, NodeId n) {
  (void)b, (void)n;
  asked[0]++;
  return 0;
}
static ValueId refuse_neg(Builder *b, NodeId n) {
  (void)b, (void)n;
  asked[1]++;
  return 0;
}
static ValueId answer_neg(Builder *b, NodeId n) {
  asked[2]++;
  return build(b, OP_ABS, A_VAL(node_value(b->g, n, 0)));
}

/* Rules for an op and for any op are tried in the order of the table until one answers. */
static void test_order_of_rules(void **state) {
  Sample s;
  sample_parse(&s, text);
  static const RewriteRule rules[] = {{OP_NEG, refuse_neg, NULL},
                                      {OP_NONE, refuse_any, NULL},
                                      {OP_NEG, answer_neg, NULL},
                                      {OP_NONE, refuse_any, NULL}};
  uint64_t counts[COUNT_OF(rules)] = {0};
  Rewriter r = {.rules = rules, .rule_count = COUNT_OF(rules), .counts = counts};
  assert_int_equal(rewrite_graph(s.g, &r), STATUS_OK);
  assert_int_equal(asked[0], 5); /* twice for relu and split, once for neg */
  assert_int_equal(asked[1], 1);
  assert_int_equal(asked[2], 1);
  assert_int_equal(counts[2], 1);
  sample_release(&s);
}

static void test_quiet_builder(void **state) {
  for (int quiet = 0; quiet < 2; quiet++) {
    Sample s;
    sample_parse(&s, text);
    Builder b = builder_make(s.g, 0, 0);
    b.quiet = quiet;
    uint32_t nodes = s.g->live_nodes;
    assert_int_equal(build(&b, OP_MM, A_VAL(s.g->inputs[0]), A_VAL(s.g->inputs[0])), 0);
    assert_int_equal(b.status, STATUS_INVALID);
    assert_int_equal(s.g->live_nodes, nodes);
    assert_int_equal(s.capture.sink.errors, quiet ? 0 : 1);
    assert_true(s.ctx.fault.text[0] != '\0');
    sample_release(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_replaces),      cmocka_unit_test(test_other_type_is_refused),
      cmocka_unit_test(test_in_place),      cmocka_unit_test(test_other_results_keep_the_node),
      cmocka_unit_test(test_revisit),       cmocka_unit_test(test_order_of_rules),
      cmocka_unit_test(test_quiet_builder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
