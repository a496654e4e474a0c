/* Model-local functions, inlined where they are called; and subgraphs translated in place. */
#include "onnx/import_state.h"

/* Texts of a model hold no NUL, so that the parts cannot run together. */
static StrView function_key(ImportState *s, const char *name, const char *domain,
                            const char *overload) {
  const char *parts[] = {name, domain, overload};
  strbuf_clear(&s->function_key);
  for (size_t i = 0; i < COUNT_OF(parts); i++) {
    strbuf_append(&s->function_key, onnx_text(parts[i]));
    strbuf_append_char(&s->function_key, '\0');
  }
  return (StrView){s->function_key.data, s->function_key.size};
}

Status import_functions(Import *im) {
  ImportState *s = im->state;
  const Onnx__ModelProto *model = im->model->proto;
  s->functions = ARENA_ARRAY(&s->arena, const Onnx__FunctionProto *, model->n_functions + 1);
  for (size_t i = 0; i < model->n_functions; i++) {
    const Onnx__FunctionProto *f = model->functions[i];
    uint32_t id = intern_add(&s->function_names, function_key(s, f->name, f->domain, f->overload));
    if (s->functions[id])
      return diag_report(im->ctx->sink, DIAG_NAME_TWICE, context_place(im->ctx),
                         "two functions are called '" SV_FMT "'", SV_ARG(onnx_text(f->name)));
    s->functions[id] = f;
  }
  return STATUS_OK;
}

const Onnx__FunctionProto *import_function(Import *im, const Onnx__NodeProto *node) {
  ImportState *s = im->state;
  if (!s->function_names.count)
    return NULL;
  StrView key = function_key(s, node->op_type, node->domain, node->overload);
  uint32_t id = intern_find(&s->function_names, key);
  return id ? s->functions[id] : NULL;
}

static bool enter(Import *im, Frame *frame, const char *what) {
  ImportState *s = im->state;
  frame->id = ++s->frame_count;
  frame->depth = im->frame->depth + 1;
  frame->caller = im->frame;
  if (frame->depth > IMPORT_DEPTH_MAX)
    return import_fail(im, DIAG_NESTING, "calls and subgraphs are nested more than %d deep",
                       IMPORT_DEPTH_MAX);
  StrBuf path = {0};
  strbuf_append(&path, intern_get(&im->ctx->names, im->frame->path));
  StrView node = onnx_text(im->node->name);
  strbuf_printf(&path, "%s" SV_FMT "(%s)", path.size ? "/" : "", SV_ARG(node), what);
  if (path.size > 1024) {
    strbuf_clear(&path);
    strbuf_printf(&path, "...(%s)", what);
  }
  frame->path = intern_add(&im->ctx->names, (StrView){path.data, path.size});
  strbuf_release(&path);
  return true;
}

static bool recursive(const Import *im, const Onnx__FunctionProto *function) {
  for (const Frame *f = im->frame; f; f = f->caller)
    if (f->function == function)
      return true;
  return false;
}

static void bind_inputs(Import *im, Frame *frame, const Onnx__FunctionProto *function,
                        Frame *outer) {
  const Onnx__NodeProto *node = im->node;
  for (size_t i = 0; i < function->n_input && import_ok(im); i++) {
    Binding binding = {.kind = BIND_ABSENT};
    if (i < node->n_input && node->input[i] && *node->input[i]) {
      BindingSlot *slot = scope_find(im, outer, import_name(im, node->input[i]));
      binding = slot ? slot->binding : (Binding){.kind = BIND_POISON};
    }
    NameId name = import_name(im, function->input[i]);
    if (name)
      scope_slot(im, frame, name)->binding = binding;
  }
}

void import_call(Import *im, const Onnx__FunctionProto *function) {
  if (recursive(im, function)) {
    import_fail(im, DIAG_FUNCTION_RECURSION, "function '" SV_FMT "' calls itself",
                SV_ARG(onnx_text(function->name)));
    return;
  }
  const Onnx__NodeProto *call = im->node;
  LocId loc = im->b.loc;
  Frame *outer = im->frame;
  Frame frame = {.call = call,
                 .function = function,
                 .imports = function->opset_import,
                 .import_count = function->n_opset_import};
  if (call->n_input > function->n_input || call->n_output > function->n_output) {
    bool inputs = call->n_input > function->n_input;
    import_fail(im, DIAG_INPUT_COUNT, "function '" SV_FMT "' has %zu %s, the node %zu",
                SV_ARG(onnx_text(function->name)), inputs ? function->n_input : function->n_output,
                inputs ? "inputs" : "outputs", inputs ? call->n_input : call->n_output);
    return;
  }
  if (!enter(im, &frame, onnx_text(function->name).data))
    return;
  bind_inputs(im, &frame, function, outer);
  im->frame = &frame;
  import_declare(im, function->value_info, function->n_value_info);
  import_nodes(im, function->node, function->n_node);
  Binding *results = ARENA_ARRAY(&im->state->arena, Binding, function->n_output);
  for (size_t i = 0; i < function->n_output; i++)
    results[i] = import_lookup(im, import_name(im, function->output[i]));
  im->frame = outer;
  im->node = call;
  im->b.loc = loc;
  for (size_t i = 0; i < call->n_output && i < function->n_output && import_ok(im); i++) {
    NameId name = import_name(im, call->output[i]);
    if (!name)
      continue;
    if (results[i].kind == BIND_NONE)
      import_fail(im, DIAG_OUTPUT_MISSING,
                  "function '" SV_FMT "' never produces its output '" SV_FMT "'",
                  SV_ARG(onnx_text(function->name)), SV_ARG(onnx_text(function->output[i])));
    else
      scope_bind(im, name, results[i]);
  }
}

static void bind_subgraph_inputs(Import *im, Frame *frame, const Onnx__GraphProto *graph,
                                 const Binding *inputs) {
  for (size_t i = 0; i < graph->n_input; i++) {
    NameId name = graph->input[i] ? import_name(im, graph->input[i]->name) : 0;
    if (name)
      scope_slot(im, frame, name)->binding = inputs[i];
  }
}

bool import_inline(Import *im, const Onnx__GraphProto *graph, const Binding *inputs,
                   uint32_t input_count, Binding *outputs, uint32_t output_count) {
  if (!import_ok(im))
    return false;
  if (graph->n_input != input_count || graph->n_output != output_count)
    return import_fail(im, DIAG_INPUT_COUNT,
                       "the subgraph has %zu inputs and %zu outputs, %u and %u are wanted",
                       graph->n_input, graph->n_output, input_count, output_count);
  const Onnx__NodeProto *node = im->node;
  LocId loc = im->b.loc;
  int64_t opset = im->opset;
  Frame *outer = im->frame;
  Frame frame = {.parent = outer, .imports = outer->imports, .import_count = outer->import_count};
  if (!enter(im, &frame, "subgraph"))
    return false;
  bind_subgraph_inputs(im, &frame, graph, inputs);
  im->frame = &frame;
  import_declare(im, graph->value_info, graph->n_value_info);
  bool failed_before = im->state->failed;
  im->state->failed = false;
  im->b.status = import_initializers(im, graph);
  if (im->b.status == STATUS_OK)
    import_nodes(im, graph->node, graph->n_node);
  for (uint32_t i = 0; i < output_count && im->b.status == STATUS_OK; i++) {
    NameId name = import_name(im, graph->output[i] ? graph->output[i]->name : NULL);
    outputs[i] = name ? import_lookup(im, name) : (Binding){.kind = BIND_NONE};
  }
  im->frame = outer;
  im->node = node;
  im->b.loc = loc;
  im->opset = opset;
  bool inner_failed = im->state->failed;
  im->state->failed |= failed_before;
  for (uint32_t i = 0; i < output_count && import_ok(im); i++)
    if (inner_failed)
      outputs[i] = (Binding){.kind = BIND_POISON};
    else if (outputs[i].kind == BIND_NONE)
      import_fail(im, DIAG_OUTPUT_MISSING, "the subgraph never produces its output %u", i);
  return import_ok(im) && !inner_failed;
}
