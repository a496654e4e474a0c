/* The demo backend of ExecuTorch's tutorial as a plug-in: it takes mm, add and sin on f32, and its
 * code is a text of instructions.
 *
 *   etc-demo 3                 three inputs, values 0, 1 and 2
 *   mm 0 1                     value 3
 *   add 3 2                    value 4
 *   out 4
 */
#include <etc/plugin.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "support/text.h"

#define ID "BackendWithCompilerDemo"
enum { VALUES_MAX = 256, SET_OPS = 0, SET_SKIP, SET_MAX_VALUE, SET_NOTE };

/* --- the partitioner --- */

static bool knows(OpId op) { return op == OP_MM || op == OP_ADD_TENSOR || op == OP_SIN; }

static bool is_plain(const Graph *g, ValueId v) {
  const Type *t = value_type(g, v);
  return t->kind == TYPE_TENSOR && t->dtype == DTYPE_F32 && t->order == ORDER_CONTIGUOUS &&
         type_is_static(t);
}

/* NULL, or the rule that refuses the node. */
static const char *refuse(const BackendContext *c, const Graph *g, NodeId n, Refusal *out) {
  *out = (Refusal){.message = "", .advice = ""};
  if (!knows(node_cget(g, n)->op)) {
    out->message = "the op is not mm, add or sin";
    return out->rule = "op";
  }
  if (c->settings[SET_OPS].size && !selection_of_node(c->settings[SET_OPS], g, n).size) {
    out->message = "it is not among 'ops'";
    return out->rule = "setting-ops";
  }
  if (selection_of_node(c->settings[SET_SKIP], g, n).size) {
    out->message = "it is among 'skip'";
    return out->rule = "setting-skip";
  }
  ValueId result = node_result(g, n, 0);
  if (!is_plain(g, result)) {
    out->message = "results are f32 with fixed sizes";
    return out->rule = "type";
  }
  for (uint32_t i = 0; i < (node_cget(g, n)->op == OP_SIN ? 1u : 2u); i++) {
    ValueId v = node_value(g, n, i);
    bool same =
        node_cget(g, n)->op == OP_MM || value_cget(g, v)->type == value_cget(g, result)->type;
    if (value_is_const(g, v) || !is_plain(g, v) || !same) {
      out->message = "operands are f32 of the result's shape, and no constants";
      out->advice = "make the constant an input";
      return out->rule = "operand";
    }
  }
  if (node_cget(g, n)->op == OP_ADD_TENSOR && node_scalar(g, n, 2) != 1) {
    out->message = "alpha is 1";
    return out->rule = "alpha";
  }
  return NULL;
}

/* Nodes that follow each other are one partition. */
static Status partition(BackendContext *c, Graph *g) {
  uint32_t tag = 0;
  bool open = false;
  for (FOR_NODES(g, n)) {
    bool taken = !refuse(c, g, n, &c->refusals[n]);
    tag += taken && !open;
    g->nodes[n].tag = taken ? tag : 0;
    open = taken;
  }
  return STATUS_OK;
}

/* --- the code --- */

typedef struct Numbers {
  ValueId values[VALUES_MAX];
  uint32_t count;
} Numbers;

static uint32_t number_of(const Numbers *m, ValueId v) {
  uint32_t i = 0;
  while (i < m->count && m->values[i] != v)
    i++;
  return i;
}

static bool is_inside(const Graph *g, const Partition *part, ValueId v) {
  NodeId def = value_def(g, v);
  return def && g->nodes[def].tag == g->nodes[part->nodes[0]].tag;
}

static void find_inputs(const Graph *g, const Partition *part, Numbers *m) {
  for (uint32_t i = 0; i < part->node_count; i++)
    FOR_OPERANDS(g, part->nodes[i], v, {
      if (m->count < VALUES_MAX && !is_inside(g, part, v) && number_of(m, v) == m->count)
        m->values[m->count++] = v;
    })
}

static void write_node(const Graph *g, NodeId n, Numbers *m, StrBuf *text) {
  OpId op = node_cget(g, n)->op;
  strbuf_printf(text, "%s %u",
                op == OP_MM    ? "mm"
                : op == OP_SIN ? "sin"
                               : "add",
                number_of(m, node_value(g, n, 0)));
  if (op != OP_SIN)
    strbuf_printf(text, " %u", number_of(m, node_value(g, n, 1)));
  strbuf_append_char(text, '\n');
  if (m->count < VALUES_MAX)
    m->values[m->count++] = node_result(g, n, 0);
}

static Status preprocess(BackendContext *c, Graph *g, const Partition *part, DelegateCode *code) {
  Numbers *m = ARENA_NEW(c->scratch, Numbers);
  StrBuf text = {0};
  find_inputs(g, part, m);
  uint32_t inputs = m->count;
  if (inputs + part->node_count >= VALUES_MAX)
    return diag_report(c->sink, DIAG_TOO_LARGE, DIAG_NOWHERE, "the demo has %d values at most",
                       VALUES_MAX);
  strbuf_printf(&text, "etc-demo %u\n", inputs);
  for (uint32_t i = 0; i < part->node_count; i++)
    write_node(g, part->nodes[i], m, &text);
  for (uint32_t i = 0; i < part->output_count; i++)
    strbuf_printf(&text, "out %u\n", number_of(m, part->outputs[i]));
  DelegateSpec *specs = ARENA_ARRAY(c->scratch, DelegateSpec, 2);
  uint8_t *value = arena_alloc(c->scratch, 1);
  uint64_t number;
  if (text_parse_u64(c->settings[SET_MAX_VALUE], &number)) {
    *value = (uint8_t)number;
    specs[code->spec_count++] = (DelegateSpec){SV("max_value"), value, 1};
  }
  StrView note = c->settings[SET_NOTE];
  if (note.size)
    specs[code->spec_count++] =
        (DelegateSpec){SV("note"), (const uint8_t *)note.data, (uint32_t)note.size};
  code->blob = (const uint8_t *)arena_strdup(&g->arena, (StrView){strbuf_cstr(&text), text.size});
  code->blob_size = text.size;
  code->inputs = m->values;
  code->input_count = inputs;
  code->specs = specs;
  strbuf_release(&text);
  return STATUS_OK;
}

/* --- the reader: any bytes may come --- */

typedef struct Step {
  char op; /* m, a, s */
  uint32_t a, b;
} Step;

typedef struct Code {
  Step steps[VALUES_MAX];
  uint32_t inputs, step_count, outputs[VALUES_MAX], output_count;
} Code;

/* One line after its word; numbers are values that are there. */
static const char *read_line(Code *code, const char *line) {
  unsigned a, b;
  char end;
  uint32_t values = code->inputs + code->step_count;
  if (values >= VALUES_MAX || code->output_count >= VALUES_MAX)
    return "there are too many lines";
  if (sscanf(line, "out %3u%c", &a, &end) == 1 && a < values) {
    code->outputs[code->output_count++] = a;
    return NULL;
  }
  if (code->output_count)
    return "there is an instruction behind the outputs";
  if (sscanf(line, "sin %3u%c", &a, &end) == 1 && a < values)
    code->steps[code->step_count++] = (Step){'s', a, a};
  else if (sscanf(line, "mm %3u %3u%c", &a, &b, &end) == 2 && a < values && b < values)
    code->steps[code->step_count++] = (Step){'m', a, b};
  else if (sscanf(line, "add %3u %3u%c", &a, &b, &end) == 2 && a < values && b < values)
    code->steps[code->step_count++] = (Step){'a', a, b};
  else
    return "a line is no instruction";
  return NULL;
}

static const char *read_code(const uint8_t *blob, uint64_t size, Arena *arena, Code **out) {
  if (size > 64 * VALUES_MAX || memchr(blob, 0, (size_t)size) || !size || blob[size - 1] != '\n')
    return "it is not text of lines";
  char *text = arena_strdup(arena, (StrView){(const char *)blob, (size_t)size});
  Code *code = *out = ARENA_NEW(arena, Code);
  char *next = strchr(text, '\n');
  *next = 0;
  char end;
  if (sscanf(text, "etc-demo %3u%c", &code->inputs, &end) != 1 || code->inputs >= VALUES_MAX)
    return "it does not begin with 'etc-demo' and the number of inputs";
  for (char *line = next + 1; *line; line = next + 1) {
    next = strchr(line, '\n');
    *next = 0;
    const char *fault = read_line(code, line);
    if (fault)
      return fault;
  }
  return code->output_count ? NULL : "it has no outputs";
}

static const char *needs(const uint8_t *blob, uint64_t size, Arena *arena, DelegateNeeds *out) {
  Code *code;
  const char *fault = read_code(blob, size, arena, &code);
  *out = (DelegateNeeds){.input_count = fault ? 0 : code->inputs};
  return fault;
}

/* The shapes of all values, in their order. */
static const char *find_shapes(const DelegateCall *call, const Code *code, Tensor *values) {
  if (call->input_count != code->inputs || call->output_count != code->output_count)
    return "it has another number of inputs or outputs";
  for (uint32_t i = 0; i < code->inputs; i++)
    values[i] = call->inputs[i];
  for (uint32_t i = 0; i < code->inputs; i++)
    if (values[i].dtype != DTYPE_F32)
      return "an input is not f32";
  for (uint32_t i = 0; i < code->step_count; i++) {
    const Step *s = &code->steps[i];
    const Tensor *a = &values[s->a], *b = &values[s->b];
    Tensor *to = &values[code->inputs + i];
    *to = *a;
    if (s->op == 'm' && (a->rank != 2 || b->rank != 2 || a->dims[1] != b->dims[0]))
      return "the operands of mm do not fit";
    if (s->op == 'm')
      to->dims[1] = b->dims[1];
    if (s->op == 'a' &&
        (a->rank != b->rank || memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) != 0))
      return "the operands of add have other shapes";
  }
  for (uint32_t i = 0; i < code->output_count; i++) {
    const Tensor *from = &values[code->outputs[i]], *to = &call->outputs[i];
    if (from->dtype != to->dtype || from->rank != to->rank ||
        memcmp(from->dims, to->dims, from->rank * sizeof *from->dims) != 0)
      return "an output has another shape";
  }
  return NULL;
}

static const char *check(const DelegateCall *call, Arena *arena) {
  Code *code;
  const char *fault = read_code(call->blob, call->blob_size, arena, &code);
  return fault ? fault : find_shapes(call, code, ARENA_ARRAY(arena, Tensor, VALUES_MAX));
}

static void multiply(const Tensor *a, const Tensor *b, Tensor *to) {
  const float *x = a->data, *y = b->data;
  float *z = to->data;
  for (int64_t i = 0; i < to->dims[0]; i++)
    for (int64_t j = 0; j < to->dims[1]; j++) {
      double sum = 0;
      for (int64_t k = 0; k < a->dims[1]; k++)
        sum += (double)x[i * a->dims[1] + k] * y[k * b->dims[1] + j];
      z[i * to->dims[1] + j] = (float)sum;
    }
}

static const char *run(const DelegateCall *call, Arena *arena) {
  Code *code;
  Tensor *values = ARENA_ARRAY(arena, Tensor, VALUES_MAX);
  const char *fault = read_code(call->blob, call->blob_size, arena, &code);
  if (!fault)
    fault = find_shapes(call, code, values);
  for (uint32_t i = 0; !fault && i < code->step_count; i++) {
    const Step *s = &code->steps[i];
    Tensor *to = &values[code->inputs + i];
    uint64_t bytes = tensor_bytes(to);
    if (bytes > call->memory)
      return "there is no memory for its values";
    to->data = arena_alloc(arena, (size_t)bytes + 1);
    const float *x = values[s->a].data, *y = values[s->b].data;
    float *z = to->data;
    if (s->op == 'm')
      multiply(&values[s->a], &values[s->b], to);
    for (int64_t k = 0; s->op != 'm' && k < tensor_numel(to); k++)
      z[k] = s->op == 's' ? sinf(x[k]) : x[k] + y[k];
  }
  for (uint32_t i = 0; !fault && i < code->output_count; i++)
    memcpy(call->outputs[i].data, values[code->outputs[i]].data,
           (size_t)tensor_bytes(&call->outputs[i]));
  return fault;
}

static const char *describe(const uint8_t *blob, uint64_t size, Arena *arena,
                            DelegateFigures *out) {
  Code *code;
  const char *fault = read_code(blob, size, arena, &code);
  *out = (DelegateFigures){0};
  if (fault)
    return fault;
  static const char *const names[] = {"mm", "add", "sin"};
  DelegateCount *counts = ARENA_ARRAY(arena, DelegateCount, COUNT_OF(names));
  for (uint32_t k = 0; k < COUNT_OF(names); k++) {
    DelegateCount count = {names[k], "fp32", 0};
    for (uint32_t i = 0; i < code->step_count; i++)
      count.count += code->steps[i].op == names[k][0];
    if (count.count)
      counts[out->kind_count++] = count;
  }
  out->nodes = counts;
  out->node_count = code->step_count;
  return NULL;
}

/* It writes its outputs when it has read all inputs. */
static bool may_overwrite(const uint8_t *blob, uint64_t size, uint32_t input, uint32_t output,
                          Arena *arena) {
  (void)blob, (void)size, (void)input, (void)output, (void)arena;
  return true;
}

/* --- the rows --- */

static const BackendSetting settings[] = {
    [SET_OPS] = {"ops", "LIST", "only these ops and nodes", SETTING_NODES},
    [SET_SKIP] = {"skip", "LIST", "never these ops and nodes", SETTING_NODES},
    [SET_MAX_VALUE] = {"max_value", "N", "a compile spec of one byte", SETTING_NUMBER},
    [SET_NOTE] = {"note", "TEXT", "a compile spec of text", SETTING_TEXT},
    {NULL},
};
static const Backend demo = {.name = "demo",
                             .id = ID,
                             .summary = "the tutorial's demo: mm, add and sin as text",
                             .settings = settings,
                             .knows = knows,
                             .partition = partition,
                             .preprocess = preprocess};
static const DelegateReader reader = {.id = ID,
                                      .needs = needs,
                                      .check = check,
                                      .run = run,
                                      .describe = describe,
                                      .may_overwrite = may_overwrite};
static const Backend *const backends_of_it[] = {&demo, NULL};
static const DelegateReader *const readers_of_it[] = {&reader, NULL};
ETC_PLUGIN = {
    .abi = ETC_PLUGIN_ABI, .name = "demo", .backends = backends_of_it, .readers = readers_of_it};
