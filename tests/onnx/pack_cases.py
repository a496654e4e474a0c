#!/usr/bin/env python3
"""Packs cases of tests/conformance with the values that references give into tests/onnx/cases/*.gz, for `values_of` (cases.c).

    .venv/bin/python tests/onnx/pack_cases.py            all files
    .venv/bin/python tests/onnx/pack_cases.py control    one of them

ctest then compares the numbers of every translator with ONNX Runtime's without having it. Models and inputs are those of the
scripts; of long tables a seeded part of each operator is taken. No value comes from etc. To be run again when a script
there got a case that ctest should know; the same cases give the same file.
"""

import argparse
import collections
import gzip
import os
import random
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", x) for x in ("conformance", "lib", "graphfuzz")]

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnx.reference  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

import arrays  # noqa: E402
import cases  # noqa: E402
import classic  # noqa: E402
import contrib  # noqa: E402
import contrib_quantized  # noqa: E402
import control  # noqa: E402
import dynamic  # noqa: E402
import dynamic_cases  # noqa: E402
import dynamic_rows  # noqa: E402
import experts  # noqa: E402
import functions  # noqa: E402
import generate  # noqa: E402
import graph  # noqa: E402
import onnx_cases  # noqa: E402
import operators  # noqa: E402
import quantized  # noqa: E402
import semantics  # noqa: E402
import xnnpack_ops  # noqa: E402

SEED = 5
MOST_BYTES = 6000  # of a case
CHOSEN = os.path.join(HERE, "cases", "chosen.txt")  # lines TABLE NAME: cases for code that no other packed case reaches
GRAPH_SEEDS = range(3_000_000, 3_000_300)
COARSE = 8  # floats of chosen cases are multiples of 1 / COARSE where they are many, which compresses well
NOT_PACKED = {"LogSoftmax-masked": "differences of logarithms of 3e5 depend on the order of sums",
              **{f"QLinearAdd_{kind}_middle_ranks": "half of the sums lie in the middle between two codes" for kind in ("uint8", "int8")}}


class Packed:
    """codes: the share of elements that may differ by one code, where a product lies in the middle between two."""

    def __init__(self, name, model, runs, settings=(), refused="", rtol=1e-3, atol=1e-4, codes=0.0):
        self.name, self.model, self.runs, self.settings = name, model, runs, list(settings)
        self.refused, self.rtol, self.atol, self.codes = refused or "", rtol, atol, codes

    def text(self, value):
        data = value if isinstance(value, bytes) else value.encode()
        return struct.pack("<I", len(data)) + data

    def tensor(self, a):
        a = np.asarray(a)
        number = helper.np_dtype_to_tensor_dtype(a.dtype)
        return struct.pack(f"<BB{a.ndim}q", number, a.ndim, *a.shape) + np.ascontiguousarray(a).tobytes()

    def pack(self):
        out = [self.text(self.name), self.text(self.refused), struct.pack("<dddI", self.rtol, self.atol, self.codes, len(self.settings))]
        for name, value in self.settings:
            out += [self.text(name), self.text(value)]
        out += [self.text(self.model.SerializeToString()), struct.pack("<I", len(self.runs))]
        for inputs, outputs in self.runs:
            for group in (inputs, outputs):
                out += [struct.pack("<I", len(group)), *[self.tensor(a) for a in group]]
        return b"".join(out)


def dim_settings(dims):
    return [("dim", f"{k}={v}" if v != 0 else f"{k}=0..0") for k, v in sorted(dims.items())]


def of_node(case, path):
    if case.refused:
        return Packed(case.name, case.model, [], dim_settings(case.dims), case.refused)
    runs = [(list(f.values()), case.expected(path, f)) for f in case.feeds]
    return Packed(case.name, case.model, runs, dim_settings(case.dims), rtol=case.rtol, atol=case.atol)


def of_contrib(case, path):
    if case.compare:
        return None
    runs = [(list(f.values()), contrib.expected(case, f, path)) for f in case.feeds]
    codes = 0.02 if "Linear" in case.name else 0.0
    return Packed(case.name, case.model, runs, dim_settings(case.dims), rtol=case.rtol, atol=case.atol, codes=codes)


def dynamic_settings(case):
    bounds = {"n": f"{case.least_n}..{case.high}", "m": f"{case.least_m}..{case.high}"}
    bounds = {k: v for k, v in bounds.items() if f"{k}," in case.inputs or f"{k}]" in case.inputs}
    flags = [x for flag in case.flags for x in flag.split("=", 1)] if all("=" in f for f in case.flags) else list(case.flags)
    settings = [(a.lstrip("-"), b) for a, b in zip(flags[::2], flags[1::2])]
    return dim_settings(bounds) + settings


def of_dynamic(case, path):
    feeds = [case.feeds(n, m) for n, m in case.sizes]
    return Packed(case.name, case.model(), [(f, dynamic.expected(path, f)) for f in feeds], dynamic_settings(case), rtol=1e-4, atol=1e-5)


def of_control(case, path):
    return Packed(case.name, case.model(), list(zip(case.feeds, control.expected(case, path, case.feeds)[1])), dim_settings(case.dims), rtol=1e-4, atol=1e-5)


def of_quantized(case, path):
    reference = quantized.Reference(path, case.feeds)
    if not reference.results:
        return None
    return Packed(case.name, case.model, [(list(case.feeds.values()), reference.results[-1])], dim_settings(case.dims),
                  rtol=1e-4, atol=1e-5, codes=0.03)


class Official:
    def __init__(self, case):
        self.name, self.case = case["name"], case
        self.model = onnx.load(os.path.join(case["dir"], "model.onnx"))


def official_cases():
    """Those that pass on the runtime, without the bodies of functions spelt out."""
    with open(os.path.join(ROOT, "tests", "conformance", "floor.txt")) as f:
        floor = {line.split()[0] for line in f if line.strip() and not line.startswith("#")}
    found = onnx_cases.load(os.path.join(ROOT, "build", "conformance"))
    return [Official(c) for c in found if c["name"] in floor and c["kind"] == "node" and "_expanded" not in c["name"]]


def of_official(case, path):
    """The inputs are the official ones, the values of them from the reference evaluator or ONNX Runtime."""
    inputs, _ = arrays.load_bundle(os.path.join(case.case["dir"], "data.pkl"))
    feed = dict(zip(case.case["inputs"], inputs))
    try:
        outputs = [np.asarray(x) for x in onnx.reference.ReferenceEvaluator(case.model).run(None, feed)]
    except Exception:  # noqa: BLE001  it lacks the operator at this version
        outputs = cases.ort_session(path).run(None, feed)
    return Packed(case.name, case.model, [(inputs, outputs)], dim_settings(case.case["dims"]), rtol=max(case.case["rtol"], 1e-4), atol=1e-4)


def tables(functions):
    return [case for table in functions for case in table()]


def quantized_cases():
    q = quantized
    return [*q.qdq_cases(), *q.random_cases(0, 12), *q.written_cases(), *q.run_time_cases(), *q.edge_cases()]


class RandomGraph:
    """A graph of tests/graphfuzz; its values are computed step by step, and known to be well conditioned."""

    def __init__(self, seed):
        self.name, self.case = f"graph-{seed}", generate.generate(seed)
        self.model = self.case.model()


def graph_cases():
    return [RandomGraph(seed) for seed in GRAPH_SEEDS]


def of_graph(case, path):
    runs, rtol, atol = [], 0.0, 0.0
    for feeds in [case.case.inputs, *case.case.feeds]:
        values, errors = graph.evaluate_all(case.case, feeds)
        for x in case.case.outputs:
            rtol, atol = map(max, zip((rtol, atol), graph.tolerance(values[x], errors.get(x, 0.0))))
        runs.append((list(feeds.values()), [values[x] for x in case.case.outputs]))
    return Packed(case.name, case.model, runs, [("dim", f"{s}={lo}..{hi}") for s, (lo, hi) in sorted(case.case.symbols.items())],
                  rtol=rtol, atol=atol)


def function_cases():
    return [functions.Case(k, onnx.parser.parse_model(v)) for k, v in functions.MODELS.items()] + [functions.Case("overloads", functions.overloads())]


# File -> cases, how one is packed, how many of one operator are taken.
FILES = {
    "semantics": (lambda: [c for f in semantics.FAMILIES for c in f.cases()], of_node, 14),
    "operators": (lambda: tables(operators.ALL), of_node, 99),
    "xnnpack": (lambda: tables(xnnpack_ops.FAMILIES), of_node, 24),
    "contrib": (lambda: tables(contrib.ALL), of_contrib, 99),
    "contrib_quantized": (lambda: tables(contrib_quantized.ALL), of_contrib, 99),
    "experts": (lambda: tables(experts.ALL), of_contrib, 99),
    "classic": (lambda: tables(classic.ALL), of_contrib, 24),
    "official": (official_cases, of_official, 6),
    "functions": (function_cases, of_contrib, 99),
    "dynamic": (lambda: dynamic_cases.CASES, of_dynamic, 999),
    "control": (lambda: control.CASES, of_control, 999),
    "quantized": (quantized_cases, of_quantized, 8),
    "graphs": (graph_cases, of_graph, 999),
}


def kind_of(case):
    model = case.model() if callable(case.model) else case.model
    return " ".join(sorted({n.op_type for n in model.graph.node})) if len(model.graph.node) < 9 else case.name.split("-")[0]


def coarse(a):
    """The array with few different values; exact in f16, too."""
    a = np.asarray(a)
    return (np.round(a.astype(np.float64) * COARSE) / COARSE).astype(a.dtype) if a.dtype.kind == "f" and a.size > 500 else a


def coarsen(case):
    if isinstance(getattr(case, "oracle", None), list) or callable(case.model):
        return case
    for feed in case.feeds if isinstance(getattr(case, "feeds", None), list) else ():
        if isinstance(feed, dict):
            feed.update({k: coarse(v) for k, v in feed.items()})
    for tensor in case.model.graph.initializer:
        if len(tensor.dims) and tensor.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16):
            tensor.CopyFrom(numpy_helper.from_array(coarse(numpy_helper.to_array(tensor)), tensor.name))
    return case


def chosen_cases():
    """(case, how it is packed) for each line of chosen.txt."""
    wanted = collections.defaultdict(set)
    with open(CHOSEN) as f:
        for line in f:
            table, _, name = line.strip().partition(" ")
            wanted[table].add(name)
    for table, names in wanted.items():
        make, pack, _ = FILES[table]
        found = [c for c in make() if c.name in names]
        missing = names - {c.name for c in found}
        if missing:
            raise SystemExit(f"chosen.txt: {table} has no {', '.join(sorted(missing))}")
        yield from ((coarsen(c), pack) for c in found)


def patterned(tensor):
    """The tensor with few different values where it has many: models without values need none, and compress better."""
    a = numpy_helper.to_array(tensor)
    if a.size > 64 and a.dtype.kind in "fiu" and a.dtype.itemsize < 8:
        pattern = np.minimum((np.arange(a.size) * 7 % 5).astype(a.dtype), a.max())  # indices stay in range
        if a.dtype.kind == "f":
            pattern = (pattern + 1 if a.min() > 0 else pattern - 2) / 8  # scales stay positive
        tensor.CopyFrom(numpy_helper.from_array(pattern.astype(a.dtype).reshape(a.shape), tensor.name))


def is_large(case):
    feeds = case.feeds if isinstance(case.feeds, list) else [case.feeds]
    return case.model.ByteSize() + sum(a.nbytes for f in feeds for a in f.values()) > MOST_BYTES


def model_cases():
    """What other files leave out, as models without values: what lowering makes of them is recorded."""
    for name in ("xnnpack", "quantized", "classic", "contrib", "contrib_quantized", "experts", "operators"):
        make, _, most = FILES[name]
        table = make()
        packed = {id(c) for c in choose(table, most) if not is_large(c)}
        for case in table:
            if id(case) not in packed and not getattr(case, "refused", None):
                for tensor in case.model.graph.initializer:
                    patterned(tensor)
                yield case


def of_model(case, path):
    return Packed(case.name, case.model, [], dim_settings(case.dims))


def of_dynamic_model(case, path):
    return Packed(case.name, case.model(), [], dynamic_settings(case))


def choose(table, most):
    """A seeded part of the cases of each operator, in the order of the table; a case more changes that of its own operator alone."""
    kinds = collections.defaultdict(list)
    for i, case in enumerate(table):
        kinds[kind_of(case)].append(i)
    chosen = set()
    for kind in sorted(kinds):
        chosen.update(random.Random(f"{SEED} {kind}").sample(kinds[kind], min(most, len(kinds[kind]))))
    return [table[i] for i in sorted(chosen)]


def packed_cases(name):
    """(case, how it is packed), and the bytes that one may have."""
    if name == "chosen":
        return chosen_cases(), None
    if name == "models":
        long_rows = [(case, of_dynamic_model) for case in dynamic_rows.CASES]
        return [*((case, of_model) for case in model_cases()), *long_rows], None
    make, pack, most = FILES[name]
    return ((case, pack) for case in choose(make(), most)), MOST_BYTES


def write(name):
    pairs, most_bytes = packed_cases(name)
    parts, left_out = [], []
    with tempfile.TemporaryDirectory(prefix="etc-cases-") as work:
        path = os.path.join(work, "model.onnx")
        for case, pack in pairs:
            if case.name in NOT_PACKED:
                left_out.append(f"{case.name}: {NOT_PACKED[case.name]}")
                continue
            onnx.save(case.model() if callable(case.model) else case.model, path)
            try:
                packed = pack(case, path)
            except Exception as e:  # noqa: BLE001  the reference has no kernel, or another build of it had
                left_out.append(f"{case.name}: {' '.join(str(e).split())[:100]}")
                continue
            data = packed.pack() if packed else b""
            if data and (most_bytes is None or len(data) <= most_bytes):
                parts.append(data)
            else:
                left_out.append(f"{case.name}: " + (f"{len(data)} bytes" if data else "cannot be compared element by element"))
    target = os.path.join(HERE, "cases", name + ".gz")
    with open(target, "wb") as f:
        f.write(gzip.compress(struct.pack("<8sI", b"ETCCASES", len(parts)) + b"".join(parts), 9, mtime=0))
    print(f"{name}: {len(parts)} cases, {os.path.getsize(target)} bytes, {len(left_out)} left out")
    for line in left_out:
        print("  " + line)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("names", nargs="*", choices=[*FILES, "chosen", "models", []], default=[])
    names = p.parse_args().names or [*FILES, "chosen", "models"]
    if len(names) == 1:
        write(names[0])
    for name in names if len(names) > 1 else ():  # a process each: what was drawn before must not matter
        subprocess.run([sys.executable, "-W", "ignore", os.path.abspath(__file__), name], check=True)


if __name__ == "__main__":
    main()
