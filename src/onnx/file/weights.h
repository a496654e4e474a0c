/* How large the weights of a model are, as its file declares them. */
#ifndef ETC_ONNX_WEIGHTS_H
#define ETC_ONNX_WEIGHTS_H

#include "onnx/file/model.h"

typedef struct OnnxWeights {
  uint64_t count;       /* initializers of the main graph */
  uint64_t bytes;       /* of their elements */
  uint64_t small_bytes; /* of those that are integers of 8 bits or less */
} OnnxWeights;
OnnxWeights onnx_weights(const OnnxModel *m);
/* A sparse tensor is named by its values. */
static inline StrView onnx_sparse_name(const Onnx__SparseTensorProto *t) {
  return onnx_text(t->values ? t->values->name : NULL);
}
/* The names of the initializers, to tell them from inputs: older files list both as inputs. No
 * names: of outputs none is an initializer. */
void onnx_initializer_names(const OnnxModel *m, Intern *out); /* intern_release */
static inline bool onnx_is_initializer(const Intern *names, const char *name) {
  return names && intern_find(names, onnx_text(name)) != 0;
}
/* Bytes of the model's file and of all external files opened so far. */
uint64_t onnx_file_bytes(const OnnxModel *m);

#endif
