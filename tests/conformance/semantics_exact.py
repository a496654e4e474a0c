"""Numbers that narrower types do not hold: integers beyond 2^24 and 2^53, doubles to their last digits, steps of halves."""

import numpy as np
from onnx import TensorProto, helper

from single_node import BF16, Case, RNG, normal

EXACT = {"rtol": 0, "atol": 0}
DOUBLE = {"rtol": 1e-13, "atol": 1e-14, "out_type": np.float64}


def large_integers():
    for dtype, base in ((np.int32, 2**24), (np.int64, 2**24), (np.int64, 2**53)):
        kind = f"{np.dtype(dtype)}-{base.bit_length() - 1}"
        x, y = base + RNG.integers(0, 9, (3, 4, 5)).astype(dtype), base + RNG.integers(0, 9, (3, 4, 5)).astype(dtype)
        small = RNG.integers(1, 50, (3, 4, 5)).astype(dtype)
        same = {"out_type": dtype, **EXACT}
        for axes in ([0], [1], [2], [0, 1], [0, 1, 2]):
            name = "".join(map(str, axes))
            # ONNX Runtime adds in doubles.
            yield Case(f"ReduceSum-{kind}-{name}", "ReduceSum", ["x", "a"], {"x": x}, {"a": np.array(axes)},
                       oracle=[x.sum(tuple(axes), dtype, keepdims=True)], **same)
        yield Case(f"ReduceSum-{kind}-row", "ReduceSum", ["x"], {"x": x[0, 0]}, keepdims=0, **same)
        yield Case(f"ReduceL1-{kind}", "ReduceL1", ["x"], {"x": x}, axes=[1], oracle=[x.sum(1, dtype, keepdims=True)], **same)
        yield Case(f"ReduceSumSquare-{kind}", "ReduceSumSquare", ["x"], {"x": x % 999}, axes=[1], **same)
        for op in ("ReduceMax", "ReduceMin"):
            yield Case(f"{op}-{kind}", op, ["x", "a"], {"x": x}, {"a": np.array([1])}, opset=18, **same)
        for op in ("Add", "Sub", "Mul", "Max", "Min"):
            yield Case(f"{op}-{kind}", op, ["x", "y"], {"x": x, "y": y if op != "Mul" else small}, **same)
        for sign in (1, -1):
            yield Case(f"Div-{kind}{sign:+}", "Div", ["x", "y"], {"x": sign * x, "y": np.where(small % 2, small, -small)}, **same)
            yield Case(f"Div-{kind}{sign:+}-constant", "Div", ["x", "y"], {"x": sign * x}, {"y": np.array(7, dtype)}, **same)
        yield Case(f"Mod-{kind}", "Mod", ["x", "y"], {"x": x, "y": small}, **same)
        for op in ("Equal", "Less", "GreaterOrEqual"):
            yield Case(f"{op}-{kind}", op, ["x", "y"], {"x": x, "y": y}, out_type=np.bool_, **EXACT)
        for op in ("Abs", "Neg", "Sign"):
            yield Case(f"{op}-{kind}", op, ["x"], {"x": -x}, **same)
        yield Case(f"CumSum-{kind}", "CumSum", ["x", "a"], {"x": x}, {"a": np.array(1)}, **same)
        yield Case(f"Clip-{kind}", "Clip", ["x", "a", "b"], {"x": x}, {"a": np.array(base + 3, dtype), "b": np.array(base + 5, dtype)}, **same)
        yield Case(f"Where-{kind}", "Where", ["c", "x", "y"], {"c": small > 20, "x": x, "y": y}, **same)
        yield Case(f"Pad-{kind}", "Pad", ["x", "p", "v"], {"x": x}, {"p": np.array([0, 0, 0, 0, 0, 1]), "v": np.array(base + 3, dtype)}, **same)
        yield Case(f"MatMul-{kind}", "MatMul", ["x", "y"], {"x": x, "y": small.transpose(0, 2, 1).copy()}, **same)
        yield Case(f"Einsum-{kind}", "Einsum", ["x", "y"], {"x": x, "y": small}, equation="abc,abc->b", **same)
        yield Case(f"ArgMax-{kind}", "ArgMax", ["x"], {"x": x}, axis=1, out_type=np.int64, **EXACT)
        yield Case(f"TopK-{kind}", "TopK", ["x", "k"], {"x": x}, {"k": np.array([2])}, outputs=2, out_type=[dtype, np.int64], **EXACT)
        yield Case(f"ScatterElements-{kind}", "ScatterElements", ["x", "i", "y"], {"x": x, "i": np.zeros((1, 4, 5), np.int64), "y": y[:1]},
                   opset=18, reduction="add", **same)


def doubles():
    x, positive = normal(3, 4, 5, dtype=np.float64), 0.1 + RNG.random((3, 4, 5))
    for axis in (0, 1, 2):
        axes = {"a": np.array([axis])}
        yield Case(f"ReduceSum-f64-{axis}", "ReduceSum", ["x", "a"], {"x": x}, axes, **DOUBLE)
        for op in ("ReduceMean", "ReduceL2", "ReduceProd", "ReduceLogSumExp"):
            yield Case(f"{op}-f64-{axis}", op, ["x", "a"], {"x": x}, axes, opset=18, **DOUBLE)
        yield Case(f"Softmax-f64-{axis}", "Softmax", ["x"], {"x": x}, axis=axis, **DOUBLE)
        yield Case(f"LogSoftmax-f64-{axis}", "LogSoftmax", ["x"], {"x": x}, axis=axis, **DOUBLE)
    yield Case("ReduceLogSum-f64", "ReduceLogSum", ["x", "a"], {"x": positive}, {"a": np.array([1])}, opset=18, **DOUBLE)
    yield Case("LayerNormalization-f64", "LayerNormalization", ["x", "s", "b"], {"x": x}, {"s": normal(5, dtype=np.float64),
               "b": normal(5, dtype=np.float64)}, epsilon=0.0078125, **DOUBLE)
    channels = {"s": normal(4, dtype=np.float64), "b": normal(4, dtype=np.float64)}
    image = normal(2, 4, 3, 5, dtype=np.float64)
    mean, scale, shift = image.mean((2, 3), keepdims=True), channels["s"].reshape(-1, 1, 1), channels["b"].reshape(-1, 1, 1)
    normalised = (image - mean) / np.sqrt(image.var((2, 3), keepdims=True) + 0.0078125) * scale + shift
    yield Case("InstanceNormalization-f64", "InstanceNormalization", ["x", "s", "b"], {"x": image}, channels, epsilon=0.0078125,
               oracle=[normalised], **DOUBLE)
    groups = image.reshape(2, 2, -1)
    groups = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + 0.0078125)
    yield Case("GroupNormalization-f64", "GroupNormalization", ["x", "s", "b"], {"x": image}, channels, epsilon=0.0078125, num_groups=2,
               opset=21, oracle=[groups.reshape(image.shape) * scale + shift], **DOUBLE)
    for op in ("Exp", "Log", "Sqrt", "Tanh", "Sigmoid", "Sin", "Reciprocal"):
        yield Case(f"{op}-f64", op, ["x"], {"x": positive}, **DOUBLE)
    yield Case("CumSum-f64", "CumSum", ["x", "a"], {"x": x}, {"a": np.array(1)}, **DOUBLE)
    yield Case("MatMul-f64", "MatMul", ["x", "y"], {"x": x, "y": x.transpose(0, 2, 1).copy()}, **DOUBLE)
    yield Case("Gemm-f64", "Gemm", ["x", "y", "c"], {"x": x[0], "y": x[1]}, {"c": x[2, :, :4].copy()}, transB=1, alpha=0.5, **DOUBLE)
    yield Case("Einsum-f64", "Einsum", ["x"], {"x": x}, equation="abc->ac", **DOUBLE)


def halves():
    """Squares beyond 65504 and sums beyond the digits of halves, on the way to results that are halves."""
    half = {"out_type": np.float16, "rtol": 2e-3}
    x = RNG.uniform(-400, 400, (2, 3, 4, 5)).astype(np.float16)
    for op in ("ReduceL2", "ReduceLogSumExp"):
        yield Case(f"{op}-f16", op, ["x", "a"], {"x": x}, {"a": np.array([1, 3])}, opset=18, **half)
    yield Case("ReduceLogSum-f16", "ReduceLogSum", ["x", "a"], {"x": 50 * np.abs(x)}, {"a": np.array([1, 3])}, opset=18, **half)
    factors = np.array([[400, 300, 0.01, 0.02], [0.001, 0.001, 500, 20]], np.float16)
    yield Case("ReduceProd-f16", "ReduceProd", ["x"], {"x": factors}, axes=[1], **half)
    yield Case("CumProd-f16", "CumProd", ["x", "a"], {"x": np.array([60000, 2, 0.25, 3], np.float16)}, {"a": np.array(0)}, opset=26,
               oracle=[np.array([60000, np.inf, 30000, np.inf], np.float16)], **half)
    for kind, most in ((np.float16, 4096), (BF16, 512)):
        ones = np.ones(most, kind)
        yield Case(f"CumSum-{np.dtype(kind)}", "CumSum", ["x", "a"], {"x": ones}, {"a": np.array(0)}, out_type=kind,
                   oracle=[np.arange(1, most + 1, dtype=np.float32).astype(kind)], **EXACT)
    for p in (2, 3):
        yield Case(f"GlobalLpPool-f16-p{p}", "GlobalLpPool", ["x"], {"x": x}, p=p, **half)
        yield Case(f"LpPool-f16-p{p}", "LpPool", ["x"], {"x": x}, p=p, kernel_shape=[2, 2], **half)
    for axis in (1, -1):
        yield Case(f"LpNormalization-f16-{axis}", "LpNormalization", ["x"], {"x": x}, axis=axis, **half)
    yield Case("MeanVarianceNormalization-f16", "MeanVarianceNormalization", ["x"], {"x": x}, **half)
    yield Case("LRN-f16", "LRN", ["x"], {"x": x}, size=3, **half)
    channels = {k: normal(3, dtype=np.float16) for k in "sbm"} | {"v": np.ones(3, np.float16)}
    wide, (s, b) = x.astype(np.float32), (channels[k].astype(np.float32).reshape(3, 1, 1) for k in "sb")
    trained = (wide - wide.mean((0, 2, 3), keepdims=True)) / np.sqrt(wide.var((0, 2, 3), keepdims=True) + 1e-5) * s + b
    yield Case("BatchNormalization-f16-training", "BatchNormalization", ["x", "s", "b", "m", "v"], {"x": x}, channels, training_mode=1,
               oracle=[trained.astype(np.float16)], atol=4e-3, **half)


def numbers_near_the_end():
    """Integers of 64 bits that an encoding of symbolic sizes might want for itself: exact or refused."""
    odd, same = -2**63 + 2**40 + 5, {"out_type": np.int64, **EXACT}
    x = np.array([0, 3, 2**40], np.int64)
    add = helper.make_node("Add", ["x", "c"], ["y0"])
    for name, value in (("value_int", odd), ("value_ints", [odd, odd + 1, -2**63]), ("value_int", 2**63 - 1 - 2**40)):
        yield Case(f"Constant-{name}-{np.max(value)}", "Add", ["x"], {"x": x}, oracle=[x + np.array(value)],
                   nodes=[helper.make_node("Constant", [], ["c"], **{name: value}), add], **same)
    fill = helper.make_node("ConstantOfShape", ["s"], ["c"], value=helper.make_tensor("v", TensorProto.INT64, [1], [odd]))
    yield Case("ConstantOfShape-odd", "Add", ["x"], {"x": x}, {"s": np.array([3])}, oracle=[x + odd], nodes=[fill, add], **same)
    ends = {"a": np.array(odd), "b": np.array(odd + 6), "d": np.array(2)}
    yield Case("Range-odd", "Add", ["x"], {"x": x}, ends, oracle=[x + odd + np.array([0, 2, 4])],
               nodes=[helper.make_node("Range", ["a", "b", "d"], ["c"]), add], refused="E0404", **same)
    yield Case("Pad-odd", "Pad", ["x", "p", "v"], {"x": x}, {"p": np.array([1, 0]), "v": np.array(odd)}, oracle=[np.array([odd, *x])], **same)
    yield Case("Gather-axis-odd", "Gather", ["x", "i"], {"x": x}, {"i": np.array([1])}, axis=odd, refused="E0311", oracle=[x], **same)


def norms():
    """The runtime's layer norm loses the variance of short rows far from zero, and all of long rows of halves."""
    for kind, count, tolerance in ((np.float16, 255, 2e-3), (np.float16, 256, 2e-3), (BF16, 384, 2e-2)):
        x = RNG.standard_normal((3, count)).astype(kind)
        wide = x.astype(np.float64)
        right = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
        yield Case(f"LayerNormalization-{np.dtype(kind)}-{count}", "LayerNormalization", ["x", "s", "b"], {"x": x},
                   {"s": np.ones(count, kind), "b": np.zeros(count, kind)}, epsilon=1e-5, out_type=kind, oracle=[right.astype(kind)],
                   rtol=0, atol=tolerance * 2)
    for count in (6, 128, 384):
        x = (0.5 + 0.002 * RNG.standard_normal((5, count))).astype(np.float32)
        wide = x.astype(np.float64)
        right = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
        yield Case(f"LayerNormalization-far-{count}", "LayerNormalization", ["x", "s"], {"x": x}, {"s": np.ones(count, np.float32)},
                   epsilon=1e-5, oracle=[right.astype(np.float32)], rtol=0, atol=1e-4)
    x = np.stack([np.zeros(64), np.arange(64) % 5]).astype(np.float16)
    right = (x - x.mean(1, keepdims=True, dtype=np.float64)) / np.sqrt(x.var(1, keepdims=True, dtype=np.float64) + 1e-12)
    yield Case("LayerNormalization-float16-equal", "LayerNormalization", ["x", "s", "b"], {"x": x},
               {"s": np.ones(64, np.float16), "b": np.zeros(64, np.float16)}, epsilon=1e-12, out_type=np.float16,
               oracle=[right.astype(np.float16)], rtol=0, atol=4e-3)


def cases():
    yield from large_integers()
    yield from doubles()
    yield from halves()
    yield from numbers_near_the_end()
    yield from norms()
