/* Layers of options (options.h), and which of them belong to a method. */
#include "pipeline/session.h"

Layer *session_layer(Session *s, int priority, const char *method) {
  for (uint32_t i = 0; i < s->layer_count; i++) {
    Layer *layer = s->layers[i];
    bool same =
        method && layer->method ? strcmp(method, layer->method) == 0 : method == layer->method;
    if (layer->priority == priority && same)
      return layer;
  }
  Layer *layer = ARENA_NEW(&s->arena, Layer);
  layer->priority = priority;
  layer->method = method ? arena_strdup(&s->arena, sv_from(method)) : NULL;
  layer->options.pass = PASS_OPTIONS_DEFAULT;
  s->layers =
      pool_reserve(s->layers, &s->layer_capacity, (uint64_t)s->layer_count + 1, sizeof *s->layers);
  /* Sorted by priority, and those of one method before those of all. */
  uint32_t at = s->layer_count++;
  for (; at > 0; at--) {
    const Layer *before = s->layers[at - 1];
    if (before->priority < priority ||
        (before->priority == priority && (before->method || !method)))
      break;
    s->layers[at] = s->layers[at - 1];
  }
  s->layers[at] = layer;
  return layer;
}

MethodOptions *session_own(Session *s) {
  return &session_layer(s, PRIORITY_COMMAND, NULL)->options;
}

MethodOptions *session_resolve(Session *s, StrView method) {
  MethodOptions *o = ARENA_NEW(&s->arena, MethodOptions);
  o->pass = PASS_OPTIONS_DEFAULT;
  POOL_PUSH(s->resolved, s->resolved_count, s->resolved_capacity, o);
  for (uint32_t i = 0; i < s->layer_count; i++)
    if (!s->layers[i]->method || sv_eq_str(method, s->layers[i]->method))
      options_merge(o, &s->layers[i]->options);
  if (!(o->given & GIVEN_RANGE_METHOD))
    o->quantize.range =
        (RangeOptions){.method = RANGE_AUTO, .percentile = RANGE_PERCENTILE_DEFAULT};
  if (o->given & GIVEN_SCHEME)
    o->pass.quantize = &o->quantize;
  return o;
}

/* --- what nothing used --- */

/* Names that models have for their inputs or, of these, for dims. */
typedef struct InputNames {
  const char **list;
  uint32_t count, capacity;
} InputNames;

static void add_name(InputNames *names, StrView name) {
  if (name.size)
    POOL_PUSH(names->list, names->count, names->capacity, name.data);
}

/* Of the models of all methods, or of one. */
static InputNames names_of_inputs(const Session *s, const char *method, bool dims) {
  InputNames names = {0};
  for (uint32_t i = 0; i < s->program.source_count; i++) {
    const Source *source = s->program.sources[i];
    bool looked_at = source->open && (!method || strcmp(source->method, method) == 0);
    const Onnx__ModelProto *model = looked_at ? source->onnx.proto : NULL;
    for (size_t k = 0; model && model->graph && k < model->graph->n_input; k++) {
      const Onnx__ValueInfoProto *input = model->graph->input[k];
      const Onnx__TypeProto__Tensor *type = onnx_tensor_type(input);
      if (!dims)
        add_name(&names, onnx_text(input->name));
      for (size_t a = 0; dims && type && type->shape && a < type->shape->n_dim; a++)
        add_name(&names, onnx_dim_param(type->shape->dim[a]));
    }
  }
  return names;
}

static Status end_with_names(Session *s, Diag *d, const Layer *layer, StrView name, bool dims) {
  InputNames names = names_of_inputs(s, layer->method, dims);
  diag_hint_names(d, name, names.list, names.count);
  xfree(names.list);
  return diag_end(d);
}

/* The models that the layer is for. */
static const char *whose(Session *s, const Layer *layer) {
  return layer->method ? arena_printf(&s->arena, "method '%s'", layer->method) : "any model";
}

static bool has_dim(Onnx__ValueInfoProto *const *values, size_t count, StrView name) {
  bool has = false;
  for (size_t i = 0; i < count; i++) {
    const Onnx__TypeProto__Tensor *type = onnx_tensor_type(values[i]);
    for (size_t a = 0; type && type->shape && a < type->shape->n_dim; a++)
      has |= sv_eq(onnx_dim_param(type->shape->dim[a]), name);
  }
  return has;
}

/* Whether the flag may be for a model that could not be imported, or not even be read. */
static bool may_be_used(const Session *s, const Layer *layer, StrView name) {
  bool may = name.size && memchr(name.data, ':', name.size); /* an axis */
  for (uint32_t i = 0; i < s->program.source_count; i++) {
    const Source *source = s->program.sources[i];
    if (layer->method && strcmp(source->method, layer->method) != 0)
      continue;
    const Onnx__ModelProto *model = source->open ? source->onnx.proto : NULL;
    const Onnx__GraphProto *graph = model ? model->graph : NULL;
    may |= !graph || has_dim(graph->input, graph->n_input, name) ||
           has_dim(graph->output, graph->n_output, name);
  }
  return may;
}

/* failed: not all models were imported. */
static Status unused_dims(Session *s, const Layer *layer, bool failed) {
  Status status = STATUS_OK;
  for (uint32_t i = 0; i < layer->options.dim_count; i++) {
    StrView name = layer->options.dims[i].flag.name;
    if (*layer->options.dims[i].used || (failed && may_be_used(s, layer, name)))
      continue;
    Diag *d = diag_begin(&s->sink, DIAG_DIM_UNKNOWN_FLAG, DIAG_NOWHERE);
    diag_message(d, "no input of %s has a dimension called '" SV_FMT "'", whose(s, layer),
                 SV_ARG(name));
    status = end_with_names(s, d, layer, name, true);
  }
  return status;
}

static Status unused_values(Session *s, const Layer *layer) {
  Status status = STATUS_OK;
  for (uint32_t i = 0; i < layer->options.value_count; i++) {
    StrView text = layer->options.values[i].text;
    if (*layer->options.values[i].used)
      continue;
    Diag *d = diag_begin(&s->sink, DIAG_VALUE_UNKNOWN, session_option_place(s, "--value"));
    diag_message(d, "no input of %s fits --value " SV_FMT, whose(s, layer), SV_ARG(text));
    const char *equals = memchr(text.data, '=', text.size);
    StrView name = {text.data, equals ? (size_t)(equals - text.data) : text.size};
    status = end_with_names(s, d, layer, name, false);
  }
  return status;
}

static bool has_method(const Session *s, const char *name) {
  for (uint32_t i = 0; i < s->program.method_count; i++)
    if (sv_eq_str(method_name(&s->program.methods[i]), name))
      return true;
  return false;
}

static Status unknown_method(Session *s, const char *name) {
  InputNames names = {0};
  for (uint32_t i = 0; i < s->program.method_count; i++)
    add_name(&names, method_name(&s->program.methods[i]));
  Diag *d = diag_begin(&s->sink, DIAG_USAGE, DIAG_NOWHERE);
  diag_message(d, "options are given for a method '%s', which the program does not have", name);
  diag_hint_names(d, sv_from(name), names.list, names.count);
  xfree(names.list);
  return diag_end(d);
}

void session_name_unused_dims(Session *s) {
  for (uint32_t i = 0; i < s->layer_count; i++) {
    const Layer *layer = s->layers[i];
    if (layer->priority != PRIORITY_FILE && s->program.source_count > 1)
      (void)unused_dims(s, layer, true);
  }
}

Status session_check_used(Session *s) {
  Status status = STATUS_OK;
  for (uint32_t i = 0; i < s->layer_count; i++) {
    const Layer *layer = s->layers[i];
    bool known = !layer->method || has_method(s, layer->method);
    if (!known)
      status = unknown_method(s, layer->method);
    if (!known || layer->priority == PRIORITY_FILE || s->program.source_count == 1)
      continue; /* reported, or the import has reported what its only model does not have */
    Status dims = unused_dims(s, layer, false), values = unused_values(s, layer);
    status = status != STATUS_OK ? status : dims != STATUS_OK ? dims : values;
  }
  return status;
}
