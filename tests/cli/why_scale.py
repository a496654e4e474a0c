#!/usr/bin/env python3
"""`etc why --all` takes time in proportion to the number of operators: processor time on two chains, one four times as long.

    tests/cli/why_scale.py --etc build/release/etc
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile

SHORT, TIMES = 5000, 4
MOST = 8  # times the short one's; it was 19 when every operator looked at all events


def write_chain(path, count):
    ops = ["relu", "sigmoid", "tanh", "erf"]
    with open(path, "w") as f:
        f.write('graph @forward level(aten) {\n  %0: f32[4] = input "x"\n')
        for i in range(count):
            f.write(f'  %{i + 1}: f32[4] = aten::{ops[i % 4]}(%{i}) loc("n{i}", "Node", {i})\n')
        f.write(f'  output %{count} "y"\n}}\n')


def seconds(etc, path):
    """Processor time, the least of three."""
    least = None
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        out = subprocess.run([etc, "why", path, "--all"], stdout=subprocess.PIPE, check=True).stdout
        taken = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        least = taken if least is None else min(least, taken)
    return least, out.count(b"\n  fate ")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--etc", required=True)
    args = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="etc-why-") as folder:
        path = os.path.join(folder, "chain.etir")
        write_chain(path, SHORT)
        short, told = seconds(args.etc, path)
        write_chain(path, SHORT * TIMES)
        long, long_told = seconds(args.etc, path)
    if (told, long_told) != (SHORT, SHORT * TIMES):
        print(f"FAIL: {told} and {long_told} operators are told of, not {SHORT} and {SHORT * TIMES}")
        return 1
    print(f"why: {SHORT} operators {short:.2f} s, {SHORT * TIMES} operators {long:.2f} s")
    if long > MOST * max(short, 0.02):
        print(f"FAIL: {long / short:.1f} times as long, at most {MOST} wanted")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
