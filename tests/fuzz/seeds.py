#!/usr/bin/env python3
"""Seeds of the fuzzers out of the official ONNX cases: the models, what they look like as .etir, and their programs.

    tests/fuzz/seeds.py --etc build/release/etc OUT     fills OUT/fuzz_onnx, OUT/fuzz_etir, OUT/fuzz_pte

Every case counts, but for large ones: each is a call of the fuzzer, which its time limit must leave room for. Programs are made for
the portable kernels and for XNNPACK. Files are named by their contents, so that each is there once. tools/fuzz-smoke calls this.
"""

import argparse
import concurrent.futures
import glob
import hashlib
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "conformance"), os.path.join(ROOT, "tests", "lib")]

import etc_command  # noqa: E402
import onnx_cases  # noqa: E402

LARGEST = {"fuzz_onnx": 8 << 10, "fuzz_etir": 8 << 10, "fuzz_pte": 8 << 10}  # bytes
STAGES = ("01-import.etir", "07-to_executorch.etir")


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("out", help="the folder that the seeds go to")
    p.add_argument("--etc", default=etc_command.default_command(ROOT), help="the command that makes the programs")
    p.add_argument("--cases", default=os.path.join(ROOT, "build", "conformance"), help="where the official cases are, or are written to")
    p.add_argument("-j", "--jobs", type=int, default=min(os.cpu_count() or 1, 8), help="cases at a time")
    return p.parse_args()


def keep(args, target, path):
    """Copies the file to the seeds of the target, unless it is missing or large."""
    if not os.path.exists(path) or os.path.getsize(path) > LARGEST[target]:
        return
    with open(path, "rb") as f:
        data = f.read()
    with open(os.path.join(args.out, target, hashlib.sha256(data).hexdigest()[:20]), "wb") as f:
        f.write(data)


def seed(args, case):
    model = os.path.join(case["dir"], "model.onnx")
    if not os.path.exists(model) or os.path.getsize(model) > LARGEST["fuzz_onnx"]:
        return
    keep(args, "fuzz_onnx", model)
    with tempfile.TemporaryDirectory(prefix="etc-seeds-") as work:
        program = os.path.join(work, "model.pte")
        for flags in (["--artifacts", work], ["--backend=xnnpack:min-ops=1"]):
            stage, *_ = etc_command.lower(args.etc, model, program, case["dims"], flags)
            if stage != "ok":
                break
            keep(args, "fuzz_pte", program)
        for text in STAGES:
            keep(args, "fuzz_etir", os.path.join(work, text))


def main():
    args = parse_arguments()
    for target in LARGEST:
        os.makedirs(os.path.join(args.out, target), exist_ok=True)
    cases = [c for c in onnx_cases.load(args.cases) if c["class"] == "runnable"]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(lambda case: seed(args, case), cases))
    for target in LARGEST:
        print(f"seeds: {len(glob.glob(os.path.join(args.out, target, '*')))} of {target}")


if __name__ == "__main__":
    main()
