/* Names of dims: which inputs have them, and which of them --dim NAME=OTHER makes equal. */
#include "onnx/import_state.h"

StrView onnx_dim_root(const DimFlag *flags, uint32_t count, StrView name) {
  for (uint32_t step = 0; step < count; step++) {
    uint32_t i = 0;
    while (i < count && !(flags[i].same.size && sv_eq(flags[i].name, name)))
      i++;
    if (i == count)
      break;
    name = flags[i].same;
  }
  return name;
}

bool import_has_dim(const Onnx__GraphProto *graph, StrView name) {
  for (size_t i = 0; i < graph->n_input; i++) {
    const Onnx__TypeProto__Tensor *t = onnx_tensor_type(graph->input[i]);
    for (size_t k = 0; t && t->shape && k < t->shape->n_dim; k++) {
      if (name.size && sv_eq(onnx_dim_param(t->shape->dim[k]), name))
        return true;
    }
  }
  return false;
}
