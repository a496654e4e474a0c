/* Element types that neither the IR nor the runtime has: integers of 4 and 2 bits, which a model
 * packs into bytes, and the small floats float4e2m1 and float8e8m0.
 *
 * A tensor of one becomes i8 or u8, one byte an element, when it is imported; the binding of its
 * name remembers the type (translate.h, in_packed). A small float is the number of its bits. Only
 * the operators that ONNX allows for such tensors may see them. Tensors of strings (labels.h)
 * follow the same rules. */
#ifndef ETC_ONNX_PACKED_H
#define ETC_ONNX_PACKED_H

#include "onnx/file/tensor.h"
#include "onnx/translate.h"

/* I8 or U8 for such a type, DTYPE_NONE for all others. */
DType packed_storage(int32_t onnx_dtype);
/* The elements of a view of such a type, a byte each; many of them are unpacked when they are read.
 */
Constant packed_elements(Import *im, const OnnxTensorView *view);
/* The range of an integer of 4 or 2 bits; false for all other types. */
bool packed_limits(int32_t onnx_dtype, double *low, double *high);
/* Before a node is translated: fails when it has such an input and is not made for it. */
bool packed_inputs_fit(Import *im);
/* After it: results of operators that only copy elements (Reshape, Gather, ...) have the type of
 * the first input. */
void packed_outputs(Import *im);

/* Small floats, those of the runtime (f8…) among them, as f32, by a table. */
int32_t small_float_input(Import *im, uint32_t i); /* the type; 0: input i is not a small float */
ValueId decode_small_float(Import *im, ValueId v, int32_t onnx_dtype);

#endif
