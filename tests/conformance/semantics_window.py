"""Windows and sampling: pooling, convolution, resizing, grids, regions; normalization over planes."""

import numpy as np
from onnx import helper

from single_node import Case, RNG, ints, normal

EXACT = {"rtol": 0, "atol": 0}
PLANES = {1: (2, 3, 11), 2: (2, 3, 9, 8), 3: (1, 2, 6, 7, 5)}


def windows(rank):
    """Attributes of pools: kernels, strides, pads and roundings that meet the edges."""
    k = [3, 2, 2][:rank]
    yield "plain", {"kernel_shape": k}
    yield "strided", {"kernel_shape": k, "strides": [2, 3, 2][:rank]}
    yield "padded", {"kernel_shape": k, "strides": [2] * rank, "pads": [1] * rank + [1, 0, 1][:rank]}
    yield "upper", {"kernel_shape": k, "strides": [2] * rank, "auto_pad": "SAME_UPPER"}
    yield "lower", {"kernel_shape": k, "strides": [2] * rank, "auto_pad": "SAME_LOWER"}
    yield "valid", {"kernel_shape": k, "strides": [2] * rank, "auto_pad": "VALID"}


def max_pools():
    for rank, shape in PLANES.items():
        x = {"x": normal(*shape)}
        for label, window in windows(rank):
            for opset in (7, 8, 10, 11, 12, 22):
                yield Case(f"MaxPool-{opset}-{rank}d-{label}", "MaxPool", ["x"], x, opset=opset, **window, **EXACT)
            for order in (0, 1):
                yield Case(f"MaxPool-12-{rank}d-{label}-indices{order}", "MaxPool", ["x"], x, opset=12, outputs=2, out_type=[np.float32, np.int64],
                           storage_order=order, **window, **EXACT)
        more = {"kernel_shape": [2] * rank, "strides": [2] * rank, "ceil_mode": 1}
        for opset in (10, 11, 12, 22):
            yield Case(f"MaxPool-{opset}-{rank}d-ceil", "MaxPool", ["x"], x, opset=opset, **more, **EXACT)
            yield Case(f"MaxPool-{opset}-{rank}d-dilated", "MaxPool", ["x"], x, opset=opset, kernel_shape=[2] * rank, dilations=[2, 3, 2][:rank],
                       pads=[1] * 2 * rank, **EXACT)
        yield Case(f"MaxPool-{rank}d-ceil-indices", "MaxPool", ["x"], x, outputs=2, out_type=[np.float32, np.int64], **more, pads=[1] * 2 * rank, **EXACT)
        yield Case(f"MaxPool-{rank}d-dilated-indices", "MaxPool", ["x"], x, outputs=2, out_type=[np.float32, np.int64],
                   kernel_shape=[2] * rank, dilations=[2] * rank, **EXACT)
    for where, kernel in (("planes", [1, 2, 3]), ("depth", [2, 1, 1]), ("nothing", [1, 1, 1])):  # pools that leave one of the two steps out
        x, window = {"x": normal(*PLANES[3])}, {"kernel_shape": kernel, "strides": kernel}
        yield Case(f"MaxPool-3d-in-{where}", "MaxPool", ["x"], x, **window, **EXACT)
        yield Case(f"MaxPool-3d-in-{where}-indices", "MaxPool", ["x"], x, outputs=2, out_type=[np.float32, np.int64], **window, **EXACT)
    for dtype in (np.int8, np.uint8):
        yield Case(f"MaxPool-{np.dtype(dtype).name}", "MaxPool", ["x"], {"x": RNG.integers(0, 100, (1, 2, 5, 6)).astype(dtype)}, out_type=dtype,
                   opset=12, kernel_shape=[2, 3], pads=[1, 1, 0, 0], **EXACT)
    yield Case("MaxPool-double", "MaxPool", ["x"], {"x": normal(1, 2, 5, 6, dtype=np.float64)}, out_type=np.float64, kernel_shape=[2, 2], **EXACT)


def average_pools():
    for rank, shape in PLANES.items():
        x = {"x": normal(*shape)}
        for label, window in windows(rank):
            for opset in (7, 10, 11, 19, 22):
                for include in (0, 1):
                    yield Case(f"AveragePool-{opset}-{rank}d-{label}-{include}", "AveragePool", ["x"], x, opset=opset, count_include_pad=include, **window)
        for opset in (10, 11, 19, 22):
            for include in (0, 1):
                for pads in ([0] * 2 * rank, [1] * 2 * rank, [0] * rank + [1] * rank):
                    yield Case(f"AveragePool-{opset}-{rank}d-ceil-{include}-{sum(pads)}", "AveragePool", ["x"], x, opset=opset, count_include_pad=include,
                               kernel_shape=[3] * rank, strides=[2] * rank, pads=pads, ceil_mode=1, oracle="ort" if opset >= 19 else "ort")
        for include in (0, 1):
            yield Case(f"AveragePool-19-{rank}d-dilated-{include}", "AveragePool", ["x"], x, opset=19, count_include_pad=include, kernel_shape=[2] * rank,
                       dilations=[2, 3, 2][:rank], pads=[1] * 2 * rank)
        for p in (1, 2, 3):
            yield Case(f"LpPool-11-{rank}d-p{p}", "LpPool", ["x"], x, opset=11, p=p, kernel_shape=[2] * rank, strides=[2] * rank, pads=[1] * rank + [0] * rank)
        for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
            yield Case(f"{op}-{rank}d", op, ["x"], x)


def convolutions():
    for rank, shape in PLANES.items():
        channels = shape[1]
        x = {"x": normal(*shape)}
        weights = {"w": normal(4, channels, *[3, 2, 2][:rank]), "b": normal(4)}
        for label, window in windows(rank):
            window = dict(window, kernel_shape=[3, 2, 2][:rank])
            for opset in (7, 11, 22):
                yield Case(f"Conv-{opset}-{rank}d-{label}", "Conv", ["x", "w", "b"], x, weights, opset=opset, **window)
        yield Case(f"Conv-{rank}d-run", "Conv", ["x", "w"], {**x, "w": weights["w"]}, dilations=[2] * rank, pads=[2] * 2 * rank)
        turned = {"w": normal(channels, 4, *[3, 2, 2][:rank]), "b": normal(4)}
        for label, window in windows(rank):
            window = dict(window, kernel_shape=[3, 2, 2][:rank])
            for opset in (7, 11, 22):
                yield Case(f"ConvTranspose-{opset}-{rank}d-{label}", "ConvTranspose", ["x", "w", "b"], x, turned, opset=opset, **window)
        yield Case(f"ConvTranspose-{rank}d-output-padding", "ConvTranspose", ["x", "w"], x, {"w": turned["w"]}, strides=[2] * rank, output_padding=[1] * rank)
        yield Case(f"ConvTranspose-{rank}d-output-shape", "ConvTranspose", ["x", "w"], x, {"w": turned["w"]}, strides=[2] * rank,
                   output_shape=[2 * n + 1 for n in shape[2:]])
        yield Case(f"ConvTranspose-{rank}d-dilated", "ConvTranspose", ["x", "w"], x, {"w": turned["w"]}, dilations=[2] * rank, pads=[1] * rank + [0] * rank)
    yield Case("Conv-double", "Conv", ["x", "w"], {"x": normal(1, 2, 5, 5, dtype=np.float64)}, {"w": normal(2, 2, 3, 3, dtype=np.float64)},
               out_type=np.float64, oracle="onnx")
    for group in (1, 3):
        yield Case(f"DeformConv-{group}", "DeformConv", ["x", "w", "o", "b", "m"],
                   {"x": normal(1, 6, 5, 6), "o": normal(1, 2 * 4 * 2, 4, 5), "m": np.abs(normal(1, 4 * 2, 4, 5))},
                   {"w": normal(3, 6 // group, 2, 2), "b": normal(3)}, opset=19, group=group, offset_group=2, oracle="onnx" if group == 3 else "onnx")


def gathered():
    """Convolutions beside something that takes `rest` times the memory of x: their windows fit below it at once, in bands of rows, or not at all."""
    same = {"pads": [1, 1, 1, 1]}
    plain = {
        "same": ((1, 8, 20, 12), (8, 8, 3, 3), same),
        "samples": ((3, 8, 14, 10), (8, 8, 3, 3), same),
        "more-channels": ((1, 4, 20, 12), (12, 4, 3, 3), same),
        "less-channels": ((2, 12, 20, 12), (5, 12, 3, 3), same),
        "less-channels-line": ((1, 12, 200), (7, 12, 5), {"pads": [2, 2]}),
        "strided": ((1, 6, 21, 17), (8, 6, 3, 3), {"strides": [2, 2], "pads": [1, 0, 1, 2]}),
        "strided-over-windows": ((2, 6, 24, 17), (8, 6, 2, 3), {"strides": [3, 2]}),
        "dilated": ((1, 6, 24, 16), (6, 6, 3, 3), {"dilations": [3, 2], "pads": [3, 2, 3, 2]}),
        "wide-pads": ((1, 6, 18, 12), (8, 6, 3, 3), {"pads": [4, 0, 3, 1]}),
        "groups": ((1, 8, 20, 16), (12, 4, 3, 3), {"group": 2, **same}),
        "depthwise": ((2, 16, 20, 16), (16, 1, 3, 3), {"group": 16, **same}),
        "one-by-one": ((2, 16, 24, 12), (16, 16, 1, 1), {}),
        "line": ((1, 12, 200), (12, 12, 5), {"pads": [2, 2]}),
        "causal": ((2, 12, 120), (12, 12, 3), {"dilations": [4], "pads": [8, 0]}),
    }
    transposed = {
        "twice": ((1, 12, 12, 10), (12, 8, 2, 2), {"strides": [2, 2]}),
        "four-taps": ((1, 12, 12, 10), (12, 6, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
        "three-taps": ((2, 8, 12, 10), (8, 8, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
        "uneven": ((1, 8, 12, 10), (8, 6, 3, 5), {"strides": [1, 3], "pads": [2, 1, 0, 1]}),
        "stride-one": ((1, 8, 16, 12), (8, 8, 3, 3), {"pads": [1, 1, 1, 1]}),
        "line": ((2, 12, 40), (12, 8, 8), {"strides": [4], "pads": [2, 2]}),
        "not-a-multiple": ((1, 8, 12, 10), (8, 8, 3, 3), {"strides": [2, 2]}),
    }
    for op, table in (("Conv", plain), ("ConvTranspose", transposed)):
        for label, (shape, weight, attributes) in table.items():
            outputs = weight[0] if op == "Conv" else weight[1]
            for rest in (2, 3, 4, 6, 16):
                nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node(op, ["r", "w", "b"], ["c"], **attributes),
                         helper.make_node("ReduceMax", ["c"], ["y0"], axes=[1]),
                         helper.make_node("Expand", ["s", "n"], ["large"]), helper.make_node("ReduceMax", ["large"], ["y1"])]
                yield Case(f"gathered-{op}-{label}-{rest}", op, [], {"x": normal(*shape), "s": normal(1)},
                           {"w": normal(*weight), "b": normal(outputs), "n": ints(int(rest * np.prod(shape)))}, outputs=2, nodes=nodes)


COORDINATES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")


def resizes():
    x = {"x": normal(1, 2, 5, 6)}
    scales = {"up": [1, 1, 1.7, 2.5], "down": [1, 1, 0.6, 0.45], "twice": [1, 1, 2, 2], "half": [1, 1, 0.5, 0.5], "mixed": [1, 1, 0.7, 3]}
    for label, s in scales.items():
        given = {"s": np.array(s, np.float32)}
        for mode in ("nearest", "linear"):
            yield Case(f"Resize-10-{mode}-{label}", "Resize", ["x", "s"], x, given, opset=10, mode=mode)
            if label in ("up", "twice"):
                yield Case(f"Upsample-9-{mode}-{label}", "Upsample", ["x", "s"], x, given, opset=9, mode=mode)
                yield Case(f"Upsample-7-{mode}-{label}", "Upsample", ["x"], x, opset=7, mode=mode, scales=[float(v) for v in s])
        for opset in (11, 13, 18, 19):
            names = ["x", "", "s"] if opset >= 13 else ["x", "r", "s"]
            constants = given if opset >= 13 else {**given, "r": np.zeros(0, np.float32)}
            for coordinates in COORDINATES + (("half_pixel_symmetric",) if opset >= 19 else ("tf_half_pixel_for_nn",) if opset < 13 else ()):
                for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
                    if opset in (13, 18) and rounding != "ceil":
                        continue
                    if coordinates == "half_pixel_symmetric" and rounding == "floor" and label == "down":
                        continue  # whole coordinates, but for rounding: references and ONNX Runtime differ among themselves
                    yield Case(f"Resize-{opset}-nearest-{coordinates}-{rounding}-{label}", "Resize", names, x, constants, opset=opset, mode="nearest",
                               coordinate_transformation_mode=coordinates, nearest_mode=rounding, **EXACT)
                for mode in ("linear", "cubic"):
                    if coordinates.startswith("tf"):
                        continue
                    yield Case(f"Resize-{opset}-{mode}-{coordinates}-{label}", "Resize", names, x, constants, opset=opset, mode=mode,
                               coordinate_transformation_mode=coordinates)
                    if opset >= 18 and coordinates in ("half_pixel", "align_corners") and label in ("down", "half", "mixed"):
                        yield Case(f"Resize-{opset}-{mode}-antialias-{coordinates}-{label}", "Resize", names, x, constants, opset=opset, mode=mode,
                                   coordinate_transformation_mode=coordinates, antialias=1)
    for mode in ("nearest", "linear", "cubic"):
        sizes = {"z": ints(7, 4)}
        for policy in ("stretch", "not_larger", "not_smaller"):
            for axes in ([2, 3], [3, 2]):
                yield Case(f"Resize-18-{mode}-{policy}-axes{axes[0]}", "Resize", ["x", "", "", "z"], x, sizes, opset=18, mode=mode, axes=axes,
                           keep_aspect_ratio_policy=policy)
        yield Case(f"Resize-{mode}-exclude", "Resize", ["x", "", "s"], x, {"s": np.array(scales["down"], np.float32)}, opset=13, mode="cubic",
                   exclude_outside=1, cubic_coeff_a=-0.5) if mode == "cubic" else Case(f"Resize-11-{mode}-sizes", "Resize", ["x", "r", "e", "z"], x, {
                       "r": np.zeros(0, np.float32), "e": np.zeros(0, np.float32), "z": ints(1, 2, 8, 3)}, opset=11, mode=mode)
        roi = {"r": np.array([0, 0, 0.2, 0.1, 1, 1, 0.9, 0.7], np.float32), "z": ints(1, 2, 4, 8)}
        yield Case(f"Resize-{mode}-crop", "Resize", ["x", "r", "", "z"], x, roi, opset=13, mode=mode, coordinate_transformation_mode="tf_crop_and_resize",
                   extrapolation_value=9.0)
        beyond = {"r": np.array([0, 0, -0.3, 0.1, 1, 1, 1.4, 0.7], np.float32), "z": ints(1, 2, 4, 8)}
        yield Case(f"Resize-{mode}-crop-beyond", "Resize", ["x", "r", "", "z"], x, beyond, opset=13, mode=mode,
                   coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=-3.0)
        # ONNX Runtime crops no axis whose scale is 1, be it the common one of a policy.
        kept = {"r": np.array([0.2, 0.1, 0.9, 0.7], np.float32), "z": ints(3, 4)}
        for policy in ("stretch", "not_larger", "not_smaller"):
            yield Case(f"Resize-{mode}-crop-{policy}-kept", "Resize", ["x", "r", "", "z"], {"x": normal(1, 2, 3, 4)}, kept, opset=18, mode=mode,
                       axes=[2, 3], coordinate_transformation_mode="tf_crop_and_resize", keep_aspect_ratio_policy=policy)
    for rank, shape, factors in ((1, (1, 2, 7), [1, 1, 1.6]), (3, (1, 2, 3, 4, 5), [1, 1, 2, 1.5, 0.7])):
        for mode in ("nearest", "linear"):
            yield Case(f"Resize-{rank}d-{mode}", "Resize", ["x", "", "s"], {"x": normal(*shape)}, {"s": np.array(factors, np.float32)}, opset=13, mode=mode)
    # Coordinates that are half way or whole in float only, and one output whose scale says 1.2: as ONNX Runtime has them.
    for coordinates, rounding, scale, size in (("half_pixel", "round_prefer_ceil", 0.3, 11), ("half_pixel", "round_prefer_floor", 0.6, 7),
                                               ("asymmetric", "floor", 1.2, 10), ("align_corners", None, 1.5, 5), ("asymmetric", "ceil", 1.2, 10),
                                               ("pytorch_half_pixel", "round_prefer_ceil", 0.3, 11), ("half_pixel_symmetric", "floor", 0.7, 11),
                                               ("pytorch_half_pixel", None, 0.3, 4)):
        how = {"mode": "nearest", "nearest_mode": rounding} if rounding else {"mode": "linear"}
        yield Case(f"Resize-{coordinates}-{rounding}-{scale}", "Resize", ["x", "", "s"], {"x": normal(1, 2, 2, size)},
                   {"s": np.array([1, 1, 1, scale], np.float32)}, opset=18, coordinate_transformation_mode=coordinates, **how)
    yield Case("Resize-rank-2", "Resize", ["x", "", "s"], {"x": normal(5, 6)}, {"s": np.array([1.5, 2], np.float32)}, opset=13, mode="linear")
    yield Case("Resize-channels", "Resize", ["x", "", "s"], {"x": normal(2, 3, 4, 5)}, {"s": np.array([2, 2, 1, 1], np.float32)}, opset=13, mode="nearest")
    for dtype in (np.uint8, np.int8, np.int32):
        yield Case(f"Resize-nearest-{np.dtype(dtype).name}", "Resize", ["x", "", "s"], {"x": RNG.integers(0, 100, (1, 2, 4, 5)).astype(dtype)},
                   {"s": np.array(scales["up"], np.float32)}, opset=13, mode="nearest", out_type=dtype, **EXACT)


def grids():
    x, grid = normal(2, 3, 5, 6), 1.3 * normal(2, 4, 7, 2)
    for opset, modes in ((16, ("bilinear", "nearest", "bicubic")), (20, ("linear", "nearest", "cubic")), (22, ("linear", "nearest"))):
        for mode in modes:
            for padding in ("zeros", "border", "reflection"):
                for align in (0, 1):
                    yield Case(f"GridSample-{opset}-{mode}-{padding}-{align}", "GridSample", ["x", "g"], {"x": x, "g": grid}, opset=opset, mode=mode,
                               padding_mode=padding, align_corners=align)
                    if opset == 20 and mode != "cubic":
                        yield Case(f"GridSample-{opset}-3d-{mode}-{padding}-{align}", "GridSample", ["x", "g"], {
                            "x": normal(1, 2, 3, 4, 5), "g": normal(1, 2, 3, 4, 3)}, opset=opset, mode=mode, padding_mode=padding, align_corners=align)
    for align in (0, 1):
        yield Case(f"AffineGrid-2d-{align}", "AffineGrid", ["t", "s"], {"t": normal(2, 2, 3)}, {"s": ints(2, 3, 4, 5)}, opset=20, align_corners=align, oracle="onnx")
        yield Case(f"AffineGrid-3d-{align}", "AffineGrid", ["t", "s"], {"t": normal(2, 3, 4)}, {"s": ints(2, 3, 4, 5, 6)}, opset=20, align_corners=align, oracle="onnx")
    regions = {"r": np.array([[0, 0, 6, 5], [1.3, 2.2, 9, 8], [-3, -3, 20, 20], [4, 4, 4, 4], [5, 5, 2, 1]], np.float32), "b": ints(0, 1, 1, 0, 1)}
    for opset in (10, 16, 22):
        for mode in ("avg", "max"):
            for sampling in (0, 2):
                for coordinates in ("output_half_pixel", "half_pixel") if opset >= 16 else (None,):
                    more = {"coordinate_transformation_mode": coordinates} if coordinates else {}
                    more.update({"oracle": "onnx"} if opset > 16 else {})
                    yield Case(f"RoiAlign-{opset}-{mode}-{sampling}-{coordinates}", "RoiAlign", ["x", "r", "b"], {"x": normal(2, 3, 8, 9)}, regions, opset=opset, mode=mode,
                               output_height=3, output_width=2, sampling_ratio=sampling, spatial_scale=0.8, **more)
                    if sampling:
                        yield Case(f"RoiAlign-{opset}-{mode}-run-{coordinates}", "RoiAlign", ["x", "r", "b"], {"x": normal(2, 3, 8, 9), **regions}, opset=opset, mode=mode,
                                   output_height=3, output_width=2, sampling_ratio=sampling, spatial_scale=0.8, **more)


def normalizations():
    for shape in ((2, 3), (2, 3, 5), (2, 3, 4, 5), (1, 3, 2, 4, 5)):
        parts = {"s": normal(3), "b": normal(3), "m": normal(3), "v": np.abs(normal(3)) + np.float32(0.1)}
        x = {"x": normal(*shape)}
        for opset in (7, 9, 14, 15):
            yield Case(f"BatchNormalization-{opset}-{len(shape)}d", "BatchNormalization", ["x", *parts], x, parts, opset=opset, epsilon=1e-3)
        yield Case(f"BatchNormalization-{len(shape)}d-run", "BatchNormalization", ["x", *parts], {**x, **parts}, opset=15)
        yield Case(f"BatchNormalization-{len(shape)}d-training", "BatchNormalization", ["x", *parts], x, parts, outputs=3, opset=15, training_mode=1, momentum=0.8)
        if len(shape) > 2:
            for opset in (6, 22):
                yield Case(f"InstanceNormalization-{opset}-{len(shape)}d", "InstanceNormalization", ["x", "s", "b"], x, {"s": parts["s"], "b": parts["b"]},
                           opset=max(opset, 7), epsilon=1e-3)
            y = {"x": normal(2, 6, *shape[2:])}
            yield Case(f"GroupNormalization-18-{len(shape)}d", "GroupNormalization", ["x", "s", "b"], y, {"s": normal(2), "b": normal(2)}, opset=18, num_groups=2)
            yield Case(f"GroupNormalization-21-{len(shape)}d", "GroupNormalization", ["x", "s", "b"], y, {"s": normal(6), "b": normal(6)}, opset=21, num_groups=2)
    for size in (1, 2, 3, 4, 9):
        for shape in ((2, 5, 4), (2, 5, 3, 4), (1, 5, 2, 3, 2)):
            x = normal(*shape)
            below, above = (size - 1) // 2, size // 2  # neighbours of a channel, as the standard divides them
            sums = np.stack([(x[:, max(0, c - below):c + above + 1]**2).sum(1) for c in range(shape[1])], 1)
            yield Case(f"LRN-{size}-{len(shape)}d", "LRN", ["x"], {"x": x}, size=size, alpha=0.3, beta=0.6, bias=1.5,
                       oracle=[(x / (1.5 + 0.3 / size * sums)**0.6).astype(np.float32)])
    for axis in (0, 1, -1):
        for p in (1, 2):
            yield Case(f"LpNormalization-{axis}-{p}", "LpNormalization", ["x"], {"x": normal(3, 4, 5)}, axis=axis, p=p)
        x = {"x": normal(3, 4, 5)}
        tail = x["x"].shape[axis:]
        yield Case(f"LayerNormalization-{axis}", "LayerNormalization", ["x", "s", "b"], x, {"s": normal(*tail), "b": normal(*tail)}, outputs=3, axis=axis)
        yield Case(f"LayerNormalization-{axis}-broadcast", "LayerNormalization", ["x", "s"], x, {"s": normal(tail[-1])}, axis=axis)
        yield Case(f"RMSNormalization-{axis}", "RMSNormalization", ["x", "s"], x, {"s": normal(*tail)}, opset=23, axis=axis, oracle="onnx")
    for axes in ([0, 2, 3], [1], [0, 1, 2, 3], None):
        yield Case(f"MeanVarianceNormalization-{axes and len(axes)}", "MeanVarianceNormalization", ["x"], {"x": normal(2, 3, 4, 5)}, opset=13,
                   **({"axes": axes} if axes else {}))
    for shape, pads in (((1, 1, 4, 4), [0, 0, 0, 0]), ((2, 3, 6, 5), [0, 0, 0, 0])):
        x = normal(*shape)
        pooled = x[:, :, ::2, ::2]
        n = int(np.prod(shape))
        flat = np.arange(n).reshape(shape)[:, :, ::2, ::2]
        yield Case(f"MaxUnpool-{len(x)}", "MaxUnpool", ["x", "i"], {"x": pooled, "i": flat}, kernel_shape=[2, 2], strides=[2, 2], pads=pads, **EXACT)


def resizes_of_tf2onnx():
    """Images by tf.image.resize with nearest pixels, at a version whose standard no longer has these coordinates."""
    for label, (height, width) in {"up": (9, 13), "down": (3, 4)}.items():
        nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
                 helper.make_node("Resize", ["t", "", "", "z"], ["r"], mode="nearest", nearest_mode="floor",
                                  coordinate_transformation_mode="tf_half_pixel_for_nn"),
                 helper.make_node("Transpose", ["r"], ["y0"], perm=[0, 2, 3, 1])]
        yield Case(f"Resize-17-tf2onnx-{label}", "Resize", [], {"x": normal(1, 5, 6, 2)}, {"z": ints(1, 2, height, width)}, opset=17, nodes=nodes, **EXACT)


def images_of_bytes():
    """Antialiased as Pillow does it: whole numbers after each axis. The seeds leave no element in the middle between two of them."""
    for mode, seed, shape, sizes in (("linear", 45, (23, 31), (11, 13)), ("cubic", 0, (9, 14), (5, 21))):
        x = np.random.default_rng(seed).integers(0, 256, (1, 2, *shape)).astype(np.uint8)
        yield Case(f"Resize-18-{mode}-antialias-uint8", "Resize", ["x", "", "", "z"], {"x": x}, {"z": ints(1, 2, *sizes)}, opset=18, mode=mode, antialias=1,
                   out_type=np.uint8, **EXACT)


def cases():
    for group in (max_pools, average_pools, convolutions, gathered, resizes, grids, normalizations, resizes_of_tf2onnx, images_of_bytes):
        yield from group()
