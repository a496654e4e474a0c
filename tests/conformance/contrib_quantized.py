#!/usr/bin/env python3
"""Quantized operators of com.microsoft on the real runtime, against ONNX Runtime.

    tests/conformance/contrib_quantized.py [-k PATTERN,...] [-v]

Weights of 2, 4 and 8 bits in blocks, and operators on whole numbers with scales and zero points. ONNX Runtime rounds some
of the latter by tables or vector instructions, so one step of the quantized result may differ.
"""

import sys

import ml_dtypes
import numpy as np

import contrib
from contrib import F16, F32, Case, cases, normal, whole

U8, I8, I32 = np.uint8, np.int8, np.int32


def pack(codes, bits):
    """Rows of codes as bytes, lowest bits first."""
    per = 8 // bits
    rows = codes.reshape(-1, codes.shape[-1])
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % per)))
    shifts = np.arange(per) * bits
    return (rows.reshape(len(rows), -1, per).astype(np.uint32) << shifts).sum(-1).astype(U8).reshape(*codes.shape[:-1], -1)


def nbits_rows():
    """With accuracy_level 4 rows are quantized to 8 bits, by ONNX Runtime and XNNPACK each in its own way: 43 and 45 dB from the product
    of floats. What XNNPACK has no blocks for stays floats."""
    own = np.random.default_rng(1)
    for name, k, block, zero in (("blocks", 96, 32, None), ("zeros", 128, 64, 8), ("other_zeros", 64, 32, 7), ("small_blocks", 64, 16, None), ("rest", 80, 32, None)):
        n, count = 8, -(-k // block)
        weights = {"b": own.integers(0, 256, (n, count, block // 2), dtype=U8), "s": (own.random(n * count) * 0.01 + 0.005).astype(F32)}
        more = {} if zero is None else {"z": pack(np.full((n, count), zero, U8), 4)}
        yield Case(f"MatMulNBits_rows_{name}", "MatMulNBits", "a b s z" if more else "a b s", {"a": own.standard_normal((2, 3, k), dtype=F32)},
                   {**weights, **more}, N=n, K=k, bits=4, block_size=block, accuracy_level=4, rtol=0, atol=0.06)


def nbits_bytes():
    """8 bits, and 4 in blocks of 16, stay so on XNNPACK: beside floats, and beside rows of 8 bits, which ONNX Runtime quantizes by blocks, too."""
    own = np.random.default_rng(2)
    for bits, n, k, block in ((8, 40, 96, 32), (8, 24, 640, 32), (8, 40, 80, 16), (8, 24, 256, 128), (4, 40, 96, 16)):
        count = -(-k // block)
        scales = (own.standard_normal(n * count) * (0.01 if bits == 4 else 0.001)).astype(F32)
        scales[3] = 0
        weights = {"b": own.integers(0, 256, (n, count, block * bits // 8), dtype=U8), "s": scales}
        zeros = {"z": pack(own.integers(0, 1 << bits, (n, count), dtype=U8), bits)}
        common = {"N": n, "K": k, "bits": bits, "block_size": block}
        for name, inputs, more in (("", "a b s", {}), ("_zeros", "a b s z - c", {**zeros, "c": own.standard_normal(n).astype(F32)})):
            x = {"a": own.standard_normal((2, 3, k), dtype=F32)}
            title = f"MatMulNBits_bytes_{bits}_{k}_{block}{name}"
            yield Case(title, "MatMulNBits", inputs, x, {**weights, **more}, **common, rtol=1e-3, atol=1e-3)
            yield Case(f"{title}_rows", "MatMulNBits", inputs, x, {**weights, **more}, **common, accuracy_level=4, rtol=0, atol=0.1)
        feeds = [{"a": own.standard_normal((b, s, k), dtype=F32)} for b, s in ((2, 3), (1, 1), (3, 7))]
        yield Case(f"MatMulNBits_bytes_{bits}_{k}_{block}_dynamic", "MatMulNBits", "a b s z", feeds, {**weights, **zeros}, **common, accuracy_level=4,
                   dims={"batch": "1..4", "steps": "1..8"}, shapes={"a": ["batch", "steps", k]}, rtol=0, atol=0.1)


def nbits_cases():
    for bits in (2, 4, 8):
        for n, k, block in ((5, 64, 16), (8, 48, 32), (3, 40, 16), (4, 256, 128)):
            count = -(-k // block)
            codes = whole(U8, 0, 1 << bits, n, count, block)
            weights = {"b": pack(codes, bits), "s": np.abs(normal(n, count)) + F32(0.1)}
            common = {"N": n, "K": k, "bits": bits, "block_size": block, "rtol": 1e-3, "atol": 1e-3}
            name = f"MatMulNBits_{bits}_{n}_{k}_{block}"
            x = {"a": normal(2, 3, k)}
            yield Case(name, "MatMulNBits", "a b s", x, weights, **common)
            zeros = {"z": pack(whole(U8, 0, 1 << bits, n, count), bits)}
            yield Case(f"{name}_zeros", "MatMulNBits", "a b s z", x, {**weights, **zeros}, **common)
            real = {"z": normal(n, count)}
            yield Case(f"{name}_real_zeros", "MatMulNBits", "a b s z", x, {**weights, **real}, **common, reference=by_formula(n, k, block, codes))
            yield Case(f"{name}_bias", "MatMulNBits", "a b s z - c", x, {**weights, **zeros, "c": normal(n)}, **common)
            groups = {"g": np.minimum(whole(I32, 0, count, k), count - 1)}
            own = {} if bits == 4 else {"reference": by_group(k, codes, 1 << bits - 1)}  # ONNX Runtime has kernels for 4 bits only
            yield Case(f"{name}_groups", "MatMulNBits", "a b s - g", x, {**weights, **groups}, **common, **own)
            blocks = {"g": np.arange(k, dtype=I32) // I32(block)}
            yield Case(f"{name}_blocks", "MatMulNBits", "a b s - g", x, {**weights, **blocks}, **common, **({} if bits == 4 else {"reference": by_group(k, codes, 1 << bits - 1)}))
            yield Case(f"{name}_1d", "MatMulNBits", "a b s", {"a": normal(1, k)}, {"b": weights["b"], "s": weights["s"].reshape(-1)}, **common)
    k, codes = 64, whole(U8, 0, 16, 8, 4, 16)
    half = {"b": pack(codes, 4), "s": (np.abs(normal(8, 4)) + 0.1).astype(F16)}
    yield Case("MatMulNBits_half", "MatMulNBits", "a b s", {"a": normal(2, k, dtype=F16)}, half, out=(F16,), N=8, K=k, block_size=16, rtol=2e-2, atol=5e-2)
    yield Case("MatMulNBits_half_bias", "MatMulNBits", "a b s - - c", {"a": normal(2, k, dtype=F16)}, {**half, "c": normal(8, dtype=F16)}, out=(F16,),
               N=8, K=k, block_size=16, rtol=2e-2, atol=5e-2)
    feeds = [{"a": normal(b, s, k)} for b, s in ((2, 3), (1, 1), (3, 7))]
    yield Case("MatMulNBits_dynamic", "MatMulNBits", "a b s", feeds, {"b": half["b"], "s": half["s"].astype(F32)}, N=8, K=k, block_size=16,
               dims={"batch": "1..4", "steps": "1..8"}, shapes={"a": ["batch", "steps", k]}, atol=1e-3)
    yield from nbits_rows()
    for kind in (0, 1):
        for n, k, block in ((6, 32, 16), (4, 48, 64)):
            data = {"b": whole(U8, 0, 256, n * k // 2), "m": np.abs(normal(-(-n * k // block)))}
            yield Case(f"MatMulBnb4_{kind}_{n}", "MatMulBnb4", "a b m", {"a": normal(2, 3, k)}, data, N=n, K=k, block_size=block, quant_type=kind)
    for bits in (4, 8):
        for shape in ((3,), (2, 4)):
            codes, scales = whole(U8, 0, 1 << bits, 10, 64), np.abs(normal(10, 4))
            table = {"d": pack(codes, bits), "s": scales}
            more = {"gather_axis": 0, "quantize_axis": 1, "block_size": 16, "bits": bits}
            index = {"i": whole(np.int64, 0, 10, *shape)}
            name = f"GatherBlockQuantized_{bits}_{len(shape)}"
            yield Case(name, "GatherBlockQuantized", "d i s", index, table, **more)
            yield Case(f"{name}_zeros", "GatherBlockQuantized", "d i s z", index, {**table, "z": pack(whole(U8, 0, 1 << bits, 10, 4), bits)}, **more)
            yield Case(f"{name}_half", "GatherBlockQuantized", "d i s", {"i": index["i"].astype(I32)}, {"d": table["d"], "s": scales.astype(F16)},
                       out=(F16,), rtol=1e-2, atol=1e-2, **more)


def by_formula(n, k, block, codes):
    def product(a, b, s, z):
        weights = ((codes - z[:, :, None]) * s[:, :, None]).reshape(n, -1)[:, :k]
        return [(a @ weights.T).astype(F32)]
    return product


def by_group(k, codes, middle):
    def product(a, b, s, g):
        weights = (codes.reshape(len(codes), -1)[:, :k].astype(F32) - middle) * s[:, g]
        return [(a @ weights.T).astype(F32)]
    return product


# --- operators on whole numbers ---

def scale(low=0.01, high=0.1):
    return F32(contrib.RNG.uniform(low, high))


def zero(dtype):
    return whole(dtype, 100, 156) if dtype == U8 else whole(dtype, -20, 20)


def numbers(dtype, *shape):
    return whole(dtype, np.iinfo(dtype).min, np.iinfo(dtype).max + 1, *shape)


def qlinear_cases():
    step = {"atol": 1.0, "rtol": 0}
    for dtype in (U8, I8):
        kind = np.dtype(dtype).name
        one = {"xs": scale(), "xz": zero(dtype), "ys": scale(), "yz": zero(dtype)}
        two = {**one, "zs": scale(), "zz": zero(dtype)}
        for op in ("QLinearAdd", "QLinearMul"):
            for a, b in (((2, 3, 8), (2, 3, 8)), ((2, 3, 8), (8,)), ((1, 3, 1), (2, 1, 8))):
                yield Case(f"{op}_{kind}_{len(b)}{b[0]}", op, "x xs xz y ys yz zs zz", {"x": numbers(dtype, *a), "y": numbers(dtype, *b)}, two,
                           out=(dtype,), **step)
        # erf(x) + 1 of a GELU: each sum lies in the middle between two codes.
        middle = {"xs": F32(0.00784314), "xz": dtype(np.iinfo(dtype).min + 128), "y": dtype(np.iinfo(dtype).max), "ys": F32(0.00392157), "yz": dtype(np.iinfo(dtype).min),
                  "zs": F32(0.00784314), "zz": dtype(np.iinfo(dtype).min)}
        every = np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1).astype(dtype).reshape(2, 128)
        yield Case(f"QLinearAdd_{kind}_middle", "QLinearAdd", "x xs xz y ys yz zs zz", {"x": every}, middle, out=(dtype,), rtol=0, atol=0)
        ranks = {**middle, "y": np.full((1, 1, 1), np.iinfo(dtype).max, dtype)}
        yield Case(f"QLinearAdd_{kind}_middle_ranks", "QLinearAdd", "x xs xz y ys yz zs zz", {"x": every}, ranks, out=(dtype,), rtol=0, atol=1)
        x = {"x": numbers(dtype, 2, 6, 5, 4)}
        names = "x xs xz ys yz"
        yield Case(f"QLinearSigmoid_{kind}", "QLinearSigmoid", names, x, {**one, "ys": F32(1 / 256)}, out=(dtype,), **step)
        yield Case(f"QLinearLeakyRelu_{kind}", "QLinearLeakyRelu", names, x, one, out=(dtype,), alpha=0.2, **step)
        yield Case(f"QLinearLeakyRelu_{kind}_no_zeros", "QLinearLeakyRelu", "x xs - ys yz", x, {k: one[k] for k in ("xs", "ys", "yz")}, out=(dtype,), **step)
        for axis, opset in ((-1, 13), (1, 13), (1, 11), (2, 11)):
            yield softmax_case(kind, axis, opset, names, x, one, dtype, step)
        for last in (0, 1):
            for window in ({"kernel_shape": [3, 2]}, {"kernel_shape": [2, 2], "strides": [2, 1], "pads": [1, 0, 0, 1]},
                           {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1}, {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"}):
                yield Case(f"QLinearAveragePool_{kind}_{last}_{len(window)}{window['kernel_shape'][0]}", "QLinearAveragePool", names, x, one, out=(dtype,),
                           channels_last=last, **window, **step)
            yield Case(f"QLinearGlobalAveragePool_{kind}_{last}", "QLinearGlobalAveragePool", names, x, one, out=(dtype,), channels_last=last, **step)
        parts = {"a": numbers(dtype, 2, 3, 4), "b": numbers(dtype, 2, 5, 4)}
        yield Case(f"QLinearConcat_{kind}", "QLinearConcat", "ys yz a xs xz b zs zz", parts, two, out=(dtype,), axis=1, **step)
        yield Case(f"QLinearWhere_{kind}", "QLinearWhere", "c x xs xz y ys yz zs zz",
                   {"c": whole(bool, 0, 2, 2, 1, 4), "x": numbers(dtype, 2, 3, 4), "y": numbers(dtype, 3, 4)}, two, out=(dtype,), **step)

        def mean(x, xs, xz, ys, yz, axes, keep):
            y = ((x.astype(F32) - xz) * xs).mean(axis=axes, keepdims=keep)
            info = np.iinfo(x.dtype)
            return [np.clip(np.rint(y / ys) + yz, info.min, info.max).astype(x.dtype)]
        for axes, keep in (([1, 2], 1), ([-1], 0)):
            yield Case(f"QLinearReduceMean_{kind}_{keep}", "QLinearReduceMean", names, x, one, out=(dtype,), axes=axes, keepdims=keep,
                       reference=lambda axes=tuple(axes), keep=bool(keep), **v: mean(axes=axes, keep=keep, **v), **step)
        for last in (0, 1):
            weights = numbers(I8, 4, 4 if last else 6, 3, 2) // 2  # 7 bits, see tests/lib/onnx_runtime.py
            conv = {**one, "w": weights, "ws": np.abs(normal(4)) * F32(0.01) + F32(0.001), "wz": np.zeros(4, I8),
                    "c": whole(I32, -500, 500, 4)}
            yield Case(f"QLinearConv_{kind}_{last}", "QLinearConv", "x xs xz w ws wz ys yz c", x, conv, out=(dtype,), channels_last=last,
                       pads=[1, 0, 1, 1], **step)
        yield Case(f"NhwcMaxPool_{kind}", "NhwcMaxPool", "x", x, out=(dtype,), kernel_shape=[2, 2], strides=[1, 2], pads=[0, 1, 0, 0])


def softmax_case(kind, axis, opset, names, x, one, dtype, step):
    case = Case(f"QLinearSoftmax_{kind}_{axis}_{opset}", "QLinearSoftmax", names, x,
                {**one, "ys": F32(1 / 256), "yz": dtype(0 if dtype == U8 else -128)}, out=(dtype,), axis=axis, **step)
    case.model.graph.node[0].attribute.append(contrib.helper.make_attribute("opset", opset))
    return case


def product_cases():
    for a in (U8, I8):
        for b in ((U8, I8) if a == U8 else (I8,)):
            kind = f"{np.dtype(a).name}_{np.dtype(b).name}"
            values = {"as": scale(), "az": zero(a), "bs": scale(), "bz": zero(b), "ys": scale(0.5, 2.0), "yz": zero(a), "c": whole(I32, -900, 900, 5)}
            step = {"atol": 1.0, "rtol": 0}
            for ta, tb in ((0, 0), (1, 1)):
                feed = {"a": numbers(a, 6, 3) if ta else numbers(a, 3, 6)}
                weight = {"b": numbers(b, 5, 6) if tb else numbers(b, 6, 5)}
                more = {"transA": ta, "transB": tb, "alpha": 0.7}
                yield Case(f"QGemm_{kind}_{ta}", "QGemm", "a as az b bs bz c ys yz", feed, {**weight, **values}, out=(a,), **more, **step)
                yield Case(f"QGemm_{kind}_{ta}_real", "QGemm", "a as az b bs bz c", feed, {**weight, **values}, **more)
                columns = {"bs": np.abs(normal(5)) * F32(0.1), "bz": np.zeros(5, b)}
                yield Case(f"QGemm_{kind}_{ta}_columns", "QGemm", "a as az b bs bz - ys yz", feed, {**weight, **values, **columns}, out=(a,), **more, **step)
            columns = {"bs": np.abs(normal(5)) * F32(0.1), "bz": whole(b, 0, 9, 5)}
            for name, more in (("one", {}), ("columns", columns)):
                weights = {"b": numbers(b, 6, 5), **values, **more, "r": normal(5)}
                yield Case(f"MatMulIntegerToFloat_{kind}_{name}", "MatMulIntegerToFloat", "a b as bs az bz", {"a": numbers(a, 2, 3, 6)}, weights)
                yield Case(f"MatMulIntegerToFloat_{kind}_{name}_bias", "MatMulIntegerToFloat", "a b as bs az bz r", {"a": numbers(a, 2, 3, 6)}, weights)
                if a == U8:
                    yield Case(f"DynamicQuantizeMatMul_{kind}_{name}", "DynamicQuantizeMatMul", "a b bs bz r", {"a": normal(2, 3, 6)}, weights, atol=1e-3)
                    yield Case(f"DynamicQuantizeMatMul_{kind}_{name}_plain", "DynamicQuantizeMatMul", "a b bs", {"a": normal(3, 6)}, weights, atol=1e-3)
    yield Case("MatMulInteger16", "MatMulInteger16", "a b", {"a": whole(np.int16, -300, 300, 3, 6), "b": whole(np.int16, -300, 300, 6, 5)}, out=(I32,))
    yield Case("MulInteger", "MulInteger", "a az b bz", {"a": numbers(U8, 2, 3), "b": numbers(U8, 3)}, {"az": U8(3), "bz": U8(200)}, out=(I32,),
               reference=lambda a, b, az, bz: [(a.astype(I32) - az) * (b.astype(I32) - bz)])
    yield Case("ReduceSumInteger", "ReduceSumInteger", "a", {"a": numbers(I8, 2, 3, 4)}, out=(I32,), axes=[1, 2], keepdims=1,
               reference=lambda a: [a.sum((1, 2), keepdims=True, dtype=I32)])
    for b in (U8, I8):
        weights = {"w": numbers(b, 8, 24), "c": normal(24), "xs": F32(0.01), "ws": F32(0.005), "xz": U8(120), "wz": zero(b), "p": normal(2, 2, 2, 3, 4)}
        x, kind = {"x": numbers(U8, 2, 5, 8)}, np.dtype(b).name
        yield Case(f"QAttention_{kind}", "QAttention", "x w c xs ws - xz wz", x, weights, num_heads=2)
        yield Case(f"QAttention_{kind}_mask", "QAttention", "x w c xs ws m xz wz", {**x, "m": whole(I32, 0, 2, 2, 5)}, weights, num_heads=2, unidirectional=1)
        yield Case(f"QAttention_{kind}_past", "QAttention", "x w c xs ws - xz wz p", x, weights, out=(F32, F32), num_heads=2, unidirectional=1)
        columns = {**weights, "ws": np.abs(normal(24)) * F32(0.01), "wz": np.zeros(24, b)}
        yield Case(f"QAttention_{kind}_columns", "QAttention", "x w c xs ws - xz wz", x, columns, num_heads=2)
    ids = {"ids": whole(I32, 0, 20, 2, 5), "parts": whole(I32, 0, 2, 2, 5)}
    tables = {"word": numbers(U8, 20, 8), "place": numbers(U8, 10, 8), "segment": numbers(U8, 2, 8), "g": numbers(U8, 8), "t": numbers(U8, 8)}
    scales = {f"{k}_s": scale() for k in tables}
    zeros = {f"{k}_z": zero(U8) for k in tables}
    names = ["ids", "parts", *tables, "mask", *scales, *zeros]
    yield Case("QEmbedLayerNormalization", "QEmbedLayerNormalization", names, {**ids, "mask": whole(I32, 0, 2, 2, 5)}, {**tables, **scales, **zeros},
               out=(F32, I32))


def linear_cases():
    for dtype in (U8, I8, np.int16, np.uint16):
        for axis, s in ((0, np.abs(normal(2))), (1, np.abs(normal(3))), (None, F32(0.1))):
            constants = {"s": s + F32(0.01), "z": np.full(np.shape(s), 7, dtype)}
            kind, more = f"{np.dtype(dtype).name}_{axis}", {} if axis is None else {"axis": axis}
            yield Case(f"QuantizeLinear_{kind}", "QuantizeLinear", "x s z", {"x": 3 * normal(2, 3, 4)}, constants, out=(dtype,), **more)
            yield Case(f"DequantizeLinear_{kind}", "DequantizeLinear", "x s z", {"x": numbers(dtype, 2, 3, 4)}, constants, **more)
    yield Case("DequantizeLinear_int32", "DequantizeLinear", "x s", {"x": whole(I32, -9999, 9999, 2, 3)}, {"s": F32(0.01)})
    yield from nibble_tables()


def nibble_tables():
    """Tables of the types of 4 bits, whose usual zero point is 0."""
    for dtype, low in ((ml_dtypes.int4, -8), (ml_dtypes.uint4, 0)):
        for columns, block in ((64, 32), (44, 16)):
            scales = np.abs(normal(10, -(-columns // block)))
            table = {"d": whole(I8, low, low + 16, 10, columns).astype(dtype), "s": scales}
            zeros = {"z": whole(I8, low, low + 16, *scales.shape).astype(dtype)}
            name = f"GatherBlockQuantized_{np.dtype(dtype).name}_{columns}"
            index = {"i": whole(np.int64, 0, 10, 2, 3)}
            yield Case(name, "GatherBlockQuantized", "d i s", index, table, block_size=block)
            yield Case(f"{name}_zeros", "GatherBlockQuantized", "d i s z", index, {**table, **zeros}, block_size=block)


def recurrent_cases():
    steps, batch, width, hidden = 5, 3, 6, 8
    for direction, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        for dtype in (U8, I8):
            for columns in (False, True):
                size = (count, 4 * hidden) if columns else (count,)
                weights = {"w": numbers(dtype, count, width, 4 * hidden), "r": numbers(dtype, count, hidden, 4 * hidden),
                           "b": normal(count, 8 * hidden) / 2, "ws": np.abs(normal(*size)) * F32(0.01) + F32(1e-3),
                           "wz": np.zeros(size, dtype) if columns else whole(dtype, 0, 9, *size),
                           "rs": np.abs(normal(*size)) * F32(0.01) + F32(1e-3), "rz": np.zeros(size, dtype)}
                kind = f"{direction}_{np.dtype(dtype).name}_{'columns' if columns else 'one'}"
                more = {"hidden_size": hidden, "direction": direction, "out": (F32, F32, F32), "atol": 2e-3}
                feed = {"x": normal(steps, batch, width)}
                yield Case(f"DynamicQuantizeLSTM_{kind}", "DynamicQuantizeLSTM", "x w r b - - - - ws wz rs rz", feed, weights, **more)
                states = {"h": normal(count, batch, hidden) / 2, "c": normal(count, batch, hidden)}
                peepholes = {"p": normal(count, 3 * hidden) / 2}
                yield Case(f"DynamicQuantizeLSTM_{kind}_states", "DynamicQuantizeLSTM", "x w r b - h c p ws wz rs rz", {**feed, **states},
                           {**weights, **peepholes}, clip=3.0, **more)
    yield Case("DynamicQuantizeLSTM_batch", "DynamicQuantizeLSTM", "x w r b - - - - ws wz rs rz",
               [{"x": normal(steps, n, width)} for n in (1, 4)], {k: v[:1] for k, v in weights.items()}, hidden_size=hidden,
               dims={"n": "1..4"}, shapes={"x": [steps, "n", width]}, atol=2e-3)


def four_bit_cases():
    """Codes of 4 bits, two in a byte."""
    for dtype, low in ((ml_dtypes.int4, -8), (ml_dtypes.uint4, 0)):
        codes = whole(np.int8, low, low + 16, 6, 4).astype(dtype)
        kind = np.dtype(dtype).name
        for name, s, more in (("one", F32(0.2), {}), ("axis", np.abs(normal(4)) + F32(0.05), {"axis": 1})):
            z = whole(np.int8, low, low + 16, *np.shape(s)).astype(dtype)
            product = {"q": codes, "s": s, "z": z}
            yield Case(f"DequantizeLinear_{kind}_{name}", "DequantizeLinear", "q s z", {}, product, **more)
            yield Case(f"DequantizeLinear_{kind}_{name}_plain", "DequantizeLinear", "q s", {}, product, **more)


def pool_cases():
    """Windows that ceil_mode lets reach beyond the pads."""
    own = np.random.default_rng(3)
    for dtype in (U8, I8):
        x = own.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, (2, 3, 7, 4)).astype(dtype)
        given = {"xs": F32(0.0625), "xz": np.array(3, dtype), "ys": F32(0.0713), "yz": np.array(9, dtype)}
        for counted in (0, 1):
            for pads in ([0, 0, 0, 0], [1, 0, 0, 1]):
                yield Case(f"QLinearAveragePool_{np.dtype(dtype).name}_ceil_{counted}{sum(pads)}", "QLinearAveragePool", "x xs xz ys yz", {"x": x},
                           given, out=(dtype,), rtol=0, atol=1, kernel_shape=[3, 2], strides=[2, 3], pads=pads, ceil_mode=1, count_include_pad=counted)


ALL = (recurrent_cases, four_bit_cases, nbits_cases, qlinear_cases, product_cases, linear_cases, nbits_bytes, pool_cases)


def main():
    return cases.run([case for table in ALL for case in table()], contrib.check, cases.parser(__doc__).parse_args())


if __name__ == "__main__":
    sys.exit(main())
