/* The graph after a stage: nodes with their operands, types, arguments and constants; and the
 * places in the model that they come from. */
#include "ir/text.h"
#include "ops/delegate.h"
#include "ops/work.h"
#include "report/internal.h"

enum { CHAIN_MAX = 64 }; /* of locations: a file may make longer ones, or circles */

void report_name(JsonWriter *w, const char *key, const Graph *g, NameId name) {
  if (name)
    json_named_string(w, key, intern_get(&g->ctx->names, name));
}

/* Dims by the names that the model has for them. */
static void append_tensor(const Graph *g, const Type *t, StrBuf *out) {
  strbuf_append(out, sv_from(dtype_name((DType)t->dtype)));
  strbuf_append_char(out, '[');
  for (uint32_t i = 0; i < t->rank; i++) {
    strbuf_append(out, i ? SV(", ") : SV(""));
    sym_print_named(&g->syms, t->dims[i], out);
  }
  strbuf_append(out, t->order == ORDER_CHANNELS_LAST ? SV("] channels_last") : SV("]"));
}

void report_type(JsonWriter *w, const Graph *g, const Type *t) {
  StrBuf text = {0};
  if (t->kind == TYPE_TENSOR)
    append_tensor(g, t, &text);
  else
    type_print(g, t, &text);
  json_string(w, (StrView){strbuf_cstr(&text), text.size});
  strbuf_release(&text);
}

/* --- arguments --- */

static void append_element(const Graph *g, const Arg *arg, uint32_t i, StrBuf *out) {
  if (arg->kind == ARG_INTS)
    sym_print_named(&g->syms, g->ints[arg->at + i], out);
  else
    strbuf_append_double(out, g->floats[arg->at + i]);
}

/* An argument that is no operand, as people write it; nothing for one that is absent. */
static void append_arg(const Graph *g, const Arg *arg, StrBuf *out) {
  switch ((ArgKind)arg->kind) {
  case ARG_NONE:
  case ARG_VALUE:
  case ARG_VALUES:
    return;
  case ARG_INT:
    sym_print_named(&g->syms, arg->i, out);
    return;
  case ARG_FLOAT:
    strbuf_append_double(out, arg->f);
    return;
  case ARG_BOOL:
    strbuf_append(out, arg->i ? SV("true") : SV("false"));
    return;
  case ARG_STR:
    strbuf_append(out, intern_get(&g->ctx->names, (NameId)arg->i));
    return;
  case ARG_DTYPE:
    strbuf_append(out, sv_from(dtype_name((DType)arg->i)));
    return;
  case ARG_INTS:
  case ARG_FLOATS:
    for (uint32_t i = 0; i < arg->count; i++) {
      strbuf_append(out, i ? SV(", ") : SV(""));
      append_element(g, arg, i, out);
    }
  }
}

/* Of delegates, too, there is more to say than the long lists of their call. */
static void write_args(JsonWriter *w, const Graph *g, NodeId n, StrBuf *text) {
  const OpSchema *schema = op_schema(g->nodes[n].op);
  bool any = false;
  for (uint32_t i = 0; i < g->nodes[n].arg_count && !op_has_trait(g->nodes[n].op, OP_DELEGATE);
       i++) {
    char name[64];
    strbuf_clear(text);
    append_arg(g, node_arg(g, n, i), text);
    if (!text->size || schema->args[i].name.size >= sizeof name)
      continue;
    memcpy(name, schema->args[i].name.data, schema->args[i].name.size);
    name[schema->args[i].name.size] = '\0';
    if (!any) {
      json_named_object(w, "args");
    }
    any = true;
    json_named_string(w, name, (StrView){text->data, text->size});
  }
  if (any)
    json_close_object(w);
}

/* --- nodes --- */

/* By NodeId: the number of the node in the report, and of the delegate that a call is one of. */
typedef struct Numbers {
  Arena arena;
  uint32_t *node;
  const uint32_t *delegate;
} Numbers;

static uint32_t number_of(const Graph *g, const Numbers *numbers, ValueId v) {
  const Value *value = value_cget(g, v);
  if (value->kind == VALUE_RESULT)
    return numbers->node[value->def];
  return value->kind == VALUE_STATE ? g->input_count + value->def : value->def;
}

static void write_inputs(JsonWriter *w, const Graph *g, const Numbers *numbers, NodeId n) {
  bool any = false;
  FOR_OPERANDS(g, n, v, {
    if (!v || value_is_const(g, v))
      continue;
    if (!any) {
      json_named_array(w, "in");
    }
    any = true;
    json_uint(w, number_of(g, numbers, v));
  })
  if (any)
    json_close_array(w);
}

static void write_weights(JsonWriter *w, const Graph *g, NodeId n) {
  bool any = false;
  if (op_has_trait(g->nodes[n].op, OP_DELEGATE))
    return;
  FOR_OPERANDS(g, n, v, {
    if (!v || !value_is_const(g, v))
      continue;
    if (!any) {
      json_named_array(w, "weights");
    }
    any = true;
    report_constant(w, g, v, 0, 0);
  })
  if (any)
    json_close_array(w);
}

static void write_results(JsonWriter *w, const Graph *g, NodeId n) {
  const Node *node = node_cget(g, n);
  if (!node->result_count)
    return;
  json_named_array(w, "out");
  for (uint32_t i = 0; i < node->result_count; i++)
    report_type(w, g, value_type(g, node_result(g, n, i)));
  json_close_array(w);
  report_name(w, "name", g, value_cget(g, node->first_result)->name);
}

static void write_node(JsonWriter *w, const Graph *g, const Numbers *numbers, NodeId n,
                       StrBuf *text) {
  const Node *node = node_cget(g, n);
  uint64_t work = node_work(g, n);
  json_open_object(w);
  json_named_string(w, "op", op_schema(node->op)->full);
  if (node->loc)
    json_named_uint(w, "place", node->loc);
  if (numbers->delegate[n])
    json_named_uint(w, "delegate", numbers->delegate[n]);
  if (work)
    json_named_uint(w, "work", work);
  write_inputs(w, g, numbers, n);
  write_results(w, g, n);
  write_args(w, g, n, text);
  write_weights(w, g, n);
  json_close_object(w);
}

static void write_source(JsonWriter *w, const Graph *g, const char *op, ValueId v) {
  json_open_object(w);
  json_named_string(w, "op", sv_from(op));
  report_name(w, "name", g, value_cget(g, v)->name);
  json_named_array(w, "out");
  report_type(w, g, value_type(g, v));
  json_close_array(w);
  json_close_object(w);
}

static void write_output(JsonWriter *w, const Graph *g, const Numbers *numbers, uint32_t i) {
  ValueId v = graph_output(g, i);
  json_open_object(w);
  json_named_string(w, "op", SV("output"));
  report_name(w, "name", g, graph_output_name(g, i));
  if (!value_is_const(g, v)) {
    json_named_array(w, "in");
    json_uint(w, number_of(g, numbers, v));
    json_close_array(w);
  }
  json_named_array(w, "out");
  report_type(w, g, value_type(g, v));
  json_close_array(w);
  json_close_object(w);
}

void report_nodes(JsonWriter *w, const Graph *g) {
  Numbers numbers = {.delegate = NULL};
  uint32_t next = report_first_node(g);
  StrBuf text = {0};
  numbers.delegate = delegate_numbers(g, &numbers.arena, NULL);
  numbers.node = ARENA_ARRAY(&numbers.arena, uint32_t, g->node_count);
  for (FOR_NODES(g, n))
    numbers.node[n] = next++;
  json_open_array(w);
  for (uint32_t i = 0; i < g->input_count; i++)
    write_source(w, g, "input", g->inputs[i]);
  for (uint32_t i = 0; i < g->state_count; i++)
    write_source(w, g, "state", g->states[i].value);
  for (FOR_NODES(g, n))
    write_node(w, g, &numbers, n, &text);
  for (uint32_t i = 0; i < graph_output_count(g); i++)
    write_output(w, g, &numbers, i);
  json_close_array(w);
  arena_release(&numbers.arena);
  strbuf_release(&text);
}

/* --- places --- */

/* What became of the nodes of a place. */
typedef struct Fate {
  uint32_t delegate; /* the first, from 1; 0: none */
  uint32_t kernels;  /* calls */
  uint32_t seen;     /* the delegate or kernel that was counted last */
} Fate;

/* Marks the place and those that it was made from. */
static void mark(const Graph *g, Fate *fates, LocId loc, uint32_t delegate, uint32_t number) {
  for (uint32_t i = 0; loc && loc < g->loc_count && i < CHAIN_MAX; i++, loc = g->locs[loc].from) {
    Fate *f = &fates[loc];
    if (f->seen == number)
      continue;
    f->seen = number;
    if (!delegate)
      f->kernels++;
    else if (!f->delegate)
      f->delegate = delegate;
  }
}

static Fate *find_fates(const Graph *g, Arena *scratch) {
  Fate *fates = ARENA_ARRAY(scratch, Fate, (size_t)g->loc_count + 1);
  const uint32_t *delegates = delegate_numbers(g, scratch, NULL);
  uint32_t number = 0;
  for (FOR_NODES(g, n)) {
    const DelegateOrigin *origin = delegates[n] ? delegate_origin(g, n) : NULL;
    number++;
    mark(g, fates, g->nodes[n].loc, delegates[n], number);
    for (uint32_t i = 0; origin && i < origin->count; i++)
      mark(g, fates, origin->locs[i], delegates[n], number);
  }
  return fates;
}

void report_places(JsonWriter *w, const Graph *g, Arena *scratch) {
  const Fate *fates = find_fates(g, scratch);
  json_named_array(w, "places");
  for (LocId i = 0; i < g->loc_count; i++) {
    const Loc *loc = &g->locs[i];
    json_open_object(w);
    report_name(w, "name", g, loc->name);
    report_name(w, "op", g, loc->op_type);
    report_name(w, "scope", g, loc->scope);
    report_name(w, "origin", g, loc->origin);
    if (loc->index >= 0 && loc->op_type)
      json_named_uint(w, "index", (uint64_t)loc->index);
    if (loc->from)
      json_named_uint(w, "from", loc->from);
    if (fates[i].delegate)
      json_named_uint(w, "delegate", fates[i].delegate);
    if (fates[i].kernels)
      json_named_uint(w, "kernels", fates[i].kernels);
    json_close_object(w);
  }
  json_close_array(w);
}
