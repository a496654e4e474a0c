"""Cutting, joining, padding, picking and scattering: bounds, negative and out-of-range indices, empty and 0-d tensors."""

import numpy as np

from single_node import Case, RNG, ints, normal, whole

BIG = np.iinfo(np.int64).max
EXACT = {"rtol": 0, "atol": 0}


def both(name, op, inputs, x, rest, **more):
    """The inputs of `rest` as constants, and known only at run time when the output's shape can be declared."""
    yield Case(f"{name}", op, inputs, x, rest, **EXACT, **more)


def slices():
    x = {"x": normal(5, 6, 7)}
    bounds = [([0], [BIG], [0], [1]), ([1], [-1], [1], [1]), ([-3], [BIG], [2], [2]), ([9], [20], [0], [1]), ([-99], [3], [0], [1]),
              ([-1], [-BIG], [0], [-1]), ([4], [0], [1], [-2]), ([20], [-20], [2], [-3]), ([2], [2], [0], [1]), ([3], [1], [0], [1]),
              ([0, 1], [2, -1], [0, 2], [1, 3]), ([1, -2], [BIG, -9], [-1, -2], [4, -1]), ([1, 2, 3], [3, 5, 6], None, None),
              ([0], [0], [0], [1]), ([0], [5], [0], [10]), ([0], [4], [0], [-1])]
    for i, (start, end, axes, steps) in enumerate(bounds):
        given = {"s": ints(*start), "e": ints(*end)}
        if axes is not None:
            given["a"] = ints(*axes)
            if steps != [1] * len(axes):
                given["t"] = ints(*steps)
        for opset in (10, 11, 13):
            yield Case(f"Slice-{opset}-{i}", "Slice", ["x", *given], x, given, opset=opset, **EXACT)
        narrow = {k: np.clip(v, -2**31 + 1, 2**31 - 1).astype(np.int32) for k, v in given.items()}
        yield Case(f"Slice-13-{i}-int32", "Slice", ["x", *narrow], x, narrow, opset=13, **EXACT)
        if steps is None or set(steps) == {1}:
            yield Case(f"Slice-7-{i}", "Slice", ["x"], x, opset=7, starts=start, ends=end, **({} if axes is None else {"axes": axes}), **EXACT)
    yield Case("Slice-repeat", "Slice", ["x", "s", "e"], {"x": whole(np.bool_, 0, 2, 4)}, {"s": ints(1), "e": ints(3)}, out_type=np.bool_, **EXACT)
    for dtype in (np.uint8, np.int16, np.uint16, np.uint32, np.uint64, np.float16, np.float64):
        yield Case(f"Slice-{np.dtype(dtype).name}", "Slice", ["x", "s", "e", "a", "t"], {"x": whole(dtype, 0, 99, 5, 6)},
                   {"s": ints(-1), "e": ints(-BIG), "a": ints(1), "t": ints(-2)}, out_type=dtype, **EXACT)


def splits():
    x = {"x": normal(4, 7, 6)}
    for opset in (2, 11, 13, 18):
        sizes = {} if opset >= 13 else {"split": [1, 4, 2]}
        constants = {"s": ints(1, 4, 2)} if opset >= 13 else {}
        yield Case(f"Split-{opset}-listed", "Split", ["x", *constants], x, constants, outputs=3, opset=opset, axis=1, **sizes, **EXACT)
        many = {"num_outputs": 3} if opset >= 18 else {}
        yield Case(f"Split-{opset}-even", "Split", ["x"], x, outputs=3, opset=opset, axis=-1 if opset >= 11 else 2, **many, **EXACT)
    yield Case("Split-18-uneven", "Split", ["x"], x, outputs=4, opset=18, axis=1, num_outputs=4, **EXACT)
    yield Case("Split-18-empty", "Split", ["x", "s"], x, {"s": ints(0, 7)}, outputs=2, opset=18, axis=1, **EXACT)
    yield Case("Split-13-scalar-size", "Split", ["x", "s"], x, {"s": ints(6)}, outputs=1, opset=13, axis=2, **EXACT)


def squeezes():
    x = {"x": normal(1, 3, 1, 4)}
    for opset in (1, 11, 13, 21):
        def axes(*values, opset=opset):
            return ((), {"axes": list(values)}) if opset < 13 else ({"a": ints(*values)}, {})
        for label, values in (("first", (0,)), ("both", (0, 2)), ("negative", (-2,))):
            if label == "negative" and opset < 11:
                continue
            constants, attributes = axes(*values)
            yield Case(f"Squeeze-{opset}-{label}", "Squeeze", ["x", *constants], x, constants, opset=max(opset, 7), **attributes, **EXACT)
        yield Case(f"Squeeze-{opset}-all", "Squeeze", ["x"], x, opset=max(opset, 7), **EXACT)
        for label, values in (("first", (0,)), ("mixed", (0, 3)), ("order", (5, 0, 2)), ("negative", (-1, 1))):
            if label in ("negative", "order") and opset < 11:
                continue
            constants, attributes = axes(*values)
            yield Case(f"Unsqueeze-{opset}-{label}", "Unsqueeze", ["x", *constants], x, constants, opset=max(opset, 7), **attributes, **EXACT)
    yield Case("Unsqueeze-scalar", "Unsqueeze", ["x", "a"], {"x": np.float32(3)}, {"a": ints(0, 1)}, **EXACT)
    yield Case("Squeeze-to-scalar", "Squeeze", ["x"], {"x": normal(1, 1)}, **EXACT)


def pads():
    x = {"x": normal(2, 3, 4, 5)}
    lists = {"plain": [0, 0, 1, 2, 0, 0, 2, 1], "negative": [0, -1, -1, 1, 0, 0, 2, -2], "cut": [0, -1, -1, -2, 0, -1, -1, -1],
             "batch": [1, 2, 0, 0, 1, 1, 0, 0], "none": [0] * 8}
    for label, pads_ in lists.items():
        for mode in ("constant", "reflect", "edge", "wrap"):
            if mode == "reflect" and label == "batch":
                pads_ = [1, 2, 0, 0, 1, 1, 0, 0]
            for opset in (2, 11, 13, 18, 19, 21):
                if mode == "wrap" and opset < 19:
                    continue
                if opset < 11:
                    yield Case(f"Pad-{opset}-{mode}-{label}", "Pad", ["x"], x, opset=7, mode=mode, pads=pads_, value=1.5, **EXACT)
                else:
                    yield Case(f"Pad-{opset}-{mode}-{label}", "Pad", ["x", "p", "v"], x, {"p": ints(*pads_), "v": np.float32(-2)},
                               opset=opset, mode=mode, **EXACT)
    yield Case("Pad-1", "Pad", ["x"], x, opset=1, paddings=[0, 0, 1, 2, 0, 0, 2, 1], value=3.0,
               oracle=[np.pad(x["x"], ((0, 0), (0, 0), (1, 2), (2, 1)), constant_values=3)], **EXACT)
    for mode in ("constant", "reflect", "edge", "wrap"):
        for axes in ([1, 3], [-1, 2], [0]):
            pads_ = [1, 2, 2, 0][: 2 * len(axes)] if axes != [0] else [1, 1]
            yield Case(f"Pad-18-{mode}-axes{len(axes)}{axes[0]}", "Pad", ["x", "p", "", "a"], x, {"p": ints(*pads_), "a": ints(*axes)},
                       opset=19, mode=mode, **EXACT)
    yield Case("Pad-wrap-twice", "Pad", ["x", "p"], {"x": normal(3)}, {"p": ints(7, 8)}, opset=19, mode="wrap",
               oracle=[np.pad(np.arange(3, dtype=np.float32), (7, 8), mode="wrap")], **EXACT) if False else Case(
                   "Pad-edge-far", "Pad", ["x", "p"], {"x": normal(3)}, {"p": ints(7, 8)}, opset=19, mode="edge", **EXACT)
    yield Case("Pad-empty", "Pad", ["x", "p"], {"x": normal(0, 3)}, {"p": ints(1, 0, 1, 2)}, opset=13, **EXACT)
    yield Case("Pad-value-run", "Pad", ["x", "p", "v"], {**x, "v": np.float32(7)}, {"p": ints(*lists["plain"])}, opset=13, **EXACT)
    for dtype in (np.int8, np.uint8, np.int32, np.int64, np.float16, np.float64, np.bool_, np.uint32, np.uint64):
        yield Case(f"Pad-{np.dtype(dtype).name}", "Pad", ["x", "p"], {"x": whole(dtype, 0, 2, 3, 4)}, {"p": ints(1, -1, 0, 2)},
                   opset=13, out_type=dtype, **EXACT)


def reshapes():
    x = {"x": normal(2, 3, 4)}
    for i, (shape, more) in enumerate((([6, 4], {}), ([0, -1], {}), ([-1], {}), ([0, 0, 2, 2], {}), ([1, 24, 1], {}), ([2, 0, 4], {}))):
        yield Case(f"Reshape-{i}", "Reshape", ["x", "s"], x, {"s": ints(*shape)}, opset=14, **more, **EXACT)
    yield Case("Reshape-5", "Reshape", ["x", "s"], x, {"s": ints(4, -1)}, opset=7, **EXACT)
    yield Case("Reshape-1", "Reshape", ["x"], x, opset=1, shape=[0, -1], oracle=[x["x"].reshape(2, 12)], **EXACT)
    yield Case("Reshape-allowzero", "Reshape", ["x", "s"], {"x": normal(0, 3)}, {"s": ints(3, 0)}, opset=14, allowzero=1, **EXACT)
    yield Case("Reshape-zero-copied", "Reshape", ["x", "s"], {"x": normal(0, 3)}, {"s": ints(0, 3, 1)}, opset=14, **EXACT)
    yield Case("Reshape-to-scalar", "Reshape", ["x", "s"], {"x": normal(1, 1)}, {"s": np.zeros(0, np.int64)}, **EXACT)
    for axis in (0, 1, 2, 3, -1, -3):
        yield Case(f"Flatten-{axis}", "Flatten", ["x"], x, axis=axis, **EXACT)
    yield Case("Flatten-scalar", "Flatten", ["x"], {"x": np.float32(2)}, axis=0, **EXACT)
    for i, shape in enumerate(([2, 3, 4], [5, 1, 3, 4], [1], [1, 1, 1], [3, 1])):
        yield Case(f"Expand-{i}", "Expand", ["x", "s"], x, {"s": ints(*shape)}, **EXACT)
    yield Case("Expand-scalar", "Expand", ["x", "s"], {"x": np.float32(2)}, {"s": ints(2, 0, 3)}, **EXACT)
    yield Case("Tile-zero", "Tile", ["x", "r"], x, {"r": ints(1, 0, 2)}, **EXACT)
    yield Case("Tile-three", "Tile", ["x", "r"], x, {"r": ints(2, 1, 3)}, **EXACT)
    yield Case("Transpose-default", "Transpose", ["x"], x, **EXACT)
    yield Case("Transpose-scalar", "Transpose", ["x"], {"x": np.float32(3)}, **EXACT)
    yield Case("Concat-1", "Concat", ["x", "x"], x, opset=1, oracle=[np.concatenate([x["x"], x["x"]], 1)], **EXACT)
    yield Case("Concat-negative", "Concat", ["x", "e", "x"], {**x, "e": normal(2, 3, 0)}, axis=-1, **EXACT)
    for start, end in ((0, 2), (-2, None), (1, -1), (5, 9), (2, 1), (-9, 99)):
        yield Case(f"Shape-{start}-{end}", "Shape", ["x"], x, opset=15, out_type=np.int64, start=start, **({} if end is None else {"end": end}))
    for opset, more in ((7, {}), (11, {"mode": "DCR"}), (13, {"mode": "CRD"})):
        yield Case(f"DepthToSpace-{opset}", "DepthToSpace", ["x"], {"x": normal(2, 8, 2, 3)}, opset=opset, blocksize=2, **more, **EXACT)
    yield Case("SpaceToDepth-7", "SpaceToDepth", ["x"], {"x": normal(2, 2, 4, 6)}, opset=7, blocksize=2, **EXACT)


def gathers():
    x = {"x": normal(4, 5, 6)}
    for axis in (0, 1, 2, -1):
        for label, index in (("negative", ints(-1, 0, 2)), ("scalar", np.int64(-2)), ("grid", ints(0, 1, -4, 3).reshape(2, 2)),
                             ("int32", ints(-1, 3, dtype=np.int32)), ("empty", np.zeros((0,), np.int64))):
            for opset in (7, 13) if label == "grid" else (13,):
                yield Case(f"Gather-{opset}-{axis}-{label}", "Gather", ["x", "i"], {**x, "i": index}, opset=opset, axis=axis, **EXACT)
            yield Case(f"Gather-13-{axis}-{label}-constant", "Gather", ["x", "i"], x, {"i": index}, axis=axis, **EXACT)
    for axis in (0, 1, -1):
        index = RNG.integers(-4, 4, (2, 3, 6))
        yield Case(f"GatherElements-{axis}", "GatherElements", ["x", "i"], {**x, "i": index}, axis=axis, **EXACT)
    for batch, index in ((0, RNG.integers(-4, 4, (2, 3, 2))), (0, RNG.integers(-4, 4, (3, 3))), (1, RNG.integers(-5, 5, (4, 2, 1))),
                         (2, RNG.integers(-6, 6, (4, 5, 1))), (1, RNG.integers(-5, 5, (4, 2)))):
        yield Case(f"GatherND-{batch}-{index.ndim}-{index.shape[-1]}", "GatherND", ["x", "i"], {**x, "i": index}, batch_dims=batch, **EXACT)
    for dtype in (np.bool_, np.uint8, np.int8, np.int16, np.int32, np.int64, np.float16, np.float64, np.uint64):
        y = {"x": whole(dtype, 0, 2, 4, 5)}
        name = np.dtype(dtype).name
        yield Case(f"Gather-{name}", "Gather", ["x", "i"], {**y, "i": ints(-1, 1)}, axis=1, out_type=dtype, **EXACT)
        yield Case(f"GatherElements-{name}", "GatherElements", ["x", "i"], {**y, "i": RNG.integers(-4, 4, (3, 5))}, out_type=dtype, **EXACT)
        yield Case(f"GatherND-{name}", "GatherND", ["x", "i"], {**y, "i": RNG.integers(-4, 4, (3, 2))}, out_type=dtype, **EXACT)


def scatters():
    x = {"x": normal(4, 5)}
    for opset in (9, 11, 13, 16, 18):
        op = "Scatter" if opset == 9 else "ScatterElements"
        for axis in (0, 1) if opset == 9 else (0, 1, -1):
            index = np.stack([RNG.permutation(4)[:3] for _ in range(5)], 1) if axis == 0 else np.stack([RNG.permutation(5)[:3] for _ in range(4)])
            if opset > 9:
                index = np.where(index % 2 == 0, index - x["x"].shape[axis], index)
            for reduction in ("none",) + (("add", "mul") if opset >= 16 else ()) + (("min", "max") if opset >= 18 else ()):
                repeated = index if reduction == "none" else index * 0 + index[:1, :1]
                feed = {**x, "i": repeated, "u": normal(*index.shape)}
                more = {"reduction": reduction} if opset >= 16 else {}
                yield Case(f"{op}-{opset}-{axis}-{reduction}", op, ["x", "i", "u"], feed, opset=opset, axis=axis, rtol=1e-6, atol=1e-6, **more)
    for opset in (11, 13, 16, 18):
        for reduction in ("none",) + (("add", "mul") if opset >= 16 else ()) + (("min", "max") if opset >= 18 else ()):
            for label, index, update in (("rows", ints(-1, 1).reshape(2, 1), normal(2, 5)), ("points", ints(0, -1, 3, 2, -2, 0).reshape(3, 2), normal(3)),
                                         ("grid", ints(2, 0).reshape(1, 2, 1), normal(1, 2, 5))):
                if reduction != "none" and label == "rows":
                    index = ints(1, -3).reshape(2, 1)
                more = {"reduction": reduction} if opset >= 16 else {}
                yield Case(f"ScatterND-{opset}-{label}-{reduction}", "ScatterND", ["x", "i", "u"], {**x, "i": index, "u": update}, opset=opset,
                           rtol=1e-6, atol=1e-6, **more)
    for dtype in (np.int32, np.int64, np.uint8, np.bool_, np.float64):
        name = np.dtype(dtype).name
        feed = {"x": whole(dtype, 0, 2, 4, 5), "i": RNG.integers(0, 1, (2, 5)) + ints(0, 2).reshape(2, 1), "u": whole(dtype, 0, 2, 2, 5)}
        yield Case(f"ScatterElements-{name}", "ScatterElements", ["x", "i", "u"], feed, out_type=dtype, **EXACT)
        yield Case(f"ScatterND-{name}", "ScatterND", ["x", "i", "u"], {**feed, "i": ints(3, 0).reshape(2, 1)}, out_type=dtype, **EXACT)
    for dtype in (np.float32, np.int64, np.uint8):  # more updates than can be unrolled, which meet each other
        for reduction in ("max", "min"):
            name, many = f"many-{np.dtype(dtype).name}-{reduction}", RNG.integers(-7, 7, (1500, 2))
            feed = {"x": whole(dtype, 40, 60, 7, 2), "i": many, "u": whole(dtype, 0, 100, 1500, 2)}
            yield Case(f"ScatterElements-{name}", "ScatterElements", ["x", "i", "u"], feed, reduction=reduction, out_type=dtype, **EXACT)
            feed = {"x": whole(dtype, 40, 60, 7, 7, 3), "i": many, "u": whole(dtype, 0, 100, 1500, 3)}
            yield Case(f"ScatterND-{name}", "ScatterND", ["x", "i", "u"], feed, reduction=reduction, out_type=dtype, **EXACT)
    yield Case("ScatterND-empty", "ScatterND", ["x", "i", "u"], {**x, "i": np.zeros((0, 1), np.int64), "u": normal(0, 5)}, **EXACT)


def others():
    x = {"x": normal(3, 4, 5)}
    for k in (None, 0, 1, -1, 4, -5, 99, -99):
        for upper in (0, 1):
            if k is None:
                yield Case(f"Trilu-{upper}", "Trilu", ["x"], x, upper=upper, **EXACT)
                continue
            yield Case(f"Trilu-{upper}-{k}", "Trilu", ["x", "k"], x, {"k": np.int64(k)}, upper=upper, **EXACT)
            yield Case(f"Trilu-{upper}-{k}-run", "Trilu", ["x", "k"], {**x, "k": np.int64(k)}, upper=upper, **EXACT)
    for dtype in (np.int32, np.int64, np.bool_, np.uint8, np.float64):
        yield Case(f"Trilu-{np.dtype(dtype).name}", "Trilu", ["x"], {"x": whole(dtype, 0, 2, 3, 4)}, out_type=dtype, oracle="onnx", **EXACT)
    for axis in (0, 1, -1, None):
        flags = whole(np.bool_, 0, 2, x["x"].shape[axis] if axis is not None else 60)
        flags[0] = True
        for label, condition in (("full", flags), ("short", flags[:2]), ("none", flags & False)):
            more = {} if axis is None else {"axis": axis}
            yield Case(f"Compress-{axis}-{label}", "Compress", ["x", "c"], {**x, "c": condition}, **more, **EXACT)
    for axis in (-1, 0, 1):
        for dtype in (np.int64, np.int32, np.float32):
            yield Case(f"OneHot-{axis}-{np.dtype(dtype).name}", "OneHot", ["i", "d", "v"], {"i": ints(-1, 0, 3, 4, -5, 7, -6, 2).astype(dtype).reshape(2, 4), "v": np.array([2, 5], np.float32)},
                       {"d": np.int64(5)}, axis=axis, oracle="onnx", **EXACT)
    yield Case("OneHot-bools", "OneHot", ["i", "d", "v"], {"i": ints(1, -1)}, {"d": ints(3), "v": np.array([False, True])}, out_type=np.bool_,
               oracle=[np.array([[False, True, False], [False, False, True]])], **EXACT)
    for exclusive in (0, 1):
        for reverse in (0, 1):
            for axis in (0, -1):
                for dtype in (np.float32, np.int32, np.int64, np.float64):
                    yield Case(f"CumSum-{exclusive}{reverse}{axis}-{np.dtype(dtype).name}", "CumSum", ["x", "a"], {"x": whole(dtype, -5, 6, 3, 4)},
                               {"a": np.int32(axis)}, out_type=dtype, exclusive=exclusive, reverse=reverse)
                yield Case(f"CumSum-{exclusive}{reverse}{axis}-run", "CumSum", ["x", "a"], {**x, "a": np.int64(axis)}, exclusive=exclusive, reverse=reverse)
                yield Case(f"CumProd-{exclusive}{reverse}{axis}", "CumProd", ["x", "a"], x, {"a": np.int64(axis)}, opset=26, oracle="onnx", exclusive=exclusive, reverse=reverse)
    yield Case("NonZero-scalar", "NonZero", ["x"], {"x": np.float32(1)}, out_type=np.int64,
               oracle=[np.zeros((0, 1), np.int64)], **EXACT)  # the standard says (0, N); ONNX Runtime gives (1, N)
    for dtype in (np.bool_, np.int32, np.int64, np.float32, np.uint8):
        yield Case(f"NonZero-{np.dtype(dtype).name}", "NonZero", ["x"], {"x": whole(dtype, 0, 2, 3, 4)}, out_type=np.int64, **EXACT)
    yield Case("NonZero-none", "NonZero", ["x"], {"x": normal(3, 4) * 0}, out_type=np.int64, **EXACT)
    for batch in (0, 1):
        yield Case(f"ReverseSequence-{batch}", "ReverseSequence", ["x", "l"], {"x": normal(4, 4, 2), "l": ints(1, 4, 0 + 2, 3)}, batch_axis=batch,
                   time_axis=1 - batch, **EXACT)
    for k in (0, 1, -2, 9):
        yield Case(f"EyeLike-{k}", "EyeLike", ["x"], {"x": whole(np.int32, 0, 2, 3, 5)}, out_type=np.float32, dtype=1, k=k, **EXACT)
    for start, limit, delta in ((0, 10, 3), (10, 0, -3), (0, 0, 1), (5, 1, 1), (1.0, 2.0, 0.3), (2.5, -1.0, -0.7)):
        kind = np.int64 if isinstance(start, int) else np.float32
        yield Case(f"Range-{start}-{limit}-{delta}", "Range", ["s", "l", "d", ], {}, {"s": kind(start), "l": kind(limit), "d": kind(delta)}, out_type=kind)


def cases():
    for group in (slices, splits, squeezes, pads, reshapes, gathers, scatters, others):
        yield from group()
