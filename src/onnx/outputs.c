/* The outputs of the model's graph. */
#include "ir/text.h"
#include "onnx/file/tensor.h"
#include "onnx/import_state.h"
#include "onnx/labels.h"
#include "onnx/suggest.h"

typedef struct Outputs {
  ValueId *values;
  NameId *names;
  uint32_t count, name_count;
} Outputs;

static void add(Import *im, Outputs *outputs, NameId name, ValueId v) {
  ARENA_PUSH(&im->state->arena, outputs->values, outputs->count, v);
  ARENA_PUSH(&im->state->arena, outputs->names, outputs->name_count, name);
}

static void refuse(Import *im, DiagCode code, StrView name, const char *what) {
  im->state->failed = true;
  (void)diag_report(im->ctx->sink, code, context_place(im->ctx), "graph output '" SV_FMT "' %s",
                    SV_ARG(name), what);
}

/* A list: its tensors one after the other, or, where only the running program knows how many there
 * are, all as one. */
static void add_list(Import *im, Outputs *outputs, StrView name, const Binding *list) {
  StrBuf text = {0};
  Diag *d = diag_begin(im->ctx->sink, DIAG_LIST_OUTPUT, context_place(im->ctx));
  if (list->kind == BIND_STACK) {
    add(im, outputs, intern_add(&im->ctx->names, name), list->value);
    diag_message(d,
                 "output '" SV_FMT "', a list, is one tensor, whose first dim counts its elements",
                 SV_ARG(name));
  } else {
    diag_message(d, "output '" SV_FMT "', a list, is %u outputs, '" SV_FMT ".0' and so on",
                 SV_ARG(name), list->count, SV_ARG(name));
  }
  (void)diag_end(d);
  for (uint32_t i = 0; list->kind == BIND_SEQUENCE && i < list->count; i++) {
    strbuf_clear(&text);
    strbuf_printf(&text, SV_FMT ".%u", SV_ARG(name), i);
    add(im, outputs, intern_add(&im->ctx->names, sv_from(strbuf_cstr(&text))), list->items[i]);
  }
  strbuf_release(&text);
}

/* Names do not count: what they stand for, inputs decide. No dims are what some exporters write
 * where they know no rank. */
static bool has_declared_shape(const Graph *g, const Type *computed,
                               const Onnx__TensorShapeProto *declared) {
  if (declared->n_dim != computed->rank)
    return declared->n_dim == 0;
  for (uint32_t i = 0; i < computed->rank; i++) {
    const Onnx__TensorShapeProto__Dimension *d = declared->dim[i];
    SymInt size = computed->dims[i];
    if (onnx_dim_is_known(d) &&
        (d->dim_value < sym_lower(&g->syms, size) || d->dim_value > sym_upper(&g->syms, size)))
      return false;
  }
  return true;
}

static void check_shape(Import *im, const Onnx__ValueInfoProto *info, ValueId v) {
  const Onnx__TypeProto__Tensor *t = onnx_tensor_type(info);
  const Type *computed = value_type(im->g, v);
  if (!t || !t->shape || has_declared_shape(im->g, computed, t->shape))
    return;
  StrBuf text = {0};
  onnx_append_type(&text, info);
  strbuf_append(&text, SV(", and has "));
  type_print(im->g, computed, &text);
  Diag *d = diag_begin(im->ctx->sink, DIAG_OUTPUT_SHAPE, context_place(im->ctx));
  diag_message(d, "output '" SV_FMT "' is declared %s", SV_ARG(onnx_text(info->name)),
               strbuf_cstr(&text));
  (void)diag_end(d);
  strbuf_release(&text);
}

/* --dim of a dimension that only outputs have serves sizes that data decide. Others follow from the
 * inputs, and must be what it says. */
static void check_flags(Import *im, const Onnx__ValueInfoProto *info, ValueId v) {
  const Onnx__TypeProto__Tensor *t = onnx_tensor_type(info);
  const SymTable *syms = &im->g->syms;
  for (size_t i = 0; t && t->shape && i < t->shape->n_dim && i < value_rank(im->g, v); i++) {
    StrView name = onnx_dim_param(t->shape->dim[i]);
    const DimFlag *flag = name.size ? import_dim_flag(im, name) : NULL;
    SymInt size = value_dim(im->g, v, (uint32_t)i);
    if (!flag || flag->same.size || import_has_dim(im->model->proto->graph, name) ||
        (sym_upper(syms, size) >= flag->lo && sym_lower(syms, size) <= flag->hi))
      continue;
    im->state->failed = true;
    StrBuf text = {0};
    sym_print_named(syms, size, &text);
    if (!sym_is_const(size))
      strbuf_printf(&text, ", %lld..%lld", (long long)sym_lower(syms, size),
                    (long long)sym_upper(syms, size));
    Diag *d = diag_begin(im->ctx->sink, DIAG_DIM_CONTRADICTION, context_place(im->ctx));
    diag_message(d, "dim %zu of output '" SV_FMT "', called '" SV_FMT "', is %s, not as --dim says",
                 i, SV_ARG(onnx_text(info->name)), SV_ARG(name), strbuf_cstr(&text));
    diag_hint(d, "it follows from the sizes of the inputs: leave --dim " SV_FMT " out",
              SV_ARG(name));
    (void)diag_end(d);
    strbuf_release(&text);
  }
}

static void add_tensor(Import *im, Outputs *outputs, const Onnx__ValueInfoProto *info,
                       const Binding *binding) {
  StrView name = onnx_text(info->name);
  const Onnx__TypeProto__Tensor *t = onnx_tensor_type(info);
  DType wanted = t ? dtype_from_onnx(t->elem_type) : DTYPE_NONE;
  if (binding->labels) {
    labels_warn(im, name, binding->labels);
  } else if (binding->packed) {
    refuse(im, DIAG_TENSOR_DTYPE, name,
           arena_printf(&im->state->arena, "has element type %s, which is not supported",
                        onnx_dtype_name(binding->packed)));
  } else if (wanted != DTYPE_NONE && wanted != value_dtype(im->g, binding->value)) {
    refuse(im, DIAG_DTYPE_MISMATCH, name,
           arena_printf(&im->state->arena, "is declared %s but computed as %s", dtype_name(wanted),
                        dtype_name(value_dtype(im->g, binding->value))));
  } else {
    check_shape(im, info, binding->value);
    check_flags(im, info, binding->value);
  }
  add(im, outputs, import_name(im, info->name), binding->value);
}

static void add_output(Import *im, Outputs *outputs, const Onnx__ValueInfoProto *info) {
  StrView name = onnx_text(info->name);
  Binding binding = import_lookup(im, import_name(im, info->name));
  switch (binding.kind) {
  case BIND_NONE:
    refuse(im, DIAG_OUTPUT_MISSING, name, "is never produced");
    break;
  case BIND_ABSENT:
    refuse(im, DIAG_UNSUPPORTED_FEATURE, name,
           "is an empty optional, which a program cannot return");
    break;
  case BIND_POISON:
    im->state->failed = true;
    break;
  case BIND_SEQUENCE:
  case BIND_STACK:
    add_list(im, outputs, name, &binding);
    break;
  case BIND_VALUE:
    add_tensor(im, outputs, info, &binding);
    break;
  }
}

Status import_outputs(Import *im, const Onnx__GraphProto *graph) {
  Outputs outputs = {0};
  for (size_t i = 0; i < graph->n_output; i++) {
    if (!import_name(im, graph->output[i]->name))
      return diag_report(im->ctx->sink, DIAG_OUTPUT_MISSING, context_place(im->ctx),
                         "graph output %zu has no name", i);
    add_output(im, &outputs, graph->output[i]);
  }
  if (im->state->failed)
    return STATUS_INVALID;
  if (!outputs.count)
    return diag_report(im->ctx->sink, DIAG_NO_OUTPUT, context_place(im->ctx),
                       "the graph has no outputs");
  graph_set_outputs(im->g, outputs.values, outputs.count, outputs.names);
  return STATUS_OK;
}
