"""Operators of com.microsoft, as ONNX Runtime's optimizers and quantizers write them. Their weights are 0: they are for --only."""

import numpy as np

from builder import BOOL, I8, I32, U8, op
from convolution import image, window
from graph import Reject
from normalization import spread
from quantized import quantized_operand, whole_codes

F32 = np.dtype(np.float32)
DOMAIN = "com.microsoft"


def contrib(name):
    """Registers a family by its full name."""
    return op(f"{DOMAIN}.{name}", 11, weight=0)


def add(b, name, inputs, outputs=1, **more):
    return b.node(name, inputs, outputs, domain=DOMAIN, **more)


def vector(b, length, low=-2, high=2):
    return b.fresh(F32, (length,), low, high, constant=b.chance(0.8))


# --- products ---


@contrib("FusedMatMul")
def fused_matmul(b):
    rank = b.whole(2, 4)
    batch = b.shape(0, rank - 2, 1)[:rank - 2]
    m, k, n = (b.whole(1, 6) for _ in range(3))
    flip = b.chance(0.5), b.chance(0.5)
    x = b.like(F32, (*batch, *((k, m) if flip[0] else (m, k))), -3, 3)
    y = b.like(F32, (*(batch if b.chance(0.7) else ()), *((n, k) if flip[1] else (k, n))), -3, 3)
    add(b, "FusedMatMul", [x, y], alpha=b.choice([None, 0.5, -2.0]), transA=int(flip[0]) or None, transB=int(flip[1]) or None)


ACTIVATIONS = [("Relu", None), ("Tanh", None), ("Sigmoid", None), ("LeakyRelu", [0.1]), ("HardSigmoid", [0.2, 0.5]), ("Clip", [-1.0, 1.5])]


@contrib("FusedConv")
def fused_conv(b):
    x = image(b, "Conv", least=2)
    dtype, (_, channels, *spatial) = b.x(x).dtype, b.x(x).shape
    if dtype != F32:
        raise Reject("float32 only")
    kernel, attributes = window(b, spatial, "Conv")
    group = b.choice([g for g in (1, 1, 2, channels) if channels % g == 0])
    filters = group * b.whole(1, 3)
    w = b.fresh(F32, (filters, channels // group, *kernel), -1, 1, constant=True)
    name, parameters = b.choice(ACTIVATIONS)
    add(b, "FusedConv", [x, w, vector(b, filters, -1, 1) if b.chance(0.6) else ""], group=group, activation=name,
        activation_params=parameters, **attributes)


@contrib("FusedGemm")
def fused_gemm(b):
    m, k, n = b.dim(1), b.whole(1, 6), b.whole(1, 6)
    x, w = b.like(F32, (m, k), -3, 3), b.fresh(F32, (k, n), -2, 2)
    name, parameters = b.choice([a for a in ACTIVATIONS if a[0] in ("Relu", "Tanh", "Sigmoid", "LeakyRelu")])
    add(b, "FusedGemm", [x, w, vector(b, n)], activation=name, activation_alpha=parameters and parameters[0],
        alpha=b.choice([None, 0.5]), beta=b.choice([None, 2.0]))


@contrib("MatMulNBits")
def matmul_nbits(b):
    columns, rows, block = 16 * b.whole(1, 4), b.whole(1, 9), b.choice([16, 32])
    bits = b.choice([4, 8])
    blocks = -(-columns // block)
    x = b.like(F32, (*b.shape(1, 3, 1)[:b.whole(1, 2)], columns), -3, 3)
    codes = b.np_rng.integers(0, 256, (rows, blocks, block * bits // 8)).astype(U8)
    scales = (2.0 ** b.np_rng.integers(-6, -2, rows * blocks)).astype(F32)
    zeros = b.constant(b.np_rng.integers(0, 256, rows * (-(-blocks * bits // 8))).astype(U8)) if b.chance(0.5) else ""
    bias = vector(b, rows) if b.chance(0.4) else ""
    add(b, "MatMulNBits", [x, b.constant(codes), b.constant(scales), zeros, "", bias], K=columns, N=rows, bits=bits, block_size=block)


# --- activations ---


@contrib("Gelu")
def gelu(b):
    add(b, "Gelu", [b.operand(F32, 1, 4, low=-20, high=20)])


@contrib("QuickGelu")
def quick_gelu(b):
    add(b, "QuickGelu", [b.operand(F32, 1, 4, low=-6, high=20)], alpha=b.choice([None, 1.0, 1.702]))


@contrib("BiasGelu")
def bias_gelu(b):
    x = b.operand(F32, 1, 4, low=-20, high=20, least=1, where=lambda v: b.fixed(v.shape[-1]))
    add(b, "BiasGelu", [x, vector(b, b.x(x).shape[-1])])


@contrib("FastGelu")
def fast_gelu(b):
    x = b.operand(F32, 1, 4, low=-20, high=20, least=1, where=lambda v: b.fixed(v.shape[-1]))
    add(b, "FastGelu", [x, vector(b, b.x(x).shape[-1]) if b.chance(0.5) else ""])


# --- norms ---


def rows_of(b, least=2):
    x = b.operand(F32, 2, 3, low=-20, high=20, least=1, where=lambda v: b.fixed(v.shape[-1]) and v.shape[-1] >= least)
    spread(b, x, -1)
    return x, b.x(x).shape


@contrib("SkipLayerNormalization")
def skip_layer_norm(b):
    x, shape = rows_of(b)
    repeats = len(shape) == 3 and not b.symbolic and b.chance(0.3)
    skip = b.fresh(F32, (1, *shape[1:]) if repeats else shape, -3, 3)
    outputs = [True, False, False, b.chance(0.5)]
    add(b, "SkipLayerNormalization", [x, skip, vector(b, shape[-1]), vector(b, shape[-1]) if b.chance(0.7) else "",
                                      vector(b, shape[-1]) if b.chance(0.4) else ""], 4, keep=outputs, epsilon=b.choice([None, 1e-3]))


@contrib("SkipSimplifiedLayerNormalization")
def skip_rms_norm(b):
    x, shape = rows_of(b)
    add(b, "SkipSimplifiedLayerNormalization", [x, b.fresh(F32, shape, -3, 3), vector(b, shape[-1]),
                                                vector(b, shape[-1]) if b.chance(0.4) else ""], 4,
        keep=[True, False, False, b.chance(0.5)], epsilon=b.choice([None, 1e-3]))


@contrib("EmbedLayerNormalization")
def embed_layer_norm(b):
    batch, length, hidden, words = b.whole(1, 3), b.whole(1, 5), b.whole(2, 8), 9
    ids = b.fresh(I32, (batch, length), 0, words - 1)
    kinds = b.fresh(I32, (batch, length), 0, 1) if b.chance(0.6) else ""
    tables = [b.fresh(F32, (n, hidden), -3, 3, constant=True) for n in (words, 6, 2)]
    mask = b.fresh(I32, (batch, length), 0, 1) if b.chance(0.5) else ""
    add(b, "EmbedLayerNormalization", [ids, kinds, tables[0], tables[1], tables[2] if kinds else "", vector(b, hidden), vector(b, hidden), mask],
        2, epsilon=b.choice([None, 1e-3]))


# --- attention ---


@contrib("MultiHeadAttention")
def multi_head_attention(b):
    batch, heads, steps, keys, size = b.dim(1), b.whole(1, 3), b.whole(1, 5), b.whole(1, 5), b.whole(1, 4)
    hidden = heads * size
    query = b.like(F32, (batch, steps, hidden), -3, 3)
    key, value = (b.like(F32, (batch, keys, hidden), -3, 3) for _ in range(2))
    bias = vector(b, 3 * hidden) if b.chance(0.4) else ""
    mask, added = "", ""
    if b.chance(0.3):
        mask = b.fresh(I32, (batch, keys), 1, 1)
    elif b.chance(0.4):
        added = b.fresh(F32, (b.choice([1, batch]), b.choice([1, heads]), steps, keys), -2, 2)
    add(b, "MultiHeadAttention", [query, key, value, bias, mask, added], num_heads=heads, scale=b.choice([None, 0.3]),
        unidirectional=b.choice([None, 1]) if steps == keys else None)


@contrib("Attention")
def attention(b):
    batch, heads, steps, size, width = b.dim(1), b.whole(1, 3), b.whole(1, 5), b.whole(1, 4), b.whole(1, 6)
    hidden = heads * size
    x = b.like(F32, (batch, steps, width), -3, 3)
    mask = ""
    if b.chance(0.5):
        shape = b.choice([(batch, steps), (batch,), (batch, steps, steps)])
        mask = b.fresh(I32, shape, 1, steps) if len(shape) == 1 else b.constant(np.ones(shape, np.int32))
    add(b, "Attention", [x, b.fresh(F32, (width, 3 * hidden), -1, 1, constant=True), vector(b, 3 * hidden), mask], num_heads=heads,
        unidirectional=b.choice([None, 1]), scale=b.choice([None, 0.4]))


@contrib("RotaryEmbedding")
def rotary(b):
    batch, heads, steps, half, most = b.whole(1, 3), b.whole(1, 3), b.whole(1, 5), b.whole(1, 4), 8
    flat = b.chance(0.6)
    shape = (batch, steps, heads * half * 2) if flat else (batch, heads, steps, half * 2)
    places = b.constant(b.np_rng.integers(0, most - steps + 1, 1)) if b.chance(0.4) else b.constant(b.np_rng.integers(0, most, (batch, steps)))
    add(b, "RotaryEmbedding", [b.like(F32, shape, -3, 3), places, b.fresh(F32, (most, half), -1, 1, constant=True),
                               b.fresh(F32, (most, half), -1, 1, constant=True)], interleaved=b.choice([None, 1]))


# --- codes ---


def codes_of(b, low_rank=1, high_rank=4, **more):
    x = b.operand({U8, I8}, low_rank, high_rank, least=1, **more)
    return x, b.x(x).dtype


def target(b, dtype):
    """Scale and zero point of a result: no sum of codes lies in the middle between two codes."""
    return [b.constant(np.array(b.choice([0.13717, 0.73151, 1.37291]), F32)), b.constant(np.array(b.whole(100, 130) if dtype == U8 else b.whole(-5, 5), dtype))]


def register_codes(name, alphas=()):
    @contrib(name)
    def unary(b):
        x, dtype = codes_of(b)
        add(b, name, [*quantized_operand(b, x), *target(b, dtype)], exact=True, alpha=b.choice(alphas) if alphas else None)


register_codes("QLinearSigmoid")
register_codes("QLinearLeakyRelu", [0.1, 0.3])


def register_pair(name):
    @contrib(name)
    def pair(b):
        x, dtype = codes_of(b)
        y = b.broadcast(dtype, b.x(x).shape)
        add(b, name, [*quantized_operand(b, x), *quantized_operand(b, y), *target(b, dtype)], exact=True)


register_pair("QLinearAdd")
register_pair("QLinearMul")


@contrib("QLinearConcat")
def qlinear_concat(b):
    x, dtype = codes_of(b)
    shape = b.x(x).shape
    axis = b.choice([i for i, d in enumerate(shape) if b.fixed(d)] or [None])
    if axis is None:
        raise Reject("no fixed axis")
    other = b.fresh(dtype, (*shape[:axis], b.whole(1, 3), *shape[axis + 1:]), constant=x not in b.case.constants)
    add(b, "QLinearConcat", [*target(b, dtype), *quantized_operand(b, x), *quantized_operand(b, other)], exact=True, axis=axis)


@contrib("QLinearAveragePool")
def qlinear_average_pool(b):
    x, dtype = codes_of(b, 4, 4, where=lambda v: min(v.shape[2:]) > 1)
    kernel = [b.whole(1, 2), b.whole(1, 2)]
    pads = [b.whole(0, k - 1) for k in kernel * 2] if b.chance(0.5) else None
    add(b, "QLinearAveragePool", [*quantized_operand(b, x), *target(b, dtype)], exact=True, kernel_shape=kernel, pads=pads,
        strides=b.choice([None, [1, 2], [2, 2]]), count_include_pad=b.choice([None, 1]), ceil_mode=b.choice([None, 1]))


@contrib("QLinearGlobalAveragePool")
def qlinear_global_pool(b):
    last = b.chance(0.4)
    x, dtype = codes_of(b, 4, 4)
    add(b, "QLinearGlobalAveragePool", [*quantized_operand(b, x), *target(b, dtype)], exact=True, channels_last=int(last))


@contrib("QLinearSoftmax")
def qlinear_softmax(b):
    x, dtype = codes_of(b, 2, 3, where=lambda v: min(v.shape) > 1)  # of one element ONNX Runtime makes 256, which is stored as 0
    scale, zero = b.constant(np.array(2.0 ** -8, F32)), b.constant(np.array(0 if dtype == U8 else -128, dtype))
    add(b, "QLinearSoftmax", [x, b.constant(np.array(0.125, F32)), b.constant(np.array(3, dtype)), scale, zero], exact=True,
        axis=b.axis(b.x(x).ndim), opset=b.opset)


@contrib("QLinearWhere")
def qlinear_where(b):
    x, dtype = codes_of(b)
    shape = b.x(x).shape
    y = b.broadcast(dtype, shape)
    add(b, "QLinearWhere", [b.fresh(BOOL, shape), *quantized_operand(b, x), *quantized_operand(b, y), *target(b, dtype)], exact=True)


@contrib("QGemm")
def qgemm(b):
    m, k, n = b.dim(1), b.whole(1, 6), b.whole(1, 6)
    flip = b.chance(0.5)
    dtype = b.choice([U8, I8])
    x, w = b.like(dtype, (m, k)), b.fresh(dtype, (n, k) if flip else (k, n), 0, 9, constant=True)
    bias = b.constant(b.np_rng.integers(-50, 50, n).astype(np.int32)) if b.chance(0.6) else ""
    add(b, "QGemm", [*quantized_operand(b, x), *quantized_operand(b, w), bias, *(target(b, dtype) if b.chance(0.6) else ())],
        exact=True, transB=int(flip))


@contrib("MatMulIntegerToFloat")
def matmul_integer_to_float(b):
    dtype, k, n = b.choice([U8, I8]), b.whole(1, 6), b.whole(1, 6)
    x, w = b.like(dtype, (*b.shape(1, 3, 1)[:b.whole(1, 2)], k)), b.fresh(I8, (k, n), -9, 9, constant=True)
    columns = b.chance(0.5)
    scale = b.constant((2.0 ** b.np_rng.integers(-4, 1, n if columns else ())).astype(F32))
    zeros = [b.constant(np.array(b.whole(0, 5), dtype)) if b.chance(0.6) else "",
             b.constant(b.np_rng.integers(-3, 4, n if columns else ()).astype(I8)) if b.chance(0.4) else ""]
    add(b, "MatMulIntegerToFloat", [x, w, b.constant(np.array(0.25, F32)), scale, *zeros, vector(b, n) if b.chance(0.5) else ""], exact=True)


@contrib("DynamicQuantizeMatMul")
def dynamic_quantize_matmul(b):
    k, n = b.whole(2, 8), b.whole(1, 6)
    x = b.add_input(whole_codes(b, (*b.shape(1, 3, 1)[:2], k)), lambda s: whole_codes(b, s))
    w = b.fresh(I8, (k, n), -9, 9, constant=True)
    columns = b.chance(0.5)
    scale = b.constant((2.0 ** b.np_rng.integers(-4, 1, n if columns else ())).astype(F32))
    zero = b.constant(b.np_rng.integers(-3, 4, n if columns else ()).astype(I8)) if b.chance(0.4) else ""
    add(b, "DynamicQuantizeMatMul", [x, w, scale, zero, vector(b, n) if b.chance(0.5) else ""], exact=True)


@contrib("GatherBlockQuantized")
def gather_block_quantized(b):
    rows, columns, block = b.whole(2, 8), 32 * b.whole(1, 2), b.choice([16, 32])
    table = b.constant(b.np_rng.integers(0, 256, (rows, columns // 2)).astype(U8))
    scales = b.constant((2.0 ** b.np_rng.integers(-6, -2, (rows, columns // block))).astype(F32))
    zeros = b.constant(b.np_rng.integers(0, 256, (rows, -(-columns // block // 2))).astype(U8)) if b.chance(0.5) else ""
    add(b, "GatherBlockQuantized", [table, b.fresh(I32, b.shape(1, 2, 1), 0, rows - 1), scales, zeros], exact=True, bits=4,
        block_size=block, gather_axis=0, quantize_axis=1)


# --- layout ---


@contrib("NhwcMaxPool")
def nhwc_max_pool(b):
    x, _ = codes_of(b, 4, 4, where=lambda v: min(v.shape[1:3]) > 1 and not b.symbolic)  # a size of 1 may broadcast behind it
    kernel = [b.whole(1, 2), b.whole(1, 2)]
    add(b, "NhwcMaxPool", [x], exact=True, kernel_shape=kernel, strides=b.choice([None, [1, 2], [2, 2]]), ceil_mode=b.choice([None, 1]))


@contrib("CropAndResize")
def crop_and_resize(b):
    x = b.like(F32, (b.whole(1, 2), b.whole(1, 3), b.whole(3, 8), b.whole(3, 8)), -9, 9)
    boxes = b.whole(1, 3)
    corners = np.sort(b.np_rng.uniform(0, 1, (boxes, 2, 2)), axis=1).reshape(boxes, 4).astype(F32)
    size = b.constant(np.array([b.whole(1, 5), b.whole(1, 5)], np.int32))
    add(b, "CropAndResize", [x, b.constant(corners), b.constant(b.np_rng.integers(0, b.x(x).shape[0], boxes).astype(np.int32)), size],
        mode=b.choice([None, "bilinear", "nearest"]), extrapolation_value=b.choice([None, 1.5]))


@contrib("ExpandDims")
def expand_dims(b):
    x = b.operand({F32, I32, U8}, 1, 3)
    add(b, "ExpandDims", [x, b.constant(np.array(b.whole(-b.x(x).ndim - 1, b.x(x).ndim), np.int32))], exact=True)


@contrib("CDist")
def cdist(b):
    k = b.whole(1, 5)
    add(b, "CDist", [b.like(F32, (b.dim(1), k), -3, 0), b.like(F32, (b.dim(1), k), 1, 3)], metric=b.choice(["euclidean", "sqeuclidean"]))


@contrib("Inverse")
def inverse(b):
    n = b.whole(1, 5)
    shape = (*b.shape(0, 1, 1), n, n)

    def near_identity(s):
        return (b.np_rng.uniform(-0.3, 0.3, s) + 2 * np.eye(n)).astype(F32)

    add(b, "Inverse", [b.add_input(near_identity(shape), near_identity)])
