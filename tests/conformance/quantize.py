#!/usr/bin/env python3
"""Networks quantized by each scheme of `etc lower --quantize` run on the real runtime, and are near their float models.

    tests/conformance/quantize.py [--etc build/release/etc] [-k PATTERN]

Each network is small, of random weights, and made here. Its program, with XNNPACK and without, runs on samples that it
was not calibrated with; the ratio of signal to noise against ONNX Runtime must be that of the table. `etc run` gives
nearly the same outputs. Delegates of int8 have no more nodes than the table says. Statistics of `etc calibrate` make the same program as samples do.
"""

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "lib")]

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import arrays  # noqa: E402
import etc_command  # noqa: E402
import runtime  # noqa: E402

SAMPLES, TESTS = 16, 3
# dB that a scheme must reach: of random weights, which say little about trained ones.
SCHEMES = {"int8": 22.0, "int8-dynamic": 28.0, "int8-weight-only": 30.0, "int4-weight-only": 12.0,
           "int4-weight-only samples": 20.0, "int4-weight-only random": 20.0}
# dB of int8, of networks that reach far more.
INT8 = {"positions": 60.0, "recurrent": 54.0}
SAME = 38.0  # of `etc run` and the runtime
# The most nodes of int8 programs on XNNPACK: a gate's limits are a part of its convolution, and nothing goes between layouts.
NODES = {"cnn": 20}


class Net:
    """An ONNX model that is written node by node."""

    def __init__(self, name, shape, dtype=TensorProto.FLOAT):
        self.name, self.shape, self.dtype = name, shape, dtype
        self.random = np.random.default_rng(sum(map(ord, name)))
        self.nodes, self.weights = [], []

    def weight(self, *shape, scale=None):
        fan = np.prod(shape[1:]) if len(shape) > 1 else 1
        value = self.random.standard_normal(shape) * (scale or 1 / np.sqrt(fan))
        return self.constant(value.astype(np.float32))

    def constant(self, value):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def add(self, op, *inputs, **attributes):
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def conv(self, x, into, out, kernel=3, groups=1, **attributes):
        pads = [kernel // 2] * 4
        return self.add("Conv", x, self.weight(out, into // groups, kernel, kernel), self.weight(out, scale=0.1),
                        group=groups, pads=pads, **attributes)

    def linear(self, x, into, out):
        return self.add("Add", self.add("MatMul", x, self.weight(into, out, scale=into ** -0.5)), self.weight(out, scale=0.1))

    def norm(self, x, size):
        return self.add("LayerNormalization", x, self.weight(size, scale=1.0), self.weight(size, scale=0.1), axis=-1)

    def save(self, y, path):
        graph = helper.make_graph(self.nodes, self.name, [helper.make_tensor_value_info("x", self.dtype, self.shape)],
                                  [helper.make_tensor_value_info(y, TensorProto.FLOAT, None)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)

    def samples(self, count):
        if self.dtype == TensorProto.INT64:
            return self.random.integers(0, 20, (count, *self.shape[1:]), dtype=np.int64)
        return self.random.standard_normal((count, *self.shape[1:])).astype(np.float32)


def cnn(n):
    x = n.add("Relu", n.conv("x", 3, 16))
    y = n.add("Relu", n.conv(x, 16, 16, groups=16))
    x = n.add("Relu", n.add("Add", x, n.conv(y, 16, 16, kernel=1)))
    x = n.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = n.add("Concat", n.conv(x, 16, 8), x, axis=1)
    x = n.add("HardSwish", n.conv(x, 24, 16))
    gate = n.add("Relu", n.conv(n.add("GlobalAveragePool", x), 16, 8, kernel=1))
    x = n.add("Mul", x, n.add("HardSigmoid", n.conv(gate, 8, 16, kernel=1), alpha=1 / 6))
    x = n.add("Flatten", n.add("GlobalAveragePool", x))
    return n.add("Gemm", x, n.weight(10, 16), n.weight(10, scale=0.1), transB=1)


def upsampling(n):
    x = n.add("LeakyRelu", n.conv("x", 3, 8, strides=[2, 2]), alpha=0.1)
    x = n.add("ConvTranspose", x, n.weight(8, 8, 2, 2), n.weight(8, scale=0.1), strides=[2, 2])
    x = n.add("Clip", x, n.constant(np.float32(0)), n.constant(np.float32(6)))
    return n.add("Sigmoid", n.conv(x, 8, 2))


def normalized(n):
    """A norm of a view, which XNNPACK computes as views of integers and a norm of floats."""
    flat, image = (n.constant(np.array(s, np.int64)) for s in ([1, 1, -1], [1, 8, 8, 8]))
    x = n.conv("x", 3, 8)
    y = n.add("InstanceNormalization", n.add("Reshape", x, flat), n.constant(np.ones(1, np.float32)),
              n.constant(np.zeros(1, np.float32)))
    y = n.add("Mul", n.add("Reshape", y, image), n.weight(8, 1, 1, scale=1.0))
    x = n.add("Add", x, n.add("AveragePool", y, kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
    return n.conv(x, 8, 4)


def transformer(n):
    size, heads, rows = 64, 4, 8
    x = n.add("Gather", n.weight(20, size, scale=1.0), "x")
    mask = n.constant(np.triu(np.full((rows, rows), -1e4, np.float32), 1)[None, None])
    split, whole = (n.constant(np.array(s, np.int64)) for s in ([1, rows, heads, size // heads], [1, rows, size]))
    y = n.norm(x, size)
    q, k, v = (n.add("Reshape", n.linear(y, size, size), split) for _ in range(3))
    q, v = (n.add("Transpose", t, perm=[0, 2, 1, 3]) for t in (q, v))
    s = n.add("Div", n.add("MatMul", q, n.add("Transpose", k, perm=[0, 2, 3, 1])), n.constant(np.float32(4)))
    s = n.add("MatMul", n.add("Softmax", n.add("Add", s, mask), axis=-1), v)
    s = n.add("Reshape", n.add("Transpose", s, perm=[0, 2, 1, 3]), whole)
    x = n.add("Add", x, n.linear(s, size, size))
    y = n.linear(n.norm(x, size), size, 2 * size)
    y = n.add("Mul", y, n.add("Sigmoid", y))
    x = n.add("Add", x, n.linear(y, 2 * size, size))
    return n.linear(n.norm(x, size), size, 32)


def skips(n):
    """Small numbers that a convolution reads and a list beside large ones, which count as much."""
    def conv(x, into, out, scale):
        return n.add("Conv", x, n.weight(out, into, 3, 3, scale=scale), pads=[1] * 4)

    small, large = (n.add("Relu", conv("x", 3, 8, scale)) for scale in (1e-4, 100))
    both = n.add("Concat", small, large, axis=1)
    return n.add("Add", conv(n.add("Sigmoid", conv(small, 8, 8, 1e3)), 8, 8, 1), conv(n.add("Sigmoid", conv(both, 16, 8, 1e-4)), 8, 8, 1))


def padded(n):
    """Pads of a maximum that are far below all that it sees."""
    pads, lowest = n.constant(np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)), n.constant(np.float32(-1e9))
    x = n.add("Relu", n.conv("x", 3, 8))
    x = n.add("MaxPool", n.add("Pad", x, pads, lowest), kernel_shape=[3, 3], strides=[2, 2])
    return n.conv(x, 8, 4)


def positions(n):
    """Where the heat is: probabilities of 1,024 pixels times their coordinates."""
    flat = n.constant(np.array([1, 2, 1024], np.int64))
    heat = n.add("Softmax", n.add("Reshape", n.conv("x", 3, 2), flat), axis=-1)
    places = np.stack(np.divmod(np.arange(1024), 32), 1).astype(np.float32)
    return n.add("MatMul", heat, n.constant(places))


def ratios(n):
    """What is divided by small numbers, which a product reads, too."""
    def gate():
        return n.add("Sigmoid", n.add("Mul", n.linear("x", 16, 16), n.constant(np.float32(2))))

    below = n.add("Mul", gate(), gate())
    ratio = n.add("Div", n.add("Mul", below, n.linear("x", 16, 16)), below)
    return n.add("Add", n.linear(ratio, 16, 8), n.linear(below, 16, 8))


def spectrum(n):
    """Logarithms of a product, of which what is near 0 counts most."""
    lines = n.add("Add", n.add("Abs", n.add("MatMul", "x", n.weight(64, 32, scale=0.1))), n.constant(np.float32(1e-5)))
    return n.linear(n.add("Log", lines), 32, 8)


def recurrent(n):
    """Operands that go together: what rounding one weight leaves, those of other columns make up for."""
    x = n.add("Add", n.add("Mul", "x", n.constant(np.float32(0.3))), n.constant(np.linspace(2, 6, 32, dtype=np.float32)))
    weights = n.weight(1, 64, 32, scale=0.05), n.weight(1, 64, 16), n.weight(1, 128, scale=0.1)
    x = n.add("LSTM", n.add("Transpose", x, perm=[1, 0, 2]), *weights, hidden_size=16)
    return n.add("Squeeze", x, n.constant(np.array([1], np.int64)))


NETS = [(cnn, (1, 3, 16, 16), TensorProto.FLOAT), (upsampling, (1, 3, 8, 8), TensorProto.FLOAT),
        (normalized, (1, 3, 8, 8), TensorProto.FLOAT),
        (transformer, (1, 8), TensorProto.INT64), (skips, (1, 3, 8, 8), TensorProto.FLOAT),
        (padded, (1, 3, 8, 8), TensorProto.FLOAT), (positions, (1, 3, 32, 32), TensorProto.FLOAT),
        (ratios, (1, 6, 16), TensorProto.FLOAT), (spectrum, (1, 6, 64), TensorProto.FLOAT),
        (recurrent, (1, 12, 32), TensorProto.FLOAT)]


def decibels(reference, y):
    wide = reference.astype(np.float64)
    return 10 * np.log10((wide ** 2).sum() / max(((wide - y) ** 2).sum(), 1e-30))


def reference(path, samples):
    import onnxruntime

    import onnx_runtime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnx_runtime.Session(path, options)
    return [session.run(None, {"x": s[None]})[0] for s in samples]


def run_program(server, args, path, sample, work):
    bundle = os.path.join(work, "data.pkl")
    arrays.save_bundle(bundle, [sample[None]], [np.load(os.path.join(work, "expected.npy"))])
    answer = server.run({"pte": path, "bundle": bundle, "rtol": 1e9, "atol": 1e9, "save": work}, args.timeout)
    if answer["stage"] != "ok":
        return None, f"{answer['stage']}: {answer['message']}"
    got = np.load(os.path.join(work, "got_0.npy"))
    np.save(os.path.join(work, "x.npy"), sample[None])
    done = subprocess.run([args.etc, "run", path, "--input", f"0={work}/x.npy", "--output", os.path.join(work, "run")],
                          capture_output=True, text=True)
    if done.returncode:
        return None, "etc run: " + done.stderr.strip()
    written = os.listdir(os.path.join(work, "run"))
    ours = np.load(os.path.join(work, "run", written[0]))
    same = decibels(got, ours)
    return got, None if same >= SAME else f"etc run is {same:.1f} dB from the runtime"


def node_fault(args, net, path):
    """None, or how many nodes are too many."""
    text = subprocess.run([args.etc, "inspect", path, "--json"], capture_output=True, check=True, timeout=args.timeout).stdout
    count = sum(d["nodes"] for m in json.loads(text)["methods"] for d in m["delegates"])
    return f"{count} nodes, not {NODES[net.name]}" if count > NODES.get(net.name, count) else None


def check(args, server, model, net, scheme, backend, work):
    """None, or what is wrong."""
    path = os.path.join(work, "model.pte")
    extra = ["--quantize", scheme.split()[0]]
    if scheme == "int8" or scheme.endswith(" samples"):
        extra += ["--calibrate", os.path.join(work, "calib.npz")]
    elif scheme.endswith(" random"):
        extra += ["--calibrate", "random"]
    if backend:
        extra += ["--backend", backend]
    stage, code, message, _ = etc_command.lower(args.etc, model, path, {}, extra, timeout=args.timeout)
    if stage != "ok":
        return f"{stage}: {code} {message}"
    signal, noise = [], []
    for sample in np.load(os.path.join(work, "test.npy")):
        want = reference(model, [sample])[0]
        np.save(os.path.join(work, "expected.npy"), want)
        got, fault = run_program(server, args, path, sample, work)
        if fault:
            return fault
        signal.append(want)
        noise.append(got)
    db = decibels(np.concatenate(signal), np.concatenate(noise))
    fault = node_fault(args, net, path) if backend and scheme == "int8" else None
    if fault:
        return fault
    least = INT8.get(net.name, SCHEMES[scheme]) if scheme == "int8" else SCHEMES[scheme]
    return None if db >= least else f"{db:.1f} dB, not {least}"


def check_statistics(args, model, work):
    """Samples, and statistics of them, make the same program by a method that needs no more than statistics (auto runs samples)."""
    paths = [os.path.join(work, name) for name in ("a.pte", "b.pte", "stats")]
    data = os.path.join(work, "calib.npz")
    for command in (["lower", model, "-o", paths[0], "--quantize", "int8", "--calibrate", data, "--calibrate-method", "mse"],
                    ["calibrate", model, "--data", data, "-o", paths[2]],
                    ["lower", model, "-o", paths[1], "--quantize", "int8", "--ranges", paths[2], "--calibrate-method", "mse"]):
        done = subprocess.run([args.etc, *command], capture_output=True, text=True)
        if done.returncode:
            return f"{command[0]}: {done.stderr.strip()}"
    with open(paths[0], "rb") as a, open(paths[1], "rb") as b:
        return None if a.read() == b.read() else "the programs differ"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--etc", default=etc_command.default_command(ROOT))
    p.add_argument("-k", metavar="PATTERN", default="*")
    p.add_argument("--jobs", type=int, default=1, help="taken for the sake of its siblings")
    p.add_argument("--timeout", type=float, default=60.0)
    args = p.parse_args()
    passed = failed = 0
    server = runtime.Runtime()
    for make, shape, dtype in NETS:
        with tempfile.TemporaryDirectory(prefix="etc-quantize-") as work:
            net = Net(make.__name__, shape, dtype)
            model = os.path.join(work, f"{net.name}.onnx")
            net.save(make(net), model)
            np.savez_compressed(os.path.join(work, "calib.npz"), x=net.samples(SAMPLES))
            np.save(os.path.join(work, "test.npy"), net.samples(TESTS))
            cases = [(f"{net.name} {scheme} {backend or 'portable'}",
                      lambda s=scheme, b=backend: check(args, server, model, net, s, b, work))
                     for scheme in SCHEMES for backend in ("", "xnnpack:min-ops=1")]
            cases.append((f"{net.name} statistics", lambda: check_statistics(args, model, work)))
            for name, run in cases:
                if not fnmatch.fnmatchcase(name, args.k):
                    continue
                fault = run()
                passed += fault is None
                failed += fault is not None
                print("FAIL" if fault else "ok  ", name, fault or "", flush=True)
    server.close()
    print(f"quantize: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
