/* Opening a model: map, skim, unpack, and the few checks that need no knowledge of operators (see
 * model.h).
 *
 * Source: docs/IR.md and docs/Versioning.md of ONNX 1.23. A model must name its ir_version and,
 * since version 3, import at least one operator set. Readers disagree about a domain that is
 * imported at two versions, so that is refused. */
#include "onnx/file/model.h"

#include "onnx/file/skim.h"

enum { IMPORTS_MAX = 256 };

static bool is_onnx_domain(StrView domain) {
  return domain.size == 0 || sv_eq(domain, SV("ai.onnx"));
}

static bool same_domain(StrView a, StrView b) {
  return sv_eq(a, b) || (is_onnx_domain(a) && is_onnx_domain(b));
}

int64_t onnx_opset_version(Onnx__OperatorSetIdProto *const *imports, size_t count, StrView domain) {
  for (size_t i = 0; i < count; i++)
    if (same_domain(onnx_text(imports[i]->domain), domain))
      return imports[i]->version;
  return 0;
}

const Onnx__TypeProto__Tensor *onnx_tensor_type(const Onnx__ValueInfoProto *value) {
  const Onnx__TypeProto *type = value->type;
  if (type && type->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE && type->optional_type)
    type = type->optional_type->elem_type;
  return type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? type->tensor_type : NULL;
}

bool onnx_dim_is_known(const Onnx__TensorShapeProto__Dimension *dim) {
  return dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
         dim->dim_value >= 0;
}

StrView onnx_dim_param(const Onnx__TensorShapeProto__Dimension *dim) {
  bool named = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
  return named ? onnx_text(dim->dim_param) : SV("");
}

/* --- protobuf-c --- */

static void *message_alloc(void *arena, size_t size) { return arena_alloc(arena, size); }

/* Messages go with their arena. */
static void message_drop(void *arena, void *pointer) {
  (void)arena;
  (void)pointer;
}

static Status unpack(OnnxModel *m, DiagSink *sink, DiagPlace place) {
  Arena scratch = {0};
  OnnxSkim skim;
  Status status = onnx_skim(&skim, &m->arena, &scratch, sink, place, &m->file);
  if (status == STATUS_OK) {
    ProtobufCAllocator allocator = {message_alloc, message_drop, &m->arena};
    m->proto = onnx__model_proto__unpack(&allocator, skim.message_size, skim.message);
    m->spans = skim.spans;
    m->span_count = skim.span_count;
    if (!m->proto)
      status = diag_report(sink, DIAG_PROTO_PARSE, place,
                           "not a readable ONNX file: protobuf-c refuses it");
  }
  arena_release(&scratch);
  return status;
}

/* --- versions --- */

static Status opset_error(DiagSink *sink, DiagPlace place, const char *owner, int64_t version) {
  return diag_report(
      sink, DIAG_OPSET_UNKNOWN, place,
      "%s imports version %lld of the operator set 'ai.onnx'; versions %d to %d can be read", owner,
      (long long)version, ONNX_OPSET_OLDEST, ONNX_OPSET_NEWEST);
}

static Status check_import(const Onnx__OperatorSetIdProto *import, DiagSink *sink, DiagPlace place,
                           const char *owner) {
  StrView domain = onnx_text(import->domain);
  if (is_onnx_domain(domain)) {
    if (import->version < ONNX_OPSET_OLDEST || import->version > ONNX_OPSET_NEWEST)
      return opset_error(sink, place, owner, import->version);
  } else if (import->version < 0 || import->version > INT32_MAX) {
    return diag_report(sink, DIAG_OPSET_UNKNOWN, place,
                       "%s imports version %lld of the operator set '" SV_FMT "'", owner,
                       (long long)import->version, SV_ARG(domain));
  }
  return STATUS_OK;
}

static Status check_imports(Onnx__OperatorSetIdProto *const *imports, size_t count, DiagSink *sink,
                            DiagPlace place, const char *owner) {
  if (count > IMPORTS_MAX)
    return diag_report(sink, DIAG_OPSET_DUPLICATE, place,
                       "%s imports %zu operator sets; at most %d are read", owner, count,
                       IMPORTS_MAX);
  for (size_t i = 0; i < count; i++) {
    TRY(check_import(imports[i], sink, place, owner));
    StrView domain = onnx_text(imports[i]->domain);
    for (size_t j = 0; j < i; j++)
      if (same_domain(onnx_text(imports[j]->domain), domain) &&
          imports[i]->version != imports[j]->version)
        return diag_report(sink, DIAG_OPSET_DUPLICATE, place,
                           "%s imports the operator set '" SV_FMT "' at versions %lld and %lld",
                           owner, SV_ARG(is_onnx_domain(domain) ? SV("ai.onnx") : domain),
                           (long long)imports[j]->version, (long long)imports[i]->version);
  }
  return STATUS_OK;
}

static Status check_ir_version(const OnnxModel *m, DiagSink *sink, DiagPlace place) {
  if (!m->proto->has_ir_version)
    return diag_report(sink, DIAG_IR_VERSION, place, "the model has no ir_version");
  int64_t version = m->proto->ir_version;
  if (version < ONNX_IR_VERSION_OLDEST || version > ONNX_IR_VERSION_NEWEST)
    return diag_report(sink, DIAG_IR_VERSION, place,
                       "the model has ir_version %lld; versions %d to %d can be read",
                       (long long)version, ONNX_IR_VERSION_OLDEST, ONNX_IR_VERSION_NEWEST);
  return STATUS_OK;
}

/* Bytes of other formats may read as a model with unknown fields alone. */
static Status report_empty(const OnnxModel *m, DiagSink *sink, DiagPlace place) {
  const char *hint = onnx_other_format(m->file.data, m->file.size);
  Diag *d = diag_begin(sink, DIAG_MODEL_EMPTY, place);
  diag_message(d, "the model has no graph");
  if (hint)
    diag_hint(d, "%s", hint);
  return diag_end(d);
}

static Status check_model(OnnxModel *m, DiagSink *sink, DiagPlace place) {
  const Onnx__ModelProto *proto = m->proto;
  if (!proto->graph)
    return report_empty(m, sink, place);
  TRY(check_ir_version(m, sink, place));
  m->ir_version = proto->ir_version;
  if (proto->n_opset_import == 0)
    return diag_report(sink, DIAG_OPSET_MISSING, place, "the model imports no operator set");
  TRY(check_imports(proto->opset_import, proto->n_opset_import, sink, place, "the model"));
  m->opset = onnx_opset_version(proto->opset_import, proto->n_opset_import, SV(""));
  for (size_t i = 0; i < proto->n_functions; i++) {
    const Onnx__FunctionProto *function = proto->functions[i];
    place.graph = onnx_text(function->name);
    TRY(check_imports(function->opset_import, function->n_opset_import, sink, place,
                      "the function"));
  }
  return STATUS_OK;
}

/* --- open and close --- */

static void model_init(OnnxModel *m) {
  *m = (OnnxModel){.file = {.fd = -1}};
  intern_init(&m->locations);
}

static Status read_model(OnnxModel *m, DiagSink *sink) {
  DiagPlace place = diag_file(m->file.path);
  Status status = STATUS_OK;
  if (m->file.size == 0)
    status = diag_report(sink, DIAG_FILE_EMPTY, place, "the model file is empty");
  if (status == STATUS_OK)
    status = unpack(m, sink, place);
  if (status == STATUS_OK)
    status = check_model(m, sink, place);
  if (status != STATUS_OK)
    onnx_model_close(m);
  return status;
}

Status onnx_model_open(OnnxModel *m, DiagSink *sink, const char *path) {
  model_init(m);
  Status status = file_map(&m->file, &m->arena, sink, path);
  if (status != STATUS_OK) {
    onnx_model_close(m);
    return status;
  }
  m->from_file = true;
  return read_model(m, sink);
}

Status onnx_model_open_bytes(OnnxModel *m, DiagSink *sink, const char *name, const uint8_t *data,
                             uint64_t size) {
  model_init(m);
  file_of_bytes(&m->file, &m->arena, name, data, size);
  return read_model(m, sink);
}

void onnx_model_close(OnnxModel *m) {
  for (uint32_t i = 0; i < m->locations.count; i++)
    file_unmap(m->external[i]);
  file_unmap(&m->file);
  intern_release(&m->locations);
  arena_release(&m->arena);
  model_init(m);
}
