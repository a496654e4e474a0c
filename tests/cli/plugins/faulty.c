/* A plug-in with one fault, which the environment variable FAULT names; without it, one that is
 * right: a pass, a backend that takes neg, its reader, and a planner. */
#include <etc/plugin.h>

#include <stdlib.h>
#include <unistd.h>

static const char *fault = "";

static bool has(const char *name) { return strcmp(fault, name) == 0; }

/* --- the pass --- */

/* What no check can catch. */
static void end_process(Graph *g) {
  for (FOR_NODES(g, n))
    if (g->nodes[n].op == OP_RELU && has("removes"))
      graph_remove_node(g, n); /* its result is used */
  if (has("exits"))
    exit(0);
  if (has("frees"))
    graph_free(g);
  if (has("name of the graph"))
    g->name = 99999;
}

static void set_outputs(Graph *g, uint32_t count, NameId name, ValueId v) {
  ValueId values[] = {v, v};
  NameId names[] = {name, name};
  graph_set_outputs(g, values, count, names);
}

/* Of callers of the method. */
static void break_signature(Graph *g) {
  ValueId out = graph_output(g, 0);
  NameId name = graph_output_name(g, 0);
  if (has("no outputs"))
    set_outputs(g, 0, name, out);
  if (has("an output twice"))
    set_outputs(g, 2, name, out);
  if (has("name of an output"))
    set_outputs(g, 1, g->values[g->inputs[0]].name, out);
  if (has("name of an input"))
    g->values[g->inputs[0]].name = name;
  if (has("type of an output")) {
    Builder b = builder_make(g, 0, 0);
    set_outputs(g, 1, name, build(&b, OP_GT_SCALAR, A_VAL(out), A_INT(0)));
  }
  if (has("another value")) {
    Builder b = builder_make(g, 0, 0);
    set_outputs(g, 1, name, build(&b, OP_NEG, A_VAL(out)));
  }
  if (has("level of the graph"))
    g->level = LEVEL_ATEN;
}

/* An operand of the first node becomes a constant whose bytes are missing. */
static void lose_constant(Graph *g) {
  ValueId v = node_value(g, g->first, 0);
  const Constant lost = {.size = type_bytes_upper(g, value_type(g, v))};
  node_set_arg(g, g->first, 0, A_VAL(graph_add_constant(g, value_cget(g, v)->type, lost, 0)));
}

static ValueId above_zero(Builder *b, NodeId n) {
  return build(b, OP_GT_SCALAR, A_VAL(node_value(b->g, n, 0)), A_INT(0));
}

static Status exchange(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_RELU, above_zero, "relus"}};
  if (has("type of a rule"))
    return pass_rewrite(p, g, rules, 1);
  end_process(g);
  break_signature(g);
  if (has("constant without bytes"))
    lose_constant(g);
  if (has("fails in silence"))
    return STATUS_INTERNAL;
  if (has("error ignored"))
    (void)!diag_report(p->sink, DIAG_TOO_LARGE, DIAG_NOWHERE, "too large");
  for (FOR_NODES(g, n))
    if (g->nodes[n].op == OP_RELU) {
      g->nodes[n].op = OP_SIGMOID;
      pass_count(p, "nodes", 1);
      if (has("wrong graph"))
        value_set_type(g, node_result(g, n, 0), graph_tensor_type(g, DTYPE_I64, 0, NULL, 0));
    }
  return STATUS_OK;
}

static PassRow pass = {.name = "exchange",
                       .run = exchange,
                       .stage = STAGE_EDGE,
                       .level_in = LEVEL_EDGE,
                       .level_out = LEVEL_EDGE,
                       .summary = "Make sigmoid of relu"};
static const PassRow *passes[] = {&pass, NULL};

/* --- the backend: each neg is a partition; all of them with the fault "dependent" --- */

static bool knows(OpId op) { return op == OP_NEG; }

static Status partition(BackendContext *c, Graph *g) {
  if (has("backend exits"))
    exit(1);
  uint32_t tag = 0;
  if (has("changes in partition"))
    graph_move_before(g, g->first, 0);
  if (has("refusals away")) {
    c->refusals = NULL;
    return STATUS_OK;
  }
  for (FOR_NODES(g, n)) {
    bool taken = knows(g->nodes[n].op);
    if (!taken)
      c->refusals[n] = has("no message")  ? (Refusal){.rule = "op"}
                       : has("no reason") ? (Refusal){.rule = NULL}
                                          : (Refusal){.rule = "op", .message = "the op is not neg"};
    if (taken)
      g->nodes[n].tag = has("number") ? 1000000 : has("dependent") || has("regions") ? 1 : ++tag;
    if (has("control") && op_has_trait(g->nodes[n].op, OP_CONTROL))
      g->nodes[n].tag = 1;
  }
  return STATUS_OK;
}

static Status preprocess(BackendContext *c, Graph *g, const Partition *part, DelegateCode *code) {
  static const uint8_t bytes[] = {'n', 'e', 'g'};
  static const char *const keys[] = {"two words"};
  ValueId *inputs = ARENA_ARRAY(c->scratch, ValueId, 1),
          *data = ARENA_ARRAY(c->scratch, ValueId, 1);
  inputs[0] = has("input unknown")  ? 4711
              : has("input inside") ? node_result(g, part->nodes[0], 0)
                                    : node_value(g, part->nodes[0], 0);
  data[0] = has("key") ? graph_add_constant(g, graph_tensor_type(g, DTYPE_U8, 0, NULL, 0),
                                            (Constant){.data = bytes, .size = 1}, 0)
                       : inputs[0];
  if (has("tags in preprocess"))
    g->nodes[part->nodes[0]].tag = 0;
  if (has("tags of others"))
    g->nodes[g->last].tag = 0;
  if (has("changes in preprocess"))
    graph_move_before(g, g->first, 0);
  static const DelegateSpec spec = {.key = {"level", 5}, .size = 5};
  *code = (DelegateCode){.blob = has("no bytes") ? NULL : bytes,
                         .blob_size = has("code")        ? 2
                                      : has("huge code") ? (uint64_t)1 << 62
                                                         : sizeof bytes,
                         .inputs = inputs,
                         .input_count = has("input missing") ? 0 : 1,
                         .data = data,
                         .keys = keys,
                         .data_count = has("key") || has("data"),
                         .specs = has("spec without bytes") ? &spec : NULL,
                         .transpose_count = has("transposes") ? 3 : 0,
                         .spec_count = has("specs") || has("spec without bytes")};
  return has("refuses") ? diag_report(c->sink, DIAG_TOO_LARGE, DIAG_NOWHERE, "too large")
                        : STATUS_OK;
}

static BackendSetting settings[BACKEND_MAX_SETTINGS + 2] = {
    {"level", "N", "a number", SETTING_NUMBER}};
static const char *wanted[] = {NULL, NULL};
static Backend backend = {.name = "negate",
                          .id = "Negate",
                          .summary = "neg alone",
                          .settings = settings,
                          .passes = wanted,
                          .knows = knows,
                          .partition = partition,
                          .preprocess = preprocess};
static const Backend *backends_of_it[] = {&backend, NULL};

/* --- the reader --- */

static const char *needs(const uint8_t *blob, uint64_t size, Arena *arena, DelegateNeeds *out) {
  static StrView keys[] = {{"weight", 6}, {NULL, 0}};
  (void)arena;
  *out = (DelegateNeeds){.input_count = has("needs inputs") ? 1000000 : 1,
                         .keys = has("needs no keys") ? NULL : keys,
                         .key_count = has("needs no keys")   ? 10
                                      : has("needs no text") ? 2
                                                             : has("needs data")};
  if (has("needs refuses"))
    return "needs() does not like it";
  if (has("needs is silent"))
    return "";
  return size == 3 && memcmp(blob, "neg", 3) == 0 ? NULL : "it is not 'neg'";
}

static const char *check(const DelegateCall *call, Arena *arena) {
  DelegateNeeds needed;
  Tensor *out = &call->outputs[0];
  if (has("check exits"))
    exit(0);
  out->rank = has("check rank") ? 77 : out->rank;
  out->dims[0] = has("check size") ? -99 : out->dims[0];
  return needs(call->blob, call->blob_size, arena, &needed);
}

static const char *run(const DelegateCall *call, Arena *arena) {
  DelegateNeeds needed;
  const char *wrong = needs(call->blob, call->blob_size, arena, &needed);
  if (has("run exits"))
    exit(0);
  if (has("run size"))
    call->outputs[0].dims[0] = 1000;
  if (has("run memory"))
    call->outputs[0].data = NULL;
  if (has("run rank"))
    call->outputs[0].rank = 77;
  if (wrong || has("run size") || has("run rank") || has("run memory"))
    return wrong;
  const float *from = call->inputs[0].data;
  float *to = call->outputs[0].data;
  for (int64_t i = 0; !wrong && i < tensor_numel(&call->inputs[0]); i++)
    to[i] = -from[i];
  return wrong;
}

static const char *describe(const uint8_t *blob, uint64_t size, Arena *arena,
                            DelegateFigures *out) {
  if (has("ends at once"))
    _exit(9);
  static const DelegateCount counts[] = {{"neg", "fp32", 1}};
  DelegateNeeds needed;
  *out = (DelegateFigures){.nodes = has("describe nothing") ? NULL : counts,
                           .kind_count = has("describe nothing") ? 5 : 1,
                           .packed = has("describe memory") ? UINT64_MAX : 0,
                           .node_count = 1};
  return needs(blob, size, arena, &needed);
}

static bool may_overwrite(const uint8_t *blob, uint64_t size, uint32_t input, uint32_t output,
                          Arena *arena) {
  (void)blob, (void)size, (void)input, (void)output, (void)arena;
  return true;
}

static DelegateReader reader = {.id = "Negate",
                                .needs = needs,
                                .check = check,
                                .run = run,
                                .describe = describe,
                                .may_overwrite = may_overwrite};
static const DelegateReader *readers[] = {&reader, NULL};

/* --- the planner: each tensor has a place of its own --- */

static uint64_t place(const PlanProblem *q, Arena *scratch, uint64_t *offsets) {
  (void)scratch;
  uint64_t end = 0;
  for (uint32_t i = 0; i < q->count; i++) {
    offsets[i] = has("overlap") ? 0 : end;
    end += q->spans[i].size;
  }
  if (has("alignment"))
    offsets[0] = 1;
  if (has("proof") && q->proved)
    *q->proved = end + 1;
  return has("outside") ? q->spans[0].size : has("huge") ? UINT64_MAX : end;
}

static Planner planner = {.name = "row", .summary = "One behind the other", .place = place};
static const Planner *planners_of_it[] = {&planner, NULL};

/* --- what is registered --- */

static char abi[80] = ETC_PLUGIN_ABI, name[] = "faulty";

static void break_backend(void) {
  static const char *const unknown = "no_such_pass";
  if (has("backend name"))
    backend.name = "Negate";
  if (has("backend id"))
    backend.id = "";
  if (has("backend function"))
    backend.preprocess = NULL;
  if (has("backend summary"))
    backend.summary = NULL;
  if (has("only what is needed"))
    backend.settings = NULL;
  if (has("backend there"))
    backend.name = "xnnpack";
  if (has("backend portable"))
    backend.name = "portable";
  if (has("backend pass"))
    wanted[0] = unknown;
}

static void break_settings(void) {
  static char letters[BACKEND_MAX_SETTINGS + 1][2];
  for (uint32_t i = 1; i <= BACKEND_MAX_SETTINGS && has("backend settings"); i++) {
    letters[i][0] = (char)('a' + i);
    settings[i] = settings[0];
    settings[i].name = letters[i];
  }
  if (has("backend setting"))
    settings[0].argument = NULL;
  if (has("setting whole"))
    settings[0].name = "whole";
  if (has("setting twice"))
    settings[1] = settings[0];
}

static void break_pass(void) {
  if (has("pass all"))
    pass.name = "all";
  if (has("pass name"))
    pass.name = "a:b";
  if (has("pass name empty"))
    pass.name = "";
  if (has("pass function"))
    pass.run = NULL;
  if (has("pass summary"))
    pass.summary = NULL;
  if (has("pass import"))
    pass.stage = STAGE_IMPORT;
  if (has("pass emit"))
    pass.stage = STAGE_EMIT;
  if (has("pass level"))
    pass.level_out = LEVEL_EXECUTORCH;
  if (has("pass there"))
    pass.name = "canonicalize";
}

/* The variable cannot change: what it points to can. */
__attribute__((constructor)) static void choose(void) {
  fault = getenv("FAULT") ? getenv("FAULT") : "";
  break_backend();
  break_settings();
  break_pass();
  if (has("abi"))
    abi[0] ^= 1;
  if (has("name"))
    name[0] = 0;
  if (has("planner name"))
    planner.name = "Row";
  if (has("planner function"))
    planner.place = NULL;
  if (has("planner there"))
    planner.name = "greedy";
  if (has("reader id"))
    reader.id = "";
  if (has("reader function"))
    reader.run = NULL;
  if (has("only what is needed"))
    reader.may_overwrite = NULL;
  if (has("reader there"))
    reader.id = "XnnpackBackend";
}

ETC_PLUGIN = {.abi = abi,
              .name = name,
              .passes = passes,
              .backends = backends_of_it,
              .readers = readers,
              .planners = planners_of_it};
