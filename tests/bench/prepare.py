#!/usr/bin/env python3
"""Makes the official programs that `latency.py --quick` and `xnnpack.py --quick` compare with, unless they are there. It takes longer than
what those measure, and other tests may run beside it.
"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("zoo", "lib", "conformance", "bench")]

import latency  # noqa: E402
import make  # noqa: E402
import official  # noqa: E402
import xnnpack  # noqa: E402


def main():
    specs, out, made = make.load_specs(), ROOT / "build" / "bench", 0
    for folder, names, program_of in (("official", latency.QUICK, official.program_of),
                                      ("official-xnnpack", xnnpack.QUICK, official.xnnpack_program_of)):
        for name in names:
            path, why = latency.official_program(out / folder, *specs[name], program_of)
            made += path is not None
            if why:
                print(f"{name}: no official program: {why}")
    print(f"prepare: {made} official programs")


if __name__ == "__main__":
    main()
