#!/usr/bin/env python3
"""Operators and attributes that no official case has, on the real runtime against ONNX Runtime.

    tests/conformance/operators.py [-k PATTERN,...] [-v]

Recurrent operators in all directions with lengths, states, peepholes, clipping and other activations, over a
symbolic batch and length; three-dimensional convolutions; quantization by channel; operators of com.microsoft. Models and
values are made here, from a seed.
"""

import sys

import numpy as np
from onnx import helper, numpy_helper

import single_node
from operators_edges import edge_cases, even_cases, experimental_cases, half_product_cases, ratio_cases, size_of_data_cases
from operators_selection import odd_selection_cases, selection_cases
from single_node import BF16, RNG, Case, TextCase, ints, normal, whole


# --- recurrent ---

ACTIVATIONS = {
    "LSTM": {"activations": ["HardSigmoid", "Softsign", "ScaledTanh"], "activation_alpha": [0.3, 0.7], "activation_beta": [0.4, 0.8]},
    "GRU": {"activations": ["HardSigmoid", "Elu"], "activation_alpha": [0.3, 0.7], "activation_beta": [0.4]},
    "RNN": {"activations": ["LeakyRelu"], "activation_alpha": [0.1]},
}
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def recurrent(op, direction, what):
    steps, width, hidden, directions = 5, 3, 4, 2 if direction == "bidirectional" else 1
    gates = GATES[op]
    names = ["x", "w", "r", "b", "", "", "", ""]
    constants = {"w": normal(directions, gates * hidden, width) / 2, "r": normal(directions, gates * hidden, hidden) / 2,
                 "b": normal(directions, 2 * gates * hidden) / 2}
    attributes = {"hidden_size": hidden, "direction": direction}
    states = ["h0", "c0"] if op == "LSTM" else ["h0"]
    if "lengths" in what:
        names[4] = "lengths"
    if "states" in what:
        names[5:5 + len(states)] = states
    if "peepholes" in what:
        names[7], constants["p"] = "p", normal(directions, 3 * hidden) / 2
    if "activations" in what:
        attributes.update({k: v * directions for k, v in ACTIVATIONS[op].items()})
    if "linear" in what:
        attributes["linear_before_reset"] = 1
    if "clip" in what:
        attributes["clip"] = 0.3
    feeds = []
    for batch in (3, 1):
        if "varying" in what:
            steps = batch + 2
        feed = {"x": normal(steps, batch, width)}
        if "lengths" in what:
            feed["lengths"] = whole(np.int32, 1, steps + 1, batch)
            feed["lengths"][-1] *= "empty" not in what
        if "states" in what:
            feed.update({s: normal(directions, batch, hidden) for s in states})
        feeds.append(feed)
    shapes = {"x": ["length" if "varying" in what else steps, "batch", width], "lengths": ["batch"], "h0": [directions, "batch", hidden],
              "c0": [directions, "batch", hidden]}
    while not names[-1]:
        names.pop()
    return Case(f"{op}_{direction}_{'_'.join(what) or 'plain'}", op, names, feeds, constants, outputs=3 if op == "LSTM" else 2,
                dims={"batch": "1..4", **({"length": "1..6"} if "varying" in what else {})}, shapes=shapes, **attributes)


def recurrent_cases():
    for op in GATES:
        more = ["peepholes"] if op == "LSTM" else ["linear"] if op == "GRU" else []
        for direction in ("forward", "reverse", "bidirectional"):
            for what in ([], ["lengths"], ["lengths", "states"] + more, ["states", "activations"] + more, ["clip"],
                         ["varying"], ["varying", "lengths", "states"]):
                yield recurrent(op, direction, what)


def empty_sequence_cases():
    for op in GATES:
        for direction in ("reverse", "bidirectional"):
            yield recurrent(op, direction, ["lengths", "states", "empty"])


# --- others ---

def convolution_cases():
    window = {"strides": [2, 1, 2], "pads": [1, 0, 1, 1, 1, 0], "dilations": [1, 1, 2]}
    for group in (1, 2):
        x = {"x": normal(2, 4, 5, 6, 7)}
        yield Case(f"Conv_3d_{group}", "Conv", ["x", "w", "b"], x, {"w": normal(4, 4 // group, 3, 2, 3), "b": normal(4)},
                   group=group, **window)
        yield Case(f"ConvTranspose_3d_{group}", "ConvTranspose", ["x", "w", "b"], x,
                   {"w": normal(4, 6 // group, 3, 2, 3), "b": normal(6)}, group=group, **window)
    regions = np.array([[0, 0, 6, 5], [1, 2, 9, 8], [-3, -3, 20, 20]], np.float32)
    yield Case("RoiAlign_beyond", "RoiAlign", ["x", "r", "b"], {"x": normal(2, 3, 8, 9), "r": regions, "b": np.array([0, 1, 0])},
               output_height=3, output_width=2, sampling_ratio=2, spatial_scale=0.8)
    own = np.random.default_rng(1)  # so that the cases behind keep their values
    for pad in ("SAME_UPPER", "SAME_LOWER"):  # strides beyond the kernel
        yield Case(f"ConvTranspose_wide_{pad}", "ConvTranspose", ["x", "w"], {"x": own.standard_normal((1, 2, 3, 4), dtype=np.float32)},
                   {"w": own.standard_normal((2, 3, 1, 2), dtype=np.float32)}, auto_pad=pad, strides=[4, 3])


def shape_cases():
    """Shapes that kernels of the runtime get wrong, and results without elements. All were found by tests/graphfuzz."""
    for op in ("Add", "Sub", "Mul", "Div"):
        yield Case(f"{op}_ranks", op, ["x", "y"], {"x": normal(4, 2, 3), "y": np.abs(normal(1, 1, 1, 3)) + 1})
        yield Case(f"{op}_ranks_columns", op, ["x", "y"], {"x": normal(1, 1, 4, 1), "y": np.abs(normal(4, 3)) + 1})
        yield Case(f"{op}_ranks_batch", op, ["x", "y"], [{"x": normal(n, 3), "y": np.abs(normal(1, 1, 3)) + 1} for n in (4, 1, 6)],
                   shapes={"x": ["n", 3]}, dims={"n": "1..6"})
    empty = normal(2, 0, 3)
    # Products over nothing; the memory of their results holds other numbers before. Found by tests/conformance/xnnpack_sweep.py.
    for name, a, b in (("", (9, 0), (0, 5)), ("_batch", (2, 9, 0), (2, 0, 5))):
        yield Case(f"MatMul_hollow{name}", None, None, {"d": normal(40, 40), "a": normal(*a), "b": normal(*b)}, nodes=[
            helper.make_node("Exp", ["d"], ["e"]), helper.make_node("Neg", ["e"], ["f"]), helper.make_node("ReduceSum", ["f"], ["s"], keepdims=0),
            helper.make_node("MatMul", ["a", "b"], ["m"]), helper.make_node("Add", ["m", "s"], ["y0"])])
    yield Case("Concat_empty", "Concat", ["x", "y"], {"x": empty, "y": empty}, axis=0)
    yield Case("CumSum_empty", "CumSum", ["x", "a"], {"x": empty}, {"a": np.array(0)}, exclusive=1)
    for op in ("Erf", "Shrink", "Sin"):
        yield Case(f"{op}_empty", op, ["x"], {"x": empty})
    yield Case("Resize_empty", "Resize", ["x", "", "s"], {"x": normal(1, 2, 1, 3)}, {"s": np.array([1, 1, 0.5, 1], np.float32)}, mode="linear")


def quantization_cases():
    for axis, scale in ((0, np.abs(normal(2))), (1, np.abs(normal(3))), (1, np.float32(0.1))):
        constants = {"s": scale + np.float32(0.01), "z": np.full(np.shape(scale), 7, np.uint8)}
        kind = f"{axis}_{np.ndim(scale)}"
        yield Case(f"QuantizeLinear_{kind}", "QuantizeLinear", ["x", "s", "z"], {"x": 3 * normal(2, 3, 4)}, constants,
                   out_type=np.uint8, axis=axis)
        yield Case(f"DequantizeLinear_{kind}", "DequantizeLinear", ["x", "s", "z"], {"x": whole(np.uint8, 0, 256, 2, 3, 4)},
                   constants, axis=axis)
    yield Case("QLinearConv_channels", "QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"],
               {"x": whole(np.uint8, 0, 256, 1, 4, 6, 6)},
               {"xs": np.float32(0.02), "xz": np.uint8(120), "w": whole(np.int8, -127, 128, 6, 2, 3, 3),
                "ws": np.abs(normal(6)) * np.float32(0.01), "wz": np.zeros(6, np.int8), "ys": np.float32(0.05),
                "yz": np.uint8(100), "b": whole(np.int32, -500, 500, 6)}, out_type=np.uint8, group=2, pads=[1, 1, 1, 1])
    yield Case("MatMulInteger_columns", "MatMulInteger", ["a", "b", "az", "bz"],
               {"a": whole(np.uint8, 0, 256, 3, 4), "b": whole(np.int8, -128, 128, 4, 5) // 2},  # 7 bits, see tests/lib/onnx_runtime.py
               {"az": np.uint8(3), "bz": whole(np.int8, -5, 6, 5)}, out_type=np.int32)


def microsoft_cases():
    ms = {"domain": "com.microsoft"}
    x, y = {"a": normal(2, 3, 8)}, {"a": normal(2, 3, 8), "b": normal(2, 3, 8)}
    row = {"g": normal(8), "t": normal(8), "c": normal(8)}
    yield Case("FusedMatMul", "FusedMatMul", ["a", "b"], {"a": normal(2, 3, 4), "b": normal(2, 5, 4)}, transB=1, alpha=0.5, **ms)
    for op in ("Gelu", "QuickGelu"):
        yield Case(op, op, ["a"], x, **ms)
    for op in ("BiasGelu", "FastGelu"):
        yield Case(op, op, ["a", "g"], x, {"g": row["g"]}, **ms)
    yield Case("SkipLayerNormalization", "SkipLayerNormalization", ["a", "b", "g", "t", "c"], y, row,
               outputs=["y", "", "", "sum"], epsilon=1e-5, **ms)
    yield Case("SkipSimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization", ["a", "b", "g"], y, {"g": row["g"]},
               outputs=["y", "", "", "sum"], epsilon=1e-5, **ms)
    yield Case("SimplifiedLayerNormalization", "SimplifiedLayerNormalization", ["a", "g"], x, {"g": row["g"]}, epsilon=1e-5)
    cache = {"cos": normal(10, 4), "sin": normal(10, 4)}
    names = ["x", "p", "cos", "sin"]
    yield Case("RotaryEmbedding_each", "RotaryEmbedding", names, {"x": normal(2, 3, 16), "p": np.array([[0, 1, 2], [3, 4, 5]])}, cache, **ms)
    yield Case("RotaryEmbedding_first", "RotaryEmbedding", names, {"x": normal(2, 3, 16), "p": np.array([2])}, cache, interleaved=1, **ms)
    yield Case("RotaryEmbedding_heads", "RotaryEmbedding", names, {"x": normal(2, 2, 3, 8), "p": np.array([2])}, cache, **ms)
    qkv = {"q": normal(2, 3, 8), "k": normal(2, 5, 8), "v": normal(2, 5, 8)}
    mha = {"op": "MultiHeadAttention", "num_heads": 2, **ms}
    yield Case("MultiHeadAttention", inputs=["q", "k", "v"], feeds=qkv, **mha)
    yield Case("MultiHeadAttention_biases", inputs=["q", "k", "v", "c", "", "m"], feeds={**qkv, "m": normal(2, 2, 3, 5)},
               constants={"c": normal(24)}, **mha)
    yield Case("MultiHeadAttention_padding", inputs=["q", "k", "v", "", "m"],
               feeds={**qkv, "m": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)}, **mha)
    yield Case("MultiHeadAttention_causal", inputs=["q", "k", "v"], feeds={k: normal(2, 3, 8) for k in "qkv"}, unidirectional=1, **mha)
    yield Case("MultiHeadAttention_past", inputs=["q", "k", "v", "", "", "", "pk", "pv"], outputs=3,
               feeds={**{k: normal(2, 1, 8) for k in "qkv"}, "pk": normal(2, 2, 4, 4), "pv": normal(2, 2, 4, 4)}, **mha)


# Sizes in inputs: nothing between them and the declared output says what they are.
CROP = """<ir_version: 8, opset_import: ["" : 18]>
g (float[20,8] x, int64[2] shape) => (float[%s] y) {
  two = Constant <value: tensor = int64[1] {2}> ()
  size = Shape (x)
  whole = Max (size, shape)
  more = Sub (whole, size)
  left = Div (more, two)
  right = Sub (more, left)
  pads = Concat <axis = 0> (left, right)
  padded = Pad (x, pads)
  now = Shape (padded)
  less = Sub (now, shape)
  start = Div (less, two)
  end = Add (start, shape)
  y = Slice (padded, start, end)
}"""
ROWS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1,3] x, int64[2] n) => (float[4,2] y, int64[2] twice) {
  zero = Constant <value: tensor = int64[1] {0}> ()
  one = Constant <value: tensor = int64[1] {1}> ()
  three = Constant <value: tensor = int64[1] {3}> ()
  part = Constant <value: tensor = int64[1] {%d}> ()
  first = Slice (n, zero, one)
  rows = Div (first, part)
  shape = Concat <axis = 0> (rows, three)
  wide = Expand (x, shape)
  matrix = Constant <value: tensor = float[3,2] {1, 2, 3, 4, 5, 6}> ()
  y = MatMul (wide, matrix)
  twice = Add (n, n)
}"""


def size_cases():
    x = normal(20, 8)
    feeds = [{"x": x, "shape": ints(10, 9)}, {"x": normal(20, 8), "shape": ints(10, 9)}]
    others = [{"x": x, "shape": ints(*s)} for s in ((10, 8), (9, 9), (0, 9), (-10, 9))]
    yield TextCase("sizes_crop", CROP % "10,9", feeds, fails=others)
    yield TextCase("sizes_without_a_declaration", CROP % "N,9", feeds, refused="E0324")
    # Only the first element is a size; the other one may be anything.
    row = normal(1, 3)
    yield TextCase("sizes_of_rows", ROWS % 1, [{"x": row, "n": ints(4, 7)}, {"x": row, "n": ints(4, -2)}],
                   fails=[{"x": row, "n": ints(5, 7)}, {"x": row, "n": ints(1, 7)}])
    yield TextCase("sizes_with_two_solutions", ROWS % 2, [], refused="E0324")


MESSAGES = """<ir_version: 9, opset_import: ["" : 18]>
messages (float[N,%d] x, int64[2,E] edges, float[E,1] w) => (float[N,%d] y, float[N,%d] z, float[E,%d] r, float[N] d, float[N,%d] l)
<int64[1] one = {1}, int64[1] zero = {0}, int64[1] two = {2}, int64[2] row = {1,%d}, int64[1] flat = {-1}> {
  s = Slice (edges, zero, one, zero)
  t = Slice (edges, one, two, zero)
  source = Reshape (s, flat)
  target = Reshape (t, flat)
  rows = Gather (x, source)
  message = Mul (rows, w)
  column = Unsqueeze (target, one)
  index = Expand (column, row)
  y = ScatterElements <axis = 0, reduction = "add"> (x, index, message)
  z = ScatterND <reduction = "add"> (x, column, message)
  r = GatherElements <axis = 0> (x, index)
  ones = Reshape (w, flat)
  empty = ReduceSum <keepdims = 0> (x, one)
  d = ScatterElements <axis = 0, reduction = "add"> (empty, target, ones)
  l = ScatterElements <axis = 0> (x, index, message)
}"""


# Of few bytes, so that it is among the cases of ctest.
SUMS = """<ir_version: 9, opset_import: ["" : 18]>
sums (float[7] x, float[9,8] m, int8[512] i) => (float[7] y, float[9,8] z)
<int64[1] one = {1}, int64[1] zero = {0}, int64[1] some = {64}, int64[2] rows = {64,8}> {
  j = Cast <to = 7> (i)
  k = Unsqueeze (j, one)
  u = Cast <to = 1> (i)
  y = ScatterND <reduction = "add"> (x, k, u)
  l = Slice (k, zero, some)
  v = Slice (u, zero, some)
  w = Unsqueeze (v, one)
  r = Expand (w, rows)
  z = ScatterND <reduction = "add"> (m, l, r)
}"""


def message_cases():
    """Sums of the rows that edges bring, as in graph networks: indices may count from the end, and beyond it the call fails."""
    for nodes, edges, width in ((9, 800, 8), (300, 70, 8), (700, 701, 4), (5, 9000, 30), (6, 5, 3)):
        text = MESSAGES % ((width,) * 6)
        text = text.replace("N,", f"{nodes},").replace("N]", f"{nodes}]").replace("E,", f"{edges},").replace("2,E]", f"2,{edges}]")

        def feed(low, high):
            return {"x": normal(nodes, width), "edges": RNG.integers(low, high, (2, edges)), "w": normal(edges, 1)}

        late, early = feed(0, nodes), feed(0, nodes)
        late["edges"][1, -1], early["edges"][1, 2] = nodes, -nodes - 1
        # Rows that are replaced: of several the last one stays, in both.
        yield TextCase(f"messages_{nodes}_{edges}_{width}", text, [feed(0, nodes), feed(-nodes, nodes)], fails=[late, early], rtol=1e-4, atol=2e-4)


POOLS = """<ir_version: 9, opset_import: ["" : 22]>
pools (float[70000] large, float[2,24,11,14] x) => (float m, %s) {
  m = ReduceMax <keepdims = 0> (large)
  z = Relu (x)
  %s
}"""


def pool_cases():
    """Pools beside a tensor whose memory they can use, with values that are not finite."""
    forms = ["MaxPool <kernel_shape = [%d,%d], strides = [%d,%d], pads = [%d,%d,%d,%d], ceil_mode = %d, dilations = [%d,%d]>" % f for f in (
        (2, 2, 2, 2, 0, 0, 0, 0, 0, 1, 1), (3, 3, 2, 2, 1, 1, 1, 1, 0, 1, 1), (3, 3, 2, 2, 0, 0, 0, 0, 1, 1, 1), (5, 5, 1, 1, 2, 2, 2, 2, 0, 1, 1),
        (3, 2, 1, 2, 1, 0, 1, 0, 0, 2, 3), (11, 14, 1, 1, 0, 0, 0, 0, 0, 1, 1))]
    forms += ["AveragePool <kernel_shape = [%d,%d], strides = [%d,%d], pads = [%d,%d,%d,%d], ceil_mode = %d, count_include_pad = %d>" % f for f in (
        (2, 2, 2, 2, 0, 0, 0, 0, 0, 0), (3, 3, 2, 2, 1, 1, 1, 1, 0, 0), (3, 3, 2, 2, 1, 1, 1, 1, 0, 1), (3, 3, 2, 2, 0, 0, 0, 0, 1, 0), (4, 3, 3, 1, 1, 0, 2, 1, 0, 0),
        (11, 14, 1, 1, 0, 0, 0, 0, 0, 0))]
    for k, form in enumerate(forms):
        text = POOLS % ("float[a,b,c,d] y", f"y = {form} (z)")
        feed = {"large": normal(70000), "x": normal(2, 24, 11, 14)}
        other = {"large": normal(70000), "x": normal(2, 24, 11, 14)}
        other["x"][0, 0, 3, 5], other["x"][1, 2, 0, 0] = np.inf, -np.inf
        yield TextCase(f"pools_{k}", text, [feed, other], rtol=1e-5, atol=1e-6)


def sum_cases():
    def feed(low, high):
        return {"x": normal(7), "m": normal(9, 8), "i": whole(np.int8, low, high, 512)}

    late = feed(0, 7)
    late["i"][500] = 7
    yield TextCase("sums_at_indices", SUMS, [feed(0, 7), feed(-7, 7)], fails=[late], rtol=1e-5, atol=1e-5)


REGIONS = """<ir_version: 9, opset_import: ["" : 16]>
regions (float[2,3,8,9] x, float[r,4] c, int64[r] b) => (float[r,3,4,2] y) {
  y = RoiAlign <mode = "%s", coordinate_transformation_mode = "%s", output_height = 4, output_width = 2, spatial_scale = 0.5> (x, c, b)
}"""
# x, y: from above zero, by halves, beyond the image, from behind to the front.
CORNERS = np.array([[0, 0, 12, 10], [2.6, 4.4, 18, 16], [-6, -6, 8, 9], [4, 4, 4, 4], [5, 5, 2, 1], [1, 3, 5, 7], [40, 40, 60, 50]], np.float32)
MAPPED = """<ir_version: 9, opset_import: ["" : 17]>
mapped (float[6,3] x, float[3] m, float[6,2] z) => (float y, float w, int64 n) <int64[3] parts = {1,3,2}> {
  s = SplitToSequence <axis = 0> (x, parts)
  t = SplitToSequence <axis = 0> (z, parts)
  last = Constant <value_ints = [1]> ()
  outer = Exp (m)
  e, f = SequenceMap <body = each (float[k,3] a, float[3] b, float[k,2] c) => (float[k,3] d, float[k] g) {
    h = Sub (a, b)
    d = Mul (h, outer)
    j = Concat <axis = 1> (a, c)
    g = ReduceSum <keepdims = 0> (j, last)
  }> (s, m, t)
  y = ConcatFromSequence <axis = 0> (e)
  w = ConcatFromSequence <axis = 0> (f)
  n = SequenceLength (f)
}"""


def region_cases():
    """Regions of images whose cells hold as many samples or pixels as each region is large, and bodies over sequences."""
    own = np.random.default_rng(7)

    def feed(corners):
        return {"x": own.standard_normal((2, 3, 8, 9), dtype=np.float32), "c": corners, "b": np.arange(len(corners)) % 2}

    for mode in ("avg", "max"):
        for form in ("half_pixel", "output_half_pixel"):
            yield TextCase(f"RoiAlign_run_{mode}_{form}", REGIONS % (mode, form), [feed(CORNERS), feed(CORNERS[1:4])], dims={"r": "1..7"},
                           fails=[feed(CORNERS * np.float32(4))])
    rois = np.concatenate([np.arange(7, dtype=np.float32)[:, None] % 2, CORNERS], 1)
    for shape in ([3, 2], [1, 1], [9, 10]):
        for opset, scale in ((8, 1.0), (17, 0.5), (21, 0.25)):
            x = own.standard_normal((2, 3, 8, 9), dtype=np.float32)
            settings = {"opset": opset, "pooled_shape": shape, "spatial_scale": scale}
            yield Case(f"MaxRoiPool_{shape[0]}_{scale}", "MaxRoiPool", ["x", "r"], {"x": x, "r": rois}, **settings)
            yield Case(f"MaxRoiPool_{shape[0]}_{scale}_known", "MaxRoiPool", ["x", "r"], {"x": x}, {"r": rois}, **settings)
    yield Case("MaxRoiPool_some", "MaxRoiPool", ["x", "r"], [{"x": own.standard_normal((2, 3, 8, 9), dtype=np.float32), "r": r} for r in (rois, rois[:2])],
               shapes={"r": ["n", 5]}, dims={"n": "1..7"}, pooled_shape=[2, 2])
    yield Case("Tile_6", "Tile", ["x", "r"], {"x": own.standard_normal((2, 3), dtype=np.float32)}, {"r": ints(2, 3)}, opset=6)
    shapes = {"x": (6, 3), "m": (3,), "z": (6, 2)}
    yield TextCase("SequenceMap", MAPPED, [{k: own.standard_normal(v, dtype=np.float32) for k, v in shapes.items()}])
    # As tf2onnx writes Range of com.microsoft.
    yield TextCase("operator_sets_that_are_not_imported", """<ir_version: 9, opset_import: ["" : 17]> sets (float[2,3] x) => (float[2,3] y, float[2,3] z) {
        y = com.microsoft.Gelu(x) z = ai.onnx.ml.Scaler <offset = [0.5], scale = [2.0]> (y) }""", [{"x": own.standard_normal((2, 3), dtype=np.float32)}])
    # Versions 7 to 13 train where more than one output is named, as TorchScript writes standardized weights.
    parts = {k: np.abs(own.standard_normal(3, dtype=np.float32)) for k in "sbmv"}
    for version in (7, 13):
        yield Case(f"BatchNormalization_training_{version}", "BatchNormalization", ["x", *parts], {"x": own.standard_normal((2, 3, 4), dtype=np.float32)},
                   parts, outputs=5, opset=version, momentum=0.7)


def half_cases():
    """Sums that a half cannot count to: the kernels of the runtime add up in the element type."""
    for dtype in (np.float16, BF16):
        ones = {"out_type": dtype, "rtol": 1e-6, "atol": 1e-6, "oracle": [np.full((1, 1, 1, 1), 4608, dtype)]}
        x = {"x": np.ones((1, 512, 3, 3), dtype)}
        yield Case(f"Conv_sum_{np.dtype(dtype)}", "Conv", ["x", "w"], {**x, "w": np.ones((1, 512, 3, 3), dtype)}, **ones)
        yield Case(f"Conv_sum_weights_{np.dtype(dtype)}", "Conv", ["x", "w"], x, {"w": np.ones((1, 512, 3, 3), dtype)}, **ones)
        yield Case(f"ConvTranspose_sum_{np.dtype(dtype)}", "ConvTranspose", ["x", "w"],
                   {"x": np.ones((1, 4608, 1, 1), dtype), "w": np.ones((4608, 1, 1, 1), dtype)}, **ones)
        yield Case(f"AveragePool_sum_{np.dtype(dtype)}", "AveragePool", ["x"], {"x": np.ones((1, 1, 64, 64), dtype)},
                   kernel_shape=[64, 64], opset=22, **{**ones, "oracle": [np.ones((1, 1, 1, 1), dtype)]})


def resize_cases():
    """Lengths that are no multiple of the scale: the region ends at the last element of the result, and half pixels of one element start at 0."""
    own = np.random.default_rng(8)
    for mode in ("nearest", "linear", "cubic"):
        for scale in (0.5, 1.5, 2.3):
            roi, scales = np.array([0, 0, 0.1, 0.1, 1, 1, 0.8, 0.8], np.float32), np.array([1, 1, 0.5, scale], np.float32)
            x = {"x": own.standard_normal((2, 3, 2, 5), dtype=np.float32)}
            settings = {"opset": 15, "mode": mode}
            if mode != "cubic":
                yield Case(f"Resize_crop_{mode}_{scale}", "Resize", ["x", "r", "s"], x, {"r": roi, "s": scales},
                           coordinate_transformation_mode="tf_crop_and_resize", **settings)
            yield Case(f"Resize_half_pixel_{mode}_{scale}", "Resize", ["x", "", "s"], x, {"s": scales},
                       coordinate_transformation_mode="pytorch_half_pixel", **settings)


SOFTMAX = """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
g (%s[20,3] x) => (%s[20,3] y) <float s = {0.02}, %s z = {%d}, float t = {0.003921569}> {
  y = com.microsoft.QLinearSoftmax <axis = -1, opset = 13> (x, s, z, t, z)
}"""


def quantized_softmax_cases():
    """Codes of a scale of 1 / 255: ONNX Runtime multiplies by 254."""
    own = np.random.default_rng(9)
    for name, zero in (("uint8", 0), ("int8", -128)):
        x = (own.integers(0, 256, (20, 3)) + zero).astype(name)
        yield TextCase(f"QLinearSoftmax_whole_inverse_{name}", SOFTMAX % (name, name, name, zero), [{"x": x}])


ONE_HOT = """<ir_version: 9, opset_import: ["" : 17]>
g (int64[2,7] i, int32[2,7] j) => (float[2,7,3] y, float[2,7,3] z)
<int64 depth = {5}, float[2] values = {0, 1}, int64[1] last = {-1}, int32[1,1,5] numbers = {0, 1, 2, 3, 4},
 float[5,3] w = {1, -2, 3, 0.5, 0.25, -0.125, 7, 8, 9, -1, -1, -1, 1e30, 1e-30, -1e-30}> {
  rows = OneHot <axis = -1> (i, depth, values)
  y = MatMul (rows, w)
  column = Unsqueeze (j, last)
  equal = Equal (column, numbers)
  other = Cast <to = 1> (equal)
  z = MatMul (other, w)
}"""


def embedding_cases():
    """Products with one-hot rows, of which some are zero: OneHot counts numbers below zero from the end, Equal does not."""
    ids = np.array([[0, 1, 2, 3, 4, 5, 99], [-1, -5, -6, -99, 4, 0, 1 << 30]])
    yield TextCase("one_hot_products", ONE_HOT, [{"i": ids, "j": ids.astype(np.int32)}])


TUPLES = """<ir_version: 9, opset_import: ["" : 17]>
g (float[6,70,16] x, int64[n,2] i, float[n,16] v, int64[40,9] z, int64[m,2] k, int64[m] w) =>
  (float[n,16] a, float[6,70,16] b, float[6,70,16] c, int64[m] d, int64[40,9] e, float[6,70,16] f) {
  a = GatherND (x, i)
  b = ScatterND (x, i, v)
  c = ScatterND <reduction = "add"> (x, i, v)
  d = GatherND (z, k)
  e = ScatterND (z, k, w)
  f = ScatterND <reduction = "max"> (x, i, v)
}"""


def tuple_cases():
    """Rows and elements at tuples of indices, some of them the same, some counted from the end; and out of bounds."""
    own = np.random.default_rng(20261127)

    def feed(n, m):
        i = np.stack([own.integers(-6, 6, n), own.integers(-70, 70, n)], 1)
        k = np.stack(np.unravel_index(own.permutation(360)[:m], (40, 9)), 1).astype(np.int64)
        i[:n // 4] = i[n // 4:2 * (n // 4)]
        return {"x": own.standard_normal((6, 70, 16)).astype(np.float32), "i": i, "v": own.standard_normal((n, 16)).astype(np.float32),
                "z": own.integers(-9, 9, (40, 9)), "k": k, "w": own.integers(-99, 99, m)}

    def outside(name, row, column, value):
        late = feed(300, 340)
        late[name][row, column] = value
        return late

    fails = [outside("i", 299, 0, 6), outside("i", 5, 1, 70), outside("i", 0, 0, -7), outside("i", 7, 1, -71), outside("k", 339, 0, 40), outside("k", 3, 1, -10)]
    yield TextCase("tuples", TUPLES, [feed(300, 340), feed(300, 340)], fails, {"n": "300", "m": "340"})
    yield TextCase("tuples_open", TUPLES, [feed(400, 350), feed(8, 1)], fails, {"n": "1..400", "m": "1..360"})


ONE_PIECE = """<ir_version: 9, opset_import: ["" : 17]>
g (float[4] x) => (int64 n, float[p] y) <int64 size = {9223372036854775807}> {
  s = SplitToSequence (x, size)
  n = SequenceLength (s)
  y = ConcatFromSequence <axis = 0> (s)
}"""
UNIQUE = """<ir_version: 9, opset_import: ["" : 17]>
g (%s[%s] x) => (%s[u] y, int64[u] first, int64[n] inverse, int64[u] counts) {
  y, first, inverse, counts = Unique <sorted = %d> (x)
}"""


def unique_cases():
    own = np.random.default_rng(20261127)
    for name, dtype in (("float", np.float32), ("int64", np.int64), ("int8", np.int8), ("double", np.float64)):
        for order in (0, 1):
            feeds = [{"x": own.integers(-least, least + 1, n).astype(dtype)} for n, least in ((600, 40), (1, 3), (300, 0), (511, 127))]
            yield TextCase(f"Unique_{name}_{order}", UNIQUE % (name, "n", name, order), feeds, dims={"n": "1..600"})
    yield TextCase("SplitToSequence_one_piece", ONE_PIECE, [{"x": own.standard_normal(4).astype(np.float32)}])
    yield TextCase("Unique_NaN", UNIQUE % ("float", "n", "float", 1), [{"x": np.full(n, np.nan, np.float32)} for n in (1, 3)], dims={"n": "1..4"})
    yield TextCase("Unique_image", UNIQUE % ("float", "3,40,50", "float", 1), [{"x": np.floor(own.standard_normal((3, 40, 50)) * 50).astype(np.float32)}])


SPARSE = """<ir_version: 8, opset_import: ["": 17]> g (float[2,4] x) => (float[2,3] y) {
  c = Constant ()
  f = Cast <to = 1> (c)
  m = MatMul (x, w)
  y = Add (m, f)
}"""


def fold_cases():
    """Blocks that overlap, touch or leave gaps, with pads and rows that no block covers; a dilation, for which elements know their places."""
    own = np.random.default_rng(20261127)
    for block, strides, pads, image, dilations in (((3, 3), [1, 1], [0] * 4, (10, 12), [1, 1]), ((3, 2), [1, 1], [1, 0, 1, 1], (8, 9), [1, 1]),
                                                   ((2, 2), [2, 2], [0] * 4, (8, 6), [1, 1]), ((4, 3), [2, 2], [1, 2, 0, 1], (9, 11), [1, 1]),
                                                   ((2, 1), [3, 2], [0] * 4, (9, 7), [1, 1]), ((5, 3), [2, 3], [2, 0, 1, 1], (12, 13), [1, 1]),
                                                   ((2, 3), [1, 2], [0, 1, 0, 0], (7, 9), [2, 1])):
        counts = [(image[i] + pads[i] + pads[i + 2] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in (0, 1)]
        x = own.standard_normal((2, 3 * block[0] * block[1], counts[0] * counts[1])).astype(np.float32)
        yield Case(f"Col2Im_{block[0]}x{block[1]}_{strides[0]}x{strides[1]}_{sum(pads)}_{dilations[0]}", "Col2Im", ["x", "i", "k"], {"x": x},
                   {"i": ints(*image), "k": ints(*block)}, opset=18, strides=strides, pads=pads, dilations=dilations)


def condition_cases():
    """Conditions of Compress that ONNX does not permit and ONNX Runtime takes: of other ranks, or longer than the dim."""
    own = np.random.default_rng(20261128)
    x = own.standard_normal((3, 4)).astype(np.float32)
    for axis, shape in ((None, (3, 4)), (None, (2, 2)), (None, (14,)), (0, (1, 3)), (0, (5,)), (1, ())):
        condition = own.integers(0, 2, shape).astype(bool)
        more = {} if axis is None else {"axis": axis}
        yield Case(f"Compress_{axis}_{'x'.join(map(str, shape))}", "Compress", ["x", "c"], {"x": x, "c": condition}, **more)


def sparse(name, dims, places, dtype, rows):
    """A sparse tensor; its indices are places in row-major order, or rows of one index for each dim."""
    values = numpy_helper.from_array(normal(len(places)).astype(dtype) * 8, name)
    places = np.array(places, np.int64)
    indices = np.stack(np.unravel_index(places, dims), 1) if rows else places
    return helper.make_sparse_tensor(values, numpy_helper.from_array(indices), dims)


def sparse_cases():
    """Initializers and constants as lists of elements, also without any and of all."""
    for rows in (False, True):
        for places in ([0, 5, 11], [], list(range(12))):
            case = TextCase(f"Sparse_{'rows' if rows else 'places'}_{len(places)}", SPARSE, [{"x": normal(2, 4)}])
            graph = case.model.graph
            graph.sparse_initializer.append(sparse("w", (4, 3), places, np.float32, rows))
            graph.node[0].attribute.append(helper.make_attribute("sparse_value", sparse("", (2, 3), [p for p in places if p < 6], np.int64, rows)))
            yield case


def pointwise_cases():
    """Shrink by the magnitude or by two comparisons; dims that are broadcast alike; a layer norm without an epsilon."""
    own = np.random.default_rng(20261130)
    x = np.array([0, -0.0, 0.5, -0.5, 1, -1, 0.4, -0.4, 3, -3, np.inf, -np.inf, np.nan], np.float32)
    for lambd, bias in ((0.5, 0.0), (0.5, 0.5), (1.0, 0.25), (0.25, 1.0), (0.5, -0.25), (-1.0, 0.0)):
        yield Case(f"Shrink_{lambd}_{bias}", "Shrink", ["x"], {"x": x}, lambd=lambd, bias=bias)
    image = own.standard_normal((1, 6, 4, 5)).astype(np.float32)
    for op in ("Add", "Sub", "Mul", "Div"):
        for dims in ((6, 1, 1), (4, 5), (1, 6, 4, 1), (1, 1, 1, 5)):
            y = (own.random(dims) + 1).astype(np.float32)
            yield Case(f"{op}_merged_{len(dims)}_{dims[-1]}", op, ["x", "y"], {"x": image, "y": y})
    nodes = [helper.make_node("ReduceMean", ["x"], ["m"], axes=[-1]), helper.make_node("Sub", ["x", "m"], ["d"]), helper.make_node("Mul", ["d", "d"], ["q"]),
             helper.make_node("ReduceMean", ["q"], ["v"], axes=[-1]), helper.make_node("Sqrt", ["v"], ["r"]), helper.make_node("Div", ["d", "r"], ["y0"])]
    for rows, columns in ((3, 8), (2, 300)):
        yield Case(f"LayerNorm_no_epsilon_{columns}", None, None, {"x": own.standard_normal((rows, columns)).astype(np.float32) + 2}, opset=13, nodes=nodes)


ALL = (recurrent_cases, convolution_cases, quantization_cases, microsoft_cases, shape_cases, size_cases, half_cases, selection_cases,
       message_cases, pool_cases, sum_cases, region_cases, resize_cases, quantized_softmax_cases, odd_selection_cases, embedding_cases,
       tuple_cases, unique_cases, fold_cases, condition_cases, empty_sequence_cases, sparse_cases, even_cases, ratio_cases, edge_cases, size_of_data_cases,
       experimental_cases, half_product_cases, pointwise_cases)


def main():
    return single_node.main(__doc__, [case for table in ALL for case in table()])


if __name__ == "__main__":
    sys.exit(main())
