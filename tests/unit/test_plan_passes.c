/* The passes to executorch on graphs made at random, and their errors.
 *
 * The oracle plays the program on its arena: every 16 bytes remember which content was written
 * there last. An operand or output whose bytes hold anything else means that the plan is wrong. */
#include "unit.h"

#include "ir_graph.h"
#include "passes/executorch/planner.h"
#include "passes/executorch/liveness.h"
#include "passes/pass.h"

/* --- running passes --- */

typedef struct Runner {
  Arena scratch;
  PassOptions options;
  PassContext context; /* of the last pass */
} Runner;

static Status run_pass(Runner *r, Sample *s, PassFn *pass, Level level_out) {
  r->scratch = (Arena){0};
  r->context =
      (PassContext){.sink = &s->capture.sink, .scratch = &r->scratch, .options = &r->options};
  Status status = pass(&r->context, s->g);
  arena_release(&r->scratch);
  if (status == STATUS_OK && s->g->level < level_out)
    s->g->level = level_out;
  return status;
}

static uint64_t statistic(const Runner *r, const char *name) {
  for (uint32_t i = 0; i < r->context.stat_count; i++)
    if (strcmp(r->context.stats[i].name, name) == 0)
      return r->context.stats[i].count;
  return 0;
}

static Status run_stage(Runner *r, Sample *s, const char *plan) {
  r->options = PASS_OPTIONS_DEFAULT;
  r->options.planner = strcmp(plan, "naive") == 0 ? &builtin_planners[2] : &builtin_planners[0];
  TRY(run_pass(r, s, pass_legalize_outputs, LEVEL_EDGE));
  TRY(run_pass(r, s, pass_eliminate_views, LEVEL_EDGE));
  TRY(run_pass(r, s, pass_materialize_symints, LEVEL_EDGE));
  TRY(run_pass(r, s, pass_out_variants, LEVEL_EXECUTORCH));
  TRY(run_pass(r, s, pass_schedule_nodes, LEVEL_EXECUTORCH));
  return run_pass(r, s, pass_plan_memory, LEVEL_EXECUTORCH);
}

/* --- the oracle --- */

typedef struct Oracle {
  const Graph *g;
  uint32_t *cells;   /* content of each 16 bytes of the arena */
  uint32_t *content; /* by value */
} Oracle;

static void check_content(const Oracle *o, ValueId v, const char *who) {
  const Value *value = value_cget(o->g, v);
  if (!value->storage)
    return;
  const Storage *s = &o->g->storages[value->storage];
  uint64_t bytes = type_bytes_upper(o->g, value_type(o->g, v));
  assert_true(s->offset % 16 == 0 && s->offset + bytes <= o->g->arena_sizes[1]);
  for (uint64_t at = s->offset / 16; at < (s->offset + bytes + 15) / 16; at++)
    if (o->cells[at] != o->content[v])
      fail_msg("%s: value %u was overwritten by content %u", who, v, o->cells[at]);
}

static void write_content(Oracle *o, ValueId v, uint32_t content) {
  const Value *value = value_cget(o->g, v);
  o->content[v] = content;
  if (!value->storage)
    return;
  const Storage *s = &o->g->storages[value->storage];
  uint64_t bytes = type_bytes_upper(o->g, value_type(o->g, v));
  for (uint64_t at = s->offset / 16; at < (s->offset + bytes + 15) / 16; at++)
    o->cells[at] = content;
}

static bool bytes_meet(const Graph *g, ValueId a, ValueId b) {
  const Storage *s = &g->storages[value_cget(g, a)->storage];
  const Storage *t = &g->storages[value_cget(g, b)->storage];
  uint64_t m = type_bytes_upper(g, value_type(g, a)), n = type_bytes_upper(g, value_type(g, b));
  return value_cget(g, a)->storage && value_cget(g, b)->storage && s->offset < t->offset + n &&
         t->offset < s->offset + m;
}

/* A kernel may write over an operand only as the table says, at exactly its place. */
static void check_overlap(const Graph *g, NodeId n) {
  uint32_t tensor = 0;
  for (uint32_t i = 0; i < g->nodes[n].arg_count; i++) {
    const Arg *arg = node_arg(g, n, i);
    bool is_tensor = op_schema(g->nodes[n].op)->args[i].type == ST_TENSOR;
    for (uint32_t k = 0; arg->kind == ARG_VALUES && k < arg->count; k++)
      assert_false(bytes_meet(g, node_result(g, n, 0), node_list_value(g, n, i, k)));
    if (arg->kind == ARG_VALUE && is_tensor &&
        bytes_meet(g, node_result(g, n, 0), node_value(g, n, i))) {
      assert_true(op_row(g->nodes[n].op)->alias >> tensor & 1);
      assert_int_equal(value_cget(g, node_result(g, n, 0))->storage,
                       value_cget(g, node_value(g, n, i))->storage);
      assert_memory_equal(value_type(g, node_result(g, n, 0))->dims,
                          value_type(g, node_value(g, n, i))->dims,
                          value_rank(g, node_value(g, n, i)) * sizeof(SymInt));
    }
    tensor += is_tensor;
  }
}

static void play_node(Oracle *o, NodeId n) {
  const Graph *g = o->g;
  const Node *node = node_cget(g, n);
  for (uint32_t i = 0; i < node->arg_count; i++) {
    const Arg *arg = node_arg(g, n, i);
    if (arg->kind == ARG_VALUE && node_value(g, n, i))
      check_content(o, node_value(g, n, i), op_row(node->op)->id);
    for (uint32_t k = 0; arg->kind == ARG_VALUES && k < arg->count; k++)
      check_content(o, node_list_value(g, n, i, k), op_row(node->op)->id);
  }
  if (node->op == OP_ET_VIEW) {
    o->content[node->first_result] = o->content[node_value(g, n, 0)];
    check_content(o, node->first_result, "view");
    return;
  }
  check_overlap(g, n);
  for (uint32_t i = 0; i < node->result_count; i++)
    write_content(o, node->first_result + i, node->first_result + i);
}

static void play(const Graph *g) {
  Arena arena = {0};
  Oracle o = {.g = g,
              .cells = ARENA_ARRAY(&arena, uint32_t, g->arena_sizes[1] / 16 + 1),
              .content = ARENA_ARRAY(&arena, uint32_t, g->value_count)};
  for (uint32_t i = 0; i < g->input_count; i++)
    write_content(&o, g->inputs[i], g->inputs[i]);
  for (uint32_t i = 0; i < g->input_count; i++)
    check_content(&o, g->inputs[i], "inputs");
  for (FOR_NODES(g, n))
    play_node(&o, n);
  for (uint32_t i = 0; i < graph_output_count(g); i++) {
    check_content(&o, graph_output(g, i), "outputs");
    assert_true(value_cget(g, graph_output(g, i))->storage ||
                type_bytes_upper(g, value_type(g, graph_output(g, i))) == 0);
    for (uint32_t k = 0; k < i; k++)
      assert_false(bytes_meet(g, graph_output(g, i), graph_output(g, k)));
  }
  arena_release(&arena);
}

/* --- graphs at random --- */

static uint64_t random_state;
static uint32_t pick(uint32_t below) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (uint32_t)(random_state >> 11) % below;
}

enum { POOL = 64 };

/* One more node on random values of the pool, all of which are f32 [rows, 8] or [8, rows]. */
static ValueId random_node(Builder *b, const ValueId *pool, uint32_t count) {
  ValueId x = pool[count - 1 - pick(count < 6 ? count : 6)], y = pool[pick(count)];
  const Type *t = value_type(b->g, x);
  SymInt d0 = t->dims[0], d1 = t->dims[1];
  bool same = value_dim(b->g, y, 0) == d0 && value_dim(b->g, y, 1) == d1;
  switch (pick(9)) {
  case 0:
    return build(b, OP_RELU, A_VAL(x));
  case 1:
    return build(b, OP_ADD_TENSOR, A_VAL(x), A_VAL(same ? y : x));
  case 2:
    return build_view(b, x, (SymInt[]){d1, d0}, 2);
  case 3:
    return build_permute(b, x, (int64_t[]){1, 0});
  case 4:
    return build(b, OP_CAT, A_VALS(((ValueId[]){x, same ? y : x}), 2), A_INT(d0 == 8 ? 1 : 0));
  case 5:
    return build_slice(b, x, d0 == 8 ? 1 : 0, 0, sym_ceildiv(&b->g->syms, d0 == 8 ? d1 : d0, 2), 1);
  case 6: {
    ValueId bias = build_const(b, DTYPE_F32, 2, (int64_t[]){1, 1}, &(float){1});
    return build(b, OP_MUL_TENSOR, A_VAL(bias), A_VAL(x));
  }
  case 7:
    return build_view(b, build(b, OP_EXP, A_VAL(x)), (SymInt[]){d0, d1}, 2);
  default:
    return build(b, OP_SUB_TENSOR, A_VAL(same ? y : x), A_VAL(x));
  }
}

static void random_graph(Sample *s, bool dynamic) {
  Graph *g = s->g;
  SymInt rows = dynamic ? sym_symbol(&g->syms, SV("n"), 1, 12, false) : 4;
  ValueId pool[POOL], outputs[5];
  uint32_t count = 0, output_count = 1 + pick(5), nodes = 1 + pick(POOL - 4);
  for (uint32_t i = 0; i < 1 + random_state % 3; i++)
    pool[count++] = graph_add_input(
        g, graph_tensor_type(g, DTYPE_F32, 2, (SymInt[]){rows, 8}, ORDER_CONTIGUOUS), 0);
  Builder b = builder_make(g, 0, 0);
  while (count < nodes) {
    ValueId v = random_node(&b, pool, count);
    assert_int_equal(b.status, STATUS_OK);
    if (type_bytes_upper(g, value_type(g, v)) < 4096)
      pool[count++] = v;
  }
  for (uint32_t i = 0; i < output_count; i++)
    outputs[i] = pool[count - 1 - pick(count < 8 ? count : 8)];
  graph_set_outputs(g, outputs, output_count, NULL);
  g->level = LEVEL_EDGE;
}

static void random_case(uint64_t seed, const char *plan, uint64_t *arena, uint64_t *bound) {
  Sample s;
  Runner r;
  random_state = seed * 0x9e3779b97f4a7c15u + 1;
  sample_init(&s);
  random_graph(&s, seed % 2);
  if (graph_verify(s.g, "test") != STATUS_OK || run_stage(&r, &s, plan) != STATUS_OK ||
      graph_verify(s.g, "passes") != STATUS_OK)
    fail_msg("seed %llu: %s", (unsigned long long)seed, sample_messages(&s));
  play(s.g);
  *arena = s.g->arena_sizes[1];
  *bound = statistic(&r, "lower bound");
  assert_true(*arena >= *bound);
  sample_release(&s);
}

static void test_random(void **state) {
  enum { CASES = 300 };
  uint32_t reached = 0;
  for (uint64_t seed = 1; seed <= CASES; seed++) {
    uint64_t greedy, bound, naive, ignored;
    random_case(seed, "greedy", &greedy, &bound);
    random_case(seed, "naive", &naive, &ignored);
    assert_true(greedy <= naive);
    reached += greedy == bound;
  }
  print_message("bound reached in %u of %d random graphs\n", reached, CASES);
  assert_true(reached * 100 >= CASES * 95);
}

/* --- single rules --- */

static Status plan_text(Sample *s, Runner *r, const char *text) {
  sample_parse(s, text);
  r->options = PASS_OPTIONS_DEFAULT;
  return run_pass(r, s, pass_plan_memory, LEVEL_EXECUTORCH);
}

static ValueId result_of(const Graph *g, OpId op) {
  for (FOR_NODES(g, n))
    if (g->nodes[n].op == op)
      return node_result(g, n, 0);
  fail_msg("no %s", op_row(op)->id);
  return 0;
}

static bool share(const Graph *g, ValueId a, ValueId b) {
  return value_cget(g, a)->storage && value_cget(g, a)->storage == value_cget(g, b)->storage;
}

/* The same value as an operand that may be overwritten and as one that may not. */
static void test_two_operands(void **state) {
  Sample s;
  Runner r;
  assert_int_equal(plan_text(&s, &r,
                             "graph @f level(executorch) {\n"
                             "  %0: f32[4, 4] = input \"x\"\n"
                             "  %1: f32[4, 4] = aten::relu(%0)\n"
                             "  %2: f32[4, 4] = aten::addmm(%1, %1, %0)\n"
                             "  output %2 \"y\"\n}\n"),
                   STATUS_OK);
  assert_false(share(s.g, result_of(s.g, OP_ADDMM), result_of(s.g, OP_RELU)));
  sample_release(&s);
  assert_int_equal(plan_text(&s, &r,
                             "graph @f level(executorch) {\n"
                             "  %0: f32[1, 4] = input \"x\"\n"
                             "  %1: f32[1, 4] = aten::relu(%0)\n"
                             "  %2: f32[4, 1] = executorch_prim::et_view.default(%1, [4, 1])\n"
                             "  %3: f32[4, 4] = aten::add.Tensor(%1, %2)\n"
                             "  %4: f32[4] = executorch_prim::et_view.default(%1, [4])\n"
                             "  %5: f32[1, 4] = aten::mul.Tensor(%1, %4)\n"
                             "  output %3 \"y\", %5 \"z\"\n}\n"),
                   STATUS_OK);
  assert_false(share(s.g, result_of(s.g, OP_ADD_TENSOR), result_of(s.g, OP_RELU)));
  assert_false(share(s.g, result_of(s.g, OP_MUL_TENSOR), result_of(s.g, OP_RELU)));
  sample_release(&s);
}

/* Results that nobody reads need a place all the same. */
static void test_unused_result(void **state) {
  Sample s;
  Runner r;
  assert_int_equal(
      plan_text(&s, &r,
                "graph @f level(executorch) {\n"
                "  %0: f32[1, 2, 4, 4] = input \"x\"\n"
                "  %1: f32[1, 2, 2, 2], %2: i64[1, 2, 2, 2] = "
                "aten::max_pool2d_with_indices(%0, [2, 2], [2, 2], [0, 0], [1, 1], false)\n"
                "  output %1 \"y\"\n}\n"),
      STATUS_OK);
  ValueId pool = result_of(s.g, OP_MAX_POOL2D_WITH_INDICES);
  assert_true(value_cget(s.g, pool + 1)->storage != 0);
  assert_int_equal(s.g->arena_sizes[1], 128 + 32 + 64);
  sample_release(&s);
}

/* --- errors --- */

static void test_no_bound(void **state) {
  Sample s;
  Runner r;
  assert_int_equal(plan_text(&s, &r,
                             "graph @f level(executorch) {\n"
                             "  sym s0 \"batch\" in [1, 9223372036854775807]\n"
                             "  %0: f32[s0, 4] = input \"x\"\n"
                             "  output %0 \"y\"\n}\n"),
                   STATUS_UNSUPPORTED);
  assert_contains(sample_messages(&s), "E0317");
  assert_contains(sample_messages(&s), "'batch'");
  sample_release(&s);
}

static void test_too_large(void **state) {
  Sample s;
  Runner r;
  assert_int_equal(plan_text(&s, &r,
                             "graph @f level(executorch) {\n"
                             "  %0: f32[1152921504606846975] = input \"x\"\n"
                             "  %1: f32[1152921504606846975] = input \"y\"\n"
                             "  %2: f32[1152921504606846975] = input \"z\"\n"
                             "  output %0 \"a\", %1 \"b\", %2 \"c\"\n}\n"),
                   STATUS_UNSUPPORTED);
  assert_contains(sample_messages(&s), "E0507");
  sample_release(&s);
}

static uint64_t place_nowhere(const PlanProblem *q, Arena *scratch, uint64_t *offsets) {
  (void)scratch;
  for (uint32_t i = 0; i < q->count; i++)
    offsets[i] = 16;
  return 16;
}

/* A planner of a plug-in that gives places outside of the arena. */
static void test_planner_fault(void **state) {
  static const Planner wrong = {.name = "wrong", .place = place_nowhere, .plugin = "tested"};
  Sample s;
  Runner r = {.options = {.planner = &wrong}};
  sample_init(&s);
  ValueId x = graph_add_input(s.g, f32_type(s.g, 2, 2), 0);
  graph_set_outputs(s.g, &x, 1, NULL);
  assert_int_equal(run_pass(&r, &s, pass_plan_memory, LEVEL_EXECUTORCH), STATUS_INVALID);
  assert_contains(sample_messages(&s), "planner 'wrong' of plug-in 'tested'");
  sample_release(&s);
}

/* All operators without a kernel, each once. */
static void test_no_kernel(void **state) {
  Sample s;
  Runner r;
  sample_init(&s);
  ValueId x = graph_add_input(s.g, f32_type(s.g, 2, 2), 0);
  Builder b = builder_make(s.g, 0, 0);
  ValueId y =
      build(&b, OP_HARDSWISH, A_VAL(build(&b, OP_SILU, A_VAL(build(&b, OP_SILU, A_VAL(x))))));
  graph_set_outputs(s.g, &y, 1, NULL);
  assert_int_equal(run_pass(&r, &s, pass_out_variants, LEVEL_EXECUTORCH), STATUS_UNSUPPORTED);
  assert_int_equal(s.capture.sink.errors, 2);
  assert_contains(sample_messages(&s), "'aten::silu'");
  assert_contains(sample_messages(&s), "2 nodes");
  assert_contains(sample_messages(&s), "'aten::hardswish'");
  assert_int_equal(s.g->level, LEVEL_ATEN);
  sample_release(&s);
}

/* A symbol that no size tells. */
static void test_lost_symbol(void **state) {
  Sample s;
  Runner r;
  sample_parse(&s, "graph @f level(edge) {\n"
                   "  sym s0 \"batch\" in [1, 8]\n"
                   "  sym s1 \"rows\" in [1, 8]\n"
                   "  %0: f32[s0*s1, 4] = input \"x\"\n"
                   "  %1: f32[s0*s1, 4] = aten::full([s0*s1, 4], 1.0, f32)\n"
                   "  output %1 \"y\"\n}\n");
  assert_int_equal(run_pass(&r, &s, pass_materialize_symints, LEVEL_EDGE), STATUS_UNSUPPORTED);
  assert_contains(sample_messages(&s), "'s1' cannot be computed");
  sample_release(&s);
}

/* A symbol that only a multiple of it plus a number tells. */
static void test_symbol_on_a_line(void **state) {
  Sample s;
  Runner r;
  sample_parse(&s, "graph @f level(edge) {\n"
                   "  sym s0 \"batch\" in [1, 8]\n"
                   "  %0: f32[s0*2 + 1, 4] = input \"x\"\n"
                   "  %1: f32[s0, 4] = aten::full([s0, 4], 1.0, f32)\n"
                   "  output %1 \"y\"\n}\n");
  assert_int_equal(run_pass(&r, &s, pass_materialize_symints, LEVEL_EDGE), STATUS_OK);
  assert_int_equal(s.g->live_nodes, 4); /* the size, less 1, by 2, and full */
  sample_release(&s);
}

/* --- run-time sizes --- */

/* Every kind of expression is computed and carries what it stands for; unbacked sizes follow the
 * node that makes them. */
static void test_expressions(void **state) {
  Sample s;
  Runner r;
  sample_parse(&s, "graph @f level(edge) {\n"
                   "  sym s0 \"a\" in [1, 8]\n"
                   "  sym s1 \"b\" in [1, 8]\n"
                   "  sym s2 \"c\" in [0, 64] unbacked\n"
                   "  %0: f32[s0, s1] = input \"x\"\n"
                   "  %1: i64[s2, 2] = aten::nonzero(%0)\n"
                   "  %2: f32[s0*s1 - s0 + 20] = aten::full([s0*s1 - s0 + 20], 1.0, f32)\n"
                   "  %3: f32[floordiv(s0, 2) + mod(s1, 3)] = "
                   "aten::full([floordiv(s0, 2) + mod(s1, 3)], 1.0, f32)\n"
                   "  %4: f32[min(s0, s1), max(s0, 4)] = "
                   "aten::full([min(s0, s1), max(s0, 4)], 1.0, f32)\n"
                   "  %5: f32[s2 + s0] = aten::full([s2 + s0], 1.0, f32)\n"
                   "  output %2 \"a\", %3 \"b\", %4 \"c\", %5 \"d\"\n}\n");
  assert_int_equal(run_pass(&r, &s, pass_materialize_symints, LEVEL_EDGE), STATUS_OK);
  if (graph_verify(s.g, "materialize_symints") != STATUS_OK)
    fail_msg("%s", sample_messages(&s));
  StrBuf text = {0};
  graph_print(s.g, (PrintOptions){0}, &text);
  const char *nonzero = strstr(strbuf_cstr(&text), "aten::nonzero");
  const char *unbacked = strstr(strbuf_cstr(&text), "int(s2) = aten::sym_size.int");
  const char *product = strstr(strbuf_cstr(&text), "mul.Scalar");
  assert_true(nonzero && unbacked && product);
  assert_true(product < nonzero && nonzero < unbacked);
  strbuf_release(&text);
  /* each expression that an argument has is the value of a scalar before it */
  for (FOR_NODES(s.g, n)) {
    for (uint32_t k = 0; s.g->nodes[n].op == OP_FULL && k < node_list_count(s.g, n, 0); k++) {
      bool found = false;
      for (NodeId m = s.g->first; m != n; m = s.g->nodes[m].next) {
        const Type *t = value_type(s.g, node_result(s.g, m, 0));
        found |= t->kind == TYPE_INT && t->rank == 1 && t->dims[0] == node_ints(s.g, n, 0)[k];
      }
      assert_true(found || sym_is_const(node_ints(s.g, n, 0)[k]));
    }
  }
  sample_release(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random),           cmocka_unit_test(test_two_operands),
      cmocka_unit_test(test_unused_result),    cmocka_unit_test(test_no_bound),
      cmocka_unit_test(test_too_large),        cmocka_unit_test(test_planner_fault),
      cmocka_unit_test(test_no_kernel),        cmocka_unit_test(test_lost_symbol),
      cmocka_unit_test(test_symbol_on_a_line), cmocka_unit_test(test_expressions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
