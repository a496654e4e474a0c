#!/usr/bin/env python3
"""Recurrent networks: our programs beside ONNX Runtime, and that nothing but time grows with the number of steps.

  recurrent.py [--etc build/release/etc] [--quick] [-k PATTERN,...] [--rounds N]

Each network is one of onnx.helper with seeded weights. Its program with XNNPACK delegates, the one with portable kernels
and ONNX Runtime, all on one thread, run in turn in this process; the processor time of the fastest run counts. How long
loading takes, and how much anonymous memory loading and a first run add, is measured in a process of its own for each.

Fails when one of our programs is wrong, or a limit below is not kept. The limits of time are what was reached, with room
for noise: below 128 hidden units what counts is not the arithmetic but calls, of which ONNX Runtime has one for all steps.
Writes JSON to build/bench unless only some networks are measured.
"""
import argparse
import dataclasses
import fnmatch
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("zoo", "lib", "conformance", "bench")]

import latency  # noqa: E402
import measure  # noqa: E402
from fresh import Fresh  # noqa: E402

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
# XNNPACK's time / ONNX Runtime's, by the hidden size, and for one or two steps.
TIME = ((128, 1.5), (64, 2.75), (0, 6.0))
FEW, FEW_TIME = 2, 1.5
MEMORY, SPARE = 1.5, 2 << 20  # times the memory that ONNX Runtime adds, and bytes besides
GROWTH = 1.02  # of file and weights, from the fewest steps to the most
NOISE = 1.25
TRIES, SHARE = 4, 2.0


@dataclasses.dataclass
class Network:
    op: str
    hidden: int
    steps: int
    directions: int = 1
    width: int = 0
    layers: int = 1
    dynamic: bool = False  # the length varies up to `steps`
    quick: bool = False

    @property
    def name(self):
        both = "bi" if self.directions == 2 else ""
        layers = f"_x{self.layers}" if self.layers > 1 else ""
        return f"{both}{self.op.lower()}_{self.hidden}{layers}_{self.steps}{'_dynamic' if self.dynamic else ''}"


NETWORKS = [
    *(Network(op, hidden, steps, quick=(op, hidden, steps) in {("LSTM", 256, 10), ("LSTM", 256, 100), ("GRU", 64, 100)})
      for op in ("LSTM", "GRU") for hidden in (16, 64, 256, 768) for steps in (1, 2, 10, 100, 500)),
    Network("LSTM", 256, 160, width=40, layers=3, quick=True),  # a speaker encoder
    Network("LSTM", 64, 100, directions=2, layers=2, quick=True),  # as for EEG
    Network("LSTM", 256, 100, directions=2), Network("GRU", 128, 100, directions=2, layers=2),
    Network("GRU", 256, 100, dynamic=True), Network("RNN", 128, 100)]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--etc", type=pathlib.Path, default=ROOT / "build" / "release" / "etc")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "bench")
    parser.add_argument("--quick", action="store_true", help="only some networks, measured shortly")
    parser.add_argument("-k", metavar="PATTERN,...", help="only these networks")
    parser.add_argument("--rounds", type=int, default=400, help="runs of each program at most")
    return parser.parse_args()


def model_of(network):
    """Bytes of the model, and its input."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
    rng = np.random.default_rng(network.hidden + network.steps)
    gates, hidden, directions = GATES[network.op] * network.hidden, network.hidden, network.directions
    width = network.width or hidden
    length = "T" if network.dynamic else network.steps
    nodes, weights, x = [], [], "x"
    for layer in range(network.layers):
        size = width if layer == 0 else directions * hidden
        for name, shape in (("w", (directions, gates, size)), ("r", (directions, gates, hidden)), ("b", (directions, 2 * gates))):
            values = rng.uniform(-1, 1, shape) / np.sqrt(hidden)
            weights.append(numpy_helper.from_array(values.astype(np.float32), f"{name}{layer}"))
        more = {"linear_before_reset": 1} if network.op == "GRU" else {}
        nodes.append(helper.make_node(network.op, [x, f"w{layer}", f"r{layer}", f"b{layer}"], [f"s{layer}", f"h{layer}"],
                                      hidden_size=hidden, direction="bidirectional" if directions == 2 else "forward", **more))
        nodes.append(helper.make_node("Transpose", [f"s{layer}"], [f"t{layer}"], perm=[0, 2, 1, 3]))
        nodes.append(helper.make_node("Reshape", [f"t{layer}", "shape"], [f"y{layer}"]))
        x = f"y{layer}"
    weights.append(numpy_helper.from_array(np.array([0, 0, directions * hidden]), "shape"))
    graph = helper.make_graph(
        nodes, network.name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [length, 1, width])],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, [length, 1, directions * hidden]),
         helper.make_tensor_value_info(f"h{network.layers - 1}", TensorProto.FLOAT, [directions, 1, hidden])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString(), rng.normal(size=(network.steps, 1, width)).astype(np.float32)


def measure_network(args, network, fresh):
    """A row, or a message instead of it."""
    import arrays
    folder = args.out / "recurrent"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{network.name}.onnx"
    content, x = model_of(network)
    path.write_bytes(content)
    programs = {"xnnpack": path.with_suffix(".xnnpack.pte"), "portable": path.with_suffix(".pte")}
    row = {"network": network.name, "hidden": network.hidden, "steps": network.steps}
    for backend, program in programs.items():
        flags = (["--dim", f"T=1..{network.steps}"] if network.dynamic else []) + (
            ["--backend", "xnnpack"] if backend == "xnnpack" else [])
        measure.run([args.etc, "lower", path, "-o", program, *flags])
    session, tensor = latency.session_of(path), arrays.to_torch(x)
    expected = session.run(None, {"x": x})
    ready = {backend: latency.Program(program) for backend, program in programs.items()}
    for backend, program in ready.items():
        wrong = arrays.compare_all(program.outputs([tensor]), expected, latency.RTOL, latency.ATOL)
        if wrong:
            return f"{network.name}: {backend}: {wrong}"
    runs = [lambda: session.run(None, {"x": x})]
    runs += [lambda program=program: program.method.execute([tensor]) for program in ready.values()]
    best = [float("inf")] * len(runs)
    for _ in range(TRIES):
        share = SHARE / 4 if args.quick else SHARE
        best = [min(pair) for pair in zip(best, latency.milliseconds(runs, args.rounds, share, time.process_time))]
        if best[1] <= limit_of(network) * best[0]:
            break
    row["onnxruntime"] = dict(zip(("load_ms", "memory"), fresh.added(path, [x])), ms=best[0], bytes=path.stat().st_size)
    for i, (backend, program) in enumerate(programs.items()):
        row[backend] = dict(zip(("load_ms", "memory"), fresh.added(program, [x])), ms=best[1 + i], bytes=program.stat().st_size)
    row["ratio"], row["portable_ratio"] = best[1] / best[0], best[2] / best[0]
    return row


def limit_of(network):
    if network.steps <= FEW:
        return FEW_TIME
    return next(most for hidden, most in TIME if network.hidden >= hidden)


def faults_of(args, network, row):
    faults = []

    def limit(what, value, most):
        if value > most:
            faults.append(f"{network.name}: {what} {value:.4g}, at most {most:.4g}")
    limit("time / ONNX Runtime", row["ratio"], limit_of(network) * (NOISE if args.quick else 1))
    limit("memory", row["xnnpack"]["memory"], MEMORY * row["onnxruntime"]["memory"] + SPARE)
    limit("file / model", row["xnnpack"]["bytes"], GROWTH * row["onnxruntime"]["bytes"] + (1 << 16))
    return faults


HEAD = ("network", "ms", "ONNX Runtime", "ratio", "portable", "ratio", "load ms", "ONNX Runtime", "KiB added", "ONNX Runtime",
        "portable", "file KiB", "model")


def format_row(row):
    ours, theirs, portable = row["xnnpack"], row["onnxruntime"], row["portable"]
    return [row["network"], f"{ours['ms']:.3g}", f"{theirs['ms']:.3g}", f"{row['ratio']:.2f}", f"{portable['ms']:.3g}",
            f"{row['portable_ratio']:.2f}", f"{ours['load_ms']:.3g}", f"{theirs['load_ms']:.3g}",
            *(str(side["memory"] // 1024) for side in (ours, theirs, portable)), str(ours["bytes"] // 1024),
            str(theirs["bytes"] // 1024)]


def main():
    args = parse_arguments()
    if not os.access(args.etc, os.X_OK):
        sys.exit(f"recurrent.py: there is no command {args.etc}; build it or say --etc PATH")
    import torch
    from executorch.extension.pybindings.portable_lib import _unsafe_reset_threadpool
    torch.set_num_threads(1)
    _unsafe_reset_threadpool(1)
    patterns = args.k.split(",") if args.k else ["*"]
    rows, faults, fresh = [], [], Fresh()
    print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|", flush=True)
    for network in NETWORKS:
        if (args.quick and not network.quick) or not any(fnmatch.fnmatch(network.name, p) for p in patterns):
            continue
        try:
            row = measure_network(args, network, fresh)
        except (OSError, RuntimeError, subprocess.CalledProcessError, measure.CommandFailed) as error:
            row = f"{network.name}: {str(error).strip() or error!r}"
        if isinstance(row, str):
            print(row, flush=True)
            faults.append(row)
            continue
        rows.append(row)
        faults += faults_of(args, network, row)
        print("| " + " | ".join(format_row(row)) + " |", flush=True)
    if not args.k and not args.quick:
        latency.write(args, "recurrent", rows)
    for fault in faults:
        print(f"FAILED {fault}")
    print(f"recurrent: {len(rows)} compared, {len(faults)} failed")
    return 1 if faults or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
