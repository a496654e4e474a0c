/* Any bytes as an ONNX model: the container is read and every tensor is viewed to its last byte;
 * then the model is lowered by the public interface, as `etc lower` does it, each symbolic
 * dimension bounded. What is refused must be refused with a message; what is written must pass `etc
 * verify`.
 *
 * The public interface reads files: the bytes are in a memfd. Seeds are the official cases
 * (seeds.py), the models of tests/onnx/bad (tools/fuzz-smoke gathers them) and
 * tests/fuzz/corpus/fuzz_onnx. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "etc/etc.h"
#include "ir/verify.h"
#include "onnx/file/tensor.h"
#include "pipeline/session.h"
#include "pte/read.h"
#include "pte/verify_plan.h"

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

/* --- the container --- */

static volatile uint64_t seen; /* the reads must happen */

static bool view_all(DiagSink *sink, const uint8_t *data, size_t size, OnnxModel *m) {
  if (onnx_model_open_bytes(m, sink, "fuzz.onnx", data, size) != STATUS_OK) {
    if (sink->errors == 0)
      BUG("a model was refused without a word");
    return false;
  }
  uint64_t sum = view_graph(m, m->proto->graph, sink);
  for (size_t i = 0; i < m->proto->n_functions; i++)
    sum += view_nodes(m, m->proto->functions[i]->node, m->proto->functions[i]->n_node, sink);
  seen = sum;
  return true;
}

/* --- lowering --- */

/* --dim NAME=1..4 for the first dimensions with a name. */
static void bound_dims(EtcSession *s, const Onnx__GraphProto *graph) {
  char flag[128];
  for (size_t i = 0, flags = 0; i < graph->n_input && flags < 8; i++) {
    const Onnx__TypeProto *type = graph->input[i]->type;
    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
        !type->tensor_type->shape)
      continue;
    const Onnx__TensorShapeProto *shape = type->tensor_type->shape;
    for (size_t d = 0; d < shape->n_dim && flags < 8; d++) {
      if (shape->dim[d]->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM)
        continue;
      int length = snprintf(flag, sizeof flag, "%s=1..4", shape->dim[d]->dim_param);
      if (length > 0 && (size_t)length < sizeof flag)
        flags += etc_session_set(s, "dim", flag) == ETC_OK;
    }
  }
}

static void count_message(void *user, const char *text, size_t size) {
  (void)text;
  *(size_t *)user += size;
}

static void verify_program(const char *path) {
  DiagSink sink;
  Context ctx;
  PteFile file;
  diag_sink_init(&sink);
  context_init(&ctx, &sink);
  if (pte_read(&ctx, path, NULL, &file) != STATUS_OK)
    BUG("the program cannot be read back");
  for (uint32_t i = 0; i < file.method_count; i++)
    if (graph_verify(file.methods[i], NULL) != STATUS_OK ||
        pte_verify_plan(file.methods[i]) != STATUS_OK)
      BUG("the program does not verify");
  pte_close(&file);
  context_release(&ctx);
  diag_sink_release(&sink);
}

static void lower(const Onnx__GraphProto *graph, const uint8_t *data, size_t size) {
  char input[64], output[64];
  int fd = memfd_create("fuzz.onnx", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != (ssize_t)size)
    BUG("no memory file");
  (void)snprintf(input, sizeof input, "/proc/self/fd/%d", fd);
  (void)snprintf(output, sizeof output, "/dev/shm/etc-fuzz-%ld.pte", (long)getpid());
  size_t said = 0;
  EtcSession *s = etc_session_new();
  s->manager.options.verify_each = s->manager.options.roundtrip = false; /* most of the time */
  etc_session_on_diagnostic(s, count_message, &said);
  bound_dims(s, graph);
  EtcStatus status = etc_session_add_method(s, "forward", input);
  if (status == ETC_OK)
    status = etc_lower(s, output);
  etc_session_free(s);
  if (status == ETC_INTERNAL)
    BUG("a model made an internal error");
  if (status == ETC_OK)
    verify_program(output);
  else if (said == 0)
    BUG("a model was not lowered, without a word");
  if ((status == ETC_OK) != (unlink(output) == 0))
    BUG("status %d does not fit the output file", (int)status);
  close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  DiagSink sink;
  OnnxModel m;
  diag_sink_init(&sink);
  sink.write = drop;
  if (view_all(&sink, data, size, &m)) {
    lower(m.proto->graph, data, size);
    onnx_model_close(&m);
  }
  diag_sink_release(&sink);
  return 0;
}
