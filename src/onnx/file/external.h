/* Tensor data outside the model file (TensorProto.external_data). */
#ifndef ETC_ONNX_EXTERNAL_H
#define ETC_ONNX_EXTERNAL_H

#include "onnx/file/model.h"

/* Finds the needed bytes of a tensor whose data_location is EXTERNAL: *file is a mapping that m
 * owns, and *offset + needed bytes lie inside of it. Each file is mapped once. what names the
 * tensor in messages. Errors, reported at place: keys other than location, offset, length,
 * checksum, or one of them twice; no location; a location that is empty, absolute, a Windows path,
 * leaves the model's folder, or is ONNX Runtime's mark of an address in memory; whatever
 * file_map_beneath reports; offset or length that are no numbers, a length other than needed, bytes
 * past the end of the file. checksum is not verified. */
Status onnx_external_find(OnnxModel *m, const Onnx__TensorProto *t, uint64_t needed,
                          const char *what, DiagSink *sink, DiagPlace place,
                          const MappedFile **file, uint64_t *offset);

#endif
