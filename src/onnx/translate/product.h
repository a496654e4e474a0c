/* Gemm, for the operators that are made of it. */
#ifndef ETC_ONNX_PRODUCT_H
#define ETC_ONNX_PRODUCT_H

#include "onnx/translate.h"

/* alpha * a' * b' + beta * c of inputs 0 to 2 and the attributes of the current node. */
ValueId gemm_product(Import *im);

#endif
