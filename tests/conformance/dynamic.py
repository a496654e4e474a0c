#!/usr/bin/env python3
"""Operators over symbolic dimensions: one program for all sizes, on the real runtime against ONNX Runtime.

    tests/conformance/dynamic.py [-k PATTERN,...]

Every case is a small graph over dims n and m, lowered once with --dim n=1..8 --dim m=1..8 and run at several sizes,
also the smallest. The graph after each stage, as text, goes on to the same program. Shape arithmetic, clamped slices, inferred sizes and bounds of the memory plan all take part.
"""

import filecmp
import glob
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "lib")]

import numpy as np  # noqa: E402
import onnx  # noqa: E402

import arrays  # noqa: E402
import cases  # noqa: E402
import dynamic_cases  # noqa: E402
import etc_command  # noqa: E402
from dynamic_case import HIGH  # noqa: E402


def expected(path, inputs):
    session = cases.ort_session(path)
    return session.run(None, {x.name: a for x, a in zip(session.get_inputs(), inputs)})


def check(case, args, server, work):
    """None when all sizes are right, else what went wrong."""
    path, program, bundle = (os.path.join(work, x) for x in ("model.onnx", "model.pte", "data.pkl"))
    bundles = []
    onnx.save(case.model(), path)
    if os.path.exists(program):
        os.unlink(program)
    bounds = {"n": f"{case.least_n}..{case.high}", "m": f"{case.least_m}..{case.high}"}
    bounds = {k: v for k, v in bounds.items() if f"{k}," in case.inputs or f"{k}]" in case.inputs}
    artifacts = os.path.join(work, "artifacts")
    shutil.rmtree(artifacts, ignore_errors=True)
    flags = [*args.extra, *case.flags, "--artifacts", artifacts]
    stage, code, message, _ = etc_command.lower(args.etc, path, program, bounds, flags, args.timeout)
    if stage != "ok":
        return f"{stage}: {code} {message}"
    if fault := check_artifacts(args, artifacts, program):
        return fault
    for n, m in case.sizes:
        inputs = case.feeds(n, m)
        arrays.save_bundle(bundle, inputs, expected(path, inputs))
        answer = server.run({"pte": program, "bundle": bundle, "rtol": 1e-4, "atol": 1e-5}, args.timeout)
        if answer["stage"] != "ok":
            return f"at n = {n}, m = {m}: {answer['stage']}: {answer['message']}"
        bundles.append(f"{bundle}.{n}.{m}")
        arrays.save_bundle(bundles[-1], *arrays.load_bundle(bundle))
    # Once more without loading the program anew: one call leaves plans of the delegates to the next.
    answer = server.run({"pte": program, "bundles": bundles, "rtol": 1e-4, "atol": 1e-5}, args.timeout)
    if answer["stage"] != "ok":
        return f"one size after the other: {answer['stage']}: {answer['message']}"
    if case.beyond and (fault := check_beyond(case, args, server, program, bundle)):
        return fault
    return check_memory(args, case, path, program, bounds)


def check_artifacts(args, folder, program):
    again = program + ".again"
    for text in sorted(glob.glob(os.path.join(glob.escape(folder), "*.etir"))):
        name = os.path.basename(text)
        if ".delegate-" in name:
            continue
        stage, code, message, _ = etc_command.lower(args.etc, text, again, {}, [], args.timeout)
        if stage != "ok":
            return f"{name}: {stage}: {code} {message}"
        if not filecmp.cmp(program, again, shallow=False):
            return f"{name} goes on to another program"
    return None


def check_beyond(case, args, server, program, bundle):
    inputs = case.beyond()
    arrays.save_bundle(bundle, inputs, [])
    answer = server.run({"pte": program, "bundle": bundle, "rtol": 1e-4, "atol": 1e-5}, args.timeout)
    if answer["stage"] != "run":
        return f"beyond the bound: {answer['stage']}: {answer['message']}"
    files = []
    for i, a in enumerate(inputs):
        files += ["--input", f"{i}={program}.{i}.npy"]
        np.save(f"{program}.{i}.npy", a)
    done = subprocess.run([args.etc, "run", program, *files], capture_output=True, text=True, timeout=args.timeout)
    return None if done.returncode == 1 and "error[" in done.stderr else f"etc run beyond the bound: {done.returncode} {done.stderr}"


def memory_of(args, program):
    done = subprocess.run([args.etc, "inspect", "--json", program], capture_output=True, text=True, check=True,
                          timeout=args.timeout)
    return json.loads(done.stdout)["methods"][0]["memory"]


def check_memory(args, case, path, program, bounds):
    """None when what `etc inspect` tells of the memory at smaller sizes is right, else what is wrong."""
    memory = memory_of(args, program)
    if "by_dim_fault" in memory:
        return f"inspect: {memory['by_dim_fault']}"
    for curve in memory["by_dim"]:
        if max(curve["live_peak_bytes"]) > memory["live_peak_bytes"]:
            return f"inspect: {curve} exceeds the live peak, {memory['live_peak_bytes']}"
    for name in bounds if case.fixed and not args.extra else ():
        dims = [d.dim_param for d in case.model().graph.input[0].type.tensor_type.shape.dim]
        curve = next(c for c in memory["by_dim"] if (c["input"], c["dim"]) == (0, dims.index(name)))
        if (curve["sizes"][-1], curve["live_peak_bytes"][-1]) != (HIGH, memory["live_peak_bytes"]):
            return f"inspect: {curve} does not end at the live peak, {memory['live_peak_bytes']}"
        for size, peak in zip(curve["sizes"], curve["live_peak_bytes"]):
            sizes = {k: str(size if k == name else HIGH) for k in bounds}
            stage, code, message, _ = etc_command.lower(args.etc, path, program, sizes, args.extra, args.timeout)
            if stage != "ok":
                return f"{stage} at {sizes}: {code} {message}"
            if (needed := memory_of(args, program)["live_peak_bytes"]) != peak:
                return f"inspect: {peak} bytes at {sizes}; lowered for these sizes it needs {needed}"
    return None


def main():
    return cases.run(dynamic_cases.CASES, check, cases.parser(__doc__).parse_args())


if __name__ == "__main__":
    sys.exit(main())
