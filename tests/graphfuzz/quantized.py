"""Quantization. Scales are powers of two where a rounding would otherwise depend on the last bit."""

import numpy as np

from builder import I8, SYMBOL_SIZES, U8, op
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


def whole_codes(b, shape):
    """Floats that are their own codes when they are quantized at run time: whole, with 0 and 255 among them."""
    x = b.np_rng.integers(0, 256, shape).astype(F32)
    x.flat[0], x.flat[-1] = 0, 255
    return x


def product_at_run(b):
    """A product of what is quantized at run time with constant codes, as quantize_dynamic writes it, and what limits it."""
    columns = b.whole(2, 8)
    both = b.symbolic and b.chance(0.5)  # dims of rows vary
    shape = (*(SYMBOL_SIZES.values() if both else b.shape(2, 4, least=1)[:-1]), columns)
    x = b.add_input(whole_codes(b, shape), lambda s: whole_codes(b, s))
    if b.chance(0.3):
        order = [*b.rng.sample(range(len(shape) - 1), len(shape) - 1), len(shape) - 1]
        x = b.node("Transpose", [x], exact=True, perm=order)
    codes, scale, zero = b.node("DynamicQuantizeLinear", [x], 3, exact=True)
    w = b.fresh(I8, (columns, b.whole(1, 9)), -60, 60, constant=True)
    y = b.node("Cast", [b.node("MatMulInteger", [codes, w, zero], exact=True)], exact=True, to=1)
    factor = 2.0 ** b.np_rng.integers(-9, -3, () if b.chance(0.5) else b.x(w).shape[1:])
    y = b.node("Mul", [y, b.node("Mul", [scale, b.constant(np.asarray(factor, F32))], exact=True)], exact=True)
    if b.chance(0.3):
        y = b.node("Add", [y, b.fresh(F32, b.x(w).shape[1:], constant=True)])
    if b.chance(0.6):
        limits = [b.constant(np.array(v, F32)) if b.chance(0.6) else "" for v in sorted(b.np_rng.integers(-8, 9, 2) / 4)]
        b.node("Clip", [y, *limits], exact=True)


op("ProductAtRun", 11, weight=0)(product_at_run)  # for --only: the graphs of all seeds stay as they were
