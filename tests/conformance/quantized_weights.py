"""Small models of quantized.py whose weights alone are codes, with zero points and scales of every kind. Each has random numbers of its own."""

import ml_dtypes
import numpy as np
from onnx import helper

from quantized_draw import F32
from quantized_text import F16, I8, U8, model


def narrow_blocks():
    """Blocks of few codes far from the middle of 4 bits, and of scales below 0: codes less their zero points fit, nothing is added in floats."""
    rng = np.random.default_rng(31)
    x = rng.standard_normal((4, 256)).astype(F32)
    for name, kind, low, high, zero in (("low", ml_dtypes.uint4, 0, 4, 2), ("high", ml_dtypes.uint4, 11, 16, 13), ("own", ml_dtypes.uint4, 0, 8, None), ("signed", ml_dtypes.int4, -7, 8, 0)):
        scales = rng.uniform(0.01, 0.03, (8, 24)).astype(F32) * (rng.choice([-1, 1], (8, 24)) if name == "signed" else 1)
        zeros = (rng.integers(0, 9, (8, 24)) if zero is None else np.full((8, 24), zero)).astype(kind)
        parts = {"wq": rng.integers(low, high, (256, 24)).astype(kind), "ws": scales.astype(F32), "wz": zeros}
        yield (f"int4-blocks32-narrow-{name}", model("wr = DequantizeLinear(wq, ws, wz) axis=0 block_size=32\ny = MatMul(x, wr)", {"x": x}, parts, {"y": F32}), {"x": x}, [None], set())
        rows = {k: np.ascontiguousarray(v.T) for k, v in parts.items()}
        yield (f"int4-blocks32-narrow-{name}-rows", model("wr = DequantizeLinear(wq, ws, wz) axis=1 block_size=32\ny = Gemm(x, wr) transB=1", {"x": x}, rows, {"y": F32}), {"x": x}, [None], set())


def tables():
    """Rows of tables of codes: with a zero point a row, with negative scales, with scales for blocks of a row."""
    rng = np.random.default_rng(32)
    ids = rng.integers(0, 40, (2, 5)).astype(np.int64)
    for name, kind, block, signs in (("zeros", U8, 0, 1), ("negative", I8, 0, -1), ("bytes", U8, 16, 1), ("int4", ml_dtypes.int4, 16, 1), ("uint4", ml_dtypes.uint4, 8, 1)):
        low, high = (-8, 8) if kind == ml_dtypes.int4 else (0, 16) if kind == ml_dtypes.uint4 else (np.iinfo(kind).min, np.iinfo(kind).max + 1)
        per = (40, 32 // block) if block else (40,)
        zeros = np.zeros(per, kind) if low < 0 else rng.integers(low, high, per).astype(kind)
        parts = {"tq": rng.integers(low, high, (40, 32)).astype(kind), "ts": (rng.uniform(0.01, 0.03, per) * (rng.choice([-1, 1], per) if signs < 0 else 1)).astype(F32), "tz": zeros}
        if signs < 0:
            parts["tq"][:, 3] = -128
        text = f"t = DequantizeLinear(tq, ts, tz) {f'axis=1 block_size={block}' if block else 'axis=0'}\ny = Gather(t, ids) axis=0"
        yield f"table-{name}", model(text, {"ids": ids}, parts, {"y": F32}), {"ids": ids}, [None], None


def channel_zeros():
    """Weights of 8 bits with a zero point for each channel, beside floats: with a bias and limits behind, the operand of two products, of many rows."""
    rng = np.random.default_rng(33)
    for name, zeros, axis in (("any", (0, 256), 1), ("middle", (110, 140), 1), ("rows", (110, 140), 0)):
        shape, count = ((96, 24), 24) if axis else ((24, 96), 24)
        parts = {"b": rng.standard_normal(24).astype(F32)}
        for w in "wv":
            parts |= {f"{w}q": rng.integers(0, 256, shape).astype(U8), f"{w}s": rng.uniform(0.001, 0.003, count).astype(F32), f"{w}z": rng.integers(*zeros, count).astype(U8)}
        text = "".join(f"{w}r = DequantizeLinear({w}q, {w}s, {w}z) axis={axis}\n" for w in "wv")
        text += "a = MatMul(x, wr)\nb1 = Add(a, b)\nc = Relu(b1)\nd = MatMul(x, vr)\ny = Add(c, d)" if axis else "a = Gemm(x, wr, b) transB=1\nc = Relu(a)\nd = Gemm(x, vr) transB=1\ny = Add(c, d)"
        x = rng.standard_normal((3, 96)).astype(F32)
        for dims, sizes in (({}, {}), ({0: "m"}, {"m": "1..8"})):
            yield (f"channel-zeros-{name}" + "".join(f"-{d}" for d in sizes), model(text, {"x": x}, parts, {"y": F32}, dims=dims), {"x": x}, [None],
                   {"FullyConnected fp32, filter qcint8", "FullyConnected fp32", "Add", "Clamp"}, sizes)


def half_weights():
    """Scales of float16, whose weights are float16, in products of float32 and of float16 between casts: products take the codes."""
    rng = np.random.default_rng(34)
    x = rng.standard_normal((3, 128)).astype(F32)
    for name, kind, block in (("int8", I8, 0), ("int4-blocks32", ml_dtypes.int4, 32)):
        low, high = (-8, 8) if block else (-128, 128)
        shape = (128 // block, 64) if block else (64,)
        parts = {"wq": rng.integers(low, high, (128, 64)).astype(kind), "ws": (rng.uniform(0.5, 1.5, shape) / high / 10).astype(F16)}
        text = f"w = DequantizeLinear(wq, ws) axis={0 if block else 1}{f' block_size={block}' if block else ''}\n"
        yield f"half-weights-{name}", model(text + "wf = Cast(w) to=1\ny = MatMul(x, wf)", {"x": x}, parts, {"y": F32}), {"x": x}, [None], {"FullyConnected fp32, filter qcint8", "Copy"}
        yield f"half-weights-{name}-between", model(text + "xh = Cast(x) to=10\nyh = MatMul(xh, w)\ny = Cast(yh) to=1", {"x": x}, parts, {"y": F32}), {"x": x}, [None], {"FullyConnected fp32, filter qcint8", "Copy"}


def nibble_channels():
    """Weights of 4 bits with a scale a channel, beside floats: two in a byte on XNNPACK, too, in rows of even size."""
    rng = np.random.default_rng(35)
    for name, kind, axis, k in (("columns", ml_dtypes.int4, 1, 48), ("rows", ml_dtypes.int4, 0, 50), ("unsigned", ml_dtypes.uint4, 1, 64), ("bytes", I8, 0, 48)):
        low = 0 if kind == ml_dtypes.uint4 else -8
        shape = (k, 24) if axis else (24, k)
        parts = {"wq": rng.integers(low, low + 16, shape).astype(kind), "ws": rng.uniform(0.01, 0.03, 24).astype(F32), "wz": np.full(24, 0 if low else 8, kind), "b": rng.standard_normal(24).astype(F32)}
        text = f"wr = DequantizeLinear(wq, ws, wz) axis={axis}\na = Gemm(x, wr, b) transB={1 - axis}\ny = Relu(a)"
        x = rng.standard_normal((3, k)).astype(F32)
        yield f"nibbles-{name}", model(text, {"x": x}, parts, {"y": F32}), {"x": x}, [None], {"FullyConnected fp32, filter qcint4", "Clamp"}


def nibble_blocks():
    """MatMulNBits beside floats, with zero points and without, and a block that is larger than the row: two codes in a byte on XNNPACK, too."""
    rng = np.random.default_rng(36)
    for name, k, block, zeros in (("whole", 96, 32, None), ("zeros", 96, 32, (0, 16)), ("near", 64, 16, (8, 9)), ("larger", 80, 128, None)):
        n, count = 24, -(-k // block)
        parts = {"wq": rng.integers(0, 256, (n, count, block // 2), dtype=U8), "ws": rng.uniform(0.01, 0.03, n * count).astype(F32)}
        parts |= {"wz": (lambda z: (z[:, 0::2] | z[:, 1::2] << 4).astype(U8))(rng.integers(*zeros, (n, count + count % 2)))} if zeros else {}
        node = helper.make_node("MatMulNBits", ["a", "wq", "ws", *(["wz"] if zeros else [])], ["y"], domain="com.microsoft", N=n, K=k, bits=4, block_size=block)
        x = rng.standard_normal((3, k)).astype(F32)
        made = model("a = Relu(x)", {"x": x}, parts, {"y": F32}, more=[node])
        made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        yield f"nibbles-blocks-{name}", made, {"x": x}, [None], {"FullyConnected fp32, filter qcint4", "FullyConnected fp32", "Add", "Clamp", "StaticSlice"}


def normalized_weights():
    """Weights that are normalized, as weight_norm does, with a quantizer's pairs between the steps: constants, though computed of codes."""
    rng = np.random.default_rng(36)
    x = rng.standard_normal((2, 8, 20)).astype(F32)
    parts = {"wq": rng.integers(-128, 128, (8, 4, 5)).astype(I8), "ws": F32(0.01), "g": rng.uniform(0.5, 2, (8, 1, 1)).astype(F32), "axes": np.array([1, 2]), "ns": F32(0.02), "vs": F32(0.008),
             "xs": F32(0.03), "ys": F32(0.05), "zero": I8(0)}
    text = ("xq = QuantizeLinear(x, xs, zero)\nxr = DequantizeLinear(xq, xs, zero)\nwr = DequantizeLinear(wq, ws, zero)\nn = ReduceL2(wr, axes)\nd = Div(g, n)\ndq = QuantizeLinear(d, ns, zero)\n"
            "dr = DequantizeLinear(dq, ns, zero)\nv = Mul(wr, dr)\nvq = QuantizeLinear(v, vs, zero)\nvr = DequantizeLinear(vq, vs, zero)\ny = Conv(xr, vr) pads=2,2 group=2\n"
            "yq = QuantizeLinear(y, ys, zero)\nyr = DequantizeLinear(yq, ys, zero)\n")
    yield "normalized-weights", model(text, {"x": x}, parts, {"yr": F32}), {"x": x}, [0.05], set()


def widened_weights():
    """Weights of more than 1,024 codes, used so often, behind values that take so much memory, that portable programs widen them in each call, some in parts: beside floats, by channel and as one, with zero points."""
    rng = np.random.default_rng(37)
    for name, kind, shape, pads, zero in (("channels", I8, (24, 16, 3, 3), "pads=1,1,1,1", 0), ("one", U8, (48, 32, 3, 3), "pads=1,1,1,1", 117), ("points", I8, (64, 32, 1, 1), "", 0), ("strides", I8, (32, 16, 3, 3), "strides=2,2", 0)):
        scales = F32(0.02) if zero else rng.uniform(0.01, 0.03, shape[0]).astype(F32)
        x = (rng.integers(-8, 9, (1, shape[1], 36, 36)) / 4).astype(F32)
        parts = {"wq": rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind), "ws": scales, "wz": np.full(np.shape(scales), zero, kind), "b": rng.standard_normal(shape[0]).astype(F32)}
        yield f"widened-{name}", model(f"wr = DequantizeLinear(wq, ws, wz) axis=0\nm = AveragePool(x) kernel_shape=3,3 strides=3,3\na = Conv(m, wr, b) {pads}\ny = Relu(a)", {"x": x}, parts, {"y": F32}), {"x": x}, [None], None
    x = (rng.integers(-8, 9, (4, 80, 48)) / 4).astype(F32)
    for name, shape, axis, text in (("columns", (48, 64), 1, "y = MatMul(m, wr)"), ("rows", (64, 48), 0, "y = Gemm(m, wr, b) transB=1"), ("left", (64, 80), 0, "y = MatMul(wr, m)")):
        parts = {"wq": rng.integers(-128, 128, shape).astype(I8), "ws": rng.uniform(0.01, 0.03, 64).astype(F32), "wz": np.zeros(64, I8), "b": rng.standard_normal(64).astype(F32), "axes": np.array([0])}
        yield f"widened-{name}", model(f"wr = DequantizeLinear(wq, ws, wz) axis={axis}\nm = ReduceMax(x, axes) keepdims=0\n{text}", {"x": x}, parts, {"y": F32}), {"x": x}, [None], None
