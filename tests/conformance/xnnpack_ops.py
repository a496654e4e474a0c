#!/usr/bin/env python3
"""What the XNNPACK backend takes, operator by operator, on the real runtime and on `etc run` against ONNX Runtime.

    tests/conformance/xnnpack_ops.py [-k PATTERN,...] [-v]

Each model runs on the delegate alone: a program that needs an operator of the runtime besides fails here, as does a wrong
result. The few cases that name a number of operators are what the backend must leave outside.
"""

import sys

import numpy as np

import single_node
from single_node import ints, normal
from xnnpack_nodes import HALF, chain, graph, node, single
from xnnpack_ops_lines import line_cases
from xnnpack_ops_windows import (box_cases, ceil_pool_cases, channel_cases, column_cases, dynamic_phase_cases, eighth_cases, gathered_cases,
                                 large_pool_cases, phase_cases, pick_cases, plane_cases, resampling_cases, runtime_weight_cases, strip_cases,
                                 tap_cases, tile_cases, varying_extreme_cases, varying_mean_cases, volume_cases, window_cases)

# --- float16 ---

def half_cases():
    f16 = np.float16
    half = {"out_type": f16, **HALF}

    def h(*shape, scale=1.0):
        return (normal(*shape) * scale).astype(f16)

    for op in ("Relu", "Sigmoid", "Tanh", "Exp", "Neg", "Abs", "Floor", "Sqrt", "HardSwish", "Gelu"):
        x = np.abs(h(2, 3, 4)) if op == "Sqrt" else h(2, 3, 4)
        yield single(f"half-{op}", op, ["x"], {"x": x}, opset=20, **half)
    for op in ("Add", "Sub", "Mul", "Div"):
        yield single(f"half-{op}", op, ["x", "z"], {"x": h(2, 3, 4), "z": h(3, 1) + f16(3)}, **half)
        yield single(f"half-{op}-constant", op, ["x", "z"], {"x": h(2, 3, 4)}, {"z": h(3, 1) + f16(3)}, **half)
    yield single("half-Add-large-constant", "Add", ["x", "z"], {"x": h(2, 64, 96)}, {"z": h(64, 96)}, **half)
    yield single("half-MatMul", "MatMul", ["x", "z"], {"x": h(2, 3, 8), "z": h(2, 8, 5)}, **half)
    yield single("half-MatMul-weights", "MatMul", ["x", "z"], {"x": h(2, 3, 8)}, {"z": h(8, 5)}, **half)
    yield single("half-MatMul-batched-constant", "MatMul", ["x", "z"], {"x": h(2, 3, 8)}, {"z": h(2, 8, 5)}, **half)
    large = np.random.default_rng(7).standard_normal((2, 64, 40)).astype(f16)
    yield single("half-MatMul-batched-large-constant", "MatMul", ["x", "z"], {"x": large[:, :3, :]}, {"z": large.reshape(2, 40, 64)}, **half)
    yield single("half-Gemm", "Gemm", ["x", "w", "b"], {"x": h(3, 8)}, {"w": h(5, 8), "b": h(5)}, transB=1, **half)
    yield single("half-Softmax", "Softmax", ["x"], {"x": h(2, 3, 8)}, **half)
    yield single("half-Conv", "Conv", ["x", "w", "b"], {"x": h(1, 4, 7, 6)}, {"w": h(6, 4, 3, 3), "b": h(6)}, pads=[1, 1, 1, 1], **half)
    yield single("half-Conv-plain", "Conv", ["x", "w"], {"x": h(1, 4, 7, 6)}, {"w": h(6, 4, 1, 1)}, **half)
    yield single("half-Conv-groups", "Conv", ["x", "w", "b"], {"x": h(1, 4, 7, 6)}, {"w": h(6, 2, 3, 3), "b": h(6)}, group=2, **half)
    yield single("half-Conv-depthwise", "Conv", ["x", "w", "b"], {"x": h(1, 4, 7, 6)}, {"w": h(8, 1, 3, 3), "b": h(8)}, group=4, **half)
    yield single("half-Conv-line", "Conv", ["x", "w", "b"], {"x": h(1, 4, 9)}, {"w": h(6, 4, 3), "b": h(6)}, **half)
    for group in (1, 2):
        yield single(f"half-ConvTranspose-{group}", "ConvTranspose", ["x", "w", "b"], {"x": h(1, 4, 5, 4)},
                     {"w": h(4, 6 // group, 3, 3), "b": h(6)}, strides=[2, 2], group=group, **half)
    yield single("half-LayerNormalization", "LayerNormalization", ["x", "g", "b"], {"x": h(2, 5, 64, scale=300)}, {"g": h(64), "b": h(64)}, **half)
    yield single("half-GroupNormalization", "GroupNormalization", ["x", "g", "b"], {"x": h(2, 6, 5, 4, scale=300)}, {"g": h(6), "b": h(6)}, opset=21,
                 num_groups=3, **half)
    yield single("half-ReduceMean", "ReduceMean", ["x"], {"x": h(2, 9000, scale=8) + f16(4)}, opset=13, axes=[1], **half)
    yield single("half-GlobalAveragePool", "GlobalAveragePool", ["x"], {"x": h(2, 3, 8, 8)}, **half)
    yield single("half-MaxPool", "MaxPool", ["x"], {"x": h(2, 3, 8, 8)}, kernel_shape=[2, 2], **half)
    yield single("half-Concat", "Concat", ["x", "z"], {"x": h(2, 3), "z": h(2, 5)}, axis=1, **half)
    yield single("half-Resize", "Resize", ["x", "", "s"], {"x": h(1, 2, 4, 5)}, {"s": np.array([1, 1, 2, 2], np.float32)}, mode="linear", **half)
    # Casts at the borders, as converters of whole models write them: the program's inputs and outputs stay f32.
    yield graph("half-borders", [node("Cast", ["x"], "h", to=10), node("MatMul", ["h", "w"], "p"), node("Relu", ["p"], "r"), node("Cast", ["r"], to=1)],
                {"x": normal(3, 8)}, {"w": h(8, 5)}, **HALF)
    # A value beyond the range of halves becomes infinite where the model says so.
    yield graph("half-overflow", [node("Add", ["x", "x"], "t"), node("Cast", ["t"], "h", to=10), node("Cast", ["h"], "f", to=1), node("Abs", ["f"])],
                {"x": np.array([1e3, 3e4, 4e4, -7e4, 0.1], np.float32)}, rtol=0, atol=0)
    # Values that are rounded to halves, and what is read more than once: XNNPACK must find no copies to remove.
    yield graph("half-norm", [node("ReduceL2", ["x"], "n", axes=[-1]), node("Div", ["x", "n"])], {"x": h(1, 2, 16, 64)}, opset=13, **half)
    yield graph("half-norm-twice", [node("ReduceL2", ["x"], "n", axes=[-1]), node("Add", ["n", "n"])], {"x": h(1, 2, 16, 64)}, opset=13, **half)


# --- reductions ---

AXES = {1: [[0]], 2: [[0], [1], [0, 1]], 3: [[0], [1], [2], [0, 1], [1, 2], [0, 2], None], 4: [[1], [2], [3], [0, 2], [1, 3], [2, 3], [1, 2, 3], None],
        5: [[1], [2, 3], [0, 4], [2, 3, 4]], 6: [[3], [0, 5], [2, 4]]}
SIZES = (2, 3, 4, 5, 2, 3)


def reduce_cases():
    for op in ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceL1", "ReduceSumSquare", "ReduceLogSum"):
        for rank, lists in AXES.items():
            x = np.abs(normal(*SIZES[:rank])) + np.float32(0.1) if op == "ReduceLogSum" else normal(*SIZES[:rank])
            for axes in lists:
                for keep in (0, 1):
                    constants = {} if axes is None else {"a": ints(*axes)}
                    yield single(f"{op}-{rank}-{''.join(map(str, axes or ['all']))}-{keep}", op, ["x", *constants], {"x": x}, constants, opset=18,
                                 keepdims=keep)
    w = {"w": normal(6, 3, 3, 3)}
    conv = node("Conv", ["x", "w"], "t", pads=[1, 1, 1, 1])
    # In the layout of images: over channels, over height and width, over width alone.
    for op in ("ReduceMean", "ReduceMax", "ReduceSum"):
        for axes in ([1], [2, 3], [3], [1, 2, 3]):
            for keep in (0, 1):
                yield graph(f"{op}-image-{''.join(map(str, axes))}-{keep}", [conv, node(op, ["t", "a"], keepdims=keep)], {"x": normal(2, 3, 5, 4)},
                            {**w, "a": ints(*axes)}, opset=18)
    for shape, axes in (((2, 3, 5, 4), [0, 1, 2, 3]), ((6, 11), [0, 1]), ((2, 700), [1])):
        for axis in axes:
            yield single(f"LogSoftmax-{len(shape)}-{axis}", "LogSoftmax", ["x"], {"x": 40 * normal(*shape)}, axis=axis)
            yield single(f"Softmax-{len(shape)}-{axis}", "Softmax", ["x"], {"x": 40 * normal(*shape)}, axis=axis)
    yield single("LogSoftmax-masked", "LogSoftmax", ["x"], {"x": np.array([[1, -np.inf, 1e4], [3e5, 3e5 + 1, -np.inf]], np.float32)})
    yield single("ReduceMean-varying", "ReduceMean", ["x", "a"], [{"x": normal(n, 3, 4)} for n in (5, 1, 7)], {"a": ints(0)}, opset=18,
                 shapes={"x": ["n", 3, 4]}, dims={"n": "1..8"})
    for op in ("ReduceMean", "ReduceMax", "LogSoftmax"):
        axes = {} if op == "LogSoftmax" else {"a": ints(1)}
        yield single(f"{op}-batch", op, ["x", *axes], [{"x": normal(n, 3, 4)} for n in (5, 1, 7)], axes, opset=18, shapes={"x": ["n", 3, 4]},
                     dims={"n": "1..8"})


# --- element by element ---

def pointwise_cases():
    x = {"x": np.array([[-3.5, -2.5, -1.5, -0.5, 0.5], [1.5, 2.5, 0.49999997, 1e-3, 7.25]], np.float32)}
    huge = {"x": np.array([8388607.5, -8388607.5, 8388609, 16777216, -4194303.5, 1e20, -3e38, np.inf, -np.inf, 0], np.float32)}
    for label, feed in (("", x), ("-huge", huge), ("-scalar", {"x": np.float32(2.5)})):
        yield single(f"Round{label}", "Round", ["x"], feed, rtol=0, atol=0)
    steps = {"x": np.concatenate([np.linspace(-80, 110, 381), [0, 1e-6, -1e-6]]).astype(np.float32)}
    yield single("Softplus", "Softplus", ["x"], steps, rtol=1e-5, atol=3e-7)
    yield single("Mish", "Mish", ["x"], steps, opset=18)
    yield single("Elu", "Elu", ["x"], x, alpha=0.7)
    yield single("Selu", "Selu", ["x"], x)
    yield single("Selu-scalar", "Selu", ["x"], {"x": np.float32(-2)})
    yield single("Selu-attributes", "Selu", ["x"], x, alpha=1.3, gamma=2.0)
    yield single("Celu", "Celu", ["x"], x, alpha=2.5)
    for op in ("HardSwish", "HardSigmoid", "Softsign", "Gelu", "Abs"):
        yield single(op, op, ["x"], x, opset=20)
    yield single("Gelu-tanh", "Gelu", ["x"], x, opset=20, approximate="tanh")
    yield graph("Silu", [node("Sigmoid", ["x"], "s"), node("Mul", ["x", "s"])], x)
    for exponent in (0.5, -0.5, 2, 3, 4, 5, 8, -1, -2, 0.25, 0.75, 1.5, 2.25, -1.75):
        yield single(f"Pow-{exponent}", "Pow", ["x", "e"], {"x": np.abs(normal(3, 5)) + np.float32(0.2)}, {"e": np.float32(exponent)})
    yield single("Pow-scalar", "Pow", ["x", "e"], {"x": np.float32(3)}, {"e": np.float32(-2.5)})
    yield single("Pow-negative", "Pow", ["x", "e"], x, {"e": np.float32(3)})
    for label, slope in (("channels", normal(3, 1, 1)), ("one", normal(1)), ("all", normal(3, 4, 5)), ("row", normal(5))):
        yield single(f"PRelu-{label}", "PRelu", ["x", "s"], {"x": normal(2, 3, 4, 5)}, {"s": slope})
    yield graph("PRelu-image", [node("Conv", ["x", "w"], "t"), node("PRelu", ["t", "s"])], {"x": normal(2, 3, 5, 4)},
                {"w": normal(6, 3, 3, 3), "s": normal(6, 1, 1)})
    scale = {"s": np.float32(0.05), "z": np.int8(3)}
    yield graph("quantized", [node("QuantizeLinear", ["x", "s", "z"], "q"), node("DequantizeLinear", ["q", "s", "z"])], x, scale, rtol=0, atol=1e-6)
    yield single("Clip-tensors", "Clip", ["x", "l", "h"], {"x": normal(3, 4), "l": np.float32(-0.5), "h": np.float32(0.5)}, opset=13)
    for op in ("Add", "Sub", "Mul", "Div", "Min", "Max"):
        for rank in range(1, 7):
            shape = SIZES[:rank]
            yield single(f"{op}-{rank}-constant", op, ["x", "c"], {"x": normal(*shape)}, {"c": normal(*shape[-min(rank, 3):]) + np.float32(4)})
            wide = tuple(n if i % 2 else 1 for i, n in enumerate(shape))
            yield single(f"{op}-{rank}-broadcast", op, ["c", "x"], {"x": np.abs(normal(*shape)) + np.float32(1)}, {"c": normal(*wide)})
        yield single(f"{op}-scalar", op, ["x", "c"], {"x": normal(2, 3)}, {"c": np.float32(1.5)})
        yield single(f"{op}-scalars", op, ["x", "c"], {"x": np.float32(2)}, {"c": np.float32(1.5)})


# --- products ---

def product_cases():
    for trans_a in (0, 1):
        for trans_b in (0, 1):
            a, b = normal(*((4, 3) if trans_a else (3, 4))), normal(*((5, 4) if trans_b else (4, 5)))
            for label, c in (("", None), ("-row", normal(5)), ("-all", normal(3, 5)), ("-column", normal(3, 1)), ("-one", normal(1)), ("-scalar", np.float32(2))):
                for alpha, beta in ((1.0, 1.0), (0.5, 1.0), (1.0, -2.0), (0.5, 0.25)):
                    more = {} if c is None else {"c": c}
                    name = f"Gemm-{trans_a}{trans_b}{label}-{alpha}-{beta}"
                    attributes = {"transA": trans_a, "transB": trans_b, "alpha": alpha, "beta": beta}
                    yield single(name, "Gemm", ["a", "b", *more], {"a": a}, {"b": b, **more}, **attributes)
                    if alpha != beta or c is None:
                        yield single(f"{name}-run", "Gemm", ["a", "b", *more], {"a": a, "b": b, **more}, **attributes)
    shapes = (((4, ), (4, 5)), ((3, 4), (4, )), ((4, ), (4, )), ((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (2, 4, 5)),
              ((3, 4), (2, 4, 5)), ((2, 2, 3, 4), (2, 2, 4, 5)), ((2, 1, 3, 4), (1, 3, 4, 5)), ((2, 3, 2, 3, 4), (4, 5)), ((2, 3, 2, 3, 4), (2, 3, 2, 4, 5)))
    for a, b in shapes:
        name = f"MatMul-{'x'.join(map(str, a))}-{'x'.join(map(str, b))}"
        yield single(name, "MatMul", ["a", "b"], {"a": normal(*a), "b": normal(*b)})
        yield single(f"{name}-weights", "MatMul", ["a", "b"], {"a": normal(*a)}, {"b": normal(*b)})
        yield single(f"{name}-first", "MatMul", ["a", "b"], {"b": normal(*b)}, {"a": normal(*a)})
    # Views around products: of other dims, wanted themselves, with a dim of 1 in front on one side or both.
    narrow, flat, rows, back = ints(2, 3, 4), ints(6, 4), ints(6, 5), ints(1, 2, 3, 5)
    for label, first in (("wide", (1, 2, 3, 4)), ("narrow", (2, 3, 4)), ("joined", (6, 4))):
        for other in ((1, 2, 4, 5), (2, 4, 5), (1, 4, 5)):
            yield graph(f"MatMul-views-{label}-{len(other)}-{other[-3]}", [
                node("Relu", ["a"], "r"), node("Reshape", ["r", "three"], "x"), node("MatMul", ["x", "b"], "p"), node("Reshape", ["p", "back"], "q"),
                node("Sigmoid", ["q"])], {"a": normal(*first), "b": normal(*other)}, {"three": narrow, "back": back})
        yield graph(f"MatMul-views-{label}-rows", [
            node("Relu", ["a"], "r"), node("Reshape", ["r", "flat"], "x"), node("MatMul", ["x", "w"], "p"), node("Reshape", ["p", "back"], "q"),
            node("Softmax", ["q"], "s"), node("Reshape", ["s", "rows"], "t"), node("Mul", ["t", "p"], "u"), node("Reshape", ["u", "back"], "v"),
            node("Add", ["v", "q"])], {"a": normal(*first)}, {"w": normal(4, 5), "flat": flat, "rows": rows, "back": back})
    yield graph("MatMul-Add", [node("MatMul", ["x", "w"], "t"), node("Add", ["t", "b"])], {"x": normal(2, 3, 4)}, {"w": normal(4, 5), "b": normal(5)})


# --- normalization ---

def long_row_cases():
    """Rows that are summed up in pieces, where they have a divisor."""
    for shape, axes in (((2, 3, 4096), [2]), ((3, 2053), [1]), ((3, 4106), [1]), ((2, 96, 70), [1, 2]), ((2, 3, 4, 96, 32), [3, 4])):
        for op in ("ReduceMean", "ReduceSum"):
            yield single(f"{op}-long-{shape[-1]}-{len(axes)}", op, ["x", "a"], {"x": normal(*shape) + np.float32(3)}, {"a": ints(*axes)}, opset=18)
    for axis, shape in ((-1, (4096,)), (-2, (64, 50))):
        yield single(f"LayerNormalization-long{axis}", "LayerNormalization", ["x", "g", "b"], {"x": normal(2, *shape)},
                     {"g": normal(*shape), "b": normal(*shape)}, axis=axis)
    batches = [{"x": normal(size, 4, 9000)} for size in (2, 1, 3)]
    yield single("InstanceNormalization-long", "InstanceNormalization", ["x", "g", "b"], batches, {"g": normal(4), "b": normal(4)},
                 dims={"n": "1..3"}, shapes={"x": ["n", 4, 9000]})
    yield single("ReduceMean-long-dynamic", "ReduceMean", ["x", "a"], batches, {"a": ints(2)}, opset=18, dims={"n": "1..3"}, shapes={"x": ["n", 4, 9000]})


def norm_cases():
    for rank in (2, 3, 4, 5):
        shape = SIZES[:rank]
        for axis in range(1, rank):
            weights = {"g": normal(*shape[axis:]), "b": normal(*shape[axis:])}
            yield single(f"LayerNormalization-{rank}-{axis}", "LayerNormalization", ["x", "g", "b"], {"x": normal(*shape)}, weights, axis=axis)
            yield single(f"RMSNormalization-{rank}-{axis}", "RMSNormalization", ["x", "g"], {"x": normal(*shape)}, {"g": weights["g"]}, axis=axis, opset=23,
                         oracle="onnx")
    yield single("LayerNormalization-bare", "LayerNormalization", ["x", "g"], {"x": normal(2, 3, 8)}, {"g": normal(8)})
    for shape in ((2, 4, 6), (2, 4, 5, 3), (1, 4, 3, 2, 4)):
        weights = {"g": normal(4), "b": normal(4)}
        yield single(f"InstanceNormalization-{len(shape)}", "InstanceNormalization", ["x", "g", "b"], {"x": normal(*shape)}, weights)
        yield single(f"BatchNormalization-{len(shape)}", "BatchNormalization", ["x", "g", "b", "m", "v"], {"x": normal(*shape)},
                     {**weights, "m": normal(4), "v": np.abs(normal(4)) + np.float32(0.1)})
        yield single(f"GroupNormalization-{len(shape)}", "GroupNormalization", ["x", "g", "b"], {"x": normal(*shape)}, weights, opset=21, num_groups=2)
    rms = [node("Pow", ["x", "two"], "p"), node("ReduceMean", ["p"], "m", axes=[-1]), node("Add", ["m", "eps"], "a"), node("Sqrt", ["a"], "s")]
    numbers = {"two": np.float32(2), "eps": np.float32(1e-6), "w": normal(8), "one": np.float32(1)}
    x = {"x": normal(2, 3, 8)}
    yield graph("rms-div", [*rms, node("Div", ["x", "s"], "n"), node("Mul", ["n", "w"])], x, numbers)
    yield graph("rms-reciprocal", [*rms, node("Div", ["one", "s"], "r"), node("Mul", ["x", "r"], "n"), node("Mul", ["w", "n"])], x, numbers)
    yield graph("rms-squares", [node("Mul", ["x", "x"], "p"), *rms[1:], node("Reciprocal", ["s"], "r"), node("Mul", ["x", "r"], "n"), node("Mul", ["n", "w"])],
                x, numbers)


# --- norms of images, pads, activations of several nodes ---

def image_cases():
    weights = {"w": normal(12, 4, 3, 3), "g": normal(12), "b": normal(12)}
    conv = node("Conv", ["x", "w"], "c", pads=[1, 1, 1, 1])
    for batch, height, width in ((1, 9, 7), (2, 8, 8), (3, 1, 5)):
        x = {"x": normal(batch, 4, height, width) * 3 + 2}
        yield graph(f"image-InstanceNormalization-{batch}", [conv, node("InstanceNormalization", ["c", "g", "b"])], x, weights)
        for groups in (1, 3, 12):
            yield graph(f"image-GroupNormalization-{batch}-{groups}",
                        [conv, node("GroupNormalization", ["c", "g", "b"], num_groups=groups)], x, weights, opset=21)
        # As exporters of opsets without the operator write it.
        more = {"rows": np.array([0, 3, -1], np.int64), "one": np.ones(3, np.float32), "zero": np.zeros(3, np.float32),
                "back": np.array([batch, 12, height, width], np.int64)}
        more.update(weights, g=normal(12, 1, 1), b=normal(12, 1, 1))
        yield graph(f"image-groups-spelt-out-{batch}", [
            conv, node("Reshape", ["c", "rows"], "r"), node("InstanceNormalization", ["r", "one", "zero"], "i"),
            node("Reshape", ["i", "back"], "n"), node("Mul", ["n", "g"], "m"), node("Add", ["m", "b"])], x, more)
    yield single("rows-GroupNormalization", "GroupNormalization", ["x", "g", "b"], {"x": normal(2, 6, 5) + 3}, {"g": normal(6), "b": normal(6)},
                 opset=21, num_groups=2)
    for mode in ("reflect", "edge"):
        for pads in ((1, 1, 1, 1), (0, 4, 0, 3), (6, 0, 7, 5), (0, 0, 2, 0)):
            ends = np.array([0, 0, *pads[:2], 0, 0, *pads[2:]], np.int64)
            name = f"{mode}-" + "-".join(map(str, pads))
            yield single(f"pad-{name}", "Pad", ["x", "p"], {"x": normal(2, 3, 9, 8)}, {"p": ends}, mode=mode)
            yield graph(f"pad-image-{name}", [conv, node("Pad", ["c", "p"], "q", mode=mode), node("Conv", ["q", "v"])],
                        {"x": normal(1, 4, 9, 8)}, {**weights, "p": ends, "v": normal(5, 12, 3, 3)})
        yield single(f"pad-line-{mode}", "Pad", ["x", "p"], {"x": normal(2, 3, 9)}, {"p": np.array([0, 0, 3, 0, 0, 2], np.int64)}, mode=mode)
    x = {"x": np.linspace(-5, 5, 1 * 4 * 6 * 6).astype(np.float32).reshape(1, 4, 6, 6)}
    yield single("HardSwish", "HardSwish", ["x"], x, opset=14)
    yield graph("HardSwish-image", [conv, node("HardSwish", ["c"])], x, weights, opset=14)
    # Its parts are used besides.
    yield graph("HardSwish-parts", [node("HardSigmoid", ["x"], "h", alpha=1 / 6, beta=0.5), node("Mul", ["x", "h"], "y0"), node("Neg", ["h"], "y1")],
                x, opset=14)


# --- what the official exporter's XNNPACK programs get wrong, or leave outside ---

def official_cases():
    x = {"x": normal(2, 4, 9, 8)}
    # It hands on the exact form, which differs by up to 5e-4.
    yield single("gelu-tanh", "Gelu", ["x"], {"x": np.linspace(-4, 4, 1001, dtype=np.float32)}, opset=20, approximate="tanh", rtol=0, atol=1e-5)
    yield single("gelu-exact", "Gelu", ["x"], {"x": np.linspace(-4, 4, 1001, dtype=np.float32)}, opset=20, rtol=0, atol=1e-5)
    # Partitions end there.
    yield graph("cat-of-one", chain("x", ("Exp",), ("Concat", [], {"axis": 1}), ("Neg",)), x)
    # Its exporter ends with an exception.
    yield single("max-pool-without-stride", "MaxPool", ["x"], x, kernel_shape=[3, 2])
    yield single("max-pool-without-stride-line", "MaxPool", ["x"], {"x": normal(2, 4, 9)}, kernel_shape=[3])
    # Left outside.
    for pads in ([1, 1, 1, 1], [2, 0, 1, 1]):
        yield single(f"count-include-pad-{pads[0]}", "AveragePool", ["x"], x, kernel_shape=[3, 3], pads=pads, count_include_pad=1, strides=[2, 1])
    # Taken, and refused when the program is loaded. Here what has fewer dims goes to the delegate, the rest stays.
    deep = {"x": normal(2, 1, 3, 1, 2, 1, 2)}
    yield graph("rank-7", [node("Sigmoid", ["x"], "s"), node("Mul", ["s", "s"])], deep, kernels=2)
    yield graph("rank-7-between", [node("Sigmoid", ["x"], "s"), node("Reshape", ["s", "to"], "r"), node("Exp", ["r"])], deep, {"to": ints(6, 4)}, kernels=1)
    # Handed to the delegate as arguments: `kernels` sees that none is prepared outside, to_backend/delegate.etir the arguments.
    constants = {"a": normal(4, 1, 1), "b": np.float32(0.7), "c": normal(2, 4, 9, 8), "m": normal(1, 1, 9, 8)}
    yield graph("constants", [node("Mul", ["x", "a"], "t"), node("Add", ["b", "t"], "u"), node("Sub", ["c", "u"], "v"), node("Max", ["v", "m"])], x, constants)
    # Bytes as bytes of another sign, which does not load. Here they are plain arithmetic outside.
    scale = {"s": np.float32(0.05), "z": np.uint8(200)}
    yield graph("uint8", [node("QuantizeLinear", ["x", "s", "z"], "q"), node("DequantizeLinear", ["q", "s", "z"], "d"), node("Relu", ["d"])],
                x, scale, kernels=None)
    yield graph("uint8-convolution", [node("QuantizeLinear", ["x", "s", "z"], "q"), node("DequantizeLinear", ["q", "s", "z"], "d"),
                                      node("Conv", ["d", "w"], "c"), node("QuantizeLinear", ["c", "s", "z"], "r"),
                                      node("DequantizeLinear", ["r", "s", "z"])], x, {**scale, "w": normal(3, 4, 3, 3) / 4}, kernels=None, atol=0.051)


# --- limits behind a window ---

def limit_cases():
    """XNNPACK makes limits a part of the window before them and fails at run time where zero is outside of them."""
    x = {"x": normal(2, 4, 9, 8)}
    windows = {"conv": ("Conv", ["w"], {}), "depthwise": ("Conv", ["k"], {"group": 4}), "transposed": ("ConvTranspose", ["w"], {}),
               "max": ("MaxPool", [], {"kernel_shape": [2, 2]}), "average": ("AveragePool", [], {"kernel_shape": [2, 2]})}
    constants = {"w": normal(4, 4, 3, 3), "k": normal(4, 1, 3, 3), "half": np.float32(0.5), "two": np.float32(2), "less": np.float32(-0.5),
                 "one": np.float32(1), "ones": np.full((1, 1, 1), 0.5, np.float32)}
    for name, window in windows.items():
        yield graph(f"{name}-above", chain("x", window, ("Clip", ["half", "two"])), x, constants)
        yield graph(f"{name}-below", chain("x", window, ("Clip", ["", "less"])), x, constants)
        yield graph(f"{name}-around", chain("x", window, ("Clip", ["less", "two"])), x, constants)
    conv = windows["conv"]
    yield graph("limit-max", chain("x", conv, ("Max", ["half"])), x, constants)
    yield graph("limit-max-image", chain("x", conv, ("Max", ["ones"])), x, constants)
    yield graph("limit-min", chain("x", conv, ("Min", ["less"])), x, constants)
    yield graph("limit-twice", chain("x", conv, ("Clip", ["less", "one"]), ("Clip", ["half", "two"])), x, constants)
    yield graph("limit-moved", chain("x", conv, ("Transpose", [], {"perm": [0, 2, 3, 1]}), ("Clip", ["half", "two"])), x, constants)


# --- found by xnnpack_sweep.py ---

def found_cases():
    yes = {"c": np.array(True)}
    yield graph("where-scalar-condition", [node("Where", ["c", "x", "z"])], {**yes, "x": normal(7, 4), "z": np.float32(2)})
    yield graph("where-number-of-more-dims", [node("Where", ["c", "a", "b"], "t"), node("Neg", ["t"])], {"c": np.array([True])},
                {"a": np.full((1, 1), 0.5, np.float32), "b": np.float32(-4)})
    yield graph("where-one-number-of-more-dims", [node("Where", ["c", "x", "b"], "t"), node("Neg", ["t"])],
                {"c": np.array([True, False]), "x": normal(2)}, {"b": np.full((1, 1, 1), 2, np.float32)})


# --- choices ---

def cast_cases():
    """Whole numbers come in as they are: all of 8 bits, and of 32 those that floats round, too."""
    bounds = {np.uint8: [0, 1, 127, 128, 255], np.int8: [-128, -127, -1, 0, 127],
              np.int32: [-2**31, 2**31 - 1, -16777217, 16777217, 33554435, 0, -5]}
    for dtype, numbers in bounds.items():
        x, name = np.array([numbers], dtype), np.dtype(dtype).name
        yield graph(f"Cast-{name}", [node("Cast", ["x"], "t", to=1), node("Neg", ["t"])], {"x": x}, rtol=0, atol=0)
        yield graph(f"Cast-{name}-twice", [node("Cast", ["x"], "t", to=1), node("Cast", ["x"], "u", to=1), node("Mul", ["t", "u"])], {"x": x})
        if dtype != np.int32:
            yield graph(f"Cast-{name}-half", [node("Cast", ["x"], "t", to=10), node("Neg", ["t"])], {"x": x}, out_type=np.float16, rtol=0, atol=0)
    image = np.random.default_rng(1).integers(0, 256, (2, 3, 9, 8)).astype(np.uint8)
    yield graph("Cast-image", [node("Cast", ["x"], "t", to=1), node("Div", ["t", "m"], "u"), node("Conv", ["u", "w"])], {"x": image},
                {"m": np.float32(255), "w": normal(4, 3, 3, 3)})
    yield graph("Cast-int64", [node("Cast", ["x"], "t", to=1), node("Neg", ["t"])], {"x": ints(2**40, -3, 0)}, kernels=1)


def position_cases():
    """The first of equal ones; infinities are numbers."""
    rng = np.random.default_rng(1)
    for op in ("ArgMax", "ArgMin"):
        for shape in ((5,), (3, 7), (9, 300), (2, 3, 4), (2, 21, 6, 5), (2, 3, 4, 2, 3)):
            x = rng.integers(-3, 4, shape).astype(np.float32)
            x.reshape(-1)[:3] = [-np.inf, np.inf, 0]
            for axis in range(len(shape)):
                keep = (axis + len(shape)) % 2
                lanes = x.size // shape[axis] if axis == 0 or axis == len(shape) - 1 else np.prod(shape[axis + 1:])
                yield graph(f"{op}-{'x'.join(map(str, shape))}-{axis}", [node("Neg", ["x"], "t"), node(op, ["t"], axis=axis, keepdims=keep)],
                            {"x": x}, kernels=1 if shape[axis] > 256 and lanes < 8 else 0, out_type=np.int64)
        yield graph(f"{op}-zeros", [node(op, ["x"], axis=1)], {"x": np.array([[-0.0, 0.0], [0.0, -0.0]], np.float32)}, out_type=np.int64)
        yield graph(f"{op}-half", [node(op, ["x"], axis=0)], {"x": rng.integers(-9, 9, (6, 5)).astype(np.float16)}, out_type=np.int64)
        yield graph(f"{op}-image", [node("Conv", ["x", "w"], "t"), node(op, ["t"], axis=1)], {"x": normal(1, 4, 9, 8)}, {"w": normal(6, 4, 3, 3)},
                    out_type=np.int64)
        yield graph(f"{op}-one-row", [node(op, ["x"], axis=1)], {"x": normal(1, 400)}, kernels=1, out_type=np.int64)
        yield graph(f"{op}-one", [node(op, ["x"], axis=1)], {"x": normal(7, 1)}, kernels=None, out_type=np.int64)
        yield graph(f"{op}-used", [node(op, ["x"], "p", axis=1, keepdims=0), node("Gather", ["e", "p"], "r"), node("Tanh", ["r"])],
                    {"x": normal(7, 6)}, {"e": normal(6, 5)})
        yield graph(f"{op}-large-table", [node(op, ["x"], "p", axis=1, keepdims=0), node("Gather", ["e", "p"], "r"), node("Tanh", ["r"])],
                    {"x": normal(7, 6)}, {"e": normal(600, 60)}, kernels=1)
        yield graph(f"{op}-not-finite", [node(op, ["x"], "p", axis=1, keepdims=0), node("Gather", ["e", "p"], "r"), node("Tanh", ["r"])],
                    {"x": normal(7, 6)}, {"e": np.array([[1, 2], [np.inf, 3], [4, np.nan], [5, 6], [7, 8], [9, 10]], np.float32)}, kernels=1)


def varying_cases():
    """Of sizes that vary together: views that join and split them, sums and maxima over them."""
    sizes, bounds = [(3, 2, 5), (1, 1, 1), (2, 6, 1), (3, 6, 7)], {"n": "1..3", "h": "1..6", "w": "1..7"}

    def images(channels, scale=1.0):
        feeds = [{"x": scale * normal(n, channels, h, w)} for n, h, w in sizes]
        feeds[0]["x"][1, 0, 0, 0], feeds[3]["x"][0, 1, 5, 6] = np.inf, -np.inf
        return feeds

    image = {"shapes": {"x": ["n", 4, "h", "w"]}, "dims": bounds}
    joined, split = ints(0, 4, -1), node("Shape", ["x"], "s")
    # A join that is wanted in memory, for each of the batches.
    yield graph("join-softmax", [node("Neg", ["x"], "t"), node("Reshape", ["t", "j"], "r"), node("Softmax", ["r"], axis=-1)],
                [{"x": np.where(np.isinf(f["x"]), np.float32(3), f["x"])} for f in images(4, 5)], {"j": joined}, **image)
    yield graph("join-result", [node("Neg", ["x"], "t"), node("Reshape", ["t", "j"], "r"), node("Tanh", ["r"])], images(4), {"j": joined}, **image)
    # One that is split again, and so stays apart: as rows, normalised, multiplied, and as an image.
    tokens = [node("Conv", ["x", "k"], "c", pads=[1, 1, 1, 1]), node("Reshape", ["c", "j"], "r"), node("Transpose", ["r"], "t", perm=[0, 2, 1])]
    finite = [{"x": normal(n, 4, h, w)} for n, h, w in sizes]
    more = {"k": normal(4, 4, 3, 3) / 4, "j": joined, "g": normal(4), "b": normal(4), "p": normal(4, 4) / 2, "q": normal(4, 4) / 2}
    back = [node("Transpose", ["o"], "u", perm=[0, 2, 1]), split, node("Reshape", ["u", "s"], "v"), node("Conv", ["v", "k"], pads=[1, 1, 1, 1])]
    yield graph("apart-rows", [*tokens, node("LayerNormalization", ["t", "g", "b"], "l"), node("MatMul", ["l", "p"], "m"), node("Gelu", ["m"], "a"),
                               node("Add", ["a", "t"], "o"), *back], finite, more, opset=20, **image)
    attention = [node("MatMul", ["t", "p"], "Q"), node("MatMul", ["t", "q"], "K"), node("Transpose", ["K"], "T", perm=[0, 2, 1]),
                 node("MatMul", ["Q", "T"], "S"), node("Softmax", ["S"], "P", axis=-1), node("MatMul", ["P", "t"], "O")]
    yield graph("apart-attention", [*tokens, *attention, node("Add", ["O", "t"], "o"), *back], finite, more, **image)
    # Sums over images of two sizes, and of one twice.
    pixels = [{"x": normal(n, 4, h + 1, w + 1)} for n, h, w in sizes]
    yield graph("sums-of-two-sizes", [node("Neg", ["x"], "t"), node("AveragePool", ["t"], "u", kernel_shape=[2, 2]),
                                      *(node("ReduceSum", [v, "a"], f"{v}s") for v in "xtu"), node("Concat", ["xs", "ts", "us"], axis=1)],
                pixels, {"a": ints(2, 3)}, shapes={"x": ["n", 4, "h", "w"]}, dims={"n": "1..3", "h": "2..7", "w": "2..8"})
    # A constant beside what is permuted, where two dims vary.
    rows = {"shapes": {"x": ["n", 3, "h", 4]}, "dims": {"n": "1..3", "h": "1..6"}}
    for name, shape in (("", (3, 4)), ("-one", (3, 1)), ("-all", (1, 1, 3, 4)), ("-last", (4,))):
        yield graph(f"permuted-constant{name}", [node("Mul", ["x", "k"], "m"), node("Transpose", ["m"], "t", perm=[0, 2, 1, 3]), node("Add", ["t", "b"])],
                    [{"x": normal(n, 3, h, 4)} for n, h, _ in sizes], {"k": normal(3, 1, 4), "b": normal(*shape)}, **rows)
    for axis in (0, 1, 2):
        yield single(f"ReduceSum-varying-{axis}", "ReduceSum", ["x", "a"], [{"x": normal(*size)} for size in sizes], {"a": ints(axis)}, opset=18,
                     shapes={"x": ["n", "h", "w"]}, dims=bounds)
    for op in ("ReduceSum", "ReduceMax", "ReduceMin"):
        for shape, axis in (((3, None, 4), 1), ((3, None), 1), ((None, 5), 0)):
            feeds = [{"x": normal(*(size or n for size in shape))} for n in (5, 1, 7)]
            feeds[0]["x"].flat[0] = np.inf
            yield single(f"{op}-varying-{len(shape)}-{axis}", op, ["x", "a"], feeds, {"a": ints(axis)}, opset=18,
                         shapes={"x": [size or "n" for size in shape]}, dims={"n": "1..8"})


def quantized_weight_cases():
    """Of more bytes in floats than are folded otherwise."""
    w = np.random.default_rng(1).integers(-128, 128, (256, 128, 3, 3)).astype(np.int8)
    for axis, scale in ((None, np.float32(0.01)), (0, np.linspace(0.001, 0.02, 256, dtype=np.float32))):
        more = {} if axis is None else {"axis": axis}
        yield graph(f"Conv-quantized-weights-{'all' if axis is None else 'each'}",
                    [node("DequantizeLinear", ["w", "s"], "f", **more), node("Conv", ["x", "f"])], {"x": normal(1, 128, 5, 4)},
                    {"w": w, "s": scale}, rtol=1e-3, atol=1e-3)


def where_cases():
    c = np.array([[True, False, True], [False, False, True]])
    shapes = (((2, 3), (2, 3), (2, 3)), ((2, 3), (3, ), (2, 3)), ((2, 3), (2, 3), (2, 1)), ((3, ), (2, 1), (4, 1, 1)), ((2, 3), (), (2, 3)), ((1, 1), (2, 3), (3, )),
              ((2, 3), (), (4, 2, 3)), ((3, ), (2, 3), (1, 1, 1)), ((2, 3), (1, 1, 1), (1, )))
    for condition, a, b in shapes:
        name = f"Where-{len(condition)}-{'x'.join(map(str, a))}-{'x'.join(map(str, b))}"
        feed = {"c": c[:condition[0]] if len(condition) == 2 and condition[0] == 2 else c[0] if len(condition) == 1 else c[:1, :1]}
        for constants in ("", "a", "b", "ab"):
            values = {"a": normal(*a), "b": normal(*b)}
            given = {k: v for k, v in values.items() if k not in constants}
            yield single(f"{name}-{constants or 'run'}", "Where", ["c", "a", "b"], {**feed, **given}, {k: values[k] for k in constants}, kernels=None)
    nodes = [node("OneHot", ["x", "depth", "values"], "o"), node("Transpose", ["o"], "t", perm=[0, 3, 1, 2]), node("Cast", ["t"], "f", to=1),
             node("Conv", ["f", "w"])]
    yield graph("OneHot-image", nodes, {"x": (np.arange(30) % 9 - 4).reshape(1, 6, 5)}, {"depth": np.array(4), "values": np.array([0, 1]), "w": normal(3, 4, 3, 3)}, kernels=3)


# --- moves, each before an operation that is computed ---

def move_cases():
    def moved(name, op, shape, inputs=(), constants=(), **attributes):
        """In plain layout, and between a convolution and an activation in that of images."""
        constants = {k: v for k, v in dict(constants).items() if v is not None}
        nodes = [node(op, ["x", *inputs], "t", **attributes), node("Tanh", ["t"])]
        yield graph(name, nodes, {"x": normal(*shape)}, constants, opset=18)
        if len(shape) == 4:
            conv = node("Conv", ["x", "w"], "u")
            yield graph(f"{name}-image", [conv, node(op, ["u", *inputs], "t", **attributes), nodes[1]], {"x": normal(*shape)},
                        {**constants, "w": normal(shape[1], shape[1], 1, 1)}, opset=18)

    for axis, begin, end, step in ((2, 0, 99, 2), (3, 1, 99, 2), (2, 1, 7, 3), (1, 0, 99, 3), (3, 0, 8, 5), (-1, -4, -1, 2)):
        yield from moved(f"Slice-{axis}-{begin}-{end}-{step}", "Slice", (2, 4, 8, 9), "bead", {"b": ints(begin), "e": ints(end), "a": ints(axis), "d": ints(step)})
    s = {"b": ints(0), "e": ints(99), "d": ints(2), "c": ints(1), "h": ints(1), "v": ints(2)}
    merge = [node("Slice", ["x", i, "e", "h", "d"], f"r{k}") for k, i in enumerate("bc")]
    merge += [node("Slice", [f"r{k}", i, "e", "v", "d"], f"q{k}{j}") for k in range(2) for j, i in enumerate("bc")]
    yield graph("patch-merging", [*merge, node("Concat", ["q00", "q10", "q01", "q11"], "t", axis=-1), node("Tanh", ["t"])], {"x": normal(2, 8, 6, 5)}, s)
    for shape in ((2, 3, 7), (2, 3, 6, 7)):
        for mode in ("reflect", "edge"):
            for pads in ([1, 2], [3, 0], [0, 4]):
                full = [0, 0] + pads[:1] * (len(shape) - 2) + [0, 0] + pads[1:] * (len(shape) - 2)
                yield from moved(f"Pad-{mode}-{len(shape)}-{pads[0]}-{pads[1]}", "Pad", shape, ["p"], {"p": ints(*full)}, mode=mode)
        zeros = [0] * (len(shape) - 1)
        for first, last in ((-1, 2), (-2, -1), (3, -3), (0, -1)):
            yield from moved(f"Pad-{len(shape)}-{first}-{last}", "Pad", shape, ["p", "v"], {"p": ints(*zeros, first, *zeros, last), "v": np.float32(1.5)})
    for label, index in (("order", (2, 0, 1)), ("run", (1, 2)), ("stride", (0, 2, 4)), ("mixed", (4, 4, 1, 2, 3, 0)), ("one", (3, ))):
        yield from moved(f"Gather-{label}", "Gather", (2, 5, 5, 6), ["i"], {"i": ints(*index)}, axis=1)
        yield from moved(f"Gather-{label}-last", "Gather", (2, 3, 6), ["i"], {"i": ints(*index)}, axis=2)
    many = np.stack([np.arange(9000) % 3, np.arange(9000) * 7 % 5 - 5], 1)
    for label, index in (("run", [[1, 3], [1, 4], [2, 0]]), ("any", [[-1, 2], [0, -5], [1, 1]]), ("many", many)):
        yield single(f"GatherND-known-{label}", "GatherND", ["x", "i"], {"x": normal(3, 5, 4)}, {"i": np.array(index, np.int64)}, kernels=1, opset=13)
    for axis in (0, 1, 2):
        yield from moved(f"flip-{axis}", "Slice", (2, 4, 6), "bead", {"b": ints(-1), "e": ints(-99), "a": ints(axis), "d": ints(-1)})
    # x[:, :, 1:, 2:7] = z with indices that are too many to be computed ahead, as exporters write it.
    rows, columns = np.arange(1, 700, dtype=np.int64).reshape(-1, 1), np.arange(2, 402, dtype=np.int64)
    at = [node("Expand", ["i", "s"], "i1"), node("Expand", ["i", "s"], "i2"), node("Expand", ["r", "s"], "i3"), node("Expand", ["c", "s"], "i4")]
    at += [node("Unsqueeze", [f"i{k}", "last"], f"u{k}") for k in (1, 2, 3, 4)]
    at += [node("Concat", ["u1", "u2", "u3", "u4"], "at", axis=-1), node("Mul", ["x", "x"], "t"), node("ScatterND", ["t", "at", "z"])]
    yield graph("assignment", at, {"x": normal(1, 1, 700, 405), "z": normal(1, 1, 699, 400)},
                {"i": ints(0), "r": rows, "c": columns, "s": ints(1, 1, 699, 400), "last": ints(-1)})
    for op, block in (("DepthToSpace", 2), ("SpaceToDepth", 2)):
        yield from moved(op, op, (2, 8, 4, 6), blocksize=block)
    yield from moved("DepthToSpace-CRD", "DepthToSpace", (2, 8, 4, 6), blocksize=2, mode="CRD")
    yield from moved("DepthToSpace-CRD-3", "DepthToSpace", (1, 9, 2, 3), blocksize=3, mode="CRD")
    for count in (1, 2, 3, 5, 6, 11):
        names = [f"x{i}" for i in range(count)]
        yield graph(f"Concat-{count}", [node("Concat", names, "t", axis=1), node("Tanh", ["t"])], {n: normal(2, 1 + i % 3, 4) for i, n in enumerate(names)})
    yield graph("Split", [node("Split", ["x", "s"], ["a", "b", "c"], axis=1), node("Tanh", ["a"]), node("Sigmoid", ["b"], "y1"), node("Relu", ["c"], "y2")],
                {"x": normal(2, 7, 3)}, {"s": ints(2, 1, 4)}, outputs=3, opset=18)
    yield graph("Tile", [node("Tile", ["x", "r"], "t"), node("Tanh", ["t"])], {"x": normal(2, 1, 3)}, {"r": ints(1, 4, 1)})
    yield from moved("Tile-all", "Tile", (2, 3, 4, 5), ["r"], {"r": ints(2, 3, 1, 4)})
    yield graph("Expand", [node("Expand", ["x", "r"], "t"), node("Tanh", ["t"])], {"x": normal(2, 1, 3)}, {"r": ints(5, 2, 4, 3)})


def rank_cases():
    """A constant of one element gives codes more dims."""
    own = np.random.default_rng(20261127)
    x, scale = {"x": own.integers(0, 256, (1, 1, 8, 1)).astype(np.uint8)}, {"s": np.float32(0.5), "z": np.uint8(7), "w": np.full((1, 1, 1, 1, 1), 9, np.uint8)}
    begin = [node("DequantizeLinear", ["x", "s", "z"], "d"), node("DequantizeLinear", ["w", "s", "z"], "v")]
    end = [node("QuantizeLinear", ["t", "s", "z"], "p"), node("DequantizeLinear", ["p", "s", "z"])]
    for op in ("Max", "Min", "Mul", "Add"):
        yield graph(f"codes-rank-{op}", [*begin, node(op, ["d", "v"], "t"), *end], x, scale, kernels=None, rtol=0, atol=0)
    moves = [node("Relu", ["d"], "r"), node("QuantizeLinear", ["r", "s", "z"], "q"), node("DequantizeLinear", ["q", "s", "z"], "u"), node("Expand", ["u", "dims"], "t")]
    yield graph("codes-rank-Expand", [begin[0], *moves, *end], x, {"s": scale["s"], "z": scale["z"], "dims": ints(1, 1, 1, 8, 1)}, kernels=None, rtol=0, atol=0)


def block_cases():
    """Weights of blocks that stay codes: groups that are the blocks, zero points that are real numbers."""
    own = np.random.default_rng(20261128)
    codes, scales = own.integers(0, 256, (24, 4, 16)).astype(np.uint8), (own.random((24, 4)) * 0.1 + 0.1).astype(np.float32)
    blocks = {"domain": "com.microsoft", "K": 128, "N": 24, "block_size": 32}
    x = {"x": own.standard_normal((3, 128)).astype(np.float32)}
    yield single("blocks-groups", "MatMulNBits", ["x", "w", "s", "", "g"], x, {"w": codes, "s": scales, "g": np.arange(128, dtype=np.int32) // 32}, **blocks)
    zeros = (own.random((24, 4)) * 15).astype(np.float32)
    # Weights above --fold-limit that were converted to float16 and are converted back in front of their product.
    half = {"w": (own.standard_normal((600, 600)) / 16).astype(np.float16)}
    yield graph("weights-cast-back", [node("Cast", ["w"], "f", to=1), node("MatMul", ["x", "f"])], {"x": own.standard_normal((2, 600)).astype(np.float32)}, half)
    yield single("blocks-real-zeros", "MatMulNBits", ["x", "w", "s", "z"], x, {"w": codes, "s": scales, "z": zeros}, accuracy_level=4, **blocks)


def selected_cases():
    """Selections that torch.onnx writes: a mask of integers as floats, and softplus above its threshold."""
    own = np.random.default_rng(20261129)
    x, mask = own.standard_normal((2, 8)).astype(np.float32), np.array([[1, 1, 0, 2, 0, 1, 1, 0]], np.int64)
    yield graph("where-of-cast", [node("Cast", ["m"], "f", to=1), node("Equal", ["f", "zero"], "c"), node("Where", ["c", "low", "x"])],
                {"m": mask, "x": x}, {"zero": np.float32(0), "low": np.float32(-100)}, kernels=2)
    wide = {"x": (own.random((4, 8)) * 60 - 30).astype(np.float32)}
    chosen = [node("Greater", ["x", "t"], "c"), node("Softplus", ["x"], "s"), node("Where", ["c", "x", "s"])]
    yield graph("softplus-threshold", chosen, wide, {"t": np.float32(20)}, kernels=0)


def between_product_cases():
    """What stands between products, for int8: a view of two dims that vary behind an activation, and a ratio of small numbers."""
    own = np.random.default_rng(20261130)

    def weight(*shape):
        return own.standard_normal(shape).astype(np.float32) / 3

    sizes = [{"x": own.standard_normal((n, m, 8)).astype(np.float32)} for n, m in ((2, 5), (1, 1), (3, 6))]
    heads = [node("MatMul", ["x", "a"], "l"), node("Sigmoid", ["l"], "s"), node("Reshape", ["s", "h"], "v"), node("Transpose", ["v"], "t", perm=[0, 2, 1, 3]),
             node("MatMul", ["t", "b"])]
    yield graph("heads-of-an-activation", heads, sizes, {"a": weight(8, 8), "b": weight(2, 8), "h": ints(0, 0, 4, 2)}, shapes={"x": ["n", "m", 8]},
                dims={"n": "1..3", "m": "1..6"})
    ratio = [*(node("MatMul", ["x", w], f"l{w}") for w in "abc"), node("Sigmoid", ["la"], "s"), node("Sigmoid", ["lb"], "t"), node("Mul", ["s", "t"], "d"),
             node("Mul", ["d", "lc"], "n"), node("Div", ["n", "d"], "r"), node("MatMul", ["r", "a"], "p"), node("MatMul", ["d", "b"], "q"), node("Add", ["p", "q"])]
    yield graph("ratio-between-products", ratio, {"x": own.standard_normal((4, 8)).astype(np.float32)}, {w: weight(8, 8) for w in "abc"})


def varying_row_cases():
    """Products with a bias on rows of an image of three sizes that vary: the rows stay apart until a view takes them apart again."""
    own = np.random.default_rng(20261201)
    sizes = [{"x": own.standard_normal((n, 8, h, w)).astype(np.float32)} for n, h, w in ((2, 3, 4), (1, 1, 5), (3, 6, 2))]
    weights = {w: (own.standard_normal((8, 8)) / 3).astype(np.float32) for w in "pq"}
    bias = {"b": own.standard_normal(8).astype(np.float32), "r": ints(-1, 8)}
    rows = [node("Transpose", ["x"], "t", perm=[0, 2, 3, 1]), node("Shape", ["t"], "s"), node("Reshape", ["t", "r"], "v")]
    for name, made in (("", [node("Gemm", ["v", "p", "b"], "m")]), ("-scaled", [node("Gemm", ["v", "p", "b"], "m", alpha=0.5, beta=-2.0)]),
                       ("-run-time", [node("ReduceMean", ["q", "one"], "c", keepdims=0), node("Gemm", ["v", "p", "c"], "m")])):
        back = [node("Reshape", ["m", "s"], "u"), node("Transpose", ["u"], "o", perm=[0, 3, 1, 2]), node("Conv", ["o", "k"], pads=[1, 1, 1, 1])]
        feeds = [{**f, "q": own.standard_normal((3, 8)).astype(np.float32)} for f in sizes] if "time" in name else sizes
        yield graph(f"rows-with-bias{name}", [*rows, *made, *back], feeds,
                    {"p": weights["p"], **bias, "one": ints(0), "k": (own.standard_normal((4, 8, 3, 3)) / 8).astype(np.float32)}, opset=18,
                    shapes={"x": ["n", 8, "h", "w"]}, dims={"n": "1..3", "h": "1..6", "w": "1..6"})


def comparison_cases():
    """Comparisons with numbers as floats, of equal, neighbouring, very small, large and infinite ones."""
    numbers = np.array([0, -0.0, 1e-37, -1e-37, 0.5, np.nextafter(np.float32(0.5), np.float32(1)), np.nextafter(np.float32(0.5), np.float32(0)), 3e38, -3e38, np.inf, -np.inf, 2, -2],
                       np.float32)
    feeds = {"x": np.concatenate([numbers, np.random.default_rng(20261205).standard_normal(51).astype(np.float32)]).reshape(4, 16)}
    for op in ("Greater", "GreaterOrEqual", "Less", "LessOrEqual"):
        for number in (0, 0.5, -2, 3e38):
            yield graph(f"{op}-{number}", [node(op, ["x", "c"], "b"), node("Cast", ["b"], to=1)], feeds, {"c": np.float32(number)})


FAMILIES = (image_cases, tap_cases, runtime_weight_cases, phase_cases, plane_cases, column_cases, half_cases, reduce_cases,
            long_row_cases, pointwise_cases, product_cases, norm_cases, official_cases, limit_cases, found_cases, cast_cases,
            position_cases, varying_cases, quantized_weight_cases, where_cases, move_cases, window_cases, channel_cases,
            volume_cases, tile_cases, eighth_cases, gathered_cases, resampling_cases, strip_cases, ceil_pool_cases, pick_cases, rank_cases,
            block_cases, box_cases, selected_cases, between_product_cases, dynamic_phase_cases, large_pool_cases, varying_row_cases,
            varying_extreme_cases, varying_mean_cases, line_cases, comparison_cases)


def main():
    parser = single_node.parser(__doc__, interp=True)
    parser.add_argument("--cpu", help="the one that convolutions are to be fast on")
    args = parser.parse_args()
    args.extra.append("--backend=xnnpack:min-ops=1" + (f",cpu={args.cpu}" if args.cpu else ""))
    return single_node.cases.run((case for family in FAMILIES for case in family()), single_node.check, args)


if __name__ == "__main__":
    sys.exit(main())
