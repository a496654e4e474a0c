/* Sizes of symbolic dimensions, from the arrays that a model is going to run on: `etc run` needs no
 * --dim. */
#include "run_dims.h"

#include "interp/npy.h"
#include "support/text.h"

static bool has_initializer(const Onnx__GraphProto *graph, StrView name) {
  for (size_t i = 0; i < graph->n_initializer; i++)
    if (sv_eq(onnx_text(graph->initializer[i]->name), name))
      return true;
  return false;
}

/* The input that "NAME=FILE" is for, by name or position among those that are not initializers;
 * *path is FILE. */
static const Onnx__ValueInfoProto *find_input(const Onnx__GraphProto *graph, const char *given,
                                              const char **path) {
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
      if (has_initializer(graph, input))
        continue;
      if (numeric && position++ == wanted)
        return graph->input[i];
    }
  }
  return NULL;
}

/* --dim flags given by the user go first. */
static bool is_given(const Session *s, StrView name) {
  for (uint32_t i = 0; i < s->dim_count; i++)
    if (sv_eq(s->dims[i].name, name))
      return true;
  return false;
}

static EtcStatus take_dim(Session *s, const Onnx__ValueInfoProto *input,
                          const Onnx__TensorShapeProto__Dimension *dim, size_t axis, int64_t size) {
  StrView name = (StrView){NULL, 0};
  if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
    return ETC_OK;
  if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM)
    name = onnx_text(dim->dim_param);
  if (name.size == 0)
    name = sv_from(arena_printf(&s->arena, SV_FMT ":%zu", SV_ARG(onnx_text(input->name)), axis));
  if (is_given(s, name))
    return ETC_OK;
  return etc_session_set(s, "dim",
                         arena_printf(&s->arena, SV_FMT "=%lld..%lld", SV_ARG(name),
                                      (long long)size, (long long)size));
}

static EtcStatus take_array(Session *s, const OnnxModel *model, const char *given) {
  const char *path = NULL;
  const Onnx__ValueInfoProto *input = find_input(model->proto->graph, given, &path);
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
      status = take_dim(s, input, shape->dim[axis], axis, array.tensor.dims[axis]);
  npy_close(&array);
  return status;
}

EtcStatus dims_from_arrays(const CommandLine *line, const Source *source) {
  Session *s = line->session;
  OnnxModel model;
  EtcStatus status = session_status(session_open_onnx(s, source, &model));
  if (status != ETC_OK)
    return status;
  for (uint32_t i = 0; i < line->option_count && status == ETC_OK; i++)
    if (line->options[i].row->id == OPT_INPUT)
      status = take_array(s, &model, line->options[i].value);
  onnx_model_close(&model);
  return status;
}
