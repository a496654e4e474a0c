/* See describe.h. */
#include "onnx/describe.h"

#include <stdlib.h>

#include "onnx/suggest.h"
#include "onnx/file/tensor.h"
#include "onnx/file/weights.h"
#include "support/text.h"

enum { LINE = 100, MAX_OPS_SHOWN = 40, MAX_VALUES_SHOWN = 16 };

typedef struct OpCount {
  StrView domain, op;
  uint32_t nodes;
} OpCount;

typedef struct OpCounts {
  OpCount *items; /* most nodes first */
  uint32_t count;
} OpCounts;

/* --- figures --- */

static int by_name(const void *a, const void *b) {
  const OpCount *x = a, *y = b;
  return text_compare(x->op, y->op);
}

static int most_first(const void *a, const void *b) {
  const OpCount *x = a, *y = b;
  return x->nodes != y->nodes ? (x->nodes < y->nodes ? 1 : -1) : by_name(a, b);
}

static bool same_op(const OpCount *a, const OpCount *b) {
  return sv_eq(a->op, b->op) && sv_eq(a->domain, b->domain);
}

/* Of the main graph; nodes of subgraphs and functions are counted with those that hold them. */
static OpCounts count_ops(const Onnx__GraphProto *graph, Arena *arena) {
  OpCounts out = {.items = ARENA_ARRAY(arena, OpCount, graph->n_node + 1)};
  for (size_t i = 0; i < graph->n_node; i++)
    out.items[i] =
        (OpCount){onnx_text(graph->node[i]->domain), onnx_text(graph->node[i]->op_type), 1};
  qsort(out.items, graph->n_node, sizeof *out.items, by_name);
  for (size_t i = 0; i < graph->n_node; i++) {
    if (out.count && same_op(&out.items[out.count - 1], &out.items[i]))
      out.items[out.count - 1].nodes++;
    else
      out.items[out.count++] = out.items[i];
  }
  qsort(out.items, out.count, sizeof *out.items, most_first);
  return out;
}

static StrView domain_name(const char *domain) {
  return onnx_text(domain).size ? onnx_text(domain) : SV("ai.onnx");
}

/* --- text --- */

static void text_file(const OnnxModel *m, StrBuf *out) {
  const Onnx__ModelProto *proto = m->proto;
  OnnxWeights weights = onnx_weights(m);
  strbuf_append_within(out, "file: ", sv_from(m->file.path), ", ");
  strbuf_append_bytes(out, m->file.size);
  strbuf_printf(out, ", ONNX IR version %lld", (long long)m->ir_version);
  if (onnx_text(proto->producer_name).size) {
    strbuf_append_within(out, ", by ", onnx_text(proto->producer_name), " ");
    strbuf_append_printable(out, onnx_text(proto->producer_version));
  }
  strbuf_append(out, SV("\nopsets:"));
  for (size_t i = 0; i < proto->n_opset_import; i++) {
    strbuf_append(out, i ? SV(", ") : SV(" "));
    strbuf_append_printable(out, domain_name(proto->opset_import[i]->domain));
    strbuf_printf(out, " %lld", (long long)proto->opset_import[i]->version);
  }
  strbuf_printf(out, "\nweights: %llu, ", (unsigned long long)weights.count);
  strbuf_append_bytes(out, weights.bytes);
  strbuf_append_char(out, '\n');
}

static void text_values(const Intern *initializers, const char *title,
                        Onnx__ValueInfoProto *const *values, size_t count, StrBuf *out) {
  size_t shown = 0;
  for (size_t i = 0; i < count; i++) {
    if (onnx_is_initializer(initializers, values[i]->name))
      continue;
    if (shown++ >= MAX_VALUES_SHOWN)
      continue;
    strbuf_printf(out, "%s ", title);
    onnx_append_value(out, values[i]);
    strbuf_append_char(out, '\n');
  }
  if (shown > MAX_VALUES_SHOWN)
    strbuf_printf(out, "%s: %zu more\n", title, shown - MAX_VALUES_SHOWN);
}

static void append_op(StrBuf *out, const OpCount *c) {
  strbuf_printf(out, "%u ", c->nodes);
  strbuf_append_printable(out, c->domain);
  strbuf_append(out, c->domain.size ? SV(".") : SV(""));
  strbuf_append_printable(out, c->op);
}

static void text_ops(const OnnxModel *m, StrBuf *out) {
  const Onnx__GraphProto *graph = m->proto->graph;
  Arena arena = {0};
  StrBuf word = {0};
  OpCounts ops = count_ops(graph, &arena);
  strbuf_printf(out, "nodes: %zu", graph->n_node);
  if (m->proto->n_functions)
    strbuf_printf(out, ", and %zu functions", m->proto->n_functions);
  size_t column = LINE;
  for (uint32_t i = 0; i < ops.count && i < MAX_OPS_SHOWN; i++) {
    strbuf_clear(&word);
    append_op(&word, &ops.items[i]);
    bool wrap = column + word.size + 2 > LINE;
    strbuf_append(out, wrap ? (i ? SV(",\n  ") : SV("\n  ")) : SV(", "));
    strbuf_append(out, sv_from(strbuf_cstr(&word)));
    column = (wrap ? 2 : column + 2) + word.size;
  }
  if (ops.count > MAX_OPS_SHOWN)
    strbuf_printf(out, ", %u more operators", ops.count - MAX_OPS_SHOWN);
  strbuf_append_char(out, '\n');
  strbuf_release(&word);
  arena_release(&arena);
}

void onnx_describe_text(const OnnxModel *m, StrBuf *out) {
  const Onnx__GraphProto *graph = m->proto->graph;
  Intern initializers;
  onnx_initializer_names(m, &initializers);
  text_file(m, out);
  text_values(&initializers, "input", graph->input, graph->n_input, out);
  text_values(NULL, "output", graph->output, graph->n_output, out);
  intern_release(&initializers);
  text_ops(m, out);
}

/* --- JSON --- */

static void json_dims(const Onnx__TensorShapeProto *shape, JsonWriter *w) {
  json_named_array(w, "dims");
  for (size_t i = 0; i < shape->n_dim; i++) {
    const Onnx__TensorShapeProto__Dimension *d = shape->dim[i];
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
      json_int(w, d->dim_value);
    else if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM)
      json_string(w, onnx_text(d->dim_param));
    else
      json_null(w);
  }
  json_close_array(w);
}

static void json_values(const Intern *initializers, const char *key,
                        Onnx__ValueInfoProto *const *values, size_t count, JsonWriter *w) {
  json_named_array(w, key);
  for (size_t i = 0; i < count; i++) {
    const Onnx__TypeProto *type = values[i]->type;
    if (onnx_is_initializer(initializers, values[i]->name))
      continue;
    json_open_object(w);
    json_named_string(w, "name", onnx_text(values[i]->name));
    if (type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) {
      const char *name = onnx_dtype_name(type->tensor_type->elem_type);
      json_named_string(w, "type", sv_from(name ? name : ""));
      if (type->tensor_type->shape)
        json_dims(type->tensor_type->shape, w);
    }
    json_close_object(w);
  }
  json_close_array(w);
}

static void json_ops(const Onnx__GraphProto *graph, JsonWriter *w) {
  Arena arena = {0};
  OpCounts ops = count_ops(graph, &arena);
  json_named_array(w, "operators");
  for (uint32_t i = 0; i < ops.count; i++) {
    json_open_object(w);
    json_named_string(w, "domain", ops.items[i].domain);
    json_named_string(w, "name", ops.items[i].op);
    json_named_uint(w, "nodes", ops.items[i].nodes);
    json_close_object(w);
  }
  json_close_array(w);
  arena_release(&arena);
}

void onnx_describe_json(const OnnxModel *m, JsonWriter *w) {
  const Onnx__ModelProto *proto = m->proto;
  OnnxWeights weights = onnx_weights(m);
  Intern initializers;
  onnx_initializer_names(m, &initializers);
  json_named_string(w, "file", sv_from(m->file.path));
  json_named_uint(w, "file_bytes", m->file.size);
  json_named_string(w, "format", SV("onnx"));
  json_named_uint(w, "ir_version", (uint64_t)m->ir_version);
  json_named_string(w, "producer", onnx_text(proto->producer_name));
  json_named_string(w, "producer_version", onnx_text(proto->producer_version));
  json_named_array(w, "opsets");
  for (size_t i = 0; i < proto->n_opset_import; i++) {
    json_open_object(w);
    json_named_string(w, "domain", domain_name(proto->opset_import[i]->domain));
    json_named_int(w, "version", proto->opset_import[i]->version);
    json_close_object(w);
  }
  json_close_array(w);
  json_named_uint(w, "weights", weights.count);
  json_named_uint(w, "weight_bytes", weights.bytes);
  json_values(&initializers, "inputs", proto->graph->input, proto->graph->n_input, w);
  json_values(NULL, "outputs", proto->graph->output, proto->graph->n_output, w);
  intern_release(&initializers);
  json_named_uint(w, "nodes", proto->graph->n_node);
  json_ops(proto->graph, w);
}
