"""Cases of operators.py at the ends of what operators take: sizes of 0, the largest integers, scales at the limit of a kernel."""

import numpy as np
from onnx import helper

from single_node import Case, TextCase, ints, normal


EVEN = """<ir_version: 9, opset_import: ["" : 17]>
g (float[b,n,3] x) => (float[p,q,r] y, float[s,t,u] z, int64 count) <int64 size = {4}, int64 zero = {0}, int64 last = {-1}> {
  s = SplitToSequence <axis = 1> (x, size)
  y = SequenceAt (s, zero)
  z = SequenceAt (s, last)
  count = SequenceLength (s)
}"""


def even_cases():
    """Pieces of one size of a dynamic dim whose range allows one number of them."""
    own = np.random.default_rng(20261129)
    feeds = [{"x": own.standard_normal((2, n, 3)).astype(np.float32)} for n in (9, 10, 12)]
    yield TextCase("SplitToSequence_even", EVEN, feeds, dims={"b": "1..2", "n": "9..12"})
    yield TextCase("SplitToSequence_not_even", EVEN, [], dims={"b": "1..2", "n": "8..12"}, refused="E0316")


RATIO = """<ir_version: 9, opset_import: ["" : 17]>
g (float[2,3] x, float[2,3] w) => (float[2,3] y) <float a = {%s}, float b = {%s}, float c = {%s}, int8 zero = {0}> {
  xq = QuantizeLinear (x, a, zero)
  xd = DequantizeLinear (xq, a, zero)
  wq = QuantizeLinear (w, b, zero)
  wd = DequantizeLinear (wq, b, zero)
  m = Mul (xd, wd)
  yq = QuantizeLinear (m, c, zero)
  y = DequantizeLinear (yq, c, zero)
}"""


def ratio_cases():
    """Scales of operands and result at both ends of what the kernels of XNNPACK for products of codes are made for, and beyond."""
    own = np.random.default_rng(20261130)
    for a, b, c in ((8, 4, 0.25), (16, 16, 1), (0.0078125, 0.0078125, 4), (0.0078125, 0.00390625, 4)):
        feed = {"x": (own.integers(-100, 100, (2, 3)) * a).astype(np.float32), "w": (own.integers(-100, 100, (2, 3)) * b).astype(np.float32)}
        yield TextCase(f"Mul_of_codes_{a * b / c:g}", RATIO % (a, b, c), [feed])


OPEN_END = """<ir_version: 9, opset_import: ["" : 17]>
g (float[n,5] x{input}) => (y) <int64[2] starts = {{{starts}}}, int64[2] ends = {{{ends}}}, int64[2] axes = {{0, 1}}, int64[2] steps = {{-1, -2}}> {{
  y = Slice (x, {begin}, ends, axes, steps)
}}"""
CORNER = """<ir_version: 10, opset_import: ["" : 20]>
g (float[1,2,3] theta, float[h,w] x) => (y) <int64[2] head = {1, 1}> {
  s = Shape (x)
  size = Concat <axis = 0> (head, s)
  y = AffineGrid <align_corners = 1> (theta, size)
}"""
RATIO_OF_SIZES = """<ir_version: 9, opset_import: ["" : 18]>
g (float[1,1,h,8] x) => (y) <int64[2] sizes = {4, 4}> {
  y = Resize <axes = [2, 3], keep_aspect_ratio_policy = "not_larger"> (x, , , sizes)
}"""


POOL = """<ir_version: 10, opset_import: ["" : 22]>
g (float[n,c,9] x) => (y) {{
  y = {node} (x)
}}"""


SAME = """<ir_version: 9, opset_import: ["" : 17]>
g (float[1,1,n,n] x) => (y, z) <float[1,1,3,3] w = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}> {{
  y = Conv <auto_pad = "{pad}", strides = [3, 3]> (x, w)
  z = MaxPool <auto_pad = "{pad}", strides = [3, 3], kernel_shape = [3, 3]> (x)
}}"""
BEHIND = """<ir_version: 9, opset_import: ["" : 17]>
g (float[2,m,n] x) => (y) {
  y = LogSoftmax <axis = 1> (x)
}"""
FRONT = """<ir_version: 9, opset_import: ["" : 17]>
g (float[n] x, int64[1] start, int64[1] end) => (y, z) <int64[1] axis = {0}, int64[1] step = {-2}, int64[1] far = {-6}, int64[1] none = {-100}> {
  y = Slice (x, start, end, axis, step)
  z = Slice (x, far, none, axis, step)
}"""


def edge_cases():
    """The largest integer as the end of a slice backwards; the corner of one cell; an aspect ratio, and numbers of channels, that are not known."""
    own = np.random.default_rng(20261203)
    images = [{"x": own.standard_normal((n, 5)).astype(np.float32)} for n in (3, 8)]
    for name, ends in (("largest", "9223372036854775807, 2147483647"), ("far", "-9223372036854775807, -2147483648")):
        text = OPEN_END.format(input="", starts="2, -1", ends=ends, begin="starts")
        yield TextCase(f"Slice_backwards_{name}", text, images, dims={"n": "3..8"})
        text = OPEN_END.format(input=", int64[2] begin", starts="0, 0", ends=ends, begin="begin")
        feeds = [dict(feed, begin=ints(first, -1)) for feed in images for first in (1, -2)]
        yield TextCase(f"Slice_backwards_{name}_from_data", text, feeds, dims={"n": "3..8"})
    theta = own.standard_normal((1, 2, 3)).astype(np.float32)
    feeds = [{"theta": theta, "x": np.zeros(shape, np.float32)} for shape in ((1, 1), (1, 4), (3, 1), (2, 3))]
    yield TextCase("AffineGrid_corners_of_one_cell", CORNER, feeds, dims={"h": "1..4", "w": "1..4"})
    yield TextCase("AffineGrid_corners_of_one_cell_known", CORNER, feeds[1:2], dims={"h": "1", "w": "4"})
    lines = [{"x": own.standard_normal((n, c, 9)).astype(np.float32)} for n, c in ((1, 1), (2, 7), (4, 3))]
    for name, node in (("AveragePool_pads", "AveragePool <kernel_shape = [3], pads = [2, 0], strides = [2]>"),
                       ("AveragePool_ceil", "AveragePool <kernel_shape = [2], pads = [0, 1], strides = [3], ceil_mode = 1, count_include_pad = 1>"),
                       ("LpPool", "LpPool <kernel_shape = [3], dilations = [2], p = 3>")):
        yield TextCase(f"{name}_unknown_channels", POOL.format(node=node), lines, dims={"n": "1..4", "c": "1..7"})
    for pad in ("SAME_UPPER", "SAME_LOWER"):
        feeds = [{"x": own.standard_normal((1, 1, n, n)).astype(np.float32)} for n in (1, 5, 9, 16)]
        yield TextCase(f"{pad}_stride_3", SAME.format(pad=pad), feeds, dims={"n": "1..16"})
    feeds = [{"x": own.standard_normal((2, m, n)).astype(np.float32)} for m, n in ((3, 0), (0, 2), (3, 2))]
    yield TextCase("LogSoftmax_in_front_of_0", BEHIND, feeds, dims={"m": "0..4", "n": "0..4"})
    feeds = [{"x": own.standard_normal(n).astype(np.float32), "start": ints(start), "end": ints(end)}
             for n, start, end in ((5, -6, -100), (5, -2, 2**63 - 1), (3, 9, 2**31 - 1), (1, -7, -3))]
    yield TextCase("Slice_backwards_from_before_the_first", FRONT, feeds, dims={"n": "1..6"})
    yield Case("Squeeze_empty_axes", "Squeeze", ["x", "a"], {"x": normal(5, 1, 2, 1)}, {"a": ints()})
    yield Case("GroupNormalization_of_rows", "GroupNormalization", ["x", "s", "b"], {"x": normal(3, 6)}, {"s": normal(6), "b": normal(6)}, opset=21, num_groups=2)
    for mode in ("nearest", "linear"):
        yield Case(f"Resize_to_the_same_size_{mode}", "Resize", ["x", "", "s"], {"x": normal(1, 1, 2, 3)}, {"s": np.array([1, 1, 1.3, 1.2], np.float32)}, mode=mode)
    yield TextCase("Resize_unknown_ratio", RATIO_OF_SIZES, [], dims={"h": "2..9"}, refused="E0316")


NO_STEPS = """<ir_version: 9, opset_import: ["" : 17]>
g (float[2] x) => (y, z) <int64 steps = {0}, bool go = {1}> {
  y, z = Loop <body = b (int64 i, bool go_on, float[2] before) => (bool again, float[2] after, float[2] row) {
    again = Identity (go_on)
    after = Add (before, before)
    row = Mul (before, before)
  }> (steps, go, x)
}"""
SIZE_OF_DATA = """<ir_version: 9, opset_import: ["" : 17]>
g (float[1] x) => (y) <float low = {-1}, float high = {3}, float[1] two = {2}> {
  a = Clip (x, low, high)
  b = Relu (a)
  c = Mul (b, two)
  d = Ceil (c)
  e = Cast <to = 7> (d)
  y = ConstantOfShape (e)
}"""


def size_of_data_cases():
    """A loop without a step has rows of the shape that a step would give; sizes that are computed of limited numbers have a bound."""
    yield TextCase("Loop_without_steps", NO_STEPS, [{"x": np.array([1, -2], np.float32)}])
    yield TextCase("Size_of_limited_data", SIZE_OF_DATA, [{"x": np.array([x], np.float32)} for x in (2.2, -4, 0.3, 50)])


def experimental_cases():
    """Operators of opset 1 that are in no document of ONNX any more, and old versions of others; of images of known and dynamic size."""
    own = np.random.default_rng(20261130)
    points, image = own.standard_normal((3, 8)).astype(np.float32) * 4, own.standard_normal((2, 3, 5, 6)).astype(np.float32)
    points[0, :4] = 100, -100, 0, 1
    ab, border = {"alpha": 0.5, "beta": 2.0}, {"border": [1, 0, 2, 1]}
    for op, opset, x, attributes in (
            ("Affine", 1, points, ab), ("Affine", 9, points, {}), ("Scale", 1, points, {"scale": 0.5}), ("Scale", 8, points, {}),
            ("ScaledTanh", 1, points, ab), ("ParametricSoftplus", 1, points, ab), ("ParametricSoftplus", 9, points, {"alpha": -1.5, "beta": -0.3}),
            ("ThresholdedRelu", 1, points, {}), ("ThresholdedRelu", 9, points, {"alpha": -0.5}),
            ("ImageScaler", 1, image, {"bias": [1.0, 2.0, -3.0], "scale": 0.5}), ("ImageScaler", 9, image, {"bias": [0.0, 2.0, -3.0]}),
            ("Crop", 1, image, border), ("Crop", 9, image, {**border, "scale": [2, 3]}), ("Crop", 7, image, {"border": [0] * 4}),
            ("MeanVarianceNormalization", 1, image, {}), ("MeanVarianceNormalization", 8, image, {"across_channels": 1}),
            ("MeanVarianceNormalization", 1, image, {"normalize_variance": 0}), ("MeanVarianceNormalization", 1, image[:, :, 0], {}),
            ("MeanVarianceNormalization", 1, points, {"across_channels": 1, "normalize_variance": 0}),
            ("MeanVarianceNormalization", 9, image[:, :, 0], {}), ("MeanVarianceNormalization", 13, image[..., None], {})):
        name = f"{op}_of_opset_{opset}_{'_'.join(sorted(attributes))}_{x.ndim}d"
        yield Case(name, op, ["x"], {"x": x}, opset=opset, **attributes)
        names = ["n", 3, "h", "w"][:x.ndim] if x.ndim > 2 else ["n", 8]
        ranges = {"n": "1..3", "h": "3..7", "w": "6..9"}
        yield Case(f"{name}_dynamic", op, ["x"], [{"x": x}, {"x": x[:1]}], opset=opset, shapes={"x": [*names, 1][:x.ndim]},
                   dims={k: v for k, v in ranges.items() if k in names}, **attributes)


def half_product_cases():
    """Products of float16 whose one weight is most of the model: it is converted in parts."""
    own = np.random.default_rng(20261201)
    weight, x = (own.standard_normal((16, 64)) / 8).astype(np.float16), own.standard_normal((8, 16)).astype(np.float16)
    for op, w, attributes in (("MatMul", weight, {}), ("Gemm", np.ascontiguousarray(weight.T), {"transB": 1})):
        nodes = [helper.make_node(op, ["x", "w"], ["y0"], **attributes), helper.make_node("Relu", ["x"], ["b"]),
                 helper.make_node(op, ["b", "w"], ["y1"], **attributes)]
        for dynamic in (False, True):
            yield Case(f"{op}_of_one_large_weight{'_dynamic' * dynamic}", op, ["x"], [{"x": x}, {"x": x[:5]}][:1 + dynamic], {"w": w}, nodes=nodes, outputs=2,
                       out_type=np.float16, shapes={"x": ["n", 16]} if dynamic else None, dims={"n": "1..8"} if dynamic else None, rtol=5e-3, atol=1e-2)
