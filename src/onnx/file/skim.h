/* The first pass over a model's bytes: checks the wire format of every message that etc reads and
 * makes a copy of the model without weights, which is what protobuf-c gets to see. */
#ifndef ETC_ONNX_SKIM_H
#define ETC_ONNX_SKIM_H

#include "onnx/file/model.h"
#include "onnx/file/wire.h"

enum {
  SKIM_MESSAGE_DEPTH_MAX = 100, /* the default limit of Google's readers */
  SKIM_SUBGRAPH_DEPTH_MAX = 32  /* as in ONNX Runtime */
};

typedef struct OnnxSkim {
  const uint8_t
      *message; /* a ModelProto without weights and unknown fields, in the scratch arena */
  size_t message_size;
  OnnxTensorSpan *spans; /* in the arena; one for each TensorProto that has a data field */
  uint32_t span_count;
} OnnxSkim;

/* Reads a file. Errors, reported with the byte offset: whatever wire.h refuses; a known
 * field of another wire type; a field given twice that may come once; strings with a NUL byte;
 * nesting beyond the limits above; messages so empty that reading them would take far more memory
 * than the file has bytes. */
Status onnx_skim(OnnxSkim *out, Arena *arena, Arena *scratch, DiagSink *sink, DiagPlace place,
                 const MappedFile *file);

/* What a file is that starts with these bytes, when it is nothing that etc reads; NULL when not
 * known. */
const char *onnx_other_format(const uint8_t *data, uint64_t size);

/* The code under which a fault of the wire format is reported. */
DiagCode onnx_wire_code(WireFault fault);

/* Numbers of TensorProto's data fields, which schema/onnx.proto leaves out. */
enum {
  TENSOR_FLOAT_DATA = 4,
  TENSOR_INT32_DATA = 5,
  TENSOR_STRING_DATA = 6,
  TENSOR_INT64_DATA = 7,
  TENSOR_RAW_DATA = 9,
  TENSOR_DOUBLE_DATA = 10,
  TENSOR_UINT64_DATA = 11
};

#endif
