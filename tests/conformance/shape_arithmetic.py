#!/usr/bin/env python3
"""Shape arithmetic of exported models becomes symbolic sizes: no kernel call of it may be left in a program.

    tests/conformance/shape_arithmetic.py --models build/zoo [-k PATTERN,...]

Lowers the models that have symbolic dimensions with all of them in a range and looks at the calls of the lowered graph. One
whose tensors are all integers of at most 8 elements computes sizes. What is left counts as failed, but for
aten::scalar_tensor, which brings a size to a kernel that wants a tensor.
"""

import argparse
import fnmatch
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "lib")]

import etc_command  # noqa: E402
import models  # noqa: E402

SMALL = 8  # elements
DEFINED = re.compile(r"(%\d+): (\w+)\[([^\]]*)\]")
NUMBER = re.compile(r"\d+$")


def is_size(dtype, dims):
    """Whether a tensor of this type can only hold sizes, indices or the like."""
    if dtype not in ("i64", "i32"):
        return False
    count = 1
    for dim in filter(None, dims.split(", ")):
        if not NUMBER.match(dim):
            return False
        count *= int(dim)
    return count <= SMALL


def left_over(text):
    """The calls of the printed graph that compute sizes."""
    sizes, calls = {}, []
    for line in text.splitlines():
        results = DEFINED.findall(line.split(" = ")[0]) if " = " in line else []
        for name, dtype, dims in results:
            sizes[name] = is_size(dtype, dims)
        if not results or " = input " in line or " = const " in line or "// no call" in line or "prim::" in line \
                or "aten::scalar_tensor(" in line:
            continue
        operands = re.findall(r"%\d+", line.split(" = ", 1)[1])
        if all(sizes[r[0]] for r in results) and all(sizes.get(o, False) for o in operands):
            calls.append(line.strip())
    return calls


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--models", default=os.path.join(ROOT, "build", "zoo"))
    p.add_argument("--etc", default=etc_command.default_command(ROOT))
    p.add_argument("-k", metavar="PATTERN,...", default="*")
    args = p.parse_args()
    folders = sorted(os.path.dirname(x) for x in glob.glob(os.path.join(args.models, "*", "meta.json")))
    passed = failed = 0
    for folder in folders:
        if not any(fnmatch.fnmatchcase(os.path.basename(folder), x) for x in args.k.split(",")):
            continue
        model = models.Model(folder)
        ranges = model.ranges()
        if not ranges:
            continue
        flags = [x for name, bounds in ranges.items() for x in ("--dim", f"{name}={bounds}")]
        done = subprocess.run([args.etc, "print", model.path, "--stage", "to_executorch", "--no-locations", "-q", *flags],
                              capture_output=True, text=True)
        calls = left_over(done.stdout)
        wrong = done.returncode != 0 or calls
        failed, passed = failed + bool(wrong), passed + (not wrong)
        print("FAIL   " if wrong else "ok     ", model.name, done.stderr.splitlines()[:1] or "", flush=True)
        for call in calls:
            print("        ", call)
    print(f"shape arithmetic: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
