/* Any bytes as an ONNX model: the container is read and every tensor is viewed to its last byte.
 *
 * Seeds are small models of the official cases (tools/fuzz-smoke gathers them) and
 * tests/fuzz/corpus/fuzz_onnx. */
#include "onnx/tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void drop(void *user, const char *text, size_t size) {
  (void)user;
  (void)text;
  (void)size;
}

/* Reads all of the view, so that the sanitizer sees a view that is too long. */
static uint64_t view(OnnxModel *m, const Onnx__TensorProto *t, DiagSink *sink) {
  OnnxTensorView v;
  uint64_t sum = 0;
  if (t && onnx_tensor_view(m, t, sink, DIAG_NOWHERE, &v) == STATUS_OK)
    for (uint64_t i = 0; i < v.size; i++)
      sum += v.data[i];
  return sum;
}

static uint64_t view_graph(OnnxModel *m, const Onnx__GraphProto *graph, DiagSink *sink);

static uint64_t view_nodes(OnnxModel *m, Onnx__NodeProto **nodes, size_t count, DiagSink *sink) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; i++) {
    for (size_t j = 0; j < nodes[i]->n_attribute; j++) {
      const Onnx__AttributeProto *a = nodes[i]->attribute[j];
      sum += view(m, a->t, sink);
      for (size_t k = 0; k < a->n_tensors; k++)
        sum += view(m, a->tensors[k], sink);
      if (a->g)
        sum += view_graph(m, a->g, sink);
      for (size_t k = 0; k < a->n_graphs; k++)
        sum += view_graph(m, a->graphs[k], sink);
    }
  }
  return sum;
}

static uint64_t view_graph(OnnxModel *m, const Onnx__GraphProto *graph, DiagSink *sink) {
  uint64_t sum = view_nodes(m, graph->node, graph->n_node, sink);
  for (size_t i = 0; i < graph->n_initializer; i++)
    sum += view(m, graph->initializer[i], sink);
  for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
    sum += view(m, graph->sparse_initializer[i]->values, sink);
    sum += view(m, graph->sparse_initializer[i]->indices, sink);
  }
  return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  DiagSink sink;
  diag_sink_init(&sink);
  sink.write = drop;
  OnnxModel m;
  Status status = onnx_model_open_bytes(&m, &sink, "fuzz.onnx", data, size);
  volatile uint64_t sum = 0;
  if (status == STATUS_OK) {
    sum += view_graph(&m, m.proto->graph, &sink);
    for (size_t i = 0; i < m.proto->n_functions; i++)
      sum += view_nodes(&m, m.proto->functions[i]->node, m.proto->functions[i]->n_node, &sink);
    onnx_model_close(&m);
  } else if (sink.errors == 0) {
    BUG("a model was refused without a word");
  }
  diag_sink_release(&sink);
  return 0;
}
