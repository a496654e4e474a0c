#!/usr/bin/env python3
"""What the XNNPACK backend takes, operator by operator, on the real runtime against ONNX Runtime.

    tests/conformance/xnnpack_ops.py [-k PATTERN,...] [-v]

Each model runs on the delegate alone: a program that needs an operator of the runtime besides fails here, as does a wrong
result. The few cases that name a number of operators are what the backend must leave outside.
"""

import sys

import numpy as np
from onnx import helper

import single_node
from single_node import Case, ints, normal

HALF = {"rtol": 2e-2, "atol": 1e-2}


def node(op, inputs, outputs="y0", **attributes):
    return helper.make_node(op, inputs, [outputs] if isinstance(outputs, str) else outputs, **attributes)


def chain(x, *steps):
    """Nodes one after the other, from x to y0: (op, further inputs, attributes)."""
    made = []
    for i, step in enumerate(steps):
        op, more, attributes = (*step, [], {})[:3] if len(step) == 1 else (*step, {})[:3]
        out = "y0" if i == len(steps) - 1 else f"t{i}"
        made.append(node(op, [x, *more], out, **attributes))
        x = out
    return made


def graph(name, nodes, feeds, constants=(), kernels=0, **more):
    return Case(name, None, None, feeds, constants, nodes=nodes, kernels=kernels, **more)


def single(name, op, inputs, feeds, constants=(), kernels=0, **more):
    return Case(name, op, inputs, feeds, constants, kernels=kernels, **more)


# --- halves ---

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


# --- taps of convolutions ---

def tap_cases():
    def conv(name, x, w, **attributes):
        return single(f"taps-{name}", "Conv", ["x", "w", "b"], {"x": normal(*x)}, {"w": normal(*w), "b": normal(w[0])}, **attributes)

    # Depthwise kernels of more than 25 taps are a sum of several.
    for rows, columns, stride, dilation in ((7, 7, 1, 1), (7, 7, 2, 1), (5, 6, 1, 2), (1, 31, 1, 1), (31, 1, 2, 1), (11, 9, 3, 1)):
        pads = [(rows - 1) // 2 * dilation, (columns - 1) // 2 * dilation] * 2
        yield conv(f"depthwise-{rows}x{columns}-{stride}-{dilation}", (2, 6, 33, 38), (6, 1, rows, columns), group=6, pads=pads,
                   strides=[stride] * 2, dilations=[dilation] * 2)
    yield conv("depthwise-multiplier", (1, 4, 14, 15), (8, 1, 7, 7), group=4, pads=[3, 3, 3, 3])
    yield conv("depthwise-without-padding", (1, 4, 14, 15), (4, 1, 7, 7), group=4)
    yield conv("depthwise-line", (1, 4, 45), (4, 1, 31), group=4, pads=[15, 15])
    # Taps that meet padding only.
    for dilation, stride in ((12, 1), (14, 1), (36, 1), (36, 3), (20, 2)):
        yield conv(f"dilated-{dilation}-{stride}", (1, 5, 14, 20), (7, 5, 3, 3), pads=[dilation] * 4, dilations=[dilation] * 2,
                   strides=[stride] * 2)
    yield conv("dilated-groups", (1, 6, 14, 9), (4, 3, 5, 3), group=2, pads=[28, 36, 28, 36], dilations=[14, 36])
    yield conv("dilated-depthwise", (1, 6, 14, 9), (6, 1, 5, 3), group=6, pads=[28, 36, 28, 36], dilations=[14, 36])
    yield conv("dilated-line", (1, 6, 14), (4, 6, 3), pads=[20, 20], dilations=[20])
    half = np.float16
    yield single("taps-half-dilated", "Conv", ["x", "w", "b"], {"x": normal(1, 4, 14, 9).astype(half)},
                 {"w": normal(6, 4, 3, 3).astype(half), "b": normal(6).astype(half)}, pads=[20] * 4, dilations=[20, 20], **HALF, out_type=half)


FAMILIES = (tap_cases, half_cases,)


def main():
    return single_node.main(__doc__, (case for family in FAMILIES for case in family()), extra=["--backend=xnnpack"])


if __name__ == "__main__":
    sys.exit(main())
