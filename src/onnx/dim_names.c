/* Names of dims: which inputs have them, which of them --dim NAME=OTHER makes equal, and which are
 * sums. */
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

bool onnx_next_term(StrView *rest, StrView *term) {
  if (!rest->size)
    return false;
  const char *plus = memchr(rest->data, '+', rest->size);
  StrView t = {rest->data, plus ? (size_t)(plus - rest->data) : rest->size};
  size_t past = t.size + (plus ? 1 : 0);
  *rest = (StrView){rest->data + past, rest->size - past};
  while (t.size && t.data[t.size - 1] == ' ')
    t.size--;
  while (t.size && t.data[0] == ' ')
    t = (StrView){t.data + 1, t.size - 1};
  *term = t;
  return true;
}
