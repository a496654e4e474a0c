/* An ONNX file, read but not yet understood: the container only. Nodes, names, types and cycles are
 * the importer's.
 *
 * The file is mapped; skim.c checks its wire format and hands protobuf-c a copy without weights;
 * onnx_tensor_view gives the bytes of a tensor, which for raw and external data are those of the
 * mapped file. Nothing here is safe to use from two threads at once.
 *
 * In the messages (onnx.pb-c.h) a string that the file leaves out is NULL: read it through
 * onnx_text. Strings hold no NUL byte, singular fields and members of a oneof came once, messages
 * nest at most 100 deep and subgraphs at most 32 deep: all that was checked. Whether strings are
 * UTF-8 was not. */
#ifndef ETC_ONNX_MODEL_H
#define ETC_ONNX_MODEL_H

#include "onnx.pb-c.h"
#include "support/arena.h"
#include "support/diag.h"
#include "support/files.h"
#include "support/intern.h"
#include "support/keymap.h"

enum {
  ONNX_IR_VERSION_OLDEST = 3,  /* the first with opset imports */
  ONNX_IR_VERSION_NEWEST = 14, /* ONNX 1.23 */
  ONNX_OPSET_OLDEST = 1,
  ONNX_OPSET_NEWEST = 28 /* ONNX 1.23 */
};

/* Where one TensorProto with data lies in the model file, and its typed fields once they were
 * converted. */
typedef struct OnnxTensorSpan {
  uint64_t offset, size; /* of the message's body, in bytes from the start of the file */
  const uint8_t *decoded;
  uint64_t decoded_size;
} OnnxTensorSpan;

typedef struct OnnxModel {
  Arena arena;             /* owns proto and everything below */
  MappedFile file;         /* fd -1 when opened from bytes */
  Onnx__ModelProto *proto; /* graph is not NULL */
  int64_t ir_version;      /* ONNX_IR_VERSION_OLDEST .. _NEWEST */
  int64_t
      opset; /* version of ai.onnx that the model imports; 0 when it imports other domains only */
  OnnxTensorSpan *spans; /* by TensorProto.span */
  uint32_t span_count;
  Intern locations;      /* external files opened so far */
  MappedFile **external; /* [id of location - 1] */
  KeyMap moved;     /* nodes that were sorted (order.h): 1 + their place in the file, by address */
  bool linked_data; /* links may lead to external data; set after opening */
  bool from_file;   /* false when opened from bytes: external data has no folder then */
} OnnxModel;

/* Reads the model at path. Errors, all reported: what file_map reports; bytes that are no protobuf
 * message of this type (with the offset); missing graph; ir_version missing or outside
 * ONNX_IR_VERSION_OLDEST .. _NEWEST; opset imports missing, of two versions
 * of one domain, or outside ONNX_OPSET_OLDEST ..
 * ONNX_OPSET_NEWEST. After an error there is nothing to close, but closing is harmless. */
Status onnx_model_open(OnnxModel *m, DiagSink *sink, const char *path);
/* Reads a model from memory, which must outlive it; name stands for the path in diagnostics.
 * External data is refused. */
Status onnx_model_open_bytes(OnnxModel *m, DiagSink *sink, const char *name, const uint8_t *data,
                             uint64_t size);
/* Unmaps all files and frees all messages; views become invalid. */
void onnx_model_close(OnnxModel *m);

/* The version that a list of imports (of a model or a function) gives to a domain, "" and "ai.onnx"
 * being one; 0 when it is not imported. */
int64_t onnx_opset_version(Onnx__OperatorSetIdProto *const *imports, size_t count, StrView domain);

/* The type of a tensor, or of the one that an optional holds; NULL for anything else. */
const Onnx__TypeProto__Tensor *onnx_tensor_type(const Onnx__ValueInfoProto *value);
/* Whether a dimension is a number. */
bool onnx_dim_is_known(const Onnx__TensorShapeProto__Dimension *dim);
/* The name of one that is not; "" without one. */
StrView onnx_dim_param(const Onnx__TensorShapeProto__Dimension *dim);

/* A string field, "" when absent. */
static inline StrView onnx_text(const char *field) {
  return field ? sv_from(field) : (StrView){"", 0};
}

#endif
