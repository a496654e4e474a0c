#!/usr/bin/env python3
"""One program for many batch sizes: `etc lower --dim batch=1..8` must run at 1, 3 and 8 and be refused at 9.

    tests/conformance/batch.py --models build/zoo [-k PATTERN,...]

Takes the models whose only symbolic dimension is called "batch" and is axis 0 of every input that has it. Inputs are
the stored ones repeated along that axis with every repetition scaled differently; ONNX Runtime gives the expected
outputs. `--dim batch=1` is run at 1 and must be refused at 2.
"""

import argparse
import fnmatch
import glob
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "lib")]

import numpy as np  # noqa: E402

import arrays  # noqa: E402
import etc_command  # noqa: E402
import models  # noqa: E402
import runtime  # noqa: E402

SYMBOL, LOW, HIGH = "batch", 1, 8
# bound given to lower -> sizes that must run, sizes that must be refused
PLANS = ((f"{LOW}..{HIGH}", (1, 3, 8), (9,)), ("1", (1,), (2,)))


def fits(model):
    _, inputs, _ = model.cases[0]
    if set(model.dims(inputs)) != {SYMBOL}:
        return False
    names = [[d.dim_param for d in x.type.tensor_type.shape.dim] for x in model.inputs]
    return all(SYMBOL not in n[1:] for n in names) and all(a.dtype.kind == "f" for a in inputs)


def resized(model, size):
    grown = []
    for value, array in zip(model.inputs, model.cases[0][1]):
        if value.type.tensor_type.shape.dim[0].dim_param == SYMBOL:
            one = array[:1]
            array = np.concatenate([(one * (1.0 - 0.07 * i)).astype(one.dtype) for i in range(size)])
        grown.append(array)
    return grown


def expected(model, inputs):
    import onnxruntime

    import onnx_runtime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnx_runtime.Session(model.path, options)
    return session.run(None, {x.name: a for x, a in zip(model.inputs, inputs)})


def check(args, model, plan, server, work):
    """None, or (failed?, what)."""
    bound, good, bad = plan
    path = os.path.join(work, "model.pte")
    if os.path.exists(path):
        os.unlink(path)
    stage, code, message, _ = etc_command.lower(args.etc, model.path, path, {SYMBOL: bound}, timeout=args.timeout)
    if stage != "ok":
        return stage != "lower", f"{stage}: {code} {message}"
    rtol, atol = model.tolerance()
    for size in good + bad:
        inputs = resized(model, size)
        bundle = os.path.join(work, "data.pkl")
        arrays.save_bundle(bundle, inputs, expected(model, inputs))
        answer = server.run({"pte": path, "bundle": bundle, "rtol": rtol, "atol": atol}, args.timeout)
        if size in good and answer["stage"] != "ok":
            return True, f"at {SYMBOL} = {size}: {answer['stage']}: {answer['message']}"
        if size in bad and answer["stage"] not in ("load", "run"):
            return True, f"at {SYMBOL} = {size}: not refused but {answer['stage']}: {answer['message']}"
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--models", default=os.path.join(ROOT, "build", "zoo"))
    p.add_argument("--etc", default=etc_command.default_command(ROOT))
    p.add_argument("-k", metavar="PATTERN,...", default="*")
    p.add_argument("--timeout", type=float, default=300.0)
    args = p.parse_args()
    folders = sorted(os.path.dirname(x) for x in glob.glob(os.path.join(args.models, "*", "meta.json")))
    chosen = [f for f in folders if any(fnmatch.fnmatchcase(os.path.basename(f), x) for x in args.k.split(","))]
    passed = failed = skipped = 0
    server = runtime.Runtime()
    with tempfile.TemporaryDirectory(prefix="etc-batch-") as work:
        for model in filter(fits, map(models.Model, chosen)):
            for plan in PLANS:
                answer = check(args, model, plan, server, work)
                passed += answer is None
                failed += answer is not None and answer[0]
                skipped += answer is not None and not answer[0]
                word = "ok     " if answer is None else "FAIL   " if answer[0] else "skipped"
                print(word, f"{model.name} --dim {SYMBOL}={plan[0]}", answer[1] if answer else "", flush=True)
    server.close()
    print(f"batch: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
