/* Tensor data outside the model file (TensorProto.external_data). */
#ifndef ETC_ONNX_EXTERNAL_H
#define ETC_ONNX_EXTERNAL_H

#include "onnx/file/model.h"

/* Where a tensor's faults go, and what it is called in them: "tensor 'w'". */
typedef struct TensorPlace {
  DiagSink *sink;
  DiagPlace place;
  const char *what;
} TensorPlace;
/* Reports what is wrong with the tensor; the message begins with what it is. */
ETC_PRINTF(3, 4)
Status tensor_fault(const TensorPlace *at, DiagCode code, const char *format, ...);

/* Finds the needed bytes of a tensor whose data_location is EXTERNAL: *file is a mapping that m
 * owns, and *offset + needed bytes lie inside of it. Each file is mapped once. Errors, reported
 * at the tensor: keys other than location, offset, length, checksum, or one of them twice; no
 * location; a location that is empty, absolute, a Windows path, leaves the model's folder, or is
 * ONNX Runtime's mark of an address in memory; whatever file_map_beneath reports; offset or length
 * that are no numbers, a length other than needed, bytes past the end of the file. checksum is not
 * verified. */
Status onnx_external_find(OnnxModel *m, const Onnx__TensorProto *t, uint64_t needed,
                          const TensorPlace *at, const MappedFile **file, uint64_t *offset);

#endif
