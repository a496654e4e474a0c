/* Sizes of symbolic dimensions, from the arrays that a model is going to run on: `etc run` needs no
 * --dim. */
#include "run_dims.h"

#include "interp/npy.h"
#include "onnx/file/tensor.h"
#include "onnx/file/weights.h"
#include "onnx/suggest.h"
#include "quant/dataset.h"
#include "support/text.h"

static bool has_initializer(const Onnx__GraphProto *graph, StrView name) {
  for (size_t i = 0; i < graph->n_initializer; i++)
    if (sv_eq(onnx_text(graph->initializer[i]->name), name))
      return true;
  for (size_t i = 0; i < graph->n_sparse_initializer; i++)
    if (sv_eq(onnx_sparse_name(graph->sparse_initializer[i]), name))
      return true;
  return false;
}

/* Whether it is a constant: an initializer, or by --value. */
static bool is_constant(Session *s, const Onnx__GraphProto *graph, StrView name) {
  bool constant = has_initializer(graph, name);
  const MethodOptions *own = session_own(s);
  for (uint32_t i = 0; i < own->value_count; i++)
    constant |= onnx_value_is_for(own->values[i].text, name);
  return constant;
}

/* The input that "NAME=FILE" is for, by name or position among those that are no constants;
 * *path is FILE. */
static const Onnx__ValueInfoProto *find_input(Session *s, const Onnx__GraphProto *graph,
                                              const char *given, const char **path) {
  for (const char *at = strchr(given, '='); at; at = strchr(at + 1, '=')) {
    StrView name = {given, (size_t)(at - given)};
    uint64_t position, wanted;
    bool numeric = text_parse_u64(name, &wanted);
    *path = at + 1;
    position = 0;
    for (size_t i = 0; i < graph->n_input; i++) {
      StrView input = onnx_text(graph->input[i]->name);
      if (sv_eq(input, name))
        return graph->input[i];
      if (is_constant(s, graph, input))
        continue;
      if (numeric && position++ == wanted)
        return graph->input[i];
    }
  }
  return NULL;
}

/* Said before anything about sizes that are missing, which may be missing because of it. */
static EtcStatus unknown_input(Session *s, const Onnx__GraphProto *graph, const char *given) {
  const char **names = ARENA_ARRAY(&s->arena, const char *, graph->n_input);
  StrView name = {given, (size_t)(strchr(given, '=') - given)};
  DiagPlace place = DIAG_NOWHERE;
  place.option = SV("--input");
  Diag *d = diag_begin(&s->sink, DIAG_RUN_INPUT_UNKNOWN, place);
  diag_message(d, "the model has no input '" SV_FMT "'", SV_ARG(name));
  size_t count = 0;
  for (size_t i = 0; i < graph->n_input; i++) {
    StrBuf text = {0};
    if (is_constant(s, graph, onnx_text(graph->input[i]->name)))
      continue;
    onnx_append_value(&text, graph->input[i]);
    names[count] = onnx_text(graph->input[i]->name).data;
    if (count < 16)
      diag_note(d, "input %zu %s", count, strbuf_cstr(&text));
    count++;
    strbuf_release(&text);
  }
  if (!diag_hint_nearest(d, name, names, count))
    diag_hint(d, "name an input as listed, or by its position");
  return session_status(diag_end(d));
}

/* --dim flags given by the user, the first `own` ones, go first. A name that another array has
 * given another size is no more than a name: the dim gets a size of its own. */
static EtcStatus take_dim(Session *s, const Onnx__ValueInfoProto *input,
                          const Onnx__TensorShapeProto__Dimension *dim, size_t axis, int64_t size,
                          uint32_t own) {
  if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
      dim->dim_value >= 0)
    return ETC_OK;
  bool named = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
  StrView param = named ? onnx_text(dim->dim_param) : SV("");
  StrView name =
      sv_from(arena_printf(&s->arena, SV_FMT ":%zu", SV_ARG(onnx_text(input->name)), axis));
  const MethodOptions *options = session_own(s);
  StrView root = options_dim_root(&s->arena, options, param);
  bool stated = !sv_eq(root, param); /* equal to another dim: it never gets a size of its own */
  param = root;
  const DimFlag *same = param.size ? options_dim(options, param) : NULL;
  bool given = same && (const DimOption *)same < options->dims + own; /* flag comes first in it */
  if (options_dim(options, name) || (same && (stated || given || same->lo == size)))
    return ETC_OK;
  if (!same && !onnx_dim_is_nameless(param))
    name = param;
  return etc_session_set(s, "dim",
                         arena_printf(&s->arena, SV_FMT "=%lld..%lld", SV_ARG(name),
                                      (long long)size, (long long)size));
}

static EtcStatus take_array(Session *s, const OnnxModel *model, const char *given, uint32_t own) {
  const char *path = NULL;
  const Onnx__ValueInfoProto *input = find_input(s, model->proto->graph, given, &path);
  if (!input && path)
    return unknown_input(s, model->proto->graph, given);
  const Onnx__TypeProto *type = input ? input->type : NULL;
  if (!type || !path[0] || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
      !type->tensor_type->shape)
    return ETC_OK; /* reported when the inputs are read */
  const Onnx__TensorShapeProto *shape = type->tensor_type->shape;
  NpyArray array;
  EtcStatus status = session_status(npy_read(&array, &s->arena, &s->sink, path, DTYPE_NONE));
  if (status != ETC_OK)
    return status;
  if (array.tensor.rank == shape->n_dim)
    for (size_t axis = 0; axis < shape->n_dim && status == ETC_OK; axis++)
      status = take_dim(s, input, shape->dim[axis], axis, array.tensor.dims[axis], own);
  npy_close(&array);
  return status;
}

EtcStatus dims_from_arrays(const CommandLine *line, const Source *source) {
  Session *s = line->session;
  OnnxModel model;
  uint32_t own = session_own(s)->dim_count;
  EtcStatus status = session_status(session_open_onnx(s, source, &model));
  if (status != ETC_OK)
    return status;
  for (uint32_t i = 0; i < line->option_count && status == ETC_OK; i++)
    if (line->options[i].row->id == OPT_INPUT)
      status = take_array(s, &model, line->options[i].value, own);
  onnx_model_close(&model);
  return status;
}

/* --- data sets --- */

/* The first axis of an input counts samples where the array has no axis of its own for that. */
static EtcStatus take_head(Session *s, const Onnx__ValueInfoProto *input, const NpyHead *head,
                           uint32_t own) {
  const Onnx__TensorShapeProto *shape = input->type->tensor_type->shape;
  EtcStatus status = ETC_OK;
  bool sample_axis = head->rank == shape->n_dim + 1;
  if (head->rank != shape->n_dim && !sample_axis)
    return ETC_OK; /* reported when the samples are read */
  for (size_t axis = 0; axis < shape->n_dim && status == ETC_OK; axis++) {
    int64_t size = axis == 0 && !sample_axis ? 1 : head->dims[axis + sample_axis];
    status = take_dim(s, input, shape->dim[axis], axis, size, own);
  }
  return status;
}

EtcStatus dims_from_data(const CommandLine *line, const Source *source, const char *path) {
  Session *s = line->session;
  OnnxModel model;
  uint32_t own = session_own(s)->dim_count;
  EtcStatus status = session_status(session_open_onnx(s, source, &model));
  if (status != ETC_OK)
    return status;
  const Onnx__GraphProto *graph = model.proto->graph;
  for (size_t i = 0; i < graph->n_input && status == ETC_OK; i++) {
    const Onnx__ValueInfoProto *input = graph->input[i];
    const Onnx__TypeProto *type = input->type;
    StrView name = onnx_text(input->name);
    NpyHead head;
    bool found;
    if (is_constant(s, graph, name) || !type ||
        type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !type->tensor_type->shape)
      continue;
    status = session_status(dataset_peek(path, name, &s->arena, &s->sink, &head, &found));
    if (status == ETC_OK && found)
      status = take_head(s, input, &head, own);
  }
  onnx_model_close(&model);
  return status;
}
