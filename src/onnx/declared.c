/* Declared shapes of outputs. Exporters declare the graph's outputs, but seldom what lies between;
 * so a shape that is wanted is also looked for behind ops that keep it. */
#include "onnx/import_state.h"
#include "support/text.h"

/* Ops whose output has the shape of their inputs when these have one shape or are 0-d. */
static bool keeps_shape(StrView op) {
  return text_among(op, "Abs|Add|And|Cast|Ceil|Cos|Div|Equal|Erf|Exp|Floor|Gelu|Log|Identity|Max|"
                        "Min|Mul|Neg|Not|Or|Pow|Relu|Round|Sigmoid|Sign|Sin|Sqrt|Sub|Tanh|Greater|"
                        "Less|Where|CastLike");
}

static bool is_scalar(Import *im, NameId name) {
  const BindingSlot *slot = scope_find(im, im->frame, name);
  return slot && slot->binding.kind == BIND_VALUE && value_rank(im->g, slot->binding.value) == 0;
}

/* Does the node give its output the shape of the names in `same`? */
static bool passes_on(Import *im, const Onnx__NodeProto *node, const bool *same, uint32_t count) {
  StrView op = onnx_text(node->op_type);
  bool any = false;
  if (node->n_output != 1 || onnx_text(node->domain).size || !keeps_shape(op))
    return false;
  size_t inputs = sv_eq_str(op, "CastLike") && node->n_input ? 1 : node->n_input;
  for (size_t i = 0; i < inputs; i++) {
    NameId name = intern_find(&im->ctx->names, onnx_text(node->input[i]));
    if (name && name < count && same[name])
      any = true;
    else if (!name || !is_scalar(im, name))
      return false;
  }
  return any;
}

/* Walks the main graph's nodes once; same[name] marks the names of the wanted shape. */
static bool declared_behind(Import *im, NameId name, Dims *dims) {
  const Onnx__GraphProto *graph = im->model->proto->graph;
  for (size_t i = 0; i < graph->n_node; i++)
    for (size_t k = 0; k < graph->node[i]->n_output; k++)
      (void)import_name(im, graph->node[i]->output[k]);
  uint32_t count = im->ctx->names.count + 1;
  bool *same = ARENA_ARRAY(&im->scratch, bool, count);
  same[name] = true;
  for (size_t i = 0; i < graph->n_node; i++) {
    if (!passes_on(im, graph->node[i], same, count))
      continue;
    NameId result = import_name(im, graph->node[i]->output[0]);
    if (!result)
      continue;
    if (import_declared_dims(im, result, dims))
      return true;
    same[result] = true;
  }
  return false;
}

bool out_declared_dims(Import *im, uint32_t i, Dims *dims) {
  if (!import_ok(im) || !out_wanted(im, i))
    return false;
  NameId name = import_output_name(im, i);
  if (import_declared_dims(im, name, dims))
    return true;
  return !im->frame->parent && !im->frame->function && declared_behind(im, name, dims);
}

bool out_declared_dim(Import *im, uint32_t i, uint32_t dim, SymInt *size) {
  Dims dims;
  bool known = out_declared_dims(im, i, &dims) && dim < dims.rank;
  if (known)
    *size = dims.d[dim];
  return known;
}
