"""Cases for xnnpack_sweep.py, with those of xnnpack_cases_moves.py: for each row of backends/xnnpack/lower.def a function that
draws a small ONNX graph which lowers to that op, mostly in a form that XNNPACK supports and often in one that it does not. Ops that
no ONNX model becomes are drawn as graphs of the edge dialect, with a reference in numpy.
"""

import numpy as np
from onnx import helper

from xnnpack_draw import SYMBOLS, TYPES, Invalid, case_of

# --- element by element ---

UNARY = {"ABS": "Abs", "CEIL": "Ceil", "COS": "Cos", "EXP": "Exp", "FLOOR": "Floor", "LOG": "Log", "NEG": "Neg", "RELU": "Relu",
         "LOG1P": "Softplus", "RECIPROCAL": "Reciprocal", "ROUND": "Round", "SIGMOID": "Sigmoid", "SIN": "Sin", "SQRT": "Sqrt", "TANH": "Tanh"}
POSITIVE = ("LOG", "SQRT", "RSQRT")


@case_of(*UNARY)
def unary(d):
    shape = d.shape()
    make = d.values(0.01, 50) if d.row in POSITIVE and d.chance(0.9) else d.values()
    y = d.node(UNARY[d.row], [d.operand(shape, make)])
    return y if d.row in POSITIVE else d.layout(y, len(shape))  # a pool does not agree about NaN


@case_of("RSQRT")
def rsqrt(d):
    shape = d.shape()
    return d.textual("aten::rsqrt(%0)", shape, lambda x: 1 / np.sqrt(x), shape)


BINARY = {"ADD_TENSOR": "Add", "DIV_TENSOR": "Div", "MAXIMUM": "Max", "MINIMUM": "Min", "MUL_TENSOR": "Mul", "SUB_TENSOR": "Sub"}


def part_of(d, shape):
    """A shape that is broadcast to this one."""
    shape = [1 if d.chance(0.25) else x for x in shape]
    return shape[d.whole(0, len(shape)):] if d.chance(0.4) else shape


@case_of(*BINARY)
def binary(d):
    shape = d.shape()
    sides = [part_of(d, shape) if d.chance(0.6) else shape for _ in range(2)]
    makes = [d.values(), d.values(0.2, 9) if d.row == "DIV_TENSOR" else d.values()]
    if d.row == "DIV_TENSOR" and d.dtype.kind in "iu":
        raise Invalid  # division by zero ends ONNX Runtime
    fixed = d.one(None, None, None, 0, 1, 1)
    names = [d.weight(s, m) if fixed == i and not any(x in SYMBOLS for x in s) else d.operand(s, m)
             for i, (s, m) in enumerate(zip(sides, makes))]
    if d.chance(0.05):
        names[1] = names[0]
    return d.layout(d.node(BINARY[d.row], names), len(shape))


@case_of("CLAMP")
def clamp(d):
    shape = d.shape()
    x = d.operand(shape)
    limits = [round(d.r.uniform(0 if d.dtype.kind == "u" else -5, 5), 2) for _ in range(2)]
    if d.chance(0.9):
        limits.sort()
    if d.dtype.kind == "f" and d.chance(0.1):
        limits[d.whole(0, 1)] = d.one(np.inf, -np.inf)
    names = [d.constant(np.array(v).astype(d.dtype)) if d.chance(0.8) else "" for v in limits]
    return d.layout(d.node("Clip", [x, *names]), len(shape))


@case_of("CLAMP_TENSOR")
def clamp_tensor(d):
    shape = d.shape()
    bounds = [d.input([], d.values(low, low + 3)) if d.chance(0.8) else "" for low in (-3, 1)]
    return d.layout(d.node("Clip", [d.operand(shape), *bounds]), len(shape))


@case_of("GE_SCALAR")
def prelu(d):
    shape = d.shape()
    slope = d.one([], [1], [*([shape[1]] if len(shape) > 1 else [1]), *[1] * (len(shape) - 2)], part_of(d, shape))
    return d.layout(d.node("PRelu", [d.operand(shape), d.input(slope) if d.chance(0.1) else d.weight(slope)]), len(shape))


@case_of("ELU")
def elu(d):
    return d.node("Elu", [d.operand(d.shape())], alpha=d.one(None, 1.0, 0.5, 2.0, 0.0, -1.0, 100.0))


@case_of("LEAKY_RELU")
def leaky_relu(d):
    return d.node("LeakyRelu", [d.operand(d.shape())], alpha=d.one(None, 0.0, 0.5, 1.0, 2.0, -0.3, 300.0))


@case_of("GELU")
def gelu(d):
    d.opset = 20
    return d.node("Gelu", [d.operand(d.shape())], approximate=d.one(None, "none", "tanh"))


@case_of("POW_TENSOR_SCALAR")
def power(d):
    shape, exponent = d.shape(), d.one(2, 2, 2.0, 3, 3, 0, 1, 4, -1, -2)
    return d.textual(f"aten::pow.Tensor_Scalar(%0, {exponent})", shape, lambda x: x ** np.float32(exponent), shape)


@case_of("HARDTANH")
def hardtanh(d):
    shape = d.shape()
    low, high = sorted(round(d.r.uniform(-5, 5), 2) for _ in range(2))
    return d.textual(f"aten::hardtanh(%0, {low}, {high})", shape, lambda x: np.clip(x, np.float32(low), np.float32(high)), shape)


@case_of("DIV_TENSOR_MODE")
def divide_and_round(d):
    """As QuantizeLinear divides; what is rounded to a whole number stays outside."""
    shape = d.shape()
    if any(x in SYMBOLS for x in shape):
        raise Invalid
    rng = np.random.default_rng(d.number)
    divisor = rng.uniform(0.2, 9, d.one((), shape[len(shape) - 1:], shape)).astype(np.float32)
    mode = d.one("none", "none", "none", '"trunc"')
    return d.textual(f"aten::div.Tensor_mode(%0, %1, {mode})", shape,
                     lambda x: x / divisor if mode == "none" else np.trunc(x / divisor), shape, constants=(divisor,))


@case_of("NATIVE_BATCH_NORM_LEGIT_NO_TRAINING")
def batch_norm(d):
    shape = d.shape(1) if d.chance(0.1) else d.image(d.one(2, 3, 4, 4, 5, 6, 7))
    if len(shape) < 2 or shape[1] in SYMBOLS:
        raise Invalid
    c = [shape[1]]
    names = [d.weight(c), d.weight(c), d.weight(c), d.weight(c, d.values(0.1, 2))]
    if d.chance(0.1):
        names[d.whole(0, 3)] = d.input(c, d.values(0.1, 2))
    return d.layout(d.node("BatchNormalization", [d.operand(shape), *names], epsilon=d.one(None, 1e-3)), len(shape))


@case_of("WHERE_SELF")
def where(d):
    shape = d.shape()
    sides = [part_of(d, shape) if d.chance(0.5) else shape for _ in range(3)]
    condition = d.input(sides[0], d.values(dtype=np.bool_))
    if d.chance(0.4):
        numbers = d.values(dtype=np.float32)
        condition = d.node("Greater", [d.input(sides[0], numbers), d.constant(np.zeros((), np.float32))], name="before")
    names = [condition]
    for side in sides[1:]:
        kind = d.r.random()
        number = np.array(d.one(0, 1, 2, -5)).astype(d.dtype)
        if d.dtype.kind == "f" and d.chance(0.2):
            number = np.array(d.one(-np.inf, np.finfo(d.dtype).min, 1e4), d.dtype)
        names.append(d.constant(number) if kind < 0.4 else d.weight(side) if kind < 0.5 and not any(x in SYMBOLS for x in side)
                     else d.operand(side))
    return d.compute(d.node("Where", names))


@case_of("ARGMAX", "ARGMIN")
def position(d):
    shape, d.special = [x or 1 for x in d.shape(1)], False  # NaN is nowhere
    x, d.dtype = d.operand(shape), np.dtype(np.int64)
    return d.node("ArgM" + d.row[4:].lower(), [x], axis=d.whole(-len(shape), len(shape) - 1), keepdims=d.one(None, 0, 1))


@case_of("INDEX_TENSOR")
def rows_at_maxima(d):
    shape, d.special, rows = [d.whole(1, 6), d.whole(2, 9)], False, d.whole(1, 12)
    at = d.node(d.one("ArgMax", "ArgMin"), [d.operand(shape)], axis=1, keepdims=0)
    table = d.weight([max(rows, shape[1]), d.whole(1, 7)])
    return d.compute(d.node("Gather", [table, at]))


@case_of("TO_COPY")
def cast(d):
    d.special = False  # NaN has no number
    shape, source = d.shape(), d.one(np.bool_, np.uint8, np.int8, np.int32, np.float32, d.dtype)
    target = d.one(np.float32, np.float32, *TYPES)
    if np.dtype(source).kind == "f" and np.dtype(target).kind == "u":
        raise Invalid  # of negative numbers that are none
    y = d.node("Cast", [d.input(shape, d.values(dtype=source))], to=int(helper.np_dtype_to_tensor_dtype(np.dtype(target))))
    d.dtype = np.dtype(target)
    return d.compute(y)


# --- convolutions and windows ---

def windows(d, spatial, transposed=False):
    """Attributes of a window; often one that hangs over the end, or that is larger than the image without its padding."""
    n = len(spatial)
    kernel = [d.one(1, 1, 2, 3, 3, 4, 5) for _ in range(n)]
    found = {"kernel_shape": kernel}
    if d.chance(0.6):
        found["strides"] = [d.one(1, 1, 2, 3, 4) for _ in range(n)]
    if d.chance(0.25):
        found["dilations"] = [d.one(1, 2, 3) for _ in range(n)]
    pads = d.r.random()
    if pads < 0.1:
        found["auto_pad"] = d.one("SAME_UPPER", "SAME_LOWER", "VALID")
    elif pads < 0.7:
        found["pads"] = [d.whole(0, max(0, k - 1)) for k in kernel] * 2
        if d.chance(0.5):
            found["pads"] = [d.whole(0, max(0, k - 1)) for k in kernel * 2]
    pads, dilations = found.get("pads", [0] * 2 * n), found.get("dilations", [1] * n)
    for i, size in enumerate(spatial):
        if (1 if size in SYMBOLS else size) + pads[i] + pads[n + i] <= (kernel[i] - 1) * dilations[i]:
            raise Invalid  # no window fits: ends ONNX Runtime
    return found


@case_of("CONVOLUTION")
def convolution(d):
    groups = d.one(1, 1, 1, 2, 3, 4)
    per_in, per_out = d.one(1, 1, 2, 3, 5), d.one(1, 1, 2, 3, 8)
    x = d.image(channels=groups * per_in)
    attributes = windows(d, x[2:])
    transposed = d.chance(0.3)
    kernel = attributes["kernel_shape"]
    w = [groups * per_in, per_out, *kernel] if transposed else [groups * per_out, per_in, *kernel]
    names = [d.operand(x), d.input(w) if d.chance(0.05) else d.weight(w)]
    if d.chance(0.6):
        names.append(d.input([groups * per_out]) if d.chance(0.05) else d.weight([groups * per_out]))
    if transposed and d.chance(0.3):
        attributes["output_padding"] = [d.whole(0, s - 1) for s in attributes.get("strides", [1] * len(kernel))]
    return d.layout(d.node("ConvTranspose" if transposed else "Conv", names, group=groups, **attributes), len(x))


@case_of("MAX_POOL2D_WITH_INDICES")
def max_pool(d):
    x = d.image()
    if 0 in x:
        raise Invalid  # ends ONNX Runtime
    if d.chance(0.05):
        return d.node("GlobalMaxPool", [d.operand(x)])
    outputs = 2 if d.chance(0.05) else 1
    return d.node("MaxPool", [d.operand(x)], outputs, ceil_mode=d.one(None, 0, 1), **windows(d, x[2:]))


@case_of("AVG_POOL2D")
def avg_pool(d):
    x = d.image()
    if 0 in x:
        raise Invalid  # ends ONNX Runtime
    d.opset = 19
    attributes = windows(d, x[2:])
    if d.chance(0.8):
        attributes.pop("dilations", None)
    return d.node("AveragePool", [d.operand(x)], ceil_mode=d.one(None, None, 0, 1), count_include_pad=d.one(None, 0, 1), **attributes)


@case_of("ADAPTIVE_AVG_POOL2D")
def adaptive_pool(d):
    n, c = d.whole(1, 3), d.one(1, 3, 8, 17)
    out, each = [d.one(1, 1, 2, 3) for _ in range(2)], [d.whole(1, 4) for _ in range(2)]
    x = [n, c, out[0] * each[0], out[1] * each[1]]

    def mean(v):
        return v.reshape(n, c, out[0], each[0], out[1], each[1]).mean(axis=(3, 5), dtype=np.float32)
    return d.textual(f"aten::_adaptive_avg_pool2d(%0, {out})", [n, c, *out], mean, x)


@case_of("UPSAMPLE_BILINEAR2D_VEC", "UPSAMPLE_NEAREST2D_VEC")
def resize(d):
    x = d.image(d.one(3, 4, 4, 4, 4, 4, 4, 5))
    linear = d.row == "UPSAMPLE_BILINEAR2D_VEC"
    attributes = {"mode": "linear" if linear else "nearest",
                  "coordinate_transformation_mode": d.one("half_pixel", "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")}
    if not linear:
        attributes.update(nearest_mode=d.one(None, "floor", "ceil", "round_prefer_ceil"))
        if d.chance(0.7):
            attributes.update(nearest_mode="floor", coordinate_transformation_mode="asymmetric")
    factors = [d.one(1, 2, 2, 3, 4, 0.5, 1.5, 0.3) if d.chance(0.4 if linear else 0.3) else d.one(1, 2, 3) for _ in x[2:]]
    if d.chance(0.5) or any(s in SYMBOLS for s in x):
        return d.node("Resize", [d.operand(x), "", d.constant(np.array([1, 1, *factors], np.float32))], **attributes)
    sizes = [max(1, int(s * f)) for s, f in zip(x[2:], factors)]
    return d.node("Resize", [d.operand(x), "", "", d.ints(x[0], x[1], *sizes)], **attributes)


@case_of("PIXEL_SHUFFLE")
def pixel_shuffle(d):
    block = d.one(1, 2, 2, 3, 4)
    x = d.image(4, channels=block * block * d.one(1, 1, 2, 3, 5))
    return d.layout(d.compute(d.node("DepthToSpace", [d.operand(x)], blocksize=block, mode=d.one("CRD", "CRD", "CRD", "DCR"))), 4)


# --- products ---

@case_of("ADDMM")
def addmm(d):
    m, n, k = (d.dim() for _ in range(3))
    if any(x in SYMBOLS for x in (m, n, k)):
        raise Invalid
    rng, beta = np.random.default_rng(d.number), d.one(1, 1, 1, 2)
    weight, bias = (rng.standard_normal(s).astype(np.float32) for s in ((k, n), d.one((n,), (n,), (1, n))))
    return d.textual(f"aten::addmm(%2, %0, %1, {beta}, 1)", [m, n], lambda x: beta * bias + x @ weight, [m, k], constants=(weight, bias))


@case_of("LINEAR")
def gemm(d):
    m, n, k = (d.dim() for _ in range(3))
    trans_a, trans_b = d.one(0, 0, 0, 1), 1 if d.chance(0.9) else d.one(0, 1)
    a, b = [k, m] if trans_a else [m, k], [n, k] if trans_b else [k, n]
    sides = [d.weight(a) if d.chance(0.05) else d.operand(a), d.operand(b) if d.chance(0.1) else d.weight(b)]
    if d.chance(0.85):
        c = d.one([n], [n], [n], [1], [], [1, n], [m, n], [m, 1])
        sides.append(d.operand(c) if d.chance(0.1) else d.weight(c))
    scale = {"alpha": d.one(None, 1.0, 0.5), "beta": d.one(None, 1.0, 2.0)} if d.chance(0.3) else {}
    return d.node("Gemm", sides, transA=trans_a, transB=trans_b, **scale)


@case_of("MM", "BMM", "MATMUL")
def matmul(d):
    m, n, k = (d.dim() for _ in range(3))
    rank = 2 if d.row == "MM" else d.one(3, 3, 3, 4, 4, 5, 6, 7)
    batch = d.shape(rank - 2, rank - 2, 12) if rank > 2 else []
    if d.row == "MATMUL" and d.symbols:
        batch, m = [*d.one(["a"], ["a", 3], ["a", 1], [2, "a"]), *batch[:1]], "b"
    a, b = [*batch, m, k], [*batch, k, n]
    if d.row == "MATMUL" and d.chance(0.5):
        b = [k, n]
    elif rank > 2 and d.chance(0.4):
        a, b = [*part_of(d, batch), m, k], [*part_of(d, batch), k, n]
    if d.chance(0.05):
        b = [k]
    sides = [d.weight(a) if d.chance(0.1) else d.operand(a), d.operand(b) if d.chance(0.6) else d.weight(b)]
    y = d.node("MatMul", sides)
    return d.node("Add", [y, d.weight([n])]) if d.chance(0.2) and len(b) > 1 else y


# --- along dims ---

@case_of("SOFTMAX", "LOG_SOFTMAX")
def softmax(d):
    shape = d.shape()
    axis = d.whole(-len(shape), len(shape) - 1) if shape and d.chance(0.7) else -1
    return d.node("Softmax" if d.row == "SOFTMAX" else "LogSoftmax", [d.operand(shape)], axis=axis)


REDUCTIONS = {"AMAX": "ReduceMax", "AMIN": "ReduceMin", "MEAN_DIM": "ReduceMean", "SUM_DIM_INTLIST": "ReduceSum"}


@case_of("MAX_DIM", "MIN_DIM")
def largest(d):
    shape = d.shape(1)
    axis, keep = d.whole(0, len(shape) - 1), d.chance(0.5)
    result = [1 if i == axis else x for i, x in enumerate(shape) if keep or i != axis]
    name, function = ("max", np.max) if d.row == "MAX_DIM" else ("min", np.min)
    call = f"aten::{name}.dim(%0, {axis}, {str(keep).lower()})"
    out = d.textual(call, result, lambda x: function(x, axis, keepdims=keep), shape)
    d.text = d.text.replace("%2", "%3").replace(" = aten::m", f", %2: i64{result} = aten::m", 1)
    return out


@case_of(*REDUCTIONS)
def reduce(d):
    shape = d.shape()
    axes = d.one([-1], [2, 3], None, sorted({d.whole(0, max(0, len(shape) - 1)) for _ in range(d.whole(1, 3))}))
    if axes and max(axes) >= len(shape):
        axes = None
    names = [d.operand(shape)] + ([d.ints(*axes)] if axes else [])
    return d.node(REDUCTIONS[d.row], names, keepdims=d.one(0, 1),
                  noop_with_empty_axes=1 if d.chance(0.05) else None)


@case_of("NATIVE_LAYER_NORM")
def layer_norm(d):
    shape = d.shape(1)
    axis = -1 if d.chance(0.7) else d.whole(-len(shape), len(shape) - 1)
    part = shape[axis:]
    names = [d.operand(shape), d.weight(part) if d.chance(0.9) else d.operand(part)]
    if d.chance(0.7):
        names.append(d.weight(part))
    return d.node("LayerNormalization", names, axis=axis, epsilon=d.one(None, 1e-3))


@case_of("NATIVE_GROUP_NORM")
def group_norm(d):
    groups, per = d.one(1, 2, 3, 4), d.one(1, 2, 3, 5)
    x = d.image(d.one(2, 3, 4, 4, 4, 5), channels=groups * per)
    c = [groups * per]
    if d.chance(0.4):
        if len(x) < 3:
            raise Invalid
        return d.node("InstanceNormalization", [d.operand(x), d.weight(c), d.weight(c)])
    d.opset = 21
    return d.node("GroupNormalization", [d.operand(x), d.weight(c), d.weight(c)], num_groups=groups, epsilon=d.one(None, 1e-3))


# --- quantization ---

def plain_floats(d):
    if d.dtype != np.float32 or d.special:
        raise Invalid
    d.opset = max(d.opset, 13)


def scale_and_zero(d):
    kind = d.one(np.int8, np.uint8)
    zero = d.whole(-128, 127) + (128 if kind == np.uint8 else 0)
    return d.constant(np.float32(d.r.uniform(0.01, 0.2))), d.constant(kind(d.one(zero, zero, 0)))


def through_codes(d, x):
    scale, zero = scale_and_zero(d)
    return d.node("DequantizeLinear", [d.node("QuantizeLinear", [x, scale, zero]), scale, zero])


@case_of("QUANTIZE_PER_TENSOR", "DEQUANTIZE_PER_TENSOR")
def codes(d):
    plain_floats(d)
    shape = d.shape()
    return d.layout(through_codes(d, d.operand(shape)), len(shape))


@case_of("ERF")
def error_function(d):
    plain_floats(d)
    x = through_codes(d, d.operand(d.shape()))
    if d.chance(0.5):
        x = d.node("Div", [x, d.constant(np.float32(np.sqrt(2)))])
    return through_codes(d, d.node("Erf", [x]))


@case_of("CHOOSE_QPARAMS_TENSOR", "QUANTIZE_PER_TENSOR_TENSOR", "DEQUANTIZE_PER_TENSOR_TENSOR")
def quantized_at_run_time(d):
    plain_floats(d)
    shape = d.shape(low=2, high=4)
    if any(x in SYMBOLS for x in shape[-1:]):
        raise Invalid
    codes, scale, zero = d.node("DynamicQuantizeLinear", [d.input(shape)], 3)
    w = d.weight([shape[-1], d.whole(1, 9)], d.values(dtype=np.int8))
    sums = d.node("Cast", [d.node("MatMulInteger", [codes, w, zero])], to=1)
    return d.node("Mul", [sums, d.node("Mul", [scale, d.constant(np.float32(0.03))])])


@case_of("CHOOSE_QPARAMS_PER_TOKEN", "QUANTIZE_PER_TOKEN", "DEQUANTIZE_PER_TOKEN")
def quantized_rows(d):
    plain_floats(d)
    m, k, n = d.whole(1, 6), d.whole(1, 20), d.whole(1, 9)
    w = np.random.default_rng(d.whole(0, 10**6)).integers(-127, 128, (n, k))
    pair = "quantized_decomposed::{}_per_token(%{}, %3, %4, -128, 127, i8{})".format
    lines = [f'%0: f32[{m}, {k}] = input "x0"', f"%1: i8[{n}, {k}] = const {w.reshape(-1).tolist()}",
             f"%2: f32[{n}, {k}] = quantized_decomposed::dequantize_per_tensor(%1, 0.5, 0, -128, 127, i8)",
             f"%3: f32[{m}, 1], %4: i64[{m}, 1] = quantized_decomposed::choose_qparams_per_token_asymmetric(%0, i8)",
             f"%5: i8[{m}, {k}] = " + pair("quantize", 0, ""), f"%6: f32[{m}, {k}] = " + pair("dequantize", 5, ", f32"),
             f"%7: f32[{m}, {n}] = aten::linear(%6, %2)", 'output %7 "y0"']
    d.inputs["x0"] = ([m, k], d.values(-4, 4))
    d.text = "graph @forward level(edge) {\n  " + "\n  ".join(lines) + "\n}\n"

    def reference(x):
        low, high = np.minimum(x.min(1, keepdims=True), 0), np.maximum(x.max(1, keepdims=True), 0)
        scale = np.where(high == low, np.float32(1), (high - low) / np.float32(255)).astype(np.float32)
        zero = np.clip(np.rint(-128 - low / scale), -128, 127)
        return [((np.clip(np.rint(x / scale) + zero, -128, 127) - zero) * scale @ (w.T * 0.5)).astype(np.float32)]
    d.reference = reference
    return ["y0"]
