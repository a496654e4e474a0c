/* Parts of the quantized operators: plain arithmetic, as the ONNX documents say. */
#ifndef ETC_ONNX_QUANTIZED_H
#define ETC_ONNX_QUANTIZED_H

#include "onnx/express.h"

/* (a - a_zero) times (b - b_zero) in i32; zeros may be 0 (absent), one number, or one a row of a
 * and one a column of b. */
ValueId quantized_product(Import *im, ValueId a, ValueId a_zero, ValueId b, ValueId b_zero);
/* v - zero in i32; a vector of zero points lies along `axis` of v. */
ValueId quantized_centred(Import *im, ValueId v, ValueId zero, uint32_t axis);
/* (v - zero) * scale in f32, for one scale and zero point, or one an entry of `axis`. */
ValueId quantized_real(Import *im, ValueId v, ValueId scale, ValueId zero, uint32_t axis);
/* round(x / scale) + zero, saturated to the type `to`. One scale; zero may be 0. */
ValueId quantized_from(Import *im, ValueId x, ValueId scale, ValueId zero, DType to);
/* x with the lowest number for NaN, if it is a product with an infinite number; else x. */
ValueId quantized_without_nan(Import *im, ValueId x);
/* Whether inputs i, i + 1 (scale) and i + 2 (zero point) can be dequantized by an op that backends
 * match; the scales lie along `axis`. Whether inputs i and i + 1 are one known scale and a zero
 * point. */
bool quantized_is_known(Import *im, uint32_t i, uint32_t axis);
bool quantized_has_one_scale(Import *im, uint32_t i);
/* QLinearConv as dequantize, convolution and quantize, where all scales and zero points are known;
 * false when they are not. last: the image has its channels in the last dim, the weight has not. */
bool quantized_real_conv(Import *im, bool last);
/* x (f32) quantized to u8 as DynamicQuantizeLinear does it, with the scale and the zero point (u8)
 * that it chooses. */
ValueId quantized_by_range(Import *im, ValueId x, ValueId *scale, ValueId *zero);
/* x, quantized as DynamicQuantizeLinear does it, times the quantized w, plus the bias (may be 0);
 * the scale and zero point of w are one number each, or one a column. */
ValueId quantized_dynamic(Import *im, ValueId x, ValueId w, ValueId w_scale, ValueId w_zero,
                          ValueId bias);

/* Constant codes of channels with negative scales, zero points 0: the codes of those channels get
 * the other sign. That of -128, which NNCF gives the largest weight, is no int8: then all codes are
 * u8, with zero points. inner: elements that follow each other in one channel. Answers whether they
 * did. */
bool negative_scales_flipped(Import *im, uint64_t inner, ValueId *x, ValueId *scale, ValueId *zero);

/* --- codes of 2, 4 or 8 bits in blocks of a row, the lowest bits of a byte first --- */

/* A matrix [n, k] of such codes; `count` blocks in a row, `bytes` in a block. */
typedef struct Blocks {
  int64_t n, k, size, bits, count, bytes;
  ValueId packed; /* [n, count * bytes] */
  ValueId scales; /* [n, count] */
  ValueId zeros;  /* likewise, codes or real numbers; 0: the middle of the codes */
  bool real_zeros;
} Blocks;
/* Bytes of zero points as zero points: the last dim is 8 / bits as large. */
ValueId blocks_zeros(Import *im, ValueId packed, int64_t bits);
/* x w' + bias in f32 (the bias may be 0) for w = (codes - zeros) * scales. */
ValueId blocks_linear(Import *im, const Blocks *w, ValueId x, ValueId bias);

#endif
