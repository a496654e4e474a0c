#!/usr/bin/env python3
"""Single convolutions on XNNPACK beside ONNX Runtime: which shapes are slower, and by how much.

  convolutions.py [--etc build/release/etc] [--against ETC] [--cpu CPU] [--quick] [-k PATTERN,...] [--share SECONDS]

Each row of convolution_shapes.txt becomes a model of one operator with seeded weights and a bias, which is lowered with `etc
lower --backend xnnpack`. Program and ONNX Runtime, both on one thread, run in turn in this process, and the processor time
of the fastest run counts; loading and the first run, in a process of its own, give the anonymous memory that each adds
(--memory). --against lowers with another etc as well and shows its time in the same run, for what a change gains; --cpu is for
the first one alone, so that one command given twice shows what the setting gains.

A model of one operator reorders its input and result between NCHW and NHWC, which a network does at its ends only. The column
"within" is without that: our program for the same operator on images in NHWC, beside ONNX Runtime on the plain one.

Prints the shapes, then the geometric mean and the worst of each kind. Fails when a result is wrong or a ratio is above the limit.
"""
import argparse
import fnmatch
import itertools
import math
import os
import pathlib
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("zoo", "lib", "conformance", "bench")]

import latency  # noqa: E402
import measure  # noqa: E402

LIMIT = 1.1   # times ONNX Runtime
TRIES = 3     # measurements of a shape that is above the limit
QUICK = 6     # every how many shapes --quick takes
RTOL = 2e-4   # of the largest element
FLAGS = {"k": 1, "s": 1, "p": 0, "d": 1, "o": 0}


class Shape:
    """A row of the table."""

    def __init__(self, kind, row):
        words = row.split()
        self.kind, self.name = kind, words[0]
        self.dims = [int(d) for d in words[1].split("x")]
        self.out, self.groups = int(words[2]), 1
        rank = len(self.dims) - 2
        for flag, value in FLAGS.items():
            setattr(self, flag, [value] * rank)
        for word in words[3:]:
            entries = [int(e) for e in word[1:].split("x")]
            if word[0] == "g":
                self.groups = entries[0]
            elif word[0] in FLAGS and len(entries) in (1, rank):
                setattr(self, word[0], entries * rank if len(entries) == 1 else entries)
            else:
                raise ValueError(f"{self.name}: what is '{word}'?")
        self.transposed = kind.startswith("transposed")
        self.text = " ".join(words[1:])

    def model(self, nhwc=False):
        """Bytes of the ONNX file, and an input; both sides in NHWC where the channels come last."""
        import numpy as np
        from onnx import TensorProto, helper, numpy_helper
        rng = np.random.default_rng(zlib.crc32(f"{self.name} {self.text}".encode()))
        left, right = (self.dims[1], self.out) if self.transposed else (self.out, self.dims[1])
        shape = (left, right // self.groups, *self.k)
        weights = [rng.normal(size=shape) / math.sqrt(math.prod(shape[1:])), rng.normal(size=self.out)]
        more = {"output_padding": self.o} if any(self.o) else {}
        ends = ("from", "to") if nhwc else ("x", "y")
        nodes = [helper.make_node("ConvTranspose" if self.transposed else "Conv", [ends[0], "w", "b"], [ends[1]], kernel_shape=self.k,
                                  strides=self.s, pads=self.p * 2, dilations=self.d, group=self.groups, **more)]
        rank = len(self.dims)
        dims, inward, outward = self.dims, [0, rank - 1, *range(1, rank - 1)], [0, *range(2, rank), 1]
        if nhwc:
            dims = [self.dims[i] for i in outward]
            nodes = [helper.make_node("Transpose", ["x"], ["from"], perm=inward), *nodes,
                     helper.make_node("Transpose", ["to"], ["y"], perm=outward)]
        graph = helper.make_graph(
            nodes, "convolution", [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * len(self.dims))],
            [numpy_helper.from_array(w.astype(np.float32), name) for w, name in zip(weights, "wb")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        x = rng.normal(size=self.dims).astype(np.float32)
        return model.SerializeToString(), np.ascontiguousarray(x.transpose(outward)) if nhwc else x


def shapes():
    kind, found = None, []
    for line in (pathlib.Path(__file__).parent / "convolution_shapes.txt").read_text().splitlines():
        line = line.partition("#")[0].strip()
        if line.startswith("["):
            kind = line.strip("[]")
        elif line:
            found.append(Shape(kind, line))
    return found


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--etc", type=pathlib.Path, default=ROOT / "build" / "release" / "etc")
    parser.add_argument("--against", type=pathlib.Path, help="another etc, for comparison")
    parser.add_argument("--cpu", help="lower with --backend xnnpack:cpu=CPU")
    parser.add_argument("--quick", action="store_true", help=f"one of {QUICK} shapes")
    parser.add_argument("-k", metavar="PATTERN,...", help="only the shapes, or kinds, of these names")
    parser.add_argument("--share", type=float, default=0.4, help="seconds of runs for a shape")
    parser.add_argument("--memory", action="store_true", help="also measure memory, which takes twice the time")
    return parser.parse_args()


def selected(args):
    if args.k:
        patterns = args.k.split(",")
        return [s for s in shapes() if any(fnmatch.fnmatch(name, p) for p in patterns for name in (s.name, s.kind))]
    return shapes()[::QUICK if args.quick else 1]


def timed(runs, share):
    """Processor time in milliseconds of the fastest run of each."""
    import time
    return latency.milliseconds(runs, 1000, share, time.process_time)


def measure_shape(args, shape, folder, fresh):
    """A row, or a message instead of it."""
    import arrays
    import numpy as np
    path = folder / "model.onnx"
    content, plain = shape.model()
    path.write_bytes(content)
    session, tensor = latency.session_of(path), arrays.to_torch(plain)
    expected = session.run(None, {"x": plain})[0]
    row = {"name": shape.name, "kind": shape.kind, "text": shape.text}
    runs = [lambda: session.run(None, {"x": plain})]
    backend = f"xnnpack:cpu={args.cpu}" if args.cpu else "xnnpack"
    for i, (etc, how) in enumerate(pair for pair in ((args.etc, backend), (args.against, "xnnpack")) if pair[0]):
        program_path = folder / f"{i}.pte"
        measure.run([etc, "lower", path, "-o", program_path, "--backend", how])
        program = latency.Program(program_path)
        got = program.outputs([tensor])[0]
        wrong = np.abs(got - expected).max() / max(1, np.abs(expected).max()) if got.shape == expected.shape else math.inf
        if not wrong < RTOL:
            return f"{shape.name}: outputs of {etc} are off by {wrong:.2g}"
        runs.append(lambda p=program: p.method.execute([tensor]))
        if i == 0:
            found = latency.facts(args, program_path)
            row.update(calls=found["kernels"], delegates=found["delegates"], growth=found["bytes"] / len(content))
    if fresh:
        row["memory"], row["reference_memory"] = (fresh.added(p, [plain])[1] / (1 << 20) for p in (folder / "0.pte", path))
    content, x = shape.model(nhwc=True)
    path.write_bytes(content)
    measure.run([args.etc, "lower", path, "-o", folder / "within.pte", "--backend", backend])
    within, last = latency.Program(folder / "within.pte"), arrays.to_torch(x)
    runs.append(lambda: within.method.execute([last]))
    best = None
    for _ in range(TRIES):
        again = timed(runs, args.share)
        best = [min(pair) for pair in zip(best or again, again)]
        if best[1] <= LIMIT * best[0]:
            break
    row.update(reference=best[0], ms=best[1], ratio=best[1] / best[0], within=best[-1] / best[0])
    if args.against:
        row["against"] = best[2] / best[0]
    return row


def line_of(row):
    text = f"{row['kind']:14} {row['name']:22} {row['text']:48} {row['calls']:3} / {row['delegates']}  {row['ms']:8.3f}"
    text += f" {row['reference']:8.3f} {row['ratio']:6.2f} {row['within']:6.2f}"
    if "against" in row:
        text += f" {row['against']:6.2f}"
    if "memory" in row:
        text += f"   {row['memory']:6.1f} {row['reference_memory']:6.1f} MiB"
    return text + (" *" if row["ratio"] > LIMIT else "")


def mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def summary(rows):
    for kind, group in itertools.groupby(rows, key=lambda r: r["kind"]):
        group = list(group)
        worst = max(group, key=lambda r: r["ratio"])
        before = f", before {mean([r['against'] for r in group]):.2f}" if "against" in worst else ""
        print(f"{kind:14} {len(group):3} shapes: mean {mean([r['ratio'] for r in group]):.2f}{before}, within {mean([r['within'] for r in group]):.2f}, "
              f"{sum(r['ratio'] > LIMIT for r in group)} above {LIMIT}, worst {worst['ratio']:.2f} ({worst['name']})")


def main():
    args = parse_arguments()
    for etc in filter(None, (args.etc, args.against)):
        if not os.access(etc, os.X_OK):
            sys.exit(f"convolutions.py: there is no command {etc}; build it or say --etc PATH")
    import torch
    from executorch.extension.pybindings.portable_lib import _unsafe_reset_threadpool
    from fresh import Fresh
    torch.set_num_threads(1)
    _unsafe_reset_threadpool(1)
    rows, faults, fresh = [], [], Fresh() if args.memory else None
    print(f"{'kind':14} {'name':22} {'shape':48} calls / d.     ms     ORT  ratio within{' before' if args.against else ''}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for shape in selected(args):
            try:
                row = measure_shape(args, shape, pathlib.Path(folder), fresh)
            except (RuntimeError, measure.CommandFailed) as error:
                row = f"{shape.name}: {error}"
            if isinstance(row, str):
                faults.append(row)
                continue
            rows.append(row)
            print(line_of(row), flush=True)
    summary(rows)
    faults += [f"{r['name']}: {r['ratio']:.2f} x ONNX Runtime" for r in rows if r["ratio"] > LIMIT]
    for fault in faults:
        print(f"FAILED {fault}")
    print(f"convolutions: {len(rows)} compared, {len(faults)} failed")
    return 1 if faults or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
