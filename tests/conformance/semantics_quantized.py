"""Quantization: every type and granularity, rounding at ties, exact integer sums."""

import ml_dtypes
import numpy as np
from onnx import helper, numpy_helper

from single_node import BF16, Case, RNG, normal, whole

F16, F32 = np.float16, np.float32
EXACT = {"rtol": 0, "atol": 0}
RANGES = {"u8": (np.uint8, 0, 256), "i8": (np.int8, -128, 128), "i16": (np.int16, -32768, 32768), "u16": (np.uint16, 0, 65536),
          "i32": (np.int32, -10**6, 10**6)}
PACKED = {"int4": (ml_dtypes.int4, -8, 8, 21), "uint4": (ml_dtypes.uint4, 0, 16, 21), "int2": (ml_dtypes.int2, -2, 2, 25),
          "uint2": (ml_dtypes.uint2, 0, 4, 25)}


def scales(*shape, dtype=F32):
    return (0.01 + RNG.random(shape)).astype(dtype)


def chain(name, nodes, feed, constants, out_type=F32, opset=21, **more):
    """Several nodes; the last output is y0."""
    case = Case(name, "Identity", [next(iter(feed))], feed, out_type=out_type, opset=opset, **more)
    graph = case.model.graph
    del graph.node[:]
    graph.node.extend(helper.make_node(op, inputs, outputs, **attributes) for op, inputs, outputs, attributes in nodes)
    graph.initializer.extend(numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items())
    case.model.ir_version = 10 if opset < 25 else 13
    return case


def dequantize(name, x, scale, zero=None, constant=False, opset=21, out_type=F32, oracle="ort", **attributes):
    constants = {"s": scale, **({} if zero is None else {"z": zero}), **({"x": x} if constant else {})}
    inputs = ["x", "s"] + ([] if zero is None else ["z"])
    # A program has an input, also where what it computes is constant.
    feed = {"t": np.zeros((), out_type)} if constant else {"x": x}
    nodes = [("DequantizeLinear", inputs, ["d" if constant else "y0"], attributes)]
    if constant:
        nodes.append(("Add", ["d", "t"], ["y0"], {}))
    return chain(name, nodes, feed, constants, out_type, opset, oracle=oracle, **EXACT)


def dequantize_cases():
    for kind, (dtype, low, high) in RANGES.items():
        x, small = whole(dtype, low, high, 4, 6, 3), kind in ("u8", "i8", "i32")
        opset = 10 if small else 21
        zero = None if kind == "i32" else dtype(5)
        yield dequantize(f"DQ-{kind}-tensor", x, F32(0.3), zero, opset=opset)
        zero = None if kind == "i32" else whole(dtype, 0, 9, 6)
        for constant in (False, True):
            yield dequantize(f"DQ-{kind}-axis-{constant}", x, scales(6), zero, constant, opset=13 if small else 21, axis=-2)
        zero = None if kind == "i32" else whole(dtype, 0, 9, 4, 3, 3)
        yield dequantize(f"DQ-{kind}-blocks", x, scales(4, 3, 3), zero, axis=1, block_size=2)
    for half in (F16,):
        yield dequantize(f"DQ-{np.dtype(half)}", whole(np.int8, -128, 128, 4, 6), scales(6, dtype=half), opset=19, out_type=half)
    for kind, (dtype, low, high, opset) in PACKED.items():
        x, oracle = RNG.integers(low, high, (5, 6)).astype(dtype), "ort" if opset == 21 else "onnx"
        zero = np.asarray(RNG.integers(low, high, 6)).astype(dtype)
        yield dequantize(f"DQ-{kind}-tensor", x, F32(0.3), zero[0], True, opset, oracle=oracle)
        yield dequantize(f"DQ-{kind}-axis", x, scales(6), zero, True, opset, oracle=oracle)
        blocks = RNG.integers(low, high, (5, 2)).astype(dtype)
        yield dequantize(f"DQ-{kind}-blocks", x, scales(5, 2), blocks, True, opset, oracle=oracle, axis=1, block_size=3)
    yield dequantize("DQ-uneven-blocks", whole(np.int8, -128, 128, 3, 5), scales(3, 3), None, oracle=[], axis=1, block_size=2)
    for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"):
        x = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, name))
        yield dequantize(f"DQ-{name}", x, F32(0.3), constant=True, opset=19, oracle="onnx")
    x = np.arange(16).astype(np.uint8).view(np.uint8)
    x = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0.0, -.5, -1, -1.5, -2, -3, -4, -6], F32).astype(ml_dtypes.float4_e2m1fn)
    yield dequantize("DQ-float4_e2m1fn", x, F32(0.3), constant=True, opset=23, oracle="onnx")


def without_uneven(cases):
    """Blocks that do not fill the axis: numpy says what is right."""
    for case in cases:
        if case.oracle == []:
            x, s = case.feeds[0]["x"], numpy_helper.to_array(case.model.graph.initializer[0])
            case.oracle = [x.astype(F32) * np.repeat(s, 2, 1)[:, :x.shape[1]]]
        yield case


def ties(scale, count, dtype=F32):
    """Half-way points, their neighbours, values beyond every range, infinities."""
    points = (np.arange(-count, count) + 0.5).astype(F32) * F32(scale)
    all_points = np.concatenate([points, np.nextafter(points, F32(0)), [F32(0), F32(-0.0), F32(1e9), F32(-1e9), np.inf, -np.inf]])
    return all_points.astype(dtype)


def quantize_cases():
    for kind in ("u8", "i8", "i16", "u16"):
        dtype, small = RANGES[kind][0], kind in ("u8", "i8")
        for scale in (0.0123, 0.1, 3.0):
            yield Case(f"Q-{kind}-ties-{scale}", "QuantizeLinear", ["x", "s", "z"], {"x": ties(scale, 300 if small else 40000)},
                       {"s": F32(scale), "z": dtype(5)}, out_type=dtype, opset=10 if small else 21, **EXACT)
        x = 3 * normal(4, 6, 3)
        yield Case(f"Q-{kind}-axis", "QuantizeLinear", ["x", "s", "z"], {"x": x}, {"s": scales(6), "z": whole(dtype, 0, 9, 6)},
                   out_type=dtype, opset=13 if small else 21, axis=-2, **EXACT)
        yield Case(f"Q-{kind}-blocks", "QuantizeLinear", ["x", "s", "z"], {"x": x}, {"s": scales(4, 2, 3), "z": whole(dtype, 0, 9, 4, 2, 3)},
                   out_type=dtype, opset=21, axis=1, block_size=3, **EXACT)
        yield Case(f"Q-{kind}-output_dtype", "QuantizeLinear", ["x", "s"], {"x": x}, {"s": F32(0.02)}, out_type=dtype, opset=23,
                   output_dtype=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), **EXACT)
    yield Case("Q-without-zero", "QuantizeLinear", ["x", "s"], {"x": 3 * normal(4, 6)}, {"s": F32(0.02)}, out_type=np.uint8, **EXACT)
    yield Case("Q-i32", "QuantizeLinear", ["x", "s"], {"x": whole(np.int32, -200, 200, 4, 6)}, {"s": F32(0.7)}, out_type=np.uint8,
               oracle="onnx", **EXACT)
    for half in (F16, BF16):
        yield Case(f"Q-{np.dtype(half)}", "QuantizeLinear", ["x", "s", "z"], {"x": (3 * normal(4, 6)).astype(half)},
                   {"s": half(0.25), "z": np.int8(3)}, out_type=np.int8, opset=19, oracle="ort" if half is F16 else "onnx", **EXACT)
    for kind, (dtype, low, high, opset) in PACKED.items():
        zero = np.asarray(1).astype(dtype)
        nodes = [("QuantizeLinear", ["x", "s", "z"], ["q"], {}), ("DequantizeLinear", ["q", "s", "z"], ["y0"], {})]
        yield chain(f"Q-{kind}-and-back", nodes, {"x": 3 * normal(4, 6)}, {"s": F32(0.3), "z": zero}, opset=opset,
                    oracle="ort" if opset == 21 else "onnx", **EXACT)
        nodes = [("QuantizeLinear", ["x", "s", "z"], ["q"], {}), ("Transpose", ["q"], ["t"], {}), ("Transpose", ["z"], ["u"], {}),
                 ("DequantizeLinear", ["t", "s", "u"], ["y0"], {})]
        yield chain(f"Q-{kind}-moved", nodes, {"x": 3 * normal(4, 6)}, {"s": F32(0.3), "z": zero}, opset=opset, oracle="onnx", **EXACT)
    for name, x in {"zeros": np.zeros((2, 3), F32), "positive": np.abs(normal(4, 5)), "negative": -np.abs(normal(4, 5)) - 1,
                    "both": normal(40, 50), "ties": np.arange(-51, 205, dtype=F32) / 2, "empty range": np.full((2,), 3, F32)}.items():
        yield Case(f"DynamicQuantizeLinear-{name}", "DynamicQuantizeLinear", ["x"], {"x": x}, outputs=3,
                   out_type=[np.uint8, F32, np.uint8], **EXACT)


MIXES = (("u8", "u8"), ("u8", "i8"), ("i8", "i8"), ("i8", "u8"))


def numbers(kind, *shape, extreme=False):
    dtype, low, high = RANGES[kind]
    return np.full(shape, high - 1, dtype) if extreme else whole(dtype, low, high, *shape)


def integer_products():
    for left, right in MIXES:
        # No kernel in ONNX Runtime for a left side of i8, and one that saturates sums for a right side of i8 on CPUs without VNNI.
        oracle = "onnx" if "i8" in (left, right) else "ort"
        a, b = numbers(left, 3, 7), numbers(right, 7, 5)
        yield Case(f"MatMulInteger-{left}{right}", "MatMulInteger", ["a", "b"], {"a": a, "b": b}, out_type=np.int32, oracle=oracle, **EXACT)
        zeros = {"az": numbers(left), "bz": numbers(right, 5)}
        yield Case(f"MatMulInteger-{left}{right}-zeros", "MatMulInteger", ["a", "b", "az", "bz"], {"a": a, "b": b}, zeros,
                   out_type=np.int32, oracle=oracle, **EXACT)
        x, w = numbers(left, 2, 4, 6, 5), numbers(right, 6, 2, 3, 3)
        zeros = {"xz": numbers(left), "wz": numbers(right)}
        sums = {"oracle": [integer_convolution(x, w, zeros["xz"], zeros["wz"], 2)], "out_type": np.int32, **EXACT}
        yield Case(f"ConvInteger-{left}{right}", "ConvInteger", ["x", "w", "xz", "wz"], {"x": x, "w": w}, zeros, group=2, **sums)
    # Beyond 2^24, where f32 has gaps.
    a, b = numbers("u8", 2, 20001, extreme=True), numbers("u8", 20001, 2, extreme=True)
    a[1, ::2], b[::3, 1] = 254, 253
    yield Case("MatMulInteger-long", "MatMulInteger", ["a", "b"], {"a": a, "b": b}, out_type=np.int32, **EXACT)
    yield Case("MatMulInteger-long-constant", "MatMulInteger", ["a", "b"], {"a": a}, {"b": b}, out_type=np.int32, **EXACT)
    yield Case("MatMulInteger-batch", "MatMulInteger", ["a", "b", "az", "bz"], {"a": numbers("u8", 2, 3, 4), "b": numbers("i8", 4, 5)},
               {"az": np.uint8(3), "bz": numbers("i8", 5)}, out_type=np.int32, oracle="onnx", **EXACT)
    a, b, rows = numbers("u8", 3, 4), numbers("i8", 4, 5), numbers("u8", 3)
    yield Case("MatMulInteger-rows", "MatMulInteger", ["a", "b", "az"], {"a": a, "b": b}, {"az": rows}, out_type=np.int32,
               oracle=[(a.astype(np.int32) - rows[:, None]) @ b.astype(np.int32)], **EXACT)


def integer_convolution(x, w, x_zero, w_zero, group):
    """No padding, steps of 1."""
    x, w = x.astype(np.int64) - int(x_zero), w.astype(np.int64) - np.asarray(w_zero, np.int64).reshape(-1, 1, 1, 1)
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    inputs, outputs = w.shape[1], w.shape[0] // group
    parts = [np.einsum("nchwij,ocij->nohw", windows[:, g * inputs:(g + 1) * inputs], w[g * outputs:(g + 1) * outputs])
             for g in range(group)]
    return np.concatenate(parts, 1).astype(np.int32)


def qlinear_cases():
    for left, right in MIXES:
        if (left, right) == ("i8", "u8"):
            continue  # ONNX Runtime has no kernel
        constants = {"xs": F32(0.021), "xz": numbers(left), "ws": F32(0.034), "wz": numbers(right), "ys": F32(4.7), "yz": RANGES[left][0](9)}
        yield Case(f"QLinearMatMul-{left}{right}", "QLinearMatMul", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"],
                   {"x": numbers(left, 2, 3, 70), "w": numbers(right, 2, 70, 5)}, constants, out_type=RANGES[left][0], opset=13, **EXACT)
        constants = {**constants, "ws": scales(5) / F32(30), "wz": np.full(5, 0 if right == "i8" else 128, RANGES[right][0]),
                     "w": numbers(right, 600, 5), "ys": F32(7.7)}
        yield Case(f"QLinearMatMul-{left}{right}-columns", "QLinearMatMul", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"],
                   {"x": numbers(left, 3, 600)}, constants, out_type=RANGES[left][0], opset=13, **EXACT)
        names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"]
        constants = {**constants, "ws": scales(6) / F32(30), "wz": np.full(6, 0 if right == "i8" else 128, RANGES[right][0]),
                     "w": numbers(right, 6, 2, 3, 3), "b": whole(np.int32, -9999, 9999, 6), "ys": F32(1.7)}
        yield Case(f"QLinearConv-{left}{right}", "QLinearConv", names, {"x": numbers(left, 2, 4, 7, 6)}, constants, out_type=RANGES[left][0],
                   opset=13, group=2, pads=[1, 0, 2, 1], strides=[2, 1], dilations=[1, 2], **EXACT)
        constants["w"] = numbers(right, 6, 400, 3, 3, extreme=True)
        constants["ys"] = F32(40.3)
        yield Case(f"QLinearConv-{left}{right}-long", "QLinearConv", names, {"x": numbers(left, 1, 400, 5, 5)}, constants,
                   out_type=RANGES[left][0], opset=13, **EXACT)
    yield Case("QLinearConv-1d", "QLinearConv", names[:8], {"x": numbers("u8", 1, 4, 9)},
               {"xs": F32(0.02), "xz": np.uint8(7), "w": numbers("i8", 3, 4, 3), "ws": F32(0.03), "wz": np.int8(0), "ys": F32(1.1),
                "yz": np.uint8(90)}, out_type=np.uint8, opset=13, **EXACT)


def impossible_scales():
    """Refused where no element has a meaning; weights of a channel that are all 0 may have a scale of 0."""
    x, zeros = np.ones((2, 3), F32), np.zeros((2, 3), np.uint8)
    for bad in (0, np.nan, np.inf):
        yield Case(f"QuantizeLinear-scale-{bad}", "QuantizeLinear", ["x", "s"], {"x": x}, {"s": np.array([bad], F32)}, out_type=np.uint8,
                   oracle=[zeros], refused="E0407")
    for bad in (np.nan, -np.inf):
        yield Case(f"DequantizeLinear-scale-{bad}", "DequantizeLinear", ["x", "s"], {"x": zeros}, {"s": np.array([1, bad, 1], F32)}, axis=1,
                   oracle=[x], refused="E0407")
    yield Case("DequantizeLinear-scale-0", "DequantizeLinear", ["x", "s"], {"x": zeros + 7}, {"s": np.array([1, 0, 0.5], F32)}, axis=1, **EXACT)


def cases():
    yield from impossible_scales()
    yield from without_uneven(dequantize_cases())
    yield from quantize_cases()
    yield from integer_products()
    yield from qlinear_cases()
