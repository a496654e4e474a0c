#!/usr/bin/env python3
"""What XNNPACK must never be given, and what it computes: every op that the backend takes, on the real runtime against ONNX Runtime.

    tests/conformance/xnnpack_sweep.py [-k ROW,...] [--cases N] [--first N] [--full] [--seconds N]
    tests/conformance/xnnpack_sweep.py --replay ROW:NUMBER

The ops are the rows of backends/xnnpack/lower.def; one without cases fails. xnnpack_cases.py draws the cases: element types,
ranks 0 to 7, sizes of 1 and 0, windows of all kinds, broadcasting, constants on either side, special values, sizes that vary.
Many cases make one model, whose nodes then share delegates; a model that fails is halved until the cases that fail are found, and what may be
taken away from those without their passing is taken away. For each op it is counted how often a delegate really computed it:
never is a failure. What differs from ONNX Runtime on portable kernels in the same way is counted, and no failure.

Where XNNPACK's results for NaN and infinities are not those of ONNX, SPECIAL says how; finite values never differ.
"""

import argparse
import collections
import glob
import json
import os
import re
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "lib")]

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

import arrays  # noqa: E402
import etc_command  # noqa: E402
import runtime  # noqa: E402
import xnnpack_cases  # noqa: E402, F401  fills CASES, as xnnpack_cases_moves does
import xnnpack_cases_moves  # noqa: E402, F401
import xnnpack_draw  # noqa: E402
from cases import ort_session  # noqa: E402

QUICK, FULL = 20, 500  # cases an op
TOGETHER = 40  # in one model
TOLERANCE = {"float32": (1e-3, 2e-5), "float64": (1e-6, 1e-7), "float16": (1e-2, 1e-2)}
# Rows whose results for NaN and infinities differ from those of ONNX, as they do in the programs of the official exporter.
NUMBER_WINS = "of a number and NaN the number may be the result"
SPECIAL = {
    "ADAPTIVE_AVG_POOL2D": "of windows with infinities of both signs the result may be one of them",
    "AMAX": NUMBER_WINS,
    "AMIN": NUMBER_WINS,
    "ARGMAX": "NaN is nowhere",
    "ARGMIN": "NaN is nowhere",
    "AVG_POOL2D": "NaN and infinities become NaN in windows beside them, which are multiplied by zeros",
    "CLAMP": "NaN becomes a limit",
    "CLAMP_TENSOR": "NaN becomes a limit",
    "CONVOLUTION": "NaN and infinities become NaN in windows beside them, which are multiplied by zeros",
    "EXP": "exp(NaN) is 0",
    "LOG": "log(NaN) and log(inf) are about 88 on CPUs without AVX-512",
    "LOG_SOFTMAX": NUMBER_WINS,
    "MAXIMUM": NUMBER_WINS,
    "MAX_DIM": NUMBER_WINS,
    "MAX_POOL2D_WITH_INDICES": NUMBER_WINS,
    "MINIMUM": NUMBER_WINS,
    "MIN_DIM": NUMBER_WINS,
    "RSQRT": "1 / sqrt(inf) is NaN",
    "SQRT": "sqrt(inf) is NaN",
    "UPSAMPLE_BILINEAR2D_VEC": "NaN and infinities become NaN beside them, where they are multiplied by zeros",
    "WHERE_SELF": "a NaN that is chosen becomes infinite",
}
# Of those, rows whose finite results may become NaN.
SPREADS = {"AVG_POOL2D", "CONVOLUTION", "RSQRT", "UPSAMPLE_BILINEAR2D_VEC"}


def rows():
    """{row of lower.def: the op as --explain names it}"""
    with open(os.path.join(ROOT, "backends", "xnnpack", "lower.def")) as f:
        names = re.findall(r"^XNN_LOWER\((\w+),", f.read(), re.M)
    schemas = {}
    for path in glob.glob(os.path.join(ROOT, "schema", "ops", "*.def")):
        with open(path) as f:
            schemas.update(re.findall(r'^OP\((\w+),\s*\.schema = "([^(]+)\(', f.read(), re.M))
    return {name: schemas[name] for name in names}


# --- models ---

def make_model(samples):
    """All of them side by side; names begin with the number of the case."""
    nodes, inputs, outputs, constants = [], [], [], []
    for i, sample in enumerate(samples):
        prefix = f"{i}."
        for node in sample.nodes:
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            copy.name = prefix + node.name
            copy.input[:] = [prefix + x if x else "" for x in node.input]
            copy.output[:] = [prefix + x for x in node.output]
            nodes.append(copy)
        for (name, (shape, _)), array in zip(sample.inputs.items(), next(sample.feeds()).values()):
            inputs.append(helper.make_tensor_value_info(prefix + name, helper.np_dtype_to_tensor_dtype(array.dtype), shape))
        constants += [numpy_helper.from_array(v, prefix + k) for k, v in sample.constants.items()]
        outputs += [helper.make_tensor_value_info(prefix + x, helper.np_dtype_to_tensor_dtype(w.dtype), None)
                    for x, w in zip(sample.outputs, sample.expected[0])]
    graph = helper.make_graph(nodes, "sweep", inputs, outputs, constants)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", samples[0].opset)])


def draw(row, number, without=()):
    """The case with its expected outputs; None when it is no case, or ONNX Runtime cannot compute it."""
    try:
        sample = xnnpack_draw.Sample(row, number, without)
        if not sample.inputs:
            return None
        if sample.text:
            with np.errstate(all="ignore"):
                sample.expected = [[x.astype(np.float32) for x in sample.reference(*feed.values())] for feed in sample.feeds()]
            return sample
        sample.expected = [[np.zeros((), sample.dtype)] * len(sample.outputs)]
        session = ort_session(make_model([sample]).SerializeToString())
        sample.expected = []
        for feed in sample.feeds():
            sample.expected.append(session.run(None, {"0." + k: v for k, v in feed.items()}))
            if sample.symbolic and any(x.size == 0 for x in sample.expected[-1]) and all(x.size for x in feed.values()):
                return None  # of a size that lowering leaves out of the range: no window fits
        return sample
    except xnnpack_draw.Invalid:
        return None
    except Exception as e:
        if type(e).__module__.startswith("onnxruntime"):
            return None
        raise


# --- running ---

class Runner:
    def __init__(self, args, work, server):
        self.args, self.work, self.server = args, work, server
        self.backend = True

    def portable(self, sample):
        """(stage, text) of the case without the backend."""
        self.backend = False
        stage, text, _, wrong = self.run([sample])
        self.backend = True
        return ("mismatch", wrong[0]) if wrong else (stage, text)

    def lower(self, samples):
        """(stage, text, lines of --explain=json)"""
        source, target = os.path.join(self.work, "model.onnx"), os.path.join(self.work, "model.pte")
        if samples[0].text:
            source = os.path.join(self.work, "model.etir")
            with open(source, "w") as f:
                f.write(samples[0].text)
        else:
            onnx.save(make_model(samples), source)
        if os.path.exists(target):
            os.unlink(target)
        used = {x for s in samples for shape, _ in s.inputs.values() for x in shape}
        dims = {k: f"1..{v}" for k, v in xnnpack_draw.SYMBOLS.items() if k in used}
        extra = ["--backend", "xnnpack:min-ops=1", "--explain=json"] if self.backend else []
        stage, code, message, result = etc_command.lower(self.args.etc, source, target, dims, extra, self.args.timeout)
        return stage, f"{code} {message}", [d for d in result.diagnostics if "backend" in d]

    def run(self, samples):
        """(stage, text, lines, {index: what is wrong}); a stage other than ok is of all of them together."""
        stage, text, lines = self.lower(samples)
        if stage != "ok":
            return stage, text, lines, {}
        wrong = {}
        bundle = os.path.join(self.work, "data.pkl")
        for i, feeds in enumerate(zip(*(s.feeds() for s in samples))):
            expected = [w for s in samples for w in s.expected[i]]
            arrays.save_bundle(bundle, [a for f in feeds for a in f.values()], expected)
            answer = self.server.run({"pte": os.path.join(self.work, "model.pte"), "bundle": bundle, "rtol": 0, "atol": 0,
                                      "save": self.work}, self.args.timeout)
            if answer["stage"] not in ("ok", "mismatch"):
                return answer["stage"], answer["message"], lines, {}
            if re.search("written to|in the second", answer["message"]):
                return "run", answer["message"], lines, {}
            got = [arrays.load_npy(os.path.join(self.work, f"got_{k}.npy"), w.dtype) for k, w in enumerate(expected)]
            for k, s in enumerate(samples):
                for want in s.expected[i]:
                    text = difference(s, got.pop(0), want)
                    if text:
                        wrong.setdefault(k, f"at size {i}: {text}" if s.symbolic else text)
        return "ok", "", lines, wrong


def difference(sample, got, want):
    rtol, atol = TOLERANCE.get(str(want.dtype), (0, 0))
    if sample.special and sample.row in SPECIAL and got.shape == want.shape:
        odd = ~np.isfinite(want) | (~np.isfinite(got) if sample.row in SPREADS else False)
        got, want = np.where(odd, 0, got), np.where(odd, 0, want)
    if want.dtype.kind == "f" and want.size:
        with np.errstate(all="ignore"):
            finite = np.abs(want[np.isfinite(want)])
        atol = max(atol, (1e-2 if want.dtype == np.float16 else 1e-5) * float(finite.max(initial=0)))
    return arrays.difference(got, want, rtol, atol)


def examine(runner, samples, result):
    """Runs them together; in halves when that fails. result(sample, stage, text, lines) for each."""
    stage, text, lines, wrong = runner.run(samples)
    if stage != "ok" and len(samples) > 1:
        middle = len(samples) // 2
        examine(runner, samples[:middle], result)
        examine(runner, samples[middle:], result)
        return
    if stage not in ("ok", "lower"):
        also = runner.portable(samples[0])
        stage = "portable" if also[0] == stage else stage
    by_case = collections.defaultdict(list)
    for line in lines:
        if samples[0].text and "aten" in line:
            by_case[0].append(line)
        elif "node" in line:
            number, role = line["node"].split(".")[:2]
            if role == "case":
                by_case[int(number)].append(line)
    for i, sample in enumerate(samples):
        if i not in wrong:
            result(sample, stage, text, by_case[i])
        elif runner.portable(sample)[0] == "mismatch":
            result(sample, "portable", wrong[i], by_case[i])
        else:
            alone = len(samples) == 1 or runner.run([sample])[3]
            result(sample, "mismatch", wrong[i] if alone else f"in company only: {wrong[i]}", by_case[i])


class Sweep:
    def __init__(self, args):
        self.args, self.lock, self.end = args, threading.Lock(), time.monotonic() + args.seconds if args.seconds else None
        self.run, self.delegated, self.left = collections.Counter(), collections.Counter(), collections.defaultdict(collections.Counter)
        self.failures, self.portable, self.invalid, self.refused = [], [], 0, collections.Counter()

    def result(self, sample, stage, text, lines):
        op = self.args.rows[sample.row]
        with self.lock:
            self.run[sample.row] += 1
            for line in lines:
                if line["aten"] == op:
                    self.delegated[sample.row] += "delegate" in line
                    self.left[sample.row].update([line["rule"]] if "rule" in line else [])
            if stage == "lower":  # a refusal of the model as such: not XNNPACK's business
                self.refused[text.split(" ")[0]] += 1
            elif stage == "portable":  # nor this: the rest of the compiler, or ONNX Runtime
                self.portable.append(f"{sample.key} {text}")
            elif stage != "ok":
                self.failures.append(sample)
                print(f"FAIL {sample.key}{' special' if sample.special else ''} {stage}: {text[:400]}", flush=True)

    def work_off(self, chunks):
        server = runtime.Runtime()
        with tempfile.TemporaryDirectory(prefix="etc-sweep-") as work:
            runner = Runner(self.args, work, server)
            while True:
                with self.lock:
                    chunk = next(chunks, None)
                if chunk is None or (self.end and time.monotonic() > self.end):
                    break
                samples = [draw(row, number) for row, number in chunk]
                with self.lock:
                    self.invalid += samples.count(None)
                groups = collections.defaultdict(list)
                for sample in samples:
                    if sample:
                        groups[sample.opset, sample.symbolic, sample.text].append(sample)
                for group in groups.values():
                    examine(runner, group, self.result)
        server.close()


def chunks_of(chosen, numbers):
    """Numbers first, ops within: when time is up every op has had its share."""
    all_cases = [(row, number) for number in numbers for row in chosen]
    for i in range(0, len(all_cases), TOGETHER):
        yield all_cases[i:i + TOGETHER]


# --- one case ---

def smallest(runner, sample):
    """The case without what it fails without, too."""
    without, last = [], sample
    for thing in xnnpack_draw.SIMPLIFICATIONS:
        smaller = draw(sample.row, sample.number, (*without, thing))
        if smaller is None:
            continue
        stage, _, _, wrong = runner.run([smaller])
        if wrong or stage not in ("ok", "lower"):
            without.append(thing)
            last = smaller
    return without, last


def replay(args, key, shrink=True):
    row, number = key.split(":")
    sample = draw(row, int(number))
    if sample is None:
        print(f"{key}: no case")
        return 1
    server = runtime.Runtime()
    with tempfile.TemporaryDirectory(prefix="etc-sweep-") as work:
        runner = Runner(args, work, server)
        without, sample = smallest(runner, sample) if shrink else ([], sample)
        stage, text, lines, wrong = runner.run([sample])
        portable = runner.portable(sample)
    server.close()
    print(f"-- {key}{' without ' + ', '.join(without) if without else ''}: {wrong.get(0) or f'{stage} {text}'}")
    print("   on portable kernels: " + " ".join(portable))
    print("   " + (sample.text or onnx.printer.to_text(make_model([sample]))).replace("\n", "\n   "))
    for line in lines:
        print("   " + json.dumps({k: v for k, v in line.items() if k not in ("backend", "method", "index", "message", "advice")}))
    print(f"   again: tests/conformance/xnnpack_sweep.py --replay {key}", flush=True)
    return 1 if wrong or stage not in ("ok", "lower") else 0


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--etc", default=etc_command.default_command(ROOT))
    p.add_argument("-k", metavar="ROW,...", help="only these ops")
    p.add_argument("--cases", type=int, default=QUICK, help="of each op")
    p.add_argument("--first", type=int, default=0, help="number of the first")
    p.add_argument("--full", dest="cases", action="store_const", const=FULL, help=f"{FULL} of each op")
    p.add_argument("--seconds", type=float, help="begin nothing after that time")
    p.add_argument("--replay", metavar="ROW:NUMBER")
    p.add_argument("-v", "--verbose", action="store_true", help="for each op, how often it was delegated and which rules left it")
    p.add_argument("-j", "--jobs", type=int, default=min(os.cpu_count() or 1, 8))
    p.add_argument("--timeout", type=float, default=60.0)
    args = p.parse_args()
    args.rows = rows()
    if args.replay:
        return replay(args, args.replay)
    missing = [row for row in args.rows if row not in xnnpack_draw.CASES]
    chosen = [row for row in args.rows if row in xnnpack_draw.CASES and (not args.k or row in args.k.split(","))]
    sweep = Sweep(args)
    chunks = chunks_of(chosen, range(args.first, args.first + args.cases))
    begin = time.monotonic()
    threads = [threading.Thread(target=sweep.work_off, args=(chunks,)) for _ in range(args.jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for sample in sweep.failures[:12]:
        replay(args, sample.key)
    never = [row for row in chosen if not sweep.delegated[row]]
    for row in chosen if args.verbose else never:
        print(f"{row}: {sweep.run[row]} cases, {sweep.delegated[row]} times in a delegate, left by {dict(sweep.left[row])}")
    for text in sweep.portable if args.verbose else []:
        print(f"portable kernels as well: {text[:200]}")
    for row in missing:
        print(f"{row}: no cases; xnnpack_cases.py needs them")
    print(f"xnnpack_sweep: {sum(sweep.run.values())} cases of {len(chosen)} ops in {time.monotonic() - begin:.0f} s, {sweep.invalid} drawn that are no cases, "
          f"{sum(sweep.refused.values())} models refused, {len(sweep.portable)} differ on portable kernels as well, {len(sweep.failures)} failed, {len(never)} ops never delegated, {len(missing)} without cases")
    return 1 if sweep.failures or never or missing or not sweep.run else 0


if __name__ == "__main__":
    sys.exit(main())
