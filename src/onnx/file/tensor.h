/* The bytes of a tensor, wherever a model keeps them. */
#ifndef ETC_ONNX_TENSOR_H
#define ETC_ONNX_TENSOR_H

#include "ir/dtype.h"
#include "onnx/file/model.h"

/* Row-major elements, little-endian as in the file when file is set and in the byte order of the
 * host otherwise (etc runs on little-endian hosts only, where that is the same).
 *
 * DATA MAY BE UNALIGNED: protobuf puts raw data at any offset, and so may external files. Read it
 * with memcpy. Elements of 4 and 2 bits are packed, the first in the lowest bits, and the unused
 * bits of the last byte are undefined. bool is one byte: 0 or, as far as raw data goes, anything
 * else for true. */
typedef struct OnnxTensorView {
  int32_t onnx_dtype; /* Onnx__TensorProto__DataType, one that onnx_dtype_bits knows */
  uint32_t rank;
  const int64_t
      *dims; /* rank of them, none negative; the product of those that are not 0 fits int64_t */
  const uint8_t *data;    /* never NULL */
  uint64_t size;          /* bytes: exactly what dims and dtype need */
  const MappedFile *file; /* data lies in this mapping at file_offset; NULL when it was converted
                             into the model's arena */
  uint64_t file_offset;
} OnnxTensorView;

/* Finds the data of t, a message of m. raw_data, external data, and float_data / double_data in one
 * piece are views of mapped files; other typed fields are converted into m's arena the first time.
 * Errors, reported at place (the tensor's name is added): dims negative or with a product beyond
 * int64_t; data_type unknown, or string, complex or 6-bit float (unsupported); no data, data in two
 * fields or in one that the type does not use, a value outside the type, a size that disagrees with
 * dims; segments; whatever external.h reports. */
Status onnx_tensor_view(OnnxModel *m, const Onnx__TensorProto *t, DiagSink *sink, DiagPlace place,
                        OnnxTensorView *out);

/* The elements of a tensor of strings, row-major: views of the model's file, in an array of arena.
 * The same errors. */
Status onnx_tensor_strings(OnnxModel *m, const Onnx__TensorProto *t, DiagSink *sink,
                           DiagPlace place, Arena *arena, StrView **values, uint32_t *count);

/* DTYPE_NONE for what the runtime cannot hold (strings, complex, sub-byte). */
DType dtype_from_onnx(int32_t onnx_dtype);
/* Bits of an element as stored; 0 for types that have no view (undefined, string, complex, 6-bit
 * floats) and unknown numbers. */
uint32_t onnx_dtype_bits(int32_t onnx_dtype);
/* "float", "int4", ... as ONNX spells them in type strings; NULL for numbers that ONNX does not
 * define. */
const char *onnx_dtype_name(int32_t onnx_dtype);

#endif
