"""Element by element: types, broadcasting, signs, rounding, NaN and infinity, old versions' broadcast attribute."""

import numpy as np

from single_node import BF16, Case, RNG, normal, whole

INF, NAN = np.inf, np.nan
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, INF, -INF, NAN], np.float32)
EXACT = {"rtol": 0, "atol": 0}


def pairs(values):
    """Every value against every other one, as two equal shapes."""
    a, b = np.meshgrid(values, values, indexing="ij")
    return {"a": a.copy(), "b": b.copy()}


def special_values():
    for op in ("Abs", "Ceil", "Floor", "Round", "Sign", "Neg", "Relu", "Sqrt", "Exp", "Log", "Reciprocal", "Erf", "Sigmoid", "Tanh",
               "Softplus", "Softsign", "Sin", "Cos", "Atan", "Asinh", "Cosh", "Sinh", "Identity", "Elu", "Selu",
               "LeakyRelu", "HardSigmoid", "HardSwish", "Celu", "ThresholdedRelu", "Shrink", "IsNaN"):
        kind = np.bool_ if op == "IsNaN" else np.float32
        yield Case(f"{op}-special", op, ["x"], {"x": SPECIAL}, out_type=kind)
    for positive, negative in ((1, 1), (1, 0), (0, 1), (0, 0)):
        yield Case(f"IsInf-{positive}{negative}", "IsInf", ["x"], {"x": SPECIAL}, out_type=np.bool_,
                   detect_positive=positive, detect_negative=negative)
    for op in ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min"):
        yield Case(f"{op}-special", op, ["a", "b"], pairs(SPECIAL))
    for op in ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"):
        yield Case(f"{op}-special", op, ["a", "b"], pairs(SPECIAL), out_type=np.bool_)
    yield Case("Mod-special", "Mod", ["a", "b"], pairs(SPECIAL), fmod=1)
    yield Case("PRelu-special", "PRelu", ["a", "b"], pairs(SPECIAL))


def empty_and_scalar():
    for op in ("Abs", "Relu", "Sigmoid", "Softplus", "Identity", "Round", "Elu", "Not"):
        kind = np.bool_ if op == "Not" else np.float32
        for shape in ((), (0,), (2, 0, 3)):
            yield Case(f"{op}-{len(shape)}d-{np.prod(shape, dtype=int)}", op, ["x"], {"x": np.ones(shape, kind)}, out_type=kind)
    for op in ("Add", "Mul", "Div", "Pow", "Max", "Less"):
        kind = np.bool_ if op == "Less" else np.float32
        for a, b in (((), ()), ((), (2, 3)), ((0,), (1,)), ((2, 0, 3), (3,)), ((2, 1, 3), (4, 1)), ((1, 3), (2, 1))):
            name = "x".join(map(str, a)) + "_" + "x".join(map(str, b))
            yield Case(f"{op}-{name}", op, ["a", "b"], {"a": normal(*a) + 0, "b": np.abs(normal(*b)) + np.float32(1)} if a and b else
                       {"a": np.asarray(RNG.random(a), np.float32), "b": np.asarray(RNG.random(b), np.float32)}, out_type=kind)


def integers():
    signed = np.array([-128, -7, -3, -1, 0, 1, 2, 3, 7, 127])
    unsigned = np.array([0, 1, 2, 3, 7, 100, 200, 255])
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
        values = (signed if np.issubdtype(dtype, np.signedinteger) else unsigned).astype(dtype)
        grid = pairs(values)
        divisor = {"a": grid["a"], "b": np.where(grid["b"] == 0, dtype(5), grid["b"])}
        name = np.dtype(dtype).name
        yield Case(f"Div-{name}", "Div", ["a", "b"], divisor, out_type=dtype, oracle="onnx", **EXACT)
        yield Case(f"Mod-{name}", "Mod", ["a", "b"], divisor, out_type=dtype, **EXACT)
        yield Case(f"Mod-fmod-{name}", "Mod", ["a", "b"], divisor, out_type=dtype, fmod=1, **EXACT)
        for op in ("Add", "Sub", "Mul", "Max", "Min"):
            yield Case(f"{op}-{name}", op, ["a", "b"], grid, out_type=dtype, oracle="onnx", opset=14, **EXACT)
        for op in ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"):
            yield Case(f"{op}-{name}", op, ["a", "b"], grid, out_type=np.bool_, oracle="onnx", opset=19, **EXACT)
        for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
            yield Case(f"{op}-{name}", op, ["a", "b"], grid, out_type=dtype, opset=18, **EXACT)
        yield Case(f"BitwiseNot-{name}", "BitwiseNot", ["a"], {"a": values}, out_type=dtype, opset=18, **EXACT)
        if np.issubdtype(dtype, np.unsignedinteger):
            bits = np.dtype(dtype).itemsize * 8
            shift = {"a": grid["a"], "b": (grid["b"].astype(np.int64) % bits).astype(dtype)}
            for direction in ("LEFT", "RIGHT"):
                yield Case(f"BitShift-{direction}-{name}", "BitShift", ["a", "b"], shift, out_type=dtype, direction=direction,
                           oracle="onnx", **EXACT)
        else:
            for op in ("Abs", "Neg", "Sign"):
                yield Case(f"{op}-{name}", op, ["a"], {"a": values[1:]}, out_type=dtype, oracle="onnx", **EXACT)
            yield Case(f"Relu-{name}", "Relu", ["a"], {"a": values}, out_type=dtype, oracle="onnx", **EXACT)
        small = {"a": whole(dtype, 0, 4, 5, 6), "b": whole(dtype, 0, 4, 5, 6)}
        if dtype in (np.int32, np.int64):
            yield Case(f"Pow-{name}", "Pow", ["a", "b"], small, out_type=dtype, **EXACT)
            yield Case(f"Pow-{name}-float", "Pow", ["a", "b"], {"a": small["a"], "b": np.float32(2) + 0 * normal(5, 6)}, out_type=dtype, **EXACT)
        yield Case(f"Pow-float-{name}", "Pow", ["a", "b"], {"a": normal(5, 6), "b": small["b"]}, oracle="onnx")


def clip_versions():
    x = {"x": 3 * normal(4, 5)}
    yield Case("Clip-6", "Clip", ["x"], x, opset=6, min=-1.0, max=1.5)
    yield Case("Clip-6-none", "Clip", ["x"], x, opset=7)
    yield Case("Clip-6-low", "Clip", ["x"], x, opset=10, min=0.0)
    for opset in (11, 12, 13):
        low, high = np.float32(-1), np.float32(0.5)
        yield Case(f"Clip-{opset}", "Clip", ["x", "l", "h"], x, {"l": low, "h": high}, opset=opset)
        yield Case(f"Clip-{opset}-run", "Clip", ["x", "l", "h"], {**x, "l": low, "h": high}, opset=opset)
        yield Case(f"Clip-{opset}-high", "Clip", ["x", "", "h"], {**x, "h": high}, opset=opset)
        yield Case(f"Clip-{opset}-low", "Clip", ["x", "l"], {**x, "l": low}, opset=opset)
        yield Case(f"Clip-{opset}-swapped", "Clip", ["x", "l", "h"], {**x, "l": high, "h": low}, opset=opset)
    for dtype in (np.int8, np.uint8, np.int32, np.int64, np.uint32, np.uint64, np.int16, np.uint16, np.float64, np.float16):
        name = np.dtype(dtype).name
        y = {"x": np.arange(0, 12).astype(dtype)}
        yield Case(f"Clip-{name}", "Clip", ["x", "l", "h"], y, {"l": dtype(2), "h": dtype(9)}, out_type=dtype, oracle="onnx", **EXACT)
        yield Case(f"Clip-{name}-run", "Clip", ["x", "l", "h"], {**y, "l": dtype(2), "h": dtype(9)}, out_type=dtype, oracle="onnx", **EXACT)
    yield Case("Clip-special", "Clip", ["x", "l", "h"], {"x": SPECIAL}, {"l": np.float32(-1), "h": np.float32(1)})


def casts():
    real = np.array([0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.9, -2.9, 100.7, 127.0], np.float32)
    for target in (np.int8, np.int16, np.int32, np.int64, np.float16, np.float64, np.bool_, BF16):
        to = {np.int8: 3, np.int16: 5, np.int32: 6, np.int64: 7, np.float16: 10, np.float64: 11, np.bool_: 9, BF16: 16}[target]
        for opset in (9, 13, 19):
            if target is BF16 and opset < 13:
                continue
            yield Case(f"Cast-{opset}-float-{np.dtype(target).name}", "Cast", ["x"], {"x": real}, out_type=target, to=to, opset=opset,
                       oracle="onnx" if target is BF16 else "ort", **EXACT)
    for target, to in ((np.uint8, 2), (np.uint16, 4), (np.uint32, 12), (np.uint64, 13)):
        name = np.dtype(target).name
        yield Case(f"Cast-float-{name}", "Cast", ["x"], {"x": np.abs(real)}, out_type=target, to=to, **EXACT)
        yield Case(f"Cast-{name}-float", "Cast", ["x"], {"x": np.array([0, 1, 200, np.iinfo(target).max], target)}, to=1, rtol=1e-6, atol=0)
        yield Case(f"Cast-{name}-int64", "Cast", ["x"], {"x": np.array([0, 1, 200, 255], target)}, out_type=np.int64, to=7, **EXACT)
        yield Case(f"Cast-int64-{name}", "Cast", ["x"], {"x": np.array([0, 1, 200, -1, 300, 70000])}, out_type=target, to=to, **EXACT)
    for source in (np.int8, np.int32, np.int64, np.float16, np.float64):
        yield Case(f"Cast-{np.dtype(source).name}-bool", "Cast", ["x"], {"x": np.array([0, 1, -1, 2, 0], source)}, out_type=np.bool_, to=9)
    yield Case("Cast-special-bool", "Cast", ["x"], {"x": SPECIAL}, out_type=np.bool_, to=9)
    yield Case("Cast-special-half", "Cast", ["x"], {"x": np.array([65504, 65519, 65520, 1e9, -1e9, 6e-8, 2e-8, 1e-9, INF, NAN], np.float32)},
               out_type=np.float16, to=10, **EXACT)
    yield Case("Cast-narrow", "Cast", ["x"], {"x": np.array([300, -300, 129, 70000, -1], np.int64)}, out_type=np.int8, to=3, **EXACT)
    yield Case("CastLike-int32", "CastLike", ["x", "t"], {"x": real, "t": np.zeros(1, np.int32)}, out_type=np.int32, **EXACT)


def legacy_broadcast():
    """Before version 7: attributes broadcast and axis instead of trailing alignment."""
    a = normal(2, 3, 4, 5)
    for op in ("Add", "Sub", "Mul", "Div", "Pow"):
        for name, b, attributes in (("equal", normal(2, 3, 4, 5), {}), ("tail", normal(4, 5), {"broadcast": 1}),
                                    ("middle", normal(3, 4), {"broadcast": 1, "axis": 1}), ("first", normal(2), {"broadcast": 1, "axis": 0}),
                                    ("one", normal(1), {"broadcast": 1})):
            b = np.abs(b) + np.float32(0.5)
            full = b if name != "middle" else b[None, :, :, None]
            full = b[:, None, None, None] if name == "first" else full
            x = np.abs(a) if op == "Pow" else a
            want = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power}[op](x, full)
            yield Case(f"{op}-6-{name}", op, ["a", "b"], {"a": x, "b": b}, opset=6, oracle=[want], **attributes)
    for op in ("Greater", "Less", "Equal", "And", "Or", "Xor"):
        kind = np.bool_ if op in ("And", "Or", "Xor") else np.int32 if op == "Equal" else np.float32
        x, y = whole(kind, 0, 2, 2, 3, 4), whole(kind, 0, 2, 3)
        want = {"Greater": np.greater, "Less": np.less, "Equal": np.equal, "And": np.logical_and, "Or": np.logical_or,
                "Xor": np.logical_xor}[op](x, y[:, None])
        yield Case(f"{op}-6-middle", op, ["a", "b"], {"a": x, "b": y}, opset=6, oracle=[want], out_type=np.bool_, broadcast=1, axis=1)


def before_opset_6():
    """Versions that only models older than opset 7 have; ONNX Runtime lacks them."""
    x = np.linspace(-3, 3, 24, dtype=np.float32).reshape(2, 3, 4)
    elu = np.where(x < 0, 0.5 * np.expm1(x), x)
    for op, want, attributes in (
            ("Clip", np.clip(x, -1, 2), {"min": -1.0, "max": 2.0}), ("Elu", elu, {"alpha": 0.5}), ("LeakyRelu", np.where(x < 0, 0.1 * x, x), {"alpha": 0.1}),
            ("HardSigmoid", np.clip(0.2 * x + 0.5, 0, 1), {}), ("Selu", 1.0507 * np.where(x < 0, 1.6732 * np.expm1(x), x), {}),
            ("Max", np.maximum(x, -x), None), ("Min", np.minimum(x, -x), None), ("Sum", 0 * x, None), ("Mean", 0 * x, None)):
        inputs, feed = (["x"], {"x": x}) if attributes is not None else (["x", "y"], {"x": x, "y": -x})
        yield Case(f"{op}-1", op, inputs, feed, opset=1, oracle=[want.astype(np.float32)], consumed_inputs=[0], **(attributes or {}))
    yield Case("Cast-1", "Cast", ["x"], {"x": x}, opset=1, out_type=np.int32, to="INT32", oracle=[x.astype(np.int32)])
    yield Case("Cast-1-unknown", "Cast", ["x"], {"x": x}, opset=1, out_type=np.int32, to="INT33", refused="E0215")
    yield Case("Split-1", "Split", ["x", "s"], {"x": x}, {"s": np.array([1, 2], np.int64)}, opset=1, outputs=2, axis=1, oracle=[x[:, :1], x[:, 1:]])
    yield Case("Split-1-attribute", "Split", ["x"], {"x": x}, opset=1, outputs=2, axis=2, split=[3, 1], oracle=[x[:, :, :3], x[:, :, 3:]])
    image = normal(1, 2, 3, 4)
    yield Case("Upsample-1", "Upsample", ["x"], {"x": image}, opset=1, height_scale=2.0, width_scale=3.0, oracle=[image.repeat(2, 2).repeat(3, 3)])
    statistics = {"s": normal(2), "b": normal(2), "m": normal(2), "v": np.abs(normal(2)) + np.float32(1)}
    s, b, m, v = (a.reshape(2, 1, 1) for a in statistics.values())
    for opset in (1, 5, 6):
        yield Case(f"BatchNormalization-{opset}", "BatchNormalization", ["x", *statistics], {"x": image}, statistics, opset=opset, is_test=1, epsilon=1e-3,
                   oracle=[((image - m) / np.sqrt(v + 1e-3) * s + b).astype(np.float32)])
    each = {k: np.abs(normal(2, 3, 4)) + np.float32(1) for k in "sbmv"}
    for opset in (7, 8):
        yield Case(f"BatchNormalization-{opset}-each", "BatchNormalization", ["x", *each], {"x": normal(3, 2, 3, 4)}, each, opset=opset, spatial=0)
    yield Case("InstanceNormalization-1", "InstanceNormalization", ["x", "s", "b"], {"x": image}, {"s": statistics["s"], "b": statistics["b"]}, opset=1,
               oracle=[((image - image.mean((2, 3), keepdims=True)) / np.sqrt(image.var((2, 3), keepdims=True) + 1e-5) * s + b).astype(np.float32)])


def many_inputs():
    parts = {"a": normal(2, 1, 4), "b": normal(3, 1), "c": normal(4)}
    for op in ("Max", "Min", "Sum", "Mean"):
        yield Case(f"{op}-three", op, ["a", "b", "c"], parts)
        yield Case(f"{op}-one", op, ["a"], {"a": parts["a"]})
        yield Case(f"{op}-6", op, ["a", "b"], {"a": normal(2, 3), "b": normal(2, 3)}, opset=6)
        yield Case(f"{op}-nan", op, ["a", "b"], pairs(SPECIAL))
    choose = {"c": whole(np.bool_, 0, 2, 2, 1, 4), "a": normal(3, 1), "b": normal(4)}
    yield Case("Where-broadcast", "Where", ["c", "a", "b"], choose)
    yield Case("Where-scalar", "Where", ["c", "a", "b"], {**choose, "b": np.float32(3)})
    for dtype in (np.int64, np.uint8, np.float64, np.int32):
        yield Case(f"Where-{np.dtype(dtype).name}", "Where", ["c", "a", "b"],
                   {"c": choose["c"], "a": whole(dtype, 0, 9, 3, 1), "b": whole(dtype, 0, 9, 4)}, out_type=dtype)
    for slope in ((1,), (3, 1, 1), (1, 5), (2, 3, 4, 5), ()):
        yield Case(f"PRelu-{'x'.join(map(str, slope))}", "PRelu", ["x", "s"],
                   {"x": normal(2, 3, 4, 5), "s": np.asarray(RNG.random(slope), np.float32)})
    yield Case("PRelu-6", "PRelu", ["x", "s"], {"x": SPECIAL.reshape(1, 3, 2, 2), "s": normal(3) * 0 + 2}, opset=6,
               oracle=[np.where(SPECIAL < 0, 2 * SPECIAL, SPECIAL).reshape(1, 3, 2, 2)])
    for opset in (1, 6):
        yield Case(f"LeakyRelu-{opset}", "LeakyRelu", ["x"], {"x": SPECIAL}, opset=opset, alpha=0.2, oracle=[np.where(SPECIAL < 0, SPECIAL * np.float32(0.2), SPECIAL)])
    x = {"x": 3 * normal(4, 5)}
    yield Case("Selu-attributes", "Selu", ["x"], x, alpha=1.2, gamma=0.9)
    yield Case("Elu-alpha", "Elu", ["x"], x, alpha=0.3)
    yield Case("Celu-alpha", "Celu", ["x"], x, alpha=2.5)
    yield Case("ThresholdedRelu-alpha", "ThresholdedRelu", ["x"], x, alpha=-0.5)
    yield Case("HardSigmoid-attributes", "HardSigmoid", ["x"], x, alpha=0.4, beta=0.1)
    yield Case("Shrink-bias", "Shrink", ["x"], x, lambd=1.0, bias=0.3)
    yield Case("Shrink-int", "Shrink", ["x"], {"x": whole(np.int32, -5, 6, 9)}, out_type=np.int32, lambd=1.5, bias=1.0)
    for mode in ("none", "tanh"):
        yield Case(f"Gelu-{mode}", "Gelu", ["x"], {"x": SPECIAL}, opset=20, approximate=mode)
    yield Case("Mish-special", "Mish", ["x"], {"x": np.array([-100, -20, -1, 0, 1, 20, 100, INF, NAN], np.float32)}, opset=18)


def cases():
    for group in (special_values, empty_and_scalar, integers, clip_versions, casts, legacy_broadcast, before_opset_6, many_inputs):
        yield from group()
