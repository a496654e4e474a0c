/* Inputs, states, constants and outputs are nodes of the pictures, too: "v3" is the value 3 of the
 * graph, "n7" its node 7, "out0" its first output. */
#include "ir/picture.h"

#include <stdio.h>

#include "ir/text.h"

/* --- what both formats say --- */

static const char *value_word(ValueKind kind) {
  static const char *const words[] = {
      [VALUE_INPUT] = "input", [VALUE_CONST] = "constant", [VALUE_STATE] = "state"};
  return words[kind];
}

static StrView name_of(const Graph *g, NameId name) { return intern_get(&g->ctx->names, name); }

/* The id of what gives the value, in text. */
static StrView source_id(const Graph *g, ValueId v, char text[16]) {
  NodeId def = value_def(g, v);
  int length = snprintf(text, 16, def ? "n%u" : "v%u", def ? def : v);
  return (StrView){text, (size_t)length};
}

static uint32_t source_output(const Graph *g, ValueId v) {
  return value_def(g, v) ? value_cget(g, v)->result : 0;
}

static void append_type(const Graph *g, ValueId v, StrBuf *out) {
  type_print(g, value_type(g, v), out);
}

/* Whether the picture shows the value as a node of its own. Constants without users are left out.
 */
static bool value_is_source(const Graph *g, ValueId v) {
  ValueKind kind = (ValueKind)value_cget(g, v)->kind;
  return kind == VALUE_INPUT || kind == VALUE_STATE || (kind == VALUE_CONST && first_use(g, v));
}

/* The op without the constants of a delegate's call, of which there are hundreds. */
static bool argument_is_shown(const Graph *g, NodeId n, uint32_t i) {
  ArgKind kind = (ArgKind)node_arg(g, n, i)->kind;
  return kind != ARG_NONE && kind != ARG_VALUE && kind != ARG_VALUES;
}

/* --- DOT --- */

/* Within a quoted label of a record: braces, bars and angle brackets would make fields. A quote is
 * an entity, since Netron ends a string at each. */
static void append_field(StrBuf *out, StrView text) {
  StrBuf printable = {0};
  strbuf_append_printable(&printable, text);
  for (size_t i = 0; i < printable.size; i++) {
    char c = printable.data[i];
    if (c == '"') {
      strbuf_append(out, SV("&quot;"));
      continue;
    }
    if (strchr("{}|<>\\", c))
      strbuf_append_char(out, '\\');
    strbuf_append_char(out, c);
  }
  strbuf_release(&printable);
}

static void append_buffer(StrBuf *out, StrBuf *field) {
  append_field(out, (StrView){field->data, field->size});
  strbuf_clear(field);
}

static void dot_value(const Graph *g, ValueId v, StrBuf *out) {
  const Value *value = value_cget(g, v);
  StrBuf field = {0};
  strbuf_printf(out, "  v%u [label=\"{v%u|op_code=", v, v);
  append_type(g, v, &field);
  if (value->kind == VALUE_INPUT) { /* Netron shows attributes, and the type of parameters alone */
    strbuf_append(out, SV("placeholder\\l|type: "));
    append_buffer(out, &field);
  } else {
    strbuf_append(out, SV("get_parameter "));
    append_buffer(out, &field);
    strbuf_append(out, SV("\\l|kind: "));
    strbuf_append(out, sv_from(value_word((ValueKind)value->kind)));
  }
  strbuf_append(out, SV("\\lname: "));
  append_field(out, name_of(g, value->name));
  strbuf_printf(out, "\\l}\", fillcolor=\"%s\"];\n",
                value->kind == VALUE_CONST ? "#eeeeee" : "#cfe8cf");
  strbuf_release(&field);
}

static void dot_node(const Graph *g, NodeId n, StrBuf *out) {
  const Node *node = node_cget(g, n);
  const OpSchema *schema = op_schema(node->op);
  StrBuf field = {0};
  strbuf_printf(out, "  n%u [label=\"{n%u|op_code=call_function\\l|", n, n);
  append_field(out, schema->full);
  strbuf_append(out, SV("\\l"));
  for (uint32_t i = 0; i < node->arg_count; i++) {
    if (!argument_is_shown(g, n, i))
      continue;
    append_field(out, schema->args[i].name);
    strbuf_append(out, SV(": "));
    arg_print(g, node_arg(g, n, i), &field);
    append_buffer(out, &field);
    strbuf_append(out, SV("\\l"));
  }
  if (node->loc && g->locs[node->loc].name) {
    strbuf_append(out, SV("|name: "));
    append_field(out, name_of(g, g->locs[node->loc].name));
    strbuf_append(out, SV("\\l"));
  }
  strbuf_append(out, node->op == OP_EXECUTORCH_CALL_DELEGATE
                         ? SV("}\", fillcolor=\"#f6d9a8\"];\n")
                         : SV("}\", fillcolor=\"#d6e4f5\"];\n"));
  FOR_OPERANDS(g, n, v, {
    if (v) {
      char text[16];
      StrView from = source_id(g, v, text);
      append_type(g, v, &field);
      strbuf_printf(out, "  " SV_FMT " -> n%u [label=\"", SV_ARG(from), n);
      append_buffer(out, &field);
      strbuf_append(out, SV("\"];\n"));
    }
  });
  strbuf_release(&field);
}

void picture_dot(const Graph *g, StrBuf *out) {
  strbuf_append(out, SV("digraph \""));
  append_field(out, name_of(g, g->name));
  strbuf_append(
      out, SV("\" {\n  node [shape=record, style=filled, fontname=\"sans-serif\", fontsize=10];\n"
              "  edge [fontname=\"sans-serif\", fontsize=9];\n"));
  for (ValueId v = 1; v < g->value_count; v++)
    if (value_is_source(g, v))
      dot_value(g, v, out);
  for (FOR_NODES(g, n))
    dot_node(g, n, out);
  for (uint32_t i = 0; i < graph_output_count(g); i++) {
    char text[16];
    StrView from = source_id(g, graph_output(g, i), text);
    strbuf_printf(out, "  out%u [label=\"{out%u|op_code=output\\l|", i, i);
    append_field(out, name_of(g, graph_output_name(g, i)));
    strbuf_printf(out, "\\l}\", fillcolor=\"#cfe8cf\"];\n  " SV_FMT " -> out%u;\n", SV_ARG(from),
                  i);
  }
  strbuf_append(out, SV("}\n"));
}

/* --- Model Explorer --- */

static void attribute(JsonWriter *w, StrView key, StrView value) {
  json_open_object(w);
  json_named_string(w, "key", key);
  json_named_string(w, "value", value);
  json_close_object(w);
}

static void edge(const Graph *g, ValueId v, uint32_t operand, JsonWriter *w) {
  char text[16], number[16];
  json_open_object(w);
  json_named_string(w, "sourceNodeId", source_id(g, v, text));
  snprintf(number, sizeof number, "%u", source_output(g, v));
  json_named_string(w, "sourceNodeOutputId", sv_from(number));
  snprintf(number, sizeof number, "%u", operand);
  json_named_string(w, "targetNodeInputId", sv_from(number));
  json_close_object(w);
}

static void output_metadata(const Graph *g, ValueId first, uint32_t count, JsonWriter *w) {
  StrBuf type = {0};
  json_named_array(w, "outputsMetadata");
  for (uint32_t i = 0; i < count; i++) {
    char number[16];
    snprintf(number, sizeof number, "%u", i);
    json_open_object(w);
    json_named_string(w, "id", sv_from(number));
    json_named_array(w, "attrs");
    append_type(g, first + i, &type);
    attribute(w, SV("tensor_shape"), (StrView){type.data, type.size});
    strbuf_clear(&type);
    if (value_cget(g, first + i)->name)
      attribute(w, SV("name"), name_of(g, value_cget(g, first + i)->name));
    json_close_array(w);
    json_close_object(w);
  }
  json_close_array(w);
  strbuf_release(&type);
}

/* "/body/conv" -> "body": the layers of the model that the node lies in. */
static StrView namespace_of(const Graph *g, LocId loc) {
  StrView name = loc ? name_of(g, g->locs[loc].name) : SV("");
  size_t end = name.size;
  while (end && name.data[end - 1] != '/')
    end--;
  size_t begin = end && name.data[0] == '/' ? 1 : 0;
  return end > begin ? (StrView){name.data + begin, end - 1 - begin} : SV("");
}

static void head(JsonWriter *w, StrView id, StrView label, StrView namespace) {
  json_open_object(w);
  json_named_string(w, "id", id);
  json_named_string(w, "label", label);
  json_named_string(w, "namespace", namespace);
}

static void explorer_value(const Graph *g, ValueId v, JsonWriter *w) {
  const Value *value = value_cget(g, v);
  ValueKind kind = (ValueKind)value->kind;
  char text[16];
  StrView name = name_of(g, value->name);
  head(w, source_id(g, v, text),
       kind != VALUE_CONST && name.size ? name : sv_from(value_word(kind)),
       kind == VALUE_CONST ? SV("constants") : SV(""));
  json_named_array(w, "attrs");
  attribute(w, SV("kind"), sv_from(value_word(kind)));
  if (name.size)
    attribute(w, SV("name"), name);
  json_close_array(w);
  output_metadata(g, v, 1, w);
  json_close_object(w);
}

static void explorer_attributes(const Graph *g, NodeId n, JsonWriter *w) {
  const Node *node = node_cget(g, n);
  const OpSchema *schema = op_schema(node->op);
  StrBuf text = {0};
  json_named_array(w, "attrs");
  for (uint32_t i = 0; i < node->arg_count; i++) {
    if (!argument_is_shown(g, n, i))
      continue;
    arg_print(g, node_arg(g, n, i), &text);
    attribute(w, schema->args[i].name, (StrView){text.data, text.size});
    strbuf_clear(&text);
  }
  if (node->loc && g->locs[node->loc].name)
    attribute(w, SV("node of the model"), name_of(g, g->locs[node->loc].name));
  if (node->loc && g->locs[node->loc].op_type)
    attribute(w, SV("operator of the model"), name_of(g, g->locs[node->loc].op_type));
  if (op_row(node->op)->out)
    attribute(w, SV("kernel"), sv_from(op_row(node->op)->out));
  json_close_array(w);
  strbuf_release(&text);
}

static void explorer_node(const Graph *g, NodeId n, JsonWriter *w) {
  const Node *node = node_cget(g, n);
  char text[16];
  snprintf(text, sizeof text, "n%u", n);
  head(w, sv_from(text), op_schema(node->op)->full, namespace_of(g, node->loc));
  explorer_attributes(g, n, w);
  json_named_array(w, "incomingEdges");
  uint32_t operand = 0;
  FOR_OPERANDS(g, n, v, {
    if (v)
      edge(g, v, operand, w);
    operand++;
  });
  json_close_array(w);
  output_metadata(g, node->first_result, node->result_count, w);
  json_close_object(w);
}

void picture_model_explorer(const Graph *g, JsonWriter *w) {
  json_open_object(w);
  json_named_string(w, "id", name_of(g, g->name));
  json_named_array(w, "nodes");
  for (ValueId v = 1; v < g->value_count; v++)
    if (value_is_source(g, v))
      explorer_value(g, v, w);
  for (FOR_NODES(g, n))
    explorer_node(g, n, w);
  for (uint32_t i = 0; i < graph_output_count(g); i++) {
    char text[16];
    snprintf(text, sizeof text, "out%u", i);
    head(w, sv_from(text), name_of(g, graph_output_name(g, i)), SV(""));
    json_named_array(w, "incomingEdges");
    edge(g, graph_output(g, i), 0, w);
    json_close_array(w);
    json_close_object(w);
  }
  json_close_array(w);
  json_close_object(w);
}
