/* The facts of a model that two of them are compared by, see describe.h. */
#include <xxhash.h>

#include "ir/text.h"
#include "onnx/describe.h"
#include "onnx/file/tensor.h"
#include "onnx/file/weights.h"
#include "onnx/suggest.h"

typedef struct Filler {
  OnnxModel *m;
  DiagSink *sink;
  Sheet *sheet;
  Arena arena;
  Sheet sums; /* what is counted */
} Filler;

static StrView join(Filler *f, StrView domain, StrView name) {
  if (!domain.size)
    return name;
  return sv_from(arena_printf(&f->arena, SV_FMT "." SV_FMT, SV_ARG(domain), SV_ARG(name)));
}

static void add_number(Sheet *sheet, FactSection section, FactKind kind, StrView name,
                       uint64_t number) {
  sheet_add(sheet, (Fact){.section = section, .kind = kind, .name = name, .number = number});
}

static void add_values(Filler *f, const char *what, const Intern *initializers,
                       Onnx__ValueInfoProto *const *values, size_t count) {
  uint32_t position = 0;
  for (size_t i = 0; i < count; i++) {
    StrBuf text = {0};
    if (onnx_is_initializer(initializers, values[i]->name))
      continue;
    strbuf_append_char(&text, '\'');
    strbuf_append(&text, onnx_text(values[i]->name));
    strbuf_append(&text, SV("' "));
    onnx_append_type(&text, values[i]);
    sheet_add(f->sheet, (Fact){.section = FACTS_INTERFACE,
                               .kind = FACT_TEXT,
                               .name = sv_from(arena_printf(&f->arena, "%s %u", what, position++)),
                               .text = {strbuf_cstr(&text), text.size}});
    strbuf_release(&text);
  }
}

static void add_opsets(Filler *f) {
  for (size_t i = 0; i < f->m->proto->n_opset_import; i++) {
    const Onnx__OperatorSetIdProto *set = f->m->proto->opset_import[i];
    StrView domain = onnx_text(set->domain).size ? onnx_text(set->domain) : SV("ai.onnx");
    sheet_add(f->sheet,
              (Fact){.section = FACTS_OPERATORS,
                     .kind = FACT_TEXT,
                     .name = join(f, SV("opset"), domain),
                     .text = sv_from(arena_printf(&f->arena, "%lld", (long long)set->version))});
  }
}

static void add_operators(Filler *f) {
  const Onnx__GraphProto *graph = f->m->proto->graph;
  add_number(f->sheet, FACTS_OPERATORS, FACT_COUNT, SV("nodes"), graph->n_node);
  for (size_t i = 0; i < graph->n_node; i++) {
    const Onnx__NodeProto *n = graph->node[i];
    StrView name = join(f, onnx_text(n->domain), onnx_text(n->op_type));
    add_number(&f->sums, FACTS_OPERATORS, FACT_COUNT, name, 1);
  }
}

/* "f32[64, 256]" */
static const char *type_text(Filler *f, const Onnx__TensorProto *t) {
  DType dtype = dtype_from_onnx(t->data_type);
  const char *name = dtype == DTYPE_NONE ? onnx_dtype_name(t->data_type) : dtype_name(dtype);
  StrBuf text = {0};
  shape_describe(name ? name : "?", t->dims, (uint32_t)t->n_dims, &text);
  return strbuf_keep(&text, &f->arena).data;
}

static Status add_initializer(Filler *f, const Onnx__TensorProto *t) {
  OnnxTensorView view = {0};
  if (onnx_dtype_bits(t->data_type))
    TRY(onnx_tensor_view(f->m, t, f->sink, diag_file(f->m->file.path), &view));
  const char *type = type_text(f, t);
  sheet_add(f->sheet, (Fact){.section = FACTS_CONSTANTS,
                             .kind = FACT_TEXT,
                             .name = onnx_text(t->name),
                             .text = sv_from(type),
                             .hash = view.data ? XXH3_64bits_withSeed(view.data, (size_t)view.size,
                                                                      f->sheet->seed)
                                               : 0});
  const char *name = arena_printf(&f->arena, "weights in %.*s", (int)strcspn(type, "["), type);
  add_number(&f->sums, FACTS_QUANTIZATION, FACT_BYTES, sv_from(name), view.size);
  return STATUS_OK;
}

static Status add_sparse(Filler *f, const Onnx__SparseTensorProto *t) {
  if (t->values)
    TRY(add_initializer(f, t->values));
  return t->indices ? add_initializer(f, t->indices) : STATUS_OK;
}

static Status add_initializers(Filler *f) {
  const Onnx__GraphProto *graph = f->m->proto->graph;
  Status status = STATUS_OK;
  for (size_t i = 0; i < graph->n_initializer && status == STATUS_OK; i++)
    status = add_initializer(f, graph->initializer[i]);
  for (size_t i = 0; i < graph->n_sparse_initializer && status == STATUS_OK; i++)
    status = add_sparse(f, graph->sparse_initializer[i]);
  return status;
}

static void add_size(Filler *f) {
  const MappedFile *file = &f->m->file;
  OnnxWeights weights = onnx_weights(f->m);
  uint64_t hash = XXH3_64bits_withSeed(file->data, (size_t)file->size, f->sheet->seed);
  sheet_add(f->sheet, (Fact){.section = FACTS_SIZE,
                             .kind = FACT_BYTES,
                             .name = SV("file"),
                             .number = file->size,
                             .hash = hash});
  add_number(f->sheet, FACTS_SIZE, FACT_BYTES, SV("weights"), weights.bytes);
  add_number(f->sheet, FACTS_SIZE, FACT_COUNT, SV("number of weights"), weights.count);
}

Status onnx_sheet(OnnxModel *m, DiagSink *sink, Sheet *sheet) {
  const Onnx__GraphProto *graph = m->proto->graph;
  Filler f = {.m = m, .sink = sink, .sheet = sheet};
  Intern initializers;
  f.sums.arena = &f.arena;
  onnx_initializer_names(m, &initializers);
  add_values(&f, "input", &initializers, graph->input, graph->n_input);
  add_values(&f, "output", NULL, graph->output, graph->n_output);
  intern_release(&initializers);
  add_size(&f);
  add_opsets(&f);
  add_operators(&f);
  Status status = add_initializers(&f);
  sheet_add_sums(sheet, &f.sums);
  arena_release(&f.arena);
  return status;
}
