"""Runs the delegates with quantized values that quantized.c draws on the real ExecuTorch runtime, and on `etc run`, and compares.

usage: run_quantized.py PTE_QUANTIZED ETC [SEED [ROUNDS]]    (with a Python that has executorch; see with_runtime.sh)
Exit: 0 all right, 1 a difference.
"""

import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import arrays  # noqa: E402
import runtime  # noqa: E402

DTYPES = {"i8": np.int8, "u8": np.uint8}
FLOATS = {"f16": np.float16, "f32": np.float32}


def draw(random, text):
    dtype, dims = text.split(":")
    dims = [int(d) for d in dims.split(",")]
    if dtype in FLOATS:
        return (random.standard_normal(dims) * random.choice([0.3, 1, 3])).astype(FLOATS[dtype])
    if dtype == "i32":
        return random.integers(-60, 61, dims).astype(np.int32)
    limits = np.iinfo(DTYPES[dtype])
    if dims == [256]:
        return np.arange(limits.min, limits.max + 1).astype(DTYPES[dtype])
    return random.integers(limits.min, limits.max + 1, dims).astype(DTYPES[dtype])


def differ(ours, theirs, off):
    """What is wrong with the result, or None. off: steps of bytes; millionths of the largest for floats."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype} {ours.shape} instead of {theirs.dtype} {theirs.shape}"
    if ours.dtype.kind == "f":
        ours, theirs = ours.astype(float), theirs.astype(float)
        error = np.abs(ours - theirs).max() / max(1e-6, np.abs(theirs).max()) * 1e6
        return f"{error:.1f} millionths" if not error <= off else None
    steps = np.abs(ours.astype(int) - theirs.astype(int))
    at = np.unravel_index(steps.argmax(), steps.shape)
    return f"{steps.max()} steps, {np.count_nonzero(steps)} of {steps.size}: {ours[at]} and not {theirs[at]} at {at}" if steps.max() > off else None


def check(server, etc, folder, line, random):
    name, off, *kinds = line.split()
    inputs = [draw(random, k) for k in kinds]
    pte, results = os.path.join(folder, name + ".pte"), os.path.join(folder, name)
    options = []
    for i, x in enumerate(inputs):
        path = os.path.join(folder, f"{name}.{i}.npy")
        arrays.save_npy(path, x)
        options += ["--input", f"{i}={path}"]
    run = subprocess.run([etc, "run", pte, *options, "--output", results], capture_output=True, text=True)
    if run.returncode:
        return run.stderr.strip()
    ours = np.load(os.path.join(results, "output_0.npy"))
    bundle = os.path.join(folder, "case.npz")
    arrays.save_bundle(bundle, inputs, [])
    answer = server.run({"pte": pte, "method": "forward", "bundle": bundle, "rtol": 0, "atol": 0, "save": folder})
    if answer["stage"] not in ("ok", "mismatch"):
        return f"{answer['stage']} {answer['message']}"
    theirs = np.load(os.path.join(folder, "got_0.npy"))
    return differ(ours, theirs, int(off))


def main():
    seed, rounds = (sys.argv[3:] + ["1", "6"][len(sys.argv) - 3:])[:2]
    server, failures, random = runtime.Runtime(), 0, np.random.default_rng(int(seed))
    with tempfile.TemporaryDirectory() as folder:
        lines = subprocess.run([sys.argv[1], folder, seed, rounds], check=True, capture_output=True, text=True).stdout.splitlines()
        for line in lines:
            fault = check(server, sys.argv[2], folder, line, random)
            failures += fault is not None
            if fault is not None:
                print(f"FAIL {line}: {fault}")
    server.close()
    print(f"{len(lines) - failures} of {len(lines)} are right")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
