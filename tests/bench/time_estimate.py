#!/usr/bin/env python3
"""How rough the time of a budget is: etc's estimates beside the times on portable kernels in docs/measurements/benchmarks.md.

  time_estimate.py [--etc build/release/etc] [--least MS]

Lowers the networks of the table at the sizes of their stored inputs; prints milliseconds and their ratio, and the range of
the ratios of networks that take MS (0.3) and more.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def measured():
    text = (ROOT / "docs/measurements/benchmarks.md").read_text()
    table = text.split("<!-- figures latency -->")[1].split("<!-- /figures")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[3:]]
    return {row[0]: float(row[3].split("/")[0]) for row in rows if len(row) > 3 and "/" in row[3]}


def dims(etc, place):
    """The sizes of the stored inputs for the names of the model's dims."""
    declared = json.loads(subprocess.run([etc, "inspect", place / "model.onnx", "--json"], check=True, capture_output=True).stdout)["inputs"]
    stored = [np.load(place / f"input_{i}.npy", mmap_mode="r").shape for i in range(len(declared))]
    return {name: size for i, shape in zip(declared, stored) for name, size in zip(i.get("dims", []), shape) if isinstance(name, str)}


def estimate(etc, model, sizes, folder):
    (folder / "budget.yaml").write_text("time: 0\n")
    command = [etc, "lower", model, "-o", folder / "out.pte", "--budget", folder / "budget.yaml", "--diagnostics=json", "-q"]
    command += [f"--dim={name}={size}" for name, size in sizes.items()]
    messages = subprocess.run(command, capture_output=True, text=True).stderr.splitlines()
    note = [n for m in messages for n in json.loads(m)["notes"] if n.startswith("time ")]
    return float(re.search(r"ms +([\d.]+) ms", note[0])[1])


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--etc", default=str(ROOT / "build/release/etc"))
    p.add_argument("--least", type=float, default=0.3)
    args = p.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for name, ms in measured().items():
            place = ROOT / "build/zoo" / name
            got = estimate(args.etc, place / "model.onnx", dims(args.etc, place), pathlib.Path(folder))
            print(f"{name:24} {ms:10.3f} {got:10.3f} {got / ms:8.2f}")
            if ms >= args.least:
                ratios.append(got / ms)
    print(f"{len(ratios)} networks of {args.least} ms and more: {min(ratios):.2f} to {max(ratios):.2f} times what was measured")
    return 0


if __name__ == "__main__":
    sys.exit(main())
