"""Quantization. Scales are powers of two where a rounding would otherwise depend on the last bit."""

import numpy as np

from builder import I8, U8, op
from graph import Reject

F32 = np.dtype(np.float32)


def scale_and_zero(b, shape, dtype, axis=None):
    """Per tensor, or along an axis."""
    size = () if axis is None else (shape[axis],)
    scale = 2.0 ** b.np_rng.integers(-4, 1, size) * b.choice([1.0, 1.0, 1.25])
    zero = b.np_rng.integers(100, 130, size) if dtype == U8 else b.np_rng.integers(-5, 6, size)
    return np.asarray(scale, np.float32), np.asarray(zero).astype(dtype)


def axis_of(b, shape):
    fixed = [i for i, d in enumerate(shape) if b.fixed(d)]
    return b.choice(fixed) if b.opset >= 13 and b.chance(0.4) and fixed else None


@op("QuantizeLinear", 10, weight=1.5)
def quantize_linear(b):
    x = b.operand(F32, 1, 4, low=-60, high=60)
    axis = axis_of(b, b.x(x).shape)
    scale, zero = scale_and_zero(b, b.x(x).shape, b.choice([U8, I8]), axis)
    zero = b.constant(zero) if b.chance(0.8) else ""
    b.node("QuantizeLinear", [x, b.constant(scale), zero], exact=True, axis=axis)


@op("DequantizeLinear", 10, weight=1.5)
def dequantize_linear(b):
    x = b.operand({U8, I8}, 1, 4)
    axis = axis_of(b, b.x(x).shape)
    scale, zero = scale_and_zero(b, b.x(x).shape, b.x(x).dtype, axis)
    b.node("DequantizeLinear", [x, b.constant(scale), b.constant(zero) if b.chance(0.7) else ""], axis=axis)


@op("DynamicQuantizeLinear", 11, weight=0.6)
def dynamic_quantize_linear(b):
    x = b.operand(F32, 1, 4, low=-60, high=60, least=1)
    b.node("DynamicQuantizeLinear", [x], 3)


@op("MatMulInteger", 10)
def matmul_integer(b):
    x = b.operand({U8, I8}, 2, 3, least=1)
    y = b.fresh(b.choice([U8, I8]), (b.x(x).shape[-1], b.whole(1, 5)), 0, 9)
    zeros = [b.constant(np.array(b.whole(0, 5), b.x(k).dtype)) if b.chance(0.5) else "" for k in (x, y)]
    b.node("MatMulInteger", [x, y, *zeros], exact=True)


@op("ConvInteger", 10, weight=0.7)
def conv_integer(b):
    x = b.operand({U8}, 4, 4, least=1, where=lambda v: b.fixed(v.shape[1]) and min(v.shape[2:]) > 1)
    w = b.fresh(b.choice([U8, I8]), (b.whole(1, 3), b.x(x).shape[1], b.whole(1, 2), b.whole(1, 2)), 0, 9)
    b.node("ConvInteger", [x, w, b.constant(np.array(b.whole(0, 5), U8)) if b.chance(0.5) else "",
                           b.constant(np.array(b.whole(0, 5), b.x(w).dtype)) if b.chance(0.3) else ""], exact=True,
           strides=b.choice([None, [2, 1]]), pads=b.choice([None, [1, 0, 1, 1]]))


def quantized_operand(b, x, scale=None):
    scale, zero = scale_and_zero(b, (), b.x(x).dtype)
    return [x, b.constant(scale), b.constant(zero)]


@op("QLinearMatMul", 10, weight=0.7)
def qlinear_matmul(b):
    x = b.operand({U8, I8}, 2, 3, least=1)
    dtype = b.x(x).dtype
    y = b.fresh(dtype, (b.x(x).shape[-1], b.whole(1, 4)), 0, 9)
    b.node("QLinearMatMul", [*quantized_operand(b, x), *quantized_operand(b, y), b.constant(np.array(1.37, np.float32)),
                             b.constant(np.array(7, dtype))], exact=True)


@op("QLinearConv", 10, weight=0.7)
def qlinear_conv(b):
    x = b.operand({U8}, 4, 4, least=1, where=lambda v: b.fixed(v.shape[1]) and min(v.shape[2:]) > 1)
    filters = b.whole(1, 3)
    w = b.fresh(b.choice([U8, I8]), (filters, b.x(x).shape[1], b.whole(1, 2), b.whole(1, 2)), 0, 9, constant=True)
    bias = b.constant(b.np_rng.integers(-50, 50, filters).astype(np.int32)) if b.chance(0.5) else ""
    b.node("QLinearConv", [*quantized_operand(b, x), *quantized_operand(b, w), b.constant(np.array(3.11, np.float32)),
                           b.constant(np.array(7, U8)), bias], exact=True, pads=b.choice([None, [1, 0, 1, 1]]))


def fake_quantize(b):
    """Quantize and back: what quantized models are full of."""
    x = b.operand(F32, 1, 4, low=-60, high=60)
    if not b.finite(x):
        raise Reject("not finite")
    scale, zero = scale_and_zero(b, (), U8)
    scale, zero = b.constant(scale), b.constant(zero)
    b.node("DequantizeLinear", [b.node("QuantizeLinear", [x, scale, zero], exact=True), scale, zero], exact=True)


op("QuantizeLinear", 10)(fake_quantize)
