/* See weights.h. */
#include "onnx/file/weights.h"

#include "onnx/file/tensor.h"

static bool is_small_integer(int32_t onnx_dtype) {
  uint32_t bits = onnx_dtype_bits(onnx_dtype);
  return onnx_dtype == ONNX__TENSOR_PROTO__DATA_TYPE__INT8 ||
         onnx_dtype == ONNX__TENSOR_PROTO__DATA_TYPE__UINT8 || (bits != 0 && bits < 8);
}

static uint64_t bytes_of(const Onnx__TensorProto *t) {
  uint64_t bits = onnx_dtype_bits(t->data_type);
  for (size_t i = 0; i < t->n_dims; i++)
    if (t->dims[i] < 0 || !mul_u64(bits, (uint64_t)t->dims[i], &bits))
      return 0; /* the importer says what is wrong */
  return bits / 8;
}

OnnxWeights onnx_weights(const OnnxModel *m) {
  const Onnx__GraphProto *graph = m->proto->graph;
  OnnxWeights out = {.count = graph->n_initializer};
  for (size_t i = 0; i < graph->n_initializer; i++) {
    const Onnx__TensorProto *t = graph->initializer[i];
    uint64_t bytes = bytes_of(t);
    if (!add_u64(out.bytes, bytes, &out.bytes))
      out.bytes = UINT64_MAX;
    else if (is_small_integer(t->data_type))
      out.small_bytes += bytes;
  }
  return out;
}

void onnx_initializer_names(const OnnxModel *m, Intern *out) {
  const Onnx__GraphProto *graph = m->proto->graph;
  intern_init(out);
  for (size_t i = 0; i < graph->n_initializer; i++)
    (void)intern_add(out, onnx_text(graph->initializer[i]->name));
  for (size_t i = 0; i < graph->n_sparse_initializer; i++)
    (void)intern_add(out, onnx_sparse_name(graph->sparse_initializer[i]));
}

uint64_t onnx_file_bytes(const OnnxModel *m) {
  uint64_t bytes = m->file.size;
  for (uint32_t i = 0; i < m->locations.count; i++)
    bytes += m->external[i]->size;
  return bytes;
}
