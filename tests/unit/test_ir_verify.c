/* The verifier: each rule is broken once, in a graph that was right before. Texts that the parser
 * takes are verified at its end, so most rules of levels and plans are broken in text; damage to
 * the pools is done by hand. */
#include "ir_graph.h"

#include <stdio.h>
#include <stdlib.h>

/* --- damage to the pools --- */

static const char *const sound = "graph @forward level(aten) {\n"
                                 "  sym s0 \"n\" in [1, 8]\n"
                                 "  %0: f32[s0, 3] = input \"x\"\n"
                                 "  %1: f32[3] = const [1.0, 2.0, 3.0]\n"
                                 "  %2: f32[s0, 3] = aten::add.Tensor(%0, %1, 1) "
                                 "loc(\"Add_0\", \"Add\", 4)\n"
                                 "  %3: f32[s0, 3] = aten::relu(%2)\n"
                                 "  %4: f32[s0, 6] = aten::cat([%2, %3], 1)\n"
                                 "  output %4 \"y\"\n"
                                 "}\n";

static NodeId node_number(const Graph *g, int number) {
  NodeId n = g->first;
  while (number-- > 0)
    n = g->nodes[n].next;
  return n;
}
static ValueId input_of(const Graph *g) { return g->inputs[0]; }
static ValueId result_of(const Graph *g, int number) {
  return g->nodes[node_number(g, number)].first_result;
}
static Arg *arg_of(Graph *g, int node, uint32_t i) {
  return &g->args[g->nodes[node_number(g, node)].first_arg + i];
}
static Constant *constant_of(Graph *g) { return &g->constants[1]; }

static void break_prev(Graph *g) { g->nodes[node_number(g, 1)].prev = 0; }
static void break_next(Graph *g) { g->nodes[node_number(g, 2)].next = node_number(g, 0); }
static void break_next_range(Graph *g) { g->nodes[node_number(g, 2)].next = 1000000; }
static void break_last(Graph *g) { g->last = node_number(g, 0); }
static void break_live(Graph *g) { g->live_nodes++; }
static void break_op(Graph *g) { g->nodes[node_number(g, 1)].op = OP_COUNT; }
static void break_args(Graph *g) { g->nodes[node_number(g, 1)].first_arg = UINT32_MAX; }
static void break_loc(Graph *g) { g->nodes[node_number(g, 1)].loc = 99; }
static void break_arg_count(Graph *g) { g->nodes[node_number(g, 1)].arg_count = 2; }
static void break_list(Graph *g) { arg_of(g, 2, 0)->count = 1000000; }
static void break_kind(Graph *g) { arg_of(g, 0, 2)->kind = ARG_DTYPE; }
static void break_unknown_kind(Graph *g) { arg_of(g, 0, 2)->kind = 77; }
static void break_required(Graph *g) { node_set_arg(g, node_number(g, 1), 0, A_NONE); }
static void break_element(Graph *g) {
  node_set_arg(g, node_number(g, 2), 0, A_VALS(((ValueId[]){result_of(g, 0), 0}), 2));
}
static void break_sym(Graph *g) { arg_of(g, 0, 2)->i = SYM_BAND + (SymInt)g->syms.count; }
static void break_use_value(Graph *g) { g->uses[arg_of(g, 1, 0)->at].value = 1000000; }
static void break_use_node(Graph *g) { g->uses[arg_of(g, 1, 0)->at].node = node_number(g, 0); }
static void break_use_shared(Graph *g) { arg_of(g, 1, 0)->at = arg_of(g, 0, 0)->at; }
static void break_use_count(Graph *g) { g->values[input_of(g)].use_count = 5; }
static void break_use_list(Graph *g) { g->values[input_of(g)].first_use = 0; }
static void break_use_prev(Graph *g) { g->uses[arg_of(g, 1, 0)->at].prev = 1; }
static void break_def(Graph *g) { g->values[result_of(g, 1)].def = node_number(g, 0); }
static void break_result(Graph *g) { g->values[result_of(g, 1)].result = 3; }
static void break_results(Graph *g) { g->nodes[node_number(g, 1)].result_count = 0; }
static void break_type(Graph *g) { g->values[result_of(g, 1)].type = 0; }
static void break_type_range(Graph *g) { g->values[result_of(g, 1)].type = 1000000; }
static void break_rule(Graph *g) { value_set_type(g, result_of(g, 1), f32_type(g, 7, 3)); }
static void break_refused(Graph *g) { value_set_type(g, input_of(g), f32_type(g, 7, 5)); }
static void break_storage(Graph *g) { g->values[result_of(g, 1)].storage = 9; }
static void break_input(Graph *g) { g->values[input_of(g)].def = 1; }
static void break_input_list(Graph *g) { g->inputs[0] = result_of(g, 1); }
static void break_constant(Graph *g) { constant_of(g)->size = 8; }
static void break_constant_data(Graph *g) { constant_of(g)->data = NULL; }
static void break_constant_id(Graph *g) {
  for (ValueId v = 1; v < g->value_count; v++)
    if (g->values[v].kind == VALUE_CONST)
      g->values[v].def = 7;
}
static void break_order(Graph *g) { graph_move_before(g, node_number(g, 1), node_number(g, 0)); }
static void break_removed(Graph *g) {
  NodeId n = node_number(g, 0);
  ValueId v = result_of(g, 0);
  g->values[v].use_count = 0; /* so that it lets itself be removed */
  graph_remove_node(g, n);
}
static void break_output(Graph *g) { g->args[g->nodes[NODE_OUTPUT].first_arg + 1].count = 0; }
static void break_negative(Graph *g) { value_set_type(g, input_of(g), f32_type(g, -2, 3)); }

static const struct {
  const char *name;
  void (*damage)(Graph *);
  const char *message;
} damages[] = {
    {"prev", break_prev, "the list of nodes is damaged at node"},
    {"next", break_next, "the list of nodes is damaged at node"},
    {"next out of range", break_next_range, "the list of nodes is damaged at node 1000000"},
    {"last", break_last, "the list of nodes ends at"},
    {"live", break_live, "with 3 nodes, not at"},
    {"op", break_op, "has no op of the table"},
    {"args", break_args, "arguments or a location that do not exist"},
    {"loc", break_loc, "arguments or a location that do not exist"},
    {"arg count", break_arg_count, "arguments or a location that do not exist"},
    {"list", break_list, "argument 0 is damaged"},
    {"kind", break_kind, "argument 'alpha' is of kind dtype, which the schema does not allow"},
    {"unknown kind", break_unknown_kind, "argument 2 is damaged"},
    {"required", break_required, "argument 'self' is of kind none"},
    {"element", break_element, "argument 'tensors' holds a value that the schema does not allow"},
    {"sym", break_sym, "argument 'alpha' holds a value that the schema does not allow"},
    {"use value", break_use_value, "an operand is not a value of this graph"},
    {"use node", break_use_node, "an operand is not a value of this graph"},
    {"use shared", break_use_shared, "an operand is not a value of this graph"},
    {"use count", break_use_count, "is used 1 times, not 5 times"},
    {"use list", break_use_list, "is used 0 times, not 1 times"},
    {"use prev", break_use_prev, "the list of uses of value"},
    {"def", break_def, "belongs to another node"},
    {"result", break_result, "belongs to another node"},
    {"results", break_results, "has 0 results"},
    {"type", break_type, "has no type"},
    {"type out of range", break_type_range, "has no type"},
    {"rule", break_rule, "does not have the type that follows from the operands: f32[s0, 3]"},
    {"refused", break_refused, "the shape rule does not take the operands"},
    {"storage", break_storage, "has a place in memory that does not exist"},
    {"input", break_input, "is an input that the graph does not list"},
    {"input list", break_input_list, "input 0 is not an input value"},
    {"constant", break_constant, "data have another size than its type"},
    {"constant data", break_constant_data, "is a constant without data"},
    {"constant id", break_constant_id, "is a constant without data"},
    {"order", break_order, "an operand is used before it is defined"},
    {"removed", break_removed, "an operand is not a value of this graph"},
    {"output", break_output, "the output node is damaged"},
    {"negative", break_negative, "has a negative dimension"},
};

static void test_damage(void **state) {
  for (size_t i = 0; i < COUNT_OF(damages); i++) {
    Sample s;
    sample_parse(&s, sound);
    assert_int_equal(graph_verify(s.g, "import"), STATUS_OK);
    damages[i].damage(s.g);
    if (graph_verify(s.g, "import") != STATUS_INVALID)
      fail_msg("%s: not found", damages[i].name);
    if (!strstr(sample_messages(&s), damages[i].message))
      fail_msg("%s: '%s' is not in\n%s", damages[i].name, damages[i].message, sample_messages(&s));
    assert_contains(sample_messages(&s), "in graph 'forward' at level aten, after import");
    sample_release(&s);
  }
}

/* The message says where: the ONNX node, and the node as text. */
static void test_message(void **state) {
  Sample s;
  sample_parse(&s, sound);
  value_set_type(s.g, result_of(s.g, 0), f32_type(s.g, 7, 3));
  assert_int_equal(graph_verify(s.g, NULL), STATUS_INVALID);
  assert_contains(sample_messages(&s), "error[E0402]");
  assert_contains(sample_messages(&s), "at node 'Add_0' (Add, node 4)");
  assert_contains(sample_messages(&s), "note: %2: f32[7, 3] = aten::add.Tensor(%0, %1, 1)");
  assert_contains(sample_messages(&s), "note: in graph 'forward' at level aten\n");
  sample_release(&s);
}

/* Verification changes nothing: neither types nor symbols nor constraints. */
static void test_no_change(void **state) {
  Sample s;
  sample_parse(&s, "graph @f level(aten) {\n"
                   "  sym s0 \"a\" in [1, 8]\n"
                   "  sym s1 \"b\" in [1, 8]\n"
                   "  sym s2 \"\" in [0, 12] unbacked\n"
                   "  constraint s0 == s1\n"
                   "  %0: f32[s0, 3] = input \"x\"\n"
                   "  %1: f32[s1, 3] = input \"y\"\n"
                   "  %2: f32[s0, 3] = aten::add.Tensor(%0, %1, 1)\n"
                   "  %3: i64[s2, 2] = aten::nonzero(%2)\n"
                   "  output %3\n"
                   "}\n");
  StrBuf before = {0}, after = {0};
  graph_print(s.g, (PrintOptions){.locations = true}, &before);
  uint32_t types = s.g->type_count;
  for (int i = 0; i < 3; i++)
    assert_int_equal(graph_verify(s.g, NULL), STATUS_OK);
  graph_print(s.g, (PrintOptions){.locations = true}, &after);
  assert_string_equal(strbuf_cstr(&before), strbuf_cstr(&after));
  assert_int_equal(types, s.g->type_count);
  strbuf_release(&before);
  strbuf_release(&after);
  sample_release(&s);
}

static void test_faults_are_bounded(void **state) {
  Sample s;
  sample_init(&s);
  ValueId x = graph_add_input(s.g, f32_type(s.g, 2, 3), 0);
  Builder b = builder_make(s.g, 0, 0);
  for (int i = 0; i < 50; i++)
    value_set_type(s.g, build(&b, OP_RELU, A_VAL(x)), f32_type(s.g, 9, 9));
  assert_int_equal(graph_verify(s.g, NULL), STATUS_INVALID);
  assert_int_equal(s.capture.sink.errors, 21);
  assert_contains(sample_messages(&s), "30 more faults");
  sample_release(&s);
}

/* Every function that changes a graph counts as an edit, so that what it broke is looked for. */
static void edit_add(Graph *g) {
  ValueId x = input_of(g);
  graph_add_node(g, 0, OP_RELU, &A_VAL(x), 1, 1, 0);
}
static void edit_remove(Graph *g) {
  edit_add(g);
  g->verified = g->edits;
  graph_remove_node(g, g->last);
}
static void edit_move(Graph *g) { graph_move_before(g, node_number(g, 0), 0); }
static void edit_arg(Graph *g) { node_set_arg(g, node_number(g, 1), 0, A_NONE); }
static void edit_uses(Graph *g) { graph_replace_uses(g, input_of(g), result_of(g, 2)); }
static void edit_type(Graph *g) { value_set_type(g, result_of(g, 0), f32_type(g, 7, 3)); }
static void edit_input(Graph *g) { graph_add_input(g, 0, 0); }
static void edit_remove_input(Graph *g) {
  graph_add_input(g, f32_type(g, 1, 1), 0);
  g->edits = g->verified;
  graph_remove_input(g, g->input_count - 1);
}
static void edit_state(Graph *g) { graph_add_state(g, f32_type(g, 1, 1), 0, 0); }
static void edit_restore(Graph *g) {
  Arena arena = {0};
  graph_restore(g, graph_snapshot(g, &arena));
  arena_release(&arena);
}

static void test_changed(void **state) {
  static void (*const edits[])(Graph *) = {edit_add,   edit_remove, edit_move,  edit_arg,
                                           edit_uses,  edit_type,   edit_input, edit_remove_input,
                                           edit_state, edit_restore};
  for (size_t i = 0; i < COUNT_OF(edits); i++) {
    Sample s;
    sample_parse(&s, sound);
    assert_int_equal(s.g->edits, s.g->verified); /* parsing verifies */
    edits[i](s.g);
    if (s.g->edits == s.g->verified)
      fail_msg("edit %zu is not seen", i);
    sample_release(&s);
  }
  Sample s;
  sample_parse(&s, sound);
  edit_arg(s.g);
  assert_int_equal(graph_verify_changed(s.g, NULL), STATUS_INVALID);
  sample_release(&s);
  sample_parse(&s, "graph @f level(aten) {\n"
                   "  %0: f32[4] = input \"x\"\n"
                   "  %1: f32[4] = aten::mish(%0)\n"
                   "  output %1\n"
                   "}\n");
  assert_int_equal(graph_verify_changed(s.g, NULL), STATUS_OK);
  s.g->level = LEVEL_EDGE; /* no edit, and yet something else is allowed */
  assert_int_equal(graph_verify_changed(s.g, NULL), STATUS_INVALID);
  assert_contains(sample_messages(&s), "'aten::mish' is not allowed at level edge");
  sample_release(&s);
}

/* --- levels and plans, as text --- */

/* The text must be refused with the message; "" stands for a text that is right. */
static void check_text(const char *text, const char *message) {
  Sample s;
  Graph **graphs;
  uint32_t count = 0;
  sample_init(&s);
  Status status = graph_parse(&s.ctx, sv_from(text), SV("t.etir"), NULL, &graphs, &count);
  if (status != (*message ? STATUS_INVALID : STATUS_OK) || !strstr(sample_messages(&s), message))
    fail_msg("'%s' is not what was said of\n%s\nbut\n%s", message, text, sample_messages(&s));
  for (uint32_t i = 0; i < count; i++)
    graph_free(graphs[i]);
  sample_release(&s);
}

static void test_levels(void **state) {
  int tried = 0;
  for (OpId op = OP_OUTPUT + 1; op < op_count(); op++) {
    const OpSchema *schema = op_schema(op);
    if (op_allowed_at(op, LEVEL_EXECUTORCH) || schema->arg_count != 1)
      continue;
    char text[256];
    snprintf(text, sizeof text,
             "graph @f level(executorch) {\n %%0: f32[2, 2] = input none\n"
             " %%1: f32[2, 2] = " SV_FMT "(%%0)\n output %%1\n}\n",
             SV_ARG(schema->full));
    check_text(text, "' is not allowed at level executorch");
    tried++;
  }
  assert_true(tried > 0);
}

#define PLANNED(arenas, body) "graph @f level(executorch) {\n  arenas [0, " arenas "]\n" body "}\n"

static const struct {
  const char *text, *message;
} plans[] = {
    {PLANNED("64",
             "%0: f32[4]@1+0:16 = input \"x\" %1: f32[4]@1+16:16 = aten::relu(%0) output %1\n"),
     ""},
    /* Not planned yet: no arenas. */
    {"graph @f level(executorch) { %0: f32[4] = input \"x\" %1: f32[4] = aten::relu(%0) output %1 "
     "}",
     ""},
    /* The memory of inputs and outputs can be the host's. */
    {PLANNED("64", "%0: f32[4] = input \"x\" %1: f32[4]@1+0:16 = aten::relu(%0)\n"
                   "%2: f32[4] = aten::neg(%1) output %2\n"),
     ""},
    {PLANNED("64", "%0: f32[4]@1+0:16 = input \"x\" %1: f32[4] = aten::relu(%0)\n"
                   "%2: f32[4]@1+16:16 = aten::neg(%1) output %2\n"),
     "result 0 has no place in memory"},
    {PLANNED("64", "%0: f32[4]@2+0:16 = input \"x\" output %0\n"),
     "an arena that the program does not have"},
    {PLANNED("64", "%0: f32[4]@0+0:16 = input \"x\" output %0\n"),
     "an arena that the program does not have"},
    {PLANNED("64", "%0: f32[4]@1+8:16 = input \"x\" output %0\n"), "is not aligned to 16 bytes"},
    {PLANNED("64", "%0: f32[4]@1+64:16 = input \"x\" output %0\n"), "reaches beyond its arena"},
    {PLANNED("64", "%0: f32[4]@1+18446744073709551600:32 = input \"x\" output %0\n"),
     "reaches beyond its arena"},
    {PLANNED("64", "%0: f32[4]@1+0:12 = input \"x\" output %0\n"),
     "is too small for its type, of "},
    /* The same place while the other is still needed. */
    {PLANNED("64", "%0: f32[4]@1+0:16 = input \"x\" %1: f32[4]@1+16:16 = input \"y\"\n"
                   "%2: f32[4]@1+0:16 = aten::relu(%1) %3: f32[4]@1+32:16 = aten::add.Tensor(%0, "
                   "%2) output %3\n"),
     "overlaps that of input 0 (16 bytes at 0), still in use"},
    {PLANNED("64", "%0: f32[4]@1+0:16 = input \"x\" %1: f32[4]@1+16:16 = aten::relu(%0)\n"
                   "%2: f32[8]@1+16:32 = aten::cat([%1, %1]) output %2\n"),
     "overlaps that of result 0 of aten::relu (16 bytes at 16), still in use"},
    {PLANNED("96", "%0: f32[4]@1+16:16 = input \"x\" %1: f32[12]@1+0:48 = aten::cat([%0, %0, %0]) "
                   "output %1\n"),
     "overlaps that of input 0 (16 bytes at 16)"},
    /* Dead values give their place away. */
    {PLANNED(
         "64",
         "%0: f32[4]@1+0:16 = input \"x\" %1: f32[4]@1+16:16 = aten::abs(%0)\n"
         "%2: f32[8]@1+32:32 = aten::cat([%1, %1]) %3: f32[8]@1+0:32 = aten::abs(%2) output %3\n"),
     ""},
    /* relu may write over its operand when nobody needs that later. */
    {PLANNED("64", "%0: f32[4]@1+0:16 = input \"x\" %1: f32[4]@%0 = aten::relu(%0) output %1\n"),
     ""},
    {PLANNED("64",
             "%0: f32[4]@1+0:16 = input \"x\" %1: f32[4]@1+0:16 = aten::relu(%0) output %1\n"),
     ""},
    {PLANNED("64",
             "%0: f32[4]@1+0:16 = input \"x\" %1: f32[4]@%0 = aten::relu(%0) output %1, %0\n"),
     "overlaps that of input 0"},
    {PLANNED("64",
             "%0: f32[4]@1+0:16 = input \"x\" %1: f32[4]@1+0:16 = aten::relu(%0) output %1, %0\n"),
     "overlaps that of input 0"},
    /* flip may not. */
    {PLANNED("64",
             "%0: f32[4]@1+0:16 = input \"x\" %1: f32[4]@%0 = aten::flip(%0, [0]) output %1\n"),
     "overlaps that of input 0"},
    {PLANNED("64",
             "%0: f32[4]@1+0:16 = input \"x\" %1: f32[4]@1+0:16 = aten::flip(%0, [0]) output %1\n"),
     "overlaps that of input 0"},
    /* A view lives in its base, and keeps it alive. */
    {PLANNED("64", "%0: f32[4]@1+0:16 = input \"x\" %1: f32[2, 2]@%0 = aten::view_copy(%0, [2, 2]) "
                   "output %1, %0\n"),
     ""},
    {PLANNED("64",
             "%0: f32[4]@1+0:16 = input \"x\" %1: f32[2, 2]@1+0:16 = aten::view_copy(%0, [2, 2])\n"
             "%2: f32[4]@1+16:16 = aten::abs(%0) output %1, %2\n"),
     ""},
    {PLANNED(
         "64",
         "%0: f32[4]@1+0:16 = input \"x\" %1: f32[2, 2]@%0 = aten::view_copy(%0, [2, 2])\n"
         "%2: f32[4]@1+16:16 = aten::abs(%0) %3: f32[4]@1+0:16 = aten::abs(%2) output %1, %3\n"),
     "overlaps that of input 0"},
    /* Writing over the base of a view that is used later. */
    {PLANNED("64",
             "%0: f32[4]@1+0:16 = input \"x\" %1: f32[2, 2]@%0 = aten::view_copy(%0, [2, 2])\n"
             "%2: f32[4]@%0 = aten::relu(%0) output %1, %2\n"),
     "overlaps that of input 0"},
    /* Views of constants and empty tensors take no room. */
    {PLANNED("64", "%0: f32[4]@1+0:16 = input \"x\" %1: f32[4] = const [1, 2, 3, 4]\n"
                   "%2: f32[2, 2] = aten::view_copy(%1, [2, 2]) output %0, %2\n"),
     ""},
    {PLANNED("16",
             "%0: f32[4]@1+0:16 = input \"x\" %1: f32[0]@1+0:0 = input \"e\" output %0, %1\n"),
     ""},
    /* Two results of one node. */
    {PLANNED("96", "%0: f32[4]@1+0:16 = input \"x\" %1: f32[]@1+16:16, %2: i64[]@1+16:16 = "
                   "aten::max.dim(%0, 0)\n"
                   "output %1, %2\n"),
     "overlaps that of result 0 of aten::max.dim"},
    /* Symbolic sizes count with their bound. */
    {"graph @f level(executorch) { sym s0 \"n\" in [1, 8] arenas [0, 64] %0: f32[s0]@1+0:16 = "
     "input \"x\" output %0 }",
     "is too small for its type, of "},
};

static void test_plans(void **state) {
  for (size_t i = 0; i < COUNT_OF(plans); i++)
    check_text(plans[i].text, plans[i].message);
}

/* --- kernels --- */

static const struct {
  const char *text;
  Status status;
  const char *message;
} kernels[] = {
    {"%0: f32[4] = input \"x\" %1: f32[4] = aten::relu(%0) output %1", STATUS_OK, ""},
    {"%0: f32[4] = input \"x\" %1: bool[4] = aten::logical_not(%0) output %1", STATUS_OK, ""},
    {"%0: u16[4] = input \"x\" %1: u16[2, 2] = aten::view_copy(%0, [2, 2]) output %1", STATUS_OK,
     ""},
    {"%0: i64[4] = input \"x\" %1: f16[4] = input \"y\"\n"
     "%2: f16[4] = aten::index_select(%1, 0, %0) output %2",
     STATUS_OK, ""},
    {"%0: bool[2, 2] = input \"x\" %1: bool[2, 2] = aten::mm(%0, %0) loc(\"MatMul_3\", \"MatMul\", "
     "3) output %1",
     STATUS_UNSUPPORTED, "kernel 'aten::mm.out' does not take element type bool (operand self)"},
};

static void test_kernels(void **state) {
  for (size_t i = 0; i < COUNT_OF(kernels); i++) {
    Sample s;
    char text[512];
    snprintf(text, sizeof text, "graph @f level(edge) {\n%s\n}\n", kernels[i].text);
    sample_parse(&s, text);
    assert_int_equal(graph_verify_kernels(s.g), kernels[i].status);
    if (!strstr(sample_messages(&s), kernels[i].message))
      fail_msg("'%s' is not in\n%s", kernels[i].message, sample_messages(&s));
    if (kernels[i].status != STATUS_OK) {
      assert_contains(sample_messages(&s), "at node 'MatMul_3' (MatMul, node 3)");
      assert_contains(sample_messages(&s),
                      "note: it takes u8, i8, i16, i32, i64, f16, f32, f64, bf16");
    }
    sample_release(&s);
  }
}

/* An op that only stands at level aten has no kernel. */
static void test_no_kernel(void **state) {
  Sample s;
  sample_parse(&s, "graph @f level(aten) {\n"
                   "  %0: f32[4] = input \"x\"\n"
                   "  %1: f32[4] = aten::silu(%0) loc(\"Swish_1\", \"Swish\", 1)\n"
                   "  %2: f32[4] = aten::mish(%1)\n"
                   "  output %2\n"
                   "}\n");
  assert_int_equal(graph_verify_kernels(s.g), STATUS_UNSUPPORTED);
  assert_contains(sample_messages(&s), "error[E0501]: the runtime has no kernel for 'aten::silu'");
  assert_contains(sample_messages(&s), "at node 'Swish_1' (Swish, node 1)");
  assert_contains(sample_messages(&s), "the runtime has no kernel for 'aten::mish'");
  sample_release(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_damage),    cmocka_unit_test(test_message),
      cmocka_unit_test(test_no_change), cmocka_unit_test(test_faults_are_bounded),
      cmocka_unit_test(test_levels),    cmocka_unit_test(test_plans),
      cmocka_unit_test(test_kernels),   cmocka_unit_test(test_no_kernel),
      cmocka_unit_test(test_changed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
