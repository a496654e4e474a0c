"""Small quantized models of quantized.py that are written by hand: forms and numbers at the edge."""

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

from quantized_draw import F32
from quantized_lines import first_row, lines, real_products
from quantized_text import F16, I8, I32, ODD, RNG, U8, codes, model, node, normal, pair, q
from quantized_weights import channel_zeros, half_weights, narrow_blocks, nibble_blocks, nibble_channels, normalized_weights, tables, widened_weights

PRODUCTS = "all but products"
# 16 bits: what quantizes and dequantizes on floats. Rounding and limits are two nodes, none of them Clamp.
SPELT_OUT = {"Div", "Add", "Subtract", "Multiply"}


def edges():
    """(name, model, feeds, steps, floats as in quantized.Case, dims)"""
    for make in (parameters, sharing, axes, run_time, forms, types, open_dims, bodies, on_codes, blocks, signed_blocks, byte_blocks, halves, added_dims, uint16_moves, constants_at_run_time, large_weights, dead_channels, kept_codes, depthwise_phases, narrow_blocks, tables, channel_zeros, half_weights, nibble_channels, nibble_blocks, lines, first_row, normalized_weights, moved_codes, real_products, widened_weights):
        yield from make()


def parameters():
    x, w, image = normal(4, 32), codes(I8, 16, 32), normal(1, 4, 6, 6)
    for dtype, zeros in ((I8, (-128, 127)), (U8, (0, 255))):
        for zero in zeros:
            numbers = {**q("x", 0.02, zero, dtype), **q("y", 0.05, zero, dtype), **q("w", 0.01), "wq": w}
            text = pair("x") + "wr = DequantizeLinear(wq, ws, wz)\ny = Gemm(xr, wr) transB=1\n" + pair("y")
            name = f"zero{zero}-{np.dtype(dtype).name}"
            yield f"{name}-Gemm", model(text, {"x": x}, numbers, {"yr": F32}), {"x": x}, [0.05], set()
            both = {**q("x", 0.02, zero, dtype), **q("z", 0.03, zeros[0] + zeros[1] - zero, dtype), **q("y", 0.04, zero, dtype)}
            feeds = {"x": normal(4, 32), "z": normal(4, 32)}
            for op in ("Add", "Sub", "Mul"):
                text = pair("x") + pair("z") + f"y = {op}(xr, zr)\n" + pair("y")
                yield f"{name}-{op}", model(text, feeds, both, {"yr": F32}), feeds, [0.04], set()
            pads = {"wq": codes(I8, 3, 4, 3, 3), **q("w", 0.01), **q("x", 0.02, zero, dtype), **q("y", 0.05, 3, dtype)}
            text = pair("x") + "wr = DequantizeLinear(wq, ws, wz)\ny = Conv(xr, wr) pads=1,1,1,1\n" + pair("y")
            yield f"{name}-Conv", model(text, {"x": image}, pads, {"yr": F32}), {"x": image}, [0.05], set()
    for power in (-12, -10, -8, -4, 4, 7, 8, 10, 12):
        ratio = 2.0 ** power
        a, b = normal(3, 40), normal(3, 40, spread=ratio)
        numbers = {**q("x", 0.02, 5), **q("z", 0.02 * ratio, -7), **q("y", 0.02 * max(1, ratio), 1)}
        for op, floats in (("Add", None), ("Mul", None), ("Concat", None)):
            step = numbers["ys"] if op != "Mul" else F32(0.04 * ratio)
            text = pair("x") + pair("z") + f"y = {op}(xr, zr)" + (" axis=0\n" if op == "Concat" else "\n") + pair("y")
            yield f"ratio{power}-{op}", model(text, {"x": a, "z": b}, {**numbers, "ys": step}, {"yr": F32}), {"x": a, "z": b}, [step], floats
        text = pair("x") + "y = Identity(xr)\n" + pair("y", "z")
        yield f"ratio{power}-codes", model(text, {"x": a}, numbers, {"yr": F32}), {"x": a}, [numbers["zs"]], None
        wide = {**q("x", 0.02, 5, odd=False), **q("w", 0.01, odd=False), **q("y", 2e-4 / ratio, 0, odd=False), "wq": w}
        text = pair("x") + "wr = DequantizeLinear(wq, ws, wz)\ny = Gemm(xr, wr) transB=1\n" + pair("y")
        yield f"ratio{power}-Gemm", model(text, {"x": x}, wide, {"yr": F32}), {"x": x}, [wide["ys"]], None
    a, middle = normal(3, 40), {"xs": F32(2 / 255), "xz": I8(0), "ys": F32(2 / 255), "yz": I8(-128), "cq": I8(127), "cs": F32(1 / 255), "cz": I8(-128)}
    for op in ("Add", "Sub"):  # every sum lies between two codes
        text = pair("x") + f"cr = DequantizeLinear(cq, cs, cz)\ny = {op}(xr, cr)\n" + pair("y")
        yield f"halves-{op}", model(text, {"x": a}, {**middle, "yz": I8(-128 if op == "Add" else 127)}, {"yr": F32}), {"x": a}, [2 / 255], None
    for scale in (1e-36, 1e-30, 1e30, 1e-40):
        x = normal(4, 32, spread=scale)
        text = pair("x")
        if scale > 1e-39:  # nothing is quantized by subnormal numbers
            yield f"scale{scale}", model(text, {"x": x}, q("x", scale, 3), {"xr": F32}), {"x": x}, [scale], None
        text = "wr = DequantizeLinear(wq, ws, wz)\ny = Gemm(x, wr) transB=1"
        x = normal(4, 32)
        if scale < 1e30:
            yield f"scale{scale}-weights", model(text, {"x": x}, {"wq": w, **q("w", scale)}, {"y": F32}), {"x": x}, [None], None
    dead = np.array([0.01] * 15 + [0.0], F32)
    text = pair("x") + "wr = DequantizeLinear(wq, ws, wz) axis=0\ny = Gemm(xr, wr) transB=1\n" + pair("y")
    yield ("dead-channel", model(text, {"x": x}, {"wq": w, "ws": dead, "wz": np.zeros(16, I8), **q("x", 0.02), **q("y", 0.05)}, {"yr": F32}), {"x": x}, [0.05],
           None)
    text = pair("x") + "y = Clip(xr, lo, hi)\n" + pair("y")
    for lo, hi in ((-0.5, 0.75), (0.1, 0.2), (-9, 9), (0, 0), (3, 3.5)):
        for out in (0.02, 0.013):
            numbers = {**q("x", 0.02, 5, odd=False), **q("y", out, -3, odd=False), "lo": F32(lo), "hi": F32(hi)}
            yield f"clip{lo}..{hi}-{out}", model(text, {"x": x}, numbers, {"yr": F32}), {"x": x}, [out], set() if lo < hi else None


def sharing():
    x, w = normal(1, 8, 6, 6), codes(I8, 8, 8, 3, 3)
    weight = "wr = DequantizeLinear(wq, ws, wz)\n"
    numbers = {**q("x", 0.03, 4), **q("w", 0.01), **q("y", 0.05, -9), **q("z", 0.04, 11), "wq": w}
    text = pair("x") + weight + "y = Conv(xr, wr) pads=1,1,1,1\n" + pair("y") + "z = Conv(yr, wr) pads=1,1,1,1\n" + pair("z")
    yield "weight-of-two", model(text, {"x": x}, numbers, {"zr": F32}), {"x": x}, [0.04], set()
    yield "weight-and-output", model(text, {"x": x}, numbers, {"zr": F32, "wr": F32}), {"x": x}, [0.04, 0.01], None
    yield "between-and-output", model(text, {"x": x}, numbers, {"zr": F32, "yr": F32, "yq": I8}), {"x": x}, [0.04, 0.05, 1.0], set()
    yield "real-and-codes", model(text, {"x": x}, numbers, {"zr": F32, "y": F32}), {"x": x}, [0.04, None], None
    again = text + "xt = DequantizeLinear(xq, xs, xz)\no = Add(xt, zr)\n" + pair("o")
    yield "residual", model(again, {"x": x}, {**numbers, **q("o", 0.06)}, {"or": F32}), {"x": x}, [0.06], set()
    other = text + "xt = DequantizeLinear(xq, ys, yz)\no = Add(xt, zr)\n" + pair("o")
    yield "codes-read-otherwise", model(other, {"x": x}, {**numbers, **q("o", 0.06)}, {"or": F32}), {"x": x}, [0.06], None
    square = pair("x") + "y = Mul(xr, xr)\n" + pair("y")
    yield "squared", model(square, {"x": x}, numbers, {"yr": F32}), {"x": x}, [0.05], set()
    same = pair("x") + "cr = DequantizeLinear(cq, cs, cz)\ny = Mul(xr, cr)\n" + pair("y") + "z = Add(yr, cr)\n" + pair("z")
    constants = {**numbers, **q("c", 0.02, 30), "cq": codes(I8, 8, 6, 6)}
    yield "constant-of-two", model(same, {"x": x}, constants, {"zr": F32}), {"x": x}, [0.04], set()
    made = "wq = QuantizeLinear(w, ws, wz)\n" + text
    yield "quantized-constant", model(made, {"x": x}, {**{k: v for k, v in numbers.items() if k != "wq"}, "w": normal(8, 8, 3, 3)}, {"zr": F32}), {"x": x}, [0.04], set()
    twice = pair("x") + "xrq = QuantizeLinear(xr, xs, xz)\nxrr = DequantizeLinear(xrq, xs, xz)\n" + "y = Relu(xrr)\n" + pair("y")
    yield "twice", model(twice, {"x": x}, numbers, {"yr": F32}), {"x": x}, [0.05], set()
    yield "only-quantize", model("xq = QuantizeLinear(x, xs, xz)", {"x": x}, numbers, {"xq": I8}), {"x": x}, [1.0], set()
    yield "only-dequantize", model("xr = DequantizeLinear(x, xs, xz)", {"x": codes(I8, 3, 4)}, numbers, {"xr": F32}), {"x": codes(I8, 3, 4)}, [0.03], set()


def axes():
    x, w, image, filters = normal(4, 32), codes(I8, 32, 16), normal(1, 8, 6, 6), codes(I8, 8, 8, 3, 3)

    def scales(n):
        return np.abs(normal(n)) * F32(0.01) + F32(0.002)

    for axis, n in ((0, 32), (1, 16), (-1, 16)):
        text = pair("x") + f"wr = DequantizeLinear(wq, ws, wz) axis={axis}\ny = MatMul(xr, wr)\n" + pair("y")
        numbers = {**q("x", 0.02, 3), **q("y", 0.05), "wq": w, "ws": scales(n), "wz": np.zeros(n, I8)}
        yield f"axis{axis}-MatMul", model(text, {"x": x}, numbers, {"yr": F32}), {"x": x}, [0.05], None if axis == 0 else set()
    for axis in (0, 1, 2):
        n = filters.shape[axis]
        text = pair("x") + f"wr = DequantizeLinear(wq, ws, wz) axis={axis}\ny = Conv(xr, wr)\n" + pair("y")
        numbers = {**q("x", 0.02, 3), **q("y", 0.09), "wq": filters, "ws": scales(n), "wz": np.zeros(n, I8)}
        yield f"axis{axis}-Conv", model(text, {"x": image}, numbers, {"yr": F32}), {"x": image}, [0.09], None if axis else set()
        text = text.replace("Conv(", "ConvTranspose(")
        yield f"axis{axis}-ConvTranspose", model(text, {"x": image}, numbers, {"yr": F32}), {"x": image}, [0.09], None if axis != 1 else set()
    zeros = {**q("x", 0.02, 3), **q("y", 0.05), "wq": w, "ws": scales(16), "wz": codes(I8, 16)}
    text = pair("x") + "wr = DequantizeLinear(wq, ws, wz) axis=1\ny = MatMul(xr, wr)\n" + pair("y")
    yield "zeros-of-channels", model(text, {"x": x}, zeros, {"yr": F32}), {"x": x}, [0.05], None
    text = "xq = QuantizeLinear(x, xs, xz) axis=1\ny = DequantizeLinear(xq, xs, xz) axis=1\n"
    numbers = {"xs": scales(8), "xz": codes(U8, 8)}
    yield "activation-of-channels", model(text, {"x": image}, numbers, {"y": F32}), {"x": image}, [None], None


def run_time():
    """Products of what is quantized at run time, with weights of which each column has a zero point."""
    x = normal(1, 5, 32)
    text = "q, s, z = DynamicQuantizeLinear(x)\ni = MatMulInteger(q, wq, z, wz)\nf = Cast(i) to=1\nc = Mul(s, ws)\ny = Mul(f, c)\n"
    for dtype, zeros in ((U8, codes(U8, 16)), (U8, np.arange(120, 136).astype(U8)), (I8, codes(I8, 16))):
        for scales in (F32(0.01), np.abs(normal(16)) * F32(0.01) + F32(0.002)):
            numbers = {"wq": codes(dtype, 32, 16), "ws": scales, "wz": zeros}
            name = f"run-time-{np.dtype(dtype).name}-{zeros[0]}-{scales.size}"
            yield name, model(text, {"x": x}, numbers, {"y": F32}), {"x": x}, [None], {"StaticReshape", "Add", "Multiply"}
    both = ("q, s, z = DynamicQuantizeLinear(x)\nk, t, v = DynamicQuantizeLinear(w)\ni = MatMulInteger(q, k, z, v)\nf = Cast(i) to=1\nc = Mul(s, t)\n"
            "y = Mul(f, c)\n")
    feeds = {"x": normal(2, 5, 32), "w": normal(2, 32, 6)}
    yield "run-time-both", model(both, feeds, {}, {"y": F32}), feeds, [None], {"BatchMatrixMultiply"}


def forms():
    x, w = normal(4, 32), codes(I8, 16, 32)
    text = pair("x") + "wr = DequantizeLinear(wq, ws)\ny = Gemm(xr, wr) transB=1\n" + "yq = QuantizeLinear(y, ys)\nyr = DequantizeLinear(yq, ys)\n"
    numbers = {**q("x", 0.02, 3), **q("w", 0.01), **q("y", 0.05), "wq": w}
    yield "no-zeros", model(text, {"x": x}, numbers, {"yr": F32}), {"x": x}, [0.05], set()
    typed = text.replace("QuantizeLinear(y, ys)", f"QuantizeLinear(y, ys) output_dtype={TensorProto.INT8}")
    yield "output-dtype", model(typed, {"x": x}, numbers, {"yr": F32}), {"x": x}, [0.05], set()
    bias = pair("x") + "wr = DequantizeLinear(wq, ws)\nbr = DequantizeLinear(bq, bs)\ny = Gemm(xr, wr, br) transB=1\n" + pair("y")
    for shape in ((16,), (1, 16), (1,)):
        constants = {**numbers, "bq": RNG.integers(-5000, 5000, shape).astype(I32), "bs": numbers["xs"] * numbers["ws"]}
        yield f"bias{list(shape)}", model(bias, {"x": x}, constants, {"yr": F32}), {"x": x}, [0.05], None if len(shape) > 1 or shape == (1,) else set()
    constants["bq"] = np.full(16, 2 ** 31 - 1, I32)
    yield "bias-saturated", model(bias, {"x": x}, constants, {"yr": F32}), {"x": x}, [0.05], None
    half = "xq = QuantizeLinear(x, xs, xz)\nxr = DequantizeLinear(xq, xs, xz)\ny = Relu(xr)\nyq = QuantizeLinear(y, xs, xz)\nyr = DequantizeLinear(yq, xs, xz)"
    feeds = {"x": x.astype(F16)}
    yield "half-scales", model(half, feeds, {"xs": F16(0.02), "xz": I8(3)}, {"yr": F16}), feeds, [0.02], None
    alpha = pair("x") + "wr = DequantizeLinear(wq, ws)\ny = Gemm(xr, wr) transB=1 alpha=0.5 beta=2.0\n" + pair("y")
    yield "alpha", model(alpha, {"x": x}, numbers, {"yr": F32}), {"x": x}, [0.05], None


def types():
    x = normal(4, 64)
    for kind, low in ((ml_dtypes.int4, -8), (ml_dtypes.uint4, 0)):
        w = RNG.integers(low, low + 16, (64, 16)).astype(kind)
        name, middle = np.dtype(kind).name, kind(0 if low else 8)
        for zero in (middle, kind(3)):
            per = {"wq": w, "ws": np.abs(normal(16)) * F32(0.05) + F32(0.01), "wz": np.full(16, zero, kind)}
            text = "wr = DequantizeLinear(wq, ws, wz) axis=1\n"
            yield f"{name}-channels-{zero}", model(text + "y = MatMul(x, wr)", {"x": x}, per, {"y": F32}), {"x": x}, [None], None
            static = {**per, **q("x", 0.02, 3), **q("y", 0.1)}
            yield f"{name}-static-{zero}", model(pair("x") + text + "y = MatMul(xr, wr)\n" + pair("y"), {"x": x}, static, {"yr": F32}), {"x": x}, [0.1], set()
            for block in (16, 32):
                parts = {"wq": w, "ws": np.abs(normal(64 // block, 16)) * F32(0.05) + F32(0.01), "wz": np.full((64 // block, 16), zero, kind)}
                text = f"wr = DequantizeLinear(wq, ws, wz) axis=0 block_size={block}\ny = MatMul(x, wr)"
                yield f"{name}-blocks{block}-{zero}", model(text, {"x": x}, parts, {"y": F32}), {"x": x}, [None], None
    w = codes(I8, 64, 16)
    text = "wr = DequantizeLinear(wq, ws) axis=0 block_size=16\ny = MatMul(x, wr)"
    yield "int8-blocks", model(text, {"x": x}, {"wq": w, "ws": np.abs(normal(4, 16)) * F32(0.02)}, {"y": F32}), {"x": x}, [None], None
    for dtype, zero in ((np.int16, 0), (np.uint16, 32768), (np.int16, 77)):
        text = pair("x") + "wr = DequantizeLinear(wq, ws, wz)\ny = MatMul(xr, wr)\n" + pair("y")
        numbers = {**q("x", 1e-4, zero, dtype), **q("w", 0.01), **q("y", 1e-3, zero, dtype), "wq": w}
        yield f"{np.dtype(dtype).name}-{zero}", model(text, {"x": x}, numbers, {"yr": F32}), {"x": x}, [1e-3], SPELT_OUT | {"FullyConnected"}
        text = pair("x") + "y = Erf(xr)\n" + pair("y")
        numbers = {**q("x", 1e-4, zero, dtype), **q("y", 4e-5, zero, dtype)}
        # Two erf differ in the last digits of floats: codes of 16 bits next to a tie may be one apart.
        yield f"{np.dtype(dtype).name}-{zero}-Erf", model(text, {"x": x}, numbers, {"yr": F32}), {"x": x}, [1.2e-4], SPELT_OUT | {"GELU", "Gelu"}


def open_dims():
    x, w, image = normal(3, 5, 32), codes(I8, 32, 16), normal(3, 8, 6, 6)
    text = pair("x") + "wr = DequantizeLinear(wq, ws, wz)\ny = MatMul(xr, wr)\n" + pair("y") + "z = Add(yr, yr)\n" + pair("z")
    numbers = {**q("x", 0.02, 3), **q("w", 0.01), **q("y", 0.05, 9), **q("z", 0.08), "wq": w}
    for dims, sizes in (({0: "n"}, {"n": "1..4"}), ({1: "m"}, {"m": "1..8"}), ({0: "n", 1: "m"}, {"n": "1..4", "m": "1..8"})):
        name = "-".join(sizes)
        yield f"open-{name}-MatMul", model(text, {"x": x}, numbers, {"zr": F32}, dims=dims), {"x": x}, [0.08], None if len(dims) > 1 else set(), sizes
    filters = {**q("x", 0.02, 3), **q("w", 0.01), **q("y", 0.05, 9), "wq": codes(I8, 8, 8, 3, 3)}
    conv = pair("x") + "wr = DequantizeLinear(wq, ws, wz)\nv = Conv(xr, wr) pads=1,1,1,1\ny = Relu(v)\n" + pair("y")
    for dims, sizes in (({0: "n"}, {"n": "1..4"}), ({2: "h", 3: "w"}, {"h": "4..9", "w": "4..9"})):
        yield f"open-{'-'.join(sizes)}-Conv", model(conv, {"x": image}, filters, {"yr": F32}, dims=dims), {"x": image}, [0.05], None, sizes
    run = ("q, s, z = DynamicQuantizeLinear(x)\ni = MatMulInteger(q, wq, z)\nf = Cast(i) to=1\nc = Mul(s, ws)\ny = Mul(f, c)\n")
    for dims, sizes in (({0: "n"}, {"n": "1..4"}), ({0: "n", 1: "m"}, {"n": "1..4", "m": "1..8"})):
        yield f"open-{'-'.join(sizes)}-dynamic", model(run, {"x": x}, numbers, {"y": F32}, dims=dims), {"x": x}, [None], None, sizes


def bodies():
    x, w = normal(4, 16), codes(I8, 16, 16)
    numbers = {**q("x", 0.02, 3), **q("w", 0.01), **q("y", 0.05), "wq": w}
    text = pair("x") + "wr = DequantizeLinear(wq, ws, wz)\ny = MatMul(xr, wr)\n" + pair("y")

    def branch(out, *lines):
        return helper.make_graph([node(x) for x in lines], "branch", [], [helper.make_tensor_value_info(out, TensorProto.FLOAT, None)])

    both = {"then_branch": branch("a", "ay = MatMul(yr, wr)", "aq = QuantizeLinear(ay, ys, yz)", "a = DequantizeLinear(aq, ys, yz)"),
            "else_branch": branch("b", "by = Add(yr, xr)", "bq = QuantizeLinear(by, ys, yz)", "b = DequantizeLinear(bq, ys, yz)")}
    for choice in (True, False):
        feeds = {"x": x, "t": np.array(choice)}
        made = model(text, feeds, numbers, {"o": F32}, more=[helper.make_node("If", ["t"], ["o"], **both)])
        yield f"If-{choice}", made, feeds, [0.05], None
    body = helper.make_graph([node("u = Identity(k)"), node("m = MatMul(r, wr)"), node("mq = QuantizeLinear(m, xs, xz)"), node("mr = DequantizeLinear(mq, xs, xz)")],
                             "body", [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("k", TensorProto.BOOL, []),
                                      helper.make_tensor_value_info("r", TensorProto.FLOAT, [4, 16])],
                             [helper.make_tensor_value_info("u", TensorProto.BOOL, []), helper.make_tensor_value_info("mr", TensorProto.FLOAT, [4, 16])])
    made = model(text, {"x": x}, {**numbers, "trips": np.int64(3)}, {"o": F32}, more=[helper.make_node("Loop", ["trips", "", "yr"], ["o"], body=body)])
    yield "Loop", made, {"x": x}, [0.02], None


# Between two codes ONNX Runtime takes the one nearer to 0.
RESIZED = {"StaticResizeBilinear2D", "StaticTranspose", "Add", "Subtract", "Clamp"}


def on_codes():
    image = normal(1, 8, 6, 6)
    begin = "xq = QuantizeLinear(x, xs, xz)\n"
    end = "\nyr = DequantizeLinear(yq, xs, xz)"
    more = {"shape": np.array([1, 4, 12, 6]), "from": np.array([1]), "to": np.array([5]), "which": np.array([2, 0, 5]), "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1])}
    for dtype, zero in ((I8, 3), (U8, 130)):
        numbers = {**q("x", 0.02, zero, dtype), **more, "wq": codes(I8, 8, 8, 3, 3), **q("w", 0.01), **q("z", 0.05, zero, dtype)}
        for op, call in (("MaxPool", "MaxPool(xq) kernel_shape=2,2"), ("Reshape", "Reshape(xq, shape)"), ("Transpose", "Transpose(xq) perm=0,2,3,1"),
                         ("Slice", "Slice(xq, from, to, from)"), ("Concat", "Concat(xq, xq) axis=1"), ("Gather", "Gather(xq, which) axis=1"),
                         ("Pad", "Pad(xq, pads, xz)"), ("Max", "Max(xq, xz)"), ("Where", "Where(t, xq, xz)"), ("Expand", "Expand(xq, shape)")):
            if op == "Expand":
                call, numbers = "Expand(xq, wide)", {**numbers, "wide": np.array([3, 8, 6, 6])}
            if op == "Where":
                numbers = {**numbers, "t": RNG.integers(0, 2, (8, 6, 6)).astype(bool)}
            name = f"codes-{op}-{np.dtype(dtype).name}"
            yield name, model(begin + f"yq = {call}" + end, {"x": image}, numbers, {"yr": F32}), {"x": image}, [0.02], None
        numbers = {**numbers, "twice": np.array([1, 1, 2, 2], F32)}
        for mode, floats in (("nearest", set()), ("linear", RESIZED)):
            name = f"codes-Resize-{mode}-{np.dtype(dtype).name}"
            yield name, model(begin + f"yq = Resize(xq, , twice) mode={mode}" + end, {"x": image}, numbers, {"yr": F32}), {"x": image}, [0.02], floats
        text = begin + "a, b = Split(xq) axis=1\nyq = Concat(b, a) axis=1"
        yield f"codes-Split-{np.dtype(dtype).name}", model(text + end, {"x": image}, numbers, {"yr": F32}, opset=17), {"x": image}, [0.02], set()
    numbers = {**q("x", 0.02, 3), "wq": codes(I8, 8, 8, 3, 3), **q("w", 0.01), **q("y", 0.05, -4)}
    text = begin + "p = MaxPool(xq) kernel_shape=2,2\npr = DequantizeLinear(p, xs, xz)\nwr = DequantizeLinear(wq, ws, wz)\ny = Conv(pr, wr)\n" + pair("y")
    yield "codes-between", model(text, {"x": image}, numbers, {"yr": F32}), {"x": image}, [0.05], set()


def signed_blocks():
    """Blocks of 4 bits as ONNX Runtime quantizes them: half of the scales are below 0, that of a block of zeros is 0. Two products of the
    same rows, one of them limited behind; rows of fewer and of more blocks than are summed at once."""
    for name, kind, columns, size in (("few", ml_dtypes.int4, 96, 32), ("many", ml_dtypes.int4, 576, 32), ("zeros", ml_dtypes.uint4, 512, 64)):
        count, low = columns // size, 0 if kind == ml_dtypes.uint4 else -8
        parts = {}
        for w in "wv":
            scales = normal(count, 4) * F32(0.05)
            scales[0, 3] = 0
            parts |= {f"{w}q": RNG.integers(low, low + 16, (columns, 4)).astype(kind), f"{w}s": scales,
                      f"{w}z": RNG.integers(low, low + 16, (count, 4)).astype(kind) if low == 0 else np.zeros((count, 4), kind)}
        text = "".join(f"{w}r = DequantizeLinear({w}q, {w}s, {w}z) axis=0 block_size={size}\n" for w in "wv")
        text += "a = MatMul(x, wr)\nb = Relu(a)\nc = MatMul(x, vr)\ny = Add(b, c)"
        x = RNG.uniform(-1, 1, (1, 2, columns)).astype(F32)
        for dims, sizes in (({}, {}), ({1: "m"}, {"m": "1..8"}), ({0: "n", 1: "m"}, {"n": "1..4", "m": "1..8"})):
            full = f"int4-blocks32-signed-{name}" + "".join(f"-{d}" for d in sizes)
            yield full, model(text, {"x": x}, parts, {"y": F32}, dims=dims), {"x": x}, [None], None, sizes


def blocks():
    """Few channels on images large enough that blocks of columns are computed at once."""
    def case(name, x, w, dtype=I8, bias=False, attributes="pads=1,1,1,1", kind=I8, weight_zero=0, per_channel=True):
        image, outputs = normal(*x), w[0]
        spread = (RNG.random(outputs) + 0.5).astype(F32) if per_channel else F32(1)
        ws = spread * F32(0.01 * ODD["w"])
        numbers = {**q("x", 0.02, 3 if dtype == I8 else 130, dtype), **q("y", 0.05, -4 if dtype == I8 else 120, dtype), "wq": codes(kind, *w), "ws": ws,
                   "wz": np.full(outputs, weight_zero, kind) if per_channel else kind(weight_zero)}
        axis = " axis=0" if per_channel else ""
        text, operands = pair("x") + f"wr = DequantizeLinear(wq, ws, wz){axis}\n", "xr, wr"
        if bias:
            numbers = {**numbers, "bq": RNG.integers(-3000, 3000, outputs).astype(I32), "bs": ws * numbers["xs"]}
            text, operands = text + f"br = DequantizeLinear(bq, bs){axis}\n", "xr, wr, br"
        text += f"y = Conv({operands}) {attributes}\n" + pair("y")
        return f"blocks-{name}", model(text, {"x": image}, numbers, {"yr": F32}), {"x": image}, [0.05], None if kind == U8 else set()

    yield case("image", (1, 1, 40, 40), (8, 1, 3, 3))
    yield case("bias", (2, 3, 40, 40), (5, 3, 5, 5), bias=True, attributes="pads=2,2,2,2 strides=2,2")
    yield case("one-scale", (1, 1, 40, 44), (32, 1, 9, 9), bias=True, attributes="pads=4,4,4,4", per_channel=False)
    yield case("line", (1, 1, 2000), (16, 1, 80), bias=True, attributes="strides=4,")
    yield case("odd-width", (1, 2, 40, 45), (6, 2, 3, 3), attributes="pads=1,1,1,1 strides=1,2")
    yield case("u8", (1, 1, 40, 40), (8, 1, 5, 5), dtype=U8, bias=True, attributes="pads=2,2,2,2")
    yield case("u8-weights", (1, 1, 40, 40), (8, 1, 5, 5), dtype=U8, kind=U8, weight_zero=128, attributes="pads=2,2,2,2")
    yield case("u8-weights-odd-zero", (1, 1, 40, 40), (8, 1, 5, 5), dtype=U8, kind=U8, weight_zero=117, attributes="pads=2,2,2,2", per_channel=False)
    yield pad()
    yield of_constants()
    yield from volumes()
    yield from trained_quantized()
    yield from pads_of_codes()
    yield from scales_of_channels()
    yield from negative_scales()
    yield from powers_of_two()
    yield from images_at_run_time()


def pad():
    """onnxruntime quantizes the value of a Pad, too."""
    image = normal(1, 3, 12, 12)
    numbers = {**q("x", 0.02, 3), **q("w", 0.01), **q("y", 0.05, -4), "wq": codes(I8, 4, 3, 3, 3), "pads": np.array([0, 0, 0, 0, 0, 0, 1, 1]), "vq": I8(53)}
    text = pair("x") + "v = DequantizeLinear(vq, xs, xz)\nwr = DequantizeLinear(wq, ws, wz)\np = Pad(xr, pads, v)\n" + pair("p", "x") + "y = Conv(pr, wr)\n"
    return "pad-of-quantized-value", model(text + pair("y"), {"x": image}, numbers, {"yr": F32}), {"x": image}, [0.05], set()


def of_constants():
    """A delegate that reads constants only is left to the runtime."""
    weights = codes(I8, 5, 3, 3, 3) // 2  # 7 bits, see tests/lib/onnx_runtime.py
    x, numbers = np.arange(10), {**q("x", 0.02, 3, U8), **q("w", 0.01), **q("y", 0.05, 4, U8), "aq": codes(U8, 1, 3, 4, 4), "wq": weights}
    text = "yq = QLinearConv(aq, xs, xz, wq, ws, wz, ys, yz)\nyr = DequantizeLinear(yq, ys, yz)\nz = Neg(x)"
    return "constants-only", model(text, {"x": x}, numbers, {"yr": F32, "z": np.int64}), {"x": x}, [0.05, None], None


def volumes():
    """Convolutions over three dims become some over two, whose weights are parts of the codes."""
    for name, op, w, attributes in (("Conv", "Conv", (4, 3, 3, 3, 3), "pads=1,1,1,1,1,1"), ("ConvTranspose", "ConvTranspose", (3, 4, 2, 2, 2), "strides=2,2,2")):
        x, axis = normal(1, 3, 4, 6, 6), 0 if op == "Conv" else 1
        numbers = {**q("x", 0.02, 3), **q("y", 0.05, -4), "wq": codes(I8, *w), "ws": (RNG.random(4) + 0.5).astype(F32) * F32(0.01), "wz": np.zeros(4, I8)}
        text = pair("x") + f"wr = DequantizeLinear(wq, ws, wz) axis={axis}\ny = {op}(xr, wr) {attributes}\n" + pair("y")
        yield f"volume-{name}", model(text, {"x": x}, numbers, {"yr": F32}), {"x": x}, [0.05], set()


def trained_quantized():
    """What torch exports after training with quantization: 7 bits by limits of the codes, weights divided by the factor of the norm."""
    x, w = normal(1, 3, 8, 8), codes(I8, 4, 3, 3, 3)
    norm = {"g": (RNG.random(4) + 0.5).astype(F32), "b": normal(4), "m": normal(4), "v": (RNG.random(4) + 0.5).astype(F32)}
    factor = (norm["g"] / np.sqrt(norm["v"] + F32(1e-5))).reshape(1, 4, 1, 1)
    numbers = {**q("x", 0.04, 60, U8), **q("y", 0.05, 20, U8), "wq": w, "ws": (RNG.random(4) + 0.5).astype(F32) * F32(0.01), "wz": np.zeros(4, I8), **norm,
               "f": factor, "c": normal(1, 4, 1, 1), "most": U8(127), "least": U8(0)}
    limited = "{0}q = QuantizeLinear({0}, {0}s, {0}z)\n{0}l = Clip({0}q, least, most)\n{0}r = DequantizeLinear({0}l, {0}s, {0}z)\n"
    text = limited.format("x") + "wr = DequantizeLinear(wq, ws, wz) axis=0\nt = Conv(xr, wr) pads=1,1,1,1\n"
    text += "d = Div(t, f)\ne = Add(d, c)\nn = BatchNormalization(e, g, b, m, v)\ny = Relu(n)\n" + limited.format("y")
    yield "trained-quantized", model(text, {"x": x}, numbers, {"yr": F32}), {"x": x}, [0.05], {"Clamp"}


def pads_of_codes():
    for mode in ("reflect", "edge"):
        for dtype, zero in ((I8, 3), (U8, 130)):
            for shape, pads in (((1, 8, 12), (0, 0, 2, 0, 0, 1)), ((1, 3, 6, 7), (0, 0, 1, 2, 0, 0, 2, 0))):
                x, numbers = normal(*shape), {**q("x", 0.02, zero, dtype), "pads": np.array(pads)}
                text = f"xq = QuantizeLinear(x, xs, xz)\nyq = Pad(xq, pads) mode={mode}\nyr = DequantizeLinear(yq, xs, xz)"
                yield f"codes-Pad-{mode}-{np.dtype(dtype).name}-{len(shape)}", model(text, {"x": x}, numbers, {"yr": F32}), {"x": x}, [0.02], set()


def scales_of_channels():
    """NNCF quantizes what a depthwise convolution reads with a scale a channel."""
    x, n = normal(1, 3, 10, 10), 8
    for name, before, dtype, zeros, limits, floats in (
            ("relu", "t = Relu(c)", U8, np.zeros(n), {}, set()),
            ("limits", "t = Clip(c, lo, hi)", U8, np.zeros(n), {"lo": F32(0), "hi": F32(6)}, set()),
            ("symmetric", "t = Identity(c)", I8, np.zeros(n), {}, set()),
            ("zeros", "t = Identity(c)", U8, RNG.integers(90, 160, n), {}, {"Add", "Conv2d", "DepthwiseConv2d", "Multiply", "Subtract", "StaticTranspose"})):
        channels = (RNG.random(n) * 0.015 + 0.005).astype(F32) * F32(2 if dtype == I8 or len(set(zeros)) > 1 else 1)
        numbers = {**q("x", 0.04, 3), **q("y", 0.05, -4), "aq": codes(I8, n, 3, 3, 3), "as": (RNG.random(n) + 0.5).astype(F32) * F32(0.005), "az": np.zeros(n, I8),
                   "dq": codes(I8, n, 1, 3, 3), "ds": (RNG.random(n) + 0.5).astype(F32) * F32(0.01), "b": normal(n), "ts": channels, "tz": zeros.astype(dtype), **limits}
        text = pair("x") + "ar = DequantizeLinear(aq, as, az) axis=0\nc = Conv(xr, ar, b) pads=1,1,1,1\n" + before
        text += "\ntq = QuantizeLinear(t, ts, tz) axis=1\ntr = DequantizeLinear(tq, ts, tz) axis=1\ndr = DequantizeLinear(dq, ds, az) axis=0\n"
        text += f"y = Conv(tr, dr, b) pads=1,1,1,1 group={n}\n" + pair("y")
        yield f"channels-{name}", model(text, {"x": x}, numbers, {"yr": F32}), {"x": x}, [0.05], floats


def negative_scales():
    """Scales below 0 of weights: codes without -128 get the other sign, the largest code of all makes them floats; and a block for all columns."""
    x, k, n = normal(2, 64), 64, 6
    scales = np.where(np.arange(n) % 2, F32(-0.01), F32(0.02)).astype(F32)
    for name, kind, low, more in (("int8", I8, -127, "axis=1"), ("lowest", I8, -128, "axis=1"), ("int4", ml_dtypes.int4, -8, "axis=1"),
                                  ("int4-one-block", ml_dtypes.int4, -8, "axis=0 block_size=128")):
        w = RNG.integers(low, 8 if kind != I8 else 128, (k, n)).astype(I8)
        w[3] = low
        numbers = {"wq": w.astype(kind), "ws": scales.reshape(1, n) if "block" in more else scales}
        text = f"wr = DequantizeLinear(wq, ws) {more}\ny = MatMul(x, wr)"
        yield f"negative-scales-{name}", model(text, {"x": x}, numbers, {"y": F32}), {"x": x}, [None], {"FullyConnected", "Add"}


def powers_of_two():
    """Scales as Quark's XINT8 has them: a quarter of the sums is rounded to another code where ties go up."""
    x, z = normal(1, 4, 8, 8), normal(1, 4, 8, 8)
    numbers = {**q("x", 2**-6, odd=False), **q("z", 2**-5, odd=False), **q("y", 2**-4, odd=False)}
    for op in ("Add", "Sub"):
        text = pair("x") + pair("z") + f"y = {op}(xr, zr)\n" + pair("y")
        yield f"powers-of-two-{op}", model(text, {"x": x, "z": z}, numbers, {"yr": F32}), {"x": x, "z": z}, [2**-4], {"Add", "Subtract"}


def images_at_run_time():
    """Several images that the model quantizes as a whole, by weights of 8 bits and of 9."""
    plain, strided = "pads=1,1,1,1", "pads=1,1,1,1 strides=2,2"
    for name, w, attributes, image in (("3x3", (8, 4, 3, 3), plain, (11, 9)), ("1x1", (8, 4, 1, 1), "", (11, 9)), ("1x1-strides", (8, 4, 1, 1), "strides=2,2", (11, 9)),
                                       ("strides", (8, 4, 3, 3), strided, (11, 9)), ("uneven", (8, 4, 3, 3), "pads=0,1,2,0 strides=2,1", (11, 9)),
                                       ("dilated", (8, 4, 3, 3), "pads=2,2,2,2 dilations=2,2", (11, 9)), ("apart", (8, 4, 2, 2), "strides=2,2", (10, 9)),
                                       ("far-apart", (8, 4, 2, 2), "strides=3,3", (11, 9)), ("depthwise", (4, 1, 3, 3), plain + " group=4", (11, 9)),
                                       ("row", (8, 4, 1, 7), "pads=0,3,0,3", (11, 9)), ("line", (8, 4, 5), "pads=2,2", (40,)), ("one-pixel", (8, 4, 3, 3), plain, (1, 1))):
        x = normal(3, 4, *image) * (RNG.random((3, *[1] * (len(image) + 1))) * 3 + 0.2).astype(F32)
        for zero in (128, 100):
            numbers = {"wq": codes(U8, *w), "wz": U8(zero), "b": normal(w[0], *[1] * len(image)), "ws": F32(0.01)}
            text = f"xq, xs, xz = DynamicQuantizeLinear(x)\np = ConvInteger(xq, wq, xz, wz) {attributes}\nf = Cast(p) to=1\ns = Mul(xs, ws)\nt = Mul(f, s)\ny = Add(t, b)"
            for sizes in ({}, {"n": "1..4"}):
                yield (f"images-{name}-{zero}{'-n' if sizes else ''}", model(text, {"x": x}, numbers, {"y": F32}, dims={0: "n"} if sizes else {}), {"x": x}, [None],
                       PRODUCTS, *([sizes] if sizes else []))


BYTE_BLOCKS = {"FullyConnected fp32, filter qcint4", "StaticSlice", "StaticReshape", "Add", "Clamp"}


def byte_blocks():
    """Blocks of 8 bits, and of 16 columns: a product of floats and codes for each, and their sum. Scales below 0 and of 0; zero points; a bias;
    limits behind; two products of the same rows; an operand in codes."""
    for name, kind, columns, size in (("few", I8, 96, 32), ("zeros", U8, 192, 16), ("int4", ml_dtypes.int4, 64, 16), ("one", U8, 64, 64)):
        count, low, high = columns // size, *((-8, 8) if kind == ml_dtypes.int4 else (np.iinfo(kind).min, np.iinfo(kind).max + 1))
        parts = {"b": normal(24)}
        for w in "wv":
            scales = normal(count, 24) * F32(0.01)
            scales = np.abs(scales) if kind == ml_dtypes.int4 else scales
            scales[0, 3] = 0
            parts |= {f"{w}q": RNG.integers(low, high, (columns, 24)).astype(kind), f"{w}s": scales,
                      f"{w}z": RNG.integers(low, high, (count, 24)).astype(kind) if kind == U8 else np.zeros((count, 24), kind)}
        weights = "".join(f"{w}r = DequantizeLinear({w}q, {w}s, {w}z) axis=0 block_size={size}\n" for w in "wv")
        text = weights + "a = MatMul(x, wr)\nb1 = Add(a, b)\nc = Relu(b1)\nd = MatMul(x, vr)\ny = Add(c, d)"
        x = RNG.uniform(-1, 1, (1, 2, columns)).astype(F32)
        for dims, sizes in (({}, {}), ({1: "m"}, {"m": "1..8"}), ({0: "n", 1: "m"}, {"n": "1..4", "m": "1..8"})):
            yield f"byte-blocks-{name}" + "".join(f"-{d}" for d in sizes), model(text, {"x": x}, parts, {"y": F32}, dims=dims), {"x": x}, [None], BYTE_BLOCKS if kind == ml_dtypes.int4 else None, sizes
        text = pair("x") + weights.splitlines()[0] + "\ny = MatMul(xr, wr)\n" + pair("y")
        yield f"byte-blocks-static-{name}", model(text, {"x": x}, {**parts, **q("x", 0.008, 3), **q("y", 0.05)}, {"yr": F32}), {"x": x}, [0.05], None


def halves():
    """Networks of float16: scales of float16, or of float32 between casts, as a conversion to float16 leaves quantize and dequantize."""
    image, filters, bias = normal(1, 8, 6, 6).astype(F16), codes(I8, 8, 8, 3, 3), normal(8).astype(F16)
    numbers = {**q("x", 0.02, 3), **q("w", 0.01), **q("y", 0.05, 9), **q("z", 0.06), "wq": filters, "b": bias}
    body = "v = Conv(xr, wr, b) pads=1,1,1,1\nr = Relu(v)\ny = MaxPool(r) kernel_shape=3,3 pads=1,1,1,1\n"
    text = pair("x") + "wr = DequantizeLinear(wq, ws, wz)\n" + body + pair("y") + "z = Add(yr, xr)\n" + pair("z")
    narrow = {k: F16(v) if k.endswith("s") else v for k, v in numbers.items()}
    yield "half-network", model(text, {"x": image}, narrow, {"zr": F16}), {"x": image}, [float(narrow["zs"])], set()
    cast = {"xr": "xh", "wr": "wh", "yr": "yh"}
    text = ("xf = Cast(x) to=1\n" + pair("xf", "x").replace("xfq", "xq").replace("xfr", "xr") + "wr = DequantizeLinear(wq, ws, wz)\n"
            + "".join(f"{h} = Cast({r}) to=10\n" for r, h in list(cast.items())[:2]) + body.replace("xr", "xh").replace("wr", "wh")
            + "yf = Cast(y) to=1\n" + pair("yf", "y").replace("yfq", "yq").replace("yfr", "yr") + "yh = Cast(yr) to=10\nz = Add(yh, xh)\n"
            + "zf = Cast(z) to=1\n" + pair("zf", "z"))
    yield "half-casts", model(text, {"x": image}, numbers, {"zfr": F32}), {"x": image}, [float(numbers["zs"])], set()
    # Sums of products of codes, which float16 cannot hold.
    lines = ["q0, s0, z0 = DynamicQuantizeLinear(x)"]
    for i in (1, 2):
        lines += [f"i{i} = MatMulInteger(q{i - 1}, w, z{i - 1})", f"h{i} = Cast(i{i}) to=10", f"sh{i} = Cast(s{i - 1}) to=10", f"c{i} = Mul(sh{i}, ws)",
                  f"y{i} = Mul(h{i}, c{i})", f"a{i} = Add(y{i}, b)", f"r{i} = Relu(a{i})", f"f{i} = Cast(r{i}) to=1", f"q{i}, s{i}, z{i} = DynamicQuantizeLinear(f{i})"]
    wide = {"w": codes(I8, 64, 64) // I8(4) + I8(25), "ws": F16(0.001), "b": normal(64).astype(F16)}
    x = np.abs(normal(4, 64))
    yield "half-sums", model("\n".join(lines[:-1]), {"x": x}, wide, {"f2": F32}), {"x": x}, [None], None

    # A mask of the lowest float, whose scale is rounded up: infinite, and 0 times that is NaN.
    text = "c = DequantizeLinear(m, ms, mz)\nn = Mul(x, c)\n" + pair("n")
    for dtype in (I8, U8, np.int16, np.uint16):
        top = np.iinfo(dtype).max
        scale = np.nextafter(np.finfo(F32).max / F32(top - np.iinfo(dtype).min), F32(np.inf), dtype=F32)
        mask = {"m": np.array([np.iinfo(dtype).min], dtype), "ms": scale, "mz": dtype(top), **q("n", 1.0, 0, dtype, odd=False)}
        x = np.array([[0, 1, 0, 2]], F32)
        yield f"mask-{np.dtype(dtype).name}", model(text, {"x": x}, mask, {"nr": F32}), {"x": x}, [1.0], None


def added_dims():
    """What adds a dim of 1 to codes, behind a function and in front of one: a view of two dims that vary, and a constant of more dims."""
    x = normal(2, 7, 32)
    numbers = {**q("x", 0.03, 3), **q("s", 0.01, -3, odd=False), **q("u", 0.01, -3, odd=False), **q("w", 0.01), **q("y", 0.02, 5), "wq": codes(I8, 8, 8), "heads": np.array([0, 0, 4, 8]),
               "one": np.array([1]), "c": np.full((1, 1, 1, 1), 0.3, F32)}
    function = pair("x") + "s = Sigmoid(xr)\n" + pair("s")
    weights = "wr = DequantizeLinear(wq, ws, wz)\n"
    for name, body in (("heads", "v = Reshape(sr, heads)\nu = Transpose(v) perm=0,2,1,3\n" + pair("u") + weights + "y = MatMul(ur, wr)\n"),
                       ("unsqueezed", "u = Unsqueeze(sr, one)\n" + pair("u") + "y = Tanh(ur)\n"), ("sum", "y = Add(sr, c)\n")):
        for dims, sizes in (({}, {}), ({1: "m"}, {"m": "1..8"}), ({0: "n", 1: "m"}, {"n": "1..4", "m": "1..8"})):
            yield (f"added-dims-{name}" + "".join(f"-{d}" for d in sizes), model(function + body + pair("y"), {"x": x}, numbers, {"yr": F32}, dims=dims), {"x": x}, [0.02],
                   None, *([sizes] if sizes else []))

    # Rows that are masked throughout by the lowest float, which is infinite in codes: the softmax is NaN there.
    text = pair("m") + "l = Add(x, mr)\np = Softmax(l)\n" + pair("p") + "y = MatMul(pr, v)\n"
    for dtype in (I8, U8, np.int16):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        scale = np.nextafter(np.finfo(F32).max / F32(high - low), F32(np.inf), dtype=F32)
        rows = {"x": normal(3, 4), "m": np.zeros((3, 4), F32), "v": normal(4, 3)}
        rows["m"][0, 1:] = rows["m"][2] = np.finfo(F32).min
        yield f"masked-rows-{np.dtype(dtype).name}", model(text, {**rows}, {"ms": scale, "mz": dtype(high), **q("p", 1 / (high - low), low, dtype, odd=False)}, {"y": F32}), rows, [None], None


def uint16_moves():
    """What moves codes of uint16, which no kernel takes: a chain, parts that two nodes read, rows of a table."""
    u16 = np.uint16
    x, w = normal(2, 6, 8), normal(8, 4)
    numbers = {**q("x", 2e-4, 30000, u16), "w": w, "split": np.array([0, 0, 4, 2]), "rows": np.array([2, 0]), "zero": np.array([0]), "one": np.array([1]), "four": np.array([4])}
    chain = ("xq = QuantizeLinear(x, xs, xz)\nv = Reshape(xq, split)\nt = Transpose(v) perm=0,2,1,3\nc = Concat(t, t) axis=1\nm = Transpose(c) perm=0,1,3,2\n"
             "l, r = Split(m) axis=1 num_outputs=2\ng = Gather(r, rows) axis=1\nh = Slice(l, zero, four, one)\nyr = DequantizeLinear(g, xs, xz)\nzr = DequantizeLinear(h, xs, xz)\n")
    table = {**q("e", 1e-4, 32000, u16, odd=False), "e": codes(u16, 50, 8), "w": w}
    ids = RNG.integers(0, 50, (2, 6))
    rows = "er = DequantizeLinear(e, es, ez)\ng = Gather(er, i)\ny = MatMul(g, w)\n"
    for dims, sizes in (({}, {}), ({1: "m"}, {"m": "2..8"}), ({0: "n", 1: "m"}, {"n": "1..4", "m": "2..8"})):
        name = "".join(f"-{d}" for d in sizes)
        yield f"uint16-moves{name}", model(chain, {"x": x}, numbers, {"yr": F32, "zr": F32}, dims=dims), {"x": x}, [None, None], None, *([sizes] if sizes else [])
        yield f"uint16-rows{name}", model(rows, {"i": ids}, table, {"y": F32}, dims=dims), {"i": ids}, [None], None, *([sizes] if sizes else [])


def constants_at_run_time():
    """A constant that is quantized at run time: a matrix for each head, and rows that a product with weights makes positions of."""
    positions = normal(6, 8)
    x = RNG.integers(1, 255, (2, 5, 8)).astype(F32) / 64 - 2  # codes: XNNPACK multiplies what was quantized there as floats
    x.flat[:2] = -2, 255 / 64 - 2
    at_run_time = "xq, xs, xz = DynamicQuantizeLinear(x)\n"
    heads = at_run_time + "cq, cs, cz = DynamicQuantizeLinear(c)\nm = MatMulInteger(xq, cq, xz, cz)\nf = Cast(m) to=1\ns = Mul(xs, cs)\ny = Mul(f, s)\n"
    yield "constant-heads", model(heads, {"x": x}, {"c": normal(2, 8, 6)}, {"y": F32}), {"x": x}, [None], None
    rows = ("pq, ps, pz = DynamicQuantizeLinear(p)\nm = MatMulInteger(pq, wq, pz)\nf = Cast(m) to=1\ns = Mul(ps, ws)\nk = Mul(f, s)\n"
            "t = Transpose(k) perm=1,0\ny = MatMul(x, t)\n")
    yield "constant-rows", model(rows, {"x": x}, {"p": positions, "wq": codes(I8, 8, 8) // 2, "ws": F32(0.02)}, {"y": F32}), {"x": x}, [None], None


def large_weights():
    """Weights by channel that fold_constants leaves a transpose of, for their size: as torch writes linear, and products by Einsum."""
    x = normal(2, 3, 256)
    numbers = {**q("x", 0.03, 3), **q("y", 0.05, -4), "wq": codes(I8, 160, 256), "ws": (RNG.random(160).astype(F32) + F32(0.5)) * F32(5e-4)}
    for name, product in (("linear", "wt = Transpose(wr) perm=1,0\ny = MatMul(xr, wt)\n"), ("einsum", "y = Einsum(xr, wr) equation=btk,nk->btn\n")):
        text = pair("x") + "wr = DequantizeLinear(wq, ws) axis=0\n" + product + pair("y")
        yield f"large-weights-{name}", model(text, {"x": x}, numbers, {"yr": F32}), {"x": x}, [0.05], set()


def dead_channels():
    """A channel of the weights and its bias have the scale 0."""
    x, alive = normal(1, 4, 9, 9), np.array([1, 0, 1, 1, 0, 1], F32)
    for name, dtype, zero in (("int8", I8, 0), ("uint8", U8, 130)):
        numbers = {**q("x", 0.03, 3), **q("y", 0.05, -4), "wq": codes(dtype, 6, 4, 3, 3), "ws": (RNG.random(6).astype(F32) + F32(0.5)) * F32(4e-3) * alive, "wz": np.full(6, zero, dtype),
                   "bq": RNG.integers(-500, 500, 6).astype(I32)}
        numbers["bs"] = numbers["xs"] * numbers["ws"]
        text = pair("x") + "wr = DequantizeLinear(wq, ws, wz) axis=0\nbr = DequantizeLinear(bq, bs) axis=0\ny = Conv(xr, wr, br) pads=1,1,1,1\n" + pair("y")
        yield f"dead-channels-{name}", model(text, {"x": x}, numbers, {"yr": F32}), {"x": x}, [0.05], set()


def kept_codes():
    """What changes no number that is not a number of another code, before a convolution whose operand is not quantized again."""
    rng = np.random.default_rng(29)
    x = rng.standard_normal((2, 8, 6, 6)).astype(F32)
    weights = {f"{k}{i}": v for i in "ab" for k, v in (("q", rng.integers(-128, 128, (8, 8, 3, 3)).astype(I8)), ("s", F32(0.00991)), ("z", I8(0)))}
    step = float(F32(0.031113))
    numbers = {**weights, "xs": F32(step), "ys": F32(0.071351), "low": F32(-20) * F32(step), "high": F32(30) * F32(step), "between": F32(0.95), "empty": np.empty(0, F32), "sizes": np.array([1, 1, 2, 3], F32)}
    first = "xq = QuantizeLinear(x, xs, xz)\nxr = DequantizeLinear(xq, xs, xz)\nwa = DequantizeLinear(qa, sa, za)\na = Conv(xr, wa) pads=1,1,1,1\naq = QuantizeLinear(a, xs, xz)\nar = DequantizeLinear(aq, xs, xz)\n"
    last = "wb = DequantizeLinear(qb, sb, zb)\ny = Conv(k, wb) pads=1,1,1,1\nyq = QuantizeLinear(y, ys, xz)\nyr = DequantizeLinear(yq, ys, xz)\n"
    resized = "k = Resize({}, , sizes) mode=nearest coordinate_transformation_mode=asymmetric nearest_mode=floor\n"
    bodies = (("relu", "k = Relu(ar)\n", set()), ("clip", "k = Clip(ar, low, high)\n", set()), ("clip-above", "k = Clip(ar, , high)\n", set()),
              ("clip-between", "k = Clip(ar, low, between)\n", None), ("resize", resized.format("ar"), set()), ("relu-resize", "p = Relu(ar)\n" + resized.format("p"), set()),
              ("relu-twice", "k = Relu(ar)\nt = Tanh(k)\n", {"Tanh"}))
    for dtype in (I8, U8):
        middle = 3 + (0 if dtype == I8 else 128)
        for name, body, floats in bodies:
            outputs = {"yr": F32, **({"t": F32} if "Tanh" in body else {})}
            yield f"kept-{name}-{np.dtype(dtype).name}", model(first + body + last, {"x": x}, {**numbers, "xz": dtype(middle)}, outputs), {"x": x}, [0.071351, None][:len(outputs)], floats
        for zero in (np.iinfo(dtype).min, np.iinfo(dtype).max):
            yield f"kept-relu{zero}-{np.dtype(dtype).name}", model(first + bodies[0][1] + last, {"x": x}, {**numbers, "xz": dtype(zero)}, {"yr": F32}), {"x": x}, [0.071351], None


def depthwise_phases():
    """Depthwise transposed convolutions, whose phases are ordinary ones: with one scale on codes, with one a channel on floats."""
    rng = np.random.default_rng(30)
    x, bias = rng.standard_normal((2, 8, 5, 6)).astype(F32), rng.integers(-500, 501, 8).astype(I32)
    scales = (rng.uniform(0.5, 1.5, 8) * 0.00991).astype(F32)
    text = pair("x") + "wr = DequantizeLinear(wq, ws, wz) {}\nbr = DequantizeLinear(bq, bs, bz) {}\ny = ConvTranspose(xr, wr, br) group=8 {}\n" + pair("y")
    for kernel, attributes in ((2, "strides=2,2"), (4, "strides=2,2 pads=1,1,1,1"), (3, "strides=2,2 pads=1,1,1,1 output_padding=1,1")):
        wq = rng.integers(-128, 128, (8, 1, kernel, kernel)).astype(I8)
        for channels, weights, axis in ((False, (F32(0.00991), I8(0)), ""), (True, (scales, np.zeros(8, I8)), "axis=0")):
            numbers = {"xs": F32(0.031113), "xz": I8(3), "ys": F32(0.0213), "yz": I8(-5), "wq": wq, "ws": weights[0], "wz": weights[1], "bq": bias,
                       "bs": F32(0.031113) * weights[0], "bz": np.zeros_like(weights[0], I32)}
            yield (f"depthwise-phases-{kernel}{'-channels' if channels else ''}", model(text.format(axis, axis, attributes), {"x": x}, numbers, {"yr": F32}), {"x": x}, [0.0213],
                   {"DepthwiseConv2d", "Concatenate2", "StaticReshape", "StaticTranspose"} if channels else set())


def moved_codes():
    """Moves that ONNX Runtime's optimizer leaves between quantize and dequantize alone; of codes of 16 bits no kernel of XNNPACK takes one."""
    x = np.random.default_rng(41).standard_normal((1, 8, 4, 6)).astype(F32)
    more = {"which": np.array([2, 0, 5]), "times": np.array([1, 1, 2, 1]), "flat": np.array([1, -1]), "plane": np.array([2, 3])}
    moves = {"shuffle": "DepthToSpace(xq) blocksize=2", "tile": "Tile(xq, times)", "largest": "ReduceMax(xq, plane)", "channels": "Gather(xq, which) axis=1",
             "view": "Reshape(xq, flat)", "permute": "Transpose(xq) perm=0,2,3,1"}
    for dtype in (I8, U8, np.int16, np.uint16):
        wide = np.dtype(dtype).itemsize == 2
        step, zero = 0.0002 if wide else 0.03, {"i": 0, "u": 2 ** (8 * np.dtype(dtype).itemsize - 1)}[np.dtype(dtype).kind]
        for name in moves if not wide else ("channels", "view", "permute"):
            text = f"xq = QuantizeLinear(x, xs, xz)\nyq = {moves[name]}\nyr = DequantizeLinear(yq, xs, xz)\nz = Sigmoid(yr)"
            numbers = {**more, "xs": F32(step), "xz": dtype(zero)}
            yield f"moved-{name}-{np.dtype(dtype).name}", model(text, {"x": x}, numbers, {"yr": F32, "z": F32}, opset=21), {"x": x}, [step, None], None
