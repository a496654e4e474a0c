/* The pass manager: levels, skipping, bisecting, stopping, printing, checks after a pass. */
#include "ir_graph.h"

#include "pipeline/manager.h"

typedef struct ManagerTest {
  Sample sample;
  Facts facts;
  Manager manager;
  StrBuf printed;
} ManagerTest;

static const char text[] = "graph @forward level(aten) {\n"
                           "  %0: f32[2, 2] = input \"x\"\n"
                           "  %1: f32[2, 2] = aten::relu(%0)\n"
                           "  %2: f32[2, 2] = aten::neg(%0)\n"
                           "  output %1 \"y\"\n"
                           "}\n";

static void manager_test_init(ManagerTest *t) {
  sample_parse(&t->sample, text);
  t->facts = (Facts){0};
  manager_init(&t->manager, &t->sample.capture.sink, &t->facts);
  t->printed = (StrBuf){0};
  t->manager.options.print = capture_write;
  t->manager.options.print_user = &t->printed;
}
static void manager_test_release(ManagerTest *t) {
  manager_release(&t->manager);
  facts_release(&t->facts);
  strbuf_release(&t->printed);
  sample_release(&t->sample);
}

/* --- passes for these tests --- */

static Status remove_unused(PassContext *p, Graph *g) {
  for (NodeId n = g->first, next; n; n = next) {
    next = g->nodes[n].next;
    if (g->values[node_result(g, n, 0)].use_count == 0) {
      graph_remove_node(g, n);
      pass_count(p, "removed", 1);
    }
  }
  return STATUS_OK;
}
static Status break_type(PassContext *p, Graph *g) {
  p->changed = true;
  value_set_type(g, node_result(g, g->first, 0), f32_type(g, 3, 3));
  return STATUS_OK;
}
static Status fix_size(PassContext *p, Graph *g) {
  p->changed = true;
  SymInt n = sym_symbol(&g->syms, SV("n"), 1, 9, false);
  graph_add_constraint(g, (Constraint){.kind = CONSTRAINT_EQ, .lhs = n, .rhs = 1});
  return STATUS_OK;
}

static const PassRow removing = {.name = "removing",
                                 .run = remove_unused,
                                 .stage = STAGE_SOURCE,
                                 .skippable = true,
                                 .summary = ""};
static const PassRow breaking = {
    .name = "breaking", .run = break_type, .stage = STAGE_SOURCE, .summary = ""};
static const PassRow fixing = {
    .name = "fixing", .run = fix_size, .stage = STAGE_SOURCE, .summary = ""};
static const PassRow raising = {.name = "raising",
                                .run = remove_unused,
                                .stage = STAGE_CORE,
                                .level_out = LEVEL_CORE,
                                .summary = ""};

static void test_levels(void **state) {
  ManagerTest t;
  manager_test_init(&t);
  Graph *g = t.sample.g;
  assert_int_equal(manager_run_pass(&t.manager, g, &raising), STATUS_OK);
  assert_int_equal(g->level, LEVEL_CORE);
  assert_int_equal(manager_run_pass(&t.manager, g, &removing),
                   STATUS_OK); /* keeps its level: runs later too */
  assert_int_equal(g->level, LEVEL_CORE);
  assert_int_equal(manager_run_pass(&t.manager, g, &raising), STATUS_INVALID);
  assert_contains(sample_messages(&t.sample),
                  "takes a graph of level aten, this one is at level core");
  manager_test_release(&t);
}

static void test_statistics(void **state) {
  ManagerTest t;
  manager_test_init(&t);
  assert_int_equal(manager_run_pass(&t.manager, t.sample.g, &removing), STATUS_OK);
  const PassRun *run = &t.facts.runs[0];
  assert_int_equal(run->nodes_before, 2);
  assert_int_equal(run->nodes_after, 1);
  assert_true(run->changed);
  assert_int_equal(run->stats[0].count, 1);
  StrBuf table = {0};
  manager_print_times(&t.manager, false, &table);
  assert_contains(strbuf_cstr(&table), "1 removed");
  strbuf_clear(&table);
  manager_print_times(&t.manager, true, &table);
  assert_contains(strbuf_cstr(&table), "\"nodes_after\":1");
  strbuf_release(&table);
  manager_test_release(&t);
}

static void test_skip_and_bisect(void **state) {
  ManagerTest t;
  manager_test_init(&t);
  const char *skip[] = {"removing"};
  t.manager.options.skip = (PassNames){skip, 1};
  assert_int_equal(manager_run_pass(&t.manager, t.sample.g, &removing), STATUS_OK);
  assert_int_equal(t.sample.g->live_nodes, 2);
  t.manager.options.skip.count = 0;
  t.manager.options.bisect = true;
  t.manager.options.bisect_limit = 1;
  assert_int_equal(manager_run_pass(&t.manager, t.sample.g, &removing), STATUS_OK);
  assert_int_equal(t.sample.g->live_nodes, 2);
  assert_contains(strbuf_cstr(&t.printed), "NOT running pass (2) removing");
  t.manager.options.bisect_limit = 3;
  assert_int_equal(manager_run_pass(&t.manager, t.sample.g, &removing), STATUS_OK);
  assert_int_equal(t.sample.g->live_nodes, 1);
  assert_contains(strbuf_cstr(&t.printed), "bisect: running pass (3) removing");
  manager_test_release(&t);
}

static void test_stop_and_print(void **state) {
  ManagerTest t;
  manager_test_init(&t);
  t.manager.options.stop_after = "removing";
  t.manager.options.print_changed = true;
  assert_int_equal(manager_run_pass(&t.manager, t.sample.g, &removing), STATUS_OK);
  assert_contains(strbuf_cstr(&t.printed), "// after removing (source)");
  assert_true(t.manager.stopped);
  assert_int_equal(manager_run_pass(&t.manager, t.sample.g, &raising), STATUS_OK);
  assert_int_equal(t.sample.g->level, LEVEL_ATEN);
  manager_test_release(&t);
}

/* A pass that leaves a wrong graph is our own fault, and found at once. */
static void test_faults(void **state) {
  ManagerTest t;
  manager_test_init(&t);
  t.manager.options.verify_each = true;
  assert_int_equal(manager_run_pass(&t.manager, t.sample.g, &breaking), STATUS_INTERNAL);
  assert_contains(sample_messages(&t.sample), "pass 'breaking'");
  manager_test_release(&t);
}

static void test_fixed_size(void **state) {
  ManagerTest t;
  manager_test_init(&t);
  t.manager.options.verify_never = true; /* this is checked all the same */
  assert_int_equal(manager_run_pass(&t.manager, t.sample.g, &fixing), STATUS_INTERNAL);
  assert_contains(sample_messages(&t.sample), "fixes a size that varied before");
  manager_test_release(&t);
}

static void test_roundtrip(void **state) {
  ManagerTest t;
  manager_test_init(&t);
  t.manager.options.roundtrip = true;
  assert_int_equal(manager_run_pass(&t.manager, t.sample.g, &removing), STATUS_OK);
  assert_int_equal(t.sample.capture.sink.errors, 0);
  manager_test_release(&t);
}

/* Rows of the table: known levels, a stage that runs passes, and a way from aten to executorch. */
static void test_table(void **state) {
  Level level = LEVEL_ATEN;
  StageId stage = STAGE_SOURCE;
  for (uint32_t i = 0; i < pass_table_size; i++) {
    const PassRow *row = &pass_table[i];
    assert_true(row->stage >= stage && row->stage < STAGE_EMIT);
    for (; stage < row->stage; stage++)
      level = level < stage_level(stage) ? stage_level(stage) : level;
    assert_true(manager_accepts(row, level));
    level = level < row->level_out ? row->level_out : level;
    assert_true(level <= stage_level(stage));
    assert_true(row->summary[0] != '\0');
    assert_ptr_equal(pass_find(sv_from(row->name))->run, row->run);
  }
  assert_int_equal(level, LEVEL_EXECUTORCH);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_levels),          cmocka_unit_test(test_statistics),
      cmocka_unit_test(test_skip_and_bisect), cmocka_unit_test(test_stop_and_print),
      cmocka_unit_test(test_faults),          cmocka_unit_test(test_roundtrip),
      cmocka_unit_test(test_table),           cmocka_unit_test(test_fixed_size),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
