#!/usr/bin/env python3
"""Quantized models on the real runtime and on `etc run`, against ONNX Runtime: QDQ, QOperator, quantized at run time.

    tests/conformance/quantized.py [-k PATTERN,...] [-v] [--extra=--backend=xnnpack:min-ops=1]

Values are drawn from a seed. Codes may differ from ONNX Runtime's by one, and in one of 1,000 elements: where a float of
ONNX Runtime, or ours, lies a rounding beside the middle between two codes. Models that are quantized at run time agree to
1e-5 of the largest element. On XNNPACK a case says what computes on integers: then there are no kernels, one delegate, and
no node on floats besides conversions and those that it names.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

import numpy as np
import onnx

import single_node  # for the path of tests/lib
from quantized_draw import F32, Net, Scheme, dynamic, qdq, static
from quantized_edges import PRODUCTS, edges

import arrays
import cases
import delegates
import etc_command
import witness

I8, U8 = np.int8, np.uint8
MOST_DIFFERENT = 1e-3  # of the codes of an output
RUN_TIME = 1e-5  # of the largest element
PRODUCT_KINDS = {"FullyConnected", "Conv2d", "DepthwiseConv2d", "ConvTranspose2d"}


@dataclass
class Case:
    """floats: None: nothing is said of XNNPACK; else kinds of nodes that stay on floats there, all others do not; or PRODUCTS.
    near: how far codes may be from ONNX Runtime's, and how many of them, where there is a reason."""
    name: str
    model: onnx.ModelProto
    feeds: dict
    steps: list
    floats: set | str | None = None
    dims: dict = field(default_factory=dict)
    near: tuple = (1, MOST_DIFFERENT)
    tolerance: float = RUN_TIME
    conversions: int | None = None  # the most nodes that convert
    kinds: set = field(default_factory=set)  # of nodes that there must be
    data: int = 0  # the fewest bytes of constants of the delegate: filters of groups that are as large as XNNPACK's kernels take them


def wrong_values(case, got, want):
    """None, or how outputs differ."""
    if len(got) != len(want):
        return f"{len(got)} outputs instead of {len(want)}"
    for i, (g, w, step) in enumerate(zip(got, want, case.steps)):
        if g.shape != w.shape or g.dtype != w.dtype:
            return f"output {i}: {g.dtype}{list(g.shape)} instead of {w.dtype}{list(w.shape)}"
        if not g.size:
            continue
        gap = np.abs(g.astype(np.float64) - w.astype(np.float64))
        if not np.isfinite(gap).all():
            return f"output {i}: not finite"
        if step is None:
            if gap.max() > case.tolerance * max(np.abs(w).max(), 1e-3):
                return f"output {i}: off by {gap.max():.3g}, the largest element is {np.abs(w).max():.3g}"
            continue
        codes = np.rint(gap / step)
        farthest, allowed = case.near
        different = int(np.count_nonzero(codes))
        if codes.max() > farthest or different > max(allowed * codes.size, 1 if codes.size >= 64 else 0):
            at = np.unravel_index(int(codes.argmax()), codes.shape)
            return f"output {i}: {different} of {codes.size} codes differ, by up to {codes.max():.0f}; at {list(map(int, at))} {g[at]} instead of {w[at]}"
    return None


def wrong_placement(case, args, program):
    """None, or what of the program is not on XNNPACK's integers."""
    found = delegates.figures(program)
    if found["kernels"] or found["delegates"] != 1:
        return f"{found['kernels']} kernel calls and {found['delegates']} delegate calls, instead of one delegate"
    text = subprocess.run([args.etc, "inspect", program, "--json"], capture_output=True, check=True, timeout=args.timeout).stdout
    shown = json.loads(text)
    data = sum(s["bytes"] for s in shown["segments"] if not s["constants"]) - sum(d["bytes"] for m in shown["methods"] for d in m["delegates"])
    if data < case.data:
        return f"{data} bytes of constants, not {case.data}"
    kinds = [k for m in shown["methods"] for d in m["delegates"] for k in d["kinds"]]
    conversions = sum(k["nodes"] for k in kinds if k["name"] == "Convert")
    if case.conversions is not None and conversions > case.conversions:
        return f"{conversions} conversions, not {case.conversions}"
    missing = case.kinds - {f"{k['name']} {k['types']}" for k in kinds}
    if missing:
        return f"no {', '.join(missing)}"
    products = case.floats == PRODUCTS
    names = [f"{k['name']} {k['types']}" for k in kinds if "fp32" in k["types"].split(" -> ")[0] and k["name"] != "Convert" and
             (k["name"] in PRODUCT_KINDS if products else not {k["name"], f"{k['name']} {k['types']}"} & case.floats)]
    return f"on floats: {', '.join(names)}" if names else None


class Reference:
    """What ONNX Runtime gives: as it optimizes the model, and node by node, where it rounds otherwise itself, takes a bias
    for one in steps of the product that is not, or fails."""

    def __init__(self, path, feeds):
        self.results, self.failure = [], None
        for level in ("ORT_ENABLE_ALL", "ORT_DISABLE_ALL"):
            try:
                self.results.append(cases.ort_session(path, level).run(None, feeds))
            except Exception as e:
                self.failure = f"ONNX Runtime: {' '.join(str(e).split())[:300]}"

    def disagreement(self, case, got):
        found = [wrong_values(case, got, want) for want in self.results]
        return None if None in found else found[-1]


def check(case, args, server, work):
    """None, or what is wrong."""
    source, target, bundle = (os.path.join(work, x) for x in ("model.onnx", "model.pte", "data.pkl"))
    onnx.save(case.model, source)
    stage, code, message, _ = etc_command.lower(args.etc, source, target, case.dims, args.extra, args.timeout)
    if stage != "ok":
        return f"{stage}: {code} {message}"
    reference = Reference(source, case.feeds)
    if not reference.results:
        return reference.failure
    want = reference.results[0]
    arrays.save_bundle(bundle, list(case.feeds.values()), want)
    answer = server.run({"pte": target, "bundle": bundle, "rtol": 0, "atol": 1e30, "save": work}, args.timeout)
    if answer["stage"] != "ok":
        return f"{answer['stage']}: {answer['message']}"
    got = [arrays.load_npy(os.path.join(work, f"got_{i}.npy"), w.dtype) for i, w in enumerate(want)]
    names = [x.name for x in case.model.graph.output]
    own, wrong = witness.results(args.etc, target, list(case.feeds.items()), list(zip(names, want)), work, args.timeout)
    wrong = wrong or wrong_values(case, own, got)
    wrong = reference.disagreement(case, got) or (f"etc run beside the runtime: {wrong}" if wrong else None)
    if wrong is None and case.floats is not None and any("xnnpack" in x for x in args.extra):
        wrong = wrong_placement(case, args, target)
    return wrong


# --- nets of one or two nodes ---

def conv(net, x, shape, group=1, bias=True, act=None, **attributes):
    w = net.weight(*shape)
    operands = [x, w, net.bias(shape[0])] if bias else [x, w]
    kernel = list(shape[2:])
    if act is None:
        return net.op("Conv", *operands, kernel_shape=kernel, group=group, **attributes)
    y = net.inner("Conv", *operands, kernel_shape=kernel, group=group, **attributes)
    if act == "Clip":
        return net.op("Clip", y, net.constant(F32(0)), net.constant(F32(1.5)))
    return net.op(act, y)


def deconv(net, x, shape, group=1, **attributes):
    w = net.weight(*shape, axis=1)
    return net.op("ConvTranspose", x, w, net.bias(shape[1] * group), group=group, **attributes)


def gemm(net, x, k, n, bias=True, trans=1):
    w = net.weight(n, k) if trans else net.weight(k, n, axis=1)
    return net.op("Gemm", x, w, *([net.bias(n)] if bias else []), transB=trans)


def matmul_bias(net, x, k, n):
    y = net.inner("MatMul", x, net.weight(k, n, axis=1))
    return net.op("Add", y, net.constant(net.rng.standard_normal(n).astype(F32)))


def window_nets():
    image = (1, 8, 9, 10)
    pads = {"pads": [1, 1, 1, 1]}
    yield "Conv", lambda n: conv(n, n.input(*image), (12, 8, 3, 3), **pads)
    yield "Conv-plain", lambda n: conv(n, n.input(*image), (12, 8, 3, 3), bias=False)
    yield "Conv-1x1", lambda n: conv(n, n.input(*image), (12, 8, 1, 1))
    yield "Conv-batch", lambda n: conv(n, n.input(3, *image[1:]), (12, 8, 3, 3), **pads)
    yield "Conv-relu", lambda n: conv(n, n.input(*image), (12, 8, 3, 3), act="Relu", **pads)
    yield "Conv-clip", lambda n: conv(n, n.input(*image), (12, 8, 3, 3), act="Clip", **pads)
    yield "Conv-strides", lambda n: conv(n, n.input(*image), (12, 8, 3, 2), strides=[2, 3], pads=[0, 1, 1, 0])
    yield "Conv-dilations", lambda n: conv(n, n.input(*image), (12, 8, 3, 3), dilations=[2, 3], pads=[2, 2, 2, 2])
    yield "Conv-cut-taps", lambda n: conv(n, n.input(*image), (12, 8, 3, 3), dilations=[9, 10], pads=[9, 10, 9, 10])
    yield "Conv-few-outputs", lambda n: conv(n, n.input(1, 8, 12, 32), (2, 8, 5, 5), pads=[2, 2, 2, 2])
    yield "Conv-depthwise", lambda n: conv(n, n.input(*image), (8, 1, 3, 3), group=8, **pads)
    yield "Conv-depthwise-12", lambda n: conv(n, n.input(1, 12, 9, 10), (12, 1, 3, 3), group=12, **pads)
    yield "Conv-depthwise-13", lambda n: conv(n, n.input(1, 13, 9, 10), (13, 1, 3, 3), group=13, **pads)
    yield "Conv-multiplier", lambda n: conv(n, n.input(*image), (16, 1, 3, 3), group=8, act="Relu", **pads)
    yield "Conv-groups", lambda n: conv(n, n.input(*image), (12, 4, 3, 3), group=2, **pads)
    yield "Conv-line", lambda n: conv(n, n.input(1, 8, 33), (12, 8, 5), pads=[2, 2])
    yield "Conv-line-part", lambda n: conv(n, n.input(4, 1, 136), (4, 1, 32), strides=[16])
    yield "Conv-line-part-pads", lambda n: conv(n, n.input(2, 1, 143), (4, 1, 40), strides=[16], pads=[9, 0])
    yield "Conv-line-depthwise", lambda n: conv(n, n.input(1, 8, 33), (8, 1, 5), group=8, dilations=[2])
    yield "ConvTranspose", lambda n: deconv(n, n.input(1, 8, 5, 6), (8, 6, 3, 3), strides=[2, 2], pads=[1, 1, 0, 0])
    yield "ConvTranspose-groups", lambda n: deconv(n, n.input(1, 8, 5, 6), (8, 3, 2, 2), group=2, strides=[2, 2])


def product_nets():
    yield "Gemm", lambda n: gemm(n, n.input(5, 32), 32, 24)
    yield "Gemm-plain", lambda n: gemm(n, n.input(5, 32), 32, 24, bias=False)
    yield "Gemm-straight", lambda n: gemm(n, n.input(5, 32), 32, 24, trans=0)
    yield "Gemm-relu", lambda n: n.op("Relu", n.inner("Gemm", n.input(5, 32), n.weight(24, 32), n.bias(24), transB=1))
    yield "MatMul", lambda n: n.op("MatMul", n.input(2, 5, 32), n.weight(32, 24, axis=1))
    yield "MatMul-rows", lambda n: n.op("MatMul", n.input(1, 32), n.weight(32, 24, axis=1))
    yield "MatMul-bias", lambda n: matmul_bias(n, n.input(2, 5, 32), 32, 24)


def other_nets():
    yield "MatMul-batch", lambda n: n.op("MatMul", n.input(2, 3, 7, 16), n.input(2, 3, 16, 9))
    for op in ("Add", "Sub", "Mul", "Div"):
        shift = 4.0 if op == "Div" else 0.0
        yield op, lambda n, op=op, shift=shift: n.op(op, n.input(2, 8, 9, 10), n.input(2, 8, 9, 10, spread=0.7, shift=shift))
        yield f"{op}-broadcast", lambda n, op=op, shift=shift: n.op(op, n.input(2, 8, 9, 10), n.input(8, 1, 1, spread=0.7, shift=shift))
    yield "Add-relu", lambda n: n.op("Relu", n.inner("Add", n.input(2, 8, 9, 10), n.input(2, 8, 9, 10)))
    yield "Add-constant", lambda n: n.op("Add", n.input(2, 8, 30), n.weight(8, 30, axis=None))
    yield "Mul-constant", lambda n: n.op("Mul", n.input(2, 8, 30), n.weight(30, axis=None))
    for op, more in (("Sigmoid", {}), ("Tanh", {}), ("HardSwish", {}), ("LeakyRelu", {"alpha": 0.1}), ("Elu", {}), ("Exp", {}), ("Abs", {}), ("Neg", {})):
        yield op, lambda n, op=op, more=more: n.op(op, n.input(2, 8, 30, spread=1.5), **more)
    yield "Gelu", gelu


def gelu(n):
    x = n.input(2, 8, 30, spread=1.5)
    y = n.inner("Erf", n.inner("Div", x, n.constant(F32(np.sqrt(2)))))
    y = n.inner("Mul", x, n.inner("Add", y, n.constant(F32(1))))
    return n.op("Mul", y, n.constant(F32(0.5)))


def ints(*values):
    return np.array(values, np.int64)


def move_nets():
    yield "Reshape", lambda n: n.op("Reshape", n.input(2, 8, 30), n.constant(ints(2, 2, 120)))
    yield "Transpose", lambda n: n.op("Transpose", n.input(2, 8, 3, 5), perm=[0, 2, 3, 1])
    yield "Slice", lambda n: n.op("Slice", n.input(2, 8, 30), n.constant(ints(1, 3)), n.constant(ints(7, 25)), n.constant(ints(1, 2)))
    yield "MaxPool", lambda n: n.op("MaxPool", n.input(1, 8, 9, 10), kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0])
    yield "Concat", lambda n: n.op("Concat", n.input(2, 8, 30), n.input(2, 5, 30, spread=3.0), n.input(2, 3, 30, spread=0.5), axis=1)
    yield "GlobalAveragePool", lambda n: n.op("GlobalAveragePool", n.input(2, 8, 9, 10))
    yield "AveragePool", lambda n: n.op("AveragePool", n.input(1, 8, 9, 10), kernel_shape=[3, 3], strides=[2, 2])
    yield "ReduceMean", lambda n: n.op("ReduceMean", n.input(2, 8, 9, 10), axes=[2, 3], keepdims=1)
    yield "Pad", lambda n: n.op("Pad", n.input(1, 8, 9, 10), n.constant(ints(0, 0, 1, 2, 0, 0, 2, 1)), n.constant(F32(0)))
    yield "Resize-nearest", lambda n: n.op("Resize", n.input(1, 8, 5, 6), "", n.constant(np.array([1, 1, 2, 2], F32)), mode="nearest",
                                           coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    yield "Resize-linear", lambda n: n.op("Resize", n.input(1, 8, 5, 6), "", n.constant(np.array([1, 1, 2, 2], F32)), mode="linear")
    yield "Softmax", lambda n: n.op("Softmax", n.input(2, 8, 30), axis=-1)
    yield "Clip", lambda n: n.op("Clip", n.input(2, 8, 30), n.constant(F32(-0.5)), n.constant(F32(0.7)))
    yield "Relu", lambda n: n.op("Relu", n.input(2, 8, 30))


def residual(n):
    x = n.op("Relu", n.inner("Conv", n.input(1, 8, 9, 10), n.weight(8, 8, 3, 3), n.bias(8), pads=[1, 1, 1, 1]))
    y = conv(n, x, (8, 8, 3, 3), act="Relu", pads=[1, 1, 1, 1])
    y = conv(n, y, (8, 8, 1, 1))
    y = n.op("Relu", n.inner("Add", x, y))
    y = n.op("GlobalAveragePool", y)
    return gemm(n, n.op("Flatten", y), 8, 5)


def mobile(n):
    x = conv(n, n.input(1, 3, 16, 16), (8, 3, 3, 3), act="Clip", strides=[2, 2], pads=[1, 1, 1, 1])
    y = conv(n, x, (8, 1, 3, 3), group=8, act="Clip", pads=[1, 1, 1, 1])
    y = n.op("Add", x, conv(n, y, (8, 8, 1, 1)))
    y = n.op("Concat", y, n.op("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), axis=1)
    y = n.op("HardSwish", conv(n, y, (12, 16, 1, 1)))
    gate = n.op("Sigmoid", conv(n, n.op("GlobalAveragePool", y), (12, 12, 1, 1)))
    return n.op("Mul", y, gate)


def attention(n):
    def heads(x):
        x = n.op("Reshape", x, n.constant(ints(1, 6, 2, 8)))
        return n.op("Transpose", x, perm=[0, 2, 1, 3])

    x = n.input(1, 6, 16)
    q, k, v = (heads(matmul_bias(n, x, 16, 16)) for _ in range(3))
    y = n.op("MatMul", q, n.op("Transpose", k, perm=[0, 1, 3, 2]))
    y = n.op("Softmax", n.op("Mul", y, n.constant(F32(8 ** -0.5))), axis=-1)
    y = n.op("Transpose", n.op("MatMul", y, v), perm=[0, 2, 1, 3])
    y = matmul_bias(n, n.op("Reshape", y, n.constant(ints(1, 6, 16))), 16, 16)
    return n.op("Add", x, y)


def chain(n):
    """Two users of one value, and one of what both give."""
    x = conv(n, n.input(1, 8, 9, 10), (8, 8, 3, 3), pads=[1, 1, 1, 1])
    y, z = (conv(n, x, (8, 8, 1, 1)) for _ in range(2))
    return conv(n, n.op("Add", y, z), (8, 8, 1, 1))


def functions(n):
    """More functions in a row than XNNPACK makes one table of."""
    x = n.input(1, 8, 9, 10)
    for i in range(13):
        x = n.op(("Tanh", "Sigmoid", "LeakyRelu")[i % 3], x)
    return x


NETWORKS = {"residual": residual, "mobile": mobile, "attention": attention}

S8, U8S8, U8U8 = Scheme(), Scheme(act=U8), Scheme(act=U8, weight=U8, channels=False)
SCHEMES = {"s8": S8, "u8s8": U8S8}
WEIGHTS = {"s8": S8, "s8tensor": Scheme(channels=False), "u8s8": U8S8, "u8u8": U8U8,
           "u8u8zero": Scheme(act=U8, weight=U8, channels=False, weight_zero=93), "s8zero": Scheme(channels=False, weight_zero=-9),
           "floatbias": Scheme(float_bias=True), "otherbias": Scheme(bias_factor=1.37)}
FORMS = {"opset10": Scheme(channels=False, opset=10, act=U8), "opset13": Scheme(opset=13), "opset19": Scheme(opset=19, act=U8), "opset21": Scheme(opset=21),
         "vectors": Scheme(vectors=True), "zeros": Scheme(act=U8, weight=U8, channels=False, omit_zeros=True), "io": Scheme(io_codes=True, float_output=False),
         "iou8": Scheme(act=U8, io_codes=True, float_output=False), "narrow": Scheme(narrow=0.4), "narrowu8": Scheme(act=U8, narrow=0.4)}
OUTSIDE = {"Softmax", "AveragePool"}  # kinds of ops without integers there


# Kinds of nodes on floats: XNNPACK's product of two activations has no zero point for the second; of a leaky ReLU between conversions it
# makes a table, which is exact.
FLOATS = {"MatMul-batch": {"BatchMatrixMultiply", "StaticReshape"}, "attention": {"Softmax", "BatchMatrixMultiply"}, "LeakyRelu": {"LeakyReLU"}}
# A bias that is not in steps of the product is rounded to them; XNNPACK resizes before it changes the quantization; behind a softmax of
# floats one code of another rounding goes on.
NEAR = {"LeakyRelu": (0, 0), "Resize-linear": (1, 0.35), "attention": (2, 0.1)}
# ONNX Runtime rounds real numbers to float16 between codes, here a tenth of a step of the codes.
NEAR_HALVES = (1, 0.06)
NEAR_BIAS = (1, 1e-2)
CONVERSIONS = 7  # in, out, and around the sum


def drawn(name, draw, seed=0):
    net = Net(np.random.default_rng([sum(map(ord, name)), seed]))
    net.outputs = [draw(net)]
    return net


def make(name, draw, scheme, floats=None, dims=None, seed=0, **more):
    net = drawn(name, draw, seed)
    model, feeds, steps = qdq(net, scheme, dims)
    return Case(name, model, feeds, steps, floats=floats, **more)


def one(name, kind, draw, scheme, floats):
    near = NEAR.get(name, NEAR_BIAS if kind in ("floatbias", "otherbias") else (1, MOST_DIFFERENT))
    return make(f"{name}-{kind}", draw, scheme, FLOATS.get(name, floats), near=near)


def qdq_cases():
    for name, draw in [*window_nets(), *product_nets()]:
        for kind, scheme in WEIGHTS.items():
            yield one(name, kind, draw, scheme, set())
    for name, draw in [*other_nets(), *move_nets()]:
        for kind, scheme in SCHEMES.items():
            yield one(name, kind, draw, scheme, None if name in OUTSIDE else set())
    for name, draw in NETWORKS.items():
        for kind, scheme in {**WEIGHTS, **FORMS}.items():
            if scheme.opset >= 14 or name != "mobile":  # HardSwish
                yield one(name, kind, draw, scheme, set())


# --- drawn at random ---

def random_step(n, x, channels):
    """One more node or a few on an image with so many channels; its result and channels."""
    pick = n.rng.integers(0, 14)
    act = n.rng.choice(["", "Relu", "Clip"]) or None
    more = int(n.rng.choice([4, 6, 8, 12]))
    if pick < 3:
        return conv(n, x, (more, channels, 3, 3), act=act, bias=bool(pick), pads=[1, 1, 1, 1]), more
    if pick == 3:
        return conv(n, x, (channels, 1, 3, 3), group=channels, act=act, pads=[1, 1, 1, 1]), channels
    if pick == 4:
        return conv(n, x, (more, channels, 1, 1), act=act), more
    if pick == 5:
        return n.op("Add", x, conv(n, x, (channels, channels, 1, 1))), channels
    if pick == 6:
        return n.op("Concat", x, conv(n, x, (more, channels, 1, 1), act=act), axis=1), channels + more
    if pick == 7:
        gate = n.op("Sigmoid", conv(n, n.op("GlobalAveragePool", x), (channels, channels, 1, 1)))
        return n.op("Mul", x, gate), channels
    if pick == 8:
        return n.op("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), channels
    if pick == 9:
        return n.op(str(n.rng.choice(["HardSwish", "Sigmoid", "Tanh", "Elu"])), x), channels
    if pick == 10:
        return n.op("Mul", x, n.op("Sigmoid", x)), channels
    if pick == 11:
        return n.op("Sub", x, conv(n, x, (channels, channels, 3, 3), group=1, pads=[1, 1, 1, 1])), channels
    if pick == 12:
        half = n.op("Slice", x, n.constant(ints(0)), n.constant(ints(channels // 2)), n.constant(ints(1)))
        rest = n.op("Slice", x, n.constant(ints(channels // 2)), n.constant(ints(channels)), n.constant(ints(1)))
        return n.op("Concat", rest, half, axis=1), channels
    return n.op("Transpose", x, perm=[0, 1, 3, 2]), channels


def random_net(n):
    x, channels = n.input(int(n.rng.choice([1, 1, 2])), 4, 6, 6), 4
    outputs = []
    for _ in range(n.rng.integers(3, 9)):
        x, channels = random_step(n, x, channels)
        if n.rng.random() < 0.1:
            outputs.append(x)
    if n.rng.random() < 0.5:
        x = n.op("GlobalAveragePool", x)
        x = gemm(n, n.op("Flatten", x), channels, 7)
    return [x, *(o for o in outputs if o != x)]


def random_scheme(rng):
    act, weight = rng.choice([I8, U8]), rng.choice([I8, I8, U8])
    codes = bool(rng.random() < 0.2)
    return Scheme(act=act, weight=weight, channels=bool(weight == I8 and rng.random() < 0.7), float_bias=bool(rng.random() < 0.1), vectors=bool(rng.random() < 0.2),
                  narrow=float(rng.choice([1.0, 1.0, 0.6])), io_codes=codes, float_output=not codes)


def random_cases(seed, count):
    """Rounding to another code goes on, and is made larger, in the nodes behind it."""
    for i in range(seed, seed + count):
        rng = np.random.default_rng(i)
        net = Net(rng)
        net.outputs = random_net(net)
        scheme = random_scheme(rng)
        model, feeds, steps = qdq(net, scheme)
        yield Case(f"random-{i}", model, feeds, steps, set(), near=(2, 0.1 if scheme.float_bias else 0.03))


# --- as onnxruntime.quantization writes them ---

def written_cases():
    """The three networks and products, static in both forms, and at run time."""
    forms = (("QDQ", I8, I8, True), ("QDQ", U8, I8, True), ("QDQ", U8, U8, False), ("QOperator", I8, I8, True), ("QOperator", U8, I8, False),
             ("QOperator", U8, U8, False))
    for name, draw in [*NETWORKS.items(), *product_nets()]:
        for form, act, weight, channels in forms:
            kind = f"{form}-{np.dtype(act).name}-{np.dtype(weight).name}"
            net = drawn(name, draw)
            model, feeds, steps = static(net, form, act, weight, channels)
            floats = FLOATS.get(name, set()) | ({"Hardswish", "FullyConnected", "StaticReshape"} if name == "mobile" and form == "QOperator" else set())
            yield Case(f"{name}-static-{kind}", model, feeds, steps, floats, near=NEAR.get(name, (1, MOST_DIFFERENT)))
    # Weights of 9 bits make products on u8: what one gives the next ones take as it is.
    yield Case("chain-unsigned", *static(drawn("chain", chain), "QDQ", U8, U8, False), set(), conversions=CONVERSIONS)
    # The slice keeps XNNPACK from making a table of a table, which it frees twice: a fault that does not show in each run.
    yield Case("functions", *static(drawn("functions", functions), "QDQ", I8, I8, True), {"LeakyReLU", "Tanh"}, kinds={"StaticSlice qint8"})
    yield first_argument(5, 1)
    yield first_argument()


FIRST = """<ir_version: 8, opset_import: ["" : 17]>
first (int8SHAPE first, int8[5,6] x) => (int8[5,6] y) <float s = {0.03}, int8 z = {2}> {
  a = DequantizeLinear(first, s, z) b = DequantizeLinear(x, s, z) c = Mul(a, b) d = QuantizeLinear(c, s, z)
  e = DequantizeLinear(d, s, z) f = Sigmoid(e) g = QuantizeLinear(f, s, z) h = DequantizeLinear(g, s, z)
  i = Tanh(h) j = QuantizeLinear(i, s, z) k = DequantizeLinear(j, s, z) l = Mul(k, a) y = QuantizeLinear(l, s, z)
}"""


def first_argument(*shape):
    """XNNPACK takes the first argument of a delegate for a part of the table that is made in front of a product with it."""
    own = np.random.default_rng(4)
    feeds = {"first": np.asarray(own.integers(-128, 128, shape)).astype(I8), "x": own.integers(-128, 128, (5, 6)).astype(I8)}
    model = onnx.parser.parse_model(FIRST.replace("SHAPE", str(list(shape)) if shape else ""))
    return Case(f"first-argument-{len(shape)}", model, feeds, [None], set())


# Bytes of depthwise filters in groups of 8 and 6 channels.
IN_GROUPS = {"Conv-depthwise": 8 * 9 * 8, "Conv-depthwise-12": 12 * 9 * 6}


# Nothing is said of weights of u8: zero points leave 9 bits of some; nor of "mobile", whose mean is a product of floats.
def run_time_cases():
    for name, draw in [*NETWORKS.items(), *product_nets(), *window_nets()]:
        for weight, channels in ((I8, False), (U8, False), (I8, True)):
            if "ConvTranspose" in name:  # not quantized
                continue
            net = drawn(name, draw)
            model, feeds, steps = dynamic(net, weight, channels, {})
            floats = None if weight == U8 or name == "mobile" else PRODUCTS
            data = IN_GROUPS.get(name, 0) if floats else 0
            yield Case(f"{name}-dynamic-{np.dtype(weight).name}{'-channels' if channels else ''}", model, feeds, steps, floats, data=data)


# Of edges with these names, a product beside floats takes weights of that type.
KINDS = ((("channel-zeros", "half-weights-int8", "negative-scales-lowest"), "qcint8"), (("nibbles",), "qcint4"))


def edge_cases():
    for name, model, feeds, steps, floats, *dims in edges():
        # With blocks of 4 bits XNNPACK quantizes the rows of activations, too; it multiplies two that the model quantizes as floats.
        tolerance = 1e-2 if "int4-blocks32" in name or name == "run-time-both" else 2e-3 if name == "half-sums" or name.startswith("half-weights") else RUN_TIME
        near = NEAR_BIAS if name in ("channels-relu", "channels-limits") else NEAR_HALVES if name == "half-network" else (1, MOST_DIFFERENT)
        kinds = {f"FullyConnected fp32, filter {x}" for names, x in KINDS if name.startswith(names)}
        yield Case(name, model, feeds, [None if x is None else float(x) for x in steps], floats, *dims, near=near, tolerance=tolerance, kinds=kinds)


def main():
    p = cases.parser(__doc__)
    p.add_argument("--seed", type=int, default=0, help="of the first of the models that are drawn at random")
    p.add_argument("--random", type=int, default=24, help="how many of them")
    args = p.parse_args()
    return cases.run([*qdq_cases(), *random_cases(args.seed, args.random), *written_cases(), *run_time_cases(), *edge_cases()], check, args)


if __name__ == "__main__":
    sys.exit(main())
