#!/usr/bin/env python3
"""Operators and attributes that no official case has, on the real runtime against ONNX Runtime.

    tests/conformance/operators.py [-k PATTERN,...] [-v]

Recurrent operators in all directions with lengths, states, peepholes, clipping and other activations, over a
symbolic batch and length; three-dimensional convolutions; quantization by channel; operators of com.microsoft. Models and
values are made here, from a seed.
"""

import argparse
import fnmatch
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "lib")]

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

import arrays  # noqa: E402
import etc_command  # noqa: E402
import runtime  # noqa: E402

RNG = np.random.default_rng(20)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def whole(dtype, low, high, *shape):
    return RNG.integers(low, high, shape).astype(dtype)


class Case:
    """One node. `constants` are initializers; `feeds` are the sets of input values, all with the same names."""

    def __init__(self, name, op, inputs, feeds, constants=(), outputs=1, out_type=np.float32, domain="", dims=None,
                 shapes=None, **attributes):
        self.name, self.feeds, self.dims = name, feeds if isinstance(feeds, list) else [feeds], dims or {}
        outputs = ["y%d" % i for i in range(outputs)] if isinstance(outputs, int) else outputs
        node = helper.make_node(op, inputs, outputs, domain=domain, **attributes)
        values = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), (shapes or {}).get(k, v.shape))
                  for k, v in self.feeds[0].items()]
        out = helper.np_dtype_to_tensor_dtype(np.dtype(out_type))
        graph = helper.make_graph([node], "operator", values, [helper.make_tensor_value_info(o, out, None) for o in outputs if o],
                                  initializer=[numpy_helper.from_array(np.asarray(v), k) for k, v in dict(constants).items()])
        self.model = helper.make_model(graph, ir_version=9, opset_imports=[
            helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])


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
               {"a": whole(np.uint8, 0, 256, 3, 4), "b": whole(np.int8, -128, 128, 4, 5)},
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


def check(case, args, server, work):
    """None, or what is wrong."""
    import onnxruntime

    source, target, bundle = (os.path.join(work, x) for x in ("model.onnx", "model.pte", "data.pkl"))
    onnx.save(case.model, source)
    stage, code, message, _ = etc_command.lower(args.etc, source, target, case.dims, timeout=args.timeout)
    if stage != "ok":
        return f"{stage}: {code} {message}"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    for feed in case.feeds:
        arrays.save_bundle(bundle, list(feed.values()), session.run(None, feed))
        answer = server.run({"pte": target, "bundle": bundle, "rtol": 1e-3, "atol": 1e-4}, args.timeout)
        if answer["stage"] != "ok":
            return f"{answer['stage']}: {answer['message']}"
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--etc", default=etc_command.default_command(ROOT))
    p.add_argument("-k", metavar="PATTERN,...", default="*")
    p.add_argument("-v", "--verbose", action="store_true", help="name the passing ones too")
    p.add_argument("--timeout", type=float, default=60.0)
    args = p.parse_args()
    cases = [*recurrent_cases(), *convolution_cases(), *quantization_cases(), *microsoft_cases()]
    chosen = [c for c in cases if any(fnmatch.fnmatchcase(c.name, x) for x in args.k.split(","))]
    failed, server = 0, runtime.Runtime()
    with tempfile.TemporaryDirectory(prefix="etc-operators-") as work:
        for case in chosen:
            wrong = check(case, args, server, work)
            failed += wrong is not None
            if wrong or args.verbose:
                print("FAIL" if wrong else "ok  ", case.name, wrong or "", flush=True)
    server.close()
    print(f"operators: {len(chosen) - failed} passed, {failed} failed")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
